//! Tests of the file copies that undo needs. Tests that need another process start this test binary
//! again as a child.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests inspect the store from outside, print measurements and fail by panicking"
)]

use sqlx::{Connection, SqliteConnection};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use uuid::Uuid;
use windlass_protocol::{BlobRef, Fact, SessionId, UnixMillis};
use windlass_storage::{Log, SqliteLog, StorageError};

async fn open_log(folder: &Path) -> SqliteLog {
    SqliteLog::open(folder).await.unwrap()
}

/// Opens the database of copies directly, without `SqliteLog`.
async fn open_database(folder: &Path) -> SqliteConnection {
    let options = sqlx::sqlite::SqliteConnectOptions::new();
    let options = options.filename(folder.join("copies.db")).busy_timeout(Duration::from_secs(30));
    SqliteConnection::connect_with(&options).await.unwrap()
}

async fn query_number(folder: &Path, query: &'static str) -> i64 {
    sqlx::query_scalar(query).fetch_one(&mut open_database(folder).await).await.unwrap()
}

async fn execute(folder: &Path, statement: &'static str) -> u64 {
    let mut database = open_database(folder).await;
    sqlx::query(statement).execute(&mut database).await.unwrap().rows_affected()
}

/// Returns the size of the database and its write-ahead log in bytes.
fn size_on_disk(folder: &Path) -> u64 {
    ["copies.db", "copies.db-wal"]
        .map(|name| std::fs::metadata(folder.join(name)).map_or(0, |data| data.len()))
        .iter()
        .sum()
}

/// A pseudorandom generator (xorshift): the same incompressible bytes in every run.
struct RandomByteGenerator(u64);

impl RandomByteGenerator {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| (self.next() >> 24) as u8).collect()
    }

    /// Returns a line that resembles code.
    fn line(&mut self) -> String {
        const WORDS: [&str; 12] = [
            "let",
            "state",
            "=",
            "self.next(",
            ")",
            "match",
            "value",
            "=>",
            "return",
            "index",
            "if",
            "Some(",
        ];
        let words: Vec<&str> = (0..2 + self.below(8)).map(|_| WORDS[self.below(12)]).collect();
        format!("    {} {:x};\n", words.join(" "), self.next() & 0xffff)
    }

    fn text(&mut self, length: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let mut total = 0;
        while total < length {
            lines.push(self.line());
            total += lines.last().unwrap().len();
        }
        lines
    }
}

fn to_bytes(lines: &[String]) -> Vec<u8> {
    lines.concat().into_bytes()
}

#[tokio::test]
async fn copies_are_read_back_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).await;
    let mut generator = RandomByteGenerator(1);
    let text = to_bytes(&generator.text(1 << 20));
    let samples = [
        Vec::new(),
        vec![0],
        b"\xff".to_vec(),
        b"tiny\r\n".to_vec(),
        vec![b'x'; 3 << 20],
        generator.bytes(1 << 20),
        text,
    ];
    for with_base in [false, true] {
        let mut last = None;
        for sample in &samples {
            let sample = if with_base { [sample, &b"+"[..]].concat() } else { sample.clone() };
            let copy =
                log.put_copy(sample.clone(), last.as_ref().filter(|_| with_base)).await.unwrap();
            assert!(log.get_copy(&copy).await.unwrap() == sample, "{} bytes", sample.len());
            last = Some(copy);
        }
    }
    // A second handle reads the same bytes.
    let copy = log.put_copy(samples[5].clone(), None).await.unwrap();
    assert!(open_log(folder.path()).await.get_copy(&copy).await.unwrap() == samples[5]);
}

#[tokio::test]
async fn a_copy_has_the_same_reference_as_a_blob() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).await;
    let copy = log.put_copy(b"abc".to_vec(), None).await.unwrap();
    assert_eq!(copy, log.put_blob(b"abc".to_vec()).await.unwrap());
    assert!(copy.as_str().starts_with("ba7816bf8f01cfea414140de5dae2223"));
}

#[tokio::test]
async fn incompressible_bytes_take_hardly_more_than_their_own_size() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).await;
    log.put_copy(RandomByteGenerator(3).bytes(1_000_000), None).await.unwrap();
    let stored = query_number(folder.path(), "SELECT length(body) FROM copy").await;
    assert!(stored < 1_000_200, "{stored}");
}

