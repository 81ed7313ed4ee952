//! The terminal is asked which ground it has. Its answer is drawn by, and typed never.

use crate::place::{CTRL_D, ESC, REST, ready, say};
use crate::yard::Yard;
use std::time::{Duration, Instant};
use windlass_testkit::terminal::{Ground, Seat, Terminal};

const LIGHT: &str = "\x1b]11;rgb:fafa/fafa/f8f8\x1b\\";

/// Letters and their colours, once the screen has come to rest.
fn drawn(terminal: &Terminal) -> String {
    ready(terminal);
    terminal.settle(REST);
    terminal.look(|screen| screen.contents_formatted())
}

/// What stands in the prompt.
fn prompt(terminal: &Terminal) -> String {
    let text = terminal.text();
    let line = text.lines().rev().find_map(|line| line.split_once("› "));
    line.map_or_else(String::new, |(_, typed)| typed.to_owned())
}

/// The screen as it is drawn where the environment tells the ground, and nobody else.
fn told(yard: &Yard, colorfgbg: &str) -> String {
    drawn(&yard.seat().on(Ground::Untold).set("COLORFGBG", colorfgbg).start())
}

#[test]
fn the_ground_that_the_terminal_answers_is_drawn_for() {
    let yard = Yard::new(&[], "");
    let (dark, light) = (told(&yard, "15;0"), told(&yard, "0;15"));
    assert_ne!(dark, light);
    // It counts for more than what the environment says, and as much with a theme of one's own.
    for (ground, colorfgbg, wanted) in
        [(Ground::Light, "15;0", &light), (Ground::Dark, "0;15", &dark)]
    {
        let terminal = yard.seat().on(ground).set("COLORFGBG", colorfgbg).start();
        assert_eq!(&drawn(&terminal), wanted, "{ground:?}");
    }
    for answer in ["\x1b]11;rgb:fa/fa/f8\x07", "\x1b]11;rgba:fafa/fafa/f8f8/8080\x1b\\"] {
        assert_eq!(drawn(&yard.seat().answering(&[(0, answer)]).start()), light, "{answer:?}");
    }
}

#[test]
fn nobody_waits_for_an_answer_and_it_counts_when_it_comes() {
    let yard = Yard::new(&[], "");
    let (dark, light) = (told(&yard, "15;0"), told(&yard, "0;15"));
    let terminal = yard.seat().answering(&[(4000, LIGHT)]).start();
    assert_eq!(drawn(&terminal), dark);
    let so_far = terminal.frames().len();
    let deadline = Instant::now() + Duration::from_secs(12);
    while terminal.frames().len() == so_far {
        assert!(Instant::now() < deadline, "the answer changed nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(drawn(&terminal), light);
}

#[test]
fn a_terminal_that_never_answers_shows_its_first_frame_as_soon() {
    let yard = Yard::new(&[], "");
    let first = |ground| {
        let start = Instant::now();
        let terminal = yard.seat().on(ground).start();
        terminal.wait_text("› ");
        start.elapsed()
    };
    // In turns, so that whatever else runs on the machine slows down both.
    let both = (0..10).map(|_| (first(Ground::Untold), first(Ground::Dark)));
    let (never, at_once): (Vec<_>, Vec<_>) = both.unzip();
    let (never, at_once) = (*never.iter().min().unwrap(), *at_once.iter().min().unwrap());
    println!("figure: start to first frame, answered never and at once: {never:?}, {at_once:?}");
    // A wait would be far longer than what a busy machine makes of it.
    assert!(never < at_once + Duration::from_millis(80), "{never:?} after {at_once:?}");
}

#[test]
fn whatever_is_answered_is_not_typed_and_what_is_typed_arrives() {
    let garbage = format!("\x1b]11;{}\ry\x03\x1b\\", "rm -rf /".repeat(200));
    let answers: [(&str, &[(u64, &str)]); 8] = [
        ("at once", &[(0, LIGHT)]),
        ("late", &[(300, LIGHT)]),
        ("very late", &[(2500, LIGHT)]),
        ("in two pieces", &[(0, "\x1b]11;rgb:fafa/f"), (300, "afa/f8f8\x1b\\")]),
        ("a byte first", &[(100, "\x1b"), (5, "]11;rgb:fafa/fafa/f8f8"), (5, "\x1b"), (5, "\\")]),
        ("another's", &[(0, "\x1b]10;rgb:0/0/0\x07"), (50, LIGHT)]),
        ("garbage", &[(0, &garbage)]),
        ("garbage, late", &[(300, &garbage)]),
    ];
    for (name, answer) in answers {
        let yard = Yard::new(&[], "");
        let terminal = yard.seat().answering(answer).start();
        // Before there is a screen, when there is one, and when the answer is over.
        terminal.press("ab");
        ready(&terminal);
        let whole = answer.len() == 1;
        if whole {
            terminal.press("cd");
        }
        let pauses: u64 = answer.iter().map(|(pause, _)| pause).sum();
        std::thread::sleep(Duration::from_millis(pauses + 300));
        terminal.press("ef");
        let typed = if whole { "abcdef" } else { "abef" };
        terminal.wait_for(name, |screen| screen.contents().contains(typed));
        terminal.settle(REST);
        assert_eq!(prompt(&terminal), typed, "{name}");
    }
}

#[test]
fn an_answer_that_never_ends_takes_no_more_than_a_second_of_keys() {
    let yard = Yard::new(&[], "");
    let terminal = yard.seat().answering(&[(0, "\x1b]11;rgb:fa")]).start();
    ready(&terminal);
    std::thread::sleep(Duration::from_millis(1500));
    terminal.press("typed");
    terminal.wait_text("› typed");
}

#[test]
fn whoever_leaves_at_once_finds_no_answer_in_the_shell() {
    let yard = Yard::new(&[], "");
    let mut terminal = yard.seat().answering(&[(400, LIGHT)]).start();
    terminal.wait_text("› ");
    terminal.press(CTRL_D);
    terminal.end();
    std::thread::sleep(Duration::from_millis(600));
    assert!(!terminal.text().contains("rgb"), "{}", terminal.text());
}

#[test]
fn whoever_leaves_a_terminal_that_never_answers_does_not_wait_long() {
    let yard = Yard::new(&[], "");
    let mut terminal = yard.seat().on(Ground::Untold).start();
    ready(&terminal);
    std::thread::sleep(Duration::from_millis(1200));
    let left = Instant::now();
    terminal.press(CTRL_D);
    terminal.end();
    let took = left.elapsed();
    assert!(took < Duration::from_millis(900), "{took:?}");
}

#[test]
fn where_no_ground_is_drawn_for_none_is_asked_for() {
    let asks = |seat: Seat, ready: &str| {
        let terminal = seat.start();
        terminal.wait_text(ready);
        terminal.settle(REST);
        terminal.raw().windows(4).any(|four| four == b"\x1b]11")
    };
    let yard = Yard::new(&[], "");
    assert!(asks(yard.seat(), "› "));
    assert!(!asks(yard.seat().set("NO_COLOR", "1"), "› "));
    assert!(!asks(yard.seat().set("TERM", "dumb"), "windlass"));
    assert!(!asks(yard.seat().with(&["--linear"]), "windlass"));
}

#[test]
fn escape_is_a_key_while_an_answer_may_come() {
    let yard = Yard::new(&["say One \ngate never"], "");
    let terminal = yard.seat().on(Ground::Untold).start();
    ready(&terminal);
    say(&terminal, "go");
    terminal.wait_text("One");
    terminal.press(ESC);
    terminal.wait_gone("Esc stops");
}
