//! What ends, refuses or interrupts a connection, and when it is asked or made again.

use super::*;

/// A connection that ends is made anew and asked at once, so a lost one costs no proof.
#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_made_anew_at_once() {
    let mut stage = Stage::set(&[]).await;
    stage.told();
    let before = stage.handle.asker().report().await.unwrap().report.at;
    stage.script.end_connections("b");
    stage.run(110).await;
    let view = stage.handle.asker().report().await.unwrap();
    let member = view.report.members.iter().find(|m| &*m.name == "b").unwrap();
    assert_eq!(member.failure, None);
    assert!(member.answered.unwrap() > before, "asked again within the same period");
    assert_eq!(stage.script.connects("b"), 2);
    assert_eq!(stage.told(), []);
}

#[tokio::test(start_paused = true)]
async fn a_refused_account_is_not_hammered() {
    let stage = Stage::set(&[]).await;
    stage.hold("b", Behaviour::Fails(ProbeFailure::ConnectionLost));
    stage.run(200).await;
    stage.hold("b", Behaviour::Fails(ProbeFailure::AuthFailed));
    stage.run(100).await;
    assert!((8..=13).contains(&attempts(&stage).await));
}

/// How often a connection to `b` is tried in the next 20 s.
async fn attempts(stage: &Stage) -> u32 {
    let before = stage.script.connects("b");
    stage.run(20_000).await;
    stage.script.connects("b") - before
}

/// PG-34: what a standby interrupts for its applier is asked again at once, on the same connection.
#[tokio::test(start_paused = true)]
async fn an_interrupted_question_is_asked_again_at_once() {
    let stage = Stage::set(&[]).await;
    let (asked, connected) = (stage.script.questions("b"), stage.script.connects("b"));
    stage.run(1000).await;
    let usual = stage.script.questions("b") - asked;
    stage.hold("b", Behaviour::Fails(ProbeFailure::Interrupted));
    let asked = stage.script.questions("b");
    stage.run(1000).await;
    assert_eq!(stage.script.questions("b") - asked, usual + 1, "once, and no storm");
    assert_eq!(stage.script.connects("b"), connected);
    stage.script.release("b");
    stage.run(500).await;
    assert_eq!(stage.seat("b").await, Reason::CaughtUp);
}

#[tokio::test(start_paused = true)]
async fn a_dead_server_is_tried_once_a_second() {
    let stage = Stage::set(&[]).await;
    stage.hold("b", Behaviour::Fails(ProbeFailure::Refused));
    stage.run(10_000).await;
    assert!((17..=25).contains(&attempts(&stage).await));
}

/// Secrets rotate: the old connection stays until the new access works.
#[tokio::test(start_paused = true)]
async fn new_credentials_are_tried_before_the_old_connection_goes() {
    let mut stage = Stage::set(&[]).await;
    let script = stage.script.clone();
    stage.configure(|c| c.access = access(&script, "two")).await;
    stage.run(300).await;
    assert_eq!(stage.script.connects("a"), 2);
    assert_eq!(stage.list(), ["a", "b"]);
    let view = stage.handle.decided().borrow().clone();
    assert_eq!(view.generation, 2);
}
