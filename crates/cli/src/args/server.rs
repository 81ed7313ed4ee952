//! Arguments of `windlass serve`, `windlass attach` and `windlass ps`.

use super::PermissionModeArgs;
use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;
use windlass_protocol::AccessRight;

/// Arguments of `windlass serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ServeCommand>,
    /// Also listen on this address, such as `127.0.0.1:4270`; clients need a token
    ///
    /// An address that other machines can reach needs `--tls-cert`, or `--plain` if a proxy in front
    /// encrypts.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Path of the socket [default: in the data folder]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Folder that sessions may work in; can be repeated [default: the current project]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Vec<PathBuf>,
    /// Name by which clients reach the server, besides `localhost`; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// Certificate chain for TLS, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Accept unencrypted connections on any address: a proxy in front encrypts them
    #[arg(long, conflicts_with = "tls_cert")]
    pub(crate) plain: bool,
    /// Use this model in new sessions
    #[arg(long, short, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// Run as a node of a fleet, with the sessions in this PostgreSQL database
    ///
    /// Any node of the fleet goes on with the sessions of one that ends. All nodes see the folders of
    /// `--root` at the same paths. A password in the URL is visible to other users of this machine:
    /// the variable PGPASSWORD or the file of PGPASSFILE are better places.
    #[arg(long, value_name = "URL")]
    pub(crate) fleet: Option<String>,
    /// URL at which other nodes reach this one [default: the address of `--listen`]
    #[arg(long, value_name = "URL", requires_all = ["fleet", "listen"])]
    pub(crate) fleet_address: Option<String>,
    /// Give each session a clone of its own, in this folder, of the repository that its root was
    /// cloned from
    ///
    /// A session begins with the newest commit of the branch that the root has. What it changes is
    /// pushed to `refs/windlass/` in that repository, from where other nodes restore it. The path is
    /// the same on all nodes; the folder itself is not shared.
    #[arg(long, value_name = "FOLDER", requires = "fleet")]
    pub(crate) checkouts: Option<PathBuf>,
    /// File with the keys that open the API keys of tenants (`windlass fleet key`)
    #[arg(long, value_name = "FILE", requires = "fleet")]
    pub(crate) key_file: Option<PathBuf>,
    /// Store outputs and files of 256 KiB and more in this bucket, such as `s3://bucket/prefix`
    ///
    /// The same on all nodes. The variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and
    /// AWS_ENDPOINT have the credentials and the address.
    #[arg(long, value_name = "URL", requires = "fleet")]
    pub(crate) object_store: Option<String>,
    /// Seconds after which a session that does nothing and has no clients is closed
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) idle_timeout: u64,
    /// Number of sessions that are open at once
    #[arg(long, value_name = "N", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) capacity: u32,
    #[command(flatten)]
    pub(crate) mode_args: PermissionModeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServeCommand {
    /// Manage the tokens of clients that connect over TCP
    #[command(subcommand)]
    Token(ServeTokenCommand),
    /// Stop the server that runs; turns under way resume when it starts again
    Stop,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServeTokenCommand {
    /// Create a token and print it; it is not shown again
    Add {
        /// Name of the token, which sessions show as the author
        name: String,
        /// Rights of the token
        #[arg(long, value_enum, default_value_t = RightArg::Write)]
        right: RightArg,
        /// Days until the token expires
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3650))]
        days: Option<u32>,
    },
    /// List tokens, without their secrets
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token; its connections end at once
    Revoke {
        /// Name of the token
        name: String,
    },
}

/// Rights of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RightArg {
    /// Read and watch sessions
    Read,
    /// Also work in sessions
    Write,
    /// Also leave the sandbox, trust folders, and save API keys
    Admin,
}

impl From<RightArg> for AccessRight {
    fn from(right: RightArg) -> AccessRight {
        match right {
            RightArg::Read => AccessRight::Read,
            RightArg::Write => AccessRight::Write,
            RightArg::Admin => AccessRight::Admin,
        }
    }
}

/// Arguments of `windlass attach`.
#[derive(Debug, clap::Args)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    pub(crate) server: ServerAddressArgs,
    /// Open the last session of the folder
    #[arg(long, short)]
    pub(crate) r#continue: bool,
    /// Open a session: its ID, or at least 4 of its first or last characters
    #[arg(long, short, visible_alias = "resume", value_name = "ID", conflicts_with = "continue")]
    pub(crate) session: Option<String>,
    /// Use this model in the session that is opened, and in new ones
    #[arg(long, short, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// Use this agent in new sessions
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Send this prompt on start
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// Print plain lines one after another, for screen readers and simple terminals
    #[arg(long)]
    pub(crate) linear: bool,
}

/// The server to connect to.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ServerAddressArgs {
    /// URL or socket of the server [default: the socket in the data folder]
    #[arg(id = "server", value_name = "URL|PATH")]
    pub(crate) address: Option<String>,
    /// File with the token, for a URL [default: the environment variable WINDLASS_TOKEN]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Folder of the server to work in [default: the current project, or the server's first folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<String>,
}

/// Arguments of `windlass ps`.
#[derive(Debug, clap::Args)]
pub(crate) struct PsArgs {
    #[command(flatten)]
    pub(crate) server: ServerAddressArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
