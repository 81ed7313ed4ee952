//! Compares the run time of a command through the whole tool pipeline with the same program started
//! directly: `cargo bench -p windlass-tools --bench commands`. Prints the ratio and its target, and
//! fails above the limit.
#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark measures time and prints it"
)]

use async_trait::async_trait;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use windlass_permission::{PermissionRules, Policy};
use windlass_protocol::{
    CallAuthor, CallId, CallOutcome, PermissionAnswer, PermissionMode, SessionId,
};
use windlass_sandbox::{
    CommandSandboxConfig, GitHookMode, HostAllowlist, NetworkPolicy, SandboxBackend, SandboxMode,
    Workspace, probe,
};
use windlass_toolkit::{
    CallIntent, PermissionReply, Registry, StepContext, ToolCall, ToolCaller, ToolRuntime,
    ToolSnapshot,
};

const ROUNDS: usize = 300;

struct CommandBenchCaller;

#[async_trait]
impl ToolCaller for CommandBenchCaller {
    async fn request_permission(&self, _intent: CallIntent) -> PermissionReply {
        PermissionReply::Answer(PermissionAnswer::Once)
    }

    async fn ask_permission(&self, _preview: Option<String>) -> PermissionAnswer {
        PermissionAnswer::Once
    }
}

/// A way to run a command, and the duration of each run.
struct CommandBenchCase {
    name: &'static str,
    runtime: Option<(ToolRuntime, ToolSnapshot)>,
    direct: Vec<String>,
    times: Vec<Duration>,
}

impl CommandBenchCase {
    fn direct(name: &'static str, arguments: &[&str]) -> CommandBenchCase {
        let direct = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        CommandBenchCase { name, runtime: None, direct, times: Vec::new() }
    }

    async fn through_pipeline(
        name: &'static str,
        root: &Path,
        backend: SandboxBackend,
    ) -> CommandBenchCase {
        let shell = CommandSandboxConfig {
            sandbox_mode: SandboxMode::Exactly(backend),
            inherited_env: std::env::vars_os().collect(),
            network_policy: NetworkPolicy::Listed(HostAllowlist::none()),
            readable_folders: Vec::new(),
            writable_folders: Vec::new(),
            home: Some("/home/nobody".into()),
            additional_folders: Vec::new(),
            private_paths: Vec::new(),
            cache_folder: None,
            git_hooks: GitHookMode::Skip,
        };
        let workspace = Workspace::open(root).unwrap().with_shell(shell);
        let rules = PermissionRules::parse(&serde_json::json!({"bash": "allow"})).unwrap();
        let path_lookup = workspace.machine_paths().unwrap();
        let policy = Policy::new(rules).with_mode(PermissionMode::Auto);
        let policy = policy.with_root(root).with_path_lookup(path_lookup);
        let registry = Registry::default();
        windlass_tools::register(&registry, &windlass_tools::ToolIntegrations::default());
        let limits = Default::default();
        let runtime = ToolRuntime { registry, hooks: Vec::new(), policy, workspace, limits };
        let snapshot = runtime.snapshot(&StepContext::default()).await;
        CommandBenchCase {
            name,
            runtime: Some((runtime, snapshot)),
            direct: Vec::new(),
            times: Vec::new(),
        }
    }

    async fn run(&mut self) {
        let started = Instant::now();
        match (&self.runtime, self.direct.split_first()) {
            (Some((runtime, snapshot)), _) => {
                let call = ToolCall {
                    session: SessionId(Default::default()),
                    id: CallId(Default::default()),
                    author: CallAuthor::Model,
                    tool: "bash".into(),
                    arguments: r#"{"command": "true"}"#.into(),
                    allowed_calls: Vec::new(),
                };
                let outcome = runtime
                    .execute(snapshot, call, &CommandBenchCaller, CancellationToken::new())
                    .await;
                let CallOutcome::Completed { output } = outcome else { panic!("{outcome:?}") };
                assert!(output.text.contains("exit code 0"), "{}", output.text);
            }
            (None, Some((program, arguments))) => {
                let mut command = Command::new(program);
                command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
                assert!(command.output().unwrap().status.success());
            }
            (None, None) => panic!("nothing to run"),
        }
        self.times.push(started.elapsed());
    }

    fn median(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len() / 2).unwrap().as_secs_f64() * 1000.0
    }
}

/// Returns Bubblewrap as a user would call it, with as many namespaces as the sandbox.
fn direct_bwrap(root: &Path) -> CommandBenchCase {
    let root = root.to_str().unwrap();
    let arguments = [
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
    CommandBenchCase::direct("bwrap … bash -c true, direct", &arguments)
}

#[tokio::main(flavor = "current_thread")]
async fn measure() {
    let env = tempfile::tempdir().unwrap();
    let root = env.path();
    let git = Command::new("git").args(["init", "-q"]).current_dir(root).status();
    assert!(git.unwrap().success());
    let SandboxBackend::Bubblewrap { program } = probe().backend.clone() else {
        panic!("bubblewrap is needed for this comparison")
    };
    let mut variants = [
        CommandBenchCase::direct("bash -c true, direct", &["bash", "-c", "true"]),
        CommandBenchCase::through_pipeline("tool pipeline, no sandbox", root, SandboxBackend::Off)
            .await,
        CommandBenchCase::through_pipeline(
            "tool pipeline, Landlock",
            root,
            SandboxBackend::Landlock,
        )
        .await,
        direct_bwrap(root),
        CommandBenchCase::through_pipeline(
            "tool pipeline, bubblewrap",
            root,
            SandboxBackend::Bubblewrap { program },
        )
        .await,
    ];
    for round in 0..ROUNDS + 20 {
        for variant in &mut variants {
            variant.run().await;
            if round < 20 {
                variant.times.clear();
            }
        }
    }
    let [bash, off, landlock, bwrap, sandboxed] = variants.each_ref().map(CommandBenchCase::median);
    // Median, base of comparison, target ratio, and limit.
    let rows = [
        (bash, bash, 1.0, 1.0),
        (off, bash, 1.3, 2.6),
        (landlock, bash, 1.5, 4.6),
        (bwrap, bwrap, 1.0, 1.0),
        (sandboxed, bwrap, 1.2, 3.4),
    ];
    println!("| variant | median ms | ratio | target |\n|---|---|---|---|");
    let mut too_slow = Vec::new();
    for (variant, (time, base, target, limit)) in variants.iter().zip(rows) {
        let ratio = time / base;
        println!("| {} | {time:.2} | {ratio:.2} | {target} |", variant.name);
        if ratio > limit {
            too_slow.push(variant.name);
        }
    }
    for variant in &variants {
        if let Some((runtime, _)) = &variant.runtime {
            runtime.workspace.end_jobs(SessionId(Default::default())).await;
        }
    }
    assert!(too_slow.is_empty(), "slower than the limit: {too_slow:?}");
}

fn main() {
    // The sandbox starts its supervisor from this executable.
    if std::env::args().nth(1).is_some_and(|first| first == windlass_sandbox::HELPER_ARGUMENT) {
        windlass_sandbox::run_supervisor().unwrap();
        return;
    }
    measure();
}
