//! OAuth for MCP servers: the login in the browser and the stored tokens.

pub(crate) mod login;
pub(crate) mod tokens;
