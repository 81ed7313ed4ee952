//! Files of a project that the commands in its config name.
//!
//! A hook `./scripts/guard.sh` is only as trustworthy as the script. So such files are part of what
//! the user trusts, and the model changes them only with approval.
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]

use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Settings whose value is a command or a part of one.
const COMMAND_KEYS: [&str; 3] = ["command", "args", "cmd"];
/// Limits the files of one config.
const MAX_COMMAND_FILES: usize = 200;

/// Returns the existing files below `root` that the commands in a config name, relative to it with
/// `/` between parts. For a link, also its target.
pub(crate) fn command_files(root: &Path, config: &Map<String, Value>) -> BTreeSet<String> {
    let mut words = Vec::new();
    collect_words(config, &mut words);
    let mut files = BTreeSet::new();
    for word in words {
        let Some(name) = relative_name(root, word) else { continue };
        let path = root.join(&name);
        let Ok(metadata) = path.symlink_metadata() else { continue };
        let target = path.canonicalize().ok().filter(|target| target.is_file());
        let target = target.filter(|_| metadata.is_file() || metadata.is_symlink());
        let Some(target) = target else { continue };
        let target = target.strip_prefix(root).ok().map(Path::to_owned);
        files.extend([Some(name), target].into_iter().flatten().filter_map(|name| to_name(&name)));
        if files.len() >= MAX_COMMAND_FILES {
            break;
        }
    }
    files
}

/// Collects the words of all commands in a config.
fn collect_words<'a>(config: &'a Map<String, Value>, words: &mut Vec<&'a str>) {
    for (key, value) in config {
        match COMMAND_KEYS.contains(&key.as_str()) {
            true => collect_command_words(value, words),
            false => collect_nested_words(value, words),
        }
    }
}

fn collect_nested_words<'a>(value: &'a Value, words: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => collect_words(map, words),
        Value::Array(values) => values.iter().for_each(|value| collect_nested_words(value, words)),
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

fn collect_command_words<'a>(value: &'a Value, words: &mut Vec<&'a str>) {
    let is_separator = |c: char| c.is_whitespace() || "'\"`;|&()<>=,".contains(c);
    match value {
        Value::String(text) => {
            words.push(text);
            words.extend(text.split(is_separator).filter(|word| !word.is_empty()));
        }
        Value::Array(values) => values.iter().for_each(|value| collect_command_words(value, words)),
        Value::Object(map) => map.values().for_each(|value| collect_command_words(value, words)),
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// Returns a word as a path relative to the root, if it can be one. A variable at the start, such as
/// `$CLAUDE_PROJECT_DIR`, is taken as the root.
fn relative_name(root: &Path, word: &str) -> Option<PathBuf> {
    let word = match word.strip_prefix('$').and_then(|variable| variable.split_once('/')) {
        Some((_, rest)) => rest,
        None => word,
    };
    let path = Path::new(word);
    let path = path.strip_prefix(root).unwrap_or(path);
    let mut name = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => name.push(part),
            // A slash may follow a quoted variable: `"$CLAUDE_PROJECT_DIR"/x`.
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    (!name.as_os_str().is_empty() && !word.contains('\0')).then_some(name)
}

fn to_name(path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path.iter().map(|part| part.to_str()).collect();
    Some(parts?.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn files_that_commands_name_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["scripts/a.sh", "b.py", "c.js", "d e.sh", "args.txt", "real/f"] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), "x").unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("real/f", root.join("link")).unwrap();
        #[cfg(not(unix))]
        std::fs::write(root.join("link"), "x").unwrap();
        let absolute = root.join("c.js").display().to_string();
        let config = json!({
            "hooks": {"before": [{"command": "./scripts/a.sh --out=b.py; link"}]},
            "mcp": {"s": {"command": ["node", absolute, "d e.sh"], "env": {"X": "args.txt"}}},
            "other": {"name": "args.txt", "args": ["../outside", "/etc/passwd", "scripts", "absent"]},
        });
        let files = command_files(&root, config.as_object().unwrap());
        let mut expected = vec!["b.py", "c.js", "d e.sh", "link", "scripts/a.sh"];
        if cfg!(unix) {
            expected.insert(4, "real/f");
        }
        assert_eq!(files.into_iter().collect::<Vec<_>>(), expected);
        let claude =
            json!({"command": "\"$CLAUDE_PROJECT_DIR\"/scripts/a.sh $CLAUDE_PROJECT_DIR/b.py"});
        let files = command_files(&root, claude.as_object().unwrap());
        assert_eq!(files.into_iter().collect::<Vec<_>>(), ["b.py", "scripts/a.sh"]);
    }
}
