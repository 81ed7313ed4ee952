//! Tests of damage to a data folder: it is found, it costs what is damaged and no more, and a repair
//! saves the rest.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests damage the store from outside and fail by panicking"
)]

use sqlx::Connection;
use std::path::{Path, PathBuf};
use uuid::Uuid;
use windlass_protocol::{Fact, FactRecord, PromptId, SessionId, UnixMillis};
use windlass_storage::{Log, SqliteLog, StorageError, read_all, repair};

fn session(number: u128) -> SessionId {
    SessionId(Uuid::from_u128(number))
}

/// Facts of a small session; one of them is stored as a blob.
fn facts(number: u128) -> Vec<Fact> {
    let text = |text: String| Fact::ModelText { text, provider_signature: None };
    let mut facts = vec![
        Fact::session_opened(format!("/w{number}"), "0"),
        Fact::PromptSubmitted {
            prompt: PromptId(Uuid::from_u128(number)),
            text: format!("prompt {number}"),
            attachments: Vec::new(),
            delivery: Default::default(),
            settings: Default::default(),
        },
        text(format!("{number} ").repeat(40_000)),
    ];
    facts.extend(
        (0..9).map(|n| text(format!("answer {n} of session {number}: {}", "x".repeat(300)))),
    );
    facts
}

async fn write_sessions(folder: &Path, count: u128) -> SqliteLog {
    let log = SqliteLog::open(folder).await.unwrap();
    for number in 1..=count {
        let claim = log.claim(session(number)).await.unwrap();
        log.append(&claim, 0, UnixMillis(number as u64), &facts(number)).await.unwrap();
    }
    log
}

