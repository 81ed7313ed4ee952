//! Sessions: `session` decides, `driver` does.
//!
//! Nothing here knows a wire format, a database or a particular tool; nothing in `session` even
//! knows the time. It keeps the invariant that a session's state is the fold of its log: the same
//! function takes in a fact whether it was just decided or read back after a crash. Start reading
//! at [`session::Session::apply`], then [`driver`], the only loop.

mod changes;
pub mod driver;
mod host;
mod link;
pub mod session;
mod watch;

pub use driver::Handle;
pub use host::{Asked, Engine, Memory, Settings};
pub use watch::Watcher;
