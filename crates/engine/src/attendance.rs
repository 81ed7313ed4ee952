//! Attendance: the number of clients with a user who watches a session, and what happens to a
//! question when there is none.
//!
//! The session decides, not a client: with several clients, one without a user must not deny what the
//! user of another one is about to approve.

use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;
use windlass_protocol::{CallId, LogSeq, SessionId};

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

/// The calls that wait for the user, each with the position of the fact that asks.
pub type OpenQuestions = BTreeMap<CallId, (SessionId, LogSeq)>;

/// The clients that a session has, by what they say about a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientCounts {
    /// Clients with a user who answers questions.
    with_user: usize,
    /// Clients that wait for the session and have no user to answer, such as a script.
    without_user: usize,
}

/// The clients of a session, and the questions that wait for a user: shared by a session and its
/// subagents.
#[derive(Clone, Debug)]
pub(crate) struct Attendance {
    clients: Arc<watch::Sender<ClientCounts>>,
    open_questions: Arc<watch::Sender<OpenQuestions>>,
}

impl Attendance {
    pub(crate) fn new() -> Attendance {
        Attendance { clients: Arc::default(), open_questions: Arc::default() }
    }

    /// Returns the advice for the model if a question is to be declined: no user is present, and the
    /// policy is not to wait, or a client waits that has no user.
    pub(crate) fn declining_advice<'a>(&self, policy: &'a UnattendedPolicy) -> Option<&'a str> {
        let ClientCounts { with_user, without_user } = *self.clients.borrow();
        match policy {
            _ if with_user > 0 => None,
            UnattendedPolicy::Deny { advice } => Some(advice),
            UnattendedPolicy::Wait => (without_user > 0).then_some(""),
        }
    }

    /// Returns a receiver that reports changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<ClientCounts> {
        self.clients.subscribe()
    }

    /// Returns a receiver of the calls that wait for the user.
    pub(crate) fn open_questions(&self) -> watch::Receiver<OpenQuestions> {
        self.open_questions.subscribe()
    }

    /// Replaces the open questions of one session, which were `known`, by the current ones.
    pub(crate) fn replace_questions(&self, known: &mut OpenQuestions, current: OpenQuestions) {
        if *known != current {
            self.open_questions.send_modify(|questions| {
                questions.retain(|call, _| !known.contains_key(call));
                questions.extend(&current);
            });
            *known = current;
        }
    }

    /// Adds a client with a user, or one that says there is none, until the guard is dropped.
    pub(crate) fn attend(&self, has_user: bool) -> AttendanceGuard {
        self.clients.send_modify(|clients| *clients.count(has_user) += 1);
        AttendanceGuard { attendance: self.clone(), has_user }
    }
}

impl ClientCounts {
    fn count(&mut self, has_user: bool) -> &mut usize {
        match has_user {
            true => &mut self.with_user,
            false => &mut self.without_user,
        }
    }
}

/// The presence of a client at a session. It ends when this is dropped.
#[derive(Debug)]
pub struct AttendanceGuard {
    attendance: Attendance,
    has_user: bool,
}

impl Drop for AttendanceGuard {
    fn drop(&mut self) {
        self.attendance.clients.send_modify(|clients| {
            let count = clients.count(self.has_user);
            *count = count.saturating_sub(1);
        });
    }
}
