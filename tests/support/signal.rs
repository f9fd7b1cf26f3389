//! Signals to processes that a test started.

use tokio::process::Command;

/// Sends the signal `name` to a process that runs.
pub(crate) async fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(pid.to_string())
        .status()
        .await
        .unwrap();
    assert!(sent.success(), "kill -{name}");
}
