//! Parts of a system prompt that may change while a session lives: the environment and the
//! instructions. An update message states those that differ from what the model has been told.

use super::{LocalDate, describe_mode, instructions_block, xml_block};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_protocol::{BlobRef, PermissionMode, SystemPromptState, UnixMillis};

/// The general instructions for an agent, at the start of the prompt.
pub(super) const GENERAL_INSTRUCTIONS: &str = include_str!("system.md");

/// First line of an update message.
const UPDATE_PREFIX: &str = "The environment or instructions have changed. Now this applies:\n";

/// Labels of `<environment>` lines that code refers to.
pub(super) const DATE_LABEL: &str = "Date";
pub(super) const MODE_LABEL: &str = "Mode";

/// Body of instructions that no longer apply.
const REMOVED_INSTRUCTIONS_TEXT: &str = "(these no longer apply)\n";

/// A rendered system prompt, and the parts of it that may change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenderedSystemPrompt {
    text: Arc<str>,
    parts: ChangeablePromptParts,
    /// The block of the text about the workspace at the start of the session.
    start_block: Arc<str>,
    utc_offset_seconds: i32,
}

impl RenderedSystemPrompt {
    pub(super) fn new(
        text: String,
        parts: ChangeablePromptParts,
        start_block: String,
        utc_offset_seconds: i32,
    ) -> RenderedSystemPrompt {
        let start_block = start_block.into();
        RenderedSystemPrompt { text: text.into(), parts, start_block, utc_offset_seconds }
    }

    /// Returns a prompt that consists of a text without parts.
    pub fn plain(text: &str) -> RenderedSystemPrompt {
        RenderedSystemPrompt { text: text.into(), ..RenderedSystemPrompt::default() }
    }

    /// Returns the text for the model.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Returns the prompt with a text appended.
    #[must_use]
    pub fn with_appended(&self, text: &str) -> RenderedSystemPrompt {
        let text = format!("{}\n{text}", self.text).into();
        RenderedSystemPrompt { text, ..self.clone() }
    }

    /// Returns the prompt with a text in place of the general instructions for an agent.
    #[must_use]
    pub fn with_instructions(&self, text: &str) -> RenderedSystemPrompt {
        match self.text.strip_prefix(GENERAL_INSTRUCTIONS.trim_end()) {
            Some(rest) => {
                let text = format!("{}{rest}", text.trim_end()).into();
                RenderedSystemPrompt { text, ..self.clone() }
            }
            None => self.with_appended(text),
        }
    }

    /// Returns the prompt of a session in this mode, if the prompt has one: an agent may restrict the
    /// mode of the config.
    #[must_use]
    pub(crate) fn with_mode(&self, mode: PermissionMode) -> RenderedSystemPrompt {
        self.with_described_mode(mode, &describe_mode(mode))
    }

    fn with_described_mode(&self, mode: PermissionMode, described: &str) -> RenderedSystemPrompt {
        let mut prompt = self.clone();
        let current = self.parts.environment.iter().find(|(label, _)| label == MODE_LABEL);
        if let Some((label, value)) = current {
            let line = format!("{label}: {value}\n");
            prompt.text = self.text.replacen(&line, &format!("{label}: {described}\n"), 1).into();
            prompt.parts.set_mode(mode);
        }
        prompt
    }

    /// Records that the text contains the prompt of an agent, so that a switch to another agent
    /// tells the model which instructions apply.
    pub(crate) fn add_agent(&mut self, name: &str, prompt: &str) {
        if !prompt.is_empty() {
            self.parts.instructions.push((format!("agent {name}"), format!("{prompt}\n")));
        }
    }

    /// Returns the prompt of a subagent: with its own mode, and without the workspace at the start
    /// of the session, which may have changed since.
    #[must_use]
    pub(crate) fn for_subagent(&self, mode: PermissionMode) -> RenderedSystemPrompt {
        // It is told what to answer by the agent that delegates to it.
        let described = match mode {
            PermissionMode::Plan => format!("{mode}: nothing may be changed"),
            _ => describe_mode(mode),
        };
        let prompt = self.with_described_mode(mode, &described);
        let text = prompt.text.replacen(&*self.start_block, "", 1).into();
        RenderedSystemPrompt { text, start_block: Arc::default(), ..prompt }
    }

