//! Tests of the report panels and the copy picker.

use super::{NOW, TestPanelApp, screen_text, session};
use crate::keys::UiCommand;
use crate::ui_context::{Appearance, UiEffect};
use expect_test::expect;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::report::{ReportAction, ReportGroup, ReportKind, ReportRow, ReportRowState};
use windlass_protocol::{Fact, Fault, PromptId, QueryReply, SessionSummary, UnixMillis};

fn servers() -> Vec<ReportRow> {
    let row = |name: &str, note: &str, state, columns: [&str; 2]| ReportRow {
        id: name.into(),
        name: name.into(),
        note: note.into(),
        columns: columns.map(str::to_owned).into(),
        state: Some(state),
        details: format!("State: {}\n\nTools:\n  {name}_status  Shows the state", columns[1]),
        actions: vec![ReportAction::Restart],
        ..ReportRow::default()
    };
    vec![
        row("git", "mcp-server-git --all", ReportRowState::Active, ["12 tools", "running"]),
        row("docs", "https://docs.example.com/mcp", ReportRowState::Failed, ["", "failed"]),
        row("old", "npx old", ReportRowState::Off, ["", "off"]),
    ]
}

fn open_report(command: &str, rows: Vec<ReportRow>) -> TestPanelApp {
    let mut env = TestPanelApp::open();
    env.run_command(command);
    env.answer(Ok(HostResponse::Report { rows }));
    env
}

