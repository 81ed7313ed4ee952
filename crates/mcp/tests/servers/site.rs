//! A workspace, servers in it, and somebody who calls their tools and keeps what is said.

use async_trait::async_trait;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_mcp::{Keeping, Pinned, Servers, Spec, Way};
use windlass_permission::{Policy, Rules};
use windlass_protocol::{Answer, Author, BlobRef, CallId, Inquiry, Mode, Outcome, SessionId};
use windlass_sandbox::{Hold, Hooks, Hosts, Keep, Reach, Servant, Shell, Walls, Workspace};
use windlass_toolkit::{
    Berth, Budget, Call, Caller, Failure, Intent, Permit, Registry, Runtime, Scene, Stake,
};

/// Runs something that must not take long.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(Duration::from_secs(120), work).await };
    runtime.block_on(limited).expect("it ends")
}

/// What was kept and told.
#[derive(Default)]
pub struct Notes {
    pub pins: Mutex<Vec<(String, Pinned)>>,
    pub journal: Mutex<Vec<String>>,
    pub notices: Mutex<Vec<String>>,
}

impl Keeping for Notes {
    fn pin(&self, server: &str, pinned: &Pinned) {
        self.pins.lock().unwrap().push((server.to_owned(), pinned.clone()));
    }

    fn journal(&self, server: &str, line: &str) {
        self.journal.lock().unwrap().push(format!("{server}: {line}"));
    }

    fn notice(&self, text: String) {
        self.notices.lock().unwrap().push(text);
    }
}

/// Somebody who says yes, and answers questions as told.
#[derive(Default)]
pub struct Person {
    pub replies: Option<Vec<Vec<String>>>,
    pub asked: Mutex<Vec<Inquiry>>,
    pub shown: Mutex<Vec<Option<String>>>,
    pub progress: Mutex<Vec<String>>,
    pub intents: Mutex<Vec<Intent>>,
}

#[async_trait]
impl Caller for Person {
    async fn permit(&self, intent: Intent) -> Permit {
        let asks = intent.asking.is_some();
        self.intents.lock().unwrap().push(intent);
        if asks { Permit::Look } else { Permit::Answer(Answer::Once) }
    }

    async fn ask(&self, preview: Option<String>) -> Answer {
        self.shown.lock().unwrap().push(preview);
        Answer::Once
    }

    fn progress(&self, text: String) {
        self.progress.lock().unwrap().push(text);
    }

    async fn keep(&self, bytes: Vec<u8>) -> Result<BlobRef, Failure> {
        Ok(BlobRef::of(&bytes))
    }

    async fn inquire(&self, all: Vec<Inquiry>, _: Stake) -> Result<Vec<Vec<String>>, Failure> {
        self.asked.lock().unwrap().extend(all);
        self.replies.clone().ok_or_else(|| Failure::new("nobody"))
    }
}

/// A workspace with its tools.
pub struct Site {
    folder: TempDir,
    pub runtime: Runtime,
    pub notes: Arc<Notes>,
}

impl Site {
    pub fn new() -> Site {
        Site::in_mode(Mode::Auto)
    }

    pub fn in_mode(mode: Mode) -> Site {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let place = folder.path().canonicalize().unwrap();
        for name in ["w", "home"] {
            std::fs::create_dir_all(place.join(name)).unwrap();
        }
        let rogue = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rogue.py");
        std::fs::copy(rogue, place.join("w/rogue.py")).unwrap();
        let shell = Shell {
            walls: Walls::Best,
            inherited: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            reach: Reach::Listed(Hosts::none()),
            write: Vec::new(),
            home: Some(place.join("home")),
            private: Vec::new(),
            hooks: Hooks::Skip,
        };
        let workspace = Workspace::at(&place.join("w")).unwrap().with_shell(shell);
        let runtime = Runtime {
            registry: Registry::default(),
            hooks: Vec::new(),
            policy: Policy::new(Rules::default()).in_mode(mode),
            workspace: workspace.with_cache(&place.join("cache")),
            limits: Default::default(),
        };
        Site { folder, runtime, notes: Arc::default() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("w").join(name)
    }

    /// A server that behaves in a way.
    pub fn spec(&self, name: &str, way: &str) -> Spec {
        let servant = Servant {
            name: format!("mcp/{name}"),
            program: "python3".into(),
            arguments: ["rogue.py", way, "log"].map(Into::into).to_vec(),
            folder: self.path(""),
            env: Vec::new(),
            keep: Keep {
                workspace: Hold::Write,
                write: Vec::new(),
                network: Hosts::none(),
                walls: None,
            },
        };
        Spec {
            name: name.to_owned(),
            way: Way::Local(Box::new(servant)),
            timeout: Duration::from_secs(20),
            protocol: None,
            digest: "d".into(),
            pins: None,
        }
    }

    pub fn open(&self, specs: Vec<Spec>) -> Servers {
        let berth = Berth::new(&self.runtime.workspace, &self.runtime.policy);
        let keeping: Arc<dyn Keeping> = Arc::clone(&self.notes) as Arc<dyn Keeping>;
        Servers::open(specs, berth, &self.runtime.registry, &keeping, &mut Budget::default())
    }

    /// One server whose tools are there.
    pub async fn with(&self, way: &str) -> Servers {
        let servers = self.open(vec![self.spec("r", way)]);
        servers.look("r").await.unwrap();
        servers
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.call_by(tool, arguments, &Person::default(), CancellationToken::new()).await
    }

    pub async fn call_by(
        &self,
        tool: &str,
        arguments: Value,
        person: &Person,
        cancel: CancellationToken,
    ) -> Outcome {
        let snapshot =
            self.runtime.registry.snapshot(&Scene::default(), &self.runtime.policy).await;
        let call = Call {
            session: SessionId(Default::default()),
            id: CallId(Default::default()),
            by: Author::Model,
            tool: tool.to_owned(),
            arguments: arguments.to_string(),
        };
        self.runtime.travel(&snapshot, call, person, cancel).await
    }

    /// How often a line stands in the server's own log.
    pub fn logged(&self, line: &str) -> usize {
        let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        log.lines().filter(|each| *each == line).count()
    }

    /// Kills the programs that run in this workspace, and nothing else.
    pub fn kill(&self) {
        let here = self.path("");
        let mut killed = 0;
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let cwd = std::fs::read_link(entry.path().join("cwd"));
            let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            if cwd.is_ok_and(|cwd| here.starts_with(&cwd) && cwd.ends_with("w"))
                && line.split('\0').next().is_some_and(|program| program.contains("python"))
            {
                let pid = entry.file_name().into_string().unwrap();
                let status = std::process::Command::new("kill").args(["-9", &pid]).status();
                killed += usize::from(status.unwrap().success());
            }
        }
        assert_eq!(killed, 1);
    }
}
