//! The kind of a file by its executable bit, and its role in a tools folder.

use crate::trust::TOOL_FOLDERS;
use std::path::Path;

/// The folders of a project with `TOOL_FOLDERS`, Windlass's own first.
pub(super) const PROJECT_FOLDERS: [&str; 2] = [".windlass", ".opencode"];

/// Extensions of scripts that need an interpreter.
const SCRIPT_EXTENSIONS: [&str; 4] = ["ts", "mts", "js", "mjs"];
/// Extensions of support files in a tools folder, which are never tools.
const NON_TOOL_EXTENSIONS: [&str; 6] = ["md", "txt", "json", "toml", "lock", "pyc"];

/// Kind of a file by its executable bit: `Executable` or `Plain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolFileKind {
    Executable,
    Plain,
}

/// Role of a file in a tools folder.
pub(crate) enum ToolFileRole {
    Tool {
        /// The prefix of the names of its tools.
        prefix: String,
        /// `true` if the file needs an interpreter.
        is_script: bool,
    },
    /// A support file beside tools.
    Support,
    /// A file that looks like a tool but is not executable.
    NotRunnable,
}

/// Classifies a file by its name and its `ToolFileKind`.
pub(crate) fn classify_file(file: &str, kind: ToolFileKind) -> ToolFileRole {
    let path = Path::new(file);
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let is_script = SCRIPT_EXTENSIONS.contains(&extension);
    if file.starts_with('.') || file.ends_with('~') || NON_TOOL_EXTENSIONS.contains(&extension) {
        return ToolFileRole::Support;
    }
    if kind == ToolFileKind::Plain && !is_script {
        return ToolFileRole::NotRunnable;
    }
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or(file);
    let to_name_char = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    ToolFileRole::Tool { prefix: stem.chars().map(to_name_char).collect(), is_script }
}

#[cfg(unix)]
pub(crate) fn file_kind(metadata: &std::fs::Metadata) -> ToolFileKind {
    match std::os::unix::fs::MetadataExt::mode(metadata) & 0o111 {
        0 => ToolFileKind::Plain,
        _ => ToolFileKind::Executable,
    }
}

#[cfg(not(unix))]
pub(crate) fn file_kind(_: &std::fs::Metadata) -> ToolFileKind {
    ToolFileKind::Plain
}

#[cfg(unix)]
pub(crate) fn set_read_only(path: &Path, kind: ToolFileKind) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = match kind {
        ToolFileKind::Executable => 0o500,
        ToolFileKind::Plain => 0o400,
    };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
pub(crate) fn set_read_only(_: &Path, _: ToolFileKind) -> std::io::Result<()> {
    Ok(())
}
/// Returns true for a path directly in a folder of a project whose files are tools.
pub(crate) fn is_in_tool_folder(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    matches!(
        parts.as_slice(),
        [folder, name, _] if PROJECT_FOLDERS.contains(folder) && TOOL_FOLDERS.contains(name)
    )
}
