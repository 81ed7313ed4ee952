//! Parses one config file: JSON with comments, a `ConfigOrigin` for every value, a line for every
//! fault.
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]

use crate::ProjectError;
use crate::config::json_pointer;
use crate::config::schema::{ProviderSettings, config_schema};
use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The config files of a project, weakest first.
pub const PROJECT_FILES: &[&str] = &["windlass.jsonc", ".windlass/windlass.jsonc"];

/// The source of a setting, from weakest to strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigLayer {
    /// The user's config folder.
    User,
    /// A plugin that the user added.
    Plugin,
    /// The project, once trusted.
    Project,
    /// The command line.
    Flag,
    /// The administrator's managed policy. Nothing overrides it.
    Managed,
}

/// The origin of a value: `layer`, `file`, `line` and `column`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigOrigin {
    pub layer: ConfigLayer,
    /// `None` for the command line.
    pub file: Option<PathBuf>,
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1.
    pub column: usize,
}

impl fmt::Display for ConfigOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            // A plugin's origin means the whole plugin, so there is no line.
            Some(file) if self.layer == ConfigLayer::Plugin => write!(f, "{}", file.display()),
            Some(file) => write!(f, "{}:{}:{}", file.display(), self.line, self.column),
            None => f.write_str("command line"),
        }
    }
}

/// Parses a JSON object with comments; an empty text is an empty object.
pub fn parse_config_object(text: &str) -> Result<Value, String> {
    let options = jsonc_parser::ParseOptions::default();
    let value = jsonc_parser::parse_to_serde_value::<Value>(text, &options);
    match value.map_err(|error| error.to_string())? {
        value @ Value::Object(_) => Ok(value),
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err("not a JSON object".into())
        }
    }
}

/// A problem in a config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigDiagnostic {
    pub origin: ConfigOrigin,
    /// The problem and its consequence.
    pub message: String,
    /// `true` if it prevents the start.
    pub fatal: bool,
}

impl fmt::Display for ConfigDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.message)
    }
}

/// A parsed config file: its usable values, and diagnostics for the rest.
pub(crate) struct ParsedConfig {
    pub(crate) value: Map<String, Value>,
    pub(crate) diagnostics: Vec<ConfigDiagnostic>,
    /// Providers with a fault, each with its first fault and origin. None is used with incomplete
    /// settings: the missing part may be its URL. An unknown setting without a URL is no fault.
    pub(crate) broken_providers: BTreeMap<String, String>,
    /// Agents with a fault. None runs with incomplete restrictions.
    pub(crate) broken_agents: BTreeSet<String>,
    /// Entries of `mcp`, `lsp` and `formatter` with a fault, by JSON pointer. None starts with
    /// incomplete restrictions.
    pub(crate) broken_entries: BTreeSet<String>,
    origins: BTreeMap<String, ConfigOrigin>,
    top_origin: ConfigOrigin,
    is_invalid_json: bool,
}

/// Tells if a file may contain comments and trailing commas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonCommentPolicy {
    Allowed,
    Forbidden,
}

/// The message for an unknown setting.
const UNKNOWN_SETTING_MESSAGE: &str = "is not a known setting";

const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Reads the text of a config file; `None` if there is none. A file is read once and everything
/// uses that text, so that it cannot change in between.
pub(crate) fn read_config_text(path: &Path) -> Result<Option<String>, ProjectError> {
    use std::io::ErrorKind;
    let to_error = |source| ProjectError::File { path: path.to_owned(), source };
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(to_error(std::io::Error::other("not a regular file"))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(to_error(error)),
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(to_error)?;
    if file.take(MAX_CONFIG_BYTES + 1).read_to_string(&mut text).map_err(to_error)? as u64
        > MAX_CONFIG_BYTES
    {
        return Err(to_error(std::io::Error::other("too large for a config file")));
    }
    Ok(Some(text))
}

/// Lists up to `max_files` files of a folder, sorted by name; empty if there is no folder. `select`
/// selects entries and may return a path inside an entry.
pub(crate) fn list_files(
    folder: &Path,
    max_files: usize,
    select: impl Fn(PathBuf) -> Option<PathBuf>,
) -> Result<Vec<PathBuf>, ProjectError> {
    let to_error = |source| ProjectError::File { path: folder.to_owned(), source };
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(to_error(error)),
    };
    let mut paths = Vec::new();
    for entry in entries.take(4 * max_files) {
        paths.extend(select(entry.map_err(to_error)?.path()).filter(|path| path.is_file()));
    }
    paths.sort();
    paths.truncate(max_files);
    Ok(paths)
}

