//! A server that is killed at random moments while clients attach and send operations (R6): every
//! acknowledged operation is on record, none twice, and the client's facts are those of the log.

use crate::session_client::SessionClient;
use crate::support::TestEnv;
use crate::support::server::{TestServer, caller, connect};
use crate::user_story::wait_until;
use futures_util::StreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use uuid::Uuid;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::session_stream::SessionStreamItem;
use windlass_protocol::{FactRecord, LogPosition, OpId, SessionId, SessionOp};
use windlass_server::{ClientAttendance, FrontendService, WatchOptions};

/// Kills in `.ci/run`, and in the soak.
const KILLS: u64 = 12;
const SOAK_KILLS: u64 = 200;

/// A small generator of numbers, so that a failure can be repeated.
fn next_random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Sends prompts until the server is killed, each under an id that is repeated until it is
/// answered. Returns the numbers of the acknowledged ones.
async fn send_prompts(env: &TestEnv, session: SessionId, first: u64) -> u64 {
    let host = connect(env).await;
    let me = caller(env);
    let mut number = first;
    loop {
        let id = Some(OpId(Uuid::from_u128(
            0x0190_0000_0000_7000_8000_0000_0000_0000 + u128::from(number),
        )));
        let op = SessionOp::prompt(format!("prompt {number}."));
        let request = FrontendRequest::SessionOp { session, id, op };
        let open = FrontendRequest::OpenSession { session, resume: true };
        match host.request(&me, request).await {
            Ok(HostResponse::OpAccepted { .. }) => number += 1,
            // The server has restarted and has not opened the session.
            Ok(HostResponse::OpRejected { .. }) => drop(host.request(&me, open).await),
            Ok(other) => panic!("{other:?}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
        if number.is_multiple_of(5) {
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        if number - first >= 1_000_000 {
            return number;
        }
        ACKNOWLEDGED.store(number, std::sync::atomic::Ordering::SeqCst);
    }
}

/// The number of prompts that were acknowledged.
static ACKNOWLEDGED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_loses_and_repeats_no_acknowledged_operation() {
    let kills = match std::env::var_os("WINDLASS_SOAK") {
        Some(_) => SOAK_KILLS,
        None => KILLS,
    };
    let replies = vec!["say Fine."; 100_000];
    let env = Arc::new(TestEnv::new(&replies, r#""titles": false"#));
    let mut server = TestServer::start(&env, &[]);
    let session = SessionClient::start(&env).await.session;
    let (host, me) = (connect(&env).await, caller(&env));
    let sender_env = Arc::clone(&env);
    let sender = tokio::spawn(async move { send_prompts(&sender_env, session, 0).await });
    let watched: Arc<Mutex<Vec<FactRecord>>> = Arc::default();
    let facts = Arc::clone(&watched);
    let collector = tokio::spawn(async move {
        let after = Some(LogPosition::START.into());
        let options = WatchOptions { after, user: ClientAttendance::Present, ..Default::default() };
        let mut items = host.watch_session(&me, session, options).await.unwrap();
        while let Some(item) = items.next().await {
            match item {
                SessionStreamItem::Fact(record, _) => facts.lock().unwrap().push(*record),
                SessionStreamItem::Reset(reset) => {
                    facts.lock().unwrap().retain(|record| record.seq <= reset.to.seq);
                }
                _ => {}
            }
        }
    });
    let mut random = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(next_random(&mut random) % 400)).await;
        server.kill();
        server = TestServer::start(&env, &[]);
    }
    wait_until(|| ACKNOWLEDGED.load(std::sync::atomic::Ordering::SeqCst) > kills);
    sender.abort();
    let acknowledged = ACKNOWLEDGED.load(std::sync::atomic::Ordering::SeqCst);
    // All prompts are processed before the session is closed.
    let last = SessionClient::open(&env, session).await;
    let is_idle = async || {
        let states = last.host.request(&last.caller, FrontendRequest::ListOpenSessions).await;
        let Ok(HostResponse::OpenSessions { sessions }) = states else { return false };
        sessions.iter().all(|state| !state.is_busy)
    };
    while !is_idle().await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let close = FrontendRequest::CloseSession { session };
    last.host.request(&last.caller, close).await.unwrap();

    let stored = env.facts_of(&session.to_string());
    wait_until(|| watched.lock().unwrap().len() >= stored.len());
    collector.abort();
    let positions: Vec<u64> = watched.lock().unwrap().iter().map(|record| record.seq).collect();
    assert_eq!(positions, (1..=stored.len() as u64).collect::<Vec<_>>(), "the client's facts");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for fact in stored.iter().filter(|fact| fact["kind"] == "prompt_submitted") {
        *counts.entry(fact["text"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    let repeated: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
    assert!(repeated.is_empty(), "{repeated:?}");
    let recorded: BTreeSet<&str> = counts.keys().map(String::as_str).collect();
    for number in 0..acknowledged {
        assert!(recorded.contains(format!("prompt {number}.").as_str()), "{number} is lost");
    }
    println!("{kills} kills, {acknowledged} prompts, {} facts", stored.len());
}

/// A session that was under way goes on after a crash, and is left alone after three starts of the
/// server that crashed soon.
#[test]
fn a_turn_goes_on_after_a_crash_but_not_after_many_in_a_row() {
    for is_killed in [true, false] {
        let env = TestEnv::new(&["once gate first\nsay Saved."], "");
        let server = TestServer::start(&env, &[]);
        let mut run = env.windlass(&["run", "--attach", "hello"]).spawn().unwrap();
        env.model.wait_at_gate("first");
        run.kill().unwrap();
        run.wait().unwrap();
        match is_killed {
            true => server.kill(),
            false => assert_eq!(server.stop(), Some(0)),
        }
        // The request under way is repeated.
        let server = TestServer::start(&env, &[]);
        wait_until(|| env.run(&["ps"]).1.contains("idle"));
        let session = env.last_session_id();
        let facts = serde_json::to_string(&env.facts_of(&session)).unwrap();
        assert!(facts.contains("Saved."), "{is_killed}: {facts}");
        drop(server);
    }

    let stuck: Vec<&str> = vec!["gate stuck\nsay never"; 20];
    let env = TestEnv::new(&stuck, "");
    let mut server = TestServer::start(&env, &[]);
    let mut run = env.windlass(&["run", "--attach", "hello"]).spawn().unwrap();
    env.model.wait_at_gate("stuck");
    run.kill().unwrap();
    run.wait().unwrap();
    let mut is_left_alone = false;
    for _ in 0..8 {
        server.kill();
        server = TestServer::start(&env, &[]);
        std::thread::sleep(Duration::from_millis(300));
        if server.stderr().contains("is not resumed: the server crashed soon") {
            is_left_alone = true;
            break;
        }
    }
    assert!(is_left_alone, "{}", server.stderr());
    assert_eq!(env.run(&["ps"]).1, "", "the session is not open");
}

/// A start that fails because an address is in use is not the fault of a session.
#[test]
fn an_address_in_use_counts_against_no_session() {
    let env = TestEnv::new(&["gate stuck\nsay Saved."; 20], "");
    let server = TestServer::start(&env, &[]);
    let mut run = env.windlass(&["run", "--attach", "hello"]).spawn().unwrap();
    env.model.wait_at_gate("stuck");
    run.kill().unwrap();
    run.wait().unwrap();
    server.kill();
    let occupied = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = occupied.local_addr().unwrap().to_string();
    for _ in 0..5 {
        let (code, _, stderr) = env.run(&["serve", "--listen", &address]);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains("cannot listen on"), "{stderr}");
    }
    let server = TestServer::start(&env, &[]);
    env.model.wait_at_gate("stuck");
    assert!(env.run(&["ps"]).1.contains("working"), "{}", server.stderr());
}
