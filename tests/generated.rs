//! Committed files that are made by the code are what the code makes; `make generate` makes them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::env;
use std::fmt::Write;
use std::fs;

use lagwarden::api::crd;
use lagwarden::api::v1alpha1::ReplicaPool;
use lagwarden::engine::postgresql::ROLE_SQL;
use lagwarden::policy::reason::Reason;
use lagwarden::policy::state::{MemberState, ServiceState};
use lagwarden::spec::PoolSpec;
use lagwarden::telemetry::catalogue;

fn check(path: &str, made: &str) {
    if env::var_os("LAGWARDEN_GENERATE").is_some() {
        fs::write(path, made).unwrap();
    }
    let committed = fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == made,
        "{path} is not what the code makes: run `make generate` and commit it"
    );
}

#[test]
fn the_resource_definition() {
    check("crds/replicapools.lagwarden.io.yaml", &crd::yaml());
}

/// Examples are pools as people would write them, and the parser takes them.
#[test]
fn the_examples_are_valid() {
    let mut pools = 0;
    for entry in fs::read_dir("examples").unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for document in text.split("\n---\n").filter(|d| d.contains("kind: ReplicaPool")) {
            let pool: ReplicaPool = serde_yaml::from_str(document).unwrap();
            if let Err(errors) = PoolSpec::try_new(&pool) {
                let told: Vec<_> = errors.iter().map(ToString::to_string).collect();
                panic!("{}: {}", path.display(), told.join("\n"));
            }
            pools += 1;
        }
    }
    assert!(pools >= 4, "{pools} pools");
}

#[test]
fn the_page_of_metrics() {
    let mut page = "# Metrics\n\n\
        Served at `/metrics`. Base units; absent while unknown, never zero instead. Series live and die with their pool.\n\n\
        | metric | type | labels | meaning |\n| --- | --- | --- | --- |\n"
        .to_owned();
    for metric in catalogue::ALL {
        let labels = metric.labels.join(", ");
        writeln!(
            page,
            "| `{}` | {} | {labels} | {} |",
            metric.name,
            metric.kind.as_str(),
            metric.help
        )
        .unwrap();
    }
    check("docs/metrics.md", &page);
}

/// `docs/reasons.md` explains exactly the words that exist.
#[test]
fn the_page_of_reasons_explains_every_word() {
    let page = fs::read_to_string("docs/reasons.md").unwrap();
    let mut sections = page.split("\n## ").skip(1).map(|section| {
        let rows = section
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        rows.map(str::to_owned).collect::<Vec<_>>()
    });
    let mut same = |words: Vec<&str>| {
        let mut explained = sections.next().unwrap();
        let mut words: Vec<_> = words.into_iter().map(str::to_owned).collect();
        words.sort();
        words.dedup();
        explained.sort();
        assert_eq!(explained, words);
    };
    same(MemberState::ALL.map(MemberState::as_str).to_vec());
    same(Reason::ALL.map(Reason::as_str).to_vec());
    same(ServiceState::ALL.map(ServiceState::as_str).to_vec());
}

/// The role that people are told to make is the one that the tests use.
#[test]
fn the_documented_role_is_the_tested_one() {
    let page = fs::read_to_string("docs/postgresql.md").unwrap();
    assert!(page.contains(ROLE_SQL.trim()), "docs/postgresql.md shows {ROLE_SQL}");
}