#[tokio::test]
async fn a_small_change_takes_little_space_and_identical_bytes_none() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).await;
    let mut generator = RandomByteGenerator(5);
    for (before, name) in [
        (to_bytes(&generator.text(100_000)), "text"),
        (generator.bytes(100_000), "noise"),
        (generator.bytes(20 << 20), "large noise"),
    ] {
        let mut after = before.clone();
        after.splice(50_000..50_010, *b"something else");
        let kept = log.put_copy(before, None).await.unwrap();
        let stored = query_number(folder.path(), "SELECT stored FROM store").await;
        let copy = log.put_copy(after.clone(), Some(&kept)).await.unwrap();
        let cost = query_number(folder.path(), "SELECT stored FROM store").await - stored;
        println!("{name}: the change costs {cost} bytes");
        assert!(cost < 4_000, "{name}: {cost}");
        assert!(log.get_copy(&copy).await.unwrap() == after);
        assert_eq!(log.put_copy(after, None).await.unwrap(), copy);
        assert_eq!(query_number(folder.path(), "SELECT stored FROM store").await - stored, cost);
    }
}

#[tokio::test]
async fn a_base_copy_that_is_missing_or_different_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).await;
    let unknown = BlobRef::from_digest([9; 32]);
    let one = log.put_copy(RandomByteGenerator(7).bytes(5_000), Some(&unknown)).await.unwrap();
    let two = log.put_copy(RandomByteGenerator(8).bytes(5_000), Some(&one)).await.unwrap();
    assert_eq!(log.get_copy(&one).await.unwrap(), RandomByteGenerator(7).bytes(5_000));
    assert_eq!(log.get_copy(&two).await.unwrap(), RandomByteGenerator(8).bytes(5_000));
    assert_eq!(query_number(folder.path(), "SELECT count(*) FROM chain").await, 2);
    // A copy whose base is itself.
    let name = log.put_copy(b"self".to_vec(), None).await.unwrap();
    assert_eq!(log.put_copy(b"self".to_vec(), Some(&name)).await.unwrap(), name);
}

/// Stores a version after each of many small edits, and returns the size on disk.
async fn size_after_edits(
    start: Vec<String>,
    rounds: usize,
    mut edit: impl FnMut(&mut Vec<String>),
) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).await;
    let mut lines = start;
    let mut versions = vec![log.put_copy(to_bytes(&lines), None).await.unwrap()];
    let mut samples = Vec::new();
    for round in 0..rounds {
        edit(&mut lines);
        let bytes = to_bytes(&lines);
        let copy = log.put_copy(bytes.clone(), versions.last()).await.unwrap();
        if round % 83 == 0 {
            samples.push((copy.clone(), bytes));
        }
        versions.push(copy);
    }
    for (copy, bytes) in samples {
        assert!(log.get_copy(&copy).await.unwrap() == bytes);
    }
    let chains = query_number(folder.path(), "SELECT count(*) FROM chain").await;
    let stored = query_number(folder.path(), "SELECT stored FROM store").await;
    let disk = size_on_disk(folder.path());
    println!("{stored} bytes stored in {chains} chains, {disk} bytes on disk");
    disk
}

#[tokio::test]
async fn a_thousand_rewrites_of_a_megabyte_stay_under_20_mb() {
    let mut generator = RandomByteGenerator(11);
    let text = generator.text(1 << 20);
    let disk = size_after_edits(text, 1_000, |lines| {
        let position = generator.below(lines.len());
        match generator.below(3) {
            0 => lines[position] = generator.line(),
            1 => lines.insert(position, generator.line()),
            _ => drop(lines.remove(position)),
        }
    });
    let disk = disk.await;
    assert!(disk < 20_000_000, "text: {disk}");
}

#[tokio::test]
async fn rewrites_of_a_megabyte_that_hardly_compresses_stay_small_too() {
    let mut generator = RandomByteGenerator(13);
    let letters = |generator: &mut RandomByteGenerator| -> String {
        (0..63).map(|_| (b' ' + (generator.below(94)) as u8) as char).chain(['\n']).collect()
    };
    let start: Vec<String> = (0..1 << 14).map(|_| letters(&mut generator)).collect();
    let disk = size_after_edits(start, 250, |lines| {
        let position = generator.below(lines.len());
        lines[position] = letters(&mut generator);
    });
    let disk = disk.await;
    // The write-ahead log alone may take up to 8 MB.
    assert!(disk < 12_000_000, "noise: {disk}");
}

#[tokio::test]
async fn storing_two_versions_of_100_kb_is_quick() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).await;
    log.put_copy(b"opens the database".to_vec(), None).await.unwrap();
    let mut generator = RandomByteGenerator(17);
    let mut times = Vec::new();
    for _ in 0..40 {
        let mut lines = generator.text(100_000);
        let before = to_bytes(&lines);
        lines[500] = "changed\n".into();
        let after = to_bytes(&lines);
        let start = Instant::now();
        let kept = log.put_copy(before, None).await.unwrap();
        log.put_copy(after, Some(&kept)).await.unwrap();
        times.push(start.elapsed());
    }
    times.sort();
    println!("two versions of 100 kB: median {:?}, maximum {:?}", times[20], times[39]);
    assert!(times[20] < Duration::from_millis(50), "{:?}", times[20]);
}

