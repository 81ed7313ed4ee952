//! Agents: ways of working. Some are built in; others are Markdown files in the person's config
//! folder, in their plugins and, once it is trusted, in the project, or stand in the config of either.
//!
//! A file is `NAME.md`: settings at its head, and below them what the model is told. In a config the
//! same settings stand under the agent's name. Nothing in them can open what is closed without it,
//! and a project's file that has the name of another agent only adds to that one's bounds.

use crate::config::{Config, Described};
use crate::file::{self, Diagnostic, Layer, Origin};
use crate::front::{self, Front};
use crate::plugins::Written;
use crate::{Error, Places};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use windlass_protocol::Mode;
use windlass_protocol::event::BUILD;

/// No folder has more agents.
const MOST: usize = 100;
/// No agent needs more text.
const LONGEST: usize = 64 << 10;
/// No description is longer: every model reads it that can put the agent to work.
const LONGEST_DESCRIPTION: usize = 1_000;
/// Where agents are, in the config folder and in `.windlass`.
const FOLDER: &str = "agents";

/// An agent as somebody described it.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Who may have it work.
    pub employer: Employer,
    /// Its own model, as `provider/model`.
    pub model: Option<String>,
    /// How freely its model answers.
    pub temperature: Option<f64>,
    /// Tools by name or beginning and `*`, and whether it has them; the last that fits decides.
    pub tools: Vec<(String, bool)>,
    /// Permission rules as they were written. They only tighten.
    pub permissions: Vec<Value>,
    /// The laxest mode it works in.
    pub ceiling: Option<Mode>,
    /// What its model is told.
    pub prompt: String,
    /// Where it stands; none if it is built in.
    pub origin: Option<Origin>,
}

/// Who may have an agent work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Employer {
    /// A person.
    #[serde(rename = "primary")]
    Person,
    /// Another agent.
    #[serde(rename = "subagent")]
    Agent,
    /// Both.
    #[default]
    #[serde(rename = "all")]
    Both,
}

impl Employer {
    /// Its name in a file.
    pub fn name(self) -> &'static str {
        match self {
            Employer::Person => "primary",
            Employer::Agent => "subagent",
            Employer::Both => "all",
        }
    }
}

/// What is built in: name, description, who may have it work, the laxest mode, prompt.
type Row = (&'static str, &'static str, Employer, Option<Mode>, &'static str);
const BUILT_IN: &[Row] = &[
    (BUILD, "Works on the project with all tools.", Employer::Person, None, ""),
    (
        "plan",
        "Looks around and writes a plan; changes nothing.",
        Employer::Person,
        Some(Mode::Plan),
        include_str!("agents/plan.md"),
    ),
    (
        "general",
        "Does a task of several steps that can be handed over whole.",
        Employer::Agent,
        None,
        include_str!("agents/general.md"),
    ),
    (
        "explore",
        "Finds files, code and answers; changes nothing. Say how thorough to be.",
        Employer::Agent,
        Some(Mode::Plan),
        include_str!("agents/explore.md"),
    ),
];

/// The agents there are, by name, and what is wrong with those that are not among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profiles {
    /// Sorted by name, the usual one first.
    pub all: Vec<Profile>,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
}

impl Profiles {
    /// What is built in, what the person and their plugins have and, of a trusted folder, what the project has.
    pub fn load(places: &Places, config: &Config) -> Result<Profiles, Error> {
        let own = file::documents(&places.config.join(FOLDER), MOST)?.into_iter();
        let mut files: Vec<_> = own.map(|(path, text)| (Layer::User, path, text)).collect();
        let folder = format!(".windlass/{FOLDER}/");
        files.extend(config.documents(&folder).map(|(path, text)| (Layer::Project, path, text)));
        let described = [Layer::User, Layer::Project].map(|layer| config.described(layer));
        let plugins = config.plugins.iter().flat_map(|plugin| &plugin.parts.agents);
        Ok(Profiles::of(described.into_iter().flatten(), files, plugins))
    }

    /// What is wrong with the agents of a config alone.
    pub(crate) fn objections(config: &Config, layer: Layer) -> Vec<Diagnostic> {
        Profiles::of(config.described(layer), Vec::new(), []).diagnostics
    }

    /// The agent of this name.
    pub fn find(&self, name: &str) -> Option<&Profile> {
        self.all.iter().find(|profile| profile.name == name)
    }

