//! Tests of the search: matches anywhere in a session are shown, marked and counted.

use super::*;
use crate::transcript::loaded_log_window::{MAX_RECORDS, PAGE_RECORDS};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use expect_test::{Expect, expect};
use ratatui::style::Modifier;

impl TestTranscript {
    fn search_for(&mut self, text: &str) {
        self.with(|transcript, cx| transcript.start_search("", cx));
        self.frame();
        self.type_text(text);
    }

    fn type_text(&mut self, text: &str) {
        for character in text.chars() {
            self.press(KeyCode::Char(character));
        }
        self.answer_requests();
        self.frame();
    }

    fn press(&mut self, code: KeyCode) -> bool {
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        self.with(|transcript, cx| transcript.on_search_key(&key, cx))
    }

    fn press_and_load(&mut self, code: KeyCode) {
        assert!(self.press(code));
        self.answer_requests();
        self.frame();
    }

    /// Returns the last row.
    fn last_row(&mut self) -> String {
        self.lines().last().unwrap().clone()
    }

    /// Returns the match counter, such as `3 of 17`.
    fn match_counter(&mut self) -> String {
        let row = self.last_row();
        let words: Vec<&str> = row.split(' ').collect();
        let of_index =
            words.iter().position(|word| *word == "of").unwrap_or_else(|| panic!("{row}"));
        words[of_index - 1..of_index + 2].join(" ")
    }

    /// Draws a frame with brackets around the current match and dots around the others.
    fn marked_frame(&mut self) -> String {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let mut buffer = Buffer::empty(area);
        self.transcript.draw(area, &mut buffer, &self.appearance, &self.state);
        let mut rows = Vec::new();
        for y in 0..area.height - 1 {
            let (mut row, mut last_marks, mut x) = (String::new(), "", 0);
            while x < area.width {
                let cell = &buffer[(x, y)];
                x += u16::try_from(crate::safe_line::display_width(cell.symbol()).max(1)).unwrap();
                let marks = match cell.modifier {
                    modifier if modifier.contains(Modifier::REVERSED) => "[]",
                    modifier if modifier.contains(Modifier::UNDERLINED) => "..",
                    _ => "",
                };
                if marks != last_marks {
                    row.extend(last_marks.chars().last());
                    row.extend(marks.chars().next());
                }
                last_marks = marks;
                row.push_str(cell.symbol());
            }
            rows.push(row.trim_end().to_owned());
        }
        rows.join("\n").trim_end().to_owned()
    }
}

