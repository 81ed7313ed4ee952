//! Suggests existing paths for a path that does not exist.

use crate::CallWorkspace;
use crate::fs::ignore_file_checks::IgnoreFileProblems;

const MAX_SUGGESTIONS: usize = 3;

/// Limits the files and folders that the search visits.
const MAX_VISITED_ENTRIES: usize = 50_000;

/// Limits the comparison of whole paths: the number of candidates, and the characters of each path.
const MAX_CLOSEST_PATHS: usize = 50;
const MAX_COMPARED_CHARS: usize = 512;

/// Bounds the effort of comparing names, because the workspace determines their length.
const MAX_COMPARED_LETTER_PAIRS: usize = 50_000_000;

/// Distance of an existing path from the requested one; the smallest is the nearest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct PathDistance {
    name_distance: usize,
    /// Computed only for the closest candidates.
    path_distance: usize,
    path: String,
}

impl CallWorkspace {
    /// Returns the nearest existing paths for one that does not exist: first those with the same
    /// name in other folders, then those with a similar name. Leaves out ignored and hidden paths.
    pub fn suggest_paths(&self, path: &str) -> Vec<String> {
        let requested = path.trim_end_matches('/').to_lowercase();
        let name = file_name(&requested);
        if name.is_empty() {
            return Vec::new();
        }
        // A third of the name may differ, and in a short name two letters.
        let max_distance = (name.chars().count() / 3).max(2);
        let mut budget = MAX_COMPARED_LETTER_PAIRS;
        let mut candidates: Vec<PathDistance> = Vec::new();
        let walk = self
            .workspace()
            .walk_builder(self.workspace().root(), &IgnoreFileProblems::default())
            .build();
        for entry in walk.flatten().skip(1).take(MAX_VISITED_ENTRIES) {
            let Some(path) = self.workspace().to_workspace_path(entry.path()) else { continue };
            let lower = path.to_lowercase();
            let candidate_name = file_name(&lower);
            if candidate_name.len().abs_diff(name.len()) > 4 * max_distance {
                continue;
            }
            let Some(remaining) = budget.checked_sub(candidate_name.len() * name.len()) else {
                break;
            };
            budget = remaining;
            let distance = strsim::osa_distance(candidate_name, name);
            let similar = distance <= max_distance && distance < name.chars().count();
            if similar && self.may_read(&path) {
                candidates.push(PathDistance { name_distance: distance, path_distance: 0, path });
            }
        }
        candidates.sort_unstable();
        candidates.truncate(MAX_CLOSEST_PATHS);
        for candidate in &mut candidates {
            candidate.path_distance = strsim::osa_distance(
                &comparable_prefix(&candidate.path.to_lowercase()),
                &comparable_prefix(&requested),
            );
        }
        candidates.sort_unstable();
        let paths = candidates.into_iter().map(|candidate| candidate.path);
        paths.filter(|path| self.is_existing_path(path)).take(MAX_SUGGESTIONS).collect()
    }

    /// Returns true if a path from the walk exists beneath the workspace and is not a symbolic
    /// link.
    fn is_existing_path(&self, real: &str) -> bool {
        let target = self.open_existing_parent(real.to_owned());
        let metadata =
            target.ok().and_then(|target| target.parent.symlink_metadata(&target.name).ok());
        metadata.is_some_and(|metadata| metadata.is_file() || metadata.is_dir())
    }
}

fn comparable_prefix(path: &str) -> String {
    path.chars().take(MAX_COMPARED_CHARS).collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests;
