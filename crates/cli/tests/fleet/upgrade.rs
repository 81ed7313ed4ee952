//! Nodes of this release and of one with the next format of facts, side by side on one database.
//! `cargo xtask soak` builds the other release.

use crate::killed_nodes::{COMMANDS, script};
use crate::test_fleet::{TestFleet, TestNode, lines};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use uuid::Uuid;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::{OpId, SessionOp};
use windlass_server::FrontendService;

/// Time between the starts of two sessions.
const START_INTERVAL: Duration = Duration::from_secs(1);
/// Time between the restarts of two nodes.
const RESTART_INTERVAL: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and the next release"]
async fn nodes_of_this_and_the_next_release_share_a_database() {
    let next = std::env::var_os("WINDLASS_NEXT_RELEASE").map(PathBuf::from);
    let next = next.expect("WINDLASS_NEXT_RELEASE is a binary with the next format of facts");
    let duration = match std::env::var_os("WINDLASS_SOAK") {
        Some(_) => Duration::from_secs(600),
        None => Duration::from_secs(40),
    };
    let fleet = TestFleet::with_model(script());
    let start_node = |number: usize| match number % 2 {
        0 => fleet.start_node(),
        _ => fleet.start_node_of(&next),
    };
    let mut nodes: Vec<TestNode> = (0..2).map(start_node).collect();
    let (start, mut started, mut restarts) = (Instant::now(), Vec::new(), 0);
    while start.elapsed() < duration {
        let node = &nodes[started.len() % 2];
        let (host, caller) = (node.host().await, node.caller("anna"));
        let opened = host.request(&caller, FrontendRequest::new_session(None)).await;
        let Ok(HostResponse::SessionOpened { session, .. }) = opened else { panic!("{opened:?}") };
        let op = SessionOp::prompt(format!("session-{}", started.len()));
        let request = FrontendRequest::SessionOp { session, id: Some(OpId(Uuid::now_v7())), op };
        let answer = host.request(&caller, request).await;
        assert!(matches!(answer, Ok(HostResponse::OpAccepted { .. })), "{answer:?}");
        started.push(session);
        if start.elapsed() > RESTART_INTERVAL * (restarts + 1) {
            // A node of each release is there when the next session begins.
            let number = restarts as usize % 2;
            let stopped = std::mem::replace(&mut nodes[number], start_node(number));
            assert_eq!(stopped.server.stop(), Some(0));
            restarts += 1;
        }
        tokio::time::sleep(START_INTERVAL).await;
    }
    let unfinished = "SELECT count(*) FROM session WHERE last_turn_end IS NULL OR state IN (1, 4)";
    let settling = Instant::now();
    while fleet.execute(unfinished) != "0" {
        let rows = "SELECT id, state, attempts, fact_format, head FROM session";
        assert!(settling.elapsed() < Duration::from_secs(60), "{}", fleet.execute(rows));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for number in 0..started.len() {
        let mut written: BTreeMap<String, usize> = BTreeMap::new();
        for line in lines(&fleet.path(&format!("journal-{number}"))) {
            *written.entry(line).or_default() += 1;
        }
        assert!(written.len() <= COMMANDS && written.values().all(|count| *count == 1));
    }
    // A session goes from the old format to the new one, and not back.
    let back = "SELECT count(*) FROM event AS later JOIN event AS earlier
        ON later.session = earlier.session AND later.seq = earlier.seq + 1
        WHERE later.format < earlier.format";
    assert_eq!(fleet.execute(back), "0");
    let formats = "SELECT count(DISTINCT fact_format) FROM session";
    assert_eq!(fleet.execute(formats), "2", "both releases have worked");
    let moved = "SELECT count(*) FROM (SELECT session FROM event GROUP BY session
        HAVING count(DISTINCT format) = 2) AS moved";
    println!(
        "figure: {} sessions, {restarts} restarts, {} sessions moved to the next release",
        started.len(),
        fleet.execute(moved)
    );
}
