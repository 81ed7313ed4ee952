//! How a run can end, each from a real run: the exit code, and what the one object says.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use serde_json::Value;
use std::time::{Duration, Instant};
use yard::{Yard, told};

const WRITES: &[&str] =
    &["call write {\"filePath\": \"a.txt\", \"content\": \"written\\n\"}", "say Done."];

const SCHEMA: &str = r#"{"type": "object", "required": ["n"]}"#;

/// One way to end.
struct Ending {
    name: &'static str,
    replies: &'static [&'static str],
    settings: &'static str,
    arguments: &'static [&'static str],
    code: i32,
    /// How the turn ended; empty if none began.
    end: &'static str,
    /// What the person is told.
    words: &'static str,
}

const DONE: Ending = Ending {
    name: "done",
    replies: &["say Yes."],
    settings: "",
    arguments: &["p"],
    code: 0,
    end: "done",
    words: "",
};

const ENDINGS: &[Ending] = &[
    DONE,
    Ending {
        name: "denied, nobody is there to ask",
        replies: WRITES,
        code: 3,
        end: "denied",
        words: "Nobody is here to ask",
        ..DONE
    },
    Ending {
        name: "denied by a rule: the model is told and goes on",
        replies: WRITES,
        settings: r#""permission": {"*": "allow", "edit": "deny"}"#,
        ..DONE
    },
    Ending {
        name: "limit of requests",
        replies: &["call read {\"filePath\": \"README.md\"}", "say never asked"],
        arguments: &["--max-steps", "1", "p"],
        code: 4,
        end: "limit",
        ..DONE
    },
    Ending {
        name: "limit of the model's output",
        replies: &["say Once upon a\nfinish length"],
        code: 4,
        end: "limit",
        ..DONE
    },
    Ending {
        name: "the provider fails",
        replies: &["status 400 {\"error\": {\"message\": \"out of order\"}}"],
        code: 1,
        end: "failed",
        words: "out of order",
        ..DONE
    },
    Ending {
        name: "a wrong key",
        replies: &["status 401 {\"error\": {\"message\": \"bad key\"}}"],
        code: 1,
        end: "failed",
        words: "did not accept the key",
        ..DONE
    },
    Ending {
        name: "the provider withholds the answer",
        replies: &["say I\nfinish content_filter"],
        code: 1,
        end: "failed",
        words: "declined to answer",
        ..DONE
    },
    Ending {
        name: "an answer that does not fit",
        replies: &["say no", "say no", "say no"],
        arguments: &["--output-schema", "schema.json", "p"],
        code: 1,
        end: "done",
        words: "does not fit the schema",
        ..DONE
    },
    Ending {
        name: "a wrong argument",
        arguments: &["--max-cost", "much", "p"],
        code: 2,
        end: "",
        words: "0.50",
        ..DONE
    },
    Ending {
        name: "a limit that cannot hold",
        arguments: &["--max-cost", "0.5", "p"],
        code: 2,
        end: "",
        words: "--max-tokens",
        ..DONE
    },
    Ending {
        name: "a config that cannot be used",
        settings: r#""permission": {"edit": "perhaps"}"#,
        code: 2,
        end: "",
        words: "perhaps",
        ..DONE
    },
    Ending {
        name: "no such session",
        arguments: &["--session", "01890000-0000-7000-8000-000000000000", "p"],
        code: 2,
        end: "",
        words: "there is no session",
        ..DONE
    },
];

fn check(ending: &Ending) {
    let yard = Yard::new(ending.replies, ending.settings);
    std::fs::write(yard.root().join("schema.json"), SCHEMA).unwrap();
    let arguments = [&["run", "--output", "json"], ending.arguments].concat();
    let started = Instant::now();
    let (code, output, told) = yard.run(&arguments);
    let name = ending.name;
    assert_eq!(code, ending.code, "{name}: {output}{told}");
    assert!(told.contains(ending.words), "{name}: {told}");
    assert!(started.elapsed() < Duration::from_secs(20), "{name}: took too long");
    assert_eq!(yard.read("a.txt"), None, "{name}");
    if ending.end.is_empty() {
        assert_eq!(output, "", "{name}: nothing began");
        return;
    }
    let object: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(object["end"]["end"], ending.end, "{name}: {object}");
    assert_eq!(object["exit"], ending.code, "{name}: {object}");
    let last = yard.facts().pop().unwrap();
    assert_eq!(last["end"], object["end"], "{name}: what is told is what is on record");
}

