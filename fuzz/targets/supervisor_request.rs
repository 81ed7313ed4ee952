//! Decodes any bytes as a request to the supervisor: without a panic, and to the same request when it
//! is encoded again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    assert!(windlass_sandbox::decode_request(data));
});
