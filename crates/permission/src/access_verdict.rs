//! Verdicts of rules, modes and permanent approvals on one access.

use crate::command_safety::PathUse;
use crate::outside_paths::OutsidePaths;
use crate::protected_paths::path_protection;
use crate::rules::{OUTSIDE_KEY, RuleSubject};
use crate::secret_files::is_secret_file;
use crate::{PermissionLevel, PermissionRules, Policy};
use std::sync::Arc;
use windlass_protocol::path_escapes::unescape_path;
use windlass_protocol::{PermissionMode, ProjectApproval, ToolAccess};

/// Keys, passwords and sockets of the system. The sandbox hides them from commands.
const SYSTEM_SECRETS: [&str; 8] = [
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/ssh",
    "/run",
    "/var/run",
    "/private/var/run",
];

/// Introduces the rule that would allow an access, at the end of a reason. Both the user and the model
/// read it.
pub(crate) const RULE_ADVICE: &str = "; a rule to allow it: ";

impl Policy {
    /// Returns the verdict of the rules, or the default if no rule matches. Returns `None` for
    /// commands, which `command_ruling` decides.
    pub(crate) fn access_verdict(&self, access: &ToolAccess) -> Option<(PermissionLevel, String)> {
        if matches!(access, ToolAccess::RunCommand { .. } | ToolAccess::LeaveSandbox { .. }) {
            return None;
        }
        let subject = access.subject();
        let default_verdict = || match (self.mode, self.default_level(access)) {
            (_, level) if matches!(access, ToolAccess::AcceptDefinition { .. }) => {
                (level, changed_definition_reason(subject))
            }
            (PermissionMode::Plan, PermissionLevel::Deny) => {
                (PermissionLevel::Deny, format!("`{subject}` cannot be changed in mode plan"))
            }
            _ if exposes_secrets(access) => self.secret_file_verdict(access),
            (_, level) => {
                (level, format!("no rule allows it{RULE_ADVICE}{}", suggested_rule(access)))
            }
        };
        let (mut level, mut reason) = self.rule_verdict(access).unwrap_or_else(default_verdict);
        // Rules about `read` and `edit` cannot open paths outside the workspace.
        let outside = file_access(access).and_then(|(path, path_use)| match access {
            ToolAccess::Search { .. } => self.outside_verdict(path, path_use, &format!("{path}/*")),
            _ => self.outside_verdict(path, path_use, path),
        });
        if let Some(outside) = outside.filter(|outside| outside.0 > level) {
            (level, reason) = outside;
        }
        let is_approved = level == PermissionLevel::Ask && self.is_approved(access);
        Some(if is_approved { (PermissionLevel::Allow, String::new()) } else { (level, reason) })
    }

    /// Returns the verdict on a path outside the workspace, which is absolute. File tools run
    /// outside the sandbox, so files of the kernel would show this process. The reason for an
    /// approval names a rule with `suggested_pattern`.
    fn outside_verdict(
        &self,
        path: &str,
        path_use: PathUse,
        suggested_pattern: &str,
    ) -> Option<(PermissionLevel, String)> {
        let absolute = unescape_path(path);
        if !absolute.is_absolute() {
            return None;
        }
        if ["/proc", "/sys", "/dev"].iter().any(|folder| absolute.starts_with(folder)) {
            return Some((PermissionLevel::Deny, format!("`{path}` is not a file on a disk")));
        }
        if SYSTEM_SECRETS.iter().any(|secret| absolute.starts_with(secret)) {
            return Some((
                PermissionLevel::Deny,
                format!("`{path}` contains secrets of the system"),
            ));
        }
        let Some(path_lookup) = self.path_lookup.as_deref() else {
            return Some((self.approval_level(), format!("`{path}` is outside the workspace")));
        };
        let (user_rules, restricting_rules) = (&*self.user_rules, &*self.restricting_rules);
        let outside = OutsidePaths { path_lookup, user_rules, restricting_rules };
        let is_temporary = ["/tmp", "/var/tmp"].iter().any(|folder| absolute.starts_with(folder));
        let is_readable = path_use == PathUse::Read && path_lookup.is_in_readable_folder(&absolute);
        let is_opened = || {
            is_readable || outside.verdict(&absolute, PathUse::Write).0 == PermissionLevel::Allow
        };
        if is_temporary && !is_opened() {
            return Some(match path_lookup.has_private_tmp() {
                true => (
                    PermissionLevel::Deny,
                    format!(
                        "`{path}` is a temporary file of this machine; commands of this session \
                         have their own /tmp, so use bash to read and write there"
                    ),
                ),
                false => (self.approval_level(), format!("`{path}` may belong to another program")),
            });
        }
        let (level, reason) = outside.verdict(&absolute, path_use);
        let suggested_rule = serde_json::json!({OUTSIDE_KEY: {suggested_pattern: "allow"}});
        Some(match level {
            PermissionLevel::Ask => {
                (self.approval_level(), format!("{reason}{RULE_ADVICE}{suggested_rule}"))
            }
            PermissionLevel::Allow | PermissionLevel::Deny => (level, reason),
        })
    }

