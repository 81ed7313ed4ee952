//! Attempts to get out, and writes that must be whole.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "the tests arrange the world from outside")]

use super::*;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;
use windlass_permission::{Decision, Policy, Rules};

/// A workspace `w` with a neighbour `outside` that holds a secret.
pub(crate) struct Yard {
    folder: TempDir,
    pub(crate) workspace: Workspace,
}

impl Yard {
    pub(crate) fn new() -> Yard {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("w/src")).unwrap();
        std::fs::create_dir(folder.path().join("outside")).unwrap();
        std::fs::write(folder.path().join("outside/secret"), "secret").unwrap();
        std::fs::write(folder.path().join("w/src/a.txt"), "inside").unwrap();
        let workspace = Workspace::at(&folder.path().join("w")).unwrap();
        Yard { folder, workspace }
    }

    pub(crate) fn root(&self) -> &Path {
        self.workspace.root()
    }

    pub(crate) fn outside(&self) -> std::path::PathBuf {
        self.folder.path().join("outside")
    }

    /// Makes a file and its folders.
    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A world that may read and edit a path, as the road would open it.
    fn world(&self, path: &str) -> Result<World, Error> {
        let real = self.workspace.locate(path)?;
        Ok(self.granting(&[Access::Edit { path: real }]))
    }

    pub(crate) fn granting(&self, accesses: &[Access]) -> World {
        let policy = Policy::new(Rules::parse(&serde_json::json!("allow")).unwrap());
        match policy.decide(accesses.to_vec(), &[]) {
            Decision::Allowed(grant) => self.workspace.open(grant, Arc::new(Unread)),
            Decision::Ask(question) => {
                let grant = question.answered(&windlass_protocol::Answer::Once).unwrap();
                self.workspace.open(grant, Arc::new(Unread))
            }
            other => panic!("{other:?}"),
        }
    }

    fn read(&self, path: &str) -> Result<String, Error> {
        text(self.world(path)?.read(path)?)
    }

    fn write(&self, path: &str) -> Result<(), Error> {
        write(&self.world(path)?, path, b"written")
    }
}

/// Changes go on record with nobody.
struct Unread;

impl crate::Ledger for Unread {
    fn record(&self, _batch: Vec<crate::Pending>) -> Result<(), String> {
        Ok(())
    }

    fn close(&self, _end: crate::End) {}
}

/// Replaces whatever a file holds.
fn write(world: &World, path: &str, content: &[u8]) -> Result<(), Error> {
    let before = world.load(path)?.map(|content| content.bytes);
    let (path, after) = (path.to_owned(), Some(content.into()));
    world.change(&[crate::Rewrite { path, before, after, mode: None }])
}

fn text(entry: Entry) -> Result<String, Error> {
    match entry {
        Entry::File(mut file) => {
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            Ok(text)
        }
        Entry::Folder(names) => Ok(names.join(" ")),
    }
}

#[test]
fn inside_by_any_spelling() {
    let yard = Yard::new();
    symlink("src", yard.root().join("link")).unwrap();
    let absolute = yard.root().join("src/a.txt");
    assert_eq!(yard.workspace.locate("link/").unwrap(), "src", "a slash changes nothing");
    for path in
        ["src/a.txt", "./src/a.txt", "src/../src/a.txt", "link/a.txt", absolute.to_str().unwrap()]
    {
        assert_eq!(yard.workspace.locate(path).unwrap(), "src/a.txt", "{path}");
        assert_eq!(yard.read(path).unwrap(), "inside", "{path}");
    }
    assert_eq!(yard.read(".").unwrap(), "link src/");
    assert_eq!(yard.read("src").unwrap(), "a.txt");
}

