//! A simulated user: sends prompts, answers, interrupts, steers, queries, and closes and resumes
//! sessions.

use crate::random::SoakRng;
use crate::scripted_model::SoakTurnPlan;
use crate::support::SoakEnv;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_engine::{Engine, SessionHandle, SessionWatcher};
use windlass_protocol::{
    CallId, Event, EventCursor, Fact, FactRecord, LogPosition, LogSeq, PermissionAnswer,
    PromptDelivery, QueryReply, SessionId, SessionOp, SessionQuery, TurnEndReason,
};

/// A turn that takes longer hangs, even on a busy machine.
const TURN_TIMEOUT: Duration = Duration::from_secs(180);

/// The number of closed sessions that a user keeps before the oldest is deleted.
const MAX_KEPT_SESSIONS: usize = 3;

/// The resumes of a session before [`NextSessionChoice::Stay`] starts the next one. A single
/// session would need more and more memory, as its log grows.
const MAX_RESUMES: u64 = 50;

/// The choice of the next session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextSessionChoice {
    /// Resumes the same session.
    Stay,
    /// Often starts or resumes another session.
    Switch,
}

/// A user with one session at a time, who changes one folder.
pub(crate) struct SimulatedUser {
    env: Arc<SoakEnv>,
    engine: Arc<Engine>,
    folder: u64,
    rng: SoakRng,
    tools: HashMap<CallId, String>,
}

/// An action of the user during a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SimulatedUserAction {
    None,
    Interrupt,
    InterruptTwice,
    Steer,
    Queue,
    /// Reads the events of another watcher only after the turn.
    ReadLate,
    /// Watches with another watcher for a short time.
    WatchBriefly,
    /// Closes the session during the turn.
    Close,
}

impl SimulatedUser {
    pub(crate) fn new(
        env: &Arc<SoakEnv>,
        engine: &Arc<Engine>,
        folder: u64,
        seed: u64,
    ) -> SimulatedUser {
        let (env, engine) = (Arc::clone(env), Arc::clone(engine));
        let rng = SoakRng::for_actor(seed, folder + 1);
        SimulatedUser { env, engine, folder, rng, tools: HashMap::new() }
    }

    /// Works in sessions until `until`, and deletes all of them at the end.
    pub(crate) async fn work(mut self, habit: NextSessionChoice, until: Instant) {
        let mut kept: Vec<SessionId> = Vec::new();
        for time in 0_u64.. {
            if Instant::now() >= until {
                break;
            }
            let (resume, max_kept) = match habit {
                NextSessionChoice::Stay => (!time.is_multiple_of(MAX_RESUMES), 1),
                NextSessionChoice::Switch => (self.rng.one_in(2), MAX_KEPT_SESSIONS),
            };
            let resumed = if resume { kept.pop() } else { None };
            let (handle, watcher) = self.open_session(resumed).await;
            kept.insert(0, handle.session);
            self.run_turns(handle, watcher, until).await;
            while kept.len() > max_kept {
                if let Some(oldest) = kept.pop() {
                    self.env.delete(&self.engine, oldest).await;
                }
            }
        }
        for session in kept {
            self.env.delete(&self.engine, session).await;
        }
    }

    /// Opens a session with one tool call, and leaves it open and idle.
    pub(crate) async fn open_idle_session(mut self) -> SessionHandle {
        let (mut handle, mut watcher) = self.open_session(None).await;
        let call = |command: &str| SessionOp::CallTool {
            tool: "bash".to_owned(),
            arguments: serde_json::json!({"command": command}).to_string(),
        };
        assert!(handle.send(call("echo here")).await);
        self.follow_turn(&mut handle, &mut watcher, SimulatedUserAction::None).await;
        handle
    }

    async fn open_session(
        &mut self,
        session: Option<SessionId>,
    ) -> (SessionHandle, SessionWatcher) {
        self.tools.clear();
        let Some(session) = session else {
            self.env.count_action("created");
            return self.engine.start_default_session().await.unwrap();
        };
        let settled = self.env.check_log(session).await;
        let (mut handle, mut watcher) = self.engine.open(session).await.unwrap();
        self.env.count_action("opened");
        if !settled {
            self.env.count_action("resumed");
            self.follow_turn(&mut handle, &mut watcher, SimulatedUserAction::None).await;
        }
        (handle, watcher)
    }

