//! Tests of user questions: frames and answers.

use super::permission::assert_frames;
use super::*;
use expect_test::expect;
use windlass_protocol::{QuestionOption, UserQuestion};

fn option(label: &str, description: &str) -> QuestionOption {
    QuestionOption { label: label.into(), description: description.into() }
}

fn storage_question() -> UserQuestion {
    UserQuestion {
        header: "Store".into(),
        question: "Where should the sessions be kept?".into(),
        options: vec![
            option("SQLite", "one file, nothing to run"),
            option(
                "Postgres",
                "a server that others can reach, too, and that has to be looked after",
            ),
        ],
        allow_multiple: false,
        allow_custom: false,
        asker: None,
        is_permission: false,
    }
}

fn checks_question() -> UserQuestion {
    let options = vec![option("unit tests", ""), option("clippy", ""), option("fuzzing", "slow")];
    UserQuestion {
        header: "Checks".into(),
        question: "What is to be checked?".into(),
        options,
        allow_multiple: true,
        allow_custom: true,
        asker: None,
        is_permission: false,
    }
}

fn plan_question() -> UserQuestion {
    UserQuestion {
        header: "Plan".into(),
        question:
            "# Speed\n\n1. Measure it.\n2. Keep rows that were laid out.\n\nCarry the plan out?"
                .into(),
        options: vec![
            option("auto", "yes; changes inside the project need no approval"),
            option("ask", "yes; ask before every change"),
            option("no", "keep planning"),
        ],
        allow_multiple: false,
        allow_custom: true,
        asker: None,
        is_permission: false,
    }
}

fn with_questions(questions: Vec<UserQuestion>) -> TestQuestionPanel {
    TestQuestionPanel::with_facts(vec![Fact::QuestionAsked { call: call(1), questions }])
}

fn sent_answers(env: &mut TestQuestionPanel) -> Option<Vec<Vec<String>>> {
    match env.take_last_op() {
        Some(SessionOp::AnswerQuestion { answers, .. }) => Some(answers),
        _ => None,
    }
}

fn expected_answers(answers: &[&[&str]]) -> Option<Vec<Vec<String>>> {
    let list = |list: &&[&str]| list.iter().map(|answer| (*answer).to_owned()).collect();
    Some(answers.iter().map(list).collect())
}

