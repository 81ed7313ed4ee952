//! The only door to files on a model's behalf, opened exactly as wide as a grant.
//!
//! It does not decide; `permission` does. It keeps the invariant that what is opened is what was
//! granted: a path is resolved beneath the workspace's directory handle, checked against the
//! grant, and then opened part by part without following a single symbolic link, so that swapping
//! a folder for a link in between leads nowhere; and that nothing changes before it is on record.
//! Start reading at [`Workspace`].

mod beneath;
mod cage;
mod change;
mod command;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod engage;
mod environment;
mod errand;
mod error;
mod ground;
#[cfg(target_os = "linux")]
mod held;
mod hold;
mod ignored;
#[cfg(target_os = "linux")]
mod jobs;
#[cfg(target_os = "linux")]
mod keeper;
mod memory;
pub mod own;
mod page;
mod passage;
mod proxy;
mod servant;
#[cfg(target_os = "linux")]
mod shell;
mod spare;
mod suggest;
mod swap;
#[cfg(target_os = "linux")]
mod task;
#[cfg(target_os = "linux")]
mod trail;
mod tree;
#[cfg(target_os = "linux")]
mod way;
mod workspace;
mod world;

pub use cage::{
    Backend, Cage, Entered, Network, Probe, Snapshot, changed, explain, guarded, probe, secrets,
    snapshot,
};
#[cfg(target_os = "linux")]
pub use cage::{Door, Inside};
pub use change::{Content, End, LARGEST, Ledger, Pending, Rewrite, settle_down};
pub use command::{
    Ending, Exit, Glimpse, Heard, News, Piece, Reach, Reached, Running, Shell, Start, Stdin, Word,
};
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Held, Task, keeper};
pub use environment::{Hooks, Surroundings, environment};
pub use errand::{ERRAND, errand, version};
pub use error::Error;
pub use ground::{Ground, Walls};
#[cfg(target_os = "linux")]
pub use held::Held;
#[cfg(target_os = "linux")]
pub use jobs::{Job, Jobs, Order};
#[cfg(target_os = "linux")]
pub use keeper::keeper;
pub use page::open_page;
pub use passage::Passage;
#[doc(hidden)]
pub use proxy::Names;
pub use proxy::is_public;
pub use proxy::{Decided, HostError, Hosts, Proxy, Ruling};
pub use servant::{Engaged, Hold, Inlet, Keep, Outlet, Servant};
#[cfg(target_os = "linux")]
pub use task::Task;
pub use tree::{Found, Tree, Wanted};
pub use workspace::{Glance, Workspace};
pub use world::{Entry, World};
