//! This process as a node of a fleet: its lease, and its connections to the other nodes.
//!
//! The node may run sessions only while its lease is valid. It stops by itself before the lease runs
//! out, by a clock that cannot be set. Start reading at [`FleetNode::join`], then
//! [`FleetNode::keep_lease`].

use crate::setup::LoadedProject;
use crate::terminal::output;
use anyhow::Context;
use secrecy::{ExposeSecret, SecretString};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use url::Url;
use uuid::Uuid;
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::{Fault, RequestError, SessionId};
use windlass_server::{RemoteHost, ServerAddress};
use windlass_storage::postgres::{
    Backlog, InboxOp, NodeEndpoint, NodeRegistration, ObjectStorage, PostgresDatabase,
    PostgresNode, TenantId,
};
use windlass_storage::{Log, PostgresLog, StorageError};

/// Validity of a lease after each renewal.
const LEASE_VALIDITY: Duration = Duration::from_secs(15);
const RENEWAL_INTERVAL: Duration = Duration::from_secs(4);
/// Time between attempts to renew a lease when the database does not answer.
const RENEWAL_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Time without a renewal after which the node stops. What is left of the lease is the time for
/// calls to end.
const MAX_TIME_WITHOUT_RENEWAL: Duration = Duration::from_secs(11);
/// Limit for a connection to another node.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time for which a node that did not answer is not asked again.
const RECONNECT_INTERVAL: Duration = Duration::from_secs(2);
const MAX_NODE_CONNECTIONS: usize = 64;
/// Connections to the database, besides the one for the lease.
const MAX_CONNECTIONS: usize = 16;
/// The variables with the address and credentials of an object store.
const OBJECT_VARIABLES: [&str; 9] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_ENDPOINT",
    "AWS_ALLOW_HTTP",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
];
/// Limit for a request to the object store.
const OBJECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The tenant of clients that are no users of a tenant.
pub(crate) const DEFAULT_TENANT: &str = "default";

/// A node of a fleet, with the log of one tenant.
pub(crate) struct FleetNode {
    pub(crate) database: PostgresDatabase,
    pub(crate) node: PostgresNode,
    pub(crate) tenant: TenantId,
    pub(crate) log: Arc<PostgresLog>,
    /// The time at which the request for the current lease was sent.
    renewed_at: Arc<Mutex<Instant>>,
    renewal_failures: Arc<AtomicU64>,
    /// Sessions and operations of all nodes that wait, as they were a moment ago.
    backlog: Arc<Mutex<Backlog>>,
    /// Connections to other nodes.
    remotes: Arc<Mutex<HashMap<Uuid, NodeConnection>>>,
}

/// The connection to another node.
#[derive(Clone)]
enum NodeConnection {
    Open(RemoteHost),
    /// The node did not answer at this time.
    Failed(Instant),
}

/// The place where a session is open.
pub(crate) enum SessionPlace {
    /// No node with a valid lease has it, or this one does.
    NotElsewhere,
    /// Another node has it, and cannot be reached.
    Unreachable,
    /// Another node has it.
    Node(Uuid, RemoteHost),
}

impl FleetNode {
    /// Adds this process to the fleet of a database, and creates missing tables.
    pub(crate) async fn join(
        (url, objects): (&str, Option<ObjectStorage>),
        (address, token): (String, &SecretString),
        capacity: u32,
    ) -> anyhow::Result<FleetNode> {
        let database = open_database(url)?.with_object_storage(objects);
        database.migrate().await.context(
            "cannot use the database of `--fleet`. Check that it exists (`createdb`), that the \
             user owns it, and the password (PGPASSWORD, or PGPASSFILE with mode 600)",
        )?;
        let tenant = database.tenant(DEFAULT_TENANT).await?;
        let random_host = || LoadedProject::random_bytes().map(|bytes| format!("{bytes:?}"));
        let joined_at = Instant::now();
        let registration = NodeRegistration {
            host: LoadedProject::host_identity().map_or_else(random_host, Ok)?,
            process_id: std::process::id(),
            address,
            token: token.expose_secret().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            capacity,
            lease: LEASE_VALIDITY,
        };
        let node = database.join(registration).await?;
        let log = Arc::new(node.log(tenant));
        let renewed_at = Arc::new(Mutex::new(joined_at));
        Ok(FleetNode {
            database,
            node,
            tenant,
            log,
            renewed_at,
            renewal_failures: Arc::default(),
            backlog: Arc::default(),
            remotes: Arc::default(),
        })
    }

