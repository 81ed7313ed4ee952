//! Tests of the log on SQLite, besides the contract in `backends.rs`. Tests that need another process
//! start this test binary again as a child.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests inspect the store from outside and fail by panicking"
)]

use sqlx::Connection;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use uuid::Uuid;
use windlass_protocol::{Fact, PromptId, SessionId, UnixMillis};
use windlass_storage::{Log, SqliteLog, StorageError, read_all};

fn session(number: u128) -> SessionId {
    SessionId(Uuid::from_u128(number))
}

fn model_text(text: impl Into<String>) -> Fact {
    Fact::ModelText { text: text.into(), provider_signature: None }
}

fn prompt_submitted(text: &str) -> Fact {
    Fact::PromptSubmitted {
        prompt: PromptId(Uuid::from_u128(7)),
        text: text.into(),
        attachments: Vec::new(),
        delivery: Default::default(),
        settings: Default::default(),
    }
}

async fn open_log(folder: &Path) -> SqliteLog {
    SqliteLog::open(folder).await.unwrap()
}

#[tokio::test]
async fn a_session_that_is_open_cannot_be_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (open_log(folder.path()).await, open_log(folder.path()).await);
    let open_claim = one.claim(session(1)).await.unwrap();
    assert!(matches!(two.claim(session(1)).await, Err(StorageError::Busy { .. })));
    assert!(matches!(two.delete(session(1)).await, Err(StorageError::Busy { .. })));
    two.claim(session(2)).await.unwrap();
    drop(open_claim);
    two.claim(session(1)).await.unwrap();
}

#[tokio::test]
async fn a_second_writer_fences_the_first_even_when_the_lock_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (open_log(folder.path()).await, open_log(folder.path()).await);
    let old = one.claim(session(1)).await.unwrap();
    one.append(&old, 0, UnixMillis(1), &[model_text("old")]).await.unwrap();
    // Simulates a file system that loses locks.
    std::fs::remove_file(folder.path().join("locks").join(session(1).to_string())).unwrap();
    let new = two.claim(session(1)).await.unwrap();
    assert!(new.epoch > old.epoch && new.head == 1, "{} {}", new.epoch, old.epoch);

    let refused = one.append(&old, 1, UnixMillis(2), &[model_text("late")]).await;
    assert!(matches!(refused, Err(StorageError::Fenced { .. })), "{refused:?}");
    two.append(&new, 1, UnixMillis(2), &[model_text("new")]).await.unwrap();
    let facts: Vec<Fact> =
        read_all(&two, session(1), 0).await.unwrap().into_iter().map(|r| r.fact).collect();
    assert_eq!(facts, [model_text("old"), model_text("new")]);
}

#[tokio::test]
async fn a_large_fact_is_not_stored_in_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).await;
    let claim = log.claim(session(1)).await.unwrap();
    let large = model_text("x".repeat(3_000_000));
    log.append(&claim, 0, UnixMillis(1), &[model_text("small"), large]).await.unwrap();
    let wal = std::fs::metadata(folder.path().join("windlass.db-wal")).unwrap().len();
    assert!(wal < 500_000, "the text is stored in the row: the WAL has {wal} bytes");
}

#[tokio::test]
async fn deleting_a_session_also_removes_sessions_without_facts() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).await;
    let claim = log.claim(session(1)).await.unwrap();
    log.append(&claim, 0, UnixMillis(1), &[model_text("x")]).await.unwrap();
    drop(claim);
    drop(log.claim(session(2)).await.unwrap());
    let open_claim = log.claim(session(3)).await.unwrap();
    log.delete(session(1)).await.unwrap();
    let left = files(&folder.path().join("locks"));
    assert_eq!(left, [folder.path().join("locks").join(session(3).to_string())]);
    log.append(&open_claim, 0, UnixMillis(1), &[model_text("x")]).await.unwrap();
    assert_eq!(log.list(&Default::default()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    drop(open_log(folder.path()).await);
    let options = sqlx::sqlite::SqliteConnectOptions::new();
    let options = options.filename(folder.path().join("windlass.db"));
    let mut database = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql("PRAGMA user_version = 99").execute(&mut database).await.unwrap();
    let refused = SqliteLog::open(folder.path()).await;
    assert!(matches!(refused, Err(StorageError::TooNew { found: 99, .. })));
}

#[tokio::test]
async fn the_linked_sqlite_has_the_fix_for_the_wal_race() {
    let folder = tempfile::tempdir().unwrap();
    let version = open_log(folder.path()).await.sqlite_version().await.unwrap();
    let parts: Vec<u32> = version.split('.').map(|part| part.parse().unwrap()).collect();
    assert!(parts >= vec![3, 51, 3], "{version}");
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_store() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let log = open_log(&data).await;
    log.put_blob(b"secret".to_vec()).await.unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o077;
    assert_eq!(mode(&data), 0);
    // Another program has created it, or its user has opened it.
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).unwrap();
    drop(open_log(&data).await);
    assert_eq!(mode(&data), 0);
    for blob in files(&data.join("blobs")) {
        assert_eq!(mode(&blob), 0, "{}", blob.display());
    }
}

