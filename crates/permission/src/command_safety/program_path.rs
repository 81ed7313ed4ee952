//! Programs that are named by their paths.

use super::path_evaluator::{PathEvaluator, PossibleWorkingFolders};
use super::path_use::PathUse;
use super::risk::{Risk, RiskFinding};
use super::system_paths::{is_system_program, normalize_path};
use crate::shell::ShellWord;
use std::path::Path;

impl PathEvaluator<'_> {
    /// Evaluates a program that is named by its path. The sandbox confines a program of the system
    /// like one that is found in `PATH`, and a link in the workspace, such as `.venv/bin/python`,
    /// like the program that it leads to.
    pub(super) fn evaluate_program_path(
        &self,
        folders: &PossibleWorkingFolders,
        program: &str,
    ) -> RiskFinding {
        let mut finding =
            RiskFinding::new(Risk::WorkspaceWrite, format!("`{program}` is run by its path"));
        let candidates = self.candidate_paths(folders, program);
        let is_confined = |path: &Path| {
            let path = normalize_path(path);
            let is_in_own_folder = path.parent().is_some_and(|folder| self.is_in_workspace(folder));
            is_system_program(&path) || is_in_own_folder
        };
        let is_each = |predicate: &dyn Fn(&Path) -> bool| {
            candidates.iter().all(|path| path.as_deref().is_some_and(predicate))
        };
        if !candidates.is_empty() && is_each(&is_confined) {
            return finding;
        }
        if !is_each(&|path| self.is_own_path(path) || self.is_in_readable_folder(path)) {
            let reason = format!("`{program}` is outside the workspace");
            finding.merge(RiskFinding::new(Risk::OutsideWorkspace, reason));
        }
        let word = ShellWord::Plain(program.to_owned());
        finding.merge(self.evaluate_word(folders, &word, PathUse::Read));
        finding
    }

    /// Returns true for files in a folder that the user opened for reading, such as scripts of
    /// skills.
    fn is_in_readable_folder(&self, path: &Path) -> bool {
        let path_lookup = self.path_lookup();
        path_lookup.is_in_readable_folder(&path_lookup.resolve_path(path))
    }
}
