//! Any text as what a local model writes.
#![no_main]

use windlass_llm::ModelEvent;
use windlass_llm::sift::Sift;
use windlass_protocol::{Finish, Usage};

fn sift(text: &str, piece: usize, finish: Finish) -> (String, String, Vec<ModelEvent>) {
    let mut sift = Sift::new(true, Some(vec!["read".into(), "write".into()]));
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let at = rest.ceil_char_boundary(piece.max(1).min(rest.len()));
        let (now, later) = rest.split_at(at);
        sift.take(ModelEvent::Text(now.to_owned()), &mut out);
        rest = later;
    }
    let end = ModelEvent::Ended { finish, usage: Usage::default() };
    sift.take(end, &mut out);
    let (mut said, mut thought, mut others) = (String::new(), String::new(), Vec::new());
    for event in out {
        match event {
            ModelEvent::Text(text) => said += &text,
            ModelEvent::Reasoning(text) => thought += &text,
            other => others.push(other),
        }
    }
    (said, thought, others)
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (piece, data) = data.split_first().map_or((1, data), |(first, rest)| (*first as usize, rest));
    let text = String::from_utf8_lossy(data);
    let whole = sift(&text, text.len(), Finish::Stop);
    assert!(whole.0.len() + whole.1.len() <= text.len());
    assert_eq!(sift(&text, piece, Finish::Stop), whole);
    // An answer that was cut off makes no call.
    let cut = sift(&text, piece, Finish::Length);
    assert_eq!(cut.2.len(), 1);
});
