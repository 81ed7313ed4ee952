//! Finding a text in a session: what is looked for ([`Needle`]), and where it stands ([`Finder`]).
//!
//! Host and front end share it, so that what the one counts is what the other marks.

use crate::call::{Display, Outcome};
use crate::event::{Fact, Record, Seq};
use crate::id::{CallId, PromptId};
use crate::step::TurnEnd;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Stands where a line was broken only to fit: it is a space, or nothing.
pub const BREAK: char = '\0';

/// A text that is looked for. Without capitals, capitals make no difference; a space is any space, the
/// end of a line too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needle {
    signs: Vec<char>,
    exact: bool,
}

impl Needle {
    /// None if there is nothing to look for.
    pub fn new(text: &str) -> Option<Needle> {
        let exact = text.chars().any(char::is_uppercase);
        let signs = text.chars().map(|sign| if sign.is_whitespace() { ' ' } else { sign });
        (!text.trim().is_empty()).then(|| Needle { signs: signs.collect(), exact })
    }

    /// Where it stands in a text, from the first to the last.
    pub fn find(&self, text: &str) -> Vec<Range<usize>> {
        let (mut found, mut from) = (Vec::new(), 0);
        for (at, _) in text.char_indices() {
            if at < from {
                continue;
            }
            if let Some(length) = text.get(at..).and_then(|rest| self.begins(rest)) {
                from = at + length;
                found.push(at..from);
            }
        }
        found
    }

    /// How many bytes of a text it takes, if that begins with it.
    fn begins(&self, text: &str) -> Option<usize> {
        let mut signs = text.char_indices();
        let mut end = 0;
        for wanted in &self.signs {
            let (at, found) = match signs.next()? {
                (_, BREAK) if end > 0 && *wanted != ' ' => signs.next()?,
                next => next,
            };
            if !self.is(found, *wanted) {
                return None;
            }
            end = at + found.len_utf8();
        }
        Some(end)
    }

    fn is(&self, found: char, wanted: char) -> bool {
        match wanted {
            ' ' => found == BREAK || found.is_whitespace(),
            _ if self.exact || found == wanted => found == wanted,
            _ => found.to_lowercase().next() == Some(wanted),
        }
    }

    fn count(&self, fact: &Fact) -> u32 {
        let texts = told(fact);
        let found = texts.iter().map(|text| self.find(text).len()).sum::<usize>();
        u32::try_from(found).unwrap_or(u32::MAX)
    }
}

/// Where a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The fact that a reader meets there: of a prompt the one that it was heard with, of what a call
    /// gave the call.
    pub seq: Seq,
    /// How often; roughly, since not everything is shown as it was written.
    pub count: u32,
}

/// The places of a text in a log that is pushed from its beginning.
#[derive(Clone, Debug)]
pub struct Finder {
    needle: Needle,
    places: BTreeMap<Seq, u32>,
    /// Prompts that hold it and were not heard yet.
    prompts: HashMap<PromptId, u32>,
    calls: HashMap<CallId, Seq>,
}

impl Finder {
    /// One that has seen nothing yet.
    pub fn new(needle: Needle) -> Finder {
        Finder { needle, places: BTreeMap::new(), prompts: HashMap::new(), calls: HashMap::new() }
    }

    /// Takes in the next fact.
    pub fn push(&mut self, record: &Record) {
        let (seq, fact) = (record.seq, &record.fact);
        let count = self.needle.count(fact);
        if let Fact::Prompted { prompt, .. } = fact {
            self.prompts.insert(*prompt, count);
            return;
        }
        if let Fact::TurnStarted { prompt: Some(prompt), .. } | Fact::Steered { prompt, .. } = fact
        {
            let count = self.prompts.remove(prompt).unwrap_or_default();
            return self.add(seq, count);
        }
        if let Fact::Called { call, .. } = fact {
            self.calls.insert(*call, seq);
        }
        if let Fact::Settled { call, outcome, .. } = fact {
            let Some(made) = self.calls.remove(call) else { return };
            if stands_for_arguments(outcome) {
                self.places.remove(&made);
            }
            return self.add(made, count);
        }
        if let Fact::Reverted { to } = fact {
            self.places.split_off(&(to + 1));
        }
        self.add(seq, count);
    }

