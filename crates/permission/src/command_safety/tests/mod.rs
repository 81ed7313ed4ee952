//! Evaluation of commands with mock paths: the corpora, variations of commands, and single cases.

mod cases;
mod corpus;
mod indirect_reads;
mod metamorphic;

use super::risk::Risk;
use super::{CommandEvaluationContext, CommandVerdict, evaluate_command, programs};
use crate::{
    FolderListing, PathLookup, PathRules, PermissionLevel, PermissionRules, SandboxStatus,
};
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use windlass_protocol::PermissionMode;

/// A `PathLookup` without a file system, with the workspace `/w` and the home `/home/u`.
#[derive(Debug, Default)]
struct MockPathLookup {
    links: HashMap<PathBuf, PathBuf>,
    programs: HashMap<String, PathBuf>,
    /// Files, relative to the workspace.
    files: Vec<&'static str>,
    /// True if the listing of `files` is not complete.
    has_more_files: bool,
    has_own_loopback: bool,
    has_private_tmp: bool,
}

impl MockPathLookup {
    fn with_link(from: &str, to: &str) -> MockPathLookup {
        let links = HashMap::from([(PathBuf::from(from), PathBuf::from(to))]);
        MockPathLookup { links, ..MockPathLookup::default() }
    }

    fn with_files(files: &[&'static str]) -> MockPathLookup {
        MockPathLookup { files: files.to_vec(), ..MockPathLookup::default() }
    }
}

impl PathLookup for MockPathLookup {
    fn resolve_path(&self, path: &Path) -> PathBuf {
        let mut real = PathBuf::from("/");
        for part in path.components() {
            match part {
                Component::ParentDir => {
                    real.pop();
                }
                Component::Normal(name) => {
                    real.push(name);
                    if let Some(target) = self.links.get(&real) {
                        real = target.clone();
                    }
                }
                _ => {}
            }
        }
        real
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        self.programs.get(name).cloned()
    }

    fn list_beneath(&self, folder: &Path) -> FolderListing {
        let all = self.files.iter().map(|file| Path::new("/w").join(file));
        let inner = all.filter_map(|file| file.strip_prefix(folder).map(Path::to_owned).ok());
        FolderListing { paths: inner.collect(), is_complete: !self.has_more_files }
    }

    fn find_untrusted_config(&self, folder: &Path, names: &[&str]) -> Option<PathBuf> {
        let folders = folder.ancestors().take_while(|folder| folder.starts_with("/w"));
        let mut paths = folders.flat_map(|folder| names.iter().map(|name| folder.join(name)));
        paths.find(|path| self.files.iter().any(|file| Path::new("/w").join(file) == *path))
    }

    fn sandbox_status(&self) -> SandboxStatus {
        SandboxStatus::Active
    }

    fn has_private_tmp(&self) -> bool {
        self.has_private_tmp
    }

    fn has_own_loopback(&self) -> bool {
        self.has_own_loopback
    }

    fn unhideable_paths(&self, _rules: &PathRules) -> Vec<String> {
        Vec::new()
    }

    fn home_dir(&self) -> Option<&Path> {
        Some(Path::new("/home/u"))
    }

    fn workspace_root(&self) -> &Path {
        Path::new("/w")
    }
}

fn rules(text: &str) -> PermissionRules {
    PermissionRules::parse(&serde_json::from_str(text).unwrap()).unwrap()
}

fn evaluate_with(
    lookup: &MockPathLookup,
    user_rules: &str,
    restricting_rules: &[&str],
    mode: PermissionMode,
    text: &str,
) -> CommandVerdict {
    let user_rules = rules(user_rules);
    let restricting_rules: Vec<_> =
        restricting_rules.iter().map(|text| Arc::new(rules(text))).collect();
    let sandbox_status = lookup.sandbox_status();
    evaluate_command(
        text,
        "",
        &CommandEvaluationContext {
            user_rules: &user_rules,
            restricting_rules: &restricting_rules,
            path_lookup: lookup,
            mode,
            sandbox_status,
        },
    )
}

fn evaluate(mode: PermissionMode, text: &str) -> CommandVerdict {
    evaluate_with(&MockPathLookup::default(), "{}", &[], mode, text)
}

fn level(mode: PermissionMode, text: &str) -> PermissionLevel {
    evaluate(mode, text).level
}

/// Returns true if a command is allowed in mode ask even without a sandbox.
fn is_proven_read(text: &str) -> bool {
    let context = CommandEvaluationContext {
        user_rules: &rules("{}"),
        restricting_rules: &[],
        path_lookup: &MockPathLookup::default(),
        mode: PermissionMode::Ask,
        sandbox_status: SandboxStatus::Off,
    };
    evaluate_command(text, "", &context).level == PermissionLevel::Allow
}

/// Returns the highest risk of the commands in a line.
fn risk_of(text: &str) -> Risk {
    match (level(PermissionMode::Ask, text), level(PermissionMode::Auto, text)) {
        (PermissionLevel::Allow, _) if is_proven_read(text) => Risk::ReadOnly,
        (PermissionLevel::Allow, _) => Risk::ConfinedRead,
        (PermissionLevel::Deny, _) => Risk::Forbidden,
        (_, PermissionLevel::Allow) => Risk::WorkspaceWrite,
        _ => Risk::OutsideWorkspace,
    }
}

#[test]
fn every_program_row_covers_its_examples_and_not_its_counterexamples() {
    let mut failures = Vec::new();
    for row in programs::all_rows() {
        assert!(
            !row.examples.is_empty() && !row.counterexamples.is_empty(),
            "{} has no examples",
            row.names
        );
        // Modes distinguish three risks: those that require approval in both modes count as one.
        let expected = row.risk.min(Risk::OutsideWorkspace);
        for text in row.examples {
            if risk_of(text) != expected {
                failures.push(format!(
                    "{text}: {:?}, not {expected:?}: {:?}",
                    risk_of(text),
                    evaluate(PermissionMode::Ask, text).segments
                ));
            }
        }
        for text in row.counterexamples {
            let (found, wants_network) =
                (risk_of(text), evaluate(PermissionMode::Ask, text).wants_network);
            let is_covered = match row.risk {
                Risk::ReadOnly | Risk::WorkspaceWrite => found == row.risk,
                Risk::Network => wants_network && found != Risk::Forbidden,
                _ => found == Risk::OutsideWorkspace && !wants_network,
            };
            if is_covered {
                failures.push(format!("{text} is evaluated as {:?}", row.risk));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
