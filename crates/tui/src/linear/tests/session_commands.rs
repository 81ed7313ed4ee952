//! Tests that every `/` command works in the linear mode.

use super::{SESSION, TestLinearUi};
use crate::keys::COMMAND_TABLE;
use expect_test::expect;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::{
    ContextUsagePart, Fact, Message, MessagePart, MessageRole, PromptHistoryRow, QueryReply,
    SessionOp, Transcript, TurnEndReason, UnixMillis,
};

fn with_session() -> TestLinearUi {
    let mut env = TestLinearUi::with_running_turn();
    env.fact(Fact::TurnEnded { turn: 1, end: TurnEndReason::Completed });
    (env.lines, env.sent) = (Vec::new(), Vec::new());
    env
}

#[test]
fn every_command_works_with_and_without_a_session() {
    for has_session in [false, true] {
        for entry in COMMAND_TABLE.iter().filter(|entry| entry.is_slash_command) {
            for arguments in ["", " 1"] {
                let mut env = if has_session { with_session() } else { TestLinearUi::new() };
                (env.lines, env.sent) = (Vec::new(), Vec::new());
                env.enter_line(&format!("/{}{arguments}", entry.name));
                let name = entry.name;
                assert!(
                    !env.lines.is_empty() || !env.sent.is_empty() || env.quit,
                    "/{name} does nothing"
                );
                let lines = env.lines.join("\n");
                for refusal in ["no effect", "not available", "full screen"] {
                    assert!(!lines.contains(refusal), "/{name}: {lines}");
                }
            }
        }
    }
}

#[test]
fn prompts_are_listed_and_rewound_to_by_number() {
    let mut env = with_session();
    env.enter_line("/rewind");
    let row = |text: &str, rewind_to| PromptHistoryRow {
        session: SESSION,
        seq: 9,
        at: UnixMillis(0),
        text: text.into(),
        attachments: Vec::new(),
        rewind_to,
    };
    let prompts = vec![row("second\nline", Some(8)), row("queued", None), row("first", Some(2))];
    env.answer(HostResponse::Reply { reply: QueryReply::Prompts { prompts } });
    env.enter_line("/rewind 3");
    env.enter_line("/rewind 2");
    let rewind = SessionOp::Rewind { to: 2 };
    let is_rewind = |request: &FrontendRequest| matches!(request, FrontendRequest::SessionOp { op, .. } if *op == rewind);
    assert!(env.sent.iter().any(is_rewind), "{:?}", env.sent);
    env.assert_lines(expect![[r#"
          1. second⏎line
          2. first
        Type /rewind NUMBER to go back to before one; later messages are dropped.
        Unknown number; /rewind lists the prompts.
        Rewound. Files stay as they are. The prompt was:
          first
    "#]]);
}

#[test]
fn the_context_and_found_lines_are_printed() {
    let mut env = with_session();
    env.enter_line("/context");
    let parts = vec![ContextUsagePart { name: "tools".into(), tokens: 5_000 }];
    let reply = QueryReply::Context { context_window: Some(200_000), output_reserve: 0, parts };
    env.answer(HostResponse::Reply { reply });
    env.enter_line("/find harbour");
    let mut transcript = Transcript::default();
    transcript.messages.push(Message {
        role: MessageRole::Assistant,
        seq: 1,
        model: None,
        parts: vec![MessagePart::text("The Harbour\nis \u{1b}[31m open")],
    });
    let reply = QueryReply::Transcript { transcript: Box::new(transcript) };
    env.answer(HostResponse::Reply { reply });
    env.enter_line("/tasks");
    env.assert_lines(expect![[r#"
        context: 5k of 200k tokens
          tools: 5k
        1 line found
          model: The Harbour
        No subagents.
    "#]]);
}
