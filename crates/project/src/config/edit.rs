//! Edits of a config file that preserve everything else: comments, order, whitespace.
//!
//! A file is replaced as a whole. A file that cannot be parsed is left alone, because the meaning
//! of a change to it is unknown.
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]

use crate::config::file_parser;
use crate::{ProjectError, private_files};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The initial text of a new config.
const EMPTY_CONFIG: &str = "{\n}\n";

/// A completed change that can be reverted to the exact bytes.
#[derive(Debug)]
#[must_use]
pub struct RevertibleConfigChange {
    path: PathBuf,
    before: Option<String>,
}

impl RevertibleConfigChange {
    /// Restores the previous text, or removes the file if the change created it.
    pub fn revert(self) -> Result<(), ProjectError> {
        match &self.before {
            Some(before) => replace_file(&self.path, before),
            None => std::fs::remove_file(&self.path)
                .map_err(|source| ProjectError::File { path: self.path.clone(), source }),
        }
    }
}

/// Inserts a value under two nested keys, for example `mcp` and `git`. Returns `None` and keeps the
/// existing value if there is one.
pub fn insert(
    path: &Path,
    (outer, inner): (&str, &str),
    value: &Value,
) -> Result<Option<RevertibleConfigChange>, ProjectError> {
    edit_file(path, |root| {
        let Some(object) = root.object_value_or_create(outer) else {
            return Err(format!("`{outer}` is not an object"));
        };
        if object.get(inner).is_some() {
            return Ok(false);
        }
        object.append(inner, to_cst_value(value));
        Ok(true)
    })
}

/// Sets the value under nested keys, outermost first, and replaces an existing one.
pub fn set_value(path: &Path, keys: &[&str], value: &Value) -> Result<(), ProjectError> {
    let Some((last, parents)) = keys.split_last() else { return Ok(()) };
    let change = edit_file(path, |root| {
        let mut object = root.clone();
        for key in parents {
            let Some(inner) = object.object_value_or_create(key) else {
                return Err(format!("`{key}` is not an object"));
            };
            object = inner;
        }
        match object.get(last) {
            Some(property) => property.set_value(to_cst_value(value)),
            None => {
                object.append(last, to_cst_value(value));
            }
        }
        Ok(true)
    })?;
    drop(change);
    Ok(())
}

/// Removes the value under two nested keys, and the outer key if it becomes empty. Returns `None`
/// if there was no value.
pub fn remove(
    path: &Path,
    (outer, inner): (&str, &str),
) -> Result<Option<RevertibleConfigChange>, ProjectError> {
    edit_file(path, |root| {
        let Some(object) = root.object_value(outer) else { return Ok(false) };
        let Some(property) = object.get(inner) else { return Ok(false) };
        property.remove();
        if object.properties().is_empty()
            && let Some(empty) = root.get(outer)
        {
            empty.remove();
        }
        Ok(true)
    })
}

/// A value and its `path` in a config.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConfigInsertion {
    /// The nested keys, outermost first.
    pub(crate) path: Vec<String>,
    pub(crate) value: Value,
    pub(crate) kind: ConfigInsertionKind,
}

/// The way a value is inserted at its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigInsertionKind {
    /// As the value of the last key.
    SetKey,
    /// As a further item of the list at that path.
    AppendItem,
}

impl ConfigInsertion {
    /// Returns `true` if a value of that key, the same item, or a non-object on the path is in the
    /// way.
    pub(crate) fn conflicts_with(&self, config: &Value) -> bool {
        let mut current = config;
        for (index, key) in self.path.iter().enumerate() {
            let Value::Object(map) = current else { return true };
            let Some(inner) = map.get(key) else { return false };
            let is_last = index + 1 == self.path.len();
            match (is_last, self.kind, inner) {
                (true, ConfigInsertionKind::AppendItem, Value::Array(items)) => {
                    return items.contains(&self.value);
                }
                (true, ConfigInsertionKind::AppendItem | ConfigInsertionKind::SetKey, _) => {
                    return true;
                }
                (false, ..) => current = inner,
            }
        }
        true
    }
}

/// Inserts values into a config's text. Existing values stay, even if a `ConfigInsertion` has the
/// same path.
pub(crate) fn insert_all(
    text: Option<&str>,
    insertions: &[ConfigInsertion],
) -> Result<String, String> {
    let root = CstRootNode::parse(text.unwrap_or(EMPTY_CONFIG), &ParseOptions::default());
    let root = root.map_err(|error| error.to_string())?;
    let top = root.object_value_or_create().ok_or("not a JSON object")?;
    for insertion in insertions {
        let Some((last, parents)) = insertion.path.split_last() else { continue };
        let open_key = |object: CstObject, key: &String| object.object_value_or_create(key);
        let Some(object) = parents.iter().try_fold(top.clone(), open_key) else { continue };
        match insertion.kind {
            ConfigInsertionKind::SetKey if object.get(last).is_none() => {
                object.append(last, to_cst_value(&insertion.value));
            }
            ConfigInsertionKind::SetKey => {}
            ConfigInsertionKind::AppendItem => {
                if let Some(list) = object.array_value_or_create(last) {
                    list.append(to_cst_value(&insertion.value));
                }
            }
        }
    }
    Ok(root.to_string())
}

