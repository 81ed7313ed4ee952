//! Decisions about permission requests (`Decision`), and requests that wait for the user's answer
//! (`PendingDecision`).

use crate::access_verdict::{RULE_ADVICE, exposes_secrets, file_access, leaves_sandbox};
use crate::rules::PermissionLevel;
use crate::{Grant, Policy};
use windlass_protocol::{ApprovalKind, PermissionAnswer, RequestDanger, ToolAccess};

/// The result of `Policy::decide`.
#[derive(Debug)]
pub enum Decision {
    /// The call may run with this `Grant`.
    Allowed(Grant),
    /// The call requires the user's approval.
    Ask(PendingDecision),
    /// The call must not run.
    Denied {
        /// The rule that denied the call, in words.
        reason: String,
    },
}

/// A permission request that waits for the user's answer.
#[derive(Debug)]
pub struct PendingDecision {
    pub(crate) accesses: Vec<ToolAccess>,
    pub(crate) reason: String,
    pub(crate) danger: RequestDanger,
    pub(crate) approval_kind: Option<ApprovalKind>,
    pub(crate) accepts_earlier_approval: bool,
    pub(crate) policy: Policy,
}

impl PendingDecision {
    /// Returns the reason that approval is required.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the reason without the rule that would allow the call, for a call that needs approval
    /// for another reason as well.
    pub fn reason_without_advice(&self) -> &str {
        self.reason.split(RULE_ADVICE).next().unwrap_or_default()
    }

    /// Returns the danger of what the request is about.
    pub fn danger(&self) -> RequestDanger {
        self.danger
    }

    /// Returns the calls that the user can approve together with this one.
    pub fn approval_kind(&self) -> Option<&ApprovalKind> {
        self.approval_kind.as_ref()
    }

    /// Returns true if an earlier approval of the same request may answer this one.
    pub fn accepts_earlier_approval(&self) -> bool {
        self.accepts_earlier_approval
    }

    /// Returns the accesses that an approval would add to the `Grant`.
    pub fn accesses(&self) -> &[ToolAccess] {
        &self.accesses
    }

    /// Returns a grant that only reads what the request is about, so that the front end can show
    /// the pending change.
    pub fn preview_grant(&self) -> Grant {
        let read_accesses = self.accesses.iter().filter_map(|access| match access {
            ToolAccess::Read { path } | ToolAccess::Edit { path } => {
                Some(ToolAccess::Read { path: path.clone() })
            }
            ToolAccess::Search { .. }
            | ToolAccess::ReadBlob { .. }
            | ToolAccess::ReadSkill { .. }
            | ToolAccess::Subagent { .. }
            | ToolAccess::UseTool { .. }
            | ToolAccess::AcceptDefinition { .. } => Some(access.clone()),
            ToolAccess::RunCommand { .. }
            | ToolAccess::Connect { .. }
            | ToolAccess::Fetch { .. }
            | ToolAccess::LeaveSandbox { .. }
            | ToolAccess::StartProcess { .. } => None,
        });
        Grant::new(read_accesses.collect(), self.policy.clone(), PermissionLevel::Allow)
    }

    /// Returns true if everything in the request may be read without approval. Only then may an
    /// error from preparing the preview be reported before the user answers.
    pub fn may_reveal(&self) -> bool {
        self.accesses.iter().all(|access| match access {
            ToolAccess::Read { path } | ToolAccess::Search { path } | ToolAccess::Edit { path } => {
                self.policy.may_show(path, PermissionLevel::Allow)
            }
            ToolAccess::ReadBlob { .. }
            | ToolAccess::ReadSkill { .. }
            | ToolAccess::RunCommand { .. }
            | ToolAccess::Connect { .. }
            | ToolAccess::Fetch { .. }
            | ToolAccess::LeaveSandbox { .. }
            | ToolAccess::Subagent { .. }
            | ToolAccess::UseTool { .. }
            | ToolAccess::StartProcess { .. }
            | ToolAccess::AcceptDefinition { .. } => true,
        })
    }

    /// Turns the answer into a grant for everything requested, or `None`. Only
    /// `PermissionAnswer::Once` lets a call leave the sandbox, and an approval of registries opens
    /// no other hosts.
    pub fn resolve(self, answer: &PermissionAnswer) -> Option<Grant> {
        let is_allowed = match answer {
            PermissionAnswer::Once => true,
            PermissionAnswer::Session
            | PermissionAnswer::Project
            | PermissionAnswer::Kind { .. } => !self.accesses.iter().any(leaves_sandbox),
            PermissionAnswer::No { .. } | PermissionAnswer::Unavailable { .. } => false,
        };
        let opens_only_registries = matches!(answer, PermissionAnswer::Kind { .. })
            && self.approval_kind == Some(ApprovalKind::Registries);
        let mut accesses = self.accesses;
        if opens_only_registries {
            accesses.retain(|access| !matches!(access, ToolAccess::Connect { .. }));
        }
        let grant = is_allowed.then(|| Grant::new(accesses, self.policy, PermissionLevel::Ask));
        match opens_only_registries {
            true => grant.map(Grant::with_registries),
            false => grant,
        }
    }
}

/// Returns the danger of a request: that of its commands, or of the paths it names.
pub(crate) fn request_danger(
    accesses: &[ToolAccess],
    command_dangers: impl Iterator<Item = RequestDanger>,
) -> RequestDanger {
    let access_danger = |access: &ToolAccess| {
        let is_outside = file_access(access).is_some_and(|(path, _)| path.starts_with('/'));
        if leaves_sandbox(access) {
            RequestDanger::High
        } else if is_outside || exposes_secrets(access) {
            RequestDanger::Elevated
        } else {
            RequestDanger::Normal
        }
    };
    let dangers = accesses.iter().map(access_danger);
    dangers.chain(command_dangers).max().unwrap_or_default()
}
