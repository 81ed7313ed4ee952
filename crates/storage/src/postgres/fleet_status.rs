//! The state of a fleet for its operators: nodes, sessions that wait, and how safe commits are.

use super::database::PostgresDatabase;
use crate::StorageError;
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

/// A node as operators see it.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeStatus {
    pub id: Uuid,
    pub address: String,
    pub version: String,
    pub process_id: u32,
    pub capacity: u32,
    pub is_draining: bool,
    /// Sessions that it has.
    pub sessions: u64,
    /// Seconds until the lease runs out; negative if it has.
    pub lease_seconds: f64,
}

/// The number of sessions in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SessionCounts {
    pub idle: u64,
    pub open: u64,
    pub waiting_for_user: u64,
    pub backlog: Backlog,
}

/// Sessions and operations that wait for a node, and how long the oldest ones have waited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Backlog {
    pub due: u64,
    /// Seconds for which the oldest due session waits for a node.
    pub due_seconds: f64,
    pub queued_ops: u64,
    /// Seconds for which the oldest queued operation waits.
    pub queued_seconds: f64,
    /// Sessions that failed three times and wait until a user opens them.
    pub failed: u64,
}

/// The standbys of the database, which survive its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// There is no standby: what the machine of the database loses is lost.
    None,
    /// A standby follows later: a fail-over can lose what was acknowledged.
    Asynchronous,
    /// A commit that is acknowledged is on a standby, too.
    Synchronous,
    /// The user of the database may not see the standbys.
    Unknown,
}

/// The state of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetStatus {
    pub nodes: Vec<NodeStatus>,
    pub sessions: SessionCounts,
    pub replication: Replication,
}

const NODES_QUERY: &str = "
    SELECT id, address, version, process_id, capacity, is_draining,
      (SELECT count(*) FROM session WHERE session.node = node.id),
      extract(epoch FROM lease - now())::float8
    FROM node ORDER BY address, id";

const COUNTS_QUERY: &str = "
    SELECT count(*) FILTER (WHERE state = 0), count(*) FILTER (WHERE state = 2),
      count(*) FILTER (WHERE state = 3)
    FROM session WHERE head > 0";

const BACKLOG_QUERY: &str = "
    SELECT due.number, due.seconds, queued.number, queued.seconds, failed.number
    FROM (SELECT count(*) AS number,
        coalesce(extract(epoch FROM now() - min(due)), 0)::float8 AS seconds
      FROM session WHERE state = 1) AS due,
      (SELECT count(*) AS number,
        coalesce(extract(epoch FROM now() - min(queued_at)), 0)::float8 AS seconds
      FROM inbox) AS queued,
      (SELECT count(*) AS number FROM session WHERE state = 4) AS failed";

/// Users without the right see the standbys, but not their state.
const REPLICATION_QUERY: &str = "
    SELECT count(*), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')),
      count(*) FILTER (WHERE state IS NULL),
      current_setting('synchronous_commit') IN ('off', 'local')
    FROM pg_stat_replication";

impl PostgresDatabase {
    /// Returns the state of the fleet.
    pub async fn fleet_status(&self) -> Result<FleetStatus, StorageError> {
        let node = |row: &PgRow| {
            Ok(NodeStatus {
                id: row.try_get(0)?,
                address: row.try_get(1)?,
                version: row.try_get(2)?,
                process_id: u32::try_from(row.try_get::<i64, _>(3)?).unwrap_or_default(),
                capacity: row.try_get::<i32, _>(4)? as u32,
                is_draining: row.try_get(5)?,
                sessions: row.try_get::<i64, _>(6)? as u64,
                lease_seconds: row.try_get(7)?,
            })
        };
        let rows = self.fetch_with_retries(|| sqlx::query(NODES_QUERY)).await?;
        let nodes = rows.iter().map(node).collect::<Result<_, sqlx::Error>>()?;
        let rows = self.fetch_with_retries(|| sqlx::query(COUNTS_QUERY)).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let count = |column: usize| row.try_get::<i64, _>(column).map(|count| count as u64);
        let sessions = SessionCounts {
            idle: count(0)?,
            open: count(1)?,
            waiting_for_user: count(2)?,
            backlog: self.backlog().await?,
        };
        let rows = self.fetch_with_retries(|| sqlx::query(REPLICATION_QUERY)).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let (all, synchronous): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let (hidden, is_off): (i64, bool) = (row.try_get(2)?, row.try_get(3)?);
        let replication = match () {
            () if all == 0 => Replication::None,
            () if hidden > 0 => Replication::Unknown,
            () if synchronous > 0 && !is_off => Replication::Synchronous,
            () => Replication::Asynchronous,
        };
        Ok(FleetStatus { nodes, sessions, replication })
    }

    /// Returns how many sessions and operations wait, without a look at those that do not.
    pub async fn backlog(&self) -> Result<Backlog, StorageError> {
        let rows = self.fetch_with_retries(|| sqlx::query(BACKLOG_QUERY)).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let count = |column: usize| row.try_get::<i64, _>(column).map(|count| count as u64);
        Ok(Backlog {
            due: count(0)?,
            due_seconds: row.try_get(1)?,
            queued_ops: count(2)?,
            queued_seconds: row.try_get(3)?,
            failed: count(4)?,
        })
    }

    /// Asks a node to leave the fleet. Returns false if there is none with this id.
    pub async fn ask_node_to_leave(&self, node: Uuid) -> Result<bool, StorageError> {
        let query = || {
            sqlx::query("UPDATE node SET is_draining = true WHERE id = $1 RETURNING 1").bind(node)
        };
        Ok(!self.fetch_with_retries(query).await?.is_empty())
    }
}
