//! Attendance: the number of clients with a user who watches a session, and what happens to a
//! question when there is none.
//!
//! The session decides, not a client: with several clients, one without a user must not deny what the
//! user of another one is about to approve.

use std::sync::Arc;
use tokio::sync::watch;

/// Treatment of a question that no user is present to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnattendedPolicy {
    /// It waits until a user comes.
    Wait,
    /// It is declined at once, which is on record.
    Deny {
        /// Sentence that tells the model how the user can allow such calls; may be empty.
        advice: String,
    },
}

/// The number of clients with a user, shared by a session and its subagents.
#[derive(Clone, Debug)]
pub(crate) struct Attendance(Arc<watch::Sender<usize>>);

impl Attendance {
    pub(crate) fn new() -> Attendance {
        Attendance(Arc::new(watch::Sender::new(0)))
    }

    /// Returns true if a user is present.
    pub(crate) fn is_attended(&self) -> bool {
        *self.0.borrow() > 0
    }

    /// Returns a receiver that reports changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<usize> {
        self.0.subscribe()
    }

    /// Adds a client with a user, until the guard is dropped.
    pub(crate) fn attend(&self) -> AttendanceGuard {
        self.0.send_modify(|clients| *clients += 1);
        AttendanceGuard(self.clone())
    }
}

/// The presence of a user at a session. It ends when this is dropped.
#[derive(Debug)]
pub struct AttendanceGuard(Attendance);

impl Drop for AttendanceGuard {
    fn drop(&mut self) {
        self.0.0.send_modify(|clients| *clients = clients.saturating_sub(1));
    }
}
