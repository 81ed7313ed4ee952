//! Frames of what calls want to know, and how it is answered.

use super::permission::frames;
use super::*;
use expect_test::expect;
use windlass_protocol::{Inquiry, Suggestion};

fn option(label: &str, description: &str) -> Suggestion {
    Suggestion { label: label.into(), description: description.into() }
}

fn store() -> Inquiry {
    Inquiry {
        header: "Store".into(),
        question: "Where should the sessions be kept?".into(),
        options: vec![
            option("SQLite", "one file, nothing to run"),
            option(
                "Postgres",
                "a server that others can reach, too, and that has to be looked after",
            ),
        ],
        multiple: false,
        custom: false,
    }
}

fn checks() -> Inquiry {
    let options = vec![option("unit tests", ""), option("clippy", ""), option("fuzzing", "slow")];
    Inquiry {
        header: "Checks".into(),
        question: "What is to be checked?".into(),
        options,
        multiple: true,
        custom: true,
    }
}

fn plan() -> Inquiry {
    Inquiry {
        header: "Plan".into(),
        question:
            "# Speed\n\n1. Measure it.\n2. Keep rows that were laid out.\n\nCarry the plan out?"
                .into(),
        options: vec![
            option("auto", "yes; what stays in the project is done without asking"),
            option("ask", "yes, and ask before every change"),
            option("no", "keep planning"),
        ],
        multiple: false,
        custom: true,
    }
}

fn inquired(inquiries: Vec<Inquiry>) -> Stage {
    Stage::asked(vec![Fact::Inquired { call: call(1), inquiries }])
}

fn replied(stage: &mut Stage) -> Option<Vec<Vec<String>>> {
    match stage.sent() {
        Some(Op::Reply { replies, .. }) => Some(replies),
        _ => None,
    }
}

fn said(replies: &[&[&str]]) -> Option<Vec<Vec<String>>> {
    let list = |list: &&[&str]| list.iter().map(|it| (*it).to_owned()).collect();
    Some(replies.iter().map(list).collect())
}

