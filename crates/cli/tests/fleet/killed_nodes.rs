//! Three nodes, one of which is killed again and again while sessions work: no command runs twice,
//! and every session ends its turn.

use crate::test_fleet::{TestFleet, lines};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use uuid::Uuid;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::{Fact, OpId, SessionId, SessionOp};
use windlass_server::FrontendService;
use windlass_testkit::ModelScript;

/// Commands of a turn.
pub const COMMANDS: usize = 4;

/// Returns the replies of the model: each conversation names itself in its prompt, and each of its
/// commands writes a line of its own.
pub fn script() -> ModelScript {
    ModelScript::endless(|request| {
        let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let text = |message: &serde_json::Value| message["content"].to_string();
        let texts = messages.iter().filter(|message| message["role"] == "user").map(text);
        let names = texts.filter_map(|text| {
            let (_, name) = text.split_once("session-")?;
            Some(name.chars().take_while(char::is_ascii_digit).collect::<String>())
        });
        let name = names.max().unwrap_or_default();
        let answers = messages.iter().filter(|message| message["role"] == "assistant").count();
        match answers < COMMANDS {
            true => format!(
                "stall 300\ncall bash {{\"command\": \"echo {name}-{answers} >> journal-{name}\", \
                 \"description\": \"d\"}}"
            ),
            false => "say Done.".to_owned(),
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn killed_nodes_lose_no_session_and_repeat_no_command() {
    // The whole trial is a part of the soak.
    let (sessions, duration) = match std::env::var_os("WINDLASS_SOAK") {
        Some(_) => (200, Duration::from_secs(300)),
        None => (12, Duration::from_secs(15)),
    };
    let fleet = TestFleet::with_model(script());
    let mut nodes = vec![fleet.start_node(), fleet.start_node(), fleet.start_node()];
    let mut started: Vec<SessionId> = Vec::new();
    let start = Instant::now();
    let (mut kills, mut next_kill) = (0, Duration::from_secs(5));
    while start.elapsed() < duration || started.len() < sessions {
        if start.elapsed() >= next_kill {
            let node = nodes.remove(kills % nodes.len());
            nodes.push(fleet.replace_process(node));
            kills += 1;
            next_kill += Duration::from_secs(5);
        }
        let due = sessions as f64 * start.elapsed().as_secs_f64() / duration.as_secs_f64();
        if started.len() < sessions && started.len() as f64 <= due {
            let node = &nodes[started.len() % nodes.len()];
            let (host, caller) = (node.host().await, node.caller("anna"));
            let opened = host.request(&caller, FrontendRequest::new_session(None)).await;
            let Ok(HostResponse::SessionOpened { session, .. }) = opened else {
                panic!("{opened:?}: {}", node.server.stderr())
            };
            let op = SessionOp::prompt(format!("session-{}", started.len()));
            let id = Some(OpId(Uuid::now_v7()));
            let request = FrontendRequest::SessionOp { session, id, op };
            let answer = host.request(&caller, request).await;
            assert!(matches!(answer, Ok(HostResponse::OpAccepted { .. })), "{answer:?}");
            started.push(session);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let unfinished =
        || "SELECT count(*) FROM session WHERE last_turn_end IS NULL OR state IN (1, 4)".to_owned();
    let settling = Instant::now();
    while fleet.execute(&unfinished()) != "0" {
        assert!(
            settling.elapsed() < Duration::from_secs(120),
            "{}\n{}",
            fleet.execute("SELECT id, state, attempts, node, last_turn_end, head FROM session"),
            nodes.iter().map(|node| node.server.stderr()).collect::<String>()
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let (mut commands, mut unknown, mut epochs) = (0, 0, 0);
    for (number, session) in started.iter().enumerate() {
        let journal = lines(&fleet.path(&format!("journal-{number}")));
        let mut written: BTreeMap<&String, usize> = BTreeMap::new();
        journal.iter().for_each(|line| *written.entry(line).or_default() += 1);
        let facts = fleet.facts(*session);
        assert!(written.values().all(|count| *count == 1), "{number}: {journal:?}\n{facts:#?}");
        let starts = facts.iter().filter(|fact| matches!(fact, Fact::CallStarted { .. })).count();
        assert!(journal.len() <= starts, "{number}: {journal:?}");
        let ends = facts.iter().filter(|fact| matches!(fact, Fact::TurnEnded { .. })).count();
        assert_eq!(ends, 1, "{number}: {facts:#?}");
        commands += journal.len();
        unknown += COMMANDS - journal.len().min(COMMANDS);
        let sql =
            format!("SELECT count(DISTINCT epoch) FROM event WHERE session = '{}'", session.0);
        epochs += fleet.execute(&sql).parse::<usize>().unwrap() - 1;
    }
    println!(
        "figure: {sessions} sessions, {kills} kills, {epochs} takeovers, {commands} commands done, \
         {unknown} not"
    );
    assert!(kills > 1 && epochs > 0, "{kills} kills, {epochs} takeovers");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn fifty_sessions_of_a_node_that_stops_repeat_at_most_the_step_that_was_cut_off() {
    const SESSIONS: usize = 50;
    let fleet = TestFleet::with_model(script());
    let (first, second) = (fleet.start_node(), fleet.start_node());
    let (host, caller) = (first.host().await, first.caller("anna"));
    let mut started = Vec::new();
    for number in 0..SESSIONS {
        let opened = host.request(&caller, FrontendRequest::new_session(None)).await;
        let Ok(HostResponse::SessionOpened { session, .. }) = opened else { panic!("{opened:?}") };
        let op = SessionOp::prompt(format!("session-{number}"));
        let request = FrontendRequest::SessionOp { session, id: Some(OpId(Uuid::now_v7())), op };
        host.request(&caller, request).await.unwrap();
        started.push(session);
    }
    let stopped_at = Instant::now();
    first.signal("-TERM");
    let of_second = "SELECT count(*) FROM session WHERE state = 2 AND node IN (
        SELECT id FROM node WHERE NOT is_draining)";
    while fleet.execute(of_second) == "0" {
        assert!(stopped_at.elapsed() < Duration::from_secs(20), "{}", second.server.stderr());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let first_elsewhere = stopped_at.elapsed();
    let unfinished = "SELECT count(*) FROM session WHERE last_turn_end IS NULL OR state IN (1, 4)";
    while fleet.execute(unfinished) != "0" {
        assert!(stopped_at.elapsed() < Duration::from_secs(120), "{}", second.server.stderr());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mut repeated = 0;
    for (number, session) in started.iter().enumerate() {
        let facts = fleet.facts(*session);
        let count = |kind: &str| facts.iter().filter(|fact| fact.kind() == kind).count();
        assert_eq!(count("turn_ended"), 1, "{number}: {facts:#?}");
        let steps = count("step_started");
        assert!(steps <= COMMANDS + 2, "{number}: {steps} steps");
        repeated += steps - (COMMANDS + 1).min(steps);
        let journal = lines(&fleet.path(&format!("journal-{number}")));
        let distinct: std::collections::BTreeSet<&String> = journal.iter().collect();
        assert_eq!(distinct.len(), journal.len(), "{number}: {journal:?}");
    }
    println!(
        "figure: {SESSIONS} sessions; the first one goes on after {first_elsewhere:?}, all turns \
         ended after {:?}, {repeated} steps repeated",
        stopped_at.elapsed()
    );
}
