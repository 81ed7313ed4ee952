//! Parses any text as a shell command: in bounded time, with closed scopes, and if nothing is
//! uncertain, every word is known and none hides an expansion.
#![no_main]

use libfuzzer_sys::fuzz_target;

// One of the parsers can panic, which counts as a command that was not understood. The hook of the
// fuzzer would abort at such a panic.
fuzz_target!(init: std::panic::set_hook(Box::new(|_| {})), |text: &str| {
    assert!(windlass_permission::check_shell_invariants(text), "{text:?}");
});
