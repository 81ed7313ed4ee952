//! Arguments of `windlass mcp`.

use super::PermissionModeArgs;
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// List servers with their transport, login state and origin in the config
    List {
        /// Connect to each server, and show what it offers or why it does not respond
        #[arg(long, conflicts_with = "json")]
        check: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a server to your config, after showing what it will be able to do, and connect to it
    Add(Box<McpAddArgs>),
    /// Connect to a server and show its tools, including those that differ from what you accepted
    Tools {
        /// Name of the server
        name: String,
        /// Accept all tools as they are now
        #[arg(long)]
        accept: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a server from the config, and its login
    Remove {
        /// Name of the server
        name: String,
    },
    /// Log in to a server in your browser
    Login {
        /// Name of the server
        name: String,
        /// Additional OAuth scope to request, for example one named in a server's error message
        #[arg(long)]
        scope: Option<String>,
    },
    /// Log out of a server: remove its stored tokens
    Logout {
        /// Name of the server
        name: String,
    },
    /// Show a server's log
    Logs {
        /// Name of the server
        name: String,
        /// Number of lines to show
        #[arg(short = 'n', long, default_value_t = 50)]
        lines: usize,
    },
    /// Serve this project's tools to other programs over MCP, under the rules of this project
    ///
    /// Each connection is a session that you can inspect and undo. Calls that need approval are
    /// denied.
    Serve(McpServeArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct McpAddArgs {
    /// Name of the server; its tools are named NAME_TOOL
    pub(crate) name: String,
    /// Add to this project's `windlass.jsonc`, for all users who work on the project and trust it
    #[arg(long)]
    pub(crate) project: bool,
    /// Set an environment variable of the program; `{env:X}` takes the value from your environment
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "url")]
    pub(crate) env: Vec<String>,
    /// Allow the program to connect to this host; `registries` stands for the common package
    /// registries
    #[arg(long, value_name = "HOST", conflicts_with = "url")]
    pub(crate) network: Vec<String>,
    /// Allow the program only to read the project
    #[arg(long, conflicts_with = "url")]
    pub(crate) read_only: bool,
    /// Start timeout in milliseconds
    #[arg(long, value_name = "MS")]
    pub(crate) timeout: Option<std::num::NonZeroU32>,
    /// URL of the server
    #[arg(long, required_unless_present = "command", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// Send this HTTP header; `{env:X}` takes the value from your environment
    #[arg(long, value_name = "NAME: VALUE", requires = "url")]
    pub(crate) header: Vec<String>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// The program and its arguments; `{folder}` is the project folder
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
}

/// Arguments of `windlass mcp serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct McpServeArgs {
    /// Serve over HTTP on this port of 127.0.0.1, at /mcp (0 picks a free port) [default: serve one
    /// client over standard input and output]
    #[arg(long, value_name = "PORT", requires = "token_file")]
    pub(crate) http: Option<u16>,
    /// File with the token that clients send as `Authorization: Bearer TOKEN`; created if missing,
    /// must be readable only by you
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,
    /// Also accept the token as the last path segment, /mcp/TOKEN, for clients that cannot send
    /// headers (paths end up in logs more often than headers)
    #[arg(long, requires = "http")]
    pub(crate) token_in_path: bool,
    /// Serve only these tools
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) tools: Vec<String>,
    #[command(flatten)]
    pub(crate) mode_args: PermissionModeArgs,
}
