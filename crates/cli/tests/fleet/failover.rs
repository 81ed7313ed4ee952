//! The database is killed, and it or its standby goes on: sessions go on from what is stored, and
//! clients end with the same facts as the log.

use crate::session_client::SessionClient;
use crate::test_fleet::{TestFleet, TestNode, assert_no_gaps, kinds, lines, wait_until};
use std::time::{Duration, Instant};
use windlass_protocol::session_stream::SessionStreamItem;
use windlass_protocol::{Fact, PromptDelivery, SessionOp};
use windlass_testkit::ModelScript;
use windlass_testkit::postgres_server::PostgresServer;
use windlass_testkit::tcp_proxy::TcpProxy;

/// A fleet whose nodes reach the database through a proxy, as through the address of a cluster.
struct ClusteredFleet {
    fleet: TestFleet,
    standby: PostgresServer,
    proxy: TcpProxy,
}

impl ClusteredFleet {
    async fn start(script: ModelScript) -> ClusteredFleet {
        let mut fleet = TestFleet::with_database(PostgresServer::start(&[]), script);
        let proxy = TcpProxy::start(&fleet.database.socket()).await;
        fleet.url = format!("postgres://windlass@{}/fleet", proxy.address());
        let standby = fleet.database.start_standby(&[]);
        ClusteredFleet { fleet, standby, proxy }
    }

    /// Makes each commit wait for the standby.
    fn replicate_synchronously(&self) {
        self.fleet.database.set("synchronous_standby_names", "*");
        let state = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        wait_until("the standby is synchronous", || self.fleet.execute(state) == "1");
    }

    /// Kills the primary, and makes the standby the new one.
    fn fail_over(&mut self) {
        self.fleet.database.crash();
        self.standby.promote();
        self.proxy.redirect(&self.standby.socket());
        std::mem::swap(&mut self.fleet.database, &mut self.standby);
    }
}

/// Returns the facts of a client as the log has them.
#[track_caller]
fn assert_equal_to_log(client: &SessionClient, fleet: &TestFleet) {
    assert_no_gaps(&client.facts);
    let seen: Vec<Fact> = client.facts.iter().map(|record| record.fact.clone()).collect();
    assert_eq!(seen, fleet.facts(client.session));
}

async fn next_reset(client: &mut SessionClient) {
    while !matches!(client.next_item().await, SessionStreamItem::Reset(_)) {}
}

