//! Exit codes of `windlass run`, and the object that `--output json` prints, for every kind of end.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::Value;
use std::time::{Duration, Instant};
#[cfg(unix)]
use support::server::TestServer;
use support::{TestEnv, decode_output};

const WRITES: &[&str] =
    &["call write {\"filePath\": \"a.txt\", \"content\": \"written\\n\"}", "say Done."];

const SCHEMA: &str = r#"{"type": "object", "required": ["n"]}"#;

/// A run and how it is expected to end.
struct ExitCodeCase {
    name: &'static str,
    replies: &'static [&'static str],
    settings: &'static str,
    arguments: &'static [&'static str],
    code: i32,
    /// The `TurnEndReason`; empty if no turn starts.
    end: &'static str,
    /// A part of standard error.
    message: &'static str,
}

const DONE: ExitCodeCase = ExitCodeCase {
    name: "done",
    replies: &["say Yes."],
    settings: "",
    arguments: &["p"],
    code: 0,
    end: "completed",
    message: "",
};

const INVALID_CONFIG: &str = "an invalid config";

const ENDING_CASES: &[ExitCodeCase] = &[
    DONE,
    ExitCodeCase {
        name: "denied because no user is available",
        replies: WRITES,
        code: 3,
        message: "No user is available",
        ..DONE
    },
    ExitCodeCase {
        name: "denied by a rule: the model continues",
        replies: WRITES,
        settings: r#""permission": {"*": "allow", "edit": "deny"}"#,
        ..DONE
    },
    ExitCodeCase {
        name: "request limit",
        replies: &["call read {\"filePath\": \"README.md\"}", "say never asked"],
        arguments: &["--max-steps", "1", "p"],
        code: 4,
        end: "limit_reached",
        ..DONE
    },
    ExitCodeCase {
        name: "output limit of the model",
        replies: &["say Once upon a\nfinish length"],
        code: 4,
        end: "limit_reached",
        ..DONE
    },
    ExitCodeCase {
        name: "the provider fails",
        replies: &["status 400 {\"error\": {\"message\": \"out of order.\"}}"],
        code: 1,
        end: "failed",
        // One full stop, not two.
        message: "out of order. ",
        ..DONE
    },
    ExitCodeCase {
        name: "an invalid key",
        replies: &["status 401 {\"error\": {\"message\": \"bad key\"}}"],
        code: 1,
        end: "failed",
        message: "rejected the API key",
        ..DONE
    },
    ExitCodeCase {
        name: "the provider withholds the answer",
        replies: &["say I\nfinish content_filter"],
        code: 1,
        end: "failed",
        message: "declined to answer",
        ..DONE
    },
    ExitCodeCase {
        name: "an answer that does not match the schema",
        replies: &["say no", "say no", "say no"],
        arguments: &["--output-schema", "schema.json", "p"],
        code: 1,
        end: "completed",
        message: "does not match the schema",
        ..DONE
    },
    ExitCodeCase {
        name: "an invalid argument",
        arguments: &["--max-cost", "much", "p"],
        code: 2,
        end: "",
        message: "0.50",
        ..DONE
    },
    ExitCodeCase {
        name: "a cost limit for a model without prices",
        arguments: &["--max-cost", "0.5", "p"],
        code: 2,
        end: "",
        message: "--max-tokens",
        ..DONE
    },
    ExitCodeCase {
        name: INVALID_CONFIG,
        settings: r#""permission": {"edit": "perhaps"}"#,
        code: 2,
        end: "",
        message: "perhaps",
        ..DONE
    },
    ExitCodeCase {
        name: "an unknown session",
        arguments: &["--session", "01890000-0000-7000-8000-000000000000", "p"],
        code: 2,
        end: "",
        message: "not found",
        ..DONE
    },
];

fn check(case: &ExitCodeCase) {
    let env = TestEnv::new(case.replies, case.settings);
    check_run(case, &env, &["run", "--output", "json"]);
}

/// Checks the same run in a server.
#[cfg(unix)]
fn check_attached(case: &ExitCodeCase) {
    let env = TestEnv::new(case.replies, case.settings);
    if case.name == INVALID_CONFIG {
        // The server reports it and does not start.
        let mut server = TestServer::spawn(&env, &[]);
        assert_eq!(server.wait(), Some(case.code), "{}", server.stderr());
        assert!(server.stderr().contains(case.message), "{}", server.stderr());
        return;
    }
    let _server = TestServer::start(&env, &[]);
    check_run(case, &env, &["run", "--attach", "--output", "json"]);
}

fn check_run(case: &ExitCodeCase, env: &TestEnv, run: &[&str]) {
    std::fs::write(env.root().join("schema.json"), SCHEMA).unwrap();
    let arguments = [run, case.arguments].concat();
    let started = Instant::now();
    let (code, output, stderr) = env.run(&arguments);
    let name = case.name;
    assert_eq!(code, case.code, "{name}: {output}{stderr}");
    assert!(stderr.contains(case.message), "{name}: {stderr}");
    assert!(
        started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(20)),
        "{name}: took too long"
    );
    assert_eq!(env.read("a.txt"), None, "{name}");
    // No user was there to deny anything.
    let results = env.model.requests().iter().map(Value::to_string).collect::<String>();
    for text in [&stderr, &output, &results] {
        let text = text.to_lowercase();
        assert!(!text.contains("user denied") && !text.contains("you denied"), "{name}: {text}");
    }
    if case.end.is_empty() {
        assert_eq!(output, "", "{name}: a turn was started");
        return;
    }
    let object: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(object["end"]["end"], case.end, "{name}: {object}");
    assert_eq!(object["exit"], case.code, "{name}: {object}");
    let last = env.facts().pop().unwrap();
    assert_eq!(last["end"], object["end"], "{name}: the output differs from the log");
}

