//! The grant: proof that somebody said yes.

use crate::{Decision, Level, Policy};
use windlass_protocol::{Access, Mode};

/// The right to touch exactly these things. Its fields are private and it has no public maker, so
/// a grant that nobody gave cannot be written down.
#[derive(Debug)]
pub struct Grant {
    accesses: Vec<Access>,
    policy: Policy,
    /// The strictest verdict that was needed to get here.
    level: Level,
    looks: bool,
}

impl Grant {
    pub(crate) fn over(accesses: Vec<Access>, policy: Policy, level: Level) -> Grant {
        Grant { accesses, policy, level, looks: false }
    }

    /// Says that nothing opened its commands but the proof that they only look.
    pub(crate) fn only_looking(self) -> Grant {
        Grant { looks: true, ..self }
    }

    /// True if its commands were allowed only because they are proven to look only: no rule, no
    /// earlier answer and no person said yes. Then they run where they cannot write, because a
    /// program may obey what it finds where it looks: git runs filters of a repository's config.
    pub fn looks(&self) -> bool {
        self.looks
    }

    /// Everything it opens.
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// The mode it was given in.
    pub fn mode(&self) -> Mode {
        self.policy.mode
    }

    /// True if it opens this. The right to change a file includes the right to look at it.
    pub fn covers(&self, wanted: &Access) -> bool {
        self.accesses.iter().any(|given| match (given, wanted) {
            (
                Access::Edit { path: given } | Access::Search { path: given },
                Access::Read { path: wanted },
            ) => given == wanted,
            (given, wanted) => given == wanted,
        })
    }

    /// True if it opens this, or the rules do without anybody being asked.
    pub fn spans(&self, wanted: &Access) -> bool {
        let allowed = |wanted: &Access| {
            let decision = self.policy.decide(vec![wanted.clone()], &[]);
            matches!(decision, Decision::Allowed(_))
        };
        self.covers(wanted) || allowed(wanted)
    }

    /// True if a file found while looking through a folder may be looked at: it lies beneath a
    /// folder that may be looked through, and no rule is stricter about it than about the folder.
    /// What is made to hold secrets has to be asked for by name.
    pub fn reveals(&self, path: &str) -> bool {
        let beneath = |folder: &str| {
            folder == "." || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        };
        self.accesses.iter().any(|given| match given {
            Access::Search { path: named } if named == path => true,
            Access::Search { path: folder } => beneath(folder) && self.permits(path),
            Access::Read { .. }
            | Access::Edit { .. }
            | Access::Recall { .. }
            | Access::Skill { .. }
            | Access::Run { .. }
            | Access::Connect { .. }
            | Access::Fetch { .. }
            | Access::Leave { .. }
            | Access::Task { .. }
            | Access::Use { .. }
            | Access::Engage { .. }
            | Access::Accept { .. } => false,
        })
    }

    /// True if reading a path needs nobody's yes beyond the one that was given.
    pub fn permits(&self, path: &str) -> bool {
        self.policy.shows(path, self.level)
    }
}
