//! The built-in tools, one folder each: code, description, schema and cases side by side.
//!
//! A tool here knows its input and its world, never a session or a model. It keeps the invariant
//! that files are reached through the world it is handed and nothing else. Start reading at
//! [`read`]; to add a tool, copy a folder and add a line to [`register`].

pub mod invalid;
pub mod read;
pub mod write;

#[cfg(test)]
mod harness;

use windlass_toolkit::Registry;

/// Puts every built-in tool into a registry.
pub fn register(registry: &Registry) {
    registry.register(invalid::Invalid);
    registry.register(read::Read);
    registry.register(write::Write);
}
