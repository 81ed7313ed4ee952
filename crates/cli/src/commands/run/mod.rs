//! Implements `windlass run` and `windlass tool call`: one turn, watched to its end.

mod attached;
mod printer;
mod run_session;

use crate::args::RunOutputFormat;
use crate::attachments::{self, PromptAttachments, fence_text, read_attachments, read_system_file};
use crate::output_schema::OutputSchema;
use crate::telemetry::TelemetryExport;
use crate::terminal::output;
use crate::{CliExit, session_lookup, setup::EngineOptions, setup::LoadedProject};
use anyhow::{Context, bail};
use printer::TurnPrinter;
pub(crate) use printer::{summarize_arguments, summarize_outcome};
use run_session::RunSession;
use std::io::Read;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use windlass_engine::{Engine, UnattendedPolicy};
use windlass_project::{ConfigFlags, CustomCommand, TemplateShellCommand};
use windlass_protocol::display_text::pluralize;
use windlass_protocol::{
    AgentRole, DEFAULT_AGENT, PermissionMode, PromptDelivery, PromptLimits, PromptSettings,
    QueryReply, SessionId, SessionOp, SessionQuery, Transcript, TurnEndReason, TurnGoal,
};
use windlass_toolkit::UserPresence;

/// Options of `run_turn`: how to print the turn and answer its permission requests.
pub(crate) struct RunOptions {
    pub(crate) output: RunOutputFormat,
    pub(crate) yes: bool,
    /// The schema that the answer must match.
    pub(crate) output_schema: Option<OutputSchema>,
    /// The mode given on the command line; it overrides the stored mode of a resumed session.
    pub(crate) mode: Option<PermissionMode>,
    /// Limits for each prompt of the run, if its session has none itself.
    pub(crate) limits: PromptLimits,
    /// True if the session is in a server, where it goes on after the run.
    pub(crate) is_attached: bool,
}

impl RunOptions {
    /// Returns the options of a run in this process.
    pub(crate) fn new(output: RunOutputFormat, yes: bool) -> RunOptions {
        let (output_schema, mode, limits) = Default::default();
        RunOptions { output, yes, output_schema, mode, limits, is_attached: false }
    }

    /// Returns the settings of each prompt of the run.
    fn prompt_settings(&self) -> PromptSettings {
        PromptSettings {
            limits: self.limits,
            answer_schema: self.output_schema.as_ref().map(|schema| schema.schema.clone()),
            ..PromptSettings::default()
        }
    }

    /// Returns a prompt of the run itself, such as one that asks for a corrected answer.
    fn own_prompt(&self, text: &str) -> SessionOp {
        SessionOp::Prompt {
            text: text.to_owned(),
            attachments: Vec::new(),
            delivery: PromptDelivery::default(),
            settings: self.prompt_settings(),
        }
    }
}

/// Returns the tools of `--tools` and `--no-tool`, as an agent names its tools.
fn offered_tools(only: Vec<String>, without: Vec<String>) -> Vec<(String, bool)> {
    let others = (!only.is_empty()).then(|| ("*".to_owned(), false));
    let only = only.into_iter().map(|name| (name, true));
    let without = without.into_iter().map(|name| (name, false));
    others.into_iter().chain(only).chain(without).collect()
}

