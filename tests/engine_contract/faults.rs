//! Servers in trouble: each trouble has its own kind, and none looks like another.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use lagwarden::demo::postgres::Part;
use lagwarden::engine::{Address, Duty, Engine, Session, Target, Tls};
use lagwarden::policy::sighting::{ProbeFailure, Receiver, Replay, Role};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::rig::{PATIENCE, Rig, connect, credentials, options, show, target, until, within};

pub(crate) async fn paused_replay_is_seen(rig: Rig) {
    let primary = rig.primary().await;
    let standby = rig.standby("standby", &primary).await;
    standby.pause_replay().await.unwrap();
    until("replay is paused", async || {
        show(&standby, Duty::Probe).await.replay == Some(Replay::Paused)
    })
    .await;
    primary.sql("create table t (n int)").await.unwrap();
    let sampled = show(&primary, Duty::Sample).await;
    let seen = show(&standby, Duty::Probe).await;
    assert!(!seen.position.unwrap().contains(sampled.position.as_ref().unwrap()));
    standby.resume_replay().await.unwrap();
    until("replay goes on", async || {
        show(&standby, Duty::Probe).await.replay == Some(Replay::Running)
    })
    .await;
}

/// PG-11, PG-21: the standby still believes that it streams, and so does the primary.
pub(crate) async fn a_stopped_receiver_still_looks_connected(rig: Rig) {
    let primary = rig.primary().await;
    let standby = rig.standby("standby", &primary).await;
    until("it streams", async || {
        show(&standby, Duty::Probe).await.receiver == Some(Receiver::Streaming)
    })
    .await;
    standby.freeze(Part::Receiver).await.unwrap();
    primary.sql("create table t (n int)").await.unwrap();
    let sampled = show(&primary, Duty::Sample).await;
    let seen = show(&standby, Duty::Probe).await;
    assert_eq!(seen.receiver, Some(Receiver::Streaming));
    assert!(!seen.position.unwrap().contains(sampled.position.as_ref().unwrap()));
    standby.resume(Part::Receiver).await.unwrap();
}

pub(crate) async fn a_stopped_applier_receives_and_does_not_apply(rig: Rig) {
    let primary = rig.primary().await;
    let standby = rig.standby("standby", &primary).await;
    standby.freeze(Part::Applier).await.unwrap();
    primary.sql("create table t (n int)").await.unwrap();
    let sampled = show(&primary, Duty::Sample).await.position.unwrap();
    until("it receives", async || {
        show(&standby, Duty::Probe)
            .await
            .received
            .is_some_and(|received| received.contains(&sampled))
    })
    .await;
    assert!(!show(&standby, Duty::Probe).await.position.unwrap().contains(&sampled));
    standby.resume(Part::Applier).await.unwrap();
}

pub(crate) async fn a_cut_off_standby_has_no_receiver(rig: Rig) {
    let mut primary = rig.primary().await;
    let standby = rig.standby("standby", &primary).await;
    primary.stop().await.unwrap();
    until("the receiver is gone", async || {
        show(&standby, Duty::Probe).await.receiver != Some(Receiver::Streaming)
    })
    .await;
    let seen = show(&standby, Duty::Probe).await;
    assert_eq!((seen.role, seen.history.timeline), (Role::Replica, 1));
}

pub(crate) async fn a_restart_is_another_incarnation(rig: Rig) {
    let primary = rig.primary().await;
    let mut standby = rig.standby("standby", &primary).await;
    let before = show(&standby, Duty::Probe).await;
    standby.stop().await.unwrap();
    standby.start().await.unwrap();
    let after = show(&standby, Duty::Probe).await;
    assert_eq!(before.history, after.history);
    assert_ne!(before.incarnation, after.incarnation);
}

pub(crate) async fn another_cluster_at_the_same_address_is_another_cluster(rig: Rig) {
    let mut primary = rig.primary().await;
    let before = show(&primary, Duty::Sample).await;
    primary.stop().await.unwrap();
    let mut options = options("impostor");
    options.port = primary.port();
    let mut impostor = rig.other_maker().server(options).await.unwrap();
    impostor.start().await.unwrap();
    crate::rig::make_role(&impostor).await;
    assert_ne!(
        show(&impostor, Duty::Sample).await.history.cluster,
        before.history.cluster
    );
}

pub(crate) async fn a_hung_server_is_given_up_in_time(rig: Rig) {
    let primary = rig.primary().await;
    let mut session = connect(&primary).await.unwrap();
    within(session.observe(Duty::Sample)).await.unwrap();
    primary.freeze(Part::Whole).await.unwrap();
    assert!(
        timeout(Duration::from_millis(300), session.observe(Duty::Sample))
            .await
            .is_err()
    );
    // The server hears no cancellation either: whoever asks bounds that too.
    drop(timeout(Duration::from_millis(300), session.cancel()).await);
    assert!(
        timeout(Duration::from_millis(300), connect_once(&target(&primary)))
            .await
            .is_err()
    );
    primary.resume(Part::Whole).await.unwrap();
    within(connect(&primary)).await.unwrap();
}

pub(crate) async fn a_listener_that_never_answers_is_silence(_: Rig) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    assert!(
        timeout(Duration::from_millis(300), connect_once(&listening(&listener)))
            .await
            .is_err()
    );
}

