//! One config file: JSON with comments, every value with its place, every fault with its line.
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

use crate::{Error, pointer};
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

/// Who says something, from weak to strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The person, in their config folder.
    User,
    /// A plugin that the person added.
    Plugin,
    /// The project, once trusted.
    Project,
    /// The command line.
    Flag,
    /// Whoever runs the machine. Nothing overrides it.
    Managed,
}

/// Where a value stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Who says it.
    pub layer: Layer,
    /// In which file; none for the command line.
    pub file: Option<PathBuf>,
    /// In which line, counting from 1.
    pub line: usize,
    /// In which column, counting from 1.
    pub column: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            // It is about the whole of it.
            Some(file) if self.layer == Layer::Plugin => write!(f, "{}", file.display()),
            Some(file) => write!(f, "{}:{}:{}", file.display(), self.line, self.column),
            None => f.write_str("command line"),
        }
    }
}

/// Something wrong with a config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where.
    pub origin: Origin,
    /// What is wrong, and what becomes of it.
    pub message: String,
    /// True if nothing may start with it.
    pub fatal: bool,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.message)
    }
}

/// A config file that was read: what of it can be used, and what is wrong with the rest.
pub(crate) struct File {
    pub(crate) value: Map<String, Value>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// The providers something is wrong with. None is used with half of what was said about it: the
    /// half that is missing may be its address.
    pub(crate) broken: BTreeSet<String>,
    /// The agents something is wrong with. None works with half of its bounds.
    pub(crate) unfit: BTreeSet<String>,
    /// The servers and formatters something is wrong with, by where they stand. None is started with
    /// half of its bounds.
    pub(crate) marred: BTreeSet<String>,
    origins: BTreeMap<String, Origin>,
    top: Origin,
    /// It is not JSON.
    unread: bool,
}

/// Whether comments and trailing commas may stand in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comments {
    Allowed,
    Refused,
}

/// What is said of a setting that nobody knows.
const UNKNOWN: &str = "is not a setting";

/// A config has no business being longer.
const LONGEST: u64 = 1 << 20;

/// The text of a config file; `None` if there is none. Everything that is done with a file is done
/// with one reading of it, so that nobody can change it in between.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Error> {
    use std::io::ErrorKind;
    let failed = |source| Error::File { path: path.to_owned(), source };
    match path.metadata() {
        Ok(data) if data.is_file() => {}
        Ok(_) => return Err(failed(std::io::Error::other("it is not a file"))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(failed(error)),
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    if file.take(LONGEST + 1).read_to_string(&mut text).map_err(failed)? as u64 > LONGEST {
        return Err(failed(std::io::Error::other("it is longer than a config can be")));
    }
    Ok(Some(text))
}

/// The files of a folder that are wanted, by name and at most so many; none if there is no folder.
/// What is wanted of an entry may stand in it.
pub(crate) fn within(
    folder: &Path,
    most: usize,
    wanted: impl Fn(PathBuf) -> Option<PathBuf>,
) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::File { path: folder.to_owned(), source };
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in entries.take(4 * most) {
        found.extend(wanted(entry.map_err(failed)?.path()).filter(|path| path.is_file()));
    }
    found.sort();
    found.truncate(most);
    Ok(found)
}

/// The Markdown files of a folder of the person's own and what each says, by name.
pub(crate) fn documents(folder: &Path, most: usize) -> Result<Vec<(PathBuf, String)>, Error> {
    let markdown = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let paths = within(folder, most, |path| Some(path).filter(markdown))?;
    let read = |path: PathBuf| Ok(read(&path)?.map(|text| (path, text)));
    paths.into_iter().filter_map(|path| read(path).transpose()).collect()
}

impl File {
    pub(crate) fn parse(path: &Path, layer: Layer, text: &str) -> File {
        let mut file = File::bare(path, layer, text, Comments::Allowed);
        // Nothing else is said of what is not JSON.
        if !file.unread {
            file.validate();
        }
        file
    }

