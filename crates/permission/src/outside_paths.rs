//! Verdicts on paths outside the workspace. File tools and commands are judged by the same rules.

use crate::PathLookup;
use crate::command_safety::{PathUse, is_public_path, is_system_path};
use crate::protected_paths::protection_reason;
use crate::rules::{DecidingRule, OUTSIDE_KEY, PermissionLevel, PermissionRules, RuleSubject};
use crate::secret_files::{SecretPathAnchor, is_secret_path};
use std::path::Path;
use std::sync::Arc;

/// The rules and folders that decide about paths outside the workspace.
pub(crate) struct OutsidePaths<'a> {
    pub(crate) path_lookup: &'a dyn PathLookup,
    pub(crate) user_rules: &'a PermissionRules,
    pub(crate) restricting_rules: &'a [Arc<PermissionRules>],
}

impl OutsidePaths<'_> {
    /// Returns the verdict on reading or changing a path. Reading system files, toolchains and
    /// sources of dependencies is allowed.
    pub(crate) fn verdict(&self, path: &Path, path_use: PathUse) -> (PermissionLevel, String) {
        let display = path.display();
        let text = path.to_string_lossy();
        let is_own = self.path_lookup.private_paths().iter().any(|own| path.starts_with(own));
        if is_own || is_secret_path(path, SecretPathAnchor::Anywhere) {
            let reason = format!("`{display}` contains keys or login sessions of the user");
            return (PermissionLevel::Deny, reason);
        }
        if path_use == PathUse::Write {
            let system = is_system_path(path).then_some("the system runs or trusts it");
            if let Some(protection) = protection_reason(&[], &text).or(system) {
                let reason = format!("`{display}` is protected, because {protection}");
                return (PermissionLevel::Deny, reason);
            }
        }
        let home = self.path_lookup.home_dir().and_then(|home| path.strip_prefix(home).ok());
        let in_home = home.map(|path| format!("~/{}", path.display()));
        let subjects = [Some(&*text), in_home.as_deref()];
        let mut is_allowed = false;
        for subject in subjects.into_iter().flatten().map(RuleSubject::new) {
            let restrictions = self.restricting_rules.iter();
            let restrictions =
                restrictions.filter_map(|rules| rules.deciding_rule(OUTSIDE_KEY, &subject));
            let own = self.user_rules.deciding_rule(OUTSIDE_KEY, &subject);
            is_allowed |= own.as_ref().is_some_and(|rule| rule.level == PermissionLevel::Allow);
            let is_stricter = |rule: &DecidingRule<'_>| rule.level > PermissionLevel::Allow;
            if let Some(rule) = own.into_iter().chain(restrictions).find(is_stricter) {
                return (rule.level, rule.describe("the"));
            }
        }
        let mut folders = self.path_lookup.additional_folders().iter();
        let is_open = is_allowed
            || folders.any(|folder| path.starts_with(folder))
            || path_use == PathUse::Read
                && (self.path_lookup.is_in_readable_folder(path)
                    || is_public_path(path, self.path_lookup.home_dir()));
        match is_open {
            true => (PermissionLevel::Allow, String::new()),
            false => (
                PermissionLevel::Ask,
                format!("`{display}` is outside the workspace; --add-dir FOLDER adds a folder"),
            ),
        }
    }
}
