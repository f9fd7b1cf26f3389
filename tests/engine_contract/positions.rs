//! What a server has, and what of it a replica has.

use lagwarden::engine::Duty;
use lagwarden::policy::position::{Lsn, Position};
use lagwarden::policy::sighting::{Receiver, Replay, Role, Sighting};

use crate::rig::{Rig, connect, show, until, within};

fn position(sighting: &Sighting) -> &Position {
    sighting.position.as_ref().unwrap()
}

pub(crate) async fn a_primary_is_sampled(rig: Rig) {
    let primary = rig.primary().await;
    let standby = rig.standby("standby", &primary).await;
    until("the standby streams", async || {
        show(&primary, Duty::Sample)
            .await
            .standbys
            .iter()
            .any(|s| s.streaming && s.replayed.is_some())
    })
    .await;
    let seen = show(&primary, Duty::Sample).await;
    assert_eq!((seen.role, seen.history.timeline), (Role::Primary, 1));
    assert!(seen.flushed.is_some() && seen.received.is_none() && seen.replay.is_none());
    let identifier = &primary
        .sql("select system_identifier from pg_control_system()")
        .await
        .unwrap()[0][0];
    assert_eq!(Some(seen.history.cluster.to_string()), *identifier);
    assert_eq!(seen.standbys.len(), 1);
    assert_eq!(&*seen.standbys[0].name, "standby");
    assert_eq!(seen.standbys[0].address, Some(standby.address()));
}

pub(crate) async fn a_replica_is_probed(rig: Rig) {
    let primary = rig.primary().await;
    let standby = rig.standby("standby", &primary).await;
    until("the standby streams", async || {
        show(&standby, Duty::Probe).await.receiver == Some(Receiver::Streaming)
    })
    .await;
    let (of_primary, seen) = (show(&primary, Duty::Sample).await, show(&standby, Duty::Probe).await);
    assert_eq!((seen.role, seen.replay), (Role::Replica, Some(Replay::Running)));
    assert_eq!(seen.history, of_primary.history);
    assert_ne!(seen.incarnation, of_primary.incarnation);
    assert!(seen.position.is_some() && seen.received.is_some());
    assert!(seen.standbys.is_empty() && seen.flushed.is_none());
}

pub(crate) async fn a_wrong_duty_is_answered_all_the_same(rig: Rig) {
    let primary = rig.primary().await;
    let standby = rig.standby("standby", &primary).await;
    assert_eq!(show(&primary, Duty::Probe).await.role, Role::Primary);
    let seen = show(&standby, Duty::Sample).await;
    assert_eq!((seen.role, seen.history.timeline), (Role::Replica, 1));
    assert!(seen.position.is_some());
}

pub(crate) async fn a_replica_contains_what_it_applied(rig: Rig) {
    let primary = rig.primary().await;
    let standby = rig.standby("standby", &primary).await;
    primary.sql("create table t (n int)").await.unwrap();
    let mut session = connect(&standby).await.unwrap();
    for n in 0..5 {
        primary.sql(&format!("insert into t values ({n})")).await.unwrap();
        let sampled = show(&primary, Duty::Sample).await;
        until("the standby contains the sample", async || {
            position(&within(session.observe(Duty::Probe)).await.unwrap()).contains(position(&sampled))
        })
        .await;
        let rows = standby.sql("select count(*) from t").await.unwrap();
        assert_eq!(
            rows[0][0].as_deref(),
            Some((n + 1).to_string().as_str()),
            "what is contained can be read"
        );
    }
}

/// Right behind a header no record ends, so an idle standby never shows the insert position itself.
pub(crate) async fn the_header_of_a_page_or_segment_need_not_be_applied(rig: Rig) {
    let primary = rig.primary().await;
    let standby = rig.standby("standby", &primary).await;
    for _ in 0..5 {
        primary.sql("select pg_switch_wal()").await.unwrap();
        primary
            .sql("select pg_logical_emit_message(true, 'a', repeat('x', 9000))")
            .await
            .unwrap();
        primary.sql("select pg_switch_wal()").await.unwrap();
        let sampled = show(&primary, Duty::Sample).await;
        let inserted = primary.sql("select pg_current_wal_insert_lsn() - '0/0'").await.unwrap()[0][0]
            .clone()
            .unwrap();
        let inserted = Position::Lsn(Lsn(inserted.parse().unwrap()));
        assert!(inserted.contains(position(&sampled)));
        until("an idle standby contains the sample", async || {
            position(&show(&standby, Duty::Probe).await).contains(position(&sampled))
        })
        .await;
    }
}

/// Without this every standby of an idle primary with one open transaction would look stale for up to fifteen seconds.
pub(crate) async fn unflushed_log_is_out_of_reach_until_nudged(rig: Rig) {
    let primary = rig.primary_with(&["bgwriter_delay = 10s", "autovacuum = off"]).await;
    let standby = rig.standby("standby", &primary).await;
    primary.sql("create table t (n int, x text)").await.unwrap();
    let mut session = connect(&primary).await.unwrap();
    // The background writer's snapshot of running transactions flushes too; between two of them the log stays unflushed.
    let mut unreached = None;
    let writer = primary
        .connect(lagwarden::demo::postgres::SUPERUSER, primary.password())
        .await
        .unwrap();
    for _ in 0..40 {
        writer
            .batch_execute("begin; insert into t select g, repeat('x', 300) from generate_series(1, 60) g")
            .await
            .unwrap();
        let seen = within(session.observe(Duty::Sample)).await.unwrap();
        if !seen.flushed.as_ref().unwrap().contains(position(&seen)) {
            unreached = Some(seen);
            break;
        }
        writer.batch_execute("commit").await.unwrap();
    }
    let sampled = unreached.expect("log that is inserted and not flushed");
    assert!(!position(&show(&standby, Duty::Probe).await).contains(position(&sampled)));
    let nudged = within(session.nudge()).await.unwrap();
    assert_eq!(nudged.within.as_millis(), 200);
    until("a nudge puts it within reach", async || {
        position(&show(&standby, Duty::Probe).await).contains(position(&sampled))
    })
    .await;
}