    /// Puts agents together, the person's own before those of plugins, and those before a project's. Of one name in one layer the file
    /// counts.
    fn of<'a>(
        described: impl IntoIterator<Item = &'a Described>,
        files: Vec<(Layer, PathBuf, String)>,
        plugins: impl IntoIterator<Item = &'a Written>,
    ) -> Profiles {
        let row = |(name, description, employer, ceiling, prompt): &Row| Profile {
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            employer: *employer,
            model: None,
            temperature: None,
            tools: Vec::new(),
            permissions: Vec::new(),
            ceiling: *ceiling,
            prompt: prompt.trim().to_owned(),
            origin: None,
        };
        let all = BUILT_IN.iter().map(row).collect();
        let mut profiles = Profiles { all, diagnostics: Vec::new() };
        let described: Vec<&Described> = described.into_iter().collect();
        let mut plugins = plugins.into_iter();
        for layer in [Layer::User, Layer::Project] {
            if layer == Layer::Project {
                plugins.by_ref().for_each(|written| profiles.join(written));
            }
            let in_files: Vec<_> = files.iter().filter(|(at, ..)| *at == layer).collect();
            for agent in described.iter().filter(|agent| agent.origin.layer == layer) {
                match in_files.iter().find(|(_, path, _)| stem(path) == agent.name) {
                    Some((_, path, _)) => {
                        let (name, file) = (&agent.name, path.display());
                        let message = format!("{file} says what `{name}` is; this is ignored");
                        profiles.complain(&agent.origin, message);
                    }
                    None => profiles.take_described(agent),
                }
            }
            for (_, path, text) in in_files {
                profiles.take(layer, path, text);
            }
        }
        profiles.all.sort_by(|a, b| (a.name != BUILD, &a.name).cmp(&(b.name != BUILD, &b.name)));
        profiles
    }

    fn complain(&mut self, origin: &Origin, message: String) {
        self.diagnostics.push(Diagnostic { origin: origin.clone(), message, fatal: false });
    }

    fn take(&mut self, layer: Layer, path: &Path, text: &str) {
        let mut origin = Origin { layer, file: Some(path.to_owned()), line: 1, column: 1 };
        if text.len() > LONGEST {
            let message = format!("it is longer than {} kB; it is left out", LONGEST >> 10);
            return self.complain(&origin, message);
        }
        match front::read(text) {
            Ok(front) => self.understand(stem(path), front, origin),
            Err(unread) => {
                let message = format!("{}; the agent is left out", unread.message);
                origin.line = unread.line;
                self.complain(&origin, message);
            }
        }
    }

    /// Takes an agent of a plugin. It never takes another one's place.
    fn join(&mut self, written: &Written) {
        let file = Some(written.path.clone());
        let origin = Origin { layer: Layer::Plugin, file, line: 1, column: 1 };
        match self.find(&written.name) {
            None => self.understand(&written.name, written.front.clone(), origin),
            Some(_) => {
                let message = format!("there is another agent {}; it is left out", written.name);
                self.complain(&origin, message);
            }
        }
    }

    fn take_described(&mut self, agent: &Described) {
        let front = Front { settings: agent.settings.clone(), body: String::new() };
        self.understand(&agent.name, front, agent.origin.clone());
    }

    fn understand(&mut self, name: &str, front: Front, origin: Origin) {
        let plain = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.');
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            let message = "an agent's name has letters, digits, `-`, `_` and `.`; it is left out";
            return self.complain(&origin, message.to_owned());
        }
        let read = match read(name, front) {
            Ok(read) => read,
            Err(message) => {
                return self.complain(&origin, format!("{message}; the agent is left out"));
            }
        };
        for key in &read.unknown {
            self.complain(&origin, format!("`{key}` is not known here and is ignored"));
        }
        self.place(origin, read);
    }

    /// Puts an agent among the others. One of the person's own replaces what is built in.
    fn place(&mut self, origin: Origin, read: Read) {
        let Read { mut profile, disabled, .. } = read;
        let layer = origin.layer;
        profile.origin = Some(origin.clone());
        let at = self.all.iter().position(|known| known.name == profile.name);
        if disabled {
            match at {
                Some(_) if profile.name == BUILD => {
                    self.complain(&origin, format!("{BUILD} cannot be turned off"));
                }
                Some(at) => drop(self.all.remove(at)),
                None => {}
            }
            return;
        }
        match at.and_then(|at| self.all.get_mut(at)) {
            None => self.all.push(profile),
            Some(known) if layer != Layer::Project => *known = profile,
            Some(known) => {
                let denied = profile.tools.into_iter().filter(|(_, has)| !has);
                profile.tools = known.tools.iter().cloned().chain(denied).collect();
                profile.permissions.splice(0..0, known.permissions.iter().cloned());
                profile.ceiling = known.ceiling;
                profile.employer = known.employer;
                *known = profile;
            }
        }
    }
}

