//! Skills in the Agent Skills format: a folder with a `SKILL.md`, which has settings in its front
//! matter and instructions for the model below.
//!
//! Skills come from the user's config folder, from plugins and, once it is trusted, from the
//! project: from `.windlass/skills` with the trusted content, and from `.claude/skills`, which only
//! advises and so is read as it is now. A project's skill never replaces one of the user's own.
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]

pub(crate) mod skill_file;

pub use skill_file::SkillFile;

use crate::config::Config;
use crate::config::file_parser::{self, ConfigDiagnostic, ConfigLayer, ConfigOrigin};
use crate::{Dirs, FolderTrust, ProjectError, private_files};
use skill_file::{MAX_SKILL_BYTES, parse_skill};
use std::io::Read;
use std::path::{Path, PathBuf};

const MAX_SKILLS_PER_FOLDER: usize = 200;
const SKILL_FILE_NAME: &str = "SKILL.md";

/// All usable skills, and diagnostics about the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SkillFiles {
    /// Sorted by name.
    pub all: Vec<SkillFile>,
    pub diagnostics: Vec<ConfigDiagnostic>,
}

impl SkillFiles {
    /// Loads the skills of the user and of plugins and, if the folder is trusted, those of the
    /// project.
    pub fn load(dirs: &Dirs, config: &Config, root: &Path) -> Result<SkillFiles, ProjectError> {
        let mut skills = SkillFiles::default();
        for path in skill_files(&dirs.config.join("skills"))? {
            if let Some(text) = file_parser::read_config_text(&path)? {
                skills.add_file(ConfigLayer::User, &path, &text);
            }
        }
        for plugin in &config.plugins {
            for skill in &plugin.components.skills {
                skills.add_plugin_skill(&plugin.manifest.name, skill);
            }
        }
        let documents = config.documents_beneath(".windlass/skills/");
        for (path, text) in documents
            .filter(|(path, _)| path.ends_with(SKILL_FILE_NAME))
            .take(MAX_SKILLS_PER_FOLDER)
        {
            skills.add_file(ConfigLayer::Project, &path, &text);
        }
        if config.trust == FolderTrust::Trusted {
            for path in skill_files(&root.join(".claude/skills")).unwrap_or_default() {
                if let Some(text) = read_untrusted_text(&path) {
                    skills.add_file(ConfigLayer::Project, &path, &text);
                }
            }
        }
        skills.all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(skills)
    }

    fn add_diagnostic(&mut self, layer: ConfigLayer, path: &Path, line: usize, message: String) {
        let origin = ConfigOrigin { layer, file: Some(path.to_owned()), line, column: 1 };
        let message = format!("{message}; the skill is skipped");
        self.diagnostics.push(ConfigDiagnostic { origin, message, fatal: false });
    }

    /// Adds a plugin's skill, with the plugin's name as prefix if its own name is taken.
    fn add_plugin_skill(&mut self, plugin: &str, skill: &SkillFile) {
        let is_taken = |name: &str| self.all.iter().any(|existing| existing.name == name);
        let mut skill = skill.clone();
        if is_taken(&skill.name) {
            skill.name = format!("{}-{}", plugin.replace('.', "-"), skill.name);
        }
        if is_taken(&skill.name) {
            let message = format!("a skill named `{}` already exists", skill.name);
            return self.add_diagnostic(
                ConfigLayer::Plugin,
                &skill.folder.join(SKILL_FILE_NAME),
                1,
                message,
            );
        }
        self.all.push(skill);
    }

    fn add_file(&mut self, layer: ConfigLayer, path: &Path, text: &str) {
        match parse_skill(path, text) {
            Err((line, message)) => self.add_diagnostic(layer, path, line, message),
            Ok(skill) if self.all.iter().any(|existing| existing.name == skill.name) => {
                let message = format!("a skill named `{}` already exists", skill.name);
                self.add_diagnostic(layer, path, 1, message);
            }
            Ok(skill) => self.all.push(skill),
        }
    }
}

/// Lists the `SKILL.md` files of a folder, sorted.
fn skill_files(folder: &Path) -> Result<Vec<PathBuf>, ProjectError> {
    file_parser::list_files(folder, MAX_SKILLS_PER_FOLDER, |entry| {
        Some(entry.join(SKILL_FILE_NAME))
    })
}

/// Reads a file whose content trust does not pin: no link, no pipe, and at most `MAX_SKILL_BYTES`.
fn read_untrusted_text(path: &Path) -> Option<String> {
    let folder = path.parent()?;
    if folder.is_symlink()
        || folder.parent()?.is_symlink()
        || folder.parent()?.parent()?.is_symlink()
    {
        return None;
    }
    let file =
        private_files::private_options(std::fs::OpenOptions::new().read(true)).open(path).ok()?;
    let mut text = String::new();
    file.take(MAX_SKILL_BYTES as u64 + 1).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests;
