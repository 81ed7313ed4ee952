//! Tests of escapes from the workspace, and of atomic writes.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "tests create files and run programs directly")]

use super::*;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;
use windlass_permission::{Decision, PermissionRules, Policy};

/// A workspace `w` next to a folder `outside` with a secret.
pub(crate) struct TestWorkspace {
    folder: TempDir,
    pub(crate) workspace: Workspace,
}

impl TestWorkspace {
    pub(crate) fn new() -> TestWorkspace {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("w/src")).unwrap();
        std::fs::create_dir(folder.path().join("outside")).unwrap();
        std::fs::write(folder.path().join("outside/secret"), "secret").unwrap();
        std::fs::write(folder.path().join("w/src/a.txt"), "inside").unwrap();
        let workspace = Workspace::open(&folder.path().join("w")).unwrap();
        TestWorkspace { folder, workspace }
    }

    pub(crate) fn root(&self) -> &Path {
        self.workspace.root()
    }

    pub(crate) fn outside(&self) -> std::path::PathBuf {
        self.folder.path().join("outside")
    }

    /// Creates a file and its folders.
    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Grants read and edit access to a path after resolving it, as the pipeline does.
    fn grant_edit(&self, path: &str) -> Result<CallWorkspace, Error> {
        let real = self.workspace.resolve_path(path)?;
        Ok(self.grant(&[ToolAccess::Edit { path: real }]))
    }

    pub(crate) fn grant(&self, accesses: &[ToolAccess]) -> CallWorkspace {
        let policy = Policy::new(PermissionRules::parse(&serde_json::json!("allow")).unwrap());
        match policy.decide(accesses.to_vec(), &[]) {
            Decision::Allowed(grant) => {
                self.workspace.open_granted(grant, Arc::new(NullChangeRecorder))
            }
            Decision::Ask(question) => {
                let grant = question.resolve(&windlass_protocol::PermissionAnswer::Once).unwrap();
                self.workspace.open_granted(grant, Arc::new(NullChangeRecorder))
            }
            other => panic!("{other:?}"),
        }
    }

    fn read(&self, path: &str) -> Result<String, Error> {
        text(self.grant_edit(path)?.read(path)?)
    }

    fn write(&self, path: &str) -> Result<(), Error> {
        write(&self.grant_edit(path)?, path, b"written")
    }
}

/// A `ChangeRecorder` that records nothing.
struct NullChangeRecorder;

impl crate::ChangeRecorder for NullChangeRecorder {
    fn record_batch(&self, _batch: Vec<crate::PendingFileChange>) -> Result<(), String> {
        Ok(())
    }

    fn close_batch(&self, _end: crate::WriteBatchOutcome) {}
}

/// Replaces the content of a file.
fn write(granted: &CallWorkspace, path: &str, content: &[u8]) -> Result<(), Error> {
    let before = granted.load_file(path)?.map(|content| content.bytes);
    let (path, after) = (path.to_owned(), Some(content.into()));
    granted.write_files(&[crate::FileWrite { path, before, after, mode: None }])
}

fn text(entry: OpenedPath) -> Result<String, Error> {
    match entry {
        OpenedPath::File(mut file) => {
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            Ok(text)
        }
        OpenedPath::Folder(names) => Ok(names.join(" ")),
    }
}

#[test]
fn paths_inside_are_opened_in_any_spelling() {
    let env = TestWorkspace::new();
    symlink("src", env.root().join("link")).unwrap();
    let absolute = env.root().join("src/a.txt");
    assert_eq!(
        env.workspace.resolve_path("link/").unwrap(),
        "src",
        "a trailing slash changes nothing"
    );
    for path in
        ["src/a.txt", "./src/a.txt", "src/../src/a.txt", "link/a.txt", absolute.to_str().unwrap()]
    {
        assert_eq!(env.workspace.resolve_path(path).unwrap(), "src/a.txt", "{path}");
        assert_eq!(env.read(path).unwrap(), "inside", "{path}");
    }
    assert_eq!(env.read(".").unwrap(), "link src/");
    assert_eq!(env.read("src").unwrap(), "a.txt");
}

#[test]
fn paths_outside_need_a_grant_of_their_own_in_any_spelling() {
    let env = TestWorkspace::new();
    let outside = env.outside();
    symlink(&outside, env.root().join("folder-link")).unwrap();
    symlink(outside.join("secret"), env.root().join("file-link")).unwrap();
    symlink("../../outside/secret", env.root().join("src/relative-link")).unwrap();
    symlink("folder-link", env.root().join("chain")).unwrap();
    symlink("/", env.root().join("slash")).unwrap();
    symlink("/proc/self/root", env.root().join("proc")).unwrap();
    let sibling = format!("{}-evil/x", env.root().display());
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
        let real = env.workspace.resolve_path(path).unwrap();
        assert!(real.starts_with('/') && !real.contains(".."), "{path}: {real}");
        let spelled = [".", path].map(|path| ToolAccess::Edit { path: path.to_owned() });
        let granted = env.grant(&spelled[..usize::from(real != path) + 1]);
        let (read, write) = (granted.read(path), write(&granted, path, b"written"));
        assert!(matches!(read, Err(Error::NotGranted { .. })), "read {path}");
        assert!(matches!(write, Err(Error::NotGranted { .. })), "write {path}: {write:?}");
    }
    let secret = outside.join("secret");
    assert_eq!(env.read("file-link").unwrap(), "secret", "with a grant for the real path");
    assert_eq!(env.workspace.resolve_path("file-link").unwrap(), secret.to_str().unwrap());
    assert_eq!(std::fs::read_to_string(outside.join("secret")).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1, "nothing was created outside");
}

