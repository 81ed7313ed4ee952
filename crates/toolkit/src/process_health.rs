//! Health of a long-running process (server or custom tool), and what a call should do: proceed,
//! start it, wait for a start under way, or fail. The module reads no clock: callers pass the time,
//! counted from any origin.
//!
//! A caller that gets `ProcessHealthAction::Start` must report the result, or no later call ever starts
//! the process again.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// After this many failed starts in a row the process is `GivenUp`.
const MAX_FAILED_STARTS: u32 = 5;
/// A connection that lasted this long was a good one: when it is lost, it is restarted at once.
const GOOD_CONNECTION_TIME: Duration = Duration::from_secs(5);
/// A connection that lasted this long resets the count of failed starts.
const FAILURE_RESET_TIME: Duration = Duration::from_secs(60);
/// Limits the delay before the next start.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// The state of a process in `ProcessHealth`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessHealthState {
    /// No call has needed the process yet.
    Idle,
    Starting,
    /// The process answers.
    Ready {
        /// The time of the start.
        since: Duration,
    },
    /// The process answered before, and no longer does.
    Lost {
        reason: String,
    },
    /// The last start failed.
    StartFailed {
        /// Failed starts in a row.
        attempts: u32,
        /// The time at which the next start is allowed.
        retry_at: Duration,
        reason: String,
    },
    /// Too many starts failed; there are no further attempts.
    GivenUp {
        reason: String,
    },
    /// The user must log in first.
    NeedsLogin {
        /// The command that the user must run.
        instructions: String,
    },
}

/// The action that a call should take, from `ProcessHealth::next_action`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessHealthAction {
    /// Use the connection.
    Proceed,
    /// Start the process and report the result.
    Start,
    /// Wait for the start that another call began, then ask again.
    Wait,
    /// Fail with this message.
    Fail(String),
}

/// Tells subscribers that the state of a process has changed. Clones share the subscribers.
#[derive(Clone, Debug)]
pub struct HealthChanges(Arc<watch::Sender<()>>);

impl Default for HealthChanges {
    fn default() -> HealthChanges {
        HealthChanges(Arc::new(watch::Sender::new(())))
    }
}

impl HealthChanges {
    /// Returns a receiver that is marked as changed after every `notify`.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }

    /// Marks all receivers as changed.
    pub fn notify(&self) {
        self.0.send_replace(());
    }
}

/// The health record of one process: its `ProcessHealthState` and its failed starts.
#[derive(Clone, Debug)]
pub struct ProcessHealth {
    name: String,
    state: ProcessHealthState,
    changes: HealthChanges,
    failed_starts: u32,
    /// Duration of the last connection.
    last_uptime: Duration,
}

impl ProcessHealth {
    /// Creates an `Idle` record. The name appears in messages.
    pub fn new(name: impl Into<String>) -> ProcessHealth {
        ProcessHealth {
            name: name.into(),
            state: ProcessHealthState::Idle,
            changes: HealthChanges::default(),
            failed_starts: 0,
            last_uptime: Duration::ZERO,
        }
    }

    /// Reports changes of the state to these subscribers.
    #[must_use]
    pub fn with_changes(mut self, changes: &HealthChanges) -> ProcessHealth {
        self.changes = changes.clone();
        self
    }

    fn set_state(&mut self, state: ProcessHealthState) {
        self.state = state;
        self.changes.notify();
    }

    /// Returns the current `ProcessHealthState`.
    pub fn state(&self) -> &ProcessHealthState {
        &self.state
    }

