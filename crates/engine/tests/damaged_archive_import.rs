//! Import of damaged archives: an import fails, or gives a session that is idle.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test prepares files and processes, and fails by panicking"
)]

mod support;

use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::sync::Arc;
use uuid::Uuid;
use windlass_engine::{Engine, EngineSettings};
use windlass_protocol::{
    CallAuthor, CallId, CallOutcome, Fact, FinishReason, PermissionAnswer, PromptDelivery,
    PromptId, QueryReply, SessionId, SessionQuery, StepPurpose, TokenUsage, ToolAccess, ToolOutput,
    TurnEndReason, UnixMillis,
};
use windlass_storage::{Log, SqliteLog};
use windlass_testkit::archive_checks::sign_archive;

struct TestEnv {
    _folder: tempfile::TempDir,
    log: Arc<SqliteLog>,
    engine: Engine,
}

async fn env() -> TestEnv {
    let folder = tempfile::tempdir().unwrap();
    let runtime = support::runtime(folder.path(), support::policy("\"allow\""));
    let log = support::log(folder.path()).await;
    let settings = EngineSettings::new("/w", None, "");
    let engine = Engine::new(Arc::clone(&log) as Arc<dyn Log>, Arc::new(runtime), settings);
    TestEnv { _folder: folder, log, engine }
}

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

/// Returns the facts of a turn with a permission request, a rewind past it, and the start of the
/// next turn.
fn facts() -> Vec<Fact> {
    let (call, mut facts) = (CallId(id(30)), vec![Fact::session_opened("/elsewhere", "1")]);
    let prompt = |number| Fact::PromptSubmitted {
        prompt: PromptId(id(number)),
        text: "p".into(),
        attachments: Vec::new(),
        delivery: PromptDelivery::Queue,
        settings: Default::default(),
    };
    let model = || "p/m".to_owned();
    let accesses = vec![ToolAccess::Edit { path: "a".into() }];
    facts.extend([
        prompt(20),
        Fact::TurnStarted { turn: 1, prompt: Some(PromptId(id(20))) },
        Fact::StepStarted { turn: 1, step: 1, model: model(), purpose: StepPurpose::Answer },
        Fact::ModelText { text: "Well.".into(), provider_signature: None },
        Fact::ToolCalled {
            description: windlass_protocol::CallDescription::default(),
            call,
            provider_call_id: "r".into(),
            tool: "write".into(),
            arguments: "{}".into(),
            author: CallAuthor::Model,
            repair: Vec::new(),
            provider_signature: None,
        },
        Fact::StepEnded {
            turn: 1,
            step: 1,
            finish_reason: FinishReason::ToolCalls,
            usage: TokenUsage::default(),
            cost: None,
        },
        Fact::PermissionAsked {
            danger: Default::default(),
            call,
            accesses: accesses.clone(),
            reason: "it edits".into(),
            preview: None,
            approval_kind: None,
            repair: None,
        },
        Fact::PermissionAnswered { call, answer: PermissionAnswer::Session },
        Fact::CallStarted { call, attempt: 1, accesses, read_only: false, repair: None },
        prompt(21),
        Fact::CallSettled {
            call,
            outcome: CallOutcome::Completed { output: ToolOutput::default() },
            seen_files: Vec::new(),
        },
        Fact::TurnEnded { turn: 1, end: TurnEndReason::Completed },
        prompt(22),
        Fact::Rewound { to: 2 },
        Fact::PromptWithdrawn { prompt: PromptId(id(22)) },
        Fact::TurnStarted { turn: 2, prompt: Some(PromptId(id(21))) },
        Fact::StepStarted { turn: 2, step: 1, model: model(), purpose: StepPurpose::Answer },
    ]);
    facts
}

/// A modification of the lines of a file.
#[derive(Clone, Debug)]
enum TestArchiveDamage {
    RemoveLine(usize),
    RepeatLine(usize),
    SwapLines(usize, usize),
    /// Replaces a byte.
    ReplaceByte(usize, usize, u8),
    /// Replaces a number: a position, turn or time.
    ReplaceNumber(usize, u64),
    /// Makes the positions consecutive again, so that the import reads the later lines.
    Renumber,
}

fn damage() -> impl Strategy<Value = TestArchiveDamage> {
    let line = 0..40_usize;
    prop_oneof![
        line.clone().prop_map(TestArchiveDamage::RemoveLine),
        line.clone().prop_map(TestArchiveDamage::RepeatLine),
        (line.clone(), line.clone()).prop_map(|(a, b)| TestArchiveDamage::SwapLines(a, b)),
        (line.clone(), any::<usize>(), any::<u8>())
            .prop_map(|(a, b, c)| TestArchiveDamage::ReplaceByte(a, b, c)),
        (line, any::<u64>()).prop_map(|(a, b)| TestArchiveDamage::ReplaceNumber(a, b)),
        proptest::strategy::Just(TestArchiveDamage::Renumber),
        proptest::strategy::Just(TestArchiveDamage::Renumber),
    ]
}

