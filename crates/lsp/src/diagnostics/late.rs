//! Late diagnostics: errors that arrive after the result of a change was returned.
//!
//! The session receives them between its steps, once, and only until its next change.

use crate::background_tasks::BackgroundTasks;
use crate::diagnostics::wait_for_diagnostics::pull_diagnostics;
use crate::diagnostics::{self, FileDiagnosticsReport};
use crate::documents::diagnostic_store::{DiagnosticsSnapshot, FileDiagnostics};
use crate::documents::documents_and_diagnostics::DocumentsAndDiagnostics;
use crate::documents::lsp_client::LspClient;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use windlass_protocol::SessionId;
use windlass_protocol::mutex_lock::lock;
use windlass_sandbox::Workspace;

/// Time after which a `PendingLateReport` is given up.
const LATE_REPORT_TIMEOUT: Duration = Duration::from_secs(120);
const MAX_PENDING_REPORTS: usize = 64;
/// Time to wait for more diagnostics after the first ones.
const SETTLE_DELAY: Duration = Duration::from_millis(200);
/// Limit for a background `pull_diagnostics`.
const PULL_TIMEOUT: Duration = Duration::from_secs(10);

/// Server name, project root and the session that made the change.
type LateReportKey = (String, String, SessionId);

/// Late reports that sessions still wait for.
#[derive(Debug, Default)]
pub(crate) struct LateDiagnostics {
    /// Guard that cancels the report when dropped, and the changed files.
    pending: Mutex<BTreeMap<LateReportKey, (DropGuard, BTreeSet<String>)>>,
    /// Servers whose start a change has already waited for in vain.
    awaited_starts: Mutex<BTreeSet<(String, String)>>,
}

/// A report of late diagnostics that a session has yet to receive for a change.
pub(crate) struct PendingLateReport {
    pub(crate) workspace: Workspace,
    pub(crate) session: SessionId,
    pub(crate) connection: Arc<LspClient>,
    pub(crate) server_name: String,
    pub(crate) root: String,
    pub(crate) paths: Vec<String>,
    /// Diagnostics that were known before, or already reported.
    pub(crate) known_diagnostics: DiagnosticsSnapshot,
    /// The `event_counters` at the time of `known_diagnostics`.
    pub(crate) events_seen: (u64, u64),
    /// `Compared` if other files were known before, so that new errors in them count, too.
    pub(crate) other_files: OtherFileErrorPolicy,
}

/// Treatment of errors in files other than the changed ones: compared with earlier ones, or not
/// reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherFileErrorPolicy {
    Compared,
    Unknown,
}

impl LateDiagnostics {
    /// Returns true for the first change that finds a server not running: only that one may wait
    /// for the start.
    pub(crate) fn may_wait(&self, server_name: &str, root: &str) -> bool {
        lock(&self.awaited_starts).insert((server_name.to_owned(), root.to_owned()))
    }

    /// Records that a server runs, so that a change may wait for its next start.
    pub(crate) fn mark_running(&self, server_name: &str, root: &str) {
        lock(&self.awaited_starts).remove(&(server_name.to_owned(), root.to_owned()));
    }

    /// Cancels the late report of an earlier change: a later change makes it obsolete.
    pub(crate) fn cancel_report(&self, server_name: &str, root: &str, session: SessionId) {
        lock(&self.pending).remove(&(server_name.to_owned(), root.to_owned(), session));
    }

    /// Adds a pending report and returns its cancellation token; `None` if there are
    /// `MAX_PENDING_REPORTS`.
    fn add_pending(&self, pending: &PendingLateReport) -> Option<CancellationToken> {
        let mut reports = lock(&self.pending);
        if reports.len() >= MAX_PENDING_REPORTS && !reports.contains_key(&pending.key()) {
            return None;
        }
        let canceled = CancellationToken::new();
        let paths = pending.paths.iter().cloned().collect();
        reports.insert(pending.key(), (canceled.clone().drop_guard(), paths));
        Some(canceled)
    }

    fn paths_of_other_sessions(&self, pending: &PendingLateReport) -> BTreeSet<String> {
        let reports = lock(&self.pending);
        let others = reports.iter().filter(|((server_name, root, session), _)| {
            *server_name == pending.server_name
                && *root == pending.root
                && *session != pending.session
        });
        others.flat_map(|(_, (_, paths))| paths.iter().cloned()).collect()
    }
}

/// Spawns a background task that reports late diagnostics with `Workspace::notify_session`.
pub(crate) fn report_later(
    late: &Arc<LateDiagnostics>,
    tasks: &BackgroundTasks,
    pending: PendingLateReport,
) {
    let Some(canceled) = late.add_pending(&pending) else { return };
    let late = Arc::clone(late);
    tasks.spawn(async move {
        let reports = tokio::select! {
            biased;
            () = canceled.cancelled() => return,
            reports = tokio::time::timeout(LATE_REPORT_TIMEOUT, pending.wait_for_new_errors()) => reports.ok().flatten(),
        };
        // Files that other sessions changed meanwhile are reported to those sessions.
        let other_paths = late.paths_of_other_sessions(&pending);
        let reports = reports.unwrap_or_default().into_iter();
        let reports: Vec<FileDiagnosticsReport> =
            reports.filter(|report| !other_paths.contains(&report.path)).collect();
        if !reports.is_empty() && !canceled.is_cancelled() {
            for report in &reports {
                pending.connection.documents().mark_reported(&report.path);
            }
            let text =
                diagnostics::late_report_text(&pending.server_name, &pending.paths, &reports);
            pending.workspace.notify_session(pending.session, text);
        }
        if !canceled.is_cancelled() {
            late.cancel_report(&pending.server_name, &pending.root, pending.session);
        }
    });
}

impl PendingLateReport {
    fn key(&self) -> LateReportKey {
        (self.server_name.clone(), self.root.clone(), self.session)
    }

    fn documents(&self) -> &DocumentsAndDiagnostics {
        self.connection.documents()
    }

    /// Waits for new errors; returns `None` if the connection closes first.
    async fn wait_for_new_errors(&self) -> Option<Vec<FileDiagnosticsReport>> {
        let mut seen = self.events_seen;
        loop {
            let now = self.documents().wait_for_events(seen).await?;
            tokio::time::sleep(SETTLE_DELAY).await;
            if now.1 != seen.1 {
                for path in &self.paths {
                    pull_diagnostics(&self.connection, path, Instant::now() + PULL_TIMEOUT).await;
                }
            }
            seen = now;
            let reports = self.new_reports();
            if !reports.is_empty() {
                return Some(reports);
            }
        }
    }

    fn new_reports(&self) -> Vec<FileDiagnosticsReport> {
        let snapshot = self.documents().diagnostics_snapshot();
        let mut reports = Vec::new();
        for (path, current) in &snapshot {
            if !self.paths.contains(path) && self.other_files == OtherFileErrorPolicy::Unknown {
                continue;
            }
            let before =
                self.known_diagnostics.get(path).map(FileDiagnostics::merged).unwrap_or_default();
            let (new, remaining) = diagnostics::new_diagnostics(&before, current.merged());
            if !new.is_empty() {
                reports.push(FileDiagnosticsReport {
                    path: path.clone(),
                    new,
                    remaining,
                    first_seen: false,
                });
            }
        }
        // Changed files come first.
        reports.sort_by_key(|report| !self.paths.contains(&report.path));
        reports
    }
}
