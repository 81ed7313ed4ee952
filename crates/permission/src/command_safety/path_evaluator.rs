//! Resolves the paths of a command and evaluates the access to them.
//!
//! A path is checked as written and as resolved, and the stricter result counts. The module opens
//! nothing: [`PathLookup`] resolves links.

use super::PathLookup;
use super::path_use::{PathUse, rule_keys};
use super::risk::{Risk, RiskFinding};
use super::system_paths::{evaluate_device, is_specific_name, normalize_path, secret_file_finding};
use super::word_expansion::{self, KnownVariables};
use crate::outside_paths::OutsidePaths;
use crate::rules::{PermissionLevel, PermissionRules, RuleSubject};
use crate::secret_files::{
    SecretPathAnchor, could_match_secret_file, could_match_secret_path, is_secret_file,
    is_secret_path,
};
use crate::shell::ShellWord;
use crate::{FolderListing, protected_paths};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folders that a command may run in: several because a `cd` can fail, none if unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PossibleWorkingFolders(pub(super) Vec<PathBuf>);

/// The longest path that is evaluated; no system opens a longer one.
const MAX_PATH_BYTES: usize = 4096;

/// The path lookup, rules and caches for one command line.
pub(super) struct PathEvaluator<'a> {
    path_lookup: &'a dyn PathLookup,
    root_tail: Vec<String>,
    pub(super) user_rules: &'a PermissionRules,
    pub(super) restricting_rules: &'a [Arc<PermissionRules>],
    /// Folders listed so far.
    pub(super) folder_listings: RefCell<HashMap<PathBuf, FolderListing>>,
    /// Paths evaluated so far: a command may name a path thousands of times.
    evaluated_paths: RefCell<HashMap<(PathBuf, PathUse), RiskFinding>>,
    pub(super) variables: KnownVariables,
}

