//! Plans the changes of a whole patch before any file is touched.

use super::locate_hunks::{LocatedHunks, locate_hunks};
use super::{PatchError, PatchHunk, PatchSection};
use crate::text::FileText;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// Access to the current file contents for `plan_changes`. Paths are resolved: two different paths
/// are two different files.
pub(crate) trait PatchFileSource {
    /// Returns the content of a file, or `None` if it does not exist. Fails for a folder.
    fn bytes(&mut self, path: &str) -> Result<Option<Arc<[u8]>>, PatchError>;
}

/// A planned change to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlannedChange {
    /// The path does not exist yet.
    Create {
        path: String,
        after: Arc<[u8]>,
    },
    /// The path exists with different content.
    Overwrite {
        path: String,
        after: Arc<[u8]>,
        /// True if the stored bytes differ from the patch text because the file keeps its encoding
        /// and line endings.
        keeps_encoding: bool,
    },
    Delete {
        path: String,
    },
    Update {
        path: String,
        after: Arc<[u8]>,
        /// See [`LocatedHunks::is_loose_match`].
        is_loose_match: bool,
    },
    /// Moves the file, possibly with changes.
    Move {
        path: String,
        move_to: String,
        after: Arc<[u8]>,
        is_loose_match: bool,
        /// True if the move overwrites an existing file.
        replaces_target: bool,
    },
}

/// Returns every path of a patch once, sources and targets: the paths that need permission.
pub(crate) fn patch_paths(sections: &[PatchSection]) -> Vec<String> {
    let mut seen = HashSet::new();
    let paths = sections.iter().flat_map(PatchSection::paths);
    paths.filter(|path| seen.insert(*path)).cloned().collect()
}

/// Plans the changes of a patch, or refuses all of it.
pub(crate) fn plan_changes(
    sections: &[PatchSection],
    files: &mut impl PatchFileSource,
) -> Result<Vec<PlannedChange>, PatchError> {
    let path_plans = group_by_path(sections)?;
    check_targets(&path_plans)?;
    check_folder_conflicts(&path_plans)?;
    let mut changes = Vec::new();
    for path_plan in path_plans {
        changes.extend(decide_change(path_plan, files)?);
    }
    if changes.is_empty() {
        let message = "the files already have the content that the patch would write. Continue, \
                       or read them to check.";
        return Err(PatchError::new(message));
    }
    Ok(changes)
}

/// Everything a patch says about one path.
struct PatchPathPlan<'a> {
    path: &'a str,
    action: PatchPathAction<'a>,
}

enum PatchPathAction<'a> {
    Add {
        content: &'a str,
        /// True if an earlier section deletes the existing file.
        deleted_first: bool,
    },
    Delete,
    Update {
        move_to: Option<&'a str>,
        sections: Vec<&'a [PatchHunk]>,
    },
}

/// Groups sections by path, in order of first mention.
fn group_by_path(sections: &[PatchSection]) -> Result<Vec<PatchPathPlan<'_>>, PatchError> {
    let mut path_plans: Vec<PatchPathPlan<'_>> = Vec::new();
    let mut indices: HashMap<&str, usize> = HashMap::new();
    for section in sections {
        let (path, action) = match section {
            PatchSection::Add { path, content } => {
                (path, PatchPathAction::Add { content, deleted_first: false })
            }
            PatchSection::Delete { path } => (path, PatchPathAction::Delete),
            PatchSection::Update { path, move_to, hunks } => {
                let move_to = move_to.as_deref().filter(|target| target != path);
                if move_to.is_none() && hunks.is_empty() {
                    let message = format!("{path} is moved to its own path. Omit the section.");
                    return Err(PatchError::new(message));
                }
                (path, PatchPathAction::Update { move_to, sections: vec![hunks] })
            }
        };
        match indices.entry(path) {
            Entry::Vacant(entry) => {
                entry.insert(path_plans.len());
                path_plans.push(PatchPathPlan { path, action });
            }
            Entry::Occupied(entry) => {
                if let Some(path_plan) = path_plans.get_mut(*entry.get()) {
                    merge_action(path_plan, action)?;
                }
            }
        }
    }
    Ok(path_plans)
}

