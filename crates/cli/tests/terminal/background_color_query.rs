//! The query for the terminal's background color: the theme follows its answer, which is never
//! typed into the prompt.

use crate::support::TestEnv;
use crate::tui_driver::{CTRL_D, ESC, QUIET_TIME, send_prompt, wait_until_ready};
use std::time::{Duration, Instant};
use windlass_testkit::terminal::{EmulatedBackground, Terminal, TerminalCommand};

const LIGHT: &str = "\x1b]11;rgb:fafa/fafa/f8f8\x1b\\";

/// Returns text and colors of the complete screen.
fn formatted_screen(terminal: &Terminal) -> String {
    wait_until_ready(terminal);
    terminal.settle(QUIET_TIME);
    terminal.look(|screen| screen.contents_formatted())
}

/// Returns the text in the prompt.
fn prompt_text(terminal: &Terminal) -> String {
    let text = terminal.text();
    let line = text.lines().rev().find_map(|line| line.split_once("› "));
    line.map_or_else(String::new, |(_, typed)| typed.to_owned())
}

/// Returns the screen in a terminal that answers no query, with `COLORFGBG`.
fn screen_with_colorfgbg(env: &TestEnv, colorfgbg: &str) -> String {
    formatted_screen(
        &env.terminal().on(EmulatedBackground::Unknown).set("COLORFGBG", colorfgbg).start(),
    )
}

#[test]
fn the_theme_follows_the_background_that_the_terminal_reports() {
    let env = TestEnv::new(&[], "");
    let (dark, light) = (screen_with_colorfgbg(&env, "15;0"), screen_with_colorfgbg(&env, "0;15"));
    assert_ne!(dark, light);
    // The answer has precedence over the environment.
    for (background, colorfgbg, wanted) in
        [(EmulatedBackground::Light, "15;0", &light), (EmulatedBackground::Dark, "0;15", &dark)]
    {
        let terminal = env.terminal().on(background).set("COLORFGBG", colorfgbg).start();
        assert_eq!(&formatted_screen(&terminal), wanted, "{background:?}");
    }
    for answer in ["\x1b]11;rgb:fa/fa/f8\x07", "\x1b]11;rgba:fafa/fafa/f8f8/8080\x1b\\"] {
        assert_eq!(
            formatted_screen(&env.terminal().answering(&[(0, answer)]).start()),
            light,
            "{answer:?}"
        );
    }
}

