//! Plugin marketplaces in Claude's form: a `.claude-plugin/marketplace.json` lists plugins with
//! their sources.
//!
//! A marketplace is only a list of names: a plugin from it is fetched, shown and approved like any
//! other. The list is stored as it was when the user added or updated the marketplace.

use super::contents::{MANIFEST_PATHS, PluginContents};
use super::line_escaping::escape_line;
use crate::custom_tools::file_role::ToolFileKind;
use crate::{Dirs, ProjectError, private_files};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use windlass_protocol::display_text::truncate_chars;

const MARKETPLACE_FILE: &str = ".claude-plugin/marketplace.json";
const MAX_STORED_BYTES: u64 = 16 << 20;
const MAX_MARKETPLACES: usize = 50;
const MAX_MARKETPLACE_PLUGINS: usize = 2_000;
const MAX_NAME_BYTES: usize = 64;
const MAX_DESCRIPTION_CHARS: usize = 200;

/// A marketplace that the user added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PluginMarketplace {
    /// The source, as the user gave it: a folder, `owner/repo` or the URL of a git repository.
    pub source: String,
    pub plugins: Vec<MarketplacePlugin>,
}

/// A plugin that a marketplace lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MarketplacePlugin {
    pub name: String,
    pub description: String,
    pub source: MarketplacePluginSource,
    /// The entry itself, which is the manifest of a plugin that has none.
    entry: Map<String, Value>,
}

/// The place of a plugin that a marketplace lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarketplacePluginSource {
    /// A folder of the marketplace itself; empty for the whole.
    MarketplaceFolder(String),
    /// A source of `windlass plugin add`, and the folder in it.
    Other { source: String, folder: String },
    /// A source that is not supported, with the reason.
    Unsupported(String),
}

/// The marketplaces that the user added, stored in `marketplaces.json`.
#[derive(Clone, Debug)]
pub struct PluginMarketplaces {
    marketplaces: BTreeMap<String, PluginMarketplace>,
    dirs: Dirs,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MarketplaceListFile {
    marketplaces: BTreeMap<String, PluginMarketplace>,
}

impl PluginMarketplaces {
    /// Reads the list of marketplaces.
    pub fn read(dirs: &Dirs) -> Result<PluginMarketplaces, ProjectError> {
        let path = list_path(dirs);
        let list = match private_files::read_private(&path, MAX_STORED_BYTES)? {
            None => MarketplaceListFile::default(),
            Some(text) => serde_json::from_str::<MarketplaceListFile>(&text)
                .map_err(|error| private_files::corrupt_error(&path, &error))?,
        };
        Ok(PluginMarketplaces { marketplaces: list.marketplaces, dirs: dirs.clone() })
    }

    /// Returns all marketplaces by name.
    pub fn all(&self) -> impl Iterator<Item = (&str, &PluginMarketplace)> {
        self.marketplaces.iter().map(|(name, marketplace)| (name.as_str(), marketplace))
    }

    /// Returns the marketplace of this name.
    pub fn find(&self, name: &str) -> Option<&PluginMarketplace> {
        self.marketplaces.get(name)
    }

    /// Adds a marketplace, or replaces the one of its name, and saves the list.
    pub fn add(&mut self, name: &str, marketplace: PluginMarketplace) -> Result<(), ProjectError> {
        self.change(|marketplaces| {
            if marketplaces.len() >= MAX_MARKETPLACES && !marketplaces.contains_key(name) {
                let reason =
                    format!("there are already {MAX_MARKETPLACES} marketplaces; remove one");
                return Err(ProjectError::Plugin { name: name.to_owned(), reason });
            }
            marketplaces.insert(name.to_owned(), marketplace);
            Ok(())
        })
    }

    /// Removes a marketplace and saves the list.
    pub fn remove(&mut self, name: &str) -> Result<(), ProjectError> {
        self.change(|marketplaces| {
            marketplaces.remove(name);
            Ok(())
        })
    }

    /// Changes the list as it is stored now, while no other process does.
    fn change(
        &mut self,
        apply: impl FnOnce(&mut BTreeMap<String, PluginMarketplace>) -> Result<(), ProjectError>,
    ) -> Result<(), ProjectError> {
        let _lock = private_files::lock_file(&self.dirs.data, "marketplaces")?;
        *self = PluginMarketplaces::read(&self.dirs)?;
        apply(&mut self.marketplaces)?;
        let path = list_path(&self.dirs);
        let to_error = |source| ProjectError::File { path: path.clone(), source };
        let file = MarketplaceListFile { marketplaces: self.marketplaces.clone() };
        let text = serde_json::to_string_pretty(&file).map_err(|error| to_error(error.into()))?;
        private_files::replace_atomically(&path, text.as_bytes()).map_err(to_error)
    }
}

fn list_path(dirs: &Dirs) -> PathBuf {
    dirs.data.join("marketplaces.json")
}

impl PluginMarketplace {
    /// The path of the list in a repository.
    pub const LIST_PATH: &'static str = MARKETPLACE_FILE;

