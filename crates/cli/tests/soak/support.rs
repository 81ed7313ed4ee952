//! The workspace, log and tools of the soak test, and counters of what happens.

use crate::scripted_model::FILE_COUNT;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use windlass_engine::session::LoopDetectionPolicy;
use windlass_engine::{AgentDefinition, Engine, EngineSettings, ModelHandle};
use windlass_llm::catalog::Model;
use windlass_llm::wire_format::WireFormat;
use windlass_llm::{Client, Endpoint};
use windlass_permission::{PermissionRules, Policy};
use windlass_protocol::{AgentRole, CallOutcome, Fact, PermissionMode, SessionId, TurnEndReason};
use windlass_sandbox::{
    CommandSandboxConfig, GitHookMode, HostAllowlist, NetworkPolicy, SandboxMode, Workspace,
};
use windlass_storage::{Log, SqliteLog, read_all};
use windlass_testkit::log_grammar;
use windlass_toolkit::{AgentRestrictions, Registry, ToolRuntime};

/// Context and output limit of the model in tokens, small enough for pruning and compaction.
const MODEL_LIMITS: (u64, u64) = (16_000, 2_000);

/// Everything that engines of the soak test share.
pub(crate) struct SoakEnv {
    pub(crate) log: Arc<dyn Log>,
    runtime: Arc<ToolRuntime>,
    url: String,
    counters: Mutex<SoakCounters>,
}

/// Counters of facts, calls, actions of users and ends of turns.
#[derive(Default)]
pub(crate) struct SoakCounters {
    /// By kind of fact.
    pub(crate) facts: BTreeMap<&'static str, u64>,
    /// By tool: completed calls, and all calls.
    pub(crate) calls: BTreeMap<String, (u64, u64)>,
    /// By action of a simulated user.
    pub(crate) actions: BTreeMap<&'static str, u64>,
    pub(crate) ends: BTreeMap<&'static str, u64>,
}

impl SoakCounters {
    pub(crate) fn calls(&self) -> u64 {
        self.calls.values().map(|(_, all)| all).sum()
    }
}

impl SoakEnv {
    pub(crate) async fn open(folder: &Path, url: &str) -> SoakEnv {
        let (root, data) = (folder.join("work"), folder.join("data"));
        std::fs::create_dir_all(root.join("src")).unwrap();
        for file in 0..FILE_COUNT {
            let line =
                |line: u64| format!("This is line {line} of file {file}, as long as most.\n");
            let text: String = (0..120).map(line).collect();
            std::fs::write(root.join(format!("src/{file}.txt")), text).unwrap();
        }
        let root = root.canonicalize().unwrap();
        let shell = CommandSandboxConfig {
            sandbox_mode: SandboxMode::Best,
            inherited_env: std::env::vars_os().collect(),
            network_policy: NetworkPolicy::Listed(HostAllowlist::none()),
            readable_folders: Vec::new(),
            writable_folders: Vec::new(),
            home: Some(folder.join("home")),
            additional_folders: Vec::new(),
            private_paths: vec![data.clone()],
            cache_folder: None,
            git_hooks: GitHookMode::Skip,
        };
        let workspace = Workspace::open(&root).unwrap().with_shell(shell);
        let rules = serde_json::json!({"*": "allow", "bash": {"*": "allow", "touch *": "ask"}});
        let machine_paths = workspace.machine_paths().unwrap();
        let policy =
            Policy::new(PermissionRules::parse(&rules).unwrap()).with_mode(PermissionMode::Auto);
        let policy = policy.with_root(&root).with_path_lookup(machine_paths);
        let (registry, limits) = (Registry::default(), Default::default());
        windlass_tools::register(&registry, &windlass_tools::ToolIntegrations::default());
        let runtime = ToolRuntime { registry, hooks: Vec::new(), policy, workspace, limits };
        let log: Arc<dyn Log> = Arc::new(SqliteLog::open(&data).await.unwrap());
        let (runtime, url) = (Arc::new(runtime), url.to_owned());
        SoakEnv { log, runtime, url, counters: Mutex::default() }
    }

