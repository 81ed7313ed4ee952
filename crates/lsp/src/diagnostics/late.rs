//! Late diagnostics: errors that arrive after the result of a change was returned.
//!
//! The session receives them between its steps, once. A later change takes over the files whose
//! errors are still missing. All changes of a step share one limit on the time that they wait.

use crate::background_tasks::BackgroundTasks;
use crate::diagnostics::wait_for_diagnostics::{PULL_METHOD, pull_diagnostics};
use crate::diagnostics::{self, FileDiagnosticsReport};
use crate::documents::diagnostic_store::{DiagnosticsSnapshot, FileDiagnostics};
use crate::documents::documents_and_diagnostics::DocumentsAndDiagnostics;
use crate::documents::lsp_client::LspClient;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
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
/// Longest pause between two changes of the same step.
const MAX_PAUSE_IN_STEP: Duration = Duration::from_millis(300);

/// New texts by path; `None` if the file was removed.
pub(crate) type ChangedFileTexts = Vec<(String, Option<Arc<str>>)>;

/// Server name, project root and the session that made the change.
type LateReportKey = (String, String, SessionId);

/// Late reports that sessions still wait for.
#[derive(Debug, Default)]
pub(crate) struct LateDiagnostics {
    pending: Mutex<BTreeMap<LateReportKey, PendingReportEntry>>,
    /// Servers whose start a change has already waited for in vain.
    awaited_starts: Mutex<BTreeSet<(String, String)>>,
    /// Changes for servers that are still starting.
    early_changes: Mutex<BTreeMap<LateReportKey, ChangedFileTexts>>,
    /// End of the last review of a session, and the time that the reviews of its step have taken.
    step_waits: Mutex<BTreeMap<SessionId, (Instant, Duration)>>,
}

#[derive(Debug)]
struct PendingReportEntry {
    /// Cancels the report when dropped.
    _guard: DropGuard,
    paths: BTreeSet<String>,
    unsettled: UnsettledFiles,
}

/// Changed files on which a server has not reported yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnsettledFiles {
    /// The diagnostics before the change, if there were any.
    pub(crate) known_diagnostics: BTreeMap<String, Option<FileDiagnostics>>,
    /// Files that the server had not checked before, so their errors may not be new.
    pub(crate) first_seen: BTreeSet<String>,
    /// The `event_counters` at the time of the first change, if there is a file.
    pub(crate) events_seen: Option<(u64, u64)>,
}

impl UnsettledFiles {
    /// Adds a changed file with its diagnostics before the change. Of two changes without a report
    /// between them, the state before the first counts.
    pub(crate) fn add(
        &mut self,
        path: String,
        known: Option<FileDiagnostics>,
        is_first_seen: bool,
        events_seen: (u64, u64),
    ) {
        self.events_seen.get_or_insert(events_seen);
        if is_first_seen {
            self.first_seen.insert(path.clone());
        }
        self.known_diagnostics.entry(path).or_insert(known);
    }

    /// Removes the files for which `is_kept` returns false.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&String) -> bool) {
        self.known_diagnostics.retain(|path, _| is_kept(path));
        self.first_seen.retain(is_kept);
    }

    /// Replaces the diagnostics of these files by those before their change.
    pub(crate) fn restore_known(&self, snapshot: &mut DiagnosticsSnapshot) {
        for (path, diagnostics) in &self.known_diagnostics {
            match diagnostics {
                Some(diagnostics) => drop(snapshot.insert(path.clone(), diagnostics.clone())),
                None => drop(snapshot.remove(path)),
            }
        }
    }
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
    pub(crate) unsettled: UnsettledFiles,
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

    /// Cancels the late report of an earlier change, and returns the files that it was about: a
    /// later change takes them over.
    pub(crate) fn cancel_report(
        &self,
        server_name: &str,
        root: &str,
        session: SessionId,
    ) -> UnsettledFiles {
        let key = (server_name.to_owned(), root.to_owned(), session);
        let entry = lock(&self.pending).remove(&key);
        entry.map(|entry| entry.unsettled).unwrap_or_default()
    }

    /// Returns the time until which a review may wait. The reviews of a step share `limit`.
    pub(crate) fn review_deadline(&self, session: SessionId, limit: Duration) -> Instant {
        let now = Instant::now();
        let mut waits = lock(&self.step_waits);
        waits.retain(|_, (ended, _)| now.duration_since(*ended) < MAX_PAUSE_IN_STEP);
        let spent = waits.get(&session).map_or(Duration::ZERO, |(_, spent)| *spent);
        now + limit.saturating_sub(spent)
    }

    /// Counts the time that a review has taken.
    pub(crate) fn record_review(&self, session: SessionId, started: Instant) {
        let now = Instant::now();
        let mut waits = lock(&self.step_waits);
        let (ended, spent) = waits.entry(session).or_insert((now, Duration::ZERO));
        *ended = now;
        *spent += now.duration_since(started);
    }

    /// Adds a change for a server that is still starting. Returns true for the first one.
    pub(crate) fn add_early_change(
        &self,
        server_name: &str,
        root: &str,
        session: SessionId,
        texts: ChangedFileTexts,
    ) -> bool {
        let mut changes = lock(&self.early_changes);
        let key = (server_name.to_owned(), root.to_owned(), session);
        let is_first = !changes.contains_key(&key);
        let known = changes.entry(key).or_default();
        for (path, text) in texts {
            known.retain(|(other, _)| *other != path);
            known.push((path, text));
        }
        is_first
    }

    /// Returns the changes for a server that has started or failed.
    pub(crate) fn take_early_changes(
        &self,
        server_name: &str,
        root: &str,
        session: SessionId,
    ) -> ChangedFileTexts {
        let key = (server_name.to_owned(), root.to_owned(), session);
        lock(&self.early_changes).remove(&key).unwrap_or_default()
    }

    /// Adds a pending report and returns its cancellation token; `None` if there are
    /// `MAX_PENDING_REPORTS`.
    fn add_pending(&self, pending: &PendingLateReport) -> Option<CancellationToken> {
        let mut reports = lock(&self.pending);
        if reports.len() >= MAX_PENDING_REPORTS && !reports.contains_key(&pending.key()) {
            return None;
        }
        let canceled = CancellationToken::new();
        let entry = PendingReportEntry {
            _guard: canceled.clone().drop_guard(),
            paths: pending.paths.iter().cloned().collect(),
            unsettled: pending.unsettled.clone(),
        };
        reports.insert(pending.key(), entry);
        Some(canceled)
    }

    /// Records that some files of a pending report were reported.
    fn update_pending(&self, pending: &PendingLateReport, canceled: &CancellationToken) {
        let mut reports = lock(&self.pending);
        // After a cancellation, the entry is that of a later change.
        if !canceled.is_cancelled()
            && let Some(entry) = reports.get_mut(&pending.key())
        {
            entry.paths = pending.paths.iter().cloned().collect();
            entry.unsettled = pending.unsettled.clone();
        }
    }

    fn paths_of_other_sessions(&self, pending: &PendingLateReport) -> BTreeSet<String> {
        let reports = lock(&self.pending);
        let others = reports.iter().filter(|((server_name, root, session), _)| {
            *server_name == pending.server_name
                && *root == pending.root
                && *session != pending.session
        });
        others.flat_map(|(_, entry)| entry.paths.iter().cloned()).collect()
    }
}

