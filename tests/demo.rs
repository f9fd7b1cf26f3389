//! The demonstration as a stranger runs it: to its end, as root and as a plain user, with nothing left behind.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Output};

fn pg_bin() -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/get-postgresql");
    let found = Command::new(script).arg("any").output().unwrap();
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    String::from_utf8(found.stdout).unwrap().trim().to_owned()
}

fn left_behind() -> Vec<String> {
    let entries = fs::read_dir(std::env::temp_dir()).unwrap().filter_map(Result::ok);
    let names = entries.map(|e| e.file_name().to_string_lossy().into_owned());
    names.filter(|n| n.starts_with("lagwarden-demo-")).collect()
}

fn check(done: &Output) {
    let (told, log) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    assert!(done.status.success(), "{told}\n{log}");
    let mut rest = told.as_ref();
    for chapter in [
        "Normal, lists pg-1, pg-2",
        "* Stalled pg-2 no longer serves",
        "Degraded, lists pg-1 ",
        "* ReplicaReady pg-2 serves",
        "* FallbackActive",
        "Fallback (LeastLagged), lists",
        "* FallbackEnded",
        "Normal, lists pg-1, pg-2",
        "Everything is stopped and removed",
    ] {
        let at = rest
            .find(chapter)
            .unwrap_or_else(|| panic!("{chapter:?} is not told in its turn:\n{told}"));
        rest = &rest[at + chapter.len()..];
    }
    assert!(!told.contains('\u{1b}'), "plain lines where there is no terminal");
    assert_eq!(left_behind(), [""; 0]);
}

#[test]
fn it_tells_its_story_and_leaves_nothing_behind() {
    let lagwarden = env!("CARGO_BIN_EXE_lagwarden");
    check(
        &Command::new(lagwarden)
            .args(["--log", "error", "demo", "--pg-bin", &pg_bin()])
            .output()
            .unwrap(),
    );
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        // And as somebody who is not root. The program is copied to where everybody may run it.
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("lagwarden");
        fs::copy(lagwarden, &copy).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), mode).unwrap();
        let mut plain = Command::new("setpriv");
        plain
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&copy);
        check(
            &plain
                .args(["--log", "error", "demo", "--pg-bin", &pg_bin()])
                .output()
                .unwrap(),
        );
    }
}
