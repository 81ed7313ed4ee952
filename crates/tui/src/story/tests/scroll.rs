//! Scrolling: what is read stays where it is, and a window is held of any length.

use super::*;
use crate::story::window::{MOST, MOST_BYTES, PAGE};
use proptest::prelude::*;

/// A log of so many turns. A turn has all kinds of things in it.
fn log(turns: u32) -> Vec<Record> {
    let mut log = Vec::new();
    let mut push = |fact: Fact| {
        let seq = log.len() as u64 + 1;
        log.push(Record { session: session(), seq, at: Millis(seq * 10), fact });
    };
    push(Fact::opened("/w", "0.9"));
    for turn in 1..=turns {
        let id = prompt(turn.into());
        let number = u128::from(turn) * 10;
        push(prompted(id, &format!("prompt {turn}\nwith a second line")));
        push(Fact::TurnStarted { turn, prompt: Some(id) });
        push(step(turn, 1));
        push(thought(&format!("thought {turn}")));
        push(said(&format!("text {turn}\n\nsecond paragraph of {turn}")));
        push(called(number, "read", &format!(r#"{{"filePath":"src/{turn}.rs"}}"#)));
        push(called(number + 1, "bash", &format!(r#"{{"command":"make {turn}"}}"#)));
        push(step_ended(turn, 1));
        push(started(number));
        push(settled(number, gave("1: a\n2: b")));
        push(started(number + 1));
        push(settled(number + 1, exit("fine", 0)));
        push(said(&format!("done with {turn}")));
        push(done(turn));
    }
    log
}

/// The rows without the line that says where one is.
fn body(scene: &mut Scene) -> Vec<String> {
    let mut lines = scene.lines();
    if !scene.story.follows() {
        lines.pop();
    }
    lines
}

#[test]
fn what_is_read_stays_while_more_is_said_below() {
    let mut scene = Scene::resumed((60, 20), log(10));
    scene.go(Scroll::Lines(-15));
    let before = body(&mut scene);
    assert!(!scene.story.follows());
    scene.ask(11, "more");
    scene.fact(step(11, 1));
    for _ in 0..200 {
        scene.write("word ");
        assert_eq!(body(&mut scene), before);
    }
    scene.fact(said(&"word ".repeat(200)));
    scene.facts([called(900, "read", "{}"), started(900), settled(900, gave("x"))]);
    assert_eq!(body(&mut scene), before);
    assert!(scene.frame().contains("new"), "{}", scene.frame());
    scene.go(Scroll::End);
    assert!(scene.story.follows());
    assert!(scene.frame().contains("✓ read"), "{}", scene.frame());
}

#[test]
fn who_reads_what_is_being_written_reads_on_when_it_is_written() {
    let mut scene = Scene::open((40, 12));
    scene.ask(1, "go");
    scene.fact(step(1, 1));
    let text: String = (0..60).map(|line| format!("line {line}\n\n")).collect();
    scene.write(&text);
    scene.frame();
    scene.go(Scroll::Lines(-30));
    let before = body(&mut scene);
    scene.fact(said(&text));
    assert_eq!(body(&mut scene), before);
    scene.facts([step_ended(1, 1), done(1)]);
    assert_eq!(body(&mut scene), before);
}

#[test]
fn the_row_at_the_top_stays_when_the_size_changes() {
    let mut scene = Scene::resumed((60, 20), log(20));
    scene.go(Scroll::Lines(-40));
    let top = scene.lines()[0].clone();
    for size in [(60, 10), (60, 30), (100, 30), (60, 20)] {
        scene.resize(size.0, size.1);
        assert_eq!(scene.lines()[0], top, "{size:?}");
    }
    scene.go(Scroll::End);
    scene.frame();
    scene.resize(30, 8);
    scene.frame();
    assert!(scene.story.follows());
}

#[test]
fn a_page_that_comes_before_moves_nothing() {
    let mut scene = Scene::resumed((60, 20), log(100));
    let first = |scene: &Scene| scene.story.window.span().unwrap().0;
    let held = first(&scene);
    assert!(held > 1);
    for _ in 0..1_000 {
        scene.scroll(Scroll::Lines(-3));
        let before = scene.lines();
        scene.serve();
        assert_eq!(scene.lines(), before);
        if first(&scene) < held {
            return;
        }
    }
    panic!("no page was asked for");
}

#[test]
fn a_session_of_any_length_is_a_window_and_every_row_of_it_can_be_reached() {
    let log = log(7_200);
    assert!(log.len() > 100_000);
    let mut scene = Scene::resumed((60, 20), log);
    let seen = |scene: &Scene| {
        let (count, bytes) = scene.story.window.size();
        assert!(count <= MOST + 2 * PAGE as usize, "{count} facts are held");
        assert!(bytes <= MOST_BYTES + (1 << 20), "{bytes} bytes are held");
        assert!(scene.story.laid.len() < 3_000 && scene.story.laid_rows < 20_000);
        let rows: usize = scene.story.laid.values().map(|laid| laid.len()).sum();
        assert_eq!(rows, scene.story.laid_rows, "what is held is counted");
    };
    // Up, a page at a time: every turn is seen.
    let mut turns: Vec<u32> = Vec::new();
    let mut note = |lines: &[String]| {
        let number = |line: &String| line.strip_prefix("› prompt ")?.parse::<u32>().ok();
        turns.extend(lines.iter().filter_map(number));
    };
    note(&body(&mut scene));
    for _ in 0..20_000 {
        scene.go(Scroll::Pages(-1));
        seen(&scene);
        let lines = body(&mut scene);
        note(&lines);
        if lines[0] == "› prompt 1" {
            break;
        }
    }
    turns.dedup();
    turns.sort_unstable();
    turns.dedup();
    assert_eq!(turns, (1..=7_200).collect::<Vec<_>>());
    // And down again to the end.
    for _ in 0..20_000 {
        if scene.story.follows() {
            break;
        }
        scene.go(Scroll::Pages(1));
        seen(&scene);
        scene.frame();
    }
    assert!(scene.story.follows());
    assert!(scene.frame().contains("done with 7200"), "{}", scene.frame());
    scene.go(Scroll::Top);
    assert_eq!(scene.lines()[0], "› prompt 1");
    scene.go(Scroll::End);
    assert!(scene.frame().contains("done with 7200"));
}

#[test]
fn a_window_shows_the_same_rows_as_the_whole() {
    let log = log(400);
    let mut whole = Scene::new((60, 20));
    whole.frame();
    whole.open_at(0);
    // Heard one after the other by a screen as high as it takes, nothing is let go.
    whole.resize(60, 9_000);
    whole.frame();
    for record in &log {
        whole.event(Event::Fact(record.clone()));
    }
    let all = whole.frame();
    let all: Vec<&str> = all.lines().collect();
    assert_eq!(all[0], "› prompt 1");
    let mut scene = Scene::resumed((60, 20), log);
    let mut bottom = all.len();
    loop {
        let lines = body(&mut scene);
        let from = (0..=bottom.saturating_sub(lines.len()))
            .rev()
            .find(|at| all[*at..].iter().zip(&lines).all(|(one, other)| one == other));
        let from = from.unwrap_or_else(|| panic!("not in the whole: {lines:#?}"));
        if from == 0 {
            break;
        }
        assert!(bottom - from <= 2 * lines.len(), "rows were left out");
        bottom = from + lines.len() - 1;
        scene.go(Scroll::Pages(-1));
    }
}

#[test]
fn what_is_heard_far_from_the_end_is_there_when_one_goes_to_the_end() {
    let mut scene = Scene::resumed((60, 20), log(300));
    scene.go(Scroll::Top);
    let before = body(&mut scene);
    scene.ask(301, "while away");
    scene.facts([said("and this"), done(301)]);
    assert_eq!(body(&mut scene), before);
    assert!(scene.frame().contains("more below"), "{}", scene.frame());
    scene.go(Scroll::End);
    assert!(scene.frame().contains("and this"), "{}", scene.frame());
    scene.fact(said("and that"));
    assert!(scene.frame().contains("and that"), "{}", scene.frame());
}

#[test]
fn what_is_said_before_the_past_has_come_is_not_lost() {
    let log = log(50);
    let mut scene = Scene::new((60, 20));
    scene.frame();
    scene.log = log;
    let head = scene.log.len() as u64;
    scene.open_at(head);
    // The host looked before this was said, and answers after it.
    let stale = scene.log.clone();
    scene.ask(51, "already");
    scene.fact(said("going on"));
    let now = std::mem::replace(&mut scene.log, stale);
    while let Some(up) = scene.sent.pop_front() {
        scene.answer(up);
        scene.log.clone_from(&now);
    }
    assert!(scene.frame().contains("going on"), "{}", scene.frame());
    assert!(scene.known.busy());
}

#[test]
fn prompts_are_jumped_between() {
    let mut scene = Scene::resumed((60, 12), log(120));
    for turn in (1..=120).rev() {
        scene.go(Scroll::PreviousPrompt);
        assert_eq!(scene.lines()[0], format!("› prompt {turn}"));
    }
    scene.go(Scroll::PreviousPrompt);
    assert_eq!(scene.lines()[0], "› prompt 1");
    for turn in 2..=119 {
        scene.go(Scroll::NextPrompt);
        assert_eq!(scene.lines()[0], format!("› prompt {turn}"));
    }
}

#[test]
fn the_block_in_the_middle_is_opened_and_closed() {
    let mut scene = Scene::resumed((60, 21), log(20));
    scene.go(Scroll::Lines(-30));
    let before = scene.lines();
    scene.story.toggle(Details::One);
    let open = scene.lines();
    assert_ne!(open, before);
    assert_eq!(open[0], before[0]);
    scene.story.toggle(Details::One);
    assert_eq!(scene.lines(), before);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn up_and_down_again_shows_the_same(
        start in 0i32..900,
        by in 1i32..400,
        width in 20u16..100,
        height in 4u16..40,
    ) {
        let mut scene = Scene::resumed((width, height), log(80));
        scene.go(Scroll::Lines(-start));
        let before = scene.lines();
        let span = scene.story.anchor;
        scene.go(Scroll::Lines(-by));
        let moved = scene.story.anchor;
        scene.go(Scroll::Lines(by));
        // Who was stopped by the beginning comes out further down.
        let beginning = moved.is_some_and(|anchor| anchor.key.0 <= 3);
        if !beginning && moved != span {
            prop_assert_eq!(scene.lines(), before);
        }
    }
}
