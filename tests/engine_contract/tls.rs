//! TLS: every mode verifies what it says, by a name that need not be the address.

use std::time::Duration;

use lagwarden::demo::postgres::Server;
use lagwarden::engine::{Duty, Engine, EngineError, Session, Tls, TlsMode};
use lagwarden::policy::sighting::ProbeFailure;
use tokio::time::timeout;

use crate::paper::Paper;
use crate::rig::{Rig, credentials, make_role, options, target, within};

async fn secured(rig: &Rig, paper: &Paper) -> Server {
    let mut options = options("secured");
    options.settings = vec!["ssl = on".into()];
    let mut server = rig.maker.server(options).await.unwrap();
    paper.give_to(&server);
    server.start().await.unwrap();
    make_role(&server).await;
    server
}

async fn connect(
    server: &Server,
    mode: TlsMode,
    authority: Option<&Paper>,
    name: Option<&str>,
) -> Result<Session, EngineError> {
    let pem = authority.map(|p| p.authority.as_bytes());
    let tls = Tls::try_new(mode, pem, name.map(str::to_owned)).unwrap();
    within(Engine::Postgresql.connect(&target(server), &credentials(), &tls)).await
}

pub(crate) async fn every_mode_verifies_what_it_says(rig: Rig) {
    let (ours, theirs) = (
        Paper::for_names(&["orders-db", "127.0.0.1"]),
        Paper::for_names(&["orders-db"]),
    );
    let server = secured(&rig, &ours).await;
    for (mode, authority, name, accepted) in [
        (TlsMode::Require, None, None, true),
        (TlsMode::VerifyCa, Some(&ours), Some("another-name"), true),
        (TlsMode::VerifyCa, Some(&theirs), None, false),
        (TlsMode::VerifyFull, Some(&ours), Some("orders-db"), true),
        (TlsMode::VerifyFull, Some(&ours), None, true),
        (TlsMode::VerifyFull, Some(&ours), Some("another-name"), false),
        (TlsMode::VerifyFull, Some(&theirs), Some("orders-db"), false),
    ] {
        match connect(&server, mode, authority, name).await {
            Ok(mut session) => {
                assert!(accepted, "{mode:?} {name:?}");
                within(session.observe(Duty::Sample)).await.unwrap();
                let encrypted =
                    "select ssl from pg_stat_ssl join pg_stat_activity using (pid) where usename = 'lagwarden'";
                let rows = server.sql(encrypted).await.unwrap();
                assert!(rows.iter().all(|r| r[0].as_deref() == Some("t")), "{mode:?}: {rows:?}");
            }
            Err(error) => {
                assert!(!accepted, "{mode:?} {name:?}: {error}");
                assert_eq!(error.kind(), ProbeFailure::TlsFailed, "{error}");
            }
        }
    }
}

pub(crate) async fn a_server_without_tls_is_refused(rig: Rig) {
    let server = rig.primary().await;
    let failed = connect(&server, TlsMode::Require, None, None).await.unwrap_err();
    assert_eq!(failed.kind(), ProbeFailure::TlsFailed, "{failed}");
}

pub(crate) async fn cancelling_goes_over_tls_too(rig: Rig) {
    let ours = Paper::for_names(&["127.0.0.1"]);
    let server = secured(&rig, &ours).await;
    let session = connect(&server, TlsMode::VerifyFull, Some(&ours), None).await.unwrap();
    timeout(Duration::from_secs(5), session.cancel())
        .await
        .expect("cancelling ends");
}
