//! The permission mode of a folder, and the review of a folder that may be trusted.

use super::{LoadedProject, real_path};
use windlass_project::{FolderTrust, TrustDiff, TrustRequest};
use windlass_protocol::{PermissionMode, TrustReview};
use windlass_sandbox::SandboxMode;

impl LoadedProject {
    /// Returns true if the user trusts the folder and does not want to approve every change.
    fn trusts_to_work(&self) -> bool {
        self.config.trust == FolderTrust::Trusted && !self.config.keeps_asking
    }

    /// Returns the mode without examining the machine. If none is configured, it is `auto` only in
    /// a folder that the user trusts, with the sandbox enabled.
    pub(super) fn configured_mode(&self) -> PermissionMode {
        self.mode_if(self.trusts_to_work())
    }

    fn mode_if(&self, works_in_auto: bool) -> PermissionMode {
        let is_auto = works_in_auto && self.sandbox_mode() != SandboxMode::Off;
        self.config.mode_or(if is_auto { PermissionMode::Auto } else { PermissionMode::Ask })
    }

    /// Returns the mode in effect on this machine.
    pub(crate) fn effective_mode(&self) -> PermissionMode {
        self.default_mode(self.trusts_to_work())
    }

    /// Returns the mode in effect on this machine for a folder that is trusted to work in, or not.
    fn default_mode(&self, works_in_auto: bool) -> PermissionMode {
        let mode = self.mode_if(works_in_auto);
        // The sandbox is probed only if it makes a difference.
        let depends_on_sandbox = self.config.mode.is_none() && mode == PermissionMode::Auto;
        match depends_on_sandbox && self.lacks_sandbox() {
            true => self.config.mode_or(PermissionMode::Ask),
            false => mode,
        }
    }

    /// Returns the review of the folder for the trust question.
    pub(crate) fn trust_review(&self, request: &TrustRequest) -> TrustReview {
        let lines = [&request.shown_files, &request.settings_lines, &request.instruction_files];
        TrustReview {
            requested_actions: lines.into_iter().flatten().cloned().collect(),
            changes: match &request.diff {
                TrustDiff::NeverTrusted => None,
                TrustDiff::Unchanged => Some(Vec::new()),
                TrustDiff::ChangedUnknown => {
                    Some(vec!["the previous state was not saved; review all of it".to_owned()])
                }
                TrustDiff::Changed(lines) => Some(lines.clone()),
            },
            trusted_mode: self.default_mode(true),
            untrusted_mode: self.default_mode(false),
            is_home: real_path(&self.dirs.home).starts_with(real_path(&self.root)),
            digest: String::new(),
        }
    }
}
