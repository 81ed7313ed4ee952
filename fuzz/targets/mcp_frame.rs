//! Reads any bytes as the output of an MCP server: the messages do not depend on the chunks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_mcp::decode_server_output;

fuzz_target!(|input: (u8, &[u8])| {
    let (size, data) = input;
    let whole = decode_server_output(data, data.len());
    assert_eq!(decode_server_output(data, usize::from(size)), whole);
});
