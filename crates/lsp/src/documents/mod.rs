//! Open documents of a server: versions, texts and the notifications to send.
//!
//! Servers receive whole texts. Versions count up over all documents, so a document that is closed
//! and opened again never reuses a version. `OpenDocuments` performs no I/O: it returns the
//! notifications to send.

pub(crate) mod diagnostic_store;
pub(crate) mod documents_and_diagnostics;
pub(crate) mod file_watch;
pub(crate) mod lsp_client;
pub(crate) mod watched_files_snapshot;

use crate::config::LspServerConfig;
use crate::positions::{LineIndex, path_to_uri};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use windlass_sandbox::FileStat;

const MAX_OPEN_DOCUMENTS: usize = 64;
/// Limit for the text of a document; longer files are not opened.
pub(crate) const MAX_DOCUMENT_BYTES: usize = 4 << 20;

/// Method and parameters of a notification.
pub(crate) type LspNotification = (&'static str, Value);

/// A document that a server has received with `didOpen`.
#[derive(Clone, Debug)]
pub(crate) struct OpenDocument {
    pub(crate) version: i32,
    pub(crate) text: LineIndex,
    /// `FileStat` of the file when its text was read.
    pub(crate) file_stat: Option<FileStat>,
    last_used: u64,
}

/// All open documents of a server.
#[derive(Debug, Default)]
pub(crate) struct OpenDocuments {
    by_path: BTreeMap<String, OpenDocument>,
    last_version: i32,
    use_counter: u64,
}

impl OpenDocuments {
    pub(crate) fn get(&self, path: &str) -> Option<&OpenDocument> {
        self.by_path.get(path)
    }

    /// Opens or updates a document, and returns the `didOpen` or `didChange` to send.
    pub(crate) fn set_text(
        &mut self,
        (root, config): (&Path, &LspServerConfig),
        path: &str,
        text: &Arc<str>,
        stat: Option<FileStat>,
    ) -> Vec<LspNotification> {
        if text.len() > MAX_DOCUMENT_BYTES {
            return self.close(root, path);
        }
        self.use_counter += 1;
        let uri = path_to_uri(root, path);
        if let Some(document) = self.by_path.get_mut(path) {
            document.last_used = self.use_counter;
            document.file_stat = stat;
            if document.text.text() == text {
                return Vec::new();
            }
            self.last_version = self.last_version.saturating_add(1);
            document.version = self.last_version;
            document.text = LineIndex::new(Arc::clone(text));
            let params = json!({
                "textDocument": {"uri": uri, "version": self.last_version},
                "contentChanges": [{"text": &**text}],
            });
            return vec![("textDocument/didChange", params)];
        }
        let mut notifications = Vec::new();
        while self.by_path.len() >= MAX_OPEN_DOCUMENTS {
            let oldest = self.by_path.iter().min_by_key(|(_, document)| document.last_used);
            let Some(oldest) = oldest.map(|(path, _)| path.clone()) else { break };
            notifications.extend(self.close(root, &oldest));
        }
        self.last_version = self.last_version.saturating_add(1);
        let version = self.last_version;
        let text = LineIndex::new(Arc::clone(text));
        let item = json!({
            "uri": uri,
            "languageId": config.language_id(path).unwrap_or(&config.language),
            "version": version,
            "text": &**text.text(),
        });
        self.by_path.insert(
            path.to_owned(),
            OpenDocument { version, text, file_stat: stat, last_used: self.use_counter },
        );
        notifications.push(("textDocument/didOpen", json!({"textDocument": item})));
        notifications
    }

    /// Closes a document, and returns the `didClose` to send.
    pub(crate) fn close(&mut self, root: &Path, path: &str) -> Vec<LspNotification> {
        match self.by_path.remove(path) {
            Some(_) => {
                let params = json!({"textDocument": {"uri": path_to_uri(root, path)}});
                vec![("textDocument/didClose", params)]
            }
            None => Vec::new(),
        }
    }

    /// Returns all paths, most recently used first.
    pub(crate) fn recent_paths(&self) -> Vec<String> {
        let mut paths: Vec<_> =
            self.by_path.iter().map(|(path, document)| (document.last_used, path)).collect();
        paths.sort_unstable_by(|a, b| b.cmp(a));
        paths.into_iter().map(|(_, path)| path.clone()).collect()
    }

    /// Returns every open path with the `FileStat` of its file.
    pub(crate) fn file_stats(&self) -> Vec<(String, Option<FileStat>)> {
        self.by_path.iter().map(|(path, document)| (path.clone(), document.file_stat)).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn test_config() -> LspServerConfig {
        let row = json!({
            "name": "ts", "language": "typescript", "command": ["ts"],
            "extensions": {".ts": "typescript", ".d.ts": "declarations"},
            "files": {"Tsfile": "tsfile"}, "install": "get it",
        });
        serde_json::from_value(row).unwrap()
    }

    fn set_text(documents: &mut OpenDocuments, path: &str, text: &str) -> Vec<LspNotification> {
        documents.set_text((Path::new("/w"), &test_config()), path, &text.into(), None)
    }

    #[test]
    fn a_text_is_sent_once_and_versions_only_grow() {
        let mut documents = OpenDocuments::default();
        let notifications = set_text(&mut documents, "a b.ts", "one");
        assert_eq!(
            notifications,
            [(
                "textDocument/didOpen",
                json!({"textDocument": {
            "uri": "file:///w/a%20b.ts", "languageId": "typescript", "version": 1, "text": "one"}})
            )]
        );
        assert!(set_text(&mut documents, "a b.ts", "one").is_empty());
        let notifications = set_text(&mut documents, "a b.ts", "two");
        assert_eq!(notifications[0].1["textDocument"]["version"], 2);
        assert_eq!(notifications[0].1["contentChanges"], json!([{"text": "two"}]));
        assert_eq!(documents.close(Path::new("/w"), "a b.ts").len(), 1);
        assert!(documents.close(Path::new("/w"), "a b.ts").is_empty());
        assert_eq!(set_text(&mut documents, "a b.ts", "two")[0].1["textDocument"]["version"], 3);
    }

    #[test]
    fn the_least_recently_used_document_is_closed() {
        let mut documents = OpenDocuments::default();
        for number in 0..MAX_OPEN_DOCUMENTS {
            set_text(&mut documents, &format!("{number}.ts"), "");
        }
        set_text(&mut documents, "0.ts", "");
        let notifications: Vec<_> = set_text(&mut documents, "new.ts", "").into_iter().collect();
        assert_eq!(
            notifications[0],
            ("textDocument/didClose", json!({"textDocument": {"uri": "file:///w/1.ts"}}))
        );
        assert_eq!(notifications[1].0, "textDocument/didOpen");
        assert_eq!(documents.by_path.len(), MAX_OPEN_DOCUMENTS);
        assert_eq!(documents.recent_paths()[..2], ["new.ts", "0.ts"]);
    }

    #[test]
    fn a_text_that_has_grown_too_long_is_closed() {
        let mut documents = OpenDocuments::default();
        set_text(&mut documents, "a.ts", "short");
        assert_eq!(
            set_text(&mut documents, "a.ts", &"x".repeat(MAX_DOCUMENT_BYTES + 1))[0].0,
            "textDocument/didClose"
        );
        assert!(set_text(&mut documents, "b.ts", &"x".repeat(MAX_DOCUMENT_BYTES + 1)).is_empty());
    }
}
