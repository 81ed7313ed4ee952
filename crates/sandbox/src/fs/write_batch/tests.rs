//! Tests of batches that fail at every point, of concurrent changes, and of both exchange methods.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "tests create files directly")]

use super::*;
use crate::call_workspace::tests::StopOnDrop;
use crate::fs::failpoint::REMAINING_POINTS;
use crate::fs::file_change::{ChangeRecorder, MAX_CHANGED_FILE_BYTES};
use crate::workspace::Workspace;
use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;
use windlass_permission::{Decision, PermissionRules, Policy};

/// A `ChangeRecorder` that keeps its batches in memory, or fails if `is_full` is set.
#[derive(Default)]
struct InMemoryChangeRecorder {
    batches: Mutex<Vec<Vec<PendingFileChange>>>,
    ends: Mutex<Vec<WriteBatchOutcome>>,
    is_full: AtomicBool,
}

impl ChangeRecorder for InMemoryChangeRecorder {
    fn record_batch(&self, batch: Vec<PendingFileChange>) -> Result<(), String> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err("the recorder is full".into());
        }
        self.batches.lock().unwrap().push(batch);
        Ok(())
    }

    fn close_batch(&self, end: WriteBatchOutcome) {
        self.ends.lock().unwrap().push(end);
    }
}

struct WriteTestEnv {
    folder: TempDir,
    recorder: Arc<InMemoryChangeRecorder>,
    granted: CallWorkspace,
}

impl WriteTestEnv {
    fn new(paths: &[&str]) -> WriteTestEnv {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        let policy = Policy::new(PermissionRules::parse(&serde_json::json!("allow")).unwrap());
        let accesses = paths.iter().map(|path| ToolAccess::Edit { path: (*path).into() }).collect();
        let Decision::Allowed(grant) = policy.decide(accesses, &[]) else { panic!() };
        let recorder = Arc::new(InMemoryChangeRecorder::default());
        let granted =
            workspace.open_granted(grant, Arc::clone(&recorder) as Arc<dyn ChangeRecorder>);
        WriteTestEnv { folder, recorder, granted }
    }

    fn put(&self, path: &str, content: &str) {
        std::fs::write(self.folder.path().join(path), content).unwrap();
    }

    fn files(&self) -> BTreeMap<String, (String, u32)> {
        let mut files = BTreeMap::new();
        collect(self.folder.path(), self.folder.path(), &mut files);
        files
    }
}

/// Collects every file with its content and mode, and every folder.
fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, (String, u32)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path().strip_prefix(root).unwrap().display().to_string();
        let mode = entry.metadata().unwrap().mode();
        if entry.file_type().unwrap().is_dir() {
            files.insert(path + "/", (String::new(), mode));
            collect(root, &entry.path(), files);
        } else {
            let bytes = std::fs::read(entry.path()).unwrap();
            files.insert(path, (String::from_utf8(bytes).unwrap(), mode));
        }
    }
}

fn file_write(path: &str, before: Option<&str>, after: Option<&str>) -> FileWrite {
    let bytes = |text: &str| Arc::from(text.as_bytes());
    FileWrite { path: path.into(), before: before.map(bytes), after: after.map(bytes), mode: None }
}

/// Returns a batch with an update, an addition in new folders, a deletion and a move.
fn full_batch() -> Vec<FileWrite> {
    vec![
        file_write("a.txt", Some("a\n"), Some("A\n")),
        file_write("new/deep/b.txt", None, Some("b\n")),
        file_write("gone.txt", Some("gone\n"), None),
        file_write("from.txt", Some("moved\n"), None),
        file_write("to.txt", None, Some("moved\n")),
    ]
}

const PATHS: [&str; 5] = ["a.txt", "new/deep/b.txt", "gone.txt", "from.txt", "to.txt"];

fn create_env() -> WriteTestEnv {
    let env = WriteTestEnv::new(&PATHS);
    for (path, content) in [("a.txt", "a\n"), ("gone.txt", "gone\n"), ("from.txt", "moved\n")] {
        env.put(path, content);
    }
    env
}

#[test]
fn a_batch_that_fails_at_any_point_is_rolled_back() {
    for method in [FileExchangeMethod::Exchange, FileExchangeMethod::HardLink] {
        let mut failures = 0;
        loop {
            let env = create_env();
            let before = env.files();
            REMAINING_POINTS.set(failures);
            let changed = env.granted.write_files_with(&full_batch(), method);
            REMAINING_POINTS.set(usize::MAX);
            if changed.is_ok() {
                break;
            }
            assert_eq!(env.files(), before, "{method:?}, failing at operation {failures}");
            let recorded = env.recorder.batches.lock().unwrap().len();
            let ends = env.recorder.ends.lock().unwrap();
            assert_eq!(
                *ends,
                vec![WriteBatchOutcome::RolledBack; recorded],
                "the recorder learns of the rollback"
            );
            failures += 1;
        }
        assert!(failures >= 15, "only {failures} points failed");
    }
}

