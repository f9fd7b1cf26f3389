//! The Secrets that a pool names, read by name and in its namespace only.
//!
//! They are not watched: that needs the right to list all of them. They are read again each [`EVERY`], and each [`SOON`]
//! while one is missing or servers refuse the account or its TLS.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use tokio::time::timeout;

use super::error::ReconcileError;
use crate::policy::moment::Moment;
use crate::publish::slices::apply::ApplyError;
use crate::spec::PoolSpec;
use crate::spec::resolve::{Account, Authority, Problem, ProblemKind, account, authority};

/// How often Secrets are read in quiet times.
pub(super) const EVERY: Duration = Duration::from_secs(60);
/// How often while something is wrong with them.
const SOON: Duration = Duration::from_secs(3);
/// How long reading one may take.
const WITHIN: Duration = Duration::from_secs(2);

/// What was read of one Secret.
#[derive(Clone, Debug)]
enum Read {
    Found(Box<Secret>),
    /// Found before, and refused once since: an API server that has just started refuses everybody until it knows whose
    /// rights are which.
    Doubted(Box<Secret>),
    Absent,
    Forbidden,
}

impl Read {
    /// What to believe after `before`.
    fn after(self, before: Option<Self>) -> Self {
        match (self, before) {
            (Self::Forbidden, Some(Self::Found(secret))) => Self::Doubted(secret),
            (read, _) => read,
        }
    }

    fn is_settled(&self) -> bool {
        matches!(self, Self::Found(_))
    }
}

/// The Secrets of one pool, as last read.
#[derive(Debug)]
pub(super) struct Secrets {
    api: Api<Secret>,
    read: BTreeMap<String, Read>,
    at: Option<Moment>,
}

impl Secrets {
    /// Secrets of `namespace`; none is read yet.
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            read: BTreeMap::new(),
            at: None,
        }
    }

    /// When to read again.
    pub(super) fn due(&self, refused: bool) -> Moment {
        let settled = !refused && self.read.values().all(Read::is_settled);
        let pause = if settled { EVERY } else { SOON };
        self.at.map_or(Moment::ORIGIN, |at| at + pause)
    }

    /// Reads what `spec` names, when it is due or names another. What was read before stays when the API server fails.
    pub(super) async fn refresh(&mut self, spec: &PoolSpec, refused: bool, now: Moment) -> Result<(), ReconcileError> {
        let connection = &spec.connection;
        let ca = connection.tls.ca().map(|ca| ca.secret.clone());
        let wanted: BTreeSet<String> = [connection.credentials.secret.clone()].into_iter().chain(ca).collect();
        let known = wanted.iter().all(|name| self.read.contains_key(name));
        if known && now < self.due(refused) {
            return Ok(());
        }
        self.read.retain(|name, _| wanted.contains(name));
        for name in wanted {
            let read = self.get(&name).await?.after(self.read.remove(&name));
            self.read.insert(name, read);
        }
        self.at = Some(now);
        Ok(())
    }

    /// The account and the authority that `spec` names, or what is wrong with them.
    pub(super) fn access(&self, spec: &PoolSpec) -> Result<(Account, Option<Authority>), Vec<Problem>> {
        let connection = &spec.connection;
        let mut names = vec![&connection.credentials.secret];
        names.extend(connection.tls.ca().map(|ca| &ca.secret));
        let forbidden = names
            .iter()
            .find(|n| matches!(self.read.get(**n), Some(Read::Forbidden)));
        if let Some(name) = forbidden {
            let object = format!("Secret {}/{name}", spec.namespace);
            let remedy = "give this process the right to get Secrets in the namespace";
            return Err(vec![Problem::new(
                ProblemKind::SecretForbidden,
                &object,
                "may not be read by this process",
                remedy,
            )]);
        }
        let found = |name: &str| match self.read.get(name) {
            Some(Read::Found(secret) | Read::Doubted(secret)) => Some(secret.as_ref()),
            Some(Read::Absent | Read::Forbidden) | None => None,
        };
        let account = account(spec, found(&connection.credentials.secret));
        let authority = authority(spec, connection.tls.ca().and_then(|ca| found(&ca.secret)));
        match (account, authority) {
            (Ok(account), Ok(authority)) => Ok((account, authority)),
            (account, authority) => Err(account
                .err()
                .unwrap_or_default()
                .into_iter()
                .chain(authority.err())
                .collect()),
        }
    }

    async fn get(&self, name: &str) -> Result<Read, ReconcileError> {
        let failed = |source| ReconcileError::Secret {
            name: name.to_owned(),
            source,
        };
        match timeout(WITHIN, self.api.get_opt(name)).await {
            Ok(Ok(Some(secret))) => Ok(Read::Found(Box::new(secret))),
            Ok(Ok(None)) => Ok(Read::Absent),
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => Ok(Read::Forbidden),
            Ok(Err(error)) => Err(failed(ApplyError::Api(Box::new(error)))),
            Err(_) => Err(failed(ApplyError::Timeout(WITHIN))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An API server that has just started answers so before it has read who may do what.
    #[test]
    fn one_refusal_of_what_could_be_read_is_not_believed() {
        let found = || Read::Found(Box::default());
        let once = Read::Forbidden.after(Some(found()));
        assert!(matches!(once, Read::Doubted(_)));
        assert!(!once.is_settled(), "it is read again soon");
        assert!(matches!(Read::Forbidden.after(Some(once.clone())), Read::Forbidden));
        assert!(matches!(found().after(Some(once)), Read::Found(_)));
        assert!(matches!(Read::Forbidden.after(None), Read::Forbidden));
        assert!(matches!(Read::Absent.after(Some(found())), Read::Absent));
    }
}
