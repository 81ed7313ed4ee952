//! Sessions: `session` decides, `driver` does.
//!
//! Nothing here knows a wire format, a database or a particular tool; nothing in `session` even
//! knows the time. It keeps the invariant that a session's state is the fold of its log: the same
//! function takes in a fact whether it was just decided or read back after a crash. Start reading
//! at [`session::Session::apply`], then [`driver`], the only loop.

mod agents;
mod album;
pub mod brief;
mod care;
mod carry;
mod changes;
pub mod driver;
mod host;
mod link;
mod nursery;
mod purse;
mod query;
pub mod session;
pub mod telemetry;
mod watch;

pub use agents::{Role, Worker};
pub use brief::Brief;
pub use care::Point;
pub use carry::Carried;
pub use driver::Handle;
pub use host::{Asked, Engine, Memory, Settings};
pub use watch::Watcher;
