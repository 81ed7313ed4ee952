//! A workspace with formatters, and somebody who changes files in it and keeps what is said.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_permission::{Policy, Rules};
use windlass_protocol::{
    Answer, Author, BlobRef, CallId, Change, Display, Mode, Outcome, SessionId, Version,
};
use windlass_sandbox::{Content, Hooks, Hosts, Pending, Reach, Shell, Walls, Workspace};
use windlass_toolkit::{
    Berth, Call, Caller, Failure, Intent, Permit, Registry, Runtime, Scene, Seen,
};
use windlass_tools::Senses;
use windlass_tools::format::{Formats, Row};

/// Runs something that must not take long.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(Duration::from_secs(60), work).await };
    runtime.block_on(limited).expect("it ends")
}

/// Somebody who says yes, and remembers.
#[derive(Default)]
pub struct Person {
    pub seen: Mutex<BTreeMap<String, Seen>>,
    pub shown: Mutex<Vec<String>>,
    /// Every batch that was put on record.
    pub recorded: Mutex<Vec<Vec<Pending>>>,
    kept: Mutex<BTreeMap<BlobRef, Vec<u8>>>,
}

#[async_trait]
impl Caller for Person {
    async fn permit(&self, intent: Intent) -> Permit {
        if intent.asking.is_some() { Permit::Look } else { Permit::Answer(Answer::Once) }
    }

    async fn ask(&self, preview: Option<String>) -> Answer {
        self.shown.lock().unwrap().push(preview.unwrap_or_default());
        Answer::Once
    }

    async fn keep(&self, bytes: Vec<u8>) -> Result<BlobRef, Failure> {
        let blob = BlobRef::of(&bytes);
        self.kept.lock().unwrap().insert(blob.clone(), bytes);
        Ok(blob)
    }

    async fn version(&self, copy: &BlobRef) -> Result<Vec<u8>, Failure> {
        let kept = self.kept.lock().unwrap().get(copy).cloned();
        kept.ok_or_else(|| Failure::new("it is not kept"))
    }

    async fn record(&self, batch: Vec<Pending>) -> Result<(), Failure> {
        for Pending { before, after, .. } in &batch {
            for content in [before, after].into_iter().flatten() {
                self.keep(content.bytes.to_vec()).await.unwrap();
            }
        }
        self.recorded.lock().unwrap().push(batch);
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

/// The formatter of these tests: it puts one blank around `=`, and can be made to misbehave.
const FAKE: &str = r#"
good() { sed -e 's/ *= */ = /'; }
case $1 in
  good) good ;;
  picky) input=$(cat; echo .); case $input in *BROKEN*) echo "error: BROKEN is no word" >&2; echo " --> line 1" >&2; exit 1 ;; esac; printf %s "${input%.}" | good ;;
  refuses) cat >/dev/null; echo "error: expected one of ; or }" >&2; exit 1 ;;
  half) head -c 3; exit 2 ;;
  hangs) sleep 3600 ;;
  deaf) exec 0<&-; sleep 3600 ;;
  stubborn) trap '' TERM INT HUP; while :; do sleep 1; done ;;
  lost) cat >/dev/null; echo 'fake.sh: no-such-program: not found' >&2; exit 127 ;;
  endless) yes ;;
  flood) cat >/dev/null; head -c 400000 /dev/zero | tr '\0' x ;;
  binary) cat >/dev/null; printf 'a\377\376\n' ;;
  nul) cat >/dev/null; printf 'a\000b\n' ;;
  nothing) cat >/dev/null ;;
  killed) kill -9 $$ ;;
  forks) good; sleep 3600 & ;;
  writes) echo harm >harm; echo harm >>a.fake; rm -f kept; good ;;
esac
"#;

/// A workspace with its tools.
pub struct Site {
    _folder: TempDir,
    root: PathBuf,
    pub runtime: Runtime,
    pub person: Person,
}

impl Site {
    /// A workspace whose files in `.fake` are formatted by one that behaves so.
    pub fn with(way: &str) -> Site {
        Site::of(vec![fake(way)], json!({}), Mode::Auto)
    }

