//! The prompt history: browsed with the arrow keys, or searched by words.

use super::chips::TextWithChips;

const MAX_PROMPTS: usize = 500;
/// Longer prompts are not kept.
const MAX_PROMPT_BYTES: usize = 64 << 10;

/// An earlier prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PastPrompt {
    /// The text as it was sent.
    pub(super) text: String,
    /// The same with its attachments and pasted blocks.
    pub(super) content: TextWithChips,
}

impl PastPrompt {
    fn is_worth_keeping(&self) -> bool {
        !self.text.trim().is_empty() && self.text.len() <= MAX_PROMPT_BYTES
    }
}

/// The earlier prompts, and the browsing position.
#[derive(Debug, Default)]
pub(super) struct PromptHistory {
    /// Oldest first.
    prompts: Vec<PastPrompt>,
    /// The index of the prompt being shown, and the draft that it replaced.
    browsing: Option<(usize, TextWithChips)>,
    /// The number of prompts submitted in this run of the program.
    session_count: usize,
}

impl PromptHistory {
    /// Adds a submitted prompt.
    pub(super) fn push(&mut self, prompt: PastPrompt) {
        self.browsing = None;
        if !prompt.is_worth_keeping() {
            return;
        }
        if self.prompts.last() != Some(&prompt) {
            self.prompts.push(prompt);
            self.session_count += 1;
        }
        let excess = self.prompts.len().saturating_sub(MAX_PROMPTS);
        self.prompts.drain(..excess);
        self.session_count = self.session_count.min(self.prompts.len());
    }

    /// Adds prompts from before this run, oldest first; `session_count` prompts of this run follow
    /// them.
    pub(super) fn prepend_older(&mut self, prompts: impl IntoIterator<Item = PastPrompt>) {
        let older_count = self.prompts.len() - self.session_count;
        let session_prompts = self.prompts.split_off(older_count);
        let mut all_prompts: Vec<PastPrompt> = Vec::new();
        for prompt in prompts.into_iter().chain(session_prompts) {
            if prompt.is_worth_keeping() && all_prompts.last() != Some(&prompt) {
                all_prompts.push(prompt);
            }
        }
        self.session_count = self.session_count.min(all_prompts.len());
        let excess = all_prompts.len().saturating_sub(MAX_PROMPTS);
        all_prompts.drain(..excess);
        // The browsing position keeps its distance from the end.
        let prompt_count = all_prompts.len();
        if let Some((index, _)) = &mut self.browsing {
            let distance = (older_count + self.session_count).saturating_sub(*index);
            *index = prompt_count.saturating_sub(distance);
        }
        self.prompts = all_prompts;
    }

    /// Returns true while the prompt shows an earlier prompt.
    pub(super) fn is_browsing(&self) -> bool {
        self.browsing.is_some()
    }

    /// Ends browsing; the shown text becomes the draft.
    pub(super) fn stop_browsing(&mut self) {
        self.browsing = None;
    }

    /// Returns the previous prompt; `draft` is the current text, saved on the first step.
    pub(super) fn older_prompt(&mut self, draft: TextWithChips) -> Option<TextWithChips> {
        let index = self
            .browsing
            .as_ref()
            .map_or(self.prompts.len(), |(index, _)| *index)
            .checked_sub(1)?;
        let prompt = self.prompts.get(index)?.content.clone();
        match &mut self.browsing {
            Some((browsing_index, _)) => *browsing_index = index,
            None => self.browsing = Some((index, draft)),
        }
        Some(prompt)
    }

    /// Returns the next prompt, and finally the draft.
    pub(super) fn newer_prompt(&mut self) -> Option<TextWithChips> {
        let (index, _) = self.browsing.as_ref()?;
        let next = index + 1;
        if let Some(prompt) = self.prompts.get(next) {
            if let Some((index, _)) = &mut self.browsing {
                *index = next;
            }
            return Some(prompt.content.clone());
        }
        self.browsing.take().map(|(_, draft)| draft)
    }

    /// Returns the prompts that contain all the words, newest first and without duplicates.
    pub(super) fn search(&self, words: &str) -> Vec<&str> {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let mut matches: Vec<&str> = Vec::new();
        for PastPrompt { text, .. } in self.prompts.iter().rev() {
            let lowercase = text.to_lowercase();
            let matches_all = words.iter().all(|word| lowercase.contains(word.as_str()));
            if matches_all && !matches.contains(&text.as_str()) {
                matches.push(text);
            }
        }
        matches
    }

    /// Returns the last prompt with this text whose content is accepted.
    pub(super) fn last_with_text(
        &self,
        text: &str,
        accepts: impl Fn(&TextWithChips) -> bool,
    ) -> Option<&PastPrompt> {
        self.prompts.iter().rev().find(|prompt| prompt.text == text && accepts(&prompt.content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past_prompt(text: &str) -> PastPrompt {
        PastPrompt { text: text.to_owned(), content: content(text) }
    }

    fn content(text: &str) -> TextWithChips {
        TextWithChips::from_sent(text, &[])
    }

    #[test]
    fn the_draft_comes_back_at_the_end() {
        let mut history = PromptHistory::default();
        history.push(past_prompt("one"));
        history.push(past_prompt("two"));
        history.push(past_prompt("two"));
        assert_eq!(history.older_prompt(content("dra")), Some(content("two")));
        assert_eq!(history.older_prompt(content("two")), Some(content("one")));
        assert_eq!(history.older_prompt(content("one")), None);
        assert_eq!(history.newer_prompt(), Some(content("two")));
        assert_eq!(history.newer_prompt(), Some(content("dra")));
        assert_eq!(history.newer_prompt(), None);
    }

    #[test]
    fn the_history_is_bounded() {
        let mut history = PromptHistory::default();
        for number in 0..2 * MAX_PROMPTS {
            history.push(past_prompt(&number.to_string()));
        }
        history.push(past_prompt(&"x".repeat(MAX_PROMPT_BYTES + 1)));
        assert_eq!(history.prompts.len(), MAX_PROMPTS);
        assert_eq!(history.older_prompt(content("")), Some(content("999")));
    }

    #[test]
    fn prompts_of_earlier_sessions_come_before_those_of_this_one() {
        let mut history = PromptHistory::default();
        history.push(past_prompt("here"));
        assert_eq!(history.older_prompt(content("")), Some(content("here")));
        history.prepend_older(["long ago", "before", "here"].map(past_prompt));
        assert_eq!(history.older_prompt(content("here")), Some(content("before")));
        assert_eq!(history.newer_prompt(), Some(content("here")));
        assert_eq!(history.newer_prompt(), Some(content("")));
    }

    #[test]
    fn words_match_in_any_order_and_case() {
        let mut history = PromptHistory::default();
        for text in ["Fix the parser", "the parser is slow", "fix it", "Fix the parser"] {
            history.push(past_prompt(text));
        }
        assert_eq!(history.search("PARSER fix"), ["Fix the parser"]);
        assert_eq!(history.search("").len(), 3);
    }
}