// --- Several processes -------------------------------------------------------------------------

/// Returns a command that runs one test of this file in its own process, with the store in
/// `folder`.
fn child_command(test: &str, folder: &Path, wrapper: &[&str]) -> Command {
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

fn child_store_folder() -> Option<std::path::PathBuf> {
    std::env::var_os("STORE").map(Into::into)
}

const WRITERS: u128 = 4;
const APPENDS: u64 = 60;

#[test]
fn several_processes_share_one_database_without_lock_errors() {
    let folder = tempfile::tempdir().unwrap();
    let children: Vec<_> = (0..WRITERS)
        .map(|number| {
            let mut command = child_command("child_appends", folder.path(), &[]);
            command.env("NUMBER", number.to_string()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let log = open_log(folder.path()).await;
        let lengths: Vec<u64> =
            log.list(&Default::default()).await.unwrap().iter().map(|s| s.fact_count).collect();
        assert_eq!(lengths, [APPENDS; WRITERS as usize]);
    });
}

#[test]
#[ignore = "run as a child of several_processes_share_one_database_without_lock_errors"]
fn child_appends() {
    let Some(folder) = child_store_folder() else { return };
    let number: u128 = std::env::var("NUMBER").unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let log = open_log(&folder).await;
        let claim = log.claim(session(number + 1)).await.unwrap();
        for n in 0..APPENDS {
            let fact = if n % 10 == 0 { prompt_submitted("p") } else { model_text("s") };
            log.append(&claim, n, UnixMillis(n), &[fact]).await.unwrap();
        }
    });
}

