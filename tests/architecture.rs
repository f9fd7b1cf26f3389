//! The arrows of `docs/ARCHITECTURE.md`: which module may use which, and what each must never do. A broken rule is told
//! with file, line and reason.
//!
//! It reads the source as text: every `crate::…` and `super::…` path, and every path that begins with a dependency's name.
//! Comments, and modules that are compiled for tests alone, are not looked at.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "architecture/rules.rs"]
mod rules;
#[path = "architecture/source.rs"]
mod source;

use rules::{LONG_FILES, MODULES, Module, WRITERS};
use source::{File, files};

/// The rule that covers a file: the one with the longest path.
fn rule_of(file: &File) -> &'static Module {
    MODULES
        .iter()
        .filter(|m| file.path == format!("{}.rs", m.path) || file.path.starts_with(&format!("{}/", m.path)))
        .max_by_key(|m| m.path.len())
        .unwrap_or_else(|| {
            panic!(
                "src/{} is in no module of tests/architecture/rules.rs: say there what it may use",
                file.path
            )
        })
}

fn fail_with(broken: &[String]) {
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

#[test]
fn modules_use_only_what_they_may() {
    let mut broken = Vec::new();
    for file in files() {
        let rule = rule_of(&file);
        for (line, used) in file.arrows() {
            let own =
                used.starts_with(&rule.path.replace('/', "::")) || rule.path.replace('/', "::").starts_with(&used);
            let allowed = rule
                .ours
                .iter()
                .any(|ours| *ours == "*" || used == *ours || used.starts_with(&format!("{ours}::")));
            if !own && !allowed {
                broken.push(format!("src/{}:{line}: uses {used}. {}", file.path, rule.reason));
            }
        }
        for (line, name) in file.dependencies() {
            if !rule.crates.contains(&"*") && !rule.crates.contains(&name.as_str()) {
                broken.push(format!(
                    "src/{}:{line}: uses the crate {name}. {}",
                    file.path, rule.reason
                ));
            }
        }
    }
    fail_with(&broken);
}

#[test]
fn modules_never_do_what_they_must_not() {
    let mut broken = Vec::new();
    for file in files() {
        for (line, text) in file.lines() {
            for (never, reason) in rule_of(&file).never {
                if text.contains(never) {
                    broken.push(format!("src/{}:{line}: `{never}`: {reason}", file.path));
                }
            }
        }
    }
    fail_with(&broken);
}

#[test]
fn only_the_writers_write_to_the_api_server() {
    let mut broken = Vec::new();
    for file in files().filter(|f| !WRITERS.iter().any(|(path, _)| f.path == *path)) {
        for (line, text) in file.lines() {
            for verb in ["PatchParams", "PostParams", "DeleteParams"] {
                if text.contains(verb) {
                    let writers: Vec<_> = WRITERS
                        .iter()
                        .map(|(path, what)| format!("src/{path} ({what})"))
                        .collect();
                    broken.push(format!(
                        "src/{}:{line}: {verb}: only {} write to the API server",
                        file.path,
                        writers.join(", ")
                    ));
                }
            }
        }
    }
    fail_with(&broken);
    for (path, _) in WRITERS {
        assert!(
            files().any(|f| f.path == *path),
            "src/{path} is named as a writer and is not there"
        );
    }
}

#[test]
fn files_are_short_or_say_why() {
    let mut broken = Vec::new();
    for file in source::all() {
        let excused = LONG_FILES.iter().any(|(path, _)| file.path == *path);
        match file.length() {
            401.. if !excused => broken.push(format!(
                "{}: {} lines, and 400 is the most: split it, or say why in tests/architecture/rules.rs",
                file.path,
                file.length()
            )),
            ..=400 if excused => broken.push(format!(
                "{}: has {} lines and needs no excuse any more",
                file.path,
                file.length()
            )),
            _ => {}
        }
    }
    fail_with(&broken);
}

/// The reader sees what it must see: a rule that finds nothing because it cannot read proves nothing.
#[test]
fn the_reader_of_source_sees_arrows() {
    let file = File::of(
        "pool/deep/file.rs",
        "//! crate::http in a comment\nuse crate::policy::moment::Moment;\nuse super::super::Thing;\nuse super::super::super::http::Server;\nfn f() { kube::Api::all(client); } // crate::cli\n#[cfg(test)]\nmod tests {\n    use crate::demo::x;\n}\n",
    );
    let arrows: Vec<_> = file.arrows().collect();
    assert_eq!(
        arrows,
        [(2, "policy::moment".into()), (3, "pool".into()), (4, "http".into())],
    );
    assert_eq!(file.dependencies().collect::<Vec<_>>(), [(5, "kube".into())]);
}
