//! The public contract: the `ReplicaPool` resource, and every name that other programs see.
//!
//! What is written here is what users write, read and store, so a change here is a change of the product's interface:
//! fields are added, not renamed, and a field appears only when it works. Nothing here knows what a pool does: values are
//! kept as they were written, because an object may have been stored before a rule existed, and it must still be read so
//! that its errors can be told. Parsing is [`crate::spec`]'s.
//!
//! Reading order: [`v1alpha1`] (the fields), [`duration`] (how spans of time are written), [`condition`] (how status is
//! merged), [`rules`] (what the API server refuses, and in which words), [`crd`] (the document that users install).

pub mod condition;
pub mod crd;
pub mod duration;
pub mod pattern;
pub mod rules;
pub mod v1alpha1;

/// The API group of everything that is ours.
pub const GROUP: &str = "lagwarden.io";
/// The one version.
pub const VERSION: &str = "v1alpha1";
/// The kind, as in manifests.
pub const KIND: &str = "ReplicaPool";
/// The plural, as in URLs and RBAC rules.
pub const PLURAL: &str = "replicapools";
/// The name of the custom resource definition, and of its file.
pub const CRD_NAME: &str = "replicapools.lagwarden.io";

/// The one field manager of every object we apply.
pub const FIELD_MANAGER: &str = "lagwarden";
/// Value of [`LABEL_MANAGED_BY`] on our slices. Kubernetes asks for a name within a domain of ours.
pub const MANAGED_BY: &str = "lagwarden.io";
/// Label of an EndpointSlice: the Service that it belongs to.
pub const LABEL_SERVICE_NAME: &str = "kubernetes.io/service-name";
/// Label of an EndpointSlice: who owns it.
pub const LABEL_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// Label on everything we make: the name of its pool, which is why a pool's name is at most [`MAX_LABEL`] long.
pub const LABEL_POOL: &str = "lagwarden.io/pool";

/// Longest label value, DNS label, Service name and port name.
pub const MAX_LABEL: usize = 63;
/// Longest DNS name, and so the longest name of a Secret.
pub const MAX_DNS_NAME: usize = 253;
/// Most members of a pool. A slice holds 1,000 endpoints; a hundred keeps status, rules and probing within bounds.
pub const MAX_MEMBERS: usize = 100;
/// Most read Services of a pool.
pub const MAX_SERVICES: usize = 8;
/// Most requirements of each kind in a pod selector, and most values in one of them.
pub const MAX_SELECTOR: usize = 16;

#[cfg(test)]
mod tests {
    use kube::{CustomResourceExt, Resource};

    use super::*;

    /// The derive macro takes literals only, so they are here twice; this keeps them the same.
    #[test]
    fn constants_are_those_of_the_type() {
        let pool = v1alpha1::ReplicaPool::api_resource();
        assert_eq!((&*pool.group, &*pool.version), (GROUP, VERSION));
        assert_eq!((&*pool.kind, &*pool.plural), (KIND, PLURAL));
        assert_eq!(v1alpha1::ReplicaPool::crd_name(), CRD_NAME);
        assert_eq!(v1alpha1::ReplicaPool::kind(&()), KIND);
        assert_eq!(LABEL_POOL, format!("{GROUP}/pool"));
        assert_eq!(MANAGED_BY, GROUP);
    }
}
