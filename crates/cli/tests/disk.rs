//! The disk is full, or fails once, at every single write of real sessions: nothing is done that
//! is not on record, what there is stays readable, and with a disk that works again the session
//! comes to the end it would have had. A journal that a tool keeps outside the log is the witness.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use windlass_engine::{Asked, Engine, Role, Settings, Worker};
use windlass_llm::wire::Format;
use windlass_llm::{Client, Endpoint};
use windlass_permission::{Policy, Rules};
use windlass_protocol::{
    Access, Answer, Event, Fact, Fault, Op, Outcome, Output, Part, Record, Transcript,
};
use windlass_sandbox::Workspace;
use windlass_storage::{Error, Log, Sqlite, Tap, Tapped, Writing, read_all};
use windlass_testkit::{Model, Script, grammar};
use windlass_toolkit::{Bounds, Cx, Definition, Failure, Registry, Runtime, Scene, Tool};

/// A session that a person begins, and the one that its agent works in.
struct Plot {
    own: &'static [&'static str],
    agent: &'static [&'static str],
}

const PLOTS: &[Plot] = &[
    Plot {
        own: &[
            "say Let me see.\ncall read {\"filePath\": \"README.md\"}\ncall write {\"filePath\": \"made.txt\", \"content\": \"made\\n\"}\ncall journal {\"note\": \"a\"}",
            "call edit {\"filePath\": \"README.md\", \"oldString\": \"Hello\", \"newString\": \"Farewell\"}\ncall journal {\"note\": \"ask c\"}\ncall journal {\"note\": \"long\"}",
            "call question {\"questions\": [{\"header\": \"h\", \"question\": \"Which?\", \"options\": [{\"label\": \"one\", \"description\": \"d\"}, {\"label\": \"two\", \"description\": \"d\"}]}]}\ncall journal {\"note\": \"d\"}",
            "say All of it is done.",
        ],
        agent: &[],
    },
    Plot {
        own: &[
            "call journal {\"note\": \"before\"}\ncall task {\"description\": \"d\", \"prompt\": \"do it\", \"subagent_type\": \"helper\"}",
            "call journal {\"note\": \"after\"}",
            "say It is done.",
        ],
        agent: &[
            "call journal {\"note\": \"below\"}\ncall write {\"filePath\": \"below.txt\", \"content\": \"below\\n\"}",
            "call journal {\"note\": \"ask below\"}",
            "say Done below.",
        ],
    },
    Plot {
        own: &[
            "call batch {\"tool_calls\": [{\"tool\": \"write\", \"parameters\": {\"filePath\": \"one.txt\", \"content\": \"1\\n\"}}, {\"tool\": \"journal\", \"parameters\": {\"note\": \"in a batch\"}}, {\"tool\": \"write\", \"parameters\": {\"filePath\": \"two.txt\", \"content\": \"2\\n\"}}]}\ncall nonsense {}",
            "call todowrite {\"todos\": [{\"content\": \"rest\", \"status\": \"pending\", \"priority\": \"low\"}]}",
            "say Written.",
        ],
        agent: &[],
    },
];

/// What a disk does when its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// It takes one write not at all.
    Once,
    /// It takes one write, and says that it did not.
    Lost,
    /// It takes nothing any more.
    Full,
}

/// A disk that fails at its n-th write.
struct Faulty {
    way: Way,
    at: usize,
    writes: AtomicUsize,
    /// The next write that ends is denied.
    denies: AtomicBool,
    /// The write that failed first.
    hit: Mutex<Option<Writing>>,
}

impl Faulty {
    fn fail(&self, write: Writing) -> Result<(), Error> {
        self.hit.lock().unwrap().get_or_insert(write);
        const NO_SPACE: i32 = 28;
        let source = std::io::Error::from_raw_os_error(NO_SPACE);
        Err(Error::File { what: "the disk".into(), source })
    }
}