    /// Reads the list in a repository. Returns its name, too.
    pub fn from_contents(
        contents: &PluginContents,
        source: &str,
    ) -> Result<(String, PluginMarketplace), ProjectError> {
        let to_error = |reason: String| ProjectError::Plugin { name: source.to_owned(), reason };
        let text = contents.read_text(MARKETPLACE_FILE).ok_or_else(|| {
            to_error(format!("it has no {MARKETPLACE_FILE}, so it is not a marketplace"))
        })?;
        let text = text.map_err(|reason| to_error(format!("{MARKETPLACE_FILE} is {reason}")))?;
        let file: Value = serde_json::from_str(text)
            .map_err(|error| to_error(format!("{MARKETPLACE_FILE} is not valid JSON: {error}")))?;
        let name = file.get("name").and_then(Value::as_str).unwrap_or_default();
        if !is_marketplace_name(name) {
            let reason = format!(
                "{MARKETPLACE_FILE} has no valid `name`: use up to {MAX_NAME_BYTES} letters, \
                 digits, `.`, `_` and `-`"
            );
            return Err(to_error(reason));
        }
        let base = file.pointer("/metadata/pluginRoot").and_then(Value::as_str);
        let base = base.unwrap_or_default();
        let entries = file.get("plugins").and_then(Value::as_array).into_iter().flatten();
        let plugins = entries.take(MAX_MARKETPLACE_PLUGINS);
        let plugins = plugins.filter_map(|entry| parse_entry(entry.as_object()?, base)).collect();
        Ok((name.to_owned(), PluginMarketplace { source: source.to_owned(), plugins }))
    }

    /// Returns the plugin of this name.
    pub fn find(&self, name: &str) -> Option<&MarketplacePlugin> {
        self.plugins.iter().find(|plugin| plugin.name == name)
    }
}

impl MarketplacePlugin {
    /// Returns the plugin in a folder of the fetched files. Its entry in the marketplace becomes its
    /// manifest if it has none.
    pub fn select_contents(
        &self,
        contents: &PluginContents,
        folder: &str,
    ) -> Result<PluginContents, ProjectError> {
        let to_error = |reason: String| ProjectError::Plugin { name: self.name.clone(), reason };
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut selected = PluginContents::default();
        for (name, file) in contents.files_beneath(&prefix) {
            selected.add(name, file.kind, file.bytes.clone()).map_err(to_error)?;
        }
        if selected == PluginContents::default() {
            return Err(to_error(format!("its source has no folder `{}`", escape_line(folder))));
        }
        if !MANIFEST_PATHS.iter().any(|path| selected.contains(path)) {
            let manifest = Value::Object(self.entry.clone()).to_string().into_bytes();
            let path = ".claude-plugin/plugin.json";
            selected.add(path, ToolFileKind::Plain, manifest).map_err(to_error)?;
        }
        Ok(selected)
    }
}

/// Returns `true` for the name of a marketplace, or of a plugin in one.
pub fn is_marketplace_name(name: &str) -> bool {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().all(is_name_byte)
        && !name.starts_with(['.', '-'])
}

/// Returns the URL of a repository that is written as `owner/repo`, with `#NAME` for a branch or
/// tag, as on GitHub.
pub fn github_url(text: &str) -> Option<String> {
    let (path, branch) = match text.split_once('#') {
        Some((path, branch)) => (path, format!("#{branch}")),
        None => (text, String::new()),
    };
    let (owner, repository) = path.split_once('/')?;
    let is_owner = is_marketplace_name(owner) && !owner.contains(['.', '_']);
    (is_owner && is_marketplace_name(repository))
        .then(|| format!("https://github.com/{owner}/{repository}{branch}"))
}

fn parse_entry(entry: &Map<String, Value>, base: &str) -> Option<MarketplacePlugin> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
    let name = text("name");
    if !is_marketplace_name(name) {
        return None;
    }
    let description = truncate_chars(&escape_line(text("description")), MAX_DESCRIPTION_CHARS);
    let source = parse_source(entry.get("source").unwrap_or(&Value::Null), base)
        .unwrap_or_else(MarketplacePluginSource::Unsupported);
    let mut entry = entry.clone();
    entry.retain(|key, _| key != "source" && key != "strict");
    Some(MarketplacePlugin { name: name.to_owned(), description, source, entry })
}

