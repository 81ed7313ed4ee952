//! Tool calls of a step: their start, permission and settlement, and the continuation of the turn.

use super::active_turn::{ApprovalState, CallStage, TurnCall};
use super::{EffectList, InputTimeAndId, LoopDetectionPolicy, Session, SessionEffect};
use serde_json::json;
use uuid::Uuid;
use windlass_protocol::file_history::UNDO_TOOL;
use windlass_protocol::{
    CallAuthor, CallId, CallOutcome, Fact, FileHistory, OpError, PermissionAnswer, TurnEndReason,
    UndoArguments,
};
use windlass_toolkit::CallIntent;

/// Returns the arguments of a call; those of an undo are completed from the file history.
fn expand_arguments(call: &TurnCall, files: &FileHistory) -> String {
    let is_undo = call.author == CallAuthor::User && call.tool == UNDO_TOOL;
    let undo =
        is_undo.then(|| serde_json::from_str::<UndoArguments>(&call.arguments).ok()).flatten();
    let expanded =
        undo.and_then(|undo| files.undo_arguments(&undo.facts)).map(|undo| json!(undo).to_string());
    expanded.unwrap_or_else(|| call.arguments.clone())
}

impl Session {
    /// Starts a tool call made by the user.
    pub(super) fn start_user_call(
        &mut self,
        stamp: InputTimeAndId,
        (author, tool, arguments): (CallAuthor, String, String),
        out: &mut EffectList,
    ) -> Result<(), OpError> {
        if self.turn.is_some() {
            let text = "A turn is running; the call was not made.".to_owned();
            return Err(OpError::TurnRunning { text });
        }
        let turn = self.turn_count + 1;
        self.emit(Fact::TurnStarted { turn, prompt: None }, out);
        self.call_for_user(stamp.id, (author, tool, arguments), out);
        Ok(())
    }

    /// Records a call of the user in the turn under way, and starts it.
    pub(super) fn call_for_user(
        &mut self,
        id: Uuid,
        (author, tool, arguments): (CallAuthor, String, String),
        out: &mut EffectList,
    ) {
        let description = self.config.call_describer.describe(&tool, &arguments);
        let fact = Fact::ToolCalled {
            call: CallId(id),
            provider_call_id: format!("call_{}", id.simple()),
            tool,
            arguments,
            author,
            description,
            repair: Vec::new(),
            provider_signature: None,
        };
        self.emit(fact, out);
        self.start_calls(out);
    }

    /// Sends the calls of the step into the tool pipeline.
    pub(super) fn start_calls(&mut self, out: &mut EffectList) {
        self.mark_loops();
        let rules = &self.config.loop_rules;
        let Some(turn) = &mut self.turn else { return };
        let ends_turn = |call: &TurnCall| {
            call.detected_loop.is_some() && rules.policy(&call.tool) == LoopDetectionPolicy::Deny
        };
        if turn.calls.iter().any(ends_turn) {
            let text = "Not run: the same calls were repeated too often.".to_owned();
            return self.stop_calls(&CallOutcome::Denied { text }, out);
        }
        let (number, max_calls) = (turn.number, self.config.limits.calls_per_step);
        let settled = turn.settled_calls;
        let allowed_calls = turn.allowed_calls.clone();
        for (index, call) in (settled..).zip(turn.open_calls_mut()) {
            if matches!(call.stage, CallStage::Reconciling | CallStage::Done(_)) {
                continue;
            }
            if index >= max_calls {
                let text = format!("Not run: more than {max_calls} calls in one step. Make fewer.");
                call.stage = CallStage::Done(CallOutcome::Failed { text });
                continue;
            }
            call.stage = CallStage::Preparing;
            out.0.push(SessionEffect::CallTool {
                turn: number,
                call: call.id,
                tool: call.tool.clone(),
                arguments: expand_arguments(call, &self.files),
                author: call.author,
                allowed_calls: match call.author {
                    CallAuthor::Model => allowed_calls.clone(),
                    CallAuthor::User | CallAuthor::Command | CallAuthor::Goal => Vec::new(),
                },
            });
        }
        self.advance_calls(out);
    }

