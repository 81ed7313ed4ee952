//! Speed of the real binary in a real terminal. The figures are in the benchmarks of the book.
//!
//! `WINDLASS_FIGURES=1` measures longer. The limits are for release builds; a build without
//! optimizations may take four times as long.

use crate::support::TestEnv;
use crate::tui_driver::{QUIET_TIME, send_prompt, wait_until_ready};
use std::time::{Duration, Instant};
use windlass_testkit::terminal::Terminal;
use windlass_testkit::{ModelScript, ScriptedModel};

/// The factor by which a build without optimizations may be slower.
const BUILD_FACTOR: u32 = if cfg!(debug_assertions) { 4 } else { 1 };

fn print_figure(name: &str, figure: impl std::fmt::Debug) {
    println!("figure: {name}: {figure:?}");
}

/// Returns the shortest of several runs, because other processes only make a run slower.
fn shortest(runs: usize, measure: impl Fn() -> Duration) -> Duration {
    (0..runs).map(|_| measure()).min().unwrap()
}

/// Returns a percentile of `times`.
fn percentile(share: f64, times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share) as usize]
}

#[test]
#[ignore = "measures time: `cargo xtask soak`"]
fn speed_from_the_start_to_the_first_frame() {
    let env = TestEnv::new(&[], "");
    let first = shortest(10, || {
        let start = Instant::now();
        let terminal = env.terminal().start();
        terminal.wait_text("› ");
        start.elapsed()
    });
    print_figure("start to first frame", first);
    assert!(first < Duration::from_millis(15) * BUILD_FACTOR, "{first:?}");
}

/// Returns a reply of a thousand words a second.
fn fast_reply(seconds: usize) -> String {
    "say word word word word word word word word word word \nstall 10\n".repeat(100 * seconds)
}

#[test]
#[ignore = "measures time: `cargo xtask soak`"]
fn speed_of_keys_while_the_model_speaks_a_thousand_words_a_second() {
    let env = TestEnv::new(&[&fast_reply(30)], "");
    let terminal = env.terminal().sized(100, 40).start();
    wait_until_ready(&terminal);
    send_prompt(&terminal, "go");
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
        terminal.wait_for("the typed text", |screen| screen.contents().contains(&typed));
        times.push(start.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(
        terminal.text().contains("Esc to stop"),
        "the response ended too early\n{}",
        terminal.text()
    );
    let (median, most) = (percentile(0.5, &mut times), percentile(0.99, &mut times));
    print_figure("key to screen at 1,000 words/s, median and p99", (median, most));
    assert!(most < Duration::from_millis(5) * BUILD_FACTOR, "{most:?}");
}

/// Returns the CPU time of the process in seconds.
fn cpu_seconds(terminal: &Terminal) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", terminal.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / rustix::param::clock_ticks_per_second() as f64
}

/// Returns a line of the memory of the process, in megabytes: `VmRSS:` is all of it, `RssAnon:` is
/// without the pages of the executable, of which an unoptimized build has several times as many.
fn memory_mb(terminal: &Terminal, name: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", terminal.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

#[test]
fn speed_when_idle() {
    let env = TestEnv::new(&["say Done."], "");
    let terminal = env.terminal().start();
    wait_until_ready(&terminal);
    send_prompt(&terminal, "go");
    terminal.wait_text("Done.");
    terminal.settle(QUIET_TIME * 4);
    let seconds = if std::env::var_os("WINDLASS_FIGURES").is_some() { 20 } else { 5 };
    let (before, written) = (cpu_seconds(&terminal), terminal.written());
    std::thread::sleep(Duration::from_secs(seconds));
    let share = (cpu_seconds(&terminal) - before) / seconds as f64 * 100.0;
    print_figure("idle, percent of a CPU", share);
    assert_eq!(terminal.written(), written, "the idle screen was redrawn");
    assert!(share < 0.5, "{share}");
}

#[test]
#[ignore = "takes minutes: run by name"]
fn speed_and_size_of_a_session_of_two_thousand_turns() {
    let reply = "say A line of an answer that is as long as answers are, more or less.\\n"
        .to_owned()
        + &"A line of an answer that is as long as answers are, more or less.\\n\\n".repeat(49);
    let model = ScriptedModel::start(ModelScript::endless(move |_| reply.clone()));
    let env = TestEnv::new(&[], "");
    env.write_config(&format!(
        r#"{{"model": "scripted/m", "provider": {{"scripted": {{"api": "openai-chat", "base_url": "{}",
        "api_key": "k", "models": {{"m": {{"context": 100000000}}}}}}}}}}"#,
        model.url()
    ));
    let terminal = env.terminal().sized(100, 40).start();
    wait_until_ready(&terminal);
    let turns = 2000;
    for turn in 0..turns {
        terminal.press(&format!("turn {turn}"));
        terminal
            .wait_for("the prompt", |screen| screen.contents().contains(&format!("› turn {turn}")));
        terminal.press("\r");
        terminal.wait_for("the end of the turn", |screen| {
            !screen.contents().contains("Esc to stop")
                && !screen.contents().contains(&format!("› turn {turn}"))
        });
    }
    let memory = (memory_mb(&terminal, "VmRSS:"), memory_mb(&terminal, "RssAnon:"));
    print_figure("MB after 2,000 turns, in all and without the executable", memory);
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
    print_figure(
        "a page of 100,000 lines, median and p99",
        (percentile(0.5, &mut times), percentile(0.99, &mut times)),
    );
    assert!(percentile(0.99, &mut times) < Duration::from_millis(16) * BUILD_FACTOR);
    assert!(memory.1 < 30.0, "{memory:?}");
}
