//! The work of a node of a fleet besides its clients: it claims sessions that are due, delivers
//! operations that wait in the database, and makes the sessions of nodes that have ended due.

use super::tenant_hubs::TenantHubs;
use super::{CLOSE_TIMEOUT, ServeSetup};
use crate::fleet_node::FleetNode;
use crate::setup::LoadedProject;
use crate::terminal::output;
use anyhow::{Context, bail};
use secrecy::SecretString;
use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use windlass_protocol::{RequestError, SessionId};
use windlass_server::{ServerAddress, TcpEndpoint, TcpSecurity, token_text};
use windlass_storage::StorageError;
use windlass_storage::postgres::TenantId;

/// Time between two looks for due sessions and for operations that wait.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two looks at the tenants and tokens of the fleet.
const REFRESH_INTERVAL: Duration = Duration::from_secs(2);
/// Time between two looks for nodes that have ended.
const SWEEP_INTERVAL: Duration = Duration::from_secs(3);
/// Time between two attempts to join.
const JOIN_INTERVAL: Duration = Duration::from_secs(2);
/// Limit for the database to be told that the node claims no more sessions.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause between two claims while sessions are being opened.
const CLAIM_PAUSE: Duration = Duration::from_millis(50);
/// Maximum number of due sessions that a node claims at once.
const MAX_CLAIMS: usize = 8;

/// A node that has joined its fleet.
pub(super) struct JoinedFleet {
    pub(super) node: Arc<FleetNode>,
    /// The token with which other nodes send requests to this one.
    pub(super) token: SecretString,
    /// The host in the address of this node.
    pub(super) host: Option<String>,
    /// Notified when due sessions were claimed, for which operations may wait.
    has_claimed: Arc<Notify>,
}

