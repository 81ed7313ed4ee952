//! What can be asked about sessions, and what a person takes back, with real parts: SQLite, HTTP and
//! a workspace.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;
use windlass_engine::{Asked, Engine, Handle, Settings, Watcher};
use windlass_llm::catalog::Model as Row;
use windlass_llm::wire::Format;
use windlass_protocol::{
    Delivery, Event, Fact, Live, Millis, Op, Parent, PromptId, PromptRow, Query, Reply, SessionId,
    TurnEnd,
};
use windlass_storage::{Log, Sqlite, read_all};
use windlass_testkit::{Model, Script, grammar};

struct Yard {
    folder: tempfile::TempDir,
    model: Model,
    log: Arc<Sqlite>,
    engine: Engine,
}

impl Yard {
    async fn new(replies: &[&str]) -> Yard {
        let folder = tempfile::tempdir().unwrap();
        let model = Model::start(Script::new(replies.iter().copied()));
        let runtime = yard::runtime(folder.path(), yard::policy("\"allow\""));
        let settings = Settings::new("/w", Some(asked(&model, "m", 100_000)), "p/m");
        let log = yard::log(folder.path()).await;
        let engine = Engine::new(Arc::clone(&log) as Arc<dyn Log>, Arc::new(runtime), settings);
        Yard { folder, model, log, engine }
    }

    fn place(&self) -> String {
        self.folder.path().canonicalize().unwrap().display().to_string()
    }

    async fn prompts(&self, session: Option<SessionId>, most: Option<u32>) -> Vec<PromptRow> {
        match self.engine.query(Query::Prompts { session, most }).await.unwrap() {
            Reply::Prompts { prompts } => prompts,
            other => panic!("{other:?}"),
        }
    }

    /// A session as somebody else wrote it.
    async fn written(&self, number: u128, parent: Option<Parent>, turns: u32, begins: u64) {
        let session = SessionId(Uuid::from_u128(number));
        let claim = self.log.claim(session).await.unwrap();
        let opened = Fact::Opened {
            workspace: self.place(),
            version: "0".into(),
            agent: "build".into(),
            parent,
        };
        let mut head = self.log.append(&claim, 0, Millis(begins), &[opened]).await.unwrap();
        for turn in 1..=turns {
            let prompt = PromptId(Uuid::from_u128(number * 1_000_000 + u128::from(turn)));
            let (attachments, when) = (Vec::new(), Delivery::Steer);
            let text = format!("prompt {turn} of {number}");
            let mut facts = vec![
                Fact::Prompted { prompt, text, attachments, when },
                Fact::TurnStarted { turn, prompt: Some(prompt) },
            ];
            facts.extend((0..20).map(|_| Fact::Said { text: "word ".repeat(50), seal: None }));
            facts.push(Fact::TurnEnded { turn, end: TurnEnd::Done });
            let at = Millis(begins + u64::from(turn));
            head = self.log.append(&claim, head, at, &facts).await.unwrap();
        }
    }
}

fn asked(model: &Model, name: &str, context: u64) -> Asked {
    let mut asked = yard::asked(&model.url(), Format::OpenaiChat);
    let mut row = Row { context: Some(context), output: Some(1_000), ..Row::assumed(name) };
    (row.price.input, row.price.output) = (Some(1.0), Some(2.0));
    asked.model = Arc::new(row);
    asked
}

async fn next(watcher: &mut Watcher) -> Arc<Event> {
    tokio::time::timeout(Duration::from_secs(20), watcher.next()).await.unwrap().unwrap().unwrap()
}

async fn turn(handle: &Handle, watcher: &mut Watcher, text: &str) {
    assert!(handle.send(Op::prompt(text)).await);
    loop {
        if let Event::Fact(record) = &*next(watcher).await
            && matches!(record.fact, Fact::TurnEnded { .. })
        {
            return;
        }
    }
}

async fn noticed(watcher: &mut Watcher) -> String {
    loop {
        if let Event::Live(glimpse) = &*next(watcher).await
            && let Live::Noticed { text } = &glimpse.live
        {
            return text.clone();
        }
    }
}

