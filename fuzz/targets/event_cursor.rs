//! Parses any text as a cursor: one that is valid is written as a text that means the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_protocol::EventCursor;

fuzz_target!(|text: &str| {
    let Ok(cursor) = text.parse::<EventCursor>() else { return };
    assert_eq!(cursor.to_string().parse().as_ref(), Ok(&cursor));
});
