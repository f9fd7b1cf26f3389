//! The election against a real API server.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use lagwarden::clock::Clock;
use lagwarden::leader::{Election, Leadership, start};
use serde_json::json;
use support::cluster::{Cluster, Options};
use support::wait::until;
use tokio::sync::watch;
use tokio::task::JoinHandle;

struct Candidate {
    leadership: watch::Receiver<Leadership>,
    task: JoinHandle<()>,
    shutdown: watch::Sender<bool>,
    clock: Clock,
}

impl Candidate {
    async fn new(cluster: &Cluster, name: &str) -> Self {
        let clock = Clock::start();
        let (shutdown, ending) = watch::channel(false);
        let election = Election::new("default", "lagwarden", name);
        let elected = start(cluster.admin().await, election, clock.clone(), ending);
        Self {
            leadership: elected.leadership,
            task: elected.task,
            shutdown,
            clock,
        }
    }

    fn writes(&self) -> bool {
        self.leadership.borrow().may_write(self.clock.now())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_leads_and_another_takes_over() {
    let cluster = Cluster::start(Options::default()).await;
    let first = Candidate::new(&cluster, "first").await;
    until("the first leads", async || first.writes()).await;
    let second = Candidate::new(&cluster, "second").await;
    until("the second knows the first", async || {
        matches!(&*second.leadership.borrow(), Leadership::Standby { holder: Some(h) } if h.starts_with("first_"))
    })
    .await;

    // The first dies without a word.
    first.task.abort();
    until("the second takes over", async || second.writes()).await;
    assert!(!first.writes(), "the first's time is over before the second's begins");
    assert!(matches!(
        *second.leadership.borrow(),
        Leadership::Leading { term: 1, .. }
    ));

    // It comes back as another, and waits.
    let third = Candidate::new(&cluster, "third").await;
    // The second is told to end: it gives the Lease back, and nobody waits for its time to pass.
    second.shutdown.send(true).unwrap();
    second.task.await.unwrap();
    until("the third takes over", async || third.writes()).await;

    // The API server hangs for longer than the Lease.
    cluster.hang_api().await;
    until("the third stands by", async || !third.writes()).await;
    cluster.resume_api().await;
    until("and leads again", async || third.writes()).await;

    // It is gone, and comes back.
    cluster.kill_api().await;
    until("the third stands by", async || !third.writes()).await;
    cluster.start_api().await;
    until("and leads again", async || third.writes()).await;
    assert!(!third.task.is_finished());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_do_to_the_lease_is_survived() {
    let cluster = Cluster::start(Options::default()).await;
    let candidate = Candidate::new(&cluster, "one").await;
    until("it leads", async || candidate.writes()).await;
    let leases: Api<Lease> = Api::namespaced(cluster.admin().await, "default");

    leases.delete("lagwarden", &DeleteParams::default()).await.unwrap();
    until("the Lease is made again", async || {
        leases.get_opt("lagwarden").await.unwrap().is_some()
    })
    .await;
    until("it leads", async || candidate.writes()).await;

    // Somebody writes another holder in: it is respected for as long as it says.
    let other = json!({ "spec": { "holderIdentity": "a person", "leaseDurationSeconds": 2 } });
    leases
        .patch("lagwarden", &PatchParams::default(), &Patch::Merge(other))
        .await
        .unwrap();
    until(
        "it stands by",
        async || matches!(&*candidate.leadership.borrow(), Leadership::Standby { holder: Some(h) } if h == "a person"),
    )
    .await;
    until("it leads again", async || candidate.writes()).await;

    // Fields that others may leave out.
    let bare = json!({ "spec": { "holderIdentity": null, "leaseDurationSeconds": null, "leaseTransitions": null } });
    leases
        .patch("lagwarden", &PatchParams::default(), &Patch::Merge(bare))
        .await
        .unwrap();
    until("it holds it again", async || {
        let lease = leases.get("lagwarden").await.unwrap();
        lease
            .spec
            .and_then(|s| s.holder_identity)
            .is_some_and(|h| h.starts_with("one_"))
    })
    .await;
    candidate.shutdown.send(true).unwrap();
    candidate.task.await.unwrap();
    let lease = leases.get("lagwarden").await.unwrap();
    assert_eq!(
        lease.spec.and_then(|s| s.holder_identity).as_deref(),
        Some(""),
        "given back"
    );
}
