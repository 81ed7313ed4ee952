//! The fold: what a log of facts means to a reader.
//!
//! It is the only meaning a log has. A live session, a reopened one, a list of sessions and a
//! remote front end all go through [`Transcript::push`].

use crate::call::Attachment;
use crate::event::{Fact, Record, Seq};
use crate::id::{CallId, PromptId};
use crate::message::{CallPart, Message, Part, Role};
use crate::messages::Messages;
use crate::mode::Mode;
use crate::op::Delivery;
use crate::step::{Cost, Finish, Parent, TurnEnd, Usage};
use crate::text::beginning;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A session as its log tells it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transcript {
    /// The folder it works in.
    pub workspace: String,
    /// Its title, or the first line of its first prompt.
    pub title: String,
    /// Everything that counts, in order. Shared, so that handing it on costs nothing.
    pub messages: Messages,
    /// Prompts that no turn has taken up yet, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Prompt>,
    /// What stands for the messages up to a position, as far as the model is concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// What the model was told before everything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<Arc<str>>,
    /// The mode it was set to, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The agent that works in it.
    #[serde(default)]
    pub agent: String,
    /// What began it, if a call did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// What all steps used, and what finding a title did.
    pub usage: Usage,
    /// What they cost, as far as that is known.
    #[serde(default)]
    pub cost: Cost,
    /// How the last turn ended; absent before the first turn and while one is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<TurnEnd>,
    /// The model of the last step.
    #[serde(skip)]
    model: Option<String>,
    /// The last message is the assistant's, and what it says next belongs to it.
    #[serde(skip)]
    speaking: bool,
    /// The summaries before the last one, for whoever steps back.
    #[serde(skip)]
    summaries: Vec<Summary>,
    /// The summary as the model is sent it: the same one every time.
    #[serde(skip)]
    head: Option<Arc<Message>>,
    /// Where in its message the call stands that was changed last.
    #[serde(skip)]
    changed: usize,
}

/// A prompt that waits for its turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prompt {
    /// Names it.
    pub id: PromptId,
    /// What was asked.
    pub text: String,
    /// The files that came with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// When the model hears of it, if it is at work.
    #[serde(default, skip_serializing_if = "Delivery::is_steer")]
    pub when: Delivery,
}

/// A summary in place of messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// The last position it stands for.
    pub through: Seq,
    /// The summary.
    pub text: String,
}

impl Summary {
    fn message(&self) -> Arc<Message> {
        let parts = vec![Part::text(&self.text)];
        Message { role: Role::Context, seq: self.through, model: None, parts }.into()
    }
}

