//! Command line arguments: one `clap` definition for parsing, help, completions and the man page.

mod fleet;
mod help;
mod import;
mod mcp;
mod permission;
mod plugin;
mod server;
mod session;
mod tui;

pub(crate) use fleet::{
    FleetArgs, FleetCommand, LoadArgs, TenantCommand, TenantKeyCommand, TenantSetArgs, UserCommand,
    UserName, UserTokenCommand,
};
pub(crate) use help::{command, parse, unknown_command_message};
pub(crate) use import::{ImportArgs, ImportProgramArg};
pub(crate) use mcp::{McpAddArgs, McpCommand, McpServeArgs};
pub(crate) use permission::{ApprovableAccess, PermissionCommand};
pub(crate) use plugin::{MarketplaceCommand, PluginCommand};
pub(crate) use server::{
    AttachArgs, PsArgs, ServeArgs, ServeCommand, ServeTokenCommand, ServerAddressArgs,
};
pub(crate) use session::SessionCommand;
pub(crate) use tui::{InitArgs, TuiArgs};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use windlass_project::ConfigFlags;
use windlass_protocol::{Cost, PermissionMode, PromptLimits};

/// Help text that explains the exit codes of a run ([`crate::CliExit`]).
const EXIT_CODES_HELP: &str = "Exit codes:
    0  success
    1  failed: model, network or storage error, or the answer does not match the schema
    2  not started: invalid argument, config or session log
    3  denied: you denied an action, or the last one required approval and no user was available
    4  stopped: a limit was reached (model output, or requests, time, tokens or cost of a turn),
       or the model was stuck in a loop
  130  interrupted";

/// Help text that explains the exit codes of `windlass tool call`.
const TOOL_EXIT_CODES_HELP: &str = "Exit codes:
    0  success
    1  failed: the tool reported an error
    2  not started: invalid argument or config
    3  denied: you denied an action, or it required approval and no user was available
  130  interrupted";

