//! A long run: fifty sessions at work, clients that come and go, and a server that is killed again
//! and again. Its memory must not grow, and each client's view must be the log.

use crate::figures::memory_kb;
use crate::support::TestEnv;
use crate::support::server::{TestServer, caller, connect, soon};
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::session_stream::SessionStreamItem;
use windlass_protocol::{EventCursor, FactRecord, LogPosition, LogSeq, OpId, SessionId, SessionOp};
use windlass_server::{Caller, ClientAttendance, FrontendService, RemoteHost, WatchOptions};
use windlass_testkit::{ModelScript, ScriptedModel};

const SESSIONS: usize = 50;
/// Prompts of a session, before its client begins another one.
const TURNS: usize = 12;
/// Growth of the memory between a server's first quarter and its last, of equal age.
const MAX_GROWTH: f64 = 1.1;

/// The facts of one session as its client has folded them.
type View = Arc<Mutex<BTreeMap<LogSeq, String>>>;

/// Watches a session with one connection after another until `is_over`, and keeps its facts.
async fn watch_again_and_again(
    (host, me, session): &(RemoteHost, Caller, SessionId),
    view: &View,
    is_over: &AtomicBool,
) {
    let mut cursor: EventCursor = LogPosition::START.into();
    while !is_over.load(Ordering::SeqCst) {
        let stay = Duration::from_millis(1_000 + uuid::Uuid::new_v4().as_u128() as u64 % 6_000);
        let leave_at = tokio::time::Instant::now() + stay;
        let (user, after) = (ClientAttendance::Present, Some(cursor.clone()));
        let options = WatchOptions { after, user, without_live_events: false };
        let Ok(mut items) = host.watch_session(me, *session, options).await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        while let Ok(Some(item)) = tokio::time::timeout_at(leave_at, items.next()).await {
            match item {
                SessionStreamItem::Fact(record, after) => {
                    cursor = after;
                    add_fact(view, &record);
                }
                SessionStreamItem::Reset(reset) => {
                    cursor.position = reset.to;
                    view.lock().unwrap().retain(|seq, _| *seq <= reset.to.seq);
                }
                SessionStreamItem::Closing(_) | SessionStreamItem::Stopped(_) => break,
                _ => {}
            }
        }
    }
}

fn add_fact(view: &View, record: &FactRecord) {
    let kind = serde_json::to_value(record).unwrap()["kind"].to_string();
    let earlier = view.lock().unwrap().insert(record.seq, kind);
    assert!(earlier.is_none(), "{} came twice", record.seq);
}

