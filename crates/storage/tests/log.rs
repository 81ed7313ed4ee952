//! What every backend must do, tried on SQLite. Where a process matters, the test runs itself
//! again as a child.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test looks at the store from outside, and fails by panicking"
)]

use sqlx::Connection;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};
use uuid::Uuid;
use windlass_protocol::{
    Attachment, BlobRef, CallId, Fact, Millis, Outcome, Output, PromptId, SessionId, TurnEnd,
};
use windlass_storage::{Error, Log, Sqlite, read_all};

fn session(number: u128) -> SessionId {
    SessionId(Uuid::from_u128(number))
}

fn said(text: impl Into<String>) -> Fact {
    Fact::Said { text: text.into(), seal: None }
}

fn prompted(text: &str) -> Fact {
    Fact::Prompted {
        prompt: PromptId(Uuid::from_u128(7)),
        text: text.into(),
        attachments: Vec::new(),
        when: Default::default(),
    }
}

async fn store(folder: &Path) -> Sqlite {
    Sqlite::open(folder).await.unwrap()
}

#[tokio::test]
async fn facts_come_back_in_order_without_gaps_across_pages() {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await;
    let claim = log.claim(session(1)).await.unwrap();
    let facts: Vec<Fact> = (0..2_345).map(|n| said(n.to_string())).collect();
    assert_eq!(log.append(&claim, 0, Millis(5), &facts).await.unwrap(), 2_345);
    let records = read_all(&log, session(1), 0).await.unwrap();
    assert!(records.iter().map(|r| r.seq).eq(1..=2_345));
    assert!(records.iter().map(|r| &r.fact).eq(facts.iter()));
    let tail = read_all(&log, session(1), 2_340).await.unwrap();
    assert!(tail.iter().map(|r| r.seq).eq(2_341..=2_345));
}

#[tokio::test]
async fn an_append_behind_the_wrong_position_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await;
    let claim = log.claim(session(1)).await.unwrap();
    log.append(&claim, 0, Millis(1), &[said("a"), said("b")]).await.unwrap();
    for wrong in [0, 1, 3] {
        let refused = log.append(&claim, wrong, Millis(2), &[said("c")]).await;
        assert!(matches!(refused, Err(Error::Fenced { .. })), "{refused:?}");
    }
    assert_eq!(read_all(&log, session(1), 0).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_session_that_is_open_cannot_be_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (store(folder.path()).await, store(folder.path()).await);
    let held = one.claim(session(1)).await.unwrap();
    assert!(matches!(two.claim(session(1)).await, Err(Error::Busy { .. })));
    assert!(matches!(two.delete(session(1)).await, Err(Error::Busy { .. })));
    two.claim(session(2)).await.unwrap();
    drop(held);
    two.claim(session(1)).await.unwrap();
}

#[tokio::test]
async fn a_second_writer_fences_the_first_even_when_the_lock_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (store(folder.path()).await, store(folder.path()).await);
    let old = one.claim(session(1)).await.unwrap();
    one.append(&old, 0, Millis(1), &[said("old")]).await.unwrap();
    // As when the folder is on a file system that forgets locks.
    std::fs::remove_file(folder.path().join("locks").join(session(1).to_string())).unwrap();
    let new = two.claim(session(1)).await.unwrap();
    assert_eq!((new.epoch, new.head), (old.epoch + 1, 1));

    let refused = one.append(&old, 1, Millis(2), &[said("late")]).await;
    assert!(matches!(refused, Err(Error::Fenced { .. })), "{refused:?}");
    two.append(&new, 1, Millis(2), &[said("new")]).await.unwrap();
    let facts: Vec<Fact> =
        read_all(&two, session(1), 0).await.unwrap().into_iter().map(|r| r.fact).collect();
    assert_eq!(facts, [said("old"), said("new")]);
}

#[tokio::test]
async fn a_large_fact_is_kept_outside_the_rows_and_checked_when_read() {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await;
    let claim = log.claim(session(1)).await.unwrap();
    let large = said("x".repeat(3_000_000));
    log.append(&claim, 0, Millis(1), &[large.clone(), said("small")]).await.unwrap();
    assert_eq!(read_all(&log, session(1), 0).await.unwrap()[0].fact, large);
    let wal = std::fs::metadata(folder.path().join("windlass.db-wal")).unwrap().len();
    assert!(wal < 500_000, "the row holds the text: {wal} bytes");

    for blob in files(&folder.path().join("blobs")) {
        std::fs::write(blob, "damaged").unwrap();
    }
    assert!(matches!(read_all(&log, session(1), 0).await, Err(Error::BlobLost { .. })));
}

