//! What was said before: gone through with the arrows, and found by its words.

/// So many prompts are kept.
const MOST: usize = 500;
/// A longer one is not.
const LONGEST: usize = 64 << 10;

/// The prompts of before, and where among them one stands.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The oldest first.
    said: Vec<String>,
    /// Which one is in the prompt, and what was written there before.
    walk: Option<(usize, String)>,
    /// How many of them were said here.
    here: usize,
}

impl History {
    /// Keeps what is said now.
    pub(super) fn push(&mut self, text: &str) {
        self.walk = None;
        if text.trim().is_empty() || text.len() > LONGEST {
            return;
        }
        if self.said.last().is_none_or(|last| last != text) {
            self.said.push(text.to_owned());
            self.here += 1;
        }
        let more = self.said.len().saturating_sub(MOST);
        self.said.drain(..more);
        self.here = self.here.min(self.said.len());
    }

    /// Takes in what was said earlier than everything said here, the oldest first.
    pub(super) fn older(&mut self, prompts: impl IntoIterator<Item = String>) {
        let before = self.said.len() - self.here;
        let here = self.said.split_off(before);
        let mut said: Vec<String> = Vec::new();
        for text in prompts.into_iter().chain(here) {
            let kept = !text.trim().is_empty() && text.len() <= LONGEST;
            if kept && said.last() != Some(&text) {
                said.push(text);
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
    pub(super) fn up(&mut self, draft: &str) -> Option<String> {
        let at = self.walk.as_ref().map_or(self.said.len(), |(at, _)| *at).checked_sub(1)?;
        let text = self.said.get(at)?.clone();
        match &mut self.walk {
            Some((walked, _)) => *walked = at,
            None => self.walk = Some((at, draft.to_owned())),
        }
        Some(text)
    }

    /// The prompt after this one, at last the draft.
    pub(super) fn down(&mut self) -> Option<String> {
        let (at, _) = self.walk.as_ref()?;
        let next = at + 1;
        if let Some(text) = self.said.get(next).cloned() {
            if let Some((at, _)) = &mut self.walk {
                *at = next;
            }
            return Some(text);
        }
        self.walk.take().map(|(_, draft)| draft)
    }

    /// The prompts in which all these words stand, the newest first, each once.
    pub(super) fn find(&self, words: &str) -> Vec<&str> {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let mut found: Vec<&str> = Vec::new();
        for text in self.said.iter().rev() {
            let low = text.to_lowercase();
            let all = words.iter().all(|word| low.contains(word.as_str()));
            if all && !found.contains(&text.as_str()) {
                found.push(text);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draft_comes_back_at_the_end() {
        let mut history = History::default();
        history.push("one");
        history.push("two");
        history.push("two");
        assert_eq!(history.up("dra").as_deref(), Some("two"));
        assert_eq!(history.up("two").as_deref(), Some("one"));
        assert_eq!(history.up("one"), None);
        assert_eq!(history.down().as_deref(), Some("two"));
        assert_eq!(history.down().as_deref(), Some("dra"));
        assert_eq!(history.down(), None);
    }

    #[test]
    fn it_is_bounded() {
        let mut history = History::default();
        for number in 0..2 * MOST {
            history.push(&number.to_string());
        }
        history.push(&"x".repeat(LONGEST + 1));
        assert_eq!(history.said.len(), MOST);
        assert_eq!(history.up("").as_deref(), Some("999"));
    }

    #[test]
    fn older_prompts_come_before_those_said_here() {
        let mut history = History::default();
        history.push("here");
        assert_eq!(history.up("").as_deref(), Some("here"));
        history.older(["long ago".to_owned(), "before".to_owned(), "here".to_owned()]);
        assert_eq!(history.up("here").as_deref(), Some("before"));
        assert_eq!(history.down().as_deref(), Some("here"));
        assert_eq!(history.down().as_deref(), Some(""));
    }

    #[test]
    fn words_are_found_in_any_order_and_case() {
        let mut history = History::default();
        for text in ["Fix the parser", "the parser is slow", "fix it", "Fix the parser"] {
            history.push(text);
        }
        assert_eq!(history.find("PARSER fix"), ["Fix the parser"]);
        assert_eq!(history.find("").len(), 3);
    }
}
