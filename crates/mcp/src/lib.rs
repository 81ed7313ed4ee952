//! The Model Context Protocol: other people's servers as tools here, and our tools as a server there.
//!
//! It reads no file and no environment: whoever uses it says what to start or reach, and keeps what
//! is to be kept. It keeps the invariant that nothing runs for a server but through the toolkit's
//! berth, and that a definition nobody looked at is asked about. Start reading at [`Servers`], then
//! [`serve`] for the other side.

mod call;
mod content;
mod elicit;
mod link;
mod list;
mod listen;
mod login;
mod pipe;
mod prompt;
mod remote;
mod resource;
pub mod serve;
mod server;
mod servers;
mod shelf;
mod spec;
mod tokens;
mod tool;
mod wire;

pub use login::Login;
pub use prompt::PromptCard;
pub use servers::{Change, Listing, Servers};
pub use spec::{Keeping, Lifecycle, Pinned, PinnedTool, Spec, Way};
pub use tokens::{Auth, OAuth, Tokens};
pub use wire::{Reach, Trouble, transport, transport_within, trouble};
