//! One skill: the settings and the instructions of its `SKILL.md`.

use crate::front_matter;
use serde_json::Value;
use std::path::{Path, PathBuf};
use windlass_protocol::display_text::truncate_chars;

pub(super) const MAX_SKILL_BYTES: usize = 64 << 10;
/// Limits a description, which every model reads.
const MAX_DESCRIPTION_BYTES: usize = 1_024;

/// A parsed `SKILL.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFile {
    /// The name, which equals the name of its folder.
    pub name: String,
    /// The purpose, and when to use it.
    pub description: String,
    /// The instructions for the model.
    pub body: String,
    /// The tools in `allowed-tools`; empty if not set.
    pub tools: Vec<String>,
    pub folder: PathBuf,
}

/// Parses a skill file, or returns the line and the message of an error.
pub(crate) fn parse_skill(path: &Path, text: &str) -> Result<SkillFile, (usize, String)> {
    let invalid = |message: &str| Err((1, message.to_owned()));
    if text.len() > MAX_SKILL_BYTES {
        return Err((1, format!("larger than {} kB", MAX_SKILL_BYTES >> 10)));
    }
    let front =
        front_matter::parse_front_matter(text).map_err(|error| (error.line, error.message))?;
    let folder = path.parent().unwrap_or(path).to_owned();
    let folder_name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let setting = |key: &str| front.settings.get(key).and_then(Value::as_str).map(str::trim);
    let name = setting("name").unwrap_or(folder_name);
    let is_name_char = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_name_char) {
        return invalid("`name` must be up to 64 lowercase letters, digits and `-`");
    }
    if name != folder_name {
        return Err((1, format!("`name` is `{name}`, but the folder is named `{folder_name}`")));
    }
    let Some(description) = setting("description").filter(|text| !text.is_empty()) else {
        return invalid("missing `description` (when to use the skill)");
    };
    let tools = match front.settings.get("allowed-tools") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(names)) => names.split([' ', ',']).map(str::to_owned).collect(),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            return invalid("`allowed-tools` must be a list of tools");
        }
    };
    Ok(SkillFile {
        name: name.to_owned(),
        description: truncate_chars(description, MAX_DESCRIPTION_BYTES),
        body: front.body.clone(),
        tools: tools.into_iter().filter(|name| !name.is_empty()).take(64).collect(),
        folder,
    })
}