    /// Replaces the text. Parts that the new text does not contain are dropped, so that no update
    /// tells the model what was removed from its prompt.
    pub(crate) fn replace_text(&mut self, text: Arc<str>) {
        self.parts.retain_contained(&text);
        self.text = text;
    }

    /// Returns the date of a time for the user.
    pub(crate) fn date_at(&self, at: UnixMillis) -> LocalDate {
        LocalDate::from_millis(at, self.utc_offset_seconds)
    }

    pub(crate) fn parts(&self) -> &ChangeablePromptParts {
        &self.parts
    }
}

/// The environment and the instructions of a system prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangeablePromptParts {
    /// Lines of the `<environment>` block, in order: label and value.
    pub(super) environment: Vec<(String, String)>,
    /// Bodies of the `<instructions>` blocks, in order, with their paths.
    pub(super) instructions: Vec<(String, String)>,
}

impl ChangeablePromptParts {
    pub(crate) fn is_empty(&self) -> bool {
        self.environment.is_empty() && self.instructions.is_empty()
    }

    fn retain_contained(&mut self, text: &str) {
        self.environment.retain(|(label, value)| text.contains(&format!("{label}: {value}\n")));
        self.instructions.retain(|(path, body)| text.contains(&instructions_block(path, body)));
    }

    /// Returns the state of a model that has read these parts.
    pub(crate) fn state(&self) -> SystemPromptState {
        let instructions = self.instructions.iter();
        SystemPromptState {
            environment: self.environment.iter().cloned().collect(),
            instructions: instructions.map(|(path, body)| (path.clone(), digest(body))).collect(),
        }
    }

    fn set_line(&mut self, label: &str, value: String) {
        match self.environment.iter_mut().find(|(known, _)| known == label) {
            Some((_, current)) => *current = value,
            None => self.environment.push((label.to_owned(), value)),
        }
    }

    /// Sets the date, if the prompt has one, to the latest of the rendered date, the current `date`
    /// and the date that the model knows. The date never goes back, even if the clock does.
    pub(crate) fn set_date(&mut self, LocalDate(date): LocalDate, known: &SystemPromptState) {
        let known_date = known.environment.get(DATE_LABEL).cloned().unwrap_or_default();
        if let Some((_, value)) = self.environment.iter_mut().find(|(label, _)| label == DATE_LABEL)
        {
            let latest = date.max(known_date);
            if latest > *value {
                *value = latest;
            }
        }
    }

    pub(crate) fn set_mode(&mut self, mode: PermissionMode) {
        self.set_line(MODE_LABEL, describe_mode(mode));
    }

    /// Returns the update message for a model that knows the `known` state, and the parts that the
    /// message states, or `None` if nothing differs.
    pub(crate) fn describe_update(
        &self,
        known: &SystemPromptState,
    ) -> Option<(String, SystemPromptState)> {
        let mut stated = SystemPromptState::default();
        let (mut text, mut lines) = (String::new(), String::new());
        for (label, value) in &self.environment {
            if known.environment.get(label) != Some(value) {
                lines.push_str(&format!("{label}: {value}\n"));
                stated.environment.insert(label.clone(), value.clone());
            }
        }
        if !lines.is_empty() {
            text.push_str(&xml_block("environment", &lines));
        }
        // Two files may have the same path once it is sanitized; the last one counts.
        let current: BTreeMap<&String, &String> =
            self.instructions.iter().map(|(path, body)| (path, body)).collect();
        for (path, body) in &current {
            let digest = digest(body);
            if known.instructions.get(*path) != Some(&digest) {
                text.push_str(&instructions_block(path, body));
                stated.instructions.insert((*path).clone(), digest);
            }
        }
        for (path, digest) in &known.instructions {
            if !digest.is_empty() && !current.contains_key(path) {
                text.push_str(&instructions_block(path, REMOVED_INSTRUCTIONS_TEXT));
                stated.instructions.insert(path.clone(), String::new());
            }
        }
        (!text.is_empty()).then(|| (format!("{UPDATE_PREFIX}{}", text.trim_start()), stated))
    }
}

/// Sets the mode that a model has been told in another way than by its prompt.
pub(crate) fn set_known_mode(known: &mut SystemPromptState, mode: PermissionMode) {
    known.environment.insert(MODE_LABEL.to_owned(), describe_mode(mode));
}

fn digest(body: &str) -> String {
    BlobRef::for_bytes(body.as_bytes()).as_str().to_owned()
}