#[test]
fn a_late_answer_changes_the_theme() {
    let env = TestEnv::new(&[], "");
    let (dark, light) = (screen_with_colorfgbg(&env, "15;0"), screen_with_colorfgbg(&env, "0;15"));
    let terminal = env.terminal().answering(&[(4000, LIGHT)]).start();
    assert_eq!(formatted_screen(&terminal), dark);
    let frame_count = terminal.frames().len();
    let deadline = Instant::now() + Duration::from_secs(12);
    while terminal.frames().len() == frame_count {
        assert!(Instant::now() < deadline, "the answer changed nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(formatted_screen(&terminal), light);
}

#[test]
fn a_missing_answer_does_not_delay_the_first_frame() {
    let env = TestEnv::new(&[], "");
    let first = |background| {
        let start = Instant::now();
        let terminal = env.terminal().on(background).start();
        terminal.wait_text("› ");
        start.elapsed()
    };
    // Alternates, so that other processes of the machine slow down both.
    let both =
        (0..10).map(|_| (first(EmulatedBackground::Unknown), first(EmulatedBackground::Dark)));
    let (never, at_once): (Vec<_>, Vec<_>) = both.unzip();
    let (never, at_once) = (*never.iter().min().unwrap(), *at_once.iter().min().unwrap());
    println!("figure: start to first frame, answered never and at once: {never:?}, {at_once:?}");
    // A wait for the answer would be far longer than the noise of a busy machine.
    assert!(never < at_once + Duration::from_millis(80), "{never:?} after {at_once:?}");
}

#[test]
fn answers_are_not_typed_and_typed_keys_arrive() {
    let garbage = format!("\x1b]11;{}\ry\x03\x1b\\", "rm -rf /".repeat(200));
    let answers: [(&str, &[(u64, &str)]); 8] = [
        ("at once", &[(0, LIGHT)]),
        ("late", &[(300, LIGHT)]),
        ("very late", &[(2500, LIGHT)]),
        ("in two pieces", &[(0, "\x1b]11;rgb:fafa/f"), (300, "afa/f8f8\x1b\\")]),
        ("a byte first", &[(100, "\x1b"), (5, "]11;rgb:fafa/fafa/f8f8"), (5, "\x1b"), (5, "\\")]),
        ("after another answer", &[(0, "\x1b]10;rgb:0/0/0\x07"), (50, LIGHT)]),
        ("garbage", &[(0, &garbage)]),
        ("garbage, late", &[(300, &garbage)]),
    ];
    for (name, answer) in answers {
        let env = TestEnv::new(&[], "");
        let terminal = env.terminal().answering(answer).start();
        // Types before the screen is drawn, after it is drawn, and after the answer.
        terminal.press("ab");
        wait_until_ready(&terminal);
        let whole = answer.len() == 1;
        if whole {
            terminal.press("cd");
        }
        let pauses: u64 = answer.iter().map(|(pause, _)| pause).sum();
        std::thread::sleep(Duration::from_millis(pauses + 300));
        terminal.press("ef");
        let typed = if whole { "abcdef" } else { "abef" };
        terminal.wait_for(name, |screen| screen.contents().contains(typed));
        terminal.settle(QUIET_TIME);
        assert_eq!(prompt_text(&terminal), typed, "{name}");
    }
}

#[test]
fn an_unfinished_answer_swallows_keys_for_at_most_a_second() {
    let env = TestEnv::new(&[], "");
    let terminal = env.terminal().answering(&[(0, "\x1b]11;rgb:fa")]).start();
    wait_until_ready(&terminal);
    std::thread::sleep(Duration::from_millis(1500));
    terminal.press("typed");
    terminal.wait_text("› typed");
}

#[test]
fn after_an_early_exit_no_answer_reaches_the_shell() {
    let env = TestEnv::new(&[], "");
    let mut terminal = env.terminal().answering(&[(400, LIGHT)]).start();
    terminal.wait_text("› ");
    terminal.press(CTRL_D);
    terminal.end();
    std::thread::sleep(Duration::from_millis(600));
    assert!(!terminal.text().contains("rgb"), "{}", terminal.text());
}

#[test]
fn an_exit_does_not_wait_long_for_a_missing_answer() {
    let env = TestEnv::new(&[], "");
    let mut terminal = env.terminal().on(EmulatedBackground::Unknown).start();
    wait_until_ready(&terminal);
    std::thread::sleep(Duration::from_millis(1200));
    let start = Instant::now();
    terminal.press(CTRL_D);
    terminal.end();
    let duration = start.elapsed();
    assert!(duration < Duration::from_millis(900), "{duration:?}");
}

#[test]
fn the_background_is_queried_only_if_colors_are_used() {
    let has_query = |command: TerminalCommand, expected: &str| {
        let terminal = command.start();
        terminal.wait_text(expected);
        terminal.settle(QUIET_TIME);
        terminal.raw().windows(4).any(|four| four == b"\x1b]11")
    };
    let env = TestEnv::new(&[], "");
    assert!(has_query(env.terminal(), "› "));
    assert!(!has_query(env.terminal().set("NO_COLOR", "1"), "› "));
    assert!(!has_query(env.terminal().set("TERM", "dumb"), "windlass"));
    assert!(!has_query(env.terminal().with(&["--linear"]), "windlass"));
}

#[test]
fn escape_works_while_an_answer_is_pending() {
    let env = TestEnv::new(&["say One \ngate never"], "");
    let terminal = env.terminal().on(EmulatedBackground::Unknown).start();
    wait_until_ready(&terminal);
    send_prompt(&terminal, "go");
    terminal.wait_text("One");
    terminal.press(ESC);
    terminal.wait_gone("Esc to stop");
}
