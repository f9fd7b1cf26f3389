//! Programs started as whoever may run them, and signals to what was started.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, bail};
use tokio::process::Command;

/// The user and group that servers run as when we are root, which PostgreSQL refuses to be: nobody.
pub(super) const NOBODY: u32 = 65534;

/// Whether this process runs as root.
pub(super) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

/// A command that runs `program` behind `launcher` (such as `ip netns exec NAME`), as nobody when we are root.
pub(super) fn command(launcher: &[String], program: impl AsRef<OsStr>) -> Command {
    let drop_root = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let mut words: Vec<&OsStr> = launcher.iter().map(AsRef::as_ref).collect();
    if is_root() {
        words.extend(drop_root.iter().map(|w| OsStr::new(*w)));
    }
    words.push(program.as_ref());
    let mut words = words.into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    // Messages are looked at here and there; and the servers' own folder is the only one they need.
    command.env("LC_ALL", "C").current_dir("/");
    command
}

/// Runs a program to its end.
pub(super) async fn run(command: &mut Command, what: &str) -> anyhow::Result<()> {
    let done = command.output().await.with_context(|| format!("start {what}"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        bail!("{what} failed ({}): {}", done.status, said.trim());
    }
    Ok(())
}

/// Sends `signal` (such as `STOP`) to `pid`.
pub(super) async fn signal(signal: &str, pid: u32) -> anyhow::Result<()> {
    let mut kill = Command::new("kill");
    kill.arg(format!("-{signal}"))
        .arg(pid.to_string())
        .stderr(Stdio::piped());
    run(&mut kill, &format!("kill -{signal} {pid}")).await
}

/// Whether `pid` runs: neither is it gone nor does it only wait for its parent to notice.
pub(super) fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.trim_start().chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// The children of `pid` whose command line contains `title`.
pub(super) fn children(pid: u32, title: &str) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(child) = entry?.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else {
            continue;
        };
        // A process may end while it is looked at.
        let (Ok(stat), Ok(line)) = (
            fs::read_to_string(format!("/proc/{child}/stat")),
            fs::read(format!("/proc/{child}/cmdline")),
        ) else {
            continue;
        };
        let parent = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        if parent == Some(pid) && String::from_utf8_lossy(&line).contains(title) {
            found.push(child);
        }
    }
    Ok(found)
}

/// Gives `path` to whoever servers run as.
pub(super) fn give(path: &Path) -> io::Result<()> {
    if is_root() {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY))
    } else {
        Ok(())
    }
}
