//! Taking over what somebody set up for another program: its files are read, what our config has a
//! form for is planned, and everything else is said with the reason.
//!
//! A plan is the same whether it is shown or carried out. It writes nothing over what is there, and
//! nothing that our own reader would refuse: every setting is read back before it is part of the
//! plan. Start reading at [`Import::plan`], then at `opencode` and `claude`.
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

mod claude;
mod draft;
mod files;
mod opencode;
mod rules;
mod secret;
mod senses;
mod server;
mod source;

use crate::agents::Profiles;
use crate::edit::{self, Place, Put};
use crate::file::{self, Layer};
use crate::{Config, Error, Outside, PROJECT_FILES, Places, private};
use draft::{Draft, Setting};
use serde_json::Value;
use source::Source;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Whose files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// OpenCode's.
    OpenCode,
    /// Claude Code's.
    Claude,
}

impl Program {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Program::OpenCode => "OpenCode",
            Program::Claude => "Claude Code",
        }
    }
}

/// Which side is carried over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What the person set up for themselves, into their own config folder.
    Own,
    /// What stands in the project, into the project's config.
    Project,
}

/// What other parts of Windlass make of what they will be given.
pub trait Sense {
    /// What is wrong with permission rules, if they cannot be understood.
    fn rules(&self, rules: &Value) -> Option<String>;
    /// What is wrong with the pattern of a hook.
    fn matcher(&self, pattern: &str) -> Option<String>;
    /// The own name of a provider that is known without any config.
    fn provider(&self, name: &str) -> Option<&'static str>;
}

/// What is to be carried over.
pub struct Import<'a> {
    /// From where.
    pub program: Program,
    /// Which side.
    pub side: Side,
    /// Where things are.
    pub places: &'a Places,
    /// The project.
    pub root: &'a Path,
    /// What others make of it.
    pub sense: &'a dyn Sense,
}

/// What would be done.
#[derive(Debug)]
pub struct Plan {
    /// What was read, as it is called for people.
    pub found: Vec<String>,
    /// Our config.
    pub file: PathBuf,
    /// What it gets, a line each.
    pub settings: Vec<String>,
    /// The files that are made: which, from where.
    pub copies: Vec<(PathBuf, String)>,
    /// What is there already and stays: what, and why if that is not plain.
    pub kept: Vec<(String, String)>,
    /// What is not carried over: what, and why.
    pub left: Vec<(String, String)>,
    /// What whoever goes on with it should know.
    pub remarks: Vec<String>,
    side: Side,
    base: PathBuf,
    before: Option<String>,
    after: Option<String>,
    contents: Vec<Content>,
}

/// A file that is made.
#[derive(Clone, Debug)]
struct Content {
    path: PathBuf,
    bytes: Vec<u8>,
    is_program: bool,
}

/// Every variable is set: whether one is does not change what is carried over.
struct Anywhere<'a>(&'a dyn Sense);

impl Outside for Anywhere<'_> {
    fn env(&self, _name: &str) -> Option<String> {
        Some(String::new())
    }

    fn knows(&self, provider: &str) -> Option<&'static str> {
        self.0.provider(provider)
    }
}

