//! A folder of tools or of a plugin: its change stamp, and its copy in the cache.

use super::file_role::{ToolFileKind, file_kind, set_read_only};
use crate::hex::to_hex;
use crate::private_files;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Limits on the user's own tools folder.
pub(super) const MAX_FILES: usize = 1_000;
pub(super) const MAX_TOTAL_BYTES: u64 = 16 << 20;
const MAX_DEPTH: usize = 8;

/// Returns a stamp that changes when a file below a folder may have changed: names, sizes and
/// times.
pub(crate) fn folder_stamp(folder: &Path) -> String {
    let mut hash = Sha256::new();
    let result = walk_folder(folder, folder, 0, &mut |name, metadata| {
        hash.update(format!("{name}\0{}\n", file_times(metadata)));
        Ok(())
    });
    if let Err(error) = result {
        hash.update(error);
    }
    to_hex(&hash.finalize())
}

/// Walks a folder of the user's own and follows links.
fn walk_folder(
    root: &Path,
    folder: &Path,
    depth: usize,
    visit: &mut dyn FnMut(&str, &std::fs::Metadata) -> Result<(), String>,
) -> Result<usize, String> {
    if depth > MAX_DEPTH {
        return Err(format!("its folder is nested deeper than {MAX_DEPTH} levels"));
    }
    let to_error = |error: std::io::Error| error.to_string();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(to_error)? {
        names.push(entry.map_err(to_error)?.path());
        if names.len() > MAX_FILES {
            return Err(format!("its folder contains more than {MAX_FILES} files"));
        }
    }
    names.sort_unstable();
    let mut count = 0;
    for path in names {
        let Ok(metadata) = path.metadata() else { continue };
        if metadata.is_dir() {
            count += walk_folder(root, &path, depth + 1, visit)?;
        } else if metadata.is_file()
            && let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str)
        {
            visit(name, &metadata)?;
            count += 1;
        }
        if count > MAX_FILES {
            return Err(format!("its folder contains more than {MAX_FILES} files"));
        }
    }
    Ok(count)
}

/// Copies a folder into `copies` under the digest of its content, unless that copy exists. Returns
/// the digest.
pub(super) fn copy_to_cache(folder: &Path, copies: &Path) -> Result<String, String> {
    let files = read_files(folder)?;
    let mut hash = Sha256::new();
    for (name, kind, content) in &files {
        hash.update(format!("{}\0{name}\0{kind:?}\0{}\0", name.len(), content.len()));
        hash.update(content);
    }
    let digest: String = to_hex(&hash.finalize()).chars().take(32).collect();
    write_copy(&files, copies, &digest)?;
    Ok(digest)
}

/// Copies a folder into `copies` under a name with the stamp of its files, unless that copy exists.
/// Unlike `copy_to_cache`, it reads no file that it does not copy. Returns the path of the copy.
pub(crate) fn copy_by_stamp(folder: &Path, copies: &Path, name: &str) -> Result<PathBuf, String> {
    let stamp: String = folder_stamp(folder).chars().take(16).collect();
    let name = format!("{name}-{stamp}");
    let target = copies.join(&name);
    if !target.is_dir() {
        write_copy(&read_files(folder)?, copies, &name)?;
    }
    Ok(target)
}

/// A file to copy: its name, kind and content.
type CopiedFile = (String, ToolFileKind, Vec<u8>);

fn read_files(folder: &Path) -> Result<Vec<CopiedFile>, String> {
    let mut files = Vec::new();
    let mut total_bytes = 0_u64;
    walk_folder(folder, folder, 0, &mut |name, metadata| {
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
