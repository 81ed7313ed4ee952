//! What the checks share: a workspace with real cages, a file that is a tool, a person.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_permission::{Policy, Rules};
use windlass_plugin::{Launch, Program, Shelf, Terms, Wishes};
use windlass_protocol::{
    Access, Answer, Author, BlobRef, CallId, Inquiry, Mode, Outcome, Output, SessionId,
};
use windlass_sandbox::{Hold, Hooks, Hosts, Reach, Shell, Walls, Workspace};
use windlass_toolkit::{
    Berth, Budget, Call, Caller, Failure, Intent, Permit, Registry, Runtime, Scene, Stake,
};

/// Nothing here takes longer, or it hangs.
const LONGEST: Duration = Duration::from_secs(100);

pub fn run<T>(check: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(LONGEST, check).await.expect("it hangs") })
}

/// A file, and somebody who may say no to it.
pub struct OneFile {
    path: PathBuf,
    refusal: Mutex<Option<String>>,
    through: Mutex<Option<(PathBuf, Vec<PathBuf>)>>,
}

impl Shelf for OneFile {
    fn stamp(&self) -> String {
        let refused = self.refusal.lock().unwrap().is_some();
        let data = self.path.metadata().unwrap();
        format!("{refused} {:?} {}", data.modified().unwrap(), data.len())
    }

    fn take(&self) -> Result<Launch, String> {
        if let Some(why) = &*self.refusal.lock().unwrap() {
            return Err(why.clone());
        }
        let digest = BlobRef::of(&std::fs::read(&self.path).unwrap()).as_str().to_owned();
        let own = self.path.clone();
        let (program, arguments) = match &*self.through.lock().unwrap() {
            None => (own, Vec::new()),
            Some((program, before)) => {
                let words = before.iter().chain([&own]).map(|path| path.clone().into_os_string());
                (program.clone(), words.collect())
            }
        };
        Ok(Launch { program, arguments, digest })
    }
}

/// A workspace with one tool in it.
pub struct Yard {
    pub folder: TempDir,
    pub runtime: Runtime,
    pub program: Arc<Program>,
    pub notes: Vec<String>,
    file: Arc<OneFile>,
}

impl Yard {
    /// A tool that is this program, described and admitted.
    pub async fn new(name: &str, text: &str) -> Yard {
        let mut yard = Yard::silent(name, text, None);
        let said = yard.program.describe().await.unwrap();
        yard.admit(&said);
        yard
    }

    /// One that is not asked what it is.
    pub fn silent(name: &str, text: &str, through: Option<(PathBuf, Vec<PathBuf>)>) -> Yard {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let place = folder.path().canonicalize().unwrap();
        for name in ["w/.windlass/tools", "home", "cache"] {
            std::fs::create_dir_all(place.join(name)).unwrap();
        }
        std::fs::write(place.join("w/a.txt"), "hello\n").unwrap();
        let path = place.join("w/.windlass/tools").join(name);
        write(&path, text);
        let shell = Shell {
            walls: Walls::Best,
            inherited: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            reach: Reach::Listed(Hosts::none()),
            write: Vec::new(),
            home: Some(place.join("home")),
            private: Vec::new(),
            hooks: Hooks::Skip,
        };
        let workspace = Workspace::at(&place.join("w")).unwrap();
        let workspace = workspace.with_shell(shell).with_cache(&place.join("cache"));
        let policy = Policy::new(Rules::default()).in_mode(Mode::Full);
        let runtime = Runtime {
            registry: Registry::default(),
            hooks: Vec::new(),
            policy,
            workspace,
            limits: Default::default(),
        };
        let terms = Terms {
            folder: place.join("w"),
            hosts: Hosts::none(),
            wishes: Wishes::Held,
            timeout: None,
            most: Hold::Write,
            write: Vec::new(),
            env: Vec::new(),
        };
        let berth = Berth::new(&runtime.workspace, &runtime.policy);
        let file =
            Arc::new(OneFile { path, refusal: Mutex::default(), through: Mutex::new(through) });
        let stem = name.split('.').next().unwrap();
        let program = Program::new(stem, &berth, Arc::clone(&file) as Arc<dyn Shelf>, terms);
        Yard { folder, runtime, program, notes: Vec::new(), file }
    }

