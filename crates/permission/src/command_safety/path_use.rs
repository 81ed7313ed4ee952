//! The kind of access to a path, and the rules about it.

use super::risk::Risk;

/// The kind of access to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PathUse {
    Read,
    Write,
}

impl PathUse {
    /// Returns the risk of an access to an unknown path, which the sandbox confines.
    pub(super) fn confined_risk(self) -> Risk {
        match self {
            PathUse::Read => Risk::ConfinedRead,
            PathUse::Write => Risk::WorkspaceWrite,
        }
    }
}

/// Returns the permission keys (`read`, `edit`) of the rules about an access to a file.
pub(super) fn rule_keys(path_use: PathUse) -> &'static [&'static str] {
    match path_use {
        PathUse::Read => &["read"],
        PathUse::Write => &["edit", "read"],
    }
}