    /// Returns the action for a call that has not started the process yet.
    pub fn next_action(&mut self, now: Duration) -> ProcessHealthAction {
        match &self.state {
            ProcessHealthState::Ready { .. } => ProcessHealthAction::Proceed,
            ProcessHealthState::Starting => ProcessHealthAction::Wait,
            ProcessHealthState::Idle | ProcessHealthState::Lost { .. } => self.begin_start(),
            ProcessHealthState::StartFailed { retry_at, .. } if now >= *retry_at => {
                self.begin_start()
            }
            ProcessHealthState::StartFailed { retry_at, reason, .. } => {
                let seconds = retry_at.saturating_sub(now).as_millis().div_ceil(1_000);
                let name = &self.name;
                ProcessHealthAction::Fail(format!(
                    "{name} is not running ({reason}); it can be retried in {seconds} s"
                ))
            }
            ProcessHealthState::GivenUp { reason } => ProcessHealthAction::Fail(format!(
                "{} is not running ({reason}); it will not be restarted in this session",
                self.name
            )),
            ProcessHealthState::NeedsLogin { instructions } => {
                ProcessHealthAction::Fail(instructions.clone())
            }
        }
    }

    /// Returns the action for a call that was active when the connection was lost. The call may
    /// restart the process only if the connection was a good one (`GOOD_CONNECTION_TIME`).
    pub fn next_action_after_loss(&mut self, now: Duration) -> ProcessHealthAction {
        if let ProcessHealthState::Lost { reason } = &self.state
            && self.last_uptime < GOOD_CONNECTION_TIME
        {
            let reason = reason.clone();
            self.mark_failed(now, reason);
        }
        self.next_action(now)
    }

    fn begin_start(&mut self) -> ProcessHealthAction {
        self.set_state(ProcessHealthState::Starting);
        ProcessHealthAction::Start
    }

    /// Records that the process answers (`Ready`).
    pub fn mark_started(&mut self, now: Duration) {
        self.set_state(ProcessHealthState::Ready { since: now });
    }

    /// Records a failed start: `StartFailed`, or `GivenUp` after `MAX_FAILED_STARTS`.
    pub fn mark_failed(&mut self, now: Duration, reason: String) {
        self.failed_starts = self.failed_starts.saturating_add(1);
        let state = if self.failed_starts >= MAX_FAILED_STARTS {
            ProcessHealthState::GivenUp { reason }
        } else {
            let delay =
                Duration::from_secs(1_u64 << (self.failed_starts - 1).min(10)).min(MAX_RETRY_DELAY);
            ProcessHealthState::StartFailed {
                attempts: self.failed_starts,
                retry_at: now.saturating_add(delay),
                reason,
            }
        };
        self.set_state(state);
    }

    /// Records a lost connection. Only a process in state `Ready` can be lost.
    pub fn mark_lost(&mut self, now: Duration, reason: String) {
        let ProcessHealthState::Ready { since } = self.state else { return };
        self.last_uptime = now.saturating_sub(since);
        if self.last_uptime >= FAILURE_RESET_TIME {
            self.failed_starts = 0;
        }
        self.set_state(ProcessHealthState::Lost { reason });
    }

    /// Records that the user must log in first.
    pub fn mark_needs_login(&mut self, instructions: String) {
        self.set_state(ProcessHealthState::NeedsLogin { instructions });
    }