#[test]
fn a_dangling_symlink_is_not_written_through() {
    let env = TestWorkspace::new();
    symlink(env.outside().join("new"), env.root().join("dangling")).unwrap();
    let granted = env.grant(&[ToolAccess::Edit { path: "dangling".into() }]);
    assert!(write(&granted, "dangling", b"written").is_err());
    assert!(!env.outside().join("new").exists());
}

#[test]
fn a_path_swapped_after_it_was_granted_is_refused() {
    let env = TestWorkspace::new();
    let granted = env.grant_edit("src/a.txt").unwrap();
    std::fs::rename(env.root().join("src"), env.root().join("old")).unwrap();
    symlink(env.outside(), env.root().join("src")).unwrap();
    std::fs::write(env.outside().join("a.txt"), "secret").unwrap();
    assert!(granted.read("src/a.txt").is_err());
    assert!(write(&granted, "src/a.txt", b"x").is_err());

    // The same applies if the symlink leads to a path inside that was not granted.
    std::fs::remove_file(env.root().join("src")).unwrap();
    symlink("old", env.root().join("src")).unwrap();
    assert!(matches!(granted.read("src/a.txt"), Err(Error::NotGranted { .. })));
}

/// Sets a stop flag on drop, so that the other thread ends even if an assertion fails.
pub(crate) struct StopOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn opening_a_parent_follows_no_symlink_even_inside() {
    let env = TestWorkspace::new();
    symlink("src", env.root().join("link")).unwrap();
    let granted = env.grant(&[ToolAccess::Edit { path: "link/a.txt".into() }]);
    for missing in [MissingFolderPolicy::Fail, MissingFolderPolicy::Create] {
        assert!(granted.open_parent("link/a.txt".into(), missing, &mut Vec::new()).is_err());
        assert!(granted.open_parent("src/a.txt".into(), missing, &mut Vec::new()).is_ok());
    }
}

#[test]
fn a_path_swapped_constantly_never_leaks() {
    let env = TestWorkspace::new();
    let root = env.root().to_owned();
    std::fs::write(env.outside().join("a.txt"), "secret").unwrap();
    symlink(env.outside(), root.join("evil")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = std::fs::rename(root.join("src"), root.join("real"));
                let _ = std::fs::rename(root.join("evil"), root.join("src"));
                let _ = std::fs::rename(root.join("src"), root.join("evil"));
                let _ = std::fs::rename(root.join("real"), root.join("src"));
            }
        });
        let granted = env.grant(&[ToolAccess::Edit { path: "src/a.txt".into() }]);
        let mut seen = [0; 2];
        for _ in 0..3_000 {
            match granted.read("src/a.txt").and_then(text) {
                Ok(text) => {
                    assert_ne!(text, "secret");
                    seen[0] += 1;
                }
                Err(_) => seen[1] += 1,
            }
            let _ = write(&granted, "src/a.txt", b"inside");
            let leaked = std::fs::read_to_string(env.outside().join("a.txt")).unwrap();
            assert_eq!(leaked, "secret", "written through the link");
        }
        assert!(seen[0] > 0 && seen[1] > 0, "the race was not run: {seen:?}");
    });
    assert_eq!(std::fs::read_dir(env.outside()).unwrap().count(), 2);
}

#[test]
fn undeclared_paths_are_not_opened() {
    let env = TestWorkspace::new();
    std::fs::write(env.root().join("b.txt"), "b").unwrap();
    let reader = env.grant(&[ToolAccess::Read { path: "b.txt".into() }]);
    assert_eq!(text(reader.read("b.txt").unwrap()).unwrap(), "b");
    assert!(matches!(reader.read("src/a.txt"), Err(Error::NotGranted { .. })));
    assert!(matches!(write(&reader, "b.txt", b"x"), Err(Error::NotGranted { .. })));
}

#[test]
fn a_pipe_is_refused_at_once() {
    let env = TestWorkspace::new();
    let created = std::process::Command::new("mkfifo").arg(env.root().join("pipe")).status();
    assert!(created.unwrap().success());
    assert!(matches!(env.read("pipe"), Err(Error::SpecialFile { .. })));
    assert!(matches!(env.write("pipe"), Err(Error::SpecialFile { .. })));
}

