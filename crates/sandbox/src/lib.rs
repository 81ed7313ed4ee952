//! The only door to files on a model's behalf, opened exactly as wide as a grant.
//!
//! It does not decide; `permission` does. It keeps the invariant that what is opened is what was
//! granted: a path is resolved beneath the workspace's directory handle, checked against the
//! grant, and then opened part by part without following a single symbolic link, so that swapping
//! a folder for a link in between leads nowhere. Start reading at [`Workspace`].

mod error;
mod workspace;
mod world;

pub use error::Error;
pub use workspace::Workspace;
pub use world::{Entry, World};