/// Spawns a background task that reports late diagnostics with `Workspace::notify_session`.
pub(crate) fn report_later(
    late: &Arc<LateDiagnostics>,
    tasks: &BackgroundTasks,
    pending: PendingLateReport,
) {
    let late = Arc::clone(late);
    let Some(canceled) = late.add_pending(&pending) else { return };
    tasks.spawn(async move { late.run_report(pending, canceled).await });
}

impl LateDiagnostics {
    /// Reports late diagnostics with `Workspace::notify_session`.
    pub(crate) async fn report(&self, pending: PendingLateReport) {
        if let Some(canceled) = self.add_pending(&pending) {
            self.run_report(pending, canceled).await;
        }
    }

    async fn run_report(&self, mut pending: PendingLateReport, canceled: CancellationToken) {
        let deadline = Instant::now() + LATE_REPORT_TIMEOUT;
        loop {
            let reports = tokio::select! {
                biased;
                () = canceled.cancelled() => return,
                reports = timeout_at(deadline, pending.wait_for_new_errors()) => reports,
            };
            let Ok(Some(reports)) = reports else { break };
            // Files that other sessions changed meanwhile are reported to those sessions.
            let other_paths = self.paths_of_other_sessions(&pending);
            let reports: Vec<FileDiagnosticsReport> =
                reports.into_iter().filter(|report| !other_paths.contains(&report.path)).collect();
            if reports.is_empty() || canceled.is_cancelled() {
                break;
            }
            for report in &reports {
                pending.connection.documents().mark_reported(&report.path);
            }
            let text =
                diagnostics::late_report_text(&pending.server_name, &pending.paths, &reports);
            pending.workspace.notify_session(pending.session, text);
            pending.continue_after(&reports);
            if pending.paths.is_empty() {
                break;
            }
            self.update_pending(&pending, &canceled);
        }
        if !canceled.is_cancelled() {
            self.cancel_report(&pending.server_name, &pending.root, pending.session);
        }
    }
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
        let mut seen = self.unsettled.events_seen.unwrap_or(self.events_seen);
        if self.connection.supports(PULL_METHOD) && !self.unsettled.known_diagnostics.is_empty() {
            tokio::time::sleep(SETTLE_DELAY).await;
            for path in self.unsettled.known_diagnostics.keys() {
                pull_diagnostics(&self.connection, path, Instant::now() + PULL_TIMEOUT).await;
            }
            let reports = self.new_reports();
            if !reports.is_empty() {
                return Some(reports);
            }
        }
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

    /// Limits the report to the changed files that are not in `reports`.
    fn continue_after(&mut self, reports: &[FileDiagnosticsReport]) {
        let is_reported = |path: &String| reports.iter().any(|report| report.path == *path);
        self.unsettled.retain(|path| !is_reported(path));
        self.paths = self.unsettled.known_diagnostics.keys().cloned().collect();
        self.events_seen = self.documents().event_counters();
        self.unsettled.events_seen = None;
        self.other_files = OtherFileErrorPolicy::Unknown;
    }

    fn new_reports(&self) -> Vec<FileDiagnosticsReport> {
        let snapshot = self.documents().diagnostics_snapshot();
        let mut reports = Vec::new();
        for (path, current) in &snapshot {
            let is_unknown =
                !self.paths.contains(path) && self.other_files == OtherFileErrorPolicy::Unknown;
            if is_unknown || self.documents().is_outdated(path) {
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
                    first_seen: self.unsettled.first_seen.contains(path),
                });
            }
        }
        // Changed files come first.
        reports.sort_by_key(|report| !self.paths.contains(&report.path));
        reports
    }
}
