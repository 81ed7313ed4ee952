//! The database fails: nodes wait for it, stop before their leases run out, and join again.

use crate::test_fleet::{TestFleet, assert_no_gaps, lines, wait_until};
use std::time::Duration;
use windlass_protocol::SessionOp;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_turn_survives_a_crash_of_the_database() {
    let command = r#"call bash {"command": "echo one >> journal", "description": "d"}"#;
    let mut fleet = TestFleet::start(&[&format!("once gate slow\n{command}"), "say Done."]);
    let node = fleet.start_node();
    let mut owner = node.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    fleet.model.wait_at_gate("slow");
    fleet.database.crash();
    fleet.model.open_gate("slow");
    std::thread::sleep(Duration::from_secs(2));
    fleet.database.start_again();
    owner.wait_for_turn_end().await;
    assert_no_gaps(&owner.facts);
    assert_eq!(fleet.facts(owner.session).len(), owner.facts.len());
    assert_eq!(lines(&fleet.path("journal")), ["one"]);
    assert!(!node.server.stderr().contains("joining"), "{}", node.server.stderr());
}

/// Returns true while a command of the tests sleeps for this time.
pub fn is_sleeping(seconds: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().map_while(Result::ok);
    let mut commands = processes
        .map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default());
    commands.any(|command| command.split('\0').eq(["sleep", seconds, ""]))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_node_that_is_stopped_without_a_database_ends_its_commands_before_its_lease() {
    let command = r#"call bash {"command": "sleep 302", "description": "d", "timeout": 400000}"#;
    let mut fleet = TestFleet::start(&[command, "say Done."]);
    let node = fleet.start_node();
    let owner = node.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    wait_until("the command runs", || is_sleeping("302"));
    let stopped_at = std::time::Instant::now();
    fleet.database.crash();
    node.signal("-TERM");
    wait_until("the command has ended", || !is_sleeping("302"));
    assert!(stopped_at.elapsed() < Duration::from_secs(15), "{:?}", stopped_at.elapsed());
    let mut server = node.server;
    assert_eq!(server.wait(), Some(0));
    assert!(stopped_at.elapsed() < Duration::from_secs(20), "{:?}", stopped_at.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_node_without_a_database_stops_its_sessions_before_its_lease_ends_and_joins_again() {
    let command = r#"call bash {"command": "sleep 301; echo one >> journal", "description": "d",
        "timeout": 400000}"#;
    let mut fleet = TestFleet::start(&[&command.replace('\n', " "), "say Done."]);
    let node = fleet.start_node();
    let mut owner = node.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    let is_started = |record: &windlass_protocol::FactRecord| {
        (record.fact.kind() == "call_started").then_some(())
    };
    owner.wait_for_fact(is_started).await;
    wait_until("the command runs", || is_sleeping("301"));
    let stopped_at = std::time::Instant::now();
    fleet.database.crash();
    node.server.wait_for("Its sessions are closed here");
    let stopped_after = stopped_at.elapsed();
    println!("figure: the node stops {stopped_after:?} after the database");
    assert!(stopped_after < Duration::from_secs(14), "the lease is valid for 15 seconds");
    wait_until("the command has ended", || !is_sleeping("301"));
    assert!(stopped_at.elapsed() < Duration::from_secs(16), "{:?}", stopped_at.elapsed());
    node.server.wait_for("joining the fleet again");
    fleet.database.start_again();
    // It goes on as a new node, and the model is told that the result of the command is unknown.
    owner.wait_for_turn_end().await;
    assert_no_gaps(&owner.facts);
    assert_eq!(lines(&fleet.path("journal")), [""; 0]);
}