    /// Returns the same node with the log of another tenant.
    pub(crate) fn for_tenant(&self, tenant: TenantId) -> FleetNode {
        FleetNode {
            database: self.database.clone(),
            node: self.node.clone(),
            tenant,
            log: Arc::new(self.node.log(tenant)),
            renewed_at: Arc::clone(&self.renewed_at),
            renewal_failures: Arc::clone(&self.renewal_failures),
            backlog: Arc::clone(&self.backlog),
            remotes: Arc::clone(&self.remotes),
        }
    }

    /// Returns the time until the lease runs out, counted from before it was renewed.
    pub(crate) fn lease_left(&self) -> Duration {
        LEASE_VALIDITY.saturating_sub(lock(&self.renewed_at).elapsed())
    }

    /// Returns the number of attempts to renew the lease that have failed.
    pub(crate) fn renewal_failures(&self) -> u64 {
        self.renewal_failures.load(Ordering::Relaxed)
    }

    /// Returns how many sessions and operations of all nodes wait.
    pub(crate) fn backlog(&self) -> Backlog {
        *lock(&self.backlog)
    }

    /// Reads how many sessions and operations of all nodes wait.
    pub(crate) async fn update_backlog(&self) -> Result<(), StorageError> {
        let backlog = self.database.backlog().await?;
        *lock(&self.backlog) = backlog;
        Ok(())
    }

    /// Renews the lease until it is lost, or cannot be renewed in time. Returns the reason. Calls
    /// `on_leave` each time if an operator has asked the node to leave.
    pub(crate) async fn keep_lease(&self, on_leave: impl Fn()) -> String {
        match self.renew_until_lost(on_leave).await {
            Some(StorageError::LeaseLost) => "the lease of this node has run out".to_owned(),
            error => {
                let seconds = MAX_TIME_WITHOUT_RENEWAL.as_secs();
                let cause = error.map(|error| format!(": {error}")).unwrap_or_default();
                format!("the lease of this node was not renewed for {seconds} seconds{cause}")
            }
        }
    }

    /// Returns the error of the last renewal, if it failed in time.
    async fn renew_until_lost(&self, on_leave: impl Fn()) -> Option<StorageError> {
        let mut wait = RENEWAL_INTERVAL;
        loop {
            let deadline = *lock(&self.renewed_at) + MAX_TIME_WITHOUT_RENEWAL;
            tokio::time::sleep_until(deadline.min(Instant::now() + wait)).await;
            let sent_at = Instant::now();
            let renewal = tokio::time::timeout_at(deadline, self.node.renew_lease()).await;
            wait = match renewal {
                Ok(Ok(is_leaving)) => {
                    *lock(&self.renewed_at) = sent_at;
                    if is_leaving {
                        on_leave();
                    }
                    RENEWAL_INTERVAL
                }
                Ok(Err(error @ StorageError::LeaseLost)) => return Some(error),
                Ok(Err(error)) => {
                    self.renewal_failures.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(%error, "the lease was not renewed");
                    if Instant::now() >= deadline {
                        return Some(error);
                    }
                    RENEWAL_RETRY_INTERVAL
                }
                Err(_) => return None,
            };
        }
    }

