//! Tests with real language servers: queries about small projects, and reviews of edits.
//!
//! They run only if `WINDLASS_LANGUAGE_SERVERS` names a folder with the servers:
//! `npm/node_modules/.bin` (and a node there or in `n22`), `language-servers/bin`, and
//! `ra/bin/rust-analyzer`. Otherwise every test prints what it skips. The supervisor of their
//! processes is this executable.
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

mod edits;
mod protocol_trace;
mod queries;
mod support;

use std::process::ExitCode;
use windlass_testkit::test_main::{self, NamedTest};

const CHECKS: &[NamedTest] = windlass_testkit::test_list! {
    queries {
        typescript_supports_all_nine_queries
        pyright_supports_eight_queries
        clangd_supports_all_nine_queries
        bash_supports_five_queries_and_reports_the_others
        yaml_supports_three_queries
        ruff_supports_only_hover
        rust_analyzer_answers_queries
        workspace_symbols_come_from_all_servers
        a_missing_program_is_reported_with_its_install_command
    }
    protocol_trace {
        every_message_matches_the_protocol_types
        late_diagnostics_are_reported_between_steps
        the_changes_of_a_step_wait_together
        a_server_that_starts_slowly_reports_later
    }
    edits {
        typescript_reports_an_error_and_its_fix
        pyright_reports_an_error_and_its_fix
        clangd_reports_an_error_and_its_fix
        yaml_reports_an_error_and_its_fix
        shellcheck_reports_an_error_and_its_fix
        ruff_reports_lint_errors
        rust_analyzer_reports_an_error_in_time_or_later
        new_errors_in_other_files_are_reported
        existing_diagnostics_are_not_repeated
        external_changes_are_noticed
    }
};

fn main() -> ExitCode {
    test_main::main(CHECKS, windlass_sandbox::run_supervisor)
}