    fn add(&mut self, seq: Seq, count: u32) {
        if count > 0 {
            let known = self.places.entry(seq).or_default();
            *known = known.saturating_add(count);
        }
    }

    /// Where it stands, in order.
    pub fn places(self) -> Vec<Place> {
        self.places.into_iter().map(|(seq, count)| Place { seq, count }).collect()
    }
}

/// True if what a call gave is shown in place of what it was given.
fn stands_for_arguments(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Completed { output } => match output.display {
            Display::Diff { .. } | Display::Checklist { .. } => true,
            Display::Text | Display::Terminal { .. } => false,
        },
        Outcome::Failed { .. }
        | Outcome::Denied { .. }
        | Outcome::Interrupted { .. }
        | Outcome::Unknown => false,
    }
}

/// What a fact tells a reader.
fn told(fact: &Fact) -> Vec<Cow<'_, str>> {
    match fact {
        Fact::Prompted { text, attachments, .. } => {
            let names = attachments.iter().map(|file| Cow::Borrowed(file.name.as_str()));
            std::iter::once(Cow::Borrowed(text.as_str())).chain(names).collect()
        }
        Fact::Said { text, .. }
        | Fact::Reasoned { text, .. }
        | Fact::ContextChanged { text }
        | Fact::Compacted { summary: text, .. } => vec![Cow::Borrowed(text.as_str())],
        Fact::Called { arguments, .. } => given(arguments),
        Fact::Settled { outcome, .. } => gave(outcome),
        Fact::TurnEnded { end: TurnEnd::Failed { fault }, .. } => {
            vec![Cow::Owned(fault.to_string())]
        }
        Fact::Opened { .. }
        | Fact::Briefed { .. }
        | Fact::ModeChanged { .. }
        | Fact::Renamed { .. }
        | Fact::Forked { .. }
        | Fact::Pruned { .. }
        | Fact::Reverted { .. }
        | Fact::Withdrawn { .. }
        | Fact::TurnStarted { .. }
        | Fact::Steered { .. }
        | Fact::StepStarted { .. }
        | Fact::StepEnded { .. }
        | Fact::Retrying { .. }
        | Fact::Interrupted { .. }
        | Fact::TurnEnded { .. }
        | Fact::Asked { .. }
        | Fact::Answered { .. }
        | Fact::Started { .. }
        | Fact::Inquired { .. }
        | Fact::Replied { .. }
        | Fact::Spawned { .. }
        | Fact::Changing { .. }
        | Fact::Unchanged { .. }
        | Fact::Hooked { .. } => Vec::new(),
    }
}

