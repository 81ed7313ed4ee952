//! Tests with real formatters and with misbehaving ones.
//!
//! The supervisor of the formatter processes is this program. So it has its own `main`: as a helper
//! it is the supervisor, otherwise it runs the tests below.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests create files directly and fail by panicking"
)]

mod formatting;
mod misbehaving;
mod real_formatters;
mod support;

use std::process::ExitCode;
use windlass_testkit::test_main::{self, NamedTest};

const CHECKS: &[NamedTest] = windlass_testkit::test_list! {
    formatting {
        formatted_content_is_written_and_recorded
        an_unformatted_file_keeps_every_byte
        a_preview_shows_the_formatted_content
        a_change_that_formatting_reverts_fails
        a_patch_formats_only_files_that_were_formatted
        a_byte_order_mark_stays_and_other_encodings_are_not_formatted
        an_unconfigured_formatter_is_not_run
        writes_of_the_user_are_formatted
        a_file_is_formatted_again_after_a_syntax_error
    }
    misbehaving {
        a_misbehaving_formatter_cannot_prevent_a_write
        child_processes_of_a_formatter_are_killed
        a_missing_formatter_is_reported_once
        a_rule_may_deny_a_formatter
        a_formatter_that_fails_three_times_is_disabled
        a_canceled_call_writes_nothing
        a_formatter_cannot_change_the_project
        many_files_share_one_time_limit
    }
    real_formatters {
        rustfmt_formats_edits
        prettier_formats_edits
        ruff_formats_edits
        black_formats_edits
        clang_format_formats_edits
        shfmt_formats_edits
    }
};

fn main() -> ExitCode {
    test_main::main(CHECKS, windlass_sandbox::run_supervisor)
}
