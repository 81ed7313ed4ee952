//! Implements `windlass attach`: the terminal UI with the sessions of a server.

use super::server_connection::ServerConnection;
use crate::CliExit;
use crate::args::AttachArgs;
use crate::frontend_host::{
    FrontendHost, LocalFolders, LocalSettings, ScreenStart, SessionOwnership, check_terminal,
    print_return_hint, run_screen,
};
use crate::setup::{LoadedProject, ProjectContext};
use crate::terminal::output;
use windlass_project::ConfigFlags;
use windlass_protocol::ClientKind;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};

/// Runs the terminal UI until the user quits. Sessions go on in the server.
pub(crate) async fn run_attach(args: AttachArgs) -> anyhow::Result<CliExit> {
    check_terminal()?;
    let (dirs, root) = LoadedProject::find_dirs()?;
    let connection =
        ServerConnection::open(&args.server, (&dirs, &root), ClientKind::Terminal).await?;
    let session = match (&args.session, args.r#continue) {
        (Some(id), _) => Some(connection.find_session(id).await?),
        (None, true) => Some(connection.last_session().await?),
        (None, false) => None,
    };
    let working = LoadedProject::working_folder().unwrap_or_else(|| root.clone());
    let folders = LocalFolders { home: dirs.home.clone(), working };
    let service = connection.service();
    let mut model = args.model;
    if model.is_some() {
        // If the server does not know it, the first request of the screen would fail.
        let request = FrontendRequest::Status { model, effort: None };
        model = match service.request(&connection.caller, request).await? {
            HostResponse::Status { status } => status.model,
            _ => None,
        };
    }
    // Only the user's own settings of the screen matter here.
    let setup = LoadedProject::read_config(
        (dirs, root),
        ConfigFlags::default(),
        ProjectContext::default(),
    )?;
    let settings = LocalSettings {
        config: setup.dirs.config.clone(),
        favorite_models: setup.config.tui.favorite_models.clone(),
        status_line: setup.config.tui.status_line.clone(),
    };
    let (note_sender, notes) = tokio::sync::mpsc::unbounded_channel();
    let host = FrontendHost::new((service, connection.caller), SessionOwnership::Shared, folders)
        .with_choices(args.agent, model)
        .with_local_settings(settings)
        .with_local_notes(notes);
    let start = ScreenStart { session, prompt: args.prompt, linear: args.linear };
    // From here on, notes appear in the terminal UI.
    output::divert_notes(Some(Box::new(move |text| {
        // After the end of the host there is no screen.
        let _ = note_sender.send(text);
    })));
    let end = run_screen(start, &setup, host).await;
    output::divert_notes(None);
    if let Some(session) = end?.open_session {
        print_return_hint(args.server.address.as_deref(), session);
    }
    Ok(CliExit::Done)
}
