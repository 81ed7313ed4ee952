//! The copies that undo needs, tried from outside. Where a process matters, the test runs itself
//! again as a child.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test looks at the store from outside, tells what it measured, and fails by panicking"
)]

use sqlx::{Connection, SqliteConnection};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use uuid::Uuid;
use windlass_protocol::{BlobRef, Fact, Millis, SessionId};
use windlass_storage::{Error, Log, Sqlite};

async fn store(folder: &Path) -> Sqlite {
    Sqlite::open(folder).await.unwrap()
}

/// The database of copies, as an outsider sees it.
async fn database(folder: &Path) -> SqliteConnection {
    let options = sqlx::sqlite::SqliteConnectOptions::new();
    let options = options.filename(folder.join("copies.db")).busy_timeout(Duration::from_secs(30));
    SqliteConnection::connect_with(&options).await.unwrap()
}

async fn number(folder: &Path, query: &'static str) -> i64 {
    sqlx::query_scalar(query).fetch_one(&mut database(folder).await).await.unwrap()
}

async fn change(folder: &Path, statement: &'static str) -> u64 {
    let mut database = database(folder).await;
    sqlx::query(statement).execute(&mut database).await.unwrap().rows_affected()
}

/// What the database and its write-ahead log take on the disk.
fn on_disk(folder: &Path) -> u64 {
    ["copies.db", "copies.db-wal"]
        .map(|name| std::fs::metadata(folder.join(name)).map_or(0, |data| data.len()))
        .iter()
        .sum()
}

/// The same bytes in every run, without a pattern that could be compressed.
struct Noise(u64);

impl Noise {
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

    /// A line that looks a little like code.
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

fn joined(lines: &[String]) -> Vec<u8> {
    lines.concat().into_bytes()
}

#[tokio::test]
async fn what_is_kept_comes_back_byte_by_byte() {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await;
    let mut noise = Noise(1);
    let text = joined(&noise.text(1 << 20));
    let samples = [
        Vec::new(),
        vec![0],
        b"\xff".to_vec(),
        b"tiny\r\n".to_vec(),
        vec![b'x'; 3 << 20],
        noise.bytes(1 << 20),
        text,
    ];
    for near in [false, true] {
        let mut last = None;
        for sample in &samples {
            let sample = if near { [sample, &b"+"[..]].concat() } else { sample.clone() };
            let copy = log.keep_copy(sample.clone(), last.as_ref().filter(|_| near)).await.unwrap();
            assert!(log.get_copy(&copy).await.unwrap() == sample, "{} bytes", sample.len());
            last = Some(copy);
        }
    }
    // Another process, later, sees the same.
    let copy = log.keep_copy(samples[5].clone(), None).await.unwrap();
    assert!(store(folder.path()).await.get_copy(&copy).await.unwrap() == samples[5]);
}

#[tokio::test]
async fn a_copy_is_named_like_a_blob() {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await;
    let copy = log.keep_copy(b"abc".to_vec(), None).await.unwrap();
    assert_eq!(copy, log.put_blob(b"abc".to_vec()).await.unwrap());
    assert!(copy.as_str().starts_with("ba7816bf8f01cfea414140de5dae2223"));
}

#[tokio::test]
async fn what_does_not_compress_costs_hardly_more_than_itself() {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await;
    log.keep_copy(Noise(3).bytes(1_000_000), None).await.unwrap();
    let stored = number(folder.path(), "SELECT length(body) FROM copy").await;
    assert!(stored < 1_000_200, "{stored}");
}

#[tokio::test]
async fn a_small_change_costs_little_and_the_same_bytes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await;
    let mut noise = Noise(5);
    for (before, name) in [
        (joined(&noise.text(100_000)), "text"),
        (noise.bytes(100_000), "noise"),
        (noise.bytes(20 << 20), "large noise"),
    ] {
        let mut after = before.clone();
        after.splice(50_000..50_010, *b"something else");
        let kept = log.keep_copy(before, None).await.unwrap();
        let stored = number(folder.path(), "SELECT stored FROM store").await;
        let copy = log.keep_copy(after.clone(), Some(&kept)).await.unwrap();
        let cost = number(folder.path(), "SELECT stored FROM store").await - stored;
        println!("{name}: the change costs {cost} bytes");
        assert!(cost < 4_000, "{name}: {cost}");
        assert!(log.get_copy(&copy).await.unwrap() == after);
        assert_eq!(log.keep_copy(after, None).await.unwrap(), copy);
        assert_eq!(number(folder.path(), "SELECT stored FROM store").await - stored, cost);
    }
}

