//! Sessions from files: whatever stands in one, nothing goes on by itself.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::sync::Arc;
use uuid::Uuid;
use windlass_engine::{Engine, Settings};
use windlass_protocol::{
    Access, Answer, Author, CallId, Delivery, Fact, Finish, Millis, Outcome, Output, PromptId,
    Purpose, Query, Reply, SessionId, TurnEnd, Usage,
};
use windlass_storage::{Log, Sqlite};

struct Yard {
    _folder: tempfile::TempDir,
    log: Arc<Sqlite>,
    engine: Engine,
}

async fn yard() -> Yard {
    let folder = tempfile::tempdir().unwrap();
    let runtime = yard::runtime(folder.path(), yard::policy("\"allow\""));
    let log = yard::log(folder.path()).await;
    let settings = Settings::new("/w", None, "");
    let engine = Engine::new(Arc::clone(&log) as Arc<dyn Log>, Arc::new(runtime), settings);
    Yard { _folder: folder, log, engine }
}

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

/// A turn with a call that was asked about, a step back over it, and the beginning of the next one.
fn facts() -> Vec<Fact> {
    let (call, mut facts) = (CallId(id(30)), vec![Fact::opened("/elsewhere", "1")]);
    let prompt = |number| Fact::Prompted {
        prompt: PromptId(id(number)),
        text: "p".into(),
        attachments: Vec::new(),
        when: Delivery::Queue,
    };
    let model = || "p/m".to_owned();
    let accesses = vec![Access::Edit { path: "a".into() }];
    facts.extend([
        prompt(20),
        Fact::TurnStarted { turn: 1, prompt: Some(PromptId(id(20))) },
        Fact::StepStarted { turn: 1, step: 1, model: model(), purpose: Purpose::Answer },
        Fact::Said { text: "Well.".into(), seal: None },
        Fact::Called {
            call,
            reference: "r".into(),
            tool: "write".into(),
            arguments: "{}".into(),
            by: Author::Model,
            repaired: Vec::new(),
            seal: None,
        },
        Fact::StepEnded {
            turn: 1,
            step: 1,
            finish: Finish::Calls,
            usage: Usage::default(),
            cost: None,
        },
        Fact::Asked {
            call,
            accesses: accesses.clone(),
            reason: "it edits".into(),
            preview: None,
            offer: None,
            repaired: None,
        },
        Fact::Answered { call, answer: Answer::Session },
        Fact::Started { call, attempt: 1, accesses, read_only: false, repaired: None },
        prompt(21),
        Fact::Settled {
            call,
            outcome: Outcome::Completed { output: Output::default() },
            seen: Vec::new(),
        },
        Fact::TurnEnded { turn: 1, end: TurnEnd::Done },
        prompt(22),
        Fact::Reverted { to: 2 },
        Fact::Withdrawn { prompt: PromptId(id(22)) },
        Fact::TurnStarted { turn: 2, prompt: Some(PromptId(id(21))) },
        Fact::StepStarted { turn: 2, step: 1, model: model(), purpose: Purpose::Answer },
    ]);
    facts
}

/// Something that happens to the lines of a file.
#[derive(Clone, Debug)]
enum Harm {
    Drop(usize),
    Double(usize),
    Swap(usize, usize),
    /// A byte becomes another.
    Byte(usize, usize, u8),
    /// A number becomes another: positions, turns, times.
    Number(usize, u64),
    /// Positions are made to fit again, so that what comes behind them is looked at.
    Renumber,
}

fn harm() -> impl Strategy<Value = Harm> {
    let place = 0..40_usize;
    prop_oneof![
        place.clone().prop_map(Harm::Drop),
        place.clone().prop_map(Harm::Double),
        (place.clone(), place.clone()).prop_map(|(a, b)| Harm::Swap(a, b)),
        (place.clone(), any::<usize>(), any::<u8>()).prop_map(|(a, b, c)| Harm::Byte(a, b, c)),
        (place, any::<u64>()).prop_map(|(a, b)| Harm::Number(a, b)),
        proptest::strategy::Just(Harm::Renumber),
        proptest::strategy::Just(Harm::Renumber),
    ]
}

fn suffer(lines: &mut Vec<Vec<u8>>, harm: &Harm) {
    let length = lines.len().max(1);
    match *harm {
        Harm::Drop(at) if !lines.is_empty() => drop(lines.remove(at % length)),
        Harm::Double(at) if !lines.is_empty() => {
            lines.insert(at % length, lines[at % length].clone())
        }
        Harm::Swap(a, b) if !lines.is_empty() => lines.swap(a % length, b % length),
        Harm::Byte(at, place, byte) if !lines.is_empty() => {
            let line = &mut lines[at % length];
            if !line.is_empty() {
                let place = place % line.len();
                line[place] = byte;
            }
        }
        Harm::Number(at, number) if !lines.is_empty() => {
            let line = String::from_utf8_lossy(&lines[at % length]).into_owned();
            let digits = line.find("\"turn\":").or(line.find("\"at\":")).unwrap_or(0);
            let (head, tail) = line.split_at(digits);
            let tail = tail.replacen(|c: char| c.is_ascii_digit(), &(number % 4).to_string(), 1);
            lines[at % length] = format!("{head}{tail}").into_bytes();
        }
        Harm::Renumber => renumber(lines),
        Harm::Drop(_) | Harm::Double(_) | Harm::Swap(..) | Harm::Byte(..) | Harm::Number(..) => {}
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

async fn export(yard: &Yard, session: SessionId) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    let mut write = |line: &str| {
        lines.push(line.as_bytes().to_vec());
        Ok(())
    };
    yard.engine.export(session, &mut write).await.unwrap();
    lines
}

#[test]
fn a_file_with_anything_in_it_is_refused_or_gives_a_session_at_rest() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let yard = runtime.block_on(yard());
    let session = SessionId(id(1));
    let good = runtime.block_on(async {
        let claim = yard.log.claim(session).await.unwrap();
        yard.log.append(&claim, 0, Millis(5), &facts()).await.unwrap();
        export(&yard, session).await
    });
    let (taken, refused) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config { cases: 400, ..Config::default() });
    let harms = proptest::collection::vec(harm(), 0..5);
    let ran = runner.run(&harms, |harms| {
        let mut lines = good.clone();
        harms.iter().for_each(|harm| suffer(&mut lines, harm));
        let file = lines.join(&b'\n');
        runtime.block_on(async {
            let Ok(carried) = yard.engine.import(&mut &file[..]).await else {
                refused.set(refused.get() + 1);
                return;
            };
            taken.set(taken.get() + 1);
            // Nothing happens when it is opened.
            let (handle, watcher) = yard.engine.open(carried.session).await.unwrap();
            let before = yard.log.list().await.unwrap();
            handle.close().await.unwrap();
            drop(watcher);
            assert_eq!(yard.log.list().await.unwrap(), before);
            let query = Query::Transcript { session: carried.session };
            let Reply::Transcript { transcript } = yard.engine.query(query).await.unwrap() else {
                panic!("no transcript");
            };
            assert!(transcript.waiting.is_empty() && transcript.end.is_some());
            yard.engine.delete(carried.session).await.unwrap();
        });
        Ok(())
    });
    ran.unwrap();
    let (taken, refused) = (taken.get(), refused.get());
    assert!(taken > 20 && refused > 20, "{taken} taken, {refused} refused");
}
