//! Changes to a config file that leave everything else as it stands: comments, order, spaces.
//!
//! A file is replaced as a whole. One that cannot be understood is left alone: nobody knows what a change
//! to it would mean.
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

use crate::{Error, file, private};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What a new config begins as.
const EMPTY: &str = "{\n}\n";

/// A change that was made, and can be taken back to the byte.
#[derive(Debug)]
#[must_use]
pub struct Made {
    path: PathBuf,
    before: Option<String>,
}

impl Made {
    /// Puts back what stood there.
    pub fn take_back(self) -> Result<(), Error> {
        match &self.before {
            Some(before) => replace(&self.path, before),
            None => std::fs::remove_file(&self.path)
                .map_err(|source| Error::File { path: self.path.clone(), source }),
        }
    }
}

/// Puts a value under two keys, one inside the other: `mcp`, `git`. `None` if there is one already,
/// which then stays.
pub fn put(
    path: &Path,
    (outer, inner): (&str, &str),
    value: &Value,
) -> Result<Option<Made>, Error> {
    change(path, |root| {
        let Some(object) = root.object_value_or_create(outer) else {
            return Err(format!("`{outer}` is not an object"));
        };
        if object.get(inner).is_some() {
            return Ok(false);
        }
        object.append(inner, input(value));
        Ok(true)
    })
}

/// Sets what stands under keys, from the outermost; what stood there before is gone.
pub fn set(path: &Path, keys: &[&str], value: &Value) -> Result<(), Error> {
    let Some((last, way)) = keys.split_last() else { return Ok(()) };
    let made = change(path, |root| {
        let mut object = root.clone();
        for key in way {
            let Some(inner) = object.object_value_or_create(key) else {
                return Err(format!("`{key}` is not an object"));
            };
            object = inner;
        }
        match object.get(last) {
            Some(property) => property.set_value(input(value)),
            None => {
                object.append(last, input(value));
            }
        }
        Ok(true)
    })?;
    drop(made);
    Ok(())
}

/// Takes away what stands under two keys, with the outer one if nothing is left in it. `None` if there
/// was nothing.
pub fn remove(path: &Path, (outer, inner): (&str, &str)) -> Result<Option<Made>, Error> {
    change(path, |root| {
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

/// A value and where it goes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Put {
    /// The keys on the way, from the outermost.
    pub(crate) path: Vec<String>,
    pub(crate) value: Value,
    pub(crate) place: Place,
}

/// What a value becomes where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// What stands under the last key.
    Key,
    /// One more of the list that stands there.
    Item,
}

impl Put {
    /// What is in its way: a value of that key, the same item, or something on the way that is no object.
    pub(crate) fn is_there(&self, config: &Value) -> bool {
        let mut at = config;
        for (index, key) in self.path.iter().enumerate() {
            let Value::Object(map) = at else { return true };
            let Some(inner) = map.get(key) else { return false };
            let last = index + 1 == self.path.len();
            match (last, self.place, inner) {
                (true, Place::Item, Value::Array(items)) => return items.contains(&self.value),
                (true, Place::Item | Place::Key, _) => return true,
                (false, ..) => at = inner,
            }
        }
        true
    }
}

/// A config's text with more in it. What is there stays, also if a value wants its place.
pub(crate) fn with(text: Option<&str>, puts: &[Put]) -> Result<String, String> {
    let root = CstRootNode::parse(text.unwrap_or(EMPTY), &ParseOptions::default());
    let root = root.map_err(|error| error.to_string())?;
    let top = root.object_value_or_create().ok_or("it is not an object")?;
    for put in puts {
        let Some((last, way)) = put.path.split_last() else { continue };
        let inner = |object: CstObject, key: &String| object.object_value_or_create(key);
        let Some(object) = way.iter().try_fold(top.clone(), inner) else { continue };
        match put.place {
            Place::Key if object.get(last).is_none() => {
                object.append(last, input(&put.value));
            }
            Place::Key => {}
            Place::Item => {
                if let Some(list) = object.array_value_or_create(last) {
                    list.append(input(&put.value));
                }
            }
        }
    }
    Ok(root.to_string())
}

/// Puts a text in a config's place. A link, as of those who keep their config elsewhere, stays one.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = real.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(failed)?;
    write(&real, text).map_err(failed)
}

fn change(
    path: &Path,
    edit: impl FnOnce(&CstObject) -> Result<bool, String>,
) -> Result<Option<Made>, Error> {
    let damaged = |reason: String| Error::Damaged { path: path.to_owned(), reason };
    let before = file::read(path)?;
    let text = before.as_deref().unwrap_or(EMPTY);
    let root = CstRootNode::parse(text, &ParseOptions::default());
    let root = root.map_err(|error| damaged(error.to_string()))?;
    let object = root.object_value_or_create();
    let object = object.ok_or_else(|| damaged("it is not an object".into()))?;
    if !edit(&object).map_err(damaged)? {
        return Ok(None);
    }
    replace(path, &root.to_string())?;
    Ok(Some(Made { path: path.to_owned(), before }))
}

