//! Transports to MCP servers: pipes for programs, HTTP for URLs.

pub(crate) mod connection_status;
pub(crate) mod http;
pub(crate) mod json_lines;