#[tokio::test]
async fn a_near_copy_that_is_not_kept_or_not_alike_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await;
    let unknown = BlobRef::of_digest([9; 32]);
    let one = log.keep_copy(Noise(7).bytes(5_000), Some(&unknown)).await.unwrap();
    let two = log.keep_copy(Noise(8).bytes(5_000), Some(&one)).await.unwrap();
    assert_eq!(log.get_copy(&one).await.unwrap(), Noise(7).bytes(5_000));
    assert_eq!(log.get_copy(&two).await.unwrap(), Noise(8).bytes(5_000));
    assert_eq!(number(folder.path(), "SELECT count(*) FROM chain").await, 2);
    // Near itself.
    let name = log.keep_copy(b"self".to_vec(), None).await.unwrap();
    assert_eq!(log.keep_copy(b"self".to_vec(), Some(&name)).await.unwrap(), name);
}

/// Small edits to a file: what they take on the disk.
async fn rewrite(start: Vec<String>, rounds: usize, mut edit: impl FnMut(&mut Vec<String>)) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await;
    let mut lines = start;
    let mut versions = vec![log.keep_copy(joined(&lines), None).await.unwrap()];
    let mut samples = Vec::new();
    for round in 0..rounds {
        edit(&mut lines);
        let bytes = joined(&lines);
        let copy = log.keep_copy(bytes.clone(), versions.last()).await.unwrap();
        if round % 83 == 0 {
            samples.push((copy.clone(), bytes));
        }
        versions.push(copy);
    }
    for (copy, bytes) in samples {
        assert!(log.get_copy(&copy).await.unwrap() == bytes);
    }
    let chains = number(folder.path(), "SELECT count(*) FROM chain").await;
    let stored = number(folder.path(), "SELECT stored FROM store").await;
    let disk = on_disk(folder.path());
    println!("{stored} bytes stored in {chains} chains, {disk} bytes on the disk");
    disk
}

#[tokio::test]
async fn a_thousand_rewrites_of_a_megabyte_stay_under_20_mb() {
    let mut noise = Noise(11);
    let text = noise.text(1 << 20);
    let disk = rewrite(text, 1_000, |lines| {
        let place = noise.below(lines.len());
        match noise.below(3) {
            0 => lines[place] = noise.line(),
            1 => lines.insert(place, noise.line()),
            _ => drop(lines.remove(place)),
        }
    });
    let disk = disk.await;
    assert!(disk < 20_000_000, "text: {disk}");
}

#[tokio::test]
async fn rewrites_of_a_megabyte_that_hardly_compresses_stay_small_too() {
    let mut noise = Noise(13);
    let letters = |noise: &mut Noise| -> String {
        (0..63).map(|_| (b' ' + (noise.below(94)) as u8) as char).chain(['\n']).collect()
    };
    let start: Vec<String> = (0..1 << 14).map(|_| letters(&mut noise)).collect();
    let disk = rewrite(start, 250, |lines| {
        let place = noise.below(lines.len());
        lines[place] = letters(&mut noise);
    });
    let disk = disk.await;
    // The write-ahead log alone may take up to 8 MB.
    assert!(disk < 12_000_000, "noise: {disk}");
}

#[tokio::test]
async fn keeping_two_versions_of_100_kb_is_quick() {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await;
    log.keep_copy(b"opens the database".to_vec(), None).await.unwrap();
    let mut noise = Noise(17);
    let mut times = Vec::new();
    for _ in 0..40 {
        let mut lines = noise.text(100_000);
        let before = joined(&lines);
        lines[500] = "changed\n".into();
        let after = joined(&lines);
        let start = Instant::now();
        let kept = log.keep_copy(before, None).await.unwrap();
        log.keep_copy(after, Some(&kept)).await.unwrap();
        times.push(start.elapsed());
    }
    times.sort();
    println!("two versions of 100 kB: {:?} in the middle, {:?} at worst", times[20], times[39]);
    assert!(times[20] < Duration::from_millis(50), "{:?}", times[20]);
}

