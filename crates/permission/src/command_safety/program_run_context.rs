//! The context in which a program runs.

use super::path_evaluator::{PathEvaluator, PossibleWorkingFolders};

/// The surroundings of a program: possible `PossibleWorkingFolders` and input.
pub(super) struct ProgramRunContext<'a> {
    pub(super) path_context: &'a PathEvaluator<'a>,
    pub(super) folders: &'a PossibleWorkingFolders,
    pub(super) has_piped_input: bool,
}
