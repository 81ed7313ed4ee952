//! A session goes on at another node when its node ends, however that happens.

use crate::database_failures::is_sleeping;
use crate::support::server::soon;
use crate::test_fleet::{TestFleet, assert_no_gaps, kinds, lines, wait_until};
use std::time::{Duration, Instant};
use windlass_protocol::frontend_messages::FrontendRequest;
use windlass_protocol::session_stream::SessionStreamItem;
use windlass_protocol::{CallOutcome, Fact, FactRecord, PermissionAnswer, SessionOp};
use windlass_server::FrontendService;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_turn_goes_on_at_another_node_when_its_node_is_killed() {
    let fleet = TestFleet::start(&["say Half an answer.\nonce gate slow\nsay The rest."]);
    let (first, second) = (fleet.start_node(), fleet.start_node());
    let owner = first.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    fleet.model.wait_at_gate("slow");
    // The other node passes the stream through, with what the model has written so far.
    let mut watching = second.watch(owner.session).await;
    let is_live = |item: &SessionStreamItem| matches!(item, SessionStreamItem::Opened(opening) if opening.is_live);
    assert!(is_live(&watching.next_item().await));
    let killed_at = Instant::now();
    first.server.kill();
    watching.wait_for_turn_end().await;
    println!(
        "figure: from the kill of a process to the end of the turn: {:?}",
        killed_at.elapsed()
    );
    assert!(killed_at.elapsed() < Duration::from_secs(15), "its host tells that it has ended");
    assert_no_gaps(&watching.facts);
    let kinds = kinds(&watching.facts);
    let count = |name: &str| kinds.iter().filter(|kind| *kind == name).count();
    assert_eq!((count("prompt_submitted"), count("turn_started"), count("turn_ended")), (1, 1, 1));
    assert_eq!(fleet.facts(owner.session).len(), watching.facts.len());
    // The session works on.
    watching.submit(SessionOp::RenameSession { title: "later".into() }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_node_that_stops_leaves_its_turns_to_the_others_at_once() {
    let fleet = TestFleet::start(&["say Half.\nonce gate slow\nsay The rest."]);
    let (first, second) = (fleet.start_node(), fleet.start_node());
    let owner = first.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    fleet.model.wait_at_gate("slow");
    let mut watching = second.watch(owner.session).await;
    let stopped_at = Instant::now();
    assert_eq!(first.server.stop(), Some(0));
    watching.wait_for_turn_end().await;
    println!("figure: from SIGTERM to the end of the turn elsewhere: {:?}", stopped_at.elapsed());
    assert!(stopped_at.elapsed() < Duration::from_secs(8), "no lease has to run out");
    assert_no_gaps(&watching.facts);
    assert_eq!(fleet.node_count(), 1);
    // What is idle stays so.
    let state = "SELECT state FROM session WHERE node IS NULL";
    assert_eq!(fleet.execute(state), "");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_paused_node_writes_nothing_after_another_node_has_its_session() {
    let command = r#"call bash {"command": "echo one >> journal", "description": "d"}"#;
    let fleet = TestFleet::start(&[&format!("once gate slow\n{command}"), "say Done."]);
    let (first, second) = (fleet.start_node(), fleet.start_node());
    let owner = first.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    fleet.model.wait_at_gate("slow");
    first.signal("-STOP");
    let mut watching = second.watch(owner.session).await;
    watching.wait_for_turn_end().await;
    assert_no_gaps(&watching.facts);
    let epoch = watching.facts.last().unwrap().epoch;
    if std::env::var_os("WINDLASS_SOAK").is_some() {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    // The answer of its model waits for the node that was paused.
    fleet.model.open_gate("slow");
    first.signal("-CONT");
    first.server.wait_for("joining the fleet again");
    wait_until("the node has joined again", || fleet.node_count() == 2);
    std::thread::sleep(Duration::from_secs(1));
    let after_fence = format!(
        "SELECT count(*) FROM event WHERE session = '{}' AND seq > {}",
        owner.session.0,
        watching.facts.len()
    );
    assert_eq!(fleet.execute(&after_fence), "0");
    assert!(watching.facts.iter().any(|record| record.epoch < epoch), "two nodes wrote it");
    assert_eq!(lines(&fleet.path("journal")), ["one"]);
    // It works as a new node: its clients reach the session again.
    let mut again = first.watch(owner.session).await;
    let answered = again.submit(SessionOp::RenameSession { title: "t".into() }).await;
    answered.unwrap();
    let is_renamed = |record: &windlass_protocol::FactRecord| match &record.fact {
        Fact::SessionRenamed { title, .. } => Some(title.clone()),
        _ => None,
    };
    assert_eq!(soon(again.wait_for_fact(is_renamed)).await, "t");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_change_of_a_node_that_has_ended_is_undone_at_another_one() {
    let write = r#"call bash {"command": "echo new > file", "description": "d"}"#;
    let fleet = TestFleet::start(&[write, "say Done."]);
    let (first, second) = (fleet.start_node(), fleet.start_node());
    std::fs::write(fleet.path("file"), "old\n").unwrap();
    let mut owner = first.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    owner.wait_for_turn_end().await;
    assert_eq!(lines(&fleet.path("file")), ["new"]);
    assert_eq!(first.server.stop(), Some(0));
    let mut client = second.watch(owner.session).await;
    client.wait_for_turn_end().await;
    let is_change = |record: &FactRecord| matches!(record.fact, Fact::FilesChanging { .. });
    let change = client.facts.iter().find(|record| is_change(record)).unwrap().seq;
    client.submit(SessionOp::Undo { facts: vec![change] }).await.unwrap();
    client.wait_for_turn_end().await;
    assert_eq!(lines(&fleet.path("file")), ["old"]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn an_idle_session_survives_any_number_of_killed_nodes() {
    let fleet = TestFleet::start(&["say One."]);
    let (first, second) = (fleet.start_node(), fleet.start_node());
    let mut owner = first.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    owner.wait_for_turn_end().await;
    let (session, state) = (owner.session, || fleet.execute("SELECT state, attempts FROM session"));
    let mut node = first;
    for _ in 0..4 {
        assert!(state().starts_with("2|"), "{}", state());
        node = fleet.replace_process(node);
        wait_until("the session is idle", || state() == "0|0");
        let (host, caller) = (node.host().await, node.caller("anna"));
        let open = FrontendRequest::OpenSession { session, resume: true };
        soon(host.request(&caller, open)).await.unwrap();
    }
    drop(second);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_question_stays_open_when_its_node_ends_and_is_answered_elsewhere() {
    let ask = r#"call question {"questions": [{"question": "Which?", "header": "h", "options":
        [{"label": "a", "description": "d"}, {"label": "b", "description": "d"}]}]}"#;
    let fleet = TestFleet::start(&[&ask.replace('\n', " "), "say Thanks."]);
    let (first, second) = (fleet.start_node_with(&["--idle-timeout", "1"]), fleet.start_node());
    let mut owner = first.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    let is_question = |record: &windlass_protocol::FactRecord| match &record.fact {
        Fact::QuestionAsked { call, .. } => Some(*call),
        _ => None,
    };
    let call = owner.wait_for_fact(is_question).await;
    // The session costs nothing until it is answered.
    let state = || fleet.execute("SELECT state, node IS NULL FROM session");
    assert_eq!(state(), "2|f");
    let (session, is_closed) = (owner.session, || state() == "3|t");
    drop(owner);
    wait_until("the session without clients is closed", is_closed);
    assert_eq!(first.server.stop(), Some(0));
    assert_eq!(state(), "3|t");
    let mut client = second.watch(session).await;
    let answers = vec![vec!["a".to_owned()]];
    client.submit(SessionOp::answer_question(call, answers)).await.unwrap();
    client.wait_for_turn_end().await;
    assert_no_gaps(&client.facts);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_command_of_a_killed_node_ends_and_its_result_is_unknown() {
    let command = r#"call bash {"command": "echo one >> journal; sleep 303", "description": "d",
        "timeout": 400000}"#;
    let fleet = TestFleet::start(&[&command.replace('\n', " "), "say Done."]);
    let (first, second) = (fleet.start_node(), fleet.start_node());
    let owner = first.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    wait_until("the command runs", || is_sleeping("303"));
    let mut watching = second.watch(owner.session).await;
    first.server.kill();
    watching.wait_for_turn_end().await;
    let outcomes: Vec<&CallOutcome> = watching
        .facts
        .iter()
        .filter_map(|record| match &record.fact {
            Fact::CallSettled { outcome, .. } => Some(outcome),
            _ => None,
        })
        .collect();
    assert!(matches!(outcomes[..], [CallOutcome::ResultUnknown]), "{outcomes:?}");
    wait_until("the command has ended", || !is_sleeping("303"));
    assert_eq!(lines(&fleet.path("journal")), ["one"]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn an_answer_that_was_acknowledged_stands_at_the_next_node() {
    let command = r#"call bash {"command": "echo one >> journal; sleep 2", "description": "d"}"#;
    let fleet = TestFleet::start(&[command, "say Done."]);
    let config = fleet.config("ask");
    let first = fleet.start_node_with_config(&config);
    let second = fleet.start_node_with_config(&config);
    let mut owner = first.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    let (call, _) = owner.wait_for_question().await;
    owner.submit(SessionOp::answer_permission(call, PermissionAnswer::Once)).await.unwrap();
    first.server.kill();
    let mut watching = second.watch(owner.session).await;
    watching.wait_for_turn_end().await;
    assert_no_gaps(&watching.facts);
    let kinds = kinds(&watching.facts);
    let count = |name: &str| kinds.iter().filter(|kind| *kind == name).count();
    assert_eq!((count("permission_asked"), count("permission_answered")), (1, 1), "{kinds:?}");
    assert!(lines(&fleet.path("journal")).len() <= 1, "it does not run twice");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_client_that_is_moved_to_another_node_misses_nothing() {
    let fleet = TestFleet::start(&["say One.", "once gate slow\nsay Two.", "say Three."]);
    let (first, second) = (fleet.start_node(), fleet.start_node());
    let mut owner = first.start_session().await;
    owner.submit(SessionOp::prompt("first")).await.unwrap();
    owner.wait_for_turn_end().await;
    owner.submit(SessionOp::prompt("second")).await.unwrap();
    fleet.model.wait_at_gate("slow");
    // A load balancer gives the next connection to the other node.
    let mut moved = second.watch_after(&owner).await;
    fleet.model.open_gate("slow");
    moved.wait_for_turn_end().await;
    let mut back = first.watch_after(&moved).await;
    back.submit(SessionOp::prompt("third")).await.unwrap();
    back.wait_for_turn_end().await;
    assert_no_gaps(&back.facts);
    assert_eq!(back.facts.len(), fleet.facts(back.session).len());
}