#[tokio::test]
async fn a_full_store_lets_go_of_the_chain_unused_for_longest() {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await.with_copies_cap(50_000);
    let mut kept = Vec::new();
    for seed in 1..=4 {
        kept.push(log.keep_copy(Noise(seed).bytes(11_000), None).await.unwrap());
    }
    // The first is asked to be kept again, and the second gets a child.
    log.keep_copy(Noise(1).bytes(11_000), None).await.unwrap();
    let mut child = Noise(2).bytes(11_000);
    child.truncate(10_000);
    log.keep_copy(child, Some(&kept[1])).await.unwrap();
    let fifth = log.keep_copy(Noise(5).bytes(11_000), None).await.unwrap();
    assert!(matches!(log.get_copy(&kept[2]).await, Err(Error::CopyGone { .. })));
    for copy in [&kept[0], &kept[1], &kept[3], &fifth] {
        log.get_copy(copy).await.unwrap();
    }
    assert!(number(folder.path(), "SELECT stored FROM store").await <= 50_000);

    // Larger than all there is room for: it stays, alone.
    let huge = log.keep_copy(Noise(6).bytes(80_000), None).await.unwrap();
    assert_eq!(log.get_copy(&huge).await.unwrap(), Noise(6).bytes(80_000));
    assert_eq!(number(folder.path(), "SELECT count(*) FROM copy").await, 1);
    assert_eq!(number(folder.path(), "SELECT count(*) FROM chain").await, 1);
}

#[tokio::test]
async fn a_session_that_never_ends_stays_under_the_cap() {
    let folder = tempfile::tempdir().unwrap();
    let cap = 400_000;
    let log = store(folder.path()).await.with_copies_cap(cap);
    let mut bytes = Noise(23).bytes(20_000);
    let mut noise = Noise(24);
    let mut last = None;
    for _ in 0..400 {
        let place = noise.below(19_000);
        bytes.splice(place..place + 900, noise.bytes(900));
        last = Some(log.keep_copy(bytes.clone(), last.as_ref()).await.unwrap());
        let stored = number(folder.path(), "SELECT stored FROM store").await;
        assert!(stored <= cap as i64, "{stored}");
    }
    assert_eq!(log.get_copy(&last.unwrap()).await.unwrap(), bytes);
    let sums = "SELECT (SELECT sum(stored) FROM copy) = stored
        AND (SELECT sum(stored) FROM chain) = stored FROM store";
    assert_eq!(number(folder.path(), sums).await, 1, "the sums are not those of the rows");
}

/// Says in the log's database that a session uses a copy, as a fact that names it does.
async fn name_in_log(folder: &Path, session: SessionId, copy: &BlobRef) {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(folder.join("windlass.db"));
    let mut log = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::query("INSERT INTO blob_use (blob, session) VALUES (?1, ?2)")
        .bind(copy.as_str())
        .bind(session.0)
        .execute(&mut log)
        .await
        .unwrap();
}

async fn begin(log: &Sqlite, number: u128) -> SessionId {
    let session = SessionId(Uuid::from_u128(number));
    let claim = log.claim(session).await.unwrap();
    let fact = Fact::Said { text: "x".into(), seal: None };
    log.append(&claim, 0, Millis(1), &[fact]).await.unwrap();
    session
}