impl Tap for Faulty {
    fn before(&self, write: Writing) -> Result<(), Error> {
        let here = self.writes.fetch_add(1, Ordering::SeqCst);
        match self.way {
            Way::Once if here == self.at => return self.fail(write),
            Way::Full if here >= self.at => return self.fail(write),
            Way::Lost if here == self.at => self.denies.store(true, Ordering::SeqCst),
            Way::Once | Way::Full | Way::Lost => {}
        }
        Ok(())
    }

    fn after(&self, write: Writing) -> Result<(), Error> {
        if self.denies.swap(false, Ordering::SeqCst) { self.fail(write) } else { Ok(()) }
    }
}

/// Writes the id of its call into a file that is no part of the session, and whether its start
/// was on record when it did.
struct Journal {
    path: PathBuf,
    log: Arc<Sqlite>,
}

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
        let known = read_all(&*self.log, cx.session, 0).await.unwrap();
        let started = known
            .iter()
            .any(|record| matches!(&record.fact, Fact::Started { call, .. } if *call == cx.call));
        let how = if started { "on record" } else { "OFF THE RECORD" };
        let mut journal =
            std::fs::File::options().append(true).create(true).open(&self.path).unwrap();
        writeln!(journal, "{} {} {how}", cx.call, input.note).unwrap();
        let long = if input.note == "long" { "word ".repeat(20_000) } else { String::new() };
        Ok(Output { text: format!("noted {}\n{long}", input.note), ..Output::default() })
    }
}

/// A machine whose disk may fail.
struct Machine {
    folder: tempfile::TempDir,
    own: Model,
    agent: Model,
}

/// What came of a run.
struct Run {
    closed: Result<(), Fault>,
    hit: Option<Writing>,
    writes: usize,
}

impl Machine {
    fn new(plot: &Plot) -> Machine {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("w")).unwrap();
        std::fs::write(folder.path().join("w/README.md"), "# Hello\n").unwrap();
        let start = |replies: &[&str]| Model::start(Script::new(replies.iter().copied()));
        Machine { folder, own: start(plot.own), agent: start(plot.agent) }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    async fn open(&self) -> Arc<Sqlite> {
        Arc::new(Sqlite::open(&self.at("data")).await.unwrap())
    }

    fn engine(&self, log: Arc<dyn Log>, real: &Arc<Sqlite>) -> Engine {
        let rules = r#"{"*": "allow", "asked_journal": "ask"}"#;
        let tools = Runtime {
            registry: Registry::default(),
            hooks: Vec::new(),
            policy: Policy::new(Rules::parse(&serde_json::from_str(rules).unwrap()).unwrap()),
            workspace: Workspace::at(&self.at("w")).unwrap(),
            limits: Default::default(),
        };
        windlass_tools::register(&tools.registry, &windlass_tools::Senses::default());
        tools.registry.register(Journal { path: self.at("journal"), log: Arc::clone(real) });
        let asked = |model: &Model| {
            let client = Client::new(Endpoint::plain(Format::OpenaiChat, model.url())).unwrap();
            Asked::plainly(client, "m")
        };
        let mut settings = Settings::new("/w", Some(asked(&self.own)), "p/m");
        let worker = Worker {
            name: "helper".into(),
            description: "Helps.".into(),
            role: Role::Subagent,
            prompt: "You help.".into(),
            bounds: Bounds::default(),
            model: Some((asked(&self.agent), "p/helper".into())),
        };
        settings.agents = Arc::new([Arc::new(worker)]);
        Engine::new(log, Arc::new(tools), settings)
    }

