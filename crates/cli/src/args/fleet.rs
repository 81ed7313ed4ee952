//! Arguments of `windlass fleet`.

use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;
use std::str::FromStr;
use windlass_protocol::{AccessRight, Cost};

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
    /// List the answers of users to permission requests and questions, the latest first
    Audit {
        /// Only those of this tenant
        tenant: Option<String>,
        /// Only those of the last days
        #[arg(long, value_name = "N", default_value_t = 7)]
        #[arg(value_parser = clap::value_parser!(u32).range(1..=3650))]
        days: u32,
        /// Maximum number of answers
        #[arg(long, value_name = "N", default_value_t = 1000)]
        limit: u32,
        /// Print JSON, with the facts of the log
        #[arg(long)]
        json: bool,
    },
    /// Measure nodes and their database with sessions whose model costs nothing
    ///
    /// Without `--node`, prints a config for the nodes. Use an empty database and nodes of their own:
    /// their sessions write into the folder of the nodes, and stay in the database.
    Load(LoadArgs),
    /// Manage tenants: teams that see nothing of each other
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// Manage the users of tenants
    #[command(subcommand)]
    User(UserCommand),
    /// Manage the tokens of users, which work at every node
    #[command(subcommand)]
    Token(UserTokenCommand),
    /// Manage the API keys of tenants, which are sealed with a key file that only the nodes have
    #[command(subcommand)]
    Key(TenantKeyCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TenantKeyCommand {
    /// Let a tenant use its own API key for a provider, instead of that of the nodes
    Set {
        /// Name of the tenant
        tenant: String,
        /// Name of the provider
        provider: String,
        /// File with the keys that seal it, as base64; `openssl rand -base64 32` makes one
        #[arg(long, value_name = "FILE")]
        key_file: PathBuf,
    },
    /// List the API keys of tenants, without the keys
    List {
        /// Only those of this tenant
        tenant: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove the API key of a tenant for a provider
    Remove {
        /// Name of the tenant
        tenant: String,
        /// Name of the provider
        provider: String,
    },
    /// Seal all API keys again, with the first key of the file
    Reseal {
        /// File with the new key in the first line, and the one before in the second
        #[arg(long, value_name = "FILE")]
        key_file: PathBuf,
    },
}

/// Arguments of `windlass fleet load`.
#[derive(Debug, clap::Args)]
pub(crate) struct LoadArgs {
    /// Sessions that work at once
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) sessions: u32,
    /// Requests to the model in the turn of each session
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) steps: u32,
    /// Time of each answer of the model
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = parse_seconds)]
    pub(crate) answer_time: f64,
    /// URL or socket of a node; can be repeated
    #[arg(long, value_name = "URL|PATH")]
    pub(crate) node: Vec<String>,
    /// File with the token, for URLs [default: the environment variable WINDLASS_TOKEN]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Address at which the nodes reach the model
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4279")]
    pub(crate) listen: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=3_600.0).contains(seconds));
    seconds.ok_or_else(|| "a time is a number of seconds, at most 3600".to_owned())
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
    /// Change the folders, limits and policy of a tenant; a limit is a number, or `none`
    ///
    /// Limits are checked before each request to a model, against what all nodes have used until two
    /// seconds ago. So they can be exceeded by what the other nodes use within that time, and tokens
    /// and costs by the requests that are under way.
    #[command(group(clap::ArgGroup::new("change").required(true).multiple(true)))]
    Set(TenantSetArgs),
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

/// Arguments of `windlass fleet tenant set`.
#[derive(Debug, clap::Args)]
pub(crate) struct TenantSetArgs {
    /// Name of the tenant
    pub(crate) name: String,
    /// Folder that its sessions may work in; can be repeated
    #[arg(long, value_name = "FOLDER", group = "change")]
    pub(crate) root: Vec<PathBuf>,
    /// File with a policy for its sessions, like the managed policy of a machine, or `none`
    ///
    /// A policy can only tighten: rules, the least strict mode, and the sandbox. Open sessions get it at once.
    #[arg(long, value_name = "FILE", group = "change")]
    pub(crate) policy: Option<String>,
    /// Sessions that are open at once
    #[arg(long, value_name = "N", group = "change")]
    pub(crate) max_open_sessions: Option<LimitArg<u64>>,
    /// Requests to models on a day (UTC)
    #[arg(long, value_name = "N", group = "change")]
    pub(crate) max_steps_per_day: Option<LimitArg<u64>>,
    /// Tokens on a day (UTC)
    #[arg(long, value_name = "N", group = "change")]
    pub(crate) max_tokens_per_day: Option<LimitArg<u64>>,
    /// Cost on a day (UTC), in dollars, as far as prices are known
    #[arg(long, value_name = "USD", group = "change")]
    pub(crate) max_cost_per_day: Option<LimitArg<Cost>>,
    /// Cost in a month (UTC), in dollars, as far as prices are known
    #[arg(long, value_name = "USD", group = "change")]
    pub(crate) max_cost_per_month: Option<LimitArg<Cost>>,
}

/// A limit, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitArg<T>(pub(crate) Option<T>);

impl<T> LimitArg<T> {
    fn parse(text: &str, value: impl FnOnce(&str) -> Result<T, String>) -> Result<Self, String> {
        match text {
            "none" => Ok(LimitArg(None)),
            text => Ok(LimitArg(Some(value(text)?))),
        }
    }
}

impl FromStr for LimitArg<u64> {
    type Err = String;

    fn from_str(text: &str) -> Result<LimitArg<u64>, String> {
        let is_invalid = |_| "a limit is a number, or `none`".to_owned();
        LimitArg::parse(text, |text| text.parse().map_err(is_invalid))
    }
}

impl FromStr for LimitArg<Cost> {
    type Err = String;

    fn from_str(text: &str) -> Result<LimitArg<Cost>, String> {
        LimitArg::parse(text, super::parse_dollars)
    }
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