#[tokio::test]
async fn a_damaged_blob_is_mended_when_it_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await;
    let blob = log.put_blob(b"whole".to_vec()).await.unwrap();
    for path in files(&folder.path().join("blobs")) {
        std::fs::write(path, "").unwrap();
    }
    assert!(matches!(log.get_blob(&blob).await, Err(Error::BlobLost { .. })));
    assert_eq!(log.put_blob(b"whole".to_vec()).await.unwrap(), blob);
    assert_eq!(log.get_blob(&blob).await.unwrap(), b"whole");
}

#[tokio::test]
async fn sessions_are_listed_newest_first_with_how_they_ended() {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await;
    for (number, at) in [(1, 30), (2, 10), (3, 20)] {
        let claim = log.claim(session(number)).await.unwrap();
        let facts = [
            Fact::opened(format!("/w{number}"), "0"),
            prompted(&format!("prompt {number}\nmore")),
            Fact::TurnStarted { turn: 1, prompt: None },
        ];
        log.append(&claim, 0, Millis(at), &facts).await.unwrap();
        let end = Fact::TurnEnded { turn: 1, end: TurnEnd::Done };
        log.append(&claim, 3, Millis(at), &[end]).await.unwrap();
    }
    log.claim(session(4)).await.unwrap();
    let list = log.list().await.unwrap();
    let titles: Vec<&str> = list.iter().map(|s| s.title.as_str()).collect();
    assert_eq!(
        titles,
        ["prompt 1", "prompt 3", "prompt 2"],
        "a session without facts is not there"
    );
    assert_eq!(list[0].workspace, "/w1");
    assert_eq!(list[0].end, Some(TurnEnd::Done));
}

#[tokio::test]
async fn deleting_removes_what_only_that_session_needed() {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await;
    let shared = log.put_blob(b"shared".to_vec()).await.unwrap();
    let own = log.put_blob(b"own".to_vec()).await.unwrap();
    let young = log.put_blob(b"young".to_vec()).await.unwrap();
    let settled = |blob: &BlobRef| Fact::Settled {
        call: CallId(Uuid::nil()),
        outcome: Outcome::Completed {
            output: Output { full: Some(blob.clone()), ..Output::default() },
        },
        seen: Vec::new(),
    };
    let doomed = log.claim(session(1)).await.unwrap();
    log.append(&doomed, 0, Millis(1), &[settled(&shared), settled(&own)]).await.unwrap();
    drop(doomed);
    let kept = log.claim(session(2)).await.unwrap();
    let attached = log.put_blob(b"attached".to_vec()).await.unwrap();
    let shown = log.put_blob(b"shown".to_vec()).await.unwrap();
    let file = |blob: &BlobRef| Attachment {
        name: "a.png".into(),
        mime: "image/png".into(),
        blob: blob.clone(),
    };
    let prompted = Fact::Prompted {
        prompt: PromptId(Uuid::nil()),
        text: String::new(),
        attachments: vec![file(&attached)],
        when: Default::default(),
    };
    let output = Output { attachments: vec![file(&shown)], ..Output::default() };
    let outcome = Outcome::Completed { output };
    let looked = Fact::Settled { call: CallId(Uuid::nil()), outcome, seen: Vec::new() };
    log.append(&kept, 0, Millis(1), &[settled(&shared), prompted, looked]).await.unwrap();

    let yesterday = SystemTime::now() - Duration::from_secs(86_400);
    for path in files(&folder.path().join("blobs")) {
        if !path.ends_with(&young.as_str()[2..]) {
            std::fs::File::options()
                .write(true)
                .open(path)
                .unwrap()
                .set_modified(yesterday)
                .unwrap();
        }
    }
    log.delete(session(1)).await.unwrap();
    assert_eq!(log.list().await.unwrap().len(), 1);
    assert_eq!(log.get_blob(&shared).await.unwrap(), b"shared");
    assert_eq!(log.get_blob(&attached).await.unwrap(), b"attached");
    assert_eq!(log.get_blob(&shown).await.unwrap(), b"shown");
    assert_eq!(log.get_blob(&young).await.unwrap(), b"young");
    assert!(matches!(log.get_blob(&own).await, Err(Error::BlobLost { .. })));
    assert!(matches!(log.delete(session(1)).await, Err(Error::NoSession { .. })));
}

