//! What a page of a huge file costs, and what an edit costs with and without being put on record:
//! `cargo bench -p windlass-tools --bench files`.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark measures time and tells"
)]

use async_trait::async_trait;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use windlass_permission::{Policy, Rules};
use windlass_protocol::{Answer, Author, BlobRef, CallId, Outcome, SessionId};
use windlass_sandbox::Workspace;
use windlass_storage::{Log, Sqlite};
use windlass_toolkit::{
    Call, Caller, Failure, Intent, Pending, Permit, Registry, Runtime, Scene, Seen, Snapshot,
};

/// A caller that records changes in a real store, or nowhere.
struct Bench {
    store: Option<Sqlite>,
    seen: Mutex<BTreeMap<String, Seen>>,
}

#[async_trait]
impl Caller for Bench {
    async fn permit(&self, _intent: Intent) -> Permit {
        Permit::Answer(Answer::Once)
    }

    async fn ask(&self, _preview: Option<String>) -> Answer {
        Answer::Once
    }

    async fn record(&self, batch: Vec<Pending>) -> Result<(), Failure> {
        let Some(store) = &self.store else { return Ok(()) };
        for Pending { before, after, .. } in batch {
            let mut near = None;
            for content in [before, after].into_iter().flatten() {
                let kept = store.keep_copy(content.bytes.to_vec(), near.as_ref()).await;
                near = Some(kept.map_err(|error| Failure::new(error.to_string()))?);
            }
        }
        Ok(())
    }

    fn seen(&self, path: &str) -> Option<Seen> {
        self.seen.lock().unwrap().get(path).cloned()
    }

    fn show(&self, path: &str, bytes: &Arc<[u8]>) {
        let seen = Seen { digest: BlobRef::of(bytes), bytes: Some(Arc::clone(bytes)) };
        self.seen.lock().unwrap().insert(path.to_owned(), seen);
    }
}

async fn call(runtime: &Runtime, snapshot: &Snapshot, bench: &Bench, tool: &str, json: String) {
    let call = Call {
        session: SessionId(Default::default()),
        id: CallId(Default::default()),
        by: Author::Model,
        tool: tool.into(),
        arguments: json,
    };
    let outcome = runtime.travel(snapshot, call, bench, CancellationToken::new()).await;
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
}

/// The most memory this process has had, in kB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

async fn huge(root: &Path, runtime: &Runtime, snapshot: &Snapshot) {
    let mut file = std::fs::File::create(root.join("huge.log")).unwrap();
    for n in 0..3_000 {
        writeln!(file, "line {n} of a log that nobody will ever read to its end").unwrap();
    }
    file.set_len(10 << 30).unwrap();
    let bench = Bench { store: None, seen: Mutex::default() };
    // What the first call of all costs is not the page's.
    call(runtime, snapshot, &bench, "read", r#"{"filePath": "small"}"#.into()).await;
    let before = peak();
    let mut times = Vec::new();
    for _ in 0..25 {
        let begun = Instant::now();
        call(runtime, snapshot, &bench, "read", r#"{"filePath": "huge.log"}"#.into()).await;
        times.push(begun.elapsed());
    }
    let (time, memory) = (median(times), peak() - before);
    println!("a page of 10 GB: {time:?}, {memory} kB more memory");
    assert!(time < Duration::from_millis(20) && memory < 10_000, "out of bounds");
}

/// Edits one line of a file of 100 kB again and again.
async fn edits(
    root: &Path,
    runtime: &Runtime,
    snapshot: &Snapshot,
    store: Option<Sqlite>,
) -> Duration {
    let bench = Bench { store, seen: Mutex::default() };
    let text: String =
        (0..2_500).map(|n| format!("let value_{n} = compute({n}, \"a name\");\n")).collect();
    std::fs::write(root.join("a.rs"), &text).unwrap();
    call(runtime, snapshot, &bench, "read", r#"{"filePath": "a.rs"}"#.into()).await;
    let mut times = Vec::new();
    for n in 0..400_usize {
        let (line, round) = (n % 100 * 17, n / 100);
        let name =
            |round: usize| if round == 0 { "a name".into() } else { format!("name {round}") };
        let old = format!("let value_{line} = compute({line}, \"{}\");", name(round));
        let new = format!("let value_{line} = compute({line}, \"{}\");", name(round + 1));
        let json = serde_json::json!({"filePath": "a.rs", "oldString": old, "newString": new});
        let begun = Instant::now();
        call(runtime, snapshot, &bench, "edit", json.to_string()).await;
        times.push(begun.elapsed());
    }
    println!("  a file of {} kB", text.len() / 1000);
    median(times)
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("w");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("small"), "one\n").unwrap();
    let runtime = Runtime {
        registry: Registry::default(),
        hooks: Vec::new(),
        policy: Policy::new(Rules::parse(&serde_json::json!("allow")).unwrap()),
        workspace: Workspace::at(&root).unwrap(),
        limits: Default::default(),
    };
    windlass_tools::register(&runtime.registry, &windlass_tools::Senses::default());
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let snapshot = runtime.snapshot(&Scene::default()).await;
        huge(&root, &runtime, &snapshot).await;
        let bare = edits(&root, &runtime, &snapshot, None).await;
        let store = Sqlite::open(&folder.path().join("data")).await.unwrap();
        let recorded = edits(&root, &runtime, &snapshot, Some(store)).await;
        println!("an edit: {bare:?}; with its versions kept: {recorded:?}");
        assert!(recorded < bare + Duration::from_millis(2), "out of bounds");
    });
}
