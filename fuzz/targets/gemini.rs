//! Any bytes as an answer.
#![no_main]

mod stream;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    stream::check(windlass_llm::wire::Format::Gemini, data);
});
