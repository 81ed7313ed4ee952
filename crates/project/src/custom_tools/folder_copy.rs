//! A folder of tools or of a plugin: its change stamp, and its copy in the cache.

use super::file_role::{ToolFileKind, file_kind, set_read_only};
use crate::hex::to_hex;
use crate::private_files;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Limits on the user's own tools folder.
pub(super) const MAX_FILES: usize = 1_000;
pub(super) const MAX_TOTAL_BYTES: u64 = 16 << 20;
const MAX_DEPTH: usize = 8;
/// The time after which an unused copy of a skill is removed.
const COPY_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns a stamp that changes when a file below a folder may have changed: names, sizes and
/// times.
pub(crate) fn folder_stamp(folder: &Path) -> String {
    stamp_files(folder, STAMP_WALK)
}

fn stamp_files(folder: &Path, walk: FolderWalk) -> String {
    let mut hash = Sha256::new();
    let result = walk_folder((folder, folder), 0, walk, &mut |name, metadata| {
        hash.update(format!("{name}\0{}\n", file_times(metadata)));
        Ok(())
    });
    if let Err(error) = result {
        hash.update(error);
    }
    to_hex(&hash.finalize())
}

/// The limits of a walk, and its handling of links.
#[derive(Clone, Copy)]
struct FolderWalk {
    max_files: usize,
    max_depth: usize,
    /// `false` skips links and `.git`: a folder that the user downloaded must not bring files from
    /// elsewhere.
    follows_links: bool,
    skips_hidden: bool,
}

/// The user's own folder of tools.
const TOOLS_WALK: FolderWalk = FolderWalk {
    max_files: MAX_FILES,
    max_depth: MAX_DEPTH,
    follows_links: true,
    skips_hidden: false,
};
/// A folder of a skill.
const SKILL_WALK: FolderWalk = FolderWalk { follows_links: false, ..TOOLS_WALK };
/// A folder with a file that the user's config lists.
const LISTED_WALK: FolderWalk = FolderWalk { skips_hidden: true, ..SKILL_WALK };
/// Any folder that is stamped; more than a plugin may contain.
const STAMP_WALK: FolderWalk = FolderWalk { max_files: 10_000, max_depth: 32, ..TOOLS_WALK };

/// Walks a folder of the user's own.
fn walk_folder(
    (root, folder): (&Path, &Path),
    depth: usize,
    walk: FolderWalk,
    visit: &mut dyn FnMut(&str, &std::fs::Metadata) -> Result<(), String>,
) -> Result<usize, String> {
    let FolderWalk { max_files, max_depth, follows_links, skips_hidden } = walk;
    if depth > max_depth {
        return Err(format!("its folder is nested deeper than {max_depth} levels"));
    }
    let to_error = |error: std::io::Error| error.to_string();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(to_error)? {
        names.push(entry.map_err(to_error)?.path());
        if names.len() > max_files {
            return Err(format!("its folder contains more than {max_files} files"));
        }
    }
    names.sort_unstable();
    let mut count = 0;
    for path in names {
        let metadata = if follows_links { path.metadata() } else { path.symlink_metadata() };
        let Ok(metadata) = metadata else { continue };
        let name = path.file_name().unwrap_or_default();
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        if (!follows_links && name == ".git") || (skips_hidden && is_hidden) {
            continue;
        }
        if metadata.is_dir() {
            // Folders count as well, because links may make many of few.
            count += 1 + walk_folder((root, &path), depth + 1, walk, visit)?;
        } else if metadata.is_file()
            && let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str)
        {
            visit(name, &metadata)?;
            count += 1;
        }
        if count > max_files {
            return Err(format!("its folder contains more than {max_files} files"));
        }
    }
    Ok(count)
}

/// The files that are copied with a tool file of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyScope {
    /// Everything in its folder, which is for tools.
    ToolsFolder,
    /// Its folder without hidden files and links, because the folder may be for other things too.
    ListedFolder,
    /// Only the file.
    File,
}

/// Returns a stamp that changes when a file that `copy_to_cache` copies may have changed.
pub(super) fn copy_stamp(folder: &Path, file: &str, scope: CopyScope) -> String {
    let file_stamp = || match folder.join(file).metadata() {
        Ok(metadata) => file_times(&metadata),
        Err(_) => "gone".to_owned(),
    };
    match scope {
        CopyScope::ToolsFolder => folder_stamp(folder),
        CopyScope::ListedFolder => format!("{} {}", stamp_files(folder, LISTED_WALK), file_stamp()),
        CopyScope::File => file_stamp(),
    }
}

