//! Arguments of `windlass permission`.

use super::{OutputFormat, mode_parser};
use clap::{Subcommand, ValueEnum};
use windlass_protocol::PermissionMode;

#[derive(Debug, Subcommand)]
pub(crate) enum PermissionCommand {
    /// List the rules in effect with their origin, and your saved approvals for this project
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Approve something in this project in advance, for runs without a user
    Approve {
        /// Access to approve
        #[arg(value_enum)]
        access: ApprovableAccess,
    },
    /// Revoke a saved approval of this project
    Revoke {
        /// Number of the approval in `windlass permission list`
        #[arg(required_unless_present = "all")]
        number: Option<usize>,
        /// Revoke all saved approvals of this project
        #[arg(long, conflicts_with = "number")]
        all: bool,
    },
    /// Show which recorded calls other rules would decide differently, without running anything
    Rehearse {
        /// A config file, or a JSON object with `permission`
        #[arg(value_name = "RULES_FILE")]
        file: String,
        /// Only the sessions of this project [default: all sessions]
        #[arg(long)]
        project: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Explain whether a command would be allowed, part by part, without running it
    Explain {
        /// The shell command, quoted as one argument
        command: String,
        /// Output format
        #[arg(long, short, value_enum, default_value_t = OutputFormat::Text)]
        output: OutputFormat,
        /// Project folder [default: the project of the current folder]
        #[arg(long, value_name = "DIR")]
        workspace: Option<std::path::PathBuf>,
        /// Permission mode [default: the mode in the config]
        #[arg(long, value_name = "MODE", value_parser = mode_parser())]
        mode: Option<PermissionMode>,
        /// Agent that would run the command [default: build]
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
    },
}

/// Access that can be approved in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApprovableAccess {
    /// Downloads of commands from package registries
    Registries,
}
