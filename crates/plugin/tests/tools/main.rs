//! Custom tools as people write them, and as nobody should: real programs in real cages, called on
//! the whole road.
//!
//! The keeper is started as this very program, as it is in the binary, so this has a main of its
//! own.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod calls;
mod hostile;
mod overhead;
mod script;
mod yard;

use std::process::ExitCode;
use windlass_testkit::checks::{self, Check};

const CHECKS: &[Check] = windlass_testkit::checks! {
    calls {
        a_tool_in_python_is_called_and_kept_running
        a_tool_in_shell_is_called
        one_program_brings_several_tools_of_its_own_names
        what_is_declared_is_what_rules_are_asked_about
        who_only_looks_cannot_change_anything
        who_declares_nothing_changes_files_but_not_in_plan
        progress_is_shown_and_questions_are_answered
        attachments_are_kept
        an_error_is_for_the_model
        a_changed_file_is_started_anew_at_the_next_call
        a_file_that_must_not_be_run_is_not
        a_call_that_is_stopped_lets_the_process_live_if_it_listens
        calls_are_answered_one_by_one_or_together
    }
    hostile {
        whatever_it_does_a_call_ends_in_time_and_the_next_one_works
        one_that_never_describes_itself_is_given_up
        one_that_does_not_stop_is_ended
        a_looking_call_that_is_dropped_does_not_confuse_the_next
        a_tool_that_keeps_failing_is_left_alone_for_a_while
    }
    script {
        the_hosts_own_tests_pass
        a_script_exports_several_tools
        a_script_with_types_is_called
    }
    overhead {
        a_kept_tool_costs_less_than_a_millisecond
    }
};

fn main() -> ExitCode {
    checks::main(CHECKS, windlass_sandbox::keeper)
}
