//! Notifications to servers about opened, changed, saved and watched files.

use crate::connection::registrations::DID_CHANGE_WATCHED_FILES;
use crate::diagnostics::late::ChangedFileTexts;
use crate::documents::documents_and_diagnostics::SentDocumentChange;
use crate::documents::file_watch;
use crate::documents::lsp_client::LspClient;
use crate::documents::watched_files_snapshot::FileChangeKind;
use crate::pool::ServerPool;
use crate::pool::server::LspServer;
use crate::positions::path_to_uri;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_sandbox::{CallWorkspace, Workspace};

/// Opens a file that is being read at its servers, or starts them in the background.
pub(crate) fn open_for_read(pool: &ServerPool, granted: &Arc<CallWorkspace>, path: &str) {
    let Ok(path) = granted.workspace().resolve_inside(path) else { return };
    for server in pool.servers_for(granted, &path) {
        match server.ready_connection() {
            Some(connection) => open_document(pool, granted, &connection, &path),
            None => server.start_in_background(),
        }
    }
}

/// Opens a document if it is not open, so that the server sees it before it changes.
pub(super) fn open_document(
    pool: &ServerPool,
    granted: &CallWorkspace,
    connection: &LspClient,
    path: &str,
) {
    if connection.documents().document_text(path).is_none()
        && let Some(text) = file_watch::read_text(granted, path)
    {
        let stat = pool.workspace().stat(path);
        connection.documents().set_text(
            &|(method, params)| connection.notify(method, params),
            (path, &text),
            stat,
        );
    }
}

/// Sends servers the new texts of files without waiting for diagnostics.
pub(crate) fn notify_changed(
    pool: &ServerPool,
    granted: &Arc<CallWorkspace>,
    new_texts: ChangedFileTexts,
) {
    for (path, text) in &new_texts {
        for server in pool.servers_for(granted, path) {
            if let Some(connection) = server.ready_connection() {
                let kind =
                    if text.is_some() { FileChangeKind::Changed } else { FileChangeKind::Deleted };
                send_change(pool.workspace(), &connection, (path, text.as_ref()), kind);
            }
        }
    }
    notify_watchers(pool, &[], &new_texts, &BTreeSet::new());
}

/// Sends a server the new text of a file with `didChange` or `didOpen`, and then `didSave`.
pub(super) fn send_change(
    workspace: &Workspace,
    connection: &LspClient,
    (path, text): (&str, Option<&Arc<str>>),
    kind: FileChangeKind,
) -> Option<SentDocumentChange> {
    let send = |(method, params)| connection.notify(method, params);
    let mark = match text {
        Some(text) => {
            let stat = workspace.stat(path);
            let mark = connection.documents().set_text(&send, (path, text), stat);
            let registered = || {
                connection
                    .supports("textDocument/didSave")
                    .then_some(SaveNotificationForm::WithoutText)
            };
            if let Some(save) = save_notification(connection.capabilities()).or_else(registered) {
                let mut params =
                    json!({"textDocument": {"uri": path_to_uri(workspace.root(), path)}});
                if let (SaveNotificationForm::WithText, Some(params)) =
                    (save, params.as_object_mut())
                {
                    params.insert("text".into(), Value::from(&**text));
                }
                connection.notify("textDocument/didSave", params);
            }
            mark
        }
        None => {
            connection.documents().close(&send, path);
            None
        }
    };
    if connection.is_watched(path) {
        let change = std::iter::once((path, kind));
        connection
            .notify(DID_CHANGE_WATCHED_FILES, file_watch::watched_files_params(workspace, change));
    }
    mark
}

/// Notifies servers that watch a changed file without serving it (`didChangeWatchedFiles`).
pub(super) fn notify_watchers(
    pool: &ServerPool,
    notified: &[Arc<LspServer>],
    new_texts: &ChangedFileTexts,
    existing: &BTreeSet<String>,
) {
    for server in pool.running_servers() {
        if notified.iter().any(|other| Arc::ptr_eq(other, &server)) {
            continue;
        }
        let Some(connection) = server.ready_connection() else { continue };
        let changes: Vec<(&str, FileChangeKind)> = new_texts
            .iter()
            .filter(|(path, _)| connection.is_watched(path))
            .map(|(path, text)| (path.as_str(), change_kind((path, text.as_ref()), existing)))
            .collect();
        if !changes.is_empty() {
            connection.notify(
                DID_CHANGE_WATCHED_FILES,
                file_watch::watched_files_params(pool.workspace(), changes.into_iter()),
            );
        }
    }
}

pub(super) fn change_kind(
    (path, text): (&str, Option<&Arc<str>>),
    existing: &BTreeSet<String>,
) -> FileChangeKind {
    match text {
        None => FileChangeKind::Deleted,
        Some(_) if existing.contains(path) => FileChangeKind::Changed,
        Some(_) => FileChangeKind::Created,
    }
}

/// Form in which a server expects `textDocument/didSave`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SaveNotificationForm {
    WithoutText,
    WithText,
}

fn save_notification(capabilities: &Value) -> Option<SaveNotificationForm> {
    match capabilities.pointer("/textDocumentSync/save") {
        Some(Value::Bool(true)) => Some(SaveNotificationForm::WithoutText),
        Some(Value::Object(save)) => {
            let includes_text = save.get("includeText") == Some(&Value::Bool(true));
            Some(if includes_text {
                SaveNotificationForm::WithText
            } else {
                SaveNotificationForm::WithoutText
            })
        }
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn save_notifications_follow_the_server_capabilities() {
        for (sync, expected) in [
            (json!(1), None),
            (json!({"save": true}), Some(SaveNotificationForm::WithoutText)),
            (json!({"save": false}), None),
            (json!({"save": {}}), Some(SaveNotificationForm::WithoutText)),
            (json!({"save": {"includeText": true}}), Some(SaveNotificationForm::WithText)),
        ] {
            let capabilities = json!({"textDocumentSync": sync});
            assert_eq!(save_notification(&capabilities), expected, "{capabilities}");
        }
    }
}
