//! Open documents and diagnostics of one connection.
//!
//! Notifications go straight into a bounded store and wake waiting callers; nothing here waits for
//! a server. Changes are sent while the lock is held, so that a server receives versions in order.

use crate::config::LspServerConfig;
use crate::connection::event_handler::ServerEventHandler;
use crate::documents::diagnostic_store::{
    DiagnosticDelivery, DiagnosticStore, DiagnosticsSnapshot, DocumentOpenState, MinSeverity,
    parse_diagnostics,
};
use crate::documents::watched_files_snapshot::WatchedFilesSnapshot;
use crate::documents::{LspNotification, OpenDocument, OpenDocuments};
use crate::positions::{LineIndex, PositionEncoding, UriTarget, path_to_uri, resolve_uri};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;
use windlass_protocol::mutex_lock::lock;
use windlass_sandbox::FileStat;

/// Open documents of a connection, and the diagnostics of its server.
#[derive(Debug)]
pub(crate) struct DocumentsAndDiagnostics {
    root: PathBuf,
    encoding: PositionEncoding,
    config: LspServerConfig,
    inner: Mutex<DocumentsAndDiagnosticsInner>,
    file_snapshot: WatchedFilesSnapshot,
    /// Counts events, so that callers can wait for the next one.
    change_counter: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct DocumentsAndDiagnosticsInner {
    documents: OpenDocuments,
    diagnostics: DiagnosticStore,
    /// Publish count and version of the last diagnostics of each open document.
    last_published: BTreeMap<String, (u64, Option<i64>)>,
    publish_count: u64,
    refresh_count: u64,
    is_closed: bool,
    /// Files whose errors were reported to the model.
    reported: BTreeSet<String>,
    /// Files that were pulled at least once, so later diagnostics in them are new.
    pulled: BTreeSet<String>,
    /// Number of changes in a row without a response in time.
    missed_responses: u32,
}

/// A change sent to a server, for waiting until the server reports on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentDocumentChange {
    pub(crate) path: String,
    version: i32,
    published_before: u64,
}

impl DocumentsAndDiagnostics {
    /// Creates the state of a connection whose server uses `encoding`.
    pub(crate) fn new(
        root: &Path,
        encoding: PositionEncoding,
        config: &LspServerConfig,
    ) -> DocumentsAndDiagnostics {
        DocumentsAndDiagnostics {
            root: root.to_owned(),
            encoding,
            config: config.clone(),
            inner: Mutex::default(),
            file_snapshot: WatchedFilesSnapshot::default(),
            change_counter: watch::Sender::new(0),
        }
    }

