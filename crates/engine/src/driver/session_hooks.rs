//! Session hooks that run outside of tool calls: at session start and end, at a prompt, and at the
//! end of a turn.
//!
//! A prompt waits until the hooks accept it, and the first prompt also waits for the context from
//! the start hooks. If a hook rejects the system prompt, the model is not called. Observer hooks
//! run one after another alongside the session, which waits for them only when it ends.

use super::side_request::SideRequestModels;
use super::{SessionDriver, goal};
use crate::clock_and_ids::{duration_millis, new_stamp};
use crate::session::{Session, SessionInput, SubmittedPrompt};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc};
use tokio::task::{JoinError, JoinSet};
use windlass_protocol::{
    Event, Fact, FactRecord, Fault, HookPoint, HookVerdict, LiveEvent, LiveEventRecord, OpId,
    PermissionMode, SessionId, StepPurpose, TurnEndReason,
};
use windlass_toolkit::hook::run_hooks;
use windlass_toolkit::{
    CombinedHookResult, Hook, HookContext, HookDenial, HookJudge, HookPayload, HookRun,
};

/// Maximum number of events queued for observer hooks. Further events are dropped and counted.
const HOOK_QUEUE_CAPACITY: usize = 256;

/// Time that a closing session waits for its observer hooks.
const HOOK_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(60);

/// State of a session's hooks, kept by its `SessionDriver`.
#[derive(Default)]
pub(super) struct SessionHookState {
    /// Prompts that wait for hooks. The hooks check the first one, unless the start hooks are still
    /// running.
    pub(super) held_prompts: VecDeque<(OpId, SubmittedPrompt)>,
    pub(super) running: JoinSet<SessionHookResult>,
    pub(super) start_answered: bool,
    /// The hook that rejected the system prompt at `HookPoint::System`.
    pub(super) stopped_by: Option<HookDenial>,
    /// Inputs that resulted from hooks, with the operation of a prompt; the `SessionDriver` applies
    /// them next.
    due_inputs: VecDeque<(SessionInput, Option<OpId>)>,
    observer_queue: Option<mpsc::Sender<(PermissionMode, HookPayload)>>,
    observer_tasks: JoinSet<()>,
    missed_events: u64,
    /// Last turn in which observer hooks were notified of a compaction.
    last_compaction_turn: Option<u32>,
    /// The last turn that a prompt started. Its hooks run before it completes.
    last_prompt_turn: Option<u32>,
}

/// Result of running hooks.
#[derive(Default)]
pub(super) struct SessionHookResult {
    inputs: Vec<SessionInput>,
    /// These are the answers of the start hooks.
    is_start: bool,
    stopped_by: Option<HookDenial>,
}

/// The hooks and the session they run for, owned so that a task can keep it.
#[derive(Clone)]
pub(super) struct SessionHookRunner {
    hooks: Arc<[Arc<dyn Hook>]>,
    session: SessionId,
    folder: String,
    /// The name of the session's agent; empty if it has none.
    agent: String,
    judge: SideRequestModels,
}

impl SessionHookRunner {
    pub(super) async fn fire(
        &self,
        mode: PermissionMode,
        payload: HookPayload,
    ) -> (Vec<HookRun>, Result<CombinedHookResult, HookDenial>) {
        let (session, folder) = (self.session, self.folder.as_str());
        let judge: Option<&dyn HookJudge> = Some(&self.judge);
        let agent = Some(self.agent.as_str()).filter(|agent| !agent.is_empty());
        let context = HookContext { session, call: None, folder, mode, agent, judge };
        run_hooks(&self.hooks, &context, payload).await
    }
}

impl SessionHookState {
    /// Returns the state of a session that is opened, perhaps in the middle of a turn.
    pub(super) fn new(session: &Session) -> SessionHookState {
        SessionHookState { last_prompt_turn: session.prompt_turn(), ..SessionHookState::default() }
    }

    /// Removes and returns the next of the `due_inputs`.
    pub(super) fn next_due_input(&mut self) -> Option<(SessionInput, Option<OpId>)> {
        self.due_inputs.pop_front()
    }

    /// Rejects all prompts that wait for hooks.
    pub(super) fn reject_held_prompts(&mut self, text: &str, end: &TurnEndReason) {
        for (op, _) in std::mem::take(&mut self.held_prompts) {
            let (text, end, hook_runs) = (text.to_owned(), end.clone(), Vec::new());
            let input = SessionInput::PromptRejected { text, end, hook_runs };
            self.due_inputs.push_back((input, Some(op)));
        }
    }

    /// Waits for running hooks to finish.
    pub(super) async fn next_answers(&mut self) -> Option<Result<SessionHookResult, JoinError>> {
        self.running.join_next().await
    }
}

