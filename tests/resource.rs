//! The resource as users meet it: what is refused and in which words, what is accepted, and what `kubectl` shows.
//!
//! The same pools go through the rules of admission evaluated here, through the parser, and through a real API server, so
//! that none of the three knows better than the others.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "resource/pools.rs"]
mod pools;
#[path = "resource/server.rs"]
mod server;
mod support;

use lagwarden::api::rules::violations;
use lagwarden::api::v1alpha1::ReplicaPool;
use lagwarden::spec::PoolSpec;
use pools::{Judge, cases};
use serde_json::Value;

/// What the parser says about `pool`, or the types when they cannot even hold it.
fn refusals(pool: &Value) -> Vec<String> {
    match serde_json::from_value::<ReplicaPool>(pool.clone()) {
        Err(error) => vec![error.to_string()],
        Ok(pool) => match PoolSpec::try_new(&pool) {
            Ok(_) => Vec::new(),
            Err(errors) => errors.iter().map(ToString::to_string).collect(),
        },
    }
}

#[test]
fn bad_pools_are_refused_by_the_rules_with_field_value_and_remedy() {
    let mut failures = Vec::new();
    for case in cases("bad") {
        let said: Vec<_> = violations(&case.pool, None).iter().map(ToString::to_string).collect();
        let words = case.missing(&said.join("\n"), "");
        let told = match case.by {
            Judge::Rule => said.len() == 1 && words.is_empty(),
            Judge::Schema => true,
            Judge::Nobody => said.is_empty(),
        };
        if !told {
            failures.push(format!("{}: lacks {words:?}: {said:#?}", case.what));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn bad_pools_are_refused_by_the_parser_with_field_value_and_remedy() {
    let mut failures = Vec::new();
    for case in cases("bad") {
        let said = refusals(&case.pool);
        let typed = serde_json::from_value::<ReplicaPool>(case.pool.clone()).is_ok();
        let words = case.missing(&said.join("\n"), if typed { &case.field } else { "" });
        if said.len() != 1 || (typed && case.by != Judge::Schema && !words.is_empty()) {
            failures.push(format!("{}: lacks {words:?}: {said:#?}", case.what));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn good_pools_are_accepted_by_rules_and_parser() {
    for case in cases("good") {
        assert_eq!(violations(&case.pool, None), [], "{}", case.what);
        assert_eq!(refusals(&case.pool), Vec::<String>::new(), "{}", case.what);
    }
}
