//! Hostile responses of a model in every wire format: the run ends in order, within limits of time
//! and memory, and the model gets an error for every invalid call.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::{Value, json};
use std::io::Read;
use std::time::{Duration, Instant};
use support::TestEnv;
use windlass_protocol::{CallOutcome, Fact};
use windlass_testkit::log_grammar;

const FORMATS: [&str; 4] = ["openai-chat", "openai-responses", "anthropic", "gemini"];

/// A run that takes longer hangs.
const RUN_TIMEOUT: Duration = Duration::from_secs(20);

/// The peak memory that a run may have.
const MAX_MEMORY_KB: u64 = 300_000;

/// The result of a run.
struct TestRunResult {
    env: TestEnv,
    code: i32,
    out: String,
    stderr: String,
    facts: Vec<Fact>,
    requests: Vec<Value>,
    duration: Duration,
    peak_memory: u64,
}

/// Runs the binary with a model that gives `replies` in a wire format, and checks the invariants of
/// every run.
fn run(format: &str, replies: &[&str]) -> TestRunResult {
    let env = TestEnv::new(replies, "");
    let provider = json!({"api": format, "base_url": env.model.url(), "api_key": "k",
        "models": {"m": {}}});
    env.write_config(
        &json!({"model": "scripted/m", "provider": {"scripted": provider}}).to_string(),
    );
    let start = Instant::now();
    let mut child = env.windlass(&["run", "--yes", "go"]).spawn().unwrap();
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let [out, stderr] =
        [Box::new(stdout) as Box<dyn Read + Send>, Box::new(stderr)].map(|mut pipe| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                pipe.read_to_end(&mut bytes).unwrap();
                String::from_utf8(bytes).unwrap()
            })
        });
    let mut highest = 0;
    let status = loop {
        highest = highest.max(peak_memory_kb(child.id()).unwrap_or_default());
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > RUN_TIMEOUT {
            child.kill().unwrap();
            panic!("{format}: the run hangs");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let (out, stderr) = (out.join().unwrap(), stderr.join().unwrap());
    let duration = start.elapsed();
    let code = status.code().unwrap();
    assert!(!stderr.contains("panicked"), "{format}: {stderr}");
    let is_control = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!out.contains(is_control), "{format}: {out:?}");
    assert!(!stderr.contains(is_control), "{format}: {stderr:?}");
    assert!(highest < MAX_MEMORY_KB, "{format}: {highest} kB");
    let facts: Vec<Fact> =
        env.facts().into_iter().map(|fact| serde_json::from_value(fact).unwrap()).collect();
    log_grammar::check_settled(&facts).unwrap_or_else(|why| panic!("{format}: {why}"));
    let requests = env.model.requests();
    TestRunResult { env, code, out, stderr, facts, requests, duration, peak_memory: highest }
}

