//! Parses any text as a shell command: in bounded time, with closed scopes, and if nothing is
//! uncertain, every word is known and none hides an expansion.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    assert!(windlass_permission::check_shell_invariants(text), "{text:?}");
});