/// A coding agent for the terminal. A model works on this project with tools; Windlass asks before
/// risky actions, sandboxes commands and records every step
///
/// Without a command, opens the interactive terminal UI.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, max_term_width = 100)]
pub(crate) struct CliArgs {
    /// Work in this folder
    #[arg(id = "cd", short = 'C', long = "cd", value_name = "DIR", global = true)]
    pub(crate) folder: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tui: TuiArgs,
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Send a prompt to the model and print what it does
    #[command(after_help = EXIT_CODES_HELP)]
    Run(Box<RunArgs>),
    /// Let the model analyze this project and write `AGENTS.md`, its instructions for later
    /// sessions
    ///
    /// The model may change only that file and runs no commands. An existing `AGENTS.md` is
    /// improved.
    #[command(after_help = EXIT_CODES_HELP)]
    Init(InitArgs),
    /// Manage sessions
    #[command(subcommand)]
    Session(SessionCommand),
    /// Run a server whose sessions go on without a terminal; `windlass attach` connects to it
    ///
    /// It listens on a socket that only you can open. With `--listen`, also on a TCP address, for
    /// clients with a token.
    #[command(args_conflicts_with_subcommands = true)]
    Serve(Box<ServeArgs>),
    /// Open the terminal UI on a server: on this machine, or at a URL
    Attach(AttachArgs),
    /// List the sessions that are open in a server, those that wait for you first
    Ps(PsArgs),
    /// Manage a fleet of servers: its nodes, tenants, users and tokens
    ///
    /// The nodes are servers with `--fleet`. These commands talk to their database only.
    Fleet(FleetArgs),
    /// List tools, and call them without a model
    #[command(subcommand)]
    Tool(ToolCommand),
    /// List agents, built-in and from files
    #[command(subcommand)]
    Agent(AgentCommand),
    /// Manage API keys (stored in the keyring or in a file that only you can read)
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Manage MCP (Model Context Protocol) servers, or serve this project's tools over MCP
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Import settings from OpenCode or Claude Code, after showing what would change
    ///
    /// Imports config, agents, commands, skills, tools, servers, hooks and rules into your config
    /// folder, or with `--project` into this project's. Overwrites nothing and runs nothing. Lists
    /// everything that is not imported, with the reason.
    Import(ImportArgs),
    /// Manage plugins: folders with skills, commands, agents, servers, hooks and tools
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// List models with context size, price per million tokens and capabilities
    Models {
        /// List only the models of this provider
        provider: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show usage over time: days, models, tools and cost, of all sessions
    Stats {
        /// Count only the last N days, including today
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        days: Option<u32>,
        /// Print JSON; costs are in millionths of a US dollar
        #[arg(long)]
        json: bool,
    },
    /// Show the config
    Config {
        #[command(subcommand)]
        command: Option<ConfigCommand>,
    },
    /// Show and revoke permissions in this project
    #[command(subcommand)]
    Permission(PermissionCommand),
    /// Trust this folder in its current state, after showing what it would make Windlass run or
    /// follow
    ///
    /// This covers `windlass.jsonc`, `.mcp.json` and everything in `.windlass`. All of it is
    /// ignored until you trust the folder, and again whenever any of it changes; the difference is
    /// shown then. Even a trusted project can only tighten permissions and never uses your API
    /// keys.
    ///
    /// `AGENTS.md` is read once you trust the folder; changes to it do not end trust. Trusting also
    /// makes `auto` the default mode: edits in the folder and sandboxed commands run without
    /// asking.
    Trust(TrustArgs),
    /// Check the installation: terminal, sandbox, model and API key, language servers, disk, config
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Repair a damaged session log: save everything that can be read to a new database
        #[arg(long, conflicts_with = "json")]
        repair: bool,
    },
    /// Print a published JSON Schema
    Schema {
        /// The schema to print
        which: SchemaKind,
    },
    /// Print shell completions
    Completions {
        /// The shell to print completions for
        shell: clap_complete::Shell,
    },
    /// Print the man page
    Man,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The prompt; standard input is added to it, or is the prompt if it is missing or `-`
    pub(crate) prompt: Option<String>,
    /// Run a custom command: NAME.md in `commands` of your config folder, or in
    /// `.windlass/commands` of a trusted project
    ///
    /// PROMPT becomes its arguments. SERVER:NAME runs a prompt of an MCP server, with PROMPT as
    /// `argument=value …`.
    #[arg(long, value_name = "NAME")]
    pub(crate) command: Option<String>,
    /// Use this model; further ones after commas take over if it fails
    #[arg(long, short, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// Use this model for summaries of a long conversation
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) small_model: Option<String>,
    /// Use this agent in the new session; see `windlass agent list`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["session", "continue"])]
    pub(crate) agent: Option<String>,
    /// Use this variant of the model: another set of options from the config
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    /// Offer only these tools, separated by commas; `*` at the end of a name matches the rest
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) tools: Vec<String>,
    /// Do not offer this tool; can be repeated
    #[arg(long = "no-tool", value_name = "NAME")]
    pub(crate) no_tools: Vec<String>,
    /// Attach a text file, an image or a PDF; can be repeated
    #[arg(long, short, value_name = "FILE")]
    pub(crate) file: Vec<String>,
    /// Require an answer that matches the JSON Schema in FILE; prints only that JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<String>,
    /// Append this text to the system prompt; `@FILE` reads it from a file. In a resumed session it
    /// applies to this run
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Resume a session, after finishing any unfinished turn
    #[arg(long, short, visible_alias = "resume", value_name = "ID", conflicts_with = "continue")]
    pub(crate) session: Option<String>,
    /// Resume the last session of this folder
    #[arg(long, short)]
    pub(crate) r#continue: bool,
    /// Continue until this shell command succeeds, within the limits
    ///
    /// It runs whenever the model is done, like a command of yours: under your rules, in the
    /// sandbox, and recorded in the session. The model gets its output.
    #[arg(long, value_name = "COMMAND", conflicts_with = "goal")]
    pub(crate) until: Option<String>,
    /// Continue until a model judges that this condition is met, within the limits
    #[arg(long, value_name = "CONDITION")]
    pub(crate) goal: Option<String>,
    /// Output format: the answer, one JSON object at the end, or every event as a JSON line
    #[arg(long, short, value_enum, default_value_t = RunOutputFormat::Text)]
    pub(crate) output: RunOutputFormat,
    /// Approve everything without asking, except leaving the sandbox
    ///
    /// Only a user at the terminal can approve leaving the sandbox. What a rule denies stays
    /// denied.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Run in a server: the one of this machine, or at a URL or socket
    ///
    /// The server's config applies: its tools, sandbox and system prompt. The turn goes on there if
    /// this command ends.
    #[arg(
        long,
        value_name = "URL|PATH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with_all = [
            "command", "small_model", "tools", "no_tools", "system", "sandbox", "add_dir",
        ]
    )]
    attach: Option<String>,
    /// With --attach: file with the token, for a URL [default: the variable WINDLASS_TOKEN]
    #[arg(long, value_name = "FILE", requires = "attach")]
    token_file: Option<PathBuf>,
    /// With --attach: folder of the server to work in [default: the current project]
    #[arg(long, value_name = "DIR", requires = "attach")]
    workspace: Option<String>,
    #[command(flatten)]
    pub(crate) mode_args: PermissionModeArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

