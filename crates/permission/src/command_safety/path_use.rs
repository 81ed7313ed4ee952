//! The kind of access to a path, and the rules about it.

/// The kind of access to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum PathUse {
    Read,
    Write,
}

/// Returns the permission keys (`read`, `edit`) of the rules about an access to a file.
pub(super) fn rule_keys(path_use: PathUse) -> &'static [&'static str] {
    match path_use {
        PathUse::Read => &["read"],
        PathUse::Write => &["edit", "read"],
    }
}