async fn execute(folder: &Path, statement: &'static str) {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(folder.join("windlass.db"));
    let mut database = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql(statement).execute(&mut database).await.unwrap();
    database.close().await.unwrap();
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

fn lost_positions(records: &[FactRecord]) -> Vec<u64> {
    let is_lost = |record: &&FactRecord| matches!(record.fact, Fact::FactsLost { .. });
    records.iter().filter(is_lost).map(|record| record.seq).collect()
}

#[tokio::test]
async fn damage_to_a_fact_costs_that_fact_and_a_repair_keeps_the_rest() {
    for (damage, lost) in [
        ("UPDATE event SET body = replace(body, 'answer 3', 'answer 9') WHERE seq = 7", vec![7]),
        ("UPDATE event SET body = CAST(x'80ff1e1f7b' AS TEXT) WHERE seq = 7", vec![7]),
        ("UPDATE event SET body = NULL WHERE seq = 7", vec![7]),
        ("UPDATE event SET at = at + 1 WHERE seq = 7", vec![7]),
        ("UPDATE event SET kind = 'model_reasoning' WHERE seq = 7", vec![7]),
        ("UPDATE event SET \"check\" = x'00' WHERE seq = 7", vec![7]),
        ("UPDATE event SET \"check\" = zeroblob(16) WHERE seq = 7", vec![7]),
        ("UPDATE event SET seq = 70 WHERE seq = 7", vec![7]),
        ("DELETE FROM event WHERE seq IN (5, 6, 7)", vec![5, 6, 7]),
        ("DELETE FROM event WHERE seq = 12", vec![12]),
        ("UPDATE event SET blob = replace(blob, 'a', 'b') || 'c' WHERE seq = 3", vec![3]),
        ("UPDATE session SET head = 4", vec![]),
        ("UPDATE session SET head = 4000", vec![]),
        ("UPDATE session SET title = 'another'", vec![]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        drop(write_sessions(folder.path(), 2).await);
        execute(folder.path(), damage).await;
        let log = SqliteLog::open(folder.path()).await.unwrap();
        for number in [1, 2] {
            let records = read_all(&log, session(number), 0).await.unwrap();
            assert_eq!(records.len(), 12, "{damage}");
            assert_eq!(lost_positions(&records), lost, "{damage}");
            let found = log.find_damage(session(number)).await.unwrap();
            assert_eq!(found.iter().map(|found| found.seq).collect::<Vec<_>>(), lost, "{damage}");
            let kept = records.iter().zip(facts(number));
            assert!(
                kept.filter(|(record, _)| !lost.contains(&record.seq)).all(|(r, f)| r.fact == f)
            );
            let tail = log.read(session(number), 8).await.unwrap();
            assert!(tail.iter().map(|record| record.seq).eq(9..=12), "{damage}");
        }
        let is_row_damaged = damage.contains("UPDATE session");
        let claimed = log.claim(session(1)).await;
        match &claimed {
            Err(StorageError::SessionDamaged { .. }) => assert!(is_row_damaged, "{damage}"),
            Ok(_) => assert!(!is_row_damaged, "{damage}"),
            Err(error) => panic!("{damage}: {error}"),
        }
        let listed = log.list(&Default::default()).await.unwrap();
        assert_eq!(listed[0].title.contains("damaged"), is_row_damaged, "{damage}: {listed:?}");
        drop(claimed);
        drop(log);

        let report = repair(folder.path()).await.unwrap();
        assert_eq!(report.sessions, 2, "{damage}");
        assert_eq!(report.lost_facts, 2 * lost.len() as u64, "{damage}");
        assert!(report.damaged_copy.join("windlass.db").exists());
        let log = SqliteLog::open(folder.path()).await.unwrap();
        assert_eq!(log.list(&Default::default()).await.unwrap()[0].title, "prompt 2", "{damage}");
        let claim = log.claim(session(1)).await.unwrap();
        assert_eq!((claim.head, claim.lost_facts), (12, 0), "{damage}");
        log.append(&claim, 12, UnixMillis(9), &facts(1)[1..2]).await.unwrap();
        let records = read_all(&log, session(1), 0).await.unwrap();
        assert_eq!(lost_positions(&records), lost, "{damage}");
        assert_eq!(log.find_damage(session(1)).await.unwrap(), [], "{damage}: recorded by now");
    }
}

#[tokio::test]
async fn a_lost_first_fact_is_replaced_by_what_the_session_row_says() {
    let folder = tempfile::tempdir().unwrap();
    let log = write_sessions(folder.path(), 1).await;
    execute(folder.path(), "DELETE FROM event WHERE seq = 1").await;
    let records = read_all(&log, session(1), 0).await.unwrap();
    let Fact::SessionOpened { workspace, .. } = &records[0].fact else { panic!("{records:?}") };
    assert_eq!(workspace, "/w1");
    assert_eq!(log.find_damage(session(1)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_database_that_was_emptied_cut_or_overwritten_is_not_opened_as_a_new_one() {
    let whole = tempfile::tempdir().unwrap();
    drop(write_sessions(whole.path(), 30).await);
    execute(whole.path(), "PRAGMA wal_checkpoint(TRUNCATE)").await;
    for kind in ["emptied", "removed", "cut", "overwritten"] {
        let folder = tempfile::tempdir().unwrap();
        copy_folder(whole.path(), folder.path());
        let database = folder.path().join("windlass.db");
        let bytes = std::fs::read(&database).unwrap();
        match kind {
            "emptied" => std::fs::write(&database, b"").unwrap(),
            "removed" => std::fs::remove_file(&database).unwrap(),
            "cut" => std::fs::write(&database, &bytes[..bytes.len() / 2]).unwrap(),
            _ => std::fs::write(&database, "not a database\n".repeat(1_000)).unwrap(),
        }
        let refused = SqliteLog::open(folder.path()).await.err().expect(kind);
        assert!(matches!(refused, StorageError::DatabaseDamaged { .. }), "{kind}: {refused}");
        assert!(refused.to_string().contains("windlass doctor --repair"), "{kind}: {refused}");
        let report = repair(folder.path()).await.unwrap();
        assert_eq!(report.sessions > 0, kind == "cut", "{kind}: {report:?}");
        SqliteLog::open(folder.path()).await.unwrap();
    }
}

#[tokio::test]
async fn commits_lost_with_a_damaged_write_ahead_log_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let log = write_sessions(folder.path(), 1).await;
    let claim = log.claim(session(1)).await.unwrap();
    for n in 12..20 {
        log.append(&claim, n, UnixMillis(n), &facts(1)[1..2]).await.unwrap();
    }
    let copy = tempfile::tempdir().unwrap();
    copy_folder(folder.path(), copy.path());
    let wal = copy.path().join("windlass.db-wal");
    let mut bytes = std::fs::read(&wal).unwrap();
    let at = bytes.len() - 10_000;
    bytes[at] ^= 1;
    std::fs::write(&wal, bytes).unwrap();
    let log = SqliteLog::open(copy.path()).await.unwrap();
    let claim = log.claim(session(1)).await.unwrap();
    assert!(claim.head < 20, "the bit was flipped outside of the log: {}", claim.head);
    assert_eq!(claim.head + claim.lost_facts, 20);
}

/// Flips one bit in each of many places, and compares what can be read afterwards. Nothing may
/// differ without a word, and a repair must save everything else.
#[tokio::test]
async fn a_flipped_bit_is_found_or_harmless() {
    const SESSIONS: u128 = 20;
    let flips: u64 = std::env::var("WINDLASS_FLIPS").map_or(40, |count| count.parse().unwrap());
    let whole = tempfile::tempdir().unwrap();
    let log = write_sessions(whole.path(), SESSIONS).await;
    let mut originals = vec![];
    for with_wal in [true, false] {
        if !with_wal {
            execute(whole.path(), "PRAGMA wal_checkpoint(TRUNCATE)").await;
        }
        let copy = tempfile::tempdir().unwrap();
        copy_folder(whole.path(), copy.path());
        let targets: Vec<PathBuf> = files(copy.path())
            .into_iter()
            .filter(|path| std::fs::metadata(path).unwrap().len() > 0)
            .map(|path| path.strip_prefix(copy.path()).unwrap().to_owned())
            .filter(|path| path != Path::new("windlass.db-shm"))
            .collect();
        originals.push((copy, targets));
    }
    drop(log);
    let (mut harmless, mut found, mut recovered) = (0, 0, 0);
    for flip in 0..flips {
        // A fixed sequence that reaches all files and all parts of them.
        let random = flip.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x1234_5678;
        let (whole, targets) = &originals[usize::from(flip % 4 > 0)];
        let target = match flip % 4 {
            0 => Path::new("windlass.db-wal"),
            1 | 2 => Path::new("windlass.db"),
            _ => &targets[(random >> 20) as usize % targets.len()],
        };
        let (at, bit) = (random >> 7, random % 8);
        let place = format!("bit {bit} of byte {at} of {}", target.display());
        let opened = copy_with_flip(whole.path(), target, at, bit);
        match compare(opened.path(), SESSIONS).await {
            Ok(0) => harmless += 1,
            Ok(_) => found += 1,
            Err(difference) => panic!("{place}: {difference}"),
        }
        let repaired = copy_with_flip(whole.path(), target, at, bit);
        repair(repaired.path()).await.unwrap_or_else(|error| panic!("{place}: {error}"));
        match compare(repaired.path(), SESSIONS).await {
            // A page holds at most 15 of these facts.
            Ok(lost) if lost <= 16 => recovered += 1,
            Ok(lost) => println!("{place}: {lost} facts lost after the repair"),
            Err(difference) => panic!("{place}, after the repair: {difference}"),
        }
    }
    println!("{flips} flips: {harmless} harmless, {found} found, {recovered} recovered");
    assert!(recovered * 200 >= flips * 195, "{recovered} of {flips} recovered");
}

/// Copies a data folder and flips a bit in one of its files.
fn copy_with_flip(whole: &Path, target: &Path, at: u64, bit: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy_folder(whole, folder.path());
    let path = folder.path().join(target);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = at as usize % bytes.len();
    bytes[at] ^= 1 << bit;
    std::fs::write(&path, bytes).unwrap();
    folder
}

/// Reads everything. Returns the number of facts that are told to be lost, or what differs without a
/// word.
async fn compare(folder: &Path, sessions: u128) -> Result<u64, String> {
    let log = match SqliteLog::open(folder).await {
        Ok(log) => log,
        Err(_) => return Ok(u64::MAX),
    };
    let mut lost = 0;
    let Ok(listed) = log.list(&Default::default()).await else { return Ok(u64::MAX) };
    let is_structure_damaged = !log.check_structure().await.unwrap().is_empty();
    for number in 1..=sessions {
        let claimed = log.claim(session(number)).await;
        let (Ok(records), Ok(claim)) = (read_all(&log, session(number), 0).await, claimed) else {
            lost += 1;
            continue;
        };
        let row = listed.iter().find(|row| row.session == session(number));
        let title = row.map_or("", |row| row.title.as_str());
        lost += claim.lost_facts + lost_positions(&records).len() as u64;
        lost += log.find_damage(session(number)).await.unwrap().len() as u64;
        if records.len() as u64 + claim.lost_facts < 12 && !is_structure_damaged {
            return Err(format!("session {number} has {} facts", records.len()));
        }
        for (record, fact) in records.iter().zip(facts(number)) {
            let is_restored = record.seq == 1 && matches!(record.fact, Fact::SessionOpened { .. });
            if record.fact != fact && !matches!(record.fact, Fact::FactsLost { .. }) && !is_restored
            {
                return Err(format!("{record:?}"));
            }
        }
        if title != format!("prompt {number}") && !title.contains("damaged") && lost == 0 {
            return Err(format!("session {number} has the title {title:?}"));
        }
    }
    Ok(lost)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn deleted_text_is_in_no_file_and_its_space_is_returned() {
    let folder = tempfile::tempdir().unwrap();
    let log = write_sessions(folder.path(), 40).await;
    log.put_copy(b"copied secret of session 7".to_vec(), None).await.unwrap();
    for path in files(&folder.path().join("blobs")) {
        let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3_600);
        std::fs::File::options().write(true).open(path).unwrap().set_modified(hour_ago).unwrap();
    }
    let other = SqliteLog::open(folder.path()).await.unwrap();
    let in_use = other.claim(session(40)).await.unwrap();
    let before = log.stored_bytes().await.unwrap();
    let all: Vec<SessionId> = (1..=40).map(session).collect();
    assert_eq!(log.delete_sessions(&all).await.unwrap(), 39, "one is in use");
    assert!(log.stored_bytes().await.unwrap() < before / 10);
    let found: Vec<PathBuf> = files(folder.path())
        .into_iter()
        .filter(|path| {
            let bytes = std::fs::read(path).unwrap();
            bytes.windows(16).any(|part| part == b"of session 7: xx")
        })
        .collect();
    assert_eq!(found, Vec::<PathBuf>::new());
    assert_eq!(read_all(&other, session(40), 0).await.unwrap().len(), 12);
    drop(in_use);
}

#[tokio::test]
async fn a_backup_can_be_opened_like_the_original() {
    let folder = tempfile::tempdir().unwrap();
    let log = write_sessions(folder.path(), 3).await;
    let copy = log.put_copy(b"before".to_vec(), None).await.unwrap();
    let target = folder.path().join("backup");
    log.backup(&target).await.unwrap();
    let backup = SqliteLog::open(&target).await.unwrap();
    for number in 1..=3 {
        let records = read_all(&backup, session(number), 0).await.unwrap();
        assert!(records.into_iter().map(|record| record.fact).eq(facts(number)));
    }
    assert_eq!(backup.get_copy(&copy).await.unwrap(), b"before");
}

#[cfg(unix)]
#[tokio::test]
async fn a_fifo_in_the_place_of_a_lock_does_not_block() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["open.lock", "write-0.lock"] {
        let made = std::process::Command::new("mkfifo").arg(folder.path().join(name)).status();
        assert!(made.unwrap().success());
    }
    let written = write_sessions(folder.path(), 1);
    tokio::time::timeout(std::time::Duration::from_secs(30), written).await.unwrap();
}

#[tokio::test]
async fn a_path_that_is_too_long_for_sqlite_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let long = folder.path().join("x".repeat(200)).join("y".repeat(200)).join("z".repeat(200));
    let error = SqliteLog::open(&long).await.err().unwrap().to_string();
    assert!(error.contains("its path has") && error.contains("limit is 500"), "{error}");
}

/// Runs a closure in a child with the data folder mounted read-only.
#[cfg(target_os = "linux")]
#[test]
fn a_read_only_data_folder_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for is_closed in [true, false] {
        let log = runtime.block_on(write_sessions(&data, 2));
        let open = if is_closed { None } else { Some(log) };
        let me = std::env::current_exe().unwrap();
        let script = "mount --bind -o ro \"$STORE\" \"$STORE\" && exec \"$0\" \"$@\"";
        let output = std::process::Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "bash", "-c", script])
            .arg(me)
            .args(["--exact", "child_reads_read_only", "--nocapture", "--include-ignored"])
            .env("STORE", &data)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        drop(open);
        std::fs::remove_dir_all(&data).unwrap();
    }
}

#[test]
#[ignore = "run as a child of a_read_only_data_folder_can_be_read"]
fn child_reads_read_only() {
    let Some(folder) = std::env::var_os("STORE").map(PathBuf::from) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let log = SqliteLog::open(&folder).await.unwrap();
        assert_eq!(log.list(&Default::default()).await.unwrap().len(), 2);
        assert_eq!(read_all(&log, session(2), 0).await.unwrap().len(), 12);
        let error = log.claim(session(1)).await.err().unwrap().to_string();
        assert!(error.contains("Read-only"), "{error}");
    });
}