impl SessionDriver {
    pub(super) fn has_hook_at(&self, point: HookPoint) -> bool {
        self.runtime.hooks.iter().any(|hook| hook.applies_to(point, None))
    }

    pub(super) fn hook_target(&self) -> SessionHookRunner {
        let folder = self.runtime.workspace.root().to_string_lossy().into_owned();
        SessionHookRunner {
            hooks: self.runtime.hooks.clone().into(),
            session: self.claim.session,
            folder,
            agent: self.settings.agent_name.clone(),
            judge: self.side_request_models(),
        }
    }

    /// Runs the hooks at `System` and `SessionStart`. Their results are applied before the first
    /// prompt.
    pub(super) fn run_start_hooks(&mut self) {
        let system_prompt = Arc::clone(self.session.configured_system_prompt().text());
        let has_system_hooks = !system_prompt.is_empty() && self.has_hook_at(HookPoint::System);
        let has_start_hooks = self.has_hook_at(HookPoint::SessionStart);
        if !has_system_hooks && !has_start_hooks {
            self.session_hooks.start_answered = true;
            return;
        }
        let source = if self.session.head() == 0 { "startup" } else { "resume" };
        let details = json!({ "source": source });
        let (target, mode) = (self.hook_target(), self.runtime.policy.mode());
        self.session_hooks.running.spawn(async move {
            let mut answers = SessionHookResult { is_start: true, ..SessionHookResult::default() };
            if has_system_hooks {
                let payload = HookPayload::SystemPrompt { text: system_prompt.to_string() };
                let (hook_runs, result) = target.fire(mode, payload).await;
                let (text, stopped_by) = match result {
                    Ok(CombinedHookResult {
                        payload: HookPayload::SystemPrompt { text }, ..
                    }) => (text.into(), None),
                    Ok(_) => (system_prompt, None),
                    Err(stop) => (system_prompt, Some(stop)),
                };
                answers.inputs.push(SessionInput::SystemPromptReviewed { text, hook_runs });
                answers.stopped_by = stopped_by;
            }
            if has_start_hooks {
                let payload = HookPayload::Event { point: HookPoint::SessionStart, details };
                let (hook_runs, result) = target.fire(mode, payload).await;
                answers.inputs.push(SessionInput::HooksRan { call: None, hook_runs });
                let notices = context_texts(result).into_iter().map(SessionInput::note);
                answers.inputs.extend(notices);
            }
            answers
        });
    }

    /// Returns true if prompts go through hooks. The prompt of a subagent comes from a call, not
    /// from the user, so it does not.
    pub(super) fn has_prompt_hooks(&self) -> bool {
        self.lineage.ancestors.is_empty() && self.has_hook_at(HookPoint::Prompt)
    }

    /// Runs the hooks on the next of the `held_prompts`, if no hooks are running.
    pub(super) fn run_prompt_hooks(&mut self) {
        if !self.session_hooks.running.is_empty() {
            return;
        }
        if let Some(HookDenial { hook, reason }) = &self.session_hooks.stopped_by {
            let text = format!("[blocked by the hook {hook}: {reason}]");
            self.session_hooks.reject_held_prompts(&text, &TurnEndReason::Denied);
        }
        let Some((op, prompt)) = self.session_hooks.held_prompts.front().cloned() else { return };
        if !self.has_prompt_hooks() {
            self.session_hooks.held_prompts.pop_front();
            let (hook_runs, context) = (Vec::new(), Vec::new());
            let input = SessionInput::PromptAccepted { prompt, hook_runs, context };
            self.session_hooks.due_inputs.push_back((input, Some(op)));
            return self.run_prompt_hooks();
        }
        let (target, mode) = (self.hook_target(), self.runtime.policy.mode());
        self.session_hooks.running.spawn(async move {
            let payload = HookPayload::UserPrompt { text: prompt.text.clone() };
            let (hook_runs, result) = target.fire(mode, payload).await;
            let input = match result {
                Ok(CombinedHookResult { payload, context, .. }) => {
                    let prompt = match payload {
                        HookPayload::UserPrompt { text } => SubmittedPrompt { text, ..prompt },
                        _ => prompt,
                    };
                    SessionInput::PromptAccepted { prompt, hook_runs, context }
                }
                Err(HookDenial { hook, reason }) => {
                    let text = format!("[blocked by the hook {hook}: {reason}]");
                    SessionInput::PromptRejected { text, end: TurnEndReason::Denied, hook_runs }
                }
            };
            SessionHookResult { inputs: vec![input], ..SessionHookResult::default() }
        });
    }