impl RunArgs {
    /// Returns the server of `--attach`, if it is given.
    pub(crate) fn server_address(&self) -> Option<ServerAddressArgs> {
        let attach = self.attach.clone()?;
        let address = Some(attach).filter(|address| !address.is_empty());
        let token_file = self.token_file.clone();
        let workspace = self.workspace.clone();
        Some(ServerAddressArgs { address, token_file, workspace })
    }
}

/// Limits that end a turn, finished or not.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct LimitArgs {
    /// Stop after N model requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// Stop when the cost reaches this amount, in US dollars
    #[arg(long, value_name = "DOLLARS", value_parser = parse_dollars)]
    pub(crate) max_cost: Option<Cost>,
    /// Stop after N tokens, input and output together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: Option<u64>,
    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    timeout: Option<u64>,
}

impl LimitArgs {
    /// Converts the flags to limits of one prompt.
    pub(crate) fn to_prompt_limits(self) -> PromptLimits {
        PromptLimits {
            steps: self.max_steps,
            time_ms: self.timeout.map(|seconds| seconds.saturating_mul(1000)),
            tokens: self.max_tokens,
            cost: self.max_cost,
        }
    }

    /// Converts the flags to `TurnLimits`, with defaults for missing ones.
    pub(crate) fn to_turn_limits(self) -> windlass_engine::session::TurnLimits {
        let defaults = windlass_engine::session::TurnLimits::default();
        windlass_engine::session::TurnLimits {
            steps: self.max_steps.unwrap_or(defaults.steps),
            time_ms: self.timeout.map(|seconds| seconds.saturating_mul(1000)).or(defaults.time_ms),
            tokens: self.max_tokens.or(defaults.tokens),
            cost: self.max_cost.or(defaults.cost),
            ..defaults
        }
    }
}

/// Parses an amount in dollars, such as `0.50`.
fn parse_dollars(text: &str) -> Result<Cost, String> {
    const MAX_DOLLARS: f64 = 1e9;
    let amount: f64 =
        text.parse().map_err(|_| "invalid amount; use a number such as 0.50".to_owned())?;
    if !(0.000_001..=MAX_DOLLARS).contains(&amount) {
        return Err("the amount must be greater than 0, such as 0.50".to_owned());
    }
    Ok(Cost((amount * 1e6).round() as u64))
}

