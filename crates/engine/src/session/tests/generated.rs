//! Sessions that nobody wrote: models that say anything, people that do anything, by a seed. Each
//! is crashed before, during and after every one of its effects.
//!
//! `WINDLASS_SEED=17 cargo nextest run -p windlass-engine generated` runs one of them again, and
//! prints it.

use super::crash::{self, Same};
use super::world::World;
use std::fmt::Write;
use windlass_testkit::case::Section;
use windlass_testkit::{Case, grammar};

/// How many are tried on every change, and how many there are.
const SOME: u64 = 24;
const ALL: u64 = 200;

/// Numbers that look random and are the same everywhere.
struct Dice(u64);

impl Dice {
    /// A number below this one.
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len() as u64) as usize]
    }
}

/// What a model may call. `nothing` is no tool, and neither are the two behind it.
const TOOLS: &[&str] = &[
    "look",
    "look",
    "look",
    "change",
    "change",
    "patch",
    "patch",
    "ask",
    "peek",
    "broken",
    "long",
    "tale",
    "todowrite",
    "bash",
    "inquire",
    "leave",
    "twin",
    "nothing",
    "../../etc",
    "\u{1b}]52;c;AA\u{7}",
];

/// Arguments that no tool wants.
const HOSTILE: &[&str] = &[
    r#"{"lone": "\ud800"}"#,
    "{\"escape\": \"\u{1b}[2J\u{1b}]52;c;AAAA\u{7}\"}",
    "{\"cut\": \"of",
    "[[[[[[[[[[[[[[[[",
    "NaN",
    "\"a string\"",
    "\u{202e}{}\u{0}",
];

fn call(dice: &mut Dice, number: &mut u64, text: &mut String) {
    *number += 1;
    let tool = dice.pick(TOOLS);
    let _ = match dice.roll(8) {
        0 => writeln!(text, "call {tool} {}", dice.pick(HOSTILE)),
        // Again and again the same: loops come of it.
        1 => writeln!(text, "call {tool} same"),
        _ => writeln!(text, "call {tool} a{number}"),
    };
}

/// One answer; most of them call something.
fn reply(dice: &mut Dice, number: &mut u64, text: &mut String) {
    text.push_str("== model\n");
    if dice.roll(3) == 0 {
        text.push_str("think Let me see.\n");
    }
    if dice.roll(6) == 0 {
        text.push_str(dice.pick(&["once cut\n", "once status 503 busy\n"]));
    }
    match dice.roll(24) {
        0..8 => {}
        8..14 => text.push_str("say Some words.\n"),
        14 => text.push_str("say \u{1b}[31mred\u{1b}]52;c;AAAA\u{7} \u{202e}\n"),
        15 => return text.push_str("say Half.\nfinish length\n"),
        16 => return text.push_str("finish filtered\n"),
        17 => return text.push_str("status 401 who are you\n"),
        18 => return text.push_str("status 400 not like this\n"),
        19 => return writeln!(text, "say {}", "endless ".repeat(1_500)).unwrap(),
        20 => return writeln!(text, "call change {}", "x".repeat(12_000)).unwrap(),
        21 => return text.push_str("call change a\nfinish stop\n"),
        22 => {}
        _ => return,
    }
    let calls = match dice.roll(10) {
        0..2 => 0,
        2..6 => 1,
        6..9 => 2 + dice.roll(2),
        _ => 6,
    };
    for _ in 0..calls {
        call(dice, number, text);
        if dice.roll(5) == 0 {
            text.push_str("think And then?\n");
        }
    }
}