/// The texts among the arguments of a call; all of it if it is no JSON.
fn given(arguments: &str) -> Vec<Cow<'_, str>> {
    fn texts(value: Value, found: &mut Vec<Cow<'_, str>>) {
        match value {
            Value::String(text) => found.push(Cow::Owned(text)),
            Value::Array(values) => values.into_iter().for_each(|value| texts(value, found)),
            Value::Object(fields) => fields.into_iter().for_each(|(_, value)| texts(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let Ok(value) = serde_json::from_str(arguments) else { return vec![Cow::Borrowed(arguments)] };
    let mut found = Vec::new();
    texts(value, &mut found);
    found
}

/// What is shown of what a call gave.
fn gave(outcome: &Outcome) -> Vec<Cow<'_, str>> {
    let Outcome::Completed { output } = outcome else {
        // What is said of a lost result are words of ours.
        let lost = *outcome == Outcome::Unknown;
        return if lost { Vec::new() } else { vec![Cow::Borrowed(outcome.text())] };
    };
    let names = output.attachments.iter().map(|file| Cow::Borrowed(file.name.as_str()));
    let mut texts: Vec<Cow<'_, str>> = names.collect();
    match &output.display {
        Display::Diff { unified } => texts.push(Cow::Borrowed(unified)),
        Display::Checklist { items } => {
            texts.extend(items.iter().map(|item| Cow::Borrowed(item.content.as_str())));
        }
        Display::Text | Display::Terminal { .. } => texts.push(Cow::Borrowed(&output.text)),
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Author, Output};
    use crate::id::{Millis, SessionId};
    use crate::op::Delivery;
    use uuid::Uuid;

    fn found(needle: &str, text: &str) -> Vec<String> {
        let needle = Needle::new(needle).unwrap();
        needle.find(text).into_iter().map(|at| text[at].to_owned()).collect()
    }

    #[test]
    fn capitals_count_only_where_they_are_asked_for() {
        assert_eq!(found("error", "Error, ERROR and error"), ["Error", "ERROR", "error"]);
        assert_eq!(found("Error", "Error, ERROR and error"), ["Error"]);
        assert_eq!(found("über", "Über ÜBER uber"), ["Über", "ÜBER"]);
        assert_eq!(found("漢字", "漢 漢字漢字"), ["漢字", "漢字"]);
        assert_eq!(found("aa", "aaaaa"), ["aa", "aa"]);
        assert_eq!(found("a.c", "abc a.c"), ["a.c"]);
    }

    #[test]
    fn a_space_is_any_space_and_a_break_is_one_or_nothing() {
        assert_eq!(found("two words", "two\nwords, two\twords, twowords").len(), 2);
        assert_eq!(found("two words", "two\0words"), ["two\0words"]);
        assert_eq!(found("long", "lo\0ng l\0ong").len(), 2);
        assert_eq!(found("long", "lo\0\0ng"), Vec::<String>::new());
        assert_eq!(found("b", "a\0b"), ["b"], "what is found begins with itself");
    }

    #[test]
    fn nothing_is_not_looked_for() {
        assert_eq!((Needle::new(""), Needle::new(" \t")), (None, None));
    }

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn places(needle: &str, facts: Vec<Fact>) -> Vec<(Seq, u32)> {
        let mut finder = Finder::new(Needle::new(needle).unwrap());
        for (seq, fact) in (1..).zip(facts) {
            finder.push(&Record { session: SessionId(id(1)), seq, at: Millis(0), fact });
        }
        finder.places().iter().map(|place| (place.seq, place.count)).collect()
    }

    fn prompted(number: u128, text: &str) -> Fact {
        let (prompt, attachments) = (PromptId(id(number)), Vec::new());
        Fact::Prompted { prompt, text: text.into(), attachments, when: Delivery::Queue }
    }

    fn called(number: u128, arguments: &str) -> Fact {
        Fact::Called {
            call: CallId(id(number)),
            reference: String::new(),
            tool: "bash".into(),
            arguments: arguments.into(),
            by: Author::Model,
            repaired: Vec::new(),
            seal: None,
        }
    }

    fn settled(number: u128, output: Output) -> Fact {
        let outcome = Outcome::Completed { output };
        Fact::Settled { call: CallId(id(number)), outcome, seen: Vec::new() }
    }

    fn gave(number: u128, text: &str) -> Fact {
        settled(number, Output { text: text.into(), ..Output::default() })
    }

    #[test]
    fn a_place_is_where_a_reader_meets_it() {
        let prompt = PromptId(id(9));
        let said = Fact::Said { text: "no crane".into(), seal: None };
        let facts = vec![
            prompted(9, "a crane, a Crane"),
            said.clone(),
            Fact::TurnStarted { turn: 1, prompt: Some(prompt) },
            called(1, r#"{"command":"echo \"crane\"\n"}"#),
            called(2, r#"{"command":"ls"}"#),
            gave(2, "crane.txt crane.rs"),
            gave(1, "crane"),
            prompted(8, "crane that nobody hears of"),
        ];
        assert_eq!(places("crane", facts), [(2, 1), (3, 2), (4, 2), (5, 2)]);
        assert_eq!(places("\"crane\"", vec![called(1, r#"{"a":["\"crane\""]}"#)]), [(1, 1)]);
    }

    #[test]
    fn what_was_stepped_back_over_is_found_no_more() {
        let said = |text: &str| Fact::Said { text: text.into(), seal: None };
        let facts = vec![said("one"), said("one"), Fact::Reverted { to: 1 }, said("one")];
        assert_eq!(places("one", facts), [(1, 1), (4, 1)]);
    }

    #[test]
    fn a_change_is_found_as_it_is_shown() {
        let display = Display::Diff { unified: "-crane\n+crane two\n".into() };
        let facts = vec![
            called(1, r#"{"oldString":"crane","newString":"crane two","why":"crane"}"#),
            settled(1, Output { display, text: "crane".into(), ..Output::default() }),
        ];
        assert_eq!(places("crane", facts), [(1, 2)]);
    }
}