/// Permission settings for this run only. The managed policy of the machine takes precedence.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PermissionModeArgs {
    /// Permission mode: `plan`, `ask`, `auto` or `full`
    ///
    /// `plan`: read only, nothing in the project changes. `ask`: reading is allowed, everything
    /// else needs approval. `auto`: also allows edits in the project, and commands that stay in the
    /// project and in the sandbox. `full`: allows everything that is not denied. Default: the mode
    /// in the config; without one, `auto` in a trusted folder if a sandbox is available, otherwise
    /// `ask`.
    #[arg(long, value_name = "MODE", value_parser = mode_parser())]
    pub(crate) mode: Option<PermissionMode>,
    /// Run commands in a sandbox. WARNING: with `off`, commands have full access to your account:
    /// they can read your keys, change any of your files and reach the network
    #[arg(long, value_enum)]
    pub(crate) sandbox: Option<OnOff>,
    /// Let tools and commands also use this folder, like the project; can be repeated
    #[arg(long, value_name = "FOLDER")]
    pub(crate) add_dir: Vec<PathBuf>,
}

impl PermissionModeArgs {
    /// Converts the flags to `ConfigFlags`, together with the chosen model.
    pub(crate) fn to_config_flags(&self, model: Option<String>) -> ConfigFlags {
        let absolute = |folder: &PathBuf| {
            let path = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
            path.to_string_lossy().into_owned()
        };
        let additional_directories = self.add_dir.iter().map(absolute).collect();
        let sandbox = self.sandbox.map(|switch| match switch {
            OnOff::On => true,
            OnOff::Off => false,
        });
        ConfigFlags {
            model,
            mode: self.mode,
            sandbox,
            additional_directories,
            ..ConfigFlags::default()
        }
    }
}

/// An `on` or `off` flag value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnOff {
    On,
    Off,
}

fn mode_parser() -> impl TypedValueParser<Value = PermissionMode> {
    PossibleValuesParser::new(PermissionMode::ALL.map(PermissionMode::name))
        .try_map(|name| name.parse::<PermissionMode>())
}

/// Output format of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunOutputFormat {
    /// The answer on standard output, progress on standard error
    Text,
    /// One JSON object at the end
    Json,
    /// The event stream as JSON lines; see `windlass schema events`
    Events,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolCommand {
    /// List the tools offered to a model
    List {
        /// Print JSON with descriptions and schemas
        #[arg(long)]
        json: bool,
    },
    /// Call a tool yourself; rules and sandbox apply, and commands see your home folder
    #[command(after_help = TOOL_EXIT_CODES_HELP)]
    Call {
        /// Approve everything without asking, except leaving the sandbox
        ///
        /// Only a user at the terminal can approve leaving the sandbox. What a rule denies stays
        /// denied.
        #[arg(long, short)]
        yes: bool,
        /// Output format
        #[arg(long, short, value_enum, default_value_t = RunOutputFormat::Text)]
        output: RunOutputFormat,
        #[command(flatten)]
        mode_args: PermissionModeArgs,
        /// Name of the tool
        name: String,
        /// Arguments as a JSON object; `-` reads them from standard input
        json: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// List agents with their mode, description and origin
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Check and save an API key (typed hidden, or from stdin)
    Login {
        /// Name of the provider
        provider: String,
        /// Save the key without asking the provider if it is valid
        #[arg(long)]
        unchecked: bool,
    },
    /// List providers that have an API key, and where it is stored (keys are not shown)
    List,
    /// Remove the API key of a provider
    Logout {
        /// Name of the provider
        provider: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show all settings in effect and where each comes from (the default; keys are not shown)
    Show,
}

/// Output format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Text for reading
    Text,
    /// One JSON object
    Json,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TrustArgs {
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Trust the folder, but stay in mode ask: approve each edit and command
    #[arg(long)]
    pub(crate) keep_asking: bool,
    /// Stop trusting this folder
    #[arg(long, conflicts_with_all = ["yes", "keep_asking"])]
    pub(crate) revoke: bool,
}

/// The published JSON schemas.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SchemaKind {
    /// Schema of one line of `--output events`
    Events,
    /// Schema of `windlass.jsonc`
    Config,
    /// OpenAPI document of `windlass serve`
    Api,
}
