//! The stored size of answers that arrive in many small deltas.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test measures files, and fails by panicking"
)]

use std::path::Path;
use uuid::Uuid;
use windlass_engine::session::{
    InputTimeAndId, Session, SessionConfig, SessionEffect, SessionInput,
};
use windlass_llm::ModelEvent;
use windlass_protocol::{Fact, FinishReason, SessionId, SessionOp, TokenUsage, UnixMillis};
use windlass_storage::{Log, SessionClaim, SqliteLog, read_all};

/// A session without a model, with a log on disk.
struct TestEnv {
    session: Session,
    log: SqliteLog,
    claim: SessionClaim,
    inputs: u128,
}

impl TestEnv {
    async fn apply(&mut self, input: SessionInput) {
        self.inputs += 1;
        let stamp = InputTimeAndId { at: UnixMillis(1), id: Uuid::from_u128(self.inputs) };
        for effect in self.session.apply(stamp, input) {
            if let SessionEffect::Append(facts) = effect {
                let (head, at) = (self.claim.head, stamp.at);
                self.claim.head = self.log.append(&self.claim, head, at, &facts).await.unwrap();
            }
        }
    }
}

fn size_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| match entry.metadata().unwrap() {
            kind if kind.is_dir() => size_of(&entry.path()),
            file => file.len(),
        })
        .sum()
}

#[tokio::test]
async fn a_million_text_deltas_take_little_more_space_than_their_text() {
    const ANSWERS: u32 = 5;
    const DELTAS: usize = 200_000;
    let folder = tempfile::tempdir().unwrap();
    let log = SqliteLog::open(folder.path()).await.unwrap();
    let id = SessionId(Uuid::from_u128(1));
    let claim = log.claim(id).await.unwrap();
    let session = Session::new(Fact::session_opened("/w", "0"), SessionConfig::default());
    let mut env = TestEnv { session, log, claim, inputs: 0 };
    let mut text_bytes = 0;
    for turn in 1..=ANSWERS {
        env.apply(SessionInput::Op(SessionOp::prompt("go"))).await;
        for index in 0..DELTAS {
            let text = if index % 9 == 0 { "word\n" } else { "word " }.to_owned();
            text_bytes += text.len() as u64;
            env.apply(SessionInput::Model { turn, step: 1, event: ModelEvent::Text(text) }).await;
        }
        let (finish, usage) = (FinishReason::Stop, TokenUsage::default());
        let event = ModelEvent::Ended { finish, usage };
        env.apply(SessionInput::Model { turn, step: 1, event }).await;
    }
    assert!(!env.session.is_busy());
    let stored = read_all(&env.log, id, 0).await.unwrap();
    let texts = stored.iter().filter_map(|record| match &record.fact {
        Fact::ModelText { text, .. } => Some(text.len() as u64),
        _ => None,
    });
    assert_eq!(texts.sum::<u64>(), text_bytes, "text is missing");
    drop(env);
    let size = size_of(folder.path());
    assert!(size * 10 <= text_bytes * 12, "{size} bytes on disk for {text_bytes} bytes of text");
}
