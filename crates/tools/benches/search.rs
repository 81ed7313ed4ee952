//! How fast files are searched in this process, beside ripgrep on the same files:
//! `cargo bench -p windlass-tools --bench search`. Both must find the same.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark measures time and tells"
)]

mod yard;

use std::time::{Duration, Instant};
use windlass_tools::grep::search::{Extent, Search};
use yard::{CHOICE, COMMON, RARE};

const FILES: u64 = 60_000;
const ROUNDS: usize = 7;

/// Time of the processors that this process and its children took, in hundredths of a second:
/// ours, theirs.
fn processors() -> [u64; 2] {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    let fields: Vec<u64> = after_name
        .split_whitespace()
        .skip(11)
        .take(4)
        .map(|field| field.parse().unwrap())
        .collect();
    [fields[0] + fields[1], fields[2] + fields[3]]
}

/// The median of times, and the processors' time of all rounds.
struct Measured {
    wall: Duration,
    cpu: u64,
}

/// Runs both alternately, so that whatever else the machine does troubles both.
fn both(mut ours: impl FnMut(), mut theirs: impl FnMut()) -> [Measured; 2] {
    let (mut walls, mut cpus) = ([Vec::new(), Vec::new()], [0, 0]);
    ours();
    theirs();
    for _ in 0..ROUNDS {
        let (before, started) = (processors(), Instant::now());
        ours();
        walls[0].push(started.elapsed());
        let started = Instant::now();
        theirs();
        walls[1].push(started.elapsed());
        let after = processors();
        for side in [0, 1] {
            cpus[side] += after[side] - before[side];
        }
    }
    let median = |mut walls: Vec<Duration>| {
        walls.sort();
        walls[walls.len() / 2]
    };
    let [a, b] = walls;
    [Measured { wall: median(a), cpu: cpus[0] }, Measured { wall: median(b), cpu: cpus[1] }]
}

/// What it may cost beside ripgrep.
const WALL: f64 = 1.2;
const CPU: f64 = 1.5;

/// The share of a whole search after which its first page is there.
const FIRST: f64 = 0.1;

/// Tells, and returns whether it is within the bounds.
fn tell(name: &str, [ours, theirs]: &[Measured; 2]) -> bool {
    let cpu = |measured: &Measured| measured.cpu as f64 * 10.0 / ROUNDS as f64;
    let wall = ours.wall.as_secs_f64() / theirs.wall.as_secs_f64();
    let time = cpu(ours) / cpu(theirs);
    println!(
        "{name:32} {:>7.1} {:>7.1} {wall:>6.2}   {:>7.1} {:>7.1} {time:>6.2}",
        ours.wall.as_secs_f64() * 1e3,
        theirs.wall.as_secs_f64() * 1e3,
        cpu(ours),
        cpu(theirs),
    );
    wall <= WALL && time <= CPU
}

fn main() -> std::process::ExitCode {
    let mut within = true;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    yard::make(root, FILES);
    let world = yard::world(root);
    println!("{FILES} files, medians of {ROUNDS} rounds in milliseconds");
    println!(
        "{:32} {:>7} {:>7} {:>6}   {:>7} {:>7} {:>6}",
        "", "wall", "rg", "ratio", "cpu", "rg", "ratio"
    );
    let mut full = Duration::ZERO;
    for (name, pattern) in
        [("a rare literal", RARE), ("a common word", COMMON), ("a choice of words", CHOICE)]
    {
        let mut search = Search::new(pattern).unwrap();
        let (found, expected) =
            (yard::our_places(&yard::search(&world, &search)), yard::their_places(root, pattern));
        assert!(found == expected, "{name}: {} and {}", found.len(), expected.len());
        let kept = (pattern == CHOICE).then(|| {
            both(
                || assert!(yard::search(&world, &search).found > 0),
                || assert!(yard::ripgrep(root, &["-n", pattern]).status().unwrap().success()),
            )
        });
        // As a call does it that counts them all: every file is searched, and a page is kept.
        search.extent = Extent { skipped: 0, shown: 100, beyond: usize::MAX / 2 };
        let measured = both(
            || assert!(yard::search(&world, &search).found == found.len()),
            || assert!(yard::ripgrep(root, &["-n", pattern]).status().unwrap().success()),
        );
        within &= tell(&format!("{name} ({} matches)", found.len()), &measured);
        if let Some(kept) = kept {
            tell("  the same, with every line kept", &kept);
        }
        if pattern == COMMON {
            full = measured[0].wall;
        }
    }
    let (found, expected) = (yard::our_files(&world, "*.rs"), yard::their_files(root, "*.rs"));
    assert!(
        found.len() == expected.len()
            && found.into_iter().collect::<std::collections::BTreeSet<_>>() == expected
    );
    let measured = both(
        || assert!(yard::our_files(&world, "*.rs").len() == expected.len()),
        || assert!(yard::ripgrep(root, &["--files", "-g", "*.rs"]).status().unwrap().success()),
    );
    within &= tell(&format!("files by name ({})", expected.len()), &measured);
    let extent = Extent { skipped: 0, shown: 100, beyond: 1_000 };
    let mut search = Search::new(COMMON).unwrap();
    search.extent = extent;
    let mut firsts: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            assert!(yard::search(&world, &search).found > 1_100);
            started.elapsed()
        })
        .collect();
    firsts.sort();
    let first = firsts[ROUNDS / 2];
    let share = first.as_secs_f64() / full.as_secs_f64();
    println!(
        "the first page of a common word: {:.1} ms, {share:.3} of all of them",
        first.as_secs_f64() * 1e3,
    );
    within &= share <= FIRST;
    println!("{}", if within { "within bounds" } else { "OUT OF BOUNDS" });
    if within { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
