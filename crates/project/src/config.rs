//! The effective config: what the person says, what a trusted project adds, what flags override,
//! and where each value came from. What the managed policy says holds whatever they say.

mod agents;
mod bounds;
mod hooks;
mod managed;
mod mcp;
mod options;
mod plugins;
mod senses;
mod settings;
mod shown;

pub(crate) use agents::Described;
pub use bounds::Sandbox;
pub use hooks::{Form, HookCommand, HookSpec};
pub(crate) use hooks::{point as hook_point, read as hook_entry};
pub use mcp::{OAuth, Server, Way};
pub(crate) use mcp::{listed, resolved};
pub use options::Chosen;
pub use senses::{Said, Senses};
pub use settings::{
    Agent, Formatter, LanguageServer, McpClient, McpKind, McpLogin, McpServer, Model, Provider,
    Rows, ScreenSettings, Search, SearchEngine, Settings, Timeouts, ToolSettings, Walls,
    WebSettings,
};
pub(crate) use shown::wishes;

use crate::file::{self, Diagnostic, File, Layer, Origin};
use crate::plugins::{Loaded, Plugins};
use crate::trust::{Standing, Surveyed, Trust};
use crate::{Error, Places, pointer};
use bounds::Held;
use options::Scope;
use secrecy::SecretString;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use windlass_protocol::Mode;

/// Everything that was said, put together.
pub struct Config {
    /// The model to use, and who says so.
    pub model: Option<(String, Origin)>,
    /// The providers, and who brings each.
    pub providers: BTreeMap<String, (Provider, Origin)>,
    /// Permission rules as they were written, file by file: the managed policy's, the person's own,
    /// the project's.
    pub permissions: Vec<Permission>,
    /// Patterns of files that advise the model, and where each stands.
    pub instructions: Vec<(String, Origin)>,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// How the project's folder stands.
    pub standing: Standing,
    /// The providers something is wrong with, by their own names; they cannot be used.
    pub broken: BTreeSet<String>,
    /// The mode that was chosen, and who says so; never laxer than `most_lax`.
    pub mode: Option<(Mode, Origin)>,
    /// The laxest mode there may be, also where none was chosen.
    pub most_lax: Option<Mode>,
    /// What commands are kept in.
    pub sandbox: Sandbox,
    /// Whether a session's model is asked for a title, if anybody says so.
    pub titles: Option<bool>,
    /// Servers of the Model Context Protocol, and who brings each.
    pub servers: BTreeMap<String, (Server, Origin)>,
    /// Hooks: the person's own, the project's, those of plugins.
    pub hooks: Vec<HookSpec>,
    /// Plugins that are as they were when the person added them.
    pub plugins: Vec<Loaded>,
    /// How tools of others are told of.
    pub tools: ToolSettings,
    /// What a model sees of code and of the web.
    pub senses: Senses,
    /// How the screen looks.
    pub screen: ScreenSettings,
    held: Held,
    places: Places,
    root: PathBuf,
    files: Vec<(Layer, File)>,
    shown: Vec<(String, String, Origin)>,
    options: Vec<(Scope, Chosen)>,
    agents: Vec<Described>,
    documents: BTreeMap<String, String>,
    surveyed: Vec<Surveyed>,
}

/// What the command line says, over all files but the managed policy.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// The model, as `provider/model`.
    pub model: Option<String>,
    /// The mode.
    pub mode: Option<Mode>,
    /// Whether commands are kept in a sandbox.
    pub sandbox: Option<bool>,
}

/// The usual agent.
pub const AGENT: &str = "build";

/// How many patterns of instructions count.
const MOST_PATTERNS: usize = 32;

/// What a config can refer to.
pub trait Outside {
    /// The value of an environment variable.
    fn env(&self, name: &str) -> Option<String>;
    /// The own name of a provider that is known without any config, whichever of its names it is
    /// called by. A project cannot change it.
    fn knows(&self, provider: &str) -> Option<&'static str>;
}