    /// Finds out where a session is open.
    pub(crate) async fn place_of(&self, session: SessionId) -> Result<SessionPlace, RequestError> {
        let holder = self.log.holder(session).await.map_err(storage_error)?;
        let Some(NodeEndpoint { holder, token }) = holder else {
            return Ok(SessionPlace::NotElsewhere);
        };
        let known = lock(&self.remotes).get(&holder.node).cloned();
        match &known {
            Some(NodeConnection::Open(remote)) => {
                return Ok(SessionPlace::Node(holder.node, remote.clone()));
            }
            Some(NodeConnection::Failed(at)) if at.elapsed() < RECONNECT_INTERVAL => {
                return Ok(SessionPlace::Unreachable);
            }
            Some(NodeConnection::Failed(_)) | None => {}
        }
        let Ok(url) = holder.address.parse() else {
            return Ok(SessionPlace::Unreachable);
        };
        let address = ServerAddress::Node(url, token.into());
        match tokio::time::timeout(CONNECT_TIMEOUT, RemoteHost::connect(address)).await {
            Ok(Ok(remote)) => {
                let connection = NodeConnection::Open(remote.clone());
                let mut remotes = lock(&self.remotes);
                if remotes.len() >= MAX_NODE_CONNECTIONS {
                    // Most of them are of nodes that have ended.
                    remotes.clear();
                }
                remotes.insert(holder.node, connection);
                Ok(SessionPlace::Node(holder.node, remote))
            }
            failure => {
                if !matches!(known, Some(NodeConnection::Failed(_))) {
                    let cause = match failure {
                        Ok(Err(error)) => error.to_string(),
                        Ok(Ok(_)) | Err(_) => "it does not answer".to_owned(),
                    };
                    output::print_note(&format!(
                        "the node at {} cannot be reached, so operations for its sessions are \
                         queued: {cause}",
                        holder.address
                    ));
                }
                self.note_failure(holder.node);
                Ok(SessionPlace::Unreachable)
            }
        }
    }

    /// Treats a node that did not answer as one that cannot be reached, for a while.
    pub(crate) fn note_failure(&self, node: Uuid) {
        lock(&self.remotes).insert(node, NodeConnection::Failed(Instant::now()));
    }

    /// Stores an operation for the next node that runs the session.
    pub(crate) async fn enqueue(
        &self,
        session: SessionId,
        op: &InboxOp,
    ) -> Result<(), RequestError> {
        self.log.enqueue(session, op).await.map_err(storage_error)
    }

    /// Returns the log as engines use it.
    pub(crate) fn shared_log(&self) -> Arc<dyn Log> {
        Arc::<PostgresLog>::clone(&self.log)
    }
}

/// Returns the database of a fleet. No connection is made yet.
pub(crate) fn open_database(url: &str) -> anyhow::Result<PostgresDatabase> {
    if let Some(password) = Url::parse(url).ok().as_ref().and_then(Url::password) {
        crate::redact::add_secret(password);
    }
    PostgresDatabase::new(url, MAX_CONNECTIONS)
        .context("the URL of the database is not valid. It is like postgres://user@host/name")
}

/// Returns the object store with this URL, such as `s3://bucket/prefix`.
pub(crate) fn open_object_store(url: &str) -> anyhow::Result<ObjectStorage> {
    let variable = |name: &&'static str| Some((*name, LoadedProject::env_variable(name)?));
    let variables: Vec<(&str, String)> = OBJECT_VARIABLES.iter().filter_map(variable).collect();
    for (name, value) in &variables {
        if matches!(*name, "AWS_SECRET_ACCESS_KEY" | "AWS_SESSION_TOKEN") {
            crate::redact::add_secret(value);
        }
    }
    let opened = ObjectStorage::open(url, &variables, OBJECT_TIMEOUT);
    opened.context("the URL of the object store is not valid. It is like s3://bucket/prefix")
}

/// Returns the error of a request for an error of the database.
pub(crate) fn storage_error(error: StorageError) -> RequestError {
    let text = error.to_string();
    match error {
        StorageError::SessionNotFound { .. } => RequestError::NotFound { text },
        StorageError::Unavailable { .. } | StorageError::LeaseLost => {
            RequestError::Unavailable { text }
        }
        _ => Fault::Storage { message: text }.into(),
    }
}