#[test]
fn outside_by_any_spelling_is_refused() {
    let yard = Yard::new();
    let outside = yard.outside();
    symlink(&outside, yard.root().join("folder-link")).unwrap();
    symlink(outside.join("secret"), yard.root().join("file-link")).unwrap();
    symlink("../../outside/secret", yard.root().join("src/relative-link")).unwrap();
    symlink("folder-link", yard.root().join("chain")).unwrap();
    symlink("/", yard.root().join("slash")).unwrap();
    symlink("/proc/self/root", yard.root().join("proc")).unwrap();
    let sibling = format!("{}-evil/x", yard.root().display());
    for path in [
        "../outside/secret",
        "src/../../outside/secret",
        "..",
        "/etc/passwd",
        outside.join("secret").to_str().unwrap(),
        sibling.as_str(),
        "file-link",
        "folder-link/secret",
        "chain/secret",
        "src/relative-link",
        "slash/etc/passwd",
        "proc/etc/passwd",
        "nowhere/../../outside/secret",
    ] {
        let (read, write) = (yard.read(path), yard.write(path));
        assert!(matches!(read, Err(Error::Outside { .. })), "read {path}: {read:?}");
        assert!(matches!(write, Err(Error::Outside { .. })), "write {path}: {write:?}");
    }
    assert_eq!(std::fs::read_to_string(outside.join("secret")).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1, "nothing was made there");
}

#[test]
fn a_dangling_link_is_not_written_through() {
    let yard = Yard::new();
    symlink(yard.outside().join("new"), yard.root().join("dangling")).unwrap();
    assert!(yard.write("dangling").is_err());
    assert!(!yard.outside().join("new").exists());
}

#[test]
fn a_path_swapped_after_it_was_granted_is_refused() {
    let yard = Yard::new();
    let world = yard.world("src/a.txt").unwrap();
    std::fs::rename(yard.root().join("src"), yard.root().join("old")).unwrap();
    symlink(yard.outside(), yard.root().join("src")).unwrap();
    std::fs::write(yard.outside().join("a.txt"), "secret").unwrap();
    assert!(world.read("src/a.txt").is_err());
    assert!(write(&world, "src/a.txt", b"x").is_err());

    // Also when the link leads inside, to something that was not granted.
    std::fs::remove_file(yard.root().join("src")).unwrap();
    symlink("old", yard.root().join("src")).unwrap();
    assert!(matches!(world.read("src/a.txt"), Err(Error::NotGranted { .. })));
}

/// Ends the other thread also when an assertion fails in this one.
pub(crate) struct StopAtTheEnd<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn the_last_steps_follow_no_link_not_even_inside() {
    let yard = Yard::new();
    symlink("src", yard.root().join("link")).unwrap();
    let world = yard.granting(&[Access::Edit { path: "link/a.txt".into() }]);
    for missing in [Missing::Fail, Missing::Make] {
        assert!(world.walk("link/a.txt".into(), missing, &mut Vec::new()).is_err());
        assert!(world.walk("src/a.txt".into(), missing, &mut Vec::new()).is_ok());
    }
}

#[test]
fn a_path_swapped_all_the_time_never_leaks() {
    let yard = Yard::new();
    let root = yard.root().to_owned();
    std::fs::write(yard.outside().join("a.txt"), "secret").unwrap();
    symlink(yard.outside(), root.join("evil")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = StopAtTheEnd(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = std::fs::rename(root.join("src"), root.join("real"));
                let _ = std::fs::rename(root.join("evil"), root.join("src"));
                let _ = std::fs::rename(root.join("src"), root.join("evil"));
                let _ = std::fs::rename(root.join("real"), root.join("src"));
            }
        });
        let world = yard.granting(&[Access::Edit { path: "src/a.txt".into() }]);
        let mut seen = [0; 2];
        for _ in 0..3_000 {
            match world.read("src/a.txt").and_then(text) {
                Ok(text) => {
                    assert_ne!(text, "secret");
                    seen[0] += 1;
                }
                Err(_) => seen[1] += 1,
            }
            let _ = write(&world, "src/a.txt", b"inside");
            let leaked = std::fs::read_to_string(yard.outside().join("a.txt")).unwrap();
            assert_eq!(leaked, "secret", "written through the link");
        }
        assert!(seen[0] > 0 && seen[1] > 0, "the race was not run: {seen:?}");
    });
    assert_eq!(std::fs::read_dir(yard.outside()).unwrap().count(), 2);
}

