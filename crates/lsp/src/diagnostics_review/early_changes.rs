//! Reviews of changes that were made before their server had started.

use crate::diagnostics::late::{
    ChangedFileTexts, OtherFileErrorPolicy, PendingLateReport, UnsettledFiles,
};
use crate::diagnostics_review::change_notifications::send_change;
use crate::documents::diagnostic_store::DiagnosticsSnapshot;
use crate::documents::watched_files_snapshot::FileChangeKind;
use crate::pool::ServerPool;
use crate::pool::server::LspServer;
use std::sync::Arc;
use windlass_protocol::SessionId;

/// Reviews a change in the background once the server has started. Nothing is known of the files
/// before the change, so none of their errors is called new.
pub(super) fn review_after_start(
    pool: &ServerPool,
    server: &Arc<LspServer>,
    session: SessionId,
    texts: ChangedFileTexts,
) {
    let (server_name, root) = (server.config().name.clone(), server.root().to_owned());
    let late = Arc::clone(pool.late_diagnostics());
    if !late.add_early_change(&server_name, &root, session, texts) {
        return;
    }
    let (server, workspace) = (Arc::clone(server), pool.workspace().clone());
    let start_timeout = pool.timeouts().start;
    pool.background_tasks().spawn(async move {
        let connection = server.connect(start_timeout).await;
        let texts = late.take_early_changes(&server_name, &root, session);
        let Ok(connection) = connection else { return };
        late.mark_running(&server_name, &root);
        let events_seen = connection.documents().event_counters();
        let mut unsettled = UnsettledFiles::default();
        for (path, text) in &texts {
            let text = text.as_ref();
            let kind =
                if text.is_some() { FileChangeKind::Changed } else { FileChangeKind::Deleted };
            send_change(&workspace, &connection, (path, text), kind);
            if text.is_some() {
                unsettled.add(path.clone(), None, true, events_seen);
            }
        }
        let pending = PendingLateReport {
            workspace,
            session,
            connection,
            server_name,
            root,
            paths: texts.into_iter().map(|(path, _)| path).collect(),
            known_diagnostics: DiagnosticsSnapshot::new(),
            events_seen,
            unsettled,
            other_files: OtherFileErrorPolicy::Unknown,
        };
        late.report(pending).await;
    });
}
