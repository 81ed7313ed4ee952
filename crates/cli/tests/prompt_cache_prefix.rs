//! Prompt caching: each request begins with the previous one. Fifty turns with the binary, each in
//! its own process, with files that another program changes, another mode, and a subagent.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::Value;
use support::TestEnv;
use windlass_testkit::{ModelScript, ScriptedModel};

const TURNS: usize = 50;

/// Returns the tool call of a turn; a text follows in the next reply.
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

/// Returns the parts of a request in the order in which a provider caches them, without
/// `cache_control`.
fn cached_text(request: &Value) -> String {
    fn remove_cache_marks(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.remove("cache_control");
                map.values_mut().for_each(remove_cache_marks);
            }
            Value::Array(list) => list.iter_mut().for_each(remove_cache_marks),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut request = request.clone();
    remove_cache_marks(&mut request);
    let part =
        |names: &[&str]| names.iter().find_map(|name| request.get(name)).map(Value::to_string);
    let mut text = part(&["tools"]).unwrap();
    text.push_str(&part(&["system", "instructions", "systemInstruction"]).unwrap_or_default());
    let list = part(&["messages", "input", "contents"]).unwrap();
    text.push_str(list.strip_suffix(']').unwrap());
    text
}

fn provider(api: &str, model: &ScriptedModel) -> String {
    let url = model.url();
    format!(r#"{{"api": "{api}", "base_url": "{url}", "api_key": "k", "models": {{"m": {{}}}}}}"#)
}

fn check_that_requests_share_a_prefix(api: &str) {
    let replies: Vec<String> = (1..=TURNS)
        .flat_map(|turn| [call(turn), format!("say Turn {turn} is done, all of it.")])
        .collect();
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let env = TestEnv::new(&replies, "");
    let child = ScriptedModel::start(ModelScript::new([
        "call read {\"filePath\": \"README.md\"}",
        "say Seen.",
    ]));
    env.write_config(&format!(
        r#"{{"model": "scripted/m", "permission": "allow", "provider": {{"scripted": {}, "child": {}}}}}"#,
        provider(api, &env.model),
        provider(api, &child)
    ));
    let agents = env.home().join(".config/windlass/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let helper = "---\ndescription: Helps\nmode: subagent\nmodel: child/m\n---\nYou help.\n";
    std::fs::write(agents.join("helper.md"), helper).unwrap();
    for turn in 1..=TURNS {
        if turn.is_multiple_of(7) {
            let text = format!("# Hello\nAnother program wrote this before turn {turn}.\n");
            std::fs::write(env.root().join("README.md"), text).unwrap();
        }
        let prompt = format!("Task {turn}: {}", "words ".repeat(turn % 9));
        let mut arguments = vec!["run", "--yes", &prompt];
        if turn > 1 {
            arguments.push("--continue");
        }
        if (20..25).contains(&turn) {
            arguments.extend(["--mode", "plan"]);
        }
        let (code, _, stderr) = env.run(&arguments);
        assert_eq!(code, 0, "turn {turn}: {stderr}");
    }
    let requests: Vec<String> = env.model.requests().iter().map(cached_text).collect();
    assert_eq!(requests.len(), 2 * TURNS);
    assert!(child.requests().len() >= 10, "{}", child.requests().len());
    let last = requests.last().unwrap();
    for text in ["README.md", "Mode: plan: ", "Turn 49 is done"] {
        assert!(last.contains(text), "{text}");
    }
    let (mut not_shared, mut sent) = (0, 0);
    for (index, pair) in requests.windows(2).enumerate() {
        let (before, after) = (pair[0].as_bytes(), pair[1].as_bytes());
        let same = before.iter().zip(after).take_while(|(one, two)| one == two).count();
        let shorter = before.len().min(after.len());
        (not_shared, sent) = (not_shared + shorter - same, sent + after.len());
        let from = same.saturating_sub(40);
        assert!(
            same * 100 >= shorter * 99,
            "request {}: {} of {shorter} bytes are not shared, after {}",
            index + 2,
            shorter - same,
            String::from_utf8_lossy(&before[from..(same + 80).min(before.len())])
        );
    }
    println!("{api}: {not_shared} of {sent} bytes not shared with the previous request");
}

#[test]
fn the_prefix_is_stable_in_openai_chat() {
    check_that_requests_share_a_prefix("openai-chat");
}

#[test]
fn the_prefix_is_stable_in_openai_responses() {
    check_that_requests_share_a_prefix("openai-responses");
}

#[test]
fn the_prefix_is_stable_in_anthropic() {
    check_that_requests_share_a_prefix("anthropic");
}

#[test]
fn the_prefix_is_stable_in_gemini() {
    check_that_requests_share_a_prefix("gemini");
}
