//! A turn under way: its step, its calls, and where each of them stands.

use super::inquire::Inquest;
use windlass_protocol::{
    Access, Answer, Author, CallId, Change, Cost, Fact, Finish, Millis, Outcome, Purpose, Seq,
    SessionId, Sight, Stream,
};
use windlass_toolkit::Intent;

/// Work on one prompt, or on one call made by a person.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) number: u32,
    /// False if a person made a call directly, so that no model is asked.
    pub(super) prompted: bool,
    /// How many times the model has been asked.
    pub(super) steps: u32,
    /// True while it answers.
    pub(super) step_open: bool,
    /// What it was last asked for.
    pub(super) purpose: Purpose,
    /// The last position that the summary it is writing will stand for.
    pub(super) summing: Seq,
    /// When work on it began, less the time while nobody worked on it.
    pub(super) began: Millis,
    /// What its steps used and cost.
    pub(super) tokens: u64,
    pub(super) cost: Cost,
    /// The last answer had words or calls.
    pub(super) spoke: bool,
    /// How many answers in a row had neither.
    pub(super) empty: u32,
    /// How its last answer ended.
    pub(super) finish: Option<Finish>,
    /// How many times in a row it failed.
    pub(super) failures: u32,
    /// When the first of these failures was. The log does not have it: after a crash the clock
    /// starts anew, but the count does not.
    pub(super) failing_since: Option<Millis>,
    /// How long it waits before it tries again.
    pub(super) wait_ms: u64,
    /// The calls of the last step.
    pub(super) calls: Vec<Call>,
    /// How many of them are settled: the first ones, because they settle in their order.
    pub(super) settled: usize,
    /// What it has said so far in the step that is open.
    pub(super) draft: Vec<Block>,
    pub(super) draft_size: usize,
    /// A person wants it to stop.
    pub(super) interrupted: bool,
    /// The limit it has reached. The log does not have it: after a crash it is seen again.
    pub(super) expired: Option<String>,
    /// A person said yes to this call: nothing up to it counts as a loop.
    pub(super) forgiven: Option<CallId>,
}

impl Turn {
    pub(super) fn new(number: u32, prompted: bool, began: Millis) -> Turn {
        Turn {
            number,
            prompted,
            steps: 0,
            step_open: false,
            purpose: Purpose::Answer,
            summing: 0,
            began,
            tokens: 0,
            cost: Cost::default(),
            spoke: false,
            empty: 0,
            finish: None,
            failures: 0,
            failing_since: None,
            wait_ms: 0,
            calls: Vec::new(),
            settled: 0,
            draft: Vec::new(),
            draft_size: 0,
            interrupted: false,
            expired: None,
            forgiven: None,
        }
    }

    /// True if nothing more may begin in it.
    pub(super) fn stopping(&self) -> bool {
        self.interrupted || self.expired.is_some()
    }

    /// What the model has written in the step that is open, which then counts as unwritten.
    pub(super) fn take_text(&mut self) -> String {
        let said = |block: Block| match block {
            Block::Written { stream: Stream::Text, text, .. } => Some(text),
            Block::Written { stream: Stream::Reasoning, .. } | Block::Called(_) => None,
        };
        std::mem::take(&mut self.draft).into_iter().filter_map(said).collect()
    }

    /// The calls that are not settled.
    pub(super) fn open(&self) -> &[Call] {
        self.calls.get(self.settled..).unwrap_or_default()
    }

    pub(super) fn open_mut(&mut self) -> &mut [Call] {
        self.calls.get_mut(self.settled..).unwrap_or_default()
    }

    /// One of them.
    pub(super) fn call(&mut self, id: CallId) -> Option<&mut Call> {
        self.open_mut().iter_mut().find(|call| call.id == id)
    }

    /// Counts one of them as settled.
    pub(super) fn settle(&mut self, id: CallId) {
        let Some(place) = self.open().iter().position(|call| call.id == id) else { return };
        if let Some(until) = self.open_mut().get_mut(..=place) {
            until.rotate_right(1);
        }
        self.settled += 1;
    }