/// Where a project keeps its config, weakest first.
pub const PROJECT_FILES: &[&str] = &["windlass.jsonc", ".windlass/windlass.jsonc"];

impl Config {
    /// Reads the managed policy, what the person says and, if its folder is trusted, what the
    /// project says. `outside` gives the environment and the providers that are known anyway.
    pub fn load(
        places: &Places,
        root: &Path,
        flags: Flags,
        outside: &dyn Outside,
    ) -> Result<Config, Error> {
        let mut texts = Vec::new();
        if let Some(path) = &places.managed
            && let Some(text) = managed::read(path)?
        {
            texts.push((Layer::Managed, path.clone(), text));
        }
        let own = places.config.join("windlass.jsonc");
        if let Some(text) = file::read(&own)? {
            texts.push((Layer::User, own, text));
        }
        let look = Trust::read(places)?.look(root)?;
        texts.extend(look.texts.into_iter().map(|(path, text)| (Layer::Project, path, text)));
        let mut config = Config::of(texts, flags, outside, (places, root));
        config.standing = look.standing;
        config.documents = look.documents;
        config.surveyed = look.files;
        if let Some((path, text)) = look.mcp {
            config.take_mcp_list(&path, &text);
        }
        let (plugins, left_out) = Plugins::read(places)?.load();
        config.diagnostics.extend(left_out);
        config.take_plugins(plugins, outside);
        for path in look.links {
            let origin = Origin { layer: Layer::Project, file: Some(path), line: 1, column: 1 };
            let message = "a link is not followed; put the file itself there".to_owned();
            config.diagnostics.push(Diagnostic { origin, message, fatal: false });
        }
        Ok(config)
    }

    /// What files would say together, from weak to strong, before anybody writes them.
    pub(crate) fn tried(
        texts: Vec<(Layer, PathBuf, String)>,
        outside: &dyn Outside,
        (places, root): (&Places, &Path),
    ) -> Config {
        Config::of(texts, Flags::default(), outside, (places, root))
    }

    /// Puts together what files say, the managed policy first, then from weak to strong.
    fn of(
        texts: Vec<(Layer, PathBuf, String)>,
        flags: Flags,
        outside: &dyn Outside,
        (places, root): (&Places, &Path),
    ) -> Config {
        let mut config = Config {
            model: None,
            providers: BTreeMap::new(),
            permissions: Vec::new(),
            instructions: Vec::new(),
            diagnostics: Vec::new(),
            standing: Standing::Plain,
            broken: BTreeSet::new(),
            mode: None,
            most_lax: None,
            sandbox: Sandbox::default(),
            held: Held::default(),
            places: places.clone(),
            root: root.to_owned(),
            files: Vec::new(),
            shown: Vec::new(),
            options: Vec::new(),
            agents: Vec::new(),
            titles: None,
            servers: BTreeMap::new(),
            hooks: Vec::new(),
            plugins: Vec::new(),
            tools: ToolSettings::default(),
            senses: Senses::default(),
            screen: ScreenSettings::default(),
            documents: BTreeMap::new(),
            surveyed: Vec::new(),
        };
        for (layer, path, text) in texts {
            let mut file = File::parse(&path, layer, &text);
            config.take(layer, &mut file, outside);
            // A project's mistakes are its own: they do not keep the person from their provider.
            let broken = std::mem::take(&mut file.broken).into_iter();
            let own = |name: &String| match layer {
                Layer::Project => {
                    let row = config.providers.get(name).map(|(_, origin)| origin.layer);
                    outside.knows(name).is_none() && row != Some(Layer::User)
                }
                Layer::User | Layer::Flag => true,
                Layer::Managed | Layer::Plugin => false,
            };
            let named = |name: String| outside.knows(&name).map_or(name, str::to_owned);
            config.broken.extend(broken.filter(own).map(named));
            config.diagnostics.append(&mut file.diagnostics);
            config.files.push((layer, file));
        }
        config.take_flags(flags);
        config
    }

