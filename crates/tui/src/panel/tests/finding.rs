//! The lists one finds things in: sessions, models, help.

use super::{HOUR, MINUTE, NOW, Stage, session};
use crate::cx::{Act, Look};
use expect_test::expect;
use windlass_protocol::wire::{Answered, Keep, Request, Row};
use windlass_protocol::{Cost, Fault, Hit, Millis, Query, Reply, SessionSummary, TurnEnd};

fn summaries() -> Vec<SessionSummary> {
    let one = |number: u128, title: &str, age: u64, cost: u64, end: Option<TurnEnd>| {
        let mut summary = SessionSummary::new(session(number));
        summary.title = title.into();
        summary.changed = Millis(NOW - age);
        summary.length = 40;
        summary.cost = Cost(cost);
        summary.end = end;
        summary
    };
    let mut child = one(9, "explore: where are dates read", 3 * HOUR, 9_000, Some(TurnEnd::Done));
    child.parent = Some(session(2));
    let fault = Fault::Network { message: "cut".into() };
    vec![
        one(1, "Fix the parser of dates", 0, 412_000, None),
        one(2, "Port the build to the new toolchain", 3 * HOUR, 3_200_000, Some(TurnEnd::Done)),
        child,
        one(3, "解析器の日付を直す", 26 * HOUR, 0, Some(TurnEnd::Interrupted)),
        one(4, "Why is the test of the harbour so slow on Tuesdays", 24 * 30 * HOUR, 90_000, {
            Some(TurnEnd::Failed { fault })
        }),
        one(5, "", 5 * MINUTE, 0, Some(TurnEnd::Denied)),
    ]
}

fn listed() -> Stage {
    let mut stage = Stage::open();
    stage.command("/sessions");
    stage.reply(Reply::Sessions { sessions: summaries() });
    stage
}

