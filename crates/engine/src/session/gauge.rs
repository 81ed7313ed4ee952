//! The gauge: how many tokens the next request would be, and how many the model takes.
//!
//! Each fact adds what it weighs by a rule of thumb; what the provider reported for the last
//! request puts that right, so that only what came since is guessed. It is a fold of the log, and
//! costs the same however long the conversation is.

use super::Window;
use windlass_protocol::{
    Attachment, Fact, Fault, Finish, Message, Outcome, Part, Purpose, Transcript, Usage,
};

/// What an image is to a model, roughly, whatever its bytes.
const IMAGE: u64 = 1_600;

/// What another file is.
const DOCUMENT: u64 = 6_000;

/// What a part is besides its text.
pub(super) const PART: u64 = 4;

/// What stands in place of an output that is no longer told.
pub(super) const PRUNED: u64 = 30;

/// The most that is kept free for an answer.
const RESERVE: u64 = 32_000;

/// After so many summaries that came to nothing no other is tried.
const MOST_FRUITLESS: u32 = 2;

/// So often in a row a conversation that proved too long is made shorter.
const MOST_REFUSALS: u32 = 2;

/// Roughly how many tokens a text is.
pub(super) fn tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    ascii.div_ceil(4) + (text.len() as u64 - ascii).div_ceil(3)
}

fn file(file: &Attachment) -> u64 {
    if file.mime.starts_with("image/") { IMAGE } else { DOCUMENT }
}

/// What a call gave.
pub(super) fn outcome(outcome: &Outcome) -> u64 {
    tokens(outcome.text()) + outcome.attachments().iter().map(file).sum::<u64>()
}

/// Roughly how many tokens a message is.
pub(super) fn weigh(message: &Message) -> u64 {
    message.parts.iter().map(part).sum()
}

/// The same of a part of it.
pub(super) fn part(part: &Part) -> u64 {
    match part {
        Part::Text { text, .. } | Part::Reasoning { text, .. } => tokens(text) + PART,
        Part::File(attached) => file(attached) + PART,
        Part::Call(call) => {
            let gave = match &call.outcome {
                Some(_) if call.pruned => PRUNED,
                Some(gave) => outcome(gave),
                None => 0,
            };
            tokens(&call.tool) + tokens(&call.arguments) + gave + PART
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Gauge {
    /// What the conversation weighs by the rule of thumb.
    weight: u64,
    /// What it weighed when the model was last asked, and how many tokens that was thought to be.
    asked: (u64, u64),
    purpose: Purpose,
    model: String,
    /// What the provider counted beyond the rule of thumb, last.
    offset: i64,
    /// The same for the first request, which was short: the tools, above all.
    overhead: Option<i64>,
    /// A provider refused about so much, so less must do.
    ceiling: Option<u64>,
    /// How often it refused since it last answered.
    refusals: u32,
    /// How many summaries in a row came to nothing.
    fruitless: u32,
}

impl Gauge {
    /// Takes in a fact that the transcript has taken in already.
    pub(super) fn record(&mut self, fact: &Fact, transcript: &Transcript) {
        match fact {
            Fact::Briefed { text } | Fact::ContextChanged { text } => self.weight += tokens(text),
            Fact::Said { text, .. } | Fact::Reasoned { text, .. } => {
                self.weight += tokens(text) + PART;
            }
            Fact::Called { tool, arguments, .. } => {
                self.weight += tokens(tool) + tokens(arguments) + PART;
            }
            Fact::Settled { outcome: gave, .. } => self.weight += outcome(gave),
            Fact::TurnStarted { prompt, .. } => {
                // What was tried in vain may be tried again.
                (self.refusals, self.fruitless) = (0, 0);
                let taken_up = transcript.messages.last().filter(|_| prompt.is_some());
                self.weight += taken_up.map_or(0, |message| weigh(message));
            }
            Fact::Steered { .. } => {
                self.weight += transcript.messages.last().map_or(0, |message| weigh(message));
            }
            Fact::Compacted { .. } => {
                self.fruitless = 0;
                self.weigh_anew(transcript);
            }
            Fact::Pruned { .. } | Fact::Reverted { .. } => self.weigh_anew(transcript),
            Fact::StepStarted { model, purpose, .. } => {
                if *model != self.model {
                    self.model.clone_from(model);
                    (self.offset, self.overhead, self.ceiling) = (0, None, None);
                }
                (self.asked, self.purpose) = ((self.weight, self.estimate()), *purpose);
            }
            Fact::StepEnded { finish, usage, .. } => self.answered(finish, usage),
            Fact::Opened { .. }
            | Fact::ModeChanged { .. }
            | Fact::Renamed { .. }
            | Fact::Forked { .. }
            | Fact::Prompted { .. }
            | Fact::Withdrawn { .. }
            | Fact::Retrying { .. }
            | Fact::Interrupted { .. }
            | Fact::TurnEnded { .. }
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

    fn weigh_anew(&mut self, transcript: &Transcript) {
        let brief = transcript.brief.as_ref().map_or(0, |brief| tokens(brief));
        self.weight = brief + transcript.for_model().iter().map(|m| weigh(m)).sum::<u64>();
        self.offset = self.overhead.unwrap_or_default();
    }

    fn answered(&mut self, finish: &Finish, usage: &Usage) {
        match (finish, self.purpose) {
            (Finish::Failed { fault: Fault::Overflow { .. } }, Purpose::Answer) => {
                let refused = self.asked.1 / 4 * 3;
                self.ceiling = Some(self.ceiling.map_or(refused, |known| known.min(refused)));
                self.refusals += 1;
            }
            (Finish::Failed { fault: Fault::Overflow { .. } }, Purpose::Summary) => {
                self.ceiling = Some(self.ceiling.unwrap_or(self.asked.1) / 2);
                self.fruitless += 1;
            }
            (Finish::Failed { .. } | Finish::Lost | Finish::Interrupted, _) => {}
            // If it came to something, what follows takes this back.
            (_, Purpose::Summary) => self.fruitless += 1,
            (_, Purpose::Answer) => {
                (self.refusals, self.fruitless) = (0, 0);
                if usage.input > 0 {
                    self.offset = usage.input as i64 - self.asked.0 as i64;
                    self.overhead.get_or_insert(self.offset.max(0));
                    self.ceiling.take_if(|ceiling| *ceiling < usage.input);
                }
            }
        }
    }

    /// How many tokens the next request would be.
    pub(super) fn estimate(&self) -> u64 {
        self.weight.saturating_add_signed(self.offset)
    }

    /// The same, if the provider has ever said how many it was.
    pub(super) fn counted(&self) -> Option<u64> {
        self.overhead.map(|_| self.estimate())
    }

    /// How many the model takes, as far as that is known.
    pub(super) fn room(&self, window: Window) -> Option<u64> {
        let Window { context, output } = window;
        let known = (context > 0).then(|| {
            let answer = if output > 0 { output.min(RESERVE) } else { RESERVE };
            context - answer.min(context / 4)
        });
        known.into_iter().chain(self.ceiling).min()
    }

    /// True if the provider refused the conversation since it last answered.
    pub(super) fn refused(&self) -> bool {
        self.refusals > 0 || self.fruitless > 0
    }

    /// True if that was too often to try again.
    pub(super) fn hopeless(&self) -> bool {
        self.refusals > MOST_REFUSALS || self.fruitless >= MOST_FRUITLESS
    }
}
