//! What a session stores is what was said, however it was said.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test looks at the store from outside, and fails by panicking"
)]

use std::path::Path;
use uuid::Uuid;
use windlass_engine::session::{Effect, Input, Session, Stamp, Terms};
use windlass_llm::ModelEvent;
use windlass_protocol::{Fact, Finish, Millis, Op, SessionId, Usage};
use windlass_storage::{Claim, Log, Sqlite, read_all};

/// A session that has no model, and a log that is real.
struct Yard {
    session: Session,
    log: Sqlite,
    claim: Claim,
    inputs: u128,
}

impl Yard {
    async fn apply(&mut self, input: Input) {
        self.inputs += 1;
        let stamp = Stamp { at: Millis(1), id: Uuid::from_u128(self.inputs) };
        for effect in self.session.apply(stamp, input) {
            if let Effect::Append(facts) = effect {
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
async fn a_million_pieces_take_up_little_more_than_what_they_say() {
    const ANSWERS: u32 = 5;
    const PIECES: usize = 200_000;
    let folder = tempfile::tempdir().unwrap();
    let log = Sqlite::open(folder.path()).await.unwrap();
    let id = SessionId(Uuid::from_u128(1));
    let claim = log.claim(id).await.unwrap();
    let session = Session::new(Fact::opened("/w", "0"), Terms::default());
    let mut yard = Yard { session, log, claim, inputs: 0 };
    let mut said = 0;
    for turn in 1..=ANSWERS {
        yard.apply(Input::Op(Op::prompt("go"))).await;
        for piece in 0..PIECES {
            let text = if piece % 9 == 0 { "word\n" } else { "word " }.to_owned();
            said += text.len() as u64;
            yard.apply(Input::Model { turn, step: 1, event: ModelEvent::Text(text) }).await;
        }
        let (finish, usage) = (Finish::Stop, Usage::default());
        let event = ModelEvent::Ended { finish, usage };
        yard.apply(Input::Model { turn, step: 1, event }).await;
    }
    assert!(!yard.session.busy());
    let stored = read_all(&yard.log, id, 0).await.unwrap();
    let texts = stored.iter().filter_map(|record| match &record.fact {
        Fact::Said { text, .. } => Some(text.len() as u64),
        _ => None,
    });
    assert_eq!(texts.sum::<u64>(), said, "nothing is lost");
    drop(yard);
    let size = size_of(folder.path());
    assert!(size * 10 <= said * 12, "{size} bytes on the disk for {said}");
}