pub(crate) async fn a_promotion_starts_a_later_timeline(rig: Rig) {
    let mut primary = rig.primary().await;
    let (b, c) = (rig.standby("b", &primary).await, rig.standby("c", &primary).await);
    let mut session = connect(&b).await.unwrap();
    let before = within(session.observe(Duty::Probe)).await.unwrap();
    primary.stop().await.unwrap();
    b.promote().await.unwrap();
    // The session outlives the promotion, and the role flips under it.
    let after = within(session.observe(Duty::Probe)).await.unwrap();
    assert_eq!(
        (after.role, after.history.timeline),
        (Role::Primary, before.history.timeline + 1)
    );
    assert_eq!(
        (after.history.cluster, after.incarnation),
        (before.history.cluster, before.incarnation)
    );
    assert!(position(&after).contains(position(&before)));
    assert_eq!(
        show(&c, Duty::Probe).await.history.timeline,
        1,
        "nobody has told it yet"
    );
    c.follow(&b).await.unwrap();
    until("the other standby follows", async || {
        show(&c, Duty::Probe).await.history.timeline == 2
    })
    .await;
    let sampled = show(&b, Duty::Sample).await;
    until("and contains what the new primary has", async || {
        let seen = show(&c, Duty::Probe).await;
        seen.history == sampled.history && position(&seen).contains(position(&sampled))
    })
    .await;
    // The old primary comes back as a standby of the new one: the role flips in the other direction.
    primary.follow(&b).await.unwrap();
    primary.start().await.unwrap();
    until("the old primary follows", async || {
        let seen = show(&primary, Duty::Sample).await;
        (seen.role, seen.history.timeline) == (Role::Replica, 2)
    })
    .await;
}

/// It has applied more than the new primary ever had, so its position is larger than the new primary's, and it lacks
/// everything that is written there.
pub(crate) async fn a_diverged_standby_is_never_on_the_new_timeline(rig: Rig) {
    let mut primary = rig.primary().await;
    let mut b = rig.standby("b", &primary).await;
    let c = rig.standby("c", &primary).await;
    let begun = show(&primary, Duty::Sample).await;
    until("b streams", async || {
        position(&show(&b, Duty::Probe).await).contains(position(&begun))
    })
    .await;
    b.stop().await.unwrap();
    primary
        .sql("create table lost as select generate_series(1, 20000)")
        .await
        .unwrap();
    let lost = show(&primary, Duty::Sample).await;
    until("c has what b lacks", async || {
        position(&show(&c, Duty::Probe).await).contains(position(&lost))
    })
    .await;
    primary.stop().await.unwrap();
    b.start().await.unwrap();
    b.promote().await.unwrap();
    c.follow(&b).await.unwrap();
    let now = show(&b, Duty::Sample).await;
    assert_eq!(now.history.timeline, 2);
    assert!(position(&lost).contains(position(&now)), "c is ahead in bytes");
    // Several attempts of its receiver to follow: none may make it look as if it had.
    for _ in 0..30 {
        let seen = show(&c, Duty::Probe).await;
        assert_eq!(seen.history.timeline, 1, "{seen:?}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// PG-06, PG-42: what is NULL is absent.
pub(crate) async fn a_standby_that_never_streamed_has_no_received_position(rig: Rig) {
    let mut primary = rig.primary().await;
    let mut standby = rig.standby("standby", &primary).await;
    standby.stop().await.unwrap();
    primary.stop().await.unwrap();
    // A receiver that tries and fails is reported as having received up to the start of a segment: less than is applied.
    standby.start().await.unwrap();
    let seen = show(&standby, Duty::Probe).await;
    let applied = seen.position.unwrap();
    assert!(seen.received.is_none_or(|received| applied.contains(&received)));
    // One that has no source at all has received nothing.
    standby.stop().await.unwrap();
    std::fs::write(standby.data().join("standby.conf"), "").unwrap();
    standby.start().await.unwrap();
    let seen = show(&standby, Duty::Probe).await;
    assert_eq!((seen.received, seen.receiver), (None, Some(Receiver::Absent)));
    assert!(seen.position.is_some());
    assert_eq!(seen.history.timeline, 1);
}

pub(crate) async fn a_read_only_default_changes_nothing(rig: Rig) {
    let primary = rig.primary().await;
    primary
        .sql("alter system set default_transaction_read_only = on")
        .await
        .unwrap();
    primary.sql("select pg_reload_conf()").await.unwrap();
    let mut session = connect(&primary).await.unwrap();
    within(session.observe(Duty::Sample)).await.unwrap();
    within(session.nudge()).await.unwrap();
    within(session.observe(Duty::Sample)).await.unwrap();
}

/// PG-59, PG-61: no time of the server is compared with anything.
pub(crate) async fn time_zones_change_nothing(rig: Rig) {
    let primary = rig
        .primary_with(&["timezone = 'Pacific/Kiritimati'", "datestyle = 'German'"])
        .await;
    let standby = rig.standby("standby", &primary).await;
    standby.sql("alter system set timezone = 'Pacific/Niue'").await.unwrap();
    standby.sql("select pg_reload_conf()").await.unwrap();
    let first = show(&standby, Duty::Probe).await;
    let again = show(&standby, Duty::Probe).await;
    assert_eq!(first.incarnation, again.incarnation);
    assert_eq!(show(&primary, Duty::Sample).await.history, first.history);
}
