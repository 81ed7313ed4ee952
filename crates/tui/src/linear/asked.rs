//! Questions as text. Only a whole word answers one; Enter alone never does.

use super::talk::Awaited;
use super::talk::{Linear, MOST};
use crate::asked::sheet::Source;
use crate::asked::words;
use windlass_protocol::wire::Request;
use windlass_protocol::{Answer, CallId, Fact, Inquiry, Lasting, Op, SessionId};

/// A question that waits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    session: SessionId,
    call: CallId,
    what: Asks,
}

#[derive(Clone, Debug, PartialEq)]
enum Asks {
    /// Whether a call may be made.
    Permission {
        headline: String,
        parts: Vec<(&'static str, String)>,
        reason: String,
        offer: Option<String>,
    },
    /// What a call wants to know, and what was said to it so far.
    Inquiries { inquiries: Vec<Inquiry>, replies: Vec<Vec<String>> },
}

impl Linear {
    /// Takes in what a session asks, or what was answered elsewhere.
    pub(super) fn questions_of(&mut self, session: SessionId, fact: &Fact) {
        let (call, what) = match fact {
            Fact::Asked { call, accesses, reason, preview, offer, .. } => {
                let parts = words::parts(accesses, preview.as_deref());
                let text = |source| match source {
                    Source::Command(text)
                    | Source::Diff(text)
                    | Source::Markdown(text)
                    | Source::Words(text) => text,
                };
                let parts = parts.into_iter().map(|part| (part.label, text(part.source))).collect();
                let headline = words::headline(accesses);
                let (reason, offer) = (reason.clone(), offer.clone());
                (call, Asks::Permission { headline, parts, reason, offer })
            }
            Fact::Inquired { call, inquiries } => {
                let inquiries = inquiries.clone();
                (call, Asks::Inquiries { inquiries, replies: Vec::new() })
            }
            Fact::Answered { call, .. }
            | Fact::Replied { call, .. }
            | Fact::Settled { call, .. } => {
                let before = self.questions.front().map(|question| question.call);
                self.questions.retain(|question| question.call != *call);
                if before == Some(*call) && !self.questions.is_empty() {
                    self.repeat();
                }
                return;
            }
            Fact::Opened { .. }
            | Fact::Briefed { .. }
            | Fact::ModeChanged { .. }
            | Fact::Renamed { .. }
            | Fact::Forked { .. }
            | Fact::Compacted { .. }
            | Fact::Pruned { .. }
            | Fact::Reverted { .. }
            | Fact::Prompted { .. }
            | Fact::Withdrawn { .. }
            | Fact::TurnStarted { .. }
            | Fact::Steered { .. }
            | Fact::StepStarted { .. }
            | Fact::StepEnded { .. }
            | Fact::Retrying { .. }
            | Fact::Interrupted { .. }
            | Fact::TurnEnded { .. }
            | Fact::Said { .. }
            | Fact::Reasoned { .. }
            | Fact::Called { .. }
            | Fact::Started { .. }
            | Fact::Spawned { .. }
            | Fact::Changing { .. }
            | Fact::Unchanged { .. }
            | Fact::Hooked { .. }
            | Fact::ContextChanged { .. } => return,
        };
        self.questions.push_back(Question { session, call: *call, what });
        match self.questions.len() {
            1 => self.repeat(),
            many => self.say(&format!("{} more questions wait", many - 1)),
        }
    }

    /// Reads the question out that is to be answered.
    pub(super) fn repeat(&mut self) {
        let Some(question) = self.questions.front().cloned() else { return };
        match question.what {
            Asks::Permission { headline, parts, reason, offer } => {
                self.say(&format!("question: {headline}?"));
                for (label, text) in parts {
                    if !label.is_empty() {
                        self.say(&format!("{label}:"));
                    }
                    self.quote(&text, MOST);
                }
                self.say("it asks because:");
                self.quote(&reason, MOST);
                self.say(
                    "answer y: yes, this once; s: yes, for this session; p: yes, in this project",
                );
                if let Some(offer) = offer {
                    self.say("k: yes to every command of this kind, for this session; kp: in this project:");
                    self.quote(&offer, 1);
                }
                self.say("n: no; n and a reason: no, and the model hears why; why: all of it");
            }
            Asks::Inquiries { inquiries, replies } => {
                let Some(inquiry) = inquiries.get(replies.len()) else { return };
                let place = format!("{} of {}", replies.len() + 1, inquiries.len());
                self.say(&format!("question {place}:"));
                self.quote(&inquiry.question, usize::MAX);
                for (number, option) in inquiry.options.iter().enumerate() {
                    let about = match option.description.as_str() {
                        "" => String::new(),
                        about => format!(": {about}"),
                    };
                    self.quote(&format!("{}. {}{about}", number + 1, option.label), 1);
                }
                let how = match (inquiry.multiple, inquiry.custom) {
                    (false, false) => "answer with a number",
                    (true, false) => "answer with one or more numbers",
                    (false, true) => "answer with a number, or in your own words",
                    (true, true) => "answer with one or more numbers, or in your own words",
                };
                self.say(how);
            }
        }
    }

    /// Takes a line as the answer to the question that was read out.
    pub(super) fn answer_question(&mut self, line: &str) {
        let Some(question) = self.questions.front_mut() else { return };
        let (session, call) = (question.session, question.call);
        match &mut question.what {
            Asks::Permission { parts, offer, .. } => {
                if line == "why" {
                    let parts = parts.clone();
                    for (_, text) in parts {
                        self.quote(&text, usize::MAX);
                    }
                    return;
                }
                match meant(line, offer.as_deref()) {
                    Some(answer) => {
                        self.questions.pop_front();
                        let op = Op::Answer { call, answer };
                        self.ask(Request::Do { session, op }, Awaited::Done);
                        self.repeat();
                    }
                    None => self.say(
                        "that is no answer, and nothing was said to the model: y, s, p, n or why",
                    ),
                }
            }
            Asks::Inquiries { inquiries, replies } => {
                let Some(reply) =
                    inquiries.get(replies.len()).and_then(|asked| chosen(asked, line))
                else {
                    return self.say("that is none of the answers");
                };
                replies.push(reply);
                if replies.len() == inquiries.len() {
                    let op = Op::Reply { call, replies: std::mem::take(replies) };
                    self.questions.pop_front();
                    self.ask(Request::Do { session, op }, Awaited::Done);
                }
                self.repeat();
            }
        }
    }
}

/// What a line answers.
fn meant(line: &str, offer: Option<&str>) -> Option<Answer> {
    let (word, reason) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let reason = Some(reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    match (word, reason) {
        ("y", None) => Some(Answer::Once),
        ("s", None) => Some(Answer::Session),
        ("p", None) => Some(Answer::Project),
        ("k", None) if offer.is_some() => Some(Answer::Like { lasts: Lasting::Session }),
        ("kp", None) if offer.is_some() => Some(Answer::Like { lasts: Lasting::Project }),
        ("n", reason) => Some(Answer::No { reason }),
        _ => None,
    }
}

/// What a line chooses.
fn chosen(inquiry: &Inquiry, line: &str) -> Option<Vec<String>> {
    let label = |word: &str| {
        let number = word.parse::<usize>().ok()?.checked_sub(1)?;
        Some(inquiry.options.get(number)?.label.clone())
    };
    let words = line.split([',', ' ']).filter(|word| !word.is_empty());
    let labels: Option<Vec<String>> = words.map(label).collect();
    match labels {
        Some(labels) if labels.len() == 1 || inquiry.multiple => Some(labels),
        Some(_) | None => inquiry.custom.then(|| vec![line.to_owned()]),
    }
}