    /// Queues the inputs that resulted from hooks, and continues with the next prompt.
    pub(super) fn on_hook_answers(&mut self, answers: Result<SessionHookResult, JoinError>) {
        let is_prompt = |input: &SessionInput| {
            matches!(
                input,
                SessionInput::PromptAccepted { .. } | SessionInput::PromptRejected { .. }
            )
        };
        match answers {
            Ok(SessionHookResult { inputs, is_start, stopped_by }) => {
                self.session_hooks.start_answered |= is_start;
                self.session_hooks.stopped_by =
                    stopped_by.or_else(|| self.session_hooks.stopped_by.take());
                for input in inputs {
                    let prompt =
                        is_prompt(&input).then(|| self.session_hooks.held_prompts.pop_front());
                    let op = prompt.flatten().map(|(op, _)| op);
                    self.session_hooks.due_inputs.push_back((input, op));
                }
            }
            Err(error) => {
                tracing::debug!(%error, "running the hooks failed");
                if let Some((op, _)) = self.session_hooks.held_prompts.pop_front() {
                    let input = SessionInput::PromptRejected {
                        text: "[blocked: running the hooks failed]".to_owned(),
                        end: TurnEndReason::Denied,
                        hook_runs: Vec::new(),
                    };
                    self.session_hooks.due_inputs.push_back((input, Some(op)));
                }
            }
        }
        self.run_prompt_hooks();
    }

    /// Notifies observer hooks of a recorded fact.
    pub(super) fn notify_hooks(&mut self, record: &FactRecord) {
        match &record.fact {
            Fact::TurnStarted { turn, prompt: Some(_) } => {
                self.session_hooks.last_prompt_turn = Some(*turn);
            }
            // `review_turn_end` has run the hooks.
            Fact::TurnEnded { turn, end: TurnEndReason::Completed }
                if self.session_hooks.last_prompt_turn == Some(*turn) => {}
            Fact::TurnEnded { turn, end } => {
                let point = self.turn_end_point();
                self.queue_for_observers(point, || json!({"turn": turn, "end": end}));
            }
            Fact::PermissionAsked { reason, .. } => {
                self.notify_of_wait("permission_prompt", reason)
            }
            Fact::QuestionAsked { questions, .. } => {
                let question = questions.first().map(|it| it.question.clone()).unwrap_or_default();
                self.notify_of_wait("question", &question);
            }
            Fact::StepStarted { turn, purpose: StepPurpose::Summary, .. }
                if self.session_hooks.last_compaction_turn != Some(*turn) =>
            {
                self.session_hooks.last_compaction_turn = Some(*turn);
                let trigger = if self.session.is_prompt_turn() { "auto" } else { "manual" };
                self.queue_for_observers(HookPoint::Compaction, || json!({ "trigger": trigger }));
            }
            _ => {}
        }
        // `HookRan` facts are not shown to hooks, since each would cause another one.
        if !matches!(record.fact, Fact::HookRan { .. }) {
            self.queue_for_observers(HookPoint::Event, || json!(record));
        }
    }

    /// Returns the point of the hooks at the end of a turn.
    fn turn_end_point(&self) -> HookPoint {
        match self.lineage.ancestors.is_empty() {
            true => HookPoint::TurnEnd,
            false => HookPoint::SubagentEnd,
        }
    }

    /// Notifies hooks that the session waits for the user.
    fn notify_of_wait(&mut self, kind: &str, message: &str) {
        self.queue_for_observers(
            HookPoint::Notification,
            || json!({"kind": kind, "message": message}),
        );
    }

    /// Runs the hooks at the end of a turn, after the judgement about its goal. All of them run; the
    /// session continues the turn if one denies its end.
    pub(super) fn review_turn_end(
        &mut self,
        turn: u32,
        continuations: u32,
        condition: Option<String>,
    ) {
        let (target, mode) = (self.hook_target(), self.runtime.policy.mode());
        let (point, inputs) = (self.turn_end_point(), self.inputs.clone());
        let end = TurnEndReason::Completed;
        let text = self.session.transcript().last_answer();
        let details =
            json!({"turn": turn, "end": end, "continuations": continuations, "text": text});
        let goal = condition
            .map(|condition| (condition, goal::conversation_excerpt(self.session.transcript())));
        self.tasks.spawn(async move {
            let mut hook_runs = Vec::new();
            if let Some((condition, conversation)) = goal {
                let judged =
                    goal::judge_goal(&target.judge, point, &condition, &conversation).await;
                hook_runs.push(judged);
            }
            let goal_failure = hook_runs.iter().find_map(|hook_run| match &hook_run.verdict {
                HookVerdict::Failed { reason } => Some(reason.clone()),
                _ => None,
            });
            let is_reached = hook_runs.iter().all(|it| it.verdict == HookVerdict::Passed);
            if is_reached {
                let payload = HookPayload::Event { point, details };
                hook_runs.extend(target.fire(mode, payload).await.0);
            }
            let reviewed = SessionInput::TurnEndReviewed { turn, hook_runs, goal_failure };
            let _ = inputs.send(reviewed).await;
        });
    }

