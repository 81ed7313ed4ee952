//! Analyzes any text as a `sed`, `awk` and `jq` script: a command that runs a program is always found.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    assert!(windlass_permission::check_script_invariants(text), "{text:?}");
});
