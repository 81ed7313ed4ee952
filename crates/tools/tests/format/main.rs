//! Formatters as they really behave: real ones, and ones that do everything wrong.
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

mod good;
mod odd;
mod real;
mod site;

use std::process::ExitCode;
use windlass_testkit::checks::{self, Check};

const CHECKS: &[Check] = windlass_testkit::checks! {
    good {
        what_is_written_is_what_was_formatted_and_on_record
        a_file_that_was_not_kept_formatted_keeps_every_byte
        a_preview_shows_what_is_written
        a_change_of_layout_alone_is_no_change
        a_patch_is_formatted_whole_and_what_is_moved_stays_as_it_was
        a_mark_stays_and_other_encodings_are_left_alone
        what_is_not_set_up_is_not_run
        a_person_is_served_as_a_model_is
        a_file_that_could_not_be_read_for_a_while_is_formatted_again
    }
    odd {
        whatever_it_does_the_wanted_bytes_stand
        what_it_leaves_running_is_ended
        one_that_is_not_there_is_spoken_of_once
        a_rule_against_it_is_obeyed
        one_that_fails_three_times_is_left_out
        a_call_that_is_stopped_writes_nothing
        it_cannot_change_the_project
        many_files_wait_for_it_no_longer_than_one_call_may
    }
    real {
        rustfmt_agrees
        prettier_agrees
        ruff_agrees
        black_agrees
        clang_format_agrees
        shfmt_agrees
    }
};

fn main() -> ExitCode {
    checks::main(CHECKS, windlass_sandbox::keeper)
}
