//! Status of the host, as far as it is known without building an engine.

use super::FrontendHost;
use super::config_and_engines::HostState;
use crate::reports::process_state::describe_state;
use windlass_project::FolderTrust;
use windlass_protocol::frontend_messages::{
    HostMessage, HostResponse, HostStatus, ServerKind, ServerStatus, TrustState,
};
use windlass_protocol::{Fault, PermissionMode};

impl HostState {
    /// Returns the [`HostStatus`] as a response to the front end.
    pub(super) fn host_status(&self) -> HostResponse {
        let setup = &self.setup;
        let declined = self.is_trust_declined();
        let trust = match setup.config.trust {
            FolderTrust::Trusted => TrustState::Trusted,
            FolderTrust::NothingToTrust | FolderTrust::Untrusted | FolderTrust::Changed
                if declined =>
            {
                TrustState::Declined
            }
            FolderTrust::Changed => TrustState::ChangedSinceTrust,
            FolderTrust::NothingToTrust | FolderTrust::Untrusted => TrustState::NotAsked,
        };
        let model = setup.config.model.as_ref().map(|(name, _)| name.clone());
        let catalog_model = model.as_deref().and_then(|name| setup.find_model(name));
        // Safe in an untrusted folder, too: it reads 256 bytes of `.git/HEAD` as text, follows no
        // link out of the folder and accepts only a plain name. The model is told the branch only
        // in a trusted one.
        let branch = windlass_project::git_branch(&setup.root);
        let status = HostStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            workspace: abbreviate_home(
                &setup.workspace_name(),
                &setup.dirs.home.display().to_string(),
            ),
            root: setup.workspace_name(),
            branch,
            context_window: catalog_model.as_ref().and_then(|model| model.context),
            effort: self.effort.clone().or_else(|| setup.configured_effort(model.as_deref()?)),
            efforts: self.available_efforts(),
            model,
            agent: self.agent.clone().unwrap_or_else(|| "build".to_owned()),
            mode: setup.effective_mode(),
            max_mode: setup.config.max_mode.unwrap_or(PermissionMode::Full),
            trust,
            sandbox: setup.describe_sandbox(),
            notes: Vec::new(),
            servers: self.server_status(),
        };
        HostResponse::Status { status: Box::new(status) }
    }

    /// Returns the MCP servers of the config and the language servers that were started.
    pub(super) fn server_status(&self) -> Vec<ServerStatus> {
        let running = self.setup.running_mcp_servers();
        let states = running.map(|servers| servers.states()).unwrap_or_default();
        let enabled = self.setup.config.servers.values().filter(|(server, _)| server.enabled);
        let mcp_servers = enabled.map(|(server, _)| {
            let state = states.iter().find(|(name, _)| *name == server.name);
            let (state, _) = describe_state(state.map(|(_, state)| state));
            ServerStatus { kind: ServerKind::Mcp, name: server.name.clone(), state }
        });
        let mut servers: Vec<ServerStatus> = mcp_servers.collect();
        let running = self.setup.running_language_servers();
        for (name, root, state) in running.map(|servers| servers.states()).unwrap_or_default() {
            let name = if root == "." { name } else { format!("{name} ({root})") };
            let (state, _) = describe_state(Some(&state));
            servers.push(ServerStatus { kind: ServerKind::Language, name, state });
        }
        servers
    }
}

impl FrontendHost {
    /// Answers a request. A `Status` replaces the states of servers that the front end knows, and
    /// is older than the current ones if it was prepared before a server started.
    pub(super) fn send_answer(&mut self, id: u64, answer: Result<HostResponse, Fault>) {
        let status_servers = match &answer {
            Ok(HostResponse::Status { status }) => Some(status.servers.clone()),
            Ok(_) | Err(_) => None,
        };
        self.outbox.push_back(HostMessage::Response { id, response: answer });
        if let Some(servers) = status_servers {
            self.sent_servers = servers;
            self.send_servers();
        }
    }

    /// Sends the states of servers to the front end if they have changed.
    pub(super) fn send_servers(&mut self) {
        let servers = self.state.server_status();
        if servers != self.sent_servers {
            self.sent_servers.clone_from(&servers);
            self.outbox.push_back(HostMessage::Servers { servers });
        }
    }
}

/// Abbreviates the home folder in a path to `~`.
fn abbreviate_home(folder: &str, home: &str) -> String {
    match folder.strip_prefix(home) {
        Some("") => "~".to_owned(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        Some(_) | None => folder.to_owned(),
    }
}
