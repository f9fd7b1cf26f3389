//! Connecting, and what errors mean.

use std::error::Error as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::tls::{MakeTlsConnect, NoTls};
use tokio_postgres::{CancelToken, Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::super::bounded::{Allowance, Bounded};
use super::super::error::{EngineError, presentable};
use super::super::{Address, Credentials, Target, Tls, resolve};
use super::statements::{IDENTIFY, SET_UP, get};
use super::{Driver, Identity, Session};
use crate::policy::position::{ClusterId, Incarnation, WalGeometry};
use crate::policy::sighting::ProbeFailure;

/// The oldest version whose statements these are, as `server_version_num`.
const OLDEST: i32 = 140_000;

impl Session {
    /// Connects, authenticates and learns who the server is.
    pub async fn connect(target: &Target, credentials: &Credentials, tls: &Tls) -> Result<Self, EngineError> {
        let mut last = None;
        for address in resolve(target).await? {
            match Self::connect_to(address, target, credentials, tls).await {
                Ok(session) => return Ok(session),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| EngineError::new(ProbeFailure::NameNotResolved, "the host has no address")))
    }

    async fn connect_to(
        peer: SocketAddr,
        target: &Target,
        credentials: &Credentials,
        tls: &Tls,
    ) -> Result<Self, EngineError> {
        let own = match &target.address {
            Address::Ip(ip) => ip.to_string(),
            Address::Name(name) => name.clone(),
        };
        let name = tls.name(&own).to_owned();
        let allowance = Allowance::new();
        let stream = Bounded::new(dial(peer).await?, allowance.clone());
        let config = config(target, credentials, tls);
        let (client, driver) = greet(&config, stream, &name, tls).await?;
        let identity = identify(&client).await?;
        Ok(Self {
            client,
            driver,
            identity,
            allowance,
            tls: tls.clone(),
            peer,
            name,
            sample: None,
            probe: None,
        })
    }
}

/// Asks the server to end the statement that a connection was given up in. Whether it does is not known to anybody.
pub(super) async fn cancel(token: CancelToken, peer: SocketAddr, name: &str, tls: &Tls) {
    let Ok(stream) = dial(peer).await else { return };
    let sent = match tls.config() {
        None => token.cancel_query_raw(stream, NoTls).await,
        Some(config) => match connector(config, name) {
            Ok(connector) => token.cancel_query_raw(stream, connector).await,
            Err(_) => return,
        },
    };
    drop(sent);
}

fn config(target: &Target, credentials: &Credentials, tls: &Tls) -> Config {
    let mut config = Config::new();
    config
        .user(&credentials.username)
        .password(credentials.password.reveal())
        .dbname(&target.database)
        .application_name("lagwarden")
        .ssl_mode(if tls.config().is_some() {
            SslMode::Require
        } else {
            SslMode::Disable
        });
    config
}

async fn dial(peer: SocketAddr) -> Result<TcpStream, EngineError> {
    let stream = TcpStream::connect(peer)
        .await
        .map_err(|e| EngineError::connecting(&e))?;
    // A host that vanished is noticed by the deadlines of whoever asks; these end the connection of a session that is not
    // asked any more.
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(5))
        .with_interval(Duration::from_secs(2));
    let socket = SockRef::from(&stream);
    let set = stream
        .set_nodelay(true)
        .and_then(|()| socket.set_tcp_keepalive(&keepalive));
    #[cfg(target_os = "linux")]
    let set = set.and_then(|()| socket.set_tcp_user_timeout(Some(Duration::from_secs(8))));
    set.map_err(|e| EngineError::connecting(&e))?;
    Ok(stream)
}

type Connector = <MakeRustlsConnect as MakeTlsConnect<TcpStream>>::TlsConnect;

fn connector(config: &Arc<rustls::ClientConfig>, name: &str) -> Result<Connector, EngineError> {
    let mut make = MakeRustlsConnect::new(config.as_ref().clone());
    let connector = MakeTlsConnect::<TcpStream>::make_tls_connect(&mut make, name);
    connector.map_err(|e| EngineError::new(ProbeFailure::TlsFailed, format!("{name}: {e}")))
}