#[test]
fn an_option_is_chosen_by_number_or_by_row() {
    let mut env = with_questions(vec![storage_question()]);
    assert_frames(
        &mut env,
        &expect![[r#"
            80×24
            ── The model asks ──────────────────────────────────────────────────────────────
                  │ Store: Where should the sessions be kept?
              1.  │ SQLite  one file, nothing to run
              2.  │ Postgres  a server that others can reach, too, and that has to be looked
                  │   after

                  Enter select   n skip   v view full
            40×12
            ── The model asks ──────────────────────
                  │ Store: Where should the sessions
                  │ be kept?
              1.  │ SQLite  one file, nothing to run
              2.  │ Postgres  a server that others
                  │   can reach, too, and that has
                  │   to be looked after
                  Enter select  n skip  v all
            120×30
            ── The model asks ──────────────────────────────────────────────────────────────────────────────────────────────────────
                  │ Store: Where should the sessions be kept?
              1.  │ SQLite  one file, nothing to run
              2.  │ Postgres  a server that others can reach, too, and that has to be looked after

                  Enter select   n skip   v view full
        "#]],
    );
    assert!(env.key("2"));
    assert_eq!(sent_answers(&mut env), expected_answers(&[&["Postgres"]]));
    let mut env = with_questions(vec![storage_question()]);
    assert!(env.key("enter") && env.panel.is_open(), "no row is selected at first");
    assert!(env.key("down") && env.key("enter"));
    assert_eq!(sent_answers(&mut env), expected_answers(&[&["SQLite"]]));
    let mut env = with_questions(vec![storage_question()]);
    assert!(!env.key("3") && !env.key("h"), "keys that are no choice go to the prompt");
    assert!(env.key("n"));
    assert_eq!(
        sent_answers(&mut env),
        expected_answers(&[&[]]),
        "skipping a question sends an empty answer"
    );
}

#[test]
fn options_that_do_not_fit_are_counted_and_reached() {
    let description = "a word about it that is longer than a narrow screen is wide";
    let options = (1..=9).map(|n| option(&format!("way {n}"), description)).collect();
    let question = "Which way is it to be, of all the ways there are?".into();
    let user_question =
        UserQuestion { question, options, allow_custom: true, ..storage_question() };
    let mut env = with_questions(vec![user_question]);
    let first = env.frame(40, 12);
    for _ in 0..8 {
        assert!(env.key("down"));
    }
    let later = env.frame(40, 12);
    expect![[r#"
        first
        ── The model asks ──────────────────────
              │ Store: Which way is it to be, of
              │ all the ways there are?
          1.  │ way 1  a word about it that is…
          2.  │ way 2  a word about it that is…
              8 more below
              Enter select  n skip  r own words
              v all
        later
        ── The model asks ──────────────────────
              │ Store: Which way is it to be, of
              │ all the ways there are?
          7.  │ way 7  a word about it that is…
         ›8.  │ way 8  a word about it that is …
              6 more above, 2 more below
              Enter select  n skip  r own words
              v all
    "#]]
    .assert_eq(&format!("first\n{first}later\n{later}"));
    assert!(env.key("v"));
    let mut panel = env.panel.full_view().unwrap();
    let mut buffer = Buffer::empty(Rect::new(0, 0, 40, 40));
    panel.draw(buffer.area, &mut buffer, &env.appearance, &env.state);
    let full_view = buffer_text(&buffer);
    assert!(full_view.contains("9. way 9: a word about it"), "{full_view}");
}

#[test]
fn several_options_are_marked_and_free_text_is_added() {
    let mut env = with_questions(vec![checks_question()]);
    assert!(env.key("1") && env.key("down") && env.key(" "));
    assert_frames(
        &mut env,
        &expect![[r#"
            80×24
            ── The model asks ──────────────────────────────────────────────────────────────
                  │ Checks: What is to be checked?
              1 x │ unit tests
             ›2 x │ clippy
              3 · │ fuzzing  slow
              4 · │ in your own words

                  Space mark  Enter continue  n skip  r own words  v all
            40×12
            ── The model asks ──────────────────────
                  │ Checks: What is to be checked?
              1 x │ unit tests
             ›2 x │ clippy
              3 · │ fuzzing  slow
              4 · │ in your own words
                  Space mark  Enter continue  n skip
                  r own words  v all
            120×30
            ── The model asks ──────────────────────────────────────────────────────────────────────────────────────────────────────
                  │ Checks: What is to be checked?
              1 x │ unit tests
             ›2 x │ clippy
              3 · │ fuzzing  slow
              4 · │ in your own words

                  Space mark   Enter continue   n skip   r answer in your own words   v view full
        "#]],
    );
    assert!(env.key("r"));
    for character in "docs".chars() {
        env.key(&character.to_string());
    }
    assert_frames(
        &mut env,
        &expect![[r#"
            80×24
            ── The model asks ──────────────────────────────────────────────────────────────
                  │ Checks: What is to be checked?
              1 x │ unit tests
              2 x │ clippy
              3 · │ fuzzing  slow
             ›4 · │ in your own words

             own  › docs
                  Enter send   Esc go back
            40×12
            ── The model asks ──────────────────────
                  │ Checks: What is to be checked?
              1 x │ unit tests
              2 x │ clippy
              3 · │ fuzzing  slow
             ›4 · │ in your own words
             own  › docs
                  Enter send   Esc go back
            120×30
            ── The model asks ──────────────────────────────────────────────────────────────────────────────────────────────────────
                  │ Checks: What is to be checked?
              1 x │ unit tests
              2 x │ clippy
              3 · │ fuzzing  slow
             ›4 · │ in your own words

             own  › docs
                  Enter send   Esc go back
        "#]],
    );
    assert!(env.key("enter"));
    assert_eq!(sent_answers(&mut env), expected_answers(&[&["unit tests", "clippy", "docs"]]));
}

#[test]
fn several_answers_are_reviewed_before_they_are_sent() {
    let mut env = with_questions(vec![storage_question(), checks_question()]);
    assert!(env.frame(80, 24).contains("1/2"));
    assert!(env.key("1") && env.key("2") && env.key("enter"));
    assert_frames(
        &mut env,
        &expect![[r#"
            80×24
            ── Your answers ────────────────────────────────────────────────────────────────
              1   │ Store  SQLite
              2   │ Checks  clippy

                  Enter send answers   ← go back
            40×12
            ── Your answers ────────────────────────
              1   │ Store  SQLite
              2   │ Checks  clippy

                  Enter send answers   ← go back
            120×30
            ── Your answers ────────────────────────────────────────────────────────────────────────────────────────────────────────
              1   │ Store  SQLite
              2   │ Checks  clippy

                  Enter send answers   ← go back
        "#]],
    );
    assert!(env.key("1") && env.key("2"), "the first answer is changed");
    assert!(env.key("right") && env.key("enter"));
    assert_eq!(sent_answers(&mut env), expected_answers(&[&["Postgres"], &["clippy"]]));
}

#[test]
fn esc_answers_nothing_and_shows_how_to_decline() {
    let mut env = with_questions(vec![storage_question()]);
    assert!(env.key("esc"));
    assert_eq!(sent_answers(&mut env), None);
    assert_frames(
        &mut env,
        &expect![[r#"
            80×24
            ── The model asks ──────────────────────────────────────────────────────────────
                  │ Store: Where should the sessions be kept?
              1.  │ SQLite  one file, nothing to run
              2.  │ Postgres  a server that others can reach, too, and that has to be looked
                  │   after

                  Press n to skip the question, or Ctrl+C to stop the turn.
                  Enter select   n skip   v view full
            40×12
            ── The model asks ──────────────────────
                  │ Store: Where should the sessions
                  │ be kept?
              1.  │ SQLite  one file, nothing to run
              2.  │ Postgres  a server that others…
                  Press n to skip the question, or
                  Ctrl+C to stop the turn.
                  Enter select  n skip  v all
            120×30
            ── The model asks ──────────────────────────────────────────────────────────────────────────────────────────────────────
                  │ Store: Where should the sessions be kept?
              1.  │ SQLite  one file, nothing to run
              2.  │ Postgres  a server that others can reach, too, and that has to be looked after

                  Press n to skip the question, or Ctrl+C to stop the turn.
                  Enter select   n skip   v view full
        "#]],
    );
}

#[test]
fn a_plan_has_no_default() {
    let mut env = with_questions(vec![plan_question()]);
    assert_frames(
        &mut env,
        &expect![[r#"
            80×24
            ── Carry out this plan? ────────────────────────────────────────────────────────
                  │ Speed
                  │
                  │ 1. Measure it.
                  │ 2. Keep rows that were laid out.
              1.  │ auto  yes; changes inside the project need no approval
              2.  │ ask  yes; ask before every change
              3.  │ no  keep planning
              4.  │ in your own words

                  1 or 2 yes   n keep planning   r answer in your own words   v view full
            40×12
            ── Carry out this plan? ────────────────
                  │ Speed
                  3 rows more; v to view all
              1.  │ auto  yes; changes inside the…
              2.  │ ask  yes; ask before every…
                  2 more below
                  1 or 2 yes  n no  r own words
                  v all
            120×30
            ── Carry out this plan? ────────────────────────────────────────────────────────────────────────────────────────────────
                  │ Speed
                  │
                  │ 1. Measure it.
                  │ 2. Keep rows that were laid out.
              1.  │ auto  yes; changes inside the project need no approval
              2.  │ ask  yes; ask before every change
              3.  │ no  keep planning
              4.  │ in your own words

                  1 or 2 yes   n keep planning   r answer in your own words   v view full
        "#]],
    );
    assert!(env.key("enter") && env.key(" ") && env.panel.is_open());
    assert!(env.key("2"));
    assert_eq!(sent_answers(&mut env), expected_answers(&[&["ask"]]));
    let mut env = with_questions(vec![plan_question()]);
    assert!(env.key("n"));
    assert_eq!(sent_answers(&mut env), expected_answers(&[&[]]));
    let mut env = with_questions(vec![plan_question()]);
    assert!(env.key("r") && env.key("x") && env.key("enter"));
    assert_eq!(sent_answers(&mut env), expected_answers(&[&["x"]]));
}

#[test]
fn a_plan_gets_the_keys_only_after_a_pause_in_typing() {
    let mut env = TestQuestionPanel::new();
    env.deliver_fact(
        root(),
        Fact::QuestionAsked { call: call(1), questions: vec![plan_question()] },
    );
    assert!(!env.panel.has_focus(env.now + 249, true));
    assert!(env.panel.has_focus(env.now + 250, true));
    assert!(!env.panel.has_focus(env.now + 250, false));
}

#[test]
fn a_subagent_that_asks_is_named() {
    let mut env = TestQuestionPanel::new();
    env.deliver_fact(
        child(),
        Fact::QuestionAsked { call: call(1), questions: vec![storage_question()] },
    );
    assert!(env.frame(80, 24).starts_with("── The subagent explore asks ──"));
}

#[test]
fn question_text_cannot_imitate_a_line_of_the_card() {
    let fake = "x\n  Enter select   n skip\n── Your answers ──";
    let mut hostile = storage_question();
    (hostile.header, hostile.question) = (fake.into(), fake.into());
    hostile.options[0] = option(fake, fake);
    let frame = with_questions(vec![hostile]).frame(80, 40);
    let is_quoted =
        |line: &&str| line.chars().nth(6).is_some_and(|character| "│┊".contains(character));
    let card_line_count = frame.lines().filter(|line| !line.is_empty() && !is_quoted(line)).count();
    assert_eq!(card_line_count, 2, "{frame}");
}
