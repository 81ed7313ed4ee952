//! Skills: what somebody wrote down of how to do something, in the Agent Skills format. A skill is
//! a folder with a `SKILL.md`: settings at its head, and below them what the model reads.
//!
//! They are in the person's config folder, in their plugins and, once it is trusted, in the project: in
//! `.windlass/skills`, as it was when it was trusted, and in `.claude/skills`, which only advises and
//! so is read as it is. A project's skill never takes the place of one of the person's own.
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

use crate::config::Config;
use crate::file::{self, Diagnostic, Layer, Origin};
use crate::front;
use crate::{Error, Places, Standing, private};
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use windlass_protocol::text::beginning;

/// No folder has more skills.
const MOST: usize = 200;
/// No skill needs more text.
const LONGEST: usize = 64 << 10;
/// No description is longer: every model reads it.
const LONGEST_DESCRIPTION: usize = 1_024;
/// What a skill's file is called.
const FILE: &str = "SKILL.md";

/// A skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Its name, which is its folder's.
    pub name: String,
    /// What it is for, and when.
    pub description: String,
    /// How to do it.
    pub body: String,
    /// The tools it says it needs; none if it does not say.
    pub tools: Vec<String>,
    /// Where it is.
    pub folder: PathBuf,
}

/// The skills there are, and what is wrong with those that are not among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Skills {
    /// Sorted by name.
    pub all: Vec<Skill>,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
}

impl Skills {
    /// What the person has and, of a trusted folder, what the project has.
    pub fn load(places: &Places, config: &Config, root: &Path) -> Result<Skills, Error> {
        let mut skills = Skills::default();
        for path in files(&places.config.join("skills"))? {
            if let Some(text) = file::read(&path)? {
                skills.take(Layer::User, &path, &text);
            }
        }
        for plugin in &config.plugins {
            for skill in &plugin.parts.skills {
                skills.join(&plugin.manifest.name, skill);
            }
        }
        let beneath = config.documents_beneath(".windlass/skills/");
        for (path, text) in beneath.filter(|(path, _)| path.ends_with(FILE)).take(MOST) {
            skills.take(Layer::Project, &path, &text);
        }
        if config.standing == Standing::Trusted {
            for path in files(&root.join(".claude/skills")).unwrap_or_default() {
                if let Some(text) = advice(&path) {
                    skills.take(Layer::Project, &path, &text);
                }
            }
        }
        skills.all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(skills)
    }

    fn complain(&mut self, layer: Layer, path: &Path, line: usize, message: String) {
        let origin = Origin { layer, file: Some(path.to_owned()), line, column: 1 };
        let message = format!("{message}; the skill is left out");
        self.diagnostics.push(Diagnostic { origin, message, fatal: false });
    }

    /// Takes a plugin's skill, by its own name if nobody else has it.
    fn join(&mut self, plugin: &str, skill: &Skill) {
        let taken = |name: &str| self.all.iter().any(|known| known.name == name);
        let mut skill = skill.clone();
        if taken(&skill.name) {
            skill.name = format!("{}-{}", plugin.replace('.', "-"), skill.name);
        }
        if taken(&skill.name) {
            let message = format!("there is another skill {}", skill.name);
            return self.complain(Layer::Plugin, &skill.folder.join(FILE), 1, message);
        }
        self.all.push(skill);
    }

    fn take(&mut self, layer: Layer, path: &Path, text: &str) {
        match read(path, text) {
            Err((line, message)) => self.complain(layer, path, line, message),
            Ok(skill) if self.all.iter().any(|known| known.name == skill.name) => {
                let message = format!("there is another skill {}", skill.name);
                self.complain(layer, path, 1, message);
            }
            Ok(skill) => self.all.push(skill),
        }
    }
}

/// A skill, or in which line what is wrong with it.
pub(crate) fn read(path: &Path, text: &str) -> Result<Skill, (usize, String)> {
    let wrong = |message: &str| Err((1, message.to_owned()));
    if text.len() > LONGEST {
        return Err((1, format!("it is longer than {} kB", LONGEST >> 10)));
    }
    let front = front::read(text).map_err(|unread| (unread.line, unread.message))?;
    let folder = path.parent().unwrap_or(path).to_owned();
    let called = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let text = |key: &str| front.settings.get(key).and_then(Value::as_str).map(str::trim);
    let name = text("name").unwrap_or(called);
    let plain = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return wrong("its `name` has small letters, digits and `-` only, at most 64 of them");
    }
    if name != called {
        return Err((1, format!("it says `name: {name}`, but its folder is called {called}")));
    }
    let Some(description) = text("description").filter(|text| !text.is_empty()) else {
        return wrong("it has no `description`, which says when to use it");
    };
    let tools = match front.settings.get("allowed-tools") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(names)) => names.split([' ', ',']).map(str::to_owned).collect(),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            return wrong("`allowed-tools` is no list of tools");
        }
    };
    Ok(Skill {
        name: name.to_owned(),
        description: beginning(description, LONGEST_DESCRIPTION),
        body: front.body.clone(),
        tools: tools.into_iter().filter(|name| !name.is_empty()).take(64).collect(),
        folder,
    })
}

/// The skills' files in a folder, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    file::within(folder, MOST, |entry| Some(entry.join(FILE)))
}

/// What a file says that nobody pinned down: no link, no pipe, and not without end.
fn advice(path: &Path) -> Option<String> {
    let folder = path.parent()?;
    if folder.is_symlink()
        || folder.parent()?.is_symlink()
        || folder.parent()?.parent()?.is_symlink()
    {
        return None;
    }
    let file = private::plain(std::fs::OpenOptions::new().read(true)).open(path).ok()?;
    let mut text = String::new();
    file.take(LONGEST as u64 + 1).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests;