/// Whoever could read the file can still do so.
fn write(real: &Path, text: &str) -> std::io::Result<()> {
    let rights = real.metadata().map(|data| data.permissions());
    private::replace(real, text.as_bytes())?;
    match rights {
        Ok(rights) => std::fs::set_permissions(real, rights),
        Err(_) => Ok(()),
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(fields) => CstInputValue::Object(
            fields.iter().map(|(name, value)| (name.clone(), input(value))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, put, remove};
    use proptest::prelude::{prop_assert_eq, proptest};
    use serde_json::json;

    #[test]
    fn a_change_leaves_comments_and_everything_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("windlass.jsonc");
        let before = "// mine\n{\n  // the one I like\n  \"model\": \"a/b\", // cheap\n  \"mcp\": {\n    \"old\": {\"command\": [\"x\"]}, // keep\n  },\n}\n";
        std::fs::write(&path, before).unwrap();
        let value = json!({"type": "local", "command": ["git-server", "a \"b\""]});
        assert!(put(&path, ("mcp", "git"), &value).unwrap().is_some());
        assert!(put(&path, ("mcp", "git"), &json!({})).unwrap().is_none(), "what is there stays");
        let text = std::fs::read_to_string(&path).unwrap();
        for part in [
            "// mine",
            "// the one I like",
            "// cheap",
            "// keep",
            "\"old\": {\"command\": [\"x\"]}",
        ] {
            assert!(text.contains(part), "{part} is gone: {text}");
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
    fn a_setting_is_changed_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("windlass.jsonc");
        super::set(&path, &["model"], &json!("a/b")).unwrap();
        super::set(&path, &["tui", "theme"], &json!("paper")).unwrap();
        let before =
            std::fs::read_to_string(&path).unwrap().replace("\"a/b\",", "\"a/b\", // dear");
        std::fs::write(&path, before).unwrap();
        super::set(&path, &["model"], &json!("c/d")).unwrap();
        super::set(&path, &["tui", "keys", "help"], &json!("f2")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("// dear") && !text.contains("a/b"), "{text}");
        let options = jsonc_parser::ParseOptions::default();
        let read: serde_json::Value = jsonc_parser::parse_to_serde_value(&text, &options).unwrap();
        let tui = json!({"theme": "paper", "keys": {"help": "f2"}});
        assert_eq!(read, json!({"model": "c/d", "tui": tui}));
        assert!(super::set(&path, &["model", "x"], &json!(1)).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn a_config_is_made_and_one_that_cannot_be_understood_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/windlass.jsonc");
        assert!(put(&path, ("mcp", "a"), &json!({"url": "https://a.example"})).unwrap().is_some());
        assert!(std::fs::read_to_string(&path).unwrap().contains("https://a.example"));
        for broken in ["{", "[1]", "{\"mcp\": 7}", "{\"mcp\": {}} x"] {
            std::fs::write(&path, broken).unwrap();
            assert!(put(&path, ("mcp", "b"), &json!({})).is_err(), "{broken}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), broken);
        }
    }

    #[test]
    fn more_goes_in_at_any_depth_and_over_nothing() {
        let put = |path: &str, value: serde_json::Value, place| {
            let path = path.split('/').map(str::to_owned).collect();
            super::Put { path, value, place }
        };
        let before =
            "{\n  \"a\": {\"b\": 1}, // kept\n  \"list\": [\"x\"],\n  \"word\": \"w\"\n}\n";
        let config = json!({"a": {"b": 1}, "list": ["x"], "word": "w"});
        let rows = [
            (put("a/b", json!(2), Place::Key), true),
            (put("a/c/d", json!({"e": 3}), Place::Key), false),
            (put("word/x", json!(4), Place::Key), true),
            (put("list", json!("x"), Place::Item), true),
            (put("list", json!("y"), Place::Item), false),
            (put("word", json!("y"), Place::Item), true),
            (put("new/list", json!([5]), Place::Item), false),
        ];
        for (put, there) in &rows {
            assert_eq!(put.is_there(&config), *there, "{put:?}");
        }
        let fresh: Vec<_> =
            rows.into_iter().filter(|(_, there)| !there).map(|(put, _)| put).collect();
        let text = super::with(Some(before), &fresh).unwrap();
        assert!(text.contains("// kept"), "{text}");
        let options = jsonc_parser::ParseOptions::default();
        let read: serde_json::Value = jsonc_parser::parse_to_serde_value(&text, &options).unwrap();
        let after = json!({"a": {"b": 1, "c": {"d": {"e": 3}}}, "list": ["x", "y"], "word": "w",
                           "new": {"list": [[5]]}});
        assert_eq!(read, after);
        let over = [put("a/b", json!(2), Place::Key), put("word/x", json!(4), Place::Key)];
        assert_eq!(super::with(Some(before), &over).unwrap(), before, "not even by force");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_and_the_rights_of_a_file_stay() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.jsonc"), folder.path().join("windlass.jsonc"));
        std::fs::write(&real, "{}").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert!(put(&link, ("mcp", "a"), &json!({"command": ["x"]})).unwrap().is_some());
        assert!(link.is_symlink());
        assert!(std::fs::read_to_string(&real).unwrap().contains("\"a\""));
        assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }

    proptest! {
        #[test]
        fn what_was_put_in_and_taken_out_leaves_the_same_config(
            texts in proptest::collection::vec("[ -~\\n\\t\"\\\\é]{0,12}", 1..4),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("windlass.jsonc");
            let before = "{\n  // kept\n  \"model\": \"m\"\n}\n";
            std::fs::write(&path, before).unwrap();
            put(&path, ("mcp", "a"), &json!({"command": texts})).unwrap();
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
