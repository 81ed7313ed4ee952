//! The two backends for tests: a SQLite folder, and a PostgreSQL server of the test's own.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use async_trait::async_trait;
use sqlx::Connection;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;
use windlass_protocol::{Fact, PromptId, SessionId};
#[cfg(unix)]
use windlass_storage::postgres::{
    NodeRegistration, PostgresDatabase, PostgresNode, SessionFolder, TenantId,
};
use windlass_storage::{Log, SqliteLog};
#[cfg(unix)]
use windlass_testkit::postgres_server::PostgresServer;

/// A lease that no test outlives.
pub const LONG_LEASE: Duration = Duration::from_secs(3_600);

/// A store that several logs share, as several processes would.
#[async_trait]
pub trait Backend: Send + Sync {
    /// Opens a log as another process would.
    async fn open_log(&self) -> Arc<dyn Log>;

    /// Executes SQL that has the same meaning in both databases.
    async fn execute(&self, sql: &str);

    /// Executes a query that returns one number.
    async fn count(&self, sql: &str) -> i64;

    /// Makes all blobs look as if they had been stored a day ago.
    async fn age_blobs(&self);

    /// Damages all blobs.
    async fn damage_blobs(&self);
}

pub struct SqliteBackend {
    folder: tempfile::TempDir,
}

impl SqliteBackend {
    pub async fn start() -> SqliteBackend {
        SqliteBackend { folder: tempfile::tempdir().unwrap() }
    }

    async fn connect(&self) -> sqlx::SqliteConnection {
        let options = sqlx::sqlite::SqliteConnectOptions::new();
        let options = options.filename(self.folder.path().join("windlass.db"));
        sqlx::SqliteConnection::connect_with(&options).await.unwrap()
    }

    fn blobs(&self) -> Vec<std::path::PathBuf> {
        files(&self.folder.path().join("blobs"))
    }
}

#[async_trait]
impl Backend for SqliteBackend {
    async fn open_log(&self) -> Arc<dyn Log> {
        Arc::new(SqliteLog::open(self.folder.path()).await.unwrap())
    }

    async fn execute(&self, sql: &str) {
        let sql = sqlx::AssertSqlSafe(sql);
        sqlx::raw_sql(sql).execute(&mut self.connect().await).await.unwrap();
    }

    async fn count(&self, sql: &str) -> i64 {
        let sql = sqlx::AssertSqlSafe(sql);
        sqlx::query_scalar(sql).fetch_one(&mut self.connect().await).await.unwrap()
    }

    async fn age_blobs(&self) {
        let yesterday = std::time::SystemTime::now() - Duration::from_secs(86_400);
        for path in self.blobs() {
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_modified(yesterday).unwrap();
        }
    }

    async fn damage_blobs(&self) {
        for path in self.blobs() {
            std::fs::write(path, "damaged").unwrap();
        }
    }
}

#[cfg(unix)]
pub struct PostgresBackend {
    pub server: PostgresServer,
    database: PostgresDatabase,
}

#[cfg(unix)]
impl PostgresBackend {
    pub async fn start() -> PostgresBackend {
        let server = PostgresServer::start(&[]);
        server.create_database("fleet");
        let database = PostgresDatabase::new(&server.url("fleet"), 4).unwrap();
        database.migrate().await.unwrap();
        PostgresBackend { server, database }
    }

    pub async fn join(&self) -> PostgresNode {
        self.database.join(registration()).await.unwrap()
    }
}

#[cfg(unix)]
#[async_trait]
impl Backend for PostgresBackend {
    async fn open_log(&self) -> Arc<dyn Log> {
        let tenant = self.database.tenant("team").await.unwrap();
        Arc::new(self.join().await.log(tenant))
    }

    async fn execute(&self, sql: &str) {
        self.server.execute("fleet", sql);
    }

    async fn count(&self, sql: &str) -> i64 {
        self.server.execute("fleet", sql).parse().unwrap()
    }

    async fn age_blobs(&self) {
        self.server.execute("fleet", "UPDATE blob SET at = now() - interval '1 day'");
    }

    async fn damage_blobs(&self) {
        self.server.execute("fleet", r"UPDATE blob SET body = '\x64616d61676564'");
    }
}

#[cfg(unix)]
pub fn registration() -> NodeRegistration {
    NodeRegistration {
        host: "host".into(),
        process_id: std::process::id(),
        address: "https://node.test".into(),
        token: "token of a node".into(),
        version: "0".into(),
        capacity: 10,
        lease: LONG_LEASE,
    }
}

/// The folder of sessions without a first fact.
pub fn any_folder(tenant: TenantId) -> Vec<SessionFolder> {
    in_folder(tenant, "")
}

pub fn in_folder(tenant: TenantId, folder: &str) -> Vec<SessionFolder> {
    vec![SessionFolder { tenant, folder: folder.to_owned(), is_prefix: false }]
}

pub fn session(number: u128) -> SessionId {
    SessionId(Uuid::from_u128(number))
}

pub fn model_text(text: impl Into<String>) -> Fact {
    Fact::ModelText { text: text.into(), provider_signature: None }
}

pub fn prompt_submitted(text: &str) -> Fact {
    Fact::PromptSubmitted {
        prompt: PromptId(Uuid::from_u128(7)),
        text: text.into(),
        attachments: Vec::new(),
        delivery: Default::default(),
        settings: Default::default(),
    }
}

pub fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
