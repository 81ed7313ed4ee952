//! Decides about one `ToolAccess::RunCommand`: evaluates the command line and applies the user's
//! earlier approvals.

use crate::command_safety::{
    CommandEvaluationContext, CommandVerdict, NETWORK_DANGER, UNSEEN_SCRIPT_DANGER,
    evaluate_command,
};
use crate::{PermissionLevel, Policy, SandboxStatus};
use windlass_protocol::{ApprovalKind, PermissionMode, RequestDanger, ToolAccess};

/// The decision about an `ToolAccess::RunCommand`, before other accesses of the same call are
/// considered.
pub(crate) struct CommandRuling {
    pub(crate) level: PermissionLevel,
    pub(crate) reason: String,
    pub(crate) danger: RequestDanger,
    pub(crate) wants_network: bool,
    /// True if an approval of the command, given now or earlier, also opens the network.
    pub(crate) opens_network: bool,
    /// The kind of the command, if the user may approve all commands of that kind.
    pub(crate) approval_kind: Option<ApprovalKind>,
    /// True if an earlier approval may apply. An approval given for a sandboxed run says nothing
    /// about a run without the sandbox.
    pub(crate) accepts_earlier_approval: bool,
    /// True if the only reason to allow the command is that it provably only reads.
    pub(crate) is_read_only: bool,
    /// True if the user has approved the command earlier.
    pub(crate) is_approved: bool,
}

impl Policy {
    /// Evaluates a command without running it: the verdict on every simple command, with its
    /// reason. Returns `None` without a `PathLookup`, because the command's paths cannot be
    /// resolved then.
    pub fn evaluate_command(&self, command: &str, folder: &str) -> Option<CommandVerdict> {
        let path_lookup = self.path_lookup.as_deref()?;
        let context = CommandEvaluationContext {
            user_rules: &self.user_rules,
            restricting_rules: &self.restricting_rules,
            path_lookup,
            mode: self.mode,
            sandbox_status: path_lookup.sandbox_status(),
        };
        Some(evaluate_command(command, folder, &context))
    }

    /// Returns the decision about a command, or `None` if the access is not `ToolAccess::RunCommand`.
    pub(crate) fn command_ruling(&self, access: &ToolAccess) -> Option<CommandRuling> {
        let ToolAccess::RunCommand { command, folder } = access else { return None };
        let Some(verdict) = self.evaluate_command(command, folder) else {
            return Some(CommandRuling {
                level: PermissionLevel::Ask,
                reason: "its effects cannot be determined".to_owned(),
                danger: RequestDanger::Normal,
                wants_network: false,
                opens_network: false,
                approval_kind: None,
                accepts_earlier_approval: false,
                is_read_only: false,
                is_approved: false,
            });
        };
        let sandbox_status = self
            .path_lookup
            .as_ref()
            .map(|path_lookup| path_lookup.sandbox_status())
            .unwrap_or_default();
        let segments = verdict.segments.iter().rev();
        let strictest = segments.max_by_key(|segment| (segment.level, segment.danger));
        let strictest = strictest.filter(|segment| segment.level == verdict.level);
        let reason = match (strictest, verdict.downloaded_script()) {
            (Some(segment), Some(script)) if segment.danger <= UNSEEN_SCRIPT_DANGER => script,
            (Some(segment), _) => segment.reason.clone(),
            (None, _) => verdict.ambiguities.first().cloned().unwrap_or_default(),
        };
        let danger = match strictest.map_or(0, |segment| segment.danger) {
            UNSEEN_SCRIPT_DANGER.. => RequestDanger::High,
            NETWORK_DANGER.. => RequestDanger::Elevated,
            _ => RequestDanger::Normal,
        };
        let asks = verdict.level == PermissionLevel::Ask;
        // A rule with level `ask` requires approval every time.
        let rule_asks =
            verdict.segments.iter().any(|it| it.level == PermissionLevel::Ask && it.rule.is_some());
        let accepts_earlier_approval = sandbox_status == SandboxStatus::Active;
        // Network access approved for one command must not open the network for others of its kind.
        let wants_network = verdict.wants_network;
        let may_persist = accepts_earlier_approval && !rule_asks;
        let approval_kind = match verdict.approval_template.filter(|_| !wants_network) {
            _ if !may_persist => None,
            None if verdict.registries_suffice => Some(ApprovalKind::Registries),
            pattern => pattern.map(|pattern| ApprovalKind::Commands { pattern }),
        };
        let is_kind_approved = approval_kind.as_ref().is_some_and(|kind| match kind {
            ApprovalKind::Commands { pattern } => self.is_kind_approved(pattern),
            ApprovalKind::Registries => self.are_registries_approved(),
            ApprovalKind::Edits => false,
        });
        let is_access_approved = self.is_approved(access);
        let is_approved = asks && may_persist && (is_kind_approved || is_access_approved);
        // An approval of registries opens nothing else.
        let opens_only_registries =
            is_approved && !is_access_approved && approval_kind == Some(ApprovalKind::Registries);
        let level = if is_approved { PermissionLevel::Allow } else { verdict.level };
        let reason = match sandbox_status {
            SandboxStatus::Unavailable if asks => format!("{reason}; no sandbox is available"),
            SandboxStatus::Off if asks => format!("{reason}; the sandbox is off"),
            SandboxStatus::Active | SandboxStatus::Unavailable | SandboxStatus::Off => reason,
        };
        let reason = match self.mode {
            PermissionMode::Plan if asks && !rule_asks => {
                format!("mode plan allows only reading, and {reason}")
            }
            _ => reason,
        };
        let no_rule_matches = verdict.segments.iter().all(|segment| segment.rule.is_none());
        let is_strict_mode = matches!(self.mode, PermissionMode::Plan | PermissionMode::Ask);
        let is_read_only =
            is_strict_mode && no_rule_matches && verdict.level == PermissionLevel::Allow;
        let runs_unasked = level == PermissionLevel::Allow && !is_approved && !is_read_only;
        let exposed_path = match sandbox_status {
            SandboxStatus::Active if runs_unasked => self.exposed_path(),
            SandboxStatus::Active | SandboxStatus::Off | SandboxStatus::Unavailable => None,
        };
        let (level, reason) = match exposed_path {
            Some(path) => self.exposed_path_verdict(&path),
            None => (level, reason),
        };
        Some(CommandRuling {
            level,
            reason,
            danger,
            wants_network,
            opens_network: asks && wants_network && !opens_only_registries,
            approval_kind,
            accepts_earlier_approval,
            is_read_only,
            is_approved,
        })
    }

    /// Returns the verdict on a command that could read a path that should be hidden from it.
    fn exposed_path_verdict(&self, path: &str) -> (PermissionLevel, String) {
        let reason = format!(
            "it could read `{path}`, which the sandbox of this machine cannot hide without \
             bubblewrap"
        );
        (self.approval_level(), reason)
    }
}
