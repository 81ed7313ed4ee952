//! What one reads and says yes to: changes, going back, jobs, agents, numbers, themes.

use super::{HOUR, MINUTE, NOW, Stage, screen, session};
use crate::cx::Look;
use crate::theme::Role;
use expect_test::expect;
use windlass_protocol::wire::{Answered, Health, Request, Row};
use windlass_protocol::{
    Attachment, BlobRef, CallId, ContextPart, Cost, Delivery, Fact, JobRow, Live, Millis, Op,
    PromptRow, Query, Reply, Scope, SessionSummary, Transcript, Usage, View,
};

const DIFF: &str = "--- a/src/date.rs\n+++ b/src/date.rs\n@@ -1,3 +1,3 @@\n fn read() {\n-    let day = 1;\n+    let day = 0;\n }\n";

fn done(op: Op) -> Request {
    Request::Do { session: session(1), op }
}

#[test]
fn an_undo_shows_what_it_would_change_and_does_it_after_a_yes_only() {
    let mut stage = Stage::open();
    stage.command("/undo");
    assert!(stage.frame(80, 24).contains("looking at what changed"));
    stage.press("y");
    assert_eq!(stage.asked.len(), 1, "there is nothing yet to say yes to");
    let request = stage.reply(Reply::Changes { facts: vec![7, 9], diff: DIFF.into() });
    let (scope, view) = (Scope::LastTurn, View::Back);
    let query = Query::Changes { session: session(1), scope, view };
    assert_eq!(request, Request::Query { query });
    expect![[r#"
        ── Undo ────────────────────────────────────────────────────────────────────────
           src/date.rs  +1 -1
           1 1   fn read() {
           2   -     let day = 1;
             2 +     let day = 0;
           3 3   }

           y takes this back · Esc closes
    "#]]
    .assert_eq(&stage.frame(80, 24));
    expect![[r#"
        ── Undo ────────────────────────────────
           src/date.rs  +1 -1
           1   fn read() {
           2 -     let day = 1;
           2 +     let day = 0;
           3   }

           y takes this back · Esc closes
    "#]]
    .assert_eq(&stage.frame(40, 12));
    stage.press("down pagedown y");
    assert_eq!(stage.asked[0].request, done(Op::Undo { facts: vec![7, 9] }));
    assert_eq!(stage.frame(80, 24), "", "it is closed");
}

#[test]
fn any_other_key_leaves_the_files_as_they_are() {
    let mut stage = Stage::open();
    stage.command("/redo");
    stage.reply(Reply::Changes { facts: vec![12], diff: DIFF.into() });
    assert!(stage.frame(40, 12).contains("y does this again"));
    stage.press("enter");
    assert!(stage.asked.is_empty());
    assert_eq!(stage.frame(80, 24), "");
}

#[test]
fn nothing_to_take_back_is_said_and_so_is_a_failure() {
    let mut stage = Stage::open();
    for (command, said) in [
        ("/undo", "there is nothing to take back"),
        ("/redo", "nothing was taken back"),
        ("/diff", "this session has changed no file"),
    ] {
        stage.command(command);
        stage.reply(Reply::Changes { facts: Vec::new(), diff: String::new() });
        assert!(stage.frame(80, 24).contains(said), "{command}");
        stage.press("esc");
    }
    stage.command("/diff");
    stage.fail();
    expect![[r#"
        ── Changes of this session ─────────────
           the session's log failed: the disk
           is full
           Free some disk space or close the
           other windlass; then /sessions opens
           it again.

           Esc closes
    "#]]
    .assert_eq(&stage.frame(40, 12));
    let mut stage = Stage::new(Look::default());
    stage.command("/diff");
    assert!(stage.frame(80, 24).contains("there is no session yet"));
}

#[test]
fn a_long_diff_is_scrolled_and_says_where_one_is() {
    let mut stage = Stage::open();
    stage.command("/diff");
    let lines: String = (0..200).map(|line| format!("+line {line}\n")).collect();
    let diff = format!("--- a/x\n+++ b/x\n@@ -0,0 +1,200 @@\n{lines}");
    stage.reply(Reply::Changes { facts: vec![3], diff });
    let first = stage.frame(80, 24);
    stage.press("pagedown pagedown");
    let later = stage.frame(80, 24);
    assert_ne!(first, later);
    assert!(first.contains("1-") && later.contains(" of 2"), "{later}");
    stage.press("ctrl+end");
    assert!(stage.frame(80, 24).contains("line 199"));
    stage.input(crate::app::Input::Wheel(-500));
    assert_eq!(stage.frame(80, 24), first);
}

fn prompts() -> Vec<PromptRow> {
    let row = |seq, age, text: &str, back| PromptRow {
        session: session(1),
        seq,
        at: Millis(NOW - age),
        text: text.into(),
        attachments: Vec::new(),
        back,
    };
    vec![
        row(90, MINUTE, "now also the tests\nall of them", Some(89)),
        row(60, 2 * MINUTE, "and faster", None),
        row(30, HOUR, "fix the parser of dates", Some(2)),
    ]
}

#[test]
fn one_goes_back_to_a_prompt_and_has_it_to_write_anew() {
    let mut stage = Stage::open();
    stage.press("esc esc");
    let query = Query::Prompts { session: Some(session(1)), most: Some(200) };
    assert_eq!(stage.asked[0].request, Request::Query { query });
    stage.reply(Reply::Prompts { prompts: prompts() });
    expect![[r#"
        ── Back to an earlier prompt ───────────────────────────────────────────────────
           type to find                                                               2
        ›  now also the tests all of them                                            1m
           fix the parser of dates                                                   1h


           Enter goes back to it · Esc closes
        cursor 3,14
    "#]]
    .assert_eq(&stage.frame(80, 24));
    stage.press("down enter");
    expect![[r#"
        ── Back to: fix the parser of dates ────────────────────────────────────────────
           looking at what changed since

           Esc stays here
    "#]]
    .assert_eq(&stage.frame(80, 24));
    stage.reply(Reply::Changes { facts: Vec::new(), diff: String::new() });
    expect![[r#"
        ── Back to: fix the parser of dates ────
           no file was changed since



           b goes back · Esc stays here
    "#]]
    .assert_eq(&stage.frame(40, 12));
    stage.press("b");
    assert_eq!(stage.asked[0].request, done(Op::Back { to: 2 }));
    assert_eq!(stage.asked.len(), 1);
    assert!(screen(&mut stage).contains("fix the parser of dates"));
}

#[test]
fn what_came_with_a_prompt_comes_back_with_it() {
    let mut stage = Stage::open();
    stage.press("esc esc");
    let mut prompts = prompts();
    let file = Attachment {
        name: "plan.png".into(),
        mime: "image/png".into(),
        blob: BlobRef::of(b"plan"),
    };
    prompts[0].text = "look at [image: plan.png]".into();
    prompts[0].attachments = vec![file.clone()];
    stage.reply(Reply::Prompts { prompts });
    stage.press("enter");
    stage.reply(Reply::Changes { facts: Vec::new(), diff: String::new() });
    stage.press("b");
    assert!(screen(&mut stage).contains("look at [image: plan.png]"));
    stage.asked.clear();
    stage.press("enter");
    let (text, when) = ("look at [image: plan.png]".into(), Delivery::Steer);
    let said = done(Op::Prompt { text, attachments: vec![file], when });
    assert!(stage.asked.iter().any(|up| up.request == said), "{:?}", stage.asked);
}

#[test]
fn files_are_taken_back_with_it_only_if_that_is_wanted() {
    let mut stage = Stage::open();
    stage.command("/back");
    stage.reply(Reply::Prompts { prompts: prompts() });
    stage.press("enter");
    stage.reply(Reply::Changes { facts: vec![95], diff: DIFF.into() });
    let frame = stage.frame(80, 24);
    assert!(frame.contains("b goes back, files stay · u takes them back, too"), "{frame}");
    stage.press("enter");
    assert!(stage.asked.is_empty(), "Enter does not choose between the two");
    stage.press("esc");
    assert!(stage.frame(80, 24).contains("now also the tests"), "Esc goes back to the list");
    stage.press("enter");
    stage.reply(Reply::Changes { facts: vec![95], diff: DIFF.into() });
    stage.press("u");
    let asked: Vec<Request> = stage.asked.iter().map(|up| up.request.clone()).collect();
    assert_eq!(asked, [done(Op::Back { to: 89 }), done(Op::Undo { facts: vec![95] })]);
}

fn jobs() -> Vec<JobRow> {
    let row = |id, command: &str, running, exit, tail: &str| JobRow {
        id,
        command: command.into(),
        running,
        exit,
        since: Millis(NOW - id * MINUTE),
        tail: tail.into(),
    };
    vec![
        row(1, "cargo test --workspace", false, Some(101), "test a ... FAILED\n1 failed\n"),
        row(2, "npm run dev", true, None, "compiling\nlistening on 3000\n"),
    ]
}

#[test]
fn jobs_are_listed_looked_at_and_ended() {
    let mut stage = Stage::open();
    stage.press("alt+j");
    stage.reply(Reply::Jobs { jobs: jobs() });
    expect![[r#"
        ── Jobs ────────────────────────────────────────────────────────────────────────
           type to find                                                               2
        ›● npm run dev             listening on 3000                           runs  2m
           cargo test --workspace  1 failed                         failed with 101  1m


           Enter shows what it said · Ctrl+X ends it · Esc closes
        cursor 3,14
    "#]]
    .assert_eq(&stage.frame(80, 24));
    expect![[r#"
        ── Jobs ────────────────────────────────
           type to find                       2
        ›● npm run dev           listening…  2m
           cargo test --worksp…  1 failed    1m


           Enter shows what it said
        cursor 3,2
    "#]]
    .assert_eq(&stage.frame(40, 12));
    stage.press("enter");
    expect![[r#"
        ── npm run dev ─────────────────────────
           compiling
           listening on 3000




           runs · Esc goes back to the list
    "#]]
    .assert_eq(&stage.frame(40, 12));
    stage.press("esc ctrl+x");
    assert!(stage.frame(80, 24).contains("y ends it: npm run dev"));
    stage.asked.clear();
    stage.press("n ctrl+x y");
    assert_eq!(stage.asked[0].request, done(Op::EndJob { job: 2 }));
    let ended = JobRow { running: false, ..jobs().remove(1) };
    stage.live(Live::Job { job: ended });
    let frame = stage.frame(80, 24);
    assert!(frame.contains("ended  2m") && !frame.contains("runs"), "{frame}");
}

#[test]
fn jobs_are_followed_as_they_begin_speak_and_end() {
    let mut stage = Stage::open();
    let running = jobs().remove(1);
    let shows = |stage: &mut Stage, text: &str| screen(stage).contains(text);
    stage.live(Live::Job { job: running.clone() });
    assert!(shows(&mut stage, "1 job") && stage.asked.is_empty(), "nobody has to ask");
    stage.press("alt+j");
    assert!(stage.frame(80, 24).contains("listening on 3000"), "before the answer");
    stage.reply(Reply::Jobs { jobs: vec![running.clone()] });
    // One that comes later stands above it and does not take its place.
    let newer = JobRow { id: 3, command: "make watch".into(), ..running.clone() };
    stage.live(Live::Job { job: newer });
    let frame = stage.frame(80, 24);
    let selected = frame.lines().find(|row| row.starts_with('›')).unwrap();
    assert!(shows(&mut stage, "2 jobs") && selected.contains("npm run dev"), "{frame}");

    // Whoever looks at what it says sees the end of it grow, and asks no more often than it is told.
    stage.press("enter");
    let said = |lines: u32| (1..=lines).map(|line| format!("line {line}\n")).collect::<String>();
    let row = |tail: String| JobRow { tail, ..running.clone() };
    stage.reply(Reply::Jobs { jobs: vec![row(said(30))] });
    stage.frame(40, 12);
    stage.press("end");
    assert!(stage.frame(40, 12).contains("line 30"));
    for _ in 0..3 {
        stage.live(Live::Job { job: row("line 31".into()) });
    }
    assert_eq!(stage.asked.len(), 1);
    stage.reply(Reply::Jobs { jobs: vec![row(said(31))] });
    assert!(stage.frame(40, 12).contains("line 31"), "{}", stage.frame(40, 12));
    assert_eq!(stage.asked.len(), 1, "there was more since");
    stage.press("home");
    stage.reply(Reply::Jobs { jobs: vec![row(said(99))] });
    assert!(stage.frame(40, 12).contains("line 1\n"), "whoever reads above is left there");
    assert!(stage.asked.is_empty());

    // An answer that is older than what was told brings nothing back to life.
    stage.press("esc");
    stage.live(Live::Job { job: JobRow { running: false, exit: Some(0), ..running.clone() } });
    stage.press("esc alt+j");
    stage.reply(Reply::Jobs { jobs: vec![running.clone()] });
    assert!(shows(&mut stage, "1 job ") && stage.frame(80, 24).contains("done"));
    // In a session that was opened anew numbers begin anew, too.
    stage.live(Live::Job { job: JobRow { since: Millis(NOW), ..running } });
    assert!(shows(&mut stage, "2 jobs") && !stage.frame(80, 24).contains("done"));
}

#[test]
fn no_job_and_a_failure_are_said() {
    let mut stage = Stage::open();
    stage.command("/jobs");
    stage.reply(Reply::Jobs { jobs: Vec::new() });
    assert!(stage.frame(80, 24).contains("nothing runs in the background"));
    stage.press("esc");
    stage.command("/jobs");
    stage.fail();
    assert!(stage.frame(80, 24).contains("the disk is full"));
}

#[test]
fn agents_at_work_are_listed_with_what_they_do() {
    let mut stage = Stage::open();
    stage.command("/agents");
    assert!(stage.frame(80, 24).contains("no agent was given work"));
    let call = CallId(uuid::Uuid::from_u128(5));
    stage.fact(Fact::Spawned { call, session: session(7), agent: "explore".into() });
    let mut summary = SessionSummary::new(session(7));
    summary.parent = Some(session(1));
    summary.title = "Find where dates are read".into();
    let mut older = SessionSummary::new(session(6));
    older.parent = Some(session(1));
    older.title = "Review the change".into();
    (older.cost, older.changed) = (Cost(42_000), Millis(NOW - HOUR));
    let other = SessionSummary::new(session(8));
    stage.reply(Reply::Sessions { sessions: vec![summary, older, other] });
    expect![[r#"
        ── Agents at work ──────────────────────────────────────────────────────────────
           type to find                                                               2
        ›● explore  Find where dates are read                            0 calls  works
           agent    Review the change                                      $0.04     1h


           Enter shows what it does · Esc closes
        cursor 3,14
    "#]]
    .assert_eq(&stage.frame(80, 24));
    stage.press("enter");
    assert!(stage.frame(80, 24).contains("explore: Find where dates are read"));
    stage.press("esc");
    assert!(stage.frame(80, 24).contains("Agents at work"));
}

#[test]
fn what_was_used_is_added_up() {
    let mut stage = Stage::open();
    stage.command("/cost");
    let mut child = SessionSummary::new(session(7));
    (child.parent, child.cost) = (Some(session(1)), Cost(42_000));
    stage.reply(Reply::Sessions { sessions: vec![child] });
    let mut transcript = Transcript::default();
    transcript.usage = Usage {
        input: 1_234_567,
        output: 12_300,
        cached: 1_000_000,
        cache_writes: 0,
        reasoning: 2_300,
    };
    transcript.cost = Cost(3_456_000);
    stage.reply(Reply::Transcript { transcript: Box::new(transcript) });
    expect![[r#"
        ── Cost ────────────────────────────────────────────────────────────────────────
           read anew             234 567 tokens
           read from the cache 1 000 000 tokens
           written                10 000 tokens
           thought                 2 300 tokens

           cost                    $3.46
           and 1 agent             $0.04

           Esc closes
    "#]]
    .assert_eq(&stage.frame(80, 24));
    expect![[r#"
        ── Cost ────────────────────────────────
           read anew             234 567 tokens
           read from the cache 1 000 000 tokens
           written                10 000 tokens
           thought                 2 300 tokens


           PageDown scrolls · Esc closes
    "#]]
    .assert_eq(&stage.frame(40, 12));
}

fn parts() -> Vec<ContextPart> {
    let part = |name: &str, tokens| ContextPart { name: name.into(), tokens };
    vec![
        part("brief", 3_100),
        part("tools", 9_800),
        part("prompts", 420),
        part("answers", 12_000),
        part("calls: bash", 41_000),
        part("calls: read", 22_500),
    ]
}

#[test]
fn what_fills_the_window_is_seen_as_bars() {
    let mut stage = Stage::open();
    stage.command("/context");
    let reply = Reply::Context { window: Some(200_000), reserve: 32_000, parts: parts() };
    stage.reply(reply.clone());
    expect![[r#"
        ── Context ─────────────────────────────────────────────────────────────────────
           88 820 of 200 000 tokens

           brief            3k   1 %  ╸
           tools            9k   4 %  ━━
           prompts         420  <1 %  ╸
           answers         12k   6 %  ━━╸
           calls: bash     41k  20 %  ━━━━━━━━━━
           calls: read     22k  11 %  ━━━━━╸
           free           111k  55 %  ━━━━━━━━━━━━━━━━━━━━━━━━━━━

           79k more, and the conversation is summed up

           Esc closes
    "#]]
    .assert_eq(&stage.frame(80, 24));
    expect![[r#"
        ── Context ─────────────────────────────
           88 820 of 200 000 tokens

           brief            3k   1 %  ╸
           tools            9k   4 %  ╸
           prompts         420  <1 %  ╸

           PageDown scrolls · Esc closes
    "#]]
    .assert_eq(&stage.frame(40, 12));
    let mut stage = Stage::open();
    stage.command("/context");
    stage.reply(Reply::Context { window: None, reserve: 0, parts: parts() });
    assert!(stage.frame(80, 24).contains("88 820 tokens"));
    let mut stage = Stage::new(Look { ascii: true, ..Look::default() });
    stage.command("/new");
    stage.answer(Ok(Answered::Opened { session: session(1), head: 0 }));
    stage.asked.clear();
    stage.command("/context");
    stage.reply(reply);
    let frame = stage.frame(80, 24);
    assert!(frame.is_ascii() && frame.contains("####"), "{frame}");
}

#[test]
fn the_doctor_says_what_is_well_and_what_is_not() {
    let mut stage = Stage::open();
    stage.command("/doctor");
    let row = |name: &str, note: &str, health| Row { name: name.into(), note: note.into(), health };
    let rows = vec![
        row("terminal", "xterm-256color, 256 colours", Health::Good),
        row("sandbox", "bubblewrap is missing; commands run under Landlock only", Health::Less),
        row("keys", "there is no key for anthropic; /login keeps one", Health::Bad),
    ];
    stage.answer(Ok(Answered::Rows { rows }));
    expect![[r#"
        ── Doctor ──────────────────────────────────────────────────────────────────────
         ✓ terminal  xterm-256color, 256 colours
         ! sandbox   bubblewrap is missing; commands run under Landlock only
         ✗ keys      there is no key for anthropic; /login keeps one

           Esc closes
    "#]]
    .assert_eq(&stage.frame(80, 24));
    expect![[r#"
        ── Doctor ──────────────────────────────
         ✓ terminal  xterm-256color, 256
                     colours
         ! sandbox   bubblewrap is missing;
                     commands run under
                     Landlock only

           PageDown scrolls · Esc closes
    "#]]
    .assert_eq(&stage.frame(40, 12));
}

#[test]
fn a_session_without_a_list_says_so() {
    let mut stage = Stage::open();
    stage.command("/todos");
    stage.reply(Reply::Transcript { transcript: Box::default() });
    assert!(stage.frame(80, 24).contains("nothing is on the list"));
}

#[test]
fn an_agent_is_chosen_for_a_new_session() {
    let mut stage = Stage::open();
    stage.command("/agent");
    let row =
        |name: &str, note: &str| Row { name: name.into(), note: note.into(), ..Row::default() };
    let rows = vec![row("build", "Does the work"), row("review", "Reads and judges")];
    stage.answer(Ok(Answered::Rows { rows }));
    expect![[r#"
        ── Agent of a new session ──────────────
           type to find                       2
        ›● build   Does the work
           review  Reads and judges


           Enter begins a session with it
        cursor 3,2
    "#]]
    .assert_eq(&stage.frame(40, 12));
    stage.press("down enter");
    assert_eq!(stage.asked[0].request, Request::Begin { agent: Some("review".into()) });
    stage.answer(Ok(Answered::Opened { session: session(3), head: 0 }));
    assert_eq!(stage.app.known().session, Some(session(3)));
    assert_eq!(stage.frame(80, 24), "");
}

#[test]
fn a_theme_is_seen_while_it_is_selected_and_kept_on_enter_only() {
    let mut stage = Stage::open();
    let before = stage.app.look().theme.clone();
    let names = crate::theme::Theme::names();
    assert!(names.len() > 2);
    stage.command("/theme");
    stage.press("down");
    assert_ne!(stage.app.look().theme, before);
    stage.press("esc");
    assert_eq!(stage.app.look().theme, before);
    stage.command("/theme");
    stage.press("down ctrl+c");
    assert_eq!(stage.app.look().theme, before);
    stage.command("/theme");
    stage.press("down enter");
    assert_ne!(stage.app.look().theme.name, before.name);
    let chosen = stage.app.look().theme.name.clone();
    let (name, value) = ("tui.theme".to_owned(), chosen.into());
    assert_eq!(stage.asked[0].request, Request::Set { name, value });
}

#[test]
fn a_ground_that_is_told_of_late_holds_for_every_theme() {
    use crate::theme::Ground;
    let mut stage = Stage::open();
    stage.command("/theme");
    stage.press("down");
    stage.input(crate::Input::Ground((255, 255, 255)));
    assert_eq!(stage.app.look().theme.ground, Ground::Light);
    stage.press("down");
    assert_eq!(stage.app.look().theme.ground, Ground::Light);
    stage.press("esc");
    assert_eq!(stage.app.look().theme.ground, Ground::Light);
}

#[test]
fn a_persons_own_colours_lie_over_whichever_theme_is_chosen() {
    let own = [("accent".to_owned(), "bold #d08770".to_owned())].into();
    let (theme, wrong) = crate::theme::Theme::default().with(&own);
    assert!(wrong.is_empty());
    let accent = theme.style(Role::Accent);
    let mut stage = Stage::new(Look { theme, ..Look::default() });
    for name in crate::theme::Theme::names() {
        stage.command(&format!("/theme {name}"));
        stage.press("enter");
        let look = stage.app.look();
        assert_eq!((look.theme.name.as_str(), look.style(Role::Accent)), (name, accent));
    }
}
