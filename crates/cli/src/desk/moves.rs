//! Changes of what is open: another session, another model, a folder that is trusted now.
//!
//! What takes time is done before the session is touched ([`prepare`]), so that it goes on
//! meanwhile; then it is closed and opened in one go ([`Ready::carry_out`]).

use super::house::House;
use std::sync::Arc;
use windlass_engine::{Asked, Engine, Handle, Point, Watcher};
use windlass_protocol::wire::{Answered, Keep, Key};
use windlass_protocol::{Event, Fault, SessionId};

/// A change that somebody wants.
#[derive(Clone, Debug)]
pub(super) enum Move {
    Begin { agent: Option<String> },
    Open { session: SessionId },
    Fork { session: SessionId, turn: Option<u32> },
    Delete { session: SessionId },
    Model { model: String, keep: Keep },
    Trust { yes: bool },
    Login { provider: String, key: Key },
}

/// A session that is open.
pub(super) struct Open {
    pub(super) handle: Handle,
    pub(super) watcher: Watcher,
}

/// A change that can be made now.
pub(super) struct Ready {
    house: Arc<House>,
    then: Then,
}

enum Then {
    /// Another session takes the place of the one that is open.
    Begin(Arc<Engine>, Option<String>),
    Open(Arc<Engine>, SessionId),
    /// The same one goes on with another model, of this name.
    Ask(Box<Asked>, String, Answered),
    /// The same one goes on with another engine.
    Again(Arc<Engine>, Answered),
    Delete(SessionId),
    /// The one that is open is closed, and that is why.
    Part(Fault),
    /// Nothing more.
    Answer(Answered),
}

/// What became of it.
pub(super) struct Moved {
    pub(super) house: Arc<House>,
    pub(super) open: Option<Open>,
    /// What happened in the session while nobody looked.
    pub(super) missed: Vec<Arc<Event>>,
    pub(super) answer: Result<Answered, Fault>,
}

/// Does everything that takes time.
pub(super) async fn prepare(house: Arc<House>, change: Move) -> Result<Ready, Fault> {
    let then = match change {
        Move::Begin { agent } => Then::Begin(house.engine().await?, agent),
        Move::Open { session } => Then::Open(any(&house).await?, session),
        Move::Fork { session, turn } => {
            let point = turn.map_or(Point::Last, Point::Turn);
            let fork = house.bare().await?.fork(session, point).await?;
            Then::Open(any(&house).await?, fork)
        }
        Move::Delete { session } => Then::Delete(session),
        Move::Model { model, keep } => {
            let next = Arc::new(house.with_model(&model)?);
            let asked = next.asked()?;
            if house.has_engine() {
                next.take_over(&house, asked.clone()).await?;
            }
            if keep == Keep::Always {
                house.keep_model(&model)?;
            }
            let answer = next.standing();
            return Ok(Ready { house: next, then: Then::Ask(Box::new(asked), model, answer) });
        }
        Move::Trust { yes: false } => {
            house.decline()?;
            if house.is_trusted() {
                return Ok(revoked(house).await);
            }
            Then::Answer(house.standing())
        }
        Move::Trust { yes: true } => {
            house.trust()?;
            return renewed(&house, Arc::new(house.again(house.flags.clone())?)).await;
        }
        Move::Login { provider, key } => {
            house.login(&provider, &key)?;
            let next = Arc::new(house.again(house.flags.clone())?);
            let (Ok(asked), true) = (next.asked(), house.has_engine()) else {
                return Ok(Ready { house: next, then: Then::Answer(Answered::Done) });
            };
            next.take_over(&house, asked.clone()).await?;
            let name = next.setup.config.model.as_ref().map(|(name, _)| name.clone());
            let then = Then::Ask(Box::new(asked), name.unwrap_or_default(), Answered::Done);
            return Ok(Ready { house: next, then });
        }
    };
    Ok(Ready { house, then })
}

/// The house of a folder that is no longer trusted. Where there is none, nothing goes on either.
async fn revoked(house: Arc<House>) -> Ready {
    let read = async || -> Result<Ready, Fault> {
        let next = Arc::new(house.again(house.flags.clone())?);
        let answer = next.standing();
        let then = match house.has_engine() {
            true => Then::Again(any(&next).await?, answer),
            false => Then::Answer(answer),
        };
        Ok(Ready { house: next, then })
    };
    match read().await {
        Ok(ready) => ready,
        Err(fault) => Ready { house: Arc::clone(&house), then: Then::Part(fault) },
    }
}

