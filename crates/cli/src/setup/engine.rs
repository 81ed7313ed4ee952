//! An engine for this folder: its tools, its rules, what its model is told.

use super::{Acts, Setup, Wishes};
use crate::screen;
use anyhow::Context;
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::brief::{Advice, Brief, Day, Git};
use windlass_engine::session::Looping;
use windlass_engine::{Asked, Engine, Settings};
use windlass_permission::Level;
use windlass_project::{Instruction, Standing};
use windlass_protocol::Mode;
use windlass_sandbox::{Walls, Workspace};
use windlass_storage::Sqlite;
use windlass_toolkit::{Budget, Registry, Runtime};
use windlass_tools::Senses;

/// How long tools that nobody knows yet may hold up the first prompt.
const MOMENT: Duration = Duration::from_secs(2);
/// How long whoever calls a tool by its name waits for those that nobody knows yet.
const ARRIVAL: Duration = Duration::from_secs(30);

impl Setup {
    /// A host without a model, for looking at things.
    pub(crate) async fn host(&self) -> anyhow::Result<Engine> {
        self.engine(None, Acts::Nothing, Wishes::default()).await
    }

    /// A host without a model, for calling tools.
    pub(crate) async fn host_for(&self, acts: Acts) -> anyhow::Result<Engine> {
        self.engine(None, acts, Wishes::default()).await
    }

    /// A host that can answer prompts.
    pub(crate) async fn host_with(&self, model: Asked, wishes: Wishes) -> anyhow::Result<Engine> {
        self.engine(Some(model), Acts::Commands, wishes).await
    }

    /// Whether a model is asked for titles. One that is on this machine is only where somebody wants it:
    /// it has better things to do.
    fn titles(&self, model: Option<&Asked>) -> bool {
        let hosted = model.is_some_and(|asked| !asked.client.is_local());
        self.config.titles.unwrap_or(hosted)
    }

    /// Says what a person should know before commands run.
    fn warn(&self, acts: Acts) {
        if self.walls() == Walls::Off {
            screen::note("note: the sandbox is off: commands run with all your rights");
        }
        if acts != Acts::Commands {
            return;
        }
        if self.lacks_sandbox() {
            screen::note(
                "warning: NO SANDBOX on this machine: what you say yes to runs with all your \
                 rights. `windlass doctor` says what is missing",
            );
        }
        for note in self.writable().1 {
            screen::note(&format!("note: {note}"));
        }
    }

    /// Says that there is advice which is not taken.
    fn note_advice(&self) {
        if self.config.standing == Standing::Plain && windlass_project::has_instructions(&self.root)
        {
            screen::note(
                "note: this folder's AGENTS.md is not read until you trust the folder: `windlass trust`",
            );
        }
    }

    /// What the model is told before everything else.
    fn brief(&self, mode: Mode) -> Brief {
        let trusted = self.config.standing == Standing::Trusted;
        // Of a folder that was not looked at no file is opened for it.
        let branch = trusted.then(|| windlass_project::branch(&self.root)).flatten();
        let git = match branch {
            Some(branch) => Git::Branch(branch),
            None if windlass_project::is_repository(&self.root) => Git::Yes,
            None => Git::No,
        };
        let found = windlass_project::instructions(&self.places, &self.root, &self.config);
        let advice = |Instruction { path, text, length }| Advice { path, text, length };
        Brief {
            folder: self.workspace(),
            platform: std::env::consts::OS.to_owned(),
            day: Some(Day::of(crate::now())),
            git,
            mode: Some(mode),
            instructions: found.into_iter().map(advice).collect(),
        }
    }

    /// Where calls run, with nothing that is built in and nobody's tools yet.
    pub(crate) fn runtime(&self, mode: Mode) -> anyhow::Result<Runtime> {
        let shell = self.shell()?;
        let workspace = Workspace::at(&self.root)?.with_shell(shell).with_cache(&self.places.cache);
        let workspace = workspace.with_inside(self.inside()?);
        let ground = workspace.ground().context("commands have no ground here")?;
        Ok(Runtime {
            registry: Registry::default(),
            hooks: Vec::new(),
            policy: self.policy(ground, mode)?,
            workspace,
            limits: Default::default(),
        })
    }

    async fn engine(
        &self,
        model: Option<Asked>,
        acts: Acts,
        wishes: Wishes,
    ) -> anyhow::Result<Engine> {
        let agent = wishes.agent.as_deref();
        let profiles = self.profiles()?;
        let agents = self.workers(&profiles, model.as_ref(), agent)?;
        self.warn(acts);
        let mode = match acts {
            Acts::Nothing => self.mode(),
            Acts::Files | Acts::Commands => self.mode_here(),
        };
        let mut runtime = self.runtime(mode)?;
        if let Some(rules) = wishes.rules {
            runtime.policy = runtime.policy.tightened_by(rules);
        }
        let senses = match acts {
            Acts::Nothing => Senses::default(),
            Acts::Files | Acts::Commands => self.senses(&runtime),
        };
        windlass_tools::register(&runtime.registry, &senses);
        let company = self.company(&runtime).await?;
        runtime.hooks = company.hooks;
        let budget = self.config.tools.budget.map(|tokens| Budget::new(tokens as usize));
        let mut budget = budget.unwrap_or_default();
        // A model can find later what is not there yet; whoever calls a tool by its name cannot.
        let (moment, wait) = match &model {
            Some(_) => (MOMENT, None),
            None => (ARRIVAL, Some(ARRIVAL)),
        };
        if acts != Acts::Nothing {
            self.custom_tools(&runtime, moment, &mut budget).await;
        }
        self.servers(&runtime, acts, wait, &mut budget).await?;
        let looping = match runtime.policy.says("doom_loop") {
            Some(Level::Allow) => Looping::Allow,
            Some(Level::Deny) => Looping::Deny,
            Some(Level::Ask) | None => Looping::Ask,
        };
        let name = self.config.model.as_ref().map(|(name, _)| name.as_str()).unwrap_or_default();
        let asks = model.is_some();
        let mut settings = Settings::new(&self.workspace(), model, name);
        if asks {
            // What stays open says itself that the folder is not trusted.
            if !wishes.stays {
                self.note_advice();
            }
            settings.system = self.brief(mode).text().into();
        }
        settings.titles = wishes.stays && self.titles(settings.model.as_ref());
        settings.trusted = self.config.standing == Standing::Trusted;
        settings.remember = self.memory();
        settings.limits = wishes.limits;
        settings.looping = looping;
        if !wishes.system.trim().is_empty() {
            settings.system = format!("{}\n{}\n", settings.system, wishes.system.trim()).into();
        }
        if acts != Acts::Nothing {
            settings.skills = self.skills()?;
        }
        settings.agents = agents;
        if let Some(agent) = agent {
            settings.agent = crate::agent::chosen(&profiles, agent)?;
        }
        let log = Sqlite::open(&self.places.data).await?;
        Ok(Engine::new(Arc::new(log), Arc::new(runtime), settings))
    }
}