#[tokio::test]
async fn sessions_that_never_began_go_with_the_next_that_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await;
    let claim = log.claim(session(1)).await.unwrap();
    log.append(&claim, 0, Millis(1), &[said("x")]).await.unwrap();
    drop(claim);
    drop(log.claim(session(2)).await.unwrap());
    let about_to_begin = log.claim(session(3)).await.unwrap();
    log.delete(session(1)).await.unwrap();
    let left = files(&folder.path().join("locks"));
    assert_eq!(left, [folder.path().join("locks").join(session(3).to_string())]);
    log.append(&about_to_begin, 0, Millis(1), &[said("x")]).await.unwrap();
    assert_eq!(log.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_database_from_the_future_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    drop(store(folder.path()).await);
    let options = sqlx::sqlite::SqliteConnectOptions::new();
    let options = options.filename(folder.path().join("windlass.db"));
    let mut database = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql("PRAGMA user_version = 99").execute(&mut database).await.unwrap();
    let refused = Sqlite::open(folder.path()).await;
    assert!(matches!(refused, Err(Error::TooNew { found: 99, .. })));
}

#[tokio::test]
async fn the_linked_sqlite_is_free_of_the_wal_race() {
    let folder = tempfile::tempdir().unwrap();
    let version = store(folder.path()).await.version().await.unwrap();
    let parts: Vec<u32> = version.split('.').map(|part| part.parse().unwrap()).collect();
    assert!(parts >= vec![3, 51, 3], "{version}");
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_look_inside() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let log = store(&data).await;
    log.put_blob(b"secret".to_vec()).await.unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o077;
    assert_eq!(mode(&data), 0);
    for blob in files(&data.join("blobs")) {
        assert_eq!(mode(&blob), 0, "{}", blob.display());
    }
}

// --- Several processes -------------------------------------------------------------------------

/// Runs one of this file's tests as a process of its own, in a folder.
fn child(test: &str, folder: &Path, wrapper: &[&str]) -> Command {
    let me = std::env::current_exe().unwrap();
    let mut command = match wrapper {
        [] => Command::new(me),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(me);
            command
        }
    };
    command.args(["--exact", test, "--nocapture", "--include-ignored"]);
    command.env("STORE", folder).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn store_of_child() -> Option<std::path::PathBuf> {
    std::env::var_os("STORE").map(Into::into)
}

const WRITERS: u128 = 4;
const APPENDS: u64 = 60;

#[test]
fn several_processes_share_one_database_without_lock_errors() {
    let folder = tempfile::tempdir().unwrap();
    let children: Vec<_> = (0..WRITERS)
        .map(|number| {
            let mut command = child("child_appends", folder.path(), &[]);
            command.env("NUMBER", number.to_string()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let log = store(folder.path()).await;
        let lengths: Vec<u64> = log.list().await.unwrap().iter().map(|s| s.length).collect();
        assert_eq!(lengths, [APPENDS; WRITERS as usize]);
    });
}

#[test]
#[ignore = "run as a child of several_processes_share_one_database_without_lock_errors"]
fn child_appends() {
    let Some(folder) = store_of_child() else { return };
    let number: u128 = std::env::var("NUMBER").unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let log = store(&folder).await;
        let claim = log.claim(session(number + 1)).await.unwrap();
        for n in 0..APPENDS {
            let fact = if n % 10 == 0 { prompted("p") } else { said("s") };
            log.append(&claim, n, Millis(n), &[fact]).await.unwrap();
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn the_disk_is_flushed_at_promises_and_nowhere_else() {
    let flushes = |plain: u64, promises: u64| {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace");
        let strace = ["strace", "-f", "-y", "-e", "trace=fsync,fdatasync", "-o"];
        let wrapper = [&strace[..], &[trace.to_str().unwrap()]].concat();
        let mut command = child("child_flushes", &folder.path().join("data"), &wrapper);
        command.env("PLAIN", plain.to_string()).env("PROMISES", promises.to_string());
        let output = command.output().expect("strace is needed: apt-get install strace");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = std::fs::read_to_string(trace).unwrap();
        lines.lines().filter(|line| line.contains("windlass.db-wal")).count() as u64
    };
    let opening = flushes(0, 0);
    assert_eq!(flushes(50, 0) - opening, 0, "a plain append flushes");
    assert_eq!(flushes(50, 9) - opening, 9, "a promise is not flushed exactly once");
}

#[test]
#[ignore = "run as a child of the_disk_is_flushed_at_promises_and_nowhere_else"]
fn child_flushes() {
    let Some(folder) = store_of_child() else { return };
    let count = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let log = store(&folder).await;
        let claim = log.claim(session(1)).await.unwrap();
        let mut head = 0;
        for _ in 0..count("PLAIN") {
            head = log.append(&claim, head, Millis(1), &[said("x")]).await.unwrap();
        }
        for _ in 0..count("PROMISES") {
            head = log.append(&claim, head, Millis(1), &[prompted("x")]).await.unwrap();
        }
        // Closing a database may flush it; what counts is what happens while it is open.
        std::process::exit(0);
    });
}

#[cfg(unix)]
#[test]
fn a_full_disk_refuses_the_append_and_keeps_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    // A file-size limit is what an unprivileged process can set that makes writes fail for real.
    let script = "trap '' XFSZ; ulimit -S -f 400; exec \"$0\" \"$@\"";
    let output = child("child_fills_the_disk", folder.path(), &["bash", "-c", script]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let log = store(folder.path()).await;
        let written: u64 =
            std::fs::read_to_string(folder.path().join("written")).unwrap().parse().unwrap();
        let records = read_all(&log, session(1), 0).await.unwrap();
        assert_eq!(records.len() as u64, written, "acknowledged facts and stored facts differ");
        let claim = log.claim(session(1)).await.unwrap();
        log.append(&claim, written, Millis(1), &[said("for another process too")]).await.unwrap();
    });
}

