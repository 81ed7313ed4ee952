//! The keyboard focus of questions, which enforces the invariant I-TYPED.

/// The time a question must be visible without typing before it takes the focus by itself.
pub(crate) const FOCUS_DELAY_MS: u64 = 700;
/// The time without a key after which the user counts as away; before that, the bell does not ring.
const AWAY_AFTER_MS: u64 = 10_000;

/// The focus that the user chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FocusChoice {
    /// No choice: the question takes the focus after `FOCUS_DELAY_MS`.
    #[default]
    Automatic,
    /// The user moved to the question.
    Question,
    /// The user moved back to the prompt.
    Prompt,
}

/// The timing of keys and questions, from which the focus follows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TypeAheadGuard {
    shown_at: u64,
    last_typed_at: Option<u64>,
    choice: FocusChoice,
}

impl TypeAheadGuard {
    /// Records that a new question is on the screen.
    pub(crate) fn on_question_shown(&mut self, now: u64) {
        (self.shown_at, self.choice) = (now, FocusChoice::Automatic);
    }

    /// Records typing outside the question, which takes an explicitly chosen focus away from it.
    pub(crate) fn on_typing(&mut self, now: u64) {
        self.last_typed_at = Some(now);
        if self.choice == FocusChoice::Question {
            self.choice = FocusChoice::Automatic;
        }
    }

    /// Records typing in the question, which keeps the focus, unlike `on_typing`.
    pub(crate) fn on_question_typing(&mut self, now: u64) {
        self.last_typed_at = Some(now);
    }

    /// Returns true if the user has not typed for `AWAY_AFTER_MS`.
    pub(crate) fn is_away(&self, now: u64) -> bool {
        self.last_typed_at.is_none_or(|typed_at| now >= typed_at + AWAY_AFTER_MS)
    }

    /// Returns the time at which the question may take the focus, if nothing more is typed.
    fn focus_at(&self) -> u64 {
        self.shown_at.max(self.last_typed_at.unwrap_or_default()) + FOCUS_DELAY_MS
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

    /// Moves the focus to the question, or back to the prompt.
    pub(crate) fn toggle_focus(&mut self, now: u64, prompt_is_empty: bool) {
        let has_focus = self.has_focus(now, prompt_is_empty);
        self.choice = if has_focus { FocusChoice::Prompt } else { FocusChoice::Question };
    }
}