    pub fn admit(&mut self, said: &Value) {
        let (tools, notes) = self.program.tools(said, Some(&mut Budget::default()));
        self.notes = notes;
        for tool in tools {
            self.runtime.registry.admit("test", tool).unwrap();
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("w").join(name)
    }

    /// Puts another program in its place.
    pub fn replace(&self, text: &str) {
        std::fs::remove_file(&self.file.path).unwrap();
        write(&self.file.path, text);
    }

    /// What comes before the file when it is started.
    pub fn before(&mut self, words: Vec<PathBuf>) {
        self.file.through.lock().unwrap().as_mut().unwrap().1 = words;
    }

    /// From now on it must not be run.
    pub fn refuse(&self, why: &str) {
        *self.file.refusal.lock().unwrap() = Some(why.to_owned());
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.call_as(Mode::Full, tool, arguments, &Person::default(), CancellationToken::new())
            .await
    }

    pub async fn call_as(
        &self,
        mode: Mode,
        tool: &str,
        arguments: Value,
        person: &Person,
        cancel: CancellationToken,
    ) -> Outcome {
        let runtime = self.runtime.in_mode(mode);
        let snapshot = runtime.snapshot(&Scene::default()).await;
        let call = Call {
            session: SessionId(Default::default()),
            id: CallId(Default::default()),
            by: Author::Model,
            tool: tool.to_owned(),
            arguments: arguments.to_string(),
        };
        runtime.travel(&snapshot, call, person, cancel).await
    }

    pub async fn text(&self, tool: &str, arguments: Value) -> String {
        text(self.call(tool, arguments).await)
    }
}

pub fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

pub fn output(outcome: Outcome) -> Output {
    match outcome {
        Outcome::Completed { output } => output,
        other => panic!("{other:?}"),
    }
}

/// What a model reads of a call, however it went.
pub fn text(outcome: Outcome) -> String {
    match outcome {
        Outcome::Completed { output } => output.text,
        Outcome::Failed { text } => format!("failed: {text}"),
        Outcome::Denied { text } => format!("denied: {text}"),
        Outcome::Interrupted { text } => format!("interrupted: {text}"),
        other => format!("{other:?}"),
    }
}

/// A person who says yes to everything and answers `replies`.
#[derive(Default)]
pub struct Person {
    pub replies: Vec<String>,
    pub accesses: Mutex<Vec<Access>>,
    pub asked: Mutex<usize>,
    pub progress: Mutex<Vec<String>>,
    pub inquired: Mutex<Vec<Inquiry>>,
    pub kept: Mutex<Vec<Vec<u8>>>,
}

#[async_trait]
impl Caller for Person {
    async fn permit(&self, intent: Intent) -> Permit {
        *self.accesses.lock().unwrap() = intent.accesses;
        if intent.asking.is_some() { Permit::Look } else { Permit::Answer(Answer::Once) }
    }

    async fn ask(&self, _preview: Option<String>) -> Answer {
        *self.asked.lock().unwrap() += 1;
        Answer::Once
    }

    fn progress(&self, text: String) {
        self.progress.lock().unwrap().push(text);
    }

    async fn keep(&self, bytes: Vec<u8>) -> Result<BlobRef, Failure> {
        let blob = BlobRef::of(&bytes);
        self.kept.lock().unwrap().push(bytes);
        Ok(blob)
    }

    async fn inquire(
        &self,
        inquiries: Vec<Inquiry>,
        _stake: Stake,
    ) -> Result<Vec<Vec<String>>, Failure> {
        self.inquired.lock().unwrap().extend(inquiries);
        Ok(vec![self.replies.clone()])
    }
}

/// A tool in Python: `body` answers a call with `say(…)`, and may look at `ask`.
pub fn python(definition: &Value, body: &str) -> String {
    let body = body.lines().map(|line| format!("        {line}\n")).collect::<String>();
    let definition = json!(definition.to_string());
    format!(
        "#!/usr/bin/env python3\nimport json, os, sys, time\ndef say(**fields):\n    \
         print(json.dumps({{\"id\": ask[\"id\"], **fields}}), flush=True)\nfor line in sys.stdin:\n    \
         ask = json.loads(line)\n    if ask[\"method\"] == \"describe\":\n        \
         say(**json.loads({definition}))\n    elif ask[\"method\"] == \"call\":\n{body}"
    )
}
