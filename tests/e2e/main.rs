//! The product, end to end: real PostgreSQL servers behind a real Service of a real Kubernetes control plane.
//!
//! One process is one small cluster with a network of its own ([`world`]). Every row has a namespace, three servers, and
//! controllers of its own in it ([`stage`]), so that rows run side by side; those that trouble the control plane itself, or
//! that hold the product to tight limits under load, run alone. A row is a line in [`rows`].

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "a JSON literal as an argument reads as what is declared"
)]

mod clients;
mod configuration;
mod control_plane;
mod controller;
mod failover;
mod fallback;
mod history;
mod listing;
mod measurement;
mod objects;
mod pods;
mod stage;
mod story;
#[path = "../support/mod.rs"]
mod support;
mod trouble;
mod watching;
mod world;

use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use world::{Company, Row, World};

fn rows() -> Vec<(&'static str, Company, Row)> {
    macro_rules! rows {
        ($($company:ident $module:ident :: $name:ident),* $(,)?) => {
            vec![$((
                concat!(stringify!($module), "::", stringify!($name)),
                Company::$company,
                (|stage| Box::pin($module::$name(stage))) as Row,
            )),*]
        };
    }
    rows![
        Alone measurement::no_workload_makes_a_healthy_standby_look_stale,
        Shared measurement::an_idle_minute_costs_no_write_and_evicts_nobody,
        Shared listing::a_new_pool_lists_both_standbys_and_clients_reach_exactly_them,
        Shared listing::a_paused_standby_leaves_in_time_and_returns_by_the_rules,
        Shared trouble::a_stalled_link_and_a_dead_server_leave_for_their_own_reasons,
        Shared trouble::a_stopped_applier_and_a_hung_server_leave_for_their_own_reasons,
        Shared trouble::one_standby_out_of_our_reach_leaves_and_all_out_of_our_reach_stay,
        Shared trouble::standbys_that_refuse_us_alone_stay_and_a_dead_one_leaves,
        Shared trouble::a_standby_that_is_late_on_purpose_or_has_no_source_stays_out,
        Shared trouble::a_cascade_is_judged_against_the_primary,
        Shared fallback::when_all_lag_each_fallback_gives_exactly_its_list,
        Shared fallback::beyond_the_hard_limit_nobody_serves_and_it_is_said,
        Shared failover::a_failover_is_followed_and_a_second_primary_freezes_the_list,
        Shared control_plane::a_controller_that_restarts_publishes_nothing_wrong,
        Shared control_plane::another_controller_takes_over_and_the_list_never_flips,
        Shared control_plane::a_stepped_clock_changes_no_decision,
        Shared objects::others_endpoints_are_told_and_ours_are_put_right,
        Shared objects::a_service_of_somebody_else_is_refused_in_words,
        Shared objects::pods_are_followed_by_uid_and_strangers_never_join,
        Shared objects::a_label_names_the_primary_and_the_server_is_asked_all_the_same,
        Shared story::a_person_with_kubectl_sees_what_happens_and_why,
        Shared objects::secrets_rotate_without_a_restart,
        Shared objects::a_deleted_pool_takes_its_objects_with_it_or_leaves_them,
        Shared configuration::twenty_bad_pools_are_told_what_is_wrong_and_disturb_nobody,
        // The last one: it shakes the whole control plane.
        Alone control_plane::an_api_server_that_hangs_or_dies_changes_nothing,
    ]
}

fn main() {
    support::namespace::enter();
    let mut arguments = Arguments::from_args();
    // Each row runs three servers; there may be two cores.
    arguments.test_threads = arguments.test_threads.or(Some(3));
    let rows = rows();
    let world = if arguments.list {
        None
    } else {
        Some(Arc::new(World::start()))
    };
    let trial = |(name, company, row): (&'static str, Company, Row)| {
        let world = world.clone();
        Trial::test(name, move || {
            let world = world.expect("there is a world unless rows are only listed");
            world.run(name, company, row).map_err(Into::into)
        })
    };
    let conclusion = libtest_mimic::run(&arguments, rows.into_iter().map(trial).collect());
    // Leaving ends no scope: what was started and made is put away here.
    drop(world);
    conclusion.exit();
}
