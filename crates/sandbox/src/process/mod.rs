//! Long-running processes that answer calls, such as MCP servers, language servers and custom
//! tools.

#[cfg(target_os = "linux")]
pub(crate) mod handle;
pub(crate) mod spec;
#[cfg(target_os = "linux")]
pub(crate) mod start;
