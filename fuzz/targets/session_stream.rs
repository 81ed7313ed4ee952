//! Decodes any bytes as the event stream of a session: the items do not depend on the chunks, and
//! facts come once and in order.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use windlass_protocol::session_stream::SessionStreamItem;
use windlass_server::decode_session_stream;

fuzz_target!(|input: (u8, &[u8])| {
    let (chunk_bytes, data) = input;
    let session = "0192f0c4-7e2a-7d1b-8a34-1f2e3d4c5b6a".parse().unwrap();
    let items = decode_session_stream(session, data, data.len());
    let again = decode_session_stream(session, data, usize::from(chunk_bytes));
    assert_eq!(format!("{again:?}"), format!("{items:?}"));
    let mut positions = BTreeMap::new();
    for item in items {
        match item {
            SessionStreamItem::Fact(record, _) => {
                let before = positions.insert(record.session, record.seq).unwrap_or(0);
                assert!(record.seq > before);
            }
            SessionStreamItem::Reset(reset) => {
                positions.insert(reset.session, reset.to.seq);
            }
            _ => {}
        }
    }
});