    /// Queues a `HookPayload::Event` for the observer hooks, which see events in order.
    fn queue_for_observers(&mut self, point: HookPoint, details: impl FnOnce() -> Value) {
        if !self.has_hook_at(point) {
            return;
        }
        let payload =
            (self.runtime.policy.mode(), HookPayload::Event { point, details: details() });
        let queue = match &self.session_hooks.observer_queue {
            Some(queue) => queue.clone(),
            None => {
                let (queue, payloads) = mpsc::channel(HOOK_QUEUE_CAPACITY);
                let (inputs, events) = (self.inputs.clone(), self.events.clone());
                self.session_hooks.observer_tasks.spawn(run_observer_hooks(
                    payloads,
                    self.hook_target(),
                    inputs,
                    events,
                ));
                self.session_hooks.observer_queue = Some(queue.clone());
                queue
            }
        };
        if queue.try_send(payload).is_err() {
            self.session_hooks.missed_events += 1;
        }
    }

    /// Notifies hooks that the session ends, and waits until they have seen all events, at most
    /// `HOOK_SHUTDOWN_TIMEOUT`.
    pub(super) async fn finish_hooks(
        &mut self,
        inputs: &mut mpsc::Receiver<SessionInput>,
    ) -> Result<(), Fault> {
        self.session_hooks.running.shutdown().await;
        if self.session.head() > 0 {
            self.queue_for_observers(HookPoint::SessionEnd, || json!({}));
        }
        if self.session_hooks.observer_queue.take().is_none() {
            return Ok(());
        }
        if self.session_hooks.missed_events > 0 {
            tracing::warn!(
                missed = self.session_hooks.missed_events,
                "hooks were too slow and missed events"
            );
        }
        let mut observers = std::mem::take(&mut self.session_hooks.observer_tasks);
        let deadline = tokio::time::sleep(HOOK_SHUTDOWN_TIMEOUT);
        tokio::pin!(deadline);
        loop {
            let input = tokio::select! {
                biased;
                Some(input) = inputs.recv() => input,
                _ = observers.join_next() => break,
                () = &mut deadline => break,
            };
            self.apply_hook_input(input).await?;
        }
        while let Ok(input) = inputs.try_recv() {
            self.apply_hook_input(input).await?;
        }
        Ok(())
    }

    /// Applies an input after the end of the session: only hook results still count.
    async fn apply_hook_input(&mut self, input: SessionInput) -> Result<(), Fault> {
        if !matches!(input, SessionInput::HooksRan { .. }) {
            return Ok(());
        }
        let stamp = self.stamp(None);
        let effects = self.session.apply(stamp, input);
        self.perform_all(stamp, effects).await
    }
}

/// Returns the texts that a hook result adds to the model's context.
fn context_texts(result: Result<CombinedHookResult, HookDenial>) -> Vec<String> {
    result.map(|result| result.context).unwrap_or_default()
}

/// Runs the observer hooks on queued events, one at a time. Verdicts at `HookPoint::Event` are
/// emitted as live events and not recorded, unless the hook failed.
async fn run_observer_hooks(
    mut payloads: mpsc::Receiver<(PermissionMode, HookPayload)>,
    target: SessionHookRunner,
    inputs: mpsc::Sender<SessionInput>,
    events: broadcast::Sender<Arc<Event>>,
) {
    while let Some((mode, payload)) = payloads.recv().await {
        let is_event = payload.point() == HookPoint::Event;
        let (hook_runs, result) = target.fire(mode, payload).await;
        let (recorded, live): (Vec<_>, Vec<_>) = hook_runs.into_iter().partition(|hook_run| {
            !is_event || matches!(hook_run.verdict, HookVerdict::Failed { .. })
        });
        for HookRun { hook, point, duration, verdict } in live {
            let duration_ms = duration_millis(duration);
            let event = LiveEvent::HookRan { call: None, hook, point, duration_ms, verdict };
            let live_record =
                LiveEventRecord { session: target.session, at: new_stamp().at, event };
            let _ = events.send(Arc::new(Event::Live(live_record)));
        }
        if !recorded.is_empty() {
            let _ = inputs.send(SessionInput::HooksRan { call: None, hook_runs: recorded }).await;
        }
        for text in context_texts(result) {
            let _ = inputs.send(SessionInput::note(text)).await;
        }
    }
}
