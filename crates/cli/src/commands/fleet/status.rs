//! Implements `windlass fleet status` and `windlass fleet drain`.

use crate::terminal::output;
use anyhow::bail;
use serde_json::json;
use windlass_protocol::display_text::pluralize;
use windlass_storage::postgres::{
    Backlog, FleetStatus, NodeStatus, PostgresDatabase, Replication, SessionCounts,
};

/// Prints the state of a fleet.
pub(super) async fn print_status(database: &PostgresDatabase, is_json: bool) -> anyhow::Result<()> {
    let status = database.fleet_status().await?;
    if is_json {
        output::print_json(&serde_json::to_string_pretty(&status_json(&status))?);
        return Ok(());
    }
    if status.nodes.is_empty() {
        output::print_note("no node; start one: `windlass serve --fleet URL`");
    }
    for node in &status.nodes {
        output::print_line(&describe_node(node));
    }
    output::print_line(&describe_sessions(&status.sessions));
    output::print_line(describe_replication(status.replication));
    Ok(())
}

fn describe_node(node: &NodeStatus) -> String {
    let state = match (node.is_draining, node.lease_seconds <= 0.0) {
        (_, true) => ", its lease has run out",
        (true, false) => ", leaving",
        (false, false) => "",
    };
    let address = if node.address.is_empty() { "no address" } else { &node.address };
    format!(
        "node {}  {address}  version {}, {} of {} sessions open{state}",
        node.id, node.version, node.sessions, node.capacity
    )
}

fn describe_sessions(sessions: &SessionCounts) -> String {
    let SessionCounts { idle, open, waiting_for_user, backlog } = sessions;
    let mut text =
        format!("sessions: {open} open, {idle} idle, {waiting_for_user} waiting for their user");
    let Backlog { due, due_seconds, queued_ops, queued_seconds, failed } = backlog;
    if *due > 0 {
        text.push_str(&format!(", {due} waiting for a node (for up to {due_seconds:.0} s)"));
    }
    if *failed > 0 {
        text.push_str(&format!(
            ", {failed} that failed three times and wait until a user opens them"
        ));
    }
    if *queued_ops > 0 {
        let count = pluralize(*queued_ops as usize, "operation");
        text.push_str(&format!("; {count} queued for up to {queued_seconds:.0} s"));
    }
    text
}

fn describe_replication(replication: Replication) -> &'static str {
    match replication {
        Replication::None => "database: no standby. What the machine of the database loses is lost",
        Replication::Asynchronous => {
            "database: the standby follows later. A fail-over can lose acknowledged work"
        }
        Replication::Synchronous => "database: a standby has everything that is acknowledged",
        Replication::Unknown => {
            "database: has a standby, but this user may not see its state. Grant it pg_monitor"
        }
    }
}

fn status_json(status: &FleetStatus) -> serde_json::Value {
    let SessionCounts { idle, open, waiting_for_user, backlog } = status.sessions;
    let Backlog { due, due_seconds, queued_ops, queued_seconds, failed } = backlog;
    let node = |node: &NodeStatus| {
        json!({
            "id": node.id, "address": node.address, "version": node.version,
            "process_id": node.process_id, "capacity": node.capacity, "sessions": node.sessions,
            "is_draining": node.is_draining, "lease_seconds": node.lease_seconds,
        })
    };
    let replication = match status.replication {
        Replication::None => "none",
        Replication::Asynchronous => "asynchronous",
        Replication::Synchronous => "synchronous",
        Replication::Unknown => "unknown",
    };
    json!({
        "nodes": status.nodes.iter().map(node).collect::<Vec<_>>(),
        "sessions": {
            "idle": idle, "due": due, "open": open, "waiting_for_user": waiting_for_user,
            "failed": failed, "due_seconds": due_seconds,
        },
        "queue": { "operations": queued_ops, "seconds": queued_seconds },
        "replication": replication,
    })
}

/// Asks a node to stop.
pub(super) async fn drain_node(database: &PostgresDatabase, id: &str) -> anyhow::Result<()> {
    let nodes = database.fleet_status().await?.nodes;
    let mut matching = nodes.iter().filter(|node| node.id.to_string().starts_with(id));
    let Some(node) = matching.next() else {
        bail!("there is no node {id}; `windlass fleet status` lists all nodes");
    };
    if let Some(other) = matching.next() {
        bail!("{id} is the beginning of the ids of {} and {}. Write more of it", node.id, other.id);
    }
    if !database.ask_node_to_leave(node.id).await? {
        bail!("the node {} has ended meanwhile", node.id);
    }
    output::print_note(&format!(
        "the node {} stops within about five seconds, and other nodes go on with its sessions",
        node.id
    ));
    Ok(())
}
