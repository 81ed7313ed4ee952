//! Formatter configuration as data: the files a formatter handles, the markers that enable it, and
//! its command.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_lsp::project_markers::{
    ProjectMarker, ancestors, join_path, read_small_file, resolve_file,
};
use windlass_sandbox::CallWorkspace;

/// Upper bound of `FormatterConfig::timeout`.
const MAX_FORMATTER_TIMEOUT: Duration = Duration::from_secs(10);

/// Placeholder for the absolute path of the file.
const FILE_PLACEHOLDER: &str = "{file}";
/// Placeholder for the edition in the nearest `Cargo.toml`.
const EDITION_PLACEHOLDER: &str = "{edition}";
/// The edition assumed where no `Cargo.toml` names one: that of current Cargo projects.
const DEFAULT_EDITION: &str = "2021";

/// Configuration of a formatter. It reads a file from standard input and writes the formatted file
/// to standard output; on failure it exits with a code other than 0.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormatterConfig {
    pub name: String,
    /// The program and its arguments. `{file}` is the absolute path of the file, `{edition}` the
    /// edition in the nearest `Cargo.toml`.
    pub command: Vec<String>,
    /// Paths at which the project itself may provide the program, relative to the folder of the
    /// file or to one above it.
    #[serde(default)]
    pub local: Vec<String>,
    /// File name suffixes, such as `.ts`.
    #[serde(default)]
    pub extensions: Vec<String>,
    /// Complete file names.
    #[serde(default)]
    pub files: Vec<String>,
    /// Markers that must all be present. The formatter runs in the folder of the first one.
    #[serde(default)]
    pub requires: Vec<ProjectMarker>,
    /// Environment variables in addition to those of a command.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Timeout in milliseconds.
    #[serde(default = "default_timeout_ms")]
    pub timeout: u64,
    /// Install instructions for the user.
    #[serde(default)]
    pub install: String,
}

fn default_timeout_ms() -> u64 {
    2_000
}

/// The command line of a formatter for one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FormatterCommand {
    /// Relative to the workspace if the project provides it, else a bare name or an absolute path.
    pub(super) program: FormatterProgram,
    pub(super) arguments: Vec<String>,
    /// The working folder, relative to the workspace.
    pub(super) folder: String,
}

/// The location of the program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FormatterProgram {
    InWorkspace(String),
    /// A bare name or an absolute path.
    System(String),
}

impl FormatterConfig {
    /// Returns the timeout, at most `MAX_FORMATTER_TIMEOUT`.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout).min(MAX_FORMATTER_TIMEOUT)
    }

    /// Returns true if the formatter handles files of this name.
    pub(super) fn matches_file(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let matches_extension =
            |extension: &String| name.len() > extension.len() && name.ends_with(extension.as_str());
        self.extensions.iter().any(matches_extension) || self.files.iter().any(|file| file == name)
    }

    /// Returns the command for a file, or `None` if the formatter is not set up there. Reads the
    /// workspace.
    pub(super) fn command_for(
        &self,
        workspace: &CallWorkspace,
        path: &str,
    ) -> Option<FormatterCommand> {
        let file_folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let mut folder = None;
        for marker in &self.requires {
            let found = marker.find_folder(workspace, file_folder)?;
            folder = folder.or(Some(found));
        }
        let (program, arguments) = self.command.split_first()?;
        let program = match self.local_program(workspace, file_folder) {
            Some(local) => FormatterProgram::InWorkspace(local),
            None => FormatterProgram::System(program.clone()),
        };
        // The command line is text, so a file whose name is not text is not formatted.
        let file = workspace.workspace().absolute_path(path).to_str()?.to_owned();
        let uses =
            |placeholder: &str| arguments.iter().any(|argument| argument.contains(placeholder));
        let edition = if uses(EDITION_PLACEHOLDER) {
            cargo_edition(workspace, file_folder)
        } else {
            String::new()
        };
        let fill = |argument: &String| {
            argument.replace(EDITION_PLACEHOLDER, &edition).replace(FILE_PLACEHOLDER, &file)
        };
        let arguments = arguments.iter().map(fill).collect();
        Some(FormatterCommand { program, arguments, folder: folder.unwrap_or(".").to_owned() })
    }

    /// Returns the path of the program in the project, if the project provides it.
    fn local_program(&self, workspace: &CallWorkspace, file_folder: &str) -> Option<String> {
        let mut candidates = self.local.iter().flat_map(|local| {
            ancestors(file_folder).map(move |ancestor| join_path(ancestor, local))
        });
        // Returns the path as spelled, not the resolved one: a program may inspect the name it is
        // called by.
        candidates.find(|candidate| resolve_file(workspace, candidate).is_some())
    }
}

/// Returns the edition in the nearest `Cargo.toml` that names one; workspace members may inherit it
/// from the root.
fn cargo_edition(workspace: &CallWorkspace, file_folder: &str) -> String {
    let edition = ancestors(file_folder).find_map(|ancestor| {
        let manifest = read_small_file(workspace, &join_path(ancestor, "Cargo.toml"))?;
        manifest.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            let value = value.split('#').next()?.trim().trim_matches(['"', '\'']);
            let is_year = value.len() == 4 && value.bytes().all(|byte| byte.is_ascii_digit());
            (key.trim() == "edition" && is_year).then(|| value.to_owned())
        })
    });
    edition.unwrap_or_else(|| DEFAULT_EDITION.to_owned())
}

/// Returns the formatters that ship with Windlass, in order of preference.
pub fn builtin_formatters() -> Vec<FormatterConfig> {
    // A test parses `formatters.json`.
    serde_json::from_str(include_str!("formatters.json")).unwrap_or_default()
}