    /// Runs some turns and closes the session.
    async fn run_turns(
        &mut self,
        mut handle: SessionHandle,
        mut watcher: SessionWatcher,
        until: Instant,
    ) {
        for _ in 0..2 + self.rng.below(6) {
            if Instant::now() > until {
                break;
            }
            if self.run_turn(&mut handle, &mut watcher).await == SimulatedUserAction::Close {
                break;
            }
            self.query_history(&handle).await;
        }
        handle.close().await.unwrap();
        self.env.count_action("closed");
    }

    /// Runs one turn and returns the action during it.
    async fn run_turn(
        &mut self,
        handle: &mut SessionHandle,
        watcher: &mut SessionWatcher,
    ) -> SimulatedUserAction {
        let rng = &mut self.rng;
        if rng.one_in(24) {
            // A compaction that is not possible now has no other effect than a notice.
            assert!(handle.send(SessionOp::Compact).await);
            self.env.count_action("compacted");
        }
        let steps = 2 + rng.below(8);
        let plan = SoakTurnPlan { seed: rng.next(), steps, folder: Some(self.folder) };
        let action = match rng.below(16) {
            0 => SimulatedUserAction::Interrupt,
            1 => SimulatedUserAction::InterruptTwice,
            2 => SimulatedUserAction::Steer,
            3 => SimulatedUserAction::Queue,
            4 | 5 => SimulatedUserAction::ReadLate,
            6 => SimulatedUserAction::WatchBriefly,
            7 => SimulatedUserAction::Close,
            _ => SimulatedUserAction::None,
        };
        let start = EventCursor::from(LogPosition::unchecked(handle.initial_head()));
        let mut late = match action {
            SimulatedUserAction::ReadLate => Some(handle.watch(start).await),
            _ => None,
        };
        assert!(handle.send(SessionOp::prompt(plan.to_string())).await);
        let last_seq = self.follow_turn(handle, watcher, action).await;
        if let Some(late) = &mut late {
            catch_up(late, handle.session, last_seq).await;
            self.env.count_action("read late");
        }
        action
    }

    /// Watches until the end of a turn, answers questions, and performs the action after a delay.
    /// Returns the number of the last fact.
    async fn follow_turn(
        &mut self,
        handle: &mut SessionHandle,
        watcher: &mut SessionWatcher,
        action: SimulatedUserAction,
    ) -> LogSeq {
        let delay = Duration::from_millis(10 + self.rng.below(600));
        let mut delay = Some(Box::pin(tokio::time::sleep(delay)));
        let mut timeout = Box::pin(tokio::time::sleep(TURN_TIMEOUT));
        loop {
            let event = tokio::select! {
                () = async { delay.as_mut().unwrap().await }, if delay.is_some() => {
                    delay = None;
                    self.perform(handle, action).await;
                    if action == SimulatedUserAction::Close {
                        return 0;
                    }
                    continue;
                }
                () = &mut timeout => panic!("session {} hangs ({action:?})", handle.session),
                event = watcher.next() => event.unwrap().expect("the session stopped"),
            };
            let Event::Fact(record) = &*event else { continue };
            self.handle_fact(handle, record).await;
            if let Fact::TurnEnded { end, .. } = &record.fact
                && record.session == handle.session
            {
                if let TurnEndReason::Failed { fault } = end {
                    panic!("session {}: {fault}", handle.session);
                }
                return record.seq;
            }
        }
    }

