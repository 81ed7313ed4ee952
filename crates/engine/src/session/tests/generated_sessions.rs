//! Randomly generated sessions: arbitrary replies of the model and operations of the user, from a
//! seed. Each session is crashed before, during and after every one of its effects.
//!
//! `WINDLASS_SEED=17 cargo nextest run -p windlass-engine generated` runs one of them again, and
//! prints it.

use super::crash::{self, CrashInvariant};
use super::simulation::SessionSimulation;
use std::fmt::Write;
use windlass_testkit::case_file::CaseSection;
use windlass_testkit::{Case, log_grammar};

/// Number of sessions that every test run tries, so that it takes seconds.
const QUICK_SESSIONS: u64 = 24;

/// Number of sessions that the soak tries.
const SOAK_SESSIONS: u64 = 200;

/// A pseudorandom number generator (SplitMix64), with the same numbers on every platform.
struct SeededRng(u64);

impl SeededRng {
    /// Returns a number less than `below`.
    fn next_below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.next_below(choices.len() as u64) as usize]
    }
}

/// Names that the model calls. The last three are not tools.
const TOOLS: &[&str] = &[
    "read",
    "read",
    "read",
    "change",
    "change",
    "patch",
    "patch",
    "ask",
    "peek",
    "broken",
    "long",
    "fail",
    "todowrite",
    "bash",
    "question",
    "plan_exit",
    "twin",
    "nothing",
    "../../etc",
    "\u{1b}]52;c;AA\u{7}",
];

/// Invalid or hostile arguments.
const HOSTILE: &[&str] = &[
    r#"{"lone": "\ud800"}"#,
    "{\"escape\": \"\u{1b}[2J\u{1b}]52;c;AAAA\u{7}\"}",
    "{\"cut\": \"of",
    "[[[[[[[[[[[[[[[[",
    "NaN",
    "\"a string\"",
    "\u{202e}{}\u{0}",
];

fn write_call(rng: &mut SeededRng, number: &mut u64, text: &mut String) {
    *number += 1;
    let tool = rng.pick(TOOLS);
    let _ = match rng.next_below(8) {
        0 => writeln!(text, "call {tool} {}", rng.pick(HOSTILE)),
        // The same arguments several times make loops.
        1 => writeln!(text, "call {tool} same"),
        _ => writeln!(text, "call {tool} a{number}"),
    };
}

