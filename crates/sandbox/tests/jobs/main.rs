//! Tests of jobs and long-running processes with real commands, which detach, flood, ignore
//! signals, fork and crash.
//!
//! The supervisor is started from this executable, as in the `windlass` binary, so these tests have
//! their own `main`: with `helper` it is the supervisor, with `owner` or `process-owner` a process
//! that a test kills, and otherwise it runs the tests below.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests set up files and processes from outside and fail by panicking"
)]

mod changes;
mod exhaustion;
mod grants;
mod limits;
mod output;
mod package_caches;
mod processes;
mod support;
mod terminal;
mod termination;

use std::process::ExitCode;
use windlass_testkit::test_main::{self, NamedTest};

const CHECKS: &[NamedTest] = windlass_testkit::test_list! {
    termination {
        the_exit_of_a_command_is_reported
        detached_processes_are_reported_and_ended
        a_job_is_gone_when_its_last_process_exits
        nothing_outlives_the_session
        nothing_outlives_an_owner_that_was_killed
        nothing_outlives_an_owner_that_was_killed_with_its_supervisor
        only_the_temp_folder_is_removed_with_its_owner
        a_process_that_ignores_sigterm_is_killed
        a_stopped_process_is_ended
        a_process_whose_main_thread_exited_is_ended
        a_kill_is_quick
        ending_one_job_leaves_the_others_running
        a_killed_supervisor_is_reported_and_replaced
        processes_of_a_killed_supervisor_are_ended
        a_command_whose_start_was_canceled_is_ended
        the_supervisor_survives_terminal_signals
        a_failed_start_is_reported
    }
    output {
        stdout_and_stderr_keep_their_order
        output_still_in_a_pipe_at_exit_is_read
        a_flood_is_counted_exactly_in_bounded_memory
        three_hundred_megabytes_are_counted
        output_that_is_not_utf8_is_preserved
        endless_background_output_does_not_delay_the_exit
        output_can_be_watched
        stdin_is_closed_or_written
        a_process_that_does_not_read_stdin_blocks_no_writer
        a_long_command_runs
        concurrent_jobs_are_kept_apart
        a_command_inherits_nothing
    }
    grants {
        a_command_outside_the_sandbox_or_with_network_gets_no_stdin
        commands_of_a_session_share_their_loopback_and_nothing_else
        the_system_shell_runs_with_a_private_temp_folder
        dropping_a_session_ends_its_jobs
        the_change_counter_grows_during_a_command_and_once_after_it
        only_processes_of_the_job_are_reported_as_leftover
        the_proxy_token_is_masked_and_host_attempts_are_reported
        landlock_has_no_network_and_a_note_says_so
        plan_mode_writes_nothing
        restricted_paths_stay_closed_however_a_command_gets_there
        landlock_asks_about_restricted_paths_that_it_cannot_hide
        the_home_is_hidden_from_commands_without_approval
        a_change_between_two_commands_is_reported_while_a_job_runs
        background_jobs_are_reported_and_can_be_ended
        updates_of_a_job_with_endless_output_are_rate_limited
    }
    changes {
        every_backend_keeps_what_a_command_replaces
        what_cannot_be_kept_is_named
        the_first_content_is_kept_whatever_many_processes_do
        a_link_of_the_command_leads_the_capture_nowhere
        huge_and_many_files_cost_little
    }
    package_caches {
        commands_fill_caches_and_those_of_the_user_stay_as_they_are
        programs_and_settings_beside_a_cache_are_read_only
        two_sessions_of_a_project_do_not_disturb_each_other
        landlock_moves_the_caches_that_builds_need
    }
    processes {
        stdin_stdout_and_stderr_are_separate
        a_process_ends_when_its_last_handle_is_dropped
        a_process_ends_with_its_workspace
        memory_includes_all_descendants
        a_process_ends_when_its_owner_is_killed
        all_processes_can_be_stopped_and_new_ones_started
        a_process_whose_start_was_canceled_is_ended
        a_flood_of_stderr_costs_little
        a_process_cannot_escape_its_sandbox
        a_process_changes_nothing_in_plan_mode
        a_process_has_its_own_cache_and_temp_folder
        a_process_reaches_only_its_allowed_hosts
        a_failed_start_says_why
        an_immediate_exit_says_why
        a_process_is_sandboxed_or_not_started
        a_hundred_processes_leave_nothing_behind
        a_process_costs_little
    }
    terminal {
        a_command_gets_a_terminal_of_the_requested_size
        an_interactive_program_can_be_used
        ctrl_c_interrupts_the_command
        processes_started_in_a_terminal_end_with_the_job
    }
    exhaustion {
        a_job_with_endless_path_requests_can_be_ended
        a_supervisor_without_descriptors_keeps_running
    }
    limits {
        a_fork_bomb_is_stopped
        a_fork_bomb_in_the_background_is_stopped
        file_sizes_and_core_dumps_are_limited
        a_sandbox_limits_file_sizes
        a_job_that_uses_up_the_memory_is_killed_and_others_are_not
        a_job_that_fills_the_disk_is_killed
        shared_memory_is_private_and_limited
        a_fork_bomb_in_a_sandbox_is_stopped
        a_flood_from_a_sandbox_costs_little
        a_supervised_command_costs_little_more_than_a_plain_one
    }
};

fn main() -> ExitCode {
    let (first, all) = test_main::arguments();
    match first.as_deref() {
        Some("helper") => test_main::exit_code(windlass_sandbox::run_supervisor()),
        Some("owner") => support::run_owner(&all[1..]),
        Some("process-owner") => processes::run_owner(),
        Some(_) | None => test_main::run(CHECKS, &all),
    }
}