#[tokio::test]
async fn deleting_a_session_removes_the_chains_nobody_else_names() {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await;
    let (doomed, other) = (begin(&log, 1).await, begin(&log, 2).await);
    let shared = log.keep_copy(Noise(1).bytes(9_000), None).await.unwrap();
    let mut edited = Noise(1).bytes(9_000);
    edited.extend(b"more");
    let child = log.keep_copy(edited, Some(&shared)).await.unwrap();
    let own = log.keep_copy(Noise(2).bytes(3 << 20), None).await.unwrap();
    let orphan = log.keep_copy(Noise(3).bytes(9_000), None).await.unwrap();
    for copy in [&shared, &child, &own] {
        name_in_log(folder.path(), doomed, copy).await;
    }
    // The other one needs the child only, which cannot be read without the shared one.
    name_in_log(folder.path(), other, &child).await;
    change(folder.path(), "UPDATE chain SET at = at - 86400").await;
    let young = log.keep_copy(Noise(4).bytes(9_000), None).await.unwrap();
    // Kept again: a fact that names it may be on its way.
    let again = log.keep_copy(Noise(3).bytes(9_000), None).await.unwrap();
    assert_eq!(again, orphan);
    change(folder.path(), "PRAGMA wal_checkpoint(TRUNCATE)").await;
    let before = on_disk(folder.path());

    log.delete(doomed).await.unwrap();
    for copy in [&shared, &child, &young, &orphan] {
        log.get_copy(copy).await.unwrap();
    }
    assert!(matches!(log.get_copy(&own).await, Err(Error::CopyGone { .. })));
    change(folder.path(), "PRAGMA wal_checkpoint(TRUNCATE)").await;
    let after = on_disk(folder.path());
    assert!(after < before - (2 << 20), "{before} bytes became {after}");
    assert_eq!(number(folder.path(), "PRAGMA auto_vacuum").await, 2);

    change(folder.path(), "UPDATE chain SET at = at - 86400").await;
    log.delete(other).await.unwrap();
    assert_eq!(number(folder.path(), "SELECT count(*) FROM copy").await, 0);
    assert_eq!(number(folder.path(), "SELECT stored FROM store").await, 0);
}

#[tokio::test]
async fn a_store_without_copies_has_no_database_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await;
    let session = begin(&log, 1).await;
    log.delete(session).await.unwrap();
    assert!(!folder.path().join("copies.db").exists());
}

#[tokio::test]
async fn a_damaged_copy_is_never_given_and_can_be_kept_again() {
    let folder = tempfile::tempdir().unwrap();
    let log = store(folder.path()).await;
    let root = Noise(31).bytes(50_000);
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
        // Whole, but something else than its name says.
        "UPDATE copy SET (body, size, base) =
         (SELECT other.body, other.size, NULL FROM copy AS other WHERE other.base IS NULL)
         WHERE base IS NOT NULL",
    ] {
        let kept = log.keep_copy(root.clone(), None).await.unwrap();
        let child = log.keep_copy(edited.clone(), Some(&kept)).await.unwrap();
        assert_eq!(log.get_copy(&child).await.unwrap(), edited, "before: {damage}");
        assert!(change(folder.path(), damage).await > 0, "{damage}");
        let refused = log.get_copy(&child).await;
        assert!(matches!(refused, Err(Error::CopyGone { .. })), "{damage}");
        assert_eq!(log.keep_copy(edited.clone(), Some(&kept)).await.unwrap(), child);
        assert_eq!(log.get_copy(&child).await.unwrap(), edited, "after: {damage}");
        match log.get_copy(&kept).await {
            Ok(bytes) => assert!(bytes == root, "{damage}"),
            Err(error) => assert!(matches!(error, Error::CopyGone { .. }), "{damage}: {error}"),
        }
        change(folder.path(), "DELETE FROM copy").await;
    }
    assert_eq!(number(folder.path(), "SELECT stored FROM store").await, 0);
}