/// Parses the `source` of a plugin; an `Err` is the reason why it is not supported.
fn parse_source(source: &Value, base: &str) -> Result<MarketplacePluginSource, String> {
    if let Some(path) = source.as_str() {
        let base = if path.starts_with("./") { "" } else { base };
        let folder = clean_folder(&format!("{base}/{path}"))?;
        return Ok(MarketplacePluginSource::MarketplaceFolder(folder));
    }
    let text = |key: &str| source.get(key).and_then(Value::as_str).unwrap_or_default();
    let commit = [text("sha"), text("ref")].into_iter().find(|name| !name.is_empty());
    let suffix = commit.map(|name| format!("#{name}")).unwrap_or_default();
    let (source, folder) = match text("source") {
        "github" => {
            let url = github_url(text("repo")).ok_or("its `repo` is not `owner/repo`")?;
            (format!("{url}{suffix}"), text("path"))
        }
        "url" | "git" | "git-subdir" => {
            let url = github_url(text("url")).unwrap_or_else(|| text("url").to_owned());
            if !url.starts_with("https://") && !url.starts_with("file://") {
                return Err("its repository is not at an https URL".to_owned());
            }
            (format!("{url}{suffix}"), text("path"))
        }
        "npm" => {
            let version = Some(text("version")).filter(|version| !version.is_empty());
            let version = version.map(|version| format!("@{version}")).unwrap_or_default();
            let package = text("package");
            let folder = clean_folder(&format!("node_modules/{package}"))?;
            let source = format!("npm:{package}{version}");
            return Ok(MarketplacePluginSource::Other { source, folder });
        }
        kind => return Err(format!("its source `{}` is not supported", escape_line(kind))),
    };
    let folder = clean_folder(folder)?;
    Ok(MarketplacePluginSource::Other { source, folder })
}

/// Returns a folder without `.` parts, or an `Err` if it leads outside.
fn clean_folder(path: &str) -> Result<String, String> {
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    let parts: Vec<&str> = parts.collect();
    match parts.contains(&"..") || path.contains(['\\', '\0']) {
        true => Err("its folder is outside the repository".to_owned()),
        false => Ok(parts.join("/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_kind_of_source_is_understood() {
        let other = |source: &str, folder: &str| MarketplacePluginSource::Other {
            source: source.into(),
            folder: folder.into(),
        };
        let own = |folder: &str| MarketplacePluginSource::MarketplaceFolder(folder.into());
        for (source, expected) in [
            (json!("./"), own("")),
            (json!("./plugins/a"), own("plugins/a")),
            (json!("a"), own("root/a")),
            (json!({"source": "github", "repo": "o/r"}), other("https://github.com/o/r", "")),
            (
                json!({"source": "github", "repo": "o/r", "ref": "v1", "sha": "abc"}),
                other("https://github.com/o/r#abc", ""),
            ),
            (
                json!({"source": "url", "url": "https://g.example/r.git", "ref": "v1"}),
                other("https://g.example/r.git#v1", ""),
            ),
            (
                json!({"source": "git-subdir", "url": "o/r", "path": "./a/b/"}),
                other("https://github.com/o/r", "a/b"),
            ),
            (
                json!({"source": "npm", "package": "@s/p", "version": "^2"}),
                other("npm:@s/p@^2", "node_modules/@s/p"),
            ),
        ] {
            assert_eq!(parse_source(&source, "root"), Ok(expected), "{source}");
        }
        for source in [
            json!("../other"),
            json!("./a/../../b"),
            json!({"source": "github", "repo": "nothing"}),
            json!({"source": "url", "url": "http://g.example/r"}),
            json!({"source": "url", "url": "git@g.example:o/r"}),
            json!({"source": "git-subdir", "url": "o/r", "path": "../.."}),
            json!({"source": "pip", "package": "x"}),
            json!(7),
        ] {
            assert!(parse_source(&source, "").is_err(), "{source}");
        }
    }

    #[test]
    fn a_github_repository_has_an_owner_and_a_name() {
        for (text, url) in [
            ("o/r", Some("https://github.com/o/r")),
            ("my-org/a.b_c#v1", Some("https://github.com/my-org/a.b_c#v1")),
            ("o/r/x", None),
            ("../r", None),
            ("o/..", None),
            ("o", None),
            ("/r", None),
            ("o/-r", None),
        ] {
            assert_eq!(github_url(text).as_deref(), url, "{text}");
        }
    }
}
