//! Crash recovery of the binary: SIGKILL at random moments of a session that uses every kind of
//! tool with side effects. A journal that its commands write and the files show what really ran.
//!
//! `WINDLASS_SEED=… WINDLASS_KILLS=…` repeats the same moments.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};
use support::TestEnv;
use windlass_protocol::{CallId, CallOutcome, Fact, FactRecord};
use windlass_storage::{Log, SqliteLog, read_all};
use windlass_testkit::{ModelScript, ScriptedModel, log_grammar};

const BEFORE: &str = "# Hello\nA small project.\n";
const AFTER: &str = "# Hello\nA large project.\n";

/// A text that takes long enough to write for a kill to interrupt it.
fn long_text() -> String {
    "one of many lines, all of them alike\n".repeat(3_000)
}

/// The files that calls create, with their content. The arguments of the call contain the name.
fn expected_files() -> Vec<(&'static str, String)> {
    vec![
        ("written.txt", long_text()),
        ("first.txt", "first\n".into()),
        ("second.txt", "second\n".into()),
        ("below.txt", "below\n".into()),
        ("patched.txt", "patched\n".into()),
    ]
}

/// The lines that commands append to the journal. The background job may be ended before it does.
const JOURNAL_LINES: &[&str] = &["shell", "job", "batched", "below", "patcher", "last"];
const BACKGROUND_LINE: &str = "job";

fn journal_command(line: &str) -> serde_json::Value {
    json!({"command": format!("echo {line} >> journal; sleep 0.03"), "description": "d"})
}

fn call(tool: &str, arguments: serde_json::Value) -> String {
    format!("call {tool} {arguments}")
}

fn task_call(agent: &str) -> String {
    call("task", json!({"description": "d", "prompt": "do it", "subagent_type": agent}))
}

fn main_replies() -> Vec<String> {
    let write = call("write", json!({"filePath": "written.txt", "content": long_text()}));
    let edit = json!({"filePath": "README.md", "oldString": "small", "newString": "large"});
    let job = json!({"command": "sleep 0.02; echo job >> journal; sleep 60", "background": true});
    let batch = json!({"tool_calls": [
        {"tool": "write", "parameters": {"filePath": "first.txt", "content": "first\n"}},
        {"tool": "bash", "parameters": journal_command("batched")},
        {"tool": "write", "parameters": {"filePath": "second.txt", "content": "second\n"}},
    ]});
    let todos = json!({"todos": [{"content": "c", "status": "pending", "priority": "low"}]});
    let read = call("read", json!({"filePath": "README.md"}));
    vec![
        format!("stall 10\nsay Let me begin.\n{read}\n{write}\nstall 10"),
        format!("{}\n{}", call("edit", edit), call("bash", journal_command("shell"))),
        format!("{}\n{}", call("bash", job), call("batch", batch)),
        task_call("helper"),
        task_call("patcher"),
        format!("{}\n{}", call("todowrite", todos), call("bash", journal_command("last"))),
        "stall 5\nsay All of it is done.".to_owned(),
    ]
}

/// A [`TestEnv`] with two subagents, each with its own model, because the tools that a model is
/// offered depend on its name.
struct RandomKillTestEnv {
    env: TestEnv,
    _models: [ScriptedModel; 2],
}

