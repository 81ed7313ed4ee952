//! Detects file changes made outside of tools, by commands and users.
//!
//! Open documents are compared with their files by time and size whenever a server is used. All
//! other files are walked only if a command may have changed files since the last walk. The walk
//! runs in the background, and servers with file watchers receive the differences.

use crate::background_tasks::BackgroundTasks;
use crate::connection::registrations::DID_CHANGE_WATCHED_FILES;
use crate::documents::lsp_client::LspClient;
use crate::documents::watched_files_snapshot::FileChangeKind;
use crate::positions::path_to_uri;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_sandbox::{CallWorkspace, Workspace};

/// Limit for the files of one walk.
const MAX_WALKED_FILES: usize = 20_000;
/// Limit for one `didChangeWatchedFiles` notification; further changes are dropped.
const MAX_REPORTED_CHANGES: usize = 500;

/// Builds the parameters of a `didChangeWatchedFiles` notification.
pub(crate) fn watched_files_params<'a>(
    workspace: &Workspace,
    changes: impl Iterator<Item = (&'a str, FileChangeKind)>,
) -> Value {
    let changes = changes.map(
        |(path, kind)| json!({"uri": path_to_uri(workspace.root(), path), "type": kind as u8}),
    );
    json!({"changes": changes.collect::<Vec<_>>()})
}

/// Reads a file if that needs no approval; `None` if it does, or if the file is not text.
pub(crate) fn read_text(granted: &CallWorkspace, path: &str) -> Option<Arc<str>> {
    decode_utf8(granted.read_unasked(path)?)
}

/// Decodes UTF-8 without its byte order mark; `None` if the bytes are not UTF-8.
pub(crate) fn decode_utf8(bytes: Vec<u8>) -> Option<Arc<str>> {
    let text = String::from_utf8(bytes).ok()?;
    Some(text.strip_prefix('\u{feff}').map_or_else(|| text.as_str().into(), Arc::from))
}

/// Sends a server the open documents whose `FileStat` has changed.
pub(crate) fn sync_open_documents(
    workspace: &Workspace,
    granted: &CallWorkspace,
    connection: &LspClient,
) {
    let send = |(method, params)| connection.notify(method, params);
    for (path, before) in connection.documents().file_stats() {
        let now = workspace.stat(&path);
        if now == before && now.is_some() {
            continue;
        }
        match now.and_then(|_| read_text(granted, &path)) {
            Some(text) => drop(connection.documents().set_text(&send, (&path, &text), now)),
            None => connection.documents().close(&send, &path),
        }
    }
}

/// Starts a background walk over all files if `Workspace::change_counter` shows that a command may
/// have changed some.
pub(crate) fn start_walk(
    workspace: &Workspace,
    tasks: &BackgroundTasks,
    connection: &Arc<LspClient>,
) {
    if !connection.documents().file_snapshot().begin_walk(workspace.change_counter()) {
        return;
    }
    let workspace = workspace.clone();
    let connection = Arc::clone(connection);
    let walk = move || {
        let is_watched = |path: &str| connection.is_watched(path);
        let now = workspace.list_files(&is_watched, MAX_WALKED_FILES).into_iter().collect();
        let changes = connection.documents().file_snapshot().replace_files(now);
        if !changes.is_empty() {
            let reported = changes
                .iter()
                .take(MAX_REPORTED_CHANGES)
                .map(|(path, kind)| (path.as_str(), *kind));
            connection.notify(DID_CHANGE_WATCHED_FILES, watched_files_params(&workspace, reported));
        }
    };
    tasks.spawn(async move {
        let _ = tokio::task::spawn_blocking(walk).await;
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_removed() {
        assert_eq!(decode_utf8(b"\xef\xbb\xbfx".to_vec()).as_deref(), Some("x"));
        assert_eq!(decode_utf8(b"\xff\xfex".to_vec()), None);
    }
}
