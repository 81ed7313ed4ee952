//! The `windlass` binary: the only crate that depends on all the others. It parses the command
//! line, assembles the parts and reports the result in its exit code. Start reading at [`main`],
//! then `setup` for how the parts fit together and `commands::run` for how a turn is printed.

mod args;
mod attachments;
mod checkouts;
mod commands;
mod custom_command;
mod fleet_node;
mod frontend_host;
mod helper_process;
mod html_export;
mod log_file;
mod markdown_export;
mod output_schema;
mod redact;
mod reports;
mod sealed_keys;
mod session_export;
mod session_hub;
mod session_lookup;
mod setup;
mod telemetry;
mod tenant_quota;
mod terminal;
mod workspace_host;

use setup::{EnginePurpose, LoadedProject};
use std::path::Path;
use std::process::ExitCode;
use windlass_project::ConfigFlags;
use windlass_protocol::{
    ClientInfo, ClientKind, DEFAULT_AGENT, QueryReply, SessionOp, SessionQuery, TurnEndReason,
    UnixMillis,
};

/// The exit code of a command; the numbers are part of the public interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CliExit {
    Done = 0,
    Failed = 1,
    NotStarted = 2,
    Denied = 3,
    Limit = 4,
    Interrupted = 130,
}

impl CliExit {
    pub(crate) fn from_turn_end(end: &TurnEndReason) -> CliExit {
        match end {
            TurnEndReason::Completed => CliExit::Done,
            TurnEndReason::Denied => CliExit::Denied,
            TurnEndReason::Interrupted => CliExit::Interrupted,
            TurnEndReason::LimitReached { .. } | TurnEndReason::LoopDetected { .. } => {
                CliExit::Limit
            }
            TurnEndReason::Failed { .. } => CliExit::Failed,
        }
    }
}

fn main() -> ExitCode {
    // Comes before command line parsing, so that neither help nor completions mention helper mode.
    if let Some(exit) = helper_process::run_helper() {
        return ExitCode::from(exit as u8);
    }
    let mut args = args::parse();
    if let Err(error) = enter_folder(&mut args) {
        terminal::output::print_error(&error_chain(&error));
        return ExitCode::from(CliExit::NotStarted as u8);
    }
    telemetry::init_logging(matches!(&args.command, Some(args::CliCommand::Serve(_))));
    let runtime = match &args.command {
        Some(command) if !has_several_threads(command) => {
            tokio::runtime::Builder::new_current_thread().enable_all().build()
        }
        // The user's typing, and other clients, must not wait for the work of a session.
        Some(_) | None => tokio::runtime::Builder::new_multi_thread()
            .worker_threads(WORKER_THREADS)
            .enable_all()
            .build(),
    };
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            terminal::output::print_error(&format!("cannot start the async runtime: {error}"));
            return ExitCode::from(CliExit::NotStarted as u8);
        }
    };
    if let Err(error) = check_thread_limit() {
        terminal::output::print_error(&format!(
            "cannot start threads: {error}. Raise the limit on processes (`ulimit -u`)"
        ));
        return ExitCode::from(CliExit::NotStarted as u8);
    }
    let exit = runtime.block_on(dispatch(args)).unwrap_or_else(|error| {
        terminal::output::print_error(&error_chain(&error));
        CliExit::NotStarted
    });
    let exit = if terminal::output::has_write_failed() {
        terminal::output::print_error(
            "writing to standard output failed; the output is incomplete",
        );
        CliExit::Failed
    } else {
        exit
    };
    // Unfinished file work must not delay the exit, except for writes under way.
    windlass_sandbox::wait_for_writes(WRITES_TIMEOUT);
    runtime.shutdown_background();
    ExitCode::from(exit as u8)
}

/// Returns true for a command whose clients or whose screen must not wait for other work.
fn has_several_threads(command: &args::CliCommand) -> bool {
    matches!(command, args::CliCommand::Serve(_) | args::CliCommand::Attach(_))
}

