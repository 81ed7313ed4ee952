//! Loop detection: finds a model that repeats the same calls without making progress.
//!
//! It considers the calls since the user's last message: the same call with the same outcome
//! several times in a row, or a cycle of two or three such calls. A call whose outcome changes is
//! polling, and a call that waits for something (`CallDescription::is_polling`) is never a loop.
//! All of it is read from the transcript, so no state is needed.

use super::active_turn::TurnCall;
use super::{LoopDetectionPolicy, Session};
use serde_json::Value;
use std::collections::BTreeMap;
use windlass_protocol::{CallAuthor, CallId, CallOutcome, MessagePart, MessageRole, ToolCallPart};

/// Longest cycle of calls that is detected.
const MAX_LOOP_PERIOD: usize = 3;

/// A past call and its outcome.
struct PastCall<'a> {
    tool: &'a str,
    arguments: String,
    outcome: &'a str,
}

impl PastCall<'_> {
    fn is_call(&self, tool: &str, arguments: &str) -> bool {
        self.tool == tool && self.arguments == arguments
    }

    fn is_same_as(&self, other: &PastCall<'_>) -> bool {
        self.is_call(other.tool, &other.arguments) && self.outcome == other.outcome
    }
}

impl Session {
    /// Sets `detected_loop` on the calls of the step that would continue a loop.
    pub(super) fn mark_loops(&mut self) {
        let Some(turn) = &self.turn else { return };
        let repeats = self.config.limits.loop_repeats.max(1);
        let past_calls = self.past_calls(repeats.saturating_mul(MAX_LOOP_PERIOD));
        let may_loop =
            |tool: &str| self.config.loop_rules.policy(tool) == LoopDetectionPolicy::Allow;
        let loops = turn.calls.iter().map(|call| match may_loop(&call.tool) {
            true => None,
            false => describe_loop(call, &past_calls, repeats),
        });
        let loops: Vec<Option<String>> = loops.collect();
        if let Some(turn) = &mut self.turn {
            for (call, detected) in turn.calls.iter_mut().zip(loops) {
                call.detected_loop = detected;
            }
        }
    }

    /// Returns the last calls before this step, newest first, back to the user's last message or
    /// approval.
    fn past_calls(&self, max_calls: usize) -> Vec<PastCall<'_>> {
        let Some(turn) = &self.turn else { return Vec::new() };
        let mut past_calls = Vec::new();
        if turn.calls.iter().any(|call| turn.loop_reset_call == Some(call.id)) {
            return past_calls;
        }
        let first = turn.calls.first().map(|call| call.id);
        let is_first = |part: &MessagePart| match part {
            MessagePart::Call(call) => Some(call.call) == first,
            MessagePart::Text { .. } | MessagePart::Reasoning { .. } | MessagePart::File(_) => {
                false
            }
        };
        for message in self.transcript.messages.iter().rev() {
            if message.parts.iter().any(is_first) {
                continue;
            }
            if message.role == MessageRole::User {
                return past_calls;
            }
            for part in message.parts.iter().rev() {
                let MessagePart::Call(call) = part else { continue };
                if past_calls.len() >= max_calls || turn.loop_reset_call == Some(call.call) {
                    return past_calls;
                }
                past_calls.extend(to_past_call(call));
            }
        }
        past_calls
    }

    /// Resets loop detection after the user approved a call: earlier calls no longer count.
    pub(super) fn reset_loop_detection(&mut self, id: CallId) {
        if let Some(turn) = &mut self.turn {
            turn.loop_reset_call = Some(id);
            for call in &mut turn.calls {
                call.detected_loop = None;
            }
        }
    }

    /// Describes the loop that ends the turn, if there is one.
    pub(super) fn detected_loop(&self) -> Option<String> {
        let calls = &self.turn.as_ref()?.calls;
        calls.iter().find(|call| call.detected_loop.is_some() && call.ends_loop()).map(|call| {
            let repeated = call.detected_loop.clone().unwrap_or_default();
            format!("{repeated}, always with the same result")
        })
    }
}

fn to_past_call(call: &ToolCallPart) -> Option<PastCall<'_>> {
    let is_counted = call.author == CallAuthor::Model && !call.description.is_polling;
    let outcome = call.outcome.as_ref().map_or("", CallOutcome::text);
    is_counted.then(|| PastCall {
        tool: &call.tool,
        arguments: canonical_arguments(&call.arguments),
        outcome,
    })
}

/// Describes the loop that a call would continue, if any.
fn describe_loop(call: &TurnCall, past_calls: &[PastCall<'_>], repeats: usize) -> Option<String> {
    if call.author != CallAuthor::Model || call.description.is_polling || past_calls.is_empty() {
        return None;
    }
    let arguments = canonical_arguments(&call.arguments);
    let matching_period = |period: usize| {
        let window = past_calls.get(..period.saturating_mul(repeats))?;
        let next = window.get(period.saturating_sub(1))?;
        let earlier = window.get(period..)?;
        let is_periodic =
            window.iter().zip(earlier).all(|(later, before)| later.is_same_as(before));
        (is_periodic && next.is_call(&call.tool, &arguments)).then_some(period)
    };
    (1..=MAX_LOOP_PERIOD).find_map(matching_period).map(|period| {
        let tool = &call.tool;
        match period {
            1 => format!("`{tool}` was called {repeats} times in a row with the same arguments"),
            _ => format!(
                "`{tool}` and the calls around it were repeated {repeats} times in a \
                          loop"
            ),
        }
    })
}

/// Normalizes equivalent arguments to the same text: sorted keys, no whitespace.
fn canonical_arguments(arguments: &str) -> String {
    fn sort_keys(value: Value) -> Value {
        match value {
            Value::Object(map) => {
                let map: BTreeMap<String, Value> =
                    map.into_iter().map(|(key, value)| (key, sort_keys(value))).collect();
                Value::Object(map.into_iter().collect())
            }
            Value::Array(list) => Value::Array(list.into_iter().map(sort_keys).collect()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
        }
    }
    match serde_json::from_str(arguments) {
        Ok(value) => sort_keys(value).to_string(),
        Err(_) => arguments.trim().to_owned(),
    }
}
