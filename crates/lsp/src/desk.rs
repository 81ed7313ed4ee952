//! The desk of one connection: what lies open there, and what the server has said about it.
//!
//! What arrives goes straight into a bounded store and wakes whoever waits; nothing here waits for
//! a server. Changes are sent while the desk is held, so that a server hears versions in order.

use crate::Row;
use crate::document::{Document, Documents, Note};
use crate::judge::{Interest, Snapshot, Store, Way, Worth, parse};
use crate::place::{Encoding, Spot, Text, spot, uri};
use crate::sweep::Swept;
use crate::talk::lock;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;
use windlass_sandbox::Glance;

/// What lies open at a connection.
#[derive(Debug)]
pub(crate) struct Desk {
    root: PathBuf,
    encoding: Encoding,
    row: Row,
    inner: Mutex<Inner>,
    swept: Swept,
    /// Counts what has happened, so that others can wait for it.
    news: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Inner {
    documents: Documents,
    store: Store,
    /// When open documents were last spoken of, and in which version.
    heard: BTreeMap<String, (u64, Option<i64>)>,
    published: u64,
    refreshed: u64,
    lost: bool,
    /// Files of which errors were told.
    told: BTreeSet<String>,
    /// Files that were pulled once, so that what is found in them later is new.
    pulled: BTreeSet<String>,
    /// How many changes in a row it was silent about.
    silent: u32,
}

/// A change that was told, to wait for what a server makes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) path: String,
    version: i32,
    after: u64,
}

impl Desk {
    /// The desk of a connection whose server counts like this.
    pub(crate) fn new(root: &Path, encoding: Encoding, row: &Row) -> Desk {
        let news = watch::Sender::new(0);
        let (root, row) = (root.to_owned(), row.clone());
        Desk { root, encoding, row, inner: Mutex::default(), swept: Swept::default(), news }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    fn worth(&self) -> Worth {
        if self.row.warnings { Worth::Warnings } else { Worth::Errors }
    }

    fn tell_news(&self) {
        self.news.send_modify(|count| *count += 1);
    }

    /// A server says what it finds in a file.
    pub(crate) fn published(&self, params: Value) {
        let uri = params.get("uri").and_then(Value::as_str).unwrap_or_default();
        let Spot::Within(path) = spot(&self.root, uri) else { return };
        let version = params.get("version").and_then(Value::as_i64);
        let list = params.get("diagnostics").unwrap_or(&Value::Null);
        let mut inner = self.inner();
        let document = inner.documents.get(&path);
        let interest = if document.is_some() { Interest::Open } else { Interest::Chance };
        // What is said of another version is said of lines that are no longer there.
        let current = |document: &&Document| {
            version.is_none_or(|version| version == i64::from(document.version))
        };
        let text = document.filter(current).map(|document| document.text.clone());
        let found = parse(list, self.worth(), text.as_ref(), self.encoding);
        inner.store.put(&path, Way::Pushed, found, interest);
        inner.published += 1;
        if interest == Interest::Open {
            let published = inner.published;
            inner.heard.insert(path, (published, version));
        }
        drop(inner);
        self.tell_news();
    }

    /// A server says that what it answered before may be otherwise by now.
    pub(crate) fn refreshed(&self) {
        self.inner().refreshed += 1;
        self.tell_news();
    }

    /// The connection has ended, and nobody waits any longer.
    pub(crate) fn lost(&self) {
        self.inner().lost = true;
        self.tell_news();
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.inner().lost
    }

    /// Makes the server's view of a file this text, and says what to wait for.
    pub(crate) fn hold(
        &self,
        send: &dyn Fn(Note),
        (path, text): (&str, &Arc<str>),
        glance: Option<Glance>,
    ) -> Option<Mark> {
        let mut inner = self.inner();
        let notes = inner.documents.hold((&self.root, &self.row), path, text, glance);
        let changed = !notes.is_empty();
        notes.into_iter().for_each(send);
        let version = inner.documents.get(path)?.version;
        let heard = inner.heard.get(path).map_or(0, |(when, _)| *when);
        // What has been said of a text that did not change still holds.
        let after = if changed { heard } else { heard.saturating_sub(1) };
        Some(Mark { path: path.to_owned(), version, after })
    }

    /// A file is gone.
    pub(crate) fn close(&self, send: &dyn Fn(Note), path: &str) {
        let mut inner = self.inner();
        inner.documents.close(&self.root, path).into_iter().for_each(send);
        inner.store.forget(path);
        inner.heard.remove(path);
        inner.pulled.remove(path);
    }

    /// The text of an open document, and its version.
    pub(crate) fn document(&self, path: &str) -> Option<(i32, Text)> {
        let inner = self.inner();
        inner.documents.get(path).map(|document| (document.version, document.text.clone()))
    }

    /// Every open document, with how its file looked when its text was taken.
    pub(crate) fn glances(&self) -> Vec<(String, Option<Glance>)> {
        self.inner().documents.glances()
    }

    /// Open documents, those used last first.
    pub(crate) fn recent(&self) -> Vec<String> {
        self.inner().documents.recent()
    }

    /// Keeps the answer to a pull about a document that was in this version when it was asked for.
    pub(crate) fn pulled(&self, path: &str, asked: Option<(i32, Text)>, report: &Value) {
        let mut inner = self.inner();
        if let Some(related) = report.get("relatedDocuments").and_then(Value::as_object) {
            for (uri, report) in related {
                let Spot::Within(other) = spot(&self.root, uri) else { continue };
                if other != path {
                    let text = inner.documents.get(&other).map(|document| document.text.clone());
                    self.keep(&mut inner, &other, text, report);
                }
            }
        }
        let now = inner.documents.get(path).map(|document| document.version);
        if asked.as_ref().map(|(version, _)| *version) == now {
            self.keep(&mut inner, path, asked.map(|(_, text)| text), report);
        }
    }

    fn keep(&self, inner: &mut Inner, path: &str, text: Option<Text>, report: &Value) {
        // A report without items says that nothing has changed, whatever it calls itself.
        let Some(items) = report.get("items") else { return };
        let interest = if text.is_some() { Interest::Open } else { Interest::Chance };
        let found = parse(items, self.worth(), text.as_ref(), self.encoding);
        inner.store.put(path, Way::Pulled, found, interest);
        if interest == Interest::Open {
            inner.pulled.insert(path.to_owned());
        }
    }

    /// What the protocol calls a file.
    pub(crate) fn uri(&self, path: &str) -> String {
        uri(&self.root, path)
    }

    /// What the files looked like when they were last walked through.
    pub(crate) fn swept(&self) -> &Swept {
        &self.swept
    }

    /// True once a server has spoken of an open file.
    pub(crate) fn was_heard(&self, path: &str) -> bool {
        self.inner().heard.contains_key(path)
    }

    /// True once a file was pulled.
    pub(crate) fn was_pulled(&self, path: &str) -> bool {
        self.inner().pulled.contains(path)
    }

    /// What is found by now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.inner().store.snapshot()
    }

