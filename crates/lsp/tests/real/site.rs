//! A copy of a project, a server for it, and somebody who asks and edits.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_lsp::{
    Answer as Said, At, Code, Keeping, Patience, Question, Review, Row, Spec, known,
};
use windlass_permission::{Decision, Policy, Rules};
use windlass_protocol::{Access, Answer, Author, CallId, Mode, Output, SessionId};
use windlass_sandbox::{Hooks, Hosts, News, Reach, Shell, Walls, Word, Workspace, World};
use windlass_toolkit::{
    Berth, Call, Caller, Cx, Definition, Failure, Intent, Permit, Registry, Runtime, Scene, Tool,
};

/// Where real servers are; says what is left out if they are nowhere.
pub fn eyes(what: &str) -> Option<PathBuf> {
    let eyes = std::env::var_os("WINDLASS_EYES").map(PathBuf::from);
    if eyes.is_none() {
        println!("left out: {what}, as WINDLASS_EYES names no folder with language servers");
    }
    eyes
}

/// Runs something that must not take long.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(Duration::from_secs(150), work).await };
    runtime.block_on(limited).expect("it ends")
}

/// What servers say besides, for whoever looks into a failure.
#[derive(Default)]
pub struct Journal(Mutex<Vec<String>>);

impl Keeping for Journal {
    fn journal(&self, server: &str, line: &str) {
        self.0.lock().unwrap().push(format!("{server}: {line}"));
    }
}

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

/// The tool that asks.
struct Probe(Code);

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
struct Input {
    operation: String,
    path: Option<String>,
    line: Option<u32>,
    character: Option<u32>,
    query: Option<String>,
}

#[async_trait]
impl Tool for Probe {
    type Input = Input;

    fn name(&self) -> &str {
        "probe"
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>("Asks.")
    }

    fn access(&self, input: &Input) -> Vec<Access> {
        let file = input.path.clone().map(|path| Access::Read { path });
        std::iter::once(Access::Search { path: ".".into() }).chain(file).collect()
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let what = match input.operation.as_str() {
            "goToDefinition" => Some(At::Definition),
            "findReferences" => Some(At::References),
            "hover" => Some(At::Hover),
            "goToImplementation" => Some(At::Implementation),
            "prepareCallHierarchy" => Some(At::Calls),
            "incomingCalls" => Some(At::Incoming),
            "outgoingCalls" => Some(At::Outgoing),
            _ => None,
        };
        let question = match (what, input.operation.as_str()) {
            (Some(what), _) => {
                let (line, character) = (input.line.unwrap(), input.character.unwrap());
                Question::At { what, path: input.path.unwrap(), line, character }
            }
            (None, "documentSymbol") => Question::Outline { path: input.path.unwrap() },
            _ => Question::Symbols { path: input.path, query: input.query.unwrap() },
        };
        let answer = self.0.ask(cx, question).await?;
        Ok(Output { text: shown(&answer), ..Output::default() })
    }
}

/// An answer on lines: `path:line:character what | source`.
fn shown(answer: &Said) -> String {
    let mut lines: Vec<String> = answer
        .found
        .iter()
        .map(|found| {
            let place = format!("{}:{}:{}", found.path, found.line, found.character);
            let parts = [place.as_str(), &found.what, &found.source];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            format!("{}{}", " ".repeat(found.depth), parts.join(" | "))
        })
        .collect();
    lines.extend(answer.prose.lines().map(str::to_owned));
    lines.extend(answer.notes.iter().map(|note| format!("[{note}]")));
    lines.join("\n")
}

/// A project with its servers.
pub struct Site {
    _folder: TempDir,
    pub root: PathBuf,
    pub code: Code,
    pub session: SessionId,
    pub workspace: Workspace,
    journal: Arc<Journal>,
    runtime: Runtime,
    policy: Policy,
    news: News,
}

/// A row that this program knows, with the program of the folder of servers.
pub fn row(eyes: &Path, name: &str) -> Row {
    let known = known().into_iter().find(|row| row.name == name);
    let mut row = known.unwrap_or_else(|| panic!("no row is called {name}"));
    if name == "typescript" {
        // A project brings it; these do not.
        let program = eyes.join("npm/node_modules/.bin/tsc");
        row.command = vec![program.display().to_string(), "--lsp".into(), "--stdio".into()];
        row.local.clear();
    }
    row.when.clear();
    row
}

