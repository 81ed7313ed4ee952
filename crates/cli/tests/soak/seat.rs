//! A person at a session: asks for things, answers, stops, steers, looks, leaves and comes back.

use crate::chance::Chance;
use crate::words::Plan;
use crate::yard::Yard;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_engine::{Engine, Handle, Watcher};
use windlass_protocol::{
    Answer, CallId, Delivery, Event, Fact, Op, Query, Record, Reply, Seq, SessionId, TurnEnd,
};

/// How long anything may take, on a machine that does other things, too.
const PATIENCE: Duration = Duration::from_secs(180);

/// So many closed sessions a person keeps before the oldest is removed.
const KEPT: usize = 3;

/// So often a faithful person comes back to a session before the next is begun. One that went on
/// for the whole day would grow as its log does.
const FAITHFUL: u64 = 50;

/// Whether a person stays with a session or begins others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Habit {
    Faithful,
    Fickle,
}

pub(crate) struct Seat {
    yard: Arc<Yard>,
    engine: Arc<Engine>,
    place: u64,
    chance: Chance,
    tools: HashMap<CallId, String>,
}

/// What is done in the middle of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whim {
    None,
    Stop,
    StopAtOnce,
    Steer,
    Queue,
    /// Watches and does not look until the turn is over.
    Lag,
    /// Watches for a moment.
    Peek,
    Leave,
}

impl Seat {
    pub(crate) fn new(yard: &Arc<Yard>, engine: &Arc<Engine>, place: u64, seed: u64) -> Seat {
        let (yard, engine) = (Arc::clone(yard), Arc::clone(engine));
        let chance = Chance::of(seed, place + 1);
        Seat { yard, engine, place, chance, tools: HashMap::new() }
    }

    /// Works until it is time to go, and leaves no session.
    pub(crate) async fn work(mut self, habit: Habit, until: Instant) {
        let mut kept: Vec<SessionId> = Vec::new();
        for time in 0_u64.. {
            if Instant::now() >= until {
                break;
            }
            let (again, most) = match habit {
                Habit::Faithful => (!time.is_multiple_of(FAITHFUL), 1),
                Habit::Fickle => (self.chance.one_in(2), KEPT),
            };
            let again = if again { kept.pop() } else { None };
            let (handle, watcher) = self.sit_down(again).await;
            kept.insert(0, handle.session);
            self.stay(handle, watcher, until).await;
            while kept.len() > most {
                if let Some(oldest) = kept.pop() {
                    self.yard.remove(&self.engine, oldest).await;
                }
            }
        }
        for session in kept {
            self.yard.remove(&self.engine, session).await;
        }
    }

    /// Opens a session with something done in it, and leaves it alone.
    pub(crate) async fn rest(mut self) -> Handle {
        let (mut handle, mut watcher) = self.sit_down(None).await;
        let call = |command: &str| Op::Call {
            tool: "bash".to_owned(),
            arguments: serde_json::json!({"command": command}).to_string(),
        };
        assert!(handle.send(call("echo here")).await);
        self.follow(&mut handle, &mut watcher, Whim::None).await;
        handle
    }

    async fn sit_down(&mut self, session: Option<SessionId>) -> (Handle, Watcher) {
        self.tools.clear();
        let Some(session) = session else {
            self.yard.did("created");
            return self.engine.create().await.unwrap();
        };
        let settled = self.yard.check(session).await;
        let (mut handle, mut watcher) = self.engine.open(session).await.unwrap();
        self.yard.did("opened again");
        if !settled {
            self.yard.did("gone on with");
            self.follow(&mut handle, &mut watcher, Whim::None).await;
        }
        (handle, watcher)
    }

    /// Some turns, and then it is closed.
    async fn stay(&mut self, mut handle: Handle, mut watcher: Watcher, until: Instant) {
        for _ in 0..2 + self.chance.below(6) {
            if Instant::now() > until {
                break;
            }
            if self.turn(&mut handle, &mut watcher).await == Whim::Leave {
                break;
            }
            self.look_back(&handle).await;
        }
        handle.close().await.unwrap();
        self.yard.did("closed");
    }

    /// One turn, and what was done in the middle of it.
    async fn turn(&mut self, handle: &mut Handle, watcher: &mut Watcher) -> Whim {
        let chance = &mut self.chance;
        if chance.one_in(24) {
            // If there is nothing to sum up, or something is under way, that is told and no more.
            assert!(handle.send(Op::Compact).await);
            self.yard.did("summed up");
        }
        let steps = 2 + chance.below(8);
        let plan = Plan { seed: chance.next(), steps, place: Some(self.place) };
        let whim = match chance.below(16) {
            0 => Whim::Stop,
            1 => Whim::StopAtOnce,
            2 => Whim::Steer,
            3 => Whim::Queue,
            4 | 5 => Whim::Lag,
            6 => Whim::Peek,
            7 => Whim::Leave,
            _ => Whim::None,
        };
        let mut late = (whim == Whim::Lag).then(|| handle.watch().unwrap());
        assert!(handle.send(Op::prompt(plan.to_string())).await);
        let seen = self.follow(handle, watcher, whim).await;
        if let Some(late) = &mut late {
            catch_up(late, handle.session, seen).await;
            self.yard.did("lagged");
        }
        whim
    }