    /// True once a server has spoken of a change.
    fn answers(&self, mark: &Mark) -> bool {
        let inner = self.inner();
        inner.heard.get(&mark.path).is_some_and(|(when, version)| {
            *when > mark.after && version.is_none_or(|version| version >= i64::from(mark.version))
        })
    }

    /// Waits until a server has spoken of a change; false if it never will.
    pub(crate) async fn pushed(&self, mark: &Mark) -> bool {
        let mut news = self.news.subscribe();
        loop {
            news.mark_unchanged();
            if self.answers(mark) {
                return true;
            }
            if self.is_lost() || news.changed().await.is_err() {
                return false;
            }
        }
    }

    /// Waits until something has been said that was not when `known` was; none if nothing will be.
    pub(crate) async fn stirred(&self, known: (u64, u64)) -> Option<(u64, u64)> {
        let mut news = self.news.subscribe();
        loop {
            news.mark_unchanged();
            let now = self.said();
            if now != known {
                return Some(now);
            }
            if self.is_lost() || news.changed().await.is_err() {
                return None;
            }
        }
    }

    /// How often findings were published, and how often they were called stale.
    pub(crate) fn said(&self) -> (u64, u64) {
        let inner = self.inner();
        (inner.published, inner.refreshed)
    }

    /// Remembers that a server was silent about a change, or was not. Says how often in a row it was.
    pub(crate) fn note_silence(&self, silent: Silence) {
        let mut inner = self.inner();
        inner.silent = match silent {
            Silence::Kept => inner.silent.saturating_add(1),
            Silence::Broken => 0,
        };
    }

    pub(crate) fn silent(&self) -> u32 {
        self.inner().silent
    }

    /// Remembers of which files errors were told.
    pub(crate) fn note_told(&self, path: &str) {
        self.inner().told.insert(path.to_owned());
    }

    /// True, once, if errors of this file were told.
    pub(crate) fn take_told(&self, path: &str) -> bool {
        self.inner().told.remove(path)
    }
}

