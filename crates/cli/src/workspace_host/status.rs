//! Status of the host, as far as it is known without building an engine.

use super::workspace_state::WorkspaceState;
use crate::reports::process_state::describe_state;
use windlass_project::FolderTrust;
use windlass_protocol::frontend_messages::{
    HostResponse, HostStatus, ServerKind, ServerStatus, TrustState,
};
use windlass_protocol::{Fault, PermissionMode};

impl WorkspaceState {
    /// Returns the [`HostStatus`] with a model and effort, or those of the config. A model that is
    /// not available is an error.
    pub(crate) fn host_status(
        &self,
        model: Option<String>,
        effort: Option<String>,
    ) -> Result<HostResponse, Fault> {
        let configured = self.setup.config.model.as_ref().map(|(name, _)| name.clone());
        if let Some(model) = model.as_ref().filter(|model| Some(*model) != configured.as_ref()) {
            (self.setup.model_resolver())(model, None)?;
        }
        let model = model.or(configured);
        let efforts = self.available_efforts(model.as_deref());
        if let Some(effort) = effort.as_ref().filter(|effort| !efforts.contains(effort)) {
            let available = if efforts.is_empty() { "none".into() } else { efforts.join(", ") };
            let message =
                format!("this model has no effort or variant `{effort}`; available: {available}");
            return Err(Fault::Config { message });
        }
        let status = Box::new(self.status_with_model(model, effort, efforts));
        Ok(HostResponse::Status { status })
    }

    fn status_with_model(
        &self,
        model: Option<String>,
        effort: Option<String>,
        efforts: Vec<String>,
    ) -> HostStatus {
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
        let catalog_model = model.as_deref().and_then(|name| setup.find_model(name));
        // Safe in an untrusted folder, too: it reads 256 bytes of `.git/HEAD` as text, follows no
        // link out of the folder and accepts only a plain name. The model is told the branch only
        // in a trusted one.
        let branch = windlass_project::git_branch(&setup.root);
        HostStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            workspace: abbreviate_home(
                &setup.workspace_name(),
                &setup.dirs.home.display().to_string(),
            ),
            root: setup.workspace_name(),
            // The hub knows these.
            host: None,
            client: None,
            right: None,
            branch,
            context_window: catalog_model.as_ref().and_then(|model| model.context),
            effort: effort.or_else(|| setup.configured_effort(model.as_deref()?)),
            efforts,
            model,
            agent: self.agent.clone().unwrap_or_else(|| "build".to_owned()),
            mode: setup.effective_mode(),
            max_mode: setup.config.max_mode.unwrap_or(PermissionMode::Full),
            trust,
            sandbox: setup.describe_sandbox(),
            notes: Vec::new(),
            servers: self.server_status(),
        }
    }

    /// Returns the MCP servers of the config and the language servers that were started.
    pub(crate) fn server_status(&self) -> Vec<ServerStatus> {
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

/// Abbreviates the home folder in a path to `~`.
fn abbreviate_home(folder: &str, home: &str) -> String {
    match folder.strip_prefix(home) {
        Some("") => "~".to_owned(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        Some(_) | None => folder.to_owned(),
    }
}