    pub(super) fn on_permission_requested(
        &mut self,
        turn: u32,
        id: CallId,
        mut intent: CallIntent,
        out: &mut EffectList,
    ) {
        let rules = &self.config.loop_rules;
        let Some(open) = self.turn.as_mut().filter(|open| open.number == turn) else { return };
        let Some(call) =
            open.open_call_mut(id).filter(|call| matches!(call.stage, CallStage::Preparing))
        else {
            return;
        };
        let asks_about_loops = rules.policy(&call.tool) == LoopDetectionPolicy::Ask;
        if let Some(detected) = call.detected_loop.as_ref().filter(|_| asks_about_loops) {
            let earlier = intent.ask_reason.take();
            let earlier = earlier.map(|reason| format!("{reason}; ")).unwrap_or_default();
            intent.ask_reason = Some(format!("{earlier}{detected}, always with the same result"));
            (intent.accepts_earlier_approval, intent.approval_kind) = (false, None);
        }
        if let Some(reason) = call.hook_question.as_ref().filter(|_| intent.ask_reason.is_none()) {
            // A hook's `Asks` verdict from before a crash still applies.
            (intent.ask_reason, intent.accepts_earlier_approval, intent.approval_kind) =
                (Some(reason.clone()), false, None);
        }
        let denial = call.matching_answer(&intent).filter(|answer| !answer.is_yes()).cloned();
        (call.stage, call.approval_state) =
            (CallStage::AwaitingPermission(intent), ApprovalState::NotAsked);
        if let Some(answer) = denial {
            // The user's denial from before a crash still applies.
            out.0.push(SessionEffect::SendPermission { call: id, answer });
        }
        self.advance_calls(out);
    }

    /// Settles finished calls in order, and starts the calls that may start.
    pub(super) fn advance_calls(&mut self, out: &mut EffectList) {
        if self.turn.as_ref().is_some_and(|turn| turn.calls.iter().any(TurnCall::ends_turn)) {
            let text = "Not run: the user denied another call of this step.".to_owned();
            self.reject_unstarted_calls(&CallOutcome::Denied { text }, out);
        }
        while let Some(turn) = &self.turn {
            let Some(first) = turn.open_calls().first() else {
                return self.continue_after_calls(out);
            };
            let CallStage::Done(outcome) = &first.stage else { break };
            let (call, outcome, seen_files) = (first.id, outcome.clone(), first.seen_files.clone());
            self.emit(Fact::CallSettled { call, outcome, seen_files }, out);
        }
        self.ask_next_permission(out);
        while let Some(turn) = &mut self.turn {
            if turn.is_stopping() {
                return;
            }
            let Some(call) = turn.next_startable_call() else { return };
            let CallStage::AwaitingPermission(intent) = &call.stage else { return };
            let (intent, id, attempt) = (intent.clone(), call.id, call.attempts + 1);
            let answer = call
                .answer
                .clone()
                .filter(PermissionAnswer::is_yes)
                .unwrap_or(PermissionAnswer::Once);
            call.stage = CallStage::Running(intent.clone());
            let CallIntent { accesses, read_only, repair, .. } = intent;
            self.emit(Fact::CallStarted { call: id, attempt, accesses, read_only, repair }, out);
            out.0.push(SessionEffect::SendPermission { call: id, answer });
        }
    }

    /// Requests a preview from the first unsettled call, if it requires approval. All earlier calls
    /// have ended, so the preview shows the actual effects.
    fn ask_next_permission(&mut self, out: &mut EffectList) {
        let Some(turn) = self.turn.as_mut().filter(|turn| !turn.is_stopping()) else { return };
        let Some(call) = turn.open_calls_mut().first_mut() else { return };
        let CallStage::AwaitingPermission(intent) = &call.stage else { return };
        let is_asked = call.approval_state != ApprovalState::NotAsked;
        if is_asked || !call.needs_answer(intent) || call.matching_answer(intent).is_some() {
            return;
        }
        let id = call.id;
        // If the user answered a different request about this call, only the user can answer the
        // new one.
        let is_first_request = call.asked_accesses.is_none() || call.answer.is_none();
        if is_first_request && let Some(answer) = self.approvals.earlier_answer(intent) {
            return self.approve_from_earlier(id, answer, out);
        }
        call.approval_state = ApprovalState::Previewing;
        out.0.push(SessionEffect::RequestPreview { call: id });
    }

    /// Continues with `ask_model` or ends the turn, after all calls of the step have settled.
    fn continue_after_calls(&mut self, out: &mut EffectList) {
        let Some(turn) = &self.turn else { return };
        let is_denied =
            |call: &TurnCall| call.denied && (!turn.has_prompt || call.author == CallAuthor::Goal);
        if turn.interrupted {
            self.end_turn(TurnEndReason::Interrupted, out);
        } else if let Some(end) = self.limit_turn_end() {
            self.end_turn(end, out);
        } else if let Some(repeated_action) = self.detected_loop() {
            self.end_turn(TurnEndReason::LoopDetected { repeated_action }, out);
        } else if turn.calls.iter().any(|call| call.ends_turn() || is_denied(call)) {
            self.end_turn(TurnEndReason::Denied, out);
        } else if let Some(result) = turn.goal_check_result() {
            self.on_goal_checked(result, out);
        } else if turn.has_prompt {
            self.ask_model(out);
        } else {
            self.end_turn(TurnEndReason::Completed, out);
        }
    }
}
