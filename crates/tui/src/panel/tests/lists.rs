//! Tests of the panels that list sessions, models and help.

use super::{HOUR, MINUTE, NOW, TestPanelApp, session};
use crate::app::AppEvent;
use crate::ui_context::{Appearance, UiEffect};
use expect_test::expect;
use windlass_protocol::frontend_messages::{
    FrontendRequest, HostMessage, HostResponse, HostStatus, ListRow, ListedItemKind,
    ModelChoiceScope, ModelListItem,
};
use windlass_protocol::session_stream::OpenSessionState;
use windlass_protocol::{
    Cost, Fault, QueryReply, SessionQuery, SessionSearchHit, SessionSummary, TurnEndReason,
    UnixMillis,
};

fn summaries() -> Vec<SessionSummary> {
    let summary = |number: u128, title: &str, age: u64, cost: u64, end: Option<TurnEndReason>| {
        let mut summary = SessionSummary::new(session(number));
        summary.title = title.into();
        summary.changed_at = UnixMillis(NOW - age);
        summary.fact_count = 40;
        summary.cost = Cost(cost);
        summary.last_turn_end = end;
        summary
    };
    let mut child = summary(
        9,
        "explore: where are dates read",
        3 * HOUR,
        9_000,
        Some(TurnEndReason::Completed),
    );
    child.parent = Some(session(2));
    let fault = Fault::Network { message: "cut".into() };
    vec![
        summary(1, "Fix the parser of dates", 0, 412_000, None),
        summary(
            2,
            "Port the build to the new toolchain",
            3 * HOUR,
            3_200_000,
            Some(TurnEndReason::Completed),
        ),
        child,
        summary(3, "解析器の日付を直す", 26 * HOUR, 0, Some(TurnEndReason::Interrupted)),
        summary(4, "Why is the test of the harbour so slow on Tuesdays", 24 * 30 * HOUR, 90_000, {
            Some(TurnEndReason::Failed { fault })
        }),
        summary(5, "", 5 * MINUTE, 0, Some(TurnEndReason::Denied)),
    ]
}

fn with_session_list() -> TestPanelApp {
    let mut env = TestPanelApp::open();
    env.run_command("/sessions");
    env.reply(QueryReply::Sessions { sessions: summaries() });
    env
}

