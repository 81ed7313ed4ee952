//! A cluster of Patroni whose primary is killed again and again while sessions work: nothing that was
//! acknowledged is lost, and sessions go on within seconds.

use crate::killed_nodes::{COMMANDS, script};
use crate::test_fleet::{TestFleet, TestNode, lines};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use uuid::Uuid;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::{Fact, OpId, SessionId, SessionOp};
use windlass_server::{FrontendService, RemoteHost};
use windlass_testkit::patroni_cluster::PatroniCluster;

/// Limit for the first append after a kill.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// Time between the sessions that begin.
const START_INTERVAL: Duration = Duration::from_millis(500);

/// Starts a session with a prompt, as soon as the fleet accepts it.
async fn start_session((node, host): (&TestNode, &RemoteHost), number: usize) -> SessionId {
    let caller = node.caller("anna");
    let mut opened = None;
    let op = OpId(Uuid::now_v7());
    loop {
        if opened.is_none() {
            let answer = host.request(&caller, FrontendRequest::new_session(None)).await;
            if let Ok(HostResponse::SessionOpened { session, .. }) = answer {
                opened = Some(session);
            }
        }
        if let Some(session) = opened {
            let prompt = SessionOp::prompt(format!("session-{number}"));
            let request = FrontendRequest::SessionOp { session, id: Some(op), op: prompt };
            match host.request(&caller, request).await {
                Ok(HostResponse::OpAccepted { .. } | HostResponse::OpQueued) => return session,
                // Nothing of a session without a prompt is flushed, so it may be lost.
                Err(windlass_protocol::RequestError::NotFound { .. }) => opened = None,
                Ok(_) | Err(_) => {}
            }
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, Patroni, etcd and HAProxy"]
async fn a_cluster_whose_primary_is_killed_loses_nothing_that_was_acknowledged() {
    let kills = if std::env::var_os("WINDLASS_SOAK").is_some() { 10 } else { 1 };
    let mut fleet = TestFleet::with_database(PatroniCluster::start(), script());
    let nodes = [fleet.start_node(), fleet.start_node()];
    let hosts = [nodes[0].host().await, nodes[1].host().await];
    let (stop, mut stopped) = tokio::sync::watch::channel(false);
    let work = async {
        let mut started = Vec::new();
        while !*stopped.borrow_and_update() {
            let at = started.len() % 2;
            started.push(start_session((&nodes[at], &hosts[at]), started.len()).await);
            tokio::time::sleep(START_INTERVAL).await;
        }
        started
    };
    let killing = async {
        let mut pauses = Vec::new();
        for _ in 0..kills {
            tokio::time::sleep(Duration::from_secs(10)).await;
            let killed_at = Instant::now();
            let killed = fleet.database.kill_primary();
            // A statement that waits for the new primary says when it is there.
            let count = || fleet.database.execute("fleet", "SELECT count(*) FROM event");
            let before: u64 = tokio::task::block_in_place(count).parse().unwrap();
            let promoted_after = killed_at.elapsed();
            while tokio::task::block_in_place(count).parse::<u64>().unwrap() <= before {
                assert!(killed_at.elapsed() < MAX_PAUSE, "no session goes on: {pauses:?}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            pauses.push((promoted_after, killed_at.elapsed()));
            fleet.database.start_node(killed);
            tokio::task::block_in_place(|| fleet.database.wait_for_standby());
        }
        stop.send_replace(true);
        pauses
    };
    let (started, pauses) = tokio::join!(work, killing);
    let unfinished = "SELECT count(*) FROM session WHERE last_turn_end IS NULL OR state IN (1, 4)";
    let settling = Instant::now();
    while fleet.execute(unfinished) != "0" {
        let text = || {
            let rows = "SELECT id, state, attempts, node, last_turn_end, head FROM session
                WHERE last_turn_end IS NULL";
            fleet.execute(rows) + &nodes.each_ref().map(|node| node.server.stderr()).concat()
        };
        assert!(settling.elapsed() < Duration::from_secs(120), "{}", text());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let (mut commands, mut unknown) = (0, 0);
    for (number, session) in started.iter().enumerate() {
        let facts = fleet.facts(*session);
        let is_prompt = |fact: &&Fact| matches!(fact, Fact::PromptSubmitted { .. });
        assert_eq!(facts.iter().filter(is_prompt).count(), 1, "{number}: {facts:#?}");
        let mut written: BTreeMap<String, usize> = BTreeMap::new();
        for line in lines(&fleet.path(&format!("journal-{number}"))) {
            *written.entry(line).or_default() += 1;
        }
        assert!(written.values().all(|count| *count == 1), "{number}: {written:?}\n{facts:#?}");
        commands += written.len();
        unknown += COMMANDS - written.len();
    }
    println!(
        "figure: {} sessions, {kills} kills, {commands} commands done, {unknown} not; until the \
         new primary and until the next fact: {pauses:?}",
        started.len()
    );
}
