//! What a command costs through the whole road, against the same program started bare, in one run:
//! `cargo bench -p windlass-tools --bench commands`. It says what is beyond the aim, and fails beyond twice
//! the figures of the benchmarks page.
#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark measures time and tells"
)]

use async_trait::async_trait;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use windlass_permission::{Policy, Rules};
use windlass_protocol::{Answer, Author, CallId, Mode, Outcome, SessionId};
use windlass_sandbox::{Backend, Hooks, Hosts, Reach, Shell, Walls, Workspace, probe};
use windlass_toolkit::{Call, Caller, Intent, Permit, Registry, Runtime, Scene, Snapshot};

const ROUNDS: usize = 300;

struct Yes;

#[async_trait]
impl Caller for Yes {
    async fn permit(&self, _intent: Intent) -> Permit {
        Permit::Answer(Answer::Once)
    }

    async fn ask(&self, _preview: Option<String>) -> Answer {
        Answer::Once
    }
}

/// One way to run a command, and how long each run took.
struct Way {
    name: &'static str,
    runtime: Option<(Runtime, Snapshot)>,
    bare: Vec<String>,
    times: Vec<Duration>,
}

impl Way {
    fn bare(name: &'static str, line: &[&str]) -> Way {
        let bare = line.iter().map(|word| (*word).to_owned()).collect();
        Way { name, runtime: None, bare, times: Vec::new() }
    }

    async fn ours(name: &'static str, root: &Path, backend: Backend) -> Way {
        let shell = Shell {
            walls: Walls::Exactly(backend),
            inherited: std::env::vars_os().collect(),
            reach: Reach::Listed(Hosts::none()),
            write: Vec::new(),
            home: Some("/home/nobody".into()),
            private: Vec::new(),
            hooks: Hooks::Skip,
        };
        let workspace = Workspace::at(root).unwrap().with_shell(shell);
        let rules = Rules::parse(&serde_json::json!({"bash": "allow"})).unwrap();
        let places = workspace.ground().unwrap();
        let policy = Policy::new(rules).in_mode(Mode::Auto);
        let policy = policy.rooted(root).placed(places);
        let registry = Registry::default();
        windlass_tools::register(&registry, &windlass_tools::Senses::default());
        let limits = Default::default();
        let runtime = Runtime { registry, hooks: Vec::new(), policy, workspace, limits };
        let snapshot = runtime.snapshot(&Scene::default()).await;
        Way { name, runtime: Some((runtime, snapshot)), bare: Vec::new(), times: Vec::new() }
    }

    async fn go(&mut self) {
        let began = Instant::now();
        match (&self.runtime, self.bare.split_first()) {
            (Some((runtime, snapshot)), _) => {
                let call = Call {
                    session: SessionId(Default::default()),
                    id: CallId(Default::default()),
                    by: Author::Model,
                    tool: "bash".into(),
                    arguments: r#"{"command": "true"}"#.into(),
                };
                let outcome = runtime.travel(snapshot, call, &Yes, CancellationToken::new()).await;
                let Outcome::Completed { output } = outcome else { panic!("{outcome:?}") };
                assert!(output.text.contains("exit code 0"), "{}", output.text);
            }
            (None, Some((program, arguments))) => {
                let mut command = Command::new(program);
                command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
                assert!(command.output().unwrap().status.success());
            }
            (None, None) => panic!("nothing to run"),
        }
        self.times.push(began.elapsed());
    }

    fn median(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len() / 2).unwrap().as_secs_f64() * 1000.0
    }
}

/// Bubblewrap as a person would call it, with as many namespaces as ours.
fn bare_bwrap(root: &Path) -> Way {
    let root = root.to_str().unwrap();
    let line = [
        "bwrap",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--tmpfs",
        "/tmp",
        "--bind",
        root,
        root,
        "--unshare-all",
        "--die-with-parent",
        "--chdir",
        root,
        "bash",
        "-c",
        "true",
    ];
    Way::bare("bwrap … bash -c true, bare", &line)
}

#[tokio::main(flavor = "current_thread")]
async fn measure() {
    let yard = tempfile::tempdir().unwrap();
    let root = yard.path();
    let git = Command::new("git").args(["init", "-q"]).current_dir(root).status();
    assert!(git.unwrap().success());
    let Backend::Bubblewrap { program } = probe().backend.clone() else {
        panic!("bubblewrap is needed for this comparison")
    };
    let mut ways = [
        Way::bare("bash -c true, bare", &["bash", "-c", "true"]),
        Way::ours("the road, no sandbox", root, Backend::Off).await,
        Way::ours("the road, Landlock", root, Backend::Landlock).await,
        bare_bwrap(root),
        Way::ours("the road, bubblewrap", root, Backend::Bubblewrap { program }).await,
    ];
    for round in 0..ROUNDS + 20 {
        for way in &mut ways {
            way.go().await;
            if round < 20 {
                way.times.clear();
            }
        }
    }
    let [bash, off, landlock, bwrap, caged] = ways.each_ref().map(Way::median);
    // What it is held against, what is aimed at, and what would be a step back.
    let rows = [
        (bash, bash, 1.0, 1.0),
        (off, bash, 1.3, 2.6),
        (landlock, bash, 1.5, 4.6),
        (bwrap, bwrap, 1.0, 1.0),
        (caged, bwrap, 1.2, 3.4),
    ];
    println!("| way | median ms | ratio | aimed at |\n|---|---|---|---|");
    let mut over = Vec::new();
    for (way, (time, base, aim, most)) in ways.iter().zip(rows) {
        let ratio = time / base;
        println!("| {} | {time:.2} | {ratio:.2} | {aim} |", way.name);
        if ratio > most {
            over.push(way.name);
        }
    }
    for way in &ways {
        if let Some((runtime, _)) = &way.runtime {
            runtime.workspace.end_jobs(SessionId(Default::default())).await;
        }
    }
    assert!(over.is_empty(), "far slower than it was: {over:?}");
}

fn main() {
    // The keeper is this program, started again.
    if std::env::args().nth(1).is_some_and(|first| first == windlass_sandbox::ERRAND) {
        windlass_sandbox::keeper().unwrap();
        return;
    }
    measure();
}
