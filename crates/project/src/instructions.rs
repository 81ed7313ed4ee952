//! Instructions: texts of the person and of a project that advise the model.
//!
//! The person's own AGENTS.md always counts. What a project says counts once its folder is trusted:
//! AGENTS.md, or else CLAUDE.md, in its folder and in those above it, and the files that `instructions`
//! in a config names. They advise and run nothing, so trust does not pin what they say. No link leads
//! out of the folder it stands in, and everything is bounded.
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

mod names;

pub(crate) use names::objection;

use crate::places::same_owner;
use crate::{Config, Places, Standing};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A text that advises the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Where it stands: from the project's folder, or as a whole path where it is the person's own.
    pub path: String,
    /// What it says, or the beginning of it.
    pub text: String,
    /// How many bytes the whole of it has.
    pub length: u64,
}

/// What is read in a folder: the first of these that is there.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// How much of one file is read.
const LONGEST: u64 = 64 << 10;
/// How many files are read.
const MOST_FILES: usize = 32;
/// How many folders above a project are looked into.
const HIGHEST: usize = 16;

/// The instructions for a project, the most general first.
pub fn instructions(places: &Places, root: &Path, config: &Config) -> Vec<Instruction> {
    let mut found = Vec::new();
    let own = places.config.join(NAMES[0]);
    if let Some(text) =
        File::open(&own).ok().and_then(|file| read(file, &own.display().to_string()))
    {
        add(&mut found, text);
    }
    match config.standing {
        Standing::Trusted => {}
        Standing::Plain | Standing::Untrusted | Standing::Changed => return found,
    }
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (root, home) = (real(root), real(&places.home));
    let folders = root.ancestors().take_while(|folder| !home.starts_with(folder));
    let mut folders: Vec<&Path> = folders.take(HIGHEST + 1).collect();
    folders.reverse();
    let last = folders.len();
    for (index, folder) in folders.into_iter().enumerate() {
        let up = "../".repeat(last - index - 1);
        // What somebody else put above the project is not the project's.
        let own = |name: &&&str| folder == root || same_owner(&folder.join(name), &root);
        let texts = NAMES.iter().filter(own);
        let text =
            texts.filter_map(|name| beneath(folder, Path::new(name), &format!("{up}{name}")));
        if let Some(text) = { text }.next() {
            add(&mut found, text);
        }
    }
    for (pattern, _) in &config.instructions {
        for path in names::matching(&root, pattern) {
            let shown = path.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/");
            if let Some(text) = beneath(&root, &path, &shown) {
                add(&mut found, text);
            }
        }
    }
    found
}

/// Adds a text unless it is there already, perhaps by another name.
fn add(found: &mut Vec<Instruction>, text: Instruction) {
    if found.len() < MOST_FILES && !found.iter().any(|other| other.text == text.text) {
        found.push(text);
    }
}

/// What a file in a folder says; none if there is none, or if a link leads out of the folder.
fn beneath(folder: &Path, name: &Path, shown: &str) -> Option<Instruction> {
    read(open(folder, name).ok()?, shown)
}

/// The kernel sees to it that nothing on the way leads out, also while somebody swaps it.
#[cfg(target_os = "linux")]
fn open(folder: &Path, name: &Path) -> std::io::Result<File> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
    let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
    let folder = openat(CWD, folder, flags, Mode::empty())?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    Ok(File::from(openat2(&folder, name, flags, Mode::empty(), within)?))
}

#[cfg(not(target_os = "linux"))]
fn open(folder: &Path, name: &Path) -> std::io::Result<File> {
    let real = folder.join(name).canonicalize()?;
    if !real.starts_with(folder.canonicalize()?) {
        return Err(std::io::Error::other("a link leads out of its folder"));
    }
    crate::private::plain(std::fs::OpenOptions::new().read(true)).open(real)
}

fn read(file: File, path: &str) -> Option<Instruction> {
    let data = file.metadata().ok()?;
    if !data.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    let length = data.len().max(bytes.len() as u64);
    let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
    // Whatever this is, nobody wrote it to be read.
    if text.contains('\0') || text.trim().is_empty() {
        return None;
    }
    Some(Instruction { path: path.to_owned(), text, length })
}

/// The branch that is checked out in a folder, if `.git` says so plainly; looks at nothing else.
pub fn branch(root: &Path) -> Option<String> {
    const LONGEST: u64 = 256;
    let mut head = String::new();
    let file = open(root, &PathBuf::from(".git").join("HEAD")).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    file.take(LONGEST).read_to_string(&mut head).ok()?;
    let name = head.trim_end().strip_prefix("ref: refs/heads/")?;
    // It is told to a model, so it has to be a name and nothing more.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+#@".contains(c);
    (!name.is_empty() && name.len() <= 100 && name.chars().all(plain)).then(|| name.to_owned())
}

/// True if a folder has advice of its own. Opens nothing.
pub fn has_instructions(root: &Path) -> bool {
    NAMES.iter().any(|name| root.join(name).symlink_metadata().is_ok())
}

/// True if a folder is a git repository's. Opens nothing.
pub fn is_repository(root: &Path) -> bool {
    root.join(".git").symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests;
