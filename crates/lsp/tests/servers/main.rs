//! Language servers as they can be: good ones, idle ones, and ones that mean harm.
//!
//! The keeper of what they start is this very program, so this has a main of its own: on an errand
//! it is the keeper, and otherwise it runs the checks below.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod hostile;
mod idle;
mod site;

use std::process::ExitCode;
use windlass_testkit::checks::{self, Check};

const CHECKS: &[Check] = windlass_testkit::checks! {
    idle {
        a_server_is_started_once_when_it_is_wanted_and_not_before
        it_sees_its_root_and_its_cache_and_changes_nothing_else
        nobody_wants_it_and_it_ends_until_somebody_does
        it_ends_with_the_last_who_has_it
        once_all_are_closed_nothing_is_started
        no_more_than_eight_run
        one_that_is_not_installed_is_no_failure
    }
    hostile {
        nothing_it_does_in_a_call_harms_anybody_else
        nothing_it_does_at_its_start_harms_anybody_else
        nothing_is_left_of_it_in_another_cage
        no_edit_waits_for_it
        a_server_that_is_not_there_costs_an_edit_nothing
        a_flood_slows_nobody_down
        one_that_ignores_its_end_is_ended
        one_that_does_not_read_is_ended
        one_that_grows_is_ended
        one_that_stays_silent_is_started_anew
    }
};

fn main() -> ExitCode {
    checks::main(CHECKS, windlass_sandbox::keeper)
}