    /// Goes on with the session there is, or begins one, until its turn has ended or the session
    /// has.
    async fn run(&self, way: Way, at: usize) -> Run {
        let real = self.open().await;
        let (writes, denies, hit) = Default::default();
        let disk = Faulty { way, at, writes, denies, hit };
        let tapped = Arc::new(Tapped::new(Arc::clone(&real) as Arc<dyn Log>, disk));
        let log: Arc<dyn Log> = Arc::clone(&tapped) as Arc<dyn Log>;
        let engine = self.engine(Arc::clone(&log), &real);
        let known = log.list().await.unwrap();
        let mut past = Vec::new();
        let own = known.iter().find(|row| row.parent.is_none());
        let (handle, mut watcher) = match own {
            Some(row) => {
                past = read_all(&*log, row.session, 0).await.unwrap();
                engine.open(row.session).await.unwrap()
            }
            None => engine.create().await.unwrap(),
        };
        let has = |wanted: fn(&Fact) -> bool| past.iter().any(|record| wanted(&record.fact));
        if !has(|fact| matches!(fact, Fact::Prompted { .. })) {
            handle.send(Op::prompt("go")).await;
        }
        let mut over = has(|fact| matches!(fact, Fact::TurnEnded { .. }));
        while !over {
            let next = tokio::time::timeout(Duration::from_secs(20), watcher.next()).await;
            let Some(event) = next.expect("it hangs").unwrap() else { break };
            let Event::Fact(record) = &*event else { continue };
            match &record.fact {
                Fact::Asked { call, .. } => {
                    handle.send(Op::Answer { call: *call, answer: Answer::Once }).await;
                }
                Fact::Inquired { call, .. } => {
                    let replies = vec![vec!["one".to_owned()]];
                    handle.send(Op::Reply { call: *call, replies }).await;
                }
                Fact::TurnEnded { .. } => over = record.session == handle.session,
                _ => {}
            }
        }
        let closed = handle.close().await;
        let hit = *tapped.tap().hit.lock().unwrap();
        Run { closed, hit, writes: tapped.tap().writes.load(Ordering::SeqCst) }
    }

    /// All sessions, the person's own first, each without a gap and as logs can be.
    async fn logs(&self) -> Vec<Vec<Record>> {
        let log = self.open().await;
        let mut rows = log.list().await.unwrap();
        rows.sort_by_key(|row| row.parent.is_some());
        let mut logs = Vec::new();
        for row in rows {
            let records = read_all(&*log, row.session, 0).await.unwrap();
            for (place, record) in (1..).zip(&records) {
                assert_eq!(record.seq, place, "a gap");
            }
            grammar::check(records.iter().map(|record| &record.fact)).unwrap();
            logs.push(records);
        }
        logs
    }

    /// How often each call stands in the journal; none was off the record.
    fn journal(&self) -> BTreeMap<String, usize> {
        let text = std::fs::read_to_string(self.at("journal")).unwrap_or_default();
        let mut counts = BTreeMap::new();
        for line in text.lines() {
            assert!(line.ends_with("on record"), "{line}");
            *counts.entry(line.split(' ').next().unwrap().to_owned()).or_default() += 1;
        }
        counts
    }

    /// What stands in the workspace.
    fn files(&self) -> BTreeMap<String, String> {
        let entries = std::fs::read_dir(self.at("w")).unwrap().flatten();
        let file = |path: &Path| std::fs::read_to_string(path).unwrap();
        entries
            .map(|entry| (entry.file_name().into_string().unwrap(), file(&entry.path())))
            .collect()
    }

