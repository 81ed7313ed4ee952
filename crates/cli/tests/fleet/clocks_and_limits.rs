//! Clocks that are wrong or jump, and a database that refuses writes.

use crate::test_fleet::{TestFleet, TestNode, assert_no_gaps, kinds, lines, wait_until};
use std::time::Duration;
use uuid::Uuid;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::{OpId, RequestError, SessionOp};
use windlass_server::FrontendService;
use windlass_testkit::ModelScript;
use windlass_testkit::postgres_server::PostgresServer;

/// Ends the turn of a session whose first node is killed before its command, and checks that the
/// command runs once.
async fn take_over(fleet: &TestFleet, first: TestNode, second: &TestNode) {
    let owner = first.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    fleet.model.wait_at_gate("slow");
    let mut watching = second.watch(owner.session).await;
    first.server.kill();
    watching.wait_for_turn_end().await;
    assert_no_gaps(&watching.facts);
    assert!(watching.facts.is_sorted_by_key(|record| record.epoch), "epochs rise");
    let (before, after) = (&watching.facts[0], watching.facts.last().unwrap());
    assert!(before.epoch < after.epoch, "two nodes wrote it");
    assert_eq!(lines(&fleet.path("journal")), ["one"]);
}

fn script() -> ModelScript {
    let command = r#"call bash {"command": "echo one >> journal", "description": "d"}"#;
    ModelScript::new([format!("once gate slow\n{command}").as_str(), "say Done."])
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and faketime"]
async fn a_node_whose_clock_is_wrong_takes_over_and_is_taken_over() {
    for (first, second) in [(Some("+1h"), None), (None, Some("-1h"))] {
        let fleet = TestFleet::with_model(script());
        let start = |clock: Option<&str>| match clock {
            Some(clock) => fleet.start_node_with_clock(clock),
            None => fleet.start_node(),
        };
        let (first, second) = (start(first), start(second));
        take_over(&fleet, first, &second).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and faketime"]
async fn a_clock_of_the_database_that_jumps_back_lets_sessions_go_on() {
    let fleet = TestFleet::with_database(PostgresServer::start_with_clock(), script());
    let (first, second) = (fleet.start_node(), fleet.start_node());
    fleet.database.set_clock("-1h");
    take_over(&fleet, first, &second).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and faketime"]
async fn a_clock_of_the_database_that_jumps_forward_ends_all_leases_and_repeats_nothing() {
    let fleet = TestFleet::with_database(PostgresServer::start_with_clock(), script());
    let nodes = [fleet.start_node(), fleet.start_node()];
    let mut owner = nodes[0].start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    fleet.model.wait_at_gate("slow");
    fleet.database.set_clock("+1h");
    for node in &nodes {
        node.server.wait_for("joining the fleet again");
    }
    fleet.model.open_gate("slow");
    owner.wait_for_turn_end().await;
    assert_no_gaps(&owner.facts);
    assert_eq!(lines(&fleet.path("journal")), ["one"]);
    let ends = kinds(&owner.facts).iter().filter(|kind| *kind == "turn_ended").count();
    assert_eq!(ends, 1);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_database_that_refuses_writes_acknowledges_nothing_and_recovers() {
    let fleet = TestFleet::start(&["say One.", "say Two."]);
    let node = fleet.start_node();
    let mut owner = node.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    owner.wait_for_turn_end().await;
    let session = owner.session;
    fleet.database.set("default_transaction_read_only", "on");
    let is_read_only = || fleet.execute("SHOW transaction_read_only") == "on";
    wait_until("the database refuses writes", is_read_only);
    let (host, caller) = (node.host().await, node.caller("anna"));
    let id = Some(OpId(Uuid::now_v7()));
    let op = SessionOp::prompt("second");
    let request = FrontendRequest::SessionOp { session, id, op };
    let is_acknowledged = |answer: &Result<HostResponse, RequestError>| {
        matches!(answer, Ok(HostResponse::OpAccepted { .. } | HostResponse::OpQueued))
    };
    let send = async || {
        let answer = host.request(&caller, request.clone()).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        answer
    };
    // It is refused, or not answered while the node has no lease.
    let refused = async {
        loop {
            let answer = send().await;
            assert!(!is_acknowledged(&answer), "{answer:?}");
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(15), refused).await;
    node.server.wait_for("Its sessions are closed here");
    fleet.database.set("default_transaction_read_only", "off");
    while !is_acknowledged(&send().await) {}
    let mut reader = node.watch(session).await;
    while kinds(&reader.facts).iter().filter(|kind| *kind == "turn_ended").count() < 2 {
        reader.next_item().await;
    }
    assert_no_gaps(&reader.facts);
    let prompts = kinds(&reader.facts).iter().filter(|kind| *kind == "prompt_submitted").count();
    assert_eq!(prompts, 2, "the prompt that was sent again is one");
}
