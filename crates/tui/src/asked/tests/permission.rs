//! Frames of questions whether a call may be made, and what can be answered.

use super::*;
use crate::asked::queue::Agreed;
use crate::panel::Panel;
use crate::theme::{Depth, Role, Theme};
use expect_test::{Expect, expect};
use windlass_protocol::{Answer, Author, Lasting, Outcome, Point, Repair, TurnEnd, Verdict};

const DIFF: &str = "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1,3 +1,3 @@\n pub fn area(w: u32, h: u32) \
                    -> u32 {\n-    w + h\n+    w * h\n }\n";

fn long_diff() -> String {
    let lines: String = (1..=60).map(|n| format!("+line {n}\n")).collect();
    format!("--- a/notes.md\n+++ b/notes.md\n@@ -0,0 +1,60 @@\n{lines}")
}

fn with_preview(preview: &str, paths: &[&str]) -> Fact {
    let accesses = paths.iter().map(|path| edit(path)).collect();
    match asks(1, accesses) {
        Fact::Asked { call, accesses, offer, repaired, .. } => Fact::Asked {
            call,
            accesses,
            reason: "mode ask: every change is asked about".into(),
            preview: Some(preview.into()),
            offer,
            repaired,
        },
        other => other,
    }
}

fn offering(kind: &str, command: &str) -> Fact {
    match asks(1, vec![run(command)]) {
        Fact::Asked { call, accesses, reason, preview, repaired, .. } => {
            Fact::Asked { call, accesses, reason, preview, offer: Some(kind.into()), repaired }
        }
        other => other,
    }
}

/// The frames of a state at three sizes.
pub(super) fn frames(stage: &mut Stage, expected: &Expect) {
    let mut all = String::new();
    for (width, height) in [(80, 24), (40, 12), (120, 30)] {
        all.push_str(&format!("{width}×{height}\n{}", stage.frame(width, height)));
    }
    expected.assert_eq(&all);
    let colourless = Theme { depth: Depth::None, ..stage.look.theme.clone() };
    let coloured = std::mem::replace(&mut stage.look.theme, colourless);
    let without: String = [(80, 24), (40, 12), (120, 30)]
        .into_iter()
        .map(|(width, height)| format!("{width}×{height}\n{}", stage.frame(width, height)))
        .collect();
    assert_eq!(without, all, "nothing is said by colour alone");
    stage.look.theme = coloured;
}

