//! What can go wrong with a pass over a pool's objects: what it is called in metrics, and when to try again.

use std::time::Duration;

use crate::publish::slices::apply::ApplyError;

/// Why a pass did not finish.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// An EndpointSlice could not be written.
    #[error("publish EndpointSlice {name}")]
    Publish {
        /// The slice.
        name: String,
        /// Why.
        #[source]
        source: ApplyError,
    },
    /// A Service could not be made.
    #[error("make Service {name}")]
    MakeService {
        /// The Service.
        name: String,
        /// Why.
        #[source]
        source: ApplyError,
    },
    /// The status could not be written.
    #[error("write the status of ReplicaPool {name}")]
    Status {
        /// The pool.
        name: String,
        /// Why.
        #[source]
        source: ApplyError,
    },
    /// A Secret could not be read.
    #[error("read Secret {name}")]
    Secret {
        /// The Secret.
        name: String,
        /// Why.
        #[source]
        source: ApplyError,
    },
    /// The leadership ended before a write.
    #[error("this process does not lead any more")]
    NotLeader,
}

impl ReconcileError {
    /// The word in metrics: one of [`crate::telemetry::CATEGORIES`].
    pub fn category(&self) -> &'static str {
        match self {
            Self::Publish { source, .. }
            | Self::MakeService { source, .. }
            | Self::Status { source, .. }
            | Self::Secret { source, .. } => category(source),
            Self::NotLeader => "not_leader",
        }
    }

    /// When to try again after this many failures in a row, at the latest.
    pub fn retry(&self, failures: u32) -> Duration {
        let longest = match self {
            // What others changed is seen within moments.
            Self::Publish { source, .. }
            | Self::MakeService { source, .. }
            | Self::Status { source, .. }
            | Self::Secret { source, .. } => match category(source) {
                "api_conflict" => Duration::from_millis(250),
                "api_refused" => Duration::from_secs(10),
                _ => Duration::from_secs(1),
            },
            Self::NotLeader => Duration::from_secs(1),
        };
        let pause = Duration::from_millis(50) * 2_u32.pow(failures.min(8));
        pause.min(longest).mul_f64(0.75 + 0.25 * fastrand::f64())
    }

    /// The error with its causes, in one line.
    pub fn told(&self) -> String {
        let mut told = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            told = format!("{told}: {error}");
            cause = error.source();
        }
        told
    }
}

fn category(error: &ApplyError) -> &'static str {
    match error {
        ApplyError::Timeout(_) => "api_timeout",
        ApplyError::Api(error) => match error.as_ref() {
            kube::Error::Api(status) => match status.code {
                409 => "api_conflict",
                400..=499 if status.code != 429 => "api_refused",
                _ => "api_unreachable",
            },
            _ => "api_unreachable",
        },
    }
}