/// Copies a file and the files of the `scope` into `copies` under the digest of their content,
/// unless that copy exists. Returns the digest.
pub(super) fn copy_to_cache(
    (folder, file): (&Path, &str),
    copies: &Path,
    scope: CopyScope,
) -> Result<String, String> {
    let mut files = match scope {
        CopyScope::ToolsFolder => read_files(folder, TOOLS_WALK)?,
        CopyScope::ListedFolder => read_files(folder, LISTED_WALK)?,
        CopyScope::File => Vec::new(),
    };
    // The file itself may be a link.
    if !files.iter().any(|(name, _, _)| name == file) {
        files.push(read_listed_file(folder, file)?);
    }
    let mut hash = Sha256::new();
    for (name, kind, content) in &files {
        hash.update(format!("{}\0{name}\0{kind:?}\0{}\0", name.len(), content.len()));
        hash.update(content);
    }
    let digest: String = to_hex(&hash.finalize()).chars().take(32).collect();
    write_copy(&files, copies, &digest)?;
    Ok(digest)
}

/// Copies the folder of a skill into `copies` under a name with the stamp of its files, unless that
/// copy exists. It leaves out links and `.git`, and removes old copies of the skill. Returns the
/// path of the copy.
pub(crate) fn copy_skill(folder: &Path, copies: &Path, name: &str) -> Result<PathBuf, String> {
    let folder = &folder.canonicalize().map_err(|error| error.to_string())?;
    let stamp: String = stamp_files(folder, SKILL_WALK).chars().take(16).collect();
    let copy_name = format!("{name}-{stamp}");
    let target = copies.join(&copy_name);
    if !target.is_dir() {
        let files = read_files(folder, SKILL_WALK)?;
        remove_old_copies(copies, name, stamp.len());
        write_copy(&files, copies, &copy_name)?;
    }
    Ok(target)
}

/// Removes copies of a skill that are older than a day; a session may still use a newer one.
fn remove_old_copies(copies: &Path, name: &str, stamp_length: usize) {
    let is_stamp = |rest: &str| {
        rest.len() == stamp_length && rest.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    for entry in copies.read_dir().into_iter().flatten().flatten() {
        let file_name = entry.file_name();
        let stamp = file_name.to_str().and_then(|file| file.strip_prefix(name)?.strip_prefix('-'));
        let age = entry.metadata().and_then(|metadata| metadata.modified());
        let is_old = age.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > COPY_LIFETIME));
        if stamp.is_some_and(is_stamp) && is_old {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A file to copy: its name, kind and content.
type CopiedFile = (String, ToolFileKind, Vec<u8>);

fn read_files(folder: &Path, walk: FolderWalk) -> Result<Vec<CopiedFile>, String> {
    let mut files = Vec::new();
    let mut total_bytes = 0_u64;
    walk_folder((folder, folder), 0, walk, &mut |name, metadata| {
        total_bytes += metadata.len();
        if total_bytes > MAX_TOTAL_BYTES {
            return Err(format!("its folder contains more than {} MiB", MAX_TOTAL_BYTES >> 20));
        }
        let content = std::fs::read(folder.join(name)).map_err(|error| error.to_string())?;
        files.push((name.to_owned(), file_kind(metadata), content));
        Ok(())
    })?;
    Ok(files)
}

fn read_listed_file(folder: &Path, file: &str) -> Result<CopiedFile, String> {
    let (path, to_error) = (folder.join(file), |error: std::io::Error| error.to_string());
    let metadata = path.metadata().map_err(to_error)?;
    if !metadata.is_file() || metadata.len() > MAX_TOTAL_BYTES {
        return Err(format!("it is not a file of at most {} MiB", MAX_TOTAL_BYTES >> 20));
    }
    let content = std::fs::read(path).map_err(to_error)?;
    Ok((file.to_owned(), file_kind(&metadata), content))
}

fn write_copy(files: &[CopiedFile], copies: &Path, name: &str) -> Result<(), String> {
    let target = copies.join(name);
    if target.is_dir() {
        return Ok(());
    }
    let to_error = |error: std::io::Error| error.to_string();
    private_files::create_private_folder(copies).map_err(to_error)?;
    // Written under a draft name and then renamed, so that no process sees a partial copy.
    let draft = copies.join(format!(".{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&draft);
    let copied = files.iter().try_for_each(|(name, kind, content)| {
        let path = draft.join(name);
        if let Some(folder) = path.parent() {
            private_files::create_private_folder(folder)?;
        }
        std::fs::write(&path, content)?;
        set_read_only(&path, *kind)
    });
    let renamed = copied.and_then(|()| std::fs::rename(&draft, &target));
    if let Err(error) = renamed {
        let _ = std::fs::remove_dir_all(&draft);
        if !target.is_dir() {
            return Err(error.to_string());
        }
    }
    Ok(())
}

#[cfg(unix)]
pub(super) fn file_times(metadata: &std::fs::Metadata) -> String {
    use std::os::unix::fs::MetadataExt;
    let mtime = (metadata.mtime(), metadata.mtime_nsec());
    let ctime = (metadata.ctime(), metadata.ctime_nsec());
    format!("{} {:o} {} {mtime:?} {ctime:?}", metadata.ino(), metadata.mode(), metadata.len())
}

#[cfg(not(unix))]
pub(super) fn file_times(metadata: &std::fs::Metadata) -> String {
    format!("{} {:?}", metadata.len(), metadata.modified().ok())
}
