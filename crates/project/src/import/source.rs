//! Files of other programs, read with care: plain files only, each bounded, and no link that leads
//! out of where it may lead. Nothing is run, and nothing of the environment is read.
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

use crate::private;
use serde_json::{Map, Value};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// How many names of a folder are looked at, and how deep.
const MOST_NAMES: usize = 2_000;
const DEEPEST: usize = 6;

/// Where files are read from, by names with `/` between parts.
pub(super) struct Source {
    base: PathBuf,
    links: Links,
    home: PathBuf,
}

/// Which links are followed.
enum Links {
    /// None: what a project links to is not the project.
    None,
    /// Those that stay within these folders, as of people who keep their config elsewhere.
    Within(Vec<PathBuf>),
}

/// A file beneath a folder.
pub(super) struct Entry {
    /// Its name from that folder, with `/` between parts.
    pub(super) name: String,
    /// Its name from the base.
    pub(super) whole: String,
}

/// The files beneath a folder, and what of it is not read, with the reason.
pub(super) type Listing = (Vec<Entry>, Vec<(String, String)>);

/// What a file holds.
pub(super) struct Bytes {
    pub(super) bytes: Vec<u8>,
    /// The system would run it.
    pub(super) is_program: bool,
}

impl Source {
    /// The files of a project.
    pub(super) fn project(root: &Path, home: &Path) -> Source {
        Source { base: root.to_owned(), links: Links::None, home: home.to_owned() }
    }

    /// The files of a person.
    pub(super) fn own(base: &Path, home: &Path) -> Source {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let within = vec![real(base), real(home)];
        Source { base: base.to_owned(), links: Links::Within(within), home: home.to_owned() }
    }

    /// What a file is called for people.
    pub(super) fn shown(&self, name: &str) -> String {
        match &self.links {
            Links::None => name.to_owned(),
            Links::Within(_) => shown(&self.base.join(name), &self.home),
        }
    }

    /// Where a name really leads; `None` if there is nothing. Or why nobody goes there.
    fn real(&self, name: &str) -> Result<Option<PathBuf>, String> {
        let path = self.base.join(name);
        match &self.links {
            Links::None => {
                let mut at = self.base.clone();
                for part in name.split('/') {
                    at.push(part);
                    match at.symlink_metadata() {
                        Ok(data) if data.is_symlink() => {
                            return Err("it is a link, which is not followed".into());
                        }
                        Ok(_) => {}
                        Err(error) => return absent(&error),
                    }
                }
                Ok(Some(at))
            }
            Links::Within(folders) => match path.canonicalize() {
                Ok(real) if folders.iter().any(|folder| real.starts_with(folder)) => Ok(Some(real)),
                Ok(_) => Err("it is a link that leads out of your home folder".into()),
                Err(_) if path.is_symlink() => Err("it is a link that leads nowhere".into()),
                Err(error) => absent(&error),
            },
        }
    }

    /// True if something stands there, whatever it is.
    pub(super) fn is_there(&self, name: &str) -> bool {
        self.base.join(name).symlink_metadata().is_ok()
    }

    /// What stands in a file of at most so many bytes; `None` if there is none.
    pub(super) fn bytes(&self, name: &str, longest: u64) -> Result<Option<Bytes>, String> {
        let Some(path) = self.real(name)? else { return Ok(None) };
        let failed = |error: std::io::Error| error.to_string();
        let file = private::plain(std::fs::OpenOptions::new().read(true)).open(&path);
        let file = file.map_err(failed)?;
        let data = file.metadata().map_err(failed)?;
        if !data.is_file() {
            return Err("it is not a plain file".into());
        }
        let mut bytes = Vec::new();
        if file.take(longest + 1).read_to_end(&mut bytes).map_err(failed)? as u64 > longest {
            return Err(format!("it is longer than {}", size(longest)));
        }
        Ok(Some(Bytes { bytes, is_program: is_program(&data) }))
    }

