//! Tests of command hooks with real programs in a real sandbox, including misbehaving ones.
//!
//! The sandbox starts its supervisor from the current executable, so this test has its own `main`:
//! it runs either as the supervisor or as the tests below.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests create files directly and fail by panicking"
)]

use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_permission::{PermissionRules, Policy};
use windlass_plugin::hook::{ConfiguredHook, ConfiguredHookSpec, HookAction, HookFormat};
use windlass_protocol::{HookPoint, HookVerdict, PermissionMode, SessionId};
use windlass_sandbox::{
    CommandSandboxConfig, HostAllowlist, NetworkPolicy, ProcessSandboxAccess, ProcessSpec,
    SandboxMode, Workspace, WorkspaceAccess,
};
use windlass_testkit::test_main::{self, NamedTest};
use windlass_toolkit::hook::run_hooks;
use windlass_toolkit::{
    CombinedHookResult, Hook, HookContext, HookDenial, HookPayload, HookRun, ProcessLauncher,
};

/// The tests, by name.
const CHECKS: &[NamedTest] = &[
    ("each_hook_sees_the_payload_of_the_previous_one", || {
        run_async(each_hook_sees_the_payload_of_the_previous_one())
    }),
    ("exit_code_2_denies_with_stderr_as_the_reason", || {
        run_async(exit_code_2_denies_with_stderr_as_the_reason())
    }),
    ("a_misbehaving_hook_denies_in_time_with_a_reason", || {
        run_async(a_misbehaving_hook_denies_in_time_with_a_reason())
    }),
    ("background_processes_of_a_hook_are_ended", || {
        run_async(background_processes_of_a_hook_are_ended())
    }),
    ("a_hook_runs_for_its_tools_in_a_read_only_sandbox", || {
        run_async(a_hook_runs_for_its_tools_in_a_read_only_sandbox())
    }),
    ("a_hook_that_may_not_start_denies", || run_async(a_hook_that_may_not_start_denies())),
    ("a_large_payload_is_written_whole_or_not_read", || {
        run_async(a_large_payload_is_written_whole_or_not_read())
    }),
];

fn run_async(check: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(check);
}

fn main() -> ExitCode {
    test_main::main(CHECKS, windlass_sandbox::run_supervisor)
}

struct TestEnv {
    folder: tempfile::TempDir,
    workspace: Workspace,
    rules: Value,
}

impl TestEnv {
    fn new() -> TestEnv {
        let folder = tempfile::tempdir().unwrap();
        let shell = CommandSandboxConfig {
            sandbox_mode: SandboxMode::Best,
            inherited_env: std::env::vars_os().collect(),
            network_policy: NetworkPolicy::Listed(HostAllowlist::none()),
            readable_folders: Vec::new(),
            writable_folders: Vec::new(),
            home: None,
            additional_folders: Vec::new(),
            private_paths: Vec::new(),
            cache_folder: None,
            git_hooks: windlass_sandbox::GitHookMode::Skip,
        };
        let workspace = Workspace::open(folder.path()).unwrap().with_shell(shell);
        TestEnv { folder, workspace, rules: json!({}) }
    }

    fn hook(&self, command: &str, timeout: u64) -> Arc<dyn Hook> {
        let sandbox_access = ProcessSandboxAccess {
            workspace: WorkspaceAccess::Read,
            writable_folders: Vec::new(),
            hosts: HostAllowlist::none(),
            sandbox_mode: None,
        };
        let process = ProcessSpec {
            name: "hook/guard".into(),
            program: "bash".into(),
            arguments: vec!["-c".into(), command.into()],
            folder: self.folder.path().canonicalize().unwrap(),
            env: Vec::new(),
            sandbox_access,
        };
        let spec = ConfiguredHookSpec {
            name: "guard".into(),
            point: HookPoint::BeforeTool,
            matcher: Some("edit|bash".into()),
            action: HookAction::Command(Box::new(process)),
            timeout: Duration::from_millis(timeout),
            format: HookFormat::Native,
            check: None,
        };
        let policy = Policy::new(PermissionRules::parse(&self.rules).unwrap());
        Arc::new(
            ConfiguredHook::new(spec, &ProcessLauncher::new(&self.workspace, &policy)).unwrap(),
        )
    }

    async fn run(
        &self,
        hooks: &[Arc<dyn Hook>],
    ) -> (Vec<HookRun>, Result<CombinedHookResult, HookDenial>) {
        let folder = self.folder.path().display().to_string();
        let session = SessionId(uuid::Uuid::nil());
        let context = HookContext {
            session,
            call: None,
            folder: &folder,
            mode: PermissionMode::Auto,
            agent: None,
            judge: None,
        };
        run_hooks(hooks, &context, hook_payload()).await
    }
}

fn hook_payload() -> HookPayload {
    HookPayload::BeforeCall { tool: "edit".into(), arguments: json!({"filePath": "a.txt"}) }
}

async fn each_hook_sees_the_payload_of_the_previous_one() {
    let env = TestEnv::new();
    let first = env.hook(
        r#"read -r line; case $line in *'"point":"before_tool"'*) echo '{"arguments": {"filePath": "b.txt"}}';; esac"#,
        5_000,
    );
    let second = env.hook(
        r#"grep -q b.txt && echo '{"verdict": "ask", "reason": "b?"}'; echo noise >&2"#,
        5_000,
    );
    let (hook_runs, result) = env.run(&[first, second]).await;
    let result = result.unwrap();
    let arguments = json!({"filePath": "b.txt"});
    assert_eq!(result.payload, HookPayload::BeforeCall { tool: "edit".into(), arguments });
    assert_eq!(result.ask_reason.as_deref(), Some("the hook `guard` requires approval: b?"));
    let verdicts: Vec<&str> = hook_runs.iter().map(|hook_run| hook_run.verdict.name()).collect();
    assert_eq!(verdicts, ["rewrote", "asks"]);
    assert!(hook_runs.iter().all(|hook_run| hook_run.duration > Duration::ZERO));
}

