//! What a provider has cached it is sent again: fifty turns with the binary, each in a process of
//! its own, with files that somebody else changes, another mode, and an agent that is put to work.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use serde_json::Value;
use windlass_testkit::{Model, Script};
use yard::Yard;

const TURNS: usize = 50;

/// A call of each turn; the answer follows.
fn call(turn: usize) -> String {
    match turn {
        _ if turn % 10 == 5 => {
            r#"call task {"description": "d", "prompt": "do it", "subagent_type": "helper"}"#.into()
        }
        _ if turn.is_multiple_of(3) => r#"call read {"filePath": "README.md"}"#.into(),
        _ if turn % 3 == 1 => {
            format!(r#"call write {{"filePath": "f{turn}.txt", "content": "Turn {turn}.\n"}}"#)
        }
        _ => r#"call bash {"command": "ls", "description": "Lists"}"#.into(),
    }
}

/// What a provider reads, in the order in which it does, without the marks that say how far to
/// keep it.
fn read(request: &Value) -> String {
    fn unmarked(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.remove("cache_control");
                map.values_mut().for_each(unmarked);
            }
            Value::Array(list) => list.iter_mut().for_each(unmarked),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut request = request.clone();
    unmarked(&mut request);
    let part =
        |names: &[&str]| names.iter().find_map(|name| request.get(name)).map(Value::to_string);
    let mut text = part(&["tools"]).unwrap();
    text.push_str(&part(&["system", "instructions", "systemInstruction"]).unwrap_or_default());
    let list = part(&["messages", "input", "contents"]).unwrap();
    text.push_str(list.strip_suffix(']').unwrap());
    text
}

fn provider(api: &str, model: &Model) -> String {
    let url = model.url();
    format!(r#"{{"api": "{api}", "base_url": "{url}", "api_key": "k", "models": {{"m": {{}}}}}}"#)
}

fn every_request_begins_with_the_one_before(api: &str) {
    let replies: Vec<String> = (1..=TURNS)
        .flat_map(|turn| [call(turn), format!("say Turn {turn} is done, all of it.")])
        .collect();
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let yard = Yard::new(&replies, "");
    let child = Model::start(Script::new(["call read {\"filePath\": \"README.md\"}", "say Seen."]));
    yard.write_config(&format!(
        r#"{{"model": "scripted/m", "permission": "allow", "provider": {{"scripted": {}, "child": {}}}}}"#,
        provider(api, &yard.model),
        provider(api, &child)
    ));
    let agents = yard.home().join(".config/windlass/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let helper = "---\ndescription: Helps\nmode: subagent\nmodel: child/m\n---\nYou help.\n";
    std::fs::write(agents.join("helper.md"), helper).unwrap();
    for turn in 1..=TURNS {
        if turn.is_multiple_of(7) {
            let text = format!("# Hello\nSomebody wrote this before turn {turn}.\n");
            std::fs::write(yard.root().join("README.md"), text).unwrap();
        }
        let prompt = format!("Task {turn}: {}", "words ".repeat(turn % 9));
        let mut arguments = vec!["run", "--yes", &prompt];
        if turn > 1 {
            arguments.push("--continue");
        }
        if (20..25).contains(&turn) {
            arguments.extend(["--mode", "plan"]);
        }
        let (code, _, told) = yard.run(&arguments);
        assert_eq!(code, 0, "turn {turn}: {told}");
    }
    let requests: Vec<String> = yard.model.requests().iter().map(read).collect();
    assert_eq!(requests.len(), 2 * TURNS);
    assert!(child.requests().len() >= 10, "{}", child.requests().len());
    let last = requests.last().unwrap();
    for told in ["README.md", "Mode: plan: ", "Turn 49 is done"] {
        assert!(last.contains(told), "{told}");
    }
    let (mut lost, mut sent) = (0, 0);
    for (index, pair) in requests.windows(2).enumerate() {
        let (before, after) = (pair[0].as_bytes(), pair[1].as_bytes());
        let same = before.iter().zip(after).take_while(|(one, two)| one == two).count();
        let shorter = before.len().min(after.len());
        (lost, sent) = (lost + shorter - same, sent + after.len());
        let from = same.saturating_sub(40);
        assert!(
            same * 100 >= shorter * 99,
            "request {}: {} of {shorter} bytes are not shared, after {}",
            index + 2,
            shorter - same,
            String::from_utf8_lossy(&before[from..(same + 80).min(before.len())])
        );
    }
    println!("{api}: {lost} of {sent} bytes not shared with the request before");
}

#[test]
fn the_beginning_stays_in_openai_chat() {
    every_request_begins_with_the_one_before("openai-chat");
}

#[test]
fn the_beginning_stays_in_openai_responses() {
    every_request_begins_with_the_one_before("openai-responses");
}

#[test]
fn the_beginning_stays_in_anthropic() {
    every_request_begins_with_the_one_before("anthropic");
}

#[test]
fn the_beginning_stays_in_gemini() {
    every_request_begins_with_the_one_before("gemini");
}