impl<'a> PathEvaluator<'a> {
    pub(super) fn new(
        path_lookup: &'a dyn PathLookup,
        user_rules: &'a PermissionRules,
        restricting_rules: &'a [Arc<PermissionRules>],
    ) -> PathEvaluator<'a> {
        PathEvaluator {
            path_lookup,
            root_tail: protected_paths::root_tail(path_lookup.workspace_root()),
            user_rules,
            restricting_rules,
            folder_listings: RefCell::default(),
            evaluated_paths: RefCell::default(),
            variables: KnownVariables::default(),
        }
    }

    fn outside_paths(&self) -> OutsidePaths<'_> {
        let (path_lookup, restricting_rules) = (self.path_lookup, self.restricting_rules);
        OutsidePaths { path_lookup, user_rules: self.user_rules, restricting_rules }
    }

    /// Replaces the variables in a word whose values are known.
    fn expand_variables(&self, text: &str) -> Option<ShellWord> {
        word_expansion::expand_known_variables(text, |name| {
            match (name, self.variables.get(name)) {
                (_, Some(value)) => value,
                ("HOME", None) => self.path_lookup.home_dir()?.to_str().map(str::to_owned),
                ("PWD", None) => Some(".".to_owned()),
                (_, None) => None,
            }
        })
    }

    pub(super) fn path_lookup(&self) -> &'a dyn PathLookup {
        self.path_lookup
    }

    /// Returns the path that a word with variables means, if all of them are known.
    fn expand_to_path(&self, text: &str) -> Option<String> {
        match self.expand_variables(text).filter(|_| text.contains('$'))? {
            ShellWord::Plain(path) => Some(path),
            ShellWord::Pattern(_) | ShellWord::Opaque(_) => None,
        }
    }

    /// Evaluates reading or writing the path that a word names.
    pub(super) fn evaluate_word(
        &self,
        folders: &PossibleWorkingFolders,
        word: &ShellWord,
        path_use: PathUse,
    ) -> RiskFinding {
        let text = word.text();
        match word {
            ShellWord::Plain(path) => self.evaluate_path(folders, path, path_use),
            ShellWord::Pattern(_) => self.evaluate_pattern(folders, text, path_use),
            ShellWord::Opaque(_) => {
                match self.expand_variables(text) {
                    Some(ShellWord::Plain(path)) => self.evaluate_path(folders, &path, path_use),
                    Some(ShellWord::Pattern(path)) => {
                        self.evaluate_pattern(folders, &path, path_use)
                    }
                    Some(ShellWord::Opaque(path)) if word_expansion::leads_outside(&path) => {
                        let reason = format!("the location of `{text}` is unknown");
                        RiskFinding::new(Risk::OutsideWorkspace, reason)
                    }
                    // Wherever it leads, the sandbox confines the command.
                    Some(ShellWord::Opaque(_)) | None => {
                        let reason = format!("the value of `{text}` is unknown");
                        let mut finding = RiskFinding::new(path_use.confined_risk(), reason);
                        for piece in word_expansion::paths_in_substitutions(text) {
                            finding.merge(self.evaluate_word(folders, &piece, path_use));
                        }
                        finding
                    }
                }
            }
        }
    }

    fn evaluate_path(
        &self,
        folders: &PossibleWorkingFolders,
        path_text: &str,
        path_use: PathUse,
    ) -> RiskFinding {
        if path_text.is_empty() || path_text == "-" {
            return RiskFinding::harmless();
        }
        if path_text.len() > MAX_PATH_BYTES {
            return RiskFinding::new(Risk::OutsideWorkspace, "a path is too long");
        }
        if let Some(finding) = evaluate_device(path_text, path_use) {
            return finding;
        }
        let mut finding = RiskFinding::harmless();
        for path in self.candidate_paths(folders, path_text) {
            match path {
                Some(path) => finding.merge(self.evaluate_absolute(&path, path_use)),
                None => finding.merge(evaluate_in_unknown_folder(path_text, path_use)),
            }
        }
        finding
    }

    /// Returns the absolute path for each of the `PossibleWorkingFolders`, or `None` for an unknown folder.
    pub(super) fn candidate_paths(
        &self,
        folders: &PossibleWorkingFolders,
        path: &str,
    ) -> Vec<Option<PathBuf>> {
        if path.starts_with('/') {
            return vec![Some(PathBuf::from(path))];
        }
        match folders.0.is_empty() {
            true => vec![None],
            false => folders.0.iter().map(|folder| Some(folder.join(path))).collect(),
        }
    }

    /// Evaluates a path with wildcards or a tilde. The part before the first wildcard is known; the
    /// rest can be anything that the pattern matches.
    fn evaluate_pattern(
        &self,
        folders: &PossibleWorkingFolders,
        text: &str,
        path_use: PathUse,
    ) -> RiskFinding {
        let Some(text) = self.expand_tilde(text) else {
            return RiskFinding::new(
                Risk::OutsideWorkspace,
                format!("`{text}` refers to a home folder"),
            );
        };
        let has_wildcard = |part: &str| part.contains(['*', '?', '[']);
        if !has_wildcard(&text) {
            return self.evaluate_path(folders, &text, path_use);
        }
        let parts: Vec<&str> = text.split('/').collect();
        let known_count = parts.iter().position(|part| has_wildcard(part)).unwrap_or(parts.len());
        let mut prefix = parts.iter().take(known_count).copied().collect::<Vec<_>>().join("/");
        if prefix.is_empty() {
            prefix.push_str(if text.starts_with('/') { "/" } else { "." });
        }
        let mut finding = self.evaluate_path(folders, &prefix, path_use);
        if path_use == PathUse::Write {
            finding.merge(RiskFinding::new(Risk::WorkspaceWrite, format!("it changes `{text}`")));
        }
        let home_in_workspace = self
            .path_lookup
            .home_dir()
            .is_some_and(|home| home.starts_with(self.path_lookup.workspace_root()));
        for part in parts.iter().skip(known_count) {
            let is_hidden = part.starts_with('.');
            let may_be_secret = could_match_secret_file(part)
                || (home_in_workspace && could_match_secret_path(part));
            if *part == ".." || (is_hidden && (path_use == PathUse::Write || may_be_secret)) {
                let reason = format!("`{text}` may match private files or files that run later");
                finding.merge(RiskFinding::new(Risk::OutsideWorkspace, reason));
            }
        }
        if parts.last().is_some_and(|last| is_secret_file(last)) {
            finding.merge(secret_file_finding(&text));
        }
        let tail = parts.iter().skip(known_count).copied().collect::<Vec<_>>().join("/");
        for prefix in self.candidate_paths(folders, &prefix).into_iter().flatten() {
            finding.merge(self.evaluate_matches(&prefix, &tail, path_use));
        }
        finding
    }

    /// Replaces a leading `~` with the home folder. Returns `None` for `~name`, the home of another
    /// user.
    pub(super) fn expand_tilde(&self, text: &str) -> Option<String> {
        let Some(rest) = text.strip_prefix('~') else { return Some(text.to_owned()) };
        let home = self.path_lookup.home_dir()?.to_str()?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{home}{rest}"))
    }

    /// Returns the possible working folders after `cd` to a word.
    pub(super) fn change_folder(
        &self,
        folders: &PossibleWorkingFolders,
        word: &ShellWord,
    ) -> PossibleWorkingFolders {
        let text = match word {
            ShellWord::Plain(text) => Some(text.clone()),
            ShellWord::Pattern(text) => {
                self.expand_tilde(text).filter(|text| !text.contains(['*', '?', '[']))
            }
            ShellWord::Opaque(text) => self.expand_to_path(text),
        };
        let Some(text) = text.filter(|text| text != "-") else {
            return PossibleWorkingFolders(Vec::new());
        };
        let mut new_folders = Vec::new();
        for path in self.candidate_paths(folders, &text) {
            let Some(path) = path else { return PossibleWorkingFolders(Vec::new()) };
            // The shell resolves `..` by name, programs resolve it through links.
            for path in [normalize_path(&path), self.path_lookup.resolve_path(&path)] {
                if path.as_os_str().len() > MAX_PATH_BYTES {
                    return PossibleWorkingFolders(Vec::new());
                }
                if !new_folders.contains(&path) {
                    new_folders.push(path);
                }
            }
        }
        for folder in &folders.0 {
            if !new_folders.contains(folder) {
                new_folders.push(folder.clone());
            }
        }
        match new_folders.len() {
            0..=4 => PossibleWorkingFolders(new_folders),
            _ => PossibleWorkingFolders(Vec::new()),
        }
    }

    /// Returns true if a path is the workspace root, the home folder, or lies outside the
    /// workspace.
    pub(super) fn is_critical_path(
        &self,
        folders: &PossibleWorkingFolders,
        word: &ShellWord,
    ) -> bool {
        let text = match word {
            ShellWord::Plain(text) => Some(text.clone()),
            ShellWord::Pattern(text) => self.expand_tilde(text),
            ShellWord::Opaque(text) => self.expand_to_path(text),
        };
        let Some(text) = text else { return true };
        let parts = text.split('/').take_while(|part| is_specific_name(part));
        let prefix = parts.collect::<Vec<_>>().join("/");
        let prefix = match (prefix.is_empty(), text.starts_with('/')) {
            (true, true) => "/".to_owned(),
            (true, false) => ".".to_owned(),
            (false, _) => prefix,
        };
        self.candidate_paths(folders, &prefix).into_iter().any(|path| {
            let Some(path) = path else { return true };
            let normalized = normalize_path(&path);
            if self.is_private_temp_path(&normalized) {
                return normalized.parent().is_none_or(|parent| parent == Path::new("/"));
            }
            let path = self.path_lookup.resolve_path(&path);
            let root = self.path_lookup.workspace_root();
            !path.starts_with(root)
                || path == root
                || self.path_lookup.home_dir() == Some(path.as_path())
        })
    }

    /// Returns true for a path in the workspace or in a private temporary folder.
    pub(super) fn is_own_path(&self, path: &Path) -> bool {
        self.is_private_temp_path(&normalize_path(path)) || self.is_in_workspace(path)
    }

    pub(super) fn is_in_workspace(&self, path: &Path) -> bool {
        self.path_lookup.resolve_path(path).starts_with(self.path_lookup.workspace_root())
    }

    fn evaluate_absolute(&self, path: &Path, path_use: PathUse) -> RiskFinding {
        let key = (path.to_path_buf(), path_use);
        if let Some(finding) = self.evaluated_paths.borrow().get(&key) {
            return finding.clone();
        }
        let finding = self.evaluate_uncached(path, path_use);
        self.evaluated_paths.borrow_mut().insert(key, finding.clone());
        finding
    }

    fn evaluate_uncached(&self, path: &Path, path_use: PathUse) -> RiskFinding {
        let normalized = normalize_path(path);
        if self.is_private_temp_path(&normalized) {
            return match path_use {
                PathUse::Read => RiskFinding::harmless(),
                PathUse::Write => RiskFinding::new(
                    Risk::WorkspaceWrite,
                    format!("it changes the temporary file `{}`", path.display()),
                ),
            };
        }
        let resolved = self.path_lookup.resolve_path(path);
        let mut finding = self.evaluate_single(&resolved, path_use);
        if normalized != resolved {
            let normalized_finding = self.evaluate_single(&normalized, path_use);
            if normalized_finding.risk == Risk::Forbidden
                || is_secret_file(&normalized.to_string_lossy())
            {
                finding.merge(normalized_finding);
            }
        }
        finding
    }

    /// Returns true for a path in `/tmp` or `/var/tmp`, if they belong to the session alone. A link
    /// there leads to what the sandbox shows, so the target is of no concern.
    fn is_private_temp_path(&self, path: &Path) -> bool {
        ["/tmp", "/var/tmp"].iter().any(|folder| path.starts_with(folder))
            && self.path_lookup.has_private_tmp()
            && !path.starts_with(self.path_lookup.workspace_root())
    }

    fn evaluate_single(&self, path: &Path, path_use: PathUse) -> RiskFinding {
        let display = path.display();
        if let Some(finding) = evaluate_device(&path.to_string_lossy(), path_use) {
            return finding;
        }
        let inner = path.strip_prefix(self.path_lookup.workspace_root()).ok();
        let relative = inner.map(|path| path.to_string_lossy());
        let mut finding = match path_use {
            PathUse::Read => RiskFinding::harmless(),
            PathUse::Write => {
                RiskFinding::new(Risk::WorkspaceWrite, format!("it changes `{display}`"))
            }
        };
        if let Some(path) = &relative {
            finding.merge(self.evaluate_file_rules(path, path_use));
        }
        if path_use == PathUse::Write {
            let subject = relative.as_deref().unwrap_or_default();
            let absolute = path.to_string_lossy();
            let protection = match relative.is_some() {
                true => protected_paths::protection_reason(&self.root_tail, subject),
                false => protected_paths::protection_reason(&[], &absolute),
            };
            let is_allowed = relative.is_some() && self.user_rules.allows_exactly("edit", subject);
            if let Some(protection) = protection.filter(|_| !is_allowed) {
                let reason = format!("`{display}` is protected, because {protection}");
                finding.merge(RiskFinding::new(Risk::Forbidden, reason));
            }
        }
        if self.is_user_secret(path, inner.is_some()) {
            let reason = format!("`{display}` contains keys or login sessions of the user");
            finding.merge(RiskFinding::new(Risk::Forbidden, reason));
        }
        if is_secret_file(&path.to_string_lossy()) {
            finding.merge(secret_file_finding(&display.to_string()));
        }
        if inner.is_none() {
            let (level, reason) = self.outside_paths().verdict(path, path_use);
            finding.merge(match level {
                PermissionLevel::Allow => RiskFinding::harmless(),
                PermissionLevel::Ask => RiskFinding::new(Risk::OutsideWorkspace, reason),
                PermissionLevel::Deny => RiskFinding::new(Risk::Forbidden, reason),
            });
        }
        finding
    }

    /// Evaluates the user's and restricting rules for the file tools on the same path. Here they
    /// can only make the result stricter.
    pub(super) fn evaluate_file_rules(&self, path: &str, path_use: PathUse) -> RiskFinding {
        let keys = rule_keys(path_use);
        let mut finding = RiskFinding::harmless();
        let subject = RuleSubject::new(path);
        for rules in
            std::iter::once(self.user_rules).chain(self.restricting_rules.iter().map(AsRef::as_ref))
        {
            for rule in keys.iter().filter_map(|key| rules.deciding_rule(key, &subject)) {
                let risk = match rule.level {
                    PermissionLevel::Allow => continue,
                    PermissionLevel::Ask => Risk::OutsideWorkspace,
                    PermissionLevel::Deny => Risk::Forbidden,
                };
                finding.merge(RiskFinding::new(risk, rule.describe("the")));
            }
        }
        finding
    }

    /// Returns true for paths that only the user may read. If the workspace itself is such a place,
    /// its contents are the work and do not count.
    fn is_user_secret(&self, path: &Path, is_inside: bool) -> bool {
        match (is_inside, self.path_lookup.home_dir()) {
            (true, Some(home)) => {
                path.strip_prefix(home)
                    .is_ok_and(|path| is_secret_path(path, SecretPathAnchor::Home))
                    && !is_secret_path(
                        self.path_lookup.workspace_root(),
                        SecretPathAnchor::Anywhere,
                    )
            }
            (true, None) => false,
            (false, _) => is_secret_path(path, SecretPathAnchor::Anywhere),
        }
    }

    /// Evaluates a word that a program may treat as a path. For a known program only
    /// `Risk::Forbidden` paths count; for an unknown program paths outside the workspace count too.
    pub(super) fn evaluate_mention(
        &self,
        folders: &PossibleWorkingFolders,
        word: &ShellWord,
        knowledge: ProgramTableMembership,
    ) -> RiskFinding {
        let expanded = match word {
            ShellWord::Opaque(text) => self.expand_variables(text),
            ShellWord::Plain(_) | ShellWord::Pattern(_) => Some(word.clone()),
        };
        let Some(word) = expanded else { return RiskFinding::harmless() };
        let text = word.text();
        let mut finding = RiskFinding::harmless();
        if matches!(word, ShellWord::Opaque(_)) || text.contains(char::is_whitespace) {
            return finding;
        }
        if text.contains("docker.sock") {
            let reason = "the Docker socket gives root privileges";
            finding.merge(RiskFinding::new(Risk::Forbidden, reason));
        }
        let attached = text.strip_prefix('-').and_then(|rest| rest.get(1..));
        let parts = text.split(['=', '@', ',', ':']).map(Some).chain([attached, Some(text)]);
        for part in parts.flatten() {
            let is_rooted =
                part.starts_with('/') || part.starts_with('~') || part.starts_with("..");
            if part.starts_with("//") || !(is_rooted || part.contains('/')) {
                continue;
            }
            let word = match part.contains(['~', '*', '?', '[']) {
                true => ShellWord::Pattern(part.to_owned()),
                false => ShellWord::Plain(part.to_owned()),
            };
            let path_finding = self.evaluate_word(folders, &word, PathUse::Read);
            let is_relevant = match knowledge {
                ProgramTableMembership::Unknown => path_finding.risk >= Risk::OutsideWorkspace,
                ProgramTableMembership::Known => path_finding.risk == Risk::Forbidden,
            };
            if is_relevant {
                finding.merge(path_finding);
            }
        }
        finding
    }
}

/// Tells if the program table has a row for the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramTableMembership {
    Unknown,
    Known,
}

/// Evaluates a relative path after a `cd` to an unknown folder. The sandbox confines the command
/// wherever that is.
fn evaluate_in_unknown_folder(path: &str, path_use: PathUse) -> RiskFinding {
    let reason = "an earlier `cd` goes to an unknown folder";
    let mut finding = match path.split('/').any(|part| part == "..") {
        true => RiskFinding::new(Risk::OutsideWorkspace, reason),
        false => RiskFinding::new(path_use.confined_risk(), reason),
    };
    if is_secret_file(path) {
        finding.merge(secret_file_finding(path));
    }
    finding
}
