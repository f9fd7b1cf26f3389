//! What was written a moment ago and the watch has not shown yet.
//!
//! Without it, the next pass would plan against what was there before, and write the same again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::discovery::v1::EndpointSlice;

use crate::policy::moment::Moment;

/// How long the watch may take to show a write. After that only the watch counts, so that a slice which somebody deleted
/// is noticed.
const SHOWN_WITHIN: Duration = Duration::from_secs(2);

/// Slices as stored by our last writes; absent ones were removed.
#[derive(Debug, Default)]
pub(super) struct Written {
    slices: BTreeMap<String, (Option<EndpointSlice>, Moment)>,
}

impl Written {
    /// Notes what the API server has stored under `name`; nothing when it was removed.
    pub(super) fn note(&mut self, name: &str, stored: Option<EndpointSlice>, now: Moment) {
        self.slices.insert(name.to_owned(), (stored, now));
    }

    /// When to look again, because a write that was not shown ceases to count.
    pub(super) fn ends(&self) -> Option<Moment> {
        self.slices.values().map(|(_, at)| *at + SHOWN_WITHIN).min()
    }

    /// What is there: the newer of what the watches show and of what was written. A write that was shown once has done its
    /// duty: what the watches show from then on counts, a removal included.
    pub(super) fn over(&mut self, shown: Vec<Arc<EndpointSlice>>, now: Moment) -> Vec<EndpointSlice> {
        let mut slices: BTreeMap<String, EndpointSlice> = BTreeMap::new();
        for slice in shown {
            let name = slice.metadata.name.clone().unwrap_or_default();
            // Two watches may show the same slice, one of them late.
            if slices.get(&name).is_none_or(|other| version(other) < version(&slice)) {
                slices.insert(name, EndpointSlice::clone(&slice));
            }
        }
        self.slices.retain(|name, (stored, at)| {
            let was_shown = match (stored, slices.get(name)) {
                (Some(stored), Some(shown)) => version(shown) >= version(stored),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            !was_shown && now.since(*at) < SHOWN_WITHIN
        });
        for (name, (stored, _)) in &self.slices {
            match stored {
                None => drop(slices.remove(name)),
                Some(stored) => drop(slices.insert(name.clone(), stored.clone())),
            }
        }
        slices.into_values().collect()
    }
}

/// Versions of one object are numbers that rise (Kubernetes 1.35 says so; etcd has always done so).
fn version(slice: &EndpointSlice) -> u64 {
    let version = slice.metadata.resource_version.as_deref();
    version.and_then(|v| v.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(name: &str, version: &str) -> EndpointSlice {
        let mut slice = EndpointSlice::default();
        slice.metadata.name = Some(name.into());
        slice.metadata.resource_version = Some(version.into());
        slice
    }

    fn versions(slices: &[EndpointSlice]) -> Vec<&str> {
        slices
            .iter()
            .filter_map(|s| s.metadata.resource_version.as_deref())
            .collect()
    }

    #[test]
    fn the_newer_counts_and_only_for_a_while() {
        let at = Moment::from_millis;
        let mut written = Written::default();
        written.note("a", Some(slice("a", "10")), at(0));
        written.note("gone", None, at(0));
        let shown = || vec![Arc::new(slice("a", "9")), Arc::new(slice("gone", "3"))];
        assert_eq!(versions(&written.over(shown(), at(100))), ["10"]);
        assert_eq!(versions(&written.over(vec![], at(100))), ["10"], "not shown yet");
        assert_eq!(written.ends(), Some(at(2000)));
        assert_eq!(
            versions(&written.over(vec![], at(2000))),
            [""; 0],
            "deleted by somebody"
        );
        assert_eq!(written.ends(), None);
    }

    #[test]
    fn a_write_that_was_shown_hides_no_later_removal() {
        let at = Moment::from_millis;
        for shown in ["10", "11"] {
            let mut written = Written::default();
            written.note("a", Some(slice("a", "10")), at(0));
            // One watch is late.
            let both = vec![Arc::new(slice("a", shown)), Arc::new(slice("a", "9"))];
            assert_eq!(versions(&written.over(both, at(100))), [shown]);
            assert_eq!(versions(&written.over(vec![], at(200))), [""; 0]);
        }
    }
}
