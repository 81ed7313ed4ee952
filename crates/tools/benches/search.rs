//! Compares the search in this process with ripgrep on the same files:
//! `cargo bench -p windlass-tools --bench search`. Both must find the same matches.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark measures time and prints it"
)]

mod support;

use std::time::{Duration, Instant};
use support::{CHOICE, COMMON, RARE};
use windlass_tools::grep::search::{GrepResultRange, GrepSearch};

const FILES: u64 = 60_000;
const ROUNDS: usize = 7;

/// Returns the CPU time of this process and of its children, in hundredths of a second.
fn cpu_times() -> [u64; 2] {
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

/// The median wall time and the CPU time of all rounds.
struct SearchMeasurement {
    wall: Duration,
    cpu: u64,
}

/// Runs both alternately, so that other load affects both.
fn measure_both(mut own: impl FnMut(), mut ripgrep: impl FnMut()) -> [SearchMeasurement; 2] {
    let (mut wall_times, mut cpus) = ([Vec::new(), Vec::new()], [0, 0]);
    own();
    ripgrep();
    for _ in 0..ROUNDS {
        let (before, started) = (cpu_times(), Instant::now());
        own();
        wall_times[0].push(started.elapsed());
        let started = Instant::now();
        ripgrep();
        wall_times[1].push(started.elapsed());
        let after = cpu_times();
        for side in [0, 1] {
            cpus[side] += after[side] - before[side];
        }
    }
    let median = |mut wall_times: Vec<Duration>| {
        wall_times.sort();
        wall_times[wall_times.len() / 2]
    };
    let [a, b] = wall_times;
    [
        SearchMeasurement { wall: median(a), cpu: cpus[0] },
        SearchMeasurement { wall: median(b), cpu: cpus[1] },
    ]
}

/// Limits relative to ripgrep.
const MAX_WALL_RATIO: f64 = 1.2;
const MAX_CPU_RATIO: f64 = 1.5;

/// Limit of the first page relative to a whole search.
const MAX_FIRST_PAGE_RATIO: f64 = 0.1;

/// Prints the times and returns true if they are within the limits.
fn print_times(name: &str, [own, ripgrep]: &[SearchMeasurement; 2]) -> bool {
    let cpu = |measured: &SearchMeasurement| measured.cpu as f64 * 10.0 / ROUNDS as f64;
    let wall_ratio = own.wall.as_secs_f64() / ripgrep.wall.as_secs_f64();
    let cpu_ratio = cpu(own) / cpu(ripgrep);
    println!(
        "{name:32} {:>7.1} {:>7.1} {wall_ratio:>6.2}   {:>7.1} {:>7.1} {cpu_ratio:>6.2}",
        own.wall.as_secs_f64() * 1e3,
        ripgrep.wall.as_secs_f64() * 1e3,
        cpu(own),
        cpu(ripgrep),
    );
    wall_ratio <= MAX_WALL_RATIO && cpu_ratio <= MAX_CPU_RATIO
}

fn main() -> std::process::ExitCode {
    let mut is_within_limits = true;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    support::create_project(root, FILES);
    let workspace = support::granted_workspace(root);
    println!("{FILES} files, medians of {ROUNDS} rounds in milliseconds");
    println!(
        "{:32} {:>7} {:>7} {:>6}   {:>7} {:>7} {:>6}",
        "", "wall", "rg", "ratio", "cpu", "rg", "ratio"
    );
    let mut full_search = Duration::ZERO;
    for (name, pattern) in
        [("a rare literal", RARE), ("a common word", COMMON), ("a choice of words", CHOICE)]
    {
        let mut search = GrepSearch::new(pattern).unwrap();
        let (found, expected) = (
            support::own_matches(&support::search(&workspace, &search)),
            support::ripgrep_matches(root, pattern),
        );
        assert!(found == expected, "{name}: {} and {}", found.len(), expected.len());
        let with_lines = (pattern == CHOICE).then(|| {
            measure_both(
                || assert!(support::search(&workspace, &search).result_count > 0),
                || assert!(support::ripgrep(root, &["-n", pattern]).status().unwrap().success()),
            )
        });
        // As in a call that counts all matches: every file is searched, and one page is kept.
        search.range = GrepResultRange { skip: 0, limit: 100, count_beyond: usize::MAX / 2 };
        let measured = measure_both(
            || assert!(support::search(&workspace, &search).result_count == found.len()),
            || assert!(support::ripgrep(root, &["-n", pattern]).status().unwrap().success()),
        );
        is_within_limits &= print_times(&format!("{name} ({} matches)", found.len()), &measured);
        if let Some(with_lines) = with_lines {
            print_times("  the same, keeping every line", &with_lines);
        }
        if pattern == COMMON {
            full_search = measured[0].wall;
        }
    }
    let (found, expected) =
        (support::own_files(&workspace, "*.rs"), support::ripgrep_files(root, "*.rs"));
    assert!(
        found.len() == expected.len()
            && found.into_iter().collect::<std::collections::BTreeSet<_>>() == expected
    );
    let measured = measure_both(
        || assert!(support::own_files(&workspace, "*.rs").len() == expected.len()),
        || assert!(support::ripgrep(root, &["--files", "-g", "*.rs"]).status().unwrap().success()),
    );
    is_within_limits &= print_times(&format!("files by name ({})", expected.len()), &measured);
    let range = GrepResultRange { skip: 0, limit: 100, count_beyond: 1_000 };
    let mut search = GrepSearch::new(COMMON).unwrap();
    search.range = range;
    let mut first_page_times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            assert!(support::search(&workspace, &search).result_count > 1_100);
            started.elapsed()
        })
        .collect();
    first_page_times.sort();
    let first_page = first_page_times[ROUNDS / 2];
    let ratio = first_page.as_secs_f64() / full_search.as_secs_f64();
    println!(
        "the first page of a common word: {:.1} ms, {ratio:.3} of the whole search",
        first_page.as_secs_f64() * 1e3,
    );
    is_within_limits &= ratio <= MAX_FIRST_PAGE_RATIO;
    println!("{}", if is_within_limits { "within bounds" } else { "OUT OF BOUNDS" });
    if is_within_limits { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
