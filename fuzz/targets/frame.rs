//! Decodes any bytes of a language server: the messages do not depend on the chunks, the buffer
//! stays within its limit, and encoded frames decode to the same messages.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_lsp::framing::{
    FrameDecoder, FramingError, MAX_BODY_BYTES, MAX_HEADER_BYTES, encode_frame,
};

fn decode_all(data: &[u8], size: usize) -> (Vec<Vec<u8>>, Option<FramingError>) {
    let (mut frames, mut messages) = (FrameDecoder::default(), Vec::new());
    for mut chunk in data.chunks(size.max(1)) {
        while !chunk.is_empty() {
            match frames.decode(&mut chunk) {
                Ok(Some(body)) => messages.push(body),
                Ok(None) => assert!(chunk.is_empty()),
                Err(error) => return (messages, Some(error)),
            }
            assert!(frames.buffered_bytes() <= MAX_BODY_BYTES + MAX_HEADER_BYTES + 1);
        }
    }
    (messages, None)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (size, data) = input;
    let whole = decode_all(data, data.len());
    assert_eq!(decode_all(data, usize::from(size)), whole);
    assert!(whole.0.iter().map(Vec::len).sum::<usize>() <= data.len());
    assert_eq!(decode_all(&encode_frame(data), usize::from(size)), (vec![data.to_vec()], None));
});
