//! Collects the settings, files and notes of an `ImportPlan`.

use super::source_files::ImportSourceFolder;
use super::{ImportChecks, ImportScope, secret_detection};
use crate::config::edit::{ConfigInsertion, ConfigInsertionKind};
use serde_json::{Map, Value};

/// Limits of all copied files: a project with more could not be trusted.
const MAX_FILES: usize = 900;
const MAX_TOTAL_BYTES: usize = 12 << 20;
/// Limits of the imported settings, and of the lines about skipped ones.
const MAX_SETTINGS: usize = 300;
const MAX_SKIPPED_LINES: usize = 500;

/// A setting for our config.
#[derive(Clone, Debug)]
pub(super) struct ImportedSetting {
    pub(super) insertion: ConfigInsertion,
    /// The line shown to the user.
    pub(super) description: String,
}

/// A file for our folder.
pub(super) struct ImportedFile {
    /// The name relative to that folder, with `/` between parts.
    pub(super) name: String,
    /// The display name of its source.
    pub(super) source: String,
    pub(super) bytes: Vec<u8>,
    pub(super) is_executable: bool,
}

/// The state of an import while files are read.
pub(super) struct ImportPlanBuilder<'a> {
    pub(super) scope: ImportScope,
    pub(super) source: &'a ImportSourceFolder,
    pub(super) checks: &'a dyn ImportChecks,
    /// The folder for scripts of hooks, relative to the project or to the home folder.
    pub(super) hooks_folder: String,
    pub(super) read_files: Vec<String>,
    pub(super) settings: Vec<ImportedSetting>,
    pub(super) files: Vec<ImportedFile>,
    pub(super) skipped: Vec<(String, String)>,
    pub(super) existing: Vec<(String, String)>,
    pub(super) notes: Vec<String>,
    /// The number of skipped items beyond `MAX_SKIPPED_LINES`.
    pub(super) unlisted_skipped: usize,
    bytes: usize,
    /// Keys of documents that are left out: folder, keys, and the documents.
    document_keys: Vec<(String, String, Vec<String>)>,
}

impl ImportedSetting {
    /// Returns its name in our config, without secrets.
    pub(super) fn name(&self) -> String {
        match self.insertion.path.as_slice() {
            [first, key, pattern] if first == "permission" => {
                secret_detection::mask_line(&format!("permission.{key} \"{pattern}\""))
            }
            path => secret_detection::mask_line(&path.join(".")),
        }
    }

    /// Returns `true` for a permission rule that allows something.
    pub(super) fn is_allow_rule(&self) -> bool {
        let is_rule = self.insertion.path.first().is_some_and(|key| key == "permission");
        is_rule && self.insertion.value.as_str() == Some("allow")
    }
}

