//! Tests of `parse_arguments`: repairs, rejections, and content that is never changed.

use super::parse_arguments;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;
use proptest::{collection::vec, prop_assert, prop_assert_eq};
use serde_json::{Map, Value, json};

const FENCE: &str = "the code fence around the arguments was removed";
const COMMAS: &str = "trailing commas were removed";
const QUOTES: &str = "single quotes around strings were read as double quotes";
const KEYS: &str = "keys without quotes were quoted";
const COMMENTS: &str = "comments were removed";
const CONTROLS: &str = "raw line breaks or control characters in strings were escaped";
const WORDS: &str = "True, False or None were read as true, false or null";
const ENCODED: &str = "the arguments were JSON inside a string";

#[test]
fn unambiguous_arguments_are_repaired_and_the_changes_listed() {
    for (input, value, changes) in [
        ("", json!({}), vec![]),
        (" \n", json!({}), vec![]),
        (r#"{"a": "x\ny"}"#, json!({"a": "x\ny"}), vec![]),
        ("7", json!(7), vec![]),
        ("```json\n{\"a\": 1}\n```", json!({"a": 1}), vec![FENCE]),
        ("  ```\n{\"a\": \"```\"}```\n", json!({"a": "```"}), vec![FENCE]),
        (
            r#"{"a": [1, 2,], "b": {"c": 3 , } ,}"#,
            json!({"a": [1, 2], "b": {"c": 3}}),
            vec![COMMAS],
        ),
        ("{'a': 'b'}", json!({"a": "b"}), vec![QUOTES]),
        (
            r#"{'a': 'it\'s "so" \"and\" so\n'}"#,
            json!({"a": "it's \"so\" \"and\" so\n"}),
            vec![QUOTES],
        ),
        (
            r#"{a: 1, $b_2: 2, c-d: 3, true: 4}"#,
            json!({"a": 1, "$b_2": 2, "c-d": 3, "true": 4}),
            vec![KEYS],
        ),
        (
            "{\"a\": 1, // one\n /* two, */ \"b\": 2} // end",
            json!({"a": 1, "b": 2}),
            vec![COMMENTS],
        ),
        (
            "{\"a\": \"// no\", \"b\": \"/* no */\",}",
            json!({"a": "// no", "b": "/* no */"}),
            vec![COMMAS],
        ),
        ("{\"a\": \"x\n\ty\u{1}\"}", json!({"a": "x\n\ty\u{1}"}), vec![CONTROLS]),
        ("{\"a\": \"x\r\ny\"}", json!({"a": "x\r\ny"}), vec![CONTROLS]),
        ("{\"a\": True, \"b\": [False,None]}", json!({"a": true, "b": [false, null]}), vec![WORDS]),
        ("{\"a\": \"True, None\",}", json!({"a": "True, None"}), vec![COMMAS]),
        (r#""{\"a\":1}""#, json!({"a": 1}), vec![ENCODED]),
        (r#""{'a': \"{}\",}""#, json!({"a": "{}"}), vec![ENCODED, QUOTES, COMMAS]),
        ("```\n{a: 'b\n',}\n```", json!({"a": "b\n"}), vec![FENCE, KEYS, QUOTES, CONTROLS, COMMAS]),
        ("{\"a\": \"“x” ‘y’ \u{a0}\",}", json!({"a": "“x” ‘y’ \u{a0}"}), vec![COMMAS]),
        (r#"{"a": "\ud83d\ude00", "n": -0.5e-3,}"#, json!({"a": "😀", "n": -0.5e-3}), vec![COMMAS]),
    ] {
        let parsed = parse_arguments(input).unwrap_or_else(|error| panic!("{input}: {error}"));
        assert_eq!(parsed.value, value, "{input}");
        assert_eq!(parsed.changes, changes, "{input}");
    }
}

#[test]
fn ambiguous_arguments_are_rejected_with_their_position() {
    let refusals: Vec<String> = [
        r#"{"a": "say "hi"}"#,
        "{'a': 'it's'}",
        "{\"a\": 1 \"b\": 2}",
        "{\n  'a': 1,\n  b: 2,,\n}",
        "{\"a\": 1 2}",
        "{\"a\": tr/**/ue}",
        "[,]",
        "{\"a\": 1},",
        "{\"a\": 1}}",
        "{\"a\": .5}",
        "{\"a\": NaN,}",
        "{\"a\": yes}",
        r#"{'a': '\d'}"#,
        r#"{"a": "\'",}"#,
        "{\"a\": \"x\\\ny\",}",
        r#"{"a": "\ud800",}"#,
        "{“a”: 1}",
        "call read with {\"a\": 1}",
        "```json\n{'a': 1 2}\n```",
        r#""{\"a\" 1}""#,
    ]
    .iter()
    .map(|input| parse_arguments(input).expect_err(input))
    .collect();
    expect_test::expect![[r#"
        expected `,` or `}` at line 1, column 13, near `hi"}`
        expected `,` or `}` at line 1, column 11, near `s'}`
        expected `,` or `}` at line 1, column 9, near `"b": 2}`
        key must be a string at line 3, column 8, near `,`
        expected `,` or `}` at line 1, column 9, near `2}`
        expected ident at line 1, column 9, near `/**/ue}`
        expected value at line 1, column 2, near `,]`
        trailing characters at line 1, column 9, near `,`
        trailing characters at line 1, column 9, near `}`
        expected value at line 1, column 7, near `.5}`
        expected value at line 1, column 7, near `NaN,}`
        expected value at line 1, column 7, near `yes}`
        invalid escape at line 1, column 9, near `d'}`
        invalid escape at line 1, column 9, near `'",}`
        invalid backslash before a line break or control character at line 1, column 9, near `\`
        unexpected end of hex escape at line 1, column 14, near `",}`
        key must be a string at line 1, column 2, near `“a”: 1}`
        expected value at line 1, column 1, near `call read with {"a":`
        expected `,` or `}` at line 2, column 9, near `2}`
        they are a string with invalid JSON: expected `:` at line 1, column 6, near `1}`"#]]
    .assert_eq(&refusals.join("\n"));
}

#[test]
fn truncated_arguments_are_rejected_as_truncated() {
    let refusals: Vec<String> = [
        "{",
        "{\"a\": \"hel",
        "{\"a\": 'hel\\",
        "{\"a\": [1, ",
        "{\"a\": 1,",
        "{\"a\": tr",
        "{\"a\": 1 // }",
        "{\"a\": 1} /* and",
        "```json\n{\"a\": 1}\n``",
        "```json\n{\"a\": \"x```",
        r#""{\"a\": \"x""#,
    ]
    .iter()
    .map(|input| parse_arguments(input).expect_err(input))
    .collect();
    expect_test::expect![[r#"
        they end in the middle of an object; they may be truncated
        they end in the middle of a string; they may be truncated
        they end in the middle of a string; they may be truncated
        they end in the middle of an array; they may be truncated
        they end in the middle of an object; they may be truncated
        they end in the middle of an object; they may be truncated
        they end in the middle of an object; they may be truncated
        they end in the middle of a comment; they may be truncated
        the code fence around them is not closed; they may be truncated
        they end in the middle of a string; they may be truncated
        they are a string with invalid JSON: they end in the middle of a string; they may be truncated"#]].assert_eq(&refusals.join("\n"));
}

#[test]
fn hostile_depth_and_length_are_rejected_quickly() {
    for unit in ["[", "{\"a\":", "{a:", "'", "/*", "```", "\"[", "[,", ",", "\\", "{'a':["] {
        let text = unit.repeat(200_000);
        assert!(parse_arguments(&text).is_err(), "{unit}");
        assert!(parse_arguments(&format!("```{text}```")).is_err(), "{unit}");
    }
    let deep = format!("{{a: {}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    assert!(parse_arguments(&deep).unwrap_err().starts_with("recursion limit exceeded"));
    let nested = (0..12).fold("{}".to_owned(), |inner, _| Value::String(inner).to_string());
    assert!(parse_arguments(&nested).is_ok_and(|parsed| parsed.value.is_string()));
}

/// Text with everything that could confuse: quotes, escapes, comments, fences, commas, words.
fn text() -> impl Strategy<Value = String> {
    let pieces = [
        "\"", "'", "\\", "\n", "\t", "\r", "\u{1}", "//", "/*", "*/", "```", ",", "}", "]", "{",
        "[", ":", "True", "None", " ", "a", "ü", "“", "\u{2028}", "\\n", "\\u0041",
    ];
    let piece = prop_oneof![
        4 => proptest::sample::select(pieces.to_vec()).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

pub(super) fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((text(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn objects() -> impl Strategy<Value = Map<String, Value>> {
    vec((text(), values()), 0..4).prop_map(|fields| fields.into_iter().collect())
}

/// A writer of loose JSON with these deviations.
#[derive(Clone, Copy, Default)]
struct TestLooseJsonWriter {
    commas: bool,
    raw_controls: bool,
    single_quotes: bool,
    comments: bool,
    python_literals: bool,
}

impl TestLooseJsonWriter {
    fn write(self, value: &Value) -> String {
        let gap = if self.comments { "/* \" ' , } */ // ]\n" } else { " " };
        let list = |open: &str, parts: Vec<String>, close: &str| {
            let comma = if self.commas && !parts.is_empty() { "," } else { "" };
            format!("{open}{gap}{}{gap}{comma}{gap}{close}", parts.join(&format!("{gap},{gap}")))
        };
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                list("[", items.iter().map(|item| self.write(item)).collect(), "]")
            }
            Value::Object(map) => {
                let field = |(name, value): (&String, &Value)| {
                    format!("{}{gap}:{gap}{}", self.string(name), self.write(value))
                };
                list("{", map.iter().map(field).collect(), "}")
            }
            Value::Bool(true) if self.python_literals => "True".into(),
            Value::Bool(false) if self.python_literals => "False".into(),
            Value::Null if self.python_literals => "None".into(),
            other => other.to_string(),
        }
    }

    fn string(self, text: &str) -> String {
        let json = Value::from(text).to_string();
        let mut inner = json[1..json.len() - 1].to_owned();
        if self.single_quotes {
            inner = inner.replace('\'', "\\'").replace("\\\"", "\"");
        }
        if self.raw_controls {
            // Splits at escaped backslashes, so that the next character is not read as an escape.
            let parts: Vec<String> = inner
                .split("\\\\")
                .map(|part| {
                    part.replace("\\n", "\n").replace("\\t", "\t").replace("\\u0001", "\u{1}")
                })
                .collect();
            inner = parts.join("\\\\");
        }
        let quote = if self.single_quotes { '\'' } else { '"' };
        format!("{quote}{inner}{quote}")
    }
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn valid_json_is_parsed_without_changes(object in objects()) {
        let value = Value::Object(object);
        for input in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let parsed = parse_arguments(&input).unwrap();
            prop_assert_eq!(&parsed.value, &value);
            prop_assert!(parsed.changes.is_empty());
        }
    }

    #[test]
    fn loose_json_is_parsed_to_the_same_value(object in objects(), bits in 0_u8..64) {
        let value = Value::Object(object);
        let is_set = |bit: u8| bits & (1 << bit) != 0;
        let writer = TestLooseJsonWriter {
            commas: is_set(0),
            raw_controls: is_set(1),
            single_quotes: is_set(2),
            comments: is_set(3),
            python_literals: is_set(4),
        };
        let mut input = writer.write(&value);
        if is_set(5) {
            input = format!("```json\n{input}\n```");
        }
        let plain = serde_json::from_str::<Value>(&input).is_ok();
        let to_failure = |error| {
            proptest::test_runner::TestCaseError::fail(format!("{input}: {error}"))
        };
        let parsed = parse_arguments(&input).map_err(to_failure)?;
        prop_assert_eq!(&parsed.value, &value, "{}", input);
        prop_assert_eq!(parsed.changes.is_empty(), plain);
        let is_listed = |change: &str| parsed.changes.iter().any(|listed| listed == change);
        prop_assert_eq!(is_listed(FENCE), is_set(5));
        prop_assert_eq!(is_listed(COMMENTS), writer.comments);
        let not_empty = value.as_object().is_some_and(|map| !map.is_empty());
        prop_assert!(!not_empty || is_listed(COMMAS) == writer.commas);
        prop_assert!(!not_empty || is_listed(QUOTES) == writer.single_quotes);
    }

    #[test]
    fn parsing_ends_for_any_input(input in text(), more in "[\\x00-\\x7f]{0,40}") {
        let _ = parse_arguments(&input);
        let _ = parse_arguments(&more);
        let _ = parse_arguments(&format!("{{{input}{more}}}"));
    }
}

proptest! {
    #![proptest_config(Config { cases: 40, failure_persistence: None, ..Config::default() })]

    #[test]
    fn truncated_input_is_never_accepted(object in objects(), bits in 0_u8..64) {
        let is_set = |bit: u8| bits & (1 << bit) != 0;
        let writer = TestLooseJsonWriter {
            commas: is_set(0),
            raw_controls: is_set(1),
            single_quotes: is_set(2),
            comments: is_set(3),
            python_literals: is_set(4),
        };
        let value = Value::Object(object);
        for whole in [
            value.to_string(),
            serde_json::to_string_pretty(&value).unwrap(),
            writer.write(&value),
            Value::from(value.to_string()).to_string(),
        ] {
            for (cut, _) in whole.char_indices().skip(1) {
                let part = &whole[..cut];
                prop_assert!(parse_arguments(part).is_err(), "{}", part);
                let fenced = format!("```json\n{part}\n```");
                prop_assert!(parse_arguments(&fenced).is_err(), "{}", fenced);
            }
        }
    }
}
