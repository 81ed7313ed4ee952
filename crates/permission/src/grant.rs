//! The `Grant` type: proof that a rule or the user allowed an access.

use crate::{CommandPathAccess, PathRules, PermissionLevel, Policy};
use windlass_protocol::{PermissionMode, ToolAccess};

/// The right to perform exactly these accesses. Its fields are private and it has no public
/// constructor, so code outside this crate cannot forge one.
#[derive(Debug)]
pub struct Grant {
    accesses: Vec<ToolAccess>,
    policy: Policy,
    /// The strictest level that had to be satisfied to obtain this grant.
    level: PermissionLevel,
    is_read_only: bool,
    /// Package registries were approved with this grant.
    reaches_registries: bool,
}

impl Grant {
    pub(crate) fn new(accesses: Vec<ToolAccess>, policy: Policy, level: PermissionLevel) -> Grant {
        Grant { accesses, policy, level, is_read_only: false, reaches_registries: false }
    }

    /// Opens package registries to the commands.
    pub(crate) fn with_registries(self) -> Grant {
        Grant { reaches_registries: true, ..self }
    }

    /// Returns true if the commands may reach package registries, now approved or earlier. Commands
    /// that run because they only read have no network.
    pub fn reaches_registries(&self) -> bool {
        !self.is_read_only && (self.reaches_registries || self.policy.are_registries_approved())
    }

    /// Marks the grant as based only on the proof that its commands only read.
    pub(crate) fn into_read_only(self) -> Grant {
        Grant { is_read_only: true, ..self }
    }

    /// Marks the grant as approved by the user.
    pub(crate) fn into_approved(self) -> Grant {
        Grant { level: PermissionLevel::Ask, ..self }
    }

    /// Returns true if the user approved the accesses, now or earlier.
    pub fn is_approved(&self) -> bool {
        self.level == PermissionLevel::Ask
    }

    /// Returns true if the commands were allowed only because they provably only read: no rule, no
    /// earlier approval and no user allowed them. Such commands run without write access, because a
    /// program may execute settings it finds while reading: git runs the filters of a repository's
    /// config.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Returns the accesses that this grant opens.
    pub fn accesses(&self) -> &[ToolAccess] {
        &self.accesses
    }

    /// Returns the `PermissionMode` in which the grant was given.
    pub fn mode(&self) -> PermissionMode {
        self.policy.mode
    }

    /// Returns true if the grant includes this access. `ToolAccess::Edit` and `ToolAccess::Search` of a
    /// path include reading it.
    pub fn covers(&self, requested: &ToolAccess) -> bool {
        self.accesses.iter().any(|granted| match (granted, requested) {
            (
                ToolAccess::Edit { path: granted } | ToolAccess::Search { path: granted },
                ToolAccess::Read { path: requested },
            ) => granted == requested,
            (granted, requested) => granted == requested,
        })
    }

    /// Returns true if the grant includes this access, or if the policy allows it without approval.
    pub fn covers_or_allows(&self, requested: &ToolAccess) -> bool {
        self.covers(requested) || self.policy.allows(requested)
    }

    /// Returns the level of what a running program asks for, by a permission key and a subject as in
    /// the rules.
    pub fn requested_level(&self, key: &str, subject: &str) -> PermissionLevel {
        self.policy.requested_level(key, subject)
    }

    /// Returns true if a file found in a folder search may be read: it lies beneath a folder
    /// granted by `ToolAccess::Search`, and no rule is stricter about the file than about the folder.
    /// Secret files such as `.env` must be requested by name.
    pub fn reveals(&self, path: &str) -> bool {
        let is_beneath = |folder: &str| {
            folder == "." || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        };
        self.accesses.iter().any(|granted| match granted {
            ToolAccess::Search { path: searched } if searched == path => true,
            ToolAccess::Search { path: folder } => is_beneath(folder) && self.may_read(path),
            ToolAccess::Read { .. }
            | ToolAccess::Edit { .. }
            | ToolAccess::ReadBlob { .. }
            | ToolAccess::ReadSkill { .. }
            | ToolAccess::RunCommand { .. }
            | ToolAccess::Connect { .. }
            | ToolAccess::Fetch { .. }
            | ToolAccess::LeaveSandbox { .. }
            | ToolAccess::Subagent { .. }
            | ToolAccess::UseTool { .. }
            | ToolAccess::StartProcess { .. }
            | ToolAccess::AcceptDefinition { .. } => false,
        })
    }

    /// Returns true if reading a path needs no approval beyond the one behind this grant.
    pub fn may_read(&self, path: &str) -> bool {
        self.policy.may_show(path, self.level)
    }

    /// Returns the rules that may restrict the paths of a command with this grant.
    pub fn path_rules(&self) -> PathRules {
        self.policy.path_rules()
    }

    /// Returns the access of a command with this grant to a path of the workspace. A command that
    /// the user approved may use paths that require approval.
    pub fn command_path_access(&self, path: &str) -> CommandPathAccess {
        self.policy.command_path_access(path, self.level)
    }
}
