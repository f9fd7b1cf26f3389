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
    /// When the budget would be full again.
    full_at: Moment,
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
            full_at: Moment::ORIGIN,
        }
    }

    /// Writes `notice`, when the budget allows. `pod` is the member's, when it has one.
    pub(super) async fn tell(&mut self, notice: &Notice, pod: Option<ObjectReference>) {
        let now = self.clock.now();
        if self.full_at.since(now) >= REFILL * BURST {
            debug!(reason = notice.reason, "no Event is written: too many of late");
            return;
        }
        self.full_at = self.full_at.max(now) + REFILL;
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