    fn take_flags(&mut self, flags: Flags) {
        let origin = Origin { layer: Layer::Flag, file: None, line: 0, column: 0 };
        if let Some(model) = flags.model {
            self.show("model", &model, &origin);
            self.model = Some((model, origin.clone()));
        }
        if let Some(mode) = flags.mode {
            self.choose_mode(mode, origin.clone());
        }
        if let Some(enabled) = flags.sandbox {
            self.switch_sandbox(enabled, origin);
        }
    }

    fn take(&mut self, layer: Layer, file: &mut File, outside: &dyn Outside) {
        if layer == Layer::Managed {
            managed::keep_to_its_own(file);
        }
        let value = Value::Object(file.value.clone());
        let settings: Settings = match serde_json::from_value(value) {
            Ok(settings) => settings,
            Err(error) => {
                file.fault("", &error.to_string());
                return;
            }
        };
        if let Some(model) = settings.model {
            let origin = file.origin("/model").clone();
            self.show("model", &model, &origin);
            self.model = Some((model, origin));
        }
        if let Some(titles) = settings.titles {
            self.show("titles", &titles.to_string(), &file.origin("/titles").clone());
            self.titles = Some(titles);
        }
        for (name, provider) in settings.provider {
            self.take_provider(layer, file, name, provider, outside);
        }
        for (name, server) in settings.mcp {
            self.take_server(layer, file, (name, server), outside);
        }
        self.take_hooks(layer, settings.hooks, file);
        self.take_tools(layer, settings.tools, file);
        self.take_senses(layer, file, (settings.lsp, settings.formatter), outside);
        self.take_web(layer, file, (settings.search, settings.web), outside);
        self.take_screen(layer, settings.tui, file);
        self.take_agents(layer, file);
        self.take_instructions(settings.instructions, file);
        self.take_bounds(layer, settings.mode, settings.sandbox, file);
        if let Some(permission) = settings.permission {
            self.show_permission(&permission, "", file);
            let file = self.files.len();
            self.permissions.push(Permission { layer, value: permission, file });
        }
    }

    /// A repository binds no keys and paints no questions.
    fn take_screen(&mut self, layer: Layer, said: Option<ScreenSettings>, file: &mut File) {
        let Some(said) = said else { return };
        if layer == Layer::Project {
            return file.fault("/tui", "how the screen looks and its keys are yours to say");
        }
        if let Some(value) = file.at("/tui").cloned() {
            self.show_all("tui", &value, "/tui", file);
        }
        self.screen = said;
    }

    /// Patterns add up, so that a project does not silence the person.
    fn take_instructions(&mut self, patterns: Vec<String>, file: &mut File) {
        for (index, pattern) in patterns.into_iter().enumerate() {
            let pointer = format!("/instructions/{index}");
            let full = self.instructions.len() >= MOST_PATTERNS;
            match crate::instructions::objection(&pattern) {
                Some(why) => file.fault(&pointer, &format!("`{pattern}` {why}")),
                None if full => {
                    file.fault(&pointer, &format!("there are more than {MOST_PATTERNS} of these"));
                }
                None => {
                    let origin = file.origin(&pointer).clone();
                    self.show("instructions", &pattern, &origin);
                    self.instructions.push((pattern, origin));
                }
            }
        }
    }

