//! Parses any HTTP request: one that stands for a request of the front end becomes the same request
//! again when it is written and parsed, and needs a right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_server::routes::{RequestBody, all_routes, parse, required_right, to_http};

fuzz_target!(|input: (u8, &str, &str, &[u8])| {
    let (index, path, query, body) = input;
    let Some(route) = all_routes().nth(usize::from(index)) else { return };
    for path in [path, route.path] {
        let Ok(request) = parse(&route.method, path, Some(query), body) else { continue };
        required_right(&request);
        let Some(parts) = to_http(&request) else { panic!("{request:?} has no route") };
        let body = match parts.body {
            RequestBody::None => Vec::new(),
            RequestBody::Json(body) | RequestBody::Bytes(body) => body,
        };
        let again = parse(&parts.method, &parts.path, Some(&parts.query), &body);
        assert_eq!(again.as_ref(), Ok(&request));
    }
});