fn add_crane_turn(env: &mut TestTranscript) {
    env.start_turn(1, "What of the crane at night?");
    env.facts([
        step_started(1, 1),
        model_text("The **crane** stands still, and so does the other Crane."),
        tool_called(1, "bash", r#"{"command":"ls cranes"}"#),
        call_started(1),
        call_settled(1, command_outcome("north.txt\nthe crane.txt\nsouth.txt", 0)),
        tool_called(2, "read", r#"{"filePath":"harbour.md"}"#),
        call_started(2),
        call_settled(2, titled_outcome("2 lines", "1: quay\n2: water")),
        model_text("Nothing moves."),
        step_ended(1, 1),
        turn_completed(1),
    ]);
}

fn assert_frames(setup: impl Fn(&mut TestTranscript), expected: Expect) {
    let frame = |size: (u16, u16)| {
        let mut env = TestTranscript::open(size);
        env.frame();
        setup(&mut env);
        env.answer_requests();
        env.frame()
    };
    expected.assert_eq(&format!("80×16\n{}\n40×10\n{}\n", frame((80, 16)), frame((40, 10))));
}

#[test]
fn search_starts_at_the_end_and_expands_hidden_matches() {
    assert_frames(
        |env| {
            add_crane_turn(env);
            env.search_for("crane");
        },
        expect![[r#"
            80×16
            › What of the crane at night?

              The crane stands still, and so does the other Crane.

            ✓ Run ls cranes · exit 0
                north.txt
                the crane.txt
                south.txt

            ✓ Read harbour.md · 2 lines

              Nothing moves.



            ── Find crane ──────────────────── 5 of 5 · Up older · Down newer · Esc close ──
            40×10

            ✓ Run ls cranes · exit 0
                north.txt
                the crane.txt
                south.txt

            ✓ Read harbour.md · 2 lines

              Nothing moves.
            ── Find crane ──────────────── 5 of 5 ──
        "#]],
    );
}

#[test]
fn the_search_row_shows_its_keys_and_that_nothing_matches() {
    assert_frames(
        |env| {
            add_crane_turn(env);
            env.search_for("");
        },
        expect![[r#"
            80×16
            › What of the crane at night?

              The crane stands still, and so does the other Crane.

            ✓ Run ls cranes · exit 0
            ✓ Read harbour.md · 2 lines

              Nothing moves.







            ── Find  ───────────────────────────────────────── type to search · Esc close ──
            40×10
            › What of the crane at night?

              The crane stands still, and so does
              the other Crane.

            ✓ Run ls cranes · exit 0
            ✓ Read harbour.md · 2 lines

              Nothing moves.
            ── Find  ───────────── type to search ──
        "#]],
    );
    assert_frames(
        |env| {
            add_crane_turn(env);
            env.search_for("lighthouse");
        },
        expect![[r#"
            80×16
            › What of the crane at night?

              The crane stands still, and so does the other Crane.

            ✓ Run ls cranes · exit 0
            ✓ Read harbour.md · 2 lines

              Nothing moves.







            ── Find lighthouse ─────────────────────────────────── no matches · Esc close ──
            40×10
            › What of the crane at night?

              The crane stands still, and so does
              the other Crane.

            ✓ Run ls cranes · exit 0
            ✓ Read harbour.md · 2 lines

              Nothing moves.
            ── Find lighthouse ─────── no matches ──
        "#]],
    );
}

#[test]
fn matches_can_be_stepped_through_and_esc_keeps_the_position() {
    let mut env = TestTranscript::open((60, 20));
    env.frame();
    add_crane_turn(&mut env);
    env.search_for("crane");
    expect![[r#"
        frame
        › What of the .crane. at night?

          The .crane. stands still, and so does the other .Crane..

        ✓ Run ls .crane.s · exit 0
            north.txt
            the [crane].txt
            south.txt

        ✓ Read harbour.md · 2 lines

          Nothing moves."#]]
    .assert_eq(&format!("frame\n{}", env.marked_frame()));
    let mut counts = vec![env.match_counter()];
    for _ in 0..5 {
        env.press_and_load(KeyCode::Enter);
        counts.push(env.match_counter());
    }
    assert_eq!(counts, ["5 of 5", "4 of 5", "3 of 5", "2 of 5", "1 of 5", "1 of 5"]);
    assert!(env.marked_frame().contains("[crane] at night"), "{}", env.marked_frame());
    assert!(
        !env.frame().contains("north.txt"),
        "a block expanded by the search collapses after it"
    );
    env.press_and_load(KeyCode::Down);
    assert!(env.marked_frame().contains("The [crane] stands"), "{}", env.marked_frame());
    env.press_and_load(KeyCode::Esc);
    assert!(!env.transcript.is_finding());
    assert!(!env.marked_frame().contains('['), "{}", env.marked_frame());
}

#[test]
fn capital_letters_and_wide_characters_match_exactly() {
    let mut env = TestTranscript::open((40, 12));
    env.frame();
    env.start_turn(1, "港の夜 Crane crane");
    env.search_for("Crane");
    assert_eq!(env.match_counter(), "1 of 1");
    env.press_and_load(KeyCode::Esc);
    env.search_for("の夜");
    assert_eq!(env.match_counter(), "1 of 1");
    let frame = env.marked_frame();
    assert!(frame.contains("港[の夜] Crane"), "{frame}");
}

#[test]
fn typing_narrows_the_search_with_one_request_at_a_time() {
    let mut env = TestTranscript::open((60, 20));
    env.frame();
    add_crane_turn(&mut env);
    env.with(|transcript, cx| transcript.start_search("", cx));
    for character in "crane.t".chars() {
        env.press(KeyCode::Char(character));
    }
    assert_eq!(env.sent.len(), 1, "{:?}", env.sent);
    assert!(env.last_row().contains("searching"), "{}", env.last_row());
    env.now += 2_500;
    assert!(env.last_row().contains("searching, 2 s"), "{}", env.last_row());
    env.answer_requests();
    assert_eq!(env.match_counter(), "1 of 1");
    assert!(env.marked_frame().contains("the [crane.t]xt"), "{}", env.marked_frame());
    env.press(KeyCode::Backspace);
    env.press(KeyCode::Backspace);
    env.answer_requests();
    assert_eq!(env.match_counter(), "5 of 5");
}

#[test]
fn text_that_arrives_during_a_search_is_found() {
    let mut env = TestTranscript::open((60, 20));
    env.frame();
    add_crane_turn(&mut env);
    env.search_for("moves");
    assert_eq!(env.match_counter(), "1 of 1");
    env.fact(model_text("It moves."));
    env.press_and_load(KeyCode::Up);
    assert_eq!(env.match_counter(), "1 of 2");
    env.press_and_load(KeyCode::Down);
    assert_eq!(env.match_counter(), "2 of 2");
}

#[test]
fn every_match_is_reached_in_a_session_of_any_length() {
    let turns = 7_200_u32;
    let mut log = Vec::new();
    let mut push = |fact: Fact| {
        let seq = log.len() as u64 + 1;
        log.push(FactRecord::new(session(), seq, UnixMillis(seq), fact));
    };
    push(Fact::session_opened("/w", "0.9"));
    for turn in 1..=turns {
        let id = prompt(turn.into());
        push(prompt_submitted(id, &format!("prompt {turn}")));
        push(Fact::TurnStarted { turn, prompt: Some(id) });
        for line in 0..10 {
            let has_needle = turn % 600 == 300 && line == 7;
            push(tool_called(u128::from(turn) * 100 + line, "bash", r#"{"command":"make"}"#));
            push(call_started(u128::from(turn) * 100 + line));
            let text = if has_needle { format!("the needle of {turn}") } else { "hay".to_owned() };
            push(call_settled(u128::from(turn) * 100 + line, command_outcome(&text, 0)));
        }
        push(turn_completed(turn));
    }
    assert!(log.len() > 200_000);
    let mut env = TestTranscript::resumed((60, 20), log);
    env.search_for("needle");
    for turn in (1..=12).rev() {
        assert_eq!(env.match_counter(), format!("{turn} of 12"));
        let expected = format!("the [needle] of {}", turn * 600 - 300);
        assert!(env.marked_frame().contains(&expected), "{expected}\n{}", env.marked_frame());
        let (record_count, _) = env.transcript.window.record_count_and_bytes();
        assert!(
            record_count <= MAX_RECORDS + 2 * PAGE_RECORDS as usize,
            "{record_count} records are held"
        );
        env.press_and_load(KeyCode::Up);
    }
    for _ in 0..4 {
        // Faster than pages arrive.
        env.press(KeyCode::Down);
    }
    env.answer_requests();
    env.frame();
    assert_eq!(env.match_counter(), "5 of 12");
    assert!(env.marked_frame().contains("the [needle] of 2700"), "{}", env.marked_frame());
    env.press_and_load(KeyCode::Esc);
    assert!(env.frame().contains("the needle of 2700"), "{}", env.frame());
    assert!(env.frame().contains("to jump to the end"), "{}", env.frame());
}
