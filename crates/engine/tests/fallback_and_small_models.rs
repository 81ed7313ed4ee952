//! Fallback models and the small model, over HTTP: each model has a server of its own.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test prepares files and processes, and fails by panicking"
)]

mod support;

use std::sync::Arc;
use std::time::Duration;
use windlass_engine::{
    Engine, EngineSettings, ModelHandle, SessionHandle, SessionWatcher, TitleGeneration,
};
use windlass_llm::catalog::Model as CatalogModel;
use windlass_llm::wire_format::WireFormat;
use windlass_protocol::{
    Event, Fact, SessionOp, SideRequestPurpose, StepPurpose, Transcript, TurnEndReason,
};
use windlass_storage::{Log, SqliteLog, read_all};
use windlass_testkit::{ModelScript, ScriptedModel, log_grammar};

struct TestEnv {
    _folder: tempfile::TempDir,
    main: ScriptedModel,
    other: ScriptedModel,
    log: Arc<SqliteLog>,
    engine: Engine,
}

impl TestEnv {
    /// Creates an engine with the model `p/m` of one server. `change` adds that of another.
    async fn new(
        main: &[&str],
        other: &[&str],
        change: impl Fn(&mut EngineSettings, ModelHandle),
    ) -> TestEnv {
        let folder = tempfile::tempdir().unwrap();
        let start = |replies: &[&str]| ScriptedModel::start(ModelScript::new(replies.to_vec()));
        let (main, other) = (start(main), start(other));
        let handle = |model: &ScriptedModel, input_price| {
            let mut handle = support::model_handle(&model.url(), WireFormat::Anthropic);
            let mut row = CatalogModel::unlisted("m");
            (row.price.input, row.price.output) = (Some(input_price), Some(0.0));
            handle.model = Arc::new(row);
            handle
        };
        let runtime = support::runtime(folder.path(), support::policy("\"allow\""));
        let mut settings = EngineSettings::new("/w", Some(handle(&main, 1.0)), "p/m");
        change(&mut settings, handle(&other, 5.0));
        let log = support::log(folder.path()).await;
        let engine = Engine::new(Arc::clone(&log) as Arc<dyn Log>, Arc::new(runtime), settings);
        TestEnv { _folder: folder, main, other, log, engine }
    }

    async fn with_fallback(main: &[&str], other: &[&str]) -> TestEnv {
        TestEnv::new(main, other, |settings, handle| {
            settings.fallback_models = vec![(handle, "q/next".into())];
        })
        .await
    }

    async fn with_small_model(main: &[&str], other: &[&str]) -> TestEnv {
        TestEnv::new(main, other, |settings, handle| {
            settings.small_model = Some((handle, "q/small".into()));
            settings.titles = TitleGeneration::On;
        })
        .await
    }

    async fn facts(&self, handle: &SessionHandle) -> Vec<Fact> {
        let log = read_all(&*self.log, handle.session, 0).await.unwrap();
        let facts: Vec<Fact> = log.into_iter().map(|record| record.fact).collect();
        log_grammar::check(&facts).unwrap();
        facts
    }
}

/// Waits for the first fact for which `find` returns a value.
async fn wait_for<T>(watcher: &mut SessionWatcher, find: impl Fn(&Fact) -> Option<T>) -> T {
    loop {
        let event = tokio::time::timeout(Duration::from_secs(30), watcher.next()).await;
        if let Some(event) = event.unwrap().unwrap()
            && let Event::Fact(record) = &*event
            && let Some(found) = find(&record.fact)
        {
            return found;
        }
    }
}

async fn run_turn(
    handle: &SessionHandle,
    watcher: &mut SessionWatcher,
    prompt: &str,
) -> TurnEndReason {
    assert!(handle.send(SessionOp::prompt(prompt)).await);
    wait_for(watcher, |fact| match fact {
        Fact::TurnEnded { end, .. } => Some(end.clone()),
        _ => None,
    })
    .await
}

/// Returns the model of each step, with an asterisk for a summary.
fn step_models(facts: &[Fact]) -> Vec<String> {
    let model = |fact: &Fact| match fact {
        Fact::StepStarted { model, purpose: StepPurpose::Answer, .. } => Some(model.clone()),
        Fact::StepStarted { model, .. } => Some(format!("{model}*")),
        _ => None,
    };
    facts.iter().filter_map(model).collect()
}

#[tokio::test]
async fn a_fallback_answers_until_the_turn_ends_without_the_signatures_of_the_model_before() {
    let main = ["think Hm.\nsay One.", "status 402 {}", "say Three."];
    let env = TestEnv::with_fallback(&main, &["say Never.", "say Two.\nusage 100 1"]).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    for prompt in ["first", "second", "third"] {
        let end = run_turn(&handle, &mut watcher, prompt).await;
        assert_eq!(end, TurnEndReason::Completed, "{prompt}");
    }
    let facts = env.facts(&handle).await;
    handle.close().await.unwrap();
    assert_eq!(step_models(&facts), ["p/m", "p/m", "q/next", "p/m"]);
    let retrying = facts.iter().find_map(|fact| match fact {
        Fact::StepRetrying { model, wait_ms, .. } => Some((model.clone(), *wait_ms)),
        _ => None,
    });
    assert_eq!(retrying, Some((Some("q/next".to_owned()), 0)));
    let costs: Vec<u64> = facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::StepEnded { cost: Some(cost), .. } => Some(cost.0),
            _ => None,
        })
        .collect();
    assert!(costs.contains(&500), "the price is that of the fallback: {costs:?}");
    let to_fallback = env.other.requests()[0].to_string();
    assert!(to_fallback.contains("One.") && to_fallback.contains("second"), "{to_fallback}");
    assert!(!to_fallback.contains("c2ln"), "a signature of another model: {to_fallback}");
    let last = env.main.requests().pop().unwrap().to_string();
    assert!(last.contains("Two.") && last.contains("third"), "{last}");
}

