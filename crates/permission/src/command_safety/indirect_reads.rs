//! Evaluates the files that a pattern or folder includes without naming them: secret files, and
//! files that rules close.
//!
//! Patterns and rules are compared by their text, regardless of which files exist. Secret files
//! such as `.env` count only if a listing finds one: asking about every search because of files
//! that might exist would mean asking about everyday work.

use super::option_grammar::{ParsedArgument, has_option};
use super::path_evaluator::PathEvaluator;
use super::path_use::{PathUse, rule_keys};
use super::program_run_context::ProgramRunContext;
use super::risk::{Risk, RiskFinding};
use super::system_paths::normalize_path;
use super::system_paths::secret_file_finding;
use crate::pattern_overlap::{GlobPattern, globs_overlap};
use crate::rules::{PermissionLevel, PermissionRules};
use crate::secret_files::is_secret_file;
use crate::shell::ShellWord;
use crate::{FolderListing, protected_paths};
use std::path::{Path, PathBuf};
use wildmatch::WildMatch;

/// Limits the folders listed for one command line.
const MAX_FOLDER_LISTINGS: usize = 16;

/// Selects the files that a recursive search reads, by the options of `grep`, `diff` or `rg`.
struct FolderSearchFilter {
    include_hidden: bool,
    /// File names to include; empty for all.
    name_patterns: Vec<WildMatch>,
}

impl FolderSearchFilter {
    fn accepts(&self, path: &Path) -> bool {
        let is_hidden = |part: &std::ffi::OsStr| part.to_string_lossy().starts_with('.');
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        (self.include_hidden || !path.iter().any(is_hidden))
            && (self.name_patterns.is_empty()
                || self.name_patterns.iter().any(|pattern| pattern.matches(&name)))
    }
}