    /// Returns the stricter rule about a path outside as it was written, before links in it were
    /// resolved.
    pub(crate) fn spelled_outside_verdict(
        &self,
        access: &ToolAccess,
    ) -> Option<(PermissionLevel, String)> {
        let (path, _) = file_access(access).filter(|(path, _)| path.starts_with('/'))?;
        let verdict = self.strictest_rule(OUTSIDE_KEY, &RuleSubject::new(path));
        verdict.filter(|verdict| verdict.0 > PermissionLevel::Allow)
    }

    /// Returns the verdict on leaving the sandbox. A rule may deny it but never allow it.
    pub(crate) fn leave_sandbox_verdict(&self, access: &ToolAccess) -> (PermissionLevel, String) {
        let subject = RuleSubject::new(access.subject());
        let deny_rule = self
            .strictest_rule(access.permission_key(), &subject)
            .filter(|it| it.0 == PermissionLevel::Deny);
        deny_rule.unwrap_or_else(|| match self.mode {
            PermissionMode::Ask | PermissionMode::Auto => (
                PermissionLevel::Ask,
                "it would run outside the sandbox, with full access to your account".into(),
            ),
            PermissionMode::Plan | PermissionMode::Full => {
                let mode = self.mode;
                (
                    PermissionLevel::Deny,
                    format!("commands cannot run outside the sandbox in mode {mode}"),
                )
            }
        })
    }

    /// Returns the strictest matching rule under a key, from the user's rules and the restricting
    /// rules.
    pub(crate) fn strictest_rule(
        &self,
        key: &str,
        subject: &RuleSubject<'_>,
    ) -> Option<(PermissionLevel, String)> {
        let user_verdict = self
            .user_rules
            .deciding_rule(key, subject)
            .map(|rule| (rule.level, rule.describe("your")));
        self.apply_restrictions(key, subject, user_verdict, PermissionLevel::Allow)
    }

    /// Applies the restricting rules to a verdict. A rule counts only if it is stricter than the
    /// verdict, or than the default if there is none.
    fn apply_restrictions(
        &self,
        key: &str,
        subject: &RuleSubject<'_>,
        mut verdict: Option<(PermissionLevel, String)>,
        default_level: PermissionLevel,
    ) -> Option<(PermissionLevel, String)> {
        for rule in
            self.restricting_rules.iter().filter_map(|rules| rules.deciding_rule(key, subject))
        {
            if rule.level > verdict.as_ref().map_or(default_level, |verdict| verdict.0) {
                verdict = Some((rule.level, rule.describe("the")));
            }
        }
        verdict
    }

    /// Returns true if the user permanently approved exactly this access and no restricting rule is
    /// stricter than `allow`.
    pub(crate) fn is_approved(&self, access: &ToolAccess) -> bool {
        let approval = ProjectApproval::for_access(access);
        self.approvals.contains(&approval)
            && self.restrictions_allow(access.permission_key(), access.subject())
    }

    /// Returns true if the user permanently approved commands of this kind and no restricting rule
    /// is stricter than `allow`.
    pub(crate) fn is_kind_approved(&self, kind: &str) -> bool {
        let key = ProjectApproval::COMMAND_KIND_KEY.to_owned();
        let approval = ProjectApproval { key, subject: kind.to_owned() };
        self.approvals.contains(&approval) && self.restrictions_allow("bash", kind)
    }

    /// Returns true if the user let the commands of this project reach package registries, and no
    /// restricting rule is stricter than `allow`.
    pub fn are_registries_approved(&self) -> bool {
        let approval = ProjectApproval::registries();
        self.approvals.contains(&approval)
            && self.restrictions_allow(&approval.key, &approval.subject)
            && self.restrictions_allow(&approval.key, "*")
    }

