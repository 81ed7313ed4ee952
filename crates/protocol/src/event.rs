//! Events: the spine. A log is a list of [`Fact`]s; a front end also sees [`Live`] ones.
//!
//! Durability is decided by type: storage takes facts and nothing else, so a delta cannot be
//! stored by mistake and a fact cannot be forgotten. All variants are matched without wildcards,
//! so that a new one visits every fold and every front end.

use crate::access::Access;
use crate::call::{Answer, Attachment, Author, Outcome, Repair};
use crate::fault::Fault;
use crate::files::{Change, Sight};
use crate::hook::{Point, Verdict};
use crate::id::{CallId, Millis, PromptId, SessionId};
use crate::inquiry::Inquiry;
use crate::live::Live;
use crate::mode::Mode;
use crate::op::Delivery;
use crate::step::{Cost, Finish, Parent, Purpose, TurnEnd, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A position in one session's log: 1, 2, 3, without gaps.
pub type Seq = u64;

/// Something that happened and must not be lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fact {
    /// A session began. Always the first fact of a log.
    Opened {
        /// The folder it works in.
        workspace: String,
        /// The version of Windlass that opened it.
        version: String,
        /// The agent that works in it.
        #[serde(default = "build", skip_serializing_if = "is_build")]
        agent: String,
        /// The call that began it, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<Parent>,
    },
    /// What the model is told before everything else. Once, before the first step, and never
    /// changed: what a provider has cached of a conversation begins with it.
    Briefed {
        /// What it is told.
        text: String,
    },
    /// The session goes on in another mode.
    ModeChanged {
        /// The mode.
        mode: Mode,
    },
    /// The session got a title.
    Renamed {
        /// The title.
        title: String,
        /// What finding it used, if a model found it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// What that cost, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
    },
    /// What came before is a copy of another session's beginning. What waited there, and what was
    /// allowed for the rest of it, is not taken over.
    Forked {
        /// The other session.
        from: SessionId,
        /// The last position that was taken over.
        through: Seq,
    },
    /// The model is told a summary instead of what came before.
    Compacted {
        /// The last position the summary stands for.
        through: Seq,
        /// The summary.
        summary: String,
    },
    /// The model is no longer told what these calls gave, only that they did.
    Pruned {
        /// The calls.
        calls: Vec<CallId>,
    },
    /// Everything after a position no longer counts.
    Reverted {
        /// The last position that still counts.
        to: Seq,
    },
    /// A person asked for something. Durable before it is acknowledged.
    Prompted {
        /// Names the prompt.
        prompt: PromptId,
        /// What was asked.
        text: String,
        /// The files that came with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// When the model hears of it, if it is at work.
        #[serde(default, skip_serializing_if = "Delivery::is_steer")]
        when: Delivery,
    },
    /// A prompt that waited was taken back. No turn takes it up.
    Withdrawn {
        /// The prompt.
        prompt: PromptId,
    },
    /// Work on a prompt, or on a call made by a person, began.
    TurnStarted {
        /// Counts the session's turns from 1.
        turn: u32,
        /// The prompt it answers; absent when a person made a call directly.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<PromptId>,
    },
    /// A prompt that waited became part of the turn under way, here.
    Steered {
        /// The turn.
        turn: u32,
        /// The prompt.
        prompt: PromptId,
    },
    /// The model was asked.
    StepStarted {
        /// The turn.
        turn: u32,
        /// Counts the turn's requests to the model from 1, retries included.
        step: u32,
        /// The model, as `provider/model`.
        model: String,
        /// What for.
        #[serde(default, skip_serializing_if = "Purpose::is_answer")]
        purpose: Purpose,
    },
    /// The model's answer ended, one way or another.
    StepEnded {
        /// The turn.
        turn: u32,
        /// The step.
        step: u32,
        /// How it ended.
        finish: Finish,
        /// What it used.
        usage: Usage,
        /// What that cost, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
    },
    /// A request failed and will be made again.
    Retrying {
        /// The turn.
        turn: u32,
        /// The step that failed.
        step: u32,
        /// How many requests in a row have failed.
        attempt: u32,
        /// Why.
        fault: Fault,
        /// How long it waits.
        wait_ms: u64,
    },
    /// A person wants the turn to stop. What runs is stopped, what does not is not begun, also
    /// after a crash.
    Interrupted {
        /// The turn.
        turn: u32,
    },
    /// Work ended.
    TurnEnded {
        /// The turn.
        turn: u32,
        /// How.
        end: TurnEnd,
    },
    /// The model wrote text.
    Said {
        /// The text, whole.
        text: String,
        /// What the provider wants back with it, byte for byte.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seal: Option<String>,
    },
    /// The model thought.
    Reasoned {
        /// The text, whole; empty where the provider keeps it to itself.
        text: String,
        /// What the provider wants back with it, byte for byte.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seal: Option<String>,
    },
    /// A tool was called.
    Called {
        /// Names the call.
        call: CallId,
        /// The provider's own name for it, sent back to it unchanged.
        reference: String,
        /// The tool, as the model spelled it.
        tool: String,
        /// The arguments, as the model wrote them.
        arguments: String,
        /// Who made the call.
        by: Author,
        /// What had to be changed to see that it is a call.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        repaired: Vec<String>,
        /// What the provider wants back with it, byte for byte.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seal: Option<String>,
    },
    /// Somebody is asked whether a call may go on.
    Asked {
        /// The call.
        call: CallId,
        /// What it would touch.
        accesses: Vec<Access>,
        /// Why it asks.
        reason: String,
        /// What it would do, where the tool can say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preview: Option<String>,
        /// The kind of command it is, where a yes can be given to all of that kind.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        offer: Option<String>,
        /// What it means, where that is not what was written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repaired: Option<Repair>,
    },
    /// They answered, or what they answered before covers a call that is not asked about. Durable
    /// before it takes effect.
    Answered {
        /// The call.
        call: CallId,
        /// The answer.
        answer: Answer,
    },
    /// A call is about to run. Durable before its first side effect.
    Started {
        /// The call.
        call: CallId,
        /// Counts from 1; a second attempt follows only a crash of a read-only call.
        attempt: u32,
        /// What it may touch.
        accesses: Vec<Access>,
        /// True if running it again changes nothing.
        read_only: bool,
        /// What it means, where that is not what was written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repaired: Option<Repair>,
    },
    /// A call asks a person something.
    Inquired {
        /// The call.
        call: CallId,
        /// What.
        inquiries: Vec<Inquiry>,
    },
    /// They said something to it. Durable before it takes effect.
    Replied {
        /// The call.
        call: CallId,
        /// One list for each question: what was chosen, or said.
        replies: Vec<Vec<String>>,
    },
    /// A call began a session of its own, or went on with one.
    Spawned {
        /// The call.
        call: CallId,
        /// The session.
        session: SessionId,
        /// The agent that works in it.
        agent: String,
    },
    /// A call is about to change files: all of these, or none. On record before the first of them
    /// changes, so that it can be taken back, and told after a crash whether it happened.
    Changing {
        /// The call.
        call: CallId,
        /// What becomes of each file.
        changes: Vec<Change>,
    },
    /// What a call was about to change, last, it did not change: all of it is as it was.
    Unchanged {
        /// The call.
        call: CallId,
    },
    /// A call ended. Exactly once for every call.
    Settled {
        /// The call.
        call: CallId,
        /// What became of it.
        outcome: Outcome,
        /// What it saw of files, or left there.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        seen: Vec<Sight>,
    },
    /// A hook had its say.
    Hooked {
        /// The call it was about, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The hook.
        hook: String,
        /// When it was asked.
        point: Point,
        /// How long it took.
        took_ms: u64,
        /// What it said.
        #[serde(flatten)]
        verdict: Verdict,
    },
    /// The model is told something besides the conversation.
    ContextChanged {
        /// What it is told.
        text: String,
    },
}