#[test]
fn each_ending_has_its_code_and_says_so() {
    ENDINGS.iter().for_each(check);
}

#[test]
fn each_ending_that_a_session_counts_has_its_code_and_says_so() {
    const READ: &str = "call read {\"filePath\": \"README.md\"}";
    let counted = [
        Ending {
            name: "time",
            replies: &["say Well\ngate never"],
            arguments: &["--timeout", "1", "p"],
            code: 4,
            end: "limit",
            ..DONE
        },
        Ending {
            name: "tokens",
            replies: &[READ, READ, READ, READ, "say Done."],
            arguments: &["--max-tokens", "150", "p"],
            code: 4,
            end: "limit",
            ..DONE
        },
        Ending { name: "circles", replies: &[READ; 12], code: 4, end: "looped", ..DONE },
    ];
    counted.iter().for_each(check);
}

#[cfg(unix)]
fn interrupt(child: &std::process::Child) {
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_ends_with_130_and_says_so() {
    let yard = Yard::new(&["say One\ngate never"], "");
    let child = yard.windlass(&["run", "--output", "json", "p"]).spawn().unwrap();
    yard.model.wait_at_gate("never");
    interrupt(&child);
    let (code, output, told) = told(&child.wait_with_output().unwrap());
    let object: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((code, &object["exit"]), (130, &130.into()), "{told}");
    assert_eq!(object["end"]["end"], "interrupted");
}

/// A command that does not listen is waited for, but not when the person says it twice.
#[cfg(target_os = "linux")]
#[test]
fn interrupted_twice_it_ends_at_once() {
    let command = "trap '' INT TERM; touch began; sleep 30";
    let call = format!("call bash {}", serde_json::json!({ "command": command }));
    let yard = Yard::new(&[&call, "say never"], r#""permission": "allow""#);
    let arguments = ["run", "--mode", "full", "--yes", "--output", "json", "p"];
    let child = yard.windlass(&arguments).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while yard.read("began").is_none() {
        assert!(Instant::now() < deadline, "the command did not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    let started = Instant::now();
    interrupt(&child);
    std::thread::sleep(Duration::from_millis(100));
    interrupt(&child);
    let (code, output, told) = told(&child.wait_with_output().unwrap());
    assert_eq!(code, 130, "{output}{told}");
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
}

#[test]
fn a_log_that_cannot_be_opened_is_told_before_anything_begins() {
    let yard = Yard::new(&["say Yes."], "");
    std::fs::create_dir_all(yard.data().join("windlass.db")).unwrap();
    let (code, output, told) = yard.run(&["run", "--output", "json", "p"]);
    assert_eq!((code, output.as_str()), (2, ""), "{told}");
    assert!(told.contains("database"), "{told}");
    assert!(yard.model.requests().is_empty(), "the model was asked");
}

/// The disk is full in the middle of a turn.
#[cfg(target_os = "linux")]
#[test]
fn a_log_that_takes_no_more_ends_the_run_as_failed() {
    let long = format!("say {}", "x".repeat(3 << 20));
    let yard = Yard::new(&[&long], "");
    let script = "trap '' XFSZ; ulimit -S -f 2000; exec \"$0\" \"$@\"";
    let mut command = yard.wrapped(&["bash", "-c", script], &["run", "--output", "json", "p"]);
    let (code, output, told) = told(&command.output().unwrap());
    assert_eq!(code, 1, "{told}");
    let object: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(object["end"]["fault"]["fault"], "storage", "{told}");
    assert!(told.contains("Free some disk space"), "{told}");
}
