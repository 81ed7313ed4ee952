//! Several clients that answer at the same time (N9): the first answer counts, the other one is
//! told whose it was, and an answer to another question changes nothing.

use crate::session_client::SessionClient;
use crate::support::TestEnv;
use crate::support::server::TestServer;
use windlass_protocol::{Fact, OpError, PermissionAnswer, SessionOp};

/// Rounds in `.ci/run`, and in the soak.
const ROUNDS: usize = 50;
const SOAK_ROUNDS: usize = 1_000;

#[tokio::test(flavor = "multi_thread")]
async fn of_two_answers_at_once_exactly_one_counts() {
    let rounds = match std::env::var_os("WINDLASS_SOAK") {
        Some(_) => SOAK_ROUNDS,
        None => ROUNDS,
    };
    let call = |round: usize| format!("call bash {{\"command\": \"touch file-{round}\"}}");
    let mut replies: Vec<String> = (0..rounds).map(call).collect();
    replies.push("say Done.".to_owned());
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let env = TestEnv::new(&replies, r#""mode": "ask""#);
    let _server = TestServer::start(&env, &[]);
    let mut first = SessionClient::start(&env).await;
    let second = SessionClient::open(&env, first.session).await;
    first.submit(SessionOp::prompt("make files")).await.unwrap();
    let mut wins = [0; 2];
    for round in 0..rounds {
        let (call, asked) = first.wait_for_question().await;
        let answer = |asked| SessionOp::AnswerPermission {
            call,
            answer: PermissionAnswer::Once,
            asked: Some(asked),
        };
        // An answer to an older question is refused, whatever it says.
        assert_eq!(second.submit(answer(asked - 1)).await, Err(OpError::NoQuestion), "{round}");
        let answers = tokio::join!(first.submit(answer(asked)), second.submit(answer(asked)));
        let (accepted, refused, winner) = match answers {
            (Ok(seq), Err(error)) => (seq, error, 0),
            (Err(error), Ok(seq)) => (seq, error, 1),
            other => panic!("round {round}: {other:?}"),
        };
        wins[winner] += 1;
        let OpError::AlreadyAnswered { by, seq } = refused else { panic!("{round}: {refused:?}") };
        assert!(by.is_some() && seq <= accepted, "{round}: {by:?} {seq} {accepted}");
    }
    first.wait_for_turn_end().await;
    let is_answer = |fact: &Fact| matches!(fact, Fact::PermissionAnswered { .. });
    let answers = first.facts.iter().filter(|record| is_answer(&record.fact)).count();
    assert_eq!(answers, rounds);
    assert!((0..rounds).all(|round| env.root().join(format!("file-{round}")).exists()));
    println!("the first client won {} times, the second {}", wins[0], wins[1]);
}
