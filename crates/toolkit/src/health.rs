//! How somebody who is called is doing, and what a call does about it: goes ahead, starts them,
//! waits, or fails at once. It reads no clock: times come in, counted from anywhere.
//!
//! Whoever is told to start must say how that went, or nobody ever tries again.

use std::time::Duration;

/// So many starts may fail in a row.
const TRIES: u32 = 5;
/// A connection that held for so long was a good one: it is made again at once when it is lost.
const GOOD: Duration = Duration::from_secs(5);
/// After so long everything that went wrong before is forgotten.
const WELL: Duration = Duration::from_secs(60);
/// How long it takes at most until it is tried again.
const LONGEST: Duration = Duration::from_secs(60);

/// How somebody is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody has wanted them yet.
    Idle,
    /// They are being started.
    Starting,
    /// They answer.
    Ready {
        /// Since when.
        since: Duration,
    },
    /// They answered, and no longer do.
    Lost {
        /// Why.
        why: String,
    },
    /// They could not be started.
    Broken {
        /// How often in a row.
        tries: u32,
        /// When it is tried again.
        until: Duration,
        /// Why.
        why: String,
    },
    /// They are given up.
    Dead {
        /// Why.
        why: String,
    },
    /// The person has to log in first.
    NeedsLogin {
        /// What to do.
        how: String,
    },
}

/// What a call does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// It goes ahead.
    Go,
    /// It starts them, and says how that went.
    Start,
    /// It waits until somebody else has started them, and asks again.
    Wait,
    /// It fails, with these words.
    Fail(String),
}

/// The record of one that is called.
#[derive(Clone, Debug)]
pub struct Health {
    name: String,
    state: State,
    tries: u32,
    /// How long the last connection held.
    held: Duration,
}

impl Health {
    /// Nobody has wanted them yet. The name is for sentences.
    pub fn new(name: impl Into<String>) -> Health {
        Health { name: name.into(), state: State::Idle, tries: 0, held: Duration::ZERO }
    }

    /// How they are doing.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What a call does that has not started them yet.
    pub fn want(&mut self, now: Duration) -> Want {
        match &self.state {
            State::Ready { .. } => Want::Go,
            State::Starting => Want::Wait,
            State::Idle | State::Lost { .. } => self.start(),
            State::Broken { until, .. } if now >= *until => self.start(),
            State::Broken { until, why, .. } => {
                let seconds = until.saturating_sub(now).as_millis().div_ceil(1_000);
                let name = &self.name;
                Want::Fail(format!(
                    "{name} is not running ({why}); it is tried again in {seconds} s"
                ))
            }
            State::Dead { why } => Want::Fail(format!(
                "{} is not running ({why}); it is not tried again in this session",
                self.name
            )),
            State::NeedsLogin { how } => Want::Fail(how.clone()),
        }
    }

    /// What a call does that was on its way when they were lost. It has them started once more only
    /// if the connection was a good one.
    pub fn want_again(&mut self, now: Duration) -> Want {
        if let State::Lost { why } = &self.state
            && self.held < GOOD
        {
            let why = why.clone();
            self.failed(now, why);
        }
        self.want(now)
    }

    fn start(&mut self) -> Want {
        self.state = State::Starting;
        Want::Start
    }

    /// They answer.
    pub fn started(&mut self, now: Duration) {
        self.state = State::Ready { since: now };
    }

    /// They could not be started.
    pub fn failed(&mut self, now: Duration, why: String) {
        self.tries = self.tries.saturating_add(1);
        self.state = if self.tries >= TRIES {
            State::Dead { why }
        } else {
            let wait = Duration::from_secs(1_u64 << (self.tries - 1).min(10)).min(LONGEST);
            State::Broken { tries: self.tries, until: now.saturating_add(wait), why }
        };
    }

    /// They no longer answer. Only who answered can be lost.
    pub fn lost(&mut self, now: Duration, why: String) {
        let State::Ready { since } = self.state else { return };
        self.held = now.saturating_sub(since);
        if self.held >= WELL {
            self.tries = 0;
        }
        self.state = State::Lost { why };
    }

    /// The person has to log in first.
    pub fn needs_login(&mut self, how: String) {
        self.state = State::NeedsLogin { how };
    }

