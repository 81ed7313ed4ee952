//! One skill: the settings and the instructions of its `SKILL.md`.

use crate::allowed_tools::parse_allowed_tools;
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
    /// The name: lowercase letters, digits and `-`.
    pub name: String,
    /// The purpose, and when to use it.
    pub description: String,
    /// The instructions for the model.
    pub body: String,
    /// The tools in `allowed-tools`; empty if not set.
    pub tools: Vec<String>,
    pub folder: PathBuf,
    /// The other files in the folder: paths with `/`, sorted, at least the first ones.
    pub files: Vec<String>,
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
    let names = [setting("name").unwrap_or_default(), folder_name].map(normalize_name);
    let is_valid = |name: &String| (1..=64).contains(&name.len());
    let Some(name) = names.into_iter().find(is_valid) else {
        return invalid("`name` must be up to 64 letters, digits and `-`");
    };
    let first_line = || front.body.lines().find(|line| line.starts_with(char::is_alphanumeric));
    let description = setting("description").filter(|text| !text.is_empty()).or_else(first_line);
    let Some(description) = description else {
        return invalid("missing `description` (when to use the skill)");
    };
    let tools = parse_allowed_tools(front.settings.get("allowed-tools"));
    let tools = tools.map_err(|message| (1, message))?;
    Ok(SkillFile {
        name,
        description: truncate_chars(description, MAX_DESCRIPTION_BYTES),
        body: front.body.clone(),
        tools,
        folder,
        files: Vec::new(),
    })
}

/// Returns a name in the form of the standard: `Writing Rules` becomes `writing-rules`. Empty if the
/// name has other characters.
fn normalize_name(name: &str) -> String {
    let to_name_char = |c: char| match c {
        ' ' | '_' => '-',
        c => c.to_ascii_lowercase(),
    };
    let name: String = name.trim().chars().map(to_name_char).collect();
    let is_name_char = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.chars().all(is_name_char) { name } else { String::new() }
}
