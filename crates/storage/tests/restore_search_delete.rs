//! Tests that restore, search and delete logs, including those of subagents.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests inspect the store from outside and fail by panicking"
)]

use uuid::Uuid;
use windlass_protocol::{
    CallId, DEFAULT_AGENT, Fact, FactRecord, ParentCall, SessionId, UnixMillis,
};
use windlass_storage::{Log, SqliteLog, StorageError, read_all};

fn session(number: u128) -> SessionId {
    SessionId(Uuid::from_u128(number))
}

fn model_text(text: impl Into<String>) -> Fact {
    Fact::ModelText { text: text.into(), provider_signature: None }
}

fn session_opened(parent: Option<u128>) -> Fact {
    let call = CallId(Uuid::from_u128(9));
    let parent = parent.map(|number| ParentCall { session: session(number), call });
    Fact::SessionOpened {
        workspace: "/w".into(),
        version: "1".into(),
        agent: DEFAULT_AGENT.into(),
        parent,
    }
}

async fn create_session(log: &SqliteLog, number: u128, parent: Option<u128>, facts: &[Fact]) {
    let claim = log.claim(session(number)).await.unwrap();
    let facts = [&[session_opened(parent)], facts].concat();
    log.append(&claim, 0, UnixMillis(1), &facts).await.unwrap();
}

async fn session_ids(log: &SqliteLog) -> Vec<SessionId> {
    let mut ids: Vec<SessionId> =
        log.list(&Default::default()).await.unwrap().iter().map(|row| row.session).collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn a_restored_log_keeps_its_times_and_shares_its_blobs() {
    let folder = tempfile::tempdir().unwrap();
    let log = SqliteLog::open(folder.path()).await.unwrap();
    let facts = [session_opened(None), model_text("x".repeat(100_000)), model_text("short")];
    let record = |(seq, fact): (u64, &Fact)| {
        FactRecord::new(session(7), seq, UnixMillis(seq * 1_000), fact.clone())
    };
    let records: Vec<FactRecord> = (1..).zip(&facts).map(record).collect();
    let (one, two) = (log.claim(session(1)).await.unwrap(), log.claim(session(2)).await.unwrap());
    assert_eq!(log.append_records(&one, 0, &records).await.unwrap(), 3);
    assert_eq!(log.append_records(&two, 0, &records).await.unwrap(), 3);
    let refused = log.append_records(&two, 0, &records).await;
    assert!(matches!(refused, Err(StorageError::Fenced { .. })), "the session has facts already");
    let row = log.list(&Default::default()).await.unwrap().remove(0);
    assert_eq!((row.changed_at, row.fact_count), (UnixMillis(3_000), 3));
    drop((one, two));
    log.delete(session(1)).await.unwrap();
    let left = read_all(&log, session(2), 0).await.unwrap();
    assert!(
        left.iter()
            .map(|record| (record.at, &record.fact))
            .eq(records.iter().map(|record| (record.at, &record.fact)))
    );
    assert!(left.iter().all(|record| record.session == session(2)));
}

#[tokio::test]
async fn a_session_is_deleted_with_all_its_subagent_sessions_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let log = SqliteLog::open(folder.path()).await.unwrap();
    for (number, parent) in [(1, None), (2, Some(1)), (3, Some(2)), (4, None), (5, Some(4))] {
        create_session(&log, number, parent, &[model_text("x")]).await;
    }
    let open = log.claim(session(3)).await.unwrap();
    assert!(matches!(log.delete(session(1)).await, Err(StorageError::Busy { .. })));
    assert_eq!(
        session_ids(&log).await,
        [1, 2, 3, 4, 5].map(session),
        "a grandchild session is open"
    );
    drop(open);
    log.delete(session(1)).await.unwrap();
    assert_eq!(session_ids(&log).await, [4, 5].map(session));
    log.delete(session(5)).await.unwrap();
    assert_eq!(session_ids(&log).await, [session(4)], "a child session is deleted alone");
    assert!(matches!(log.delete(session(1)).await, Err(StorageError::SessionNotFound { .. })));
}

#[tokio::test]
async fn a_search_takes_words_literally_and_respects_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let log = SqliteLog::open(folder.path()).await.unwrap();
    let special =
        ["100% sure", "a_b", "back\\slash", "quo\"te", "tilde~", "line\nend", "x' OR 1=1 --"];
    create_session(&log, 1, None, &special.map(model_text)).await;
    create_session(&log, 2, None, &special.map(model_text)).await;
    let search = async |word: &str, limit: usize| {
        let found = log.search(session(1), &[word.to_owned()], limit).await.unwrap();
        assert!(found.iter().all(|record| record.session == session(1)));
        found.len()
    };
    for text in special {
        assert_eq!(search(text, 10).await, 1, "{text}");
    }
    for absent in ["100_", "a%b", "%%", "' OR '1'='1", "\u{0}"] {
        assert_eq!(search(absent, 10).await, 0, "{absent}");
    }
    assert_eq!(search("s", 2).await, 2, "no more than the limit");
}

#[tokio::test]
async fn turn_facts_are_the_most_recent_ones_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let log = SqliteLog::open(folder.path()).await.unwrap();
    let ended = |turn| Fact::TurnEnded { turn, end: windlass_protocol::TurnEndReason::Completed };
    let mut facts = Vec::new();
    for turn in 1..=50 {
        facts.push(Fact::TurnStarted { turn, prompt: None });
        facts.extend((0..30).map(|number| model_text(number.to_string())));
        facts.push(ended(turn));
    }
    facts.push(Fact::Rewound { to: 33 });
    create_session(&log, 1, None, &facts).await;
    create_session(&log, 2, None, &[model_text("x".repeat(100))]).await;
    let found = log.read_turn_facts(session(1), 4).await.unwrap();
    let kinds: Vec<&str> = found.iter().map(|record| record.fact.kind()).collect();
    assert_eq!(kinds, ["turn_ended", "turn_started", "turn_ended", "rewound"]);
    assert_eq!(found.last().unwrap().seq, 1 + 50 * 32 + 1);
    assert_eq!(log.read_turn_facts(session(1), usize::MAX).await.unwrap().len(), 101);
    assert!(log.read_turn_facts(session(2), 4).await.unwrap().is_empty());
}