    /// Everything is forgotten: they may be tried again at once.
    pub fn forget(&mut self) {
        (self.state, self.tries) = (State::Idle, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn exited() -> String {
        "exited with 1".into()
    }

    #[test]
    fn one_call_starts_and_the_others_wait() {
        let mut health = Health::new("git");
        assert_eq!(health.want(at(0)), Want::Start);
        assert_eq!(health.want(at(0)), Want::Wait);
        health.started(at(1));
        assert_eq!(health.want(at(1)), Want::Go);
    }

    #[test]
    fn waits_double_and_then_it_is_given_up() {
        let mut health = Health::new("git");
        let mut now = at(0);
        for wait in [1, 2, 4, 8] {
            assert_eq!(health.want(now), Want::Start);
            health.failed(now, exited());
            let almost = now + at(wait) - Duration::from_millis(1);
            let said = health.want(almost);
            let words = "git is not running (exited with 1); it is tried again in 1 s";
            assert_eq!(said, Want::Fail(words.into()));
            now += at(wait);
        }
        assert_eq!(health.want(now), Want::Start);
        health.failed(now, exited());
        let Want::Fail(said) = health.want(at(1_000_000)) else { panic!() };
        assert!(said.contains("not tried again in this session"), "{said}");
        health.forget();
        assert_eq!(health.want(now), Want::Start);
    }

    #[test]
    fn what_was_lost_is_started_again_once_a_call() {
        let mut health = Health::new("git");
        health.want(at(0));
        health.started(at(0));
        health.lost(at(1), exited());
        assert_eq!(health.want(at(1)), Want::Start, "a new call has had none");
        health.started(at(1));
        health.lost(at(2), exited());
        assert!(matches!(health.want_again(at(2)), Want::Fail(_)), "this one has");
        assert!(matches!(health.state(), State::Broken { tries: 1, .. }));
        assert_eq!(health.want(at(3)), Want::Start);
        health.started(at(3));
        health.lost(at(8), exited());
        assert_eq!(health.want_again(at(8)), Want::Start, "it held for five seconds");
    }

    #[test]
    fn a_good_minute_makes_up_for_what_went_wrong() {
        let mut health = Health::new("git");
        let mut now = at(0);
        for _ in 0..4 {
            assert_eq!(health.want(now), Want::Start);
            health.failed(now, exited());
            now += at(60);
        }
        assert_eq!(health.want(now), Want::Start);
        health.started(now);
        health.lost(now + at(60), exited());
        assert_eq!(health.want(now + at(60)), Want::Start);
        health.failed(now + at(60), exited());
        assert!(matches!(health.state(), State::Broken { tries: 1, .. }));
    }

    #[test]
    fn who_needs_a_login_says_so_until_there_is_one() {
        let mut health = Health::new("docs");
        health.want(at(0));
        health.needs_login("run `windlass mcp login docs`".into());
        let words = Want::Fail("run `windlass mcp login docs`".into());
        assert_eq!((health.want(at(9)), health.want_again(at(99))), (words.clone(), words));
    }

    proptest! {
        /// Whatever happens, in whatever order and with clocks that go back: nobody is told to
        /// start while somebody else does, and nobody goes ahead with what is not there.
        #[test]
        fn there_is_never_more_than_one_start_under_way(
            steps in proptest::collection::vec((0..6_u8, 0..200_u64), 0..80),
        ) {
            let mut health = Health::new("any");
            let (mut starting, mut up) = (false, false);
            for (step, time) in steps {
                match step {
                    0 | 1 => {
                        let again = step == 1;
                        let said = if again { health.want_again(at(time)) } else { health.want(at(time)) };
                        match said {
                            Want::Start => {
                                prop_assert!(!starting && !up);
                                starting = true;
                            }
                            Want::Wait => prop_assert!(starting),
                            Want::Go => prop_assert!(up),
                            Want::Fail(why) => prop_assert!(!up && !starting && !why.is_empty()),
                        }
                    }
                    2 if starting => {
                        health.started(at(time));
                        (starting, up) = (false, true);
                    }
                    3 if starting => {
                        health.failed(at(time), "x".into());
                        starting = false;
                    }
                    4 => {
                        health.lost(at(time), "y".into());
                        up = false;
                    }
                    _ => {}
                }
            }
        }
    }
}
