//! Tests with mock MCP servers: good, failing and hostile ones.
//!
//! The supervisor of their processes is this executable, so it has its own `main`: as a helper it
//! is the supervisor, otherwise it runs the tests below.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod dead;
mod failures;
mod good;
mod hostile;
mod pinned_tools;
mod sse;
mod support;

use std::process::ExitCode;
use windlass_testkit::test_main::{self, NamedTest};

const CHECKS: &[NamedTest] = windlass_testkit::test_list! {
    good {
        tools_of_both_revisions_are_called
        all_kinds_of_result_content_are_converted
        an_elicitation_asks_the_user
        resources_and_prompts_are_read
        resources_are_listed_of_the_servers_that_rules_allow
        instructions_of_a_server_are_pinned_and_bounded
        a_canceled_call_ends_at_once
        a_server_learns_the_workspace_folder
    }
    pinned_tools {
        pinned_tools_are_registered_before_the_server_starts
        a_changed_definition_needs_approval_once
        a_new_tool_needs_approval
        pins_of_another_command_do_not_apply
        a_tool_name_collision_is_reported
    }
    dead {
        a_failed_start_reports_exit_code_and_stderr
        a_server_killed_between_calls_is_restarted
        a_call_that_ends_the_server_is_not_repeated
        an_idempotent_call_is_repeated_once
        a_slow_server_delays_no_other_server
    }
    failures {
        each_failure_says_what_happened_and_what_to_do
    }
    sse {
        an_old_server_is_used_with_and_without_its_type
        headers_reach_the_event_stream_and_the_messages
        a_hostile_event_stream_is_refused
        a_call_that_may_have_been_sent_is_not_repeated
        a_slow_post_does_not_delay_other_messages
    }
    hostile {
        a_hostile_server_affects_no_other_server
    }
};

fn main() -> ExitCode {
    test_main::main(CHECKS, windlass_sandbox::run_supervisor)
}
