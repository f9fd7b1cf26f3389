//! Doing what a plan says, and nothing else.
//!
//! *Timeouts*: each request ends within the time given. *Cancel safety*: a dropped call may have been carried out by the
//! server; the next look tells.

use std::time::Duration;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use tokio::time::timeout;

use super::plan::Step;
use crate::api;

/// Why a request was not acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The API server did not answer in time; whether it did what was asked is not known.
    #[error("no answer from the API server within {0:?}")]
    Timeout(Duration),
    /// The API server refused, or was not reached.
    #[error("the API server did not take it")]
    Api(#[source] Box<kube::Error>),
}

/// Makes the request of `step` and returns the slice as stored, when it is.
pub async fn apply(
    slices: &Api<EndpointSlice>,
    step: &Step,
    within: Duration,
) -> Result<Option<EndpointSlice>, ApplyError> {
    let request = async {
        match step {
            Step::Apply(slice) => {
                let name = slice.metadata.name.as_deref().unwrap_or_default();
                let params = PatchParams::apply(api::FIELD_MANAGER).force();
                slices.patch(name, &params, &Patch::Apply(slice)).await.map(Some)
            }
            Step::Delete { name, uid, version } => {
                let exactly = Preconditions {
                    uid: uid.clone(),
                    resource_version: version.clone(),
                };
                let params = DeleteParams::default().preconditions(exactly);
                match slices.delete(name, &params).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
                    done => done.map(|_| None),
                }
            }
        }
    };
    match timeout(within, request).await {
        Ok(Ok(stored)) => Ok(stored),
        Ok(Err(error)) => Err(ApplyError::Api(Box::new(error))),
        Err(_) => Err(ApplyError::Timeout(within)),
    }
}
