//! The state of a server process in words, and the end of its log.

use windlass_project::ServerLogs;
use windlass_protocol::report::ReportRowState;
use windlass_toolkit::process_health::ProcessHealthState;

/// Number of log lines in the details of a server.
const SHOWN_LOG_LINES: usize = 40;

/// Describes a state for a report; `None` means that no engine has asked for the server yet.
pub(crate) fn describe_state(state: Option<&ProcessHealthState>) -> (ReportRowState, &'static str) {
    match state {
        None | Some(ProcessHealthState::Idle) => (ReportRowState::Idle, "not started"),
        Some(ProcessHealthState::Starting) => (ReportRowState::Starting, "starting"),
        Some(ProcessHealthState::Ready { .. }) => (ReportRowState::Active, "running"),
        Some(ProcessHealthState::Lost { .. }) => (ReportRowState::Warning, "stopped"),
        Some(ProcessHealthState::StartFailed { .. } | ProcessHealthState::GivenUp { .. }) => {
            (ReportRowState::Failed, "failed")
        }
        Some(ProcessHealthState::NeedsLogin { .. }) => (ReportRowState::Warning, "needs login"),
    }
}

/// Returns the reason for a state, if it has one.
pub(super) fn state_reason(state: Option<&ProcessHealthState>) -> Option<&str> {
    match state? {
        ProcessHealthState::Lost { reason }
        | ProcessHealthState::StartFailed { reason, .. }
        | ProcessHealthState::GivenUp { reason } => Some(reason),
        ProcessHealthState::NeedsLogin { instructions } => Some(instructions),
        ProcessHealthState::Idle
        | ProcessHealthState::Starting
        | ProcessHealthState::Ready { .. } => None,
    }
}

/// Returns the last lines of a server's log, under a heading.
pub(super) fn log_lines(logs: &ServerLogs, server: &str) -> Vec<String> {
    let lines = logs.tail(server, SHOWN_LOG_LINES).ok().flatten().unwrap_or_default();
    if lines.is_empty() {
        return vec![String::new(), "Log: empty".to_owned()];
    }
    [String::new(), "Log:".to_owned()]
        .into_iter()
        .chain(lines.into_iter().map(|line| format!("  {line}")))
        .collect()
}
