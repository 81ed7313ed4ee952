//! Logs that are written again, searched, and removed with what they began.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test looks at the store from outside, and fails by panicking"
)]

use uuid::Uuid;
use windlass_protocol::{BUILD, CallId, Fact, Millis, Parent, Record, SessionId};
use windlass_storage::{Error, Log, Sqlite, read_all};

fn session(number: u128) -> SessionId {
    SessionId(Uuid::from_u128(number))
}

fn said(text: impl Into<String>) -> Fact {
    Fact::Said { text: text.into(), seal: None }
}

fn opened(parent: Option<u128>) -> Fact {
    let call = CallId(Uuid::from_u128(9));
    let parent = parent.map(|number| Parent { session: session(number), call });
    Fact::Opened { workspace: "/w".into(), version: "1".into(), agent: BUILD.into(), parent }
}

async fn begin(log: &Sqlite, number: u128, parent: Option<u128>, facts: &[Fact]) {
    let claim = log.claim(session(number)).await.unwrap();
    let facts = [&[opened(parent)], facts].concat();
    log.append(&claim, 0, Millis(1), &facts).await.unwrap();
}

async fn names(log: &Sqlite) -> Vec<SessionId> {
    let mut names: Vec<SessionId> =
        log.list().await.unwrap().iter().map(|row| row.session).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_restored_log_keeps_its_times_and_shares_its_blobs() {
    let folder = tempfile::tempdir().unwrap();
    let log = Sqlite::open(folder.path()).await.unwrap();
    let facts = [opened(None), said("x".repeat(100_000)), said("short")];
    let record = |(seq, fact): (u64, &Fact)| Record {
        session: session(7),
        seq,
        at: Millis(seq * 1_000),
        fact: fact.clone(),
    };
    let records: Vec<Record> = (1..).zip(&facts).map(record).collect();
    let (one, two) = (log.claim(session(1)).await.unwrap(), log.claim(session(2)).await.unwrap());
    assert_eq!(log.restore(&one, &records).await.unwrap(), 3);
    assert_eq!(log.restore(&two, &records).await.unwrap(), 3);
    let refused = log.restore(&two, &records).await;
    assert!(matches!(refused, Err(Error::Fenced { .. })), "it has facts already");
    let row = log.list().await.unwrap().remove(0);
    assert_eq!((row.changed, row.length), (Millis(3_000), 3));
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
async fn a_session_goes_with_all_it_began_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let log = Sqlite::open(folder.path()).await.unwrap();
    for (number, parent) in [(1, None), (2, Some(1)), (3, Some(2)), (4, None), (5, Some(4))] {
        begin(&log, number, parent, &[said("x")]).await;
    }
    let open = log.claim(session(3)).await.unwrap();
    assert!(matches!(log.delete(session(1)).await, Err(Error::Busy { .. })));
    assert_eq!(names(&log).await, [1, 2, 3, 4, 5].map(session), "a grandchild is at work");
    drop(open);
    log.delete(session(1)).await.unwrap();
    assert_eq!(names(&log).await, [4, 5].map(session));
    log.delete(session(5)).await.unwrap();
    assert_eq!(names(&log).await, [session(4)], "a child goes alone");
    assert!(matches!(log.delete(session(1)).await, Err(Error::NoSession { .. })));
}

#[tokio::test]
async fn a_search_takes_words_as_they_are_and_ends_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let log = Sqlite::open(folder.path()).await.unwrap();
    let tricky =
        ["100% sure", "a_b", "back\\slash", "quo\"te", "tilde~", "line\nend", "x' OR 1=1 --"];
    begin(&log, 1, None, &tricky.map(said)).await;
    begin(&log, 2, None, &tricky.map(said)).await;
    let search = async |word: &str, most: usize| {
        let found = log.search(session(1), &[word.to_owned()], most).await.unwrap();
        assert!(found.iter().all(|record| record.session == session(1)));
        found.len()
    };
    for text in tricky {
        assert_eq!(search(text, 10).await, 1, "{text}");
    }
    for absent in ["100_", "a%b", "%%", "' OR '1'='1", "\u{0}"] {
        assert_eq!(search(absent, 10).await, 0, "{absent}");
    }
    assert_eq!(search("s", 2).await, 2, "no more than asked for");
}

#[tokio::test]
async fn landmarks_are_the_last_of_their_kinds_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let log = Sqlite::open(folder.path()).await.unwrap();
    let ended = |turn| Fact::TurnEnded { turn, end: windlass_protocol::TurnEnd::Done };
    let mut facts = Vec::new();
    for turn in 1..=50 {
        facts.push(Fact::TurnStarted { turn, prompt: None });
        facts.extend((0..30).map(|number| said(number.to_string())));
        facts.push(ended(turn));
    }
    facts.push(Fact::Reverted { to: 33 });
    begin(&log, 1, None, &facts).await;
    begin(&log, 2, None, &[said("x".repeat(100))]).await;
    let found = log.landmarks(session(1), 4).await.unwrap();
    let kinds: Vec<&str> = found.iter().map(|record| record.fact.kind()).collect();
    assert_eq!(kinds, ["turn_ended", "turn_started", "turn_ended", "reverted"]);
    assert_eq!(found.last().unwrap().seq, 1 + 50 * 32 + 1);
    assert_eq!(log.landmarks(session(1), usize::MAX).await.unwrap().len(), 101);
    assert!(log.landmarks(session(2), 4).await.unwrap().is_empty());
}