#[tokio::test]
async fn a_person_steps_back_to_a_prompt_and_asks_another_way() {
    let yard = Yard::new(&["say One.", "say Two."]).await;
    let (handle, mut watcher) = yard.engine.create().await.unwrap();
    turn(&handle, &mut watcher, "first").await;
    turn(&handle, &mut watcher, "second").await;
    let rows = yard.prompts(Some(handle.session), None).await;
    let texts: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
    assert_eq!(texts, ["second", "first"]);
    assert_eq!(rows[1].back, Some(1), "nothing but the beginning is left");
    let to = rows[0].back.unwrap();

    // Into a turn, and to what is not there yet, nobody steps.
    for nowhere in [0, to + 2, 10_000] {
        handle.send(Op::Back { to: nowhere }).await;
        assert!(noticed(&mut watcher).await.contains("no turn that begins there"));
    }
    handle.send(Op::Back { to }).await;
    turn(&handle, &mut watcher, "another second").await;
    let request = yard.model.requests().last().unwrap().to_string();
    assert!(request.contains("another second") && request.contains("One."), "{request}");
    assert!(!request.contains("\"second\""), "{request}");

    let rows = yard.prompts(Some(handle.session), None).await;
    assert_eq!(rows[1].text, "second");
    assert_eq!(rows[1].back, None, "it no longer counts");
    assert!(rows[0].back.is_some() && rows[2].back == Some(1));
    handle.close().await.unwrap();
    let log = read_all(&*yard.log, rows[0].session, 0).await.unwrap();
    grammar::check_settled(log.iter().map(|record| &record.fact)).unwrap();
}

#[tokio::test]
async fn what_waits_can_be_withdrawn_and_what_is_heard_cannot() {
    let yard = Yard::new(&["late 800\nsay One.", "say Two."]).await;
    let (handle, mut watcher) = yard.engine.create().await.unwrap();
    let (text, attachments, when) = ("later".to_owned(), Vec::new(), Delivery::Queue);
    handle.send(Op::prompt("first")).await;
    handle.send(Op::Prompt { text, attachments, when }).await;
    let mut prompts = Vec::new();
    while prompts.len() < 2 {
        if let Event::Fact(record) = &*next(&mut watcher).await
            && let Fact::Prompted { prompt, .. } = &record.fact
        {
            prompts.push(*prompt);
        }
    }
    handle.send(Op::Withdraw { prompt: prompts[0] }).await;
    assert!(noticed(&mut watcher).await.contains("has heard"));
    handle.send(Op::Back { to: 1 }).await;
    assert!(noticed(&mut watcher).await.contains("under way"));
    handle.send(Op::Withdraw { prompt: prompts[1] }).await;
    loop {
        if let Event::Fact(record) = &*next(&mut watcher).await
            && matches!(record.fact, Fact::TurnEnded { .. })
        {
            break;
        }
    }
    let session = handle.session;
    handle.close().await.unwrap();
    let log = read_all(&*yard.log, session, 0).await.unwrap();
    grammar::check_settled(log.iter().map(|record| &record.fact)).unwrap();
    assert_eq!(yard.model.requests().len(), 1, "it was never heard");
    let rows = yard.prompts(Some(session), None).await;
    assert_eq!(rows.len(), 2, "what was asked is remembered");
    assert_eq!(rows[0].back, None, "no turn began with it");
}

