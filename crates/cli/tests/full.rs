//! The kernel itself says that the disk is full, or fails, at the n-th call of every kind by which
//! the binary writes: `strace` puts the error there. The run ends in order, files are whole, and
//! without the fault the session goes on.
//!
//! A count is one of a thread, so a fault may be met more than once in a run.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use windlass_protocol::Fact;
use windlass_testkit::grammar;
use yard::Yard;

const REPLIES: &[&str] = &[
    "say Let me see.\ncall read {\"filePath\": \"README.md\"}\ncall write {\"filePath\": \"made.txt\", \"content\": \"made\\n\"}",
    "call edit {\"filePath\": \"README.md\", \"oldString\": \"small\", \"newString\": \"large\"}\ncall read {\"filePath\": \"long.txt\"}",
    "say Done.",
];

const BEFORE: &str = "# Hello\nA small project.\n";
const AFTER: &str = "# Hello\nA large project.\n";

/// A way for the kernel to say no.
struct No {
    /// To what.
    calls: &'static str,
    error: &'static str,
    /// `+` for a disk that stays full. Names are not moved again and again, so each fails once.
    lasting: &'static str,
    /// Which ones each change tries; the long tests try all.
    first: usize,
    stride: usize,
}

/// Not `renameat`: a library calls it to learn where it is, and takes an answer that no disk would
/// give there for the end of the world.
const RENAMES: &str = "rename,renameat2";

const NOES: &[No] = &[
    No { calls: "pwrite64", error: "ENOSPC", lasting: "+", first: 1, stride: 10 },
    No { calls: "pwrite64", error: "EIO", lasting: "", first: 6, stride: 10 },
    No { calls: "fsync,fdatasync", error: "ENOSPC", lasting: "+", first: 1, stride: 1 },
    No { calls: "fsync,fdatasync", error: "EIO", lasting: "", first: 1, stride: 1 },
    No { calls: "ftruncate", error: "ENOSPC", lasting: "+", first: 1, stride: 1 },
    No { calls: RENAMES, error: "ENOSPC", lasting: "", first: 1, stride: 1 },
    No { calls: RENAMES, error: "EIO", lasting: "", first: 1, stride: 1 },
];

/// How long a run may take, watched as it is.
const PATIENCE: Duration = Duration::from_secs(60);

fn soaking() -> bool {
    std::env::var_os("WINDLASS_SOAK").is_some()
}

fn yard() -> Yard {
    let yard = Yard::new(REPLIES, "");
    std::fs::write(yard.root().join("long.txt"), "a long line of words\n".repeat(5_000)).unwrap();
    yard
}

/// How a run with a fault ended.
struct Ended {
    code: i32,
    told: String,
    /// The calls that failed.
    met: Vec<String>,
}

/// Runs with a fault.
fn run(yard: &Yard, inject: &str) -> Ended {
    let trace = yard.home().join("trace");
    let traced = format!("trace={}", inject.split(':').next().unwrap());
    let inject = format!("inject={inject}");
    let quick = ["strace", "-f", "-qq", "--seccomp-bpf", "-e", &traced, "-e", &inject];
    let wrapper = [&quick[..], &["-o", trace.to_str().unwrap()]].concat();
    let mut command = yard.wrapped(&wrapper, &["run", "--yes", "go"]);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("{inject}: it hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let (code, _, told) = yard::told(&child.wait_with_output().unwrap());
    let trace = std::fs::read_to_string(&trace).unwrap();
    let met = trace.lines().filter(|line| line.contains("(INJECTED)")).map(str::to_owned).collect();
    Ended { code, told, met }
}

/// What must hold after a run with a fault, at once and once the disk works again.
fn check(yard: &Yard, place: &str, Ended { code, told, met }: Ended) {
    assert!(!told.contains("panicked"), "{place}: {told}");
    assert!(!told.contains("taken over by"), "{place}: nobody took it over: {told}");
    assert!((0..=4).contains(&code), "{place}: {code}: {told}");
    assert!(code == 0 || !told.trim().is_empty(), "{place}: it ended with {code} and says nothing");
    let whole = || {
        let made = yard.read("made.txt");
        assert!(made.is_none() || made.as_deref() == Some("made\n"), "{place}: {made:?}");
        let readme = yard.read("README.md").unwrap();
        assert!(readme == BEFORE || readme == AFTER, "{place}: {readme:?}");
    };
    whole();
    let (listed, list, told) = yard.run(&["session", "list"]);
    assert_eq!(listed, 0, "{place}: {told}");
    if list.contains("unfinished") {
        let (code, _, told) = yard.run(&["run", "--continue", "--yes"]);
        assert_eq!(code, 0, "{place}: {told}");
    } else if list.is_empty() {
        // The prompt was never on record, and that was said.
        assert!(code != 0, "{place}: it was lost without a word");
        let (code, _, told) = yard.run(&["run", "--yes", "go"]);
        assert_eq!(code, 0, "{place}: {told}");
    }
    whole();
    let facts = yard.facts();
    for (seq, fact) in (1..).zip(&facts) {
        assert_eq!(fact["seq"], seq, "{place}: a gap");
    }
    let facts: Vec<Fact> =
        facts.into_iter().map(|fact| serde_json::from_value(fact).unwrap()).collect();
    grammar::check_settled(&facts).unwrap_or_else(|why| panic!("{place}: {why}"));
    let litter: Vec<_> = std::fs::read_dir(yard.root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !["README.md", "long.txt", "made.txt"].contains(&name.as_str()))
        .collect();
    assert!(litter.is_empty(), "{place}, {met:?}: {litter:?} stays in the workspace");
}

#[test]
fn a_full_or_failing_disk_at_any_call_of_the_kernel_ends_in_order() {
    let usable = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    if !usable.is_ok_and(|output| output.status.success()) {
        println!("nothing was shown: strace cannot be used here");
        return;
    }
    let mut met = BTreeMap::<String, (usize, usize)>::new();
    for No { calls, error, lasting, first, stride } in NOES {
        let (first, stride) = if soaking() { (1, 1) } else { (*first, *stride) };
        for at in (first..).step_by(stride) {
            let place = format!("{calls}:error={error}:when={at}{lasting}");
            let yard = yard();
            let ended = run(&yard, &place);
            if ended.met.is_empty() {
                break;
            }
            let last = ended.told.lines().last().unwrap_or_default();
            println!("{place}: {}, met {} times: {last}", ended.code, ended.met.len());
            let row = met.entry(format!("{calls} {error}")).or_default();
            *row = (row.0 + 1, row.1 + usize::from(ended.code != 0));
            check(&yard, &place, ended);
        }
    }
    println!("runs that met a fault, and of those that did not end well: {met:#?}");
    let runs: usize = met.values().map(|(runs, _)| runs).sum();
    assert!(runs > 10 && met.values().any(|(_, failed)| *failed > 0), "{met:?}");
}
