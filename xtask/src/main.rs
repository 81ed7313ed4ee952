//! Chores of the project: `cargo xtask tidy` checks what compilers and lints do not, and
//! `cargo xtask soak` runs the tests that are too long for every change.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a chore looks at the project from outside, and tells"
)]

mod soak;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let result = match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy::check(root),
        Some("soak") => soak::run(root),
        _ => {
            eprintln!("cargo xtask tidy   checks the project's own rules");
            eprintln!("cargo xtask soak   runs the long tests");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(faults) if faults.is_empty() => ExitCode::SUCCESS,
        Ok(faults) => {
            for fault in faults {
                eprintln!("{fault}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