#[tokio::test]
async fn another_model_is_asked_from_the_next_step_on_with_its_window_and_price() {
    let yard = Yard::new(&["say One.", "say Two."]).await;
    let (handle, mut watcher) = yard.engine.create().await.unwrap();
    turn(&handle, &mut watcher, "first").await;
    let other = asked(&yard.model, "other", 50_000);
    assert!(handle.ask_another(other.clone(), "q/other").await);
    turn(&handle, &mut watcher, "second").await;
    let session = handle.session;
    handle.close().await.unwrap();
    let log = read_all(&*yard.log, session, 0).await.unwrap();
    let models: Vec<&str> = log
        .iter()
        .filter_map(|record| match &record.fact {
            Fact::StepStarted { model, .. } => Some(model.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(models, ["p/m", "q/other"]);
    let requests = yard.model.requests();
    assert_eq!(requests[1]["model"], "other");
    assert!(requests[1].to_string().contains("One."), "the conversation goes on");

    // A host that asks another model tells another window.
    let window = async |engine: &Engine| match engine.query(Query::Context { session }).await {
        Ok(Reply::Context { window, reserve, parts }) => (window, reserve, parts),
        other => panic!("{other:?}"),
    };
    let (first, reserve, parts) = window(&yard.engine).await;
    assert_eq!((first, reserve), (Some(100_000), 1_000));
    assert_eq!(window(&yard.engine.asking(other, "q/other")).await.0, Some(50_000));
    let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    assert!(names.starts_with(&["brief"]) && names.contains(&"prompts"), "{names:?}");
    assert!(names.contains(&"answers") && parts.iter().all(|part| part.tokens > 0), "{parts:?}");
}

#[tokio::test]
async fn the_prompts_of_a_folder_are_those_of_people_newest_first_and_each_once() {
    let yard = Yard::new(&[]).await;
    yard.written(1, None, 3, 1_000).await;
    yard.written(2, None, 3, 2_000).await;
    let parent = Parent {
        session: SessionId(Uuid::from_u128(1)),
        call: windlass_protocol::CallId(Uuid::from_u128(9)),
    };
    yard.written(3, Some(parent), 3, 3_000).await;
    let fork = yard
        .engine
        .fork(SessionId(Uuid::from_u128(1)), windlass_engine::Point::Last)
        .await
        .unwrap();
    let texts = |rows: Vec<PromptRow>| rows.into_iter().map(|row| row.text).collect::<Vec<_>>();
    let all = yard.prompts(None, None).await;
    assert!(all.iter().all(|row| row.back.is_none()));
    let newest = ["prompt 3 of 2", "prompt 2 of 2", "prompt 1 of 2", "prompt 3 of 1"];
    assert_eq!(texts(all)[..4], newest);
    assert_eq!(yard.prompts(None, None).await.len(), 6);
    assert_eq!(texts(yard.prompts(None, Some(2)).await), newest[..2]);
    assert!(yard.prompts(None, Some(0)).await.is_empty());
    assert_eq!(yard.prompts(Some(fork), None).await.len(), 3, "a fork has them, too");
    let nobody = Some(SessionId(Uuid::from_u128(77)));
    assert!(yard.engine.query(Query::Prompts { session: nobody, most: None }).await.is_err());
}

#[tokio::test]
async fn prompts_of_long_sessions_are_found_without_reading_them() {
    let yard = Yard::new(&[]).await;
    yard.written(1, None, 2_000, 1_000).await;
    for number in 2..40 {
        yard.written(number, None, 3, 10_000 * number as u64).await;
    }
    let start = Instant::now();
    let rows = yard.prompts(Some(SessionId(Uuid::from_u128(1))), None).await;
    let one = start.elapsed();
    assert_eq!((rows.len(), rows[0].text.as_str()), (200, "prompt 2000 of 1"));
    assert!(rows.iter().all(|row| row.back == Some(row.seq - 1)));
    let start = Instant::now();
    assert_eq!(yard.prompts(None, None).await.len(), 200);
    let all = start.elapsed();
    // Reading the log takes many times as long, on any machine.
    let start = Instant::now();
    let log = read_all(&*yard.log, SessionId(Uuid::from_u128(1)), 0).await.unwrap();
    let whole = start.elapsed();
    assert_eq!(log.len(), 1 + 2_000 * 23);
    assert!(one * 4 < whole && all * 3 < whole, "{one:?} and {all:?} of {whole:?}");
}

#[tokio::test]
async fn facts_are_given_by_the_piece() {
    let yard = Yard::new(&[]).await;
    yard.written(1, None, 3, 1_000).await;
    let session = SessionId(Uuid::from_u128(1));
    let read =
        async |after, most| match yard.engine.query(Query::Events { session, after, most }).await {
            Ok(Reply::Events { events }) => events.iter().map(|it| it.seq).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
    assert_eq!(read(5, Some(3)).await, [6, 7, 8]);
    assert_eq!(read(68, Some(3)).await, [69, 70]);
    assert_eq!(read(0, None).await.len(), 70);
    assert!(read(0, Some(0)).await.is_empty());
}

#[tokio::test]
async fn a_text_is_found_wherever_it_stands_in_a_long_session() {
    let yard = Yard::new(&[]).await;
    yard.written(1, None, 500, 1_000).await;
    let session = SessionId(Uuid::from_u128(1));
    let find = async |text: &str| match yard
        .engine
        .query(Query::Find { session, text: text.to_owned() })
        .await
    {
        Ok(Reply::Places { places, through }) => (places, through),
        other => panic!("{other:?}"),
    };
    let (places, through) = find("PROMPT").await;
    assert_eq!((places.len(), through), (0, 1 + 500 * 23), "a capital is one");
    assert_eq!(find("prompt").await.0.len(), 500);
    let (one, _) = find("prompt 333 of").await;
    let log = read_all(&*yard.log, session, 0).await.unwrap();
    let heard = |fact: &Fact| matches!(fact, Fact::TurnStarted { turn: 333, .. });
    let there = log.iter().find(|record| heard(&record.fact)).unwrap().seq;
    assert_eq!(one.iter().map(|place| (place.seq, place.count)).collect::<Vec<_>>(), [(there, 1)]);
    let nobody = SessionId(Uuid::from_u128(2));
    for (session, text) in [(nobody, "prompt"), (session, " ")] {
        let text = text.to_owned();
        assert!(yard.engine.query(Query::Find { session, text }).await.is_err());
    }
}

#[tokio::test]
async fn a_job_that_does_not_run_is_not_ended() {
    let yard = Yard::new(&[]).await;
    let (handle, mut watcher) = yard.engine.create().await.unwrap();
    handle.send(Op::EndJob { job: 7 }).await;
    assert_eq!(noticed(&mut watcher).await, "Job 7 does not run.");
    let session = handle.session;
    let jobs = yard.engine.query(Query::Jobs { session }).await.unwrap();
    assert_eq!(jobs, Reply::Jobs { jobs: Vec::new() });
}