/// Runs `windlass run`.
pub(crate) async fn run_prompt(args: crate::args::RunArgs) -> anyhow::Result<CliExit> {
    if let Some(server) = args.server_address() {
        return attached::run_attached(args, server).await;
    }
    let resumes = args.session.is_some() || args.r#continue;
    // A mention in standard input is not the user's.
    let typed = args.prompt.clone().filter(|_| args.command.is_none()).unwrap_or_default();
    let argument = match &args.command {
        Some(_) => args.prompt,
        None => read_prompt(args.prompt, resumes)?,
    };
    let output_schema = args.output_schema.as_deref().map(OutputSchema::read).transpose()?;
    let system = args.system.as_deref().map(read_system_file).transpose()?.unwrap_or_default();
    let has_model = args.model.is_some();
    let small_model = args.small_model;
    let flags = |model| {
        let flags = args.mode_args.to_config_flags(model);
        ConfigFlags { small_model: small_model.clone(), ..flags }
    };
    let mut setup = LoadedProject::load(flags(args.model))?;
    let command = match &args.command {
        Some(name) => crate::custom_command::find_command(&setup, name).await?,
        None => None,
    };
    let command_model = |command| crate::custom_command::command_model(&setup, command);
    let command_model = command.as_ref().and_then(command_model);
    if let Some(model) = command_model.filter(|_| !has_model) {
        setup = LoadedProject::load(flags(Some(model)))?;
    }
    let agent = match args.agent {
        Some(agent) => Some(agent),
        None => command_agent(&setup, command.as_ref()).await?,
    };
    let variant = args.variant.clone();
    let model = setup.choose_model(args.variant.as_deref())?.into_client()?;
    if args.limits.max_cost.is_some() && model.model.price.input.is_none() {
        bail!(
            "cannot apply --max-cost: the price of this model is unknown. Use --max-tokens, or a \
             model with a price in `windlass models`"
        );
    }
    let known_model = model.model.clone();
    let limits = args.limits.to_turn_limits();
    let engine_options = EngineOptions {
        limits,
        extra_system_prompt: if resumes { String::new() } else { system.clone() },
        run_instructions: if resumes { system } else { String::new() },
        agent: agent.clone(),
        variant: args.variant,
        tools: offered_tools(args.tools, args.no_tools),
        user: output::user_presence(args.output),
        approves_calls: args.yes,
        ..EngineOptions::default()
    };
    let engine = setup.build_model_engine(model, engine_options).await?;
    let (prompt, shell_steps, mut settings) = match &args.command {
        Some(name) => {
            let agent = agent.as_deref().unwrap_or(DEFAULT_AGENT);
            let command = (name.as_str(), argument.as_deref());
            let prepared =
                crate::custom_command::expand_command(&setup, &engine, command, agent).await?;
            (Some(prepared.text), prepared.shell_steps, prepared.settings)
        }
        None => (argument, Vec::new(), PromptSettings::default()),
    };
    settings.goal = turn_goal(args.until, args.goal);
    settings.answer_schema = output_schema.as_ref().map(|schema| schema.schema.clone());
    let session = match (&args.session, args.r#continue) {
        (Some(id), _) => Some(session_lookup::find_session(&engine, id).await?),
        (None, true) => Some(session_lookup::last_session(&engine, &setup).await?),
        (None, false) => None,
    };
    let mode = args.mode_args.mode;
    let options = RunOptions { output_schema, mode, ..RunOptions::new(args.output, args.yes) };
    if prompt.is_none() && !args.file.is_empty() {
        bail!("--file needs a prompt, and none was given");
    }
    let store = async |name, bytes| attachments::store_attachment(&engine, name, bytes).await;
    let PromptAttachments { mut attachments, texts } = read_attachments(store, &args.file).await?;
    let model_name = setup.config.model.as_ref().map(|(name, _)| name.as_str());
    // The model of the command line takes the place of the one that the session has on record.
    let chosen_model = model_name.filter(|_| has_model || variant.is_some());
    let chosen_model = chosen_model.map(|name| (name.to_owned(), variant));
    let model = model_name.map(|name| (name, &*known_model));
    let mentioned = attachments::prepare_prompt(&engine, &typed, &attachments, model).await?;
    mentioned.warnings.iter().for_each(|warning| output::print_note(&format!("note: {warning}")));
    attachments.extend(mentioned.attachments);
    let op = prompt.map(|text| {
        let text = text + &texts;
        let delivery = PromptDelivery::default();
        SessionOp::Prompt { text, attachments, delivery, settings }
    });
    run_turn_after(&engine, session, (&shell_steps, chosen_model), (op, options)).await
}

/// Returns the goal of `--until` or `--goal`.
fn turn_goal(command: Option<String>, condition: Option<String>) -> Option<TurnGoal> {
    let command = command.map(|command| TurnGoal::Command { command });
    command.or(condition.map(|condition| TurnGoal::Judged { condition }))
}

/// Returns the agent of a custom command that the user can start a session with. A project's command
/// must not choose it: an agent of the user's own may allow more.
async fn command_agent(
    setup: &LoadedProject,
    command: Option<&CustomCommand>,
) -> anyhow::Result<Option<String>> {
    let command = command.filter(|command| command.is_own && !command.is_subtask);
    let Some(agent) = command.and_then(|command| command.agent.as_ref()) else {
        return Ok(None);
    };
    let agents = setup.load_agent_configs().await?;
    let is_primary = agents.find(agent).is_some_and(|agent| agent.role != AgentRole::Subagent);
    Ok(is_primary.then(|| agent.clone()))
}

/// Returns the prompt: the argument with standard input appended, or standard input alone if the
/// argument is `-` or missing.
fn read_prompt(argument: Option<String>, resumes: bool) -> anyhow::Result<Option<String>> {
    use std::io::IsTerminal;
    let is_terminal = std::io::stdin().is_terminal();
    let text = match argument.filter(|text| text != "-") {
        Some(text) if is_terminal => Some(text),
        Some(text) => {
            let input = read_stdin()?;
            let is_empty = input.trim().is_empty();
            Some(if is_empty { text } else { text + &fence_text("Standard input", &input) })
        }
        None if is_terminal => None,
        None => Some(read_stdin()?),
    };
    let text = text.filter(|text| !text.trim().is_empty());
    if text.is_none() && !resumes {
        bail!("no prompt given. Write it after `windlass run`, or pipe it in");
    }
    Ok(text)
}

/// The largest text that is read from standard input. No model takes more.
const MAX_STDIN_BYTES: u64 = 16 << 20;

/// Time after which the user is told that standard input is still open.
const STDIN_NOTE_DELAY: Duration = Duration::from_secs(2);