/// Writes one answer; most answers call a tool.
fn write_reply(rng: &mut SeededRng, number: &mut u64, text: &mut String) {
    text.push_str("== model\n");
    if rng.next_below(3) == 0 {
        text.push_str("think Let me see.\n");
    }
    if rng.next_below(6) == 0 {
        text.push_str(rng.pick(&["once cut\n", "once status 503 busy\n"]));
    }
    match rng.next_below(24) {
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
    let calls = match rng.next_below(10) {
        0..2 => 0,
        2..6 => 1,
        6..9 => 2 + rng.next_below(2),
        _ => 6,
    };
    for _ in 0..calls {
        write_call(rng, number, text);
        if rng.next_below(5) == 0 {
            text.push_str("think And then?\n");
        }
    }
}

/// Generates a session from a seed.
fn generate_session(seed: u64) -> Case {
    let mut rng = SeededRng(seed);
    let mut text = format!("# Session {seed}\n");
    if rng.next_below(4) == 0 {
        text.push_str("== config\n");
        text.push_str(rng.pick(&[
            "window 3000 300\n",
            "window 9000 1000\n",
            "accepts 1500\n",
            "tokens 400\n",
            "price 1000 1000\ncost 500000\n",
            "time 200\n",
            "loops deny\n",
            "loops allow\n",
        ]));
    }
    text.push_str("== user\n");
    text.push_str(rng.pick(&[
        "permission yes\n",
        "permission session\n",
        "permission no\n",
        "permission no not so\n",
    ]));
    if rng.next_below(2) == 0 {
        text.push_str(rng.pick(&["answer auto\n", "answer no\n"]));
    }
    if rng.next_below(6) == 0 {
        let moments = [
            "permission",
            "question",
            "started read",
            "started change",
            "started patch",
            "text words.",
        ];
        let _ = writeln!(text, "interrupt {}", rng.pick(&moments));
    }
    let turns = 1 + rng.next_below(3);
    let mut number = 0;
    const MODES: [&str; 3] = ["plan", "auto", "ask"];
    for turn in 0..turns {
        let kind = rng.pick(&["prompt", "prompt", "prompt", "queue"]);
        let after = if rng.next_below(3) == 0 { 0 } else { turn };
        let _ = writeln!(text, "== {kind} after {after}\ntask {turn}");
        match rng.next_below(8) {
            0 => drop(writeln!(text, "== mode after {turn}\n{}", rng.pick(&MODES))),
            1 => drop(writeln!(text, "== user-call after {}\nchange mine{turn}", turn + 1)),
            _ => {}
        }
        for _ in 0..=rng.next_below(4) {
            write_reply(&mut rng, &mut number, &mut text);
        }
        text.push_str("== model\nsay Done with it.\n");
    }
    for _ in 0..40 {
        text.push_str("== model\nsay Enough.\n");
    }
    text.push_str("== summary\nsay They worked.\n");
    Case::parse(format!("seed {seed}"), &text)
}

/// Returns the invariant of a session. If the user sends operations or interrupts while the model
/// works, a crash may change their moment.
fn invariant(session: &Case) -> CrashInvariant {
    let after = |section: &&CaseSection| section.argument.trim_start_matches("after ").parse().ok();
    let prompts = session.sections.iter().filter(|one| one.name == "prompt" || one.name == "queue");
    let has_early = prompts.enumerate().any(|(turn, section)| after(&section) != Some(turn));
    let has_other_ops = session.all("mode").next().or(session.all("user-call").next()).is_some();
    let has_interrupt = session.one("user").body.contains("interrupt");
    if has_early || has_other_ops || has_interrupt {
        CrashInvariant::Prompts
    } else {
        CrashInvariant::Transcript
    }
}

#[allow(clippy::disallowed_methods, reason = "the environment selects the seeds")]
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number("WINDLASS_SEED") {
        Some(seed) => seed..seed + 1,
        None if std::env::var_os("WINDLASS_SOAK").is_some() => 0..SOAK_SESSIONS,
        None => 0..QUICK_SESSIONS,
    }
}

/// Prints how to repeat a failed seed.
struct PrintSeedOnPanic(u64);

impl Drop for PrintSeedOnPanic {
    #[allow(clippy::print_stderr, reason = "a failed test prints how to repeat it")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seed = self.0;
            eprintln!("WINDLASS_SEED={seed} cargo nextest run -p windlass-engine generated");
        }
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "the test prints its counts")]
fn generated_sessions_survive_a_crash_at_any_point() {
    let (mut crashes, mut unknown, mut sessions) = (0, 0, 0);
    for seed in seeds() {
        let _guard = PrintSeedOnPanic(seed);
        let session = generate_session(seed);
        if seeds().count() == 1 {
            println!("{session}");
        }
        let (session_crashes, session_unknown) =
            crash::crash_everywhere(&session, invariant(&session));
        crashes += session_crashes;
        unknown += session_unknown;
        sessions += 1;
    }
    println!("{sessions} sessions, {crashes} crashes, {unknown} outcomes unknown");
    assert!(sessions == 1 || crashes > sessions * 100, "only {crashes} crashes");
}

/// Checks that the inputs alone determine the effects, in every build.
pub(super) fn trace(case: Case) {
    let mut traces = std::collections::BTreeSet::new();
    let mut all = String::new();
    for seed in 0..SOAK_SESSIONS {
        let _guard = PrintSeedOnPanic(seed);
        let (simulation, trace) = SessionSimulation::new(&generate_session(seed)).trace();
        log_grammar::check_settled(simulation.facts()).unwrap();
        assert_eq!(SessionSimulation::new(&generate_session(seed)).trace().1, trace);
        traces.insert(trace);
        if seed % 20 == 0 {
            let _ = writeln!(all, "{seed:3}: {trace:016x}");
        }
    }
    assert!(traces.len() as u64 > SOAK_SESSIONS * 9 / 10, "only {} differ", traces.len());
    case.check(&["traces"], &[CaseSection::new("traces", "", &all)]);
}