#[test]
fn a_write_creates_folders_keeps_the_mode_and_leaves_no_draft() {
    let env = TestWorkspace::new();
    env.write("new/deep/file.txt").unwrap();
    assert_eq!(env.read("new/deep/file.txt").unwrap(), "written");
    let script = env.root().join("src/a.txt");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o751)).unwrap();
    env.write("src/a.txt").unwrap();
    assert_eq!(std::fs::metadata(&script).unwrap().permissions().mode() & 0o7777, 0o751);
    let mode = |path: &str| {
        std::fs::metadata(env.root().join(path)).unwrap().permissions().mode() & 0o7777
    };
    std::fs::write(env.root().join("usual"), "").unwrap();
    assert_eq!(mode("new/deep/file.txt"), mode("usual"));
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o600)).unwrap();
    env.write("src/a.txt").unwrap();
    assert_eq!(mode("src/a.txt"), 0o600, "the mode 0600 is kept");
    // A draft of a dead process is neither used nor removed.
    let stale = (0..2_000).map(|n| format!("src/.windlass-{}-{n}.draft", std::process::id()));
    let stale: Vec<String> = stale.take(50).collect();
    for path in &stale {
        std::fs::write(env.root().join(path), "stale").unwrap();
    }
    env.write("src/a.txt").unwrap();
    for path in &stale {
        assert_eq!(std::fs::read_to_string(env.root().join(path)).unwrap(), "stale");
        std::fs::remove_file(env.root().join(path)).unwrap();
    }
    assert_eq!(env.read("new/deep").unwrap(), "file.txt");
    assert_eq!(env.read("src").unwrap(), "a.txt");
}

#[test]
fn a_reader_during_a_write_sees_the_old_or_the_new_file() {
    let env = TestWorkspace::new();
    let path = env.root().join("src/a.txt");
    let (old, new) = ("o".repeat(300_000), "n".repeat(300_000));
    std::fs::write(&path, &old).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !stop.load(Ordering::Relaxed) {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(
                    text == old || text == new,
                    "the reader saw {} bytes of a partial file",
                    text.len()
                );
                reads += 1;
            }
            reads
        });
        let granted = env.grant_edit("src/a.txt").unwrap();
        for round in 0..40 {
            let content = if round % 2 == 0 { &new } else { &old };
            write(&granted, "src/a.txt", content.as_bytes()).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
}

#[test]
fn invalid_paths_are_refused() {
    let env = TestWorkspace::new();
    for path in ["", "a\0b", "a? (x)\nAllow read b", "a\u{1b}[2J", "a\u{202e}b"] {
        assert!(matches!(env.read(path), Err(Error::InvalidPath { .. })));
    }
    assert!(matches!(env.read("src/none"), Err(Error::NotFound { .. })));
    assert!(env.write(".").is_err());
    assert!(env.write("src").is_err());
    assert!(env.read("src/a.txt/b").is_err());
}

#[test]
fn a_name_that_is_not_plain_text_is_listed_and_opened_by_its_escaped_form() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let env = TestWorkspace::new();
    let names: [(&[u8], &str); 5] = [
        (b"odd/caf\xe9.txt", r"odd/caf\351.txt"),
        (b"odd/red\x1b[31m\n.txt", r"odd/red\033[31m\012.txt"),
        ("odd/a\u{202e}b".as_bytes(), r"odd/a\342\200\256b"),
        (b"odd/\xff/plain", r"odd/\377/plain"),
        (br"odd/literal\351", r"odd/literal\134351"),
    ];
    for (bytes, _) in names {
        let path = env.root().join(OsStr::from_bytes(bytes));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let search = env.grant(&[ToolAccess::Search { path: "odd".into() }]);
    let walk = search.walk("odd").unwrap();
    let mut found: Vec<String> =
        walk.files(&crate::FileFilter::default()).unwrap().map(|file| file.into_path()).collect();
    found.sort();
    let mut expected = names.map(|(_, escaped)| escaped);
    expected.sort_unstable();
    assert_eq!(found, expected);
    let listing = env.grant_edit("odd").unwrap().read("odd").unwrap();
    let OpenedPath::Folder(listed) = listing else { panic!("not a folder") };
    assert!(listed.contains(&r"\377/".to_owned()) && listed.contains(&r"caf\351.txt".to_owned()));
    for (bytes, escaped) in names {
        let path = env.root().join(OsStr::from_bytes(bytes));
        let OpenedPath::File(mut file) = env.grant_edit(escaped).unwrap().read(escaped).unwrap()
        else {
            panic!("{escaped} is not a file")
        };
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        assert_eq!(content, bytes, "{escaped}");
        env.write(escaped).unwrap();
        assert_eq!(std::fs::read(path).unwrap(), b"written", "{escaped}");
    }
    let spelled = env.workspace.resolve_path(r"odd/c\141f\351.txt").unwrap();
    assert_eq!(spelled, r"odd/caf\351.txt", "every spelling resolves to one form");
    let outside = env.workspace.resolve_path(r"odd/\056\056/\056\056/outside/secret");
    assert_eq!(outside.unwrap(), env.outside().join("secret").to_str().unwrap());
}