    pub fn of(rows: Vec<Row>, rules: Value, mode: Mode) -> Site {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let place = folder.path().canonicalize().unwrap();
        let root = place.join("w");
        for name in ["w", "home"] {
            std::fs::create_dir_all(place.join(name)).unwrap();
        }
        std::fs::write(root.join("fake.sh"), FAKE).unwrap();
        std::fs::write(root.join("fake.toml"), "").unwrap();
        let inherited = ["PATH", "HOME", "RUSTUP_HOME", "CARGO_HOME", "RUSTUP_TOOLCHAIN"];
        let inherited =
            inherited.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        let shell = Shell {
            walls: Walls::Best,
            inherited: inherited.map(|(name, value)| (name.into(), value)).collect(),
            reach: Reach::Listed(Hosts::none()),
            write: Vec::new(),
            home: Some(place.join("home")),
            private: Vec::new(),
            hooks: Hooks::Skip,
        };
        let workspace = Workspace::at(&root).unwrap().with_shell(shell);
        let runtime = Runtime {
            registry: Registry::default(),
            hooks: Vec::new(),
            policy: Policy::new(Rules::parse(&rules).unwrap()).in_mode(mode),
            workspace: workspace.with_cache(&place.join("cache")),
            limits: Default::default(),
        };
        let berth = Berth::new(&runtime.workspace, &runtime.policy);
        let formats = Some(Arc::new(Formats::open(rows, berth)));
        windlass_tools::register(&runtime.registry, &Senses { formats, ..Senses::default() });
        Site { _folder: folder, root, runtime, person: Person::default() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Puts a file there, which the model has read.
    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content.as_ref()).unwrap();
        self.person.show(name, &content.as_ref().into());
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub async fn write(&self, name: &str, content: &str) -> Outcome {
        self.call("write", json!({"filePath": name, "content": content})).await
    }

    pub async fn edit(&self, name: &str, old: &str, new: &str) -> Outcome {
        let input = json!({"filePath": name, "oldString": old, "newString": new});
        self.call("edit", input).await
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let scene = Scene::default();
        self.travel(tool, arguments, (Author::Model, &scene), CancellationToken::new()).await
    }

    pub async fn travel(
        &self,
        tool: &str,
        arguments: Value,
        (by, scene): (Author, &Scene),
        cancel: CancellationToken,
    ) -> Outcome {
        let snapshot = self.runtime.registry.snapshot(scene, &self.runtime.policy).await;
        let call = Call {
            session: SessionId(Default::default()),
            id: CallId(Default::default()),
            by,
            tool: tool.to_owned(),
            arguments: arguments.to_string(),
        };
        self.runtime.travel(&snapshot, call, &self.person, cancel).await
    }

    /// The batches on record from one on, as an undo takes them.
    pub fn changes(&self, from: usize) -> Vec<Change> {
        let version = |content: &Option<Content>| {
            content
                .as_ref()
                .map(|content| Version { copy: BlobRef::of(&content.bytes), mode: content.mode })
        };
        let change = |pending: &Pending| Change {
            path: pending.path.clone(),
            before: version(&pending.before),
            after: version(&pending.after),
        };
        let recorded = self.person.recorded.lock().unwrap();
        recorded.iter().skip(from).flatten().map(change).collect()
    }

    /// Takes changes back, as a person does.
    pub async fn undo(&self, changes: Vec<Change>) -> Outcome {
        let (input, scene) = (json!({"facts": [], "changes": changes}), Scene::default());
        let by = (Author::Person, &scene);
        self.travel(windlass_protocol::files::UNDO, input, by, CancellationToken::new()).await
    }

    /// What is on the disk is what was recorded last, what was shown, and what the model has seen.
    pub fn agrees(&self, name: &str, outcome: &Outcome) {
        let bytes = std::fs::read(self.path(name)).unwrap();
        let recorded = self.person.recorded.lock().unwrap();
        let last = recorded.last().unwrap().iter().find(|pending| pending.path == name).unwrap();
        assert_eq!(&*last.after.as_ref().unwrap().bytes, bytes, "on record");
        assert_eq!(self.person.seen(name).unwrap().digest, BlobRef::of(&bytes), "seen");
        let Outcome::Completed { output } = outcome else { panic!("{outcome:?}") };
        let Display::Diff { unified } = &output.display else { panic!("{outcome:?}") };
        let before = last.before.as_ref().map(|content| content.bytes.to_vec()).unwrap_or_default();
        let [before, after] = [before, bytes].map(|bytes| String::from_utf8(bytes).unwrap());
        let own = unified.split(&format!("+++ b/{name}\n")).nth(1).expect("it is shown");
        for line in own.lines().take_while(|line| !line.starts_with("--- a/")) {
            let side = match line.split_at(1) {
                ("+", line) => after.lines().any(|each| each == line),
                ("-", line) => before.lines().any(|each| each == line),
                (_, _) => true,
            };
            assert!(side, "{line}\n{unified}");
        }
    }
}

/// The row of the formatter of these tests. One that would take for ever is not waited for long,
/// and one that works has the time that a busy machine needs.
pub fn fake(way: &str) -> Row {
    let late = ["hangs", "deaf", "stubborn", "forks"].contains(&way);
    let timeout = if late { 300 } else { 5_000 };
    let row = json!({
        "name": "fake", "command": ["sh", "fake.sh", way], "extensions": [".fake"],
        "when": ["fake.toml"], "timeout": timeout, "install": "`make fake`",
    });
    serde_json::from_value(row).unwrap()
}