async fn exit_code_2_denies_with_stderr_as_the_reason() {
    let env = TestEnv::new();
    let hook = env.hook("echo 'a.txt is not yours' >&2; echo '{}'; exit 2", 5_000);
    let (hook_runs, result) = env.run(&[hook]).await;
    let stop = result.unwrap_err();
    assert_eq!(stop.to_string(), "The hook `guard` denied this: a.txt is not yours");
    assert_eq!(hook_runs[0].verdict, HookVerdict::Refused { reason: "a.txt is not yours".into() });
}

async fn a_misbehaving_hook_denies_in_time_with_a_reason() {
    let env = TestEnv::new();
    // The first start also starts the supervisor.
    env.run(&[env.hook("true", 10_000)]).await.1.unwrap();
    for (command, timeout, expected) in [
        ("sleep 100", 500, "did not answer within 500 ms"),
        ("trap '' TERM INT HUP; while :; do :; done", 500, "did not answer within 500 ms"),
        ("(setsid sleep 100 &) ; sleep 100", 500, "did not answer within 500 ms"),
        ("echo boom >&2; exit 1", 4_000, "exited with code 1: boom"),
        ("exit 127", 4_000, "exited with code 127"),
        ("kill -9 $$", 4_000, "signal 9|code 137"),
        ("yes | head -c 1000000000", 4_000, "more than 64 KiB"),
        ("yes >&2", 1_000, "did not answer within 1000 ms"),
        ("echo '{'", 4_000, "invalid output"),
        ("echo maybe", 4_000, "invalid output"),
        ("printf '\\xff\\xfe'", 4_000, "not UTF-8 text"),
        (r#"echo '{"verdict": "allow"}'"#, 4_000, "unknown variant `allow`"),
        (r#"echo '{"output": "x"}'"#, 4_000, "is not supported at before_tool"),
        ("/nonexistent/program", 4_000, "exited with code 127"),
    ] {
        let started = Instant::now();
        let (hook_runs, result) = env.run(&[env.hook(command, timeout)]).await;
        let elapsed = started.elapsed();
        let stop = result.unwrap_err();
        assert!(
            elapsed < windlass_testkit::time_limits::limit(Duration::from_millis(timeout + 1_000)),
            "{command}: {elapsed:?}"
        );
        assert!(stop.to_string().starts_with("The hook `guard` denied this: "), "{stop}");
        let has_reason = |text: &str| stop.reason.contains(text);
        assert!(expected.split('|').any(has_reason), "{command}: {stop}");
        assert!(stop.reason.len() < 4 << 10, "{command}");
        assert!(
            matches!(&hook_runs[0].verdict, HookVerdict::Failed { .. }),
            "{command}: {hook_runs:?}"
        );
    }
    env.workspace.stop_processes().await;
}

async fn background_processes_of_a_hook_are_ended() {
    let env = TestEnv::new();
    let hook = env.hook("sleep 100 & echo '{\"verdict\": \"refuse\", \"reason\": \"no\"}'", 3_000);
    let started = Instant::now();
    let (hook_runs, _) = env.run(&[hook]).await;
    assert_eq!(hook_runs[0].verdict, HookVerdict::Refused { reason: "no".into() });
    assert!(
        started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(2)),
        "{:?}",
        started.elapsed()
    );
}

async fn a_hook_runs_for_its_tools_in_a_read_only_sandbox() {
    let env = TestEnv::new();
    let hook = env.hook("touch made; test -e made && exit 3; exit 0", 4_000);
    for (point, tool, applies) in [
        (HookPoint::BeforeTool, "edit", true),
        (HookPoint::BeforeTool, "bash", true),
        (HookPoint::BeforeTool, "write", false),
        (HookPoint::BeforeTool, "edits", false),
        (HookPoint::AfterTool, "edit", false),
    ] {
        assert_eq!(hook.applies_to(point, Some(tool)), applies, "{point} {tool}");
    }
    let (_, result) = env.run(&[hook]).await;
    assert!(result.is_ok(), "{result:?}");
    assert!(!env.folder.path().join("made").exists());
}

async fn a_hook_that_may_not_start_denies() {
    let mut env = TestEnv::new();
    env.rules = json!({"process": {"hook/guard": "deny"}});
    let (hook_runs, result) = env.run(&[env.hook("true", 4_000)]).await;
    assert!(result.unwrap_err().reason.contains("was not started"));
    assert_eq!(hook_runs[0].verdict.name(), "failed");
}

async fn a_large_payload_is_written_whole_or_not_read() {
    let env = TestEnv::new();
    let folder = env.folder.path().display().to_string();
    let session = SessionId(uuid::Uuid::nil());
    let context = HookContext {
        session,
        call: None,
        folder: &folder,
        mode: PermissionMode::Plan,
        agent: None,
        judge: None,
    };
    let arguments = json!({"filePath": "a", "newString": "x".repeat(4 << 20)});
    let payload = HookPayload::BeforeCall { tool: "edit".into(), arguments };
    let counts_bytes = "test $(wc -c) -gt 4194304 || exit 2";
    for command in [counts_bytes, "true", "exec <&-; sleep 0.1"] {
        let (_, result) = run_hooks(&[env.hook(command, 5_000)], &context, payload.clone()).await;
        assert_eq!(result.unwrap().payload, payload, "{command}");
    }
}
