//! Real language servers: what they know of small projects, and what they make of edits.
//!
//! They run only where `WINDLASS_EYES` names a folder that has them: `npm/node_modules/.bin` (and a
//! node there or in `n22`), the Python environment `eyes`, and `ra/bin/rust-analyzer`. Without it
//! every check says what it leaves out. The keeper of what they start is this very program.
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

mod edits;
mod nine;
mod site;
mod words;

use std::process::ExitCode;
use windlass_testkit::checks::{self, Check};

const CHECKS: &[Check] = windlass_testkit::checks! {
    nine {
        typescript_knows_all_nine
        pyright_knows_eight
        clangd_knows_all_nine
        bash_knows_five_and_names_what_it_does_not
        yaml_knows_three
        ruff_knows_hover_alone
        rust_analyzer_knows_all_nine
        symbols_are_found_in_all_servers_at_once
        a_missing_program_is_named_with_how_to_get_it
    }
    words {
        everything_we_say_is_of_the_protocol
        what_comes_after_the_wait_is_told_between_steps
    }
    edits {
        typescript_tells_an_error_and_that_it_is_gone
        pyright_tells_an_error_and_that_it_is_gone
        clangd_tells_an_error_and_that_it_is_gone
        yaml_tells_an_error_and_that_it_is_gone
        shellcheck_tells_an_error_and_that_it_is_gone
        ruff_tells_what_it_counts_as_an_error
        rust_analyzer_tells_an_error_in_time_or_later
        other_files_that_break_are_told_of
        what_was_there_before_is_not_told_again
        a_file_that_changed_behind_our_back_is_seen
    }
};

fn main() -> ExitCode {
    checks::main(CHECKS, windlass_sandbox::keeper)
}
