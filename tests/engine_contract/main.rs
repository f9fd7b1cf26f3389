//! The engine contract: one list of cases, each run against every version that is supported, on real servers.
//!
//! Adding a version is one line in [`VERSIONS`]; adding a case is one line in [`cases`].

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod accounts;
mod faults;
#[path = "../support/tls.rs"]
mod paper;
mod positions;
mod rig;
mod tls;

use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use rig::{Rig, Version};
use tokio::sync::OnceCell;

const VERSIONS: [&str; 5] = ["14", "15", "16", "17", "18"];

/// A case takes a rig of its version and panics when the contract does not hold.
type Case = fn(Rig) -> std::pin::Pin<Box<dyn Future<Output = ()>>>;

fn cases() -> Vec<(&'static str, Case)> {
    macro_rules! cases {
        ($($module:ident :: $name:ident),* $(,)?) => {
            vec![$((concat!(stringify!($module), "::", stringify!($name)), (|rig| Box::pin($module::$name(rig))) as Case)),*]
        };
    }
    cases![
        positions::a_primary_is_sampled,
        positions::a_replica_is_probed,
        positions::a_wrong_duty_is_answered_all_the_same,
        positions::a_replica_contains_what_it_applied,
        positions::the_header_of_a_page_or_segment_need_not_be_applied,
        positions::unflushed_log_is_out_of_reach_until_nudged,
        positions::a_promotion_starts_a_later_timeline,
        positions::a_diverged_standby_is_never_on_the_new_timeline,
        positions::a_standby_that_never_streamed_has_no_received_position,
        positions::a_read_only_default_changes_nothing,
        positions::time_zones_change_nothing,
        faults::paused_replay_is_seen,
        faults::a_stopped_receiver_still_looks_connected,
        faults::a_stopped_applier_receives_and_does_not_apply,
        faults::a_cut_off_standby_has_no_receiver,
        faults::a_restart_is_another_incarnation,
        faults::another_cluster_at_the_same_address_is_another_cluster,
        faults::a_hung_server_is_given_up_in_time,
        faults::a_listener_that_never_answers_is_silence,
        faults::a_listener_that_floods_is_cut_off,
        faults::a_killed_session_is_a_lost_connection,
        faults::a_closed_port_refuses,
        faults::a_server_that_shuts_down_is_lost_and_then_refuses,
        faults::a_server_that_starts_up_takes_no_connections,
        faults::an_unknown_host_is_no_silence,
        faults::a_recovery_conflict_is_an_interruption,
        accounts::the_documented_role_suffices,
        accounts::a_wrong_password_is_told,
        accounts::an_unknown_user_is_told,
        accounts::an_unknown_database_is_told,
        accounts::a_missing_grant_is_told_with_its_remedy,
        accounts::a_full_server_says_so,
        accounts::a_password_may_have_any_character,
        accounts::a_probe_never_writes,
        tls::every_mode_verifies_what_it_says,
        tls::a_server_without_tls_is_refused,
        tls::cancelling_goes_over_tls_too,
    ]
}

fn main() {
    let mut arguments = Arguments::from_args();
    // Each case runs up to three servers.
    arguments.test_threads = arguments.test_threads.or(Some(2));
    let versions: Vec<Arc<OnceCell<Version>>> = VERSIONS.iter().map(|_| Arc::default()).collect();
    let mut trials = Vec::new();
    for (version, got) in VERSIONS.into_iter().zip(&versions) {
        for (name, case) in cases() {
            let got = got.clone();
            trials.push(Trial::test(format!("postgresql{version}::{name}"), move || {
                run(version, &got, case)
            }));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    // Leaving does not drop: the versions' folders go before.
    drop(versions);
    conclusion.exit();
}

fn run(version: &'static str, got: &OnceCell<Version>, case: Case) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let rig = Rig::new(got.get_or_try_init(|| Version::get(version)).await?)?;
        case(rig).await;
        Ok::<(), anyhow::Error>(())
    })?;
    Ok(())
}
