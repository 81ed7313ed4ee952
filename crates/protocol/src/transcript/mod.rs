//! The transcript: the fold that gives a log of facts its meaning for a reader.
//!
//! A log has no other meaning. A live session, a reopened session, a list of sessions and a remote
//! front end all use [`Transcript::push`].

use crate::call_approval_and_outcome::{Attachment, CallOutcome};
use crate::call_description::CallDescription;
use crate::display_text::truncate_chars;
use crate::event::{Fact, FactRecord};
use crate::ids_and_timestamps::{CallId, LogSeq, PromptId};
use crate::message::{Message, MessagePart, MessageRole, ToolCallPart};
use crate::message_list::Messages;
use crate::permission_mode::PermissionMode;
use crate::prompt_delivery::PromptDelivery;
use crate::step::{Cost, FinishReason, ParentCall, TokenUsage, TurnEndReason};
use crate::todo_item::TodoItem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The text that tells the model about `FactsLost`.
const LOSS_NOTICE: &str = "Part of this conversation was lost here, because the session's log was \
                           damaged. Verify the state of files before you rely on it.";

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The state of a session, derived from its log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transcript {
    /// Folder from `SessionOpened`.
    pub workspace: String,
    /// Title from `SessionRenamed`, or the first line of the first prompt.
    pub title: String,
    /// Messages of the conversation, without rewound ones, in order. They are shared, so that
    /// cloning them costs nothing.
    pub messages: Messages,
    /// Prompts that no turn has processed yet, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queued_prompts: Vec<QueuedPrompt>,
    /// Summary that replaces the messages up to a position for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ConversationSummary>,
    /// System prompt from `SystemPromptSet`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<Arc<str>>,
    /// Mode from `ModeChanged`, if it was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    /// Agent from `SessionOpened`.
    #[serde(default)]
    pub agent: String,
    /// Model that the user chose for the session (`ModelChanged`), if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_choice: Option<ModelChoice>,
    /// Tool call that started the session, if any (`SessionOpened::parent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentCall>,
    /// Tokens used by all steps (`StepEnded`) and by requests apart from them
    /// (`SideRequestEnded`).
    pub usage: TokenUsage,
    /// Cost of `usage`, as far as known.
    #[serde(default)]
    pub cost: Cost,
    /// Reason why the last turn ended (`TurnEnded`); absent before the first turn and while a turn
    /// runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn_end: Option<TurnEndReason>,
    /// Number of facts that are missing or damaged (`FactsLost`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_facts: u64,
    /// Model of the last `StepStarted`.
    #[serde(skip)]
    last_model: Option<String>,
    /// True if the last message is the assistant's and its next part belongs to the same message.
    #[serde(skip)]
    assistant_open: bool,
    /// Earlier summaries, which a rewind restores.
    #[serde(skip)]
    earlier_summaries: Vec<ConversationSummary>,
    /// Message with the summary for the model: the same `Arc` every time.
    #[serde(skip)]
    summary_message: Option<Arc<Message>>,
    /// Index in `Message::parts` of the call that changed last.
    #[serde(skip)]
    last_changed_part: usize,
}

/// A model that the user chose for a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelChoice {
    /// The model, as `provider/model`.
    pub model: String,
    /// Reasoning effort or variant of the model; that of the config if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// True if the session switched to another agent since. The model of an agent that has its own
    /// applies then.
    #[serde(default)]
    pub precedes_agent: bool,
}

/// A prompt that waits for delivery to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedPrompt {
    /// Prompt ID from `PromptSubmitted`.
    pub id: PromptId,
    /// Text of the prompt.
    pub text: String,
    /// Files attached to the prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Time of delivery if the model is working: `steer` or `queue`.
    #[serde(default, skip_serializing_if = "PromptDelivery::is_steer")]
    pub delivery: PromptDelivery,
}

