//! Servers as they really behave: good ones, dead ones, and ones that mean harm.
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

mod dead;
mod good;
mod hostile;
mod pins;
mod site;

use std::process::ExitCode;
use windlass_testkit::checks::{self, Check};

const CHECKS: &[Check] = windlass_testkit::checks! {
    good {
        tools_of_both_revisions_are_called
        what_an_answer_holds_is_shown_kept_or_named
        a_person_is_asked_what_a_server_asks
        resources_and_prompts_are_read
        a_call_that_is_stopped_ends_at_once
    }
    pins {
        what_was_known_is_there_before_the_server_is
        a_changed_definition_is_asked_about_once
        a_new_tool_is_asked_about
        another_command_is_another_server
        two_tools_of_one_name_are_one
    }
    dead {
        one_that_exits_at_its_start_says_why
        one_that_was_killed_between_calls_is_started_again
        one_that_dies_in_a_call_is_not_called_again
        what_may_be_repeated_is_repeated_once
        one_that_sleeps_holds_up_nobody
    }
    hostile {
        nothing_it_does_harms_anybody_else
    }
};

fn main() -> ExitCode {
    checks::main(CHECKS, windlass_sandbox::keeper)
}
