//! Questions as text. Only a whole word answers one; Enter alone never does.

use super::talk::{Awaited, Linear, MOST};
use crate::asked::form::{Form, is_plan};
use crate::asked::permission::{Heard, Permission};
use crate::asked::queue::{News, Posed};
use crate::asked::sheet::{Part, Source};
use crate::lay;
use windlass_protocol::text::counted;
use windlass_protocol::wire::Request;
use windlass_protocol::{Answer, Lasting, Op, Record};

impl Linear {
    /// Takes in what a session asks, or what was answered elsewhere.
    pub(super) fn questions_of(&mut self, record: &Record) {
        let before = self.questions.number();
        match self.questions.hear(record, &self.known) {
            News::None => {}
            News::Agreed(call) => self.op(Op::Answer { call, answer: Answer::Once }),
            News::Posed if self.questions.number() == before => {
                let more = counted(self.questions.len() - 1, "more question");
                self.say(&format!("{more} after this one"));
            }
            News::Posed => {}
        }
        self.next_question(before);
    }

    /// Reads out what is to be answered now, if that is another question than before.
    pub(super) fn next_question(&mut self, before: Option<u64>) {
        if self.questions.number() == before {
            return;
        }
        if before.is_some() {
            self.say("that question needs no answer any more");
        }
        self.repeat();
    }

    /// Reads the question out that is to be answered.
    pub(super) fn repeat(&mut self) {
        let Some(posed) = self.questions.first().map(|first| first.posed.clone()) else { return };
        let place = self.questions.place().map_or(String::new(), |place| format!(" {place}"));
        match posed {
            Posed::Permission(permission) => self.read_permission(&permission, &place),
            Posed::Inquiry(form) => self.read_form(&form, &place),
        }
    }

    fn read_permission(&mut self, permission: &Permission, place: &str) {
        self.say(&format!("question{place}: {}?", permission.headline));
        if let Some(alarm) = permission.alarm {
            self.say(alarm);
        }
        permission.parts.iter().for_each(|part| self.part(part, MOST));
        let lasts = match permission.takes(&Answer::Session) {
            true => "; s for this session; p in this project",
            false => "",
        };
        self.say(&format!("answer y for yes, once{lasts}"));
        if permission.takes(&Answer::Like { lasts: Lasting::Session }) {
            self.say("k for all of this kind in this session; kp in this project");
        }
        self.say("n for no; n and a reason, which the model hears; all to hear all of it");
    }

    fn read_form(&mut self, form: &Form, place: &str) {
        let Some(inquiry) = form.open() else { return };
        let page =
            form.pages().map_or(String::new(), |page| format!(", {}", page.replace('/', " of ")));
        self.say(&format!("question{place}: {}{page}", form.headline()));
        form.parts().iter().for_each(|part| self.part(part, usize::MAX));
        self.say("choices:");
        self.quote(&form.listed(), usize::MAX);
        let numbers = if inquiry.multiple { "one or more numbers" } else { "a number" };
        let own = if inquiry.custom { ", or in your own words" } else { "" };
        let none = if is_plan(inquiry) { "n to keep planning" } else { "n for no answer" };
        self.say(&format!("answer with {numbers}{own}; {none}"));
    }

    /// A part of a question. What has a label and one line is one line.
    fn part(&mut self, part: &Part, most: usize) {
        let (text, label) = (words(&part.source), part.label);
        match (label, text.trim_end().lines().count()) {
            ("", _) => self.quote(&text, most),
            (_, 1) => self.say(&format!("{label}: {}", text.trim_end())),
            _ => {
                self.say(&format!("{label}:"));
                self.quote(&text, most);
            }
        }
    }

    /// Takes a line as the answer to the question that was read out.
    pub(super) fn answer_question(&mut self, line: &str) {
        let Some(first) = self.questions.first_mut() else { return };
        let call = first.call;
        let heard = match &mut first.posed {
            Posed::Permission(permission) if line == "all" => {
                let parts = permission.parts.clone();
                return parts.iter().for_each(|part| self.part(part, usize::MAX));
            }
            Posed::Permission(permission) => {
                let answer = meant(line).filter(|answer| permission.takes(answer));
                answer.map_or(Heard::Unused, |answer| Heard::Said(Op::Answer { call, answer }))
            }
            Posed::Inquiry(form) => form.take(line).map(|replies| Op::Reply { call, replies }),
        };
        match (heard, self.known.session) {
            (Heard::Said(op), Some(session)) => {
                let id = self.send(Request::Do { session, op }, Awaited::Done);
                self.questions.answered(id);
                self.repeat();
            }
            (Heard::Used, _) => self.repeat(),
            _ => self.say(
                "that is none of the answers, and nothing was said; Enter reads the question again",
            ),
        }
    }
}

/// What others wrote, as it is read out.
fn words(source: &Source) -> String {
    match source {
        Source::Diff(text) => lay::spoken(text),
        Source::Command(text) | Source::Markdown(text) | Source::Words(text) => text.clone(),
    }
}

/// What a line answers.
fn meant(line: &str) -> Option<Answer> {
    let (word, reason) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let reason = Some(reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    match (word, reason) {
        ("y" | "yes", None) => Some(Answer::Once),
        ("s", None) => Some(Answer::Session),
        ("p", None) => Some(Answer::Project),
        ("k", None) => Some(Answer::Like { lasts: Lasting::Session }),
        ("kp", None) => Some(Answer::Like { lasts: Lasting::Project }),
        ("n" | "no", reason) => Some(Answer::No { reason }),
        _ => None,
    }
}
