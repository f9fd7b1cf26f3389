//! Committed files that are made by a command are what the command makes.

use std::fs;

use lagwarden::api::crd;
use lagwarden::api::v1alpha1::ReplicaPool;
use lagwarden::spec::PoolSpec;

fn check(path: &str, made: &str) {
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
