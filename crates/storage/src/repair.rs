//! Verification, repair and backup of a data folder.
//!
//! A repair never changes the damaged database. It reads every row that SQLite can still reach, one
//! range of row ids after the other and without the help of an index, keeps the rows that match
//! their checksum, and writes them to a new database. Positions without a valid row become
//! `Fact::FactsLost`.
#![allow(clippy::disallowed_methods, reason = "the storage crate opens its own files directly")]

use crate::database_open::connect_options;
use crate::file_lock::lock_in_turn;
use crate::session_rows::SessionRow;
use crate::sqlite::{SqliteLog, write_locks};
use crate::stored_facts::{self, LogDamage};
use crate::{Log, MAX_PAGE_FACTS, PageLimit, StorageError, data_folder};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{Connection, Row};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use uuid::Uuid;
use windlass_protocol::{Fact, LogSeq, SessionId};

/// The files of a SQLite database.
const DATABASE_FILES: &[&str] = &["windlass.db", "windlass.db-wal", "windlass.db-shm"];

/// Rows read at once. A range that SQLite cannot read is halved until single rows are left.
const SCAN_ROWS: i64 = 1_024;

/// The rows that fit into a page at most, to bound the scan if the largest row id is lost.
const MAX_PAGE_ROWS: i64 = 100;

/// Layout of a SQLite file: the first page contains the header and the schema, and the header the
/// number of pages.
const PAGE_BYTES: usize = 4096;
const PAGE_COUNT: std::ops::Range<usize> = 28..32;
const WAL_HEADER_BYTES: usize = 32;

/// Result of [`repair`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairReport {
    /// Number of sessions in the repaired database.
    pub sessions: usize,
    /// Number of facts that were saved.
    pub facts: u64,
    /// Number of facts that are lost.
    pub lost_facts: u64,
    /// Folder that contains the damaged database.
    pub damaged_copy: PathBuf,
}

impl SqliteLog {
    /// Verifies the structure of the database, and returns what SQLite finds. The cost grows with
    /// the size of the database.
    pub async fn check_structure(&self) -> Result<Vec<String>, StorageError> {
        let mut connection = self.connection.lock().await;
        let found = sqlx::query_scalar("PRAGMA quick_check(20)").fetch_all(&mut *connection).await;
        let mut found: Vec<String> = match found.map_err(StorageError::from) {
            Err(error) if error.is_corruption() => vec![error.to_string()],
            found => found?,
        };
        found.retain(|line| line != "ok");
        Ok(found)
    }

    /// Verifies the log of a session, and returns what is missing or damaged.
    pub async fn find_damage(&self, session: SessionId) -> Result<Vec<LogDamage>, StorageError> {
        let (mut damage, mut after) = (Vec::new(), 0);
        loop {
            let page =
                self.read_fact_page(session, after, PageLimit::facts(MAX_PAGE_FACTS)).await?;
            damage.extend(page.damage);
            let Some(last) = page.records.last() else { return Ok(damage) };
            after = last.seq;
        }
    }

    /// Copies the whole data folder into an empty folder, while other processes work.
    pub async fn backup(&self, target: &Path) -> Result<(), StorageError> {
        let cannot = |error| {
            StorageError::from_io(format!("could not write to {}", target.display()))(error)
        };
        data_folder::create_private_folder(target).map_err(cannot)?;
        let mut connection = self.connection.lock().await;
        let copy = target.join("windlass.db").display().to_string();
        sqlx::query("VACUUM INTO ?1").bind(copy).execute(&mut *connection).await?;
        drop(connection);
        self.copies.backup(&target.join("copies.db")).await?;
        // Blobs never change, and one that a copied fact refers to was written before the fact.
        copy_folder(&self.folder.join("blobs"), &target.join("blobs")).map_err(cannot)
    }
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    data_folder::create_private_folder(to)?;
    for entry in std::fs::read_dir(from).into_iter().flatten().flatten() {
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &target)?,
            // A file that vanishes meanwhile belonged to no fact.
            false => match std::fs::copy(entry.path(), target) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            },
        }
    }
    Ok(())
}

