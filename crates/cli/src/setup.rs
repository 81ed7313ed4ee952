//! From what is on the disk to something that runs: the only place that knows all parts.
#![allow(
    clippy::disallowed_methods,
    reason = "the environment and the working directory enter here"
)]

use crate::screen;
use anyhow::{Context, bail};
use std::path::{MAIN_SEPARATOR, PathBuf};
use std::sync::Arc;
use windlass_engine::{Asked, Engine, Settings};
use windlass_llm::catalog;
use windlass_permission::{Policy, Rules};
use windlass_project::{Config, Layer, Outside, Places, Standing, find_root};
use windlass_sandbox::Workspace;
use windlass_storage::Sqlite;
use windlass_toolkit::{Registry, Runtime};

/// Where we are and what is set.
pub(crate) struct Setup {
    pub(crate) places: Places,
    pub(crate) root: PathBuf,
    pub(crate) config: Config,
}

/// What lies outside of all config.
struct World;

impl Outside for World {
    fn env(&self, name: &str) -> Option<String> {
        Setup::env(name)
    }

    fn knows(&self, provider: &str) -> Option<&'static str> {
        catalog::provider(provider).map(|row| row.id)
    }
}

impl Setup {
    /// Reads the config for the folder we are in, and tells what is wrong with it.
    pub(crate) fn read(model: Option<String>) -> anyhow::Result<Setup> {
        let (places, root) = Setup::places()?;
        let config = Config::load(&places, &root, model, &World)?;
        match config.standing {
            Standing::Plain | Standing::Trusted => {}
            Standing::Untrusted => screen::note(
                "note: this folder's own config is ignored; `windlass trust` shows it and asks",
            ),
            Standing::Changed => screen::note(
                "note: this folder's own config has changed since you trusted it and is ignored; \
                 `windlass trust` shows it and asks",
            ),
        }
        for diagnostic in config.diagnostics.iter().filter(|diagnostic| !diagnostic.fatal) {
            screen::note(&format!("note: {diagnostic}"));
        }
        if let Some(fatal) = config.diagnostics.iter().find(|diagnostic| diagnostic.fatal) {
            bail!("{fatal}");
        }
        Ok(Setup { places, root, config })
    }

    /// A file the person names on the command line.
    pub(crate) fn file(path: &str, longest: u64) -> anyhow::Result<Vec<u8>> {
        use std::io::Read;
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).with_context(|| format!("{path} cannot be read"))?;
        file.take(longest + 1)
            .read_to_end(&mut bytes)
            .with_context(|| format!("{path} cannot be read"))?;
        if bytes.len() as u64 > longest {
            bail!("{path} is larger than {} MB", longest >> 20);
        }
        Ok(bytes)
    }

    /// An environment variable, if it is set.
    pub(crate) fn env(name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    /// Where the person's files and the project are.
    pub(crate) fn places() -> anyhow::Result<(Places, PathBuf)> {
        let places = Places::find()?;
        let here = std::env::current_dir().context("the current folder cannot be found")?;
        let root = find_root(&here, &places.home);
        Ok((places, root))
    }

    /// The workspace's name as sessions record it: the project's folder, without links.
    pub(crate) fn workspace(&self) -> String {
        self.root.display().to_string()
    }

    /// The rules: the person's own, tightened by the project's and by what always holds.
    fn policy(&self, workspace: &Workspace) -> anyhow::Result<Policy> {
        let mut policy = Policy::default();
        for permission in &self.config.permissions {
            let rules = Rules::parse(&permission.value).map_err(|error| {
                match self.config.permission_origin(permission, &error.pointer) {
                    Some(origin) => anyhow::anyhow!("{origin}: {error}"),
                    None => anyhow::anyhow!("{error}"),
                }
            })?;
            policy = match permission.layer {
                Layer::User | Layer::Flag => Policy::new(rules),
                Layer::Project => policy.tightened_by(rules),
            };
        }
        Ok(policy.tightened_by(self.own_folders(workspace)?).rooted(workspace.root()))
    }

    /// Our own config and sessions are out of bounds, also where they lie in the workspace: keys
    /// and the list of trusted folders are among them.
    fn own_folders(&self, workspace: &Workspace) -> anyhow::Result<Rules> {
        let mut denied = serde_json::Map::new();
        for folder in [&self.places.config, &self.places.data] {
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            if let Ok(below) = folder.strip_prefix(workspace.root()) {
                let all = below.join("*").display().to_string().replace(MAIN_SEPARATOR, "/");
                denied.insert(all, "deny".into());
            }
        }
        Ok(Rules::parse(&serde_json::json!({"read": denied, "edit": denied}))?)
    }

    /// A host without a model, for looking at things and calling tools.
    pub(crate) async fn host(&self) -> anyhow::Result<Engine> {
        self.engine(None).await
    }

    /// A host that can answer prompts.
    pub(crate) async fn host_with(&self, model: Asked) -> anyhow::Result<Engine> {
        self.engine(Some(model)).await
    }

    async fn engine(&self, model: Option<Asked>) -> anyhow::Result<Engine> {
        let workspace = Workspace::at(&self.root)?;
        let runtime = Runtime {
            registry: Registry::default(),
            hooks: Vec::new(),
            policy: self.policy(&workspace)?,
            workspace,
            limits: Default::default(),
        };
        windlass_tools::register(&runtime.registry);
        let name = self.config.model.as_ref().map(|(name, _)| name.as_str()).unwrap_or_default();
        let mut settings = Settings::new(&self.workspace(), model, name);
        settings.trusted = self.config.standing == Standing::Trusted;
        let log = Sqlite::open(&self.places.data).await?;
        Ok(Engine::new(Arc::new(log), Arc::new(runtime), settings))
    }
}
