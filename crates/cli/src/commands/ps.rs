//! Implements `windlass ps`: the sessions that are open in a server.

use super::server_connection::connect;
use crate::CliExit;
use crate::args::PsArgs;
use crate::setup::LoadedProject;
use crate::terminal::output;
use anyhow::bail;
use windlass_protocol::display_text::{pluralize, truncate_chars};
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::session_stream::{OpenSessionActivity, OpenSessionState};
use windlass_protocol::{AccessRight, ClientKind};
use windlass_server::{Caller, FrontendService};

/// Maximum length of a title in the list.
const MAX_TITLE_CHARS: usize = 50;

/// Lists the sessions that are open in a server, those that wait for the user first.
pub(crate) async fn run_ps(args: PsArgs) -> anyhow::Result<CliExit> {
    let (dirs, _) = LoadedProject::find_dirs()?;
    let host = connect(&args.server, &dirs).await?;
    let client = crate::local_client(ClientKind::CommandLine);
    let folder = args.server.workspace;
    let caller = Caller { workspace: folder.clone(), ..Caller::new(client, AccessRight::Admin) };
    let response = host.request(&caller, FrontendRequest::ListOpenSessions).await?;
    let HostResponse::OpenSessions { mut sessions } = response else {
        bail!("the server did not answer with its sessions");
    };
    sessions.retain(|state| folder.as_ref().is_none_or(|folder| state.workspace == *folder));
    if args.json {
        output::print_json(&serde_json::to_string_pretty(&sessions)?);
        return Ok(CliExit::Done);
    }
    if sessions.is_empty() {
        output::print_note("no session is open in the server");
    }
    for state in &sessions {
        output::print_line(&describe_session(state));
    }
    Ok(CliExit::Done)
}

fn describe_session(state: &OpenSessionState) -> String {
    let activity = match state.activity() {
        OpenSessionActivity::Waiting => "waits for you".to_owned(),
        OpenSessionActivity::Working => "working".to_owned(),
        OpenSessionActivity::Background => {
            pluralize(state.background_count as usize, "background task")
        }
        OpenSessionActivity::Idle => "idle".to_owned(),
    };
    let clients = match state.clients.len() {
        0 => "no client".to_owned(),
        count => format!("{count} attached"),
    };
    let title = if state.title.is_empty() { "(no prompt yet)" } else { &state.title };
    format!(
        "{}  {activity:<14}  {clients:<16}  {}  {}",
        state.session,
        truncate_chars(title, MAX_TITLE_CHARS),
        state.workspace
    )
}
