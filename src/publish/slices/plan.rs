//! The difference between what should be published and what is, as a complete list of steps. Pure.
//!
//! Equal means no step, and a test asserts it. Each step carries the version that was looked at, so that a write based on
//! an old look fails instead of overwriting a newer one.

use std::collections::BTreeMap;

use k8s_openapi::api::discovery::v1::EndpointSlice;

use super::build::Owner;
use crate::api;

/// One request.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Server-side apply of the whole slice. Its `resourceVersion` is that of the slice which was looked at; absent when
    /// there was none.
    Apply(Box<EndpointSlice>),
    /// Removal of exactly the slice that was looked at.
    Delete {
        /// Its name.
        name: String,
        /// Its uid.
        uid: Option<String>,
        /// Its version.
        version: Option<String>,
    },
}

impl Step {
    /// The name of the slice.
    pub fn name(&self) -> &str {
        match self {
            Self::Apply(slice) => slice.metadata.name.as_deref().unwrap_or_default(),
            Self::Delete { name, .. } => name,
        }
    }
}

/// What is to be done, in order: changes first, then removals.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SlicePlan {
    /// The requests.
    pub steps: Vec<Step>,
    /// Slices of ours that somebody else changed since: they are repaired.
    pub repairs: Vec<String>,
}

/// Whether the slice is one of this pool's.
pub fn is_ours(owner: &Owner, slice: &EndpointSlice) -> bool {
    let label = |key: &str| {
        slice
            .metadata
            .labels
            .as_ref()
            .and_then(|l| l.get(key))
            .map(String::as_str)
    };
    let owned_by_another = slice
        .metadata
        .owner_references
        .iter()
        .flatten()
        .any(|o| o.kind == api::KIND && o.uid != owner.uid);
    label(api::LABEL_MANAGED_BY) == Some(api::MANAGED_BY)
        && label(api::LABEL_POOL) == Some(&owner.name)
        && !owned_by_another
}

/// Names of slices of `service` that are not this pool's: consumers add their endpoints to ours.
pub fn foreign(owner: &Owner, service: &str, existing: &[EndpointSlice]) -> Vec<String> {
    let of_service = |slice: &&EndpointSlice| {
        let labels = slice.metadata.labels.as_ref();
        labels.and_then(|l| l.get(api::LABEL_SERVICE_NAME)).map(String::as_str) == Some(service)
    };
    let has_endpoints = |slice: &&EndpointSlice| !slice.endpoints.is_empty();
    let others = existing
        .iter()
        .filter(of_service)
        .filter(has_endpoints)
        .filter(|s| !is_ours(owner, s));
    others.filter_map(|s| s.metadata.name.clone()).collect()
}

/// The steps from `existing` to `desired`. `existing` may hold others' slices: they are not touched. Slices of ours whose
/// service is in `untouched` stay as they are.
pub fn plan(owner: &Owner, desired: &[EndpointSlice], existing: &[EndpointSlice], untouched: &[&str]) -> SlicePlan {
    let by_name: BTreeMap<&str, &EndpointSlice> = existing
        .iter()
        .filter_map(|s| Some((s.metadata.name.as_deref()?, s)))
        .collect();
    let mut plan = SlicePlan::default();
    for slice in desired {
        let found = slice.metadata.name.as_deref().and_then(|n| by_name.get(n));
        if found.is_some_and(|found| same(slice, found)) {
            continue;
        }
        if let Some(found) = found.filter(|found| edited(slice, found)) {
            plan.repairs.extend(found.metadata.name.clone());
        }
        let mut slice = slice.clone();
        slice.metadata.resource_version = found.and_then(|f| f.metadata.resource_version.clone());
        plan.steps.push(Step::Apply(Box::new(slice)));
    }
    let wanted = |name: &str| desired.iter().any(|s| s.metadata.name.as_deref() == Some(name));
    for (name, slice) in by_name {
        let service = slice
            .metadata
            .labels
            .as_ref()
            .and_then(|l| l.get(api::LABEL_SERVICE_NAME));
        let stays = service.is_some_and(|s| untouched.contains(&s.as_str()));
        if is_ours(owner, slice) && !wanted(name) && !stays {
            plan.steps.push(Step::Delete {
                name: name.to_owned(),
                uid: slice.metadata.uid.clone(),
                version: slice.metadata.resource_version.clone(),
            });
        }
    }
    plan
}

/// Whether `found` says everything that `wanted` says. What others added to its metadata does not matter.
fn same(wanted: &EndpointSlice, found: &EndpointSlice) -> bool {
    wanted.address_type == found.address_type
        && wanted.endpoints == found.endpoints
        && wanted.ports.as_deref().unwrap_or_default() == found.ports.as_deref().unwrap_or_default()
        && same_metadata(wanted, found)
}

fn same_metadata(wanted: &EndpointSlice, found: &EndpointSlice) -> bool {
    let has = found.metadata.labels.as_ref();
    let labels = wanted
        .metadata
        .labels
        .iter()
        .flatten()
        .all(|(k, v)| has.and_then(|h| h.get(k)) == Some(v));
    let ours = |slice: &EndpointSlice| {
        let references = slice.metadata.owner_references.iter().flatten();
        references.filter(|o| o.kind == api::KIND).cloned().collect::<Vec<_>>()
    };
    labels && ours(wanted) == ours(found)
}

/// Whether the labels that make a slice ours, or its ports, were changed by somebody else: a decision changes neither.
fn edited(wanted: &EndpointSlice, found: &EndpointSlice) -> bool {
    let managers = found.metadata.managed_fields.iter().flatten();
    let touched = managers
        .filter(|m| m.manager.as_deref() != Some(api::FIELD_MANAGER))
        .count();
    touched > 0 || !same_metadata(wanted, found)
}