/// Replaces a damaged database by one with everything that can be read. The damaged one is moved
/// to a folder next to it.
pub async fn repair(folder: &Path) -> Result<RepairReport, StorageError> {
    let _open = lock_in_turn(&folder.join("open.lock")).await?;
    let mut writers = Vec::new();
    for path in write_locks(folder) {
        writers.push(lock_in_turn(&path).await?);
    }
    let _sessions = lock_all_sessions(folder)?;
    let cannot = |error| StorageError::from_io("could not repair the database")(error);
    let damaged_copy = unused_folder(folder);
    let work = damaged_copy.join("work");
    data_folder::create_private_folder(&work.join("new")).map_err(cannot)?;
    if folder.join("windlass.db").exists() {
        std::fs::copy(folder.join("windlass.db"), work.join("windlass.db")).map_err(cannot)?;
    }
    apply_wal(&folder.join("windlass.db-wal"), &work.join("windlass.db")).map_err(cannot)?;
    let mut repaired = SqliteLog::open(&work.join("new")).await?;
    repaired.blobs = std::sync::Arc::new(crate::blob::BlobStore::new(folder.join("blobs")));
    let mut damaged = open_damaged(&work, &repaired).await?;
    let mut salvage = Salvage::new(&work).await?;
    salvage.read_sessions(&mut damaged, folder).await;
    salvage.read_facts(&mut damaged).await?;
    let mut report = RepairReport { sessions: 0, facts: 0, lost_facts: 0, damaged_copy };
    for (session, head) in salvage.sessions() {
        salvage.copy_session(session, head, &repaired, &mut report).await?;
    }
    drop(damaged);
    drop(salvage);
    repaired.connection.into_inner().close().await?;
    for name in DATABASE_FILES.iter().filter(|name| folder.join(name).exists()) {
        std::fs::rename(folder.join(name), report.damaged_copy.join(name)).map_err(cannot)?;
    }
    let new = work.join("new").join("windlass.db");
    std::fs::rename(new, folder.join("windlass.db")).map_err(cannot)?;
    std::fs::remove_dir_all(work).map_err(cannot)?;
    Ok(report)
}

/// Locks all sessions, so that none is in use. They are unlocked when the files are dropped.
fn lock_all_sessions(folder: &Path) -> Result<Vec<File>, StorageError> {
    let mut locks = Vec::new();
    for (session, _) in data_folder::noted_heads(folder) {
        let path = folder.join("locks").join(session.to_string());
        let lock = data_folder::open_lock_file(&path)
            .map_err(StorageError::from_io("could not open the session's lock file"))?;
        lock.try_lock().map_err(|_| StorageError::Busy { session, holder: None })?;
        locks.push(lock);
    }
    Ok(locks)
}

/// Returns the path of a folder for the damaged database.
fn unused_folder(folder: &Path) -> PathBuf {
    let candidates = (1..).map(|number| folder.join(format!("damaged-{number}")));
    candidates.into_iter().find(|path| !path.exists()).unwrap_or_else(|| folder.join("damaged"))
}

/// Writes the pages of a write-ahead log to a database. SQLite ignores everything after the first
/// frame that is damaged; this takes every frame that has not been overwritten.
fn apply_wal(wal: &Path, database: &Path) -> std::io::Result<()> {
    let Ok(wal) = std::fs::read(wal) else { return Ok(()) };
    let frames: Vec<WalFrame<'_>> = wal
        .get(WAL_HEADER_BYTES..)
        .unwrap_or_default()
        .chunks_exact(WalFrame::BYTES)
        .filter_map(WalFrame::parse)
        .collect();
    let salt_in_header = wal.get(16..24).unwrap_or_default();
    let is_current = |frame: &&WalFrame<'_>| frame.salt == salt_in_header;
    // If the header is damaged, the first frame has the salt.
    let salt = match frames.iter().any(|frame| is_current(&frame)) {
        true => salt_in_header,
        false => frames.first().map_or(salt_in_header, |frame| frame.salt),
    };
    let frames: Vec<WalFrame<'_>> = frames.into_iter().filter(|frame| frame.salt == salt).collect();
    let committed = frames.iter().rposition(|frame| frame.is_commit).map_or(0, |last| last + 1);
    let mut file = File::options().write(true).create(true).truncate(false).open(database)?;
    for frame in frames.iter().take(committed) {
        let page = u64::from(frame.page_number).saturating_sub(1);
        // A damaged number must not make a huge file.
        if page <= file.metadata()?.len() / PAGE_BYTES as u64 + frames.len() as u64 {
            file.seek(SeekFrom::Start(page * PAGE_BYTES as u64))?;
            file.write_all(frame.page)?;
        }
    }
    Ok(())
}

