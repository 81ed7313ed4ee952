//! A resolved path, ready to be opened.

use cap_std::fs::Dir;
use std::path::PathBuf;

/// A resolved path with an open handle of its folder, and the name in it.
pub(crate) struct ResolvedPath {
    /// The path in the form that tools use, see `path_escapes`.
    pub(crate) path: String,
    pub(crate) parent: Dir,
    pub(crate) name: PathBuf,
}
