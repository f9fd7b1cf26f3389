//! Waiting for what must become true, and never for a time to pass.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// How long anything may take to become true, unless a test says otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until `condition` holds.
pub(crate) async fn until(what: &str, condition: impl AsyncFnMut() -> bool) {
    until_within(PATIENCE, what, condition).await;
}

/// Waits until `condition` holds, for at most `patience`.
#[expect(clippy::disallowed_methods, reason = "a deadline of a test decides nothing")]
pub(crate) async fn until_within(patience: Duration, what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + patience;
    while !condition().await {
        assert!(Instant::now() < end, "not within {patience:?}: {what}");
        sleep(Duration::from_millis(25)).await;
    }
}

/// The future's value, which must come within the patience of the tests.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future)
        .await
        .expect("an answer within the patience of the tests")
}
