//! Tests of the status rows.

use super::*;
use expect_test::expect;
use windlass_protocol::frontend_messages::ServerStatus;

fn busy_state() -> SessionState {
    let mut state = SessionState { mode: PermissionMode::Auto, ..SessionState::default() };
    state.model = "anthropic/claude-opus-4".into();
    state.host_status.workspace = "~/code/harbour".into();
    state.host_status.branch = Some("main".into());
    state.host_status.context_window = Some(200_000);
    (state.context_tokens, state.cost) = (24_000, Cost(420_000));
    state.activity = "running cargo test".into();
    state
}

#[test]
fn the_least_important_parts_are_dropped_first() {
    let rows: Vec<String> = [80, 60, 44, 30, 12]
        .map(|width| {
            format!(
                "|{:width$}|",
                render_status_line(
                    width,
                    StatusTexts::default(),
                    &Appearance::default(),
                    &busy_state()
                )
                .text()
            )
        })
        .into();
    expect![[r#"
        | auto · claude-opus-4 · 12 % full · $0.42                 main · ~/code/harbour |
        | auto · claude-opus-4 · 12 % full · $0.42              main |
        | auto · claude-opus-4 · 12 % full · $0.42   |
        | auto · claude-opus-4         |
        | auto       |"#]]
    .assert_eq(&rows.join("\n"));
}

#[test]
fn the_user_chooses_the_items_and_their_order() {
    let names = ["branch", "title", "mode", "nonsense"].map(str::to_owned);
    let (status_line, problems) = StatusLineSetting::from_names(&names);
    assert!(problems[0].contains("nonsense") && problems[0].contains("folder"), "{problems:?}");
    let mut appearance = Appearance::default();
    appearance.layout.status_line = status_line;
    let state = SessionState { title: "Fix it".into(), ..busy_state() };
    let texts = StatusTexts { editing_mode: Some("NORMAL"), ..StatusTexts::default() };
    let row = |width| render_status_line(width, texts, &appearance, &state).text();
    assert_eq!(row(60).trim_end(), " NORMAL · main · Fix it · auto");
    assert_eq!(row(25).trim_end(), " NORMAL · main · Fix it");
}

#[test]
fn the_effort_and_the_servers_are_shown() {
    let mut state = busy_state();
    state.host_status.effort = Some("high".into());
    let server = |kind, state| ServerStatus { kind, name: "a".into(), state };
    state.host_status.servers = vec![
        server(ServerKind::Mcp, ReportRowState::Active),
        server(ServerKind::Mcp, ReportRowState::Idle),
        server(ServerKind::Language, ReportRowState::Active),
    ];
    let texts = StatusTexts::default();
    let row = |state: &SessionState, width| {
        render_status_line(width, texts, &Appearance::default(), state).text()
    };
    let line = row(&state, 100);
    assert!(line.contains("claude-opus-4 high · "), "{line}");
    assert!(line.contains(" · 1 MCP · 1 LSP "), "{line}");
    state.host_status.servers.push(server(ServerKind::Mcp, ReportRowState::Warning));
    assert!(row(&state, 100).contains(" · 1 MCP needs attention · 1 LSP "), "no failure");
    state.host_status.servers.push(server(ServerKind::Mcp, ReportRowState::Failed));
    assert!(row(&state, 100).contains(" · 1 MCP failed · 1 LSP "));
    assert!(!row(&state, 50).contains("LSP"), "they are dropped before the cost");
}

#[test]
fn the_server_its_other_clients_and_the_connection_are_shown() {
    let mut state = busy_state();
    state.host_status.host = Some("tower".into());
    let mut rows = Vec::new();
    let mut add_row = |state: &SessionState, width| {
        let texts = StatusTexts::default();
        let row = render_status_line(width, texts, &Appearance::default(), state).text();
        rows.push(format!("|{}", row.trim_end()));
    };
    add_row(&state, 90);
    let client = |name: &str| windlass_protocol::ClientInfo {
        name: name.into(),
        kind: windlass_protocol::ClientKind::Terminal,
    };
    state.clients = vec![client("me")];
    add_row(&state, 90);
    state.clients.push(client("bob"));
    add_row(&state, 90);
    state.is_read_only = true;
    add_row(&state, 90);
    state.is_disconnected = true;
    add_row(&state, 90);
    add_row(&state, 40);
    expect![[r#"
        | auto · claude-opus-4 · 12 % full · $0.42                     main · tower:~/code/harbour
        | auto · claude-opus-4 · 12 % full · $0.42                     main · tower:~/code/harbour
        | auto · claude-opus-4 · 12 % full · $0.42 · 1 other client    main · tower:~/code/harbour
        | read-only: open in another process · auto · claude-opus-4 · 12 % full
        | disconnected, reconnecting · auto · claude-opus-4 · 12 % full · $0.42 · 1 other client
        | disconnected, reconnecting · auto"#]]
    .assert_eq(&rows.join("\n"));
}

#[test]
fn the_text_of_the_users_command_is_only_text() {
    let mut appearance = Appearance::default();
    appearance.layout.status_line = StatusLineSetting::Command;
    let command_output = "\x1b[31mred\x1b]2;owned\x07 end\nsecond";
    let texts = StatusTexts { command_output, ..StatusTexts::default() };
    let row = render_status_line(60, texts, &appearance, &busy_state()).text();
    assert_eq!(row.trim_end(), " red end");
}

#[test]
fn the_rule_shows_the_activity_and_how_to_stop_it() {
    let state = busy_state();
    let rule = |hint, turn_millis, width| {
        PromptSeparatorLine { hint, turn_millis, now: 0, question: None }
            .render(width, &Appearance::default(), &state)
            .text()
    };
    let rows = [
        rule(None, None, 60),
        rule(None, Some(7_900), 60),
        rule(None, Some(125_000), 30),
        rule(Some("Press again to quit"), Some(7_000), 60),
    ];
    assert!(rows.iter().all(|row| row.chars().count() <= 60), "{rows:?}");
    expect![[r#"
        ────────────────────────────────────────────────────────────
        ── ● running cargo test · 7 s ─────────────── Esc to stop ──
        ── ● running ca… · 2 m 05 s ──
        ── Press again to quit ─────────────────────────────────────"#]]
    .assert_eq(&rows.join("\n"));
}

#[test]
fn counts_and_costs_are_abbreviated() {
    assert_eq!([950, 12_345, 1_250_000].map(format_count), ["950", "12k", "1.2M"]);
    assert_eq!(
        [Cost(900), Cost(12_000), Cost(3_456_000)].map(format_cost),
        ["$0.0009", "$0.01", "$3.46"]
    );
}