    /// Reads JSON that is not our config: every value is taken as it is.
    pub(crate) fn bare(path: &Path, layer: Layer, text: &str, comments: Comments) -> File {
        // Places are asked for from front to back, so each is counted from the one before.
        let counted = Cell::new((0, 1, 1));
        let place = |byte: usize| {
            let (from, line, column) = counted.get();
            let (from, line, column) = if byte < from { (0, 1, 1) } else { (from, line, column) };
            let between = text.get(from..byte).unwrap_or_default();
            let (line, column) = match between.rsplit_once('\n') {
                None => (line, column + between.chars().count()),
                Some((before, last)) => {
                    (line + 1 + before.matches('\n').count(), last.chars().count() + 1)
                }
            };
            counted.set((byte, line, column));
            Origin { layer, file: Some(path.to_owned()), line, column }
        };
        let allowed = comments == Comments::Allowed;
        let mut file = File {
            value: Map::new(),
            diagnostics: Vec::new(),
            broken: BTreeSet::new(),
            unfit: BTreeSet::new(),
            marred: BTreeSet::new(),
            origins: BTreeMap::new(),
            top: place(0),
            unread: false,
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
                let origin = Origin {
                    layer,
                    file: Some(path.to_owned()),
                    line: error.line_display(),
                    column: error.column_display(),
                };
                let message = format!("this is not JSON: {}", error.kind());
                file.diagnostics.push(Diagnostic { origin, message, fatal: true });
                file.unread = true;
                return file;
            }
        };
        match parsed {
            Some(ast::Value::Object(object)) => file.value = file.object(&object, "", &place),
            None => {}
            Some(_) => file.fault("", "a config is an object, { … }"),
        }
        file
    }

    fn object(
        &mut self,
        object: &ast::Object<'_>,
        pointer: &str,
        place: &impl Fn(usize) -> Origin,
    ) -> Map<String, Value> {
        let mut map = Map::new();
        for property in &object.properties {
            let name = property.name.as_str();
            let pointer = pointer::join(pointer, name);
            self.origins.insert(pointer.clone(), place(property.range.start));
            let value = self.convert(&property.value, &pointer, place);
            if map.insert(name.to_owned(), value).is_some() {
                // Two rules of one name would hide one another.
                self.fault(&pointer, &format!("`{name}` stands here twice"));
            }
        }
        map
    }

    fn convert(
        &mut self,
        value: &ast::Value<'_>,
        pointer: &str,
        place: &impl Fn(usize) -> Origin,
    ) -> Value {
        match value {
            ast::Value::StringLit(text) => Value::String(text.value.to_string()),
            ast::Value::NumberLit(number) => {
                number.value.parse().map_or(Value::Null, Value::Number)
            }
            ast::Value::BooleanLit(boolean) => Value::Bool(boolean.value),
            ast::Value::NullKeyword(_) => Value::Null,
            ast::Value::Object(object) => Value::Object(self.object(object, pointer, place)),
            ast::Value::Array(array) => {
                let items = array.elements.iter().enumerate();
                items
                    .map(|(n, item)| {
                        let pointer = format!("{pointer}/{n}");
                        self.origins.insert(pointer.clone(), place(item.start()));
                        self.convert(item, &pointer, place)
                    })
                    .collect()
            }
        }
    }

    /// The value at a pointer.
    pub(crate) fn at(&self, pointer: &str) -> Option<&Value> {
        let mut names = pointer::names(pointer);
        let first = self.value.get(&names.next()?)?;
        names.try_fold(first, |value, name| value.get(&name))
    }

    /// Where the value at a pointer stands, or the nearest one around it.
    pub(crate) fn origin(&self, pointer: &str) -> &Origin {
        let mut pointer = pointer;
        loop {
            if let Some(origin) = self.origins.get(pointer) {
                return origin;
            }
            match pointer.rsplit_once('/') {
                Some((around, _)) => pointer = around,
                None => return &self.top,
            }
        }
    }

    /// Notes a fault. One in the permissions is fatal: half a rule must not decide anything. So is
    /// one in the mode and the sandbox, where whoever says it has a say: what holds without them may
    /// be laxer than what was meant.
    pub(crate) fn fault(&mut self, pointer: &str, message: &str) {
        let fatal = match pointer.split('/').nth(1) {
            None | Some("permission") => true,
            // A hook may be there to say no, so none is lost.
            Some("mode" | "sandbox" | "hooks") => self.top.layer != Layer::Project,
            Some(_) => false,
        };
        let origin = self.origin(pointer).clone();
        let mut names = pointer::names(pointer);
        if let (Some("provider"), Some(name)) = (names.next().as_deref(), names.next()) {
            self.broken.insert(name);
        }
        let names: Vec<String> = pointer::names(pointer).collect();
        let row = match names.as_slice() {
            [top, name, ..] if top == "mcp" => Some((top, name, "the server")),
            [top, name, ..] if top == "lsp" || top == "formatter" => Some((top, name, "it")),
            _ => None,
        };
        if let Some((top, name, what)) = row {
            self.marred.insert(pointer::join(&format!("/{top}"), name));
            let message = format!("{message}; {what} is left out");
            self.diagnostics.push(Diagnostic { origin, message, fatal });
            return;
        }
        let unfit = match names.as_slice() {
            [agent, name, key, ..] if agent == "agent" && key != "options" => Some(name),
            _ => None,
        };
        let message = match unfit.filter(|_| !message.ends_with(UNKNOWN)) {
            Some(name) => {
                self.unfit.insert(name.clone());
                format!("{message}; the agent is left out")
            }
            None if fatal => message.to_owned(),
            None => format!("{message}; ignored"),
        };
        self.diagnostics.push(Diagnostic { origin, message, fatal });
    }

    /// Takes a value out.
    pub(crate) fn remove(&mut self, pointer: &str) {
        remove(&mut self.value, pointer);
    }

    /// Checks against the schema. What does not fit is noted and taken out, so that a bad line
    /// costs that line.
    fn validate(&mut self) {
        let schema = crate::schema().to_value();
        let Ok(validator) = jsonschema::validator_for(&schema) else { return };
        let value = Value::Object(self.value.clone());
        let mut bad = Vec::new();
        for error in validator.iter_errors(&value) {
            let pointer = error.instance_path().to_string();
            match error.kind() {
                ValidationErrorKind::AdditionalProperties { unexpected } => {
                    for name in unexpected {
                        bad.push((format!("{pointer}/{name}"), format!("`{name}` {UNKNOWN}")));
                    }
                }
                ValidationErrorKind::Required { property } => {
                    let name = property.as_str().unwrap_or_default();
                    bad.push((pointer, format!("`{name}` is missing here")));
                }
                _ if pointer == "/mode" => {
                    bad.push((pointer, "a mode is `plan`, `ask`, `auto` or `full`".to_owned()));
                }
                _ => bad.push((pointer, error.masked_with("this value").to_string())),
            }
        }
        for (pointer, message) in bad {
            self.fault(&pointer, &message);
            remove(&mut self.value, &pointer);
        }
        // What the schema lets pass and a type does not goes as a whole.
        let wrong: Vec<(String, String)> = self
            .at("/provider")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(name, provider)| {
                let read = serde_json::from_value::<crate::Provider>(provider.clone());
                Some((pointer::join("/provider", name), read.err()?.to_string()))
            })
            .collect();
        for (pointer, message) in wrong {
            self.fault(&pointer, &message);
            remove(&mut self.value, &pointer);
        }
    }
}

fn remove(map: &mut Map<String, Value>, pointer: &str) {
    let mut names: Vec<String> = pointer::names(pointer).collect();
    let Some(last) = names.pop() else { return };
    let mut place = map;
    for name in names {
        match place.get_mut(&name) {
            Some(Value::Object(inner)) => place = inner,
            Some(_) | None => return,
        }
    }
    place.remove(&last);
}
