//! The binary: the only crate that names all the others. It reads the command line, puts the
//! parts together, and says with its exit code how it ended. Start reading at [`main`], then
//! `setup` for how the parts fit and `run` for how a turn is shown.

mod agent;
mod args;
mod ask;
mod attach;
mod auth;
mod care;
mod command;
mod desk;
mod doctor;
mod errand;
mod import;
mod init;
mod inquiry;
mod mcp;
mod models;
mod permission;
mod plugin;
mod question;
mod redact;
mod run;
mod screen;
mod serve;
mod session;
mod setup;
mod shape;
mod share;
mod trust;
mod unseen;
mod watching;

use clap::{CommandFactory, Parser};
use setup::{Acts, Setup};
use std::process::ExitCode;
use windlass_project::Flags;
use windlass_protocol::{Millis, Op, Query, Reply, TurnEnd};

/// How a command ended; the numbers are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    NotStarted = 2,
    Denied = 3,
    Limit = 4,
    Interrupted = 130,
}

impl Exit {
    pub(crate) fn of(end: &TurnEnd) -> Exit {
        match end {
            TurnEnd::Done => Exit::Done,
            TurnEnd::Denied => Exit::Denied,
            TurnEnd::Interrupted => Exit::Interrupted,
            TurnEnd::Limit { .. } | TurnEnd::Looped { .. } => Exit::Limit,
            TurnEnd::Failed { .. } => Exit::Failed,
        }
    }
}

fn main() -> ExitCode {
    // Before the command line is understood, so that no help and no completion tells of it.
    if let Some(exit) = errand::run() {
        return ExitCode::from(exit as u8);
    }
    let args = args::Args::parse();
    watching::log();
    let built = match &args.command {
        Some(_) => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        // Whoever types must not wait for whoever works.
        None => {
            tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()
        }
    };
    let runtime = match built {
        Ok(runtime) => runtime,
        Err(error) => {
            screen::error(&format!("the system did not let us start: {error}"));
            return ExitCode::from(Exit::NotStarted as u8);
        }
    };
    let exit = runtime.block_on(dispatch(args)).unwrap_or_else(|error| {
        screen::error(&words(&error));
        Exit::NotStarted
    });
    let exit = if screen::failed() {
        screen::error("standard output did not take everything; what was written is not complete");
        Exit::Failed
    } else {
        exit
    };
    // File work that is still going on must not keep us, but for changes that are being made.
    windlass_sandbox::settle_down(PATIENCE);
    runtime.shutdown_background();
    ExitCode::from(exit as u8)
}

/// The tools that run commands.
const COMMANDS: &[&str] = &["bash", "job"];

/// What went wrong and why, each said once: what causes an error is often part of its sentence.
pub(crate) fn words(error: &anyhow::Error) -> String {
    error.chain().skip(1).fold(error.to_string(), |told, cause| {
        let cause = cause.to_string();
        if told.contains(&cause) { told } else { format!("{told}: {cause}") }
    })
}

/// How long changes to files that are under way at the end are waited for.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// How many threads work while one of them has the screen.
const WORKERS: usize = 2;

async fn dispatch(args: args::Args) -> anyhow::Result<Exit> {
    let Some(command) = args.command else { return desk::open(args.screen).await };
    match command {
        args::Command::Run(args) => run::run(*args).await,
        args::Command::Session(command) => session::session(command).await,
        args::Command::Tool(args::Tool::List { json }) => list_tools(json).await,
        args::Command::Tool(args::Tool::Call { yes, output, bounds, name, json }) => {
            let manner = run::Manner { output, yes, shape: None, mode: None };
            let arguments = if json == "-" { run::read_input()? } else { json };
            let acts = if COMMANDS.contains(&name.as_str()) { Acts::Commands } else { Acts::Files };
            let op = Op::Call { tool: name, arguments };
            let engine = Setup::read(bounds.flags(None))?.host_for(acts).await?;
            run::turn(&engine, None, Some(op), manner).await
        }
        args::Command::Agent(args::Agent::List { json }) => agent::list(json),
        args::Command::Auth(command) => auth::auth(&command),
        args::Command::Mcp(command) => mcp::mcp(command).await,
        args::Command::Import(args) => import::import(&args),
        args::Command::Plugin(command) => plugin::plugin(command).await,
        args::Command::Models { provider, json } => models::list(provider.as_deref(), json),
        args::Command::Config(args::Config::Show) => show_config(),
        args::Command::Permission(command) => permission::permission(command),
        args::Command::Trust(args) => trust::trust(&args),
        args::Command::Doctor { json } => doctor::doctor(json).await,
        args::Command::Init(args) => init::init(args).await,
        args::Command::Schema { which } => {
            let schema = match which {
                args::Schema::Events => windlass_protocol::event::schema(),
                args::Schema::Config => windlass_project::schema(),
            };
            screen::json(&serde_json::to_string_pretty(&schema)?);
            Ok(Exit::Done)
        }
        args::Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut args::Args::command(), "windlass", &mut text);
            screen::raw(&String::from_utf8_lossy(&text));
            Ok(Exit::Done)
        }
        args::Command::Man => {
            let mut text = Vec::new();
            clap_mangen::Man::new(args::Args::command()).render(&mut text)?;
            screen::raw(&String::from_utf8_lossy(&text));
            Ok(Exit::Done)
        }
    }
}

async fn list_tools(json: bool) -> anyhow::Result<Exit> {
    let engine = Setup::read(Flags::default())?.host_for(Acts::Files).await?;
    if let Reply::Tools { tools } = engine.query(Query::Tools).await? {
        if json {
            screen::json(&serde_json::to_string_pretty(&tools)?);
        } else {
            for tool in tools {
                let first = tool.description.split_inclusive(". ").next().unwrap_or_default();
                screen::line(&format!("{:<12}  {}", tool.name, first.trim_end()));
            }
        }
    }
    Ok(Exit::Done)
}

fn show_config() -> anyhow::Result<Exit> {
    let setup = Setup::read(Flags::default())?;
    for (name, value, origin) in setup.config.shown() {
        screen::line(&format!("{name} = {value}  ({origin})"));
    }
    if let Some((name, _)) = &setup.config.model
        && let Some((provider, model)) = name.split_once('/')
    {
        let provider = auth::own_name(provider);
        for option in setup.config.options(provider, model, None) {
            screen::line(&format!(
                "options.{} = {}  ({})",
                option.name, option.value, option.origin
            ));
        }
    }
    if setup.config.shown().is_empty() {
        let file = setup.places.config.join("windlass.jsonc");
        screen::note(&format!("nothing is set; your config would be {}", file.display()));
    }
    Ok(Exit::Done)
}

#[allow(clippy::disallowed_methods, reason = "a list tells how long ago things were")]
pub(crate) fn now() -> Millis {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Millis(since.unwrap_or_default().as_millis() as u64)
}
