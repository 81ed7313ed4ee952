//! Skills in the Agent Skills format: a folder with a `SKILL.md`, which has settings in its front
//! matter and instructions for the model below.
//!
//! Skills come from the user's folders, from plugins and, once it is trusted, from the project: from
//! `.windlass/skills` with the trusted content, and from the folders of other agents, whose skills
//! only advise and so are read as they are now. A project's skill never replaces one of the user's
//! own.
//!
//! Tools and commands cannot read the user's config, so the user's skills with more files than
//! `SKILL.md` are copied to the cache.
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]

pub(crate) mod skill_file;

pub use skill_file::SkillFile;

use crate::config::Config;
use crate::config::file_parser::{self, ConfigDiagnostic, ConfigLayer, ConfigOrigin};
use crate::custom_tools::folder_copy::copy_skill;
use crate::{Dirs, FolderTrust, ProjectError, private_files};
use skill_file::{MAX_SKILL_BYTES, parse_skill};
use std::io::Read;
use std::path::{Path, PathBuf};

const MAX_SKILLS_PER_FOLDER: usize = 200;
const SKILL_FILE_NAME: &str = "SKILL.md";
/// Maximum number of files of a skill that the model is told of, and of entries that are looked at.
const MAX_LISTED_FILES: usize = 30;
const MAX_SEEN_ENTRIES: usize = 500;
/// The folders of other agents with skills, in a project and in the home folder.
const SHARED_SKILL_FOLDERS: [&str; 4] =
    [".agents/skills", ".claude/skills", ".opencode/skill", ".opencode/skills"];
/// The folders of OpenCode's own config, in the home folder.
const OPENCODE_SKILL_FOLDERS: [&str; 2] = [".config/opencode/skill", ".config/opencode/skills"];

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
        skills.add_user_skills(dirs, root)?;
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
            for folder in SHARED_SKILL_FOLDERS {
                for path in skill_files(&root.join(folder)).unwrap_or_default() {
                    if let Some(text) = read_untrusted_text(&path) {
                        skills.add_file(ConfigLayer::Project, &path, &text);
                    }
                }
            }
        }
        skills.all.sort_by(|a, b| a.name.cmp(&b.name));
        for skill in &mut skills.all {
            skill.files = other_files(&skill.folder);
        }
        Ok(skills)
    }

    /// Adds the skills of the user's own, from the config folder and from those of other agents.
    fn add_user_skills(&mut self, dirs: &Dirs, root: &Path) -> Result<(), ProjectError> {
        for path in skill_files(&dirs.config.join("skills"))? {
            if let Some(text) = file_parser::read_config_text(&path)? {
                self.add_user_skill(dirs, &path, &text);
            }
        }
        let shared = SHARED_SKILL_FOLDERS.iter().chain(&OPENCODE_SKILL_FOLDERS);
        for folder in shared.map(|folder| dirs.home.join(folder)) {
            if folder.starts_with(root) {
                continue;
            }
            for path in skill_files(&folder).unwrap_or_default() {
                if let Ok(Some(text)) = file_parser::read_config_text(&path) {
                    self.add_user_skill(dirs, &path, &text);
                }
            }
        }
        Ok(())
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

    /// Adds a skill of the user's own, and copies its other files to where tools can read them.
    fn add_user_skill(&mut self, dirs: &Dirs, path: &Path, text: &str) {
        let count = self.all.len();
        self.add_file(ConfigLayer::User, path, text);
        let Some(skill) = self.all.get_mut(count) else { return };
        if !has_other_files(&skill.folder) {
            return;
        }
        match copy_skill(&skill.folder, &skill_copies_folder(dirs), &skill.name) {
            Ok(copy) => skill.folder = copy,
            Err(reason) => {
                let message = format!("its other files cannot be used: {reason}");
                let origin = ConfigOrigin {
                    layer: ConfigLayer::User,
                    file: Some(path.to_owned()),
                    line: 1,
                    column: 1,
                };
                self.diagnostics.push(ConfigDiagnostic { origin, message, fatal: false });
            }
        }
    }

    /// Adds a skill, unless one of its name exists. The same skill is often installed for several
    /// agents, so a copy with the same text is not reported.
    fn add_file(&mut self, layer: ConfigLayer, path: &Path, text: &str) {
        match parse_skill(path, text) {
            Err((line, message)) => self.add_diagnostic(layer, path, line, message),
            Ok(skill) => match self.all.iter().find(|existing| existing.name == skill.name) {
                Some(existing)
                    if existing.body == skill.body && existing.description == skill.description => {
                }
                Some(_) => {
                    let message = format!("a skill named `{}` already exists", skill.name);
                    self.add_diagnostic(layer, path, 1, message);
                }
                None => self.all.push(skill),
            },
        }
    }
}

/// Returns the folder with copies of the user's skills, which tools and commands may read.
pub fn skill_copies_folder(dirs: &Dirs) -> PathBuf {
    dirs.cache.join("skills")
}

fn has_other_files(folder: &Path) -> bool {
    let mut entries = folder.read_dir().into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name() != SKILL_FILE_NAME)
}

/// Lists the files of a skill besides `SKILL.md`: paths relative to its folder, sorted. Links and
/// hidden files are left out.
fn other_files(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), String::new())];
    let mut seen = 0;
    while let Some((folder, prefix)) = folders.pop() {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            seen += 1;
            if seen > MAX_SEEN_ENTRIES {
                break;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let is_hidden = name.starts_with('.') || name.contains(char::is_control);
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !is_hidden => {
                    folders.push((entry.path(), format!("{path}/")));
                }
                Ok(kind) if kind.is_file() && !is_hidden && path != SKILL_FILE_NAME => {
                    files.push(path);
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    files.sort_unstable();
    files.truncate(MAX_LISTED_FILES);
    files
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