    /// Every file is as it was, or as it was to become, and then that was on record before.
    fn check_files(&self, logs: &[Vec<Record>], expected: &BTreeMap<String, String>) {
        let recorded = |path: &str| {
            logs.iter().flatten().any(|record| match &record.fact {
                Fact::Changing { changes, .. } => changes.iter().any(|change| change.path == path),
                _ => false,
            })
        };
        for (name, text) in self.files() {
            if name == "README.md" && text == "# Hello\n" {
                continue;
            }
            assert_eq!(Some(&text), expected.get(&name), "{name} is half written, or litter");
            assert!(recorded(&name), "{name} was changed off the record");
        }
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

/// An outcome without what differs from run to run.
fn plain(outcome: &Outcome) -> String {
    let text = outcome.text();
    let text = text.split("[session_id").next().unwrap();
    format!("{:?} {text}", std::mem::discriminant(outcome))
}

/// Whether an outcome may differ from that of a run in which nothing failed.
fn excused(outcome: &Outcome) -> bool {
    let text = outcome.text();
    let excuses =
        ["Windlass was stopped", "No space left", "could not be stored", "session stopped"];
    matches!(outcome, Outcome::Unknown) || excuses.iter().any(|excuse| text.contains(excuse))
}

#[tokio::test]
async fn a_disk_that_takes_one_write_not_at_all_loses_nothing() {
    fail_at_every_write(Way::Once).await;
}

#[tokio::test]
async fn a_disk_that_takes_one_write_and_denies_it_loses_nothing() {
    fail_at_every_write(Way::Lost).await;
}

#[tokio::test]
async fn a_disk_that_is_full_from_any_write_on_loses_nothing() {
    fail_at_every_write(Way::Full).await;
}

/// Lets nothing happen off the record, and nothing be lost, at every write of every plot.
async fn fail_at_every_write(way: Way) {
    let (mut faults, mut excuses) = (BTreeMap::<_, usize>::new(), 0);
    for (number, plot) in PLOTS.iter().enumerate() {
        let calm = Machine::new(plot);
        let run = calm.run(Way::Once, usize::MAX).await;
        run.closed.unwrap();
        let logs = calm.logs().await;
        let (expected, expected_outcomes) = told(&logs[0]);
        let (files, runs) = (calm.files(), calm.journal().len());
        assert!(expected_outcomes.iter().all(|outcome| !excused(outcome)), "{expected_outcomes:?}");
        for at in 0..run.writes {
            let place = format!("plot {number}, {way:?} at write {at}");
            println!("{place}");
            let machine = Machine::new(plot);
            let run = machine.run(way, at).await;
            let hit = run.hit.expect("it was not met");
            let (kind, whose) = match hit {
                Writing::Facts(session) => ("append", Some(session)),
                Writing::Blob => ("blob", None),
                Writing::Copy => ("copy", None),
            };
            *faults.entry(kind).or_default() += 1;
            let logs = machine.logs().await;
            machine.check_files(&logs, &files);
            let own = logs.first().and_then(|log| log.first()).map(|record| record.session);
            let mine = whose.is_some() && (own.is_none() || whose == own);
            if mine || way == Way::Full {
                let stopped = matches!(run.closed, Err(Fault::Storage { .. }));
                assert!(stopped, "{place}: {:?}", run.closed);
            } else {
                run.closed.unwrap();
            }

            machine.run(Way::Once, usize::MAX).await.closed.unwrap();
            let logs = machine.logs().await;
            machine.check_files(&logs, &files);
            for log in &logs {
                // What an agent did while its own log failed is told to whoever sent it.
                if Some(log[0].session) == whose && !mine {
                    continue;
                }
                grammar::check_settled(log.iter().map(|record| &record.fact)).unwrap();
            }
            let (lines, outcomes) = told(&logs[0]);
            assert_eq!(lines, expected, "{place}");
            // What an agent lost shows in its files and in its own log.
            let below = |log: &Vec<Record>| told(log).1.iter().any(excused);
            let mut lost = logs.iter().skip(1).any(below);
            for (outcome, expected) in outcomes.iter().zip(&expected_outcomes) {
                if excused(outcome) {
                    (lost, excuses) = (true, excuses + 1);
                } else {
                    assert_eq!(plain(outcome), plain(expected), "{place}");
                }
            }
            let journal = machine.journal();
            assert!(journal.values().all(|count| *count == 1), "{place}: {journal:?}");
            if !lost {
                assert_eq!((machine.files(), journal.len()), (files.clone(), runs), "{place}");
            }
        }
    }
    println!("{way:?}: {faults:?} faults, {excuses} outcomes told as lost or failed");
    assert!(["append", "blob", "copy"].iter().all(|what| faults.contains_key(what)), "{faults:?}");
    assert!(excuses > 0, "no fault met a call under way");
}