    fn lock_inner(&self) -> MutexGuard<'_, DocumentsAndDiagnosticsInner> {
        lock(&self.inner)
    }

    fn min_severity(&self) -> MinSeverity {
        if self.config.warnings { MinSeverity::Warning } else { MinSeverity::Error }
    }

    fn notify_waiters(&self) {
        self.change_counter.send_modify(|count| *count += 1);
    }

    fn is_closed(&self) -> bool {
        self.lock_inner().is_closed
    }

    /// Sends the text of a file to the server and returns the mark to wait for.
    pub(crate) fn set_text(
        &self,
        send: &dyn Fn(LspNotification),
        (path, text): (&str, &Arc<str>),
        stat: Option<FileStat>,
    ) -> Option<SentDocumentChange> {
        let mut inner = self.lock_inner();
        let notifications = inner.documents.set_text((&self.root, &self.config), path, text, stat);
        let changed = !notifications.is_empty();
        notifications.into_iter().for_each(send);
        let version = inner.documents.get(path)?.version;
        let published = inner.last_published.get(path).map_or(0, |(count, _)| *count);
        // Diagnostics of an unchanged text remain valid.
        let published_before = if changed { published } else { published.saturating_sub(1) };
        Some(SentDocumentChange { path: path.to_owned(), version, published_before })
    }

    /// Closes a document and forgets its diagnostics.
    pub(crate) fn close(&self, send: &dyn Fn(LspNotification), path: &str) {
        let mut inner = self.lock_inner();
        inner.documents.close(&self.root, path).into_iter().for_each(send);
        inner.diagnostics.remove(path);
        inner.last_published.remove(path);
        inner.pulled.remove(path);
    }

    /// Returns true if the last published diagnostics are those of an earlier version.
    pub(crate) fn is_outdated(&self, path: &str) -> bool {
        let inner = self.lock_inner();
        let published = inner.last_published.get(path).and_then(|(_, version)| *version);
        let current = inner.documents.get(path).map(|document| i64::from(document.version));
        published.zip(current).is_some_and(|(published, current)| published < current)
    }

    /// Returns version and text of an open document.
    pub(crate) fn document_text(&self, path: &str) -> Option<(i32, LineIndex)> {
        let inner = self.lock_inner();
        inner.documents.get(path).map(|document| (document.version, document.text.clone()))
    }

    /// Returns every open document with the `FileStat` of its file when the text was read.
    pub(crate) fn file_stats(&self) -> Vec<(String, Option<FileStat>)> {
        self.lock_inner().documents.file_stats()
    }

    /// Returns the open documents, most recently used first.
    pub(crate) fn recent_paths(&self) -> Vec<String> {
        self.lock_inner().documents.recent_paths()
    }

    /// Stores a pull report if the document still has the version for which it was requested.
    pub(crate) fn store_pull_report(
        &self,
        path: &str,
        requested: Option<(i32, LineIndex)>,
        report: &Value,
    ) {
        let mut inner = self.lock_inner();
        if let Some(related) = report.get("relatedDocuments").and_then(Value::as_object) {
            for (uri, report) in related {
                let UriTarget::InWorkspace(related_path) = resolve_uri(&self.root, uri) else {
                    continue;
                };
                if related_path != path {
                    let text =
                        inner.documents.get(&related_path).map(|document| document.text.clone());
                    self.store_report(&mut inner, &related_path, text, report);
                }
            }
        }
        let current = inner.documents.get(path).map(|document| document.version);
        if requested.as_ref().map(|(version, _)| *version) == current {
            self.store_report(&mut inner, path, requested.map(|(_, text)| text), report);
        }
    }

    fn store_report(
        &self,
        inner: &mut DocumentsAndDiagnosticsInner,
        path: &str,
        text: Option<LineIndex>,
        report: &Value,
    ) {
        // A report without `items` means unchanged, whatever its `kind`.
        let Some(items) = report.get("items") else { return };
        let interest =
            if text.is_some() { DocumentOpenState::Open } else { DocumentOpenState::NotOpen };
        let diagnostics =
            parse_diagnostics(items, self.min_severity(), text.as_ref(), self.encoding);
        inner.diagnostics.put(path, DiagnosticDelivery::Pull, diagnostics, interest);
        if interest == DocumentOpenState::Open {
            inner.pulled.insert(path.to_owned());
        }
    }

    /// Returns the URI of a file.
    pub(crate) fn uri(&self, path: &str) -> String {
        path_to_uri(&self.root, path)
    }

    /// Returns the `WatchedFilesSnapshot` of the last walk.
    pub(crate) fn file_snapshot(&self) -> &WatchedFilesSnapshot {
        &self.file_snapshot
    }

    /// Returns true if the server has published diagnostics of an open file.
    pub(crate) fn was_published(&self, path: &str) -> bool {
        self.lock_inner().last_published.contains_key(path)
    }

    /// Returns true if the file was pulled at least once.
    pub(crate) fn was_pulled(&self, path: &str) -> bool {
        self.lock_inner().pulled.contains(path)
    }

    /// Returns the current diagnostics.
    pub(crate) fn diagnostics_snapshot(&self) -> DiagnosticsSnapshot {
        self.lock_inner().diagnostics.snapshot()
    }

    /// Returns true once the server has reported on a change.
    fn has_diagnostics_for(&self, mark: &SentDocumentChange) -> bool {
        let inner = self.lock_inner();
        inner.last_published.get(&mark.path).is_some_and(|(count, version)| {
            *count > mark.published_before
                && version.is_none_or(|version| version >= i64::from(mark.version))
        })
    }

    /// Waits until the server has reported on a change; returns false if the connection closes
    /// first.
    pub(crate) async fn wait_for_push(&self, mark: &SentDocumentChange) -> bool {
        let mut changes = self.change_counter.subscribe();
        loop {
            changes.mark_unchanged();
            if self.has_diagnostics_for(mark) {
                return true;
            }
            if self.is_closed() || changes.changed().await.is_err() {
                return false;
            }
        }
    }

    /// Waits until `event_counters` differ from `seen`; returns `None` if the connection closes
    /// first.
    pub(crate) async fn wait_for_events(&self, seen: (u64, u64)) -> Option<(u64, u64)> {
        let mut changes = self.change_counter.subscribe();
        loop {
            changes.mark_unchanged();
            let now = self.event_counters();
            if now != seen {
                return Some(now);
            }
            if self.is_closed() || changes.changed().await.is_err() {
                return None;
            }
        }
    }

    /// Returns `publish_count` and `refresh_count`.
    pub(crate) fn event_counters(&self) -> (u64, u64) {
        let inner = self.lock_inner();
        (inner.publish_count, inner.refresh_count)
    }

    /// Records if the server responded to a change in time, and counts misses in a row.
    pub(crate) fn note_response(&self, response: ChangeResponseOutcome) {
        let mut inner = self.lock_inner();
        inner.missed_responses = match response {
            ChangeResponseOutcome::Missed => inner.missed_responses.saturating_add(1),
            ChangeResponseOutcome::Received => 0,
        };
    }

    pub(crate) fn missed_responses(&self) -> u32 {
        self.lock_inner().missed_responses
    }

    /// Records that errors of a file were reported.
    pub(crate) fn mark_reported(&self, path: &str) {
        self.lock_inner().reported.insert(path.to_owned());
    }

    /// Returns true, once, if errors of the file were reported.
    pub(crate) fn take_reported(&self, path: &str) -> bool {
        self.lock_inner().reported.remove(path)
    }
}

