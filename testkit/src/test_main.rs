//! A `main` for tests whose executable is also the supervisor of the processes that they start: as
//! a helper it is the supervisor, otherwise it runs its tests. It supports the options of the usual
//! test harness that its callers need.

use std::process::ExitCode;

/// A test function with its name.
pub type NamedTest = (&'static str, fn());

/// Lists the tests of modules: `module { name name }`, each a `pub fn()`.
#[macro_export]
macro_rules! test_list {
    ($($module:ident { $($name:ident)* })*) => {
        &[$($((concat!(stringify!($module), "::", stringify!($name)), $module::$name as fn()),)*)*]
    };
}

/// Returns the first argument of the program, and all of them.
pub fn arguments() -> (Option<String>, Vec<String>) {
    let all: Vec<String> = std::env::args().skip(1).collect();
    (all.first().cloned(), all)
}

/// Runs the only helper of a program, or its tests.
pub fn main<E>(checks: &[NamedTest], helper: impl FnOnce() -> Result<(), E>) -> ExitCode {
    match arguments() {
        (Some(first), _) if first == "helper" => exit_code(helper()),
        (_, all) => run(checks, &all),
    }
}

/// Converts the result of a helper to an exit code.
pub fn exit_code<E>(helper: Result<(), E>) -> ExitCode {
    match helper {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Lists the tests, or runs those that match the arguments.
#[allow(clippy::print_stdout, reason = "test runners read it")]
pub fn run(checks: &[NamedTest], arguments: &[String]) -> ExitCode {
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if has("--list") {
        for (name, _) in checks.iter().filter(|_| !has("--ignored")) {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<_> = arguments.iter().filter(|word| !word.starts_with("--")).collect();
    let matches = |name: &str| match has("--exact") {
        true => wanted.iter().any(|word| *word == name),
        false => wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str())),
    };
    let mut failed = 0;
    for (name, check) in checks.iter().filter(|(name, _)| matches(name)) {
        let passed = std::panic::catch_unwind(check).is_ok();
        println!("{name}: {}", if passed { "ok" } else { "FAILED" });
        failed += u8::from(!passed);
    }
    ExitCode::from(failed)
}
