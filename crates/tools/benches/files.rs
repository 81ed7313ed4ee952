//! Measures a page of a huge file, and an edit with and without recording its versions:
//! `cargo bench -p windlass-tools --bench files`.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark measures time and prints it"
)]

use async_trait::async_trait;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use windlass_permission::{PermissionRules, Policy};
use windlass_protocol::{BlobRef, CallAuthor, CallId, CallOutcome, PermissionAnswer, SessionId};
use windlass_sandbox::Workspace;
use windlass_storage::{Log, SqliteLog};
use windlass_toolkit::{
    CallFailure, CallIntent, PendingFileChange, PermissionReply, Registry, SeenFile, StepContext,
    ToolCall, ToolCaller, ToolRuntime, ToolSnapshot,
};

/// A caller that records changes in a real store, or does not record them.
struct BenchCaller {
    store: Option<SqliteLog>,
    seen: Mutex<BTreeMap<String, SeenFile>>,
}

#[async_trait]
impl ToolCaller for BenchCaller {
    async fn request_permission(&self, _intent: CallIntent) -> PermissionReply {
        PermissionReply::Answer(PermissionAnswer::Once)
    }

    async fn ask_permission(&self, _preview: Option<String>) -> PermissionAnswer {
        PermissionAnswer::Once
    }

    async fn record_changes(&self, batch: Vec<PendingFileChange>) -> Result<(), CallFailure> {
        let Some(store) = &self.store else { return Ok(()) };
        for PendingFileChange { before, after, .. } in batch {
            let mut previous = None;
            for content in [before, after].into_iter().flatten() {
                let stored = store.put_copy(content.bytes.to_vec(), previous.as_ref()).await;
                previous = Some(stored.map_err(|error| CallFailure::new(error.to_string()))?);
            }
        }
        Ok(())
    }

    fn last_seen(&self, path: &str) -> Option<SeenFile> {
        self.seen.lock().unwrap().get(path).cloned()
    }

    fn mark_seen(&self, path: &str, bytes: &Arc<[u8]>) {
        let seen = SeenFile {
            digest: BlobRef::for_bytes(bytes),
            bytes: Some(Arc::clone(bytes)),
            is_changed_by_command: false,
        };
        self.seen.lock().unwrap().insert(path.to_owned(), seen);
    }
}

async fn call(
    runtime: &ToolRuntime,
    snapshot: &ToolSnapshot,
    caller: &BenchCaller,
    tool: &str,
    json: String,
) {
    let call = ToolCall {
        session: SessionId(Default::default()),
        id: CallId(Default::default()),
        author: CallAuthor::Model,
        tool: tool.into(),
        arguments: json,
        allowed_calls: Vec::new(),
    };
    let outcome = runtime.execute(snapshot, call, caller, CancellationToken::new()).await;
    assert!(matches!(outcome, CallOutcome::Completed { .. }), "{outcome:?}");
}

/// Returns the peak memory of this process in kB.
fn peak_memory_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

async fn measure_huge_file(root: &Path, runtime: &ToolRuntime, snapshot: &ToolSnapshot) {
    let mut file = std::fs::File::create(root.join("huge.log")).unwrap();
    for n in 0..3_000 {
        writeln!(file, "line {n} of a log that is never read to its end").unwrap();
    }
    file.set_len(10 << 30).unwrap();
    let caller = BenchCaller { store: None, seen: Mutex::default() };
    // The first call has costs that do not belong to the page.
    call(runtime, snapshot, &caller, "read", r#"{"filePath": "small"}"#.into()).await;
    let before = peak_memory_kb();
    let mut times = Vec::new();
    for _ in 0..25 {
        let started = Instant::now();
        call(runtime, snapshot, &caller, "read", r#"{"filePath": "huge.log"}"#.into()).await;
        times.push(started.elapsed());
    }
    let (time, memory) = (median(times), peak_memory_kb() - before);
    println!("a page of 10 GB: {time:?}, {memory} kB more memory");
    assert!(time < Duration::from_millis(20) && memory < 10_000, "out of bounds");
}

/// Edits one line of a file of 100 kB again and again.
async fn measure_edits(
    root: &Path,
    runtime: &ToolRuntime,
    snapshot: &ToolSnapshot,
    store: Option<SqliteLog>,
) -> Duration {
    let caller = BenchCaller { store, seen: Mutex::default() };
    let text: String =
        (0..2_500).map(|n| format!("let value_{n} = compute({n}, \"a name\");\n")).collect();
    std::fs::write(root.join("a.rs"), &text).unwrap();
    call(runtime, snapshot, &caller, "read", r#"{"filePath": "a.rs"}"#.into()).await;
    let mut times = Vec::new();
    for n in 0..400_usize {
        let (line, round) = (n % 100 * 17, n / 100);
        let name =
            |round: usize| if round == 0 { "a name".into() } else { format!("name {round}") };
        let old = format!("let value_{line} = compute({line}, \"{}\");", name(round));
        let new = format!("let value_{line} = compute({line}, \"{}\");", name(round + 1));
        let json = serde_json::json!({"filePath": "a.rs", "oldString": old, "newString": new});
        let started = Instant::now();
        call(runtime, snapshot, &caller, "edit", json.to_string()).await;
        times.push(started.elapsed());
    }
    println!("  a file of {} kB", text.len() / 1000);
    median(times)
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("w");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("small"), "one\n").unwrap();
    let runtime = ToolRuntime {
        registry: Registry::default(),
        hooks: Vec::new(),
        policy: Policy::new(PermissionRules::parse(&serde_json::json!("allow")).unwrap()),
        workspace: Workspace::open(&root).unwrap(),
        limits: Default::default(),
    };
    windlass_tools::register(&runtime.registry, &windlass_tools::ToolIntegrations::default());
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let snapshot = runtime.snapshot(&StepContext::default()).await;
        measure_huge_file(&root, &runtime, &snapshot).await;
        let unrecorded = measure_edits(&root, &runtime, &snapshot, None).await;
        let store = SqliteLog::open(&folder.path().join("data")).await.unwrap();
        let recorded = measure_edits(&root, &runtime, &snapshot, Some(store)).await;
        println!("an edit: {unrecorded:?}; with recorded versions: {recorded:?}");
        assert!(recorded < unrecorded + Duration::from_millis(2), "out of bounds");
    });
}
