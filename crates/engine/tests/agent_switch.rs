//! Switching the agent of a session, with SQLite, HTTP and a workspace.
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
use windlass_engine::{AgentDefinition, Engine, EngineSettings, SessionHandle, SessionWatcher};
use windlass_llm::wire_format::WireFormat;
use windlass_protocol::{AgentRole, Event, Fact, SessionOp};
use windlass_storage::{Log, read_all};
use windlass_testkit::{ModelScript, ScriptedModel, log_grammar};
use windlass_toolkit::AgentRestrictions;

fn agent(name: &str, role: AgentRole) -> Arc<AgentDefinition> {
    Arc::new(AgentDefinition {
        name: name.to_owned(),
        description: format!("For {name}."),
        role,
        prompt: format!("You are the {name}.").into(),
        replaces_prompt: false,
        max_steps: None,
        options: Default::default(),
        restrictions: AgentRestrictions {
            tools: vec![("*".to_owned(), false)],
            ..AgentRestrictions::default()
        },
        fallback_models: Vec::new(),
        model: None,
    })
}

async fn next(watcher: &mut SessionWatcher) -> Arc<Event> {
    tokio::time::timeout(Duration::from_secs(20), watcher.next()).await.unwrap().unwrap().unwrap()
}

async fn run_turn(handle: &SessionHandle, watcher: &mut SessionWatcher, text: &str) {
    assert!(handle.send(SessionOp::prompt(text)).await);
    loop {
        if let Event::Fact(record) = &*next(watcher).await
            && matches!(record.fact, Fact::TurnEnded { .. })
        {
            return;
        }
    }
}

async fn set_agent(handle: &SessionHandle, watcher: &mut SessionWatcher, name: &str) -> String {
    let op = SessionOp::SetAgent { agent: name.to_owned() };
    if let Err(error) = handle.queue_op(op, None).await.await.unwrap() {
        return error.to_string();
    }
    loop {
        if let Event::Fact(record) = &*next(watcher).await
            && let Fact::AgentChanged { agent } = &record.fact
        {
            return format!("changed to {agent}");
        }
    }
}

#[tokio::test]
async fn another_agent_takes_over_within_the_session_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::start(ModelScript::new(["say One.", "say Two.", "say Three."]));
    let runtime = support::runtime(folder.path(), support::policy("\"allow\""));
    let handle = support::model_handle(&model.url(), WireFormat::OpenaiChat);
    let mut settings = EngineSettings::new("/w", Some(handle), "p/m");
    settings.agents =
        [agent("judge", AgentRole::Primary), agent("scout", AgentRole::Subagent)].into();
    let log: Arc<dyn Log> = support::log(folder.path()).await;
    let engine = Engine::new(Arc::clone(&log), Arc::new(runtime), settings);
    let (handle, mut watcher) = engine.start_default_session().await.unwrap();
    run_turn(&handle, &mut watcher, "first").await;
    assert_eq!(set_agent(&handle, &mut watcher, "judge").await, "changed to judge");
    assert!(set_agent(&handle, &mut watcher, "judge").await.contains("already judge"));
    assert!(set_agent(&handle, &mut watcher, "scout").await.contains("Mention @scout"));
    assert!(set_agent(&handle, &mut watcher, "nemo").await.contains("unknown agent `nemo`"));
    run_turn(&handle, &mut watcher, "second").await;
    let session = handle.session;
    handle.close().await.unwrap();

    // The session is opened with the agent that it had last.
    let (handle, mut watcher) = engine.open(session).await.unwrap();
    assert_eq!(handle.agent, "judge");
    assert_eq!(set_agent(&handle, &mut watcher, "build").await, "changed to build");
    run_turn(&handle, &mut watcher, "third").await;
    handle.close().await.unwrap();

    let requests: Vec<String> = model.requests().iter().map(ToString::to_string).collect();
    assert!(!requests[0].contains("You are the judge."), "{}", requests[0]);
    assert!(requests[1].contains("You are the judge."), "{}", requests[1]);
    assert!(requests[1].contains("One."), "the conversation continues");
    let removed = requests[2].contains("agent judge") && requests[2].contains("no longer apply");
    assert!(removed, "{}", requests[2]);
    let records = read_all(&*log, session, 0).await.unwrap();
    log_grammar::check_settled(records.iter().map(|record| &record.fact)).unwrap();
}
