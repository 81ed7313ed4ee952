//! Instructions for the model from the user and from a trusted project.
//!
//! The user's own `AGENTS.md` always applies. A project's instructions apply once its folder is
//! trusted: `AGENTS.md`, or else `CLAUDE.md`, in its folder and in its parents, and the files that
//! `instructions` in a config names, files that these import, and its rules. They only advise and run nothing, so trust does not pin their
//! content. No link may lead out of its folder, and everything is bounded.
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]

mod glob;
mod imports;
mod path_rules;

pub(crate) use glob::pattern_problem;
use imports::Importer;
pub use path_rules::PathRule;

use crate::dirs::has_same_owner;
use crate::instruction_names::INSTRUCTION_FILE_NAMES;
use crate::{Config, Dirs, FolderTrust};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The text of an instruction file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionText {
    /// The path relative to the project's folder; absolute for the user's own file.
    pub path: String,
    /// The content, cut at `MAX_FILE_BYTES`.
    pub text: String,
    /// The size of the whole file.
    pub total_bytes: u64,
}

/// Limits the bytes read of one file.
const MAX_FILE_BYTES: u64 = 64 << 10;
const MAX_INSTRUCTION_FILES: usize = 32;
const MAX_PARENT_FOLDERS: usize = 16;

/// The instructions of a project.
#[derive(Debug, Default)]
pub struct LoadedInstructions {
    /// Those for all files, most general first.
    pub texts: Vec<InstructionText>,
    /// Rules of a trusted project that apply to some files.
    pub path_rules: Vec<PathRule>,
}

/// Loads the instructions of a project. `may_read` tells if the model may read a file of the project
/// without asking; only such files are imported.
pub fn load_instructions(
    dirs: &Dirs,
    root: &Path,
    config: &Config,
    may_read: &dyn Fn(&str) -> bool,
) -> LoadedInstructions {
    let mut instructions = Vec::new();
    let user_file = dirs.config.join(INSTRUCTION_FILE_NAMES[0]);
    if let Some(text) = File::open(&user_file)
        .ok()
        .and_then(|file| read_instruction(file, &user_file.display().to_string()))
    {
        let name = Path::new(INSTRUCTION_FILE_NAMES[0]);
        let prefix = format!("{}{}", dirs.config.display(), std::path::MAIN_SEPARATOR);
        let importer =
            Importer { folder: &dirs.config, display_prefix: &prefix, may_read: &|_| true };
        let imports = imports::imported_texts(&importer, name, &text.text);
        add_unique(&mut instructions, text);
        imports.into_iter().for_each(|text| add_unique(&mut instructions, text));
    }
    match config.trust {
        FolderTrust::Trusted => {}
        FolderTrust::NothingToTrust | FolderTrust::Untrusted | FolderTrust::Changed => {
            return LoadedInstructions { texts: instructions, path_rules: Vec::new() };
        }
    }
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (root, home) = (canonical(root), canonical(&dirs.home));
    let folders = root.ancestors().take_while(|folder| !home.starts_with(folder));
    let mut folders: Vec<&Path> = folders.take(MAX_PARENT_FOLDERS + 1).collect();
    folders.reverse();
    let last = folders.len();
    for (index, folder) in folders.into_iter().enumerate() {
        let parent_prefix = "../".repeat(last - index - 1);
        // A file above the project that another user owns does not belong to the project.
        let is_owned = |name: &&&str| folder == root || has_same_owner(&folder.join(name), &root);
        let texts = INSTRUCTION_FILE_NAMES.iter().filter(is_owned);
        let text = texts.filter_map(|name| {
            let text = read_beneath(folder, Path::new(name), &format!("{parent_prefix}{name}"));
            Some((name, text?))
        });
        if let Some((name, text)) = { text }.next() {
            // Above the project, imported files might belong to other users.
            let imports = match folder == root {
                true => {
                    let importer = Importer { folder, display_prefix: "", may_read };
                    imports::imported_texts(&importer, Path::new(name), &text.text)
                }
                false => Vec::new(),
            };
            add_unique(&mut instructions, text);
            imports.into_iter().for_each(|text| add_unique(&mut instructions, text));
        }
    }
    let (rules, path_rules) = path_rules::load_rules(&root, config);
    rules.into_iter().for_each(|rule| add_unique(&mut instructions, rule));
    for (pattern, _) in &config.instruction_patterns {
        for path in glob::matching_files(&root, pattern) {
            let display_path = path.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/");
            if let Some(text) = read_beneath(&root, &path, &display_path) {
                add_unique(&mut instructions, text);
            }
        }
    }
    LoadedInstructions { texts: instructions, path_rules }
}

