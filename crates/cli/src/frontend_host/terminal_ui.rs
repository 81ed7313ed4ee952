//! The terminal UI with the sessions of this process (`windlass` without a command).

use super::appearance::ScreenStart;
use super::{
    FrontendHost, HostEnd, LocalFolders, MESSAGE_QUEUE_LEN, REQUEST_QUEUE_LEN, SessionOwnership,
    appearance, editor_and_clipboard, tmux_keys,
};
use crate::session_hub::{HubOptions, MAX_OPEN_SESSIONS, SessionHub};
use crate::setup::{LoadedProject, ProjectContext};
use crate::terminal::output;
use crate::terminal::question_queue::{CtrlC, ShutdownSignals};
use crate::{CliExit, args};
use anyhow::{Context, bail};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use windlass_engine::UnattendedPolicy;
use windlass_project::ConfigFlags;
use windlass_protocol::{AccessRight, ClientKind, SessionId};
use windlass_server::{Caller, FrontendService};

/// Time for the session to end when the user quits the UI.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Fails if there is no terminal.
pub(crate) fn check_terminal() -> anyhow::Result<()> {
    if !output::is_terminal() {
        bail!(
            "`windlass` needs a terminal, but standard input or output is not one. Use `windlass \
             run \"…\"` instead; `windlass --help` lists all commands"
        );
    }
    Ok(())
}

/// Runs the terminal UI (`windlass` without a command) until the user quits.
pub(crate) async fn run_tui(args: args::TuiArgs) -> anyhow::Result<CliExit> {
    check_terminal()?;
    let (dirs, root) = LoadedProject::find_dirs()?;
    let flags = args.mode_args.to_config_flags(args.model.clone());
    let options = HubOptions {
        roots: None,
        flags: ConfigFlags { small_model: args.small_model.clone(), ..flags },
        agent: args.agent.clone(),
        unattended: UnattendedPolicy::Wait,
        idle_timeout: None,
        max_open_sessions: MAX_OPEN_SESSIONS,
        room: None,
        fleet: None,
        quota: None,
        checkouts: None,
    };
    let hub = SessionHub::new(dirs, ProjectContext::default(), options);
    // From here on, notes appear in the terminal UI.
    let notices = Arc::downgrade(&hub);
    output::divert_notes(Some(Box::new(move |text| {
        notices.upgrade().iter().for_each(|hub| hub.send_notice(String::new(), text.clone()));
    })));
    let result = run_with_hub(&args, &hub, &root).await;
    output::divert_notes(None);
    match &result {
        Ok(HostEnd { detached_session: Some(session), .. }) => {
            print_return_hint(None, *session);
        }
        Ok(HostEnd { open_session: Some(_), .. }) => {
            output::print_note("To resume: windlass --continue");
        }
        Ok(_) => {}
        Err(_) => hub.notices().iter().for_each(|text| output::print_note(text)),
    }
    result.map(|_| CliExit::Done)
}

async fn run_with_hub(
    args: &args::TuiArgs,
    hub: &Arc<SessionHub>,
    root: &std::path::Path,
) -> anyhow::Result<HostEnd> {
    let state = hub.workspace(root).await?.state();
    let session = state.initial_session(args).await?;
    let working = state.setup.root.clone();
    let folders = LocalFolders { home: state.setup.dirs.home.clone(), working };
    let client = crate::local_client(ClientKind::Terminal);
    let caller = Caller::new(client, AccessRight::Admin);
    let service: Arc<dyn FrontendService> = Arc::<SessionHub>::clone(hub);
    // The hub chooses the agent.
    let host = FrontendHost::new((service, caller), SessionOwnership::Owned, folders)
        .with_choices(None, args.model.clone());
    let start = ScreenStart { session, prompt: args.prompt.clone(), linear: args.linear };
    let result = run_screen(start, &state.setup, host).await;
    hub.shut_down(CLOSE_TIMEOUT).await;
    result
}

/// Tells how to return to a session that stays in a server; `None` for the one of this machine.
pub(crate) fn print_return_hint(address: Option<&str>, session: SessionId) {
    let address = address.map(|address| format!("{address} ")).unwrap_or_default();
    output::print_note(&format!(
        "The session goes on in the server. To return: windlass attach {address}--session {session}"
    ));
}

/// Runs the screen with the host of its requests, until the user quits. Fails if the session of the
/// command line cannot be opened.
pub(crate) async fn run_screen(
    start: ScreenStart,
    setup: &LoadedProject,
    host: FrontendHost,
) -> anyhow::Result<HostEnd> {
    let host = host.with_required_session(start.session);
    let (options, linear) =
        appearance::screen_options(&setup.config.tui, start, LoadedProject::env_variable);
    let drafts_folder = setup.dirs.data.join("drafts");
    let actions = editor_and_clipboard::UserProgramRunner { drafts_folder };
    if !linear {
        tmux_keys::note_missing_keys(LoadedProject::env_variable);
    }
    let (requests, request_receiver) = mpsc::channel(REQUEST_QUEUE_LEN);
    let (message_sender, messages) = mpsc::channel(MESSAGE_QUEUE_LEN);
    let stop = CancellationToken::new();
    let running = host.run((request_receiver, message_sender), stop.clone());
    let mut shutdown_signals = ShutdownSignals::new()?;
    let mut host_task = tokio::task::JoinSet::new();
    host_task.spawn(running);
    let result = tokio::select! {
        result = async {
            match linear {
                true => {
                    let mut ctrl_c = CtrlC::new()?;
                    let interrupted = async || ctrl_c.wait().await;
                    windlass_tui::linear::run(options, requests, messages, interrupted).await
                }
                false => windlass_tui::run(options, requests, messages, &actions).await,
            }
        } => result,
        () = shutdown_signals.wait() => Ok(()),
    };
    stop.cancel();
    let end = host_task.join_next().await.and_then(Result::ok).unwrap_or_default();
    result?;
    match end.opening_failure {
        Some(fault) => Err(fault).context("the session was not opened"),
        None => Ok(end),
    }
}
