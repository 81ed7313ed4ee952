//! Doom loops: a model that makes the same calls again and again and learns nothing from them.
//!
//! What counts is what was done since a person last said something: the same call with the same
//! outcome so often in a row, or two or three such calls in a circle. A call whose outcome changes
//! is a poll, and a job that is waited for is never a loop. All of it is read from the transcript,
//! so nothing has to be kept.

use super::turn::Call;
use super::{Looping, Session};
use serde_json::Value;
use std::collections::BTreeMap;
use windlass_protocol::{Author, CallId, CallPart, Outcome, Part, Role};

/// The longest circle that is looked for.
const LONGEST: usize = 3;

/// Something that was done, and what came of it.
struct Deed<'a> {
    tool: &'a str,
    arguments: String,
    outcome: &'a str,
}

impl Deed<'_> {
    fn is(&self, tool: &str, arguments: &str) -> bool {
        self.tool == tool && self.arguments == arguments
    }

    fn same(&self, other: &Deed<'_>) -> bool {
        self.is(other.tool, &other.arguments) && self.outcome == other.outcome
    }
}

impl Session {
    /// Marks the calls of the step that would go on with a loop.
    pub(super) fn find_loops(&mut self) {
        let Some(turn) = &self.turn else { return };
        let repeats = self.terms.limits.repeats.max(1);
        let done = self.done(repeats.saturating_mul(LONGEST));
        let found: Vec<Option<String>> =
            turn.calls.iter().map(|call| circle(call, &done, repeats)).collect();
        if let Some(turn) = &mut self.turn {
            for (call, circle) in turn.calls.iter_mut().zip(found) {
                call.looping = circle;
            }
        }
    }

    /// The last calls before this step, the newest first, back to where a person spoke or said
    /// yes.
    fn done(&self, most: usize) -> Vec<Deed<'_>> {
        let Some(turn) = &self.turn else { return Vec::new() };
        let mut done = Vec::new();
        if turn.calls.iter().any(|call| turn.forgiven == Some(call.id)) {
            return done;
        }
        let first = turn.calls.first().map(|call| call.id);
        let holds = |part: &Part| matches!(part, Part::Call(call) if Some(call.call) == first);
        for message in self.transcript.messages.iter().rev() {
            if message.parts.iter().any(holds) {
                continue;
            }
            if message.role == Role::User {
                return done;
            }
            for part in message.parts.iter().rev() {
                let Part::Call(call) = part else { continue };
                if done.len() >= most || turn.forgiven == Some(call.call) {
                    return done;
                }
                done.extend(deed(call));
            }
        }
        done
    }

    /// A person said yes to a call: what led there is no longer held against the model.
    pub(super) fn forgive(&mut self, id: CallId) {
        if let Some(turn) = &mut self.turn {
            turn.forgiven = Some(id);
            for call in &mut turn.calls {
                call.looping = None;
            }
        }
    }

    /// What the model does again and again, if that ends the turn.
    pub(super) fn looped(&self) -> Option<String> {
        if self.terms.looping == Looping::Allow {
            return None;
        }
        let calls = &self.turn.as_ref()?.calls;
        calls.iter().find(|call| call.looping.is_some() && call.ends_a_loop()).map(|call| {
            let what = call.looping.clone().unwrap_or_default();
            format!("{what}, with the same result")
        })
    }
}

fn deed(call: &CallPart) -> Option<Deed<'_>> {
    let counts = call.by == Author::Model && !waits(&call.tool, &call.arguments);
    let outcome = call.outcome.as_ref().map_or("", Outcome::text);
    counts.then(|| Deed { tool: &call.tool, arguments: canonical(&call.arguments), outcome })
}

/// Waiting for a job, or reading what it says, is meant to be done again and again.
fn waits(tool: &str, arguments: &str) -> bool {
    let action = || serde_json::from_str::<Value>(arguments).ok()?.get("action").cloned();
    tool == "job" && action().is_some_and(|action| action == "wait" || action == "output")
}

/// The circle that a call would go on with, in words.
fn circle(call: &Call, done: &[Deed<'_>], repeats: usize) -> Option<String> {
    if call.by != Author::Model || waits(&call.tool, &call.arguments) || done.is_empty() {
        return None;
    }
    let arguments = canonical(&call.arguments);
    let turns = |period: usize| {
        let span = done.get(..period.saturating_mul(repeats))?;
        let next = span.get(period.saturating_sub(1))?;
        let behind = span.get(period..)?;
        let round = span.iter().zip(behind).all(|(deed, before)| deed.same(before));
        (round && next.is(&call.tool, &arguments)).then_some(period)
    };
    (1..=LONGEST).find_map(turns).map(|period| {
        let tool = &call.tool;
        match period {
            1 => format!("`{tool}` was called {repeats} times in a row in the same way"),
            _ => format!("`{tool}` and the calls around it were made {repeats} times in a circle"),
        }
    })
}

/// Arguments that mean the same, in the same words: without the order of keys, and without
/// spaces.
fn canonical(arguments: &str) -> String {
    fn sorted(value: Value) -> Value {
        match value {
            Value::Object(map) => {
                let map: BTreeMap<String, Value> =
                    map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
                Value::Object(map.into_iter().collect())
            }
            Value::Array(list) => Value::Array(list.into_iter().map(sorted).collect()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
        }
    }
    match serde_json::from_str(arguments) {
        Ok(value) => sorted(value).to_string(),
        Err(_) => arguments.trim().to_owned(),
    }
}
