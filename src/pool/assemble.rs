//! From a spec and what it refers to, to what a loop needs to know. Pure; the same for a cluster and for a file.

use std::net::IpAddr;
use std::sync::Arc;

use super::{Access, Config, PoolMember};
use crate::api::v1alpha1::EngineKind;
use crate::engine::{Address, Credentials, Engine, Password, Target, Tls, TlsError, TlsMode};
use crate::policy::member::{MemberInput, Standing};
use crate::spec::resolve::{Account, Authority, Availability, Member};
use crate::spec::{self, PoolSpec};

/// The configuration of `spec`'s loop. Fails when the certificates cannot be used.
pub fn assemble(
    spec: &PoolSpec,
    members: &[Member],
    account: &Account,
    authority: Option<&Authority>,
    generation: u64,
) -> Result<Config, TlsError> {
    Ok(Config {
        generation,
        settings: spec.settings.clone(),
        members: members
            .iter()
            .filter_map(|m| member(m, &spec.connection.database))
            .collect(),
        access: Access {
            engine: match spec.engine {
                EngineKind::Postgresql => Engine::Postgresql,
            },
            credentials: Credentials {
                username: account.username.clone(),
                password: Password::new(account.password.clone()),
            },
            tls: tls(&spec.connection.tls, authority)?,
        },
    })
}

/// A member as the loop knows it; absent while it has no address.
fn member(member: &Member, database: &str) -> Option<PoolMember> {
    let host = member.host.as_ref()?;
    let address: Option<IpAddr> = host.parse().ok();
    let uid: Arc<str> = match &member.uid {
        Some(uid) => Arc::from(uid.as_str()),
        None => Arc::from(format!("{host}:{}", member.port)),
    };
    Some(PoolMember {
        input: MemberInput {
            name: Arc::from(member.name.as_str()),
            uid,
            address,
            standing: match member.availability {
                Availability::Ready => Standing::Eligible,
                Availability::NotReady | Availability::NotRunning => Standing::PodNotReady,
                Availability::Terminating => Standing::Terminating,
            },
            designated: member.designated,
        },
        target: Target {
            address: address.map_or_else(|| Address::Name(host.clone()), Address::Ip),
            port: member.port,
            database: database.to_owned(),
        },
    })
}

fn tls(wanted: &spec::Tls, authority: Option<&Authority>) -> Result<Tls, TlsError> {
    let pem = authority.map(|a| a.pem.as_bytes());
    match wanted {
        spec::Tls::Disable => Ok(Tls::disabled()),
        spec::Tls::Require => Tls::try_new(TlsMode::Require, None, None),
        spec::Tls::VerifyCa(_) => Tls::try_new(TlsMode::VerifyCa, pem, None),
        spec::Tls::VerifyFull { server_name, .. } => Tls::try_new(TlsMode::VerifyFull, pem, server_name.clone()),
    }
}