impl<'a> ImportPlanBuilder<'a> {
    pub(super) fn new(
        scope: ImportScope,
        source: &'a ImportSourceFolder,
        hooks_folder: String,
        checks: &'a dyn ImportChecks,
    ) -> ImportPlanBuilder<'a> {
        ImportPlanBuilder {
            scope,
            source,
            checks,
            hooks_folder,
            read_files: Vec::new(),
            settings: Vec::new(),
            files: Vec::new(),
            skipped: Vec::new(),
            existing: Vec::new(),
            notes: Vec::new(),
            unlisted_skipped: 0,
            bytes: 0,
            document_keys: Vec::new(),
        }
    }

    /// Reads a JSON file; reports (`skip`) one that cannot be read.
    pub(super) fn read_json_object(
        &mut self,
        name: &str,
        max_bytes: u64,
    ) -> Option<Map<String, Value>> {
        match self.source.read_json_object(name, max_bytes) {
            Ok(None) => None,
            Ok(Some(map)) => {
                self.read_files.push(self.source.display_name(name));
                Some(map)
            }
            Err(reason) => {
                self.read_files.push(self.source.display_name(name));
                self.skip(self.source.display_name(name), reason);
                None
            }
        }
    }

    /// Sets a key, with the value as shown to the user.
    pub(super) fn set_key(&mut self, path: &[&str], value: Value, description: &str) {
        self.add_setting(path, value, ConfigInsertionKind::SetKey, description);
    }

    pub(super) fn append_item(&mut self, path: &[&str], value: Value, description: &str) {
        self.add_setting(path, value, ConfigInsertionKind::AppendItem, description);
    }

    fn add_setting(
        &mut self,
        path: &[&str],
        value: Value,
        kind: ConfigInsertionKind,
        description: &str,
    ) {
        let path = path.iter().map(|key| (*key).to_owned()).collect();
        let mut setting = ImportedSetting {
            insertion: ConfigInsertion { path, value, kind },
            description: String::new(),
        };
        setting.description =
            format!("{}: {}", setting.name(), secret_detection::mask_line(description));
        if self.settings.len() >= MAX_SETTINGS {
            let reason = format!("more than {MAX_SETTINGS} settings cannot be imported at once");
            self.skip(setting.name(), reason);
            return;
        }
        self.settings.push(setting);
    }

    /// Reports an item that is not imported, once.
    pub(super) fn skip(&mut self, name: impl Into<String>, reason: impl Into<String>) {
        let line = (secret_detection::mask_line(&name.into()), reason.into());
        if self.skipped.len() >= MAX_SKIPPED_LINES {
            self.unlisted_skipped += 1;
        } else if !self.skipped.contains(&line) {
            self.skipped.push(line);
        }
    }

    /// Reports several keys that have no equivalent here.
    pub(super) fn skip_unsupported(&mut self, parent: &str, keys: &[&str]) {
        if !keys.is_empty() {
            self.skip(format!("{parent}: {}", keys.join(", ")), "Windlass has no such setting");
        }
    }

    /// Reports keys of a document that have no equivalent here, together for all documents of a
    /// folder.
    pub(super) fn skip_document_keys(&mut self, folder: &str, document: &str, keys: &[&str]) {
        for key in keys {
            let is_same =
                |row: &&mut (String, String, Vec<String>)| row.0 == folder && row.1 == *key;
            match self.document_keys.iter_mut().find(is_same) {
                Some((_, _, documents)) => documents.push(document.to_owned()),
                None => {
                    let row = (folder.to_owned(), (*key).to_owned(), vec![document.to_owned()]);
                    self.document_keys.push(row);
                }
            }
        }
    }

    /// Adds the report of `skip_document_keys`.
    pub(super) fn report_document_keys(&mut self) {
        for (folder, key, documents) in std::mem::take(&mut self.document_keys) {
            let name = match documents.as_slice() {
                [document] => format!("{document}: {key}"),
                documents => format!("{folder}: {key} ({} files)", documents.len()),
            };
            self.skip(name, document_key_reason(&key));
        }
    }

    /// Adds a note about the next steps, once.
    pub(super) fn add_note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    pub(super) fn add_file(&mut self, file: ImportedFile) {
        self.bytes += file.bytes.len();
        if self.files.len() >= MAX_FILES || self.bytes > MAX_TOTAL_BYTES {
            let reason = format!(
                "more than {MAX_FILES} files or {} MB cannot be copied at once",
                MAX_TOTAL_BYTES >> 20
            );
            self.skip(file.source, reason);
            return;
        }
        self.files.push(file);
    }
}

/// Returns the reason why a key of an agent or a command is left out.
fn document_key_reason(key: &str) -> &'static str {
    match key {
        "model opus" | "model sonnet" | "model haiku" => {
            "a model needs its provider and full name; the agent uses your model until you set \
             `model: PROVIDER/MODEL`"
        }
        "name" => "the name of the file counts",
        "color" => "agents have no colors",
        _ => "Windlass has no such setting",
    }
}