/// Goes to the folder that the command line names; other words are the first prompt. A single word
/// is probably a mistyped command, which must not cost a request.
fn enter_folder(args: &mut args::CliArgs) -> anyhow::Result<()> {
    if let Some(folder) = &args.folder {
        LoadedProject::enter_folder(folder)?;
    }
    match args.tui.target.take() {
        None => {}
        Some(target) if LoadedProject::is_folder(Path::new(&target)) => {
            LoadedProject::enter_folder(Path::new(&target))?;
        }
        // Not every script has spaces between words.
        Some(target) if target.contains(char::is_whitespace) || !target.is_ascii() => {
            args.tui.prompt = Some(target);
        }
        Some(target) => anyhow::bail!("{}", args::unknown_command_message(&target)),
    }
    Ok(())
}

/// Formats an error with its `chain` of causes. Skips a cause that the message already contains.
pub(crate) fn error_chain(error: &anyhow::Error) -> String {
    error.chain().skip(1).fold(error.to_string(), |message, cause| {
        let cause = cause.to_string();
        if message.contains(&cause) { message } else { format!("{message}: {cause}") }
    })
}

/// Returns the client of the user at this machine, as the log names it.
pub(crate) fn local_client(kind: ClientKind) -> ClientInfo {
    let name = LoadedProject::env_variable("USER").unwrap_or_default();
    ClientInfo { name, kind }
}

/// Maximum time that `main` waits at exit for file writes under way.
const WRITES_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// Runtime worker threads of the terminal UI; the main thread runs the screen in `block_on`.
const WORKER_THREADS: usize = 2;

/// Fails if the user has too many processes: the runtime and SQLite panic if they cannot start a
/// thread.
fn check_thread_limit() -> std::io::Result<()> {
    let gate = std::sync::Mutex::new(());
    std::thread::scope(|scope| {
        let _closed = gate.lock();
        for _ in 0..MIN_THREADS {
            std::thread::Builder::new().spawn_scoped(scope, || drop(gate.lock()))?;
        }
        Ok(())
    })
}

/// Threads that a command needs at the same time: of the runtime, of SQLite, and for jobs.
const MIN_THREADS: usize = 4;

/// Keeps the signal of a reached file-size limit from ending the process, until it is dropped: the
/// write fails instead, and the error says why. Commands get the default again.
#[cfg(unix)]
fn handle_file_size_signal() -> std::io::Result<tokio::signal::unix::Signal> {
    /// `SIGXFSZ` on Linux and macOS.
    const FILE_SIZE_SIGNAL: i32 = 25;
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(FILE_SIZE_SIGNAL))
}

