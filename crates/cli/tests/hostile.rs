//! A model that means no good, over the real wire and in every format: what it sends ends in order,
//! in bounded time and memory, and what it did wrong is told to it.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use serde_json::{Value, json};
use std::io::Read;
use std::time::{Duration, Instant};
use windlass_protocol::{Fact, Outcome};
use windlass_testkit::grammar;
use yard::Yard;

const FORMATS: [&str; 4] = ["openai-chat", "openai-responses", "anthropic", "gemini"];

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a run may hold in memory at most, in kB.
const MOST_MEMORY: u64 = 300_000;

/// What came of a run.
struct Run {
    yard: Yard,
    code: i32,
    out: String,
    told: String,
    facts: Vec<Fact>,
    requests: Vec<Value>,
    took: Duration,
    peak: u64,
}

/// Runs the binary with a model that answers like this in a format. Whatever it sends, some things
/// hold.
fn run(format: &str, replies: &[&str]) -> Run {
    let yard = Yard::new(replies, "");
    let provider = json!({"api": format, "base_url": yard.model.url(), "api_key": "k",
        "models": {"m": {}}});
    yard.write_config(
        &json!({"model": "scripted/m", "provider": {"scripted": provider}}).to_string(),
    );
    let start = Instant::now();
    let mut child = yard.windlass(&["run", "--yes", "go"]).spawn().unwrap();
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let [out, told] =
        [Box::new(stdout) as Box<dyn Read + Send>, Box::new(stderr)].map(|mut pipe| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                pipe.read_to_end(&mut bytes).unwrap();
                String::from_utf8(bytes).unwrap()
            })
        });
    let mut highest = 0;
    let status = loop {
        highest = highest.max(peak(child.id()).unwrap_or_default());
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("{format}: it hangs");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let (out, told) = (out.join().unwrap(), told.join().unwrap());
    let took = start.elapsed();
    let code = status.code().unwrap();
    assert!(!told.contains("panicked"), "{format}: {told}");
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!out.contains(steers), "{format}: {out:?}");
    assert!(!told.contains(steers), "{format}: {told:?}");
    assert!(highest < MOST_MEMORY, "{format}: {highest} kB");
    let facts: Vec<Fact> =
        yard.facts().into_iter().map(|fact| serde_json::from_value(fact).unwrap()).collect();
    grammar::check_settled(&facts).unwrap_or_else(|why| panic!("{format}: {why}"));
    let requests = yard.model.requests();
    Run { yard, code, out, told, facts, requests, took, peak: highest }
}

/// The most memory a process has had, in kB.
fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

impl Run {
    /// The outcomes, in order.
    fn outcomes(&self) -> Vec<&Outcome> {
        let settled = self.facts.iter().filter_map(|fact| match fact {
            Fact::Settled { outcome, .. } => Some(outcome),
            _ => None,
        });
        settled.collect()
    }

    fn completed(&self) -> usize {
        let outcomes = self.outcomes();
        outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Completed { .. })).count()
    }

    /// What the model was asked last.
    fn last(&self) -> String {
        self.requests.last().unwrap().to_string()
    }
}

/// An event for `raw`, which takes a backslash and an n for the end of a line.
fn written(event: &Value) -> String {
    event.to_string().replace("\\n", "\\u000a")
}

/// A call on the wire, whole, with the id and the name that are wanted.
fn wire_call(format: &str, index: usize, id: &str, name: &str, arguments: &str) -> String {
    let named = |event: Value| {
        let kind = event["type"].as_str().unwrap();
        format!("event: {kind}\\ndata: {}\\n\\n", written(&event))
    };
    let events = match format {
        "openai-chat" => {
            let function = json!({"name": name, "arguments": arguments});
            let call = json!({"index": index, "id": id, "type": "function", "function": function});
            let choice = json!({"index": 0, "delta": {"tool_calls": [call]}});
            format!("data: {}\\n\\n", written(&json!({"choices": [choice]})))
        }
        "openai-responses" => {
            let item = json!({"type": "function_call", "call_id": id, "name": name,
                "arguments": arguments});
            let kind = "response.output_item.done";
            named(json!({"type": kind, "output_index": index, "item": item}))
        }
        "anthropic" => {
            let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
            let delta = json!({"type": "input_json_delta", "partial_json": arguments});
            [
                json!({"type": "content_block_start", "index": index, "content_block": block}),
                json!({"type": "content_block_delta", "index": index, "delta": delta}),
                json!({"type": "content_block_stop", "index": index}),
            ]
            .map(named)
            .concat()
        }
        _ => {
            let args: Value = serde_json::from_str(arguments).unwrap();
            let call = json!({"functionCall": {"id": id, "name": name, "args": args}});
            let content = json!({"role": "model", "parts": [call]});
            let candidate = json!({"content": content, "index": 0});
            format!("data: {}\\n\\n", written(&json!({"candidates": [candidate]})))
        }
    };
    format!("raw {events}")
}

