//! Batches that fail at every point, files that change under our hands, and both ways of swapping.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "the tests arrange the world from outside")]

use super::*;
use crate::Workspace;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;
use windlass_permission::{Decision, Policy, Rules};

thread_local! {
    /// How many operations still succeed.
    static LUCK: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Fails once, when the luck has run out.
pub(super) fn point() -> std::io::Result<()> {
    let left = LUCK.get();
    LUCK.set(left.checked_sub(usize::from(left != usize::MAX)).unwrap_or(usize::MAX));
    if left == 0 { Err(std::io::Error::from_raw_os_error(28)) } else { Ok(()) }
}

/// Remembers what was recorded, or refuses to.
#[derive(Default)]
struct Book {
    batches: Mutex<Vec<Vec<Pending>>>,
    ends: Mutex<Vec<End>>,
    full: AtomicBool,
}

impl Ledger for Book {
    fn record(&self, batch: Vec<Pending>) -> Result<(), String> {
        if self.full.load(Ordering::Relaxed) {
            return Err("the book is full".into());
        }
        self.batches.lock().unwrap().push(batch);
        Ok(())
    }

    fn close(&self, end: End) {
        self.ends.lock().unwrap().push(end);
    }
}

struct Yard {
    folder: TempDir,
    book: Arc<Book>,
    world: World,
}

impl Yard {
    fn new(paths: &[&str]) -> Yard {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::at(folder.path()).unwrap();
        let policy = Policy::new(Rules::parse(&serde_json::json!("allow")).unwrap());
        let accesses = paths.iter().map(|path| Access::Edit { path: (*path).into() }).collect();
        let Decision::Allowed(grant) = policy.decide(accesses, &[]) else { panic!() };
        let book = Arc::new(Book::default());
        let world = workspace.open(grant, Arc::clone(&book) as Arc<dyn Ledger>);
        Yard { folder, book, world }
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

/// Every file with content and mode, and every folder.
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

fn rewrite(path: &str, before: Option<&str>, after: Option<&str>) -> Rewrite {
    let bytes = |text: &str| Arc::from(text.as_bytes());
    Rewrite { path: path.into(), before: before.map(bytes), after: after.map(bytes), mode: None }
}

/// A patch with everything in it: update, add in new folders, delete, and a move.
fn patch() -> Vec<Rewrite> {
    vec![
        rewrite("a.txt", Some("a\n"), Some("A\n")),
        rewrite("new/deep/b.txt", None, Some("b\n")),
        rewrite("gone.txt", Some("gone\n"), None),
        rewrite("from.txt", Some("moved\n"), None),
        rewrite("to.txt", None, Some("moved\n")),
    ]
}

const PATHS: [&str; 5] = ["a.txt", "new/deep/b.txt", "gone.txt", "from.txt", "to.txt"];

fn arranged() -> Yard {
    let yard = Yard::new(&PATHS);
    for (path, content) in [("a.txt", "a\n"), ("gone.txt", "gone\n"), ("from.txt", "moved\n")] {
        yard.put(path, content);
    }
    yard
}

#[test]
fn a_batch_that_fails_anywhere_leaves_everything_as_it_was() {
    for way in [Way::Exchange, Way::Link] {
        let mut failures = 0;
        loop {
            let yard = arranged();
            let before = yard.files();
            LUCK.set(failures);
            let changed = yard.world.change_by(&patch(), way);
            LUCK.set(usize::MAX);
            if changed.is_ok() {
                break;
            }
            assert_eq!(yard.files(), before, "{way:?}, failing at operation {failures}");
            let recorded = yard.book.batches.lock().unwrap().len();
            let ends = yard.book.ends.lock().unwrap();
            assert_eq!(*ends, vec![End::Unmade; recorded], "whoever recorded it is told");
            failures += 1;
        }
        assert!(failures >= 15, "only {failures} points fail");
    }
}

#[test]
fn a_batch_that_succeeds_is_done_whole_and_on_record() {
    for way in [Way::Exchange, Way::Link] {
        let yard = arranged();
        yard.world.change_by(&patch(), way).unwrap();
        let files = yard.files();
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(names, ["a.txt", "new/", "new/deep/", "new/deep/b.txt", "to.txt"], "{way:?}");
        assert_eq!(files["a.txt"].0, "A\n");
        let batches = yard.book.batches.lock().unwrap();
        let [batch] = batches.as_slice() else { panic!("{batches:?}") };
        assert_eq!(batch.len(), 5);
        assert_eq!(batch[0].before.as_ref().unwrap().bytes.as_ref(), b"a\n");
        assert_eq!(batch[0].after.as_ref().unwrap().bytes.as_ref(), b"A\n");
        assert_eq!((&batch[1].before, &batch[2].after), (&None, &None));
    }
}

#[test]
fn what_cannot_be_recorded_is_not_done() {
    let yard = arranged();
    let before = yard.files();
    yard.book.full.store(true, Ordering::Relaxed);
    let error = yard.world.change(&patch()).unwrap_err();
    assert!(error.to_string().contains("the book is full"), "{error}");
    assert_eq!(yard.files(), before);
}

#[test]
fn a_file_that_is_not_what_was_expected_is_left_alone() {
    let yard = arranged();
    yard.put("a.txt", "theirs\n");
    let before = yard.files();
    assert!(matches!(yard.world.change(&patch()), Err(Error::Stale { .. })));
    let new = rewrite("gone.txt", None, Some("x"));
    assert!(matches!(yard.world.change(&[new]), Err(Error::Stale { .. })), "it exists");
    let twice = [patch().remove(2), patch().remove(2)];
    assert!(matches!(yard.world.change(&twice), Err(Error::Twice { .. })));
    assert_eq!(yard.files(), before);
    assert!(yard.book.batches.lock().unwrap().is_empty());
}

/// A ledger that is asked when everything is ready: the last moment somebody can interfere.
struct Meddler(Box<dyn Fn() + Send + Sync>);

impl Ledger for Meddler {
    fn record(&self, _batch: Vec<Pending>) -> Result<(), String> {
        (self.0)();
        Ok(())
    }

    fn close(&self, _end: End) {}
}

#[test]
fn a_change_by_somebody_else_at_the_last_moment_survives() {
    let yard = arranged();
    let root = yard.folder.path().to_owned();
    let meddle = move || {
        std::fs::write(root.join("theirs"), "theirs\n").unwrap();
        std::fs::rename(root.join("theirs"), root.join("from.txt")).unwrap();
    };
    let policy = Policy::new(Rules::parse(&serde_json::json!("allow")).unwrap());
    let accesses = PATHS.map(|path| Access::Edit { path: path.into() }).to_vec();
    let Decision::Allowed(grant) = policy.decide(accesses, &[]) else { panic!() };
    let workspace = Workspace::at(yard.folder.path()).unwrap();
    let world = workspace.open(grant, Arc::new(Meddler(Box::new(meddle))));
    let mut before = yard.files();
    assert!(matches!(world.change(&patch()), Err(Error::Stale { .. })));
    before.get_mut("from.txt").unwrap().0 = "theirs\n".into();
    assert_eq!(yard.files(), before, "everything else is as it was");
}

/// Ends the other thread also when an assertion fails in this one.
struct StopAtTheEnd<'a>(&'a AtomicBool);

impl Drop for StopAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A version of theirs may be replaced only by a change that was made from it. Whatever else
/// happens, it is there still: in place, or beside.
#[test]
fn nothing_somebody_else_writes_all_the_time_is_ever_lost() {
    let yard = Yard::new(&["a.txt"]);
    let path = yard.folder.path().join("a.txt");
    let content = |who: &str, n: usize| format!("{who} {n}\n");
    yard.put("a.txt", &content("ours", 0));
    let stop = AtomicBool::new(false);
    let (done, stale, (saved, over)) = std::thread::scope(|scope| {
        // Another editor. It knows what it saves over.
        let editor = scope.spawn(|| {
            let (mut saved, mut over) = (0, BTreeSet::new());
            let exchange = rustix::fs::RenameFlags::EXCHANGE;
            let here = rustix::fs::CWD;
            while !stop.load(Ordering::Relaxed) {
                if std::fs::read_to_string(&path).is_ok_and(|seen| seen.starts_with("ours")) {
                    let draft = path.with_extension("theirs");
                    std::fs::write(&draft, content("theirs", saved)).unwrap();
                    rustix::fs::renameat_with(here, &draft, here, &path, exchange).unwrap();
                    over.insert(std::fs::read_to_string(&draft).unwrap());
                    saved += 1;
                }
                std::thread::sleep(std::time::Duration::from_micros(30));
            }
            (saved, over)
        });
        let stopping = StopAtTheEnd(&stop);
        let (mut done, mut stale) = (BTreeSet::new(), 0);
        for n in 1..4_000 {
            let Some(before) = yard.world.load("a.txt").unwrap() else { panic!("gone") };
            let seen = String::from_utf8(before.bytes.to_vec()).unwrap();
            let after = content("ours", n);
            match yard.world.change(&[rewrite("a.txt", Some(&seen), Some(&after))]) {
                Ok(()) => drop(done.insert(seen)),
                Err(Error::Stale { .. } | Error::Kept { .. }) => stale += 1,
                Err(other) => panic!("{other}"),
            }
        }
        drop(stopping);
        (done, stale, editor.join().unwrap())
    });
    assert!(saved > 0 && stale > 0, "the race was not run: {} {stale} {saved}", done.len());
    let there: Vec<String> = yard.files().into_values().map(|(content, _)| content).collect();
    for n in 0..saved {
        let theirs = content("theirs", n);
        let known = done.contains(&theirs) || over.contains(&theirs) || there.contains(&theirs);
        assert!(known, "{theirs} is lost");
    }
}

#[test]
fn what_somebody_saves_while_a_batch_is_put_back_stays() {
    for way in [Way::Exchange, Way::Link] {
        let yard = arranged();
        let mut batch = Batch { way, ..Batch::default() };
        yard.world.stage(&patch(), &mut batch).unwrap();
        batch.commit().unwrap();
        // Over what was changed, over what was made, and where something was deleted.
        for path in ["a.txt", "to.txt", "gone.txt"] {
            yard.put(path, "theirs\n");
        }
        assert_eq!(batch.roll_back(), None);
        let files = yard.files();
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(names, ["a.txt", "from.txt", "gone.txt", "to.txt"], "{way:?}");
        for path in ["a.txt", "gone.txt", "to.txt"] {
            assert_eq!(files[path].0, "theirs\n", "{way:?} {path}");
        }
        assert_eq!(files["from.txt"].0, "moved\n");
    }
}

#[test]
fn a_file_that_vanishes_while_a_batch_is_put_back_is_there_as_it_was() {
    let yard = arranged();
    let mut batch = Batch::default();
    yard.world.stage(&patch(), &mut batch).unwrap();
    batch.commit().unwrap();
    std::fs::remove_file(yard.folder.path().join("a.txt")).unwrap();
    batch.roll_back();
    assert_eq!(yard.files()["a.txt"].0, "a\n");
}

#[test]
fn after_a_crash_only_what_is_known_elsewhere_is_cleared() {
    let yard = arranged();
    let dead = u32::MAX;
    yard.put(&format!(".windlass-{dead}-0.draft"), "never in place");
    yard.put(&format!(".windlass-{dead}-1.swap"), "a\n");
    yard.put(&format!(".windlass-{dead}-2.swap"), "saved by somebody at that very moment");
    let alive = format!(".windlass-{}-3.draft", std::process::id());
    yard.put(&alive, "under way");
    yard.world.clear_spares("a.txt", &[BlobRef::of(b"a\n")]);
    let files = yard.files();
    let left: Vec<&str> =
        files.keys().filter(|name| name.starts_with(".windlass")).map(String::as_str).collect();
    assert_eq!(
        BTreeSet::from_iter(left),
        [alive.as_str(), &format!(".windlass-{dead}-2.swap")].into()
    );
}

#[test]
fn a_file_made_read_only_is_left_alone() {
    let yard = arranged();
    let path = yard.folder.path().join("a.txt");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    assert!(matches!(yard.world.change(&patch()), Err(Error::ReadOnly { .. })));
}

#[test]
fn owner_and_mode_stay_also_for_a_file_that_is_not_ours() {
    let yard = Yard::new(&["a.txt"]);
    let path = yard.folder.path().join("a.txt");
    yard.put("a.txt", "a");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let owned = std::os::unix::fs::chown(&path, Some(12_345), Some(54_321)).is_ok();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
    yard.world.change(&[rewrite("a.txt", Some("a"), Some("b"))]).unwrap();
    let data = std::fs::metadata(&path).unwrap();
    assert_eq!(data.mode() & 0o7777, 0o4755);
    // Only root can arrange this; elsewhere the file is ours before and after.
    if owned {
        assert_eq!((data.uid(), data.gid()), (12_345, 54_321));
    }
}

#[test]
fn a_file_too_large_to_be_kept_is_not_changed() {
    let yard = Yard::new(&["a.txt"]);
    let file = std::fs::File::create(yard.folder.path().join("a.txt")).unwrap();
    file.set_len(LARGEST + 1).unwrap();
    assert!(matches!(yard.world.load("a.txt"), Err(Error::TooLarge { .. })));
    let gone = rewrite("a.txt", Some(""), None);
    assert!(matches!(yard.world.change(&[gone]), Err(Error::TooLarge { .. })));
}
