//! What goes into a session and what comes out of it: all of it data.

use super::Window;
use super::spawn::Birth;
use std::sync::Arc;
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_llm::catalog::Price;
use windlass_protocol::{
    Access, Answer, Approval, Attachment, Author, CallId, Change, Delivery, Fact, Inquiry, Live,
    Messages, Millis, Op, Outcome, Purpose, SessionId, Sight, TurnEnd, Usage,
};
use windlass_toolkit::{Firing, Intent, Stake};

/// When an input came, and an id nobody else has. The driver stamps every input, so that deciding
/// needs neither a clock nor chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// When.
    pub at: Millis,
    /// A new UUIDv7.
    pub id: Uuid,
}

impl Stamp {
    /// A number nobody can foresee: the id's last bits, which say nothing about the time.
    pub(super) fn chance(self) -> u64 {
        self.id.as_u64_pair().1 & (u64::MAX >> 16)
    }
}

/// Something that happened to a session. What an effect caused carries the turn it was for, so
/// that a late answer to an ended turn changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A person, or a program for them, wants something.
    Op(Op),
    /// The session was opened; whatever was under way goes on.
    Resume,
    /// The model did something.
    Model {
        /// The turn it was asked in.
        turn: u32,
        /// The step.
        step: u32,
        /// What it did.
        event: ModelEvent,
    },
    /// A call has been understood and says what it is about to do.
    Intended {
        /// The turn it was made in.
        turn: u32,
        /// The call.
        call: CallId,
        /// What it is about to do.
        intent: Intent,
    },
    /// What a call would do, for whoever is asked.
    Looked {
        /// The turn it was made in.
        turn: u32,
        /// The call.
        call: CallId,
        /// What it would do, where the tool can say.
        preview: Option<String>,
    },
    /// A call did not change what it said last it is about to change.
    Unchanged {
        /// The turn it was made in.
        turn: u32,
        /// The call.
        call: CallId,
    },
    /// A call ended.
    Settled {
        /// The turn it was made in.
        turn: u32,
        /// The call.
        call: CallId,
        /// How.
        outcome: Outcome,
        /// What it saw of files, or left there.
        seen: Vec<Sight>,
    },
    /// A call is about to change files, and waits until that is on record.
    Changing {
        /// The turn it was made in.
        turn: u32,
        /// The call.
        call: CallId,
        /// What becomes of each file.
        changes: Vec<Change>,
    },
    /// A call asks the person something, and waits for what they say.
    Inquired {
        /// The turn it was made in.
        turn: u32,
        /// The call.
        call: CallId,
        /// What it asks.
        inquiries: Vec<Inquiry>,
        /// What hangs on it.
        stake: Stake,
    },
    /// A call wants a session of its own, and waits until that is on record.
    Spawning {
        /// The turn it was made in.
        turn: u32,
        /// Which.
        birth: Birth,
    },
    /// The model was not asked, because what the turn shares with others is used up.
    Broke {
        /// The turn.
        turn: u32,
        /// The step.
        step: u32,
        /// The bound that was reached.
        what: String,
    },
    /// Another model is asked from the next step on.
    Another {
        /// The model, as `provider/model`.
        model: String,
        /// How much it takes in and gives.
        window: Window,
        /// What it costs.
        price: Price,
    },
    /// Something happened that the model should know.
    Told {
        /// What.
        text: String,
    },
    /// Hooks had their say.
    Hooked {
        /// The call it was about, if it was one.
        call: Option<CallId>,
        /// What each said.
        firings: Vec<Firing>,
    },
    /// Hooks let pass what the model is to be told before everything else.
    Briefing {
        /// As they left it.
        text: Arc<str>,
        /// What each said.
        firings: Vec<Firing>,
    },
    /// A person asks for something, and hooks let it pass.
    Prompted {
        /// What, as the hooks left it.
        text: String,
        /// What goes with it.
        attachments: Vec<Attachment>,
        /// When the model hears of it.
        when: Delivery,
        /// What each hook said.
        firings: Vec<Firing>,
        /// What the model is to be told besides.
        context: Vec<String>,
    },
    /// A person asked for something that does not reach the model.
    Withheld {
        /// What stands on record instead.
        text: String,
        /// How the turn ends that it would have begun.
        end: TurnEnd,
        /// What each hook said.
        firings: Vec<Firing>,
    },
    /// The time asked for has passed.
    Woke {
        /// The turn that asked.
        turn: u32,
        /// The step after which it asked.
        step: u32,
    },
    /// The time a turn has may be up.
    Rang {
        /// The turn.
        turn: u32,
    },
    /// A model found a title.
    Titled {
        /// The title.
        title: String,
        /// What that used.
        usage: Usage,
    },
}

/// Something the driver is to do. Effects are done in order, and an append is on record before
/// what follows it is done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Adds facts to the log, all or none.
    Append(Vec<Fact>),
    /// Shows something to whoever watches.
    Show(Live),
    /// Asks the model.
    CallModel {
        /// The turn.
        turn: u32,
        /// The step.
        step: u32,
        /// What for. To sum up it needs no tools, and is told so behind the conversation.
        purpose: Purpose,
        /// What it is told before that.
        system: Arc<str>,
        /// The conversation.
        messages: Messages,
    },
    /// Stops asking it.
    CancelModel,
    /// Sends a call down the road.
    CallTool {
        /// The turn.
        turn: u32,
        /// The call.
        call: CallId,
        /// The tool, as it was spelled.
        tool: String,
        /// The arguments, as they were written.
        arguments: String,
        /// Who made it.
        by: Author,
    },
    /// Lets a call change what it said it is about to change: it is on record.
    Recorded {
        /// The call.
        call: CallId,
    },
    /// Starts the session of a call: it is on record.
    Spawn {
        /// The call.
        call: CallId,
        /// The session.
        session: SessionId,
        /// The call had it before a crash.
        again: bool,
    },
    /// Finds out what became of a call that may have been changing things when the process died.
    Reconcile {
        /// The turn.
        turn: u32,
        /// The call.
        call: CallId,
        /// What it may touch.
        accesses: Vec<Access>,
        /// What it had put on record to change.
        changes: Vec<Change>,
    },
    /// Stops a call.
    CancelTool {
        /// The call.
        call: CallId,
    },
    /// Has a call say what it would do, because somebody is going to be asked.
    Look {
        /// The call.
        call: CallId,
    },
    /// Lets a call that said what it is about to do go on, or turns it back.
    Answer {
        /// The call.
        call: CallId,
        /// Which of the two.
        answer: Answer,
    },
    /// Tells a call what the person said to its questions; nothing if nobody answers.
    Reply {
        /// The call.
        call: CallId,
        /// One list for each question.
        replies: Vec<Vec<String>>,
    },
    /// Keeps what a person allowed for the whole project.
    Remember {
        /// What.
        approvals: Vec<Approval>,
    },
    /// Ends a command in the background.
    EndJob {
        /// Its number.
        job: u64,
    },
    /// Comes back after a while.
    Wake {
        /// The turn.
        turn: u32,
        /// The step after which it waits.
        step: u32,
        /// How long.
        after_ms: u64,
    },
    /// Comes back when the time of a turn may be up.
    Alarm {
        /// The turn.
        turn: u32,
        /// How long.
        after_ms: u64,
    },
}
