//! Commands as they really behave: ones that detach, flood, ignore, multiply and die.
//!
//! The keeper is started as this very program, as it is in the binary, so this has a main of its
//! own: on an errand it is the keeper, as `owner` it is somebody who is about to be killed, and
//! otherwise it runs the checks below.
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

mod crowd;
mod ends;
mod grants;
mod limits;
mod output;
mod servant;
mod terminal;
mod yard;

use std::process::ExitCode;
use windlass_testkit::checks::{self, Check};

const CHECKS: &[Check] = windlass_testkit::checks! {
    ends {
        a_command_tells_how_it_ended
        what_detaches_is_named_and_ended
        a_job_is_gone_when_its_last_process_is
        nothing_outlives_the_session
        nothing_outlives_an_owner_that_was_killed
        a_folder_goes_with_its_owner_and_nothing_else_does
        one_that_ignores_the_request_is_killed
        a_stopped_one_is_ended_too
        one_that_looks_dead_is_ended_too
        a_kill_is_quick
        one_job_ends_without_the_others
        a_keeper_that_was_killed_is_told_and_replaced
        what_a_killed_keeper_left_is_cleared_up
        a_start_that_nobody_waits_for_is_ended
        the_keeper_survives_what_a_terminal_sends
        what_cannot_be_started_says_so
    }
    output {
        both_streams_keep_their_order
        last_words_through_a_pipe_are_heard
        a_flood_is_counted_exactly_in_bounded_memory
        three_hundred_megabytes_are_counted
        bytes_that_are_not_text_are_kept
        one_that_never_stops_talking_in_the_background_holds_up_nobody
        what_it_says_can_be_watched
        its_input_is_closed_or_written
        one_that_does_not_read_holds_up_nobody
        a_long_command_runs
        many_at_once_are_told_apart
        nothing_is_inherited
    }
    grants {
        what_was_let_out_gets_no_input
        the_shell_is_the_systems_and_its_folder_its_own
        a_session_that_goes_without_a_word_leaves_nothing
        files_count_as_stirred_while_a_command_runs_and_once_more_after_it
        only_its_own_processes_are_named
        what_leads_to_the_network_ends_with_the_command_and_is_not_repeated
        landlock_has_no_network_and_the_model_is_told
        nothing_is_written_in_plan
        jobs_are_told_of_and_can_be_ended
        a_job_that_never_stops_talking_is_told_of_now_and_then
    }
    servant {
        its_three_pipes_are_apart
        it_ends_with_the_last_who_holds_it
        it_ends_with_its_workspace
        its_memory_is_that_of_all_it_started
        it_ends_with_an_owner_that_was_killed
        all_are_dismissed_and_new_ones_can_come
        one_that_nobody_waits_for_is_ended
        a_flood_of_complaints_costs_little
        it_cannot_get_out_of_its_cage
        it_changes_nothing_in_plan
        its_own_folder_is_its_own
        it_reaches_its_own_hosts_and_no_others
        what_cannot_be_started_says_why
        what_ends_at_once_says_why
        it_is_caged_or_not_started
        a_hundred_rounds_leave_nothing_behind
        a_servant_costs_little
    }
    terminal {
        it_is_a_terminal_of_the_size_that_was_asked_for
        a_conversation_works
        what_is_typed_can_interrupt
        what_it_starts_ends_with_it
    }
    crowd {
        one_that_keeps_asking_is_ended_all_the_same
        a_keeper_without_descriptors_goes_on
    }
    limits {
        a_fork_bomb_is_stopped
        a_bomb_in_the_background_is_stopped
        files_and_cores_are_bounded
        a_cage_bounds_files
        a_cage_does_not_hide_a_fork_bomb
        a_flood_from_a_cage_costs_little
        a_command_costs_little_more_than_itself
    }
};

fn main() -> ExitCode {
    let (first, all) = checks::arguments();
    match first.as_deref() {
        Some("errand") => checks::ended(windlass_sandbox::keeper()),
        Some("owner") => yard::own(&all[1..]),
        Some("master") => servant::own(),
        Some(_) | None => checks::run(CHECKS, &all),
    }
}
