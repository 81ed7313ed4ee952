//! User-provided programs: custom tools that speak JSON lines, and hooks.
//!
//! The crate reads no files and no environment variables; the caller passes the programs to start.
//! It keeps the invariant that a hook can deny or rewrite but never grant, and that a hook that
//! fails denies. Start reading at [`ToolProcess`], then `custom_tool` for how its responses become
//! tools.

mod custom_tool;
pub mod hook;
mod json_lines;
mod program_limits;
mod program_messages;
pub mod script_runtime;
mod tool_process;
pub mod typescript;

pub use custom_tool::CustomTool;
pub use json_lines::{JsonLinesPeer, MAX_LINE_BYTES, PeerError, RequestExchange};
pub use program_limits::{DeclaredHostPolicy, ProgramLimits, SessionReader};
pub use tool_process::{LaunchSpec, ProgramSource, ToolProcess};
