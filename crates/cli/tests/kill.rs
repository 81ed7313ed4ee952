//! A real process is killed with SIGKILL at every point of real sessions: around every append,
//! around every side effect, and while the model speaks. A journal that a tool keeps outside the
//! log is the witness. Each child is this test, run again as a process of its own.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use windlass_engine::{Asked, Engine, Settings};
use windlass_llm::wire::Format;
use windlass_llm::{Client, Endpoint};
use windlass_permission::{Policy, Rules};
use windlass_protocol::{
    Access, Answer, Event, Fact, Op, Outcome, Output, Part, Record, Transcript,
};
use windlass_sandbox::Workspace;
use windlass_storage::{Error, Log, Sqlite, Tap, Tapped, Writing, read_all};
use windlass_testkit::{Model, Script, grammar};
use windlass_toolkit::{Cx, Definition, Failure, Registry, Runtime, Scene, Tool};

/// Sessions to be killed. `journal` changes something, and one of its forms must be asked about.
const SESSIONS: &[&[&str]] = &[
    &["say One two three.\ncall journal {\"note\": \"a\"}", "say Done."],
    &[
        "call read {\"filePath\": \"README.md\"}\ncall read {\"filePath\": \"README.md\"}\ncall journal {\"note\": \"b\"}",
        "call journal {\"note\": \"ask c\"}\ncall journal {\"note\": \"d\"}\ncall read {\"filePath\": \"README.md\"}",
        "say All of it is done.",
    ],
    &[
        "call write {\"filePath\": \"made.txt\", \"content\": \"made\\n\"}\ncall nonsense {}",
        "say Made.",
    ],
];

// --- The child ---------------------------------------------------------------------------------

/// Counts the points passed; at the one that was asked for it tells, and waits to be killed.
fn point() {
    static PASSED: AtomicUsize = AtomicUsize::new(0);
    let here = PASSED.fetch_add(1, Ordering::SeqCst);
    if std::env::var("POINT").is_ok_and(|wanted| wanted == here.to_string()) {
        println!("AT THE POINT");
        std::io::stdout().flush().unwrap();
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
}

/// A point on either side of every append, and before every copy.
struct Points;

impl Tap for Points {
    fn before(&self, write: Writing) -> Result<(), Error> {
        if write != Writing::Blob {
            point();
        }
        Ok(())
    }

    fn after(&self, write: Writing) -> Result<(), Error> {
        if matches!(write, Writing::Facts(_)) {
            point();
        }
        Ok(())
    }
}

/// Writes the id of its call into a file that is no part of the session.
struct Journal(PathBuf);

#[derive(Deserialize, JsonSchema)]
struct Note {
    note: String,
}

#[async_trait]
impl Tool for Journal {
    type Input = Note;

    fn name(&self) -> &str {
        "journal"
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Note>("Keeps a journal.")
    }

    fn access(&self, input: &Note) -> Vec<Access> {
        let tool = if input.note.starts_with("ask") { "asked_journal" } else { "journal" };
        vec![Access::Use { tool: tool.into() }]
    }

    async fn run(&self, input: Note, cx: &Cx<'_>) -> Result<Output, Failure> {
        point();
        let mut journal = std::fs::File::options().append(true).create(true).open(&self.0).unwrap();
        writeln!(journal, "{}", cx.call).unwrap();
        journal.sync_all().unwrap();
        point();
        Ok(Output { text: format!("noted {}", input.note), ..Output::default() })
    }
}

#[test]
#[ignore = "run as a child of the other tests"]
fn child() {
    let Some(folder) = std::env::var_os("YARD").map(PathBuf::from) else { return };
    let url = std::env::var("MODEL").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(live(&folder, url));
}

/// Goes on with the session there is, or begins one, until its one turn has ended.
async fn live(folder: &Path, url: String) {
    let rules = r#"{"*": "allow", "asked_journal": "ask"}"#;
    let tools = Runtime {
        registry: Registry::default(),
        hooks: Vec::new(),
        policy: Policy::new(Rules::parse(&serde_json::from_str(rules).unwrap()).unwrap()),
        workspace: Workspace::at(&folder.join("w")).unwrap(),
        limits: Default::default(),
    };
    windlass_tools::register(&tools.registry, &windlass_tools::Senses::default());
    tools.registry.register(Journal(folder.join("journal")));
    let client = Client::new(Endpoint::plain(Format::OpenaiChat, url)).unwrap();
    let settings = Settings::new("/w", Some(Asked::plainly(client, "m")), "p/m");
    let log = Arc::new(Sqlite::open(&folder.join("data")).await.unwrap());
    let log: Arc<dyn Log> = Arc::new(Tapped::new(log, Points));
    let engine = Engine::new(Arc::clone(&log), Arc::new(tools), settings);

    let known = log.list().await.unwrap();
    let mut past = Vec::new();
    let (handle, mut watcher) = match known.first() {
        Some(row) => {
            past = read_all(&*log, row.session, 0).await.unwrap();
            engine.open(row.session).await.unwrap()
        }
        None => engine.create().await.unwrap(),
    };
    if past.iter().any(|record| matches!(record.fact, Fact::TurnEnded { .. })) {
        return;
    }
    if past.is_empty() {
        handle.send(Op::prompt("go")).await;
    }
    while let Some(event) = watcher.next().await.unwrap() {
        let Event::Fact(record) = &*event else { continue };
        match &record.fact {
            Fact::Asked { call, .. } => {
                handle.send(Op::Answer { call: *call, answer: Answer::Once }).await;
            }
            Fact::TurnEnded { .. } => break,
            _ => {}
        }
    }
    handle.close().await.unwrap();
}

// --- The parent --------------------------------------------------------------------------------

struct Killing {
    folder: tempfile::TempDir,
    model: Model,
}

impl Killing {
    fn new(replies: &[&str]) -> Killing {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("w")).unwrap();
        std::fs::write(folder.path().join("w/README.md"), "# Hello\n").unwrap();
        Killing { folder, model: Model::start(Script::new(replies.iter().copied())) }
    }

    fn child(&self, point: Option<usize>) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "child", "--nocapture", "--include-ignored"]);
        command.env("YARD", self.folder.path()).env("MODEL", self.model.url());
        command.env_remove("POINT").stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(point) = point {
            command.env("POINT", point.to_string());
        }
        command
    }

    /// Runs to a point and kills there; false if the session ended first.
    fn kill_at(&self, point: usize) -> bool {
        let mut child = self.child(Some(point)).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let reached = lines.map_while(Result::ok).any(|line| line.contains("AT THE POINT"));
        child.kill().unwrap();
        child.wait().unwrap();
        reached
    }

    fn run_to_the_end(&self) {
        let output = self.child(None).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn log(&self) -> Vec<Record> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let log = Sqlite::open(&self.folder.path().join("data")).await.unwrap();
            let sessions = log.list().await.unwrap();
            assert_eq!(sessions.len(), 1, "the prompt began more than one session");
            read_all(&log, sessions[0].session, 0).await.unwrap()
        })
    }

    /// Whether the file stands that a session was to make.
    fn made(&self) -> bool {
        self.folder.path().join("w/made.txt").exists()
    }

    /// How often each call id stands in the journal.
    fn journal(&self) -> BTreeMap<String, usize> {
        let text = std::fs::read_to_string(self.folder.path().join("journal")).unwrap_or_default();
        let mut counts = BTreeMap::new();
        for line in text.lines() {
            *counts.entry(line.to_owned()).or_default() += 1;
        }
        counts
    }
}

