//! What a front end can say to a session ([`Op`]) and ask about sessions ([`Query`]).

use crate::call::{Answer, Attachment};
use crate::event::{Fact, Record, Seq};
use crate::files::{Scope, View};
use crate::find::Place;
use crate::id::{CallId, Millis, PromptId, SessionId};
use crate::mode::Mode;
use crate::rows::{ContextPart, JobRow, PromptRow};
use crate::step::{Cost, TurnEnd};
use crate::transcript::{Transcript, first_line};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Something a person, or a program on their behalf, wants of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Op {
    /// Asks for something.
    Prompt {
        /// What is asked.
        text: String,
        /// The files that come with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// When the model hears of it, if it is at work.
        #[serde(default, skip_serializing_if = "Delivery::is_steer")]
        when: Delivery,
    },
    /// Makes a call directly, without a model.
    Call {
        /// The tool.
        tool: String,
        /// Its arguments, as JSON text.
        arguments: String,
    },
    /// Answers what was asked about a call.
    Answer {
        /// The call.
        call: CallId,
        /// The answer.
        answer: Answer,
    },
    /// Answers what a call wants to know.
    Reply {
        /// The call.
        call: CallId,
        /// One list for each question: what was chosen, or said.
        replies: Vec<Vec<String>>,
    },
    /// Has the conversation summed up, so that it takes less room.
    Compact,
    /// Goes on in another mode.
    Mode {
        /// The mode.
        mode: Mode,
    },
    /// Stops the turn under way, in order; said again, at once.
    Interrupt,
    /// Takes back what the session changed in files, or does it again. What others changed stays.
    Undo {
        /// The positions of the facts to take back, as [`Reply::Changes`] names them.
        facts: Vec<Seq>,
    },
    /// Takes back a prompt that waits. One that the model has heard of stays.
    Withdraw {
        /// The prompt.
        prompt: PromptId,
    },
    /// Steps back: what came after a position no longer counts. Only between turns, and only to where
    /// one begins. Files stay as they are; [`Op::Undo`] takes changes back.
    Back {
        /// The last position that still counts, as [`PromptRow::back`] names it.
        to: Seq,
    },
    /// Ends a command in the background.
    EndJob {
        /// Its number, as [`Reply::Jobs`] names it.
        job: u64,
    },
    /// Gives the session a title.
    Rename {
        /// The title.
        title: String,
    },
}

impl Op {
    /// A prompt without files.
    pub fn prompt(text: impl Into<String>) -> Op {
        Op::Prompt { text: text.into(), attachments: Vec::new(), when: Delivery::default() }
    }

    /// A command of the shell, to be run for a person.
    pub fn shell(command: &str) -> Op {
        let arguments = serde_json::json!({ "command": command }).to_string();
        Op::Call { tool: "bash".to_owned(), arguments }
    }
}

/// When a model that is at work hears of a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Before it is asked again.
    #[default]
    Steer,
    /// When it is done.
    Queue,
}

impl Delivery {
    pub(crate) fn is_steer(&self) -> bool {
        *self == Delivery::Steer
    }
}

/// A question that changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "query", rename_all = "snake_case")]
pub enum Query {
    /// All sessions, newest first.
    Sessions {
        /// Only those that work in this folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
    },
    /// The facts of a session.
    Events {
        /// The session.
        session: SessionId,
        /// Only what came after this position.
        #[serde(default)]
        after: Seq,
        /// At most so many of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        most: Option<u32>,
    },
    /// What people asked for, newest first.
    Prompts {
        /// Only in this session; else in all that people began in this folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        /// At most so many; 200 if nobody says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        most: Option<u32>,
    },
    /// What fills a model's window.
    Context {
        /// The session.
        session: SessionId,
    },
    /// The commands in the background of a session that is open here.
    Jobs {
        /// The session.
        session: SessionId,
    },
    /// What a session's log means.
    Transcript {
        /// The session.
        session: SessionId,
    },
    /// What a session changed in files, or what taking it back would change, as a diff.
    Changes {
        /// The session.
        session: SessionId,
        /// How much.
        #[serde(flatten)]
        scope: Scope,
        /// Which of the two.
        #[serde(default)]
        view: View,
    },
    /// The sessions in which some words were said, the one changed last first.
    Search {
        /// The words; all of them have to stand in the same text. Capitals make no difference.
        words: String,
        /// Only in those that work in this folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
    },
    /// Where a text stands in a session, as it is read: without what was stepped back over.
    Find {
        /// The session.
        session: SessionId,
        /// The text. Without capitals in it, capitals make no difference.
        text: String,
    },
    /// The tools a model would be offered.
    Tools,
}

