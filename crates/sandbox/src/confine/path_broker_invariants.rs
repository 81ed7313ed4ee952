//! Invariants of the path broker, checked on any spelling of a path. For the fuzzer and a property
//! test.
#![allow(clippy::disallowed_methods, reason = "compares the sandbox with the kernel")]

use super::path_policy::PathPolicy;
use super::resolve_path::{FinalSymlinkMode, SyscallCaller};
use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns true if the broker resolves a path to the file that the kernel would use, and protects
/// it if its folder `.git` is protected. The first byte selects the treatment of a final symbolic
/// link, the others are the path, relative to the workspace. The broker may refuse a path.
pub fn check_path_broker_invariants(workspace: &Path, data: &[u8]) -> bool {
    let Some((mode, spelled)) = data.split_first() else { return true };
    if spelled.contains(&0) {
        return true;
    }
    let (mode, no_follow) = match mode % 2 {
        0 => (FinalSymlinkMode::Follow, OFlags::empty()),
        _ => (FinalSymlinkMode::Keep, OFlags::NOFOLLOW),
    };
    // `Path::join` and not a text: the broker gets the path as the process spelled it.
    let path = workspace.join(OsStr::from_bytes(spelled));
    let Ok(caller) = SyscallCaller::new(std::process::id()) else { return false };
    let Ok(Some(target)) = caller.anchor(&path, mode) else { return true };
    let Some(resolved) = target.path() else { return true };
    let policy = PathPolicy::for_workspace(workspace);
    if resolved.starts_with(workspace.join(".git")) && !policy.is_protected(resolved) {
        return false;
    }
    match rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC | no_follow, Mode::empty()) {
        Ok(file) => kernel_path(&file).is_none_or(|kernel| kernel == without_dot(resolved)),
        // The call creates the file, so its folder must be the one that the broker checked.
        Err(_) => resolved.parent().is_none_or(|parent| {
            std::fs::canonicalize(parent).is_ok_and(|kernel| kernel == parent)
        }),
    }
}

/// Returns the path of an open file, unless it depends on the process that reads it.
fn kernel_path(file: &impl std::os::fd::AsRawFd) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    (path.is_absolute() && !path.starts_with("/proc")).then_some(path)
}

fn without_dot(path: &Path) -> PathBuf {
    path.components().collect()
}

#[cfg(test)]
mod tests {
    use super::check_path_broker_invariants;
    use proptest::prelude::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::sync::LazyLock;

    static WORKSPACE: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("w");
        fs::create_dir_all(root.join(".git/hooks")).unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join(".git/config"), "x").unwrap();
        for (target, name) in [
            (".git", "g"),
            ("..", "u"),
            ("a/b", "l"),
            ("g/hooks", "a/h"),
            ("loop", "loop"),
            ("/proc/self/cwd", "p"),
            ("../w/.git/new", "d"),
            (".", "s"),
            ("nowhere/x", "n"),
        ] {
            symlink(target, root.join(name)).unwrap();
        }
        symlink(root.join("g"), root.join("a/abs")).unwrap();
        (folder, root)
    });

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn the_broker_uses_the_file_that_the_kernel_would(
            mode in 0_u8..2,
            parts in prop::collection::vec(prop::sample::select(vec![
                "a", "b", "g", "u", "l", "h", "p", "d", "s", "n", "w", "abs", "loop", ".git", "config",
                "hooks", "new", ".", "..", "", "x\u{e9}", "/proc/self/root",
            ]), 0..9),
        ) {
            let mut data = vec![mode];
            data.extend(parts.join("/").as_bytes());
            prop_assert!(check_path_broker_invariants(&WORKSPACE.1, &data), "{parts:?}");
        }
    }
}