#[test]
fn the_sessions_of_this_folder_are_listed_without_what_agents_did_for_them() {
    let mut stage = Stage::open();
    stage.press("ctrl+s");
    let workspace = Some("/home/a/code/harbour".into());
    let query = Query::Sessions { workspace };
    assert_eq!(stage.asked[0].request, Request::Query { query });
    expect![[r#"
        ── Sessions ────────────────────────────────────────────────────────────────────
           type to find
           reading the sessions



           Enter opens · Ctrl+K forks · Ctrl+X deletes · Esc closes
        cursor 3,14
    "#]]
    .assert_eq(&stage.frame(80, 24));
    stage.reply(Reply::Sessions { sessions: summaries() });
    expect![[r#"
        ── Sessions ────────────────────────────────────────────────────────────────────
           type to find                                                               5
        ›● Fix the parser of dates                               unfinished  $0.41  now
           Port the build to the new toolchain                               $3.20   3h
           解析器の日付を直す                                       stopped          1d
           Why is the test of the harbour so slow on Tuesdays        failed  $0.09   4w
           (nothing said)                                            denied          5m

           Enter opens · Ctrl+K forks · Ctrl+X deletes · Esc closes
        cursor 3,12
    "#]]
    .assert_eq(&stage.frame(80, 24));
    expect![[r#"
        ── Sessions ────────────────────────────
           type to find                       5
        ›● Fix the parser of dates          now
           Port the build to the new tool…   3h
           解析器の日付を直す                1d
           Why is the test of the harbour…   4w
           (nothing said)                    5m
           Enter opens · Ctrl+K forks
        cursor 3,1
    "#]]
    .assert_eq(&stage.frame(40, 12));
    expect![[r#"
        ── Sessions ────────────────────────────────────────────────────────────────────────────────────────────────────────────
           type to find                                                                                                       5
        ›● Fix the parser of dates                                                                       unfinished  $0.41  now
           Port the build to the new toolchain                                                                       $3.20   3h
           解析器の日付を直す                                                                               stopped          1d
           Why is the test of the harbour so slow on Tuesdays                                                failed  $0.09   4w
           (nothing said)                                                                                    denied          5m

           Enter opens · Ctrl+K forks · Ctrl+X deletes · Esc closes
        cursor 3,28
    "#]].assert_eq(&stage.frame(120, 40));
}

#[test]
fn a_few_letters_find_a_title_and_three_what_was_said() {
    let mut stage = listed();
    stage.write("pa");
    assert!(stage.asked.is_empty());
    stage.write("rs");
    let asked = std::mem::take(&mut stage.asked);
    let words = |up: &windlass_protocol::wire::Up| match &up.request {
        Request::Query { query: Query::Search { words, .. } } => words.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(asked.iter().map(words).collect::<Vec<_>>(), ["par", "pars"]);
    let hit = |number, title: &str, snippet: &str| Hit {
        session: session(number),
        title: title.into(),
        workspace: String::new(),
        at: Millis(NOW),
        seq: 7,
        kind: "said".into(),
        snippet: snippet.into(),
    };
    let hits = vec![
        hit(2, "Port the build to the new toolchain", "…and then parse the manifest with…"),
        hit(9, "explore: where are dates read", "the parser is in src/date.rs"),
    ];
    let stale = windlass_protocol::wire::Down::Answer {
        id: asked[0].id,
        answer: Ok(Answered::Reply { reply: Reply::Found { hits: Vec::new() } }),
    };
    stage.input(crate::app::Input::Down(Box::new(stale)));
    stage.asked = asked[1..].to_vec();
    stage.reply(Reply::Found { hits });
    expect![[r#"
        ── Sessions ────────────────────────────────────────────────────────────────────
           pars                                                                  2 of 6
        ›● Fix the parser of dates                               unfinished  $0.41  now

         Said there
           Port the build to the new toolchain  …and then parse the manifest with…





           Enter opens · Ctrl+K forks · Ctrl+X deletes · Esc closes
        cursor 7,9
    "#]]
    .assert_eq(&stage.frame(80, 24));
    expect![[r#"
        ── Sessions ────────────────────────────
           pars                          2 of 6
        ›● Fix the parser of dates          now

         Said there
           Port the build to t…  …and then par…

           Enter opens · Ctrl+K forks
        cursor 7,1
    "#]]
    .assert_eq(&stage.frame(40, 12));
    stage.write("zzz");
    expect![[r#"
        ── Sessions ────────────────────────────
           parszzz                       1 of 6
         Said there
        ›  Port the build to t…  …and then par…



           Enter opens · Ctrl+K forks
        cursor 10,1
    "#]]
    .assert_eq(&stage.frame(40, 12));
}

#[test]
fn enter_opens_the_row_and_the_panel_closes_when_it_is_open() {
    let mut stage = listed();
    stage.press("down enter");
    assert_eq!(stage.asked[0].request, Request::Open { session: session(2) });
    assert!(stage.frame(80, 24).contains("opening it"));
    stage.press("enter down");
    assert_eq!(stage.asked.len(), 1, "once is enough");
    stage.answer(Ok(Answered::Opened { session: session(2), head: 40 }));
    assert_eq!(stage.app.known().session, Some(session(2)));
    assert!(!stage.frame(80, 24).contains("Sessions"));
}

#[test]
fn a_session_that_cannot_be_opened_leaves_the_panel_and_a_word_why() {
    let mut stage = listed();
    stage.press("down ctrl+k");
    let request = stage.fail();
    assert_eq!(request, Request::Fork { session: session(2), turn: None });
    expect![[r#"
        ── Sessions ────────────────────────────────────────────────────────────────────
           type to find
           the session's log failed: the disk is full
           Free some disk space or close the other windlass; then /sessions opens it
           again.



           Enter opens · Ctrl+K forks · Ctrl+X deletes · Esc closes
        cursor 3,12
    "#]]
    .assert_eq(&stage.frame(80, 24));
    expect![[r#"
        ── Sessions ────────────────────────────
           type to find
           the session's log failed: the disk
           is full
           Free some disk space or close the
           other windlass; then /sessions opens
           it again.
           Enter opens · Ctrl+K forks
        cursor 3,1
    "#]]
    .assert_eq(&stage.frame(40, 12));
}

#[test]
fn a_session_is_deleted_after_a_yes_only_and_never_the_open_one() {
    let mut stage = listed();
    stage.press("ctrl+x");
    assert!(stage.frame(80, 24).contains("this one is open"));
    stage.press("y");
    assert!(stage.asked.is_empty());
    stage.press("down ctrl+x");
    expect![[r#"
        ── Sessions ────────────────────────────────────────────────────────────────────
           type to find                                                               5
         ● Fix the parser of dates                               unfinished  $0.41  now
        ›  Port the build to the new toolchain                               $3.20   3h
           解析器の日付を直す                                       stopped          1d
           Why is the test of the harbour so slow on Tuesdays        failed  $0.09   4w
           (nothing said)                                            denied          5m

           y deletes it for good: Port the build to the new tool…
    "#]]
    .assert_eq(&stage.frame(80, 24));
    expect![[r#"
        ── Sessions ────────────────────────────
           type to find                       5
         ● Fix the parser of dates          now
        ›  Port the build to the new tool…   3h
           解析器の日付を直す                1d
           Why is the test of the harbour…   4w
           (nothing said)                    5m
           y deletes it for good: Port the buil…
    "#]]
    .assert_eq(&stage.frame(40, 12));
    stage.press("n");
    assert!(stage.asked.is_empty());
    stage.press("ctrl+x esc");
    assert!(stage.asked.is_empty());
    assert!(stage.frame(80, 24).contains("Port the build"), "Esc takes the question back only");
    stage.press("ctrl+x y");
    let request = stage.answer(Ok(Answered::Done));
    assert_eq!(request, Request::Delete { session: session(2) });
    assert!(!stage.frame(80, 24).contains("Port the build"));
}

#[test]
fn no_session_and_no_answer_are_said() {
    let mut stage = Stage::open();
    stage.command("/sessions");
    stage.reply(Reply::Sessions { sessions: Vec::new() });
    assert!(stage.frame(80, 24).contains("there is no session here yet"));
    stage.press("esc");
    stage.command("/sessions");
    stage.fail();
    assert!(stage.frame(80, 24).contains("the disk is full"));
}

fn models() -> Vec<Row> {
    let row =
        |name: &str, note: &str| Row { name: name.into(), note: note.into(), ..Row::default() };
    vec![
        row("anthropic/claude-sonnet-4", "200k · $3 in, $15 out"),
        row("anthropic/claude-opus-4", "200k · $15 in, $75 out"),
        row("openai/gpt-5", "400k · $1.25 in, $10 out"),
        row("ollama/qwen3-coder:30b", "256k · local"),
    ]
}

#[test]
fn a_model_is_chosen_for_now_or_for_good() {
    let mut stage = Stage::open();
    stage.press("alt+m");
    stage.answer(Ok(Answered::Rows { rows: models() }));
    expect![[r#"
        ── Model ───────────────────────────────────────────────────────────────────────
           type to find                                                               4
           anthropic/claude-sonnet-4  200k · $3 in, $15 out
        ›● anthropic/claude-opus-4    200k · $15 in, $75 out
           openai/gpt-5               400k · $1.25 in, $10 out
           ollama/qwen3-coder:30b     256k · local

           Enter takes it for now · Ctrl+S keeps it for good · Esc closes
        cursor 3,13
    "#]]
    .assert_eq(&stage.frame(80, 24));
    expect![[r#"
        ── Model ───────────────────────────────
           type to find                       4
           anthropic/claude-so…  200k · $3 in,…
        ›● anthropic/claude-op…  200k · $15 in…
           openai/gpt-5          400k · $1.25 …
           ollama/qwen3-coder:…  256k · local

           Enter takes it for now
        cursor 3,1
    "#]]
    .assert_eq(&stage.frame(40, 12));
    stage.write("qwn");
    expect![[r#"
        ── Model ───────────────────────────────────────────────────────────────────────
           qwn                                                                   1 of 4
        ›  ollama/qwen3-coder:30b     256k · local




           Enter takes it for now · Ctrl+S keeps it for good · Esc closes
        cursor 6,13
    "#]]
    .assert_eq(&stage.frame(80, 24));
    stage.press("ctrl+s");
    let model = "ollama/qwen3-coder:30b".to_owned();
    assert_eq!(stage.asked[0].request, Request::Model { model, keep: Keep::Always });
    let standing = windlass_protocol::wire::Standing {
        model: Some("ollama/qwen3-coder:30b".into()),
        ..stage.app.known().standing.clone()
    };
    stage.answer(Ok(Answered::Standing { standing: Box::new(standing) }));
    assert_eq!(stage.app.known().model, "ollama/qwen3-coder:30b");
    let frame = super::screen(&mut stage);
    assert!(frame.contains("is asked from now on; it stands in your config"), "{frame}");
}

#[test]
fn a_model_that_cannot_be_asked_is_told_in_the_panel() {
    let mut stage = Stage::open();
    stage.command("/model gpt");
    stage.answer(Ok(Answered::Rows { rows: models() }));
    stage.press("enter");
    assert!(stage.frame(80, 24).contains("changing the model"));
    let fault = Fault::Auth { message: "there is no key for openai".into() };
    let request = stage.answer(Err(fault));
    assert_eq!(request, Request::Model { model: "openai/gpt-5".into(), keep: Keep::Now });
    expect![[r#"
        ── Model ───────────────────────────────────────────────────────────────────────
           gpt
           there is no key for openai
           /login keeps another key, /model chooses another model.



           Enter takes it for now · Ctrl+S keeps it for good · Esc closes
        cursor 6,13
    "#]]
    .assert_eq(&stage.frame(80, 24));
}

/// The help, with a key of the person's own.
fn help() -> Stage {
    let own = [("sessions".to_owned(), "f5".to_owned())].into();
    let keys = crate::keys::Keys::new(own).0;
    let mut stage = Stage::new(Look { keys, ..Look::default() });
    stage.press("f1");
    stage
}

#[test]
fn help_lists_every_command_and_every_key_as_they_are_bound() {
    let mut stage = help();
    expect![[r#"
        ── Help ────────────────────────────────────────────────────────────────────────
           type to find                                                              83
         Commands
        ›  /help      Lists keys and commands                                        F1
           /mode      Goes to the next mode: plan, ask, auto                  Shift+Tab
           /sessions  Lists sessions; finds, opens, forks and deletes them           F5
           /new       Begins a new session
           /fork      Goes on in a copy of this session
           /back      Goes back to an earlier prompt
           /rename    Gives this session a title: /rename TITLE
           /compact   Sums the conversation up, so that it takes less room
           /undo      Shows what the last turn changed in files, and takes …
           /redo      Does again what was taken back last
           /diff      Shows everything this session changed in files
           /model     Chooses the model                                           Alt+M

           Lists keys and commands


           Enter does it · Esc closes
        cursor 3,1
    "#]]
    .assert_eq(&stage.frame(80, 24));
    expect![[r#"
        ── Help ────────────────────────────────
           type to find                      83
         Commands
        ›  /help      Lists keys an…         F1
           /mode      Goes to the n…  Shift+Tab
           /sessions  Lists session…         F5
           /new       Begins a new …
           Enter does it · Esc closes
        cursor 3,1
    "#]]
    .assert_eq(&stage.frame(40, 12));
}

#[test]
fn help_has_two_columns_where_there_is_room() {
    let mut stage = help();
    expect![[r#"
        ── Help ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
           type to find                                                                                                                          83
         Commands                                                              Keys everywhere
        ›  /help      Lists keys and commands                              F1    Ctrl+C     Stops what goes on; clears the prompt; twice in a ro…
           /mode      Goes to the next mode: plan, ask, auto        Shift+Tab    Esc        Closes what is open; stops the model; twice goes bac…
           /sessions  Lists sessions; finds, opens, forks and del…         F5    Ctrl+Z     Gives the terminal back to the shell until `fg`
           /new       Begins a new session                                       Ctrl+L     Draws everything anew
           /fork      Goes on in a copy of this session                          Tab        Moves between the prompt and the question that waits
           /back      Goes back to an earlier prompt                             Ctrl+O     Opens or closes what stands in the middle of the scr…
           /rename    Gives this session a title: /rename TITLE                  Alt+O      Opens or closes all of them
           /compact   Sums the conversation up, so that it takes …               PageUp     Goes up a page
           /undo      Shows what the last turn changed in files, …               PageDown   Goes down a page
           /redo      Does again what was taken back last                        Ctrl+Up    Goes up a line
           /diff      Shows everything this session changed in fi…               Ctrl+Down  Goes down a line
           /model     Chooses the model                                 Alt+M    Ctrl+Home  Goes to the beginning
           /agent     Chooses the agent of a new session                         Ctrl+End   Goes to the end
           /todos     Shows what is still to be done                   Ctrl+T    Alt+Up     Goes up to the prompt before
           /jobs      Shows the commands that run in the backgrou…      Alt+J    Alt+Down   Goes down to the next prompt
           /agents    Shows the agents at work and what they do        Ctrl+G
           /cost      Says what this session used and cost                     Keys in the prompt
           /context   Shows what fills the model's window                        Enter                             Says it; while the model work…
           /doctor    Says what there is to work with, and what i…               Alt+Enter                         Says it when the model is done
           /export    Writes this session into a file: /export, o…               Shift+Enter, Ctrl+J               Begins a new line
           /theme     Chooses the colours                                        Ctrl+V                            Pastes a picture from the cli…
           /trust     Shows what this folder would run; trusts it…               Tab                               Takes the suggestion
           /login     Keeps a provider's key                                     Up, Ctrl+P                        Up a line; on the first one, …
           /init      Has the model write AGENTS.md from what it …               Down, Ctrl+N                      Down a line; on the last one,…
           /copy      Copies the last answer                                     Ctrl+R                            Finds a prompt of before
           /quit      Leaves; what runs is stopped and goes on wh…     Ctrl+D    Left                              Left
           /find      Finds a text in this session: /find TEXT         Ctrl+F    Right                             Right
           /editor    Opens the prompt in your editor                  Ctrl+X    Alt+Left, Ctrl+Left, Alt+B        A word to the left

           Lists keys and commands


           Enter does it · Esc closes
        cursor 3,1
    "#]].assert_eq(&stage.frame(140, 40));
    stage.press("pagedown pagedown pagedown pagedown pagedown pagedown pagedown pagedown");
    expect![[r#"
        ── Help ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
           type to find                                                                                                                          83
           Alt+Right, Ctrl+Right, Alt+F      A word to the right                 Ctrl+X        Deletes or ends it, after asking
           Home, Ctrl+A                      To the beginning of the line
           End, Ctrl+E                       To the end of the line            At the beginning of a word or a prompt
           Backspace, Ctrl+H                 Deletes to the left              ›  @  Names a file or an agent
           Delete                            Deletes to the right                /  Begins a command
           Ctrl+W, Alt+Backspace, Ctrl+Bac…  Deletes a word to the left          !  Runs a line in the shell
           Alt+D, Alt+Delete                 Deletes a word to the right
           Ctrl+U                            Deletes to the beginning of t…
           Ctrl+K                            Deletes to the end of the line
           Ctrl+Y                            Puts back what was deleted la…
           Ctrl+_, Ctrl+/                    Takes the last change to the …

         Keys when you are asked
           y        Yes, this once
           s        Yes, for this session
           p        Yes, in this project from now on
           k        Yes to every command of this kind, for this session
           Shift+K  Yes to every command of this kind, in this project
           n        No; the turn ends
           r        No, with a reason that the model hears
           v        Shows all of it

         Keys in lists
           Enter         Takes the row
           Up, Ctrl+P    Up
           Down, Ctrl+N  Down
           Space         Chooses or leaves out, where several can be chosen
           Ctrl+S        Takes the row, and keeps the choice in your config
           Ctrl+K        Goes on in a copy of it

           Names a file or an agent


           Esc closes
        cursor 3,1
    "#]].assert_eq(&stage.frame(140, 40));
    let all = stage.frame(220, 130);
    for entry in crate::keys::TABLE {
        assert!(all.contains(entry.what), "{}", entry.name);
    }
    let row = all.lines().find(|row| row.contains("/sessions")).unwrap();
    assert!(row.contains("  F5"), "{row}");
}

#[test]
fn help_is_searched_by_what_things_do_and_does_what_is_chosen() {
    let mut stage = Stage::open();
    stage.command("/help take back");
    expect![[r#"
        ── Help ────────────────────────────────────────────────────────────────────────
           take back                                                            4 of 83
         Commands
        ›  /undo      Shows what the last turn changed in files, and takes …
           /redo      Does again what was taken back last

         Keys in the prompt
           Ctrl+W, Alt+Backspace, Ctrl+Backspace  Deletes a word to the left
           Ctrl+_, Ctrl+/                         Takes the last change to the promp…







           Shows what the last turn changed in files, and takes it back


           Enter does it · Esc closes
        cursor 12,1
    "#]]
    .assert_eq(&stage.frame(80, 24));
    stage.press("ctrl+u");
    stage.write("/quit");
    stage.press("enter");
    assert_eq!(stage.acts, [Act::Quit]);
}

#[test]
fn everything_can_be_drawn_in_ascii() {
    let mut stage = Stage::new(Look { ascii: true, ..Look::default() });
    stage.command("/model");
    stage.answer(Ok(Answered::Rows { rows: models() }));
    let frame = stage.frame(80, 24);
    let ours: String = frame.replace("200k ·", "").replace("400k ·", "").replace("256k ·", "");
    assert!(ours.is_ascii(), "{frame}");
}

#[test]
fn no_size_is_too_small() {
    for (width, height) in [(1, 1), (2, 3), (5, 4), (12, 5), (20, 8)] {
        let mut stage = listed();
        stage.write("o");
        stage.frame(width, height);
        stage.press("esc f1");
        stage.frame(width, height);
    }
}
