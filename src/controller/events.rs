//! Telling people what happened, as Kubernetes Events about the pool.
//!
//! Each transition is an Event of its own, because the figures in its note are what people read; the library's recorder
//! would repeat the first note. Transitions are damped, and a budget bounds what is left: [`BURST`] at once, then one each
//! [`REFILL`]. Events are for people, so one that cannot be written is dropped and logged.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Client;
use kube::api::{Api, PostParams};
use tokio::time::timeout;
use tracing::debug;

use crate::api;
use crate::clock::Clock;
use crate::policy::moment::Moment;
use crate::telemetry::events::{Notice, Weight};

/// Events at once.
const BURST: u32 = 30;
/// Of these, kept for what concerns a whole service: that it lives by its fallback, and that it does no more, matters more
/// than each member's part.
const RESERVED: u32 = 10;
/// After that, one each.
const REFILL: Duration = Duration::from_secs(10);
/// How long writing one may take.
const WITHIN: Duration = Duration::from_secs(2);
/// The longest note that the API server takes, in bytes.
const LONGEST: usize = 1000;

/// Tells of one pool.
pub(super) struct Teller {
    events: Api<Event>,
    clock: Clock,
    instance: String,
    pool: ObjectReference,
    budget: Budget,
}

/// How many Events may be written.
#[derive(Debug, Default)]
struct Budget {
    /// When it would be full again; absent while it never was touched.
    full_at: Option<Moment>,
}

impl Budget {
    /// Takes one for `notice`, if there is one.
    fn take(&mut self, notice: &Notice, now: Moment) -> bool {
        let most = if notice.is_detail() { BURST - RESERVED } else { BURST };
        let full_at = self.full_at.map_or(now, |at| at.max(now));
        let allowed = full_at.since(now) <= REFILL * (most - 1);
        if allowed {
            self.full_at = Some(full_at + REFILL);
        }
        allowed
    }
}

impl Teller {
    /// Tells of the pool `pool`, as `instance`.
    pub(super) fn new(client: Client, clock: Clock, instance: String, pool: ObjectReference) -> Self {
        let namespace = pool.namespace.clone().unwrap_or_default();
        Self {
            events: Api::namespaced(client, &namespace),
            clock,
            instance,
            pool,
            budget: Budget::default(),
        }
    }

    /// Writes `notice`, when the budget allows. `pod` is the member's, when it has one.
    pub(super) async fn tell(&mut self, notice: &Notice, pod: Option<ObjectReference>) {
        if !self.budget.take(notice, self.clock.now()) {
            debug!(reason = notice.reason, "no Event is written: too many of late");
            return;
        }
        let event = self.event(notice, pod);
        let params = PostParams::default();
        match timeout(WITHIN, self.events.create(&params, &event)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => debug!(%error, reason = notice.reason, "could not write an Event"),
            Err(_) => debug!(reason = notice.reason, "could not write an Event in time"),
        }
    }

    fn event(&self, notice: &Notice, pod: Option<ObjectReference>) -> Event {
        let name = self.pool.name.as_deref().unwrap_or_default();
        let suffix: String = std::iter::repeat_with(|| fastrand::char('a'..='z')).take(10).collect();
        let mut end = notice.note.len().min(LONGEST);
        while !notice.note.is_char_boundary(end) {
            end -= 1;
        }
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{suffix}")),
                namespace: self.pool.namespace.clone(),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(self.clock.wall())),
            type_: Some(match notice.weight {
                Weight::Normal => "Normal".into(),
                Weight::Warning => "Warning".into(),
            }),
            reason: Some(notice.reason.into()),
            action: Some(notice.action.into()),
            note: notice.note.get(..end).map(str::to_owned),
            regarding: Some(self.pool.clone()),
            related: pod,
            reporting_controller: Some(format!("{}/lagwarden", api::GROUP)),
            reporting_instance: Some(self.instance.clone()),
            ..Event::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(reason: &'static str, member: Option<&str>) -> Notice {
        Notice {
            weight: Weight::Normal,
            reason,
            action: "Action",
            note: "note".into(),
            member: member.map(Into::into),
        }
    }

    #[test]
    fn what_concerns_a_whole_service_is_told_when_members_have_used_their_part() {
        let at = Moment::from_millis;
        let mut budget = Budget::default();
        let take =
            |budget: &mut Budget, notice: &Notice, millis| (0..100).filter(|_| budget.take(notice, at(millis))).count();
        let (member, service) = (notice("Lagging", Some("a")), notice("FallbackEnded", None));
        assert_eq!(take(&mut budget, &member, 5000), 20);
        assert_eq!(take(&mut budget, &notice("EndpointsChanged", None), 5000), 0);
        assert_eq!(take(&mut budget, &service, 5000), 10);
        // Each ten seconds one more.
        assert_eq!(take(&mut budget, &service, 14_999), 0);
        assert_eq!(take(&mut budget, &service, 15_000), 1);
        assert_eq!(take(&mut budget, &member, 15_000), 0);
    }
}
