//! Text search in a session: the text to find ([`SearchPattern`]) and its matches ([`LogTextFinder`]).
//!
//! Host and front end share this code, so that the host counts exactly what the front end
//! highlights.

use crate::call_approval_and_outcome::{CallOutcome, OutputDisplay};
use crate::event::{Fact, FactRecord};
use crate::ids_and_timestamps::{CallId, LogSeq, PromptId};
use crate::step::TurnEndReason;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Marks a line break inserted only for wrapping; it matches a space or nothing.
pub const SOFT_BREAK: char = '\0';

/// A text to search for. Without capitals, the search ignores case. A space matches any whitespace,
/// including the end of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchPattern {
    characters: Vec<char>,
    case_sensitive: bool,
}

impl SearchPattern {
    /// Returns the pattern for `text`, or `None` if there is nothing to search for.
    pub fn new(text: &str) -> Option<SearchPattern> {
        let case_sensitive = text.chars().any(char::is_uppercase);
        let characters =
            text.chars().map(|character| if character.is_whitespace() { ' ' } else { character });
        (!text.trim().is_empty())
            .then(|| SearchPattern { characters: characters.collect(), case_sensitive })
    }

    /// Returns the byte ranges of all matches in a text, first to last.
    pub fn find_all(&self, text: &str) -> Vec<Range<usize>> {
        let (mut ranges, mut next_start) = (Vec::new(), 0);
        for (start, _) in text.char_indices() {
            if start < next_start {
                continue;
            }
            if let Some(length) = text.get(start..).and_then(|rest| self.match_prefix(rest)) {
                next_start = start + length;
                ranges.push(start..next_start);
            }
        }
        ranges
    }

    /// Returns the length in bytes of a match at the start of `text`, if there is one.
    fn match_prefix(&self, text: &str) -> Option<usize> {
        let mut characters = text.char_indices();
        let mut end = 0;
        for expected in &self.characters {
            let (start, character) = match characters.next()? {
                (_, SOFT_BREAK) if end > 0 && *expected != ' ' => characters.next()?,
                next => next,
            };
            if !self.matches_char(character, *expected) {
                return None;
            }
            end = start + character.len_utf8();
        }
        Some(end)
    }

    fn matches_char(&self, character: char, expected: char) -> bool {
        match expected {
            ' ' => character == SOFT_BREAK || character.is_whitespace(),
            _ if self.case_sensitive || character == expected => character == expected,
            _ => character.to_lowercase().next() == Some(expected),
        }
    }

    fn count_in_fact(&self, fact: &Fact) -> u32 {
        let texts = visible_texts(fact);
        let count = texts.iter().map(|text| self.find_all(text).len()).sum::<usize>();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

/// A fact that contains matches of [`SearchPattern`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MatchingFact {
    /// Position of the fact at which a reader sees the match: for a prompt the fact that delivered
    /// it, for the output of a call its `ToolCalled`.
    pub seq: LogSeq,
    /// Approximate number of matches, since not everything is shown as it was written.
    pub count: u32,
}

/// Finds the matches of a [`SearchPattern`] in a log, fact by fact from its beginning.
#[derive(Clone, Debug)]
pub struct LogTextFinder {
    pattern: SearchPattern,
    match_counts: BTreeMap<LogSeq, u32>,
    /// Match counts of prompts that the model has not received yet.
    queued_prompts: HashMap<PromptId, u32>,
    open_calls: HashMap<CallId, LogSeq>,
}

impl LogTextFinder {
    /// Returns a finder that has seen no facts.
    pub fn new(pattern: SearchPattern) -> LogTextFinder {
        LogTextFinder {
            pattern,
            match_counts: BTreeMap::new(),
            queued_prompts: HashMap::new(),
            open_calls: HashMap::new(),
        }
    }

    /// Applies the next [`FactRecord`] of the log.
    pub fn push(&mut self, record: &FactRecord) {
        let (seq, fact) = (record.seq, &record.fact);
        let count = self.pattern.count_in_fact(fact);
        if let Fact::PromptSubmitted { prompt, .. } = fact {
            self.queued_prompts.insert(*prompt, count);
            return;
        }
        if let Fact::TurnStarted { prompt: Some(prompt), .. } | Fact::PromptSteered { prompt, .. } =
            fact
        {
            let count = self.queued_prompts.remove(prompt).unwrap_or_default();
            return self.add_matches(seq, count);
        }
        if let Fact::ToolCalled { call, .. } = fact {
            self.open_calls.insert(*call, seq);
        }
        if let Fact::CallSettled { call, outcome, .. } = fact {
            let Some(call_seq) = self.open_calls.remove(call) else { return };
            if output_replaces_arguments(outcome) {
                self.match_counts.remove(&call_seq);
            }
            return self.add_matches(call_seq, count);
        }
        if let Fact::Rewound { to } = fact {
            self.match_counts.split_off(&(to + 1));
        }
        self.add_matches(seq, count);
    }

    fn add_matches(&mut self, seq: LogSeq, count: u32) {
        if count > 0 {
            let total = self.match_counts.entry(seq).or_default();
            *total = total.saturating_add(count);
        }
    }