fn apply_damage(lines: &mut Vec<Vec<u8>>, damage: &TestArchiveDamage) {
    let length = lines.len().max(1);
    match *damage {
        TestArchiveDamage::RemoveLine(at) if !lines.is_empty() => drop(lines.remove(at % length)),
        TestArchiveDamage::RepeatLine(at) if !lines.is_empty() => {
            lines.insert(at % length, lines[at % length].clone())
        }
        TestArchiveDamage::SwapLines(a, b) if !lines.is_empty() => {
            lines.swap(a % length, b % length)
        }
        TestArchiveDamage::ReplaceByte(at, offset, byte) if !lines.is_empty() => {
            let line = &mut lines[at % length];
            if !line.is_empty() {
                let offset = offset % line.len();
                line[offset] = byte;
            }
        }
        TestArchiveDamage::ReplaceNumber(at, number) if !lines.is_empty() => {
            let line = String::from_utf8_lossy(&lines[at % length]).into_owned();
            let digits = line.find("\"turn\":").or(line.find("\"at\":")).unwrap_or(0);
            let (head, tail) = line.split_at(digits);
            let tail = tail.replacen(|c: char| c.is_ascii_digit(), &(number % 4).to_string(), 1);
            lines[at % length] = format!("{head}{tail}").into_bytes();
        }
        TestArchiveDamage::Renumber => renumber(lines),
        TestArchiveDamage::RemoveLine(_)
        | TestArchiveDamage::RepeatLine(_)
        | TestArchiveDamage::SwapLines(..)
        | TestArchiveDamage::ReplaceByte(..)
        | TestArchiveDamage::ReplaceNumber(..) => {}
    }
}

fn renumber(lines: &mut [Vec<u8>]) {
    let facts = lines.len().saturating_sub(1);
    for (seq, line) in lines.iter_mut().enumerate() {
        let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(line) else { continue };
        let Some(object) = value.as_object_mut() else { continue };
        if object.contains_key("seq") {
            object.insert("seq".into(), seq.into());
        }
        if object.contains_key("facts") {
            object.insert("facts".into(), facts.into());
        }
        *line = value.to_string().into_bytes();
    }
}

async fn export(env: &TestEnv, session: SessionId) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    let mut write = |line: &str| {
        lines.push(line.as_bytes().to_vec());
        Ok(())
    };
    env.engine.export(session, &|text| text.to_owned(), &mut write).await.unwrap();
    lines
}

#[test]
fn a_damaged_archive_is_rejected_or_gives_an_idle_session() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let env = runtime.block_on(env());
    let session = SessionId(id(1));
    let valid = runtime.block_on(async {
        let claim = env.log.claim(session).await.unwrap();
        env.log.append(&claim, 0, UnixMillis(5), &facts()).await.unwrap();
        export(&env, session).await
    });
    let (imported, rejected) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config { cases: 400, ..Config::default() });
    let damages = proptest::collection::vec(damage(), 0..5);
    let result = runner.run(&damages, |damages| {
        let mut lines = valid.clone();
        damages.iter().for_each(|damage| apply_damage(&mut lines, damage));
        let is_signed = damages.len() % 4 != 3;
        if is_signed {
            // A file that was made by someone can have valid checks and be wrong nevertheless.
            sign_archive(&mut lines);
        }
        let is_changed = lines != valid;
        let file = lines.join(&b'\n');
        runtime.block_on(async {
            let Ok(import) = env.engine.import(&mut &file[..]).await else {
                rejected.set(rejected.get() + 1);
                return;
            };
            imported.set(imported.get() + 1);
            assert!(is_signed || !is_changed, "damage was not found: {damages:?}");
            // Opening the session changes nothing.
            let (handle, watcher) = env.engine.open(import.session).await.unwrap();
            let before = env.log.list(&Default::default()).await.unwrap();
            handle.close().await.unwrap();
            drop(watcher);
            assert_eq!(env.log.list(&Default::default()).await.unwrap(), before);
            let query = SessionQuery::Transcript { session: import.session };
            let QueryReply::Transcript { transcript } = env.engine.query(query).await.unwrap()
            else {
                panic!("no transcript");
            };
            assert!(transcript.queued_prompts.is_empty() && transcript.last_turn_end.is_some());
            env.engine.delete(import.session).await.unwrap();
        });
        Ok(())
    });
    result.unwrap();
    let (imported, rejected) = (imported.get(), rejected.get());
    assert!(imported > 20 && rejected > 20, "{imported} imported, {rejected} rejected");
}