/// PG-44, and worse: an answer that has no end.
pub(crate) async fn a_listener_that_floods_is_cut_off(_: Rig) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listening(&listener);
    let flood = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // An error message that announces two gigabytes, and goes on for as long as somebody reads.
        stream.write_all(&[b'E', 0x7f, 0xff, 0xff, 0xff]).await.unwrap();
        let mut sent = 0_usize;
        while stream.write_all(&[b'x'; 8192]).await.is_ok() {
            sent += 8192;
        }
        sent
    });
    let failed = within(connect_once(&target)).await.unwrap_err();
    assert_eq!(failed.kind(), ProbeFailure::Protocol, "{failed}");
    assert!(failed.to_string().contains("longer than"), "{failed}");
    let sent = within(flood).await.unwrap();
    assert!(sent < 16 << 20, "{sent} bytes were taken from it");
}

pub(crate) async fn a_killed_session_is_a_lost_connection(rig: Rig) {
    let primary = rig.primary().await;
    let mut session = connect(&primary).await.unwrap();
    within(session.observe(Duty::Sample)).await.unwrap();
    let kill = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'lagwarden'";
    primary.sql(kill).await.unwrap();
    let mut kinds = Vec::new();
    until("the loss is noticed", async || {
        match within(session.observe(Duty::Sample)).await {
            Ok(_) => false,
            Err(error) => {
                kinds.push(error.kind());
                true
            }
        }
    })
    .await;
    assert_eq!(kinds, [ProbeFailure::ConnectionLost]);
}

pub(crate) async fn a_closed_port_refuses(rig: Rig) {
    let mut primary = rig.primary().await;
    primary.kill().await.unwrap();
    until("its port is closed", async || {
        connect(&primary)
            .await
            .is_err_and(|e| e.kind() == ProbeFailure::Refused)
    })
    .await;
}

pub(crate) async fn a_server_that_shuts_down_is_lost_and_then_refuses(rig: Rig) {
    let mut primary = rig.primary().await;
    let mut session = connect(&primary).await.unwrap();
    primary.stop().await.unwrap();
    assert_eq!(
        within(session.observe(Duty::Sample)).await.unwrap_err().kind(),
        ProbeFailure::ConnectionLost
    );
    assert_eq!(connect(&primary).await.unwrap_err().kind(), ProbeFailure::Refused);
}

/// PG-37: a standby that waits for its first consistent point says that it takes no connections.
pub(crate) async fn a_server_that_starts_up_takes_no_connections(rig: Rig) {
    let primary = rig.primary().await;
    let mut standby = rig.standby("standby", &primary).await;
    standby.stop().await.unwrap();
    std::fs::write(standby.data().join("standby.conf"), "hot_standby = off\n").unwrap();
    standby.spawn().unwrap();
    until("it says so", async || {
        connect(&standby)
            .await
            .is_err_and(|e| e.kind() == ProbeFailure::NotAccepting)
    })
    .await;
}

pub(crate) async fn an_unknown_host_is_no_silence(_: Rig) {
    let target = Target {
        address: Address::Name("no-such-host.invalid".into()),
        port: 5432,
        database: "postgres".into(),
    };
    let failed = timeout(PATIENCE, connect_once(&target)).await.unwrap().unwrap_err();
    assert_eq!(failed.kind(), ProbeFailure::NameNotResolved);
    assert!(failed.to_string().contains("no-such-host.invalid"), "{failed}");
}

fn listening(listener: &TcpListener) -> Target {
    Target {
        address: Address::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        port: listener.local_addr().unwrap().port(),
        database: "postgres".into(),
    }
}

async fn connect_once(target: &Target) -> Result<Session, lagwarden::engine::EngineError> {
    Engine::Postgresql
        .connect(target, &credentials(), &Tls::disabled())
        .await
}

/// PG-34: a standby that is behind, or is told not to wait, ends whatever its applier runs into, as it says itself.
pub(crate) async fn a_recovery_conflict_is_an_interruption(rig: Rig) {
    let primary = rig.primary().await;
    let standby = rig.standby("standby", &primary).await;
    standby
        .sql("alter system set max_standby_streaming_delay = 0")
        .await
        .unwrap();
    standby.sql("select pg_reload_conf()").await.unwrap();
    let load = primary.connect("postgres", primary.password()).await.unwrap();
    let load = tokio::spawn(async move {
        let locks = "begin; lock table pg_stat_wal_receiver in access exclusive mode; commit";
        while load.batch_execute(locks).await.is_ok() {}
    });
    let mut session = None;
    until("a question is interrupted", async || {
        let Some(asked) = &mut session else {
            session = connect(&standby).await.ok();
            return false;
        };
        let Err(error) = within(asked.observe(Duty::Probe)).await else {
            return false;
        };
        match error.kind() {
            ProbeFailure::Interrupted => true,
            ProbeFailure::ConnectionLost => {
                session = None;
                false
            }
            other => panic!("{other:?}: {error}"),
        }
    })
    .await;
    load.abort();
    let mut session = session.unwrap();
    until("the same connection answers", async || {
        within(session.observe(Duty::Probe)).await.is_ok()
    })
    .await;
}