#[tokio::test]
async fn a_full_store_evicts_the_least_recently_used_chain() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).await.with_max_copies_bytes(50_000);
    let mut kept = Vec::new();
    for seed in 1..=4 {
        kept.push(log.put_copy(RandomByteGenerator(seed).bytes(11_000), None).await.unwrap());
    }
    // The first copy is stored again, and the second gets a delta based on it.
    log.put_copy(RandomByteGenerator(1).bytes(11_000), None).await.unwrap();
    let mut child = RandomByteGenerator(2).bytes(11_000);
    child.truncate(10_000);
    log.put_copy(child, Some(&kept[1])).await.unwrap();
    let fifth = log.put_copy(RandomByteGenerator(5).bytes(11_000), None).await.unwrap();
    assert!(matches!(log.get_copy(&kept[2]).await, Err(StorageError::CopyGone { .. })));
    for copy in [&kept[0], &kept[1], &kept[3], &fifth] {
        log.get_copy(copy).await.unwrap();
    }
    assert!(query_number(folder.path(), "SELECT stored FROM store").await <= 50_000);

    // A copy larger than the limit is stored alone.
    let huge = log.put_copy(RandomByteGenerator(6).bytes(80_000), None).await.unwrap();
    assert_eq!(log.get_copy(&huge).await.unwrap(), RandomByteGenerator(6).bytes(80_000));
    assert_eq!(query_number(folder.path(), "SELECT count(*) FROM copy").await, 1);
    assert_eq!(query_number(folder.path(), "SELECT count(*) FROM chain").await, 1);
}

#[tokio::test]
async fn many_versions_of_a_file_stay_under_the_size_limit() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 400_000;
    let log = open_log(folder.path()).await.with_max_copies_bytes(limit);
    let mut bytes = RandomByteGenerator(23).bytes(20_000);
    let mut generator = RandomByteGenerator(24);
    let mut last = None;
    for _ in 0..400 {
        let position = generator.below(19_000);
        bytes.splice(position..position + 900, generator.bytes(900));
        last = Some(log.put_copy(bytes.clone(), last.as_ref()).await.unwrap());
        let stored = query_number(folder.path(), "SELECT stored FROM store").await;
        assert!(stored <= limit as i64, "{stored}");
    }
    assert_eq!(log.get_copy(&last.unwrap()).await.unwrap(), bytes);
    let sums = "SELECT (SELECT sum(stored) FROM copy) = stored
        AND (SELECT sum(stored) FROM chain) = stored FROM store";
    assert_eq!(
        query_number(folder.path(), sums).await,
        1,
        "the stored sums differ from the sums of the rows"
    );
}

/// Records in the database of the log that a session uses a copy, as a fact would.
async fn record_blob_use(folder: &Path, session: SessionId, copy: &BlobRef) {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(folder.join("windlass.db"));
    let mut log = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::query("INSERT INTO blob_use (blob, session) VALUES (?1, ?2)")
        .bind(copy.as_str())
        .bind(session.0)
        .execute(&mut log)
        .await
        .unwrap();
}

async fn create_session(log: &SqliteLog, number: u128) -> SessionId {
    let session = SessionId(Uuid::from_u128(number));
    let claim = log.claim(session).await.unwrap();
    let fact = Fact::ModelText { text: "x".into(), provider_signature: None };
    log.append(&claim, 0, UnixMillis(1), &[fact]).await.unwrap();
    session
}

