//! Sessions that move between a terminal and the server, and sessions that another process runs.

use crate::session_client::SessionClient;
use crate::support::TestEnv;
use crate::support::server::{TestServer, caller, connect};
use crate::user_story::wait_until;
use futures_util::StreamExt;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::session_stream::SessionStreamItem;
use windlass_protocol::{Fact, Fault, RequestError, SessionOp};
use windlass_server::{FrontendService, WatchOptions};

/// A session moves to the server while its command runs, which is not cut off, and back again.
#[test]
fn a_session_is_handed_over_and_taken_back() {
    let command = "call bash {\"command\": \"touch began; sleep 1; touch ended\"}";
    let replies = [command, "gate moved\nsay It went on there.", "say And here again."];
    let env = TestEnv::new(&replies, r#""mode": "full""#);
    let server = TestServer::start(&env, &[]);
    let mut terminal = env.terminal().start();
    terminal.wait_text(" · m ");
    terminal.press("go\r");
    wait_until(|| env.read("began").is_some());
    terminal.press("/detach\r");
    assert!(terminal.end().success());
    assert!(env.read("ended").is_some(), "the command was cut off");
    env.model.wait_at_gate("moved");
    let ps = || env.run(&["ps"]).1;
    wait_until(|| ps().contains("working"));
    env.model.open_gate("moved");
    wait_until(|| ps().contains("idle"));
    let session = env.last_session_id();
    let facts = env.facts_of(&session);
    let text = serde_json::to_string(&facts).unwrap();
    assert!(text.contains("It went on there.") && !text.contains("result_unknown"), "{text}");

    let terminal = env.terminal().with(&["--session", &session]).start();
    terminal.wait_text("It went on there.");
    terminal.wait_text("Took the session back");
    assert_eq!(ps(), "");
    terminal.press("more\r");
    terminal.wait_text("And here again.");
    drop(server);
}

/// A server with 64 open sessions takes no other: a session that a terminal hands over goes on there.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_opens_no_session_and_takes_none() {
    let env = TestEnv::new(&["say First.", "say Second."], "");
    let mut terminal = env.terminal().start();
    terminal.wait_text(" · m ");
    terminal.press("hello\r");
    terminal.wait_text("First.");
    let _server = TestServer::start(&env, &[]);
    let (host, caller) = (connect(&env).await, caller(&env));
    let start = || host.request(&caller, FrontendRequest::new_session(None));
    let mut opened = None;
    for _ in 0..64 {
        opened = Some(start().await.unwrap());
    }
    let refused = start().await;
    assert!(matches!(refused, Err(RequestError::TooMany { .. })), "{refused:?}");

    terminal.press("/detach\r");
    terminal.wait_text("too many sessions are open: 64. Close one first");
    terminal.press("more\r");
    terminal.wait_text("Second.");

    let Some(HostResponse::SessionOpened { session, .. }) = opened else { panic!("{opened:?}") };
    host.request(&caller, FrontendRequest::CloseSession { session }).await.unwrap();
    terminal.press("/detach\r");
    assert!(terminal.end().success());
    let (_, ps, _) = env.run(&["ps"]);
    assert!(ps.contains(&env.last_session_id()), "{ps}");
}

#[test]
fn without_a_server_a_session_stays_in_its_terminal() {
    let env = TestEnv::new(&["say Hi."], "");
    let terminal = env.terminal().start();
    terminal.wait_text(" · m ");
    terminal.press("hello\r");
    terminal.wait_text("Hi.");
    terminal.press("/detach\r");
    terminal.wait_text("no server runs on this machine");
    terminal.press("\r");
}

/// The server of an attached terminal starts again: the session goes on with the next prompt.
#[test]
fn an_attached_terminal_goes_on_after_the_server_started_again() {
    let env = TestEnv::new(&["say First.", "say Second."], "");
    env.decline_trust(&env.root());
    let mut server = TestServer::start(&env, &[]);
    let terminal = env.first_terminal().with(&["attach", "--prompt", "hello"]).start();
    terminal.wait_text("First.");
    let (code, _, stderr) = env.run(&["serve", "stop"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(server.wait(), Some(0), "{}", server.stderr());
    terminal.wait_text("disconnected, reconnecting");
    let _server = TestServer::start(&env, &[]);
    terminal.wait_text("Connected to the server again.");
    terminal.press("more\r");
    terminal.wait_text("Second.");
}

#[test]
fn attaching_with_a_wrong_model_says_so() {
    let env = TestEnv::new(&[], "");
    let _server = TestServer::start(&env, &[]);
    let mut terminal = env.first_terminal().with(&["attach", "--model", "nobody/x"]).start();
    terminal.wait_text("unknown provider `nobody`");
    assert_eq!(terminal.end().code(), Some(2));
}

/// A session that a run in another process has open can be watched, but not changed.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_another_process_is_watched_as_its_log_grows() {
    let env = TestEnv::new(&["say One.\ngate more\nsay Two.", "say Three."], "");
    let mut run = env.windlass(&["run", "hello"]).spawn().unwrap();
    env.model.wait_at_gate("more");
    let session = env.last_session_id().parse().unwrap();
    let _server = TestServer::start(&env, &[]);
    let (host, caller) = (connect(&env).await, caller(&env));
    let open = || host.request(&caller, FrontendRequest::OpenSession { session, resume: true });
    let busy = open().await;
    assert!(
        matches!(busy, Err(RequestError::Failed { fault: Fault::SessionBusy { .. } })),
        "{busy:?}"
    );
    let options = WatchOptions { after: Some("0".parse().unwrap()), ..WatchOptions::default() };
    let mut items = host.watch_session(&caller, session, options).await.unwrap();
    let Some(SessionStreamItem::Opened(opening)) = items.next().await else { panic!() };
    assert!(!opening.is_live);
    env.model.open_gate("more");
    let mut texts = Vec::new();
    while texts.last().is_none_or(|text| text != "end") {
        let item = tokio::time::timeout(crate::support::server::PATIENCE, items.next()).await;
        if let SessionStreamItem::Fact(record, _) = item.unwrap().unwrap() {
            match record.fact {
                Fact::ModelText { text, .. } => texts.push(text),
                Fact::TurnEnded { .. } => texts.push("end".to_owned()),
                _ => {}
            }
        }
    }
    assert!(texts.concat().contains("One.") && texts.concat().contains("Two."), "{texts:?}");
    run.wait().unwrap();

    // Now it can be opened, and the same stream goes on with live events.
    let opened = open().await.unwrap();
    assert!(matches!(opened, HostResponse::SessionOpened { .. }), "{opened:?}");
    let client = SessionClient::open(&env, session).await;
    client.submit(SessionOp::prompt("again")).await.unwrap();
    let (mut is_live, mut has_text) = (false, false);
    while !(is_live && has_text) {
        let item = tokio::time::timeout(crate::support::server::PATIENCE, items.next()).await;
        match item.unwrap().unwrap() {
            SessionStreamItem::Opened(opening) => is_live = opening.is_live,
            SessionStreamItem::Fact(record, _) => {
                has_text |=
                    matches!(&record.fact, Fact::ModelText { text, .. } if text == "Three.");
            }
            _ => {}
        }
    }
}