    /// Returns the matches in log order.
    pub fn into_matches(self) -> Vec<MatchingFact> {
        self.match_counts.into_iter().map(|(seq, count)| MatchingFact { seq, count }).collect()
    }
}

/// Returns true if front ends show the output of a call in place of its arguments.
fn output_replaces_arguments(outcome: &CallOutcome) -> bool {
    match outcome {
        CallOutcome::Completed { output } => match output.display {
            OutputDisplay::Diff { .. } | OutputDisplay::Checklist { .. } => true,
            OutputDisplay::Text | OutputDisplay::Markdown | OutputDisplay::Terminal { .. } => false,
        },
        CallOutcome::Failed { .. }
        | CallOutcome::Denied { .. }
        | CallOutcome::Interrupted { .. }
        | CallOutcome::ResultUnknown => false,
    }
}

/// Returns the texts of a fact that a reader sees.
fn visible_texts(fact: &Fact) -> Vec<Cow<'_, str>> {
    match fact {
        Fact::PromptSubmitted { text, attachments, .. } => {
            let names = attachments.iter().map(|file| Cow::Borrowed(file.name.as_str()));
            std::iter::once(Cow::Borrowed(text.as_str())).chain(names).collect()
        }
        Fact::ModelText { text, .. }
        | Fact::ModelReasoning { text, .. }
        | Fact::ContextChanged { text, .. }
        | Fact::ContextCompacted { summary: text, .. } => vec![Cow::Borrowed(text.as_str())],
        Fact::ToolCalled { arguments, .. } => argument_texts(arguments),
        Fact::CallSettled { outcome, .. } => output_texts(outcome),
        Fact::TurnEnded { end: TurnEndReason::Failed { fault }, .. } => {
            vec![Cow::Owned(fault.to_string())]
        }
        Fact::SessionOpened { .. }
        | Fact::FactsLost { .. }
        | Fact::SystemPromptSet { .. }
        | Fact::ModeChanged { .. }
        | Fact::AgentChanged { .. }
        | Fact::ModelChanged { .. }
        | Fact::SessionRenamed { .. }
        | Fact::SideRequestEnded { .. }
        | Fact::SessionForked { .. }
        | Fact::OutputsPruned { .. }
        | Fact::Rewound { .. }
        | Fact::PromptWithdrawn { .. }
        | Fact::TurnStarted { .. }
        | Fact::PromptSteered { .. }
        | Fact::StepStarted { .. }
        | Fact::StepEnded { .. }
        | Fact::StepRetrying { .. }
        | Fact::TurnInterrupted { .. }
        | Fact::TurnEnded { .. }
        | Fact::PermissionAsked { .. }
        | Fact::PermissionAnswered { .. }
        | Fact::ApprovalsRevoked
        | Fact::CallStarted { .. }
        | Fact::QuestionAsked { .. }
        | Fact::QuestionAnswered { .. }
        | Fact::SubagentStarted { .. }
        | Fact::FilesChanging { .. }
        | Fact::FilesUnchanged { .. }
        | Fact::HookRan { .. } => Vec::new(),
    }
}

