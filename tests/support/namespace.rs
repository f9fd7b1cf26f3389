//! A world of the test's own: its processes, its network, its mounts.
//!
//! The test program runs itself again inside new namespaces, in which it is the node of a small cluster. When it ends, however
//! it ends, the kernel takes everything in them away: no process, interface or network namespace is left.

use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio, exit};

/// Set in the program that runs inside.
const INSIDE: &str = "LAGWARDEN_TEST_INSIDE";

/// Goes on inside new namespaces. Outside, this runs the program again and ends with its exit code.
pub(crate) fn enter() {
    if std::env::var_os(INSIDE).is_some() {
        settle();
        return;
    }
    let listing = std::env::args().any(|a| a == "--list");
    if listing {
        return;
    }
    let root = std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0);
    if !root {
        eprintln!("these tests make network namespaces and run kube-proxy, which needs root: run them as root");
        exit(1);
    }
    let mut inside = Command::new("unshare");
    inside.args([
        "--mount",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--",
    ]);
    inside.arg(std::env::current_exe().expect("this program has a path"));
    inside.args(std::env::args_os().skip(1)).env(INSIDE, "1");
    let status = inside.status().expect("unshare can be run");
    exit(status.code().unwrap_or(1));
}

/// A place for network namespaces of our own, and loopback.
fn settle() {
    std::fs::create_dir_all("/run/netns").expect("the folder of network namespaces can be made");
    run("mount", &["-t", "tmpfs", "tmpfs", "/run/netns"]);
    // Names are asked for at an address that refuses at once: nothing here has a name.
    let resolver = "/run/netns/.resolv.conf";
    std::fs::write(resolver, "nameserver 127.0.0.1\n").expect("a new file system can be written to");
    run("mount", &["--bind", resolver, "/etc/resolv.conf"]);
    run("ip", &["link", "set", "lo", "up"]);
}

/// Runs a program of the system to its end.
pub(crate) fn run(program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let done = done.unwrap_or_else(|e| panic!("{program} cannot be run: {e}"));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{program} {arguments:?}: {said}");
}
