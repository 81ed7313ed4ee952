//! The access that a running command has to single paths of the workspace.
//!
//! The evaluation of a command line sees only the paths that the line names. The sandbox enforces
//! this access for every path, so a rule also holds for a wildcard, a link, a recursive search, or
//! a program that opens files by itself.

use crate::rules::{DecidingRule, RuleSubject};
use crate::secret_files::is_secret_file;
use crate::{PermissionLevel, PermissionRules, Policy};
use std::sync::Arc;
use windlass_protocol::ToolAccess;

/// Access of a command to one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandPathAccess {
    /// No rule restricts the path.
    Full,
    /// A rule about `edit` keeps the command from changing the path.
    ReadOnly,
    /// A rule about `read`, or the name of a secret file, keeps the command from reading the path.
    Hidden,
}

/// The rules of a policy that may restrict paths, without mode and approvals.
#[derive(Clone, Debug, PartialEq)]
pub struct PathRules(Vec<Arc<PermissionRules>>);

impl PathRules {
    /// Creates the set from the rules of one config.
    pub fn new(rules: PermissionRules) -> PathRules {
        PathRules(vec![Arc::new(rules)])
    }

    /// Returns true if a grant may restrict this path. Covers every path for which
    /// [`crate::Grant::command_path_access`] is not `Full`.
    pub fn may_restrict(&self, path: &str) -> bool {
        let subject = RuleSubject::new(path);
        is_secret_file(path)
            || self.0.iter().any(|rules| {
                rules.restricts_path("read", &subject) || rules.restricts_path("edit", &subject)
            })
    }
}

impl Policy {
    /// Returns the rules that may restrict paths.
    pub(crate) fn path_rules(&self) -> PathRules {
        PathRules(self.all_rules().cloned().collect())
    }

    /// Returns the access to a path for a command that satisfied this level. A rule for all paths,
    /// such as `"edit": "ask"`, is about the tools: it says nothing about single paths, and a
    /// command that could read nothing could not run.
    pub(crate) fn command_path_access(
        &self,
        path: &str,
        satisfied_level: PermissionLevel,
    ) -> CommandPathAccess {
        let subject = RuleSubject::new(path);
        if self.command_read_level(path, &subject) > satisfied_level {
            CommandPathAccess::Hidden
        } else if self.strictest_path_rule("edit", &subject) > satisfied_level {
            CommandPathAccess::ReadOnly
        } else {
            CommandPathAccess::Full
        }
    }

    fn command_read_level(&self, path: &str, subject: &RuleSubject<'_>) -> PermissionLevel {
        let access = ToolAccess::Read { path: path.to_owned() };
        let opens_secrets = path_rule(&self.user_rules, "read", subject)
            .is_some_and(|rule| rule.level == PermissionLevel::Allow && rule.opens_secrets);
        let secret_level = match is_secret_file(path) && !opens_secrets {
            true => self.secret_file_verdict(&access).0,
            false => PermissionLevel::Allow,
        };
        let level = self.strictest_path_rule("read", subject).max(secret_level);
        let is_approved = level == PermissionLevel::Ask && self.is_approved(&access);
        if is_approved { PermissionLevel::Allow } else { level }
    }

    fn strictest_path_rule(&self, key: &str, subject: &RuleSubject<'_>) -> PermissionLevel {
        let rules = self.all_rules().filter_map(|rules| path_rule(rules, key, subject));
        let levels = rules.map(|rule| rule.level);
        levels.max().unwrap_or(PermissionLevel::Allow)
    }

    /// Returns a path that a command must not read, but that the sandbox of this machine cannot
    /// hide from a command that may write.
    pub(crate) fn exposed_path(&self) -> Option<String> {
        let path_lookup = self.path_lookup.as_deref()?;
        path_lookup.unhideable_paths(&self.path_rules()).into_iter().find(|path| {
            self.command_path_access(path, PermissionLevel::Allow) == CommandPathAccess::Hidden
        })
    }
}

/// Returns the rule that decides about a path, unless it is a rule for all paths.
fn path_rule<'a>(
    rules: &'a PermissionRules,
    key: &str,
    subject: &RuleSubject<'_>,
) -> Option<DecidingRule<'a>> {
    rules.deciding_rule(key, subject).filter(|rule| !rule.matches_all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use CommandPathAccess::{Full, Hidden, ReadOnly};
    use serde_json::json;
    use windlass_protocol::PermissionMode;

    fn rules(value: serde_json::Value) -> PermissionRules {
        PermissionRules::parse(&value).unwrap()
    }

    #[test]
    fn rules_and_secret_names_restrict_single_paths() {
        let policy = Policy::new(rules(json!({
            "read": {"*": "ask", "private/*": "deny", "drafts/*": "ask", "open.env": "allow"},
            "edit": {"*": "ask", "Cargo.lock": "deny", "docs/*": "ask"},
        })))
        .restricted_by(rules(json!({"read": {"vault.txt": "deny"}, "edit": "deny"})))
        .with_mode(PermissionMode::Auto);
        let (allow, ask) = (PermissionLevel::Allow, PermissionLevel::Ask);
        for (path, unasked, approved) in [
            ("src/main.rs", Full, Full),
            ("private", Hidden, Hidden),
            ("private/a/b", Hidden, Hidden),
            ("PRIVATE/a", Hidden, Hidden),
            ("vault.txt", Hidden, Hidden),
            ("drafts/x", Hidden, Full),
            (".env", Hidden, Full),
            ("sub/prod.env", Hidden, Full),
            (".env.example", Full, Full),
            ("open.env", Full, Full),
            ("Cargo.lock", ReadOnly, ReadOnly),
            ("docs/a.md", ReadOnly, Full),
        ] {
            assert_eq!(policy.command_path_access(path, allow), unasked, "{path}");
            assert_eq!(policy.command_path_access(path, ask), approved, "{path}");
            let is_restricted = unasked != Full || approved != Full;
            assert!(policy.path_rules().may_restrict(path) || !is_restricted, "{path}");
        }
        assert!(!policy.path_rules().may_restrict("src/main.rs"));
        // Mode full asks for nothing, so it never opens a secret file.
        let full = policy.with_mode(PermissionMode::Full);
        assert_eq!(full.command_path_access(".env", ask), Hidden);
        assert_eq!(full.command_path_access("open.env", allow), Full);
    }
}
