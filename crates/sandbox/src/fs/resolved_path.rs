//! A resolved path, ready to be opened.

use cap_std::fs::Dir;

/// A resolved path with an open handle of its folder, and the name in it.
pub(crate) struct ResolvedPath {
    pub(crate) path: String,
    pub(crate) parent: Dir,
    pub(crate) name: String,
}