/// Many processes write at once. None fails, and none waits long, because they queue.
#[test]
fn writers_of_many_processes_queue_instead_of_starving() {
    let writers: u128 = match std::env::var("WINDLASS_WRITERS") {
        Ok(count) => count.parse().unwrap(),
        Err(_) => 40,
    };
    let folder = tempfile::tempdir().unwrap();
    let children: Vec<_> = (0..writers)
        .map(|number| {
            let mut command = child_command("child_measures_appends", folder.path(), &[]);
            command.env("NUMBER", number.to_string()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut waits: Vec<u64> = Vec::new();
    for number in 0..writers {
        let text = std::fs::read_to_string(folder.path().join(format!("waits{number}"))).unwrap();
        waits.extend(text.lines().map(|line| line.parse::<u64>().unwrap()));
    }
    waits.sort_unstable();
    let at = |percent: usize| waits[waits.len() * percent / 100];
    println!(
        "{writers} writers: {} / {} / {} ms (p50, p99, max)",
        at(50),
        at(99),
        waits.last().unwrap()
    );
    assert_eq!(waits.len() as u64, writers as u64 * 20);
    let limit = windlass_testkit::time_limits::limit(Duration::from_secs(2));
    assert!(u128::from(at(99)) <= limit.as_millis(), "{} ms", at(99));
}

#[test]
#[ignore = "run as a child of writers_of_many_processes_queue_instead_of_starving"]
fn child_measures_appends() {
    let Some(folder) = child_store_folder() else { return };
    let number: u128 = std::env::var("NUMBER").unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let log = open_log(&folder).await;
        let claim = log.claim(session(number + 1)).await.unwrap();
        let mut waits = String::new();
        for n in 0..20 {
            let start = std::time::Instant::now();
            let fact = if n % 2 == 0 { prompt_submitted("p") } else { model_text("s") };
            log.append(&claim, n, UnixMillis(n), &[fact]).await.unwrap();
            waits.push_str(&format!("{}\n", start.elapsed().as_millis()));
        }
        std::fs::write(folder.join(format!("waits{number}")), waits).unwrap();
    });
}

#[cfg(target_os = "linux")]
#[test]
fn the_disk_is_synced_only_for_facts_that_need_it() {
    let count_syncs = |plain: u64, synced: u64| {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace");
        let strace = ["strace", "-f", "-y", "-e", "trace=fsync,fdatasync", "-o"];
        let wrapper = [&strace[..], &[trace.to_str().unwrap()]].concat();
        let mut command = child_command("child_syncs", &folder.path().join("data"), &wrapper);
        command.env("PLAIN", plain.to_string()).env("SYNCED", synced.to_string());
        let output = command.output().expect("strace is needed: apt-get install strace");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = std::fs::read_to_string(trace).unwrap();
        lines.lines().filter(|line| line.contains("windlass.db-wal")).count() as u64
    };
    let opening = count_syncs(0, 0);
    assert_eq!(count_syncs(50, 0) - opening, 0, "an append of a plain fact syncs the disk");
    assert_eq!(
        count_syncs(50, 9) - opening,
        9,
        "a fact that needs a disk sync is not synced exactly once"
    );
}

#[test]
#[ignore = "run as a child of the_disk_is_synced_only_for_facts_that_need_it"]
fn child_syncs() {
    let Some(folder) = child_store_folder() else { return };
    let count = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let log = open_log(&folder).await;
        let claim = log.claim(session(1)).await.unwrap();
        let mut head = 0;
        for _ in 0..count("PLAIN") {
            head = log.append(&claim, head, UnixMillis(1), &[model_text("x")]).await.unwrap();
        }
        for _ in 0..count("SYNCED") {
            head = log.append(&claim, head, UnixMillis(1), &[prompt_submitted("x")]).await.unwrap();
        }
        // Exits without closing the database, because closing may sync it too.
        std::process::exit(0);
    });
}

#[cfg(unix)]
#[test]
fn a_full_disk_fails_the_append_and_loses_no_stored_fact() {
    let folder = tempfile::tempdir().unwrap();
    // A file-size limit makes writes fail for real and can be set without privileges.
    let script = "trap '' XFSZ; ulimit -S -f 400; exec \"$0\" \"$@\"";
    let output =
        child_command("child_fills_the_disk", folder.path(), &["bash", "-c", script]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let log = open_log(folder.path()).await;
        let written: u64 =
            std::fs::read_to_string(folder.path().join("written")).unwrap().parse().unwrap();
        let records = read_all(&log, session(1), 0).await.unwrap();
        assert_eq!(records.len() as u64, written, "acknowledged facts and stored facts differ");
        let claim = log.claim(session(1)).await.unwrap();
        log.append(&claim, written, UnixMillis(1), &[model_text("from another process")])
            .await
            .unwrap();
    });
}

#[test]
#[ignore = "run as a child of a_full_disk_fails_the_append_and_loses_no_stored_fact"]
fn child_fills_the_disk() {
    let Some(folder) = child_store_folder() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let log = open_log(&folder).await;
        let claim = log.claim(session(1)).await.unwrap();
        let mut head = 0;
        let fact = model_text("x".repeat(20_000));
        for _ in 0..200 {
            match log.append(&claim, head, UnixMillis(1), std::slice::from_ref(&fact)).await {
                Ok(next) => head = next,
                Err(_) => {
                    assert!(read_all(&log, session(1), 0).await.unwrap().len() as u64 == head);
                    std::fs::write(folder.join("written"), head.to_string()).unwrap();
                    break;
                }
            }
        }
        assert!(head < 200, "the file-size limit was never reached");
        // Removes the limit, so that the same process has space again.
        let me = std::process::id().to_string();
        let limit_removed =
            Command::new("prlimit").args(["--fsize=unlimited", "--pid", &me]).status();
        assert!(limit_removed.unwrap().success());
        head =
            log.append(&claim, head, UnixMillis(1), &[model_text("space is back")]).await.unwrap();
        std::fs::write(folder.join("written"), head.to_string()).unwrap();
    });
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
