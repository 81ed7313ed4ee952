//! Tests with mock language servers: good, idle and hostile ones.
//!
//! The supervisor of their processes is this executable, so it has its own `main`: as a helper it
//! is the supervisor, otherwise it runs the tests below.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod hostile;
mod start_and_stop;
mod support;

use std::process::ExitCode;
use windlass_testkit::test_main::{self, NamedTest};

const CHECKS: &[NamedTest] = windlass_testkit::test_list! {
    start_and_stop {
        a_server_is_started_once_on_first_use
        a_server_can_write_only_to_its_cache_folder
        an_idle_server_is_stopped_and_restarted_on_use
        servers_stop_with_the_last_handle
        no_server_starts_after_close
        at_most_eight_servers_run
        a_missing_program_is_not_a_failure
        a_server_is_restarted_on_request
    }
    hostile {
        a_misbehaving_call_affects_no_other_server
        a_misbehaving_start_affects_no_other_server
        no_process_is_left_in_the_landlock_sandbox
        an_edit_waits_no_longer_than_the_review_timeout
        a_missing_server_does_not_delay_edits
        a_flood_of_notifications_slows_no_other_server
        a_server_that_ignores_shutdown_is_terminated
        a_server_that_does_not_read_is_restarted
        a_server_that_uses_too_much_memory_is_stopped
        an_unresponsive_server_is_restarted
    }
};

fn main() -> ExitCode {
    test_main::main(CHECKS, windlass_sandbox::run_supervisor)
}
