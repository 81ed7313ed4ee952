//! Watching a session from a cursor: in the middle of an answer, after falling behind, and after the
//! end of the log was lost.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test prepares files, and fails by panicking"
)]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::{Engine, EngineSettings, SessionHandle, SessionWatcher, WatchedEvent};
use windlass_llm::wire_format::WireFormat;
use windlass_protocol::{
    Event, EventCursor, Fact, FactRecord, LiveEvent, LogPosition, ModelStreamKind, SessionOp,
};
use windlass_storage::{Log, read_all};
use windlass_testkit::{ModelScript, ScriptedModel};

async fn engine(folder: &Path, model: &ScriptedModel) -> (Engine, Arc<dyn Log>) {
    let runtime = support::runtime(folder, support::policy("\"allow\""));
    let handle = support::model_handle(&model.url(), WireFormat::OpenaiChat);
    let settings = EngineSettings::new("/w", Some(handle), "p/m");
    let log: Arc<dyn Log> = support::log(folder).await;
    (Engine::new(Arc::clone(&log), Arc::new(runtime), settings), log)
}

async fn next(watcher: &mut SessionWatcher) -> Option<WatchedEvent> {
    tokio::time::timeout(Duration::from_secs(20), watcher.next_item()).await.unwrap().unwrap()
}

/// What a client has seen: the facts, and the text of the answer under way.
#[derive(Default)]
struct ClientView {
    facts: Vec<FactRecord>,
    text: String,
    partial_steps: usize,
    lagged: usize,
}

impl ClientView {
    /// Applies an item. Returns true at the end of a turn.
    fn apply(&mut self, item: WatchedEvent) -> bool {
        match item {
            WatchedEvent::Lagged { .. } => self.lagged += 1,
            WatchedEvent::Reset { to, .. } => self.facts.retain(|record| record.seq <= to.seq),
            WatchedEvent::Event(event) => match &*event {
                Event::Live(record) => match &record.event {
                    LiveEvent::ModelDelta { stream: ModelStreamKind::Text, text } => {
                        self.text.push_str(text);
                    }
                    LiveEvent::PartialStep { texts, .. } => {
                        self.partial_steps += 1;
                        self.text = texts.iter().map(|text| text.text.as_str()).collect();
                    }
                    _ => {}
                },
                Event::Fact(record) => {
                    let seen = self.facts.last().map_or(0, |last| last.seq);
                    assert_eq!(record.seq, seen + 1, "a fact is missing or repeated");
                    if let Fact::ModelText { text, .. } = &record.fact {
                        assert_eq!(*text, self.text, "the live text differs");
                        self.text.clear();
                    }
                    self.facts.push(record.clone());
                    return matches!(record.fact, Fact::TurnEnded { .. });
                }
            },
        }
        false
    }
}

/// Follows the session until the end of the turn.
async fn follow(watcher: &mut SessionWatcher) -> ClientView {
    let mut view = ClientView::default();
    while let Some(item) = next(watcher).await {
        if view.apply(item) {
            break;
        }
    }
    view
}

async fn watch_from_start(handle: &SessionHandle) -> SessionWatcher {
    handle.watch(EventCursor::default()).await
}

#[tokio::test]
async fn a_client_that_comes_during_an_answer_has_all_of_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let words = 120;
    let reply: String = (0..words).map(|word| format!("say w{word} \nstall 5\n")).collect();
    let model = ScriptedModel::start(ModelScript::new([reply.as_str()]));
    let (engine, _log) = engine(folder.path(), &model).await;
    let (handle, mut first) = engine.start_default_session().await.unwrap();
    assert!(handle.send(SessionOp::prompt("go")).await);
    // A further client comes with every delta.
    let mut clients = Vec::new();
    let mut view = ClientView::default();
    loop {
        let item = next(&mut first).await.unwrap();
        let is_delta = matches!(&item, WatchedEvent::Event(event)
            if matches!(&**event, Event::Live(record) if matches!(record.event, LiveEvent::ModelDelta { .. })));
        if view.apply(item) {
            break;
        }
        if is_delta {
            let mut watcher = watch_from_start(&handle).await;
            clients.push(tokio::spawn(async move { follow(&mut watcher).await }));
        }
    }
    assert!(clients.len() > 50, "{}", clients.len());
    for client in clients {
        let other = client.await.unwrap();
        assert_eq!(other.facts, view.facts);
    }
}

