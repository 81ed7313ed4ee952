//! When a question has the keys: I-TYPED.

/// How long a question stands, and nothing is typed, before it has the keys by itself.
pub(crate) const CALM: u64 = 700;
/// How long after the last key nobody is called.
const NEAR: u64 = 10_000;

/// Where the person went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Turned {
    /// Nowhere.
    #[default]
    Nowhere,
    /// To the question.
    There,
    /// Back to the prompt.
    Away,
}

/// What is known of where the person is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Guard {
    shown: u64,
    typed: Option<u64>,
    turned: Turned,
}

impl Guard {
    /// A question is on the screen from now on.
    pub(crate) fn show(&mut self, now: u64) {
        (self.shown, self.turned) = (now, Turned::Nowhere);
    }

    /// Something was typed for something else. Whoever types there is not here any more.
    pub(crate) fn typed(&mut self, now: u64) {
        self.typed = Some(now);
        if self.turned == Turned::There {
            self.turned = Turned::Nowhere;
        }
    }

    /// Something was typed for a question.
    pub(crate) fn answered(&mut self, now: u64) {
        self.typed = Some(now);
    }

    /// True if the person has not typed for a while.
    pub(crate) fn is_away(&self, now: u64) -> bool {
        self.typed.is_none_or(|typed| now >= typed + NEAR)
    }

    /// When it is calm, if nothing more is typed.
    fn calm(&self) -> u64 {
        self.shown.max(self.typed.unwrap_or_default()) + CALM
    }

    /// True if the keys are the question's.
    pub(crate) fn opens(&self, now: u64, prompt_is_empty: bool) -> bool {
        match self.turned {
            Turned::There => true,
            Turned::Away => false,
            Turned::Nowhere => prompt_is_empty && now >= self.calm(),
        }
    }

    /// When they will be, by themselves.
    pub(crate) fn wakes(&self, now: u64) -> Option<u64> {
        (self.turned == Turned::Nowhere).then(|| self.calm()).filter(|calm| *calm > now)
    }

    /// Goes there, or away from it.
    pub(crate) fn turn(&mut self, now: u64, prompt_is_empty: bool) {
        let here = self.opens(now, prompt_is_empty);
        self.turned = if here { Turned::Away } else { Turned::There };
    }
}
