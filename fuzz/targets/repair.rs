//! Parses and coerces any text as the arguments of a call, with a schema of all kinds of types.
#![no_main]

use serde_json::{Value, json};
use std::sync::LazyLock;
use windlass_toolkit::argument_repair;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "properties": {
            "filePath": {"type": "string"},
            "limit": {"type": "integer"},
            "ratio": {"type": "number"},
            "all": {"type": "boolean"},
            "names": {"type": "array", "items": {"type": "string"}},
            "inner": {"$ref": "#/$defs/inner"},
            "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/inner"}}]},
        },
        "required": ["filePath"],
        "additionalProperties": false,
        "$defs": {"inner": {"type": "object", "properties": {"again": {"$ref": "#/$defs/inner"}}}},
    })
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let Ok(mut read) = argument_repair::parse_arguments(&text) else { return };
    if read.changes.is_empty() && !text.trim().is_empty() {
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), read.value);
    }
    let before = read.changes.len();
    let plain = read.value.clone();
    argument_repair::coerce(&SCHEMA, &mut read.value, &mut read.changes);
    if read.changes.len() == before {
        assert_eq!(read.value, plain);
    }
    assert!(read.changes.len() < before + 12);
});
