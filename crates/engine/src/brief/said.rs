//! What a model has been told so far, read back from the words themselves: the brief, and the
//! messages that told what became different. Nothing else is kept, so it survives a crash, a fork
//! and a summary as the conversation does.

use super::{Day, block, block_of, mode};
use std::collections::BTreeMap;
use windlass_protocol::{Message, Mode, Part, Role};

/// How a message begins that tells what became different.
const MARK: &str = "What you were told at the beginning has changed. Now this holds:\n";

/// The lines of the environment that are known by name.
pub(super) const DATE: &str = "Date";
pub(super) const MODE: &str = "Mode";

/// What stands in place of instructions that are gone.
const GONE: &str = "(these no longer hold)\n";

/// What was said, part by part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// The lines of the environment.
    lines: BTreeMap<String, String>,
    /// The instructions, by where they stand.
    advice: BTreeMap<String, String>,
}

impl Said {
    /// What a brief says.
    pub(crate) fn by(brief: &str) -> Said {
        let mut said = Said::default();
        said.read(brief);
        said
    }

    /// True if a brief is none of ours.
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Said::default()
    }

    /// Takes in a message of the conversation, if it tells what became different.
    pub(crate) fn hear(&mut self, message: &Message) {
        match message.role {
            Role::Context => {}
            Role::User | Role::Assistant => return,
        }
        for part in &message.parts {
            match part {
                Part::Text { text, .. } => {
                    if let Some(news) = text.strip_prefix(MARK) {
                        self.read(news);
                    }
                }
                Part::Reasoning { .. } | Part::File(_) | Part::Call(_) => {}
            }
        }
    }

    fn read(&mut self, text: &str) {
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let from =
                line.strip_prefix("<instructions from=\"").and_then(|l| l.strip_suffix("\">"));
            let end = match (line, from) {
                (_, Some(_)) => "</instructions>",
                ("<environment>", None) => "</environment>",
                (_, None) => continue,
            };
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != end).collect();
            match from {
                Some(path) => {
                    let body: String = body.iter().map(|line| format!("{line}\n")).collect();
                    self.advice.insert(path.to_owned(), body);
                }
                None => {
                    let pairs = body.iter().filter_map(|line| line.split_once(": "));
                    self.lines.extend(pairs.map(|(label, value)| (label.into(), value.into())));
                }
            }
        }
    }

    /// Lets it be as late as this day and the one that was told before, if it tells the day at all.
    /// Days do not go back, whatever a clock says.
    pub(crate) fn set_day(&mut self, Day(day): Day, before: &Said) {
        if let Some(told) = self.lines.get_mut(DATE) {
            let latest = [Some(&day), before.lines.get(DATE)].into_iter().flatten().max();
            if let Some(latest) = latest.filter(|latest| *latest > told) {
                told.clone_from(latest);
            }
        }
    }

    /// Sets the mode.
    pub(crate) fn set_mode(&mut self, to: Mode) {
        self.lines.insert(MODE.to_owned(), mode(to));
    }

    /// What is to be told to whom all of this was said, for them to know what holds `now`.
    pub(crate) fn difference(&self, now: &Said) -> Option<String> {
        let mut text = String::new();
        let differs = |(label, value): &(&String, &String)| self.lines.get(*label) != Some(value);
        let lines = now.lines.iter().filter(differs);
        let lines: String = lines.map(|(label, value)| format!("{label}: {value}\n")).collect();
        if !lines.is_empty() {
            text.push_str(&block("environment", &lines));
        }
        for (path, body) in &now.advice {
            if self.advice.get(path) != Some(body) {
                text.push_str(&block_of(path, body));
            }
        }
        for (path, body) in &self.advice {
            if !now.advice.contains_key(path) && body != GONE {
                text.push_str(&block_of(path, GONE));
            }
        }
        (!text.is_empty()).then(|| format!("{MARK}{}", text.trim_start()))
    }
}