/// A session, all of it from its seed.
fn session(seed: u64) -> Case {
    let mut dice = Dice(seed);
    let mut text = format!("# Session {seed}\n");
    if dice.roll(4) == 0 {
        text.push_str("== terms\n");
        text.push_str(dice.pick(&[
            "window 3000 300\n",
            "window 9000 1000\n",
            "takes 1500\n",
            "tokens 400\n",
            "price 1000 1000\ncost 500000\n",
            "time 200\n",
            "looping deny\n",
            "looping allow\n",
        ]));
    }
    text.push_str("== person\n");
    text.push_str(dice.pick(&[
        "answers yes\n",
        "answers session\n",
        "answers no\n",
        "answers no not so\n",
    ]));
    if dice.roll(2) == 0 {
        text.push_str(dice.pick(&["replies auto\n", "replies no\n"]));
    }
    if dice.roll(6) == 0 {
        let at =
            ["asked", "inquired", "started look", "started change", "started patch", "text words."];
        let _ = writeln!(text, "interrupts {}", dice.pick(&at));
    }
    let turns = 1 + dice.roll(3);
    let mut number = 0;
    for turn in 0..turns {
        let kind = dice.pick(&["prompt", "prompt", "prompt", "queue"]);
        let after = if dice.roll(3) == 0 { 0 } else { turn };
        let _ = writeln!(text, "== {kind} after {after}\ntask {turn}");
        match dice.roll(8) {
            0 => drop(writeln!(
                text,
                "== mode after {turn}\n{}",
                dice.pick(&["plan", "auto", "ask"])
            )),
            1 => drop(writeln!(text, "== person-calls after {}\nchange mine{turn}", turn + 1)),
            _ => {}
        }
        for _ in 0..=dice.roll(4) {
            reply(&mut dice, &mut number, &mut text);
        }
        text.push_str("== model\nsay Done with it.\n");
    }
    for _ in 0..40 {
        text.push_str("== model\nsay Enough.\n");
    }
    text.push_str("== summary\nsay They worked.\n");
    Case::parse(format!("seed {seed}"), &text)
}

/// What a crash may change of it: where the person speaks or stops it while the model works, the
/// moment.
fn same(session: &Case) -> Same {
    let after = |section: &&Section| section.argument.trim_start_matches("after ").parse().ok();
    let prompts = session.sections.iter().filter(|one| one.name == "prompt" || one.name == "queue");
    let early = prompts.enumerate().any(|(turn, section)| after(&section) != Some(turn));
    let besides = session.all("mode").next().or(session.all("person-calls").next()).is_some();
    let stops = session.one("person").body.contains("interrupts");
    if early || besides || stops { Same::WhatWasSaid } else { Same::Everything }
}

#[allow(clippy::disallowed_methods, reason = "whoever runs the test says how much of it")]
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number("WINDLASS_SEED") {
        Some(seed) => seed..seed + 1,
        None if std::env::var_os("WINDLASS_SOAK").is_some() => 0..ALL,
        None => 0..SOME,
    }
}

/// Says which seed it was, whatever fails.
struct Trying(u64);

impl Drop for Trying {
    #[allow(clippy::print_stderr, reason = "a test says how to see it fail again")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seed = self.0;
            eprintln!("WINDLASS_SEED={seed} cargo nextest run -p windlass-engine generated");
        }
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "a test says how much it tried")]
fn generated_sessions_survive_a_crash_at_any_point() {
    let (mut crashes, mut unknown, mut sessions) = (0, 0, 0);
    for seed in seeds() {
        let _trying = Trying(seed);
        let session = session(seed);
        if seeds().count() == 1 {
            println!("{session}");
        }
        let (tried, lost) = crash::everywhere(&session, same(&session));
        (crashes, unknown, sessions) = (crashes + tried, unknown + lost, sessions + 1);
    }
    println!("{sessions} sessions, {crashes} crashes, {unknown} outcomes unknown");
    assert!(sessions == 1 || crashes > sessions * 100, "only {crashes} crashes");
}

/// Whatever is decided is decided by what came in alone: today and tomorrow, in every build.
pub(super) fn trace(case: Case) {
    let mut traces = std::collections::BTreeSet::new();
    let mut all = String::new();
    for seed in 0..ALL {
        let _trying = Trying(seed);
        let (world, trace) = World::of(&session(seed)).trace();
        grammar::check_settled(world.facts()).unwrap();
        assert_eq!(World::of(&session(seed)).trace().1, trace);
        traces.insert(trace);
        if seed % 20 == 0 {
            let _ = writeln!(all, "{seed:3}: {trace:016x}");
        }
    }
    assert!(traces.len() as u64 > ALL * 9 / 10, "only {} differ", traces.len());
    case.check(&["traces"], &[Section::new("traces", "", &all)]);
}