/// A summary that replaces messages (`ContextCompacted`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConversationSummary {
    /// Last position that the summary covers.
    pub through: LogSeq,
    /// Text of the summary.
    pub text: String,
    /// To-do list that the text states.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub todos: Vec<TodoItem>,
    /// Mode that the text states, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
}

impl ConversationSummary {
    fn to_message(&self) -> Arc<Message> {
        let parts = vec![MessagePart::text(&self.text)];
        Message { role: MessageRole::Context, seq: self.through, model: None, parts }.into()
    }
}

impl Transcript {
    /// Returns the transcript of a complete log.
    pub fn from_log<'a>(log: impl IntoIterator<Item = &'a FactRecord>) -> Transcript {
        let mut transcript = Transcript::default();
        for record in log {
            transcript.push(record.seq, &record.fact);
        }
        transcript
    }

    /// Returns the text of the last answer.
    pub fn last_answer(&self) -> String {
        let last = self.messages.iter().rev().find(|it| it.role == MessageRole::Assistant);
        let text = |part: &MessagePart| match part {
            MessagePart::Text { text, .. } => Some(text.clone()),
            MessagePart::Reasoning { .. } | MessagePart::File(_) | MessagePart::Call(_) => None,
        };
        last.map(|message| message.parts.iter().filter_map(text).collect()).unwrap_or_default()
    }

    /// Applies the next [`Fact`] of the log.
    #[allow(clippy::too_many_lines, reason = "one match arm per event, so that none is forgotten")]
    pub fn push(&mut self, seq: LogSeq, fact: &Fact) {
        match fact {
            Fact::SessionOpened { workspace, agent, parent, .. } => {
                self.workspace.clone_from(workspace);
                self.agent.clone_from(agent);
                self.parent = *parent;
            }
            Fact::SystemPromptSet { text, state: _ } => {
                self.system_prompt = Some(text.as_str().into())
            }
            Fact::ModeChanged { mode } => self.mode = Some(*mode),
            Fact::AgentChanged { agent } => {
                self.agent.clone_from(agent);
                if let Some(choice) = &mut self.model_choice {
                    choice.precedes_agent = true;
                }
            }
            Fact::ModelChanged { model, effort } => {
                self.model_choice = Some(ModelChoice {
                    model: model.clone(),
                    effort: effort.clone(),
                    precedes_agent: false,
                });
            }
            Fact::OutputsPruned { calls } => {
                for call in calls {
                    self.update_call(*call, |call| call.pruned = true);
                }
            }
            Fact::SessionRenamed { title } => self.title.clone_from(title),
            Fact::SideRequestEnded { usage, cost, .. } => {
                self.usage += *usage;
                self.cost += cost.unwrap_or_default();
            }
            // Prompts queued in the source session stay queued there.
            Fact::SessionForked { .. } => self.queued_prompts.clear(),
            Fact::ContextCompacted { through, summary, todos, mode } => {
                let (through, text) = (*through, summary.clone());
                let (todos, mode) = (todos.clone(), *mode);
                let summary = ConversationSummary { through, text, todos, mode };
                self.summary_message = Some(summary.to_message());
                self.earlier_summaries.extend(self.summary.replace(summary));
            }
            Fact::Rewound { to } => {
                (self.assistant_open, self.last_changed_part) = (false, 0);
                self.messages.truncate_after(*to);
                // A summary stays valid if the rewind keeps everything that it covers, even if it
                // was made later.
                while self.summary.take_if(|summary| summary.through > *to).is_some() {
                    self.summary = self.earlier_summaries.pop();
                    self.summary_message =
                        self.summary.as_ref().map(ConversationSummary::to_message);
                }
            }
            Fact::PromptSubmitted { prompt, text, attachments, delivery, .. } => {
                if self.title.is_empty() {
                    self.title = first_line(text);
                }
                let attachments = attachments.clone();
                let (id, text, delivery) = (*prompt, text.clone(), *delivery);
                self.queued_prompts.push(QueuedPrompt { id, text, attachments, delivery });
            }
            Fact::PromptWithdrawn { prompt } => {
                self.queued_prompts.retain(|queued| queued.id != *prompt)
            }
            Fact::TurnStarted { prompt, .. } => {
                self.settle_lost_calls();
                (self.last_turn_end, self.assistant_open) = (None, false);
                if let Some(prompt) = prompt {
                    self.deliver_prompt(*prompt, seq);
                }
            }
            Fact::PromptSteered { prompt, .. } => self.deliver_prompt(*prompt, seq),
            Fact::TurnEnded { end, .. } => {
                self.settle_lost_calls();
                self.last_turn_end = Some(end.clone());
            }
            Fact::StepStarted { model, .. } => {
                self.assistant_open = false;
                self.last_model = Some(model.clone());
            }
            Fact::StepEnded { usage, finish_reason, cost, .. } => match finish_reason {
                // The usage of a lost step is unknown, so it must not count as zero either; the
                // transcript leaves it out.
                FinishReason::ProcessDied => {}
                FinishReason::Stop
                | FinishReason::ToolCalls
                | FinishReason::Length
                | FinishReason::ContentFiltered
                | FinishReason::Interrupted
                | FinishReason::Failed { .. } => {
                    self.usage += *usage;
                    self.cost += cost.unwrap_or_default();
                }
            },
            Fact::ModelText { text, provider_signature } => {
                self.add_assistant_part(
                    seq,
                    MessagePart::Text {
                        text: text.clone(),
                        provider_signature: provider_signature.clone(),
                    },
                );
            }
            Fact::ModelReasoning { text, provider_signature } => {
                self.add_assistant_part(
                    seq,
                    MessagePart::Reasoning {
                        text: text.clone(),
                        provider_signature: provider_signature.clone(),
                    },
                );
            }
            Fact::ToolCalled {
                call,
                provider_call_id,
                tool,
                arguments,
                author,
                provider_signature,
                description,
                repair: _,
            } => {
                if self.title.is_empty() {
                    self.title = call_title(description, tool, arguments);
                }
                let part = MessagePart::Call(Box::new(ToolCallPart {
                    call: *call,
                    provider_call_id: provider_call_id.clone(),
                    tool: tool.clone(),
                    arguments: arguments.clone(),
                    author: *author,
                    description: description.clone(),
                    provider_signature: provider_signature.clone(),
                    outcome: None,
                    pruned: false,
                }));
                self.add_assistant_part(seq, part);
            }
            Fact::CallStarted { call, repair: Some(repair), .. } => {
                // The model sees the arguments that ran, so that it can make sense of the result.
                self.update_call(*call, |call| call.arguments.clone_from(&repair.arguments));
            }
            Fact::CallSettled { call, outcome, seen_files: _ } => {
                self.update_call(*call, |call| call.outcome = Some(outcome.clone()));
            }
            Fact::ContextChanged { text, change: _ } => {
                self.add_message(MessageRole::Context, seq, vec![MessagePart::text(text)]);
            }
            Fact::FactsLost { count, .. } => self.add_loss(*count, seq),
            Fact::StepRetrying { .. }
            | Fact::TurnInterrupted { .. }
            | Fact::PermissionAsked { .. }
            | Fact::PermissionAnswered { .. }
            | Fact::ApprovalsRevoked
            | Fact::CallStarted { .. }
            | Fact::QuestionAsked { .. }
            | Fact::QuestionAnswered { .. }
            | Fact::SubagentStarted { .. }
            | Fact::HookRan { .. }
            | Fact::FilesChanging { .. }
            | Fact::FilesUnchanged { .. } => {}
        }
    }

    /// Moves a queued prompt into the conversation.
    fn deliver_prompt(&mut self, id: PromptId, seq: LogSeq) {
        let Some(index) = self.queued_prompts.iter().position(|prompt| prompt.id == id) else {
            return;
        };
        let prompt = self.queued_prompts.remove(index);
        let files = prompt.attachments.into_iter().map(MessagePart::File);
        let parts = std::iter::once(MessagePart::text(prompt.text)).chain(files).collect();
        self.add_message(MessageRole::User, seq, parts);
    }

    /// Counts lost facts, and tells the model once about those in a row.
    fn add_loss(&mut self, count: u64, seq: LogSeq) {
        self.lost_facts = self.lost_facts.saturating_add(count);
        let notice = vec![MessagePart::text(LOSS_NOTICE)];
        let is_told = self.messages.last().is_some_and(|message| message.parts == notice);
        if !self.assistant_open && !is_told {
            self.add_message(MessageRole::Context, seq, notice);
        }
    }

    /// At the end of a turn every call has an outcome. If one is lost, nothing is known of it.
    fn settle_lost_calls(&mut self) {
        if self.lost_facts == 0 {
            return;
        }
        let parts = self.messages.iter().flat_map(|message| &message.parts);
        let open_calls = parts.filter_map(|part| match part {
            MessagePart::Call(call) if call.outcome.is_none() => Some(call.call),
            _ => None,
        });
        for call in open_calls.collect::<Vec<CallId>>() {
            self.update_call(call, |call| call.outcome = Some(CallOutcome::ResultUnknown));
        }
    }

    fn add_message(&mut self, role: MessageRole, seq: LogSeq, parts: Vec<MessagePart>) {
        self.assistant_open = false;
        let model = self.last_model.clone().filter(|_| role == MessageRole::Assistant);
        self.messages.push(Message { role, seq, model, parts });
    }

    /// Adds a part to the open assistant message: a step is one message, and so is a call of the
    /// user.
    fn add_assistant_part(&mut self, seq: LogSeq, part: MessagePart) {
        let open_message =
            self.assistant_open.then(|| self.messages.last_matching_mut(|_| true)).flatten();
        match open_message {
            Some(message) => message.parts.push(part),
            None => {
                self.add_message(MessageRole::Assistant, seq, vec![part]);
                self.assistant_open = true;
            }
        }
    }

    fn update_call(&mut self, id: CallId, change: impl FnOnce(&mut ToolCallPart)) {
        let is_wanted =
            |part: &MessagePart| matches!(part, MessagePart::Call(call) if call.call == id);
        // Calls settle in order, so the wanted one usually follows the last one. They also settle
        // close to where they were made, so the search from the end is short.
        let next = self.last_changed_part + 1;
        let index_of = |message: &Message| match message.parts.get(next) {
            Some(part) if is_wanted(part) => Some(next),
            Some(_) | None => message.parts.iter().position(is_wanted),
        };
        let Some(message) = self.messages.last_matching_mut(|message| index_of(message).is_some())
        else {
            return;
        };
        self.last_changed_part = index_of(message).unwrap_or_default();
        if let Some(MessagePart::Call(call)) = message.parts.get_mut(self.last_changed_part) {
            change(call);
        }
    }

    /// Returns the messages to send to the model: all of them, or the summary and those after it.
    pub fn model_messages(&self) -> Messages {
        let Some(summary) = &self.summary else { return self.messages.clone() };
        let head = self.summary_message.clone().unwrap_or_else(|| summary.to_message());
        self.messages.after_with_head(summary.through, head)
    }
}

/// Returns the title of a session that begins with a call of the user.
pub(crate) fn call_title(description: &CallDescription, tool: &str, arguments: &str) -> String {
    match description.is_empty() {
        true => format!("{tool} {}", first_line(arguments)),
        false => first_line(&description.phrase()),
    }
}

/// Returns the first line of a text, shortened for lists.
pub(crate) fn first_line(text: &str) -> String {
    const MAX_TITLE_CHARS: usize = 80;
    let line = text.trim().lines().next().unwrap_or_default();
    truncate_chars(line, MAX_TITLE_CHARS)
}

#[cfg(test)]
mod tests;