#[tokio::test]
async fn a_file_of_garbage_where_the_copies_were_leaves_the_log_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("copies.db"), Noise(1).bytes(100_000)).unwrap();
    let log = store(folder.path()).await;
    let session = begin(&log, 1).await;
    let error = log.keep_copy(b"x".to_vec(), None).await.unwrap_err();
    assert!(matches!(error, Error::Copies { .. }), "{error}");
    assert!(error.to_string().contains("copies.db"), "{error}");
    assert_eq!(log.read(session, 0).await.unwrap().len(), 1);
    log.delete(session).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_handles_that_evict_each_others_copies_never_give_wrong_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let work = async |seed: u64| {
        let log = store(folder.path()).await.with_copies_cap(60_000);
        let mut noise = Noise(seed);
        let mut bytes = Noise(99).bytes(10_000);
        let mut last = None;
        let mut given = 0;
        for _ in 0..150 {
            let place = noise.below(9_000);
            let length = 1 + noise.below(900);
            bytes.splice(place..place + length, noise.bytes(length));
            let copy = log.keep_copy(bytes.clone(), last.as_ref()).await.unwrap();
            match log.get_copy(&copy).await {
                Ok(got) => {
                    assert!(got == bytes);
                    given += 1;
                }
                Err(error) => assert!(matches!(error, Error::CopyGone { .. }), "{error}"),
            }
            last = Some(copy);
        }
        given
    };
    let (one, two) = tokio::join!(work(1), work(2));
    assert!(one > 75 && two > 75, "{one} and {two} of 150 came back");
}

// --- Several processes -------------------------------------------------------------------------

fn child(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--include-ignored"]);
    command.env("STORE", folder).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap()
}

/// What a child writes as its n-th version.
fn version(child: u64, n: u64) -> Vec<u8> {
    let mut bytes = Noise(child * 2 + 1).bytes(30_000);
    for edit in 0..=n {
        let place = Noise(edit + 1).below(29_000);
        bytes.splice(place..place + 8, edit.to_le_bytes());
    }
    bytes
}

#[test]
fn several_processes_keep_copies_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let children: Vec<_> = (0..3)
        .map(|number| {
            let mut command = child("child_keeps_copies", folder.path());
            command.env("NUMBER", number.to_string()).env("ROUNDS", "60").spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    runtime().block_on(async {
        assert_eq!(number(folder.path(), "SELECT count(*) FROM copy").await, 180);
        let log = store(folder.path()).await;
        for child in 0..3 {
            let copy = log.put_blob(version(child, 59)).await.unwrap();
            assert_eq!(log.get_copy(&copy).await.unwrap(), version(child, 59));
        }
    });
}

#[cfg(unix)]
#[test]
fn after_a_kill_every_copy_is_whole_and_the_store_works() {
    for delay in [30, 60, 90, 150] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = child("child_keeps_copies", folder.path());
        let mut running = command.env("NUMBER", "0").env("ROUNDS", "100000").spawn().unwrap();
        while !folder.path().join("copies.db-wal").exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(delay));
        running.kill().unwrap();
        running.wait().unwrap();
        runtime().block_on(async {
            let log = store(folder.path()).await;
            log.keep_copy(b"works".to_vec(), None).await.unwrap();
            let copies: Vec<String> = sqlx::query_scalar("SELECT lower(hex(digest)) FROM copy")
                .fetch_all(&mut database(folder.path()).await)
                .await
                .unwrap();
            for copy in &copies {
                log.get_copy(&BlobRef::parse(copy).unwrap()).await.unwrap();
            }
            // Whatever the child was told is kept, is kept.
            let told = std::fs::read_to_string(folder.path().join("told")).unwrap_or_default();
            let told: Vec<&str> = told.lines().filter(|line| line.len() == 64).collect();
            println!("killed after {delay} ms: {} copies, {} told", copies.len(), told.len());
            assert!(told.iter().all(|copy| copies.iter().any(|kept| kept == copy)));
        });
    }
}

#[test]
#[ignore = "run as a child"]
fn child_keeps_copies() {
    let Some(folder) = std::env::var_os("STORE").map(std::path::PathBuf::from) else { return };
    let number: u64 = std::env::var("NUMBER").unwrap().parse().unwrap();
    let rounds: u64 = std::env::var("ROUNDS").unwrap().parse().unwrap();
    runtime().block_on(async {
        let log = store(&folder).await;
        let mut last = None;
        let mut told = String::new();
        for n in 0..rounds {
            let copy = log.keep_copy(version(number, n), last.as_ref()).await.unwrap();
            if rounds > 1_000 {
                told += copy.as_str();
                told += "\n";
                std::fs::write(folder.join("told"), &told).unwrap();
            }
            last = Some(copy);
        }
    });
}