    fn restrictions_allow(&self, key: &str, subject: &str) -> bool {
        let subject = RuleSubject::new(subject);
        let is_allowed = |rules: &Arc<PermissionRules>| {
            rules
                .deciding_rule(key, &subject)
                .is_none_or(|rule| rule.level == PermissionLevel::Allow)
        };
        self.restricting_rules.iter().all(is_allowed)
    }

    /// Returns true if a caller that satisfied this level may read the path. Secret files must be
    /// requested by name.
    pub(crate) fn may_show(&self, path: &str, level: PermissionLevel) -> bool {
        let outside = self.outside_verdict(path, PathUse::Read, path);
        let outside_level = outside.map(|verdict| verdict.0);
        self.read_level(path) <= level
            && outside_level.is_none_or(|outside_level| outside_level <= level)
            && !is_secret_file(path)
    }

    /// Returns the level of the rules for reading a path, without the reason.
    fn read_level(&self, path: &str) -> PermissionLevel {
        let path = RuleSubject::new(path);
        let level = |rules: &Arc<PermissionRules>| {
            rules.deciding_rule("read", &path).map(|rule| rule.level)
        };
        let user_level = level(&self.user_rules).unwrap_or(PermissionLevel::Allow);
        self.restricting_rules.iter().filter_map(level).fold(user_level, PermissionLevel::max)
    }

    /// Returns the verdict of the matching rule, if any. For protected paths, only rules that deny
    /// the access apply.
    pub(crate) fn rule_verdict(&self, access: &ToolAccess) -> Option<(PermissionLevel, String)> {
        match (self.edit_protection_verdict(access), self.named_rule_verdict(access)) {
            (Some(protection), Some(rule)) if rule.0 > protection.0 => Some(rule),
            (protection, rule) => protection.or(rule),
        }
    }

    fn named_rule_verdict(&self, access: &ToolAccess) -> Option<(PermissionLevel, String)> {
        let (key, subject) = (access.permission_key(), access.subject());
        let subject = &RuleSubject::new(subject);
        let user_verdict = self.user_rules.deciding_rule(key, subject).map(|rule| {
            // A wildcard that does not name secret files does not allow them.
            match rule.level == PermissionLevel::Allow
                && !rule.opens_secrets
                && exposes_secrets(access)
            {
                true => self.secret_file_verdict(access),
                false => (rule.level, rule.describe("your")),
            }
        });
        self.apply_restrictions(key, subject, user_verdict, self.default_level(access))
    }

    /// Returns the verdict on an edit of a protected path, regardless of rules that allow it. Only a
    /// rule of the user with the exact path lifts the protection; a wildcard does not. Edits of
    /// project settings can be approved when asked.
    fn edit_protection_verdict(&self, access: &ToolAccess) -> Option<(PermissionLevel, String)> {
        let ToolAccess::Edit { path } = access else { return None };
        if self.mode == PermissionMode::Plan {
            let reason = format!("`{path}` cannot be changed in mode plan");
            return Some((PermissionLevel::Deny, reason));
        }
        let root_tail = if path.starts_with('/') { &[] } else { &*self.root_tail };
        let protection = path_protection(root_tail, path)?;
        if self.user_rules.allows_exactly(access.permission_key(), path) {
            return None;
        }
        let reason = format!("`{path}` is protected, because {}", protection.reason);
        if protection.is_project_setting && self.approval_level() == PermissionLevel::Ask {
            return Some((PermissionLevel::Ask, reason));
        }
        let rule = serde_json::json!({"edit": {path: "allow"}});
        let reason = format!(
            "{reason}. Only the user can allow changes, with this exact path in the permission \
             rules of their own config: {rule}"
        );
        Some((PermissionLevel::Deny, reason))
    }

    /// Returns true if approval is only needed because mode ask asks about every edit.
    pub(crate) fn asks_only_about_edits(
        &self,
        accesses: &[ToolAccess],
        spelled: &[ToolAccess],
    ) -> bool {
        let is_plain_edit = |access: &ToolAccess| match access {
            ToolAccess::Edit { path } => {
                !unescape_path(path).is_absolute()
                    && !exposes_secrets(access)
                    && self.rule_verdict(access).is_none()
                    && self.rule_verdict(&ToolAccess::Read { path: path.clone() }).is_none()
            }
            ToolAccess::Read { .. } => self
                .access_verdict(access)
                .is_some_and(|(level, _)| level == PermissionLevel::Allow),
            _ => false,
        };
        accesses.iter().chain(spelled).all(is_plain_edit)
    }