/// A frame of a write-ahead log: one page, as a commit changed it.
struct WalFrame<'a> {
    page_number: u32,
    is_commit: bool,
    /// Random bytes of the generation of the log. Frames with others are from before.
    salt: &'a [u8],
    page: &'a [u8],
}

impl WalFrame<'_> {
    const HEADER_BYTES: usize = 24;
    const BYTES: usize = Self::HEADER_BYTES + PAGE_BYTES;

    fn parse(bytes: &[u8]) -> Option<WalFrame<'_>> {
        let (header, page) = bytes.split_at_checked(Self::HEADER_BYTES)?;
        let page_number = u32::from_be_bytes(header.get(..4)?.try_into().ok()?);
        let is_commit = header.get(4..8)? != [0; 4];
        Some(WalFrame { page_number, is_commit, salt: header.get(8..16)?, page })
    }
}

/// Opens the copy of the damaged database. If its first page is unreadable, that page is taken from
/// an empty database: it contains only the header and the schema, which are the same everywhere.
async fn open_damaged(work: &Path, empty: &SqliteLog) -> Result<SqliteConnection, StorageError> {
    let path = work.join("windlass.db");
    if let Ok(connection) = connect_damaged(&path).await {
        return Ok(connection);
    }
    let mut connection = empty.connection.lock().await;
    sqlx::raw_sql("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut *connection).await?;
    drop(connection);
    let patch = || {
        let mut first_page = std::fs::read(work.join("new").join("windlass.db"))?;
        let mut bytes = std::fs::read(&path).unwrap_or_default();
        bytes.resize(bytes.len().max(first_page.len()).next_multiple_of(PAGE_BYTES), 0);
        first_page.truncate(PAGE_BYTES);
        let pages = (bytes.len() / PAGE_BYTES) as u32;
        if let Some(count) = first_page.get_mut(PAGE_COUNT) {
            count.copy_from_slice(&pages.to_be_bytes());
        }
        if let Some(start) = bytes.get_mut(..first_page.len()) {
            start.copy_from_slice(&first_page);
        }
        std::fs::write(&path, bytes)
    };
    patch().map_err(StorageError::from_io("could not read the damaged database"))?;
    connect_damaged(&path).await
}

async fn connect_damaged(path: &Path) -> Result<SqliteConnection, StorageError> {
    let mut connection = SqliteConnection::connect_with(&connect_options(path)).await?;
    sqlx::query("SELECT seq FROM event LIMIT 0").fetch_all(&mut connection).await?;
    Ok(connection)
}

/// Contents of a damaged database: intact facts, and the known sessions.
struct Salvage {
    facts: SqliteConnection,
    /// The last position and the order of use of each known session.
    known: BTreeMap<SessionId, (LogSeq, i64)>,
}

impl Salvage {
    async fn new(work: &Path) -> Result<Salvage, StorageError> {
        let options = SqliteConnectOptions::new()
            .filename(work.join("facts.db"))
            .create_if_missing(true)
            .pragma("synchronous", "OFF")
            .pragma("journal_mode", "OFF");
        let mut facts = SqliteConnection::connect_with(&options).await?;
        let schema = "CREATE TABLE fact (session BLOB, seq INTEGER, text BLOB,
                      PRIMARY KEY (session, seq))";
        sqlx::raw_sql(schema).execute(&mut facts).await?;
        Ok(Salvage { facts, known: BTreeMap::new() })
    }

    /// Reads the rows of sessions, one by one where the table cannot be read as a whole.
    async fn read_sessions(&mut self, damaged: &mut SqliteConnection, folder: &Path) {
        for (session, head) in data_folder::noted_heads(folder) {
            self.known.insert(session, (head, 0));
            if let Ok(Some(row)) = SessionRow::load(damaged, session).await {
                self.add_row(&row);
            }
        }
        for row in SessionRow::load_all(damaged).await.unwrap_or_default() {
            self.add_row(&row);
        }
    }

    fn add_row(&mut self, row: &SessionRow) {
        if row.is_intact() {
            let entry = self.known.entry(row.summary.session).or_default();
            *entry = (entry.0.max(row.summary.fact_count), row.used);
        }
    }

    /// Reads all facts that match their checksum.
    async fn read_facts(&mut self, damaged: &mut SqliteConnection) -> Result<(), StorageError> {
        let last: Result<Option<i64>, sqlx::Error> =
            sqlx::query_scalar("SELECT max(rowid) FROM event").fetch_one(&mut *damaged).await;
        let last = match last {
            Ok(last) => last.unwrap_or_default(),
            Err(_) => {
                let pages: Result<i64, sqlx::Error> =
                    sqlx::query_scalar("PRAGMA page_count").fetch_one(&mut *damaged).await;
                pages.unwrap_or_default() * MAX_PAGE_ROWS
            }
        };
        let mut ranges: Vec<(i64, i64)> = (0..=last / SCAN_ROWS)
            .rev()
            .map(|n| (n * SCAN_ROWS, (n + 1) * SCAN_ROWS - 1))
            .collect();
        sqlx::raw_sql("BEGIN").execute(&mut self.facts).await?;
        while let Some((first, last)) = ranges.pop() {
            let rows = sqlx::query(stored_facts::SCAN_QUERY).bind(first).bind(last);
            match rows.fetch_all(&mut *damaged).await {
                Ok(rows) => {
                    for row in rows {
                        self.add_fact(&row).await?;
                    }
                }
                Err(_) if first < last => {
                    let middle = first + (last - first) / 2;
                    ranges.extend([(middle + 1, last), (first, middle)]);
                }
                Err(_) => {}
            }
        }
        sqlx::raw_sql("COMMIT").execute(&mut self.facts).await?;
        Ok(())
    }

    async fn add_fact(&mut self, row: &sqlx::sqlite::SqliteRow) -> Result<(), StorageError> {
        let (Ok(session), Ok(text)) = (row.try_get::<Uuid, _>(0), row.try_get::<Vec<u8>, _>(1))
        else {
            return Ok(());
        };
        let session = SessionId(session);
        let Some(seq) = stored_facts::intact_position(session, &text) else { return Ok(()) };
        let known = self.known.entry(session).or_default();
        known.0 = known.0.max(seq);
        sqlx::query("INSERT OR IGNORE INTO fact VALUES (?1, ?2, ?3)")
            .bind(session.0)
            .bind(seq as i64)
            .bind(text)
            .execute(&mut self.facts)
            .await?;
        Ok(())
    }

    /// Returns the sessions and their last positions, the least recently used first.
    fn sessions(&self) -> Vec<(SessionId, LogSeq)> {
        let mut sessions: Vec<_> = self.known.iter().collect();
        sessions.sort_by_key(|(session, (_, used))| (*used, **session));
        sessions.into_iter().map(|(session, (head, _))| (*session, *head)).collect()
    }

    async fn copy_session(
        &mut self,
        session: SessionId,
        head: LogSeq,
        target: &SqliteLog,
        report: &mut RepairReport,
    ) -> Result<(), StorageError> {
        let texts: Vec<Vec<u8>> = sqlx::query_scalar("SELECT text FROM fact WHERE session = ?1")
            .bind(session.0)
            .fetch_all(&mut self.facts)
            .await?;
        report.lost_facts += head.saturating_sub(texts.len() as u64);
        if texts.is_empty() {
            return Ok(());
        }
        let text = stored_facts::join_facts(&texts);
        let page =
            stored_facts::decode_page(session, (0, head), &text, usize::MAX, &*target.blobs)?;
        let is_lost = |fact: &Fact| matches!(fact, Fact::FactsLost { .. });
        report.sessions += 1;
        report.facts += page.records.iter().filter(|record| !is_lost(&record.fact)).count() as u64;
        let claim = target.claim(session).await?;
        target.append_records(&claim, 0, &page.records).await?;
        Ok(())
    }
}
