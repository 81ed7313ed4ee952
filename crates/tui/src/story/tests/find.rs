//! Finding: what is found is shown, marked and counted, wherever in a session it stands.

use super::*;
use crate::story::window::{MOST, PAGE};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use expect_test::{Expect, expect};
use ratatui::style::Modifier;

impl Scene {
    fn look_for(&mut self, text: &str) {
        self.with(|story, cx| story.find("", cx));
        self.frame();
        self.types(text);
    }

    fn types(&mut self, text: &str) {
        for letter in text.chars() {
            self.press(KeyCode::Char(letter));
        }
        self.serve();
        self.frame();
    }

    fn press(&mut self, code: KeyCode) -> bool {
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        self.with(|story, cx| story.find_key(&key, cx))
    }

    fn goes(&mut self, code: KeyCode) {
        assert!(self.press(code));
        self.serve();
        self.frame();
    }

    /// The last row.
    fn foot(&mut self) -> String {
        self.lines().last().unwrap().clone()
    }

    /// `3 of 17`.
    fn count(&mut self) -> String {
        let foot = self.foot();
        let words: Vec<&str> = foot.split(' ').collect();
        let of = words.iter().position(|word| *word == "of").unwrap_or_else(|| panic!("{foot}"));
        words[of - 1..of + 2].join(" ")
    }

    /// What is marked: with brackets the one that one is at, with dots the others.
    fn marked(&mut self) -> String {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let mut buffer = Buffer::empty(area);
        self.story.draw(area, &mut buffer, &self.look, &self.known);
        let mut rows = Vec::new();
        for y in 0..area.height - 1 {
            let (mut frame, mut last, mut x) = (String::new(), "", 0);
            while x < area.width {
                let cell = &buffer[(x, y)];
                x += u16::try_from(crate::ink::width(cell.symbol()).max(1)).unwrap();
                let sign = match cell.modifier {
                    on if on.contains(Modifier::REVERSED) => "[]",
                    on if on.contains(Modifier::UNDERLINED) => "..",
                    _ => "",
                };
                if sign != last {
                    frame.extend(last.chars().last());
                    frame.extend(sign.chars().next());
                }
                last = sign;
                frame.push_str(cell.symbol());
            }
            rows.push(frame.trim_end().to_owned());
        }
        rows.join("\n").trim_end().to_owned()
    }
}