/// Replaces a config file. A symbolic link stays a link, for users who keep their config elsewhere.
pub(crate) fn replace_file(path: &Path, text: &str) -> Result<(), ProjectError> {
    let to_error = |source| ProjectError::File { path: path.to_owned(), source };
    let real_path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = real_path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(to_error)?;
    write_file(&real_path, text).map_err(to_error)
}

fn edit_file(
    path: &Path,
    edit: impl FnOnce(&CstObject) -> Result<bool, String>,
) -> Result<Option<RevertibleConfigChange>, ProjectError> {
    let corrupt = |reason: String| ProjectError::Corrupt { path: path.to_owned(), reason };
    let before = file_parser::read_config_text(path)?;
    let text = before.as_deref().unwrap_or(EMPTY_CONFIG);
    let root = CstRootNode::parse(text, &ParseOptions::default());
    let root = root.map_err(|error| corrupt(error.to_string()))?;
    let object = root.object_value_or_create();
    let object = object.ok_or_else(|| corrupt("not a JSON object".into()))?;
    if !edit(&object).map_err(corrupt)? {
        return Ok(None);
    }
    replace_file(path, &root.to_string())?;
    Ok(Some(RevertibleConfigChange { path: path.to_owned(), before }))
}

/// Replaces the text and keeps the file's permissions, so that its readers can still read it.
fn write_file(path: &Path, text: &str) -> std::io::Result<()> {
    let permissions = path.metadata().map(|metadata| metadata.permissions());
    private_files::replace_atomically(path, text.as_bytes())?;
    match permissions {
        Ok(permissions) => std::fs::set_permissions(path, permissions),
        Err(_) => Ok(()),
    }
}

