//! How fast the real binary is, at a real terminal. The figures are in the book's benchmarks.
//!
//! `WINDLASS_FIGURES=1` prints them; the bounds hold for release builds, and a build without
//! optimisations has four times as long.

use crate::place::{REST, ready, say};
use crate::yard::Yard;
use std::time::{Duration, Instant};
use windlass_testkit::terminal::Terminal;
use windlass_testkit::{Model, Script};

/// How much longer a build like this one may take.
const SLACK: u32 = if cfg!(debug_assertions) { 4 } else { 1 };

fn told(what: &str, figure: impl std::fmt::Debug) {
    println!("figure: {what}: {figure:?}");
}

/// The least of several runs: others on the machine make it slower, nothing makes it faster.
fn least(runs: usize, measure: impl Fn() -> Duration) -> Duration {
    (0..runs).map(|_| measure()).min().unwrap()
}

fn at(share: f64, times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share) as usize]
}

#[test]
fn speed_from_the_start_to_the_first_frame() {
    let yard = Yard::new(&[], "");
    let first = least(10, || {
        let start = Instant::now();
        let terminal = yard.seat().start();
        terminal.wait_text("› ");
        start.elapsed()
    });
    told("start to first frame", first);
    assert!(first < Duration::from_millis(80) * SLACK, "{first:?}");
}

/// A model that speaks a thousand words a second, for so many seconds.
fn talker(seconds: usize) -> String {
    "say word word word word word word word word word word \nstall 10\n".repeat(100 * seconds)
}

#[test]
fn speed_of_keys_while_the_model_speaks_a_thousand_words_a_second() {
    let yard = Yard::new(&[&talker(30)], "");
    let terminal = yard.seat().sized(100, 40).start();
    ready(&terminal);
    say(&terminal, "go");
    terminal.wait_text("word word");
    let mut times = Vec::new();
    let mut typed = String::new();
    for number in 0..120 {
        let key = char::from(b'a' + (number % 26) as u8);
        typed.push(key);
        if typed.len() > 60 {
            terminal.press("\x15");
            typed = String::from(key);
            std::thread::sleep(Duration::from_millis(40));
        }
        let start = Instant::now();
        terminal.press(&key.to_string());
        terminal.wait_for("what was typed", |screen| screen.contents().contains(&typed));
        times.push(start.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(
        terminal.text().contains("Esc stops"),
        "the model is done already\n{}",
        terminal.text()
    );
    let (median, most) = (at(0.5, &mut times), at(0.99, &mut times));
    told("key to screen at 1,000 words/s, median and p99", (median, most));
    assert!(most < Duration::from_millis(50) * SLACK, "{most:?}");
}

/// Seconds of the processor that a process has used.
fn used(terminal: &Terminal) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", terminal.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / rustix::param::clock_ticks_per_second() as f64
}

/// Megabytes that a process holds.
fn held(terminal: &Terminal) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", terminal.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

#[test]
fn speed_of_doing_nothing() {
    let yard = Yard::new(&["say Done."], "");
    let terminal = yard.seat().start();
    ready(&terminal);
    say(&terminal, "go");
    terminal.wait_text("Done.");
    terminal.settle(REST * 4);
    let seconds = if std::env::var_os("WINDLASS_FIGURES").is_some() { 20 } else { 5 };
    let (before, written) = (used(&terminal), terminal.written());
    std::thread::sleep(Duration::from_secs(seconds));
    let share = (used(&terminal) - before) / seconds as f64 * 100.0;
    told("idle, percent of a processor", share);
    assert_eq!(terminal.written(), written, "something was drawn though nothing happened");
    assert!(share < 0.5, "{share}");
}

#[test]
#[ignore = "takes minutes: run by name"]
fn speed_and_size_of_a_session_of_two_thousand_turns() {
    let reply = "say A line of an answer that is as long as answers are, more or less.\\n"
        .to_owned()
        + &"A line of an answer that is as long as answers are, more or less.\\n\\n".repeat(49);
    let model = Model::start(Script::endless(move |_| reply.clone()));
    let yard = Yard::new(&[], "");
    yard.write_config(&format!(
        r#"{{"model": "scripted/m", "provider": {{"scripted": {{"api": "openai-chat", "base_url": "{}",
        "api_key": "k", "models": {{"m": {{"context": 100000000}}}}}}}}}}"#,
        model.url()
    ));
    let terminal = yard.seat().sized(100, 40).start();
    ready(&terminal);
    let turns = 2000;
    for turn in 0..turns {
        terminal.press(&format!("turn {turn}"));
        terminal
            .wait_for("the prompt", |screen| screen.contents().contains(&format!("› turn {turn}")));
        terminal.press("\r");
        terminal.wait_for("the end of the turn", |screen| {
            !screen.contents().contains("Esc stops")
                && !screen.contents().contains(&format!("› turn {turn}"))
        });
    }
    told("RSS in MB after 2,000 turns", held(&terminal));
    let mut times = Vec::new();
    for page in 0..1000 {
        let before = terminal.frames().len();
        let start = Instant::now();
        terminal.press(if page % 50 < 40 { "\x1b[5~" } else { "\x1b[6~" });
        terminal.wait_for("a frame", |_| true);
        while terminal.frames().len() == before && start.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(Duration::from_micros(200));
        }
        times.push(start.elapsed());
    }
    told("a page of 100,000 lines, median and p99", (at(0.5, &mut times), at(0.99, &mut times)));
    assert!(at(0.99, &mut times) < Duration::from_millis(16) * SLACK);
    assert!(held(&terminal) < 60.0, "{}", held(&terminal));
}