/// Whether a server spoke in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    Kept,
    Broken,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::tests::row;
    use serde_json::json;
    use std::cell::RefCell;
    use std::time::Duration;

    fn desk() -> Desk {
        Desk::new(Path::new("/w"), Encoding::Utf16, &row())
    }

    fn hold(desk: &Desk, path: &str, text: &str) -> Mark {
        desk.hold(&|_| {}, (path, &text.into()), None).unwrap()
    }

    fn publish(desk: &Desk, path: &str, version: Option<i32>, messages: &[&str]) {
        let range = json!({"start": {"line": 0, "character": 0}});
        let list: Vec<Value> = messages
            .iter()
            .map(|message| json!({"severity": 1, "message": message, "range": range}))
            .collect();
        let mut params = json!({"uri": format!("file:///w/{path}"), "diagnostics": list});
        if let Some(version) = version {
            params["version"] = version.into();
        }
        desk.published(params);
    }

    fn messages(desk: &Desk, path: &str) -> Vec<String> {
        let found = desk.snapshot().get(path).map(crate::judge::Found::all).unwrap_or_default();
        found.into_iter().map(|one| one.message).collect()
    }

    async fn soon(wait: impl Future<Output = bool>) -> Option<bool> {
        tokio::time::timeout(Duration::from_millis(20), wait).await.ok()
    }

    #[tokio::test]
    async fn only_what_is_said_of_this_change_or_a_later_one_ends_the_wait() {
        let desk = desk();
        publish(&desk, "a.ts", Some(1), &["before it was open"]);
        let first = hold(&desk, "a.ts", "one");
        assert_eq!(soon(desk.pushed(&first)).await, None);
        publish(&desk, "b.ts", Some(9), &[]);
        assert_eq!(soon(desk.pushed(&first)).await, None, "another file");
        publish(&desk, "a.ts", Some(first.version), &["one"]);
        assert_eq!(soon(desk.pushed(&first)).await, Some(true));
        let second = hold(&desk, "a.ts", "two");
        publish(&desk, "a.ts", Some(first.version), &["late"]);
        assert_eq!(soon(desk.pushed(&second)).await, None, "an older version");
        publish(&desk, "a.ts", Some(second.version + 1), &[]);
        assert_eq!(soon(desk.pushed(&second)).await, Some(true));
        let third = hold(&desk, "a.ts", "three");
        publish(&desk, "a.ts", None, &["no version"]);
        assert_eq!(soon(desk.pushed(&third)).await, Some(true));
        let same = hold(&desk, "a.ts", "three");
        assert_eq!(soon(desk.pushed(&same)).await, Some(true), "what did not change was judged");
    }

    #[tokio::test]
    async fn who_waits_is_woken_by_a_word_and_by_the_end() {
        let desk = Arc::new(desk());
        let mark = hold(&desk, "a.ts", "one");
        let waiting = {
            let (desk, mark) = (Arc::clone(&desk), mark.clone());
            async move { desk.pushed(&mark).await }
        };
        let speaking = async {
            tokio::task::yield_now().await;
            publish(&desk, "a.ts", None, &[]);
        };
        assert!(tokio::join!(waiting, speaking).0);
        let mark = hold(&desk, "a.ts", "two");
        let known = desk.said();
        let ending = async {
            tokio::task::yield_now().await;
            desk.lost();
        };
        let (pushed, stirred, ()) = tokio::join!(desk.pushed(&mark), desk.stirred(known), ending);
        assert_eq!((pushed, stirred), (false, None));
    }

    #[test]
    fn versions_reach_a_server_in_order_whoever_changes() {
        let desk = desk();
        let sent = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (desk, sent) = (&desk, &sent);
                scope.spawn(move || {
                    for round in 0..50 {
                        let text: Arc<str> = format!("{thread} {round}").into();
                        let send = |(_, note): Note| {
                            let version = note["textDocument"]["version"].as_i64().unwrap();
                            sent.lock().unwrap().push(version);
                        };
                        desk.hold(&send, ("a.ts", &text), None);
                    }
                });
            }
        });
        let sent = sent.into_inner().unwrap();
        assert!(sent.len() == 200 && sent.is_sorted(), "{sent:?}");
    }

    #[test]
    fn an_answer_about_a_text_that_has_changed_since_is_not_kept() {
        let desk = desk();
        hold(&desk, "a.ts", "one");
        let asked = desk.document("a.ts");
        let report = json!({"kind": "", "items": [{"message": "m"}], "relatedDocuments": {
            "file:///w/b.ts": {"kind": "full", "items": [{"message": "in b"}]},
            "file:///etc/passwd": {"kind": "full", "items": [{"message": "outside"}]}}});
        hold(&desk, "a.ts", "two");
        desk.pulled("a.ts", asked, &report);
        assert!(messages(&desk, "a.ts").is_empty() && !desk.was_pulled("a.ts"));
        assert_eq!(messages(&desk, "b.ts"), ["in b"]);
        assert_eq!(desk.snapshot().len(), 1);
        desk.pulled("a.ts", desk.document("a.ts"), &report);
        assert_eq!(messages(&desk, "a.ts"), ["m"]);
        desk.pulled("a.ts", desk.document("a.ts"), &json!({"kind": "unchanged"}));
        assert_eq!(messages(&desk, "a.ts"), ["m"]);
    }

    #[test]
    fn what_is_said_of_no_file_here_is_nothing() {
        let desk = desk();
        for params in [
            json!(null),
            json!([]),
            json!({"uri": 7, "diagnostics": []}),
            json!({"uri": "file:///etc/passwd", "diagnostics": [{"message": "m"}]}),
            json!({"uri": "file:///w/../x", "diagnostics": [{"message": "m"}]}),
        ] {
            desk.published(params);
        }
        assert!(desk.snapshot().is_empty());
        let closed = RefCell::new(Vec::new());
        hold(&desk, "a.ts", "one");
        publish(&desk, "a.ts", None, &["m"]);
        desk.close(&|(method, _)| closed.borrow_mut().push(method), "a.ts");
        assert_eq!(
            (closed.into_inner(), messages(&desk, "a.ts").len()),
            (vec!["textDocument/didClose"], 0)
        );
    }
}
