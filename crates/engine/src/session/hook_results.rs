//! Hook results: recorded in the log, and partly restored after a crash.
//!
//! Recorded `Refused`, `Failed` and `Asks` verdicts are not requested again, so a crash cannot turn
//! a refusal into an approval. Hooks that passed or rewrote a call see it again if the call is
//! repeated.

use super::active_turn::TurnCall;
use super::{EffectList, InputTimeAndId, Session};
use crate::system_prompt::RenderedSystemPrompt;
use windlass_protocol::{
    CallId, CallOutcome, ContextChange, Fact, HookPoint, HookVerdict, OpError, PromptDelivery,
    PromptId, PromptSettings, TurnEndReason,
};
use windlass_toolkit::{HookDenial, HookRun};

impl Session {
    /// Returns the configured system prompt, which may not be recorded as `SystemPromptSet` yet.
    pub(crate) fn configured_system_prompt(&self) -> &RenderedSystemPrompt {
        &self.config.system_prompt
    }

    pub(super) fn record_hook_runs(
        &mut self,
        call: Option<CallId>,
        hook_runs: Vec<HookRun>,
        out: &mut EffectList,
    ) {
        // A hook result for a call that has settled meanwhile is recorded with `call: None`.
        let call = call
            .filter(|id| self.turn.as_mut().is_some_and(|turn| turn.open_call_mut(*id).is_some()));
        for HookRun { hook, point, duration, verdict } in hook_runs {
            let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
            self.emit(Fact::HookRan { call, hook, point, duration_ms, verdict }, out);
        }
    }

    /// Queues notices for the model, and records each as `ContextChanged` at once if no turn is
    /// under way.
    pub(super) fn add_notices(
        &mut self,
        notices: impl IntoIterator<Item = (String, ContextChange)>,
        out: &mut EffectList,
    ) {
        self.pending_notices.extend(notices);
        if self.turn.is_none() {
            self.record_notices(out);
        }
    }

    /// Records a prompt that does not reach the model, as a turn that ends immediately. While
    /// another turn is under way it cannot start one, so the prompt is refused.
    pub(super) fn reject_prompt(
        &mut self,
        stamp: InputTimeAndId,
        text: String,
        end: TurnEndReason,
        out: &mut EffectList,
    ) -> Result<(), OpError> {
        if self.turn.is_some() {
            return Err(OpError::Invalid { text });
        }
        let (prompt, turn) = (PromptId(stamp.id), self.turn_count + 1);
        let (attachments, delivery) = (Vec::new(), PromptDelivery::default());
        let settings = PromptSettings::default();
        self.emit(Fact::PromptSubmitted { prompt, text, attachments, delivery, settings }, out);
        self.emit(Fact::TurnStarted { turn, prompt: Some(prompt) }, out);
        self.end_turn(end, out);
        Ok(())
    }
}

/// Applies a recorded `HookVerdict` to a call, for the case that the call is resumed.
pub(super) fn apply_hook_verdict(
    call: &mut TurnCall,
    (hook, point): (&str, HookPoint),
    verdict: &HookVerdict,
) {
    match verdict {
        HookVerdict::Refused { reason } | HookVerdict::Failed { reason } => {
            call.hook_refusal = refusal_outcome(hook, point, reason);
        }
        HookVerdict::Asks { reason } => {
            call.hook_question = Some(format!("the hook `{hook}` requires approval: {reason}"))
        }
        HookVerdict::Passed | HookVerdict::Rewrote => {}
    }
}

/// Returns the outcome of a call that a hook refused, depending on the `HookPoint`.
fn refusal_outcome(hook: &str, point: HookPoint, reason: &str) -> Option<CallOutcome> {
    let (hook, reason) = (hook.to_owned(), reason.to_owned());
    match point {
        HookPoint::BeforeTool | HookPoint::Permission => {
            Some(CallOutcome::Denied { text: HookDenial { hook, reason }.to_string() })
        }
        HookPoint::AfterTool => {
            let text = format!("The call ran, but the hook `{hook}` withheld its result: {reason}");
            Some(CallOutcome::Failed { text })
        }
        HookPoint::SessionStart
        | HookPoint::SessionEnd
        | HookPoint::Prompt
        | HookPoint::TurnEnd
        | HookPoint::SubagentEnd
        | HookPoint::Notification
        | HookPoint::Compaction
        | HookPoint::ToolDefinition
        | HookPoint::Command
        | HookPoint::Params
        | HookPoint::Messages
        | HookPoint::System
        | HookPoint::Event => None,
    }
}