/// An answer of such calls.
fn answer(format: &str, calls: &[(&str, &str, &str)]) -> String {
    let lines = (1..).zip(calls).map(|(index, (id, name, arguments))| {
        // The text before them is the first block; a chat counts calls only.
        let index = if format == "openai-chat" { index - 1 } else { index };
        wire_call(format, index, id, name, arguments)
    });
    format!("say Hm.\n{}\nfinish tool_calls", lines.collect::<Vec<_>>().join("\n"))
}

const READ: &str = r#"{"filePath": "README.md"}"#;

#[test]
fn calls_that_share_a_name_are_told_apart_in_a_step_and_across_steps() {
    for format in FORMATS {
        let twice =
            answer(format, &[("same", "read", READ), ("same", "glob", r#"{"pattern": "*"}"#)]);
        let run = run(format, &[&twice, &twice, "say Over."]);
        assert_eq!(
            (run.code, run.completed(), run.requests.len()),
            (0, 4, 3),
            "{format}: {}",
            run.told
        );
        let last = run.last();
        assert!(last.contains("A small project."), "{format}: {last}");
        if format == "openai-chat" {
            let messages = run.requests[2]["messages"].as_array().unwrap();
            let mut open: Vec<&Value> = Vec::new();
            for message in messages {
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    assert!(!open.contains(&&call["id"]), "twice {}: {last}", call["id"]);
                    open.push(&call["id"]);
                }
                if message["role"] == "tool" {
                    let at = open.iter().position(|id| **id == message["tool_call_id"]);
                    open.remove(at.unwrap_or_else(|| panic!("an answer to nothing: {last}")));
                }
            }
            assert!(open.is_empty(), "not answered: {open:?}");
        }
    }
}

#[test]
fn names_that_are_none_are_told_to_the_model() {
    let long = "n".repeat(100_000);
    let names = [
        "",
        "no_such_tool",
        "../../etc/passwd",
        "a\nb",
        "a b",
        "\u{1b}]52;c;ZXZpbA==\u{7}",
        "\u{202e}daer",
        "re\0ad",
        "💥",
        &long,
    ];
    for format in FORMATS {
        for name in names {
            let run = run(
                format,
                &[&answer(format, &[("x", name, "{}"), ("y", "read", READ)]), "say Over."],
            );
            let head: String = name.chars().take(20).collect();
            assert_eq!((run.code, run.requests.len()), (0, 2), "{format} {head:?}: {}", run.told);
            // A provider may send a call without a name, and a format may have no place for one.
            let outcomes = run.outcomes();
            assert!(!outcomes.is_empty() && outcomes.len() <= 2, "{format} {head:?}: {outcomes:?}");
            assert_eq!(run.completed(), 1, "{format} {head:?}: {outcomes:?}");
            assert!(
                run.last().len() < 200_000,
                "{format} {head:?}: it is sent back again and again"
            );
        }
    }
}

#[test]
fn arguments_that_are_none_are_told_to_the_model() {
    let deep = 100_000;
    let lists = "[".repeat(deep) + &"]".repeat(deep);
    let maps = "{\"filePath\":".repeat(deep) + "1" + &"}".repeat(deep);
    let rows = [
        r#""README""#,
        "17",
        "null",
        "[1, 2]",
        "NaN",
        r#"{"filePath": NaN}"#,
        "-",
        "{",
        "",
        r#"{"filePath": "\ud800"}"#,
        r#"{"filePath": "a\u0000b"}"#,
        r#"{"filePath": "\u001b]52;c;ZXZpbA==\u0007"}"#,
        r#"{"filePath": {"filePath": ["README"]}}"#,
        r#"{"__proto__": {"a": 1}}"#,
        &lists,
        &maps,
    ];
    for format in FORMATS {
        for arguments in rows {
            // Here arguments are JSON in the event, and what is none cannot be sent.
            if format == "gemini" && serde_json::from_str::<Value>(arguments).is_err() {
                continue;
            }
            let bash = r#"{"command": "echo yes", "description": "d"}"#;
            let reply = answer(format, &[("x", "read", arguments), ("y", "bash", bash)]);
            let run = run(format, &[&reply, "say Over."]);
            let head: String = arguments.chars().take(30).collect();
            assert_eq!((run.code, run.requests.len()), (0, 2), "{format} {head}: {}", run.told);
            let outcomes = run.outcomes();
            assert_eq!(outcomes.len(), 2, "{format} {head}: {}", run.told);
            assert!(
                !matches!(outcomes[0], Outcome::Completed { .. }),
                "{format} {head}: {outcomes:?}"
            );
            assert!(
                matches!(outcomes[1], Outcome::Completed { .. }),
                "{format} {head}: {outcomes:?}"
            );
        }
    }
}

#[test]
fn lines_that_nobody_can_read_are_asked_for_again() {
    let deep = "[".repeat(100_000);
    for format in FORMATS {
        for line in [&deep, "NaN", "{\"half"] {
            let reply = format!("once say Half\nonce raw data: {line}\\n\\n\nsay Whole.");
            let run = run(format, &[&reply]);
            assert_eq!((run.code, run.out.as_str()), (0, "Whole.\n"), "{format}: {}", run.told);
            assert_eq!(run.requests.len(), 2, "{format}");
        }
    }
}

/// A character that came in two halves, each in a line of its own.
#[test]
fn half_a_character_is_shown_as_what_cannot_be_shown() {
    let half = [
        ("openai-chat", r#"{"choices": [{"index": 0, "delta": {"content": "HALF"}}]}"#),
        (
            "gemini",
            r#"{"candidates": [{"content": {"role": "model", "parts": [{"text": "HALF"}]}, "index": 0}]}"#,
        ),
    ];
    for (format, line) in half {
        let event = |half: &str| format!("raw data: {}\\n\\n\n", line.replace("HALF", half));
        let reply = format!("{}{}say Whole.", event(r"\ud83d"), event(r"\ude00"));
        let run = run(format, &[&reply]);
        assert_eq!((run.code, run.requests.len()), (0, 1), "{format}: {}", run.told);
        assert_eq!(run.out, "\u{fffd}\u{fffd}Whole.\n", "{format}");
    }
}

#[test]
fn a_call_after_the_stop_and_thoughts_in_between_do_no_harm() {
    let stops = [
        r#"data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n"#,
        r#"event: response.completed\ndata: {"type": "response.completed", "response": {}}\n\n"#,
        r#"event: message_stop\ndata: {"type": "message_stop"}\n\n"#,
        r#"data: {"candidates": [{"content": {"parts": []}, "finishReason": "STOP", "index": 0}]}\n\n"#,
    ];
    for (format, stop) in FORMATS.into_iter().zip(stops) {
        let write = r#"call write {"filePath": "late.txt", "content": "x"}"#;
        let run_late = run(format, &[&format!("say Done.\nraw {stop}\n{write}"), "say Over."]);
        assert_eq!(run_late.code, 0, "{format}: {}", run_late.told);
        // It counts as a whole or not at all.
        let written = run_late.yard.read("late.txt").is_some();
        assert_eq!(run_late.completed(), usize::from(written), "{format}: {}", run_late.told);

        let woven = format!(
            "think One.\nsay Two.\nthink Three.\ncall read {READ}\nthink Four.\ncall read {READ}\nsay Five."
        );
        let run = run(format, &[&woven, "say Over."]);
        assert_eq!(
            (run.code, run.completed(), run.requests.len()),
            (0, 2, 2),
            "{format}: {}",
            run.told
        );
        let said = ["Two.", "Five."].iter().all(|word| run.out.contains(word));
        assert!(said && !run.out.contains("Three."), "{format}: {}", run.out);
    }
}

#[test]
fn a_line_of_a_megabyte_and_control_characters_are_text() {
    let long = "x".repeat(1 << 20);
    for format in FORMATS {
        let run_long = run(format, &[&format!("say {long}")]);
        assert_eq!((run_long.code, run_long.out.len()), (0, long.len() + 1), "{format}");
        let run = run(format, &["say a\0b\u{1b}[2J\u{9b}2J\rc\u{8}d\nthink \u{1b}]0;title\u{7}"]);
        assert_eq!(run.code, 0, "{format}: {}", run.told);
        assert!(run.out.contains('a') && run.out.contains('d'), "{format}: {:?}", run.out);
    }
}

#[test]
fn calls_without_end_end() {
    for format in FORMATS {
        let calls =
            |count: usize| format!("{}say Hm.", format!("call read {READ}\n").repeat(count));
        let run_many = run(format, &[&calls(1_000), "say Over."]);
        assert_eq!((run_many.code, run_many.requests.len()), (0, 2), "{format}: {}", run_many.told);
        let outcomes = run_many.outcomes();
        let (done, told) = (run_many.completed(), "Not run: more than 64 calls at once");
        let turned_back = outcomes.iter().filter(|outcome| outcome.text().contains(told)).count();
        assert_eq!((outcomes.len(), done, turned_back), (1_000, 64, 936), "{format}");
        println!("{format}: 1,000 calls took {:?} and {} kB", run_many.took, run_many.peak);
        // More than anybody means: the answer does not count.
        let run = run(format, &[&calls(10_000), "say Over."]);
        assert_eq!(
            (run.code, run.requests.len(), run.outcomes().len()),
            (1, 1, 0),
            "{format}: {}",
            run.told
        );
        assert!(run.told.contains("its calls have no end"), "{format}: {}", run.told);
        println!("{format}: 10,000 calls took {:?} and {} kB", run.took, run.peak);
    }
}

#[test]
fn arguments_of_a_hundred_megabytes_take_little_memory() {
    const PIECE: usize = 1 << 20;
    let piece = "a".repeat(PIECE);
    for format in FORMATS {
        // In one event, which no answer needs.
        let huge = json!({"filePath": "huge.txt", "content": "a".repeat(100 * PIECE)});
        let once = format!("once call write {huge}\nsay Smaller, then.");
        drop(huge);
        let run_once = run(format, &[&once]);
        assert_eq!((run_once.code, run_once.requests.len()), (0, 2), "{format}: {}", run_once.told);
        assert_eq!(run_once.yard.read("huge.txt"), None, "{format}");
        println!("{format}: 100 MB at once took {:?} and {} kB", run_once.took, run_once.peak);
        // Or piece by piece.
        let pieces = match format {
            "openai-chat" => {
                let call = json!({"index": 0, "id": "x", "function": {"name": "write", "arguments": piece}});
                format!(
                    "raw data: {}\\n\\n",
                    json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
                )
            }
            "openai-responses" => {
                let kind = "response.function_call_arguments.delta";
                format!(
                    "raw data: {}\\n\\n",
                    json!({"type": kind, "output_index": 0, "delta": piece})
                )
            }
            "anthropic" => {
                let delta = json!({"type": "input_json_delta", "partial_json": piece});
                let kind = "content_block_delta";
                format!("raw data: {}\\n\\n", json!({"type": kind, "index": 0, "delta": delta}))
            }
            _ => continue,
        };
        let begun = match format {
            "anthropic" => {
                let block = json!({"type": "tool_use", "id": "x", "name": "write", "input": {}});
                let start =
                    json!({"type": "content_block_start", "index": 0, "content_block": block});
                format!("raw data: {start}\\n\\n\n")
            }
            _ => String::new(),
        };
        let reply = begun + &vec![pieces; 100].join("\n") + "\nfinish tool_calls";
        let run = run(format, &[&reply, "say Over."]);
        assert!(run.completed() == 0 && run.yard.read("huge.txt").is_none(), "{format}");
        println!(
            "{format}: 100 MB in pieces ended with {} after {:?} and {} kB: {}",
            run.code,
            run.took,
            run.peak,
            run.told.lines().last().unwrap_or_default()
        );
    }
}