async fn dispatch(args: args::CliArgs) -> anyhow::Result<CliExit> {
    #[cfg(unix)]
    let _file_size_signal = handle_file_size_signal();
    let Some(command) = args.command else { return frontend_host::run_tui(args.tui).await };
    match command {
        args::CliCommand::Run(args) => commands::run::run_prompt(*args).await,
        args::CliCommand::Serve(args) => commands::serve::run_serve(*args).await,
        args::CliCommand::Attach(args) => commands::attach::run_attach(args).await,
        args::CliCommand::Fleet(args) => commands::fleet::run_fleet(args).await,
        args::CliCommand::Ps(args) => commands::ps::run_ps(args).await,
        args::CliCommand::Session(command) => commands::session::run_session(command).await,
        args::CliCommand::Tool(args::ToolCommand::List { json }) => list_tools(json).await,
        args::CliCommand::Tool(args::ToolCommand::Call { yes, output, mode_args, name, json }) => {
            let options = commands::run::RunOptions::new(output, yes);
            let arguments = if json == "-" { commands::run::read_stdin()? } else { json };
            let purpose = match windlass_tools::runs_commands(&name) {
                true => EnginePurpose::Commands,
                false => EnginePurpose::Files,
            };
            let op = SessionOp::CallTool { tool: name, arguments };
            let setup = LoadedProject::load(mode_args.to_config_flags(None))?;
            let engine = setup.build_tool_engine(purpose).await?;
            commands::run::run_turn(&engine, None, Some(op), options).await
        }
        args::CliCommand::Agent(args::AgentCommand::List { json }) => {
            commands::agent::list_agents(json).await
        }
        args::CliCommand::Auth(command) => commands::auth::run_auth(&command).await,
        args::CliCommand::Mcp(command) => commands::mcp::run_mcp(command).await,
        args::CliCommand::Import(args) => commands::import::run_import(&args),
        args::CliCommand::Plugin(command) => commands::plugin::run_plugin(command).await,
        args::CliCommand::Models { provider, json } => {
            commands::models::list_models(provider.as_deref(), json)
        }
        args::CliCommand::Config { command: None | Some(args::ConfigCommand::Show) } => {
            show_config()
        }
        args::CliCommand::Permission(command) => {
            commands::permission::run_permission(command).await
        }
        args::CliCommand::Stats { days, json } => commands::stats::show_stats(days, json).await,
        args::CliCommand::Trust(args) => commands::trust::run_trust(&args),
        args::CliCommand::Doctor { repair: true, .. } => {
            commands::session::maintenance::repair_log().await
        }
        args::CliCommand::Doctor { json, .. } => commands::doctor::run_doctor(json).await,
        args::CliCommand::Init(args) => commands::init::run_init(args).await,
        args::CliCommand::Schema { which } => {
            let schema = match which {
                args::SchemaKind::Events => windlass_protocol::event::event_schema().to_value(),
                args::SchemaKind::Config => windlass_project::config_schema().to_value(),
                args::SchemaKind::Api => windlass_server::openapi_document(),
            };
            terminal::output::print_json(&serde_json::to_string_pretty(&schema)?);
            Ok(CliExit::Done)
        }
        args::CliCommand::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut args::command(), "windlass", &mut text);
            terminal::output::print_raw(&String::from_utf8_lossy(&text));
            Ok(CliExit::Done)
        }
        args::CliCommand::Man => {
            let mut text = Vec::new();
            clap_mangen::Man::new(args::command()).render(&mut text)?;
            terminal::output::print_raw(&String::from_utf8_lossy(&text));
            Ok(CliExit::Done)
        }
    }
}

async fn list_tools(json: bool) -> anyhow::Result<CliExit> {
    let engine = LoadedProject::load(ConfigFlags::default())?
        .build_tool_engine(EnginePurpose::Files)
        .await?;
    if let QueryReply::Tools { tools } = engine.query(SessionQuery::Tools).await? {
        if json {
            terminal::output::print_json(&serde_json::to_string_pretty(&tools)?);
        } else {
            for tool in tools {
                let first_sentence =
                    tool.description.split_inclusive(". ").next().unwrap_or_default();
                terminal::output::print_line(&format!(
                    "{:<12}  {}",
                    tool.name,
                    first_sentence.trim_end()
                ));
            }
        }
    }
    Ok(CliExit::Done)
}

fn show_config() -> anyhow::Result<CliExit> {
    let setup = LoadedProject::load(ConfigFlags::default())?;
    for (name, value, origin) in setup.config.effective_values() {
        terminal::output::print_line(&format!("{name} = {value}  ({origin})"));
    }
    if let Some((name, _)) = &setup.config.model
        && let Some((provider, model)) = name.split_once('/')
    {
        let provider = commands::auth::canonical_name(provider);
        for option in setup.config.model_options(provider, model, Some(DEFAULT_AGENT), None) {
            terminal::output::print_line(&format!(
                "options.{} = {}  ({})",
                option.name, option.value, option.origin
            ));
        }
    }
    if setup.config.effective_values().is_empty() {
        let file = setup.dirs.config.join("windlass.jsonc");
        terminal::output::print_note(&format!(
            "no settings found; create your config at {}",
            file.display()
        ));
    }
    Ok(CliExit::Done)
}

#[allow(clippy::disallowed_methods, reason = "lists show how long ago things happened")]
pub(crate) fn now_millis() -> UnixMillis {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    UnixMillis(since_epoch.unwrap_or_default().as_millis() as u64)
}