impl ServerEventHandler for DocumentsAndDiagnostics {
    /// Stores the diagnostics of a `textDocument/publishDiagnostics` notification.
    fn on_publish_diagnostics(&self, params: Value) {
        let uri = params.get("uri").and_then(Value::as_str).unwrap_or_default();
        let UriTarget::InWorkspace(path) = resolve_uri(&self.root, uri) else { return };
        let version = params.get("version").and_then(Value::as_i64);
        let list = params.get("diagnostics").unwrap_or(&Value::Null);
        let mut inner = self.lock_inner();
        let document = inner.documents.get(&path);
        let interest =
            if document.is_some() { DocumentOpenState::Open } else { DocumentOpenState::NotOpen };
        // Diagnostics of another version refer to lines that no longer exist.
        let is_current = |document: &&OpenDocument| {
            version.is_none_or(|version| version == i64::from(document.version))
        };
        let text = document.filter(is_current).map(|document| document.text.clone());
        let diagnostics =
            parse_diagnostics(list, self.min_severity(), text.as_ref(), self.encoding);
        inner.diagnostics.put(&path, DiagnosticDelivery::Push, diagnostics, interest);
        inner.publish_count += 1;
        if interest == DocumentOpenState::Open {
            let published = inner.publish_count;
            inner.last_published.insert(path, (published, version));
        }
        drop(inner);
        self.notify_waiters();
    }

    /// Records that earlier pull results may be stale, after `workspace/diagnostic/refresh`.
    fn on_refresh(&self) {
        self.lock_inner().refresh_count += 1;
        self.notify_waiters();
    }

    /// Marks the connection as closed and wakes all waiting callers.
    fn on_close(&self) {
        self.lock_inner().is_closed = true;
        self.notify_waiters();
    }
}

