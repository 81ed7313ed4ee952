//! From what is on the disk to something that runs: the only place that knows all parts.
#![allow(
    clippy::disallowed_methods,
    reason = "the environment and the working directory enter here"
)]

use crate::screen;
use anyhow::{Context, bail};
use std::path::PathBuf;
use std::sync::Arc;
use windlass_engine::{Engine, Settings};
use windlass_llm::{Client, Endpoint, Timers, wire::Format};
use windlass_permission::{Policy, Rules};
use windlass_project::{Config, Layer, Places, Standing, find_root};
use windlass_sandbox::Workspace;
use windlass_storage::Sqlite;
use windlass_toolkit::{Registry, Runtime};

/// Where we are and what is set.
pub(crate) struct Setup {
    pub(crate) places: Places,
    pub(crate) root: PathBuf,
    pub(crate) config: Config,
}

impl Setup {
    /// Reads the config for the folder we are in, and tells what is wrong with it.
    pub(crate) fn read(model: Option<String>) -> anyhow::Result<Setup> {
        let (places, root) = Setup::places()?;
        let env = |name: &str| std::env::var(name).ok();
        let config = Config::load(&places, &root, model, &env)?;
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
        Ok(policy.tightened_by(self.own_folders(workspace)?))
    }

    /// Our own config and sessions are out of bounds, also where they lie in the workspace: keys
    /// and the list of trusted folders are among them.
    fn own_folders(&self, workspace: &Workspace) -> anyhow::Result<Rules> {
        let mut denied = serde_json::Map::new();
        for folder in [&self.places.config, &self.places.data] {
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            if let Ok(below) = folder.strip_prefix(workspace.root()) {
                let all = below.join("*").display().to_string();
                denied.insert(all, "deny".into());
            }
        }
        Ok(Rules::parse(&serde_json::json!({"read": denied, "edit": denied}))?)
    }

    /// Whom to ask, and the model's name there; an error says what is missing.
    fn client(&self) -> anyhow::Result<(Arc<Client>, String)> {
        let Some((name, origin)) = &self.config.model else {
            bail!(
                "no model is set. Set \"model\": \"PROVIDER/MODEL\" in {}, or use --model",
                self.places.config.join("windlass.jsonc").display()
            );
        };
        let Some((provider, model)) = name.split_once('/') else {
            bail!("{origin}: `{name}` is not of the form PROVIDER/MODEL");
        };
        let Some((row, row_origin)) = self.config.providers.get(provider) else {
            let known: Vec<&str> = self.config.providers.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            bail!("{origin}: there is no provider `{provider}`. There is: {known}");
        };
        let Some(format) = Format::named(&row.api) else {
            let known = Format::NAMES.join(", ");
            bail!("{row_origin}: `{}` is not a wire format we speak. We speak: {known}", row.api);
        };
        let base_url = row.base_url.clone();
        if !base_url.starts_with("http://") && !base_url.starts_with("https://") {
            bail!("{row_origin}: `base_url` must begin with http:// or https://");
        }
        let endpoint = Endpoint { format, base_url, api_key: row.api_key.clone() };
        let client = Client::new(endpoint, Timers::default())?;
        Ok((Arc::new(client), model.to_owned()))
    }

    /// How much the chosen model may write at once, if the config says.
    fn max_output(&self) -> Option<u64> {
        let (provider, model) = self.config.model.as_ref()?.0.split_once('/')?;
        self.config.providers.get(provider)?.0.models.get(model)?.output
    }

    /// A host without a model, for looking at things and calling tools.
    pub(crate) async fn host(&self) -> anyhow::Result<Engine> {
        self.engine(None).await
    }

    /// A host that can answer prompts.
    pub(crate) async fn host_with_model(&self) -> anyhow::Result<Engine> {
        self.engine(Some(self.client()?)).await
    }

    async fn engine(&self, model: Option<(Arc<Client>, String)>) -> anyhow::Result<Engine> {
        let workspace = Workspace::at(&self.root)?;
        let runtime = Runtime {
            registry: Registry::default(),
            hooks: Vec::new(),
            policy: self.policy(&workspace)?,
            workspace,
            limits: Default::default(),
        };
        windlass_tools::register(&runtime.registry);
        let name = self.config.model.as_ref().map(|(name, _)| name.clone()).unwrap_or_default();
        let mut settings = Settings::new(&self.workspace(), model, name);
        settings.max_output = self.max_output();
        let log = Sqlite::open(&self.places.data).await?;
        Ok(Engine::new(Arc::new(log), Arc::new(runtime), settings))
    }
}
