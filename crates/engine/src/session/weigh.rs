//! What fills the window: the next request, part by part.
//!
//! Parts are weighed by the rule of thumb. Once a provider has counted, they are stretched so that
//! together they are what the next request would be.

use super::Session;
use super::gauge::{self, PART, PRUNED, tokens};
use std::collections::BTreeMap;
use windlass_protocol::{CallPart, Message, Part, Role};

/// The parts that every conversation may have, in the order in which they are named.
const PARTS: [&str; 8] =
    ["brief", "tools", "summary", "prompts", "answers", "reasoning", "files", "notes"];

impl Session {
    /// How many tokens the model takes, if that is known, and how many of them are kept free.
    pub(crate) fn window(&self) -> (Option<u64>, u64) {
        let window = Some(self.terms.window.context).filter(|context| *context > 0);
        let room = self.gauge.room(self.terms.window);
        let reserve = window.zip(room).map(|(window, room)| window.saturating_sub(room));
        (window, reserve.unwrap_or_default())
    }

    /// What the next request would be made of, with these tools: the fixed parts, then the calls of
    /// each tool, the heaviest first.
    pub(crate) fn context(&self, tools: &str) -> Vec<(String, u64)> {
        let mut fixed: BTreeMap<&str, u64> = BTreeMap::new();
        let mut calls: BTreeMap<String, u64> = BTreeMap::new();
        let brief = self.transcript.brief.as_deref().unwrap_or(&self.terms.brief);
        fixed.insert("brief", tokens(brief));
        fixed.insert("tools", tokens(tools));
        let messages = self.transcript.for_model();
        let summed_up = self.transcript.summary.is_some();
        for (place, message) in messages.iter().enumerate() {
            for part in &message.parts {
                let name = match part {
                    Part::Text { .. } if summed_up && place == 0 => "summary",
                    Part::Text { .. } => spoken(message),
                    Part::Reasoning { .. } => "reasoning",
                    Part::File(_) => "files",
                    Part::Call(call) => {
                        *calls.entry(call.tool.clone()).or_default() += own(call);
                        *fixed.entry("files").or_default() += attached(call);
                        continue;
                    }
                };
                *fixed.entry(name).or_default() += gauge::part(part);
            }
        }
        let mut calls: Vec<(String, u64)> =
            calls.into_iter().map(|(tool, sum)| (format!("calls: {tool}"), sum)).collect();
        calls.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
        let named = |name: &&str| fixed.get(name).map(|sum| ((*name).to_owned(), *sum));
        let mut parts: Vec<(String, u64)> = PARTS.iter().filter_map(named).chain(calls).collect();
        let sum: u64 = parts.iter().map(|(_, tokens)| tokens).sum();
        if let Some(counted) = self.gauge.counted().filter(|_| sum > 0) {
            for (_, tokens) in &mut parts {
                let share = u128::from(*tokens) * u128::from(counted) / u128::from(sum);
                *tokens = u64::try_from(share).unwrap_or(u64::MAX);
            }
        }
        parts.retain(|(_, tokens)| *tokens > 0);
        parts
    }
}

fn spoken(message: &Message) -> &'static str {
    match message.role {
        Role::User => "prompts",
        Role::Assistant => "answers",
        Role::Context => "notes",
    }
}

/// A call without the files it gave.
fn own(call: &CallPart) -> u64 {
    let gave = match &call.outcome {
        Some(_) if call.pruned => PRUNED,
        Some(gave) => tokens(gave.text()),
        None => 0,
    };
    tokens(&call.tool) + tokens(&call.arguments) + gave + PART
}

fn attached(call: &CallPart) -> u64 {
    let shown = call.outcome.as_ref().filter(|_| !call.pruned);
    shown.map_or(0, |gave| gauge::outcome(gave) - tokens(gave.text()))
}