/// Joins the fleet of a database. A node that has joined before tries until the database answers.
pub(super) async fn join(
    url: &str,
    setup: &ServeSetup,
    (endpoint, has_joined): (Option<&TcpEndpoint>, bool),
) -> anyhow::Result<JoinedFleet> {
    let token = token_text(LoadedProject::random_bytes()?);
    crate::redact::add_secret(&token);
    let token = SecretString::from(token);
    let (address, host) = match (&setup.args.fleet_address, endpoint) {
        (Some(address), _) => {
            let host = ServerAddress::host_of(address);
            let host = host.filter(|_| address.starts_with("http"));
            let host = host.with_context(|| {
                format!("--fleet-address {address} is not a URL like https://host:port")
            })?;
            (address.clone(), Some(host))
        }
        (None, Some(endpoint)) => {
            let is_encrypted = matches!(setup.security, TcpSecurity::Tls(_));
            let scheme = if is_encrypted { "https" } else { "http" };
            let address = endpoint.local_address()?;
            if address.ip().is_unspecified() {
                bail!("name the address at which other nodes reach this one with --fleet-address");
            }
            let url = format!("{scheme}://{address}");
            let host = ServerAddress::host_of(&url);
            (url, host)
        }
        (None, None) => {
            output::print_note(
                "without --listen, other nodes cannot reach this one: they queue operations for \
                 its sessions",
            );
            (String::new(), None)
        }
    };
    let capacity = setup.args.capacity;
    loop {
        match FleetNode::join((url, setup.objects.clone()), (address.clone(), &token), capacity)
            .await
        {
            Ok(node) => {
                let place = if address.is_empty() { "without an address" } else { &address };
                output::print_note(&format!(
                    "joined the fleet as node {}, {place}",
                    node.node.id()
                ));
                let (node, has_claimed) = (Arc::new(node), Arc::default());
                return Ok(JoinedFleet { node, token, host, has_claimed });
            }
            Err(error) if has_joined => {
                output::print_error(&format!("the node has not joined yet: {error:#}"));
                tokio::time::sleep(JOIN_INTERVAL).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Delivers queued operations and looks for nodes that have ended, until the hubs shut down.
pub(super) fn follow_fleet(hubs: &Arc<TenantHubs>, fleet: &JoinedFleet) {
    let (all, node) = (Arc::downgrade(hubs), Arc::clone(&fleet.node));
    let has_claimed = Arc::clone(&fleet.has_claimed);
    hubs.own.spawn_until_stopped(async move {
        deliver_queued_ops(&all, &node, &has_claimed).await;
    });
    let node = Arc::clone(&fleet.node);
    hubs.own.spawn_until_stopped(async move {
        loop {
            if let Err(error) = sweep(&node).await {
                tracing::warn!(%error, "nodes that have ended were not looked for");
            }
            tokio::time::sleep(SWEEP_INTERVAL).await;
        }
    });
}

/// Claims due sessions, and reads tenants and tokens, until the task is dropped.
pub(super) async fn claim_and_refresh(
    hubs: &Arc<TenantHubs>,
    setup: &ServeSetup,
    fleet: &JoinedFleet,
) {
    let claim = async {
        let mut openings = JoinSet::new();
        loop {
            match claim_due_sessions((hubs, &mut openings), setup, &fleet.node).await {
                Ok(true) => fleet.has_claimed.notify_one(),
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "due sessions were not claimed"),
            }
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                // There may be a place for the next ones.
                Some(_) = openings.join_next() => tokio::time::sleep(CLAIM_PAUSE).await,
            }
        }
    };
    let refresh = async {
        loop {
            tokio::time::sleep(REFRESH_INTERVAL).await;
            if let Err(error) = hubs.refresh(setup).await {
                tracing::warn!(%error, "tenants and tokens were not read");
            }
        }
    };
    let ((), ()) = tokio::join!(claim, refresh);
}

/// Gives the operations that wait in the database to the sessions of this node. A session that does
/// not answer delays no other one.
async fn deliver_queued_ops(hubs: &Weak<TenantHubs>, node: &FleetNode, has_claimed: &Notify) {
    let mut under_way: HashSet<(TenantId, SessionId)> = HashSet::new();
    let mut deliveries = JoinSet::new();
    loop {
        while let Some(delivery) = deliveries.try_join_next() {
            match delivery {
                Ok(delivered) => drop(under_way.remove(&delivered)),
                Err(error) => {
                    tracing::error!(%error, "a delivery has failed");
                    under_way.clear();
                }
            }
        }
        match node.node.sessions_with_queued_ops().await {
            Ok(sessions) => {
                for (tenant, session) in sessions {
                    let hub = hubs.upgrade().and_then(|hubs| hubs.hub_of(tenant));
                    if let Some(hub) = hub
                        && under_way.insert((tenant, session))
                    {
                        deliveries.spawn(async move {
                            hub.deliver_queued_ops(session).await;
                            (tenant, session)
                        });
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "queued operations were not read"),
        }
        tokio::select! {
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            () = has_claimed.notified() => {}
        }
    }
}

/// Claims due sessions, and opens them in tasks: one that takes long delays no other one. Returns true
/// if there were any.
async fn claim_due_sessions(
    (hubs, openings): (&Arc<TenantHubs>, &mut JoinSet<()>),
    setup: &ServeSetup,
    node: &FleetNode,
) -> Result<bool, StorageError> {
    while openings.try_join_next().is_some() {}
    let places = hubs.free_places().saturating_sub(openings.len()).min(MAX_CLAIMS);
    if places == 0 {
        return Ok(false);
    }
    let due = node.node.claim_due(&hubs.session_folders(setup), places).await?;
    let has_claimed = !due.is_empty();
    for due in due {
        // A tenant that was disabled meanwhile has no hub.
        let Some(hub) = hubs.hub_of(due.tenant) else { continue };
        let hubs = Arc::clone(hubs);
        openings.spawn(async move {
            let session = due.claim.session;
            match hub.resume_due(due.claim).await {
                Ok(()) => {}
                Err(RequestError::TooMany { .. }) => hubs.close_idle_session().await,
                Err(error) => {
                    output::print_note(&format!("session {session} is not resumed: {error}"));
                }
            }
        });
    }
    Ok(has_claimed)
}

/// Makes the sessions of nodes that have ended due.
async fn sweep(node: &FleetNode) -> Result<(), StorageError> {
    node.node.end_leases_of_ended_processes(LoadedProject::is_process_running).await?;
    let report = node.node.sweep().await?;
    if report.due > 0 {
        output::print_note(&format!(
            "{} of nodes that have ended, or with queued operations, wait for a node",
            windlass_protocol::display_text::pluralize(report.due as usize, "session"),
        ));
    }
    if report.failed > 0 {
        output::print_note(&format!(
            "{} that ended several nodes are resumed only when a user opens them",
            windlass_protocol::display_text::pluralize(report.failed as usize, "session"),
        ));
    }
    Ok(())
}

/// Leaves the fleet: closes all sessions, which other nodes go on with.
pub(super) async fn leave(hubs: &TenantHubs, fleet: &JoinedFleet) {
    let node = &fleet.node.node;
    if !matches!(tokio::time::timeout(DRAIN_TIMEOUT, node.drain()).await, Ok(Ok(()))) {
        tracing::warn!("the node may claim sessions until it has stopped");
    }
    hubs.shut_down(CLOSE_TIMEOUT).await;
    if let Err(error) = node.leave().await {
        output::print_error(&format!("the lease of this node ends later: {error}"));
    }
}
