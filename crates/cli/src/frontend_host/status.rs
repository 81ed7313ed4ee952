//! Status of the host, as far as it is known without building an engine.

use super::config_and_engines::HostState;
use windlass_project::FolderTrust;
use windlass_protocol::PermissionMode;
use windlass_protocol::frontend_messages::{HostResponse, HostStatus, TrustState};

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
        };
        HostResponse::Status { status: Box::new(status) }
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