impl Import<'_> {
    /// Reads everything and says what would become of it. Writes nothing.
    pub fn plan(&self) -> Result<Plan, Error> {
        let (home, root) = (&self.places.home, self.root);
        let folders = self.places.config.parent().unwrap_or(home);
        let source = match (self.side, self.program) {
            (Side::Project, _) => Source::project(root, home),
            (Side::Own, Program::OpenCode) => Source::own(folders, home),
            (Side::Own, Program::Claude) => Source::own(home, home),
        };
        let mut draft = Draft::new(self.side, &source, self.sense);
        match self.program {
            Program::OpenCode => opencode::read(&mut draft),
            Program::Claude => claude::read(&mut draft),
        }
        self.settle(draft)
    }

    /// Where our config is, and the folder that files go to.
    fn target(&self) -> (PathBuf, PathBuf) {
        match self.side {
            Side::Own => (self.places.config.join("windlass.jsonc"), self.places.config.clone()),
            Side::Project => {
                let there = |name: &&&str| self.root.join(name).symlink_metadata().is_ok();
                let name = PROJECT_FILES.iter().find(there).copied().unwrap_or("windlass.jsonc");
                (self.root.join(name), self.root.join(".windlass"))
            }
        }
    }

    /// Tells what is new from what is there, and keeps what our own reader takes.
    fn settle(&self, draft: Draft<'_>) -> Result<Plan, Error> {
        let (file, base) = self.target();
        if self.side == Side::Project {
            refuse_links(self.root, &file)?;
            refuse_links(self.root, &base)?;
        }
        let before = file::read(&file)?;
        let Draft { found, settings, contents, mut left, mut kept, remarks, untold, .. } = draft;
        if untold > 0 {
            left.push((
                format!("… and {untold} more"),
                "there is too much of it to list".to_owned(),
            ));
        }
        let damaged = |reason: String| Error::Damaged { path: file.clone(), reason };
        let config = match &before {
            None => Value::Object(serde_json::Map::new()),
            Some(text) => understood(text).map_err(damaged)?,
        };
        let mut plan = Plan {
            found,
            file: file.clone(),
            settings: Vec::new(),
            copies: Vec::new(),
            kept: Vec::new(),
            left,
            remarks,
            side: self.side,
            base,
            before,
            after: None,
            contents: Vec::new(),
        };
        plan.kept.append(&mut kept);
        for content in contents {
            plan.take_file(content);
        }
        let fresh =
            settings.into_iter().filter(|setting| plan.is_fresh(setting, &config)).collect();
        let fresh = plan.once_each(fresh);
        let known = plan.before.as_deref().map(|text| self.objections(text)).unwrap_or_default();
        self.sift(&mut plan, &mut Vec::new(), &fresh, &known).map_err(damaged)?;
        Ok(plan)
    }

    /// Adds settings to those that were taken, but for what our own reader would refuse. Halves say
    /// which that is, so that a bad one costs little.
    fn sift(
        &self,
        plan: &mut Plan,
        taken: &mut Vec<Put>,
        fresh: &[Setting],
        known: &[String],
    ) -> Result<(), String> {
        if fresh.is_empty() {
            return Ok(());
        }
        let puts = fresh.iter().map(|setting| setting.put.clone());
        let all: Vec<Put> = taken.iter().cloned().chain(puts).collect();
        let text = edit::with(plan.before.as_deref(), &all)?;
        let said = self.objections(&text);
        if said.len() <= known.len() {
            *taken = all;
            plan.settings.extend(fresh.iter().map(|setting| setting.told.clone()));
            plan.after = Some(text);
            return Ok(());
        }
        if let [setting] = fresh {
            let why = said.into_iter().find(|fault| !known.contains(fault)).unwrap_or_default();
            plan.left.push((setting.name(), why));
            return Ok(());
        }
        let (some, others) = fresh.split_at_checked(fresh.len() / 2).unwrap_or((fresh, &[]));
        self.sift(plan, taken, some, known)?;
        self.sift(plan, taken, others, known)
    }

    /// What our own reader, and those who read on, find wrong with a config.
    fn objections(&self, text: &str) -> Vec<String> {
        let layer = match self.side {
            Side::Own => Layer::User,
            Side::Project => Layer::Project,
        };
        let (file, _) = self.target();
        let mut texts = Vec::new();
        let own = self.places.config.join("windlass.jsonc");
        if layer == Layer::Project
            && let Ok(Some(text)) = file::read(&own)
        {
            texts.push((Layer::User, own, text));
        }
        texts.push((layer, file, text.to_owned()));
        let outside = Anywhere(self.sense);
        let config = Config::tried(texts, &outside, (self.places, self.root));
        let agents = Profiles::objections(&config, layer);
        let said = config.diagnostics.iter().chain(&agents);
        let mut said: Vec<String> = said
            .filter(|fault| fault.origin.layer == layer)
            .map(|fault| fault.message.clone())
            .collect();
        let own = |permission: &&crate::Permission| permission.layer == layer;
        let rules = config.permissions.iter().filter(own);
        said.extend(rules.filter_map(|rules| self.sense.rules(&rules.value)));
        let inner = config.described(layer).filter_map(|agent| agent.settings.get("permission"));
        said.extend(inner.filter_map(|rules| self.sense.rules(rules)));
        let hooks = config.hooks.iter().filter(|hook| hook.layer == layer);
        said.extend(hooks.filter_map(|hook| self.sense.matcher(hook.matcher.as_deref()?)));
        said
    }
}

/// What a config holds.
fn understood(text: &str) -> Result<Value, String> {
    let options = jsonc_parser::ParseOptions::default();
    let value = jsonc_parser::parse_to_serde_value::<Value>(text, &options);
    match value.map_err(|error| error.to_string())? {
        value @ Value::Object(_) => Ok(value),
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err("it is not an object".into())
        }
    }
}