/// Reads standard input to the end, up to `MAX_STDIN_BYTES`.
pub(crate) fn read_stdin() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let (done, is_done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if is_done.recv_timeout(STDIN_NOTE_DELAY) == Err(RecvTimeoutError::Timeout) {
                output::print_note(
                    "waiting for the end of standard input; add `< /dev/null` if there is none",
                );
            }
        });
        let read = std::io::stdin().take(MAX_STDIN_BYTES + 1).read_to_end(&mut bytes);
        drop(done);
        read
    })?;
    if bytes.len() as u64 > MAX_STDIN_BYTES {
        bail!(
            "standard input is larger than {} MiB. Save it to a file in the project and name the \
             file in the prompt",
            MAX_STDIN_BYTES >> 20
        );
    }
    String::from_utf8(bytes).context("standard input is not valid UTF-8")
}

/// Opens or starts a session, sends `op` and watches until it is done.
pub(crate) async fn run_turn(
    engine: &Engine,
    session: Option<SessionId>,
    op: Option<SessionOp>,
    options: RunOptions,
) -> anyhow::Result<CliExit> {
    run_turn_after(engine, session, (&[], None), (op, options)).await
}

/// Returns the operation for a session that is resumed: the given one, or a prompt to continue.
fn op_of_resumed(
    session: SessionId,
    transcript: &Transcript,
    (op, options): (Option<SessionOp>, &RunOptions),
) -> anyhow::Result<Option<SessionOp>> {
    if op.is_some() || !transcript.queued_prompts.is_empty() {
        return Ok(op);
    }
    match &transcript.last_turn_end {
        // A turn that is under way goes on by itself.
        None => Ok(None),
        Some(TurnEndReason::Completed) => {
            bail!("session {session} has nothing to resume. Give it a prompt");
        }
        Some(_) => Ok(Some(options.own_prompt("Continue."))),
    }
}

/// Runs a turn after the shell commands in `steps`, which insert their output into the prompt, and
/// with `model` if the session has another one on record.
async fn run_turn_after(
    engine: &Engine,
    session: Option<SessionId>,
    (steps, model): (&[TemplateShellCommand], Option<(String, Option<String>)>),
    (mut op, options): (Option<SessionOp>, RunOptions),
) -> anyhow::Result<CliExit> {
    // With `--yes`, the printer answers like a user.
    let is_attended = options.yes || output::user_presence(options.output) == UserPresence::Present;
    let engine = &engine.with_unattended(match is_attended {
        true => UnattendedPolicy::Wait,
        false => UnattendedPolicy::Deny { advice: String::new() },
    });
    let mut transcript = Transcript::default();
    let (handle, watcher) = match session {
        None => engine.start_default_session().await?,
        Some(session) => {
            if let QueryReply::Transcript { transcript: existing } =
                engine.query(SessionQuery::Transcript { session }).await?
            {
                transcript = *existing;
            }
            op = op_of_resumed(session, &transcript, (op, &options))?;
            if !steps.is_empty()
                && (transcript.last_turn_end.is_none() || !transcript.queued_prompts.is_empty())
            {
                bail!(
                    "session {session} is unfinished, and the command must run `{}` first. \
                     Finish the session: `windlass run --session {session}`",
                    steps.iter().map(|step| step.command.as_str()).collect::<Vec<_>>().join("`, `")
                );
            }
            engine.open(session).await?
        }
    };
    if let Some(mode) =
        options.mode.filter(|mode| transcript.mode.is_some_and(|current| current != *mode))
    {
        handle.send(SessionOp::SetMode { mode }).await;
    }
    if let (Some((model, effort)), Some(recorded)) = (model, &transcript.model_choice)
        && (&recorded.model, &recorded.effort) != (&model, &effort)
    {
        handle.send(SessionOp::SetModel { model, effort }).await;
    }
    if let (Some(SessionOp::Prompt { text, .. }), None, false) = (&op, session, steps.is_empty())
        && let Some(title) = crate::custom_command::session_title(text)
    {
        // Otherwise the first shell command would become the title.
        handle.send(SessionOp::RenameSession { title }).await;
    }
    let lost_facts = transcript.lost_facts + handle.lost_facts;
    if let (Some(session), 1..) = (session, lost_facts) {
        let count = pluralize(lost_facts as usize, "event");
        output::print_note(&format!(
            "{count} of this session lost or damaged; see `windlass session verify {session}`"
        ));
    }
    let mut printer = TurnPrinter::new(options, transcript);
    printer.telemetry_export = TelemetryExport::from_env(LoadedProject::env_variable);
    let (session, events) = RunSession::local(handle.clone(), watcher);
    let turn_end = printer.run_to_end(&session, events, (steps, op)).await;
    let closed = handle.close().await;
    if let Some(export) = &mut printer.telemetry_export {
        export.export().await;
    }
    let end = match (turn_end, closed) {
        (Err(fault), _) | (Ok(None), Err(fault)) => TurnEndReason::Failed { fault },
        (Ok(Some(end)), _) => end,
        (Ok(None), Ok(())) => TurnEndReason::Interrupted,
    };
    Ok(printer.print_end(session.id, end))
}
