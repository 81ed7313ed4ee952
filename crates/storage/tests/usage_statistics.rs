//! Tests of the usage statistics, and of the column for forks.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests inspect the store from outside and fail by panicking"
)]

use sqlx::Connection;
use std::path::Path;
use uuid::Uuid;
use windlass_protocol::{
    CallAuthor, CallDescription, CallId, Cost, Fact, FinishReason, ParentCall, PromptId, SessionId,
    StepPurpose, TokenUsage, UnixMillis,
};
use windlass_storage::{Log, SqliteLog};

const DAY: u64 = 86_400_000;

fn session(number: u128) -> SessionId {
    SessionId(Uuid::from_u128(number))
}

fn opened(parent: Option<u128>) -> Fact {
    Fact::SessionOpened {
        workspace: "/home/a/harbour".into(),
        version: "1".into(),
        agent: "build".into(),
        parent: parent.map(|number| ParentCall {
            session: session(number),
            call: CallId(Uuid::from_u128(1)),
        }),
    }
}

fn prompt() -> Fact {
    Fact::PromptSubmitted {
        prompt: PromptId(Uuid::from_u128(7)),
        text: "count".into(),
        attachments: Vec::new(),
        delivery: Default::default(),
        settings: Default::default(),
    }
}

fn step(model: &str, input: u64, cost: Option<u64>) -> [Fact; 2] {
    let started =
        Fact::StepStarted { turn: 1, step: 1, model: model.into(), purpose: StepPurpose::Answer };
    let ended = Fact::StepEnded {
        turn: 1,
        step: 1,
        finish_reason: FinishReason::Stop,
        usage: TokenUsage { input, output: 10, ..TokenUsage::default() },
        cost: cost.map(Cost),
    };
    [started, ended]
}

fn tool_called(tool: &str) -> Fact {
    Fact::ToolCalled {
        call: CallId(Uuid::from_u128(2)),
        provider_call_id: "c".into(),
        tool: tool.into(),
        arguments: "{}".into(),
        author: CallAuthor::Model,
        description: CallDescription::default(),
        repair: Vec::new(),
        provider_signature: None,
    }
}

async fn append(log: &SqliteLog, number: u128, at: u64, facts: &[Fact]) {
    let claim = log.claim(session(number)).await.unwrap();
    log.append(&claim, claim.head, UnixMillis(at), facts).await.unwrap();
}

async fn open_log(folder: &Path) -> SqliteLog {
    SqliteLog::open(folder).await.unwrap()
}

fn day_of(at: UnixMillis) -> String {
    format!("day {}", at.0 / DAY)
}

#[tokio::test]
async fn requests_calls_and_prompts_are_added_up_by_day_model_and_tool() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).await;
    let [started, ended] = step("acme/large", 1_000, Some(2_500));
    append(&log, 1, DAY, &[opened(None), prompt(), started, tool_called("bash")]).await;
    append(&log, 1, DAY, &[ended]).await;
    let [started, ended] = step("local/small", 50, None);
    append(&log, 1, 3 * DAY, &[prompt(), started, ended, tool_called("a\u{1e}b")]).await;
    // A subagent's requests count, its prompt and its session do not.
    let [started, ended] = step("acme/large", 7, Some(1));
    append(&log, 2, 3 * DAY, &[opened(Some(1)), prompt(), started, ended]).await;
    let all = log.usage_statistics(UnixMillis(0), day_of).await.unwrap();
    assert_eq!((all.total.sessions, all.total.prompts, all.total.requests), (1, 2, 3));
    assert_eq!(all.total.cost, Cost(2_501));
    assert_eq!(all.days.keys().collect::<Vec<_>>(), ["day 1", "day 3"]);
    assert_eq!(all.days["day 1"].usage.input, 1_000);
    assert_eq!(all.models["acme/large"].requests, 2);
    assert_eq!(all.models["local/small"].cost, Cost(0));
    assert_eq!((all.tools["bash"], all.tools["a\u{1e}b"]), (1, 1));
    assert_eq!(all.folders["/home/a/harbour"].requests, 3);
    let recent = log.usage_statistics(UnixMillis(2 * DAY), day_of).await.unwrap();
    assert_eq!((recent.total.sessions, recent.total.prompts, recent.total.requests), (1, 1, 2));
    assert_eq!(recent.days.len(), 1);
}

#[tokio::test]
async fn facts_copied_by_a_fork_count_once_and_the_fork_names_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).await;
    let [started, ended] = step("acme/large", 1_000, Some(5));
    let first = [opened(None), prompt(), started, ended];
    append(&log, 1, DAY, &first).await;
    append(&log, 2, DAY, &first).await;
    let forked = Fact::SessionForked { source_session: session(1), through: 4 };
    let [started, ended] = step("acme/large", 30, Some(7));
    append(&log, 2, DAY, &[forked, prompt(), started, ended]).await;
    let all = log.usage_statistics(UnixMillis(0), day_of).await.unwrap();
    assert_eq!((all.total.usage.input, all.total.cost), (1_030, Cost(12)));
    let sources: Vec<_> =
        log.list(&Default::default()).await.unwrap().iter().map(|row| row.forked_from).collect();
    assert_eq!(sources, [Some(session(1)), None]);
}

#[tokio::test]
async fn a_damaged_fact_costs_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).await;
    let [started, ended] = step("acme/large", 1_000, Some(5));
    append(&log, 1, DAY, &[opened(None), prompt(), started, ended, tool_called("bash")]).await;
    let options = sqlx::sqlite::SqliteConnectOptions::new();
    let options = options.filename(folder.path().join("windlass.db"));
    let mut database = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    let damage = "UPDATE event SET body = '{\"tool' WHERE kind = 'tool_called'";
    sqlx::raw_sql(damage).execute(&mut database).await.unwrap();
    let all = log.usage_statistics(UnixMillis(0), day_of).await.unwrap();
    assert_eq!((all.total.requests, all.total.tool_calls), (1, 1));
}
