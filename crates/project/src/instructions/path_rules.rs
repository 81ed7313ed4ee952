//! Rules of a trusted project: Markdown files in `.windlass/rules` and `.claude/rules`. A rule
//! with `paths` in its front matter applies to files that match; the others are instructions like
//! those in `AGENTS.md`.

use super::{InstructionText, glob, has_link, read_beneath};
use crate::front_matter;
use crate::{Config, FolderTrust};
use serde_json::Value;
use std::path::Path;
use windlass_protocol::file_history::RULE_FOLDERS;

const MAX_PATTERNS: usize = 32;

/// A rule for some files of the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    /// The path of the rule, relative to the project's folder.
    pub path: String,
    /// Globs of the files it applies to, relative to the project's folder.
    pub patterns: Vec<String>,
    pub text: String,
    /// The content of the file, with its front matter.
    pub source: String,
}

/// Loads the rules of a project: those that always apply, and those for some files.
pub(super) fn load_rules(root: &Path, config: &Config) -> (Vec<InstructionText>, Vec<PathRule>) {
    let (mut general, mut path_rules) = (Vec::new(), Vec::new());
    if config.trust != FolderTrust::Trusted {
        return (general, path_rules);
    }
    let rule_globs = RULE_FOLDERS.map(|folder| format!("{folder}/**/*.md"));
    for file in rule_globs.iter().flat_map(|pattern| glob::matching_files(root, pattern)) {
        let path = file.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/");
        if has_link(root, &file) {
            continue;
        }
        let Some(rule) = read_beneath(root, &file, &path) else { continue };
        // Front matter that cannot be parsed does not limit the rule.
        let Ok(front) = front_matter::parse_front_matter(&rule.text) else {
            general.push(rule);
            continue;
        };
        let patterns = patterns(front.settings.get("paths").or(front.settings.get("globs")));
        match patterns.is_empty() {
            true => {
                let removed = rule.text.len().saturating_sub(front.body.len()) as u64;
                let total_bytes = rule.total_bytes.saturating_sub(removed);
                general.push(InstructionText { text: front.body, total_bytes, ..rule });
            }
            false => {
                let (text, source) = (front.body, rule.text);
                path_rules.push(PathRule { path, patterns, text, source });
            }
        }
    }
    (general, path_rules)
}

/// Returns the globs in a list, or in a text with commas outside of braces.
fn patterns(value: Option<&Value>) -> Vec<String> {
    let texts: Vec<String> = match value {
        Some(Value::String(text)) => {
            let mut depth = 0_usize;
            let is_separator = |c: char| {
                match c {
                    '{' => depth += 1,
                    '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                depth == 0 && c == ','
            };
            text.split(is_separator).map(str::to_owned).collect()
        }
        Some(Value::Array(texts)) => {
            texts.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            Vec::new()
        }
    };
    let trimmed = texts.iter().map(|text| text.trim().trim_start_matches("./").to_owned());
    trimmed.filter(|text| !text.is_empty()).take(MAX_PATTERNS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn patterns_are_a_list_or_a_text() {
        let rows = [
            (json!("src/**/*.ts, *.md"), vec!["src/**/*.ts", "*.md"]),
            (json!("src/*.{ts,tsx}"), vec!["src/*.{ts,tsx}"]),
            (json!(["./a/*", "", 7]), vec!["a/*"]),
            (json!(null), vec![]),
        ];
        for (value, expected) in rows {
            assert_eq!(patterns(Some(&value)), expected, "{value}");
        }
    }
}
