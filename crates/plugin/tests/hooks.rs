//! Hooks that are real programs in a real cage, and that behave as badly as programs can.
//!
//! What starts programs is started as this very program, as it is in the binary, so this has a main
//! of its own: on an errand it is the keeper, and otherwise it runs the checks below.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_permission::{Policy, Rules};
use windlass_plugin::hook::{Form, Program, Spec};
use windlass_protocol::{Mode, Point, SessionId, Verdict};
use windlass_sandbox::{Hold, Hosts, Keep, Reach, Servant, Shell, Walls, Workspace};
use windlass_testkit::checks::{self, Check};
use windlass_toolkit::hook::fire;
use windlass_toolkit::{Berth, Firing, Heard, Hook, Matter, Moment, Stopped};

/// What is checked, by name.
const CHECKS: &[Check] = &[
    ("what_a_hook_says_counts_and_each_sees_what_the_one_before_made", || {
        run(what_a_hook_says_counts_and_each_sees_what_the_one_before_made())
    }),
    ("an_exit_code_of_two_is_a_no_with_its_complaint", || {
        run(an_exit_code_of_two_is_a_no_with_its_complaint())
    }),
    ("a_hook_that_misbehaves_refuses_in_time_and_says_why", || {
        run(a_hook_that_misbehaves_refuses_in_time_and_says_why())
    }),
    ("a_hook_that_leaves_something_running_is_heard_and_leaves_nothing", || {
        run(a_hook_that_leaves_something_running_is_heard_and_leaves_nothing())
    }),
    ("a_hook_is_asked_about_its_tools_and_changes_nothing", || {
        run(a_hook_is_asked_about_its_tools_and_changes_nothing())
    }),
    ("a_hook_that_rules_do_not_let_start_refuses", || {
        run(a_hook_that_rules_do_not_let_start_refuses())
    }),
    ("a_large_matter_is_told_whole_or_not_read_at_all", || {
        run(a_large_matter_is_told_whole_or_not_read_at_all())
    }),
];

fn run(check: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(check);
}

fn main() -> ExitCode {
    checks::main(CHECKS, windlass_sandbox::keeper)
}

struct Yard {
    folder: tempfile::TempDir,
    workspace: Workspace,
    rules: Value,
}

impl Yard {
    fn new() -> Yard {
        let folder = tempfile::tempdir().unwrap();
        let shell = Shell {
            walls: Walls::Best,
            inherited: std::env::vars_os().collect(),
            reach: Reach::Listed(Hosts::none()),
            write: Vec::new(),
            home: None,
            private: Vec::new(),
            hooks: windlass_sandbox::Hooks::Skip,
        };
        let workspace = Workspace::at(folder.path()).unwrap().with_shell(shell);
        Yard { folder, workspace, rules: json!({}) }
    }

    fn hook(&self, line: &str, timeout: u64) -> Arc<dyn Hook> {
        let keep =
            Keep { workspace: Hold::Read, write: Vec::new(), network: Hosts::none(), walls: None };
        let servant = Servant {
            name: "hook/guard".into(),
            program: "bash".into(),
            arguments: vec!["-c".into(), line.into()],
            folder: self.folder.path().canonicalize().unwrap(),
            env: Vec::new(),
            keep,
        };
        let spec = Spec {
            name: "guard".into(),
            point: Point::BeforeTool,
            matcher: Some("edit|bash".into()),
            servant,
            timeout: Duration::from_millis(timeout),
            form: Form::Ours,
            check: None,
        };
        let policy = Policy::new(Rules::parse(&self.rules).unwrap());
        Arc::new(Program::new(spec, &Berth::new(&self.workspace, &policy)).unwrap())
    }

    async fn fire(&self, hooks: &[Arc<dyn Hook>]) -> (Vec<Firing>, Result<Heard, Stopped>) {
        let folder = self.folder.path().display().to_string();
        let session = SessionId(uuid::Uuid::nil());
        let moment = Moment { session, call: None, folder: &folder, mode: Mode::Auto };
        fire(hooks, &moment, matter()).await
    }
}

fn matter() -> Matter {
    Matter::Before { tool: "edit".into(), arguments: json!({"filePath": "a.txt"}) }
}

async fn what_a_hook_says_counts_and_each_sees_what_the_one_before_made() {
    let yard = Yard::new();
    let first = yard.hook(
        r#"read -r line; case $line in *'"point":"before_tool"'*) echo '{"arguments": {"filePath": "b.txt"}}';; esac"#,
        5_000,
    );
    let second = yard.hook(
        r#"grep -q b.txt && echo '{"verdict": "ask", "reason": "b?"}'; echo noise >&2"#,
        5_000,
    );
    let (firings, heard) = yard.fire(&[first, second]).await;
    let heard = heard.unwrap();
    let arguments = json!({"filePath": "b.txt"});
    assert_eq!(heard.matter, Matter::Before { tool: "edit".into(), arguments });
    assert_eq!(heard.ask.as_deref(), Some("the hook guard asks: b?"));
    let verdicts: Vec<&str> = firings.iter().map(|firing| firing.verdict.word()).collect();
    assert_eq!(verdicts, ["rewrote", "asks"]);
    assert!(firings.iter().all(|firing| firing.took > Duration::ZERO));
}