impl RandomKillTestEnv {
    fn new() -> RandomKillTestEnv {
        let texts = main_replies();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let env = TestEnv::new(&texts, "");
        let below = json!({"filePath": "below.txt", "content": "below\n"});
        let patch = "*** Begin Patch\n*** Add File: patched.txt\n+patched\n*** End Patch";
        let patch = json!({"patchText": patch});
        let start = |calls: [String; 2]| {
            ScriptedModel::start(ModelScript::new([
                calls[0].as_str(),
                &calls[1],
                "say Done below.",
            ]))
        };
        let helper = start([call("bash", journal_command("below")), call("write", below)]);
        let patcher = start([call("apply_patch", patch), call("bash", journal_command("patcher"))]);
        let provider = |url: String, model: &str| json!({"api": "openai-chat", "base_url": url, "api_key": "k", "models": {model: {}}});
        let config = json!({"model": "scripted/m", "provider": {
            "scripted": provider(env.model.url(), "m"),
            "helping": provider(helper.url(), "m"),
            "patching": provider(patcher.url(), "gpt-5"),
        }});
        env.write_config(&config.to_string());
        let agents = env.home().join(".config/windlass/agents");
        std::fs::create_dir_all(&agents).unwrap();
        for (name, model) in [("helper", "helping/m"), ("patcher", "patching/gpt-5")] {
            let text = format!(
                "---\ndescription: Helps\nmode: subagent\nmodel: {model}\ntools:\n  \"*\": true\n---\nYou help.\n"
            );
            std::fs::write(agents.join(format!("{name}.md")), text).unwrap();
        }
        RandomKillTestEnv { env, _models: [helper, patcher] }
    }

    /// Kills the run after `delay`, counted from the first request. Returns the time until the
    /// kill, or `None` if the run ended first.
    fn kill_after(&self, delay: Duration) -> Option<Duration> {
        let mut child = self.env.windlass(&["run", "--yes", "do it all"]).spawn().unwrap();
        while self.env.model.requests().is_empty() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let start = Instant::now();
        while start.elapsed() < delay && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        let killed = child.wait().unwrap().code().is_none();
        killed.then(|| start.elapsed())
    }

    /// Runs without a kill and returns the time from the first request to the end.
    fn run_undisturbed(&self) -> Duration {
        let child = self.env.windlass(&["run", "--yes", "do it all"]).spawn().unwrap();
        while self.env.model.requests().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let start = Instant::now();
        let (code, _, stderr) = support::decode_output(&child.wait_with_output().unwrap());
        assert_eq!(code, 0, "{stderr}");
        start.elapsed()
    }

