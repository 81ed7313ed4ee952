//! Deletion of sessions, and of everything that only they use.
//!
//! Deleted text does not remain: SQLite overwrites deleted rows (`secure_delete`), and the
//! write-ahead log is emptied.

use crate::database_open::{empty_wal, vacuum_step};
use crate::sqlite::SqliteLog;
use crate::{Log, StorageError, data_folder};
use sqlx::Connection;
use std::collections::HashSet;
use uuid::Uuid;
use windlass_protocol::SessionId;

impl SqliteLog {
    /// Deletes sessions with their subagent sessions. Sessions that are in use are left alone.
    /// Returns the number of sessions of the list that were deleted.
    pub async fn delete_sessions(&self, sessions: &[SessionId]) -> Result<usize, StorageError> {
        let mut deleted = 0;
        for session in sessions {
            match self.delete_rows(*session).await {
                Ok(true) => deleted += 1,
                Ok(false) | Err(StorageError::Busy { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.remove_unused_files().await?;
        Ok(deleted)
    }

    /// Deletes the rows of a session and its subagent sessions. Returns false if there is no such
    /// session.
    pub(crate) async fn delete_rows(&self, session: SessionId) -> Result<bool, StorageError> {
        // The caller must become the writer of every session it deletes, so that none is deleted
        // while in use.
        let mut claims = Vec::new();
        for session in self.session_tree(session).await? {
            claims.push(self.claim(session).await?);
        }
        for session in self.empty_sessions().await? {
            // A session that is about to start has a claim, so this attempt fails and the session
            // stays.
            claims.extend(self.claim(session).await.ok().filter(|claim| claim.head == 0));
        }
        let exists = claims.iter().any(|claim| claim.session == session && claim.head > 0);
        let (mut connection, _turn) = self.begin_write().await?;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        for claim in &claims {
            for statement in [
                "DELETE FROM event WHERE session = ?1",
                "DELETE FROM blob_use WHERE session = ?1",
                "DELETE FROM session WHERE id = ?1",
            ] {
                sqlx::query(statement).bind(claim.session.0).execute(&mut *transaction).await?;
            }
        }
        transaction.commit().await?;
        for claim in claims {
            data_folder::remove_file_if_exists(&self.session_lock(claim.session));
        }
        Ok(exists)
    }

    /// Removes blobs and file copies that no session uses, and returns free space to the disk.
    pub(crate) async fn remove_unused_files(&self) -> Result<(), StorageError> {
        let mut connection = self.connection.lock().await;
        let used: HashSet<String> = sqlx::query_scalar("SELECT DISTINCT blob FROM blob_use")
            .fetch_all(&mut *connection)
            .await?
            .into_iter()
            .collect();
        drop(connection);
        // Each step waits for its turn, so that other writers get theirs.
        while vacuum_step(&mut self.begin_write().await?.0).await? {}
        empty_wal(&mut self.begin_write().await?.0).await?;
        // The sessions are already deleted. If removing copies fails, the next deletion retries it.
        let _ = self.copies.prune(&used).await;
        self.run_blocking(move |blobs| {
            blobs.prune(&used);
            Ok(())
        })
        .await
    }

    /// Returns the size of the log and its blobs, without file copies and free pages.
    pub async fn stored_bytes(&self) -> Result<u64, StorageError> {
        let mut connection = self.connection.lock().await;
        let bytes: i64 = sqlx::query_scalar(
            "SELECT (page_count - freelist_count) * page_size
             FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
        )
        .fetch_one(&mut *connection)
        .await?;
        drop(connection);
        Ok(bytes as u64 + self.run_blocking(|blobs| Ok(blobs.total_bytes())).await?)
    }

    /// Returns a session and all its descendants, by the column `parent`.
    async fn session_tree(&self, session: SessionId) -> Result<Vec<SessionId>, StorageError> {
        let mut connection = self.connection.lock().await;
        let rows: Vec<Uuid> = sqlx::query_scalar(
            "WITH RECURSIVE family (id) AS (
               VALUES (?1) UNION SELECT session.id FROM session JOIN family
               ON session.parent = family.id)
             SELECT id FROM family",
        )
        .bind(session.0)
        .fetch_all(&mut *connection)
        .await?;
        Ok(rows.into_iter().map(SessionId).collect())
    }

    /// Returns sessions that were claimed but never got a fact. They appear in no list.
    async fn empty_sessions(&self) -> Result<Vec<SessionId>, StorageError> {
        let mut connection = self.connection.lock().await;
        let rows: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM session WHERE head = 0")
            .fetch_all(&mut *connection)
            .await?;
        Ok(rows.into_iter().map(SessionId).collect())
    }
}