/// Merges a later section about the same path into `path_plan`, or refuses the combination.
fn merge_action<'a>(
    path_plan: &mut PatchPathPlan<'a>,
    action: PatchPathAction<'a>,
) -> Result<(), PatchError> {
    let path = path_plan.path;
    let problem = match (&mut path_plan.action, action) {
        (current @ PatchPathAction::Delete, PatchPathAction::Add { content, .. }) => {
            *current = PatchPathAction::Add { content, deleted_first: true };
            return Ok(());
        }
        (
            PatchPathAction::Update { move_to, sections },
            PatchPathAction::Update { move_to: other_target, sections: more },
        ) => {
            if let (Some(move_to), Some(other_target)) = (&*move_to, other_target)
                && *move_to != other_target
            {
                let message =
                    format!("{path} is moved both to {move_to} and to {other_target}. Choose one.");
                return Err(PatchError::new(message));
            }
            *move_to = move_to.or(other_target);
            sections.extend(more);
            return Ok(());
        }
        (PatchPathAction::Add { .. }, PatchPathAction::Add { .. }) => {
            "added twice. Keep only the section with its complete content"
        }
        (PatchPathAction::Add { .. }, PatchPathAction::Update { .. })
        | (PatchPathAction::Update { .. }, PatchPathAction::Add { .. }) => {
            "both added and updated. Write its complete content in \"*** Add File:\", or only \
             update it"
        }
        (PatchPathAction::Add { .. }, PatchPathAction::Delete) => {
            "added and then deleted. Omit one of the two"
        }
        (PatchPathAction::Delete, PatchPathAction::Delete) => {
            "deleted twice. Omit one of the sections"
        }
        (PatchPathAction::Delete, PatchPathAction::Update { .. })
        | (PatchPathAction::Update { .. }, PatchPathAction::Delete) => {
            "both updated and deleted. Omit one of the two"
        }
    };
    Err(PatchError::new(format!("{path} is {problem}.")))
}