#[test]
fn sessions_that_are_open_show_what_they_do() {
    let mut env = with_session_list();
    let state = |number: u128| OpenSessionState {
        session: session(number),
        workspace: "/home/a/code/harbour".into(),
        title: String::new(),
        is_busy: false,
        open_questions: Vec::new(),
        background_count: 0,
        head: 1,
        clients: Vec::new(),
        is_in_server: false,
    };
    let call = windlass_protocol::CallId(uuid::Uuid::from_u128(1));
    let sessions = vec![
        OpenSessionState { is_busy: true, open_questions: vec![call], ..state(2) },
        OpenSessionState { is_busy: true, is_in_server: true, ..state(3) },
        OpenSessionState { is_in_server: true, ..state(4) },
        state(5),
    ];
    let (id, response) =
        (env.open_sessions_request.unwrap(), Ok(HostResponse::OpenSessions { sessions }));
    env.update(AppEvent::HostMessage(Box::new(HostMessage::Response { id, response })));
    expect![[r#"
        ── Sessions ────────────────────────────────────────────────────────────────────
           type to filter                                                             5
        ›● Fix the parser of dates                               unfinished  $0.41  now
           Port the build to the new toolc…  1 subagent       waits for you  $3.20   3h
           解析器の日付を直す                                       working          1d
           Why is the test of the harbour …              open in the server  $0.09   4w
           (untitled)                                                denied          5m

           Enter open · Ctrl+K fork · Ctrl+E rename · Ctrl+X delete · Esc close
        cursor 3,12
    "#]]
    .assert_eq(&env.frame(80, 24));
}

#[test]
fn sessions_of_this_folder_are_listed_without_subagent_sessions() {
    let mut env = TestPanelApp::open();
    env.press("ctrl+s");
    let workspace = Some("/home/a/code/harbour".into());
    let query = SessionQuery::Sessions { workspace };
    assert_eq!(env.pending_requests[0].request, FrontendRequest::Query { query });
    expect![[r#"
        ── Sessions ────────────────────────────────────────────────────────────────────
           type to filter
           Loading sessions



           Enter open · Ctrl+K fork · Ctrl+E rename · Ctrl+X delete · Esc close
        cursor 3,14
    "#]]
    .assert_eq(&env.frame(80, 24));
    env.reply(QueryReply::Sessions { sessions: summaries() });
    expect![[r#"
        ── Sessions ────────────────────────────────────────────────────────────────────
           type to filter                                                             5
        ›● Fix the parser of dates                               unfinished  $0.41  now
           Port the build to the new toolchain      1 subagent               $3.20   3h
           解析器の日付を直す                                   interrupted          1d
           Why is the test of the harbour so slow…                   failed  $0.09   4w
           (untitled)                                                denied          5m

           Enter open · Ctrl+K fork · Ctrl+E rename · Ctrl+X delete · Esc close
        cursor 3,12
    "#]]
    .assert_eq(&env.frame(80, 24));
    expect![[r#"
        ── Sessions ────────────────────────────
           type to filter                     5
        ›● Fix the parser of dates          now
           Port the build to the new tool…   3h
           解析器の日付を直す                1d
           Why is the test of the harbour…   4w
           (untitled)                        5m
           Enter open · Ctrl+K fork
        cursor 3,1
    "#]]
    .assert_eq(&env.frame(40, 12));
    expect![[r#"
        ── Sessions ────────────────────────────────────────────────────────────────────────────────────────────────────────────
           type to filter                                                                                           5
        ›● Fix the parser of dates                                                             unfinished  $0.41  now
           Port the build to the new toolchain                                    1 subagent               $3.20   3h
           解析器の日付を直す                                                                 interrupted          1d
           Why is the test of the harbour so slow on Tuesdays                                      failed  $0.09   4w
           (untitled)                                                                              denied          5m

           Enter open · Ctrl+K fork · Ctrl+E rename · Ctrl+X delete · Esc close
        cursor 3,28
    "#]].assert_eq(&env.frame(120, 40));
}

#[test]
fn two_characters_filter_titles_and_three_search_conversations() {
    let mut env = with_session_list();
    env.type_text("pa");
    assert!(env.pending_requests.is_empty());
    env.type_text("rs");
    let requests = std::mem::take(&mut env.pending_requests);
    let words =
        |message: &windlass_protocol::frontend_messages::FrontendRequestMessage| match &message
            .request
        {
            FrontendRequest::Query { query: SessionQuery::SearchSessions { words, .. } } => {
                words.clone()
            }
            other => panic!("{other:?}"),
        };
    assert_eq!(requests.iter().map(words).collect::<Vec<_>>(), ["par", "pars"]);
    let hit = |number, title: &str, snippet: &str| SessionSearchHit {
        session: session(number),
        title: title.into(),
        workspace: String::new(),
        at: UnixMillis(NOW),
        seq: 7,
        fact_kind: "model_text".into(),
        snippet: snippet.into(),
    };
    let hits = vec![
        hit(2, "Port the build to the new toolchain", "…and then parse the manifest with…"),
        hit(9, "explore: where are dates read", "the parser is in src/date.rs"),
    ];
    let stale = windlass_protocol::frontend_messages::HostMessage::Response {
        id: requests[0].id,
        response: Ok(HostResponse::Reply { reply: QueryReply::SearchHits { hits: Vec::new() } }),
    };
    env.update(crate::app::AppEvent::HostMessage(Box::new(stale)));
    env.pending_requests = requests[1..].to_vec();
    env.reply(QueryReply::SearchHits { hits });
    expect![[r#"
        ── Sessions ────────────────────────────────────────────────────────────────────
           pars                                                                  2 of 6
        ›● Fix the parser of dates                               unfinished  $0.41  now

         Found in the conversation
           Port the build to the new toolchain  …and then parse the manifest with…





           Enter open · Ctrl+K fork · Ctrl+E rename · Ctrl+X delete · Esc close
        cursor 7,9
    "#]]
    .assert_eq(&env.frame(80, 24));
    expect![[r#"
        ── Sessions ────────────────────────────
           pars                          2 of 6
        ›● Fix the parser of dates          now

         Found in the conversation
           Port the build to t…  …and then par…

           Enter open · Ctrl+K fork
        cursor 7,1
    "#]]
    .assert_eq(&env.frame(40, 12));
    env.type_text("zzz");
    expect![[r#"
        ── Sessions ────────────────────────────
           parszzz                       1 of 6
         Found in the conversation
        ›  Port the build to t…  …and then par…



           Enter open · Ctrl+K fork
        cursor 10,1
    "#]]
    .assert_eq(&env.frame(40, 12));
}

#[test]
fn enter_opens_the_session_and_then_the_panel_closes() {
    let mut env = with_session_list();
    env.press("down enter");
    assert_eq!(
        env.pending_requests[0].request,
        FrontendRequest::OpenSession { session: session(2), resume: false }
    );
    assert!(env.frame(80, 24).contains("Opening the session"));
    env.press("enter down");
    assert_eq!(env.pending_requests.len(), 1, "a second Enter sends no second request");
    env.answer(Ok(HostResponse::SessionOpened { session: session(2), head: 40, model: None }));
    assert_eq!(env.app.state().session, Some(session(2)));
    assert!(!env.frame(80, 24).contains("Sessions"));
}

#[test]
fn a_session_that_cannot_be_opened_keeps_the_panel_open_with_the_reason() {
    let mut env = with_session_list();
    env.press("down ctrl+k");
    let request = env.fail();
    assert_eq!(request, FrontendRequest::ForkSession { session: session(2), turn: None });
    expect![[r#"
        ── Sessions ────────────────────────────────────────────────────────────────────
           type to filter
           session log failure: the disk is full
           Free some disk space or close the other windlass process, then use /sessions
           to open the session again.



           Enter open · Ctrl+K fork · Ctrl+E rename · Ctrl+X delete · Esc close
        cursor 3,12
    "#]]
    .assert_eq(&env.frame(80, 24));
    expect![[r#"
        ── Sessions ────────────────────────────
           type to filter
           session log failure: the disk is
           full
           Free some disk space or close the
           other windlass process, then use
           /sessions to open the session again.
           Enter open · Ctrl+K fork
        cursor 3,1
    "#]]
    .assert_eq(&env.frame(40, 12));
}

#[test]
fn a_session_is_deleted_only_after_confirmation_and_never_while_open() {
    let mut env = with_session_list();
    env.press("ctrl+x");
    assert!(env.frame(80, 24).contains("This session is open"));
    env.press("y");
    assert!(env.pending_requests.is_empty());
    env.press("down ctrl+x");
    expect![[r#"
        ── Sessions ────────────────────────────────────────────────────────────────────
           type to filter                                                             5
         ● Fix the parser of dates                               unfinished  $0.41  now
        ›  Port the build to the new toolchain      1 subagent               $3.20   3h
           解析器の日付を直す                                   interrupted          1d
           Why is the test of the harbour so slow…                   failed  $0.09   4w
           (untitled)                                                denied          5m

           Press y to delete permanently: Port the build to the new tool…
    "#]]
    .assert_eq(&env.frame(80, 24));
    expect![[r#"
        ── Sessions ────────────────────────────
           type to filter                     5
         ● Fix the parser of dates          now
        ›  Port the build to the new tool…   3h
           解析器の日付を直す                1d
           Why is the test of the harbour…   4w
           (untitled)                        5m
           Press y to delete permanently: Port …
    "#]]
    .assert_eq(&env.frame(40, 12));
    env.press("n");
    assert!(env.pending_requests.is_empty());
    env.press("ctrl+x esc");
    assert!(env.pending_requests.is_empty());
    assert!(env.frame(80, 24).contains("Port the build"), "Esc closes only the confirmation");
    env.press("ctrl+x y");
    let request = env.answer(Ok(HostResponse::Done));
    assert_eq!(request, FrontendRequest::DeleteSession { session: session(2) });
    assert!(!env.frame(80, 24).contains("Port the build"));
}

#[test]
fn no_sessions_and_a_failure_are_shown() {
    let mut env = TestPanelApp::open();
    env.run_command("/sessions");
    env.reply(QueryReply::Sessions { sessions: Vec::new() });
    assert!(env.frame(80, 24).contains("No sessions in this folder yet"));
    env.press("esc");
    env.run_command("/sessions");
    env.fail();
    assert!(env.frame(80, 24).contains("the disk is full"));
}

fn models() -> Vec<ModelListItem> {
    let row = |name: &str, note: &str| ModelListItem {
        name: name.into(),
        note: note.into(),
        ..ModelListItem::default()
    };
    vec![
        row("anthropic/claude-sonnet-4", "200k · $3 in, $15 out"),
        row("anthropic/claude-opus-4", "200k · $15 in, $75 out"),
        row("openai/gpt-5", "400k · $1.25 in, $10 out"),
        row("ollama/qwen3-coder:30b", "256k · local"),
    ]
}

#[test]
fn a_model_is_chosen_for_the_session_or_as_default() {
    let mut env = TestPanelApp::open();
    env.press("alt+m");
    env.answer(Ok(HostResponse::Models { models: models() }));
    expect![[r#"
        ── Model ───────────────────────────────────────────────────────────────────────
           type to filter                                                             4
           anthropic/claude-sonnet-4  200k · $3 in, $15 out
        ›● anthropic/claude-opus-4    200k · $15 in, $75 out
           openai/gpt-5               400k · $1.25 in, $10 out
           ollama/qwen3-coder:30b     256k · local

           Enter use for now · Ctrl+S save as default · Ctrl+F favorite · Esc close
        cursor 3,13
    "#]]
    .assert_eq(&env.frame(80, 24));
    expect![[r#"
        ── Model ───────────────────────────────
           type to filter                     4
           anthropic/claude-so…  200k · $3 in,…
        ›● anthropic/claude-op…  200k · $15 in…
           openai/gpt-5          400k · $1.25 …
           ollama/qwen3-coder:…  256k · local

           Enter use for now
        cursor 3,1
    "#]]
    .assert_eq(&env.frame(40, 12));
    env.type_text("qwn");
    expect![[r#"
        ── Model ───────────────────────────────────────────────────────────────────────
           qwn                                                                   1 of 4
        ›  ollama/qwen3-coder:30b     256k · local




           Enter use for now · Ctrl+S save as default · Ctrl+F favorite · Esc close
        cursor 6,13
    "#]]
    .assert_eq(&env.frame(80, 24));
    env.press("ctrl+s");
    let model = "ollama/qwen3-coder:30b".to_owned();
    assert_eq!(
        env.pending_requests[0].request,
        FrontendRequest::SetModel { model, persist: ModelChoiceScope::Config }
    );
    let status = windlass_protocol::frontend_messages::HostStatus {
        model: Some("ollama/qwen3-coder:30b".into()),
        ..env.app.state().host_status.clone()
    };
    env.answer(Ok(HostResponse::Status { status: Box::new(status) }));
    assert_eq!(env.app.state().model, "ollama/qwen3-coder:30b");
    let frame = super::screen_text(&mut env);
    assert!(frame.contains("and saved in your config"), "{frame}");
}

#[test]
fn a_model_that_cannot_be_used_is_reported_in_the_panel() {
    let mut env = TestPanelApp::open();
    env.run_command("/model gpt");
    env.answer(Ok(HostResponse::Models { models: models() }));
    env.press("enter");
    assert!(env.frame(80, 24).contains("Changing the model"));
    let fault = Fault::Auth { message: "there is no key for openai".into() };
    let request = env.answer(Err(fault));
    assert_eq!(
        request,
        FrontendRequest::SetModel {
            model: "openai/gpt-5".into(),
            persist: ModelChoiceScope::Session
        }
    );
    expect![[r#"
        ── Model ───────────────────────────────────────────────────────────────────────
           gpt
           there is no key for openai
           Use /login to save another API key, or /model to choose another model.



           Enter use for now · Ctrl+S save as default · Ctrl+F favorite · Esc close
        cursor 6,13
    "#]]
    .assert_eq(&env.frame(80, 24));
}

/// Returns an `App` with an open help panel and a user-defined key.
fn with_help_panel() -> TestPanelApp {
    let overrides = [("sessions".to_owned(), "f5".to_owned())].into();
    let key_map = crate::keys::KeyMap::new(overrides).0;
    let mut env = TestPanelApp::new(Appearance { key_map, ..Appearance::default() });
    env.press("f1");
    env
}

#[test]
fn help_lists_every_command_and_every_key_as_they_are_bound() {
    let mut env = with_help_panel();
    expect![[r#"
        ── Help ────────────────────────────────────────────────────────────────────────
           type to filter                                                           106
         Session
        ›  /sessions  List, search, open, fork, rename and delete sessions           F5
           /new       Start a new session
           /fork      Continue in a copy of this session
           /rewind    Rewind to an earlier prompt
           /rename    Rename this session: /rename TITLE
           /detach    Hand this session over to the server and quit
           /compact   Summarize the conversation to free context
           /export    Export this session: /export NAME.html, .md or .jsonl
           /quit      Quit (the session can be resumed)                          Ctrl+D

         Model
           /mode    Switch to the next mode: plan, ask, auto                  Shift+Tab
           /model   Choose the model                                              Alt+M
           /effort  Choose the reasoning effort or variant of the model           Alt+E
           /agent   Choose the agent of this session (Tab: the next one)

           Enter run · Esc close
        cursor 3,1
    "#]]
    .assert_eq(&env.frame(80, 24));
    expect![[r#"
        ── Help ────────────────────────────────
           type to filter                   106
         Session
        ›  /sessions                         F5
             List, search, open, fork, rename
             and delete sessions
           /new
           Enter run · Esc close
        cursor 3,1
    "#]]
    .assert_eq(&env.frame(40, 12));
}

#[test]
fn help_has_one_column_at_any_width() {
    let mut env = with_help_panel();
    expect![[r#"
        ── Help ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
           type to filter                                                                                             106
         Session
        ›  /sessions  List, search, open, fork, rename and delete sessions                                             F5
           /new       Start a new session
           /fork      Continue in a copy of this session
           /rewind    Rewind to an earlier prompt
           /rename    Rename this session: /rename TITLE
           /detach    Hand this session over to the server and quit
           /compact   Summarize the conversation to free context
           /export    Export this session: /export NAME.html, .md or .jsonl
           /quit      Quit (the session can be resumed)                                                            Ctrl+D

         Model
           /mode    Switch to the next mode: plan, ask, auto                                                    Shift+Tab
           /model   Choose the model                                                                                Alt+M
           /effort  Choose the reasoning effort or variant of the model                                             Alt+E
           /agent   Choose the agent of this session (Tab: the next one)

         Work
           /undo    Preview and undo the last turn's file changes
           /redo    Redo the last undo
           /diff    Show all file changes of this session
           /goal    Work until it is true: /goal CONDITION or /goal !COMMAND
           /init    Let the model write this project's AGENTS.md
           /review  Review uncommitted changes, or a branch: /review BRANCH
           /editor  Open the prompt in your editor                                                                 Ctrl+X

         View
           /todos    Show the todo list                                                                            Ctrl+T
           /jobs     Show background commands                                                                       Alt+J
           /tasks    Show the subagents and what they do                                                           Ctrl+G
           /cost     Show token usage and cost of this session
           /context  Show what fills the context window

           Enter run · Esc close
        cursor 3,1
    "#]].assert_eq(&env.frame(140, 40));
    env.press("pagedown pagedown pagedown pagedown pagedown pagedown pagedown pagedown");
    expect![[r#"
        ── Help ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
           type to filter                                                                                             106
           Ctrl+L      Redraw the screen
           Tab         Answer the question, or switch the agent if none waits
           Alt+O       Expand or collapse all blocks
           Shift+Up    Select the previous block; Enter expands or collapses it
           Shift+Down  Select the next block
           PageUp      Scroll up a page
           PageDown    Scroll down a page
           Ctrl+Up     Scroll up a line
           Ctrl+Down   Scroll down a line
           Ctrl+Home   Scroll to the beginning
           Ctrl+End    Scroll to the end
           Alt+Up      Scroll up to the previous prompt
           Alt+Down    Scroll down to the next prompt

         Keys in the prompt
           Enter                                  Send the prompt (while the model works: at its next step)
           Alt+Enter                              Send when the model is done
           Ctrl+J, Shift+Enter                    Insert a line break
           Ctrl+V                                 Paste a clipboard image
           Tab                                    Accept the suggestion
           Up                                     Move up a line, or to the previous prompt
           Down, Ctrl+N                           Move down a line, or to the next prompt
           Ctrl+R                                 Search earlier prompts
           Left                                   Move left
           Right                                  Move right
           Alt+Left, Ctrl+Left, Alt+B             Move a word left
           Alt+Right, Ctrl+Right, Alt+F           Move a word right
           Home, Ctrl+A                           Move to the line start
           End, Ctrl+E                            Move to the line end
           Backspace, Ctrl+H                      Delete the previous character
           Delete                                 Delete the next character
        ›  Ctrl+W, Alt+Backspace, Ctrl+Backspace  Delete the previous word

           Esc close
        cursor 3,1
    "#]].assert_eq(&env.frame(140, 40));
    let all = env.frame(240, 160);
    for entry in crate::keys::COMMAND_TABLE {
        assert!(all.contains(entry.description), "{}", entry.name);
    }
    let row = all.lines().find(|row| row.contains("/sessions")).unwrap();
    assert!(row.contains("  F5"), "{row}");
}

#[test]
fn help_wraps_in_narrow_windows() {
    for (width, height) in [(40, 12), (60, 20)] {
        let mut env = with_help_panel();
        let all = env.frame(width, 500);
        assert!(!all.contains('…'), "{all}");
        let mut words = all.split_whitespace();
        for (group, _) in crate::panel::help::COMMAND_GROUPS {
            let entries = crate::keys::COMMAND_TABLE.iter().filter(|entry| {
                entry.is_slash_command && crate::panel::help::group_of(entry.command) == group
            });
            for entry in entries {
                for word in entry.description.split_whitespace() {
                    assert!(words.any(|shown| shown == word), "{word} of {}: {all}", entry.name);
                }
            }
        }
        // The selected entry is visible with its whole text, wherever it is.
        for _ in 0..110 {
            let frame = env.frame(width, height);
            assert!(frame.contains('›') && !frame.contains('…'), "{frame}");
            env.press("down");
        }
    }
    let mut env = with_help_panel();
    env.press("down down down down down down");
    expect![[r#"
        ── Help ────────────────────────────────
           type to filter                   106
             Hand this session over to the
             server and quit
        ›  /compact
             Summarize the conversation to free
             context
           Enter run · Esc close
        cursor 3,1
    "#]]
    .assert_eq(&env.frame(40, 12));
}

#[test]
fn help_is_searched_by_description_and_runs_the_selected_command() {
    let mut env = TestPanelApp::open();
    env.run_command("/help last undo");
    expect![[r#"
        ── Help ────────────────────────────────────────────────────────────────────────
           last undo                                                           3 of 106
         Work
        ›  /undo    Preview and undo the last turn's file changes
           /redo    Redo the last undo

         Keys in the prompt
           Ctrl+_, Ctrl+/                         Undo the last prompt edit











           Enter run · Esc close
        cursor 12,1
    "#]]
    .assert_eq(&env.frame(80, 24));
    env.press("ctrl+u");
    env.type_text("/quit");
    env.press("enter");
    assert_eq!(env.ui_effects, [UiEffect::Quit]);
}

#[test]
fn everything_can_be_drawn_in_ascii() {
    let mut env = TestPanelApp::new(Appearance { ascii: true, ..Appearance::default() });
    env.run_command("/model");
    env.answer(Ok(HostResponse::Models { models: models() }));
    let frame = env.frame(80, 24);
    let own_text: String = frame.replace("200k ·", "").replace("400k ·", "").replace("256k ·", "");
    assert!(own_text.is_ascii(), "{frame}");
}

#[test]
fn no_size_is_too_small() {
    for (width, height) in [(1, 1), (2, 3), (5, 4), (12, 5), (20, 8)] {
        let mut env = with_session_list();
        env.type_text("o");
        env.frame(width, height);
        env.press("esc f1");
        env.frame(width, height);
    }
}

#[test]
fn favorite_and_recent_models_come_first() {
    let mut env = TestPanelApp::open();
    env.run_command("/model");
    let mut models = models();
    models[2].is_recent = true;
    models[3].is_favorite = true;
    env.answer(Ok(HostResponse::Models { models }));
    expect![[r#"
        ── Model ───────────────────────────────────────────────────────────────────────
           type to filter                                                             4
         Favorites
           ollama/qwen3-coder:30b  256k · local

         Recent
           openai/gpt-5  400k · $1.25 in, $10 out

         All models
           anthropic/claude-sonnet-4  200k · $3 in, $15 out
        ›● anthropic/claude-opus-4    200k · $15 in, $75 out


           Enter use for now · Ctrl+S save as default · Ctrl+F favorite · Esc close
        cursor 3,7
    "#]]
    .assert_eq(&env.frame(80, 24));
    env.press("home down ctrl+f");
    let value = serde_json::json!(["openai/gpt-5", "ollama/qwen3-coder:30b"]);
    let name = "tui.favorite_models".to_owned();
    assert_eq!(env.pending_requests[0].request, FrontendRequest::SetConfig { name, value });
    let frame = env.frame(80, 24);
    assert!(!frame.contains("Recent"), "{frame}");
    env.press("enter");
    let expected = FrontendRequest::SetModel {
        model: "openai/gpt-5".into(),
        persist: ModelChoiceScope::Session,
    };
    assert_eq!(env.pending_requests[1].request, expected, "the selection stays on the model");
}

#[test]
fn the_palette_finds_and_runs_every_command() {
    let mut env = TestPanelApp::open();
    env.press("ctrl+p");
    let row = ListRow { name: "deploy".into(), note: "Ships it".into(), ..ListRow::default() };
    env.answer(Ok(HostResponse::Rows { rows: vec![row] }));
    expect![[r#"
        ── Commands ────────────────────────────────────────────────────────────────────
           type to filter                                                            52
         Session
        ›  /sessions  List, search, open, fork, rename and delete sessions       Ctrl+S
           /new       Start a new session
           /fork      Continue in a copy of this session
           /rewind    Rewind to an earlier prompt
           /rename    Rename this session: /rename TITLE
           /detach    Hand this session over to the server and quit
           /compact   Summarize the conversation to free context
           /export    Export this session: /export NAME.html, .md or .jsonl
           /quit      Quit (the session can be resumed)                          Ctrl+D

         Model
           /mode    Switch to the next mode: plan, ask, auto                  Shift+Tab

           List, search, open, fork, rename and delete sessions


           Enter run · Esc close
        cursor 3,1
    "#]]
    .assert_eq(&env.frame(80, 24));
    env.type_text("todo");
    env.press("enter");
    assert!(env.frame(80, 24).contains("Todos"));
    env.press("esc ctrl+p");
    env.answer(Ok(HostResponse::Rows { rows: Vec::new() }));
    env.type_text("rename");
    env.press("enter");
    assert!(super::screen_text(&mut env).contains("/ rename"));
}

#[test]
fn an_effort_is_chosen_from_those_of_the_model() {
    let mut env = TestPanelApp::open();
    env.press("alt+e");
    assert!(env.frame(80, 24).contains("neither reasoning efforts nor variants"));
    env.press("esc");
    let status = HostStatus {
        effort: Some("low".into()),
        efforts: vec!["deep".into(), "low".into(), "high".into()],
        ..env.app.state().host_status.clone()
    };
    env.run_command("/model");
    env.answer(Ok(HostResponse::Models { models: models() }));
    env.press("enter");
    env.answer(Ok(HostResponse::Status { status: Box::new(status) }));
    env.run_command("/effort");
    expect![[r#"
        ── Reasoning effort ────────────────────
           type to filter                     4
           default  the setting of your config
           deep
        ›● low
           high

           Enter use until you quit · Esc close
        cursor 3,1
    "#]]
    .assert_eq(&env.frame(40, 12));
    env.press("down enter");
    let effort = Some("high".to_owned());
    assert_eq!(env.pending_requests[0].request, FrontendRequest::SetEffort { effort });
}

#[test]
fn skills_hooks_and_settings_are_listed() {
    for (command, list) in [
        ("/skills", ListedItemKind::Skills),
        ("/hooks", ListedItemKind::Hooks),
        ("/config", ListedItemKind::Config),
    ] {
        let mut env = TestPanelApp::open();
        env.run_command(command);
        let row = ListRow { name: "pdf".into(), note: "Reads PDFs".into(), ..ListRow::default() };
        let request = env.answer(Ok(HostResponse::Rows { rows: vec![row] }));
        assert_eq!(request, FrontendRequest::List { list });
        let frame = env.frame(80, 24);
        assert!(frame.contains("pdf") && frame.contains("Reads PDFs"), "{frame}");
        env.press("enter");
        assert_eq!(env.frame(80, 24), "");
    }
}
