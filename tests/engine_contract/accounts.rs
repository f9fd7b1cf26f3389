//! Accounts: what the documented role can do, and how each lack is told.

use lagwarden::engine::{Duty, Engine, Target, Tls};
use lagwarden::policy::sighting::ProbeFailure;

use crate::rig::{Rig, account, connect, connect_as, credentials, show, target, until, within};

pub(crate) async fn the_documented_role_suffices(rig: Rig) {
    let primary = rig.primary().await;
    let standby = rig.standby("standby", &primary).await;
    let mut session = connect(&primary).await.unwrap();
    until("it sees the standby", async || {
        within(session.observe(Duty::Sample))
            .await
            .unwrap()
            .standbys
            .iter()
            .any(|s| s.streaming)
    })
    .await;
    within(session.nudge()).await.unwrap();
    show(&standby, Duty::Probe).await;
    let rights = primary
        .sql("select rolsuper, rolcreaterole, rolreplication from pg_roles where rolname = 'lagwarden'")
        .await;
    assert!(rights.unwrap()[0].iter().all(|right| right.as_deref() == Some("f")));
}

pub(crate) async fn a_wrong_password_is_told(rig: Rig) {
    let primary = rig.primary().await;
    let failed = connect_as(&primary, &account("lagwarden", "hunter2"))
        .await
        .unwrap_err();
    assert_eq!(failed.kind(), ProbeFailure::AuthFailed);
    assert!(
        failed.to_string().contains("password authentication failed"),
        "{failed}"
    );
    assert!(!format!("{failed:?}{failed}").contains("hunter2"));
}

pub(crate) async fn an_unknown_user_is_told(rig: Rig) {
    let primary = rig.primary().await;
    let failed = connect_as(&primary, &account("nobody-knows", "x")).await.unwrap_err();
    assert_eq!(failed.kind(), ProbeFailure::AuthFailed);
}

pub(crate) async fn an_unknown_database_is_told(rig: Rig) {
    let primary = rig.primary().await;
    let target = Target {
        database: "nowhere".into(),
        ..target(&primary)
    };
    let failed = within(Engine::Postgresql.connect(&target, &credentials(), &Tls::disabled()))
        .await
        .unwrap_err();
    assert_eq!(failed.kind(), ProbeFailure::DatabaseNotFound);
    assert!(failed.to_string().contains("nowhere"), "{failed}");
}

/// PG-76: without the privilege columns are NULL. That is not "no standbys" and not "no receiver".
pub(crate) async fn a_missing_grant_is_told_with_its_remedy(rig: Rig) {
    let primary = rig.primary().await;
    let standby = rig.standby("standby", &primary).await;
    until("it streams", async || {
        show(&primary, Duty::Sample).await.standbys.iter().any(|s| s.streaming)
    })
    .await;
    primary.sql("revoke pg_read_all_stats from lagwarden").await.unwrap();
    for (server, duty) in [(&primary, Duty::Sample), (&standby, Duty::Probe)] {
        let mut session = connect(server).await.unwrap();
        let mut said = String::new();
        until("it is told", async || match within(session.observe(duty)).await {
            Ok(_) => false,
            Err(error) => {
                assert_eq!(error.kind(), ProbeFailure::PermissionDenied);
                said = error.to_string();
                true
            }
        })
        .await;
        assert!(said.contains("GRANT pg_read_all_stats"), "{said}");
    }
}

pub(crate) async fn a_full_server_says_so(rig: Rig) {
    let primary = rig
        .primary_with(&["max_connections = 8", "superuser_reserved_connections = 2"])
        .await;
    let mut sessions = Vec::new();
    let failed = loop {
        assert!(sessions.len() < 20, "it never gets full");
        match connect(&primary).await {
            Ok(session) => sessions.push(session),
            Err(error) => break error,
        }
    };
    assert_eq!(failed.kind(), ProbeFailure::TooManyConnections, "{failed}");
}

pub(crate) async fn a_password_may_have_any_character(rig: Rig) {
    let primary = rig.primary().await;
    let client = primary
        .connect(lagwarden::demo::postgres::SUPERUSER, primary.password())
        .await
        .unwrap();
    for password in [
        "p@ss:w/rd?x=1&y#z",
        "with space and 'quote' and \"double\"",
        "back\\slash %41",
        "päßwörd-密码-🔑",
        "\t",
    ] {
        let quoted = password.replace('\'', "''");
        client
            .batch_execute(&format!("alter role lagwarden password '{quoted}'"))
            .await
            .unwrap();
        if let Err(error) = connect_as(&primary, &account("lagwarden", password)).await {
            panic!("{password:?}: {error}");
        }
    }
}

pub(crate) async fn a_probe_never_writes(rig: Rig) {
    let primary = rig.primary().await;
    let mut session = connect(&primary).await.unwrap();
    within(session.observe(Duty::Sample)).await.unwrap();
    let next = "select pg_snapshot_xmax(pg_current_snapshot())";
    let before = primary.sql(next).await.unwrap();
    for _ in 0..20 {
        within(session.observe(Duty::Sample)).await.unwrap();
    }
    assert_eq!(primary.sql(next).await.unwrap(), before, "no transaction was numbered");
    let read_only =
        "select count(*) from pg_stat_activity where application_name = 'lagwarden' and backend_xid is not null";
    assert_eq!(primary.sql(read_only).await.unwrap()[0][0].as_deref(), Some("0"));
}