    /// Returns the level for an access that no rule matches. Reading is allowed. Edits are denied
    /// in `Mode::Plan`, require approval in `Mode::Ask` and are allowed in the more permissive
    /// modes. Access to secret files follows `secret_file_verdict`, even for reading.
    fn default_level(&self, access: &ToolAccess) -> PermissionLevel {
        match access {
            _ if exposes_secrets(access) => self.secret_file_verdict(access).0,
            ToolAccess::Read { .. }
            | ToolAccess::Search { .. }
            | ToolAccess::ReadBlob { .. }
            | ToolAccess::ReadSkill { .. }
            | ToolAccess::Subagent { .. } => PermissionLevel::Allow,
            ToolAccess::Edit { .. } => match self.mode {
                PermissionMode::Plan => PermissionLevel::Deny,
                PermissionMode::Ask => PermissionLevel::Ask,
                PermissionMode::Auto | PermissionMode::Full => PermissionLevel::Allow,
            },
            ToolAccess::RunCommand { .. }
            | ToolAccess::Connect { .. }
            | ToolAccess::Fetch { .. }
            | ToolAccess::LeaveSandbox { .. }
            | ToolAccess::UseTool { .. } => match self.mode {
                PermissionMode::Plan | PermissionMode::Ask | PermissionMode::Auto => {
                    PermissionLevel::Ask
                }
                PermissionMode::Full => PermissionLevel::Allow,
            },
            // The author of the config wants the process, and no user is present to approve it at
            // startup.
            ToolAccess::StartProcess { .. } => PermissionLevel::Allow,
            ToolAccess::AcceptDefinition { .. } => self.approval_level(),
        }
    }

    /// Returns the verdict on a secret file that no rule names. `Mode::Full`, which never asks,
    /// denies it.
    pub(crate) fn secret_file_verdict(&self, access: &ToolAccess) -> (PermissionLevel, String) {
        let subject = access.subject();
        (
            self.approval_level(),
            format!("`{subject}` usually contains secrets, and no rule allows it by name"),
        )
    }
}

/// Returns the config rule that would allow exactly this access.
fn suggested_rule(access: &ToolAccess) -> String {
    let (key, subject) = (access.permission_key(), access.subject());
    let quote = |text: &str| serde_json::Value::from(text).to_string();
    match subject {
        "*" => format!("{}: \"allow\"", quote(key)),
        _ => format!("{}: {{{}: \"allow\"}}", quote(key), quote(subject)),
    }
}

/// Returns true for an access that reveals the contents of a secret file. An edit does: the error
/// for text that does not match quotes the file.
pub(crate) fn exposes_secrets(access: &ToolAccess) -> bool {
    file_access(access).is_some_and(|(path, _)| is_secret_file(path))
}

/// Returns the path that a file tool reads or changes.
pub(crate) fn file_access(access: &ToolAccess) -> Option<(&str, PathUse)> {
    match access {
        ToolAccess::Read { path } | ToolAccess::Search { path } => Some((path, PathUse::Read)),
        ToolAccess::Edit { path } => Some((path, PathUse::Write)),
        ToolAccess::ReadBlob { .. }
        | ToolAccess::ReadSkill { .. }
        | ToolAccess::RunCommand { .. }
        | ToolAccess::Connect { .. }
        | ToolAccess::Fetch { .. }
        | ToolAccess::LeaveSandbox { .. }
        | ToolAccess::Subagent { .. }
        | ToolAccess::UseTool { .. }
        | ToolAccess::StartProcess { .. }
        | ToolAccess::AcceptDefinition { .. } => None,
    }
}

/// Returns the reason that a changed tool definition requires approval.
fn changed_definition_reason(subject: &str) -> String {
    let tool = subject.split_once('@').map_or(subject, |(tool, _)| tool);
    format!("the definition of `{tool}` has changed since it was last accepted")
}

pub(crate) fn leaves_sandbox(access: &ToolAccess) -> bool {
    match access {
        ToolAccess::LeaveSandbox { .. } => true,
        ToolAccess::Read { .. }
        | ToolAccess::Search { .. }
        | ToolAccess::Edit { .. }
        | ToolAccess::ReadBlob { .. }
        | ToolAccess::ReadSkill { .. }
        | ToolAccess::RunCommand { .. }
        | ToolAccess::Connect { .. }
        | ToolAccess::Fetch { .. }
        | ToolAccess::Subagent { .. }
        | ToolAccess::UseTool { .. }
        | ToolAccess::StartProcess { .. }
        | ToolAccess::AcceptDefinition { .. } => false,
    }
}