#[test]
fn each_ending_has_its_exit_code_and_message() {
    ENDING_CASES.iter().for_each(check);
}

#[cfg(unix)]
#[test]
fn each_ending_in_a_server_has_the_same_exit_code_and_message() {
    ENDING_CASES.iter().for_each(check_attached);
}

#[test]
fn each_limit_of_a_session_has_its_exit_code() {
    for_each_limit(check);
}

#[cfg(unix)]
#[test]
fn each_limit_of_a_session_in_a_server_has_the_same_exit_code() {
    for_each_limit(check_attached);
}

fn for_each_limit(check: fn(&ExitCodeCase)) {
    const READ: &str = "call read {\"filePath\": \"README.md\"}";
    let limits = [
        ExitCodeCase {
            name: "time",
            replies: &["say Well\ngate never"],
            arguments: &["--timeout", "1", "p"],
            code: 4,
            end: "limit_reached",
            ..DONE
        },
        ExitCodeCase {
            name: "tokens",
            replies: &[READ, READ, READ, READ, "say Done."],
            arguments: &["--max-tokens", "150", "p"],
            code: 4,
            end: "limit_reached",
            ..DONE
        },
        ExitCodeCase { name: "loop", replies: &[READ; 12], code: 4, end: "loop_detected", ..DONE },
    ];
    limits.iter().for_each(check);
}

#[cfg(unix)]
fn interrupt(child: &std::process::Child) {
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_exits_with_130() {
    let env = TestEnv::new(&["say One\ngate never"], "");
    interrupt_run(&env, &["run", "--output", "json", "p"]);
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_in_a_server_exits_with_130() {
    let env = TestEnv::new(&["say One\ngate never"], "");
    let _server = TestServer::start(&env, &[]);
    interrupt_run(&env, &["run", "--attach", "--output", "json", "p"]);
}

#[cfg(unix)]
fn interrupt_run(env: &TestEnv, arguments: &[&str]) {
    let child = env.windlass(arguments).spawn().unwrap();
    env.model.wait_at_gate("never");
    interrupt(&child);
    let (code, output, stderr) = decode_output(&child.wait_with_output().unwrap());
    let object: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((code, &object["exit"]), (130, &130.into()), "{stderr}");
    assert_eq!(object["end"]["end"], "interrupted");
}

/// After the first interrupt the run waits for a command that ignores signals.
#[cfg(target_os = "linux")]
#[test]
fn a_second_interrupt_ends_the_run_at_once() {
    interrupt_twice(&[]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_second_interrupt_ends_a_run_in_a_server_at_once() {
    interrupt_twice(&["--attach"]);
}

#[cfg(target_os = "linux")]
fn interrupt_twice(attach: &[&str]) {
    let command = "trap '' INT TERM; touch began; sleep 30";
    let call = format!("call bash {}", serde_json::json!({ "command": command }));
    let env = TestEnv::new(&[&call, "say never"], r#""permission": "allow""#);
    let _server = (!attach.is_empty()).then(|| TestServer::start(&env, &[]));
    let arguments = ["--mode", "full", "--yes", "--output", "json", "p"];
    let child = env.windlass(&[&["run"], attach, &arguments].concat()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while env.read("began").is_none() {
        assert!(Instant::now() < deadline, "the command did not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    let started = Instant::now();
    interrupt(&child);
    std::thread::sleep(Duration::from_millis(100));
    interrupt(&child);
    let (code, output, stderr) = decode_output(&child.wait_with_output().unwrap());
    assert_eq!(code, 130, "{output}{stderr}");
    assert!(
        started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(8)),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn a_log_that_cannot_be_opened_is_reported_before_any_request() {
    let env = TestEnv::new(&["say Yes."], "");
    std::fs::create_dir_all(env.data().join("windlass.db")).unwrap();
    let (code, output, stderr) = env.run(&["run", "--output", "json", "p"]);
    assert_eq!((code, output.as_str()), (2, ""), "{stderr}");
    assert!(stderr.contains("database"), "{stderr}");
    assert!(env.model.requests().is_empty(), "a request was sent");
}

/// The limit on file sizes acts like a full disk in the middle of a turn.
#[cfg(target_os = "linux")]
#[test]
fn a_log_that_cannot_be_written_ends_the_run_as_failed() {
    let long = format!("say {}", "x".repeat(3 << 20));
    let env = TestEnv::new(&[&long], "");
    let script = "trap '' XFSZ; ulimit -S -f 2000; exec \"$0\" \"$@\"";
    let mut command = env.wrapped(&["bash", "-c", script], &["run", "--output", "json", "p"]);
    let (code, output, stderr) = decode_output(&command.output().unwrap());
    assert_eq!(code, 1, "{stderr}");
    let object: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(object["end"]["fault"]["fault"], "storage", "{stderr}");
    assert!(stderr.contains("Free some disk space"), "{stderr}");
}

#[cfg(target_os = "linux")]
#[test]
fn limits_of_the_user_are_errors_with_a_reason() {
    let env = TestEnv::new(&["say Done."], "");
    let limited = |limit: &str| {
        let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
        let mut command = env.wrapped(&["bash", "-c", &script], &["run", "hello"]);
        decode_output(&command.output().unwrap())
    };
    let (code, _, stderr) = limited("-f 20");
    assert!(code == 1 || code == 2, "{code}: {stderr}");
    assert!(!stderr.trim().is_empty(), "it says why");
}