#[test]
fn a_command_is_shown_as_it_is() {
    let accesses = vec![run("cargo test --workspace"), Access::Connect { host: "*".into() }];
    frames(
        &mut Stage::asked(vec![asks(1, accesses)]),
        &expect![[r#"
            80×24
            ── Run a command ───────────────────────────────────────────────────────────────
                  │ cargo test --workspace
             also │ reach the network
             why  │ nothing is known about what it does

             yes  y once   s for this session   p in this project
             no   n and stop   r and say why   v show all
            40×12
            ── Run a command ───────────────────────
                  │ cargo test --workspace
             also │ reach the network
             why  │ nothing is known about what it
                  │ does
             yes  y once  s session  p project
             no   n stop  r say why  v show all
            120×30
            ── Run a command ───────────────────────────────────────────────────────────────────────────────────────────────────────
                  │ cargo test --workspace
             also │ reach the network
             why  │ nothing is known about what it does

             yes  y once   s for this session   p in this project
             no   n and stop   r and say why   v show all
        "#]],
    );
}

#[test]
fn a_command_of_several_lines_keeps_them_and_says_where_it_runs() {
    let command = "set -e\nfor file in $(git ls-files '*.rs'); do\n    rustfmt --check --edition \
                   2024 \"$file\" || echo \"$file is not formatted as it should be\"\ndone\n";
    let accesses = vec![Access::Run { command: command.into(), folder: "crates/tui".into() }];
    frames(
        &mut Stage::asked(vec![asks(1, accesses)]),
        &expect![[r#"
        80×24
        ── Run a command ───────────────────────────────────────────────────────────────
              │ set -e
              │ for file in $(git ls-files '*.rs'); do
              │     rustfmt --check --edition 2024 "$file" || echo "$file is not formatt
              ┊ ed as it should be"
              │ done
         in   │ crates/tui
         why  │ nothing is known about what it does

         yes  y once   s for this session   p in this project
         no   n and stop   r and say why   v show all
        40×12
        ── Run a command ───────────────────────
              │ set -e
              │ for file in $(git ls-files '*.rs
              6 rows more; v shows all
         in   │ crates/tui
         why  │ nothing is known about what it
         yes  y once  s session  p project
         no   n stop  r say why  v show all
        120×30
        ── Run a command ───────────────────────────────────────────────────────────────────────────────────────────────────────
              │ set -e
              │ for file in $(git ls-files '*.rs'); do
              │     rustfmt --check --edition 2024 "$file" || echo "$file is not formatted as it should be"
              │ done
         in   │ crates/tui
         why  │ nothing is known about what it does

         yes  y once   s for this session   p in this project
         no   n and stop   r and say why   v show all
    "#]],
    );
}

#[test]
fn a_change_is_shown_as_a_diff() {
    frames(
        &mut Stage::asked(vec![with_preview(DIFF, &["src/lib.rs"])]),
        &expect![[r#"
            80×24
            ── Change a file ───────────────────────────────────────────────────────────────
                  │ src/lib.rs  +1 -1
                  │ 1 1   pub fn area(w: u32, h: u32) -> u32 {
                  │ 2   -     w + h
                  │   2 +     w * h
                  │ 3 3   }
             why  │ mode ask: every change is asked about

             yes  y once   s for this session   p in this project
             no   n and stop   r and say why   v show all
            40×12
            ── Change a file ───────────────────────
                  │ src/lib.rs  +1 -1
                  │ 1   pub fn area(w: u32, h: u32)
                  │     -> u32 {
                  4 rows more; v shows all
             why  │ mode ask: every change is asked
             yes  y once  s session  p project
             no   n stop  r say why  v show all
            120×30
            ── Change a file ───────────────────────────────────────────────────────────────────────────────────────────────────────
                  │ src/lib.rs  +1 -1
                  │ 1 1   pub fn area(w: u32, h: u32) -> u32 {
                  │ 2   -     w + h
                  │   2 +     w * h
                  │ 3 3   }
             why  │ mode ask: every change is asked about

             yes  y once   s for this session   p in this project
             no   n and stop   r and say why   v show all
        "#]],
    );
}

#[test]
fn a_file_is_named_once_and_wholly() {
    let deep = format!("{}/lib.rs", "folder/".repeat(12).trim_end_matches('/'));
    let diff = DIFF.replace("src/lib.rs", &deep);
    let mut stage = Stage::asked(vec![with_preview(&diff, &[&deep, "other.rs"])]);
    let frame = stage.frame(80, 30);
    let joined: String =
        frame.lines().map(|line| line.chars().skip(8).collect::<String>()).collect();
    assert_eq!(joined.matches(&deep).count(), 1, "{frame}");
    assert!(frame.contains(" file │ other.rs\n"), "what the diff does not name: {frame}");
}

#[test]
fn a_long_change_is_cut_and_says_so() {
    frames(
        &mut Stage::asked(vec![with_preview(&long_diff(), &["notes.md"])]),
        &expect![[r#"
            80×24
            ── Change a file ───────────────────────────────────────────────────────────────
                  │ notes.md  +60 -0
                  │     1 + line 1
                  │     2 + line 2
                  │     3 + line 3
                  │     4 + line 4
                  │     5 + line 5
                  │     6 + line 6
                  │     7 + line 7
                  │     8 + line 8
                  │     9 + line 9
                  │    10 + line 10
                  │    11 + line 11
                  │    12 + line 12
                  │    13 + line 13
                  │    14 + line 14
                  46 rows more; v shows all
             why  │ mode ask: every change is asked about
             yes  y once   s for this session   p in this project
             no   n and stop   r and say why   v show all
            40×12
            ── Change a file ───────────────────────
                  │ notes.md  +60 -0
                  │  1 + line 1
                  │  2 + line 2
                  59 rows more; v shows all
             why  │ mode ask: every change is asked
             yes  y once  s session  p project
             no   n stop  r say why  v show all
            120×30
            ── Change a file ───────────────────────────────────────────────────────────────────────────────────────────────────────
                  │ notes.md  +60 -0
                  │     1 + line 1
                  │     2 + line 2
                  │     3 + line 3
                  │     4 + line 4
                  │     5 + line 5
                  │     6 + line 6
                  │     7 + line 7
                  │     8 + line 8
                  │     9 + line 9
                  │    10 + line 10
                  │    11 + line 11
                  │    12 + line 12
                  │    13 + line 13
                  │    14 + line 14
                  │    15 + line 15
                  │    16 + line 16
                  │    17 + line 17
                  │    18 + line 18
                  │    19 + line 19
                  │    20 + line 20
                  40 rows more; v shows all
             why  │ mode ask: every change is asked about
             yes  y once   s for this session   p in this project
             no   n and stop   r and say why   v show all
        "#]],
    );
}

#[test]
fn a_kind_of_command_can_be_allowed_where_it_is_offered() {
    let mut stage = Stage::asked(vec![offering("cargo test *", "cargo test -p windlass-tui")]);
    frames(
        &mut stage,
        &expect![[r#"
        80×24
        ── Run a command ───────────────────────────────────────────────────────────────
              │ cargo test -p windlass-tui
         kind │ cargo test *
         why  │ nothing is known about what it does

         yes  y once   s for this session   p in this project
              k all of this kind, for this session   K in this project
         no   n and stop   r and say why   v show all
        40×12
        ── Run a command ───────────────────────
              │ cargo test -p windlass-tui
         kind │ cargo test *
         why  │ nothing is known about what it
              │ does
         yes  y once  s session  p project
              k kind, session  K kind, project
         no   n stop  r say why  v show all
        120×30
        ── Run a command ───────────────────────────────────────────────────────────────────────────────────────────────────────
              │ cargo test -p windlass-tui
         kind │ cargo test *
         why  │ nothing is known about what it does

         yes  y once   s for this session   p in this project
              k all of this kind, for this session   K in this project
         no   n and stop   r and say why   v show all
    "#]],
    );
    assert!(stage.key("K"));
    let answer = Answer::Like { lasts: Lasting::Project };
    assert_eq!(stage.sent(), Some(Op::Answer { call: call(1), answer }));
}

#[test]
fn leaving_the_sandbox_is_said_loudly_and_allowed_once_only() {
    let command = "docker compose up -d".to_owned();
    let accesses = vec![run(&command), Access::Leave { command }];
    let mut stage = Stage::asked(vec![asks(1, accesses)]);
    frames(
        &mut stage,
        &expect![[r#"
        80×24
        ── Leave the sandbox ───────────────────────────────────────────────────────────
              This command gets all your rights: no sandbox holds it.
              │ docker compose up -d
         why  │ nothing is known about what it does

         yes  y once
         no   n and stop   r and say why   v show all
        40×12
        ── Leave the sandbox ───────────────────
              This command gets all your rights:
              no sandbox holds it.
              │ docker compose up -d
         why  │ nothing is known about what it
              │ does
         yes  y once
         no   n stop  r say why  v show all
        120×30
        ── Leave the sandbox ───────────────────────────────────────────────────────────────────────────────────────────────────
              This command gets all your rights: no sandbox holds it.
              │ docker compose up -d
         why  │ nothing is known about what it does

         yes  y once
         no   n and stop   r and say why   v show all
    "#]],
    );
    let (_, buffer, _) = stage.drawn(80, 24);
    let bad = stage.look.style(Role::Bad);
    assert_eq!(buffer[(3, 0)].fg, bad.fg.unwrap_or_default());
    for lasting in ["s", "p", "k", "K"] {
        assert!(!stage.key(lasting), "{lasting} means nothing here");
    }
    assert!(stage.asked.is_open() && stage.sent().is_none());
    assert!(stage.key("y"));
    assert_eq!(stage.sent(), Some(Op::Answer { call: call(1), answer: Answer::Once }));
}

#[test]
fn a_question_of_an_agent_says_whose_it_is_and_is_answered_to_the_session() {
    let mut stage = Stage::new();
    stage.hear(child(), asks(7, vec![Access::Fetch { host: "docs.rs".into() }]));
    stage.now += 1_000;
    frames(
        &mut stage,
        &expect![[r#"
        80×24
        ── Fetch from docs.rs ──────────────────────────────────────────────────────────
         why  │ nothing is known about what it does
         who  │ explore

         yes  y once   s for this session   p in this project
         no   n and stop   r and say why   v show all
        40×12
        ── Fetch from docs.rs ──────────────────
         why  │ nothing is known about what it
              │ does
         who  │ explore
         yes  y once  s session  p project
         no   n stop  r say why  v show all
        120×30
        ── Fetch from docs.rs ──────────────────────────────────────────────────────────────────────────────────────────────────
         why  │ nothing is known about what it does
         who  │ explore

         yes  y once   s for this session   p in this project
         no   n and stop   r and say why   v show all
    "#]],
    );
    assert!(stage.key("s"));
    assert_eq!(stage.sent(), Some(Op::Answer { call: call(7), answer: Answer::Session }));
}

#[test]
fn several_questions_are_counted_and_come_in_order() {
    let mut stage = Stage::asked(vec![asks(1, vec![run("first")]), asks(2, vec![run("second")])]);
    frames(
        &mut stage,
        &expect![[r#"
        80×24
        ── Run a command ───────────────────────────────────────────────────── 1 of 2 ──
              │ first
         why  │ nothing is known about what it does

         yes  y once   s for this session   p in this project
         no   n and stop   r and say why   v show all
        40×12
        ── Run a command ───────────── 1 of 2 ──
              │ first
         why  │ nothing is known about what it
              │ does
         yes  y once  s session  p project
         no   n stop  r say why  v show all
        120×30
        ── Run a command ───────────────────────────────────────────────────────────────────────────────────────────── 1 of 2 ──
              │ first
         why  │ nothing is known about what it does

         yes  y once   s for this session   p in this project
         no   n and stop   r and say why   v show all
    "#]],
    );
    assert!(stage.key("y"));
    assert_eq!(stage.sent(), Some(Op::Answer { call: call(1), answer: Answer::Once }));
    stage.now += 1_000;
    let second = stage.frame(80, 24);
    assert!(second.contains("second") && second.contains("2 of 2"), "{second}");
    stage.hear(root(), Fact::Answered { call: call(1), answer: Answer::Once });
    assert!(stage.frame(80, 24).contains("2 of 2"), "it is not counted twice");
    assert!(stage.key("n"));
    assert_eq!(
        stage.sent(),
        Some(Op::Answer { call: call(2), answer: Answer::No { reason: None } })
    );
    assert!(stage.asked.is_empty());
}

#[test]
fn a_reason_is_written_in_the_card_and_enter_sends_it() {
    let mut stage = Stage::asked(vec![asks(1, vec![run("rm -rf target")])]);
    assert!(stage.key("r"));
    assert!(stage.key("enter") && stage.asked.is_open(), "an empty reason is none");
    for letter in "yes but später".chars() {
        assert!(stage.key(&letter.to_string()));
    }
    frames(
        &mut stage,
        &expect![[r#"
        80×24
        ── Run a command ───────────────────────────────────────────────────────────────
              │ rm -rf target
         why  │ nothing is known about what it does

         no   › yes but später
              Enter says no, and why   Esc goes back
        40×12
        ── Run a command ───────────────────────
              │ rm -rf target
         why  │ nothing is known about what it
              │ does
         no   › yes but später
              Enter says no  Esc back
        120×30
        ── Run a command ───────────────────────────────────────────────────────────────────────────────────────────────────────
              │ rm -rf target
         why  │ nothing is known about what it does

         no   › yes but später
              Enter says no, and why   Esc goes back
    "#]],
    );
    assert_eq!(stage.drawn(80, 24).2, Some(Position::new(8 + 14, 4)));
    assert!(stage.with(|asked, cx| asked.paste("\nplease", cx.now, true)));
    assert!(stage.key("enter"));
    let reason = Some("yes but später please".to_owned());
    assert_eq!(stage.sent(), Some(Op::Answer { call: call(1), answer: Answer::No { reason } }));
    let mut stage = Stage::asked(vec![asks(1, vec![run("ls")])]);
    assert!(stage.key("r") && stage.key("esc") && stage.key("y"), "esc goes back to the choices");
    assert_eq!(stage.sent(), Some(Op::Answer { call: call(1), answer: Answer::Once }));
}

#[test]
fn what_was_repaired_is_said() {
    let mut asks = asks(1, vec![run("ls")]);
    if let Fact::Asked { repaired, .. } = &mut asks {
        *repaired = Some(Repair {
            arguments: "{\"command\":\"ls\"}".into(),
            changes: vec!["`cmd` is called `command`".into()],
        });
    }
    let frame = Stage::asked(vec![asks]).frame(80, 24);
    expect![[r#"
        ── Run a command ───────────────────────────────────────────────────────────────
              │ ls
         why  │ nothing is known about what it does
         note │ It was not quite right: `cmd` is called `command`. It means:
              │ {"command":"ls"}

         yes  y once   s for this session   p in this project
         no   n and stop   r and say why   v show all
    "#]]
    .assert_eq(&frame);
}

#[test]
fn all_of_it_is_shown_in_a_panel_that_answers_nothing() {
    let mut stage = Stage::asked(vec![with_preview(&long_diff(), &["notes.md"])]);
    assert!(stage.key("v"));
    assert_eq!(stage.commands, [Command::Whole]);
    let mut panel = stage.asked.whole().unwrap();
    let draw = |panel: &mut Box<dyn Panel>, stage: &Stage| {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 60, 10));
        panel.draw(buffer.area, &mut buffer, &stage.look, &stage.known);
        text(&buffer)
    };
    let first = draw(&mut panel, &stage);
    for pressed in ["pagedown", "down", "y", "enter"] {
        stage.with(|_, cx| panel.key(&key(pressed), cx));
    }
    let second = draw(&mut panel, &stage);
    stage.with(|_, cx| panel.key(&key("end"), cx));
    let last = draw(&mut panel, &stage);
    expect![[r#"
              │ notes.md  +60 -0
              │  1 + line 1
              │  2 + line 2
              │  3 + line 3
              │  4 + line 4
              │  5 + line 5
              │  6 + line 6
              │  7 + line 7
              │  8 + line 8
         1–9 of 62 · Down PageDown scroll · v or Esc goes back
        ---
              │ 10 + line 10
              │ 11 + line 11
              │ 12 + line 12
              │ 13 + line 13
              │ 14 + line 14
              │ 15 + line 15
              │ 16 + line 16
              │ 17 + line 17
              │ 18 + line 18
         11–19 of 62 · Down PageDown scroll · v or Esc goes back
        ---
              │ 53 + line 53
              │ 54 + line 54
              │ 55 + line 55
              │ 56 + line 56
              │ 57 + line 57
              │ 58 + line 58
              │ 59 + line 59
              │ 60 + line 60
         why  │ mode ask: every change is asked about
         54–62 of 62 · Down PageDown scroll · v or Esc goes back
    "#]]
    .assert_eq(&format!("{first}---\n{second}---\n{last}"));
    assert!(stage.asked.is_open() && stage.sent().is_none());
}

#[test]
fn a_question_that_needs_no_answer_any_more_goes_away() {
    let outcome = Outcome::Failed { text: String::new() };
    let settled = Fact::Settled { call: call(1), outcome, seen: Vec::new() };
    let ended = Fact::TurnEnded { turn: 1, end: TurnEnd::Interrupted };
    let answered = Fact::Answered { call: call(1), answer: Answer::Once };
    let reverted = Fact::Reverted { to: 0 };
    for (fact, left) in
        [(settled, 2), (answered, 2), (Fact::Interrupted { turn: 1 }, 0), (ended, 0), (reverted, 0)]
    {
        let mut stage = Stage::asked(vec![asks(1, vec![run("a")]), asks(2, vec![run("b")])]);
        stage.hear(child(), asks(3, vec![run("c")]));
        stage.hear(root(), fact.clone());
        assert_eq!(stage.asked.len(), left, "{}", fact.kind());
    }
    let mut stage = Stage::asked(vec![asks(1, vec![run("a")])]);
    stage.hear(child(), asks(3, vec![run("c")]));
    stage.hear(child(), Fact::TurnEnded { turn: 1, end: TurnEnd::Done });
    assert_eq!(stage.asked.len(), 1, "an agent's end ends only its own questions");
}

#[test]
fn an_answer_that_nobody_heard_is_asked_for_again() {
    let mut stage = Stage::asked(vec![asks(1, vec![run("a")])]);
    assert!(stage.key("y") && stage.asked.is_empty());
    assert!(!stage.answer(99, &Ok(Answered::Done)), "another answer is not its own");
    let fault = Fault::Internal { message: "gone".into() };
    assert!(!stage.answer(1, &Err(fault)), "it is for others to say why");
    assert!(stage.asked.is_open() && !stage.asked.has_keys(stage.now, true), "with its own moment");
}

#[test]
fn nothing_a_model_wrote_looks_like_a_line_of_ours() {
    let fake = " yes  y once   s for this session";
    let rule = "── Read a file ──────────────";
    for command in [
        format!("rm -rf x\n{rule}\n why  │ calm\n{fake}"),
        format!("rm -rf x\r\n{fake}"),
        format!("rm -rf x{}{fake}", " ".repeat(64)),
        format!("{}{fake}", "名".repeat(36)),
        format!("\u{1b}[2J\u{1b}[H{fake}\u{7}\u{9b}1m\u{202e}"),
        format!("\t\t\t{fake}"),
    ] {
        let accesses = vec![
            Access::Run { command: command.clone(), folder: format!("a\n{fake}") },
            edit(&format!("b\n{fake}")),
            Access::Connect { host: format!("h\n{fake}") },
            Access::Use { tool: format!("t\n{fake}") },
        ];
        let asked = Fact::Asked {
            call: call(1),
            accesses,
            reason: format!("calm\n{fake}"),
            preview: Some(format!("+ {command}")),
            offer: Some(format!("rm *\n{fake}")),
            repaired: Some(Repair { arguments: command.clone(), changes: vec![command.clone()] }),
        };
        let mut stage = Stage::new();
        let agent = format!("explore\n{fake}");
        stage.known.children.insert(child(), Child { agent, ..Child::default() });
        stage.hear(child(), asked);
        stage.now += 1_000;
        for (width, height) in [(80, 60), (40, 60), (120, 60)] {
            let frame = stage.frame(width, height);
            let marked = |line: &&str| line.chars().nth(6).is_some_and(|it| "│┊".contains(it));
            let ours: Vec<&str> =
                frame.lines().filter(|line| !line.is_empty() && !marked(line)).collect();
            assert_eq!(ours.len(), 4, "{frame}");
            assert!(ours[0].starts_with("── Run a command ──"), "{frame}");
            assert!(ours[1].starts_with(" yes  y once"), "{frame}");
            assert!(frame.lines().last().unwrap().starts_with(" no   n"), "{frame}");
            assert!(!frame.contains('\u{1b}') && !frame.contains('\u{9b}'));
        }
    }
}

fn undoes(number: u128, by: Author) -> Fact {
    Fact::Called {
        call: call(number),
        reference: "r".into(),
        tool: windlass_protocol::files::UNDO.into(),
        arguments: "{}".into(),
        by,
        repaired: Vec::new(),
        seal: None,
    }
}

#[test]
fn who_typed_a_command_is_not_asked_whether_it_may_run() {
    let number = 5;
    let called = |by: Author, command: &str| {
        let Op::Call { tool, arguments } = Op::shell(command) else { panic!() };
        let (reference, repaired, seal) = ("r".into(), Vec::new(), None);
        Fact::Called { call: call(number), reference, tool, arguments, by, repaired, seal }
    };
    let asked = |accesses: Vec<Access>| Fact::Asked {
        call: call(number),
        accesses,
        reason: "nothing is known about make".into(),
        preview: None,
        offer: None,
        repaired: None,
    };
    let run = |command: &str| Access::Run { command: command.into(), folder: ".".into() };
    let hooked = Fact::Hooked {
        call: Some(call(number)),
        hook: "guard".into(),
        point: Point::BeforeTool,
        took_ms: 1,
        verdict: Verdict::Asks { reason: "it deploys".into() },
    };
    let ended = Fact::TurnEnded { turn: 1, end: TurnEnd::Done };
    let told = |facts: Vec<Fact>| {
        let mut stage = Stage::new();
        stage.asked.agree(Agreed::Command("make".into()));
        facts.into_iter().for_each(|fact| stage.hear(root(), fact));
        (stage.sent(), stage.asked.len())
    };
    let once = Op::Answer { call: call(number), answer: Answer::Once };
    let typed = || called(Author::Person, "make");
    assert_eq!(told(vec![typed(), asked(vec![run("make")])]), (Some(once), 0));
    let others = [
        ("somebody else's", vec![called(Author::Model, "make"), asked(vec![run("make")])]),
        ("another one", vec![called(Author::Person, "make all"), asked(vec![run("make all")])]),
        ("rewritten", vec![typed(), asked(vec![run("make; curl x")])]),
        (
            "out of the sandbox",
            vec![typed(), asked(vec![Access::Leave { command: "make".into() }, run("make")])],
        ),
        ("about nothing", vec![typed(), asked(Vec::new())]),
        ("a hook wants it asked", vec![typed(), hooked, asked(vec![run("make")])]),
        ("the turn is over", vec![ended, typed(), asked(vec![run("make")])]),
        ("nothing was called", vec![asked(vec![run("make")])]),
    ];
    for (why, facts) in others {
        assert_eq!(told(facts), (None, 1), "{why}");
    }
}

#[test]
fn who_said_yes_to_what_taking_back_does_is_not_asked_again() {
    let (seen, other) = (with_preview("-b\n+a\n", &["a"]), with_preview("-c\n+a\n", &["a"]));
    let Fact::Asked { call: asked, .. } = &seen else { panic!() };
    let number = asked.0.as_u128();
    let told = |by: Author, question: &Fact| {
        let mut stage = Stage::new();
        stage.asked.agree(Agreed::Undo("-b\n+a\n".into()));
        stage.hear(root(), undoes(number, by));
        stage.hear(root(), question.clone());
        (stage.sent(), stage.asked.len())
    };
    let once = Op::Answer { call: *asked, answer: Answer::Once };
    assert_eq!(told(Author::Person, &seen), (Some(once), 0));
    assert_eq!(told(Author::Person, &other), (None, 1), "it would do something else now");
    assert_eq!(told(Author::Model, &seen), (None, 1), "nobody but the person takes back");
    let mut stage = Stage::new();
    stage.hear(root(), undoes(number, Author::Person));
    stage.hear(root(), seen);
    assert_eq!((stage.sent(), stage.asked.len()), (None, 1), "nobody said yes");
}