    /// Watches to the end of a turn, answers what is asked, and does what comes to mind; says which
    /// fact was the last.
    async fn follow(&mut self, handle: &mut Handle, watcher: &mut Watcher, whim: Whim) -> Seq {
        let moment = Duration::from_millis(10 + self.chance.below(600));
        let mut moment = Some(Box::pin(tokio::time::sleep(moment)));
        let mut patience = Box::pin(tokio::time::sleep(PATIENCE));
        loop {
            let event = tokio::select! {
                () = async { moment.as_mut().unwrap().await }, if moment.is_some() => {
                    moment = None;
                    self.act(handle, whim).await;
                    if whim == Whim::Leave {
                        return 0;
                    }
                    continue;
                }
                () = &mut patience => panic!("session {} hangs ({whim:?})", handle.session),
                event = watcher.next() => event.unwrap().expect("the session stopped"),
            };
            let Event::Fact(record) = &*event else { continue };
            self.see(handle, record).await;
            if let Fact::TurnEnded { end, .. } = &record.fact
                && record.session == handle.session
            {
                if let TurnEnd::Failed { fault } = end {
                    panic!("session {}: {fault}", handle.session);
                }
                return record.seq;
            }
        }
    }

    async fn act(&mut self, handle: &Handle, whim: Whim) {
        let told =
            |text: &str, when| Op::Prompt { text: text.to_owned(), attachments: Vec::new(), when };
        let (act, ops) = match whim {
            Whim::None | Whim::Lag => return,
            Whim::Leave => ("left", Vec::new()),
            Whim::Stop => ("stopped", vec![Op::Interrupt]),
            Whim::StopAtOnce => ("stopped at once", vec![Op::Interrupt, Op::Interrupt]),
            Whim::Steer => ("steered", vec![told("And mind the rest.", Delivery::Steer)]),
            Whim::Queue => ("queued", vec![told("Then rest.", Delivery::Queue)]),
            Whim::Peek => {
                let mut watcher = handle.watch().unwrap();
                for _ in 0..self.chance.below(20) {
                    let next = tokio::time::timeout(Duration::from_millis(20), watcher.next());
                    let _ = next.await;
                }
                ("peeked", Vec::new())
            }
        };
        for op in ops {
            assert!(handle.send(op).await);
        }
        self.yard.did(act);
    }

    /// Takes a fact in, and answers it if it asks.
    async fn see(&mut self, handle: &Handle, record: &Record) {
        let mut tool = None;
        let answer = match &record.fact {
            Fact::Called { call, tool, .. } => {
                self.tools.insert(*call, tool.clone());
                None
            }
            Fact::Settled { call, .. } => {
                tool = self.tools.remove(call);
                None
            }
            Fact::Asked { call, .. } => {
                let answer = match self.chance.below(8) {
                    0 => Answer::No { reason: None },
                    1 => Answer::No { reason: Some("Not now.".to_owned()) },
                    2 => Answer::Session,
                    _ => Answer::Once,
                };
                Some(Op::Answer { call: *call, answer })
            }
            Fact::Inquired { call, .. } => {
                let reply = if self.chance.one_in(2) { "this" } else { "neither of them" };
                Some(Op::Reply { call: *call, replies: vec![vec![reply.to_owned()]] })
            }
            _ => None,
        };
        self.yard.saw(&record.fact, tool);
        if let Some(answer) = answer {
            assert!(handle.send(answer).await);
        }
    }

    /// Reads the log from an older place, as one does who was cut off.
    async fn look_back(&mut self, handle: &Handle) {
        let session = handle.session;
        match self.chance.below(12) {
            0 => {
                let after = self.chance.below(40);
                let reply =
                    self.engine.query(Query::Events { session, after, most: None }).await.unwrap();
                let Reply::Events { events } = reply else { panic!("another answer") };
                for (seq, record) in (after + 1..).zip(events) {
                    assert_eq!(record.seq, seq, "session {session} has a gap");
                }
            }
            1 => {
                let reply = self.engine.query(Query::Transcript { session }).await.unwrap();
                assert!(matches!(reply, Reply::Transcript { .. }));
            }
            2 => {
                let query = Query::Search { words: "tick rest".to_owned(), workspace: None };
                self.engine.query(query).await.unwrap();
            }
            _ => return,
        }
        self.yard.did("looked back");
    }
}

/// Reads everything that was missed; nothing may be.
async fn catch_up(late: &mut Watcher, session: SessionId, until: Seq) {
    let mut last: Option<Seq> = None;
    while last.is_none_or(|last| last < until) {
        let next = tokio::time::timeout(PATIENCE, late.next()).await;
        let event = next.unwrap_or_else(|_| panic!("session {session}: nothing after {last:?}"));
        let event = event.unwrap().expect("the session stopped");
        if let Event::Fact(record) = &*event
            && record.session == session
        {
            assert!(last.is_none_or(|last| record.seq == last + 1), "a gap after {last:?}");
            last = Some(record.seq);
        }
    }
}
