//! Clients of a node that does not have their session: operations are forwarded or queued, and
//! streams passed through.

use crate::support::server::soon;
use crate::test_fleet::{TestFleet, TestNode, assert_no_gaps};
use std::io::{Read, Write};
use std::net::TcpStream;
use uuid::Uuid;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::{FactRecord, OpId, RequestError, SessionId, SessionOp};
use windlass_server::FrontendService;

/// Sends a prompt under an id, and returns the answer.
async fn send_prompt(node: &TestNode, session: SessionId, id: OpId) -> HostResponse {
    let (host, caller) = (node.host().await, node.caller("ben"));
    let op = SessionOp::prompt("hello");
    let request = FrontendRequest::SessionOp { session, id: Some(id), op };
    soon(host.request(&caller, request)).await.unwrap()
}

fn new_id() -> OpId {
    OpId(Uuid::now_v7())
}

/// Returns how many prompts came of an operation.
fn prompts_of(facts: &[FactRecord], id: OpId) -> usize {
    let is_of = |record: &&FactRecord| record.origin.as_ref().is_some_and(|origin| origin.op == id);
    let of = facts.iter().filter(is_of);
    of.filter(|record| record.fact.kind() == "prompt_submitted").count()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn an_operation_is_forwarded_to_the_node_that_has_the_session() {
    let fleet = TestFleet::start(&["say One.", "say Two."]);
    let (first, second) = (fleet.start_node(), fleet.start_node());
    let mut owner = first.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    owner.wait_for_turn_end().await;

    let id = new_id();
    let answer = send_prompt(&second, owner.session, id).await;
    assert!(matches!(answer, HostResponse::OpAccepted { .. }), "{answer:?}");
    owner.wait_for_turn_end().await;
    assert_eq!(prompts_of(&owner.facts, id), 1);
    // The client of the other node is its author; over the socket it is this machine's user.
    let origin = owner.facts.iter().find_map(|record| record.origin.as_ref()).unwrap();
    let forwarded = owner.facts.iter().rev().find_map(|record| record.origin.as_ref()).unwrap();
    assert_eq!(forwarded.client, origin.client);
    // A second time, it changes nothing.
    let again = send_prompt(&second, owner.session, id).await;
    assert_eq!(again, answer);
    assert_eq!(fleet.execute("SELECT count(*) FROM inbox"), "0");

    // Both nodes list it, and only one has it open.
    let open = FrontendRequest::OpenSession { session: owner.session, resume: true };
    let (host, caller) = (second.host().await, second.caller("ben"));
    let opened = soon(host.request(&caller, open)).await.unwrap();
    let HostResponse::SessionOpened { session, .. } = opened else { panic!("{opened:?}") };
    assert_eq!(session, owner.session);
    let states = soon(host.request(&caller, FrontendRequest::ListOpenSessions)).await.unwrap();
    assert_eq!(states, HostResponse::OpenSessions { sessions: Vec::new() });
    // Deleting it works from everywhere.
    let delete = FrontendRequest::DeleteSession { session: owner.session };
    soon(host.request(&caller, delete)).await.unwrap();
    assert_eq!(fleet.execute("SELECT count(*) FROM session"), "0");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn an_operation_for_a_node_that_cannot_be_reached_is_queued_and_done_once() {
    let fleet = TestFleet::start(&["say One.", "say Two."]);
    // It has no address.
    let (first, second) = (fleet.start_node_with(&[]), fleet.start_node());
    let mut owner = first.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    owner.wait_for_turn_end().await;

    let mut watching = second.watch(owner.session).await;
    let id = new_id();
    for _ in 0..2 {
        assert_eq!(send_prompt(&second, owner.session, id).await, HostResponse::OpQueued);
    }
    owner.wait_for_turn_end().await;
    assert_eq!(prompts_of(&owner.facts, id), 1);
    // The other node reads the facts from the log.
    watching.wait_for_turn_end().await;
    watching.wait_for_turn_end().await;
    assert_no_gaps(&watching.facts);
    assert_eq!(watching.facts.len(), owner.facts.len());
    // An operation without a fact leaves the queue, too.
    let (host, caller) = (second.host().await, second.caller("ben"));
    let op = SessionOp::Interrupt { turn: Some(99) };
    let request = FrontendRequest::SessionOp { session: owner.session, id: Some(new_id()), op };
    assert_eq!(soon(host.request(&caller, request)).await.unwrap(), HostResponse::OpQueued);
    crate::test_fleet::wait_until("the queue is empty", || {
        fleet.execute("SELECT count(*) FROM inbox") == "0"
    });
    let answer =
        soon(host.request(&caller, FrontendRequest::CloseSession { session: owner.session })).await;
    assert!(matches!(answer, Err(RequestError::Unavailable { .. })), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn an_operation_opens_an_idle_session_at_the_node_that_gets_it() {
    let fleet = TestFleet::start(&["say One.", "say Two."]);
    let (first, second) = (fleet.start_node(), fleet.start_node());
    let mut owner = first.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    owner.wait_for_turn_end().await;
    let session = owner.session;
    assert_eq!(first.server.stop(), Some(0));
    assert_eq!(fleet.execute("SELECT state, node IS NULL FROM session"), "0|t");

    let mut client = second.watch(session).await;
    let id = new_id();
    let answer = send_prompt(&second, session, id).await;
    assert!(matches!(answer, HostResponse::OpAccepted { .. }), "{answer:?}");
    client.wait_for_turn_end().await;
    client.wait_for_turn_end().await;
    assert_no_gaps(&client.facts);
    assert_eq!(prompts_of(&client.facts, id), 1);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_session_without_a_prompt_and_attachments_are_known_through_another_node() {
    let fleet = TestFleet::start(&["say I see it."]);
    let (first, second) = (fleet.start_node(), fleet.start_node());
    let owner = first.start_session().await;
    // Nothing of it is stored yet.
    assert_eq!(fleet.execute("SELECT count(*) FROM event"), "0");
    let mut watching = second.watch(owner.session).await;
    let (host, caller) = (second.host().await, second.caller("ben"));
    let put =
        FrontendRequest::PutBlob { name: "a.png".to_owned(), bytes: "iVBORw0KGgo=".to_owned() };
    let HostResponse::BlobStored { attachment } = soon(host.request(&caller, put)).await.unwrap()
    else {
        panic!("the file is stored")
    };
    let digest = attachment.blob.as_str().to_owned();
    let op = SessionOp::Prompt {
        text: "look".to_owned(),
        attachments: vec![attachment],
        delivery: Default::default(),
        settings: Default::default(),
    };
    watching.submit(op).await.unwrap();
    watching.wait_for_turn_end().await;
    assert_no_gaps(&watching.facts);
    let has_file = |record: &FactRecord| {
        serde_json::to_string(&record.fact).unwrap().contains(digest.as_str())
    };
    assert!(watching.facts.iter().any(has_file), "{:?}", watching.facts);
    // One that does not exist is not found.
    let delete = FrontendRequest::DeleteSession { session: SessionId(Uuid::nil()) };
    let answer = soon(host.request(&caller, delete)).await;
    assert!(matches!(answer, Err(RequestError::NotFound { .. })), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn the_token_of_a_node_is_needed_to_speak_for_its_clients() {
    let fleet = TestFleet::start(&["say One."]);
    let node = fleet.start_node();
    let address = node.server.tcp_address();
    let send = |method: &str, path: &str, token: &str, headers: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: 0\r\n\
             Authorization: Bearer {token}\r\n{headers}\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    let token = fleet.execute("SELECT token FROM node");
    let (user, right) = ("Windlass-Node-User: anna\r\n", "Windlass-Node-Right: read\r\n");
    let list = |token: &str, headers: &str| send("GET", "/v1/sessions", token, headers);
    assert_eq!(list(&token, &[user, right].concat()), "200");
    assert_eq!(list(&token, user), "400");
    assert_eq!(list(&token, &[user, "Windlass-Node-Right: root\r\n"].concat()), "400");
    assert_eq!(list("wlt_wrong", &[user, right].concat()), "401");
    // The token of a user does not make it a node.
    let (code, own, stderr) = node.env.run(&["serve", "token", "add", "t", "--right", "read"]);
    assert_eq!(code, 0, "{stderr}");
    let admin = [user, "Windlass-Node-Right: admin\r\n"].concat();
    let missing = format!("/v1/sessions/{}", Uuid::nil());
    assert_eq!(send("DELETE", &missing, own.trim(), &admin), "403");
    assert_eq!(send("DELETE", &missing, &token, &admin), "404");
}
