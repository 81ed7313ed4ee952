//! Arguments of `windlass fleet`.

use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;
use windlass_protocol::AccessRight;

/// Arguments of `windlass fleet`.
#[derive(Debug, clap::Args)]
pub(crate) struct FleetArgs {
    /// The database of the fleet [default: the environment variable WINDLASS_FLEET]
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) database: Option<String>,
    #[command(subcommand)]
    pub(crate) command: FleetCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Create the tables of the fleet, or bring them up to date; nodes do so, too
    Migrate,
    /// Show the nodes, what waits for them, and whether the database has a standby
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Ask a node to stop; the other nodes go on with its sessions
    Drain {
        /// ID of the node, or its first characters
        node: String,
    },
    /// Manage tenants: teams that see nothing of each other
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// Manage the users of tenants
    #[command(subcommand)]
    User(UserCommand),
    /// Manage the tokens of users, which work at every node
    #[command(subcommand)]
    Token(UserTokenCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    /// Add a tenant
    Add {
        /// Name of the tenant
        name: String,
        /// Folder that its sessions may work in; can be repeated
        #[arg(long, value_name = "FOLDER", required = true)]
        root: Vec<PathBuf>,
    },
    /// List tenants
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change the folders of a tenant
    Set {
        /// Name of the tenant
        name: String,
        /// Folder that its sessions may work in; can be repeated
        #[arg(long, value_name = "FOLDER", required = true)]
        root: Vec<PathBuf>,
    },
    /// Disable a tenant: its sessions are closed, and its tokens do not work
    Disable {
        /// Name of the tenant
        name: String,
    },
    /// Enable a tenant again
    Enable {
        /// Name of the tenant
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Add a user, or change the right of one
    Add {
        /// The user
        #[arg(value_name = "TENANT/USER", value_parser = parse_user)]
        user: UserName,
        /// The most that its tokens may do
        #[arg(long, value_enum, default_value_t = UserRightArg::Write)]
        right: UserRightArg,
    },
    /// List users
    List {
        /// Only those of this tenant
        tenant: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Disable a user: its tokens do not work
    Disable {
        /// The user
        #[arg(value_name = "TENANT/USER", value_parser = parse_user)]
        user: UserName,
    },
    /// Enable a user again
    Enable {
        /// The user
        #[arg(value_name = "TENANT/USER", value_parser = parse_user)]
        user: UserName,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum UserTokenCommand {
    /// Create a token and print it; it is not shown again
    Add {
        /// The user
        #[arg(value_name = "TENANT/USER", value_parser = parse_user)]
        user: UserName,
        /// Name of the token, for example that of a device
        name: String,
        /// Rights of the token, at most those of the user
        #[arg(long, value_enum, default_value_t = UserRightArg::Write)]
        right: UserRightArg,
        /// Days until the token expires
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3650))]
        days: Option<u32>,
    },
    /// List tokens, without their secrets
    List {
        /// Only those of this tenant
        tenant: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token; its connections end within seconds
    Revoke {
        /// The user
        #[arg(value_name = "TENANT/USER", value_parser = parse_user)]
        user: UserName,
        /// Name of the token
        name: String,
    },
}

/// Rights of a user. What changes the server itself stays with its operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum UserRightArg {
    /// Read and watch sessions
    Read,
    /// Also work in sessions
    Write,
}

impl From<UserRightArg> for AccessRight {
    fn from(right: UserRightArg) -> AccessRight {
        match right {
            UserRightArg::Read => AccessRight::Read,
            UserRightArg::Write => AccessRight::Write,
        }
    }
}

/// A user of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserName {
    pub(crate) tenant: String,
    pub(crate) user: String,
}

fn parse_user(text: &str) -> Result<UserName, String> {
    match text.split_once('/') {
        Some((tenant, user)) if !tenant.is_empty() && !user.is_empty() => {
            Ok(UserName { tenant: tenant.to_owned(), user: user.to_owned() })
        }
        _ => Err("a user is written as TENANT/USER".to_owned()),
    }
}