/// A house that was read again: what was built is built again.
async fn renewed(house: &House, next: Arc<House>) -> Result<Ready, Fault> {
    let answer = next.standing();
    let then = match house.has_engine() {
        true => Then::Again(next.engine().await?, answer),
        false => Then::Answer(answer),
    };
    Ok(Ready { house: next, then })
}

/// The engine that can answer prompts, or one that shows what there is if no model can be asked.
async fn any(house: &House) -> Result<Arc<Engine>, Fault> {
    match house.engine().await {
        Ok(engine) => Ok(engine),
        Err(fault) => {
            crate::screen::note(&format!("no model can be asked: {fault}"));
            house.bare().await
        }
    }
}

impl Ready {
    /// Makes the change. What cannot be opened leaves open what was.
    pub(super) async fn carry_out(self, open: Option<Open>) -> Moved {
        let Ready { house, then } = self;
        let mut missed = Vec::new();
        let (open, answer) = match then {
            Then::Answer(answer) => (open, Ok(answer)),
            Then::Begin(engine, agent) => match engine.begin(agent.as_deref()).await {
                Ok(next) => taken_over(next, open).await,
                Err(fault) => (open, Err(fault)),
            },
            Then::Open(engine, session) => match part(open, session) {
                (Some(open), _) => reopened(&engine, open).await,
                (None, open) => match engine.open(session).await {
                    Ok(next) => taken_over(next, open).await,
                    Err(fault) => (open, Err(fault)),
                },
            },
            Then::Ask(asked, name, answer) => {
                if let Some(open) = &open {
                    // One that has stopped asks nobody; that it has is told anyway.
                    open.handle.ask_another(*asked, &name).await;
                }
                (open, Ok(answer))
            }
            Then::Again(engine, answer) => match open {
                None => (None, Ok(answer)),
                Some(open) => {
                    let session = open.handle.session;
                    missed = close(open).await;
                    match engine.open(session).await {
                        Ok((handle, watcher)) => (Some(Open { handle, watcher }), Ok(answer)),
                        Err(fault) => (None, Err(fault)),
                    }
                }
            },
            Then::Part(fault) => {
                if let Some(open) = open {
                    missed = close(open).await;
                }
                (None, Err(fault))
            }
            Then::Delete(session) => match part(open, session) {
                (Some(open), _) => {
                    close(open).await;
                    (None, delete(&house, session).await)
                }
                (None, open) => (open, delete(&house, session).await),
            },
        };
        Moved { house, open, missed, answer }
    }
}

async fn delete(house: &House, session: SessionId) -> Result<Answered, Fault> {
    house.bare().await?.delete(session).await?;
    Ok(Answered::Done)
}

/// The one that is open: first if it is this one, else second.
fn part(open: Option<Open>, session: SessionId) -> (Option<Open>, Option<Open>) {
    match open {
        Some(open) if open.handle.session == session => (Some(open), None),
        open => (None, open),
    }
}

/// Another session is open now, and the one before is closed.
async fn taken_over(
    (handle, watcher): (Handle, Watcher),
    before: Option<Open>,
) -> (Option<Open>, Result<Answered, Fault>) {
    if let Some(before) = before {
        // It is on record what became of it.
        let _ = before.handle.close().await;
    }
    let answer = Answered::Opened { session: handle.session, head: handle.head() };
    (Some(Open { handle, watcher }), Ok(answer))
}

/// The same session from its beginning, for a front end that has forgotten it.
async fn reopened(engine: &Engine, open: Open) -> (Option<Open>, Result<Answered, Fault>) {
    let session = open.handle.session;
    close(open).await;
    match engine.open(session).await {
        Ok(next) => taken_over(next, None).await,
        Err(fault) => (None, Err(fault)),
    }
}

/// Closes a session, and says what happened in it that was not told yet.
async fn close(open: Open) -> Vec<Arc<Event>> {
    let Open { handle, mut watcher } = open;
    // It is on record what became of it.
    let _ = handle.close().await;
    let mut missed = Vec::new();
    while let Ok(Some(event)) = watcher.next().await {
        missed.push(event);
    }
    missed
}