    async fn perform(&mut self, handle: &SessionHandle, action: SimulatedUserAction) {
        let prompt = |text: &str, delivery| SessionOp::Prompt {
            text: text.to_owned(),
            attachments: Vec::new(),
            delivery,
            settings: Default::default(),
        };
        let (name, ops) = match action {
            SimulatedUserAction::None | SimulatedUserAction::ReadLate => return,
            SimulatedUserAction::Close => ("closed early", Vec::new()),
            SimulatedUserAction::Interrupt => {
                ("interrupted", vec![SessionOp::Interrupt { turn: None }])
            }
            SimulatedUserAction::InterruptTwice => (
                "interrupted twice",
                vec![SessionOp::Interrupt { turn: None }, SessionOp::Interrupt { turn: None }],
            ),
            SimulatedUserAction::Steer => {
                ("steered", vec![prompt("And mind the rest.", PromptDelivery::Steer)])
            }
            SimulatedUserAction::Queue => {
                ("queued", vec![prompt("Then rest.", PromptDelivery::Queue)])
            }
            SimulatedUserAction::WatchBriefly => {
                let mut watcher =
                    handle.watch(LogPosition::unchecked(handle.initial_head()).into()).await;
                for _ in 0..self.rng.below(20) {
                    let next = tokio::time::timeout(Duration::from_millis(20), watcher.next());
                    let _ = next.await;
                }
                ("watched briefly", Vec::new())
            }
        };
        for op in ops {
            assert!(handle.send(op).await);
        }
        self.env.count_action(name);
    }

    /// Counts a fact, and answers a permission request or question.
    async fn handle_fact(&mut self, handle: &SessionHandle, record: &FactRecord) {
        let mut tool = None;
        let answer = match &record.fact {
            Fact::ToolCalled { call, tool, .. } => {
                self.tools.insert(*call, tool.clone());
                None
            }
            Fact::CallSettled { call, .. } => {
                tool = self.tools.remove(call);
                None
            }
            Fact::PermissionAsked { call, .. } => {
                let answer = match self.rng.below(8) {
                    0 => PermissionAnswer::No { reason: None },
                    1 => PermissionAnswer::No { reason: Some("Not now.".to_owned()) },
                    2 => PermissionAnswer::Session,
                    _ => PermissionAnswer::Once,
                };
                Some(SessionOp::AnswerPermission { call: *call, answer, asked: None })
            }
            Fact::QuestionAsked { call, .. } => {
                let reply = if self.rng.one_in(2) { "this" } else { "neither of them" };
                Some(SessionOp::AnswerQuestion {
                    call: *call,
                    answers: vec![vec![reply.to_owned()]],
                    asked: None,
                })
            }
            _ => None,
        };
        self.env.count_fact(&record.fact, tool);
        if let Some(answer) = answer {
            assert!(handle.send(answer).await);
        }
    }

    /// Sometimes queries events, transcript or search, like a client that reconnects.
    async fn query_history(&mut self, handle: &SessionHandle) {
        let session = handle.session;
        match self.rng.below(12) {
            0 => {
                let after = self.rng.below(40);
                let reply = self
                    .engine
                    .query(SessionQuery::Events { session, after, limit: None })
                    .await
                    .unwrap();
                let QueryReply::Events { events } = reply else { panic!("unexpected reply") };
                for (seq, record) in (after + 1..).zip(events) {
                    assert_eq!(record.seq, seq, "a gap in the log of session {session}");
                }
            }
            1 => {
                let reply = self.engine.query(SessionQuery::Transcript { session }).await.unwrap();
                assert!(matches!(reply, QueryReply::Transcript { .. }));
            }
            2 => {
                let query =
                    SessionQuery::SearchSessions { words: "tick rest".to_owned(), workspace: None };
                self.engine.query(query).await.unwrap();
            }
            _ => return,
        }
        self.env.count_action("queried");
    }
}

/// Reads the events of a late watcher, and checks that none is missing.
async fn catch_up(late: &mut SessionWatcher, session: SessionId, until: LogSeq) {
    let mut last: Option<LogSeq> = None;
    while last.is_none_or(|last| last < until) {
        let next = tokio::time::timeout(TURN_TIMEOUT, late.next()).await;
        let event = next.unwrap_or_else(|_| panic!("session {session}: nothing after {last:?}"));
        let event = event.unwrap().expect("the session stopped");
        if let Event::Fact(record) = &*event
            && record.session == session
        {
            assert!(
                last.is_none_or(|last| record.seq == last + 1),
                "a gap in the events after {last:?}"
            );
            last = Some(record.seq);
        }
    }
}
