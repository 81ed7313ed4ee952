//! What is open at a server: versions and texts, and what the server is told of them.
//!
//! A server is told whole texts. Versions count up over all documents, so that one that is closed
//! and opened again never has a version that was used before. Pure: what is to be sent is returned.

use crate::Row;
use crate::house::kind;
use crate::place::{Text, uri};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use windlass_sandbox::Glance;

/// How many documents are open at one server.
const MOST: usize = 64;
/// The longest text that a server is told.
pub(crate) const LONGEST: usize = 4 << 20;

/// A notification: its method, and what it says.
pub(crate) type Note = (&'static str, Value);

/// A document that is open.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) version: i32,
    pub(crate) text: Text,
    /// What the file looked like from outside when its text was taken from it.
    pub(crate) glance: Option<Glance>,
    used: u64,
}

/// All that are open.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    open: BTreeMap<String, Document>,
    version: i32,
    used: u64,
}

impl Documents {
    pub(crate) fn get(&self, path: &str) -> Option<&Document> {
        self.open.get(path)
    }

    /// Makes a server's view of a file this text.
    pub(crate) fn hold(
        &mut self,
        (root, row): (&Path, &Row),
        path: &str,
        text: &Arc<str>,
        glance: Option<Glance>,
    ) -> Vec<Note> {
        if text.len() > LONGEST {
            return self.close(root, path);
        }
        self.used += 1;
        let uri = uri(root, path);
        if let Some(document) = self.open.get_mut(path) {
            (document.used, document.glance) = (self.used, glance);
            if document.text.whole() == text {
                return Vec::new();
            }
            self.version = self.version.saturating_add(1);
            (document.version, document.text) = (self.version, Text::new(Arc::clone(text)));
            let params = json!({
                "textDocument": {"uri": uri, "version": self.version},
                "contentChanges": [{"text": &**text}],
            });
            return vec![("textDocument/didChange", params)];
        }
        let mut notes = Vec::new();
        while self.open.len() >= MOST {
            let oldest = self.open.iter().min_by_key(|(_, document)| document.used);
            let Some(oldest) = oldest.map(|(path, _)| path.clone()) else { break };
            notes.extend(self.close(root, &oldest));
        }
        self.version = self.version.saturating_add(1);
        let (version, text) = (self.version, Text::new(Arc::clone(text)));
        let item = json!({
            "uri": uri,
            "languageId": kind(row, path).unwrap_or(&row.language),
            "version": version,
            "text": &**text.whole(),
        });
        self.open.insert(path.to_owned(), Document { version, text, glance, used: self.used });
        notes.push(("textDocument/didOpen", json!({"textDocument": item})));
        notes
    }

    /// A server need not know a file any more.
    pub(crate) fn close(&mut self, root: &Path, path: &str) -> Vec<Note> {
        match self.open.remove(path) {
            Some(_) => {
                let params = json!({"textDocument": {"uri": uri(root, path)}});
                vec![("textDocument/didClose", params)]
            }
            None => Vec::new(),
        }
    }

    /// All paths, those used last first.
    pub(crate) fn recent(&self) -> Vec<String> {
        let mut all: Vec<_> =
            self.open.iter().map(|(path, document)| (document.used, path)).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.into_iter().map(|(_, path)| path.clone()).collect()
    }

    /// Every open path with how its file looked.
    pub(crate) fn glances(&self) -> Vec<(String, Option<Glance>)> {
        self.open.iter().map(|(path, document)| (path.clone(), document.glance)).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn row() -> Row {
        let row = json!({
            "name": "ts", "language": "typescript", "command": ["ts"],
            "extensions": {".ts": "typescript", ".d.ts": "declarations"},
            "files": {"Tsfile": "tsfile"}, "install": "get it",
        });
        serde_json::from_value(row).unwrap()
    }

    fn hold(documents: &mut Documents, path: &str, text: &str) -> Vec<Note> {
        documents.hold((Path::new("/w"), &row()), path, &text.into(), None)
    }

    #[test]
    fn a_text_is_told_once_and_versions_only_grow() {
        let mut documents = Documents::default();
        let told = hold(&mut documents, "a b.ts", "one");
        assert_eq!(
            told,
            [(
                "textDocument/didOpen",
                json!({"textDocument": {
            "uri": "file:///w/a%20b.ts", "languageId": "typescript", "version": 1, "text": "one"}})
            )]
        );
        assert!(hold(&mut documents, "a b.ts", "one").is_empty());
        let told = hold(&mut documents, "a b.ts", "two");
        assert_eq!(told[0].1["textDocument"]["version"], 2);
        assert_eq!(told[0].1["contentChanges"], json!([{"text": "two"}]));
        assert_eq!(documents.close(Path::new("/w"), "a b.ts").len(), 1);
        assert!(documents.close(Path::new("/w"), "a b.ts").is_empty());
        assert_eq!(hold(&mut documents, "a b.ts", "two")[0].1["textDocument"]["version"], 3);
    }

    #[test]
    fn the_one_that_was_used_longest_ago_makes_room() {
        let mut documents = Documents::default();
        for number in 0..MOST {
            hold(&mut documents, &format!("{number}.ts"), "");
        }
        hold(&mut documents, "0.ts", "");
        let told: Vec<_> = hold(&mut documents, "new.ts", "").into_iter().collect();
        assert_eq!(
            told[0],
            ("textDocument/didClose", json!({"textDocument": {"uri": "file:///w/1.ts"}}))
        );
        assert_eq!(told[1].0, "textDocument/didOpen");
        assert_eq!(documents.open.len(), MOST);
        assert_eq!(documents.recent()[..2], ["new.ts", "0.ts"]);
    }

    #[test]
    fn a_text_that_has_grown_too_long_is_closed() {
        let mut documents = Documents::default();
        hold(&mut documents, "a.ts", "short");
        assert_eq!(
            hold(&mut documents, "a.ts", &"x".repeat(LONGEST + 1))[0].0,
            "textDocument/didClose"
        );
        assert!(hold(&mut documents, "b.ts", &"x".repeat(LONGEST + 1)).is_empty());
    }
}
