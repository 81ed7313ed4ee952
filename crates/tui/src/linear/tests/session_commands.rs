//! Tests that every `/` command works in the linear mode.

use super::{SESSION, TestLinearUi};
use crate::keys::COMMAND_TABLE;
use crate::linear::commands::SCREEN_COMMANDS;
use expect_test::expect;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::{
    ContextUsagePart, Fact, Message, MessagePart, MessageRole, PromptHistoryRow, QueryReply,
    SessionId, SessionOp, Transcript, TurnEndReason, UnixMillis,
};

fn with_session() -> TestLinearUi {
    let mut env = TestLinearUi::with_running_turn();
    env.fact(Fact::TurnEnded { turn: 1, end: TurnEndReason::Completed });
    (env.lines, env.sent) = (Vec::new(), Vec::new());
    env
}

/// Returns the answer to `/rewind`: two prompts to go back to, and one that still waits.
fn listed_prompts() -> HostResponse {
    let row = |text: &str, rewind_to| PromptHistoryRow {
        session: SESSION,
        seq: 9,
        at: UnixMillis(0),
        text: text.into(),
        attachments: Vec::new(),
        rewind_to,
    };
    let prompts = vec![row("second\nline", Some(8)), row("queued", None), row("first", Some(2))];
    HostResponse::Reply { reply: QueryReply::Prompts { prompts } }
}

#[test]
fn every_command_works_with_and_without_a_session() {
    for has_session in [false, true] {
        let commands = COMMAND_TABLE.iter().filter(|entry| entry.is_slash_command);
        for entry in commands.filter(|entry| !SCREEN_COMMANDS.contains(&entry.command)) {
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
fn a_command_of_the_screen_names_what_to_do_instead() {
    for (command, wanted) in
        [("/theme", "`tui.theme`"), ("/editor", "@FILE"), ("/details", "`windlass session show`")]
    {
        let mut env = with_session();
        env.enter_line(command);
        let lines = env.lines.join("\n");
        assert!(lines.contains(wanted) && env.sent.is_empty(), "{command}: {lines}");
        env.lines.clear();
        env.enter_line("/help");
        assert!(!env.lines.iter().any(|line| line.starts_with(command)), "{:?}", env.lines);
    }
    assert_eq!(SCREEN_COMMANDS.len(), 3, "every one of them is tested here");
}

#[test]
fn prompts_are_listed_and_rewound_to_by_number() {
    let mut env = with_session();
    env.enter_line("/rewind");
    env.answer(listed_prompts());
    env.enter_line("/rewind 3");
    env.enter_line("/rewind 2");
    let op = SessionOp::Rewind { to: 2 };
    assert_eq!(
        env.sent.last(),
        Some(&FrontendRequest::SessionOp { id: None, session: SESSION, op })
    );
    env.assert_lines(expect![[r#"
          1. second⏎line
          2. first
        Type /rewind NUMBER to go back to before one; later messages are dropped.
        Unknown number; /rewind lists the prompts.
    "#]]);
    env.fact(Fact::Rewound { to: 2 });
    env.enter_line("/rewind 1");
    env.assert_lines(expect![[r#"
        Rewound. Files stay as they are.
        The prompt was:
          first
        Unknown number; /rewind lists the prompts.
    "#]]);
}

#[test]
fn a_number_of_another_session_rewinds_nothing() {
    let other = SessionId(uuid::Uuid::from_u128(7));
    // The list was printed before the session was left, or its answer arrives only afterwards.
    for is_late in [false, true] {
        let mut env = with_session();
        env.enter_line("/rewind");
        let list_request = env.last_request_id;
        if !is_late {
            env.answer(listed_prompts());
        }
        env.enter_line("/new");
        env.answer(HostResponse::SessionOpened { session: other, head: 0, model: None });
        if is_late {
            env.last_request_id = list_request;
            env.answer(listed_prompts());
        }
        (env.lines, env.sent) = (Vec::new(), Vec::new());
        env.enter_line("/rewind 1");
        assert_eq!(env.sent, []);
        assert_eq!(env.lines, ["Unknown number; /rewind lists the prompts."]);
    }
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