fn to_cst_value(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(to_cst_value).collect()),
        Value::Object(fields) => CstInputValue::Object(
            fields.iter().map(|(name, value)| (name.clone(), to_cst_value(value))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{ConfigInsertionKind, insert, remove};
    use proptest::prelude::{prop_assert_eq, proptest};
    use serde_json::json;

    #[test]
    fn a_change_keeps_comments_and_other_settings() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("windlass.jsonc");
        let before = "// mine\n{\n  // the one I like\n  \"model\": \"a/b\", // cheap\n  \"mcp\": {\n    \"old\": {\"command\": [\"x\"]}, // keep\n  },\n}\n";
        std::fs::write(&path, before).unwrap();
        let value = json!({"type": "local", "command": ["git-server", "a \"b\""]});
        assert!(insert(&path, ("mcp", "git"), &value).unwrap().is_some());
        assert!(
            insert(&path, ("mcp", "git"), &json!({})).unwrap().is_none(),
            "an existing entry must stay"
        );
        let text = std::fs::read_to_string(&path).unwrap();
        for part in [
            "// mine",
            "// the one I like",
            "// cheap",
            "// keep",
            "\"old\": {\"command\": [\"x\"]}",
        ] {
            assert!(text.contains(part), "{part} is missing: {text}");
        }
        let read: serde_json::Value =
            jsonc_parser::parse_to_serde_value(&text, &jsonc_parser::ParseOptions::default())
                .unwrap();
        assert_eq!(read["mcp"]["git"], value);
        assert!(remove(&path, ("mcp", "git")).unwrap().is_some());
        assert!(remove(&path, ("mcp", "git")).unwrap().is_none());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("// keep") && !text.contains("git"), "{text}");
        assert!(remove(&path, ("mcp", "old")).unwrap().is_some());
        assert!(!std::fs::read_to_string(&path).unwrap().contains("\"mcp\""));
    }

    #[test]
    fn a_setting_is_changed_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("windlass.jsonc");
        super::set_value(&path, &["model"], &json!("a/b")).unwrap();
        super::set_value(&path, &["tui", "theme"], &json!("paper")).unwrap();
        let before =
            std::fs::read_to_string(&path).unwrap().replace("\"a/b\",", "\"a/b\", // dear");
        std::fs::write(&path, before).unwrap();
        super::set_value(&path, &["model"], &json!("c/d")).unwrap();
        super::set_value(&path, &["tui", "keys", "help"], &json!("f2")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("// dear") && !text.contains("a/b"), "{text}");
        let options = jsonc_parser::ParseOptions::default();
        let read: serde_json::Value = jsonc_parser::parse_to_serde_value(&text, &options).unwrap();
        let tui = json!({"theme": "paper", "keys": {"help": "f2"}});
        assert_eq!(read, json!({"model": "c/d", "tui": tui}));
        assert!(super::set_value(&path, &["model", "x"], &json!(1)).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn a_missing_config_is_created_and_an_invalid_one_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/windlass.jsonc");
        assert!(
            insert(&path, ("mcp", "a"), &json!({"url": "https://a.example"})).unwrap().is_some()
        );
        assert!(std::fs::read_to_string(&path).unwrap().contains("https://a.example"));
        for invalid in ["{", "[1]", "{\"mcp\": 7}", "{\"mcp\": {}} x"] {
            std::fs::write(&path, invalid).unwrap();
            assert!(insert(&path, ("mcp", "b"), &json!({})).is_err(), "{invalid}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), invalid);
        }
    }

    #[test]
    fn insertions_work_at_any_depth_and_overwrite_nothing() {
        let insertion = |path: &str, value: serde_json::Value, kind| {
            let path = path.split('/').map(str::to_owned).collect();
            super::ConfigInsertion { path, value, kind }
        };
        let before =
            "{\n  \"a\": {\"b\": 1}, // kept\n  \"list\": [\"x\"],\n  \"word\": \"w\"\n}\n";
        let config = json!({"a": {"b": 1}, "list": ["x"], "word": "w"});
        let rows = [
            (insertion("a/b", json!(2), ConfigInsertionKind::SetKey), true),
            (insertion("a/c/d", json!({"e": 3}), ConfigInsertionKind::SetKey), false),
            (insertion("word/x", json!(4), ConfigInsertionKind::SetKey), true),
            (insertion("list", json!("x"), ConfigInsertionKind::AppendItem), true),
            (insertion("list", json!("y"), ConfigInsertionKind::AppendItem), false),
            (insertion("word", json!("y"), ConfigInsertionKind::AppendItem), true),
            (insertion("new/list", json!([5]), ConfigInsertionKind::AppendItem), false),
        ];
        for (insertion, conflicts) in &rows {
            assert_eq!(insertion.conflicts_with(&config), *conflicts, "{insertion:?}");
        }
        let without_conflict: Vec<_> = rows
            .into_iter()
            .filter(|(_, conflicts)| !conflicts)
            .map(|(insertion, _)| insertion)
            .collect();
        let text = super::insert_all(Some(before), &without_conflict).unwrap();
        assert!(text.contains("// kept"), "{text}");
        let options = jsonc_parser::ParseOptions::default();
        let read: serde_json::Value = jsonc_parser::parse_to_serde_value(&text, &options).unwrap();
        let after = json!({"a": {"b": 1, "c": {"d": {"e": 3}}}, "list": ["x", "y"], "word": "w",
                           "new": {"list": [[5]]}});
        assert_eq!(read, after);
        let conflicting = [
            insertion("a/b", json!(2), ConfigInsertionKind::SetKey),
            insertion("word/x", json!(4), ConfigInsertionKind::SetKey),
        ];
        assert_eq!(
            super::insert_all(Some(before), &conflicting).unwrap(),
            before,
            "conflicting insertions must change nothing"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_link_and_the_mode_of_a_file_are_kept() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.jsonc"), folder.path().join("windlass.jsonc"));
        std::fs::write(&real, "{}").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert!(insert(&link, ("mcp", "a"), &json!({"command": ["x"]})).unwrap().is_some());
        assert!(link.is_symlink());
        assert!(std::fs::read_to_string(&real).unwrap().contains("\"a\""));
        assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }

    proptest! {
        #[test]
        fn inserting_and_removing_leaves_the_same_config(
            texts in proptest::collection::vec("[ -~\\n\\t\"\\\\é]{0,12}", 1..4),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("windlass.jsonc");
            let before = "{\n  // kept\n  \"model\": \"m\"\n}\n";
            std::fs::write(&path, before).unwrap();
            insert(&path, ("mcp", "a"), &json!({"command": texts})).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            let options = jsonc_parser::ParseOptions::default();
            let read: serde_json::Value = jsonc_parser::parse_to_serde_value(&text, &options).unwrap();
            prop_assert_eq!(&read["mcp"]["a"]["command"], &json!(texts));
            remove(&path, ("mcp", "a")).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            let read: serde_json::Value = jsonc_parser::parse_to_serde_value(&text, &options).unwrap();
            prop_assert_eq!(read, json!({"model": "m"}));
            assert!(text.contains("// kept"));
        }
    }
}
