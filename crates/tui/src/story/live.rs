//! What is seen as it happens and is not kept: what the model is writing, what a command prints, what
//! another agent does.

use super::words;
use crate::lay::Draft;
use std::collections::{HashMap, VecDeque};
use windlass_protocol::{CallId, Fact, Millis, Seq, SessionId, Stream};

/// How much of what a command prints is kept.
const TAIL: usize = 8 << 10;
/// How many lines of another agent's work are kept.
const LINES: usize = 8;

/// What goes on.
#[derive(Debug, Default)]
pub(super) struct Now {
    /// What the model is writing, in order.
    pub drafts: Vec<Writing>,
    /// What running calls say.
    pub calls: HashMap<CallId, Saying>,
    /// What agents do that calls put to work.
    pub children: HashMap<SessionId, Child>,
    /// How long thoughts took that were seen as they came.
    pub thought: HashMap<Seq, u64>,
}

/// A piece that is being written.
#[derive(Debug)]
pub(super) struct Writing {
    pub stream: Stream,
    pub draft: Draft,
    pub began: Millis,
    pub last: Millis,
}

/// What a running call says.
#[derive(Debug, Default)]
pub(super) struct Saying {
    /// One line.
    pub progress: String,
    /// The end of what it printed.
    pub output: String,
    /// The host it could not reach, and why.
    pub refused: Option<String>,
}

/// Another agent at work.
#[derive(Debug, Default)]
pub(super) struct Child {
    pub call: Option<CallId>,
    pub calls: u32,
    pub doing: String,
    pub lines: VecDeque<String>,
}

impl Now {
    /// A piece of what the model writes.
    pub fn write(&mut self, stream: Stream, text: &str, at: Millis) {
        match self.drafts.last_mut().filter(|last| last.stream == stream) {
            Some(last) => {
                last.draft.push(text);
                last.last = at;
            }
            None => {
                let mut draft = Draft::default();
                draft.push(text);
                self.drafts.push(Writing { stream, draft, began: at, last: at });
            }
        }
    }

    /// A piece became a fact. Gives its place among the drafts.
    pub fn written(&mut self, stream: Stream, seq: Seq) -> Option<usize> {
        let at = self.drafts.iter().position(|writing| writing.stream == stream)?;
        let writing = self.drafts.remove(at);
        if stream == Stream::Reasoning {
            if self.thought.len() > 1_000 {
                self.thought.clear();
            }
            self.thought.insert(seq, writing.last.0.saturating_sub(writing.began.0));
        }
        Some(at)
    }

    /// A piece of what a command prints.
    pub fn print(&mut self, call: CallId, text: &str) {
        let output = &mut self.calls.entry(call).or_default().output;
        output.push_str(text);
        if output.len() > 2 * TAIL {
            let cut = output.ceil_char_boundary(output.len() - TAIL);
            let behind = output.get(cut..).unwrap_or_default();
            let line = behind.find('\n').map_or(behind, |end| behind.get(end + 1..).unwrap_or(""));
            *output = line.to_owned();
        }
    }

    /// What an agent that a call put to work does. Gives the call.
    pub fn child(&mut self, session: SessionId, fact: &Fact, root: &str) -> Option<CallId> {
        let child = self.children.get_mut(&session)?;
        let mut line = String::new();
        if let Fact::Called { tool, arguments, .. } = fact {
            let words = words::words(tool, arguments, root);
            child.calls += 1;
            child.doing = words.doing();
            line = format!("{} {}", words.verb, words.object).trim_end().to_owned();
        } else if let Fact::Said { text, .. } = fact {
            child.doing = "writing".to_owned();
            line = words::first_line(text);
        } else if let Fact::TurnEnded { .. } = fact {
            child.doing.clear();
        } else {
            return None;
        }
        if !line.is_empty() {
            child.lines.push_back(line);
            if child.lines.len() > LINES {
                child.lines.pop_front();
            }
        }
        child.call
    }
}