/// Reads the `.md` files of a folder of the user's own, sorted by name.
pub(crate) fn read_documents(
    folder: &Path,
    max_files: usize,
) -> Result<Vec<(PathBuf, String)>, ProjectError> {
    let is_markdown = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let paths = list_files(folder, max_files, |path| Some(path).filter(is_markdown))?;
    let read = |path: PathBuf| Ok(read_config_text(&path)?.map(|text| (path, text)));
    paths.into_iter().filter_map(|path| read(path).transpose()).collect()
}

impl ParsedConfig {
    pub(crate) fn parse(path: &Path, layer: ConfigLayer, text: &str) -> ParsedConfig {
        let mut file = ParsedConfig::parse_untyped(path, layer, text, JsonCommentPolicy::Allowed);
        // Text that is not JSON gets no further diagnostics.
        if !file.is_invalid_json {
            file.validate();
        }
        file
    }

    /// Parses JSON that is not our config: values are not checked against the schema.
    pub(crate) fn parse_untyped(
        path: &Path,
        layer: ConfigLayer,
        text: &str,
        comments: JsonCommentPolicy,
    ) -> ParsedConfig {
        // Origins are requested front to back, so each position is counted from the previous one.
        let position = Cell::new((0, 1, 1));
        let origin_at = |byte: usize| {
            let (start, line, column) = position.get();
            let (start, line, column) =
                if byte < start { (0, 1, 1) } else { (start, line, column) };
            let between = text.get(start..byte).unwrap_or_default();
            let (line, column) = match between.rsplit_once('\n') {
                None => (line, column + between.chars().count()),
                Some((before, last)) => {
                    (line + 1 + before.matches('\n').count(), last.chars().count() + 1)
                }
            };
            position.set((byte, line, column));
            ConfigOrigin { layer, file: Some(path.to_owned()), line, column }
        };
        let allowed = comments == JsonCommentPolicy::Allowed;
        let mut file = ParsedConfig {
            value: Map::new(),
            diagnostics: Vec::new(),
            broken_providers: BTreeMap::new(),
            broken_agents: BTreeSet::new(),
            broken_entries: BTreeSet::new(),
            origins: BTreeMap::new(),
            top_origin: origin_at(0),
            is_invalid_json: false,
        };
        let options = ParseOptions {
            allow_comments: allowed,
            allow_trailing_commas: allowed,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let parsed = match parse_to_ast(text, &CollectOptions::default(), &options) {
            Ok(parsed) => parsed.value,
            Err(error) => {
                let origin = ConfigOrigin {
                    layer,
                    file: Some(path.to_owned()),
                    line: error.line_display(),
                    column: error.column_display(),
                };
                let message = format!("invalid JSON: {}", error.kind());
                file.diagnostics.push(ConfigDiagnostic { origin, message, fatal: true });
                file.is_invalid_json = true;
                return file;
            }
        };
        match parsed {
            Some(ast::Value::Object(object)) => {
                file.value = file.convert_object(&object, "", &origin_at)
            }
            None => {}
            Some(_) => file.add_fault("", "a config must be an object, { … }"),
        }
        file
    }

    fn convert_object(
        &mut self,
        object: &ast::Object<'_>,
        pointer: &str,
        origin_at: &impl Fn(usize) -> ConfigOrigin,
    ) -> Map<String, Value> {
        let mut map = Map::new();
        for property in &object.properties {
            let name = property.name.as_str();
            let pointer = json_pointer::join(pointer, name);
            self.origins.insert(pointer.clone(), origin_at(property.range.start));
            let value = self.convert_value(&property.value, &pointer, origin_at);
            if map.insert(name.to_owned(), value).is_some() {
                // Two rules of the same name would hide each other.
                self.add_fault(&pointer, &format!("duplicate key `{name}`"));
            }
        }
        map
    }

    fn convert_value(
        &mut self,
        value: &ast::Value<'_>,
        pointer: &str,
        origin_at: &impl Fn(usize) -> ConfigOrigin,
    ) -> Value {
        match value {
            ast::Value::StringLit(text) => Value::String(text.value.to_string()),
            ast::Value::NumberLit(number) => {
                number.value.parse().map_or(Value::Null, Value::Number)
            }
            ast::Value::BooleanLit(boolean) => Value::Bool(boolean.value),
            ast::Value::NullKeyword(_) => Value::Null,
            ast::Value::Object(object) => {
                Value::Object(self.convert_object(object, pointer, origin_at))
            }
            ast::Value::Array(array) => {
                let items = array.elements.iter().enumerate();
                items
                    .map(|(n, item)| {
                        let pointer = format!("{pointer}/{n}");
                        self.origins.insert(pointer.clone(), origin_at(item.start()));
                        self.convert_value(item, &pointer, origin_at)
                    })
                    .collect()
            }
        }
    }

    pub(crate) fn value_at(&self, pointer: &str) -> Option<&Value> {
        let mut names = json_pointer::segments(pointer);
        let first = self.value.get(&names.next()?)?;
        names.try_fold(first, |value, name| value.get(&name))
    }

    /// Returns the `ConfigOrigin` of the value at a pointer, or of the nearest enclosing one.
    pub(crate) fn origin_of(&self, pointer: &str) -> &ConfigOrigin {
        let mut pointer = pointer;
        loop {
            if let Some(origin) = self.origins.get(pointer) {
                return origin;
            }
            match pointer.rsplit_once('/') {
                Some((parent, _)) => pointer = parent,
                None => return &self.top_origin,
            }
        }
    }

    /// Records a fault. A fault in `permission` is fatal: half a rule must not decide anything. A
    /// fault in `mode` or `sandbox` is fatal in layers that may set them, because the default may
    /// be less restrictive than the intended value.
    pub(crate) fn add_fault(&mut self, pointer: &str, message: &str) {
        let fatal = match pointer.split('/').nth(1) {
            None | Some("permission") => true,
            // A hook may exist to deny calls, so none is dropped.
            Some("mode" | "sandbox" | "hooks") => self.top_origin.layer != ConfigLayer::Project,
            Some(_) => false,
        };
        let origin = self.origin_of(pointer).clone();
        let names: Vec<String> = json_pointer::segments(pointer).collect();
        let is_ignorable = message.ends_with(UNKNOWN_SETTING_MESSAGE)
            && !names.last().is_some_and(|name| sounds_like_url(name))
            && self.value_at(pointer).is_none_or(|value| !contains_url(value));
        if let [top, name, ..] = names.as_slice()
            && top == "provider"
            && !is_ignorable
        {
            let reason = || format!("{message} ({origin})");
            self.broken_providers.entry(name.clone()).or_insert_with(reason);
            // Mistakes in other layers do not always disable the provider; see `Config`.
            if matches!(self.top_origin.layer, ConfigLayer::User | ConfigLayer::Flag) {
                let message = format!("{message}; provider `{name}` is disabled");
                self.diagnostics.push(ConfigDiagnostic { origin, message, fatal });
                return;
            }
        }
        let broken_entry = match names.as_slice() {
            [top, name, ..] if top == "mcp" => Some((top, name, "the server")),
            [top, name, ..] if top == "lsp" || top == "formatter" => Some((top, name, "it")),
            _ => None,
        };
        if let Some((top, name, subject)) = broken_entry {
            self.broken_entries.insert(json_pointer::join(&format!("/{top}"), name));
            let message = format!("{message}; {subject} is skipped");
            self.diagnostics.push(ConfigDiagnostic { origin, message, fatal });
            return;
        }
        let broken_agent = match names.as_slice() {
            [agent, name, key, ..] if agent == "agent" && key != "options" => Some(name),
            _ => None,
        };
        let message = match broken_agent.filter(|_| !message.ends_with(UNKNOWN_SETTING_MESSAGE)) {
            Some(name) => {
                self.broken_agents.insert(name.clone());
                format!("{message}; the agent is skipped")
            }
            None if fatal => message.to_owned(),
            None => format!("{message}; ignored"),
        };
        self.diagnostics.push(ConfigDiagnostic { origin, message, fatal });
    }

    pub(crate) fn remove_value(&mut self, pointer: &str) {
        remove_pointer(&mut self.value, pointer);
    }

    /// Validates against the schema. Values that do not match are reported and removed, so that a
    /// bad line costs only that line.
    fn validate(&mut self) {
        let schema = config_schema().to_value();
        let Ok(validator) = jsonschema::validator_for(&schema) else { return };
        let value = Value::Object(self.value.clone());
        let mut errors = Vec::new();
        for error in validator.iter_errors(&value) {
            let pointer = error.instance_path().to_string();
            match error.kind() {
                ValidationErrorKind::AdditionalProperties { unexpected } => {
                    for name in unexpected {
                        let settings = schema.get("properties").filter(|_| pointer.is_empty());
                        let hint = match settings.and_then(|it| similar_setting(it, name)) {
                            Some(similar) => format!(", but `{similar}` is"),
                            None => String::new(),
                        };
                        errors.push((
                            format!("{pointer}/{name}"),
                            format!("`{name}` {UNKNOWN_SETTING_MESSAGE}{hint}"),
                        ));
                    }
                }
                ValidationErrorKind::Required { property } => {
                    let name = property.as_str().unwrap_or_default();
                    errors.push((pointer, format!("missing `{name}`")));
                }
                _ if pointer == "/mode" => {
                    errors.push((
                        pointer,
                        "`mode` must be `plan`, `ask`, `auto` or `full`".to_owned(),
                    ));
                }
                _ => errors.push((pointer, error.masked_with("this value").to_string())),
            }
        }
        for (pointer, message) in errors {
            self.add_fault(&pointer, &message);
            remove_pointer(&mut self.value, &pointer);
        }
        // A `provider` entry that passes the schema but does not deserialize is removed entirely.
        let invalid_providers: Vec<(String, String)> = self
            .value_at("/provider")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(name, provider)| {
                let parsed = serde_json::from_value::<ProviderSettings>(provider.clone());
                Some((json_pointer::join("/provider", name), parsed.err()?.to_string()))
            })
            .collect();
        for (pointer, message) in invalid_providers {
            self.add_fault(&pointer, &message);
            remove_pointer(&mut self.value, &pointer);
        }
    }
}

