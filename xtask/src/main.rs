//! Development tasks: `cargo xtask tidy` checks rules that the compiler and Clippy do not check,
//! `cargo xtask soak` runs the tests that take too long for every change, `cargo xtask shots`
//! renders the screenshots of the book, and `cargo xtask catalog` writes the table of models.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "development tasks read the project and print results"
)]

mod model_catalog;
mod screenshots;
mod soak;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["tidy"] => tidy::check(root),
        ["soak"] => soak::run(root),
        ["shots"] => screenshots::render_screenshots(root),
        ["catalog", file] => model_catalog::write_table(root, Path::new(file)),
        _ => {
            eprintln!("cargo xtask tidy           checks the project's own rules");
            eprintln!("cargo xtask soak           runs the long tests");
            eprintln!("cargo xtask shots          renders the screenshots of the book");
            eprintln!(
                "cargo xtask catalog FILE   writes the table of models from models.dev's JSON"
            );
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
