//! A workspace with servers in it, and somebody who asks them.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use windlass_lsp::{Code, Keeping, Patience, Row, Spec};
use windlass_permission::{Decision, Policy, Rules};
use windlass_protocol::Access;
use windlass_sandbox::{Hooks, Hosts, Reach, Shell, Walls, Workspace, World};
use windlass_toolkit::Berth;
use windlass_toolkit::health::State;

/// How long a server may take to start, on a machine that has much else to do.
pub const START: Duration = Duration::from_secs(20);
/// How long it may take to answer.
pub const ANSWER: Duration = Duration::from_secs(2);
/// How much longer a call may take than its limit.
pub const SLACK: Duration = Duration::from_millis(200);

/// Runs something that must not take long.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.unwrap();
    let limited = async { tokio::time::timeout(Duration::from_secs(100), work).await };
    runtime.block_on(limited).expect("it ends")
}

/// What was written down.
#[derive(Default)]
pub struct Notes(pub Mutex<Vec<String>>);

impl Keeping for Notes {
    fn journal(&self, server: &str, line: &str) {
        self.0.lock().unwrap().push(format!("{server}: {line}"));
    }
}

/// A workspace.
pub struct Site {
    folder: TempDir,
    pub workspace: Workspace,
    pub world: Arc<World>,
    pub notes: Arc<Notes>,
    pub patience: Patience,
}

/// The interpreter itself, which starts faster than what stands for it in some homes.
fn python() -> &'static str {
    static PYTHON: OnceLock<String> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let mut command = std::process::Command::new("python3");
        let said = command.args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    })
}

impl Site {
    pub fn new() -> Site {
        Site::within(Walls::Best)
    }

    pub fn within(walls: Walls) -> Site {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let place = folder.path().canonicalize().unwrap();
        for name in ["w", "home"] {
            std::fs::create_dir_all(place.join(name)).unwrap();
        }
        let rogue = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rogue.py");
        std::fs::copy(rogue, place.join("w/rogue.py")).unwrap();
        let shell = Shell {
            walls,
            inherited: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            reach: Reach::Listed(Hosts::none()),
            write: Vec::new(),
            home: Some(place.join("home")),
            private: Vec::new(),
            hooks: Hooks::Skip,
        };
        let workspace = Workspace::at(&place.join("w")).unwrap().with_shell(shell);
        let workspace = workspace.with_cache(&place.join("cache"));
        let access = Access::Read { path: "a.x".into() };
        let decided = Policy::new(Rules::default()).decide(vec![access.clone()], &[access]);
        let Decision::Allowed(grant) = decided else { panic!("reading needs nobody") };
        let world = Arc::new(workspace.look(grant));
        let patience = Patience { start: START, answer: ANSWER, ..Patience::default() };
        Site { folder, workspace, world, notes: Arc::default(), patience }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("w").join(name)
    }

    /// What its processes are known by.
    pub fn mark(&self) -> String {
        self.folder.path().file_name().unwrap().to_str().unwrap().to_owned()
    }

    /// A server that behaves in a way, for files of an end.
    pub fn row(&self, name: &str, way: &str, end: &str) -> Row {
        let rogue = self.path("rogue.py");
        serde_json::from_value(json!({
            "name": name, "language": name, "command": [python(), rogue, way, self.mark()],
            "extensions": {end: "x"}, "roots": [["root.toml"]], "alone": true,
            "env": {"ROGUE_CACHE": "{cache}/inner"}, "install": "`get it`",
        }))
        .unwrap()
    }

    pub fn open(&self, rows: Vec<Row>) -> Code {
        let berth = Berth::new(&self.workspace, &Policy::new(Rules::default()));
        let keeping: Arc<dyn Keeping> = Arc::clone(&self.notes) as Arc<dyn Keeping>;
        Code::open(Spec { rows, berth, keeping, patience: self.patience })
    }

    pub async fn ask(
        &self,
        code: &Code,
        path: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, String> {
        code.probe(&self.world, path, method, params, (START, ANSWER)).await
    }

    /// True if the server of a file answers as it should.
    pub async fn echoes(&self, code: &Code, path: &str) -> bool {
        let said = self.ask(code, path, "echo", json!({"a": 1})).await;
        if said != Ok(json!({"a": 1})) {
            println!("{path}: {said:?}");
        }
        said == Ok(json!({"a": 1}))
    }

    /// So many processes of this workspace's servers run.
    pub fn processes(&self) -> usize {
        let mark = self.mark();
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        // What encloses a server has its words, too.
        let ours = lines.filter(|line| {
            let line = String::from_utf8_lossy(line);
            line.contains("python") && line.split('\0').any(|word| word == mark)
        });
        ours.count()
    }

    /// Waits until so many processes run, for a while.
    pub async fn comes_to(&self, count: usize, limit: Duration) -> bool {
        let began = Instant::now();
        while self.processes() != count {
            if began.elapsed() > limit {
                println!("there are {}, not {count}", self.processes());
                return false;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        true
    }

    /// Nothing of a server is left.
    pub async fn is_quiet(&self) -> bool {
        self.comes_to(0, Duration::from_secs(3)).await
    }
}

/// How the server of this name is doing.
pub fn state(code: &Code, name: &str) -> State {
    let states = code.states();
    states.into_iter().find(|(known, ..)| known == name).map_or(State::Idle, |(.., state)| state)
}