#[test]
fn a_successful_batch_is_complete_and_recorded() {
    for method in [FileExchangeMethod::Exchange, FileExchangeMethod::HardLink] {
        let env = create_env();
        env.granted.write_files_with(&full_batch(), method).unwrap();
        let files = env.files();
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(names, ["a.txt", "new/", "new/deep/", "new/deep/b.txt", "to.txt"], "{method:?}");
        assert_eq!(files["a.txt"].0, "A\n");
        let batches = env.recorder.batches.lock().unwrap();
        let [batch] = batches.as_slice() else { panic!("{batches:?}") };
        assert_eq!(batch.len(), 5);
        assert_eq!(batch[0].before.as_ref().unwrap().bytes.as_ref(), b"a\n");
        assert_eq!(batch[0].after.as_ref().unwrap().bytes.as_ref(), b"A\n");
        assert_eq!((&batch[1].before, &batch[2].after), (&None, &None));
    }
}

#[test]
fn a_batch_that_cannot_be_recorded_is_not_written() {
    let env = create_env();
    let before = env.files();
    env.recorder.is_full.store(true, Ordering::Relaxed);
    let error = env.granted.write_files(&full_batch()).unwrap_err();
    assert!(error.to_string().contains("the recorder is full"), "{error}");
    assert_eq!(env.files(), before);
}

#[test]
fn a_file_with_unexpected_content_is_not_changed() {
    let env = create_env();
    env.put("a.txt", "theirs\n");
    let before = env.files();
    assert!(matches!(env.granted.write_files(&full_batch()), Err(Error::Stale { .. })));
    let new = file_write("gone.txt", None, Some("x"));
    assert!(matches!(env.granted.write_files(&[new]), Err(Error::Stale { .. })), "the file exists");
    let twice = [full_batch().remove(2), full_batch().remove(2)];
    assert!(matches!(env.granted.write_files(&twice), Err(Error::DuplicatePath { .. })));
    assert_eq!(env.files(), before);
    assert!(env.recorder.batches.lock().unwrap().is_empty());
}

/// A `ChangeRecorder` that runs a function when a batch is ready, just before its files are
/// replaced.
struct CallbackChangeRecorder(Box<dyn Fn() + Send + Sync>);

impl ChangeRecorder for CallbackChangeRecorder {
    fn record_batch(&self, _batch: Vec<PendingFileChange>) -> Result<(), String> {
        (self.0)();
        Ok(())
    }

    fn close_batch(&self, _end: WriteBatchOutcome) {}
}

#[test]
fn a_concurrent_change_at_the_last_moment_survives() {
    let env = create_env();
    let root = env.folder.path().to_owned();
    let change_file = move || {
        std::fs::write(root.join("theirs"), "theirs\n").unwrap();
        std::fs::rename(root.join("theirs"), root.join("from.txt")).unwrap();
    };
    let policy = Policy::new(PermissionRules::parse(&serde_json::json!("allow")).unwrap());
    let accesses = PATHS.map(|path| ToolAccess::Edit { path: path.into() }).to_vec();
    let Decision::Allowed(grant) = policy.decide(accesses, &[]) else { panic!() };
    let workspace = Workspace::open(env.folder.path()).unwrap();
    let granted =
        workspace.open_granted(grant, Arc::new(CallbackChangeRecorder(Box::new(change_file))));
    let mut before = env.files();
    assert!(matches!(granted.write_files(&full_batch()), Err(Error::Stale { .. })));
    before.get_mut("from.txt").unwrap().0 = "theirs\n".into();
    assert_eq!(env.files(), before, "everything else is unchanged");
}

/// A version that another editor saved may be replaced only by a change based on it. Otherwise it
/// still exists: in place, or in a file beside it.
#[test]
fn no_concurrent_write_is_ever_lost() {
    let env = WriteTestEnv::new(&["a.txt"]);
    let path = env.folder.path().join("a.txt");
    let content = |author: &str, n: usize| format!("{author} {n}\n");
    env.put("a.txt", &content("ours", 0));
    let stop = AtomicBool::new(false);
    let (replaced_by_us, stale, (saved, replaced)) = std::thread::scope(|scope| {
        // Another editor, which records the content that it replaces.
        let editor = scope.spawn(|| {
            let (mut saved, mut replaced) = (0, BTreeSet::new());
            let exchange = rustix::fs::RenameFlags::EXCHANGE;
            let here = rustix::fs::CWD;
            while !stop.load(Ordering::Relaxed) {
                if std::fs::read_to_string(&path).is_ok_and(|seen| seen.starts_with("ours")) {
                    let draft = path.with_extension("theirs");
                    std::fs::write(&draft, content("theirs", saved)).unwrap();
                    rustix::fs::renameat_with(here, &draft, here, &path, exchange).unwrap();
                    replaced.insert(std::fs::read_to_string(&draft).unwrap());
                    saved += 1;
                }
                std::thread::sleep(std::time::Duration::from_micros(30));
            }
            (saved, replaced)
        });
        let stopping = StopOnDrop(&stop);
        let (mut replaced_by_us, mut stale) = (BTreeSet::new(), 0);
        for n in 1..4_000 {
            let Some(before) = env.granted.load_file("a.txt").unwrap() else {
                panic!("the file is gone")
            };
            let seen = String::from_utf8(before.bytes.to_vec()).unwrap();
            let after = content("ours", n);
            match env.granted.write_files(&[file_write("a.txt", Some(&seen), Some(&after))]) {
                Ok(()) => drop(replaced_by_us.insert(seen)),
                Err(Error::Stale { .. } | Error::ConcurrentSave { .. }) => stale += 1,
                Err(other) => panic!("{other}"),
            }
        }
        drop(stopping);
        (replaced_by_us, stale, editor.join().unwrap())
    });
    assert!(
        saved > 0 && stale > 0,
        "the race was not run: {} {stale} {saved}",
        replaced_by_us.len()
    );
    let remaining: Vec<String> = env.files().into_values().map(|(content, _)| content).collect();
    for n in 0..saved {
        let theirs = content("theirs", n);
        let accounted = replaced_by_us.contains(&theirs)
            || replaced.contains(&theirs)
            || remaining.contains(&theirs);
        assert!(accounted, "{theirs} is lost");
    }
}

