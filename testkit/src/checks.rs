//! A test program with a main of its own, for tests whose own executable is also what they start: on
//! an errand it is the keeper of commands, and otherwise it runs its checks. It answers as much of the
//! usual test program's options as its callers need.

use std::process::ExitCode;

/// A check, by its name.
pub type Check = (&'static str, fn());

/// The checks of modules: `module { name name }`, each a `pub fn()`.
#[macro_export]
macro_rules! checks {
    ($($module:ident { $($name:ident)* })*) => {
        &[$($((concat!(stringify!($module), "::", stringify!($name)), $module::$name as fn()),)*)*]
    };
}

/// What the program was started for: the first of its arguments, and all of them.
pub fn arguments() -> (Option<String>, Vec<String>) {
    let all: Vec<String> = std::env::args().skip(1).collect();
    (all.first().cloned(), all)
}

/// The main of a program whose only errand is this one.
pub fn main<E>(checks: &[Check], errand: impl FnOnce() -> Result<(), E>) -> ExitCode {
    match arguments() {
        (Some(first), _) if first == "errand" => ended(errand()),
        (_, all) => run(checks, &all),
    }
}

/// How an errand ended, for whoever sent it.
pub fn ended<E>(errand: Result<(), E>) -> ExitCode {
    match errand {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Lists the checks, or runs those that are wanted.
#[allow(clippy::print_stdout, reason = "who runs tests reads it")]
pub fn run(checks: &[Check], arguments: &[String]) -> ExitCode {
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
