//! JSON pointers: joining and splitting.

/// Returns the pointer to the member `name` of the value at `parent`.
pub(crate) fn join(parent: &str, name: &str) -> String {
    format!("{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Splits a pointer into names, with `~0` and `~1` unescaped.
pub(crate) fn segments(pointer: &str) -> impl Iterator<Item = String> + '_ {
    pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~"))
}
