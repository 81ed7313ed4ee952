//! What hooks said: on record, and what still stands of it after a crash.
//!
//! A no that is on record is not asked for again, so that no crash turns it into a yes; nor is a
//! question. What a hook let pass or rewrote is shown to it again with the call, if that is made again.

use super::turn::Call;
use super::{Out, Session, Stamp, notice};
use std::sync::Arc;
use windlass_protocol::{CallId, Delivery, Fact, Outcome, Point, PromptId, TurnEnd, Verdict};
use windlass_toolkit::{Firing, Stopped};

impl Session {
    /// What the model would be told before everything else.
    pub(crate) fn to_brief(&self) -> &Arc<str> {
        &self.terms.brief
    }

    /// Puts on record what hooks said.
    pub(super) fn hooked(&mut self, call: Option<CallId>, firings: Vec<Firing>, out: &mut Out) {
        // A call that has been settled meanwhile has nothing more to be said about it.
        let call =
            call.filter(|id| self.turn.as_mut().is_some_and(|turn| turn.call(*id).is_some()));
        for Firing { hook, point, took, verdict } in firings {
            let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            self.decide(Fact::Hooked { call, hook, point, took_ms, verdict }, out);
        }
    }

    /// Takes in what the model should know, and tells it at once if nothing is under way.
    pub(super) fn hear_of(&mut self, news: Vec<String>, out: &mut Out) {
        self.news.extend(news);
        if self.turn.is_none() {
            self.tell_news(out);
        }
    }

    /// Puts a prompt on record that the model is not asked with, as a turn that ends as it begins. While
    /// another turn is under way there is none for it to begin.
    pub(super) fn withhold(&mut self, stamp: Stamp, text: String, end: TurnEnd, out: &mut Out) {
        if self.turn.is_some() {
            return notice(&text, out);
        }
        let (prompt, turn) = (PromptId(stamp.id), self.turns + 1);
        let (attachments, when) = (Vec::new(), Delivery::default());
        self.decide(Fact::Prompted { prompt, text, attachments, when }, out);
        self.decide(Fact::TurnStarted { turn, prompt: Some(prompt) }, out);
        self.end(end, out);
    }
}

/// What a hook's word about a call comes to, if the call is taken up again.
pub(super) fn record(call: &mut Call, (hook, point): (&str, Point), verdict: &Verdict) {
    match verdict {
        Verdict::Refused { reason } | Verdict::Failed { reason } => {
            call.refusal = refusal(hook, point, reason);
        }
        Verdict::Asks { reason } => call.doubt = Some(format!("the hook {hook} asks: {reason}")),
        Verdict::Passed | Verdict::Rewrote => {}
    }
}

/// What becomes of a call that a hook was against.
fn refusal(hook: &str, point: Point, reason: &str) -> Option<Outcome> {
    let (hook, reason) = (hook.to_owned(), reason.to_owned());
    match point {
        Point::BeforeTool | Point::Permission => {
            Some(Outcome::Denied { text: Stopped { hook, reason }.to_string() })
        }
        Point::AfterTool => {
            let text = format!("The call ran, but the hook {hook} withheld its result: {reason}");
            Some(Outcome::Failed { text })
        }
        Point::SessionStart
        | Point::SessionEnd
        | Point::Prompt
        | Point::TurnEnd
        | Point::Compaction
        | Point::ToolDefinition
        | Point::Params
        | Point::System
        | Point::Event => None,
    }
}