impl Transcript {
    /// The meaning of a whole log.
    pub fn of<'a>(log: impl IntoIterator<Item = &'a Record>) -> Transcript {
        let mut transcript = Transcript::default();
        for record in log {
            transcript.push(record.seq, &record.fact);
        }
        transcript
    }

    /// Takes in the next fact.
    #[allow(clippy::too_many_lines, reason = "one arm a fact, so that none is forgotten")]
    pub fn push(&mut self, seq: Seq, fact: &Fact) {
        match fact {
            Fact::Opened { workspace, agent, parent, .. } => {
                self.workspace.clone_from(workspace);
                self.agent.clone_from(agent);
                self.parent = *parent;
            }
            Fact::Briefed { text } => self.brief = Some(text.as_str().into()),
            Fact::ModeChanged { mode } => self.mode = Some(*mode),
            Fact::Pruned { calls } => {
                for call in calls {
                    self.change(*call, |call| call.pruned = true);
                }
            }
            Fact::Renamed { title, usage, cost } => {
                self.title.clone_from(title);
                self.usage += usage.unwrap_or_default();
                self.cost += cost.unwrap_or_default();
            }
            // What waited in the other session waits there.
            Fact::Forked { .. } => self.waiting.clear(),
            Fact::Compacted { through, summary } => {
                let summary = Summary { through: *through, text: summary.clone() };
                self.head = Some(summary.message());
                self.summaries.extend(self.summary.replace(summary));
            }
            Fact::Reverted { to } => {
                (self.speaking, self.changed) = (false, 0);
                self.messages.keep_through(*to);
                // What a summary stands for was there before it was made.
                while self.summary.take_if(|summary| summary.through > *to).is_some() {
                    self.summary = self.summaries.pop();
                    self.head = self.summary.as_ref().map(Summary::message);
                }
            }
            Fact::Prompted { prompt, text, attachments, when } => {
                if self.title.is_empty() {
                    self.title = first_line(text);
                }
                let attachments = attachments.clone();
                let (id, text, when) = (*prompt, text.clone(), *when);
                self.waiting.push(Prompt { id, text, attachments, when });
            }
            Fact::Withdrawn { prompt } => self.waiting.retain(|waits| waits.id != *prompt),
            Fact::TurnStarted { prompt, .. } => {
                (self.end, self.speaking) = (None, false);
                if let Some(prompt) = prompt {
                    self.take_up(*prompt, seq);
                }
            }
            Fact::Steered { prompt, .. } => self.take_up(*prompt, seq),
            Fact::TurnEnded { end, .. } => self.end = Some(end.clone()),
            Fact::StepStarted { model, .. } => {
                self.speaking = false;
                self.model = Some(model.clone());
            }
            Fact::StepEnded { usage, finish, cost, .. } => match finish {
                // What a lost step used is not known, so it must not be counted as zero either;
                // it is simply not part of the story.
                Finish::Lost => {}
                Finish::Stop
                | Finish::Calls
                | Finish::Length
                | Finish::Filtered
                | Finish::Interrupted
                | Finish::Failed { .. } => {
                    self.usage += *usage;
                    self.cost += cost.unwrap_or_default();
                }
            },
            Fact::Said { text, seal } => {
                self.speak(seq, Part::Text { text: text.clone(), seal: seal.clone() });
            }
            Fact::Reasoned { text, seal } => {
                self.speak(seq, Part::Reasoning { text: text.clone(), seal: seal.clone() });
            }
            Fact::Called { call, reference, tool, arguments, by, seal, repaired: _ } => {
                if self.title.is_empty() {
                    self.title = format!("{tool} {}", first_line(arguments));
                }
                let part = Part::Call(Box::new(CallPart {
                    call: *call,
                    reference: reference.clone(),
                    tool: tool.clone(),
                    arguments: arguments.clone(),
                    by: *by,
                    seal: seal.clone(),
                    outcome: None,
                    pruned: false,
                }));
                self.speak(seq, part);
            }
            Fact::Started { call, repaired: Some(repair), .. } => {
                // The model is shown what ran, so that it can make sense of the result.
                self.change(*call, |call| call.arguments.clone_from(&repair.arguments));
            }
            Fact::Settled { call, outcome, seen: _ } => {
                self.change(*call, |call| call.outcome = Some(outcome.clone()));
            }
            Fact::ContextChanged { text } => {
                self.add(Role::Context, seq, vec![Part::text(text)]);
            }
            Fact::Retrying { .. }
            | Fact::Interrupted { .. }
            | Fact::Asked { .. }
            | Fact::Answered { .. }
            | Fact::Started { .. }
            | Fact::Inquired { .. }
            | Fact::Replied { .. }
            | Fact::Spawned { .. }
            | Fact::Hooked { .. }
            | Fact::Changing { .. }
            | Fact::Unchanged { .. } => {}
        }
    }

    /// A prompt that waited becomes part of the conversation.
    fn take_up(&mut self, id: PromptId, seq: Seq) {
        let Some(at) = self.waiting.iter().position(|prompt| prompt.id == id) else { return };
        let prompt = self.waiting.remove(at);
        let files = prompt.attachments.into_iter().map(Part::File);
        let parts = std::iter::once(Part::text(prompt.text)).chain(files).collect();
        self.add(Role::User, seq, parts);
    }

    fn add(&mut self, role: Role, seq: Seq, parts: Vec<Part>) {
        self.speaking = false;
        let model = self.model.clone().filter(|_| role == Role::Assistant);
        self.messages.push(Message { role, seq, model, parts });
    }

    /// Adds to the assistant message under way: a step is one message, and so is a person's call.
    fn speak(&mut self, seq: Seq, part: Part) {
        let under_way = self.speaking.then(|| self.messages.change_last(|_| true)).flatten();
        match under_way {
            Some(last) => last.parts.push(part),
            None => {
                self.add(Role::Assistant, seq, vec![part]);
                self.speaking = true;
            }
        }
    }

    fn change(&mut self, id: CallId, change: impl FnOnce(&mut CallPart)) {
        let is = |part: &Part| matches!(part, Part::Call(call) if call.call == id);
        // Calls settle in their order, so it is mostly the one behind the last, and they settle
        // close to where they were made, so the search from the end is short.
        let next = self.changed + 1;
        let place = |message: &Message| match message.parts.get(next) {
            Some(part) if is(part) => Some(next),
            Some(_) | None => message.parts.iter().position(is),
        };
        let Some(message) = self.messages.change_last(|message| place(message).is_some()) else {
            return;
        };
        self.changed = place(message).unwrap_or_default();
        if let Some(Part::Call(call)) = message.parts.get_mut(self.changed) {
            change(call);
        }
    }

    /// The messages the model is sent: all of them, or those after the summary.
    pub fn for_model(&self) -> Messages {
        let Some(summary) = &self.summary else { return self.messages.clone() };
        let head = self.head.clone().unwrap_or_else(|| summary.message());
        self.messages.after(summary.through, head)
    }
}

/// What a list shows of a long text.
pub(crate) fn first_line(text: &str) -> String {
    const LONGEST: usize = 80;
    let line = text.trim().lines().next().unwrap_or_default();
    beginning(line, LONGEST)
}

#[cfg(test)]
mod tests;
