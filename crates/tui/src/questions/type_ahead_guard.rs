//! The keyboard focus of questions, which enforces the invariant I-TYPED: a key typed for the
//! prompt answers no question.
//!
//! The cases, with an empty prompt (a prompt with text always keeps its keys):
//! - A key within `ANSWER_DELAY_MS` of the last key typed into the prompt continues that text.
//! - A key within `ANSWER_DELAY_MS` of the question's appearance was not meant for it. It is held
//!   back, not typed. If a different character follows within `ANSWER_DELAY_MS`, both are the start
//!   of a text and go into the prompt; otherwise it is dropped.
//! - A key that repeats within `REPEAT_MS` is a key held down, and answers nothing.
//! - Any other key answers.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The time that a question must be visible before a key can answer it, and the longest pause
/// between two keys of one text.
pub(crate) const ANSWER_DELAY_MS: u64 = 250;
/// The longest pause between two reports of a key that is held down.
const REPEAT_MS: u64 = 120;

/// The focus that the user chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FocusChoice {
    /// No choice: the question takes the focus after `ANSWER_DELAY_MS`.
    #[default]
    Automatic,
    /// The user moved to the question.
    Question,
    /// The user moved back to the prompt.
    Prompt,
}

/// The destination of a key while a question is open and the prompt is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyDestination {
    Question,
    Prompt,
    /// Neither: the key came too early.
    Dropped,
    /// The prompt, with the held characters in front.
    PromptAfter(String),
}

/// The timing of keys and questions, from which the focus follows.
#[derive(Clone, Debug, Default)]
pub(crate) struct TypeAheadGuard {
    shown_at: u64,
    /// The time of the last key typed into the prompt.
    typed_at: Option<u64>,
    /// The last key of any kind, and its time.
    last_key: Option<(KeyCode, u64)>,
    /// Characters that came too early for the question, and the time of the last one.
    held: (String, u64),
    choice: FocusChoice,
}

impl TypeAheadGuard {
    /// Records that a new question is on the screen, or visible again.
    pub(crate) fn on_question_shown(&mut self, now: u64) {
        (self.shown_at, self.choice) = (now, FocusChoice::Automatic);
        self.held = Default::default();
    }

    /// Records that a panel covers the question and received a key.
    pub(crate) fn on_covered(&mut self, now: u64) {
        self.on_question_shown(now);
        self.last_key = self.last_key.map(|(code, _)| (code, now));
        self.last_key.get_or_insert((KeyCode::Null, now));
    }

    /// Records typing into the prompt, which takes an explicitly chosen focus away from the
    /// question.
    pub(crate) fn on_typing(&mut self, now: u64) {
        self.typed_at = Some(now);
        self.last_key.get_or_insert((KeyCode::Null, now)).1 = now;
        self.held = Default::default();
        if self.choice == FocusChoice::Question {
            self.choice = FocusChoice::Automatic;
        }
    }

    /// Returns the time at which the question may take the focus, if nothing more is typed.
    fn focus_at(&self) -> u64 {
        self.shown_at.max(self.typed_at.unwrap_or_default()) + ANSWER_DELAY_MS
    }

    /// Returns true if the question receives the keys.
    pub(crate) fn has_focus(&self, now: u64, prompt_is_empty: bool) -> bool {
        match self.choice {
            FocusChoice::Question => true,
            FocusChoice::Prompt => false,
            FocusChoice::Automatic => prompt_is_empty && now >= self.focus_at(),
        }
    }

    /// Returns the time at which the question takes the focus by itself, if that is in the future.
    pub(crate) fn next_wakeup(&self, now: u64) -> Option<u64> {
        (self.choice == FocusChoice::Automatic)
            .then(|| self.focus_at())
            .filter(|focus_at| *focus_at > now)
    }

    /// Moves the focus to the question, or back to the prompt. Before the question could be read,
    /// the key was meant for something else.
    pub(crate) fn toggle_focus(&mut self, now: u64, prompt_is_empty: bool) {
        if now < self.shown_at + ANSWER_DELAY_MS {
            return;
        }
        let has_focus = self.has_focus(now, prompt_is_empty);
        self.choice = if has_focus { FocusChoice::Prompt } else { FocusChoice::Question };
    }

    /// Decides about a typing key, see the module's cases. `is_text_open` means that a text input
    /// of the question receives it.
    pub(crate) fn destination(
        &mut self,
        key: &KeyEvent,
        now: u64,
        (prompt_is_empty, is_text_open): (bool, bool),
    ) -> KeyDestination {
        let is_held_down = key.kind == KeyEventKind::Repeat
            || self.last_key.is_some_and(|(code, at)| code == key.code && now < at + REPEAT_MS);
        self.last_key = Some((key.code, now));
        match self.choice {
            FocusChoice::Prompt => return KeyDestination::Prompt,
            FocusChoice::Automatic if !prompt_is_empty && !is_text_open => {
                return KeyDestination::Prompt;
            }
            FocusChoice::Question | FocusChoice::Automatic => {}
        }
        if is_text_open {
            return KeyDestination::Question;
        }
        let is_text = (key.modifiers - KeyModifiers::SHIFT).is_empty();
        let character = match key.code {
            KeyCode::Char(character) if is_text => Some(character),
            _ => None,
        };
        let continues_text = self.typed_at.is_some_and(|at| now < at + ANSWER_DELAY_MS);
        if self.choice == FocusChoice::Automatic && continues_text {
            return KeyDestination::Prompt;
        }
        let (held, held_at) = &mut self.held;
        let follows_held = !held.is_empty() && now < *held_at + ANSWER_DELAY_MS;
        if let Some(character) = character.filter(|_| follows_held)
            && !held.ends_with(character)
        {
            return KeyDestination::PromptAfter(std::mem::take(held));
        }
        if self.choice == FocusChoice::Automatic && now < self.shown_at + ANSWER_DELAY_MS {
            if !follows_held {
                held.clear();
            }
            held.extend(character);
            *held_at = now;
            return KeyDestination::Dropped;
        }
        match is_held_down && (character.is_some() || key.code == KeyCode::Enter) {
            true => KeyDestination::Dropped,
            false => KeyDestination::Question,
        }
    }
}