#[test]
fn what_was_not_declared_is_not_opened() {
    let yard = Yard::new();
    std::fs::write(yard.root().join("b.txt"), "b").unwrap();
    let reader = yard.granting(&[Access::Read { path: "b.txt".into() }]);
    assert_eq!(text(reader.read("b.txt").unwrap()).unwrap(), "b");
    assert!(matches!(reader.read("src/a.txt"), Err(Error::NotGranted { .. })));
    assert!(matches!(write(&reader, "b.txt", b"x"), Err(Error::NotGranted { .. })));
}

#[test]
fn a_pipe_is_refused_at_once() {
    let yard = Yard::new();
    let made = std::process::Command::new("mkfifo").arg(yard.root().join("pipe")).status();
    assert!(made.unwrap().success());
    assert!(matches!(yard.read("pipe"), Err(Error::Special { .. })));
    assert!(matches!(yard.write("pipe"), Err(Error::Special { .. })));
}

#[test]
fn a_write_makes_folders_keeps_the_mode_and_leaves_no_draft() {
    let yard = Yard::new();
    yard.write("new/deep/file.txt").unwrap();
    assert_eq!(yard.read("new/deep/file.txt").unwrap(), "written");
    let script = yard.root().join("src/a.txt");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o751)).unwrap();
    yard.write("src/a.txt").unwrap();
    assert_eq!(std::fs::metadata(&script).unwrap().permissions().mode() & 0o7777, 0o751);
    let mode = |path: &str| {
        std::fs::metadata(yard.root().join(path)).unwrap().permissions().mode() & 0o7777
    };
    std::fs::write(yard.root().join("usual"), "").unwrap();
    assert_eq!(mode("new/deep/file.txt"), mode("usual"));
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o600)).unwrap();
    yard.write("src/a.txt").unwrap();
    assert_eq!(mode("src/a.txt"), 0o600, "what was private stays private");
    // A draft that a dead process left is neither used nor removed.
    let stale = (0..2_000).map(|n| format!("src/.windlass-{}-{n}.draft", std::process::id()));
    let stale: Vec<String> = stale.take(50).collect();
    for path in &stale {
        std::fs::write(yard.root().join(path), "stale").unwrap();
    }
    yard.write("src/a.txt").unwrap();
    for path in &stale {
        assert_eq!(std::fs::read_to_string(yard.root().join(path)).unwrap(), "stale");
        std::fs::remove_file(yard.root().join(path)).unwrap();
    }
    assert_eq!(yard.read("new/deep").unwrap(), "file.txt");
    assert_eq!(yard.read("src").unwrap(), "a.txt");
}

#[test]
fn whoever_looks_during_a_write_sees_all_or_nothing_of_it() {
    let yard = Yard::new();
    let path = yard.root().join("src/a.txt");
    let (old, new) = ("o".repeat(300_000), "n".repeat(300_000));
    std::fs::write(&path, &old).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !stop.load(Ordering::Relaxed) {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(text == old || text == new, "half a file: {} bytes", text.len());
                reads += 1;
            }
            reads
        });
        let world = yard.world("src/a.txt").unwrap();
        for round in 0..40 {
            let content = if round % 2 == 0 { &new } else { &old };
            write(&world, "src/a.txt", content.as_bytes()).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
}

#[test]
fn paths_that_name_nothing_are_refused() {
    let yard = Yard::new();
    for path in ["", "a\0b", "a? (x)\nAllow read b", "a\u{1b}[2J", "a\u{202e}b"] {
        assert!(matches!(yard.read(path), Err(Error::Malformed { .. })));
    }
    assert!(matches!(yard.read("src/none"), Err(Error::Missing { .. })));
    assert!(yard.write(".").is_err());
    assert!(yard.write("src").is_err());
    assert!(yard.read("src/a.txt/b").is_err());
}