/// Sends prompts to a session, and returns when they are acknowledged or it `is_over`.
async fn send_prompts(
    (host, me, session): &(RemoteHost, Caller, SessionId),
    turns: &AtomicU64,
    is_over: &AtomicBool,
) {
    let mut sent = 0;
    while sent < TURNS && !is_over.load(Ordering::SeqCst) {
        let id = Some(OpId(uuid::Uuid::now_v7()));
        let op = SessionOp::prompt("go on");
        let request = FrontendRequest::SessionOp { session: *session, id, op };
        match host.request(me, request).await {
            Ok(HostResponse::OpAccepted { .. }) => {
                sent += 1;
                turns.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(2_500)).await;
            }
            // The server has started again, and has not opened the session.
            Ok(_) => {
                let open = FrontendRequest::OpenSession { session: *session, resume: true };
                let _ = host.request(me, open).await;
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

/// Works in one session after the other until `is_over`, and returns them.
async fn work_in_sessions(
    (host, me): (RemoteHost, Caller),
    turns: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
) -> Vec<(SessionId, View)> {
    let mut watched = Vec::new();
    while !is_over.load(Ordering::SeqCst) {
        let opened = host.request(&me, FrontendRequest::new_session(None)).await;
        let Ok(HostResponse::SessionOpened { session, .. }) = opened else {
            tokio::time::sleep(Duration::from_millis(200)).await;
            continue;
        };
        let (view, target) = (View::default(), (host.clone(), me.clone(), session));
        let is_done = AtomicBool::new(false);
        let prompting = async {
            send_prompts(&target, &turns, &is_over).await;
            is_done.store(true, Ordering::SeqCst);
        };
        tokio::join!(watch_again_and_again(&target, &view, &is_done), prompting);
        if !is_over.load(Ordering::SeqCst) {
            let _ = host.request(&me, FrontendRequest::CloseSession { session }).await;
        }
        // A server that was killed before the first prompt has nothing on record.
        if !view.lock().unwrap().is_empty() {
            watched.push((session, view));
        }
    }
    watched
}

#[test]
fn a_server_at_work_for_a_long_time_loses_nothing_and_does_not_grow() {
    let minutes: Option<f64> =
        std::env::var("WINDLASS_SOAK_MINUTES").ok().map(|text| text.parse().unwrap());
    // In `.ci/run`, eight sessions and a few kills show that the test itself works.
    let (sessions, duration, life) = match minutes {
        Some(minutes) => {
            (SESSIONS, Duration::from_secs_f64(minutes * 60.0), Duration::from_secs(60))
        }
        None => (8, Duration::from_secs(20), Duration::from_secs(5)),
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(work(sessions, duration, life));
}

async fn work(sessions: usize, duration: Duration, life: Duration) {
    let read = "call read {\"filePath\": \"README.md\"}";
    let model = ScriptedModel::start(ModelScript::endless(move |request| {
        let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
        match messages.last().is_some_and(|message| message["role"] == "tool") {
            true => "say I have read it.\n".to_owned(),
            false => format!("say Reading.\nstall 100\n{read}"),
        }
    }));
    let env = TestEnv::new(&[], "");
    env.write_config(&format!(
        r#"{{"model": "scripted/m", "titles": false, "provider": {{"scripted": {{"api": "openai-chat",
        "base_url": "{}", "api_key": "k", "models": {{"m": {{}}}}}}}}}}"#,
        model.url()
    ));
    let mut server = TestServer::start(&env, &[]);
    let (host, me) = (connect(&env).await, caller(&env));
    let (is_over, turns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..sessions {
        let target = (host.clone(), me.clone());
        clients.spawn(work_in_sessions(target, turns.clone(), is_over.clone()));
    }
    let (start, mut samples, mut kills) = (Instant::now(), Vec::new(), 0);
    while start.elapsed() < duration {
        let started = Instant::now();
        while started.elapsed() < life {
            tokio::time::sleep(Duration::from_millis(250)).await;
            assert!(clients.try_join_next().is_none(), "a client has failed");
        }
        // Servers of the same age are compared: each begins with the sessions of the last one.
        samples.push(memory_kb(server.pid()));
        server.kill();
        server = TestServer::start(&env, &[]);
        kills += 1;
    }
    is_over.store(true, Ordering::SeqCst);
    let mut watched = Vec::new();
    while let Some(done) = clients.join_next().await {
        watched.extend(done.unwrap());
    }
    let done = turns.load(Ordering::SeqCst);
    let count = watched.len();
    println!("figure: {count} sessions, {done} prompts, {kills} kills; kB: {samples:?}");
    assert!(done >= sessions as u64, "{done}");
    // Each client catches up, and has what the log has.
    for (session, view) in watched {
        settle(&host, &me, session).await;
        let stored = env.facts_of(&session.to_string());
        let last = view.lock().unwrap().keys().last().copied().unwrap_or(0);
        let after = Some(LogPosition::unchecked(last).into());
        let options = WatchOptions { after, ..WatchOptions::default() };
        let mut items = host.watch_session(&me, session, options).await.unwrap();
        while view.lock().unwrap().len() < stored.len() {
            if let SessionStreamItem::Fact(record, _) = soon(items.next()).await.unwrap() {
                add_fact(&view, &record);
            }
        }
        let expected: BTreeMap<LogSeq, String> =
            (1..).zip(stored.iter().map(|fact| fact["kind"].to_string())).collect();
        assert_eq!(*view.lock().unwrap(), expected, "{session}");
    }
    if kills >= 8 {
        let quarter = samples.len() / 4;
        let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len() as f64;
        let growth = mean(&samples[samples.len() - quarter..]) / mean(&samples[..quarter]);
        println!("figure: memory of the last servers compared with the first: {growth:.3}");
        assert!(growth < MAX_GROWTH, "{growth}: {samples:?}");
    }
}

/// Opens a session and closes it when its turn has ended.
async fn settle(host: &RemoteHost, me: &Caller, session: SessionId) {
    let open = FrontendRequest::OpenSession { session, resume: true };
    soon(host.request(me, open)).await.unwrap();
    let is_busy = async || {
        let states = host.request(me, FrontendRequest::ListOpenSessions).await.unwrap();
        let HostResponse::OpenSessions { sessions } = states else { panic!("{states:?}") };
        sessions.iter().any(|state| state.session == session && state.is_busy)
    };
    while is_busy().await {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    soon(host.request(me, FrontendRequest::CloseSession { session })).await.unwrap();
}