#[test]
fn servers_are_listed_with_state_and_details_and_can_be_restarted() {
    let mut env = open_report("/mcp", servers());
    expect![[r#"
        ── MCP servers ─────────────────────────────────────────────────────────────────
           type to filter                                                             3
        ›● git   mcp-server-git --all                                 12 tools  running
         ✗ docs  https://docs.example.com/mcp                                    failed
         - old   npx old                                                            off

           Enter details · Ctrl+R restart · Esc close
        cursor 3,14
    "#]]
    .assert_eq(&env.frame(80, 24));
    env.press("enter");
    expect![[r#"
        ── git ─────────────────────────────────────────────────────────────────────────
           State: running

           Tools:
             git_status  Shows the state




           Esc back
    "#]]
    .assert_eq(&env.frame(80, 14));
    env.press("esc down ctrl+r");
    let request = env.answer(Err(Fault::Config { message: "docs is not running".into() }));
    let report = ReportKind::McpServers;
    let action = ReportAction::Restart;
    assert_eq!(request, FrontendRequest::RunReportAction { report, item: "docs".into(), action });
    let frame = env.frame(80, 24);
    assert!(frame.contains("docs is not running"), "{frame}");
    env.press("up");
    assert!(env.frame(80, 24).contains("mcp-server-git"), "the list is still there");
    env.press("esc");
    assert!(!screen_text(&mut env).contains("MCP servers"));
}

#[test]
fn a_starting_server_is_shown_again_when_it_has_started() {
    let starting = |state, name: &str| {
        let row = servers().remove(0);
        vec![ReportRow { state: Some(state), columns: vec![name.into()], ..row }]
    };
    let mut env = open_report("/mcp", starting(ReportRowState::Starting, "starting"));
    assert!(env.frame(80, 24).contains("starting"));
    let rows = starting(ReportRowState::Active, "running");
    let request = env.answer(Ok(HostResponse::Report { rows }));
    let report = ReportKind::McpServers;
    assert_eq!(request, FrontendRequest::Report { report, settled: true });
    assert!(env.frame(80, 24).contains("running"));
    assert!(env.pending_requests.is_empty(), "it asks once");
}

#[test]
fn marks_of_states_have_an_ascii_form() {
    let mut env = TestPanelApp::new(Appearance { ascii: true, ..Appearance::default() });
    env.run_command("/mcp");
    env.answer(Ok(HostResponse::Report { rows: servers() }));
    let frame = env.frame(80, 24);
    let marks: Vec<&str> = frame.lines().filter_map(|row| row.get(1..2)).collect();
    assert!(marks.windows(3).any(|marks| marks == ["*", "x", "-"]), "{frame}");
}

#[test]
fn an_approval_is_revoked_after_confirmation() {
    let approval = |id: &str, group, name: &str| ReportRow {
        id: id.into(),
        group,
        name: name.into(),
        actions: vec![ReportAction::Revoke],
        ..ReportRow::default()
    };
    let rule = ReportRow {
        group: ReportGroup::Rules,
        name: "bash rm *".into(),
        note: "windlass.jsonc:3:5".into(),
        columns: vec!["deny".into()],
        ..ReportRow::default()
    };
    let rows = vec![
        approval("session", ReportGroup::SessionApprovals, "all edits of files in this folder"),
        approval("bash\ncargo test", ReportGroup::ProjectApprovals, "bash cargo test"),
        rule,
    ];
    let mut env = open_report("/permissions", rows.clone());
    expect![[r#"
        ── Permissions ─────────────────────────────────────────────────────────────────
           type to filter                                                             3
         Approved for this session
        ›  all edits of files in this folder

         Always approved in this project
           bash cargo test

         Rules, the last match decides
           bash rm *  windlass.jsonc:3:5                                           deny


           Ctrl+X revoke · Esc close
        cursor 3,8
    "#]]
    .assert_eq(&env.frame(80, 24));
    env.press("down ctrl+x n");
    assert!(env.pending_requests.is_empty(), "anything but y changes nothing");
    env.press("ctrl+x y");
    let request = env.answer(Ok(HostResponse::Report { rows: rows.into_iter().take(1).collect() }));
    let report = ReportKind::Permissions { session: Some(session(1)) };
    let (item, action) = ("bash\ncargo test".to_owned(), ReportAction::Revoke);
    assert_eq!(request, FrontendRequest::RunReportAction { report, item, action });
    assert!(!env.frame(80, 24).contains("cargo test"));
}

#[test]
fn empty_reports_name_the_next_step() {
    for (command, text) in [
        ("/mcp", "windlass mcp add NAME"),
        ("/plugins", "windlass plugin add SOURCE"),
        ("/permissions", "the mode decides"),
        ("/lsp", "No language server fits"),
        ("/stats", "No usage in this period"),
    ] {
        let frame = open_report(command, Vec::new()).frame(80, 24);
        assert!(frame.contains(text), "{frame}");
    }
}

#[test]
fn statistics_take_a_number_of_days() {
    let mut env = TestPanelApp::open();
    env.run_command("/stats 7");
    let report = ReportKind::Statistics { days: Some(7) };
    assert_eq!(env.pending_requests[0].request, FrontendRequest::Report { report, settled: false });
    assert!(env.frame(80, 24).contains("Usage of the last 7 days"));
}

#[test]
fn the_last_answer_and_its_code_blocks_come_first_in_the_copy_list() {
    let mut env = TestPanelApp::open();
    env.perform_command(UiCommand::CopyAnswer, "");
    assert!(screen_text(&mut env).contains("Nothing to copy yet"));
    let text = |text: &str| Fact::ModelText { text: text.into(), provider_signature: None };
    let prompt = |text: &str| Fact::PromptSubmitted {
        prompt: PromptId(uuid::Uuid::from_u128(7)),
        text: text.into(),
        attachments: Vec::new(),
        delivery: Default::default(),
        settings: Default::default(),
    };
    env.fact(prompt("How do I test?"));
    env.fact(text("First this:\n\n```sh\ncargo test\n```\n\nThen wait."));
    env.fact(prompt("And then?"));
    env.perform_command(UiCommand::CopyAnswer, "");
    expect![[r#"
        ── Copy to the clipboard ───────────────────────────────────────────────────────
           type to filter                                                             4
        ›  First this:                                                  answer  7 lines
             cargo test                                                code sh   1 line
           And then?                                                    prompt   1 line
           How do I test?                                               prompt   1 line

           Enter copy · Esc close
        cursor 3,13
    "#]]
    .assert_eq(&env.frame(80, 24));
    env.press("down enter");
    let copied = UiEffect::CopyToClipboard("cargo test\n".into());
    assert!(env.ui_effects.contains(&copied), "{:?}", env.ui_effects);
    assert!(screen_text(&mut env).contains("Copied to the clipboard: code sh, 1 line"));
}

fn tree() -> Vec<SessionSummary> {
    let summary =
        |number: u128, title: &str, parent: Option<u128>, fork: Option<u128>| SessionSummary {
            title: title.into(),
            changed_at: UnixMillis(NOW),
            fact_count: 1,
            parent: parent.map(session),
            forked_from: fork.map(session),
            ..SessionSummary::new(session(number))
        };
    vec![
        summary(3, "Try it another way", None, Some(1)),
        summary(4, "explore: where are dates read", Some(1), None),
        summary(1, "Fix the parser", None, None),
        summary(2, "Something else", None, None),
    ]
}

#[test]
fn forks_and_subagents_form_a_tree_in_the_session_list() {
    let mut env = TestPanelApp::open();
    env.run_command("/sessions");
    env.reply(QueryReply::Sessions { sessions: tree() });
    expect![[r#"
        ── Sessions ──────────────────────────────────────────────────────────────────────────────
           type to filter                                                                       3
        ›● Fix the parser                                                     1 subagent      now
           └ Try it another way                                                     fork      now
           Something else                                                                     now

           Enter open · Ctrl+K fork · Ctrl+E rename · Ctrl+X delete · Esc close · Right subagents
        cursor 3,14
    "#]]
    .assert_eq(&env.frame(90, 24));
    env.press("right");
    expect![[r#"
        ── Sessions ──────────────────────────────────────────────────────────────────────────────
           type to filter                                                                       4
        ›● Fix the parser                                                     1 subagent      now
           └ Try it another way                                                     fork      now
           └ explore: where are dates read                                      subagent      now
           Something else                                                                     now

           Enter open · Ctrl+K fork · Ctrl+E rename · Ctrl+X delete · Esc close · Right subagents
        cursor 3,13
    "#]]
    .assert_eq(&env.frame(90, 24));
    env.press("left");
    assert!(!env.frame(90, 24).contains("explore:"));
}

#[test]
fn a_session_is_renamed_in_the_list() {
    let mut env = TestPanelApp::open();
    env.run_command("/sessions");
    env.reply(QueryReply::Sessions { sessions: tree() });
    env.press("down ctrl+e ctrl+u");
    env.type_text("A better name");
    let frame = env.frame(90, 24);
    assert!(frame.contains("Title: A better name"), "{frame}");
    env.press("enter");
    let request = env.answer(Ok(HostResponse::Done));
    let title = "A better name".to_owned();
    assert_eq!(request, FrontendRequest::RenameSession { session: session(3), title });
    let frame = env.frame(90, 24);
    assert!(frame.contains("A better name") && !frame.contains("another way"), "{frame}");
    env.press("ctrl+e esc");
    assert!(env.frame(90, 24).contains("Enter open"), "Esc closes only the input");
}