#[tokio::test]
async fn a_client_that_falls_behind_is_told_and_misses_no_fact() {
    let folder = tempfile::tempdir().unwrap();
    let long = format!("say {}\nstall 400\nsay End.", "word ".repeat(5_000));
    let model = ScriptedModel::start(ModelScript::new([long.as_str()]));
    let (engine, log) = engine(folder.path(), &model).await;
    let (handle, mut quick) = engine.start_default_session().await.unwrap();
    let mut slow = watch_from_start(&handle).await;
    assert!(handle.send(SessionOp::prompt("go")).await);
    let mut deltas = 0;
    while deltas < 3_000 {
        if let Some(WatchedEvent::Event(event)) = next(&mut quick).await
            && let Event::Live(_) = &*event
        {
            deltas += 1;
        }
    }
    // The slow client reads nothing until the model pauses in its answer.
    let view = follow(&mut slow).await;
    assert!(view.lagged > 0 && view.partial_steps > 0, "{} {}", view.lagged, view.partial_steps);
    assert_eq!(view.facts, read_all(&*log, handle.session, 0).await.unwrap());
}

#[tokio::test]
async fn a_client_goes_on_from_its_cursor() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::start(ModelScript::new(["say One.", "say Two."]));
    let (engine, log) = engine(folder.path(), &model).await;
    let (handle, mut watcher) = engine.start_default_session().await.unwrap();
    assert!(handle.send(SessionOp::prompt("go")).await);
    let first = follow(&mut watcher).await;
    let all = read_all(&*log, handle.session, 0).await.unwrap();
    for record in &first.facts {
        let mut watcher = handle.watch(LogPosition::of(record).into()).await;
        let mut view = ClientView::default();
        view.facts.extend(all.iter().take(record.seq as usize).cloned());
        while view.facts.len() < all.len() {
            view.text = match all.get(view.facts.len()).map(|record| &record.fact) {
                Some(Fact::ModelText { text, .. }) => text.clone(),
                _ => String::new(),
            };
            view.apply(next(&mut watcher).await.unwrap());
        }
        assert_eq!(view.facts, all);
        assert_eq!(watcher.cursor().position, LogPosition::of(all.last().unwrap()));
    }
}

#[tokio::test]
async fn a_cursor_into_a_lost_end_of_the_log_is_reset() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::start(ModelScript::new(["say One.", "say Two.", "say Three."]));
    let (engine_before, log) = engine(folder.path(), &model).await;
    let (handle, mut watcher) = engine_before.start_default_session().await.unwrap();
    assert!(handle.send(SessionOp::prompt("go")).await);
    let mut view = follow(&mut watcher).await;
    let session = handle.session;
    handle.close().await.unwrap();
    drop((engine_before, log));
    let kept = folder.path().join("kept");
    copy_folder(&folder.path().join("data"), &kept);

    // Facts that the client sees, and that a power cut takes away.
    let (engine_lost, log) = engine(folder.path(), &model).await;
    let (handle, _watcher) = engine_lost.open(session).await.unwrap();
    let cursor: EventCursor = LogPosition::of(view.facts.last().unwrap()).into();
    let mut watcher = handle.watch(cursor).await;
    assert!(handle.send(SessionOp::prompt("lost")).await);
    while !view.apply(next(&mut watcher).await.unwrap()) {}
    let cursor = watcher.cursor().clone();
    handle.close().await.unwrap();
    drop((engine_lost, log, watcher));
    std::fs::remove_dir_all(folder.path().join("data")).unwrap();
    copy_folder(&kept, &folder.path().join("data"));

    let (engine_after, log) = engine(folder.path(), &model).await;
    let (handle, mut watcher) = engine_after.open(session).await.unwrap();
    assert!(handle.send(SessionOp::prompt("other")).await);
    let is_turn_end = |item: &WatchedEvent| match item {
        WatchedEvent::Event(event) => {
            matches!(&**event, Event::Fact(record) if record.fact.kind() == "turn_ended")
        }
        WatchedEvent::Lagged { .. } | WatchedEvent::Reset { .. } => false,
    };
    while !is_turn_end(&next(&mut watcher).await.unwrap()) {}
    let mut watcher = handle.watch(cursor.clone()).await;
    let item = next(&mut watcher).await.unwrap();
    assert!(matches!(item, WatchedEvent::Reset { .. }), "{item:?}");
    view.apply(item);
    let all = read_all(&*log, session, 0).await.unwrap();
    while view.facts.len() < all.len() {
        if let Some(Fact::ModelText { text, .. }) = all.get(view.facts.len()).map(|it| &it.fact) {
            view.text.clone_from(text);
        }
        view.apply(next(&mut watcher).await.unwrap());
    }
    assert_eq!(view.facts, all);
    let prompts = |text: &str| {
        all.iter().any(
            |record| matches!(&record.fact, Fact::PromptSubmitted { text: it, .. } if it == text),
        )
    };
    assert!(prompts("other") && !prompts("lost"));
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &to.join(entry.file_name())),
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}