/// Returns the setting with the same name in the singular, in the plural or in another case.
fn similar_setting<'a>(settings: &'a Value, name: &str) -> Option<&'a String> {
    let stem = |name: &str| {
        let name = name.to_ascii_lowercase().replace('-', "_");
        name.strip_suffix('s').map_or(name.clone(), str::to_owned)
    };
    settings.as_object()?.keys().find(|setting| stem(setting) == stem(name))
}

/// Returns true if a value contains a URL: a misspelled `base_url` must not send requests and the
/// API key to another address.
fn contains_url(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("://"),
        Value::Array(items) => items.iter().any(contains_url),
        Value::Object(map) => map.values().any(contains_url),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns true if a setting of this name may be meant as an address.
fn sounds_like_url(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["url", "uri", "endpoint", "host", "base", "server", "address", "proxy", "domain"]
        .iter()
        .any(|word| name.contains(word))
}

fn remove_pointer(map: &mut Map<String, Value>, pointer: &str) {
    let mut names: Vec<String> = json_pointer::segments(pointer).collect();
    let Some(last) = names.pop() else { return };
    let mut current = map;
    for name in names {
        match current.get_mut(&name) {
            Some(Value::Object(inner)) => current = inner,
            Some(_) | None => return,
        }
    }
    current.remove(&last);
}
