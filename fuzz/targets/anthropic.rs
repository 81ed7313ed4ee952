//! Decodes any bytes as a response in the Anthropic format.
#![no_main]

mod stream;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    stream::check(windlass_llm::wire_format::WireFormat::Anthropic, data);
});