/// The answer to a [`Query`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// To [`Query::Sessions`].
    Sessions {
        /// Newest first.
        sessions: Vec<SessionSummary>,
    },
    /// To [`Query::Events`].
    Events {
        /// In order.
        events: Vec<Record>,
    },
    /// To [`Query::Prompts`].
    Prompts {
        /// Newest first.
        prompts: Vec<PromptRow>,
    },
    /// To [`Query::Context`].
    Context {
        /// How many tokens the model takes, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<u64>,
        /// How many of them are kept free for an answer: when the parts reach into them, the
        /// conversation is summed up.
        reserve: u64,
        /// What the next request would be made of, roughly, in tokens. Nothing is named twice, and
        /// what is empty is left out.
        parts: Vec<ContextPart>,
    },
    /// To [`Query::Jobs`].
    Jobs {
        /// Oldest first.
        jobs: Vec<JobRow>,
    },
    /// To [`Query::Transcript`].
    Transcript {
        /// The fold of the log.
        transcript: Box<Transcript>,
    },
    /// To [`Query::Changes`].
    Changes {
        /// The positions of the facts; none if there is nothing to take back.
        facts: Vec<Seq>,
        /// In unified form, with remarks.
        diff: String,
    },
    /// To [`Query::Search`].
    Found {
        /// One for each session.
        hits: Vec<Hit>,
    },
    /// To [`Query::Find`].
    Places {
        /// From the beginning of the session to its end.
        places: Vec<Place>,
        /// The last fact that was looked at.
        through: Seq,
    },
    /// To [`Query::Tools`].
    Tools {
        /// In the order a model is offered them.
        tools: Vec<ToolSummary>,
    },
}

/// One row of a list of sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSummary {
    /// The session.
    pub session: SessionId,
    /// Its title, or the first line of its first prompt.
    pub title: String,
    /// The folder it works in.
    pub workspace: String,
    /// When it last changed.
    pub changed: Millis,
    /// How many facts its log has.
    pub length: Seq,
    /// How its last turn ended; absent while one is under way or was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<TurnEnd>,
    /// What it cost, as far as that is known.
    #[serde(default)]
    pub cost: Cost,
    /// The session it was begun by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
}

impl SessionSummary {
    /// The summary of a session without facts.
    pub fn new(session: SessionId) -> SessionSummary {
        SessionSummary {
            session,
            title: String::new(),
            workspace: String::new(),
            changed: Millis(0),
            length: 0,
            end: None,
            cost: Cost::default(),
            parent: None,
        }
    }

    /// Takes in the next fact. It agrees with [`Transcript::push`] on what both tell.
    pub fn push(&mut self, seq: Seq, at: Millis, fact: &Fact) {
        self.length = seq;
        self.changed = at;
        match fact {
            Fact::Opened { workspace, parent, .. } => {
                self.workspace.clone_from(workspace);
                self.parent = parent.map(|parent| parent.session);
            }
            Fact::StepEnded { cost: Some(cost), .. } => self.cost += *cost,
            Fact::Renamed { title, cost, .. } => {
                self.title.clone_from(title);
                self.cost += cost.unwrap_or_default();
            }
            Fact::Prompted { text, .. } if self.title.is_empty() => self.title = first_line(text),
            Fact::Called { tool, arguments, .. } if self.title.is_empty() => {
                self.title = format!("{tool} {}", first_line(arguments));
            }
            Fact::TurnStarted { .. } => self.end = None,
            Fact::TurnEnded { end, .. } => self.end = Some(end.clone()),
            Fact::Briefed { .. }
            | Fact::ModeChanged { .. }
            | Fact::Pruned { .. }
            | Fact::Steered { .. }
            | Fact::Inquired { .. }
            | Fact::Replied { .. }
            | Fact::Spawned { .. }
            | Fact::Hooked { .. }
            | Fact::Forked { .. }
            | Fact::Compacted { .. }
            | Fact::Reverted { .. }
            | Fact::Withdrawn { .. }
            | Fact::Prompted { .. }
            | Fact::StepStarted { .. }
            | Fact::StepEnded { .. }
            | Fact::Retrying { .. }
            | Fact::Interrupted { .. }
            | Fact::Said { .. }
            | Fact::Reasoned { .. }
            | Fact::Called { .. }
            | Fact::Asked { .. }
            | Fact::Answered { .. }
            | Fact::Started { .. }
            | Fact::Changing { .. }
            | Fact::Unchanged { .. }
            | Fact::Settled { .. }
            | Fact::ContextChanged { .. } => {}
        }
    }
}

/// Where some words were said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    /// The session.
    pub session: SessionId,
    /// Its title.
    pub title: String,
    /// The folder it works in.
    pub workspace: String,
    /// When they were said first in it.
    pub at: Millis,
    /// The fact that holds them.
    pub seq: Seq,
    /// Its kind.
    pub kind: String,
    /// The words, and what stands around them, on one line.
    pub snippet: String,
}

/// A tool as a model is offered it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSummary {
    /// Its name.
    pub name: String,
    /// What the model reads about it.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Value,
}