#[test]
fn concurrent_saves_before_a_rollback_survive() {
    for method in [FileExchangeMethod::Exchange, FileExchangeMethod::HardLink] {
        let env = create_env();
        let mut batch = WriteBatch { method, ..WriteBatch::default() };
        env.granted.stage_writes(&full_batch(), &mut batch).unwrap();
        batch.commit().unwrap();
        // Saves to a changed file, a created file and the path of a deleted file.
        for path in ["a.txt", "to.txt", "gone.txt"] {
            env.put(path, "theirs\n");
        }
        assert_eq!(batch.roll_back(), None);
        let files = env.files();
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(names, ["a.txt", "from.txt", "gone.txt", "to.txt"], "{method:?}");
        for path in ["a.txt", "gone.txt", "to.txt"] {
            assert_eq!(files[path].0, "theirs\n", "{method:?} {path}");
        }
        assert_eq!(files["from.txt"].0, "moved\n");
    }
}

#[test]
fn a_file_deleted_before_a_rollback_is_restored() {
    let env = create_env();
    let mut batch = WriteBatch::default();
    env.granted.stage_writes(&full_batch(), &mut batch).unwrap();
    batch.commit().unwrap();
    std::fs::remove_file(env.folder.path().join("a.txt")).unwrap();
    batch.roll_back();
    assert_eq!(env.files()["a.txt"].0, "a\n");
}

#[test]
fn after_a_crash_only_temp_files_with_known_content_are_removed() {
    let env = create_env();
    let dead = u32::MAX;
    env.put(&format!(".windlass-{dead}-0.draft"), "never in place");
    env.put(&format!(".windlass-{dead}-1.swap"), "a\n");
    env.put(&format!(".windlass-{dead}-2.swap"), "saved by another program at that moment");
    let alive = format!(".windlass-{}-3.draft", std::process::id());
    env.put(&alive, "under way");
    env.granted.remove_stale_temp_files("a.txt", &[BlobRef::for_bytes(b"a\n")]);
    let files = env.files();
    let left: Vec<&str> =
        files.keys().filter(|name| name.starts_with(".windlass")).map(String::as_str).collect();
    assert_eq!(
        BTreeSet::from_iter(left),
        [alive.as_str(), &format!(".windlass-{dead}-2.swap")].into()
    );
}

#[test]
fn a_read_only_file_is_not_changed() {
    let env = create_env();
    let path = env.folder.path().join("a.txt");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    assert!(matches!(env.granted.write_files(&full_batch()), Err(Error::ReadOnly { .. })));
}

#[test]
fn owner_and_mode_are_kept_for_files_of_other_users() {
    let env = WriteTestEnv::new(&["a.txt"]);
    let path = env.folder.path().join("a.txt");
    env.put("a.txt", "a");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let owned = std::os::unix::fs::chown(&path, Some(12_345), Some(54_321)).is_ok();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
    env.granted.write_files(&[file_write("a.txt", Some("a"), Some("b"))]).unwrap();
    let data = std::fs::metadata(&path).unwrap();
    assert_eq!(data.mode() & 0o7777, 0o4755);
    // Only root can change the owner; otherwise the file belongs to the user before and after.
    if owned {
        assert_eq!((data.uid(), data.gid()), (12_345, 54_321));
    }
}

#[test]
fn a_file_too_large_to_store_is_not_changed() {
    let env = WriteTestEnv::new(&["a.txt"]);
    let file = std::fs::File::create(env.folder.path().join("a.txt")).unwrap();
    file.set_len(MAX_CHANGED_FILE_BYTES + 1).unwrap();
    assert!(matches!(env.granted.load_file("a.txt"), Err(Error::TooLarge { .. })));
    let gone = file_write("a.txt", Some(""), None);
    assert!(matches!(env.granted.write_files(&[gone]), Err(Error::TooLarge { .. })));
}