/// Nothing is written through a link that a project brings: it may lead anywhere.
fn refuse_links(root: &Path, path: &Path) -> Result<(), Error> {
    let mut at = root.to_owned();
    for part in path.strip_prefix(root).unwrap_or(path).components() {
        at.push(part);
        if at.is_symlink() {
            let reason = "it is a link, and nothing is written through one in a project".to_owned();
            return Err(Error::Damaged { path: at, reason });
        }
    }
    Ok(())
}

impl Plan {
    /// True if something is to be done.
    pub fn is_new(&self) -> bool {
        !self.settings.is_empty() || !self.copies.is_empty()
    }

    fn keep(&mut self, what: String, why: &str) {
        self.kept.push((what, why.to_owned()));
    }

    fn take_file(&mut self, content: draft::Content) {
        let path = self.base.join(&content.name);
        let twice = self.contents.iter().any(|other| other.path == path);
        if path.symlink_metadata().is_ok() {
            self.keep(content.name, "");
        } else if twice {
            self.left.push((content.from, format!("there is another {}", content.name)));
        } else {
            self.copies.push((path.clone(), content.from));
            let (bytes, is_program) = (content.bytes, content.is_program);
            self.contents.push(Content { path, bytes, is_program });
        }
    }

    /// Of what two files say of one thing, the first counts.
    fn once_each(&mut self, settings: Vec<Setting>) -> Vec<Setting> {
        let mut once: Vec<Setting> = Vec::new();
        for setting in settings {
            let put = &setting.put;
            let clash = |other: &Setting| {
                let (one, two) = (&other.put.path, &put.path);
                let item = put.place == Place::Item && one == two;
                !item && (one.starts_with(two) || two.starts_with(one))
            };
            if once.iter().any(|other| other.put == *put) {
                continue;
            }
            if once.iter().any(clash) {
                let why = "another setting of the same name was carried over".to_owned();
                self.left.push((setting.name(), why));
                continue;
            }
            once.push(setting);
        }
        once
    }

    /// What is there stays, and rules that are there are not loosened.
    fn is_fresh(&mut self, setting: &Setting, config: &Value) -> bool {
        let agent = match setting.put.path.as_slice() {
            [key, name] if key == "agent" => Some(self.base.join(format!("agents/{name}.md"))),
            _ => None,
        };
        let described = agent.is_some_and(|path| path.symlink_metadata().is_ok());
        if described || setting.put.is_there(config) {
            self.keep(setting.name(), "");
            return false;
        }
        if setting.allows() && config.get("permission").is_some() {
            self.keep(
                setting.name(),
                "your own rules are not loosened; add it by hand if you want it",
            );
            return false;
        }
        true
    }

    /// Carries it out: the files first, then the config. What appeared meanwhile stays.
    pub fn carry_out(&self) -> Result<(), Error> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::File { path, source }
        };
        if file::read(&self.file)? != self.before {
            let source = std::io::Error::other("it was changed just now; import again");
            return Err(failed(&self.file)(source));
        }
        for content in &self.contents {
            self.make(content)?;
        }
        match &self.after {
            Some(text) => edit::replace(&self.file, text),
            None => Ok(()),
        }
    }

    fn make(&self, content: &Content) -> Result<(), Error> {
        let failed = |source| Error::File { path: content.path.clone(), source };
        let folder = content.path.parent().unwrap_or(&self.base);
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        match self.side {
            Side::Own => {
                private::make_folder(folder).map_err(failed)?;
                private::plain(&mut options);
            }
            Side::Project => {
                let root = self.base.parent().unwrap_or(&self.base);
                refuse_links(root, folder)?;
                std::fs::create_dir_all(folder).map_err(failed)?;
            }
        }
        mark(&mut options, self.side, content.is_program);
        match options.open(&content.path) {
            Ok(mut file) => file.write_all(&content.bytes).map_err(failed),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }
}

/// Who may read and run what is made.
#[cfg(unix)]
fn mark(options: &mut std::fs::OpenOptions, side: Side, is_program: bool) {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(match (side, is_program) {
        (Side::Own, false) => 0o600,
        (Side::Own, true) => 0o700,
        (Side::Project, false) => 0o666,
        (Side::Project, true) => 0o777,
    });
}

#[cfg(not(unix))]
fn mark(_: &mut std::fs::OpenOptions, _: Side, _: bool) {}

#[cfg(test)]
mod tests;