#[test]
fn one_is_chosen_by_its_number_or_by_the_row() {
    let mut stage = inquired(vec![store()]);
    frames(
        &mut stage,
        &expect![[r#"
            80×24
            ── The model asks ──────────────────────────────────────────────────────────────
                  │ Store: Where should the sessions be kept?
             ›1   │ SQLite  one file, nothing to run
              2   │ Postgres  a server that others can reach, too, and that has to be looked
                  │   after

                  Enter takes it   n no answer   v show all
            40×12
            ── The model asks ──────────────────────
                  │ Store: Where should the sessions
                  │ be kept?
             ›1   │ SQLite  one file, nothing to run
              2   │ Postgres  a server that others
                  │   can reach, too, and that has
                  │   to be looked after
                  Enter takes it  n no answer  v all
            120×30
            ── The model asks ──────────────────────────────────────────────────────────────────────────────────────────────────────
                  │ Store: Where should the sessions be kept?
             ›1   │ SQLite  one file, nothing to run
              2   │ Postgres  a server that others can reach, too, and that has to be looked after

                  Enter takes it   n no answer   v show all
        "#]],
    );
    assert!(stage.key("2"));
    assert_eq!(replied(&mut stage), said(&[&["Postgres"]]));
    let mut stage = inquired(vec![store()]);
    assert!(stage.key("down") && stage.key("up") && stage.key("enter"));
    assert_eq!(replied(&mut stage), said(&[&["SQLite"]]));
    let mut stage = inquired(vec![store()]);
    assert!(!stage.key("3") && !stage.key("h"), "what is no choice is for the prompt");
    assert!(stage.key("n"));
    assert_eq!(replied(&mut stage), said(&[&[]]), "no answer is an answer");
}

#[test]
fn options_that_do_not_fit_are_counted_and_reached() {
    let about = "a word about it that is longer than a narrow screen is wide";
    let options = (1..=9).map(|n| option(&format!("way {n}"), about)).collect();
    let question = "Which way is it to be, of all the ways there are?".into();
    let inquiry = Inquiry { question, options, custom: true, ..store() };
    let mut stage = inquired(vec![inquiry]);
    let first = stage.frame(40, 12);
    for _ in 0..7 {
        assert!(stage.key("down"));
    }
    let later = stage.frame(40, 12);
    expect![[r#"
        first
        ── The model asks ──────────────────────
              │ Store: Which way is it to be, of
              │ all the ways there are?
         ›1   │ way 1  a word about it that is…
          2   │ way 2  a word about it that is…
              8 more below
              Enter takes it  n no answer
              r own words  v all
        later
        ── The model asks ──────────────────────
              │ Store: Which way is it to be, of
              │ all the ways there are?
          7   │ way 7  a word about it that is…
         ›8   │ way 8  a word about it that is…
              6 more above, 2 more below
              Enter takes it  n no answer
              r own words  v all
    "#]]
    .assert_eq(&format!("first\n{first}later\n{later}"));
    assert!(stage.key("v"));
    let mut panel = stage.asked.whole().unwrap();
    let mut buffer = Buffer::empty(Rect::new(0, 0, 40, 40));
    panel.draw(buffer.area, &mut buffer, &stage.look, &stage.known);
    let whole = text(&buffer);
    assert!(whole.contains("9. way 9: a word about it"), "{whole}");
}

#[test]
fn several_are_marked_and_own_words_added() {
    let mut stage = inquired(vec![checks()]);
    assert!(stage.key("1") && stage.key("down") && stage.key(" "));
    frames(
        &mut stage,
        &expect![[r#"
            80×24
            ── The model asks ──────────────────────────────────────────────────────────────
                  │ Checks: What is to be checked?
              1 x │ unit tests
             ›2 x │ clippy
              3 · │ fuzzing  slow
              4 · │ in your own words

                  Space marks   Enter goes on   n no answer   r own words   v show all
            40×12
            ── The model asks ──────────────────────
                  │ Checks: What is to be checked?
              1 x │ unit tests
             ›2 x │ clippy
              3 · │ fuzzing  slow
              4 · │ in your own words
                  Space marks  Enter goes on
                  n no answer  r own words  v all
            120×30
            ── The model asks ──────────────────────────────────────────────────────────────────────────────────────────────────────
                  │ Checks: What is to be checked?
              1 x │ unit tests
             ›2 x │ clippy
              3 · │ fuzzing  slow
              4 · │ in your own words

                  Space marks   Enter goes on   n no answer   r own words   v show all
        "#]],
    );
    assert!(stage.key("r"));
    for letter in "docs".chars() {
        stage.key(&letter.to_string());
    }
    frames(
        &mut stage,
        &expect![[r#"
        80×24
        ── The model asks ──────────────────────────────────────────────────────────────
              │ Checks: What is to be checked?
          1 x │ unit tests
          2 x │ clippy
          3 · │ fuzzing  slow
         ›4 · │ in your own words

         own  › docs
              Enter says it   Esc goes back
        40×12
        ── The model asks ──────────────────────
              │ Checks: What is to be checked?
          1 x │ unit tests
          2 x │ clippy
          3 · │ fuzzing  slow
         ›4 · │ in your own words
         own  › docs
              Enter says it   Esc goes back
        120×30
        ── The model asks ──────────────────────────────────────────────────────────────────────────────────────────────────────
              │ Checks: What is to be checked?
          1 x │ unit tests
          2 x │ clippy
          3 · │ fuzzing  slow
         ›4 · │ in your own words

         own  › docs
              Enter says it   Esc goes back
    "#]],
    );
    assert!(stage.key("enter"));
    assert_eq!(replied(&mut stage), said(&[&["unit tests", "clippy", "docs"]]));
}

#[test]
fn several_questions_are_looked_over_before_they_are_sent() {
    let mut stage = inquired(vec![store(), checks()]);
    assert!(stage.frame(80, 24).contains("1/2"));
    assert!(stage.key("1") && stage.key("2") && stage.key("enter"));
    frames(
        &mut stage,
        &expect![[r#"
        80×24
        ── Your answers ────────────────────────────────────────────────────────────────
          1   │ Store  SQLite
          2   │ Checks  clippy

              Enter sends them   ← goes back
        40×12
        ── Your answers ────────────────────────
          1   │ Store  SQLite
          2   │ Checks  clippy

              Enter sends them   ← goes back
        120×30
        ── Your answers ────────────────────────────────────────────────────────────────────────────────────────────────────────
          1   │ Store  SQLite
          2   │ Checks  clippy

              Enter sends them   ← goes back
    "#]],
    );
    assert!(stage.key("1") && stage.key("2"), "one is changed");
    assert!(stage.key("right") && stage.key("enter"));
    assert_eq!(replied(&mut stage), said(&[&["Postgres"], &["clippy"]]));
}

#[test]
fn esc_answers_nothing_and_says_how_to_decline() {
    let mut stage = inquired(vec![store()]);
    assert!(stage.key("esc"));
    assert_eq!(replied(&mut stage), None);
    frames(
        &mut stage,
        &expect![[r#"
            80×24
            ── The model asks ──────────────────────────────────────────────────────────────
                  │ Store: Where should the sessions be kept?
             ›1   │ SQLite  one file, nothing to run
              2   │ Postgres  a server that others can reach, too, and that has to be looked
                  │   after

                  Esc answers nothing: n gives no answer, Ctrl+C stops the turn
                  Enter takes it   n no answer   v show all
            40×12
            ── The model asks ──────────────────────
                  │ Store: Where should the sessions
                  │ be kept?
             ›1   │ SQLite  one file, nothing to run
              2   │ Postgres  a server that others…
                  Esc answers nothing: n gives no
                  answer, Ctrl+C stops the turn
                  Enter takes it  n no answer  v all
            120×30
            ── The model asks ──────────────────────────────────────────────────────────────────────────────────────────────────────
                  │ Store: Where should the sessions be kept?
             ›1   │ SQLite  one file, nothing to run
              2   │ Postgres  a server that others can reach, too, and that has to be looked after

                  Esc answers nothing: n gives no answer, Ctrl+C stops the turn
                  Enter takes it   n no answer   v show all
        "#]],
    );
}

#[test]
fn a_plan_has_no_default() {
    let mut stage = inquired(vec![plan()]);
    frames(
        &mut stage,
        &expect![[r#"
            80×24
            ── A plan: carry it out? ───────────────────────────────────────────────────────
                  │ Speed
                  │
                  │ 1. Measure it.
                  │ 2. Keep rows that were laid out.
              1   │ auto  yes; what stays in the project is done without asking
              2   │ ask  yes, and ask before every change
              3   │ no  keep planning
              4   │ in your own words

                  1 2 yes   n keep planning   r own words   v show all
            40×12
            ── A plan: carry it out? ───────────────
                  │ Speed
                  3 rows more; v shows all
              1   │ auto  yes; what stays in the…
              2   │ ask  yes, and ask before every…
              3   │ no  keep planning
              4   │ in your own words
                  1 2 yes  n no  r own words  v all
            120×30
            ── A plan: carry it out? ───────────────────────────────────────────────────────────────────────────────────────────────
                  │ Speed
                  │
                  │ 1. Measure it.
                  │ 2. Keep rows that were laid out.
              1   │ auto  yes; what stays in the project is done without asking
              2   │ ask  yes, and ask before every change
              3   │ no  keep planning
              4   │ in your own words

                  1 2 yes   n keep planning   r own words   v show all
        "#]],
    );
    assert!(stage.key("enter") && stage.key(" ") && stage.asked.is_open());
    assert!(stage.key("2"));
    assert_eq!(replied(&mut stage), said(&[&["ask"]]));
    let mut stage = inquired(vec![plan()]);
    assert!(stage.key("n"));
    assert_eq!(replied(&mut stage), said(&[&[]]));
    let mut stage = inquired(vec![plan()]);
    assert!(stage.key("r") && stage.key("x") && stage.key("enter"));
    assert_eq!(replied(&mut stage), said(&[&["x"]]));
}

#[test]
fn a_plan_has_the_keys_only_after_a_calm_moment() {
    let mut stage = Stage::new();
    stage.hear(root(), Fact::Inquired { call: call(1), inquiries: vec![plan()] });
    assert!(!stage.asked.has_keys(stage.now + 699, true));
    assert!(stage.asked.has_keys(stage.now + 700, true));
    assert!(!stage.asked.has_keys(stage.now + 700, false));
}

#[test]
fn an_agent_that_asks_is_named() {
    let mut stage = Stage::new();
    stage.hear(child(), Fact::Inquired { call: call(1), inquiries: vec![store()] });
    assert!(stage.frame(80, 24).starts_with("── The agent explore asks ──"));
}

#[test]
fn nothing_that_is_asked_looks_like_a_line_of_ours() {
    let fake = "x\n  Enter takes it   n no answer\n── Your answers ──";
    let mut hostile = store();
    (hostile.header, hostile.question) = (fake.into(), fake.into());
    hostile.options[0] = option(fake, fake);
    let frame = inquired(vec![hostile]).frame(80, 40);
    let marked = |line: &&str| line.chars().nth(6).is_some_and(|it| "│┊".contains(it));
    let ours = frame.lines().filter(|line| !line.is_empty() && !marked(line)).count();
    assert_eq!(ours, 2, "{frame}");
}
