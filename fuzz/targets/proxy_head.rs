//! Parses any bytes as the head of a proxy request: a head that is forwarded names the host that was
//! checked, once.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    assert!(windlass_sandbox::check_proxy_head_invariants(data));
});