#[tokio::test]
async fn deleting_a_session_removes_the_chains_that_no_other_session_uses() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).await;
    let (deleted, other) = (create_session(&log, 1).await, create_session(&log, 2).await);
    let shared = log.put_copy(RandomByteGenerator(1).bytes(9_000), None).await.unwrap();
    let mut edited = RandomByteGenerator(1).bytes(9_000);
    edited.extend(b"more");
    let child = log.put_copy(edited, Some(&shared)).await.unwrap();
    let own = log.put_copy(RandomByteGenerator(2).bytes(3 << 20), None).await.unwrap();
    let orphan = log.put_copy(RandomByteGenerator(3).bytes(9_000), None).await.unwrap();
    for copy in [&shared, &child, &own] {
        record_blob_use(folder.path(), deleted, copy).await;
    }
    // The other session uses only `child`, which cannot be read without `shared`.
    record_blob_use(folder.path(), other, &child).await;
    execute(folder.path(), "UPDATE chain SET at = at - 86400").await;
    let recent = log.put_copy(RandomByteGenerator(4).bytes(9_000), None).await.unwrap();
    // Stored again, because a fact that refers to it may follow.
    let again = log.put_copy(RandomByteGenerator(3).bytes(9_000), None).await.unwrap();
    assert_eq!(again, orphan);
    execute(folder.path(), "PRAGMA wal_checkpoint(TRUNCATE)").await;
    let before = size_on_disk(folder.path());

    log.delete(deleted).await.unwrap();
    for copy in [&shared, &child, &recent, &orphan] {
        log.get_copy(copy).await.unwrap();
    }
    assert!(matches!(log.get_copy(&own).await, Err(StorageError::CopyGone { .. })));
    execute(folder.path(), "PRAGMA wal_checkpoint(TRUNCATE)").await;
    let after = size_on_disk(folder.path());
    assert!(after < before - (2 << 20), "{before} bytes became {after}");
    assert_eq!(query_number(folder.path(), "PRAGMA auto_vacuum").await, 2);

    execute(folder.path(), "UPDATE chain SET at = at - 86400").await;
    log.delete(other).await.unwrap();
    assert_eq!(query_number(folder.path(), "SELECT count(*) FROM copy").await, 0);
    assert_eq!(query_number(folder.path(), "SELECT stored FROM store").await, 0);
}

#[tokio::test]
async fn a_store_without_copies_has_no_copies_database() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).await;
    let session = create_session(&log, 1).await;
    log.delete(session).await.unwrap();
    assert!(!folder.path().join("copies.db").exists());
}

#[tokio::test]
async fn a_damaged_copy_is_never_returned_and_can_be_stored_again() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).await;
    let root = RandomByteGenerator(31).bytes(50_000);
    let mut edited = root.clone();
    edited.splice(100..110, *b"edit");
    for damage in [
        "UPDATE copy SET body = x'00'",
        "UPDATE copy SET body = x''",
        "UPDATE copy SET body = substr(body, 1, length(body) - 1)",
        "UPDATE copy SET body = zeroblob(length(body)) WHERE base IS NULL",
        "UPDATE copy SET body = CAST(substr(body, 1, 2000) || x'deadbeef' || substr(body, 2005)
         AS BLOB) WHERE base IS NULL",
        "UPDATE copy SET size = size + 1",
        "UPDATE copy SET size = 9000000000000000000",
        "UPDATE copy SET size = -1",
        "UPDATE copy SET base = digest",
        "UPDATE copy SET base = zeroblob(32)",
        "UPDATE copy SET base = NULL WHERE base IS NOT NULL",
        "DELETE FROM copy WHERE base IS NULL",
        // Intact, but different from its digest.
        "UPDATE copy SET (body, size, base) =
         (SELECT other.body, other.size, NULL FROM copy AS other WHERE other.base IS NULL)
         WHERE base IS NOT NULL",
    ] {
        let kept = log.put_copy(root.clone(), None).await.unwrap();
        let child = log.put_copy(edited.clone(), Some(&kept)).await.unwrap();
        assert_eq!(log.get_copy(&child).await.unwrap(), edited, "before: {damage}");
        assert!(execute(folder.path(), damage).await > 0, "{damage}");
        let refused = log.get_copy(&child).await;
        assert!(matches!(refused, Err(StorageError::CopyGone { .. })), "{damage}");
        assert_eq!(log.put_copy(edited.clone(), Some(&kept)).await.unwrap(), child);
        assert_eq!(log.get_copy(&child).await.unwrap(), edited, "after: {damage}");
        match log.get_copy(&kept).await {
            Ok(bytes) => assert!(bytes == root, "{damage}"),
            Err(error) => {
                assert!(matches!(error, StorageError::CopyGone { .. }), "{damage}: {error}")
            }
        }
        execute(folder.path(), "DELETE FROM copy").await;
    }
    assert_eq!(query_number(folder.path(), "SELECT stored FROM store").await, 0);
}

