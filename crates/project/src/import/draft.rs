//! What is gathered while another program's files are read.

use super::source::Source;
use super::{Sense, Side, secret};
use crate::edit::{Place, Put};
use serde_json::{Map, Value};

/// How much is copied in all: a project with more could not be trusted.
const MOST_FILES: usize = 900;
const MOST_BYTES: usize = 12 << 20;
/// How many settings are carried over, and how many lines are said of what is not.
const MOST_SETTINGS: usize = 300;
const MOST_LEFT: usize = 500;

/// A setting for our config.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) put: Put,
    /// What a person is shown.
    pub(super) told: String,
}

/// A file for our folder.
pub(super) struct Content {
    /// Its name in there, with `/` between parts.
    pub(super) name: String,
    /// Where it comes from, for people.
    pub(super) from: String,
    pub(super) bytes: Vec<u8>,
    pub(super) is_program: bool,
}

/// What is gathered.
pub(super) struct Draft<'a> {
    pub(super) side: Side,
    pub(super) source: &'a Source,
    pub(super) sense: &'a dyn Sense,
    pub(super) found: Vec<String>,
    pub(super) settings: Vec<Setting>,
    pub(super) contents: Vec<Content>,
    pub(super) left: Vec<(String, String)>,
    pub(super) kept: Vec<(String, String)>,
    pub(super) remarks: Vec<String>,
    /// How much more is not carried over than is listed.
    pub(super) untold: usize,
    bytes: usize,
}

impl Setting {
    /// Its name in our config.
    pub(super) fn name(&self) -> String {
        match self.put.path.as_slice() {
            [first, key, pattern] if first == "permission" => {
                secret::masked_line(&format!("permission.{key} \"{pattern}\""))
            }
            path => secret::masked_line(&path.join(".")),
        }
    }

    /// True if it allows something.
    pub(super) fn allows(&self) -> bool {
        let rule = self.put.path.first().is_some_and(|key| key == "permission");
        rule && self.put.value.as_str() == Some("allow")
    }
}

impl<'a> Draft<'a> {
    pub(super) fn new(side: Side, source: &'a Source, sense: &'a dyn Sense) -> Draft<'a> {
        Draft {
            side,
            source,
            sense,
            found: Vec::new(),
            settings: Vec::new(),
            contents: Vec::new(),
            left: Vec::new(),
            kept: Vec::new(),
            remarks: Vec::new(),
            untold: 0,
            bytes: 0,
        }
    }

    /// A file of JSON, if there is one that can be read.
    pub(super) fn object(&mut self, name: &str, longest: u64) -> Option<Map<String, Value>> {
        match self.source.object(name, longest) {
            Ok(None) => None,
            Ok(Some(map)) => {
                self.found.push(self.source.shown(name));
                Some(map)
            }
            Err(why) => {
                self.found.push(self.source.shown(name));
                self.leave(self.source.shown(name), why);
                None
            }
        }
    }

    /// Sets a key, and says what it is set to.
    pub(super) fn set(&mut self, path: &[&str], value: Value, told: &str) {
        self.put(path, value, Place::Key, told);
    }

    /// Adds to a list.
    pub(super) fn add(&mut self, path: &[&str], value: Value, told: &str) {
        self.put(path, value, Place::Item, told);
    }

    fn put(&mut self, path: &[&str], value: Value, place: Place, told: &str) {
        let path = path.iter().map(|key| (*key).to_owned()).collect();
        let mut setting = Setting { put: Put { path, value, place }, told: String::new() };
        setting.told = format!("{}: {}", setting.name(), secret::masked_line(told));
        if self.settings.len() >= MOST_SETTINGS {
            let why = format!("more than {MOST_SETTINGS} settings are not carried over at once");
            self.leave(setting.name(), why);
            return;
        }
        self.settings.push(setting);
    }

    /// Says what is not carried over, each thing once.
    pub(super) fn leave(&mut self, what: impl Into<String>, why: impl Into<String>) {
        let left = (secret::masked_line(&what.into()), why.into());
        if self.left.len() >= MOST_LEFT {
            self.untold += 1;
        } else if !self.left.contains(&left) {
            self.left.push(left);
        }
    }

    /// Says of several keys that nothing here is like them.
    pub(super) fn leave_rest(&mut self, of: &str, keys: &[&str]) {
        if !keys.is_empty() {
            self.leave(format!("{of}: {}", keys.join(", ")), "Windlass has no such setting");
        }
    }

    /// Says something that whoever goes on should know, once.
    pub(super) fn remark(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.remarks.contains(&text) {
            self.remarks.push(text);
        }
    }

    /// Makes a file.
    pub(super) fn make(&mut self, content: Content) {
        self.bytes += content.bytes.len();
        if self.contents.len() >= MOST_FILES || self.bytes > MOST_BYTES {
            let why =
                format!("more than {MOST_FILES} files or {} MB are not copied", MOST_BYTES >> 20);
            self.leave(content.from, why);
            return;
        }
        self.contents.push(content);
    }
}
