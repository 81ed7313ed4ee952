//! What was said before: gone through with the arrows, and found by its words.

use windlass_protocol::Attachment;

/// So many prompts are kept.
const MOST: usize = 500;
/// A longer one is not.
const LONGEST: usize = 64 << 10;

/// A prompt of before, with the files that went with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Past {
    pub(super) text: String,
    pub(super) files: Vec<Attachment>,
}

impl Past {
    fn is_kept(&self) -> bool {
        !self.text.trim().is_empty() && self.text.len() <= LONGEST
    }
}

/// The prompts of before, and where among them one stands.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The oldest first.
    said: Vec<Past>,
    /// Which one is in the prompt, and what was written there before.
    walk: Option<(usize, String)>,
    /// How many of them were said here.
    here: usize,
}

impl History {
    /// Keeps what is said now.
    pub(super) fn push(&mut self, past: Past) {
        self.walk = None;
        if !past.is_kept() {
            return;
        }
        if self.said.last() != Some(&past) {
            self.said.push(past);
            self.here += 1;
        }
        let more = self.said.len().saturating_sub(MOST);
        self.said.drain(..more);
        self.here = self.here.min(self.said.len());
    }

    /// Takes in what was said earlier than everything said here, the oldest first.
    pub(super) fn older(&mut self, prompts: impl IntoIterator<Item = Past>) {
        let before = self.said.len() - self.here;
        let here = self.said.split_off(before);
        let mut said: Vec<Past> = Vec::new();
        for past in prompts.into_iter().chain(here) {
            if past.is_kept() && said.last() != Some(&past) {
                said.push(past);
            }
        }
        self.here = self.here.min(said.len());
        let more = said.len().saturating_sub(MOST);
        said.drain(..more);
        // What is walked through keeps its distance from the end.
        let grown = said.len();
        if let Some((at, _)) = &mut self.walk {
            let back = (before + self.here).saturating_sub(*at);
            *at = grown.saturating_sub(back);
        }
        self.said = said;
    }

    /// True while one of them is in the prompt.
    pub(super) fn walks(&self) -> bool {
        self.walk.is_some()
    }

    /// Stays with what is in the prompt: from now on it is a draft.
    pub(super) fn stay(&mut self) {
        self.walk = None;
    }

    /// The prompt before this one; `draft` is what is written now.
    pub(super) fn up(&mut self, draft: &str) -> Option<Past> {
        let at = self.walk.as_ref().map_or(self.said.len(), |(at, _)| *at).checked_sub(1)?;
        let past = self.said.get(at)?.clone();
        match &mut self.walk {
            Some((walked, _)) => *walked = at,
            None => self.walk = Some((at, draft.to_owned())),
        }
        Some(past)
    }

    /// The prompt after this one, at last the draft.
    pub(super) fn down(&mut self) -> Option<Past> {
        let (at, _) = self.walk.as_ref()?;
        let next = at + 1;
        if let Some(past) = self.said.get(next).cloned() {
            if let Some((at, _)) = &mut self.walk {
                *at = next;
            }
            return Some(past);
        }
        // The files of a draft stand in its text.
        self.walk.take().map(|(_, text)| Past { text, files: Vec::new() })
    }

    /// The prompts in which all these words stand, the newest first, each once.
    pub(super) fn find(&self, words: &str) -> Vec<&str> {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let mut found: Vec<&str> = Vec::new();
        for Past { text, .. } in self.said.iter().rev() {
            let low = text.to_lowercase();
            let all = words.iter().all(|word| low.contains(word.as_str()));
            if all && !found.contains(&text.as_str()) {
                found.push(text);
            }
        }
        found
    }

    /// The last prompt with this text.
    pub(super) fn last(&self, text: &str) -> Option<&Past> {
        self.said.iter().rev().find(|past| past.text == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(text: &str) -> Past {
        Past { text: text.to_owned(), files: Vec::new() }
    }

    #[test]
    fn the_draft_comes_back_at_the_end() {
        let mut history = History::default();
        history.push(past("one"));
        history.push(past("two"));
        history.push(past("two"));
        assert_eq!(history.up("dra"), Some(past("two")));
        assert_eq!(history.up("two"), Some(past("one")));
        assert_eq!(history.up("one"), None);
        assert_eq!(history.down(), Some(past("two")));
        assert_eq!(history.down(), Some(past("dra")));
        assert_eq!(history.down(), None);
    }

    #[test]
    fn it_is_bounded() {
        let mut history = History::default();
        for number in 0..2 * MOST {
            history.push(past(&number.to_string()));
        }
        history.push(past(&"x".repeat(LONGEST + 1)));
        assert_eq!(history.said.len(), MOST);
        assert_eq!(history.up(""), Some(past("999")));
    }

    #[test]
    fn older_prompts_come_before_those_said_here() {
        let mut history = History::default();
        history.push(past("here"));
        assert_eq!(history.up(""), Some(past("here")));
        history.older(["long ago", "before", "here"].map(past));
        assert_eq!(history.up("here"), Some(past("before")));
        assert_eq!(history.down(), Some(past("here")));
        assert_eq!(history.down(), Some(past("")));
    }

    #[test]
    fn words_are_found_in_any_order_and_case() {
        let mut history = History::default();
        for text in ["Fix the parser", "the parser is slow", "fix it", "Fix the parser"] {
            history.push(past(text));
        }
        assert_eq!(history.find("PARSER fix"), ["Fix the parser"]);
        assert_eq!(history.find("").len(), 3);
    }
}