    /// Returns the logs of all sessions, the main session first, and checks that they have no gaps.
    fn logs(&self) -> Vec<Vec<FactRecord>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let log = SqliteLog::open(&self.env.data()).await.unwrap();
            let mut rows = log.list(&Default::default()).await.unwrap();
            rows.sort_by_key(|row| row.parent.is_some());
            let mut logs = Vec::new();
            for row in rows {
                let records = read_all(&log, row.session, 0).await.unwrap();
                for (seq, record) in (1..).zip(&records) {
                    assert_eq!(record.seq, seq, "a gap in the log");
                }
                log_grammar::check(records.iter().map(|record| &record.fact)).unwrap();
                logs.push(records);
            }
            logs
        })
    }

    /// Counts how often each line is in the journal.
    fn journal(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for line in self.env.read("journal").unwrap_or_default().lines() {
            assert!(JOURNAL_LINES.contains(&line), "an incomplete line: {line:?}");
            *counts.entry(line.to_owned()).or_default() += 1;
        }
        counts
    }

    /// Checks that every file is complete or absent.
    fn check_files(&self) {
        for (path, text) in expected_files() {
            let found = self.env.read(path);
            assert!(found.is_none() || found == Some(text), "{path} is incomplete: {found:?}");
        }
        let readme = self.env.read("README.md").unwrap();
        assert!(readme == BEFORE || readme == AFTER, "{readme:?}");
    }

    /// Lists the processes that have the test's folder in their working directory, command line or
    /// environment.
    fn processes(&self) -> Vec<String> {
        let root = self.env.home().parent().unwrap().to_str().unwrap().to_owned();
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = entries.filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let text = |name: &str| {
                let bytes = std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
                String::from_utf8_lossy(&bytes).replace('\0', " ")
            };
            let folder = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
            let is_related = folder.starts_with(&root)
                || text("cmdline").contains(&root)
                || text("environ").contains(&root);
            (is_related && pid != std::process::id()).then(|| format!("{pid} {}", text("cmdline")))
        });
        lines.collect()
    }

    /// Waits until no such process is left and returns how long that took.
    fn wait_for_process_end(&self) -> Duration {
        let start = Instant::now();
        loop {
            let processes = self.processes();
            if processes.is_empty() {
                return start.elapsed();
            }
            assert!(
                start.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(2)),
                "still running: {processes:?}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The tool calls in the logs of all sessions.
#[derive(Default)]
struct LoggedToolCalls(BTreeMap<CallId, LoggedToolCall>);

#[derive(Default)]
struct LoggedToolCall {
    tool: String,
    arguments: String,
    attempts: u32,
    outcome: Option<CallOutcome>,
}

impl LoggedToolCalls {
    fn of(logs: &[Vec<FactRecord>]) -> LoggedToolCalls {
        let mut calls = LoggedToolCalls::default();
        for record in logs.iter().flatten() {
            match &record.fact {
                Fact::ToolCalled { call, tool, arguments, .. } => {
                    let row = calls.0.entry(*call).or_default();
                    (row.tool, row.arguments) = (tool.clone(), arguments.clone());
                }
                Fact::CallStarted { call, attempt, .. } => {
                    calls.0.entry(*call).or_default().attempts = *attempt;
                }
                Fact::CallSettled { call, outcome, .. } => {
                    calls.0.entry(*call).or_default().outcome = Some(outcome.clone());
                }
                _ => {}
            }
        }
        calls
    }

    /// Describes the innermost call that has started and not settled.
    fn describe_running_call(&self) -> String {
        let open = |call: &&LoggedToolCall| call.attempts > 0 && call.outcome.is_none();
        let mut open: Vec<&LoggedToolCall> = self.0.values().filter(open).collect();
        open.sort_by_key(|call| call.tool == "task");
        match open.first() {
            Some(call) if call.arguments.contains("\"background\":true") => "bash, a job".into(),
            Some(call) if open.len() > 1 => format!("{} in a task", call.tool),
            Some(call) => call.tool.clone(),
            None => "no call".into(),
        }
    }

    /// Returns the call whose arguments contain `words`.
    fn find_by_arguments(&self, words: &str) -> Option<&LoggedToolCall> {
        self.0.values().find(|call| call.arguments.contains(words))
    }

    /// Checks that a call recorded as completed had its effect, and no call more often than it
    /// started.
    fn check(&self, kill_env: &RandomKillTestEnv, label: &str) {
        let journal = kill_env.journal();
        for note in JOURNAL_LINES {
            let count = journal.get(*note).copied().unwrap_or_default();
            let call = self.find_by_arguments(&format!("echo {note} >>"));
            let attempts = call.map_or(0, |call| call.attempts);
            assert!(count <= attempts as usize, "{label}: {note} ran {count} times of {attempts}");
            let completed = matches!(
                call.and_then(|call| call.outcome.as_ref()),
                Some(CallOutcome::Completed { output }) if !output.text.contains("Windlass was stopped")
            );
            let sure = completed && *note != BACKGROUND_LINE;
            assert!(
                !sure || count > 0,
                "{label}: {note} is recorded as completed, but did not run"
            );
        }
        let made =
            expected_files().into_iter().map(|(path, _)| (path, kill_env.env.read(path).is_some()));
        let edited = kill_env.env.read("README.md").unwrap() == AFTER;
        for (path, done) in made.chain([("oldString", edited)]) {
            let call = self.find_by_arguments(path);
            assert!(!done || call.is_some_and(|call| call.attempts > 0), "{label}: {path}");
            let outcome = call.and_then(|call| call.outcome.as_ref());
            let completed = matches!(outcome, Some(CallOutcome::Completed { .. }));
            assert!(
                !completed || done,
                "{label}: {path} is recorded as completed, but has no effect"
            );
            let failed =
                matches!(outcome, Some(CallOutcome::Failed { .. } | CallOutcome::Denied { .. }));
            let alone = call.is_some_and(|call| call.tool != "batch");
            assert!(
                !(failed && done && alone),
                "{label}: {path}: {outcome:?}, but it had an effect"
            );
        }
    }
}

/// A random number generator (splitmix64) with a seed.
struct SeededRng(u64);

impl SeededRng {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Reads a number from the environment variable `name`.
fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn kill_9_of_the_binary_at_any_moment_leaves_a_session_that_can_be_resumed() {
    let kills = env_number("WINDLASS_KILLS").unwrap_or(15);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let seed = env_number("WINDLASS_SEED").unwrap_or(now.as_micros() as u64);
    println!("WINDLASS_SEED={seed} WINDLASS_KILLS={kills}");
    let mut rng = SeededRng(seed);
    let undisturbed = RandomKillTestEnv::new();
    let mut run_time = undisturbed.run_undisturbed();
    let calls = LoggedToolCalls::of(&undisturbed.logs());
    calls.check(&undisturbed, "undisturbed");
    let done = |call: &LoggedToolCall| matches!(call.outcome, Some(CallOutcome::Completed { .. }));
    assert!(
        calls.0.values().all(done),
        "{:?}",
        calls.0.values().map(|call| &call.outcome).collect::<Vec<_>>()
    );
    assert_eq!(undisturbed.journal().len(), JOURNAL_LINES.len(), "{:?}", undisturbed.journal());
    println!("an undisturbed run takes {run_time:?} after its first request");

    let (mut running, mut unknown, mut resolved) = (BTreeMap::<String, usize>::new(), 0, 0);
    let (mut late, mut slowest) = (0, Duration::ZERO);
    for round in 0..kills {
        if round % 50 == 49 {
            println!("{round} kills so far: {running:?}");
        }
        let kill_env = RandomKillTestEnv::new();
        let delay = run_time.mul_f64(rng.next_u64() as f64 / u64::MAX as f64);
        let label = format!("kill {round}, after {delay:?}");
        let killed = kill_env.kill_after(delay).is_some();
        kill_env.check_files();
        slowest = slowest.max(kill_env.wait_for_process_end());
        kill_env.check_files();
        let logs = kill_env.logs();
        let Some(main_log) = logs.first() else {
            assert!(killed, "{label}: the prompt was lost");
            continue;
        };
        LoggedToolCalls::of(&logs).check(&kill_env, &label);
        let is_turn_end = |record: &FactRecord| matches!(record.fact, Fact::TurnEnded { .. });
        if main_log.iter().any(is_turn_end) {
            late += 1;
            // A run takes no longer than this; the machine was busy during the measurement.
            run_time = delay;
        } else {
            *running.entry(LoggedToolCalls::of(&logs).describe_running_call()).or_default() += 1;
            let (code, _, stderr) = kill_env.env.run(&["run", "--continue", "--yes"]);
            assert_eq!(code, 0, "{label}: {stderr}");
        }
        kill_env.wait_for_process_end();
        kill_env.check_files();
        let logs = kill_env.logs();
        for log in &logs {
            let settled = log_grammar::check_settled(log.iter().map(|record| &record.fact));
            settled.unwrap_or_else(|why| panic!("{label}: {why}"));
        }
        let calls = LoggedToolCalls::of(&logs);
        calls.check(&kill_env, &label);
        for outcome in calls.0.values().filter_map(|call| call.outcome.as_ref()) {
            unknown += usize::from(*outcome == CallOutcome::ResultUnknown);
            resolved += usize::from(outcome.text().contains("Windlass was stopped"));
        }
    }
    println!("calls that were running at the kill: {running:#?}");
    println!("{unknown} unknown outcomes, {resolved} resolved, {late} kills after the end");
    println!("all processes ended after at most {slowest:?}");
    let running: usize = running.values().sum();
    assert!(running as u64 * 2 >= kills, "only {running} of {kills} kills interrupted a turn");
}