fn harbour(scene: &mut Scene) {
    scene.ask(1, "What of the crane at night?");
    scene.facts([
        step(1, 1),
        said("The **crane** stands still, and so does the other Crane."),
        called(1, "bash", r#"{"command":"ls cranes"}"#),
        started(1),
        settled(1, exit("north.txt\nthe crane.txt\nsouth.txt", 0)),
        called(2, "read", r#"{"filePath":"harbour.md"}"#),
        started(2),
        settled(2, gave("1: quay\n2: water")),
        said("Nothing moves."),
        step_ended(1, 1),
        done(1),
    ]);
}

fn shot(play: impl Fn(&mut Scene), expected: Expect) {
    let frame = |size: (u16, u16)| {
        let mut scene = Scene::open(size);
        scene.frame();
        play(&mut scene);
        scene.serve();
        scene.frame()
    };
    expected.assert_eq(&format!("80×16\n{}\n40×10\n{}\n", frame((80, 16)), frame((40, 10))));
}

#[test]
fn a_text_is_found_from_the_end_on_and_what_hides_it_is_opened() {
    shot(
        |scene| {
            harbour(scene);
            scene.look_for("crane");
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




            ── Find crane ─────────────────── 5 of 5 · Up older · Down newer · Esc closes ──
            40×10
              the other Crane.

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
fn the_row_says_what_can_be_done_and_what_was_not_found() {
    shot(
        |scene| {
            harbour(scene);
            scene.look_for("");
        },
        expect![[r#"
            80×16
            › What of the crane at night?

              The crane stands still, and so does the other Crane.

            ✓ Run ls cranes · exit 0
            ✓ Read harbour.md · 2 lines

              Nothing moves.







            ── Find  ───────────────────────────────────── type what to find · Esc closes ──
            40×10
            › What of the crane at night?

              The crane stands still, and so does
              the other Crane.

            ✓ Run ls cranes · exit 0
            ✓ Read harbour.md · 2 lines

              Nothing moves.
            ── Find  ────────── type what to find ──
        "#]],
    );
    shot(
        |scene| {
            harbour(scene);
            scene.look_for("lighthouse");
        },
        expect![[r#"
            80×16
            › What of the crane at night?

              The crane stands still, and so does the other Crane.

            ✓ Run ls cranes · exit 0
            ✓ Read harbour.md · 2 lines

              Nothing moves.







            ── Find lighthouse ─────────────────────────────── nothing found · Esc closes ──
            40×10
            › What of the crane at night?

              The crane stands still, and so does
              the other Crane.

            ✓ Run ls cranes · exit 0
            ✓ Read harbour.md · 2 lines

              Nothing moves.
            ── Find lighthouse ──── nothing found ──
        "#]],
    );
}

#[test]
fn one_goes_to_older_and_newer_ones_and_leaves_where_one_is() {
    let mut scene = Scene::open((60, 20));
    scene.frame();
    harbour(&mut scene);
    scene.look_for("crane");
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
    .assert_eq(&format!("frame\n{}", scene.marked()));
    let mut counts = vec![scene.count()];
    for _ in 0..5 {
        scene.goes(KeyCode::Enter);
        counts.push(scene.count());
    }
    assert_eq!(counts, ["5 of 5", "4 of 5", "3 of 5", "2 of 5", "1 of 5", "1 of 5"]);
    assert!(scene.marked().contains("[crane] at night"), "{}", scene.marked());
    assert!(!scene.frame().contains("north.txt"), "what was opened is closed behind one");
    scene.goes(KeyCode::Down);
    assert!(scene.marked().contains("The [crane] stands"), "{}", scene.marked());
    scene.goes(KeyCode::Esc);
    assert!(!scene.story.finds());
    assert!(!scene.marked().contains('['), "{}", scene.marked());
}

#[test]
fn capitals_and_wide_signs_are_found_as_they_are_written() {
    let mut scene = Scene::open((40, 12));
    scene.frame();
    scene.ask(1, "港の夜 Crane crane");
    scene.look_for("Crane");
    assert_eq!(scene.count(), "1 of 1");
    scene.goes(KeyCode::Esc);
    scene.look_for("の夜");
    assert_eq!(scene.count(), "1 of 1");
    let text = scene.marked();
    assert!(text.contains("港[の夜] Crane"), "{text}");
}

#[test]
fn what_is_typed_narrows_and_one_request_is_under_way_at_a_time() {
    let mut scene = Scene::open((60, 20));
    scene.frame();
    harbour(&mut scene);
    scene.with(|story, cx| story.find("", cx));
    for letter in "crane.t".chars() {
        scene.press(KeyCode::Char(letter));
    }
    assert_eq!(scene.sent.len(), 1, "{:?}", scene.sent);
    assert!(scene.foot().contains("looking"), "{}", scene.foot());
    scene.now += 2_500;
    assert!(scene.foot().contains("looking, 2 s"), "{}", scene.foot());
    scene.serve();
    assert_eq!(scene.count(), "1 of 1");
    assert!(scene.marked().contains("the [crane.t]xt"), "{}", scene.marked());
    scene.press(KeyCode::Backspace);
    scene.press(KeyCode::Backspace);
    scene.serve();
    assert_eq!(scene.count(), "5 of 5");
}

#[test]
fn what_is_said_meanwhile_is_found_too() {
    let mut scene = Scene::open((60, 20));
    scene.frame();
    harbour(&mut scene);
    scene.look_for("moves");
    assert_eq!(scene.count(), "1 of 1");
    scene.fact(said("It moves."));
    scene.goes(KeyCode::Up);
    assert_eq!(scene.count(), "1 of 2");
    scene.goes(KeyCode::Down);
    assert_eq!(scene.count(), "2 of 2");
}

#[test]
fn every_one_is_reached_in_a_session_of_any_length() {
    let turns = 7_200_u32;
    let mut log = Vec::new();
    let mut push = |fact: Fact| {
        let seq = log.len() as u64 + 1;
        log.push(Record { session: session(), seq, at: Millis(seq), fact });
    };
    push(Fact::opened("/w", "0.9"));
    for turn in 1..=turns {
        let id = prompt(turn.into());
        push(prompted(id, &format!("prompt {turn}")));
        push(Fact::TurnStarted { turn, prompt: Some(id) });
        for line in 0..10 {
            let buried = turn % 600 == 300 && line == 7;
            push(called(u128::from(turn) * 100 + line, "bash", r#"{"command":"make"}"#));
            push(started(u128::from(turn) * 100 + line));
            let text = if buried { format!("the needle of {turn}") } else { "hay".to_owned() };
            push(settled(u128::from(turn) * 100 + line, exit(&text, 0)));
        }
        push(done(turn));
    }
    assert!(log.len() > 200_000);
    let mut scene = Scene::resumed((60, 20), log);
    scene.look_for("needle");
    for turn in (1..=12).rev() {
        assert_eq!(scene.count(), format!("{turn} of 12"));
        let wanted = format!("the [needle] of {}", turn * 600 - 300);
        assert!(scene.marked().contains(&wanted), "{wanted}\n{}", scene.marked());
        let (held, _) = scene.story.window.size();
        assert!(held <= MOST + 2 * PAGE as usize, "{held} facts are held");
        scene.goes(KeyCode::Up);
    }
    for _ in 0..4 {
        // Faster than pages come.
        scene.press(KeyCode::Down);
    }
    scene.serve();
    scene.frame();
    assert_eq!(scene.count(), "5 of 12");
    assert!(scene.marked().contains("the [needle] of 2700"), "{}", scene.marked());
    scene.goes(KeyCode::Esc);
    assert!(scene.frame().contains("the needle of 2700"), "{}", scene.frame());
    assert!(scene.frame().contains("goes to the end"), "{}", scene.frame());
}
