//! The only door to files on a model's behalf, opened exactly as wide as a grant.
//!
//! It does not decide; `permission` does. It keeps the invariant that what is opened is what was
//! granted: a path is resolved beneath the workspace's directory handle, checked against the
//! grant, and then opened part by part without following a single symbolic link, so that swapping
//! a folder for a link in between leads nowhere; and that nothing changes before it is on record.
//! Start reading at [`Workspace`].

mod beneath;
mod change;
mod errand;
mod error;
mod hold;
mod ignored;
mod spare;
mod suggest;
mod swap;
mod tree;
mod workspace;
mod world;

pub use change::{Content, End, LARGEST, Ledger, Pending, Rewrite, settle_down};
pub use errand::{ERRAND, errand};
pub use error::Error;
pub use tree::{Found, Tree, Wanted};
pub use workspace::Workspace;
pub use world::{Entry, World};
