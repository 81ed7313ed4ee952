//! Tests of custom tools, well-behaved and hostile: real programs in real sandboxes, called through
//! the whole tool pipeline.
//!
//! The sandbox starts its supervisor from the current executable, so this test has its own `main`.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests create files directly and fail by panicking"
)]

mod calls;
mod hostile;
mod overhead;
mod script;
mod support;

use std::process::ExitCode;
use windlass_testkit::test_main::{self, NamedTest};

const CHECKS: &[NamedTest] = windlass_testkit::test_list! {
    calls {
        a_python_tool_is_called_and_its_process_is_kept
        a_shell_tool_is_called
        a_program_can_provide_several_tools_with_its_prefix
        rules_apply_to_the_declared_access
        a_read_only_tool_cannot_write
        a_tool_without_declared_access_can_write_except_in_plan_mode
        progress_is_shown_and_questions_are_answered
        attachments_are_stored
        an_error_is_returned_to_the_model
        a_changed_file_is_restarted_at_the_next_call
        a_refused_file_is_not_started
        a_canceled_call_keeps_a_process_that_stops_in_time
        calls_run_serially_or_in_parallel
    }
    hostile {
        every_hostile_call_ends_in_time_and_the_next_one_works
        a_program_without_a_valid_description_fails
        a_process_that_does_not_stop_is_ended
        a_dropped_read_only_call_does_not_affect_the_next_one
        a_failing_tool_is_retried_after_a_delay
    }
    script {
        the_tests_of_the_script_host_pass
        a_script_exports_several_tools
        a_typescript_tool_is_called
    }
    overhead {
        a_running_tool_adds_less_than_a_millisecond
    }
};

fn main() -> ExitCode {
    test_main::main(CHECKS, windlass_sandbox::run_supervisor)
}
