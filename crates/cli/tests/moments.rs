//! The binary itself, killed with SIGKILL at arbitrary moments of a session that goes through every
//! kind of tool that changes something. A journal that its commands keep is the witness, and so are
//! the files.
//!
//! `WINDLASS_SEED=… WINDLASS_KILLS=…` tries the same moments again.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};
use windlass_protocol::{CallId, Fact, Outcome, Record};
use windlass_storage::{Log, Sqlite, read_all};
use windlass_testkit::{Model, Script, grammar};
use yard::Yard;

const BEFORE: &str = "# Hello\nA small project.\n";
const AFTER: &str = "# Hello\nA large project.\n";

/// Large enough to be half written for a while.
fn long() -> String {
    "one of many lines, all of them alike\n".repeat(3_000)
}

/// The files that calls make, by what the arguments of the call say, and what is in them.
fn files() -> Vec<(&'static str, String)> {
    vec![
        ("written.txt", long()),
        ("first.txt", "first\n".into()),
        ("second.txt", "second\n".into()),
        ("below.txt", "below\n".into()),
        ("patched.txt", "patched\n".into()),
    ]
}

/// The lines that commands write into the journal. What runs on in the background may be ended
/// before it comes to it.
const NOTES: &[&str] = &["shell", "job", "batched", "below", "patcher", "last"];
const IN_THE_BACKGROUND: &str = "job";

fn note(note: &str) -> serde_json::Value {
    json!({"command": format!("echo {note} >> journal; sleep 0.03"), "description": "d"})
}

fn call(tool: &str, arguments: serde_json::Value) -> String {
    format!("call {tool} {arguments}")
}

fn task(agent: &str) -> String {
    call("task", json!({"description": "d", "prompt": "do it", "subagent_type": agent}))
}

fn own() -> Vec<String> {
    let write = call("write", json!({"filePath": "written.txt", "content": long()}));
    let edit = json!({"filePath": "README.md", "oldString": "small", "newString": "large"});
    let job = json!({"command": "sleep 0.02; echo job >> journal; sleep 60", "background": true});
    let batch = json!({"tool_calls": [
        {"tool": "write", "parameters": {"filePath": "first.txt", "content": "first\n"}},
        {"tool": "bash", "parameters": note("batched")},
        {"tool": "write", "parameters": {"filePath": "second.txt", "content": "second\n"}},
    ]});
    let todos = json!({"todos": [{"content": "c", "status": "pending", "priority": "low"}]});
    let read = call("read", json!({"filePath": "README.md"}));
    vec![
        format!("stall 10\nsay Let me begin.\n{read}\n{write}\nstall 10"),
        format!("{}\n{}", call("edit", edit), call("bash", note("shell"))),
        format!("{}\n{}", call("bash", job), call("batch", batch)),
        task("helper"),
        task("patcher"),
        format!("{}\n{}", call("todowrite", todos), call("bash", note("last"))),
        "stall 5\nsay All of it is done.".to_owned(),
    ]
}

/// A machine with two agents, each with a model of its own: which tools a model is offered goes by
/// its name.
struct Family {
    yard: Yard,
    _models: [Model; 2],
}

impl Family {
    fn new() -> Family {
        let texts = own();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let yard = Yard::new(&texts, "");
        let below = json!({"filePath": "below.txt", "content": "below\n"});
        let patch = "*** Begin Patch\n*** Add File: patched.txt\n+patched\n*** End Patch";
        let patch = json!({"patchText": patch});
        let start = |calls: [String; 2]| {
            Model::start(Script::new([calls[0].as_str(), &calls[1], "say Done below."]))
        };
        let helper = start([call("bash", note("below")), call("write", below)]);
        let patcher = start([call("apply_patch", patch), call("bash", note("patcher"))]);
        let provider = |url: String, model: &str| json!({"api": "openai-chat", "base_url": url, "api_key": "k", "models": {model: {}}});
        let config = json!({"model": "scripted/m", "provider": {
            "scripted": provider(yard.model.url(), "m"),
            "helping": provider(helper.url(), "m"),
            "patching": provider(patcher.url(), "gpt-5"),
        }});
        yard.write_config(&config.to_string());
        let agents = yard.home().join(".config/windlass/agents");
        std::fs::create_dir_all(&agents).unwrap();
        for (name, model) in [("helper", "helping/m"), ("patcher", "patching/gpt-5")] {
            let text = format!(
                "---\ndescription: Helps\nmode: subagent\nmodel: {model}\ntools:\n  \"*\": true\n---\nYou help.\n"
            );
            std::fs::write(agents.join(format!("{name}.md")), text).unwrap();
        }
        Family { yard, _models: [helper, patcher] }
    }

