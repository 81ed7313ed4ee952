//! How long it takes from an edit to what a server makes of it, through all that is between, against
//! a bare client of the same server in the same run: `cargo bench -p windlass-lsp --bench edit`, with
//! `WINDLASS_EYES` as for the tests. With `--check` it fails where we take more than 1.2 times as long.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark measures time and tells"
)]

#[path = "edit/bare.rs"]
mod bare;
#[allow(dead_code, reason = "it is the tests' own, which ask more")]
#[path = "../tests/real/site.rs"]
mod site;

use bare::Bare;
use site::{Site, eyes, row, run};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

const ROUNDS: usize = 30;
/// How many times as long as a bare client we may take.
const MOST: f64 = 1.2;
/// Below this, what a server needs is less than what the system's clock and scheduler add.
const LEAST: Duration = Duration::from_millis(20);

/// A project that keeps a server at work for a while.
struct Work {
    name: &'static str,
    project: &'static str,
    path: &'static str,
    /// Files besides, and the one that is edited, which holds `GOOD` once.
    files: fn() -> Vec<(String, String)>,
    text: fn() -> String,
    good: &'static str,
    bad: &'static str,
}

const WORKS: [Work; 3] = [
    Work {
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
    Work {
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
    Work {
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

/// Times of both, medians.
struct Measured {
    bare: Duration,
    ours: Duration,
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

async fn measure(eyes: &Path, work: &Work) -> Measured {
    let site = Site::new(eyes, work.project, vec![row(eyes, work.name)]);
    let plain = Site::new(eyes, work.project, Vec::new());
    let good = (work.text)();
    let bad = good.replacen(work.good, work.bad, 1);
    assert_ne!(good, bad);
    for root in [&site.root, &plain.root] {
        for (path, text) in (work.files)() {
            std::fs::write(root.join(path), text).unwrap();
        }
        std::fs::write(root.join(work.path), &good).unwrap();
    }
    let mut bare = Bare::start(eyes, &row(eyes, work.name), &plain.root);
    let _ = site.ask(&format!("documentSymbol {}", work.path)).await;
    bare.open(work.path, &good);
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + 4 {
        // Every text is new, so that nothing is answered from memory.
        let text = if round % 2 == 0 { &bad } else { &good };
        let text = format!("{text}\n// {round}\n")
            .replace("//", if work.name == "pyright" { "#" } else { "//" });
        let (took, errors) = bare.edit(work.path, &text);
        let (review, ours_took) = site.timed(work.path, &text).await;
        assert_eq!(errors > 0, round % 2 == 0, "{}: round {round}", work.name);
        // The first ones warm both up.
        if round >= 4 {
            assert!(review.is_some(), "{}: nothing was said in round {round}", work.name);
            theirs.push(took);
            ours.push(ours_took);
        }
    }
    site.code.close().await;
    bare.end();
    Measured { bare: median(theirs), ours: median(ours) }
}

fn main() -> ExitCode {
    // The keeper is this program, started again.
    if std::env::args().nth(1).is_some_and(|first| first == windlass_sandbox::ERRAND) {
        windlass_sandbox::keeper().unwrap();
        return ExitCode::SUCCESS;
    }
    let Some(eyes) = eyes("edits of real servers") else { return ExitCode::SUCCESS };
    let check = std::env::args().any(|argument| argument == "--check");
    let mut beyond = false;
    println!("{:<12}{:>12}{:>12}{:>8}", "server", "bare", "ours", "times");
    for work in &WORKS {
        let Measured { bare, ours } = run(measure(&eyes, work));
        let times = ours.as_secs_f64() / bare.as_secs_f64();
        let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        println!("{:<12}{:>12}{:>12}{times:>8.2}", work.name, millis(bare), millis(ours));
        if bare < LEAST {
            println!("{} answers too soon for this to say much", work.name);
        }
        beyond |= times > MOST;
    }
    match check && beyond {
        true => {
            println!("an edit takes more than {MOST} times as long as with a bare client");
            ExitCode::FAILURE
        }
        false => ExitCode::SUCCESS,
    }
}
