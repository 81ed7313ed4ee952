//! Disk errors from the kernel: `strace` injects ENOSPC or EIO into the n-th system call of each
//! kind by which the binary writes. The run ends in order, files are complete, and the session can
//! be resumed without the fault.
//!
//! `strace` counts calls per thread, so a fault may occur more than once in a run.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::TestEnv;
use windlass_protocol::Fact;
use windlass_testkit::log_grammar;

const REPLIES: &[&str] = &[
    "say Let me see.\ncall read {\"filePath\": \"README.md\"}\ncall write {\"filePath\": \"made.txt\", \"content\": \"made\\n\"}",
    "call edit {\"filePath\": \"README.md\", \"oldString\": \"small\", \"newString\": \"large\"}\ncall read {\"filePath\": \"long.txt\"}",
    "say Done.",
];

const BEFORE: &str = "# Hello\nA small project.\n";
const AFTER: &str = "# Hello\nA large project.\n";

/// An error that `strace` injects.
struct InjectedFault {
    /// The system calls that fail.
    calls: &'static str,
    error: &'static str,
    /// `+` if all later calls fail, too. Renames are not retried, so each fails once.
    repeat: &'static str,
    /// The first call and the step to the next that CI tries; the soak test tries all.
    first: usize,
    stride: usize,
}

/// Not `renameat`: a library calls it to detect its environment, and aborts on an unexpected error.
const RENAMES: &str = "rename,renameat2";

const FAULTS: &[InjectedFault] = &[
    InjectedFault { calls: "pwrite64", error: "ENOSPC", repeat: "+", first: 1, stride: 10 },
    InjectedFault { calls: "pwrite64", error: "EIO", repeat: "", first: 6, stride: 10 },
    InjectedFault { calls: "fsync,fdatasync", error: "ENOSPC", repeat: "+", first: 1, stride: 1 },
    InjectedFault { calls: "fsync,fdatasync", error: "EIO", repeat: "", first: 1, stride: 1 },
    InjectedFault { calls: "ftruncate", error: "ENOSPC", repeat: "+", first: 1, stride: 1 },
    InjectedFault { calls: RENAMES, error: "ENOSPC", repeat: "", first: 1, stride: 1 },
    InjectedFault { calls: RENAMES, error: "EIO", repeat: "", first: 1, stride: 1 },
];

/// A run under `strace` that takes longer hangs.
const RUN_TIMEOUT: Duration = Duration::from_secs(60);

fn is_soak_test() -> bool {
    std::env::var_os("WINDLASS_SOAK").is_some()
}

fn create_env() -> TestEnv {
    let env = TestEnv::new(REPLIES, "");
    std::fs::write(env.root().join("long.txt"), "a long line of words\n".repeat(5_000)).unwrap();
    env
}

/// The result of a run with an injected fault.
struct FaultyRunResult {
    code: i32,
    stderr: String,
    /// The calls that failed, from the trace.
    failed_calls: Vec<String>,
}

/// Runs the binary under `strace` with an injected fault.
fn run(env: &TestEnv, inject: &str) -> FaultyRunResult {
    let trace = env.home().join("trace");
    let traced = format!("trace={}", inject.split(':').next().unwrap());
    let inject = format!("inject={inject}");
    let strace = ["strace", "-f", "-qq", "--seccomp-bpf", "-e", &traced, "-e", &inject];
    let wrapper = [&strace[..], &["-o", trace.to_str().unwrap()]].concat();
    let mut command = env.wrapped(&wrapper, &["run", "--yes", "go"]);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > RUN_TIMEOUT {
            child.kill().unwrap();
            panic!("{inject}: the run hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let (code, _, stderr) = support::decode_output(&child.wait_with_output().unwrap());
    let trace = std::fs::read_to_string(&trace).unwrap();
    let failed_calls =
        trace.lines().filter(|line| line.contains("(INJECTED)")).map(str::to_owned).collect();
    FaultyRunResult { code, stderr, failed_calls }
}

/// Checks the state after a run with a fault, and again after the session was resumed without it.
fn check(
    env: &TestEnv,
    fault: &str,
    FaultyRunResult { code, stderr, failed_calls }: FaultyRunResult,
) {
    assert!(!stderr.contains("panicked"), "{fault}: {stderr}");
    assert!(!stderr.contains("taken over by"), "{fault}: the session was not taken over: {stderr}");
    assert!((0..=4).contains(&code), "{fault}: {code}: {stderr}");
    assert!(code == 0 || !stderr.trim().is_empty(), "{fault}: it ended with {code} and no message");
    let check_files = || {
        let made = env.read("made.txt");
        assert!(made.is_none() || made.as_deref() == Some("made\n"), "{fault}: {made:?}");
        let readme = env.read("README.md").unwrap();
        assert!(readme == BEFORE || readme == AFTER, "{fault}: {readme:?}");
    };
    check_files();
    let (listed, list, stderr) = env.run(&["session", "list"]);
    assert_eq!(listed, 0, "{fault}: {stderr}");
    if list.contains("unfinished") {
        let (code, _, stderr) = env.run(&["run", "--continue", "--yes"]);
        assert_eq!(code, 0, "{fault}: {stderr}");
    } else if list.is_empty() {
        // The prompt was not recorded, which must be reported.
        assert!(code != 0, "{fault}: the prompt was lost without an error");
        let (code, _, stderr) = env.run(&["run", "--yes", "go"]);
        assert_eq!(code, 0, "{fault}: {stderr}");
    }
    check_files();
    let facts = env.facts();
    for (seq, fact) in (1..).zip(&facts) {
        assert_eq!(fact["seq"], seq, "{fault}: a gap in the log");
    }
    let facts: Vec<Fact> =
        facts.into_iter().map(|fact| serde_json::from_value(fact).unwrap()).collect();
    log_grammar::check_settled(&facts).unwrap_or_else(|why| panic!("{fault}: {why}"));
    let leftovers: Vec<_> = std::fs::read_dir(env.root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !["README.md", "long.txt", "made.txt"].contains(&name.as_str()))
        .collect();
    assert!(
        leftovers.is_empty(),
        "{fault}, {failed_calls:?}: {leftovers:?} is left in the workspace"
    );
}

#[test]
fn a_full_or_failing_disk_in_any_system_call_ends_the_run_in_order() {
    let usable = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    if !usable.is_ok_and(|output| output.status.success()) {
        println!("skipped: strace cannot be used here");
        return;
    }
    let mut counts = BTreeMap::<String, (usize, usize)>::new();
    for InjectedFault { calls, error, repeat, first, stride } in FAULTS {
        let (first, stride) = if is_soak_test() { (1, 1) } else { (*first, *stride) };
        for at in (first..).step_by(stride) {
            let fault = format!("{calls}:error={error}:when={at}{repeat}");
            let env = create_env();
            let result = run(&env, &fault);
            if result.failed_calls.is_empty() {
                break;
            }
            let last = result.stderr.lines().last().unwrap_or_default();
            println!(
                "{fault}: exit code {}, {} failed calls: {last}",
                result.code,
                result.failed_calls.len()
            );
            let row = counts.entry(format!("{calls} {error}")).or_default();
            *row = (row.0 + 1, row.1 + usize::from(result.code != 0));
            check(&env, &fault, result);
        }
    }
    println!("runs with a fault, and how many of them failed: {counts:#?}");
    let runs: usize = counts.values().map(|(runs, _)| runs).sum();
    assert!(runs > 10 && counts.values().any(|(_, failed)| *failed > 0), "{counts:?}");
}
