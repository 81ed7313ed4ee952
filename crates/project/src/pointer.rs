//! JSON pointers: ways to a value.

/// A pointer to a member of what `around` points to.
pub(crate) fn join(around: &str, name: &str) -> String {
    format!("{around}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The names on the way.
pub(crate) fn names(pointer: &str) -> impl Iterator<Item = String> + '_ {
    pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~"))
}