/// Returns true if a path in a folder leads through a link, or does not exist.
fn has_link(folder: &Path, path: &Path) -> bool {
    let resolved = folder
        .canonicalize()
        .and_then(|folder| Ok(folder.join(path).canonicalize()? == folder.join(path)));
    !resolved.unwrap_or(false)
}

/// Adds a text unless the same text is already there under another name.
fn add_unique(instructions: &mut Vec<InstructionText>, text: InstructionText) {
    if instructions.len() < MAX_INSTRUCTION_FILES
        && !instructions.iter().any(|other| other.text == text.text)
    {
        instructions.push(text);
    }
}

/// Reads a file of a folder; `None` if it does not exist or a link leads out of the folder.
fn read_beneath(folder: &Path, name: &Path, display_path: &str) -> Option<InstructionText> {
    read_instruction(open_beneath(folder, name).ok()?, display_path)
}

/// Opens a file with `openat2`: the kernel ensures that no path component leads out of the folder,
/// even if it is swapped meanwhile.
#[cfg(target_os = "linux")]
fn open_beneath(folder: &Path, name: &Path) -> std::io::Result<File> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
    let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
    let folder = openat(CWD, folder, flags, Mode::empty())?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve_flags = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    Ok(File::from(openat2(&folder, name, flags, Mode::empty(), resolve_flags)?))
}

#[cfg(not(target_os = "linux"))]
fn open_beneath(folder: &Path, name: &Path) -> std::io::Result<File> {
    let real = folder.join(name).canonicalize()?;
    if !real.starts_with(folder.canonicalize()?) {
        return Err(std::io::Error::other("a symbolic link points outside its folder"));
    }
    crate::private_files::private_options(std::fs::OpenOptions::new().read(true)).open(real)
}

fn read_instruction(file: File, path: &str) -> Option<InstructionText> {
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    let total_bytes = metadata.len().max(bytes.len() as u64);
    let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
    // Binary or blank content is not an instruction text.
    if text.contains('\0') || text.trim().is_empty() {
        return None;
    }
    Some(InstructionText { path: path.to_owned(), text, total_bytes })
}

/// Returns the checked-out branch if `.git/HEAD` names one; reads nothing else.
pub fn git_branch(root: &Path) -> Option<String> {
    const MAX_HEAD_BYTES: u64 = 256;
    let mut head = String::new();
    let file = open_beneath(root, &PathBuf::from(".git").join("HEAD")).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    file.take(MAX_HEAD_BYTES).read_to_string(&mut head).ok()?;
    let name = head.trim_end().strip_prefix("ref: refs/heads/")?;
    // The name is sent to a model, so it must be a plain branch name.
    let is_branch_char = |c: char| c.is_ascii_alphanumeric() || "-_./+#@".contains(c);
    (!name.is_empty() && name.len() <= 100 && name.chars().all(is_branch_char))
        .then(|| name.to_owned())
}

/// Returns the sorted names in a folder, without `.git`; names of folders end with a slash.
pub fn top_level_names(root: &Path) -> Vec<String> {
    const MAX_ENTRIES: usize = 1_000;
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten().take(MAX_ENTRIES);
    let mut names: Vec<String> = entries
        .filter(|entry| entry.file_name() != ".git")
        .map(|entry| {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let slash = if is_folder { "/" } else { "" };
            format!("{}{slash}", entry.file_name().to_string_lossy())
        })
        .collect();
    names.sort();
    names
}

/// Returns `true` if a folder has its own instructions. Opens no file.
pub fn has_instructions(root: &Path) -> bool {
    INSTRUCTION_FILE_NAMES.iter().any(|name| root.join(name).symlink_metadata().is_ok())
}

/// Returns `true` if a folder is a git repository. Opens no file.
pub fn is_git_repository(root: &Path) -> bool {
    root.join(".git").symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests;
