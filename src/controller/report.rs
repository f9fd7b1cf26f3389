//! The last stage: telling how the pool is, in its status, when that is something new.

use kube::api::{Api, Patch, PatchParams};
use tokio::time::timeout;

use super::error::ReconcileError;
use super::findings::Situation;
use super::status::status;
use super::tend::Tended;
use super::{WRITE_WITHIN, within};
use crate::api::v1alpha1::ReplicaPool;
use crate::api::{self, GROUP, KIND, VERSION};
use crate::publish::slices::apply::ApplyError;

impl Tended {
    /// Writes the status of `pool` when it differs from what is there and from what was written last.
    pub(super) async fn tell_status(
        &mut self,
        pool: &ReplicaPool,
        situation: &Situation,
    ) -> Result<(), ReconcileError> {
        let before = self.told.clone().or_else(|| pool.status.clone()).unwrap_or_default();
        let status = status(situation, &before, self.shared.clock.wall());
        if self.told.as_ref() == Some(&status) || (self.told.is_none() && pool.status.as_ref() == Some(&status)) {
            return Ok(());
        }
        let within =
            within(&self.shared.leadership.borrow(), self.shared.clock.now()).ok_or(ReconcileError::NotLeader)?;
        let pools: Api<ReplicaPool> = Api::namespaced(self.shared.client.clone(), &self.key.namespace);
        let patch = serde_json::json!({ "apiVersion": format!("{GROUP}/{VERSION}"), "kind": KIND, "status": status });
        let params = PatchParams::apply(api::FIELD_MANAGER).force();
        let failed = |source| ReconcileError::Status {
            name: self.key.name.to_string(),
            source,
        };
        match timeout(
            within,
            pools.patch_status(&self.key.name, &params, &Patch::Apply(patch)),
        )
        .await
        {
            Ok(Ok(_)) => {
                self.told = Some(status);
                Ok(())
            }
            // The pool was deleted meanwhile: there is nobody to tell.
            Ok(Err(kube::Error::Api(answer))) if answer.code == 404 => Ok(()),
            Ok(Err(error)) => Err(failed(ApplyError::Api(Box::new(error)))),
            Err(_) => Err(failed(ApplyError::Timeout(WRITE_WITHIN))),
        }
    }
}
