//! Servers that the config names: their tools are called in a session, with everything that holds
//! for any other tool.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use yard::Yard;

const ROGUE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/rogue.py");

fn settings(way: &str, more: &str) -> String {
    format!(r#""mcp": {{"r": {{"command": ["python3", "{{folder}}/rogue.py", "{way}"]}}}}{more}"#)
}

fn yard(replies: &[&str], way: &str, more: &str) -> Yard {
    let yard = Yard::new(replies, &settings(way, more));
    std::fs::copy(ROGUE, yard.root().join("rogue.py")).unwrap();
    yard
}

#[test]
fn a_servers_tool_is_called_by_a_person_and_then_by_a_model() {
    let replies = [r#"call r_echo {"text": "hello"}"#, "say Done."];
    let yard = yard(&replies, "good", r#", "permission": {"r_*": "allow"}"#);
    let (code, out, notes) = yard.run(&["tool", "call", "r_echo", r#"{"text": "one"}"#]);
    assert!(code == 0 && out.contains("echo: one"), "{out}\n{notes}");
    let (_, listed, _) = yard.run(&["tool", "list", "--json"]);
    assert!(listed.contains("r_picture"), "what was seen once is known: {listed}");
    let (code, out, notes) = yard.run(&["run", "Say hello"]);
    assert!(code == 0 && out.contains("Done."), "{out}\n{notes}");
    let facts = serde_json::to_string(&yard.facts()).unwrap();
    assert!(facts.contains("echo: hello") && facts.contains(r#""tool":"r_echo""#), "{facts}");
}

#[test]
fn nobody_is_there_to_say_yes_so_it_is_not_called() {
    let yard = yard(&[], "good", "");
    let (code, out, notes) = yard.run(&["tool", "call", "r_echo", r#"{"text": "one"}"#]);
    assert!(code != 0 && !out.contains("echo: one"), "{out}\n{notes}");
}

#[test]
fn a_server_that_cannot_be_started_is_told_and_holds_up_nobody() {
    let yard = yard(&["say Hello."], "exit_at_start", "");
    let (code, out, _) = yard.run(&["run", "Hello"]);
    assert!(code == 0 && out.contains("Hello."), "{out}");
    let (_, _, notes) = yard.run(&["tool", "call", "read", r#"{"path": "README.md"}"#]);
    assert!(notes.contains("exited with code 7") && notes.contains("licence"), "{notes}");
}