/// Outcome of waiting for a server to respond to a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeResponseOutcome {
    Missed,
    Received,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::tests::test_config;
    use serde_json::json;
    use std::cell::RefCell;
    use std::time::Duration;

    fn documents() -> DocumentsAndDiagnostics {
        DocumentsAndDiagnostics::new(Path::new("/w"), PositionEncoding::Utf16, &test_config())
    }

    fn set_text(documents: &DocumentsAndDiagnostics, path: &str, text: &str) -> SentDocumentChange {
        documents.set_text(&|_| {}, (path, &text.into()), None).unwrap()
    }

    fn publish(
        documents: &DocumentsAndDiagnostics,
        path: &str,
        version: Option<i32>,
        messages: &[&str],
    ) {
        let range = json!({"start": {"line": 0, "character": 0}});
        let list: Vec<Value> = messages
            .iter()
            .map(|message| json!({"severity": 1, "message": message, "range": range}))
            .collect();
        let mut params = json!({"uri": format!("file:///w/{path}"), "diagnostics": list});
        if let Some(version) = version {
            params["version"] = version.into();
        }
        documents.on_publish_diagnostics(params);
    }

    fn messages(documents: &DocumentsAndDiagnostics, path: &str) -> Vec<String> {
        let diagnostics = documents
            .diagnostics_snapshot()
            .get(path)
            .map(crate::documents::diagnostic_store::FileDiagnostics::merged)
            .unwrap_or_default();
        diagnostics.into_iter().map(|one| one.message).collect()
    }

    async fn poll_briefly(wait: impl Future<Output = bool>) -> Option<bool> {
        tokio::time::timeout(Duration::from_millis(20), wait).await.ok()
    }

    #[tokio::test]
    async fn only_diagnostics_of_this_change_or_a_later_one_end_the_wait() {
        let documents = documents();
        publish(&documents, "a.ts", Some(1), &["before it was open"]);
        let first = set_text(&documents, "a.ts", "one");
        assert_eq!(poll_briefly(documents.wait_for_push(&first)).await, None);
        publish(&documents, "b.ts", Some(9), &[]);
        assert_eq!(poll_briefly(documents.wait_for_push(&first)).await, None, "another file");
        publish(&documents, "a.ts", Some(first.version), &["one"]);
        assert_eq!(poll_briefly(documents.wait_for_push(&first)).await, Some(true));
        let second = set_text(&documents, "a.ts", "two");
        publish(&documents, "a.ts", Some(first.version), &["late"]);
        assert_eq!(poll_briefly(documents.wait_for_push(&second)).await, None, "an older version");
        publish(&documents, "a.ts", Some(second.version + 1), &[]);
        assert_eq!(poll_briefly(documents.wait_for_push(&second)).await, Some(true));
        let third = set_text(&documents, "a.ts", "three");
        publish(&documents, "a.ts", None, &["no version"]);
        assert_eq!(poll_briefly(documents.wait_for_push(&third)).await, Some(true));
        let same = set_text(&documents, "a.ts", "three");
        assert_eq!(
            poll_briefly(documents.wait_for_push(&same)).await,
            Some(true),
            "an unchanged text was already checked"
        );
    }

    #[tokio::test]
    async fn waiting_ends_with_diagnostics_or_with_the_connection() {
        let documents = Arc::new(documents());
        let mark = set_text(&documents, "a.ts", "one");
        let waiting = {
            let (documents, mark) = (Arc::clone(&documents), mark.clone());
            async move { documents.wait_for_push(&mark).await }
        };
        let publishing = async {
            tokio::task::yield_now().await;
            publish(&documents, "a.ts", None, &[]);
        };
        assert!(tokio::join!(waiting, publishing).0);
        let mark = set_text(&documents, "a.ts", "two");
        let counters = documents.event_counters();
        let closing = async {
            tokio::task::yield_now().await;
            documents.on_close();
        };
        let (pushed, news, ()) = tokio::join!(
            documents.wait_for_push(&mark),
            documents.wait_for_events(counters),
            closing
        );
        assert_eq!((pushed, news), (false, None));
    }

    #[test]
    fn versions_are_sent_in_order_from_all_threads() {
        let documents = documents();
        let sent = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (documents, sent) = (&documents, &sent);
                scope.spawn(move || {
                    for round in 0..50 {
                        let text: Arc<str> = format!("{thread} {round}").into();
                        let send = |(_, params): LspNotification| {
                            let version = params["textDocument"]["version"].as_i64().unwrap();
                            sent.lock().unwrap().push(version);
                        };
                        documents.set_text(&send, ("a.ts", &text), None);
                    }
                });
            }
        });
        let sent = sent.into_inner().unwrap();
        assert!(sent.len() == 200 && sent.is_sorted(), "{sent:?}");
    }

    #[test]
    fn a_pull_report_on_an_outdated_text_is_dropped() {
        let documents = documents();
        set_text(&documents, "a.ts", "one");
        let requested_text = documents.document_text("a.ts");
        let report = json!({"kind": "", "items": [{"message": "m"}], "relatedDocuments": {
            "file:///w/b.ts": {"kind": "full", "items": [{"message": "in b"}]},
            "file:///etc/passwd": {"kind": "full", "items": [{"message": "outside"}]}}});
        set_text(&documents, "a.ts", "two");
        documents.store_pull_report("a.ts", requested_text, &report);
        assert!(messages(&documents, "a.ts").is_empty() && !documents.was_pulled("a.ts"));
        assert_eq!(messages(&documents, "b.ts"), ["in b"]);
        assert_eq!(documents.diagnostics_snapshot().len(), 1);
        documents.store_pull_report("a.ts", documents.document_text("a.ts"), &report);
        assert_eq!(messages(&documents, "a.ts"), ["m"]);
        documents.store_pull_report(
            "a.ts",
            documents.document_text("a.ts"),
            &json!({"kind": "unchanged"}),
        );
        assert_eq!(messages(&documents, "a.ts"), ["m"]);
    }

    #[test]
    fn diagnostics_of_files_outside_the_workspace_are_ignored() {
        let documents = documents();
        for params in [
            json!(null),
            json!([]),
            json!({"uri": 7, "diagnostics": []}),
            json!({"uri": "file:///etc/passwd", "diagnostics": [{"message": "m"}]}),
            json!({"uri": "file:///w/../x", "diagnostics": [{"message": "m"}]}),
        ] {
            documents.on_publish_diagnostics(params);
        }
        assert!(documents.diagnostics_snapshot().is_empty());
        let closed = RefCell::new(Vec::new());
        set_text(&documents, "a.ts", "one");
        publish(&documents, "a.ts", None, &["m"]);
        documents.close(&|(method, _)| closed.borrow_mut().push(method), "a.ts");
        assert_eq!(
            (closed.into_inner(), messages(&documents, "a.ts").len()),
            (vec!["textDocument/didClose"], 0)
        );
    }
}
