//! The user's own status line command (`tui.status_line`).

use super::workspace_state::WorkspaceState;
use std::time::Duration;
use windlass_project::StatusLineContent;
use windlass_protocol::Fault;
use windlass_protocol::frontend_messages::{HostResponse, StatusLineInput};
use windlass_sandbox::editor_and_clipboard;

const TIME_LIMIT: Duration = Duration::from_secs(2);
const MAX_OUTPUT_BYTES: u64 = 4 << 10;

impl WorkspaceState {
    /// Runs the command. It comes from the user's own config: a project has no `tui` settings.
    pub(crate) async fn run_status_line(
        &self,
        input: &StatusLineInput,
    ) -> Result<HostResponse, Fault> {
        run_status_line(self.setup.config.tui.status_line.as_ref(), input).await
    }
}

/// Runs the command of this setting.
pub(crate) async fn run_status_line(
    setting: Option<&StatusLineContent>,
    input: &StatusLineInput,
) -> Result<HostResponse, Fault> {
    let Some(StatusLineContent::Command(command)) = setting else {
        return Err(Fault::Config { message: "tui.status_line has no command".to_owned() });
    };
    let command = command.command.clone();
    let input = serde_json::to_vec(input)
        .map_err(|error| Fault::Internal { message: error.to_string() })?;
    let run =
        move || editor_and_clipboard::shell_output(&command, &input, MAX_OUTPUT_BYTES, TIME_LIMIT);
    let output = tokio::task::spawn_blocking(run).await;
    let text = match output {
        Ok(Ok(Some(bytes))) => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            text.lines().next().unwrap_or_default().to_owned()
        }
        Ok(Ok(None)) => "status line: the command failed or took too long".to_owned(),
        Ok(Err(error)) => format!("status line: {error}"),
        Err(_) => "status line: the command could not be run".to_owned(),
    };
    Ok(HostResponse::StatusLine { text })
}
