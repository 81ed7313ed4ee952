//! The place where the sessions work, and what is counted of them.

use crate::words::FILES;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use windlass_engine::session::Looping;
use windlass_engine::{Asked, Engine, Role, Settings, Worker};
use windlass_llm::catalog::Model;
use windlass_llm::wire::Format;
use windlass_llm::{Client, Endpoint};
use windlass_permission::{Policy, Rules};
use windlass_protocol::{Fact, Mode, Outcome, SessionId, TurnEnd};
use windlass_sandbox::{Hooks, Hosts, Reach, Shell, Walls, Workspace};
use windlass_storage::{Log, Sqlite, read_all};
use windlass_testkit::grammar;
use windlass_toolkit::{Bounds, Registry, Runtime};

/// A small window, so that conversations are pruned and summed up.
const WINDOW: (u64, u64) = (16_000, 2_000);

pub(crate) struct Yard {
    pub(crate) log: Arc<dyn Log>,
    runtime: Arc<Runtime>,
    url: String,
    tally: Mutex<Tally>,
}

/// How often what happened.
#[derive(Default)]
pub(crate) struct Tally {
    /// By the kind of fact.
    pub(crate) facts: BTreeMap<&'static str, u64>,
    /// By tool: the calls that came to their end as they should, and all.
    pub(crate) calls: BTreeMap<String, (u64, u64)>,
    /// What the person did.
    pub(crate) acts: BTreeMap<&'static str, u64>,
    pub(crate) ends: BTreeMap<&'static str, u64>,
}

impl Tally {
    pub(crate) fn calls(&self) -> u64 {
        self.calls.values().map(|(_, all)| all).sum()
    }
}

impl Yard {
    pub(crate) async fn open(folder: &Path, url: &str) -> Yard {
        let (root, data) = (folder.join("work"), folder.join("data"));
        std::fs::create_dir_all(root.join("src")).unwrap();
        for file in 0..FILES {
            let line =
                |line: u64| format!("This is line {line} of file {file}, as long as most.\n");
            let text: String = (0..120).map(line).collect();
            std::fs::write(root.join(format!("src/{file}.txt")), text).unwrap();
        }
        let root = root.canonicalize().unwrap();
        let shell = Shell {
            walls: Walls::Best,
            inherited: std::env::vars_os().collect(),
            reach: Reach::Listed(Hosts::none()),
            write: Vec::new(),
            home: Some(folder.join("home")),
            private: vec![data.clone()],
            hooks: Hooks::Skip,
        };
        let workspace = Workspace::at(&root).unwrap().with_shell(shell);
        let rules = serde_json::json!({"*": "allow", "bash": {"*": "allow", "touch *": "ask"}});
        let ground = workspace.ground().unwrap();
        let policy = Policy::new(Rules::parse(&rules).unwrap()).in_mode(Mode::Auto);
        let policy = policy.rooted(&root).placed(ground);
        let (registry, limits) = (Registry::default(), Default::default());
        windlass_tools::register(&registry, &windlass_tools::Senses::default());
        let runtime = Runtime { registry, hooks: Vec::new(), policy, workspace, limits };
        let log: Arc<dyn Log> = Arc::new(Sqlite::open(&data).await.unwrap());
        let (runtime, url) = (Arc::new(runtime), url.to_owned());
        Yard { log, runtime, url, tally: Mutex::default() }
    }

    /// A host with connections of its own. The log, the tools and the workspace stay.
    pub(crate) fn engine(&self) -> Arc<Engine> {
        let endpoint = Endpoint::plain(Format::OpenaiChat, self.url.clone());
        let mut asked = Asked::plainly(Client::new(endpoint).unwrap(), "m");
        let mut model = Model::assumed("m");
        (model.context, model.output) = (Some(WINDOW.0), Some(WINDOW.1));
        asked.model = Arc::new(model);
        let root = self.runtime.workspace.root().display().to_string();
        let mut settings = Settings::new(&root, Some(asked), "p/m");
        settings.looping = Looping::Allow;
        let scout = Worker {
            name: "scout".to_owned(),
            description: "Looks around.".to_owned(),
            role: Role::Subagent,
            prompt: "You look around.".into(),
            bounds: Bounds::default(),
            model: None,
        };
        settings.agents = Arc::new([Arc::new(scout)]);
        Arc::new(Engine::new(Arc::clone(&self.log), Arc::clone(&self.runtime), settings))
    }

    pub(crate) fn tally<T>(&self, look: impl FnOnce(&mut Tally) -> T) -> T {
        look(&mut self.tally.lock().unwrap())
    }

    pub(crate) fn did(&self, act: &'static str) {
        self.tally(|tally| *tally.acts.entry(act).or_default() += 1);
    }

    /// Counts a fact; a call that settles was made with this tool.
    pub(crate) fn saw(&self, fact: &Fact, tool: Option<String>) {
        self.tally(|tally| {
            *tally.facts.entry(fact.kind()).or_default() += 1;
            match (fact, tool) {
                (Fact::Settled { outcome, .. }, Some(tool)) => {
                    let (well, all) = tally.calls.entry(tool).or_default();
                    *well += u64::from(matches!(outcome, Outcome::Completed { .. }));
                    *all += 1;
                }
                (Fact::TurnEnded { end, .. }, _) => {
                    let name = match end {
                        TurnEnd::Done => "done",
                        TurnEnd::Denied => "denied",
                        TurnEnd::Interrupted => "interrupted",
                        TurnEnd::Looped { .. } => "looped",
                        TurnEnd::Limit { .. } => "limit",
                        TurnEnd::Failed { .. } => "failed",
                    };
                    *tally.ends.entry(name).or_default() += 1;
                }
                _ => {}
            }
        });
    }

    async fn facts(&self, session: SessionId) -> Vec<Fact> {
        let log = read_all(&*self.log, session, 0).await.unwrap();
        log.into_iter().map(|record| record.fact).collect()
    }

    /// True if nothing is under way in a closed session. Its log is one that can be.
    pub(crate) async fn check(&self, session: SessionId) -> bool {
        let facts = self.facts(session).await;
        if let Err(why) = grammar::check(&facts) {
            panic!("session {session}: {why}");
        }
        grammar::check_settled(&facts).is_ok()
    }

    /// Removes a closed session, and checks it and those that it began before.
    pub(crate) async fn remove(&self, engine: &Engine, session: SessionId) {
        for row in self.log.list().await.unwrap() {
            if row.parent == Some(session) {
                self.check(row.session).await;
            }
        }
        self.check(session).await;
        engine.delete(session).await.unwrap();
        self.did("deleted");
    }
}