impl PathEvaluator<'_> {
    /// Evaluates all files that a pattern matches beneath a folder.
    pub(super) fn evaluate_matches(
        &self,
        folder: &Path,
        pattern: &str,
        path_use: PathUse,
    ) -> RiskFinding {
        let mut finding = RiskFinding::harmless();
        let resolved = self.path_lookup().resolve_path(folder);
        let normalized = normalize_path(folder);
        let normalized = (normalized != resolved).then_some(normalized);
        for folder in std::iter::once(&resolved).chain(&normalized) {
            let Ok(inner) = folder.strip_prefix(self.path_lookup().workspace_root()) else {
                continue;
            };
            let prefix = match inner.to_string_lossy() {
                inner if inner.is_empty() => String::new(),
                inner => protected_paths::fold_name(&format!("{inner}/")),
            };
            let glob =
                GlobPattern::from_shell(&protected_paths::fold_name(pattern)).with_prefix(&prefix);
            finding.merge(self.evaluate_rule_overlap(&glob, pattern, path_use));
        }
        if path_use == PathUse::Write || !self.is_in_workspace(&resolved) {
            return finding;
        }
        let Some(listing) = self.list_folder(&resolved) else {
            finding.merge(too_many_folders());
            return finding;
        };
        let glob = GlobPattern::from_shell(pattern);
        for path in &listing.paths {
            let name = path.to_string_lossy();
            if is_secret_file(&name) && globs_overlap(&glob, &GlobPattern::from_literal(&name)) {
                finding.merge(secret_file_finding(&resolved.join(path).display().to_string()));
            }
        }
        finding
    }

    /// Evaluates reading everything beneath a folder.
    fn evaluate_folder(&self, folder: &Path, filter: &FolderSearchFilter) -> RiskFinding {
        let mut finding = RiskFinding::harmless();
        let Ok(inner) = folder.strip_prefix(self.path_lookup().workspace_root()) else {
            return finding;
        };
        let Some(listing) = self.list_folder(folder) else { return too_many_folders() };
        for path in listing.paths.iter().filter(|path| filter.accepts(path)) {
            let inner = inner.join(path);
            let inner = inner.to_string_lossy();
            if is_secret_file(&inner) {
                finding.merge(secret_file_finding(&inner));
            }
            finding.merge(soften_nested_denial(self.evaluate_file_rules(&inner, PathUse::Read)));
        }
        if !listing.is_complete {
            let inner = inner.to_string_lossy();
            let glob = GlobPattern::beneath_folder(&protected_paths::fold_name(&inner));
            finding.merge(self.evaluate_rule_overlap(
                &glob,
                &format!("{}/*", folder.display()),
                PathUse::Read,
            ));
        }
        finding
    }

    fn evaluate_rule_overlap(
        &self,
        glob: &GlobPattern,
        pattern_text: &str,
        path_use: PathUse,
    ) -> RiskFinding {
        let mut finding = RiskFinding::harmless();
        let overlapping_rules = |rules: &PermissionRules| -> Vec<(PermissionLevel, String)> {
            let matches = rule_keys(path_use)
                .iter()
                .filter_map(|key| rules.strictest_overlapping_rule(key, glob));
            matches.map(|(level, source_text)| (level, source_text.to_owned())).collect()
        };
        for rules in
            std::iter::once(self.user_rules).chain(self.restricting_rules.iter().map(AsRef::as_ref))
        {
            for (level, source_text) in overlapping_rules(rules) {
                let (risk, effect) = match level {
                    PermissionLevel::Allow => continue,
                    PermissionLevel::Ask => (Risk::OutsideWorkspace, "requires approval"),
                    PermissionLevel::Deny => (Risk::LocalService, "denies access"),
                };
                let reason = format!(
                    "`{pattern_text}` may match files for which the rule {source_text} {effect}"
                );
                finding.merge(RiskFinding {
                    overlaps_file_rule: true,
                    ..RiskFinding::new(risk, reason)
                });
            }
        }
        finding
    }

    /// Lists a folder through `PathLookup`, with a cache. Returns `None` after
    /// `MAX_FOLDER_LISTINGS` folders.
    fn list_folder(&self, folder: &Path) -> Option<FolderListing> {
        let mut listings = self.folder_listings.borrow_mut();
        if let Some(cached) = listings.get(folder) {
            return Some(cached.clone());
        }
        if listings.len() >= MAX_FOLDER_LISTINGS {
            return None;
        }
        let listing = self.path_lookup().list_beneath(folder);
        listings.insert(folder.to_owned(), listing.clone());
        Some(listing)
    }

    /// Returns the folders that a word may refer to, as far as the word is known.
    fn search_roots(&self, run_context: &ProgramRunContext<'_>, word: &ShellWord) -> Vec<PathBuf> {
        let text = match word {
            ShellWord::Plain(text) => Some(text.clone()),
            ShellWord::Pattern(text) => self.expand_tilde(text),
            ShellWord::Opaque(_) => None,
        };
        let Some(text) = text else { return Vec::new() };
        let has_wildcard =
            |part: &&str| matches!(word, ShellWord::Pattern(_)) && part.contains(['*', '?', '[']);
        let parts: Vec<&str> = text.split('/').take_while(|part| !has_wildcard(part)).collect();
        let prefix = match (parts.join("/"), text.starts_with('/')) {
            (prefix, true) if prefix.is_empty() => "/".to_owned(),
            (prefix, false) if prefix.is_empty() => ".".to_owned(),
            (prefix, _) => prefix,
        };
        let paths = self.candidate_paths(run_context.folders, &prefix).into_iter().flatten();
        paths.map(|path| self.path_lookup().resolve_path(&path)).collect()
    }
}

/// Weakens `Risk::Forbidden` to `Risk::LocalService`: a deny for something beneath a folder does
/// not deny the folder.
fn soften_nested_denial(finding: RiskFinding) -> RiskFinding {
    match finding.risk {
        Risk::Forbidden => {
            let offline = (Risk::LocalService, finding.reason.clone());
            RiskFinding { risk: Risk::LocalService, offline, overlaps_file_rule: true, ..finding }
        }
        Risk::OutsideWorkspace => RiskFinding { overlaps_file_rule: true, ..finding },
        Risk::ReadOnly
        | Risk::ConfinedRead
        | Risk::WorkspaceWrite
        | Risk::Network
        | Risk::Destructive
        | Risk::Unknown
        | Risk::UnseenScript
        | Risk::LocalService => finding,
    }
}