    /// Forgets all failures and returns to `Idle`: the process may start at once.
    pub fn reset(&mut self) {
        self.failed_starts = 0;
        self.set_state(ProcessHealthState::Idle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn exit_reason() -> String {
        "exited with 1".into()
    }

    #[test]
    fn one_call_starts_and_the_others_wait() {
        let mut health = ProcessHealth::new("git");
        assert_eq!(health.next_action(secs(0)), ProcessHealthAction::Start);
        assert_eq!(health.next_action(secs(0)), ProcessHealthAction::Wait);
        health.mark_started(secs(1));
        assert_eq!(health.next_action(secs(1)), ProcessHealthAction::Proceed);
    }

    #[test]
    fn delays_double_until_the_process_is_given_up() {
        let mut health = ProcessHealth::new("git");
        let mut now = secs(0);
        for wait in [1, 2, 4, 8] {
            assert_eq!(health.next_action(now), ProcessHealthAction::Start);
            health.mark_failed(now, exit_reason());
            let almost = now + secs(wait) - Duration::from_millis(1);
            let action = health.next_action(almost);
            let expected = "git is not running (exited with 1); it can be retried in 1 s";
            assert_eq!(action, ProcessHealthAction::Fail(expected.into()));
            now += secs(wait);
        }
        assert_eq!(health.next_action(now), ProcessHealthAction::Start);
        health.mark_failed(now, exit_reason());
        let ProcessHealthAction::Fail(text) = health.next_action(secs(1_000_000)) else { panic!() };
        assert!(text.contains("will not be restarted in this session"), "{text}");
        health.reset();
        assert_eq!(health.next_action(now), ProcessHealthAction::Start);
    }

    #[test]
    fn a_lost_process_is_restarted_once_per_call() {
        let mut health = ProcessHealth::new("git");
        health.next_action(secs(0));
        health.mark_started(secs(0));
        health.mark_lost(secs(1), exit_reason());
        assert_eq!(
            health.next_action(secs(1)),
            ProcessHealthAction::Start,
            "a new call may restart the process"
        );
        health.mark_started(secs(1));
        health.mark_lost(secs(2), exit_reason());
        assert!(
            matches!(health.next_action_after_loss(secs(2)), ProcessHealthAction::Fail(_)),
            "a call may restart a process once"
        );
        assert!(matches!(health.state(), ProcessHealthState::StartFailed { attempts: 1, .. }));
        assert_eq!(health.next_action(secs(3)), ProcessHealthAction::Start);
        health.mark_started(secs(3));
        health.mark_lost(secs(8), exit_reason());
        assert_eq!(
            health.next_action_after_loss(secs(8)),
            ProcessHealthAction::Start,
            "the connection lasted five seconds"
        );
    }

    #[test]
    fn a_minute_of_uptime_resets_the_failed_starts() {
        let mut health = ProcessHealth::new("git");
        let mut now = secs(0);
        for _ in 0..4 {
            assert_eq!(health.next_action(now), ProcessHealthAction::Start);
            health.mark_failed(now, exit_reason());
            now += secs(60);
        }
        assert_eq!(health.next_action(now), ProcessHealthAction::Start);
        health.mark_started(now);
        health.mark_lost(now + secs(60), exit_reason());
        assert_eq!(health.next_action(now + secs(60)), ProcessHealthAction::Start);
        health.mark_failed(now + secs(60), exit_reason());
        assert!(matches!(health.state(), ProcessHealthState::StartFailed { attempts: 1, .. }));
    }

    #[test]
    fn a_process_that_needs_a_login_fails_with_instructions() {
        let mut health = ProcessHealth::new("docs");
        health.next_action(secs(0));
        health.mark_needs_login("run `windlass mcp login docs`".into());
        let expected = ProcessHealthAction::Fail("run `windlass mcp login docs`".into());
        assert_eq!(
            (health.next_action(secs(9)), health.next_action_after_loss(secs(99))),
            (expected.clone(), expected)
        );
    }

    proptest! {
        /// For any sequence of events and any clock: no call starts the process during another
        /// start, and no call proceeds without a running process.
        #[test]
        fn there_is_never_more_than_one_start_in_progress(
            steps in proptest::collection::vec((0..6_u8, 0..200_u64), 0..80),
        ) {
            let mut health = ProcessHealth::new("any");
            let (mut starting, mut ready) = (false, false);
            for (step, time) in steps {
                match step {
                    0 | 1 => {
                        let action = match step {
                            0 => health.next_action(secs(time)),
                            _ => health.next_action_after_loss(secs(time)),
                        };
                        match action {
                            ProcessHealthAction::Start => {
                                prop_assert!(!starting && !ready);
                                starting = true;
                            }
                            ProcessHealthAction::Wait => prop_assert!(starting),
                            ProcessHealthAction::Proceed => prop_assert!(ready),
                            ProcessHealthAction::Fail(text) => {
                                prop_assert!(!ready && !starting && !text.is_empty())
                            }
                        }
                    }
                    2 if starting => {
                        health.mark_started(secs(time));
                        (starting, ready) = (false, true);
                    }
                    3 if starting => {
                        health.mark_failed(secs(time), "x".into());
                        starting = false;
                    }
                    4 => {
                        health.mark_lost(secs(time), "y".into());
                        ready = false;
                    }
                    _ => {}
                }
            }
        }
    }
}