    /// Creates an engine with its own connections, which shares log, tools and workspace.
    pub(crate) fn create_engine(&self) -> Arc<Engine> {
        let endpoint = Endpoint::generic(WireFormat::OpenaiChat, self.url.clone());
        let mut model_handle = ModelHandle::from_model_name(Client::new(endpoint).unwrap(), "m");
        let mut model = Model::unlisted("m");
        (model.context, model.output) = (Some(MODEL_LIMITS.0), Some(MODEL_LIMITS.1));
        model_handle.model = Arc::new(model);
        let root = self.runtime.workspace.root().display().to_string();
        let mut settings = EngineSettings::new(&root, Some(model_handle), "p/m");
        settings.loop_rules = LoopDetectionPolicy::Allow.into();
        let agent = AgentDefinition {
            name: "scout".to_owned(),
            description: "Looks around.".to_owned(),
            role: AgentRole::Subagent,
            prompt: "You look around.".into(),
            replaces_prompt: false,
            max_steps: None,
            options: Default::default(),
            restrictions: AgentRestrictions::default(),
            fallback_models: Vec::new(),
            model: None,
        };
        settings.agents = Arc::new([Arc::new(agent)]);
        Arc::new(Engine::new(Arc::clone(&self.log), Arc::clone(&self.runtime), settings))
    }

    pub(crate) fn counters<T>(&self, access: impl FnOnce(&mut SoakCounters) -> T) -> T {
        access(&mut self.counters.lock().unwrap())
    }

    pub(crate) fn count_action(&self, action: &'static str) {
        self.counters(|counters| *counters.actions.entry(action).or_default() += 1);
    }

    /// Counts a fact. `tool` is the tool of a call that settled.
    pub(crate) fn count_fact(&self, fact: &Fact, tool: Option<String>) {
        self.counters(|counters| {
            *counters.facts.entry(fact.kind()).or_default() += 1;
            match (fact, tool) {
                (Fact::CallSettled { outcome, .. }, Some(tool)) => {
                    let (completed, all) = counters.calls.entry(tool).or_default();
                    *completed += u64::from(matches!(outcome, CallOutcome::Completed { .. }));
                    *all += 1;
                }
                (Fact::TurnEnded { end, .. }, _) => {
                    let name = match end {
                        TurnEndReason::Completed => "completed",
                        TurnEndReason::Denied => "denied",
                        TurnEndReason::Interrupted => "interrupted",
                        TurnEndReason::LoopDetected { .. } => "loop",
                        TurnEndReason::LimitReached { .. } => "limit",
                        TurnEndReason::Failed { .. } => "failed",
                    };
                    *counters.ends.entry(name).or_default() += 1;
                }
                _ => {}
            }
        });
    }

    async fn facts(&self, session: SessionId) -> Vec<Fact> {
        let log = read_all(&*self.log, session, 0).await.unwrap();
        log.into_iter().map(|record| record.fact).collect()
    }

    /// Checks the log of a closed session. True if no turn is unfinished.
    pub(crate) async fn check_log(&self, session: SessionId) -> bool {
        let facts = self.facts(session).await;
        if let Err(why) = log_grammar::check(&facts) {
            panic!("session {session}: {why}");
        }
        log_grammar::check_settled(&facts).is_ok()
    }

    /// Checks a closed session and its subagents, and deletes it.
    pub(crate) async fn delete(&self, engine: &Engine, session: SessionId) {
        // The time was up before the first turn, and a session without a turn is not stored.
        if self.facts(session).await.is_empty() {
            return;
        }
        for row in self.log.list(&Default::default()).await.unwrap() {
            if row.parent == Some(session) {
                self.check_log(row.session).await;
            }
        }
        self.check_log(session).await;
        engine.delete(session).await.unwrap();
        self.count_action("deleted");
    }
}