    /// The first open call that may start now. Calls that only look run side by side; one that changes
    /// something runs alone, after all before it and before all after it.
    pub(super) fn startable(&mut self) -> Option<&mut Call> {
        let looks = |call: &Call| match &call.stage {
            Stage::Intended(intent) | Stage::Running(intent) => intent.read_only,
            Stage::Done(_) => true,
            Stage::Away | Stage::Launched | Stage::Checked => false,
        };
        for (index, call) in self.open_mut().iter_mut().enumerate() {
            match &call.stage {
                Stage::Intended(intent) if call.permitted(intent) => {
                    if intent.read_only || index == 0 {
                        return Some(call);
                    }
                }
                Stage::Intended(_) | Stage::Away | Stage::Launched => {}
                Stage::Running(_) | Stage::Checked | Stage::Done(_) => {}
            }
            if !looks(call) {
                return None;
            }
        }
        None
    }
}

/// A piece of an answer that is still being written.
#[derive(Clone, Debug)]
pub(super) enum Block {
    Written {
        stream: Stream,
        text: String,
        seal: Option<String>,
    },
    /// A call, as it will stand in the log.
    Called(Fact),
}

/// A call, as far as the log tells and as far as this process has taken it.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) id: CallId,
    pub(super) tool: String,
    pub(super) arguments: String,
    pub(super) by: Author,
    /// What was last asked about it, and the answer.
    pub(super) asked: Option<Vec<Access>>,
    pub(super) answer: Option<Answer>,
    /// The kind of command it was said to be when it was asked about.
    pub(super) offer: Option<String>,
    pub(super) attempts: u32,
    pub(super) read_only: bool,
    /// What it may touch, and what it has put on record to change, batch by batch.
    pub(super) accesses: Vec<Access>,
    pub(super) changing: Vec<Vec<Change>>,
    /// The session it began.
    pub(super) child: Option<SessionId>,
    pub(super) question: Question,
    /// What it wants to know itself.
    pub(super) inquest: Inquest,
    /// What it saw of files.
    pub(super) seen: Vec<Sight>,
    pub(super) denied: bool,
    /// The loop it would go on with, in words.
    pub(super) looping: Option<String>,
    /// What becomes of it because a hook is against it.
    pub(super) refusal: Option<Outcome>,
    /// Why a hook wants a person to be asked about it.
    pub(super) doubt: Option<String>,
    pub(super) stage: Stage,
}

/// Where the question about a call stands in this process, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Nobody has been asked.
    Unasked,
    /// The call was told to say what it would do.
    Looking,
    /// It is on record, and somebody may answer.
    Posed,
    /// An earlier answer covers it, and nobody is asked.
    Covered,
}

/// Where a call stands in this process. The log does not have it: after a crash every call is
/// away again.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// Not sent.
    Away,
    /// On the road.
    Launched,
    /// It has said what it is about to do and waits.
    Intended(Intent),
    /// It was let go.
    Running(Intent),
    /// It was changing files when the process died; what became of them is being found out.
    Checked,
    /// It ended, and waits for the calls before it to be settled.
    Done(Outcome),
}

impl Call {
    pub(super) fn new(id: CallId, tool: String, arguments: String, by: Author) -> Call {
        Call {
            id,
            tool,
            arguments,
            by,
            asked: None,
            answer: None,
            offer: None,
            attempts: 0,
            read_only: false,
            accesses: Vec::new(),
            changing: Vec::new(),
            child: None,
            question: Question::Unasked,
            inquest: Inquest::default(),
            seen: Vec::new(),
            denied: false,
            looping: None,
            refusal: None,
            doubt: None,
            stage: Stage::Away,
        }
    }

    /// True if somebody said no and did not say why: then the turn ends.
    pub(super) fn ends_the_turn(&self) -> bool {
        self.answer == Some(Answer::No { reason: None })
    }

    /// True if it goes on with a loop, and nobody wanted that: they said no, or there was nothing
    /// to ask them, because it could not run at all.
    pub(super) fn ends_a_loop(&self) -> bool {
        match &self.answer {
            Some(answer) => *answer == Answer::No { reason: None },
            None => self.attempts == 0,
        }
    }

    /// True if nobody needs to be asked, or somebody said yes to exactly this, now or before.
    pub(super) fn permitted(&self, intent: &Intent) -> bool {
        !self.in_question(intent)
            || self.question == Question::Covered
            || self.answered(intent).is_some_and(Answer::is_yes)
    }

    /// True if it needs an answer. A question once put stays: a rule that has become laxer since
    /// does not answer for the person.
    pub(super) fn in_question(&self, intent: &Intent) -> bool {
        intent.asking.is_some() || self.asked.is_some()
    }

    /// The answer that was given to exactly this, if any.
    pub(super) fn answered(&self, intent: &Intent) -> Option<&Answer> {
        self.answer.as_ref().filter(|_| self.asked.as_ref() == Some(&intent.accesses))
    }
}