async fn greet(
    config: &Config,
    stream: Bounded<TcpStream>,
    name: &str,
    tls: &Tls,
) -> Result<(Client, Driver), EngineError> {
    match tls.config() {
        None => {
            let (client, connection) = config.connect_raw(stream, NoTls).await.map_err(|e| connecting(&e))?;
            // How it ended is told by the question that finds it closed.
            Ok((client, Driver(tokio::spawn(async move { drop(connection.await) }))))
        }
        Some(rustls) => {
            let connector = connector(rustls, name)?;
            let (client, connection) = config
                .connect_raw(stream, connector)
                .await
                .map_err(|e| connecting(&e))?;
            Ok((client, Driver(tokio::spawn(async move { drop(connection.await) }))))
        }
    }
}

async fn identify(client: &Client) -> Result<Identity, EngineError> {
    client.batch_execute(SET_UP).await.map_err(|e| asking(&e))?;
    let row = client.query_one(IDENTIFY, &[]).await.map_err(|e| asking(&e))?;
    let number: i32 = get(&row, 2)?;
    let version = presentable(get::<&str>(&row, 3)?);
    if number < OLDEST {
        let text = format!("PostgreSQL {version} is older than 14, the oldest that is supported");
        return Err(EngineError::new(ProbeFailure::Protocol, text));
    }
    let bytes = |n: i64| u64::try_from(n).unwrap_or(0);
    Ok(Identity {
        // The identifier is an unsigned number that SQL shows as a signed one.
        cluster: ClusterId(u128::from(u64::from_ne_bytes(get::<i64>(&row, 0)?.to_ne_bytes()))),
        incarnation: Incarnation(get(&row, 1)?),
        geometry: WalGeometry {
            page: bytes(get(&row, 4)?),
            segment: bytes(get(&row, 5)?),
        },
        wal_writer_delay: Duration::from_millis(bytes(get(&row, 6)?)),
        version: Arc::from(version),
    })
}

/// What an error means while connecting.
fn connecting(error: &Error) -> EngineError {
    if let Some(said) = told(error) {
        return said;
    }
    let cause = io_of(error);
    let text = chain(error);
    // The driver keeps its kinds to itself; their first words are all that tells them apart.
    let kind = if text.starts_with("error performing TLS handshake") {
        ProbeFailure::TlsFailed
    } else if text.starts_with("authentication error") || text.starts_with("invalid configuration") {
        ProbeFailure::AuthFailed
    } else if let Some(io) = cause {
        return match io.kind() {
            io::ErrorKind::InvalidData => EngineError::new(ProbeFailure::Protocol, text),
            _ => EngineError::connecting(io),
        };
    } else if error.is_closed() {
        ProbeFailure::Refused
    } else {
        ProbeFailure::Protocol
    };
    EngineError::new(kind, text)
}

/// What an error means on an established connection.
pub(super) fn asking(error: &Error) -> EngineError {
    if let Some(told) = told(error) {
        return told;
    }
    let lost = error.is_closed() || io_of(error).is_some_and(|io| io.kind() != io::ErrorKind::InvalidData);
    let kind = if lost {
        ProbeFailure::ConnectionLost
    } else {
        ProbeFailure::Protocol
    };
    EngineError::new(kind, chain(error))
}

/// What the server itself says.
fn told(error: &Error) -> Option<EngineError> {
    let said = error.as_db_error()?;
    let kind = match said.code() {
        &SqlState::CANNOT_CONNECT_NOW => ProbeFailure::NotAccepting,
        &SqlState::ADMIN_SHUTDOWN | &SqlState::CRASH_SHUTDOWN => ProbeFailure::ConnectionLost,
        &SqlState::TOO_MANY_CONNECTIONS => ProbeFailure::TooManyConnections,
        &SqlState::INVALID_CATALOG_NAME => ProbeFailure::DatabaseNotFound,
        &SqlState::INSUFFICIENT_PRIVILEGE => ProbeFailure::PermissionDenied,
        code if code.code().starts_with("28") => ProbeFailure::AuthFailed,
        // Class 40, "transaction rollback": on a standby that is behind, whatever its applier runs into.
        code if code.code().starts_with("40") => match said.parsed_severity() {
            Some(Severity::Fatal | Severity::Panic) => ProbeFailure::ConnectionLost,
            Some(_) | None => ProbeFailure::Interrupted,
        },
        _ => ProbeFailure::QueryFailed,
    };
    Some(EngineError::new(
        kind,
        format!("{} ({})", said.message(), said.code().code()),
    ))
}

fn io_of(error: &Error) -> Option<&io::Error> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(io);
        }
        cause = error.source();
    }
    None
}

/// An error with its causes.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