fn too_many_folders() -> RiskFinding {
    RiskFinding::new(Risk::OutsideWorkspace, "it searches too many folders to check")
}

/// Evaluates the paths of a program that reads folders recursively.
pub(super) fn evaluate_search(
    run_context: &ProgramRunContext<'_>,
    program: &str,
    arguments: &[ParsedArgument],
    paths: &[&ShellWord],
) -> RiskFinding {
    let mut finding = RiskFinding::harmless();
    let Some(filter) = folder_search_filter(program, arguments) else { return finding };
    let current_folder = ShellWord::Plain(".".to_owned());
    let reads_input = program == "diff" || (program == "rg" && run_context.has_piped_input);
    let paths = match paths {
        [] if reads_input => &[],
        [] => &[&current_folder] as &[&ShellWord],
        paths => paths,
    };
    for word in paths {
        for folder in run_context.path_context.search_roots(run_context, word) {
            finding.merge(run_context.path_context.evaluate_folder(&folder, &filter));
        }
    }
    finding
}

/// Returns the filter of a recursive search, or `None` if the program does not read folders.
fn folder_search_filter(program: &str, arguments: &[ParsedArgument]) -> Option<FolderSearchFilter> {
    let values = |names: &[&str]| -> Vec<&str> {
        let values = arguments.iter().filter_map(|argument| match argument {
            ParsedArgument::Option { name, value: Some(value), .. }
                if names.contains(&name.as_str()) =>
            {
                Some(value.text())
            }
            ParsedArgument::Option { .. }
            | ParsedArgument::Operand(_)
            | ParsedArgument::MaybeOption(_)
            | ParsedArgument::Opaque(_) => None,
        });
        values.collect()
    };
    match program {
        "grep" | "egrep" | "fgrep" => {
            let recursive = ["-r", "-R", "--recursive", "--dereference-recursive"];
            let recurses = values(&["-d"]).contains(&"recurse");
            let name_patterns = values(&["--include"]).into_iter().map(last_part_pattern).collect();
            (recurses || has_option(arguments, &recursive))
                .then_some(FolderSearchFilter { include_hidden: true, name_patterns })
        }
        "diff" => has_option(arguments, &["-r", "--recursive"])
            .then_some(FolderSearchFilter { include_hidden: true, name_patterns: Vec::new() }),
        "rg" => {
            if has_option(arguments, &["--files", "--type-list", "--version", "--help", "-V", "-h"])
            {
                return None;
            }
            let is_unrestricted = |argument: &&ParsedArgument| {
                matches!(argument, ParsedArgument::Option { name, .. }
                    if matches!(name.as_str(), "-u" | "--unrestricted"))
            };
            let globs = values(&["-g", "--glob", "--iglob"]);
            let name_patterns: Vec<WildMatch> = globs
                .into_iter()
                .filter(|glob| !glob.starts_with('!'))
                .map(last_part_pattern)
                .collect();
            // `rg` searches hidden files that match a `--glob`.
            let include_hidden = has_option(arguments, &["--hidden", "-."])
                || !name_patterns.is_empty()
                || arguments.iter().filter(is_unrestricted).count() > 1;
            Some(FolderSearchFilter { include_hidden, name_patterns })
        }
        _ => None,
    }
}

/// Returns the last component of a pattern. One with syntax beyond `*` and `?` matches every name.
fn last_part_pattern(pattern: &str) -> WildMatch {
    let last = pattern.trim_end_matches('/').rsplit('/').next().unwrap_or(pattern);
    match last.contains(['{', '[', '\\']) || pattern.ends_with('/') {
        true => WildMatch::new("*"),
        false => WildMatch::new(last),
    }
}
