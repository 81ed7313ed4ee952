//! What comes of a request, and a request that waits for somebody's answer.

use crate::rules::Level;
use crate::{Grant, Policy, leaves};
use windlass_protocol::{Access, Answer};

/// What comes of a request.
#[derive(Debug)]
pub enum Decision {
    /// It may go on.
    Allowed(Grant),
    /// Somebody must be asked.
    Ask(Question),
    /// It may not.
    Denied {
        /// The rule behind it, in words.
        reason: String,
    },
}

/// A request that waits for an answer.
#[derive(Debug)]
pub struct Question {
    pub(crate) accesses: Vec<Access>,
    pub(crate) reason: String,
    pub(crate) offer: Option<String>,
    pub(crate) coverable: bool,
    pub(crate) policy: Policy,
}

impl Question {
    /// Why somebody must be asked.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The kind of command it is, where a yes can be given to all of that kind.
    pub fn offer(&self) -> Option<&String> {
        self.offer.as_ref()
    }

    /// True if a yes that was given to the same before may answer it.
    pub fn coverable(&self) -> bool {
        self.coverable
    }

    /// What a yes would open.
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// Lets the asker read what the question is about, to show what would change.
    pub fn preview(&self) -> Grant {
        let looking = self.accesses.iter().filter_map(|access| match access {
            Access::Read { path } | Access::Edit { path } => {
                Some(Access::Read { path: path.clone() })
            }
            Access::Search { .. }
            | Access::Recall { .. }
            | Access::Skill { .. }
            | Access::Task { .. }
            | Access::Use { .. }
            | Access::Accept { .. } => Some(access.clone()),
            Access::Run { .. }
            | Access::Connect { .. }
            | Access::Fetch { .. }
            | Access::Leave { .. }
            | Access::Engage { .. } => None,
        });
        Grant::over(looking.collect(), self.policy.clone(), Level::Allow)
    }

    /// True if everything it is about may be read without asking: then what went wrong while it
    /// was looked at may be told before it is answered.
    pub fn reveals(&self) -> bool {
        self.accesses.iter().all(|access| match access {
            Access::Read { path } | Access::Search { path } | Access::Edit { path } => {
                self.policy.shows(path, Level::Allow)
            }
            Access::Recall { .. }
            | Access::Skill { .. }
            | Access::Run { .. }
            | Access::Connect { .. }
            | Access::Fetch { .. }
            | Access::Leave { .. }
            | Access::Task { .. }
            | Access::Use { .. }
            | Access::Engage { .. }
            | Access::Accept { .. } => true,
        })
    }

    /// What the answer opens: everything that was asked for, or nothing. The sandbox is left only
    /// on a yes to this one call.
    pub fn answered(self, answer: &Answer) -> Option<Grant> {
        let opens = match answer {
            Answer::Once => true,
            Answer::Session | Answer::Project | Answer::Like { .. } => {
                !self.accesses.iter().any(leaves)
            }
            Answer::No { .. } => false,
        };
        opens.then(|| Grant::over(self.accesses, self.policy, Level::Ask))
    }
}