    /// Runs until a moment after the first request and kills there. `None` if it ended before,
    /// else how long it ran in all.
    fn kill_after(&self, delay: Duration) -> Option<Duration> {
        let mut child = self.yard.windlass(&["run", "--yes", "do it all"]).spawn().unwrap();
        while self.yard.model.requests().is_empty() && child.try_wait().unwrap().is_none() {
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

    /// How long a run takes after its first request, when nobody kills it.
    fn calm(&self) -> Duration {
        let child = self.yard.windlass(&["run", "--yes", "do it all"]).spawn().unwrap();
        while self.yard.model.requests().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let start = Instant::now();
        let (code, _, told) = yard::told(&child.wait_with_output().unwrap());
        assert_eq!(code, 0, "{told}");
        start.elapsed()
    }

    /// All sessions, without gaps, the person's own first.
    fn logs(&self) -> Vec<Vec<Record>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let log = Sqlite::open(&self.yard.data()).await.unwrap();
            let mut rows = log.list().await.unwrap();
            rows.sort_by_key(|row| row.parent.is_some());
            let mut logs = Vec::new();
            for row in rows {
                let records = read_all(&log, row.session, 0).await.unwrap();
                for (place, record) in (1..).zip(&records) {
                    assert_eq!(record.seq, place, "a gap");
                }
                grammar::check(records.iter().map(|record| &record.fact)).unwrap();
                logs.push(records);
            }
            logs
        })
    }

    /// How often each line stands in the journal.
    fn journal(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for line in self.yard.read("journal").unwrap_or_default().lines() {
            assert!(NOTES.contains(&line), "half a line: {line:?}");
            *counts.entry(line.to_owned()).or_default() += 1;
        }
        counts
    }

    /// Every file is whole, or not there.
    fn check_whole(&self) {
        for (path, text) in files() {
            let found = self.yard.read(path);
            assert!(found.is_none() || found == Some(text), "{path} is half written: {found:?}");
        }
        let readme = self.yard.read("README.md").unwrap();
        assert!(readme == BEFORE || readme == AFTER, "{readme:?}");
    }

    /// The processes that have to do with this machine.
    fn living(&self) -> Vec<String> {
        let root = self.yard.home().parent().unwrap().to_str().unwrap().to_owned();
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = entries.filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let text = |name: &str| {
                let bytes = std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
                String::from_utf8_lossy(&bytes).replace('\0', " ")
            };
            let folder = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
            let near = folder.starts_with(&root)
                || text("cmdline").contains(&root)
                || text("environ").contains(&root);
            (near && pid != std::process::id()).then(|| format!("{pid} {}", text("cmdline")))
        });
        lines.collect()
    }

    fn wait_until_all_are_gone(&self) -> Duration {
        let start = Instant::now();
        loop {
            let living = self.living();
            if living.is_empty() {
                return start.elapsed();
            }
            assert!(start.elapsed() < Duration::from_secs(2), "still there: {living:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The calls of all sessions.
#[derive(Default)]
struct Calls(BTreeMap<CallId, Call>);

#[derive(Default)]
struct Call {
    tool: String,
    arguments: String,
    attempts: u32,
    outcome: Option<Outcome>,
}

impl Calls {
    fn of(logs: &[Vec<Record>]) -> Calls {
        let mut calls = Calls::default();
        for record in logs.iter().flatten() {
            match &record.fact {
                Fact::Called { call, tool, arguments, .. } => {
                    let row = calls.0.entry(*call).or_default();
                    (row.tool, row.arguments) = (tool.clone(), arguments.clone());
                }
                Fact::Started { call, attempt, .. } => {
                    calls.0.entry(*call).or_default().attempts = *attempt;
                }
                Fact::Settled { call, outcome, .. } => {
                    calls.0.entry(*call).or_default().outcome = Some(outcome.clone());
                }
                _ => {}
            }
        }
        calls
    }

    /// What was under way: the innermost call that had started, or what else went on.
    fn under_way(&self) -> String {
        let open = |call: &&Call| call.attempts > 0 && call.outcome.is_none();
        let mut open: Vec<&Call> = self.0.values().filter(open).collect();
        open.sort_by_key(|call| call.tool == "task");
        match open.first() {
            Some(call) if call.arguments.contains("\"background\":true") => "bash, a job".into(),
            Some(call) if open.len() > 1 => format!("{} in a task", call.tool),
            Some(call) => call.tool.clone(),
            None => "no call".into(),
        }
    }

    /// The call whose arguments say this, which is not the one that sent an agent.
    fn that_says(&self, words: &str) -> Option<&Call> {
        self.0.values().find(|call| call.arguments.contains(words))
    }

    /// What is on record as done is done, once.
    fn check(&self, family: &Family, place: &str) {
        let journal = family.journal();
        for note in NOTES {
            let count = journal.get(*note).copied().unwrap_or_default();
            let call = self.that_says(&format!("echo {note} >>"));
            let attempts = call.map_or(0, |call| call.attempts);
            assert!(count <= attempts as usize, "{place}: {note} ran {count} times of {attempts}");
            let completed = matches!(
                call.and_then(|call| call.outcome.as_ref()),
                Some(Outcome::Completed { output }) if !output.text.contains("Windlass was stopped")
            );
            let sure = completed && *note != IN_THE_BACKGROUND;
            assert!(!sure || count > 0, "{place}: {note} is on record as done, and was not");
        }
        let made = files().into_iter().map(|(path, _)| (path, family.yard.read(path).is_some()));
        let edited = family.yard.read("README.md").unwrap() == AFTER;
        for (path, done) in made.chain([("oldString", edited)]) {
            let call = self.that_says(path);
            assert!(!done || call.is_some_and(|call| call.attempts > 0), "{place}: {path}");
            let outcome = call.and_then(|call| call.outcome.as_ref());
            let completed = matches!(outcome, Some(Outcome::Completed { .. }));
            assert!(!completed || done, "{place}: {path} is on record as done, and is not");
            let failed = matches!(outcome, Some(Outcome::Failed { .. } | Outcome::Denied { .. }));
            let alone = call.is_some_and(|call| call.tool != "batch");
            assert!(!(failed && done && alone), "{place}: {path}: {outcome:?}, but it is done");
        }
    }
}

/// Numbers that look like chance, the same ones for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn kill_9_of_the_binary_at_any_moment_leaves_a_session_that_goes_on() {
    let kills = number("WINDLASS_KILLS").unwrap_or(15);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let seed = number("WINDLASS_SEED").unwrap_or(now.as_micros() as u64);
    println!("WINDLASS_SEED={seed} WINDLASS_KILLS={kills}");
    let mut dice = Dice(seed);
    let calm = Family::new();
    let mut whole = calm.calm();
    let calls = Calls::of(&calm.logs());
    calls.check(&calm, "calm");
    let done = |call: &Call| matches!(call.outcome, Some(Outcome::Completed { .. }));
    assert!(
        calls.0.values().all(done),
        "{:?}",
        calls.0.values().map(|call| &call.outcome).collect::<Vec<_>>()
    );
    assert_eq!(calm.journal().len(), NOTES.len(), "{:?}", calm.journal());
    println!("undisturbed, a run takes {whole:?} after its first request");

    let (mut met, mut unknown, mut found_out) = (BTreeMap::<String, usize>::new(), 0, 0);
    let (mut late, mut slowest) = (0, Duration::ZERO);
    for round in 0..kills {
        if round % 50 == 49 {
            println!("{round} kills so far: {met:?}");
        }
        let family = Family::new();
        let delay = whole.mul_f64(dice.roll() as f64 / u64::MAX as f64);
        let place = format!("kill {round}, after {delay:?}");
        let killed = family.kill_after(delay).is_some();
        family.check_whole();
        slowest = slowest.max(family.wait_until_all_are_gone());
        family.check_whole();
        let logs = family.logs();
        let Some(own) = logs.first() else {
            assert!(killed, "{place}: the prompt was lost");
            continue;
        };
        Calls::of(&logs).check(&family, &place);
        let over = |record: &Record| matches!(record.fact, Fact::TurnEnded { .. });
        if own.iter().any(over) {
            late += 1;
            // It takes no longer; the machine was busy when that was measured.
            whole = delay;
        } else {
            *met.entry(Calls::of(&logs).under_way()).or_default() += 1;
            let (code, _, told) = family.yard.run(&["run", "--continue", "--yes"]);
            assert_eq!(code, 0, "{place}: {told}");
        }
        family.wait_until_all_are_gone();
        family.check_whole();
        let logs = family.logs();
        for log in &logs {
            let settled = grammar::check_settled(log.iter().map(|record| &record.fact));
            settled.unwrap_or_else(|why| panic!("{place}: {why}"));
        }
        let calls = Calls::of(&logs);
        calls.check(&family, &place);
        for outcome in calls.0.values().filter_map(|call| call.outcome.as_ref()) {
            unknown += usize::from(*outcome == Outcome::Unknown);
            found_out += usize::from(outcome.text().contains("Windlass was stopped"));
        }
    }
    println!("killed while under way: {met:#?}");
    println!("{unknown} outcomes unknown, {found_out} found out, {late} kills came too late");
    println!("the slowest end of all processes took {slowest:?}");
    let met: usize = met.values().sum();
    assert!(met as u64 * 2 >= kills, "only {met} of {kills} kills met a turn under way");
}
