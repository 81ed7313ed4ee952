//! Any text as a command: it is read in bounded time, its scopes are closed, and if nothing is
//! doubted every word is known and none hides anything.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    assert!(windlass_permission::probe_shell(text), "{text:?}");
});