/// What a transcript says, without ids, and its outcomes apart.
fn told(log: &[Record]) -> (Vec<String>, Vec<Outcome>) {
    let transcript = Transcript::of(log);
    let mut lines = vec![format!("{:?}", transcript.end)];
    let mut outcomes = Vec::new();
    for part in transcript.messages.iter().flat_map(|message| &message.parts) {
        lines.push(match part {
            Part::Text { text, .. } | Part::Reasoning { text, .. } => text.clone(),
            Part::File(file) => file.name.clone(),
            Part::Call(call) => {
                outcomes.extend(call.outcome.clone());
                format!("{} {}", call.tool, call.arguments)
            }
        });
    }
    (lines, outcomes)
}

#[test]
fn kill_9_at_every_point_loses_nothing_and_runs_nothing_twice() {
    let (mut kills, mut unknown, mut found_out) = (0, 0, 0);
    for replies in SESSIONS {
        let calm = Killing::new(replies);
        calm.run_to_the_end();
        let (expected, expected_outcomes) = told(&calm.log());
        for at in 0.. {
            let killing = Killing::new(replies);
            if !killing.kill_at(at) {
                break;
            }
            kills += 1;
            killing.run_to_the_end();
            let log = killing.log();
            grammar::check_settled(log.iter().map(|record| &record.fact)).unwrap();
            let (lines, outcomes) = told(&log);
            assert_eq!(lines, expected, "point {at}");
            for (outcome, expected) in outcomes.iter().zip(&expected_outcomes) {
                match outcome {
                    Outcome::Unknown => unknown += 1,
                    // It was found out what became of it, and the file agrees.
                    other if other.text().contains("Windlass was stopped") => {
                        let done = matches!(other, Outcome::Completed { .. });
                        assert_eq!(killing.made(), done, "point {at}");
                        found_out += 1;
                    }
                    other => assert_eq!(other, expected, "point {at}"),
                }
            }
            let journal = killing.journal();
            assert!(journal.values().all(|count| *count == 1), "point {at}: {journal:?}");
            let started = |id: &str| {
                let is = |record: &&Record| matches!(&record.fact, Fact::Started { call, .. } if call.to_string() == id);
                log.iter().filter(is).count()
            };
            assert!(
                journal.keys().all(|id| started(id) == 1),
                "point {at}: a change off the record"
            );
        }
    }
    println!("{kills} kills, {unknown} outcomes unknown, {found_out} found out");
    assert!(found_out > 0, "no kill met a file under way");
    assert!(kills >= 50, "only {kills} kills");
    assert!(unknown > 0, "no kill met a change under way");
}
