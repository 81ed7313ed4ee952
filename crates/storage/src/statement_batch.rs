//! Several SQL statements that are sent to the database together.

use crate::StorageError;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection};
use sqlx::{Arguments, Encode, Type};

/// Statements that the database executes in one go, with their arguments. Between two queries the
/// program has to be scheduled again, and every other writer waits for that.
#[derive(Default)]
pub(crate) struct StatementBatch {
    sql: String,
    arguments: SqliteArguments,
    statement_count: usize,
}

impl StatementBatch {
    /// Statements executed in one go. Facts of one append are nearly always fewer.
    const MAX_STATEMENTS: usize = 64;

    pub(crate) fn push(&mut self, sql: &str) {
        self.sql.push_str(sql);
        self.sql.push(';');
        self.statement_count += 1;
    }

    pub(crate) fn bind<'q>(
        &mut self,
        value: impl Encode<'q, Sqlite> + Type<Sqlite> + 'q,
    ) -> Result<(), StorageError> {
        self.arguments.add(value).map_err(sqlx::Error::Encode)?;
        Ok(())
    }

    pub(crate) fn is_full(&self) -> bool {
        self.statement_count >= StatementBatch::MAX_STATEMENTS
    }

    /// Executes the statements and returns the number of rows that they changed.
    pub(crate) async fn execute(
        &mut self,
        connection: &mut SqliteConnection,
    ) -> Result<u64, StorageError> {
        let StatementBatch { sql, arguments, .. } = std::mem::take(self);
        let query = sqlx::query_with(sqlx::AssertSqlSafe(sql), arguments);
        Ok(query.execute(connection).await?.rows_affected())
    }
}
