//! Any bytes from a language server, in any pieces: the same messages are found, each within its
//! bounds, little is kept, and what is framed is read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_lsp::frame::{BODY, Fault, Frames, HEAD, framed};

fn read(data: &[u8], size: usize) -> (Vec<Vec<u8>>, Option<Fault>) {
    let (mut frames, mut found) = (Frames::default(), Vec::new());
    for mut piece in data.chunks(size.max(1)) {
        while !piece.is_empty() {
            match frames.step(&mut piece) {
                Ok(Some(body)) => found.push(body),
                Ok(None) => assert!(piece.is_empty()),
                Err(fault) => return (found, Some(fault)),
            }
            assert!(frames.weight() <= BODY + HEAD + 1);
        }
    }
    (found, None)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (size, data) = input;
    let whole = read(data, data.len());
    assert_eq!(read(data, usize::from(size)), whole);
    assert!(whole.0.iter().map(Vec::len).sum::<usize>() <= data.len());
    assert_eq!(read(&framed(data), usize::from(size)), (vec![data.to_vec()], None));
});