    /// A provider is taken whole. One that a project names like the person's own is ignored, so
    /// that their key never goes to an address a project chose.
    fn take_provider(
        &mut self,
        layer: Layer,
        file: &mut File,
        name: String,
        mut provider: Provider,
        outside: &dyn Outside,
    ) {
        use secrecy::ExposeSecret;
        let pointer = pointer::join("/provider", &name);
        let own = |(_, origin): &(Provider, Origin)| origin.layer == Layer::User;
        if layer == Layer::Project && self.providers.get(&name).is_some_and(own) {
            let message = format!("your own config already has a provider `{name}`");
            return file.fault(&pointer, &message);
        }
        let known = outside.knows(&name);
        if layer == Layer::Project && known.is_some() {
            let message = format!("a project cannot change the provider `{name}`");
            return file.fault(&pointer, &message);
        }
        // One provider, one row, whichever of its names is used.
        let name = known.map_or(name, str::to_owned);
        let twice = |(_, origin): &(Provider, Origin)| {
            origin.layer == layer && origin.file == file.origin(&pointer).file
        };
        if self.providers.get(&name).is_some_and(twice) {
            return file.fault(&pointer, &format!("`{name}` is already here, by another name"));
        }
        self.forget(&name);
        let variable = provider.api_key.as_ref().and_then(|key| {
            let inner = key.expose_secret().strip_prefix("{env:")?.strip_suffix('}')?;
            Some(inner.to_owned())
        });
        if let Some(variable) = variable {
            if layer == Layer::Project {
                let message =
                    "a project cannot read the environment; put the key in your own config";
                return file.fault(&format!("{pointer}/api_key"), message);
            }
            provider.api_key = outside.env(&variable).map(SecretString::from);
            if provider.api_key.is_none() {
                let message = format!("the environment variable {variable} is not set");
                file.fault(&format!("{pointer}/api_key"), &message);
            }
        }
        let origin = file.origin(&pointer).clone();
        if let Some(value) = file.at(&pointer).cloned() {
            self.show_all(&format!("provider.{name}"), &value, &pointer, file);
        }
        self.take_provider_options(&name, &provider, &pointer, file);
        self.providers.insert(name, (provider, origin));
    }

    /// What a weaker layer said of a provider no longer counts: a row is taken whole.
    fn forget(&mut self, name: &str) {
        let prefix = format!("provider.{name}.");
        self.shown.retain(|(shown, ..)| !shown.starts_with(&prefix));
        self.options.retain(|(scope, _)| match scope {
            Scope::Provider(at) | Scope::Model(at, _) | Scope::Variant(at, ..) => at != name,
            Scope::Agent(_) => true,
        });
    }

    /// The documents of a trusted project right in a folder such as `.windlass/agents/`, with what
    /// stood in them when the folder was compared with what was trusted.
    pub fn documents(&self, folder: &str) -> impl Iterator<Item = (PathBuf, String)> {
        let right_in =
            move |name: &&String| name.strip_prefix(folder).is_some_and(|rest| !rest.contains('/'));
        let found = self.documents.iter().filter(move |(name, _)| right_in(name));
        found.map(|(name, text)| (self.root.join(name), text.clone()))
    }

    /// The same at any depth beneath a folder.
    pub(crate) fn documents_beneath(
        &self,
        folder: &str,
    ) -> impl Iterator<Item = (PathBuf, String)> {
        let found = self.documents.iter().filter(move |(name, _)| name.starts_with(folder));
        found.map(|(name, text)| (self.root.join(name), text.clone()))
    }

    /// The files of a trusted project right in a folder such as `.windlass/tools/`, as they were when
    /// the folder was compared with what was trusted.
    pub fn surveyed(&self, folder: &str) -> Vec<Surveyed> {
        let right_in = |file: &&Surveyed| {
            file.name.strip_prefix(folder).is_some_and(|rest| !rest.contains('/'))
        };
        self.surveyed.iter().filter(right_in).cloned().collect()
    }

    /// True if a file is still what it was then. It is read again.
    pub fn intact(&self, file: &Surveyed) -> bool {
        file.is_intact()
    }

    /// Every value that is in force, with where it came from. Keys are not among them.
    pub fn shown(&self) -> &[(String, String, Origin)] {
        &self.shown
    }

    /// Where a permission rule stands, by its JSON pointer below `permission`.
    pub fn permission_origin(&self, permission: &Permission, pointer: &str) -> Option<Origin> {
        let (_, file) = self.files.get(permission.file)?;
        Some(file.origin(&format!("/permission{pointer}")).clone())
    }
}

/// The permission rules of one file.
pub struct Permission {
    /// Who says it.
    pub layer: Layer,
    /// What is said.
    pub value: Value,
    file: usize,
}

#[cfg(test)]
mod tests;