/// Returns the peak memory of a process in kB.
fn peak_memory_kb(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

impl TestRunResult {
    /// Returns the outcomes of the calls, in order.
    fn outcomes(&self) -> Vec<&CallOutcome> {
        let settled = self.facts.iter().filter_map(|fact| match fact {
            Fact::CallSettled { outcome, .. } => Some(outcome),
            _ => None,
        });
        settled.collect()
    }

    fn completed(&self) -> usize {
        let outcomes = self.outcomes();
        outcomes.iter().filter(|outcome| matches!(outcome, CallOutcome::Completed { .. })).count()
    }

    /// Returns the last request to the model.
    fn last_request(&self) -> String {
        self.requests.last().unwrap().to_string()
    }
}

/// Encodes an event for the script line `raw`, in which `\n` is the end of a line.
fn encode_for_raw(event: &Value) -> String {
    event.to_string().replace("\\n", "\\u000a")
}

/// A script line with the events of one tool call.
fn wire_call(format: &str, index: usize, id: &str, name: &str, arguments: &str) -> String {
    let named = |event: Value| {
        let kind = event["type"].as_str().unwrap();
        format!("event: {kind}\\ndata: {}\\n\\n", encode_for_raw(&event))
    };
    let events = match format {
        "openai-chat" => {
            let function = json!({"name": name, "arguments": arguments});
            let call = json!({"index": index, "id": id, "type": "function", "function": function});
            let choice = json!({"index": 0, "delta": {"tool_calls": [call]}});
            format!("data: {}\\n\\n", encode_for_raw(&json!({"choices": [choice]})))
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
            format!("data: {}\\n\\n", encode_for_raw(&json!({"candidates": [candidate]})))
        }
    };
    format!("raw {events}")
}

/// A reply with several tool calls, each as id, name and arguments.
fn reply_with_calls(format: &str, calls: &[(&str, &str, &str)]) -> String {
    let lines = (1..).zip(calls).map(|(index, (id, name, arguments))| {
        // The text is the block with index 0, except in chat, which counts only calls.
        let index = if format == "openai-chat" { index - 1 } else { index };
        wire_call(format, index, id, name, arguments)
    });
    format!("say Hm.\n{}\nfinish tool_calls", lines.collect::<Vec<_>>().join("\n"))
}

const READ: &str = r#"{"filePath": "README.md"}"#;

#[test]
fn calls_with_the_same_id_are_distinguished_in_a_step_and_across_steps() {
    for format in FORMATS {
        let twice = reply_with_calls(
            format,
            &[("same", "read", READ), ("same", "glob", r#"{"pattern": "*"}"#)],
        );
        let run = run(format, &[&twice, &twice, "say Over."]);
        assert_eq!(
            (run.code, run.completed(), run.requests.len()),
            (0, 4, 3),
            "{format}: {}",
            run.stderr
        );
        let last = run.last_request();
        assert!(last.contains("A small project."), "{format}: {last}");
        if format == "openai-chat" {
            let messages = run.requests[2]["messages"].as_array().unwrap();
            let mut open: Vec<&Value> = Vec::new();
            for message in messages {
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    assert!(!open.contains(&&call["id"]), "duplicate id {}: {last}", call["id"]);
                    open.push(&call["id"]);
                }
                if message["role"] == "tool" {
                    let at = open.iter().position(|id| **id == message["tool_call_id"]);
                    open.remove(at.unwrap_or_else(|| panic!("a result without a call: {last}")));
                }
            }
            assert!(open.is_empty(), "calls without a result: {open:?}");
        }
    }
}

#[test]
fn invalid_tool_names_are_reported_to_the_model() {
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
                &[
                    &reply_with_calls(format, &[("x", name, "{}"), ("y", "read", READ)]),
                    "say Over.",
                ],
            );
            let head: String = name.chars().take(20).collect();
            assert_eq!((run.code, run.requests.len()), (0, 2), "{format} {head:?}: {}", run.stderr);
            // A call with an empty name is dropped in some formats.
            let outcomes = run.outcomes();
            assert!(!outcomes.is_empty() && outcomes.len() <= 2, "{format} {head:?}: {outcomes:?}");
            assert_eq!(run.completed(), 1, "{format} {head:?}: {outcomes:?}");
            assert!(
                run.last_request().len() < 200_000,
                "{format} {head:?}: the long name is sent back to the model"
            );
        }
    }
}

#[test]
fn invalid_arguments_are_reported_to_the_model() {
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
            // In Gemini arguments are part of the event's JSON, so they cannot be invalid JSON.
            if format == "gemini" && serde_json::from_str::<Value>(arguments).is_err() {
                continue;
            }
            let bash = r#"{"command": "echo yes", "description": "d"}"#;
            let reply = reply_with_calls(format, &[("x", "read", arguments), ("y", "bash", bash)]);
            let run = run(format, &[&reply, "say Over."]);
            let head: String = arguments.chars().take(30).collect();
            assert_eq!((run.code, run.requests.len()), (0, 2), "{format} {head}: {}", run.stderr);
            let outcomes = run.outcomes();
            assert_eq!(outcomes.len(), 2, "{format} {head}: {}", run.stderr);
            assert!(
                !matches!(outcomes[0], CallOutcome::Completed { .. }),
                "{format} {head}: {outcomes:?}"
            );
            assert!(
                matches!(outcomes[1], CallOutcome::Completed { .. }),
                "{format} {head}: {outcomes:?}"
            );
        }
    }
}

#[test]
fn invalid_events_cause_a_retry() {
    let deep = "[".repeat(100_000);
    for format in FORMATS {
        for line in [&deep, "NaN", "{\"half"] {
            let reply = format!("once say Half\nonce raw data: {line}\\n\\n\nsay Whole.");
            let run = run(format, &[&reply]);
            assert_eq!((run.code, run.out.as_str()), (0, "Whole.\n"), "{format}: {}", run.stderr);
            assert_eq!(run.requests.len(), 2, "{format}");
        }
    }
}