/// Returns the strings in the JSON arguments of a call, or the whole text if it is not JSON.
fn argument_texts(arguments: &str) -> Vec<Cow<'_, str>> {
    fn collect_strings(value: Value, texts: &mut Vec<Cow<'_, str>>) {
        match value {
            Value::String(text) => texts.push(Cow::Owned(text)),
            Value::Array(values) => {
                values.into_iter().for_each(|value| collect_strings(value, texts))
            }
            Value::Object(fields) => {
                fields.into_iter().for_each(|(_, value)| collect_strings(value, texts))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let Ok(value) = serde_json::from_str(arguments) else { return vec![Cow::Borrowed(arguments)] };
    let mut texts = Vec::new();
    collect_strings(value, &mut texts);
    texts
}

/// Returns the texts that front ends show for the outcome of a call.
fn output_texts(outcome: &CallOutcome) -> Vec<Cow<'_, str>> {
    let CallOutcome::Completed { output } = outcome else {
        // The text of `ResultUnknown` is Windlass's own, so it is not searched.
        let is_unknown = *outcome == CallOutcome::ResultUnknown;
        return if is_unknown { Vec::new() } else { vec![Cow::Borrowed(outcome.text())] };
    };
    let names = output.attachments.iter().map(|file| Cow::Borrowed(file.name.as_str()));
    let mut texts: Vec<Cow<'_, str>> = names.collect();
    match &output.display {
        OutputDisplay::Diff { unified_diff } => texts.push(Cow::Borrowed(unified_diff)),
        OutputDisplay::Checklist { items } => {
            texts.extend(items.iter().map(|item| Cow::Borrowed(item.content.as_str())));
        }
        OutputDisplay::Text | OutputDisplay::Markdown | OutputDisplay::Terminal { .. } => {
            texts.push(Cow::Borrowed(&output.text))
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_approval_and_outcome::{CallAuthor, ToolOutput};
    use crate::ids_and_timestamps::{SessionId, UnixMillis};
    use crate::prompt_delivery::PromptDelivery;
    use uuid::Uuid;

    fn find_all(pattern: &str, text: &str) -> Vec<String> {
        let pattern = SearchPattern::new(pattern).unwrap();
        pattern.find_all(text).into_iter().map(|range| text[range].to_owned()).collect()
    }

    #[test]
    fn case_matters_only_if_the_pattern_has_capitals() {
        assert_eq!(find_all("error", "Error, ERROR and error"), ["Error", "ERROR", "error"]);
        assert_eq!(find_all("Error", "Error, ERROR and error"), ["Error"]);
        assert_eq!(find_all("über", "Über ÜBER uber"), ["Über", "ÜBER"]);
        assert_eq!(find_all("漢字", "漢 漢字漢字"), ["漢字", "漢字"]);
        assert_eq!(find_all("aa", "aaaaa"), ["aa", "aa"]);
        assert_eq!(find_all("a.c", "abc a.c"), ["a.c"]);
    }

    #[test]
    fn a_space_matches_any_whitespace_and_a_soft_break_may_match_nothing() {
        assert_eq!(find_all("two words", "two\nwords, two\twords, twowords").len(), 2);
        assert_eq!(find_all("two words", "two\0words"), ["two\0words"]);
        assert_eq!(find_all("long", "lo\0ng l\0ong").len(), 2);
        assert_eq!(find_all("long", "lo\0\0ng"), Vec::<String>::new());
        assert_eq!(find_all("b", "a\0b"), ["b"], "a match does not begin with a soft break");
    }

    #[test]
    fn a_blank_pattern_is_rejected() {
        assert_eq!((SearchPattern::new(""), SearchPattern::new(" \t")), (None, None));
    }

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn find_matches(pattern: &str, facts: Vec<Fact>) -> Vec<(LogSeq, u32)> {
        let mut finder = LogTextFinder::new(SearchPattern::new(pattern).unwrap());
        for (seq, fact) in (1..).zip(facts) {
            finder.push(&FactRecord::new(SessionId(id(1)), seq, UnixMillis(0), fact));
        }
        finder.into_matches().iter().map(|text_match| (text_match.seq, text_match.count)).collect()
    }

    fn prompt_submitted(number: u128, text: &str) -> Fact {
        let (prompt, attachments) = (PromptId(id(number)), Vec::new());
        Fact::PromptSubmitted {
            prompt,
            text: text.into(),
            attachments,
            delivery: PromptDelivery::Queue,
            settings: Default::default(),
        }
    }

    fn tool_called(number: u128, arguments: &str) -> Fact {
        Fact::ToolCalled {
            description: crate::CallDescription::default(),
            call: CallId(id(number)),
            provider_call_id: String::new(),
            tool: "bash".into(),
            arguments: arguments.into(),
            author: CallAuthor::Model,
            repair: Vec::new(),
            provider_signature: None,
        }
    }

    fn call_settled(number: u128, output: ToolOutput) -> Fact {
        let outcome = CallOutcome::Completed { output };
        Fact::CallSettled { call: CallId(id(number)), outcome, seen_files: Vec::new() }
    }

    fn call_completed(number: u128, text: &str) -> Fact {
        call_settled(number, ToolOutput { text: text.into(), ..ToolOutput::default() })
    }

    #[test]
    fn a_match_is_at_the_position_where_it_is_shown() {
        let prompt = PromptId(id(9));
        let model_text = Fact::ModelText { text: "no crane".into(), provider_signature: None };
        let facts = vec![
            prompt_submitted(9, "a crane, a Crane"),
            model_text.clone(),
            Fact::TurnStarted { turn: 1, prompt: Some(prompt) },
            tool_called(1, r#"{"command":"echo \"crane\"\n"}"#),
            tool_called(2, r#"{"command":"ls"}"#),
            call_completed(2, "crane.txt crane.rs"),
            call_completed(1, "crane"),
            prompt_submitted(8, "crane that is never delivered"),
        ];
        assert_eq!(find_matches("crane", facts), [(2, 1), (3, 2), (4, 2), (5, 2)]);
        assert_eq!(
            find_matches("\"crane\"", vec![tool_called(1, r#"{"a":["\"crane\""]}"#)]),
            [(1, 1)]
        );
    }

    #[test]
    fn rewound_facts_are_not_found() {
        let model_text =
            |text: &str| Fact::ModelText { text: text.into(), provider_signature: None };
        let facts =
            vec![model_text("one"), model_text("one"), Fact::Rewound { to: 1 }, model_text("one")];
        assert_eq!(find_matches("one", facts), [(1, 1), (4, 1)]);
    }

    #[test]
    fn a_change_is_searched_as_its_diff() {
        let display = OutputDisplay::Diff { unified_diff: "-crane\n+crane two\n".into() };
        let facts = vec![
            tool_called(1, r#"{"oldString":"crane","newString":"crane two","why":"crane"}"#),
            call_settled(1, ToolOutput { display, text: "crane".into(), ..ToolOutput::default() }),
        ];
        assert_eq!(find_matches("crane", facts), [(1, 2)]);
    }
}