#[tokio::test]
async fn a_rejected_key_is_reported_and_a_missing_model_is_replaced() {
    let env = TestEnv::with_fallback(&["status 401 {}"], &["say Two."]).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    let end = run_turn(&handle, &mut watcher, "go").await;
    assert!(matches!(end, TurnEndReason::Failed { .. }), "{end:?}");
    assert!(env.other.requests().is_empty(), "a wrong key must not be hidden");
    handle.close().await.unwrap();
    let missing = r#"status 404 {"type": "error", "error": {"type": "not_found_error", "message": "model: m"}}"#;
    let env = TestEnv::with_fallback(&[missing], &["say Two."]).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    assert_eq!(run_turn(&handle, &mut watcher, "go").await, TurnEndReason::Completed);
    assert_eq!(step_models(&env.facts(&handle).await), ["p/m", "q/next"]);
    handle.close().await.unwrap();
}

#[tokio::test]
async fn a_choice_of_the_user_drops_the_fallbacks() {
    let env = TestEnv::with_fallback(&["status 402 {}"], &["say Two."]).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    let other = support::model_handle(&env.main.url(), WireFormat::Anthropic);
    assert!(
        handle.replace_models(Arc::new(move |_: &str, _: Option<&str>| Ok(other.clone()))).await
    );
    handle.send(SessionOp::SetModel { model: "p/chosen".into(), effort: None }).await;
    let end = run_turn(&handle, &mut watcher, "go").await;
    assert!(matches!(end, TurnEndReason::Failed { .. }), "{end:?}");
    assert!(env.other.requests().is_empty());
    handle.close().await.unwrap();
}

#[tokio::test]
async fn the_small_model_writes_titles_and_summaries() {
    let main = ["say Done.", "say Later."];
    let small = ["say Mend the roof\nusage 10 1", "say They greeted.\nusage 10 1"];
    let env = TestEnv::with_small_model(&main, &small).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    assert_eq!(run_turn(&handle, &mut watcher, "go").await, TurnEndReason::Completed);
    let title = wait_for(&mut watcher, |fact| match fact {
        Fact::SessionRenamed { title } => Some(title.clone()),
        _ => None,
    });
    assert_eq!(title.await, "Mend the roof");
    assert!(handle.send(SessionOp::Compact).await);
    let is_compacted = |fact: &Fact| matches!(fact, Fact::ContextCompacted { .. }).then_some(());
    wait_for(&mut watcher, is_compacted).await;
    wait_for(&mut watcher, |fact| matches!(fact, Fact::TurnEnded { .. }).then_some(())).await;
    assert_eq!(env.main.requests().len(), 1, "the main model only answers");
    let facts = env.facts(&handle).await;
    assert_eq!(step_models(&facts), ["p/m", "q/small*"]);
    let side_request = facts.iter().find_map(|fact| match fact {
        Fact::SideRequestEnded { purpose, model, cost, .. } => {
            Some((*purpose, model.clone(), cost.unwrap().0))
        }
        _ => None,
    });
    assert_eq!(side_request, Some((SideRequestPurpose::Title, "q/small".to_owned(), 50)));
    let log = read_all(&*env.log, handle.session, 0).await.unwrap();
    let transcript = Transcript::from_log(&log);
    assert!(transcript.cost.0 >= 50 + 50, "all requests count: {:?}", transcript.cost);
    assert_eq!(run_turn(&handle, &mut watcher, "more").await, TurnEndReason::Completed);
    handle.close().await.unwrap();
}

#[tokio::test]
async fn the_main_model_steps_in_for_a_small_model_that_fails() {
    let main = ["once say Done.\nsay Mend the wall", "say Later."];
    let env = TestEnv::with_small_model(&main, &["status 401 {}"]).await;
    let (handle, mut watcher) = env.engine.start_default_session().await.unwrap();
    assert_eq!(run_turn(&handle, &mut watcher, "go").await, TurnEndReason::Completed);
    let title = wait_for(&mut watcher, |fact| match fact {
        Fact::SessionRenamed { title } => Some(title.clone()),
        _ => None,
    });
    assert_eq!(title.await, "Mend the wall");
    assert!(handle.send(SessionOp::Compact).await);
    let is_compacted = |fact: &Fact| matches!(fact, Fact::ContextCompacted { .. }).then_some(());
    wait_for(&mut watcher, is_compacted).await;
    let facts = env.facts(&handle).await;
    assert_eq!(step_models(&facts), ["p/m", "q/small*", "p/m*"]);
    handle.close().await.unwrap();
}
