//! Programs of people's own: custom tools that speak lines of JSON, and hooks.
//!
//! It reads no file and no environment: whoever uses it says what to start. It keeps the invariant
//! that a hook refuses or rewrites and never grants, and that one that fails refuses. Start reading
//! at [`Program`], then `tool` for how its answers become tools.

pub mod hook;
mod lines;
mod program;
mod reply;
pub mod script;
mod terms;
mod tool;

pub use lines::{Broken, Exchange, LONGEST, Lines};
pub use program::{Launch, Program, Shelf};
pub use terms::{Terms, Wishes};
pub use tool::CustomTool;
