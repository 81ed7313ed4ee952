//! Tests of the panels for changes, rewind, jobs, subagents, usage, doctor, agents and themes.

use super::{HOUR, MINUTE, NOW, TestPanelApp, screen_text, session};
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use expect_test::expect;
use windlass_protocol::frontend_messages::{
    DoctorCheckStatus, FrontendRequest, HostResponse, ListRow,
};
use windlass_protocol::{
    Attachment, BlobRef, CallId, ContextUsagePart, Cost, DiffDirection, Fact, JobRow, LiveEvent,
    PromptDelivery, PromptHistoryRow, QueryReply, SessionOp, SessionQuery, SessionSummary,
    TokenUsage, Transcript, UndoScope, UnixMillis,
};

const DIFF: &str = "--- a/src/date.rs\n+++ b/src/date.rs\n@@ -1,3 +1,3 @@\n fn read() {\n-    let day = 1;\n+    let day = 0;\n }\n";

fn session_op(op: SessionOp) -> FrontendRequest {
    FrontendRequest::SessionOp { id: None, session: session(1), op }
}

#[test]
fn an_undo_is_previewed_and_applied_only_after_confirmation() {
    let mut env = TestPanelApp::open();
    env.run_command("/undo");
    assert!(env.frame(80, 24).contains("Loading changes"));
    env.press("y");
    assert_eq!(
        env.pending_requests.len(),
        1,
        "nothing can be confirmed before the changes are loaded"
    );
    let request = env.reply(QueryReply::Changes { facts: vec![7, 9], diff: DIFF.into() });
    let query = SessionQuery::Changes {
        session: session(1),
        scope: UndoScope::LastTurn,
        direction: DiffDirection::Reverse,
    };
    assert_eq!(request, FrontendRequest::Query { query });
    expect![[r#"
        ── Undo ────────────────────────────────────────────────────────────────────────
           src/date.rs  +1 -1
           1 1   fn read() {
           2   -     let day = 1;
             2 +     let day = 0;
           3 3   }

           y undo these changes · Esc close
    "#]]
    .assert_eq(&env.frame(80, 24));
    expect![[r#"
        ── Undo ────────────────────────────────
           src/date.rs  +1 -1
           1   fn read() {
           2 -     let day = 1;
           2 +     let day = 0;
           3   }

           y undo these changes · Esc close
    "#]]
    .assert_eq(&env.frame(40, 12));
    env.press("down pagedown y");
    assert_eq!(env.pending_requests[0].request, session_op(SessionOp::Undo { facts: vec![7, 9] }));
    assert_eq!(env.frame(80, 24), "", "the panel is closed");
}

#[test]
fn any_other_key_leaves_the_files_unchanged() {
    let mut env = TestPanelApp::open();
    env.run_command("/redo");
    env.reply(QueryReply::Changes { facts: vec![12], diff: DIFF.into() });
    assert!(env.frame(40, 12).contains("y redo these changes"));
    env.press("enter");
    assert!(env.pending_requests.is_empty());
    assert_eq!(env.frame(80, 24), "");
}

#[test]
fn nothing_to_undo_and_a_failure_are_shown() {
    let mut env = TestPanelApp::open();
    for (command, message) in [
        ("/undo", "Nothing to undo"),
        ("/redo", "Nothing to redo"),
        ("/diff", "This session has not changed any files"),
    ] {
        env.run_command(command);
        env.reply(QueryReply::Changes { facts: Vec::new(), diff: String::new() });
        assert!(env.frame(80, 24).contains(message), "{command}");
        env.press("esc");
    }
    env.run_command("/diff");
    env.fail();
    expect![[r#"
        ── Changes in this session ─────────────
           session log failure: the disk is
           full
           Free some disk space or close the
           other windlass process, then use
           /sessions to open the session again.

           Esc close
    "#]]
    .assert_eq(&env.frame(40, 12));
    let mut env = TestPanelApp::new(Appearance::default());
    env.run_command("/diff");
    assert!(env.frame(80, 24).contains("No session yet"));
}

#[test]
fn a_long_diff_scrolls_and_shows_the_position() {
    let mut env = TestPanelApp::open();
    env.run_command("/diff");
    let lines: String = (0..200).map(|line| format!("+line {line}\n")).collect();
    let diff = format!("--- a/x\n+++ b/x\n@@ -0,0 +1,200 @@\n{lines}");
    env.reply(QueryReply::Changes { facts: vec![3], diff });
    let first = env.frame(80, 24);
    env.press("pagedown pagedown");
    let later = env.frame(80, 24);
    assert_ne!(first, later);
    assert!(first.contains("1-") && later.contains(" of 2"), "{later}");
    env.press("ctrl+end");
    assert!(env.frame(80, 24).contains("line 199"));
    env.update(crate::app::AppEvent::MouseWheel(-500));
    assert_eq!(env.frame(80, 24), first);
}

fn prompts() -> Vec<PromptHistoryRow> {
    let row = |seq, age, text: &str, rewind_to| PromptHistoryRow {
        session: session(1),
        seq,
        at: UnixMillis(NOW - age),
        text: text.into(),
        attachments: Vec::new(),
        rewind_to,
    };
    vec![
        row(90, MINUTE, "now also the tests\nall of them", Some(89)),
        row(60, 2 * MINUTE, "and faster", None),
        row(30, HOUR, "fix the parser of dates", Some(2)),
    ]
}

#[test]
fn rewinding_to_a_prompt_puts_its_text_into_the_prompt() {
    let mut env = TestPanelApp::open();
    env.press("esc esc");
    let query = SessionQuery::Prompts { session: Some(session(1)), limit: Some(200) };
    assert_eq!(env.pending_requests[0].request, FrontendRequest::Query { query });
    env.reply(QueryReply::Prompts { prompts: prompts() });
    expect![[r#"
        ── Rewind to an earlier prompt ─────────────────────────────────────────────────
           type to filter                                                             2
        ›  now also the tests all of them                                            1m
           fix the parser of dates                                                   1h


           Enter rewind to it · Esc close
        cursor 3,14
    "#]]
    .assert_eq(&env.frame(80, 24));
    env.press("down enter");
    expect![[r#"
        ── Rewind to: fix the parser of dates ──────────────────────────────────────────
           Loading the changes since then

           Esc cancel
    "#]]
    .assert_eq(&env.frame(80, 24));
    env.reply(QueryReply::Changes { facts: Vec::new(), diff: String::new() });
    expect![[r#"
        ── Rewind to: fix the parser of dates ──
           No files changed since then



           b rewind · Esc cancel
    "#]]
    .assert_eq(&env.frame(40, 12));
    env.press("b");
    assert_eq!(env.pending_requests[0].request, session_op(SessionOp::Rewind { to: 2 }));
    assert_eq!(env.pending_requests.len(), 1);
    assert!(screen_text(&mut env).contains("fix the parser of dates"));
}

#[test]
fn rewinding_to_a_prompt_restores_its_attachments() {
    let mut env = TestPanelApp::open();
    env.press("esc esc");
    let mut prompts = prompts();
    let file = Attachment {
        name: "plan.png".into(),
        mime_type: "image/png".into(),
        blob: BlobRef::for_bytes(b"plan"),
    };
    prompts[0].text = "look at [image: plan.png]".into();
    prompts[0].attachments = vec![file.clone()];
    env.reply(QueryReply::Prompts { prompts });
    env.press("enter");
    env.reply(QueryReply::Changes { facts: Vec::new(), diff: String::new() });
    env.press("b");
    assert!(screen_text(&mut env).contains("look at [image: plan.png]"));
    env.pending_requests.clear();
    env.press("enter");
    let (attachments, warnings) = (Vec::new(), Vec::new());
    env.answer(Ok(HostResponse::PreparedPrompt { attachments, warnings }));
    let prompt = session_op(SessionOp::Prompt {
        text: "look at [image: plan.png]".into(),
        attachments: vec![file],
        delivery: PromptDelivery::Steer,
        settings: Default::default(),
    });
    assert!(
        env.pending_requests.iter().any(|message| message.request == prompt),
        "{:?}",
        env.pending_requests
    );
}

#[test]
fn a_rewind_undoes_file_changes_only_on_request() {
    let mut env = TestPanelApp::open();
    env.run_command("/rewind");
    env.reply(QueryReply::Prompts { prompts: prompts() });
    env.press("enter");
    env.reply(QueryReply::Changes { facts: vec![95], diff: DIFF.into() });
    let frame = env.frame(80, 24);
    assert!(frame.contains("b conversation only · u conversation and files"), "{frame}");
    let headings = frame.lines().filter(|line| line.contains("src/date.rs"));
    let changes = frame.lines().filter(|line| line.contains("let day"));
    let rows: Vec<&str> = headings.chain(changes).collect();
    assert!(rows.len() >= 3, "{frame}");
    assert!(rows.iter().all(|row| row.starts_with("   ")), "the diff is not indented: {frame}");
    env.press("enter");
    assert!(env.pending_requests.is_empty(), "Enter does not choose between the two");
    env.press("esc");
    assert!(env.frame(80, 24).contains("now also the tests"), "Esc goes back to the list");
    env.press("enter");
    env.reply(QueryReply::Changes { facts: vec![95], diff: DIFF.into() });
    env.press("u");
    let requests: Vec<FrontendRequest> =
        env.pending_requests.iter().map(|message| message.request.clone()).collect();
    assert_eq!(
        requests,
        [session_op(SessionOp::Rewind { to: 89 }), session_op(SessionOp::Undo { facts: vec![95] })]
    );
}

fn jobs() -> Vec<JobRow> {
    let row = |id, command: &str, running, exit_code, output_tail: &str| JobRow {
        id,
        command: command.into(),
        running,
        exit_code,
        started_at: UnixMillis(NOW - id * MINUTE),
        output_tail: output_tail.into(),
    };
    vec![
        row(1, "cargo test --workspace", false, Some(101), "test a ... FAILED\n1 failed\n"),
        row(2, "npm run dev", true, None, "compiling\nlistening on 3000\n"),
    ]
}

#[test]
fn jobs_are_listed_viewed_and_stopped() {
    let mut env = TestPanelApp::open();
    env.press("alt+j");
    env.reply(QueryReply::Jobs { jobs: jobs() });
    expect![[r#"
        ── Jobs ────────────────────────────────────────────────────────────────────────
           type to filter                                                             2
        ›● npm run dev             listening on 3000                        running  2m
           cargo test --workspace  1 failed                       failed (exit 101)  1m


           Enter show output · Ctrl+X stop · Esc close
        cursor 3,14
    "#]]
    .assert_eq(&env.frame(80, 24));
    expect![[r#"
        ── Jobs ────────────────────────────────
           type to filter                     2
        ›● npm run dev           listening…  2m
           cargo test --worksp…  1 failed    1m


           Enter show output · Ctrl+X stop
        cursor 3,2
    "#]]
    .assert_eq(&env.frame(40, 12));
    env.press("enter");
    expect![[r#"
        ── npm run dev ─────────────────────────
           compiling
           listening on 3000




           running · Esc back to the list
    "#]]
    .assert_eq(&env.frame(40, 12));
    env.press("esc ctrl+x");
    assert!(env.frame(80, 24).contains("Press y to stop: npm run dev"));
    env.pending_requests.clear();
    env.press("n ctrl+x y");
    assert_eq!(env.pending_requests[0].request, session_op(SessionOp::EndJob { job: 2 }));
    let ended = JobRow { running: false, ..jobs().remove(1) };
    env.live(LiveEvent::JobUpdate { job: ended });
    let frame = env.frame(80, 24);
    assert!(frame.contains("ended  2m") && !frame.contains("running"), "{frame}");
}

#[test]
fn job_updates_are_shown_as_jobs_start_print_and_end() {
    let mut env = TestPanelApp::open();
    let running = jobs().remove(1);
    let screen_contains = |env: &mut TestPanelApp, text: &str| screen_text(env).contains(text);
    env.live(LiveEvent::JobUpdate { job: running.clone() });
    assert!(
        screen_contains(&mut env, "1 job") && env.pending_requests.is_empty(),
        "no request is needed"
    );
    env.press("alt+j");
    assert!(
        env.frame(80, 24).contains("listening on 3000"),
        "the job is shown before the response"
    );
    env.reply(QueryReply::Jobs { jobs: vec![running.clone()] });
    // A newer job is listed above and does not take over the selection.
    let newer = JobRow { id: 3, command: "make watch".into(), ..running.clone() };
    env.live(LiveEvent::JobUpdate { job: newer });
    let frame = env.frame(80, 24);
    let selected = frame.lines().find(|row| row.starts_with('›')).unwrap();
    assert!(screen_contains(&mut env, "2 jobs") && selected.contains("npm run dev"), "{frame}");

    // The output view follows the end of the output, with at most one request at a time.
    env.press("enter");
    let output = |lines: u32| (1..=lines).map(|line| format!("line {line}\n")).collect::<String>();
    let row = |output_tail: String| JobRow { output_tail, ..running.clone() };
    env.reply(QueryReply::Jobs { jobs: vec![row(output(30))] });
    env.frame(40, 12);
    env.press("end");
    assert!(env.frame(40, 12).contains("line 30"));
    for _ in 0..3 {
        env.live(LiveEvent::JobUpdate { job: row("line 31".into()) });
    }
    assert_eq!(env.pending_requests.len(), 1);
    env.reply(QueryReply::Jobs { jobs: vec![row(output(31))] });
    assert!(env.frame(40, 12).contains("line 31"), "{}", env.frame(40, 12));
    assert_eq!(env.pending_requests.len(), 1, "an update that arrived meanwhile is requested");
    env.press("home");
    env.reply(QueryReply::Jobs { jobs: vec![row(output(99))] });
    assert!(env.frame(40, 12).contains("line 1\n"), "a view that was scrolled up stays in place");
    assert!(env.pending_requests.is_empty());

    // A response that is older than a live update does not mark an ended job as running.
    env.press("esc");
    env.live(LiveEvent::JobUpdate {
        job: JobRow { running: false, exit_code: Some(0), ..running.clone() },
    });
    env.press("esc alt+j");
    env.reply(QueryReply::Jobs { jobs: vec![running.clone()] });
    assert!(screen_contains(&mut env, "1 job ") && env.frame(80, 24).contains("done"));
    // Job ids start again when a session is reopened.
    env.live(LiveEvent::JobUpdate { job: JobRow { started_at: UnixMillis(NOW), ..running } });
    assert!(screen_contains(&mut env, "2 jobs") && !env.frame(80, 24).contains("done"));
}

#[test]
fn no_jobs_and_a_failure_are_shown() {
    let mut env = TestPanelApp::open();
    env.run_command("/jobs");
    env.reply(QueryReply::Jobs { jobs: Vec::new() });
    assert!(env.frame(80, 24).contains("No background commands"));
    env.press("esc");
    env.run_command("/jobs");
    env.fail();
    assert!(env.frame(80, 24).contains("the disk is full"));
}

#[test]
fn running_subagents_are_listed_with_their_activity() {
    let mut env = TestPanelApp::open();
    env.run_command("/tasks");
    assert!(env.frame(80, 24).contains("No subagents in this session"));
    let call = CallId(uuid::Uuid::from_u128(5));
    env.fact(Fact::SubagentStarted {
        call,
        session: session(7),
        agent: "explore".into(),
        after: 0,
    });
    let mut summary = SessionSummary::new(session(7));
    summary.parent = Some(session(1));
    summary.title = "Find where dates are read".into();
    let mut older = SessionSummary::new(session(6));
    older.parent = Some(session(1));
    older.title = "Review the change".into();
    (older.cost, older.changed_at) = (Cost(42_000), UnixMillis(NOW - HOUR));
    let other = SessionSummary::new(session(8));
    env.reply(QueryReply::Sessions { sessions: vec![summary, older, other] });
    expect![[r#"
        ── Subagents ───────────────────────────────────────────────────────────────────
           type to filter                                                             2
        ›● explore  Find where dates are read                          0 calls  working
           agent    Review the change                                    $0.04       1h


           Enter show transcript · Esc close
        cursor 3,14
    "#]]
    .assert_eq(&env.frame(80, 24));
    env.press("enter");
    assert!(env.frame(80, 24).contains("explore: Find where dates are read"));
    env.press("esc");
    assert!(env.frame(80, 24).contains("Subagents"));
}

#[test]
fn usage_and_cost_are_added_up() {
    let mut env = TestPanelApp::open();
    env.run_command("/cost");
    let mut child = SessionSummary::new(session(7));
    (child.parent, child.cost) = (Some(session(1)), Cost(42_000));
    env.reply(QueryReply::Sessions { sessions: vec![child] });
    let mut transcript = Transcript::default();
    transcript.usage = TokenUsage {
        input: 1_234_567,
        output: 12_300,
        cache_reads: 1_000_000,
        cache_writes: 0,
        reasoning: 2_300,
    };
    transcript.cost = Cost(3_456_000);
    env.reply(QueryReply::Transcript { transcript: Box::new(transcript) });
    expect![[r#"
        ── Cost ────────────────────────────────────────────────────────────────────────
           Input                 234 567 tokens
           Cached input        1 000 000 tokens
           Output                 10 000 tokens
           Reasoning               2 300 tokens

           Cost                    $3.46
           And 1 agent             $0.04

           Esc close
    "#]]
    .assert_eq(&env.frame(80, 24));
    expect![[r#"
        ── Cost ────────────────────────────────
           Input                 234 567 tokens
           Cached input        1 000 000 tokens
           Output                 10 000 tokens
           Reasoning               2 300 tokens


           PageDown scroll · Esc close
    "#]]
    .assert_eq(&env.frame(40, 12));
}

fn parts() -> Vec<ContextUsagePart> {
    let part = |name: &str, tokens| ContextUsagePart { name: name.into(), tokens };
    vec![
        part("system prompt", 3_100),
        part("tools", 9_800),
        part("prompts", 420),
        part("answers", 12_000),
        part("calls: bash", 41_000),
        part("calls: read", 22_500),
    ]
}

#[test]
fn context_usage_is_shown_as_bars() {
    let mut env = TestPanelApp::open();
    env.run_command("/context");
    let reply = QueryReply::Context {
        context_window: Some(200_000),
        output_reserve: 32_000,
        parts: parts(),
    };
    env.reply(reply.clone());
    expect![[r#"
        ── Context ─────────────────────────────────────────────────────────────────────
           88 820 of 200 000 tokens

           system prompt      3k   1 %  ╸
           tools              9k   4 %  ━━
           prompts           420  <1 %  ╸
           answers           12k   6 %  ━━╸
           calls: bash       41k  20 %  ━━━━━━━━━╸
           calls: read       22k  11 %  ━━━━━
           free             111k  55 %  ━━━━━━━━━━━━━━━━━━━━━━━━━━

           Compacts automatically in 79k tokens

           Esc close
    "#]]
    .assert_eq(&env.frame(80, 24));
    expect![[r#"
        ── Context ─────────────────────────────
           88 820 of 200 000 tokens

           system prom…      3k   1 %  ╸
           tools             9k   4 %  ╸
           prompts          420  <1 %  ╸

           PageDown scroll · Esc close
    "#]]
    .assert_eq(&env.frame(40, 12));
    let mut env = TestPanelApp::open();
    env.run_command("/context");
    env.reply(QueryReply::Context { context_window: None, output_reserve: 0, parts: parts() });
    assert!(env.frame(80, 24).contains("88 820 tokens"));
    let mut env = TestPanelApp::new(Appearance { ascii: true, ..Appearance::default() });
    env.run_command("/new");
    env.answer(Ok(HostResponse::SessionOpened { session: session(1), head: 0, model: None }));
    env.pending_requests.clear();
    env.run_command("/context");
    env.reply(reply);
    let frame = env.frame(80, 24);
    assert!(frame.is_ascii() && frame.contains("####"), "{frame}");
}

#[test]
fn the_doctor_shows_the_status_of_each_check() {
    let mut env = TestPanelApp::open();
    env.run_command("/doctor");
    let row =
        |name: &str, note: &str, status| ListRow { name: name.into(), note: note.into(), status };
    let rows = vec![
        row("terminal", "xterm-256color, 256 colors", DoctorCheckStatus::Ok),
        row(
            "sandbox",
            "bubblewrap is missing; commands run under Landlock only",
            DoctorCheckStatus::Degraded,
        ),
        row("keys", "there is no key for anthropic; /login keeps one", DoctorCheckStatus::Broken),
    ];
    env.answer(Ok(HostResponse::Rows { rows }));
    expect![[r#"
        ── Doctor ──────────────────────────────────────────────────────────────────────
         ✓ terminal  xterm-256color, 256 colors
         ! sandbox   bubblewrap is missing; commands run under Landlock only
         ✗ keys      there is no key for anthropic; /login keeps one

           Esc close
    "#]]
    .assert_eq(&env.frame(80, 24));
    expect![[r#"
        ── Doctor ──────────────────────────────
         ✓ terminal  xterm-256color, 256 colors
         ! sandbox   bubblewrap is missing;
                     commands run under
                     Landlock only
         ✗ keys      there is no key for

           PageDown scroll · Esc close
    "#]]
    .assert_eq(&env.frame(40, 12));
}

#[test]
fn an_empty_todo_list_is_reported() {
    let mut env = TestPanelApp::open();
    env.run_command("/todos");
    env.reply(QueryReply::Transcript { transcript: Box::default() });
    assert!(env.frame(80, 24).contains("The todo list is empty"));
}

#[test]
fn an_agent_is_chosen_for_this_session() {
    let mut env = TestPanelApp::open();
    env.run_command("/agent");
    let row = |name: &str, note: &str| ListRow {
        name: name.into(),
        note: note.into(),
        ..ListRow::default()
    };
    let rows = vec![row("build", "Does the work"), row("review", "Reads and judges")];
    env.answer(Ok(HostResponse::Rows { rows }));
    expect![[r#"
        ── Agent ───────────────────────────────
           type to filter                     2
        ›● build   Does the work
           review  Reads and judges


           Enter switch to it · Esc close
        cursor 3,2
    "#]]
    .assert_eq(&env.frame(40, 12));
    env.press("down enter");
    let request = &env.pending_requests[0].request;
    let FrontendRequest::SessionOp { op, .. } = request else { panic!("{request:?}") };
    assert_eq!(*op, SessionOp::SetAgent { agent: "review".into() });
    assert!(super::screen_text(&mut env).contains("Agent: review"));
}

#[test]
fn a_theme_is_previewed_and_saved_only_on_enter() {
    let mut env = TestPanelApp::open();
    let before = env.app.appearance().theme.clone();
    let names = crate::theme::Theme::names();
    assert!(names.len() > 10, "{names:?}");
    env.run_command("/theme");
    env.press("down");
    assert_ne!(env.app.appearance().theme, before);
    env.press("esc");
    assert_eq!(env.app.appearance().theme, before);
    env.run_command("/theme");
    env.press("down ctrl+c");
    assert_eq!(env.app.appearance().theme, before);
    env.run_command("/theme");
    env.press("down enter");
    assert_ne!(env.app.appearance().theme.name, before.name);
    let chosen = env.app.appearance().theme.name.clone();
    let (name, value) = ("tui.theme".to_owned(), chosen.into());
    assert_eq!(env.pending_requests[0].request, FrontendRequest::SetConfig { name, value });
}

#[test]
fn a_background_reported_late_applies_to_every_theme() {
    use crate::theme::TerminalBackground;
    let mut env = TestPanelApp::open();
    env.run_command("/theme");
    env.press("down");
    env.update(crate::AppEvent::BackgroundColor((255, 255, 255)));
    assert_eq!(env.app.appearance().theme.background, TerminalBackground::Light);
    env.press("down");
    assert_eq!(env.app.appearance().theme.background, TerminalBackground::Light);
    env.press("esc");
    assert_eq!(env.app.appearance().theme.background, TerminalBackground::Light);
}

#[test]
fn user_colors_override_every_theme() {
    let overrides = [("accent".to_owned(), "bold #d08770".to_owned())].into();
    let (theme, errors) = crate::theme::Theme::default().with_overrides(&overrides);
    assert!(errors.is_empty());
    let accent = theme.style(StyleRole::Accent);
    let mut env = TestPanelApp::new(Appearance { theme, ..Appearance::default() });
    for name in crate::theme::Theme::names() {
        env.run_command(&format!("/theme {name}"));
        env.press("enter");
        let appearance = env.app.appearance();
        assert_eq!(
            (appearance.theme.name.as_str(), appearance.style(StyleRole::Accent)),
            (name, accent)
        );
    }
}