impl Fact {
    /// A session of the usual agent, begun by a person.
    pub fn opened(workspace: impl Into<String>, version: impl Into<String>) -> Fact {
        let (workspace, version) = (workspace.into(), version.into());
        Fact::Opened { workspace, version, agent: build(), parent: None }
    }

    /// A title that somebody gave.
    pub fn renamed(title: String) -> Fact {
        Fact::Renamed { title, usage: None, cost: None }
    }

    /// The name of this kind, as it stands in the log.
    pub fn kind(&self) -> &'static str {
        match self {
            Fact::Opened { .. } => "opened",
            Fact::Briefed { .. } => "briefed",
            Fact::ModeChanged { .. } => "mode_changed",
            Fact::Renamed { .. } => "renamed",
            Fact::Forked { .. } => "forked",
            Fact::Compacted { .. } => "compacted",
            Fact::Pruned { .. } => "pruned",
            Fact::Reverted { .. } => "reverted",
            Fact::Prompted { .. } => "prompted",
            Fact::Withdrawn { .. } => "withdrawn",
            Fact::TurnStarted { .. } => "turn_started",
            Fact::Steered { .. } => "steered",
            Fact::StepStarted { .. } => "step_started",
            Fact::StepEnded { .. } => "step_ended",
            Fact::Retrying { .. } => "retrying",
            Fact::Interrupted { .. } => "interrupted",
            Fact::TurnEnded { .. } => "turn_ended",
            Fact::Said { .. } => "said",
            Fact::Reasoned { .. } => "reasoned",
            Fact::Called { .. } => "called",
            Fact::Asked { .. } => "asked",
            Fact::Answered { .. } => "answered",
            Fact::Started { .. } => "started",
            Fact::Inquired { .. } => "inquired",
            Fact::Replied { .. } => "replied",
            Fact::Spawned { .. } => "spawned",
            Fact::Changing { .. } => "changing",
            Fact::Unchanged { .. } => "unchanged",
            Fact::Settled { .. } => "settled",
            Fact::Hooked { .. } => "hooked",
            Fact::ContextChanged { .. } => "context_changed",
        }
    }

    /// True if a promise rests on this fact reaching the disk before anything that follows it: what
    /// a person said (a prompt, that it is taken back, an answer, a stop), and the start of a call that changes something.
    pub fn needs_barrier(&self) -> bool {
        match self {
            Fact::Prompted { .. }
            | Fact::Withdrawn { .. }
            | Fact::Answered { .. }
            | Fact::Replied { .. }
            | Fact::Interrupted { .. } => true,
            Fact::Started { read_only, .. } => !read_only,
            Fact::Opened { .. }
            | Fact::Briefed { .. }
            | Fact::ModeChanged { .. }
            | Fact::Renamed { .. }
            | Fact::Forked { .. }
            | Fact::Compacted { .. }
            | Fact::Pruned { .. }
            | Fact::Reverted { .. }
            | Fact::TurnStarted { .. }
            | Fact::Steered { .. }
            | Fact::Inquired { .. }
            | Fact::Spawned { .. }
            | Fact::StepStarted { .. }
            | Fact::StepEnded { .. }
            | Fact::Retrying { .. }
            | Fact::TurnEnded { .. }
            | Fact::Said { .. }
            | Fact::Reasoned { .. }
            | Fact::Called { .. }
            | Fact::Asked { .. }
            | Fact::Changing { .. }
            | Fact::Unchanged { .. }
            | Fact::Settled { .. }
            | Fact::Hooked { .. }
            | Fact::ContextChanged { .. } => false,
        }
    }
}

/// The agent that works where no other was chosen.
pub const BUILD: &str = "build";

fn build() -> String {
    BUILD.to_owned()
}

fn is_build(agent: &str) -> bool {
    agent == BUILD
}

/// A fact in its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The session.
    pub session: SessionId,
    /// Its place in that session's log.
    pub seq: Seq,
    /// When it happened.
    pub at: Millis,
    /// What happened.
    #[serde(flatten)]
    pub fact: Fact,
}

/// A live event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Glimpse {
    /// The session.
    pub session: SessionId,
    /// When.
    pub at: Millis,
    /// What.
    #[serde(flatten)]
    pub live: Live,
}

/// One line of the event stream: a fact (it has `seq`) or a live event (it has none).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Event {
    /// Stored.
    Fact(Record),
    /// Seen only by those who watch.
    Live(Glimpse),
}

/// The JSON Schema of one line of the event stream: a published interface.
pub fn schema() -> schemars::Schema {
    let mut schema = schemars::schema_for!(Event);
    schema.insert("title".into(), "Windlass event".into());
    schema
}