/// True for an agent that is built in.
pub(crate) fn is_built_in(name: &str) -> bool {
    BUILT_IN.iter().any(|(built_in, ..)| *built_in == name)
}

/// What a file says of an agent: its settings, and those of them that are not known here. Or why it
/// would be left out.
pub(crate) fn check(name: &str, text: &str) -> Result<(Map<String, Value>, Vec<String>), String> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {} kB", LONGEST >> 10));
    }
    let front = front::read(text).map_err(|unread| unread.message)?;
    let settings = front.settings.clone();
    read(name, front).map(|read| (settings, read.unknown))
}

/// Why an agent of a plugin cannot be used.
pub(crate) fn objection(written: &Written) -> Option<String> {
    let origin = Origin { layer: Layer::Plugin, file: None, line: 1, column: 1 };
    let mut alone = Profiles::default();
    alone.understand(&written.name, written.front.clone(), origin);
    match alone.all.as_slice() {
        [_] => None,
        _ => Some(
            alone.diagnostics.first().map_or("it is turned off", |why| &why.message).to_owned(),
        ),
    }
}

/// The name of the agent that a file describes.
fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

/// An agent that was understood.
struct Read {
    profile: Profile,
    disabled: bool,
    unknown: Vec<String>,
}

fn read(name: &str, Front { settings, body }: Front) -> Result<Read, String> {
    let mut profile = Profile {
        name: name.to_owned(),
        description: String::new(),
        employer: Employer::default(),
        model: None,
        temperature: None,
        tools: Vec::new(),
        permissions: Vec::new(),
        ceiling: None,
        prompt: body,
        origin: None,
    };
    let (mut disabled, mut unknown) = (false, Vec::new());
    for (key, value) in settings {
        let wrong = |wanted: &str| format!("`{key}` is not {wanted}");
        match key.as_str() {
            "description" => {
                let text = value.as_str().ok_or_else(|| wrong("a text"))?;
                profile.description =
                    windlass_protocol::text::beginning(text.trim(), LONGEST_DESCRIPTION);
            }
            "mode" => {
                let all = [Employer::Person, Employer::Agent, Employer::Both];
                let found = all.into_iter().find(|it| value.as_str() == Some(it.name()));
                profile.employer = found.ok_or_else(|| wrong("primary, subagent or all"))?;
            }
            "model" => {
                let model = value.as_str().filter(|model| model.contains('/'));
                profile.model = Some(model.ok_or_else(|| wrong("PROVIDER/MODEL"))?.to_owned());
            }
            "temperature" => {
                let fits = |number: &f64| (0.0..=2.0).contains(number);
                let number = value.as_f64().filter(fits);
                profile.temperature = Some(number.ok_or_else(|| wrong("between 0 and 2"))?);
            }
            "tools" => {
                profile.tools = tools(&value).ok_or_else(|| wrong("tools and true or false"))?
            }
            "permission" => profile.permissions.push(value),
            "prompt" => {
                let text = value.as_str().ok_or_else(|| wrong("a text"))?;
                profile.prompt = format!("{}\n\n{}", text.trim(), profile.prompt).trim().to_owned();
            }
            "disable" => disabled = value.as_bool().ok_or_else(|| wrong("true or false"))?,
            "name" => {}
            _ => unknown.push(key),
        }
    }
    if profile.description.is_empty() && !disabled && profile.employer != Employer::Person {
        return Err("it has no `description`, which says when to use it".to_owned());
    }
    Ok(Read { profile, disabled, unknown })
}

fn tools(value: &Value) -> Option<Vec<(String, bool)>> {
    let pairs = |map: &Map<String, Value>| {
        map.iter().map(|(name, has)| Some((name.clone(), has.as_bool()?))).collect()
    };
    match value {
        Value::Object(map) => pairs(map),
        Value::Null => Some(Vec::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
    }
}

#[cfg(test)]
mod tests;
