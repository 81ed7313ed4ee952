//! Reports for the panels of a front end, and the actions on their rows.

use super::workspace_state::{WorkspaceState, to_fault};
use crate::reports::{language_servers, mcp_servers, permissions, plugins, statistics};
use windlass_protocol::frontend_messages::HostResponse;
use windlass_protocol::report::{ReportAction, ReportKind, ReportRow};
use windlass_protocol::{FactRecord, Fault, QueryReply, SessionId, SessionQuery};

impl WorkspaceState {
    /// Returns the rows of a report.
    pub(crate) async fn report(&self, report: ReportKind) -> Result<HostResponse, Fault> {
        let rows = match report {
            ReportKind::McpServers => mcp_servers::report_rows(&self.setup),
            ReportKind::Permissions { session } => {
                let events = self.session_events(session).await?;
                permissions::report_rows(&self.setup, &events)
            }
            ReportKind::LanguageServers => Ok(language_servers::report_rows(&self.setup)),
            ReportKind::Plugins => plugins::report_rows(&self.setup),
            ReportKind::Statistics { days } => {
                let usage = statistics::read_statistics(&self.setup.dirs.data, days).await;
                usage.map(|usage| statistics::report_rows(&usage))
            }
        };
        let rows: Vec<ReportRow> = rows.map_err(|error| to_fault(&error))?;
        Ok(HostResponse::Report { rows })
    }

    /// Waits until no server of the report is starting.
    pub(crate) async fn wait_until_settled(&self, report: ReportKind) {
        match report {
            ReportKind::McpServers => {
                if let Some(servers) = self.setup.running_mcp_servers() {
                    servers.wait_until_settled().await;
                }
            }
            ReportKind::LanguageServers => {
                if let Some(servers) = self.setup.running_language_servers() {
                    servers.wait_until_settled().await;
                }
            }
            ReportKind::Permissions { .. }
            | ReportKind::Plugins
            | ReportKind::Statistics { .. } => {}
        }
    }

    async fn session_events(&self, session: Option<SessionId>) -> Result<Vec<FactRecord>, Fault> {
        let Some(session) = session else { return Ok(Vec::new()) };
        let query = SessionQuery::Events { session, after: 0, limit: None };
        match self.inspect_engine().await?.query(query).await? {
            QueryReply::Events { events } => Ok(events),
            _ => Ok(Vec::new()),
        }
    }

    /// Runs an action that does not change the open session, and returns the new rows.
    pub(crate) async fn run_report_action(
        &self,
        report: ReportKind,
        item: &str,
        action: ReportAction,
    ) -> Result<HostResponse, Fault> {
        let unavailable = |message: &str| Fault::Config { message: message.to_owned() };
        match (report, action) {
            (ReportKind::McpServers, ReportAction::Restart) => {
                let servers = self.setup.running_mcp_servers();
                let servers = servers.ok_or_else(|| {
                    unavailable("no server runs yet; servers start with the first prompt")
                })?;
                let started = servers.restart(item).await;
                started.map_err(|failure| Fault::Config { message: failure.text })?;
            }
            (ReportKind::LanguageServers, ReportAction::Restart) => {
                let servers = self.setup.running_language_servers();
                let servers = servers.ok_or_else(|| unavailable("no server runs yet"))?;
                let started = servers.restart(item).await;
                started.map_err(|message| Fault::Config { message })?;
            }
            (_, ReportAction::Restart | ReportAction::Revoke) => {
                return Err(unavailable("this item has no such action"));
            }
        }
        self.report(report).await
    }
}
