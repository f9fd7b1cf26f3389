//! Servers that a test scripts: no sockets, no clock but tokio's, which a test pauses.
//!
//! A [`Script`] holds servers by name. Each has a [`Behaviour`]; a test changes it at any time, and what is asked from then
//! on is answered by it. Connections and nudges are counted.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Address, Duty, EngineError, Nudge, Target};
use crate::policy::sighting::{ProbeFailure, Sighting};

/// How a server behaves when it is connected to or asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Behaviour {
    /// Answers this.
    Shows(Box<Sighting>),
    /// Fails like this. The connection is lost with kinds that end one.
    Fails(ProbeFailure),
    /// Never answers.
    Hangs,
}

#[derive(Debug)]
struct Server {
    behaviour: Behaviour,
    held: bool,
    delay: Duration,
    address: IpAddr,
    connects: u32,
    /// Connections made before this many were ended.
    ended: u32,
    nudges: u32,
    questions: u32,
}

/// Servers by name, shared by whoever holds a clone.
#[derive(Clone, Default)]
pub struct Script(Arc<Mutex<BTreeMap<String, Server>>>);

impl Script {
    /// Makes `name` behave like this from now on.
    pub fn set(&self, name: &str, behaviour: Behaviour) {
        let mut servers = self.lock();
        let next = u8::try_from(servers.len()).unwrap_or(u8::MAX);
        let server = servers.entry(name.to_owned()).or_insert_with(|| Server {
            behaviour: Behaviour::Hangs,
            held: false,
            delay: Duration::from_millis(1),
            address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, next.saturating_add(1))),
            connects: 0,
            ended: 0,
            nudges: 0,
            questions: 0,
        });
        server.behaviour = behaviour;
    }

    /// Makes `name` behave like this, whatever it is told to show, until it is released.
    pub fn hold(&self, name: &str, behaviour: Behaviour) {
        self.set(name, behaviour);
        if let Some(server) = self.lock().get_mut(name) {
            server.held = true;
        }
    }

    /// Lets `name` show again what it is told to.
    pub fn release(&self, name: &str) {
        if let Some(server) = self.lock().get_mut(name) {
            server.held = false;
        }
    }

    /// Makes `name` show this from now on, unless it is held.
    pub fn show(&self, name: &str, sighting: Sighting) {
        let held = self.lock().get(name).is_some_and(|s| s.held);
        if !held {
            self.set(name, Behaviour::Shows(Box::new(sighting)));
        }
    }

    /// Makes `name` answer after this long.
    pub fn delay(&self, name: &str, delay: Duration) {
        if let Some(server) = self.lock().get_mut(name) {
            server.delay = delay;
        }
    }

    /// Ends every connection to `name`, as a restart or a person does.
    pub fn end_connections(&self, name: &str) {
        if let Some(server) = self.lock().get_mut(name) {
            server.ended = server.connects;
        }
    }

    /// How often `name` was connected to.
    pub fn connects(&self, name: &str) -> u32 {
        self.lock().get(name).map_or(0, |s| s.connects)
    }

    /// How often `name` was asked where it stands.
    pub fn questions(&self, name: &str) -> u32 {
        self.lock().get(name).map_or(0, |s| s.questions)
    }

    /// How often `name` was asked to flush.
    pub fn nudges(&self, name: &str) -> u32 {
        self.lock().get(name).map_or(0, |s| s.nudges)
    }

    pub(super) async fn connect(&self, target: &Target) -> Result<Session, EngineError> {
        let name = match &target.address {
            Address::Name(name) => name.clone(),
            Address::Ip(ip) => ip.to_string(),
        };
        let (address, number) = {
            let mut servers = self.lock();
            let unknown = || EngineError::new(ProbeFailure::NameNotResolved, "no such server in the script");
            let server = servers.get_mut(&name).ok_or_else(unknown)?;
            server.connects += 1;
            (server.address, server.connects)
        };
        let session = Session {
            script: self.clone(),
            name,
            address,
            number,
            version: Arc::from("scripted"),
        };
        match session.behaviour().await? {
            // These are found when asked, not when connecting.
            Behaviour::Fails(ProbeFailure::QueryFailed | ProbeFailure::ConnectionLost | ProbeFailure::Interrupted)
            | Behaviour::Shows(_) => Ok(session),
            Behaviour::Fails(kind) => Err(EngineError::new(kind, "scripted")),
            Behaviour::Hangs => std::future::pending().await,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Server>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script")
    }
}

/// A connection to a scripted server.
#[derive(Debug)]
pub struct Session {
    script: Script,
    name: String,
    address: IpAddr,
    /// Which connection to the server it is, from one.
    number: u32,
    version: Arc<str>,
}

impl Session {
    /// See [`super::Session::observe`].
    pub async fn observe(&mut self, _: Duty) -> Result<Sighting, EngineError> {
        if let Some(server) = self.script.lock().get_mut(&self.name) {
            server.questions += 1;
        }
        match self.behaviour().await? {
            Behaviour::Shows(sighting) => Ok(*sighting),
            Behaviour::Fails(kind) => Err(EngineError::new(kind, "scripted")),
            Behaviour::Hangs => std::future::pending().await,
        }
    }

    /// See [`super::Session::nudge`].
    pub async fn nudge(&mut self) -> Result<Nudge, EngineError> {
        self.behaviour().await?;
        if let Some(server) = self.script.lock().get_mut(&self.name) {
            server.nudges += 1;
        }
        Ok(Nudge {
            within: Duration::from_millis(200),
        })
    }

    /// The server's address.
    pub fn peer(&self) -> IpAddr {
        self.address
    }

    /// The server's version.
    pub fn version(&self) -> &Arc<str> {
        &self.version
    }

    async fn behaviour(&self) -> Result<Behaviour, EngineError> {
        let gone = || EngineError::new(ProbeFailure::ConnectionLost, "the connection was ended");
        let delay = self.script.lock().get(&self.name).map(|s| s.delay).ok_or_else(gone)?;
        tokio::time::sleep(delay).await;
        let servers = self.script.lock();
        let server = servers.get(&self.name).filter(|s| s.ended < self.number);
        server.map(|s| s.behaviour.clone()).ok_or_else(gone)
    }
}
