//! Tests of reports and `/copy` in the linear mode.

use super::{SESSION, TestLinearUi};
use expect_test::expect;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::report::{ReportAction, ReportGroup, ReportKind, ReportRow, ReportRowState};
use windlass_protocol::{Message, MessagePart, MessageRole, QueryReply, SessionQuery, Transcript};

#[test]
fn a_report_is_printed_with_numbers_for_details_and_actions() {
    let mut env = TestLinearUi::new();
    env.lines.clear();
    env.enter_line("/mcp");
    let server = ReportRow {
        id: "git".into(),
        name: "git".into(),
        note: "mcp-server-git".into(),
        columns: vec!["2 tools".into(), "failed".into()],
        state: Some(ReportRowState::Failed),
        details: "State: failed\nLog: \u{1b}[31mno such file".into(),
        actions: vec![ReportAction::Restart],
        ..ReportRow::default()
    };
    env.answer(HostResponse::Report { rows: vec![server] });
    env.enter_line("/mcp 1");
    env.enter_line("/mcp 2");
    env.assert_lines(expect![[r#"
          1. git, error, 2 tools, failed, mcp-server-git
        Type /mcp NUMBER to show more about one.
        Type /mcp restart NUMBER to restart one.
          State: failed
          Log: ␛[31mno such file
        Unknown number; use the command without one to list all.
    "#]]);
    env.enter_line("/mcp restart 1");
    let (report, action) = (ReportKind::McpServers, ReportAction::Restart);
    let request = FrontendRequest::RunReportAction { report, item: "git".into(), action };
    assert_eq!(env.sent.last(), Some(&request));
    env.answer(HostResponse::Report { rows: Vec::new() });
    env.enter_line("/stats 7");
    let report = ReportKind::Statistics { days: Some(7) };
    assert_eq!(env.sent.last(), Some(&FrontendRequest::Report { report, settled: true }));
    let row = ReportRow {
        group: ReportGroup::Days,
        name: "2026-01-02".into(),
        columns: vec!["1.0k in".into(), String::new(), "$0.01".into()],
        ..ReportRow::default()
    };
    env.answer(HostResponse::Report { rows: vec![row] });
    env.assert_lines(expect![[r#"
        No MCP servers. To add one: windlass mcp add NAME -- COMMAND
        Days:
          1. 2026-01-02, 1.0k in, $0.01
    "#]]);
}

#[test]
fn texts_to_copy_are_listed_and_one_is_printed_alone() {
    let mut env = TestLinearUi::with_running_turn();
    env.enter_line("/copy");
    let query = SessionQuery::Transcript { session: SESSION };
    assert_eq!(env.sent.last(), Some(&FrontendRequest::Query { query }));
    let message = |role, text: &str| Message {
        role,
        seq: 1,
        model: None,
        parts: vec![MessagePart::text(text)],
    };
    let transcript = || {
        let mut transcript = Transcript::default();
        transcript.messages.push(message(MessageRole::User, "How?"));
        let answer = "So:\n\n```sh\nmake\n```\n";
        transcript.messages.push(message(MessageRole::Assistant, answer));
        HostResponse::Reply { reply: QueryReply::Transcript { transcript: Box::new(transcript) } }
    };
    env.answer(transcript());
    env.enter_line("/copy 2");
    env.answer(transcript());
    env.assert_lines(expect![[r#"
          1. answer, 5 lines: So:
          2. code sh, 1 line: make
          3. prompt, 1 line: How?
        Type /copy NUMBER to print one of them alone.
          make
    "#]]);
}