impl Site {
    /// A copy of a project that only these servers look at.
    pub fn new(eyes: &Path, project: &str, rows: Vec<Row>) -> Site {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let place = folder.path().canonicalize().unwrap();
        let root = place.join("w");
        std::fs::create_dir(place.join("home")).unwrap();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/projects").join(project);
        copy(&from, &root);
        let mut path = OsString::new();
        for part in ["npm/node_modules/.bin", "eyes/bin", "ra/bin", "n22"] {
            path.push(eyes.join(part));
            path.push(":");
        }
        path.push(std::env::var_os("PATH").unwrap());
        let mut inherited = vec![("PATH".into(), path)];
        for name in ["HOME", "CARGO_HOME", "RUSTUP_HOME"] {
            inherited.extend(std::env::var_os(name).map(|value| (name.into(), value)));
        }
        let shell = Shell {
            walls: Walls::Best,
            inherited,
            reach: Reach::Listed(Hosts::none()),
            write: Vec::new(),
            home: Some(place.join("home")),
            private: Vec::new(),
            hooks: Hooks::Skip,
        };
        let workspace = Workspace::at(&root).unwrap().with_shell(shell);
        let workspace = workspace.with_cache(&place.join("cache"));
        let policy = Policy::new(Rules::default()).in_mode(Mode::Auto);
        let journal = Arc::new(Journal::default());
        let code = Code::open(Spec {
            rows,
            berth: Berth::new(&workspace, &policy),
            keeping: Arc::<Journal>::clone(&journal),
            patience: Patience::default(),
        });
        let registry = Registry::default();
        registry.register(Probe(code.clone()));
        let runtime = Runtime {
            registry,
            hooks: Vec::new(),
            policy: policy.clone(),
            workspace: workspace.clone(),
            limits: Default::default(),
        };
        let session = SessionId(Default::default());
        let news = workspace.news(session);
        Site { _folder: folder, root, code, session, workspace, journal, runtime, policy, news }
    }

    /// Asks something: `operation path:line:character`, `operation path` or `operation ? query`.
    pub async fn ask(&self, question: &str) -> String {
        let (operation, about) = question.split_once(' ').unwrap();
        let arguments = match about.split_once("? ") {
            Some((path, query)) => {
                let path = Some(path.trim()).filter(|path| !path.is_empty());
                serde_json::json!({"operation": operation, "path": path, "query": query})
            }
            None => {
                let mut parts = about.split(':');
                let path = parts.next();
                let mut number = || parts.next().map(|part| part.parse::<u32>().unwrap());
                let (line, character) = (number(), number());
                serde_json::json!({"operation": operation, "path": path, "line": line, "character": character})
            }
        };
        self.call(arguments).await
    }

    async fn call(&self, arguments: Value) -> String {
        let snapshot =
            self.runtime.registry.snapshot(&Scene::default(), &self.runtime.policy).await;
        let call = Call {
            session: self.session,
            id: CallId(Default::default()),
            by: Author::Model,
            tool: "probe".into(),
            arguments: arguments.to_string(),
        };
        let outcome = self.runtime.travel(&snapshot, call, &Yes, CancellationToken::new()).await;
        outcome.text().to_owned()
    }

    /// The world of an edit of a file.
    pub fn world(&self, path: &str) -> Arc<World> {
        let access = Access::Edit { path: path.to_owned() };
        let decision = self.policy.decide(vec![access.clone()], &[access]);
        let Decision::Allowed(grant) = decision else { panic!("an edit is not allowed") };
        Arc::new(self.workspace.look(grant))
    }

    /// Writes a file as a tool would, and says what servers make of it.
    pub async fn edit(&self, path: &str, text: &str) -> Option<Review> {
        self.timed(path, text).await.0
    }

    /// The same, and how long the waiting took.
    pub async fn timed(&self, path: &str, text: &str) -> (Option<Review>, Duration) {
        let world = self.world(path);
        let before = self.code.before(&world, &[path.to_owned()]);
        std::fs::write(self.root.join(path), text).unwrap();
        let began = Instant::now();
        let now = vec![(path.to_owned(), Some(text.into()))];
        let cancel = CancellationToken::new();
        let review = self.code.after(&world, self.session, before, now, &cancel).await;
        (review, began.elapsed())
    }

    /// What a file holds.
    pub fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).unwrap()
    }

    /// What the session is told between its steps, if it comes soon enough.
    pub async fn told(&mut self, limit: Duration) -> Option<String> {
        match tokio::time::timeout(limit, self.news.recv()).await.ok().flatten()? {
            Word::Tell(text) => Some(text),
            Word::Job(job) => panic!("no job was begun: {:?}", job.id()),
        }
    }

    /// What servers said besides.
    pub fn journal(&self) -> String {
        self.journal.0.lock().unwrap().join("\n")
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}