/// Checks that each move target occurs once and has no section of its own.
fn check_targets(path_plans: &[PatchPathPlan<'_>]) -> Result<(), PatchError> {
    let mut taken: HashMap<&str, &str> =
        path_plans.iter().map(|path_plan| (path_plan.path, "")).collect();
    for path_plan in path_plans {
        let PatchPathAction::Update { move_to: Some(target), .. } = path_plan.action else {
            continue;
        };
        match taken.insert(target, path_plan.path) {
            None => {}
            Some("") => {
                return Err(PatchError::new(format!(
                    "{} is moved to {target}, which has its own section. A move replaces the file \
                     at its target: omit that section, or send it as a second patch.",
                    path_plan.path
                )));
            }
            Some(other) => {
                let path = path_plan.path;
                return Err(PatchError::new(format!(
                    "{other} and {path} are both moved to {target}. Choose one."
                )));
            }
        }
    }
    Ok(())
}

/// Checks that no path is a folder of another.
fn check_folder_conflicts(path_plans: &[PatchPathPlan<'_>]) -> Result<(), PatchError> {
    let mut keys: Vec<(Vec<&str>, &str)> = Vec::new();
    for path_plan in path_plans {
        let move_to = match path_plan.action {
            PatchPathAction::Update { move_to, .. } => move_to,
            PatchPathAction::Add { .. } | PatchPathAction::Delete => None,
        };
        let paths = std::iter::once(path_plan.path).chain(move_to);
        keys.extend(paths.map(|path| (path.split('/').collect(), path)));
    }
    // After sorting by components, the contents of a folder directly follow it.
    keys.sort();
    for ((folder_key, path), (inner_key, inner_path)) in keys.iter().zip(keys.iter().skip(1)) {
        if inner_key.len() > folder_key.len() && inner_key.starts_with(folder_key) {
            return Err(PatchError::new(format!(
                "{path} cannot be both a file and the folder of {inner_path}. Send two patches, \
                 first the one that frees the path."
            )));
        }
    }
    Ok(())
}

fn decide_change(
    path_plan: PatchPathPlan<'_>,
    files: &mut impl PatchFileSource,
) -> Result<Option<PlannedChange>, PatchError> {
    let path = path_plan.path.to_owned();
    let before = files.bytes(&path)?;
    let change = match path_plan.action {
        PatchPathAction::Add { deleted_first: true, .. } if before.is_none() => {
            return Err(missing_file_error(&path, "deleted"));
        }
        PatchPathAction::Add { content, .. } => match before {
            None => PlannedChange::Create { path, after: content.as_bytes().into() },
            Some(before) => {
                let after = encode_like_existing(&before, content);
                if after == before {
                    return Ok(None);
                }
                let keeps_encoding = *after != *content.as_bytes();
                PlannedChange::Overwrite { path, after, keeps_encoding }
            }
        },
        PatchPathAction::Delete => match before {
            None => return Err(missing_file_error(&path, "deleted")),
            Some(_) => PlannedChange::Delete { path },
        },
        PatchPathAction::Update { move_to, sections } => {
            let only_moves = sections.iter().all(|hunks| hunks.is_empty());
            let before = match before {
                Some(before) => before,
                None if only_moves => return Err(missing_file_error(&path, "moved")),
                None => {
                    return Err(PatchError::new(format!(
                        "{path} does not exist, so it cannot be updated. Search for the correct \
                         path, or use \"*** Add File: {path}\" to create it."
                    )));
                }
            };
            // A file that only moves may be binary.
            let (after, is_loose_match) = match only_moves {
                true => (Arc::clone(&before), false),
                false => apply_hunks(&path, &before, &sections)?,
            };
            match move_to {
                Some(target) => {
                    let replaces_target = files.bytes(target)?.is_some();
                    PlannedChange::Move {
                        path,
                        move_to: target.to_owned(),
                        after,
                        is_loose_match,
                        replaces_target,
                    }
                }
                None if after == before => return Ok(None),
                None => PlannedChange::Update { path, after, is_loose_match },
            }
        }
    };
    Ok(Some(change))
}

/// Encodes new content like the existing file where possible, otherwise as UTF-8.
fn encode_like_existing(before: &Arc<[u8]>, content: &str) -> Arc<[u8]> {
    let text = FileText::decode(before.to_vec()).ok();
    let after = text.and_then(|text| text.rewrite(content).ok());
    after.map_or_else(|| content.as_bytes().into(), Arc::from)
}

/// Returns the content of a file after its hunks, and `true` if they matched only loosely.
fn apply_hunks(
    path: &str,
    before: &Arc<[u8]>,
    sections: &[&[PatchHunk]],
) -> Result<(Arc<[u8]>, bool), PatchError> {
    let to_patch_error = |error: &dyn fmt::Display| PatchError::new(format!("{path}: {error}"));
    let text = FileText::decode(before.to_vec()).map_err(|error| to_patch_error(&error))?;
    // Patches know only LF. CR and LF have the same length, so all byte offsets stay valid.
    let view = text.view().replace('\r', "\n");
    let LocatedHunks { splices, is_loose_match } = locate_hunks(path, &view, sections)?;
    let after = text.splice_lines(&splices).map_err(|error| to_patch_error(&error))?;
    Ok((after.into(), is_loose_match))
}

fn missing_file_error(path: &str, action: &str) -> PatchError {
    let message = format!(
        "{path} does not exist, so it cannot be {action}. Search for the correct \
                         path."
    );
    PatchError::new(message)
}