fn metric(node: &TestNode, name: &str) -> String {
    let metrics = node.metrics();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name}: {metrics}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn facts_that_a_crash_of_the_database_lost_are_lost_for_clients_too() {
    // Commits that are not flushed stay in memory until the crash.
    let database = PostgresServer::start(&["wal_writer_delay=10s", "wal_writer_flush_after=1GB"]);
    let read = r#"call read {"path": "file"}"#;
    let script =
        ModelScript::new(["say One.", read, "once gate slow\nsay Two.", "say Three.", "say Four."]);
    let mut fleet = TestFleet::with_database(database, script);
    std::fs::write(fleet.path("file"), "text").unwrap();
    let node = fleet.start_node();
    let mut owner = node.start_session().await;
    owner.submit(SessionOp::prompt("first")).await.unwrap();
    owner.wait_for_turn_end().await;
    owner.submit(SessionOp::prompt("second")).await.unwrap();
    fleet.model.wait_at_gate("slow");
    owner.wait_for_fact(|record| (record.fact.kind() == "call_settled").then_some(())).await;
    let before = fleet.facts(owner.session).len();
    fleet.database.crash();
    fleet.database.start_again();
    let after = fleet.facts(owner.session).len();
    assert!(after < before, "the facts after the prompt were not flushed");
    fleet.model.open_gate("slow");
    next_reset(&mut owner).await;
    owner.wait_for_turn_end().await;
    assert_equal_to_log(&owner, &fleet);
    // The prompt was acknowledged, so it is done, once.
    let prompts = kinds(&owner.facts).iter().filter(|kind| *kind == "prompt_submitted").count();
    assert_eq!(prompts, 2);
    assert_eq!(metric(&node, "windlass_fleet_shortened_logs_total"), "1");
    owner.submit(SessionOp::prompt("third")).await.unwrap();
    owner.wait_for_turn_end().await;
    assert_equal_to_log(&owner, &fleet);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_failover_to_a_synchronous_standby_loses_nothing() {
    let command =
        |n: usize| format!(r#"call bash {{"command": "echo {n} >> journal", "description": "d"}}"#);
    let replies = [
        command(1),
        format!("once gate slow\n{}", command(2)),
        "say Done.".into(),
        "say Again.".into(),
    ];
    let mut cluster =
        ClusteredFleet::start(ModelScript::new(replies.iter().map(String::as_str))).await;
    let node = cluster.fleet.start_node();
    cluster.replicate_synchronously();
    let mut owner = node.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    cluster.fleet.model.wait_at_gate("slow");
    let mut next = SessionOp::prompt("next");
    if let SessionOp::Prompt { delivery, .. } = &mut next {
        *delivery = PromptDelivery::Queue;
    }
    owner.submit(next).await.unwrap();
    let failed_at = Instant::now();
    cluster.fail_over();
    cluster.fleet.model.open_gate("slow");
    owner.wait_for_turn_end().await;
    println!("figure: the turn ends {:?} after the primary was killed", failed_at.elapsed());
    assert!(failed_at.elapsed() < Duration::from_secs(30));
    assert_eq!(lines(&cluster.fleet.path("journal")), ["1", "2"]);
    // The other prompt was acknowledged just before.
    owner.wait_for_turn_end().await;
    assert_equal_to_log(&owner, &cluster.fleet);
    let ends = kinds(&owner.facts).iter().filter(|kind| *kind == "turn_ended").count();
    assert_eq!(ends, 2);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_failover_that_loses_acknowledged_facts_is_said_and_clients_follow_the_log() {
    let script = ModelScript::new(["say One.", "once gate slow\nsay Two.", "say Three."]);
    let mut cluster = ClusteredFleet::start(script).await;
    let node = cluster.fleet.start_node();
    let mut owner = node.start_session().await;
    owner.submit(SessionOp::prompt("first")).await.unwrap();
    owner.wait_for_turn_end().await;
    let (session, kept) = (owner.session, owner.facts.len());
    let replicated = format!("SELECT count(*) FROM event WHERE session = '{}'", session.0);
    wait_until("the standby has the first turn", || {
        cluster.standby.execute("fleet", &replicated) == kept.to_string()
    });
    let status = node.env.windlass(&["fleet", "status", "--database", &cluster.fleet.url]).output();
    let status = String::from_utf8(status.unwrap().stdout).unwrap();
    assert!(status.contains("can lose acknowledged work"), "{status}");
    cluster.standby.stop();
    owner.submit(SessionOp::prompt("second")).await.unwrap();
    cluster.fleet.model.wait_at_gate("slow");
    cluster.fleet.database.crash();
    cluster.standby.start_again();
    cluster.standby.promote();
    cluster.proxy.redirect(&cluster.standby.socket());
    std::mem::swap(&mut cluster.fleet.database, &mut cluster.standby);
    cluster.fleet.model.open_gate("slow");
    next_reset(&mut owner).await;
    assert_equal_to_log(&owner, &cluster.fleet);
    assert_eq!(owner.facts.len(), kept, "the second prompt is gone");
    // The session goes on from there.
    owner.submit(SessionOp::prompt("third")).await.unwrap();
    owner.wait_for_turn_end().await;
    assert_equal_to_log(&owner, &cluster.fleet);
    let gone = "the database lost the last facts of session";
    let text = node.server.stderr();
    let is_counted = metric(&node, "windlass_fleet_shortened_logs_total") == "1";
    assert!(is_counted || text.contains(gone), "{text}");
}