#[test]
#[ignore = "run as a child of a_full_disk_refuses_the_append_and_keeps_what_was_there"]
fn child_fills_the_disk() {
    let Some(folder) = store_of_child() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let log = store(&folder).await;
        let claim = log.claim(session(1)).await.unwrap();
        let mut head = 0;
        let fact = said("x".repeat(20_000));
        for _ in 0..200 {
            match log.append(&claim, head, Millis(1), std::slice::from_ref(&fact)).await {
                Ok(next) => head = next,
                Err(_) => {
                    assert!(read_all(&log, session(1), 0).await.unwrap().len() as u64 == head);
                    std::fs::write(folder.join("written"), head.to_string()).unwrap();
                    break;
                }
            }
        }
        assert!(head < 200, "the limit was never reached");
        // Space is back, for this very process.
        let me = std::process::id().to_string();
        let lifted = Command::new("prlimit").args(["--fsize=unlimited", "--pid", &me]).status();
        assert!(lifted.unwrap().success());
        head = log.append(&claim, head, Millis(1), &[said("space is back")]).await.unwrap();
        std::fs::write(folder.join("written"), head.to_string()).unwrap();
    });
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn a_damaged_row_is_named_and_hides_nothing_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await;
    let claim = log.claim(session(1)).await.unwrap();
    let odd = "a\u{1e}b\u{1f}c\n\u{0}\u{2028}";
    let facts = [said(odd), said("two"), said("three"), said("four")];
    log.append(&claim, 0, Millis(5), &facts).await.unwrap();
    let read = log.read(session(1), 0).await.unwrap();
    assert!(read.iter().map(|r| &r.fact).eq(facts.iter()), "what parts facts may stand in them");
    let options =
        sqlx::sqlite::SqliteConnectOptions::new().filename(folder.path().join("windlass.db"));
    let mut raw = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    for (damage, reason) in [
        ("UPDATE event SET body = '{\"kind\":' || char(30) WHERE seq = 3", "EOF"),
        ("UPDATE event SET body = '' WHERE seq = 3", "EOF"),
        ("UPDATE event SET body = NULL WHERE seq = 3", "missing"),
        ("UPDATE event SET format = 2 WHERE seq = 3", "newer"),
    ] {
        sqlx::raw_sql(damage).execute(&mut raw).await.unwrap();
        match log.read(session(1), 0).await {
            Err(Error::Unreadable { seq: 3, reason: told, .. }) => {
                assert!(told.contains(reason), "{damage}: {told}");
            }
            other => panic!("{damage}: {other:?}"),
        }
        assert!(log.read(session(1), 3).await.is_ok(), "what comes after can still be read");
    }
}