async fn an_exit_code_of_two_is_a_no_with_its_complaint() {
    let yard = Yard::new();
    let hook = yard.hook("echo 'a.txt is not yours' >&2; echo '{}'; exit 2", 5_000);
    let (firings, heard) = yard.fire(&[hook]).await;
    let stopped = heard.unwrap_err();
    assert_eq!(stopped.to_string(), "The hook guard refused: a.txt is not yours");
    assert_eq!(firings[0].verdict, Verdict::Refused { reason: "a.txt is not yours".into() });
}

async fn a_hook_that_misbehaves_refuses_in_time_and_says_why() {
    let yard = Yard::new();
    // The first start also starts what starts programs.
    yard.fire(&[yard.hook("true", 10_000)]).await.1.unwrap();
    for (line, timeout, words) in [
        ("sleep 100", 500, "did not answer within 500 ms"),
        ("trap '' TERM INT HUP; while :; do :; done", 500, "did not answer within 500 ms"),
        ("(setsid sleep 100 &) ; sleep 100", 500, "did not answer within 500 ms"),
        ("echo boom >&2; exit 1", 4_000, "exited with code 1: boom"),
        ("exit 127", 4_000, "exited with code 127"),
        ("kill -9 $$", 4_000, "signal 9|code 137"),
        ("yes | head -c 1000000000", 4_000, "more than 64 KiB"),
        ("yes >&2", 1_000, "did not answer within 1000 ms"),
        ("echo '{'", 4_000, "not understood"),
        ("echo maybe", 4_000, "not understood"),
        ("printf '\\xff\\xfe'", 4_000, "no text"),
        (r#"echo '{"verdict": "allow"}'"#, 4_000, "unknown variant `allow`"),
        (r#"echo '{"output": "x"}'"#, 4_000, "means nothing at before_tool"),
        ("/nonexistent/program", 4_000, "exited with code 127"),
    ] {
        let since = Instant::now();
        let (firings, heard) = yard.fire(&[yard.hook(line, timeout)]).await;
        let took = since.elapsed();
        let stopped = heard.unwrap_err();
        assert!(took < Duration::from_millis(timeout + 1_000), "{line}: {took:?}");
        assert!(stopped.to_string().starts_with("The hook guard refused: "), "{stopped}");
        let says = |words: &str| stopped.reason.contains(words);
        assert!(words.split('|').any(says), "{line}: {stopped}");
        assert!(stopped.reason.len() < 4 << 10, "{line}");
        assert!(matches!(&firings[0].verdict, Verdict::Failed { .. }), "{line}: {firings:?}");
    }
    yard.workspace.dismiss_servants().await;
}

async fn a_hook_that_leaves_something_running_is_heard_and_leaves_nothing() {
    let yard = Yard::new();
    let hook = yard.hook("sleep 100 & echo '{\"verdict\": \"refuse\", \"reason\": \"no\"}'", 3_000);
    let since = Instant::now();
    let (firings, _) = yard.fire(&[hook]).await;
    assert_eq!(firings[0].verdict, Verdict::Refused { reason: "no".into() });
    assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
}

async fn a_hook_is_asked_about_its_tools_and_changes_nothing() {
    let yard = Yard::new();
    let hook = yard.hook("touch made; test -e made && exit 3; exit 0", 4_000);
    for (point, tool, at) in [
        (Point::BeforeTool, "edit", true),
        (Point::BeforeTool, "bash", true),
        (Point::BeforeTool, "write", false),
        (Point::BeforeTool, "edits", false),
        (Point::AfterTool, "edit", false),
    ] {
        assert_eq!(hook.at(point, Some(tool)), at, "{point} {tool}");
    }
    let (_, heard) = yard.fire(&[hook]).await;
    assert!(heard.is_ok(), "{heard:?}");
    assert!(!yard.folder.path().join("made").exists());
}

async fn a_hook_that_rules_do_not_let_start_refuses() {
    let mut yard = Yard::new();
    yard.rules = json!({"servant": {"hook/guard": "deny"}});
    let (firings, heard) = yard.fire(&[yard.hook("true", 4_000)]).await;
    assert!(heard.unwrap_err().reason.contains("was not started"));
    assert_eq!(firings[0].verdict.word(), "failed");
}

async fn a_large_matter_is_told_whole_or_not_read_at_all() {
    let yard = Yard::new();
    let folder = yard.folder.path().display().to_string();
    let session = SessionId(uuid::Uuid::nil());
    let moment = Moment { session, call: None, folder: &folder, mode: Mode::Plan };
    let arguments = json!({"filePath": "a", "newString": "x".repeat(4 << 20)});
    let big = Matter::Before { tool: "edit".into(), arguments };
    let counts = "test $(wc -c) -gt 4194304 || exit 2";
    for line in [counts, "true", "exec <&-; sleep 0.1"] {
        let (_, heard) = fire(&[yard.hook(line, 5_000)], &moment, big.clone()).await;
        assert_eq!(heard.unwrap().matter, big, "{line}");
    }
}