    /// The same as text.
    pub(super) fn text(&self, name: &str, longest: u64) -> Result<Option<String>, String> {
        let Some(found) = self.bytes(name, longest)? else { return Ok(None) };
        let text = String::from_utf8(found.bytes).map_err(|_| "it is not text (UTF-8)")?;
        Ok(Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)))
    }

    /// The object that a file of JSON holds, with or without comments. What it says is not part of
    /// what is said of a bad one: it may be a secret.
    pub(super) fn object(
        &self,
        name: &str,
        longest: u64,
    ) -> Result<Option<Map<String, Value>>, String> {
        let Some(text) = self.text(name, longest)? else { return Ok(None) };
        let options = jsonc_parser::ParseOptions::default();
        let value = jsonc_parser::parse_to_serde_value::<Value>(&text, &options);
        match value.map_err(|error| format!("it is not JSON: line {}", error.line_display()))? {
            Value::Object(map) => Ok(Some(map)),
            Value::Null => Ok(Some(Map::new())),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err("it is not an object, { … }".into())
            }
        }
    }

    /// The files beneath a folder, sorted, and what of it is not read and why. `None` if there is no
    /// such folder.
    pub(super) fn files(&self, folder: &str) -> Result<Option<Listing>, String> {
        let Some(top) = self.real(folder)? else { return Ok(None) };
        if !top.is_dir() {
            return Err("it is not a folder".into());
        }
        let (mut found, mut faults, mut looked) = (Vec::new(), Vec::new(), 0);
        let mut waiting = vec![(String::new(), 0)];
        while let Some((below, depth)) = waiting.pop() {
            let whole =
                if below.is_empty() { folder.to_owned() } else { format!("{folder}/{below}") };
            let listed = self.real(&whole).and_then(|path| names(path.as_deref()));
            let names = match listed {
                Ok(names) => names,
                Err(why) => {
                    faults.push((whole, why));
                    continue;
                }
            };
            for name in names {
                looked += 1;
                if looked > MOST_NAMES {
                    faults.push((
                        folder.to_owned(),
                        format!("it holds more than {MOST_NAMES} files"),
                    ));
                    return Ok(Some((found, faults)));
                }
                let (whole, name) = (format!("{whole}/{name}"), join(&below, &name));
                match self.real(&whole) {
                    Err(why) => faults.push((whole, why)),
                    Ok(None) => {}
                    Ok(Some(path)) if !path.is_dir() => found.push(Entry { name, whole }),
                    Ok(Some(_)) if depth >= DEEPEST => {
                        faults.push((whole, format!("it lies deeper than {DEEPEST} folders")));
                    }
                    Ok(Some(_)) => waiting.push((name, depth + 1)),
                }
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Some((found, faults)))
    }
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The names in a folder that are text. What is installed there, or hidden, is no part of it.
fn names(folder: Option<&Path>) -> Result<Vec<String>, String> {
    let Some(folder) = folder else { return Ok(Vec::new()) };
    let failed = |error: std::io::Error| error.to_string();
    let mut names = Vec::new();
    for entry in folder.read_dir().map_err(failed)?.take(MOST_NAMES + 1) {
        let name = entry.map_err(failed)?.file_name();
        let name = name.into_string().map_err(|_| "a name in it is not text (UTF-8)")?;
        if !name.starts_with('.') && name != "node_modules" {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn absent<T>(error: &std::io::Error) -> Result<Option<T>, String> {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(None),
        _ => Err(error.to_string()),
    }
}

fn size(bytes: u64) -> String {
    if bytes >= 1 << 20 { format!("{} MB", bytes >> 20) } else { format!("{} kB", bytes >> 10) }
}

/// A path for people.
pub(super) fn shown(path: &Path, home: &Path) -> String {
    match path.strip_prefix(home) {
        Ok(below) => format!("~/{}", below.display()),
        Err(_) => path.display().to_string(),
    }
}

#[cfg(unix)]
fn is_program(data: &std::fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::mode(data) & 0o111 != 0
}

#[cfg(not(unix))]
fn is_program(_: &std::fs::Metadata) -> bool {
    false
}
