//! Checks of the repository that a session has in its checkout, before `git` reads it.
//!
//! A link in it would let the session read other repositories of the node through the branches that
//! are saved, and a pipe or a huge file would keep the node busy. A command that still runs can change
//! the repository after the check.
#![allow(
    clippy::disallowed_methods,
    reason = "it looks at files without following links, before `git` opens them"
)]

use super::STORE_NAME;
use anyhow::{Context, bail};
use std::io::Read;
use std::path::Path;

/// Maximum size of `HEAD`.
const MAX_HEAD_BYTES: u64 = 4 << 10;
/// Maximum size of other files besides objects.
const MAX_REF_BYTES: u64 = 64 << 20;
/// Maximum number of files and folders.
const MAX_ENTRIES: usize = 1_000_000;
/// The parts of a repository that `git` reads to send its branches.
const READ_PARTS: [&str; 5] = ["HEAD", "packed-refs", "refs", "objects", "shallow"];

/// Fails unless the repository has only files and folders, and no objects of another repository but
/// that of the node.
pub(super) fn check(checkout: &Path) -> anyhow::Result<()> {
    let repository = checkout.join(".git");
    let own = repository.symlink_metadata().context("the checkout has no repository")?;
    if !own.is_dir() || repository.join("commondir").symlink_metadata().is_ok() {
        bail!("the repository of the checkout was replaced");
    }
    let mut paths: Vec<_> = READ_PARTS.iter().map(|name| repository.join(name)).collect();
    let mut count = 0;
    while let Some(path) = paths.pop() {
        let found = match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            found => found?,
        };
        count += 1;
        if count > MAX_ENTRIES {
            bail!("the repository of the checkout has too many files");
        }
        if found.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                paths.push(entry?.path());
            }
            continue;
        }
        let limit = match () {
            () if path == repository.join("HEAD") => MAX_HEAD_BYTES,
            () if path.starts_with(repository.join("objects")) => u64::MAX,
            () => MAX_REF_BYTES,
        };
        if !found.is_file() || found.len() > limit {
            let name = path.strip_prefix(checkout).unwrap_or(&path).display();
            bail!("{name} in the checkout is not what git has made");
        }
    }
    let alternates = std::fs::read_to_string(repository.join("objects/info/alternates"));
    if alternates.is_ok_and(|text| text != alternates_text()) {
        bail!("the repository of the checkout uses the objects of another one");
    }
    Ok(())
}

/// Returns the text of the file that names the repository with the objects of all checkouts.
pub(super) fn alternates_text() -> String {
    format!("../../../{STORE_NAME}/objects\n")
}

/// Returns the text of `HEAD`.
pub(super) fn read_head(checkout: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(checkout.join(".git/HEAD"))?;
    file.take(MAX_HEAD_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(all(test, unix))]
mod tests {
    use super::check;

    #[test]
    fn links_pipes_and_objects_of_others_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join(".git");
        std::fs::create_dir_all(git.join("objects/pack")).unwrap();
        std::fs::create_dir_all(git.join("refs/heads")).unwrap();
        std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        check(folder.path()).unwrap();
        let refused = |name: &str| {
            assert!(check(folder.path()).is_err(), "{name}");
            let path = git.join(name);
            std::fs::remove_file(path).unwrap();
            check(folder.path()).unwrap();
        };
        for name in ["packed-refs", "refs/heads/x", "objects/pack/x", "shallow"] {
            std::os::unix::fs::symlink("/etc/hostname", git.join(name)).unwrap();
            refused(name);
        }
        let mkfifo = std::process::Command::new("mkfifo").arg(git.join("refs/pipe")).status();
        assert!(mkfifo.unwrap().success());
        refused("refs/pipe");
        std::fs::create_dir(git.join("objects/info")).unwrap();
        std::fs::write(git.join("objects/info/alternates"), "/other/objects\n").unwrap();
        refused("objects/info/alternates");
        std::fs::write(git.join("commondir"), "../../other/.git\n").unwrap();
        refused("commondir");
        std::fs::File::create(git.join("HEAD")).unwrap().set_len(1 << 30).unwrap();
        assert!(check(folder.path()).is_err());
    }
}
