//! Time from an edit to its review, compared with a bare client of the same server in the same run:
//! `cargo bench -p windlass-lsp --bench edit`, with `WINDLASS_LANGUAGE_SERVERS` as for the tests.
//! With `--check` it fails if we take more than `MAX_RATIO` times as long.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark measures time and prints results"
)]

#[path = "edit/bare_client.rs"]
mod bare_client;
#[allow(dead_code, reason = "the tests use more of this module")]
#[path = "../tests/real/support.rs"]
mod support;

use bare_client::BareClient;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use support::{TestProject, built_in_config, run, servers_folder};

const MEASURED_ROUNDS: usize = 30;
/// Limit of our time, relative to the time of a bare client.
const MAX_RATIO: f64 = 1.2;
/// Shorter times depend more on clock and scheduler than on the server.
const MIN_MEASURABLE_TIME: Duration = Duration::from_millis(20);

/// A project that keeps a server busy for a while.
struct BenchProject {
    name: &'static str,
    project: &'static str,
    path: &'static str,
    /// Other files of the project.
    files: fn() -> Vec<(String, String)>,
    /// Text of the edited file, which contains `good` once.
    text: fn() -> String,
    good: &'static str,
    bad: &'static str,
}

const WORKLOADS: [BenchProject; 3] = [
    BenchProject {
        name: "typescript",
        project: "ts",
        path: "src/edited.ts",
        files: || {
            let file = |number: usize| {
                let text = format!(
                    "export interface A{number} {{ a: number; b: string }}\nexport function f{number}(a: A{number}): number {{ return a.a; }}\n"
                );
                (format!("src/m{number}.ts"), text)
            };
            (0..200).map(file).collect()
        },
        text: || {
            let mut text = String::new();
            for number in 0..200 {
                let _ = writeln!(text, "import {{ f{number} }} from \"./m{number}\";");
            }
            for number in 0..600 {
                let _ = writeln!(
                    text,
                    "export const c{number} = [{number}].map((one) => f{}({{ a: one + {number}, b: `${{one}}` }})).filter((x) => x > 1);",
                    number % 200
                );
            }
            text + "export const edited: number = 1;\n"
        },
        good: "edited: number = 1",
        bad: "edited: number = \"1\"",
    },
    BenchProject {
        name: "pyright",
        project: "py",
        path: "edited.py",
        files: Vec::new,
        text: || {
            let mut text = String::new();
            for number in 0..200 {
                let _ = writeln!(
                    text,
                    "def f{number}(a: int, b: str) -> list[int]:\n    return [a + x for x in range({number}) if str(x) != b]\n\n"
                );
            }
            text + "edited: int = 1\n"
        },
        good: "edited: int = 1",
        bad: "edited: int = \"1\"",
    },
    BenchProject {
        name: "clangd",
        project: "cpp",
        path: "edited.cpp",
        files: Vec::new,
        text: || {
            let mut text = String::new();
            for number in 0..2_000 {
                let _ = writeln!(
                    text,
                    "int f{number}(int a) {{ return a > {number} ? a * {number} : a + {number}; }}"
                );
            }
            text + "int edited = 1;\n"
        },
        good: "edited = 1;",
        bad: "edited = \"1\";",
    },
];

/// Median times of the bare client and of ours.
struct BenchMedianTimes {
    bare: Duration,
    ours: Duration,
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

async fn measure(servers_folder: &Path, workload: &BenchProject) -> BenchMedianTimes {
    let env = TestProject::new(
        servers_folder,
        workload.project,
        vec![built_in_config(servers_folder, workload.name)],
    );
    let bare_project = TestProject::new(servers_folder, workload.project, Vec::new());
    let good = (workload.text)();
    let bad = good.replacen(workload.good, workload.bad, 1);
    assert_ne!(good, bad);
    for root in [&env.root, &bare_project.root] {
        for (path, text) in (workload.files)() {
            std::fs::write(root.join(path), text).unwrap();
        }
        std::fs::write(root.join(workload.path), &good).unwrap();
    }
    let mut bare_client = BareClient::start(
        servers_folder,
        &built_in_config(servers_folder, workload.name),
        &bare_project.root,
    );
    let _ = env.query(&format!("documentSymbol {}", workload.path)).await;
    bare_client.open(workload.path, &good);
    let (mut bare_times, mut our_times) = (Vec::new(), Vec::new());
    for round in 0..MEASURED_ROUNDS + 4 {
        // Every text is new, so that no result is cached.
        let text = if round % 2 == 0 { &bad } else { &good };
        let text = format!("{text}\n// {round}\n")
            .replace("//", if workload.name == "pyright" { "#" } else { "//" });
        let (bare_time, errors) = bare_client.edit(workload.path, &text);
        let (review, our_time) = env.timed_edit(workload.path, &text).await;
        assert_eq!(errors > 0, round % 2 == 0, "{}: round {round}", workload.name);
        // The first rounds warm both up.
        if round >= 4 {
            assert!(review.is_some(), "{}: no review in round {round}", workload.name);
            bare_times.push(bare_time);
            our_times.push(our_time);
        }
    }
    env.servers.close().await;
    bare_client.stop();
    BenchMedianTimes { bare: median(bare_times), ours: median(our_times) }
}

fn main() -> ExitCode {
    // The supervisor is this executable, started again.
    if std::env::args().nth(1).is_some_and(|first| first == windlass_sandbox::HELPER_ARGUMENT) {
        windlass_sandbox::run_supervisor().unwrap();
        return ExitCode::SUCCESS;
    }
    let Some(servers_folder) = servers_folder("edits of real servers") else {
        return ExitCode::SUCCESS;
    };
    let check = std::env::args().any(|argument| argument == "--check");
    let mut is_too_slow = false;
    println!("{:<12}{:>12}{:>12}{:>8}", "server", "bare", "ours", "times");
    for workload in &WORKLOADS {
        let BenchMedianTimes { bare, ours } = run(measure(&servers_folder, workload));
        let ratio = ours.as_secs_f64() / bare.as_secs_f64();
        let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        println!("{:<12}{:>12}{:>12}{ratio:>8.2}", workload.name, millis(bare), millis(ours));
        if bare < MIN_MEASURABLE_TIME {
            println!("{} answers too fast for a meaningful comparison", workload.name);
        }
        is_too_slow |= ratio > MAX_RATIO;
    }
    match check && is_too_slow {
        true => {
            println!("an edit takes more than {MAX_RATIO} times as long as with a bare client");
            ExitCode::FAILURE
        }
        false => ExitCode::SUCCESS,
    }
}
