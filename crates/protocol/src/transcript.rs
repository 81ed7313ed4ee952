//! The fold: what a log of facts means to a reader.
//!
//! It is the only meaning a log has. A live session, a reopened one, a list of sessions and a
//! remote front end all go through [`Transcript::push`].

use crate::call::Attachment;
use crate::event::{Fact, Finish, Record, Seq, TurnEnd, Usage};
use crate::id::{CallId, PromptId};
use crate::message::{CallPart, Message, Part, Role};
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
    pub messages: Vec<Arc<Message>>,
    /// Prompts that no turn has taken up yet, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Prompt>,
    /// What stands for the messages up to a position, as far as the model is concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// What all steps used.
    pub usage: Usage,
    /// How the last turn ended; absent before the first turn and while one is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<TurnEnd>,
    /// The model of the last step.
    #[serde(skip)]
    model: Option<String>,
    /// The last message is the assistant's, and what it says next belongs to it.
    #[serde(skip)]
    speaking: bool,
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
}

/// A summary in place of messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// The last position it stands for.
    pub through: Seq,
    /// The summary.
    pub text: String,
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
    pub fn push(&mut self, seq: Seq, fact: &Fact) {
        match fact {
            Fact::Opened { workspace, .. } => self.workspace.clone_from(workspace),
            Fact::Renamed { title } => self.title.clone_from(title),
            Fact::Forked { .. } => {}
            Fact::Compacted { through, summary } => {
                self.summary = Some(Summary { through: *through, text: summary.clone() });
            }
            Fact::Reverted { to } => {
                self.messages.retain(|message| message.seq <= *to);
                self.summary.take_if(|summary| summary.through > *to);
            }
            Fact::Prompted { prompt, text, attachments } => {
                if self.title.is_empty() {
                    self.title = first_line(text);
                }
                let attachments = attachments.clone();
                self.waiting.push(Prompt { id: *prompt, text: text.clone(), attachments });
            }
            Fact::TurnStarted { prompt, .. } => {
                (self.end, self.speaking) = (None, false);
                if let Some(at) = self.waiting.iter().position(|p| Some(p.id) == *prompt) {
                    let prompt = self.waiting.remove(at);
                    let files = prompt.attachments.into_iter().map(Part::File);
                    let parts = std::iter::once(Part::text(prompt.text)).chain(files).collect();
                    self.add(Role::User, seq, parts);
                }
            }
            Fact::TurnEnded { end, .. } => self.end = Some(end.clone()),
            Fact::StepStarted { model, .. } => {
                self.speaking = false;
                self.model = Some(model.clone());
            }
            Fact::StepEnded { usage, finish, .. } => match finish {
                // What a lost step used is not known, so it must not be counted as zero either;
                // it is simply not part of the story.
                Finish::Lost => {}
                Finish::Stop
                | Finish::Calls
                | Finish::Length
                | Finish::Filtered
                | Finish::Interrupted
                | Finish::Failed { .. } => self.usage += *usage,
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
            | Fact::Changing { .. }
            | Fact::Unchanged { .. } => {}
        }
    }

    fn add(&mut self, role: Role, seq: Seq, parts: Vec<Part>) {
        self.speaking = false;
        let model = self.model.clone().filter(|_| role == Role::Assistant);
        self.messages.push(Arc::new(Message { role, seq, model, parts }));
    }

    /// Adds to the assistant message under way: a step is one message, and so is a person's call.
    fn speak(&mut self, seq: Seq, part: Part) {
        match self.messages.last_mut().filter(|_| self.speaking) {
            Some(last) => Arc::make_mut(last).parts.push(part),
            None => {
                self.add(Role::Assistant, seq, vec![part]);
                self.speaking = true;
            }
        }
    }

    fn change(&mut self, id: CallId, change: impl FnOnce(&mut CallPart)) {
        // Calls settle close to where they were made, so the search from the end is short.
        for message in self.messages.iter_mut().rev() {
            let holds = |part: &Part| matches!(part, Part::Call(call) if call.call == id);
            if !message.parts.iter().any(holds) {
                continue;
            }
            let own = Arc::make_mut(message).parts.iter_mut().find_map(|part| match part {
                Part::Call(call) if call.call == id => Some(call),
                Part::Call(_) | Part::Text { .. } | Part::Reasoning { .. } | Part::File(_) => None,
            });
            if let Some(call) = own {
                change(call);
            }
            return;
        }
    }

    /// The messages the model is sent: all of them, or those after the summary.
    pub fn for_model(&self) -> Vec<Arc<Message>> {
        let Some(summary) = &self.summary else { return self.messages.clone() };
        let parts = vec![Part::text(&summary.text)];
        let head = Message { role: Role::Context, seq: summary.through, model: None, parts };
        let rest = self.messages.iter().filter(|message| message.seq > summary.through).cloned();
        std::iter::once(Arc::new(head)).chain(rest).collect()
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
