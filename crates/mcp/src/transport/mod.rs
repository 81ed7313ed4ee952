//! Transports to MCP servers: stdio for programs, HTTP for URLs.

pub(crate) mod connection_status;
pub(crate) mod http;
pub(crate) mod stdio;