/// The two surrogates of a character, each in its own event.
#[test]
fn a_lone_surrogate_becomes_a_replacement_character() {
    let events = [
        ("openai-chat", r#"{"choices": [{"index": 0, "delta": {"content": "HALF"}}]}"#),
        (
            "gemini",
            r#"{"candidates": [{"content": {"role": "model", "parts": [{"text": "HALF"}]}, "index": 0}]}"#,
        ),
    ];
    for (format, line) in events {
        let event = |half: &str| format!("raw data: {}\\n\\n\n", line.replace("HALF", half));
        let reply = format!("{}{}say Whole.", event(r"\ud83d"), event(r"\ude00"));
        let run = run(format, &[&reply]);
        assert_eq!((run.code, run.requests.len()), (0, 1), "{format}: {}", run.stderr);
        assert_eq!(run.out, "\u{fffd}\u{fffd}Whole.\n", "{format}");
    }
}

#[test]
fn calls_after_the_stop_and_reasoning_in_between_are_handled() {
    let stops = [
        r#"data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n"#,
        r#"event: response.completed\ndata: {"type": "response.completed", "response": {}}\n\n"#,
        r#"event: message_stop\ndata: {"type": "message_stop"}\n\n"#,
        r#"data: {"candidates": [{"content": {"parts": []}, "finishReason": "STOP", "index": 0}]}\n\n"#,
    ];
    for (format, stop) in FORMATS.into_iter().zip(stops) {
        let write = r#"call write {"filePath": "late.txt", "content": "x"}"#;
        let run_late = run(format, &[&format!("say Done.\nraw {stop}\n{write}"), "say Over."]);
        assert_eq!(run_late.code, 0, "{format}: {}", run_late.stderr);
        // The call runs and settles, or neither.
        let is_written = run_late.env.read("late.txt").is_some();
        assert_eq!(run_late.completed(), usize::from(is_written), "{format}: {}", run_late.stderr);

        let interleaved = format!(
            "think One.\nsay Two.\nthink Three.\ncall read {READ}\nthink Four.\ncall read {READ}\nsay Five."
        );
        let run = run(format, &[&interleaved, "say Over."]);
        assert_eq!(
            (run.code, run.completed(), run.requests.len()),
            (0, 2, 2),
            "{format}: {}",
            run.stderr
        );
        let has_text = ["Two.", "Five."].iter().all(|word| run.out.contains(word));
        assert!(has_text && !run.out.contains("Three."), "{format}: {}", run.out);
    }
}

#[test]
fn a_line_of_a_megabyte_and_control_characters_are_text() {
    let long = "x".repeat(1 << 20);
    for format in FORMATS {
        let run_long = run(format, &[&format!("say {long}")]);
        assert_eq!((run_long.code, run_long.out.len()), (0, long.len() + 1), "{format}");
        let run = run(format, &["say a\0b\u{1b}[2J\u{9b}2J\rc\u{8}d\nthink \u{1b}]0;title\u{7}"]);
        assert_eq!(run.code, 0, "{format}: {}", run.stderr);
        assert!(run.out.contains('a') && run.out.contains('d'), "{format}: {:?}", run.out);
    }
}

#[test]
fn excessive_calls_are_not_run() {
    for format in FORMATS {
        let calls =
            |count: usize| format!("{}say Hm.", format!("call read {READ}\n").repeat(count));
        let run_many = run(format, &[&calls(1_000), "say Over."]);
        assert_eq!(
            (run_many.code, run_many.requests.len()),
            (0, 2),
            "{format}: {}",
            run_many.stderr
        );
        let outcomes = run_many.outcomes();
        let (done, refusal) = (run_many.completed(), "Not run: more than 64 calls in one step");
        let refused = outcomes.iter().filter(|outcome| outcome.text().contains(refusal)).count();
        assert_eq!((outcomes.len(), done, refused), (1_000, 64, 936), "{format}");
        println!(
            "{format}: 1,000 calls took {:?} and {} kB",
            run_many.duration, run_many.peak_memory
        );
        // Beyond the limit of a response, the whole response is an error.
        let run = run(format, &[&calls(10_000), "say Over."]);
        assert_eq!(
            (run.code, run.requests.len(), run.outcomes().len()),
            (1, 1, 0),
            "{format}: {}",
            run.stderr
        );
        assert!(run.stderr.contains("its tool calls exceed the limit"), "{format}: {}", run.stderr);
        println!("{format}: 10,000 calls took {:?} and {} kB", run.duration, run.peak_memory);
    }
}

#[test]
fn arguments_of_a_hundred_megabytes_take_little_memory() {
    const PIECE: usize = 1 << 20;
    let piece = "a".repeat(PIECE);
    for format in FORMATS {
        // In one event.
        let huge = json!({"filePath": "huge.txt", "content": "a".repeat(100 * PIECE)});
        let once = format!("once call write {huge}\nsay Smaller, then.");
        drop(huge);
        let run_once = run(format, &[&once]);
        assert_eq!(
            (run_once.code, run_once.requests.len()),
            (0, 2),
            "{format}: {}",
            run_once.stderr
        );
        assert_eq!(run_once.env.read("huge.txt"), None, "{format}");
        println!(
            "{format}: 100 MB at once took {:?} and {} kB",
            run_once.duration, run_once.peak_memory
        );
        // In many events.
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
        let start = match format {
            "anthropic" => {
                let block = json!({"type": "tool_use", "id": "x", "name": "write", "input": {}});
                let start =
                    json!({"type": "content_block_start", "index": 0, "content_block": block});
                format!("raw data: {start}\\n\\n\n")
            }
            _ => String::new(),
        };
        let reply = start + &vec![pieces; 100].join("\n") + "\nfinish tool_calls";
        let run = run(format, &[&reply, "say Over."]);
        assert!(run.completed() == 0 && run.env.read("huge.txt").is_none(), "{format}");
        println!(
            "{format}: 100 MB in pieces ended with {} after {:?} and {} kB: {}",
            run.code,
            run.duration,
            run.peak_memory,
            run.stderr.lines().last().unwrap_or_default()
        );
    }
}