#[tokio::test]
async fn a_corrupt_copies_database_does_not_affect_the_log() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("copies.db"), RandomByteGenerator(1).bytes(100_000)).unwrap();
    let log = open_log(folder.path()).await;
    let session = create_session(&log, 1).await;
    let error = log.put_copy(b"x".to_vec(), None).await.unwrap_err();
    assert!(matches!(error, StorageError::CopyStore { .. }), "{error}");
    assert!(error.to_string().contains("copies.db"), "{error}");
    assert_eq!(log.read(session, 0).await.unwrap().len(), 1);
    log.delete(session).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_handles_that_evict_each_others_copies_never_return_wrong_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let work = async |seed: u64| {
        let log = open_log(folder.path()).await.with_max_copies_bytes(60_000);
        let mut generator = RandomByteGenerator(seed);
        let mut bytes = RandomByteGenerator(99).bytes(10_000);
        let mut last = None;
        let mut returned = 0;
        for _ in 0..150 {
            let position = generator.below(9_000);
            let length = 1 + generator.below(900);
            bytes.splice(position..position + length, generator.bytes(length));
            let copy = log.put_copy(bytes.clone(), last.as_ref()).await.unwrap();
            match log.get_copy(&copy).await {
                Ok(got) => {
                    assert!(got == bytes);
                    returned += 1;
                }
                Err(error) => assert!(matches!(error, StorageError::CopyGone { .. }), "{error}"),
            }
            last = Some(copy);
        }
        returned
    };
    let (one, two) = tokio::join!(work(1), work(2));
    assert!(one > 75 && two > 75, "{one} and {two} of 150 copies were read back");
}

// --- Several processes -------------------------------------------------------------------------

fn child_command(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--include-ignored"]);
    command.env("STORE", folder).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_time().worker_threads(2).build().unwrap()
}

/// Returns the bytes that a child stores as its n-th version.
fn version(child: u64, n: u64) -> Vec<u8> {
    let mut bytes = RandomByteGenerator(child * 2 + 1).bytes(30_000);
    for edit in 0..=n {
        let position = RandomByteGenerator(edit + 1).below(29_000);
        bytes.splice(position..position + 8, edit.to_le_bytes());
    }
    bytes
}

#[test]
fn several_processes_store_copies_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let children: Vec<_> = (0..3)
        .map(|number| {
            let mut command = child_command("child_stores_copies", folder.path());
            command.env("NUMBER", number.to_string()).env("ROUNDS", "60").spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    runtime().block_on(async {
        assert_eq!(query_number(folder.path(), "SELECT count(*) FROM copy").await, 180);
        let log = open_log(folder.path()).await;
        for child in 0..3 {
            let copy = log.put_blob(version(child, 59)).await.unwrap();
            assert_eq!(log.get_copy(&copy).await.unwrap(), version(child, 59));
        }
    });
}

#[cfg(unix)]
#[test]
fn after_a_kill_every_copy_is_intact_and_the_store_works() {
    for delay in [30, 60, 90, 150] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = child_command("child_stores_copies", folder.path());
        let mut running = command.env("NUMBER", "0").env("ROUNDS", "100000").spawn().unwrap();
        while !folder.path().join("copies.db-wal").exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(delay));
        running.kill().unwrap();
        running.wait().unwrap();
        runtime().block_on(async {
            let log = open_log(folder.path()).await;
            log.put_copy(b"works".to_vec(), None).await.unwrap();
            let copies: Vec<String> = sqlx::query_scalar("SELECT lower(hex(digest)) FROM copy")
                .fetch_all(&mut open_database(folder.path()).await)
                .await
                .unwrap();
            for copy in &copies {
                log.get_copy(&BlobRef::parse(copy).unwrap()).await.unwrap();
            }
            // Every copy that was acknowledged to the child is stored.
            let acknowledged =
                std::fs::read_to_string(folder.path().join("acknowledged")).unwrap_or_default();
            let acknowledged: Vec<&str> =
                acknowledged.lines().filter(|line| line.len() == 64).collect();
            println!(
                "killed after {delay} ms: {} copies, {} acknowledged",
                copies.len(),
                acknowledged.len()
            );
            assert!(acknowledged.iter().all(|copy| copies.iter().any(|kept| kept == copy)));
        });
    }
}

#[test]
#[ignore = "run as a child"]
fn child_stores_copies() {
    let Some(folder) = std::env::var_os("STORE").map(std::path::PathBuf::from) else { return };
    let number: u64 = std::env::var("NUMBER").unwrap().parse().unwrap();
    let rounds: u64 = std::env::var("ROUNDS").unwrap().parse().unwrap();
    runtime().block_on(async {
        let log = open_log(&folder).await;
        let mut last = None;
        let mut acknowledged = String::new();
        for n in 0..rounds {
            let copy = log.put_copy(version(number, n), last.as_ref()).await.unwrap();
            if rounds > 1_000 {
                acknowledged += copy.as_str();
                acknowledged += "\n";
                std::fs::write(folder.join("acknowledged"), &acknowledged).unwrap();
            }
            last = Some(copy);
        }
    });
}
