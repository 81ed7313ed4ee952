//! The review of a change: diagnostics before, new texts sent to servers, and diagnostics after.
//!
//! The reviews of a step take no longer than `LspTimeouts::review` together, and end at once when the
//! call is canceled. Diagnostics that are missing by then are reported later (see
//! `diagnostics::late`), also those of a server that is still starting. Start reading
//! at [`review_after`].

pub(crate) mod change_notifications;
mod early_changes;

use crate::diagnostics::late::{
    self, ChangedFileTexts, OtherFileErrorPolicy, PendingLateReport, UnsettledFiles,
};
use crate::diagnostics::wait_for_diagnostics::{
    PULL_METHOD, pull_diagnostics, wait_for_diagnostics,
};
use crate::diagnostics::{self, FileDiagnosticsReport, MAX_OTHER_FILES};
use crate::diagnostics_review::change_notifications::{
    change_kind, notify_watchers, open_document, send_change,
};
use crate::documents::diagnostic_store::{DiagnosticsSnapshot, FileDiagnostics};
use crate::documents::documents_and_diagnostics::{ChangeResponseOutcome, SentDocumentChange};
use crate::documents::file_watch;
use crate::documents::lsp_client::LspClient;
use crate::pool::ServerPool;
use crate::pool::server::LspServer;
use crate::positions::LineIndex;
use futures_util::future::join_all;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_protocol::SessionId;
use windlass_sandbox::CallWorkspace;

/// Limit for the files of one change that a review waits for.
const MAX_AWAITED_FILES: usize = 10;
/// Wait for a server with two `missed_responses` in a row.
const SILENT_SERVER_TIMEOUT: Duration = Duration::from_millis(500);
/// Wait for other open documents.
const OTHER_DOCUMENTS_TIMEOUT: Duration = Duration::from_millis(500);

/// Diagnostics that servers report after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiagnosticsReport {
    /// Report for the model, one block per server.
    pub text: String,
    /// Number of errors that the change introduced.
    pub new_errors: usize,
    /// Number of errors that existed before and remain.
    pub remaining_errors: usize,
}

/// Known diagnostics of files before they change.
#[derive(Default)]
pub struct PreChangeDiagnostics {
    baselines: Vec<ServerDiagnosticsBaseline>,
    /// Files that existed before the change.
    existing: BTreeSet<String>,
}

/// Knowledge of one server before a change.
struct ServerDiagnosticsBaseline {
    server: Arc<LspServer>,
    paths: Vec<String>,
    baseline: Option<DiagnosticsBaseline>,
}

struct DiagnosticsBaseline {
    connection: Arc<LspClient>,
    snapshot: DiagnosticsSnapshot,
    /// Files that were opened just now, so the server has not reported on them yet.
    not_yet_diagnosed: BTreeSet<String>,
    other_files: OtherFileErrorPolicy,
    /// The `event_counters` before the change.
    events_seen: (u64, u64),
}

/// Takes a snapshot of the known diagnostics of files that are about to change.
pub(crate) fn snapshot_before(
    pool: &ServerPool,
    granted: &Arc<CallWorkspace>,
    paths: &[String],
) -> PreChangeDiagnostics {
    let mut state = PreChangeDiagnostics::default();
    for path in paths {
        if pool.workspace().stat(path).is_some() {
            state.existing.insert(path.clone());
        }
        for server in pool.servers_for(granted, path) {
            let entry =
                state.baselines.iter_mut().find(|baseline| Arc::ptr_eq(&baseline.server, &server));
            match entry {
                Some(baseline) => baseline.paths.push(path.clone()),
                None => state.baselines.push(ServerDiagnosticsBaseline {
                    server,
                    paths: vec![path.clone()],
                    baseline: None,
                }),
            }
        }
    }
    for baseline in &mut state.baselines {
        let Some(connection) = baseline.server.ready_connection() else {
            baseline.server.start_in_background();
            continue;
        };
        pool.late_diagnostics()
            .mark_running(&baseline.server.config().name, baseline.server.root());
        file_watch::sync_open_documents(pool.workspace(), granted, &connection);
        let existing = baseline.paths.iter().filter(|path| state.existing.contains(*path));
        let mut not_yet_diagnosed = BTreeSet::new();
        for path in existing {
            open_document(pool, granted, &connection, path);
            let documents = connection.documents();
            let is_diagnosed = if connection.supports(PULL_METHOD) {
                documents.was_pulled(path)
            } else {
                documents.was_published(path)
            };
            if !is_diagnosed {
                not_yet_diagnosed.insert(path.clone());
            }
        }
        let other_files = if connection.busy_text().is_some() {
            OtherFileErrorPolicy::Unknown
        } else {
            OtherFileErrorPolicy::Compared
        };
        let snapshot = connection.documents().diagnostics_snapshot();
        let events_seen = connection.documents().event_counters();
        baseline.baseline = Some(DiagnosticsBaseline {
            connection,
            snapshot,
            not_yet_diagnosed,
            other_files,
            events_seen,
        });
    }
    state
}

/// A review under way.
struct ChangeDiagnosticsReview<'a> {
    pool: &'a ServerPool,
    granted: &'a Arc<CallWorkspace>,
    session: SessionId,
    existing: BTreeSet<String>,
    new_texts: ChangedFileTexts,
    deadline: Instant,
    cancel: &'a CancellationToken,
}

/// Sends servers the new texts of files and waits for their diagnostics.
pub(crate) async fn review_after(
    pool: &ServerPool,
    granted: &Arc<CallWorkspace>,
    session: SessionId,
    before: PreChangeDiagnostics,
    new_texts: ChangedFileTexts,
    cancel: &CancellationToken,
) -> Option<DiagnosticsReport> {
    let PreChangeDiagnostics { baselines, existing } = before;
    let servers: Vec<Arc<LspServer>> =
        baselines.iter().map(|baseline| Arc::clone(&baseline.server)).collect();
    notify_watchers(pool, &servers, &new_texts, &existing);
    let started = Instant::now();
    let deadline = pool.late_diagnostics().review_deadline(session, pool.timeouts().review);
    let change =
        ChangeDiagnosticsReview { pool, granted, session, existing, new_texts, deadline, cancel };
    let reviews =
        join_all(baselines.into_iter().map(|baseline| change.review_server(baseline))).await;
    pool.late_diagnostics().record_review(session, started);
    let mut combined =
        DiagnosticsReport { text: String::new(), new_errors: 0, remaining_errors: 0 };
    for DiagnosticsReport { text, new_errors, remaining_errors } in reviews.into_iter().flatten() {
        if !combined.text.is_empty() && !text.is_empty() {
            combined.text.push('\n');
        }
        combined.text.push_str(&text);
        combined.new_errors += new_errors;
        combined.remaining_errors += remaining_errors;
    }
    (!combined.text.is_empty()).then_some(combined)
}

impl ChangeDiagnosticsReview<'_> {
    /// Reviews the change with one server.
    async fn review_server(
        &self,
        server_baseline: ServerDiagnosticsBaseline,
    ) -> Option<DiagnosticsReport> {
        let ServerDiagnosticsBaseline { server, paths, baseline } = server_baseline;
        let server_name = server.config().name.clone();
        let root = server.root().to_owned();
        let mut unsettled =
            self.pool.late_diagnostics().cancel_report(&server_name, &root, self.session);
        let baseline = match baseline {
            Some(baseline) => Some(baseline),
            None => self.wait_for_start(&server, &paths).await,
        };
        let Some(mut baseline) = baseline else {
            let texts = self.new_texts.iter().filter(|(path, _)| paths.contains(path));
            let texts = texts.cloned().collect();
            early_changes::review_after_start(self.pool, &server, self.session, texts);
            return None;
        };
        let connection = Arc::clone(&baseline.connection);
        self.diagnose_before_change(&mut baseline).await;
        let marks: Vec<SentDocumentChange> =
            paths.iter().filter_map(|path| self.send_change(&connection, path)).collect();
        file_watch::start_walk(self.pool.workspace(), self.pool.background_tasks(), &connection);
        let settled =
            self.wait_for_settled(&connection, server.config().settle_time(), &marks).await;
        if !self.cancel.is_cancelled() && !settled.is_empty() {
            self.pull_other_documents(&connection, &mut baseline, &paths).await;
        }
        let snapshot = connection.documents().diagnostics_snapshot();
        let events_seen = connection.documents().event_counters();
        unsettled.retain(|path| !settled.contains(path));
        let review =
            self.compare_diagnostics(&server_name, &baseline, &snapshot, &settled, &unsettled);
        let is_compared = baseline.other_files == OtherFileErrorPolicy::Compared;
        // If nothing has settled, errors in other files are not reported yet either.
        let mut known_diagnostics = match is_compared && settled.is_empty() {
            true => baseline.snapshot.clone(),
            false => snapshot,
        };
        // Unsettled files keep their diagnostics from before the change, so that the late report
        // covers them.
        for mark in marks.iter().filter(|mark| !settled.contains(&mark.path)) {
            let known = baseline.snapshot.get(&mark.path).cloned();
            let is_first_seen = baseline.not_yet_diagnosed.contains(&mark.path);
            unsettled.add(mark.path.clone(), known, is_first_seen, baseline.events_seen);
        }
        unsettled.restore_known(&mut known_diagnostics);
        if unsettled.known_diagnostics.is_empty() {
            unsettled = UnsettledFiles::default();
        }
        let earlier = unsettled.known_diagnostics.keys().filter(|path| !paths.contains(path));
        let paths = paths.iter().chain(earlier).cloned().collect();
        late::report_later(
            self.pool.late_diagnostics(),
            self.pool.background_tasks(),
            PendingLateReport {
                workspace: self.pool.workspace().clone(),
                session: self.session,
                connection,
                server_name,
                root,
                paths,
                known_diagnostics,
                events_seen,
                unsettled,
                other_files: baseline.other_files,
            },
        );
        review
    }

    /// Waits for a server that starts with this change. Only the first change waits; others do not.
    async fn wait_for_start(
        &self,
        server: &Arc<LspServer>,
        paths: &[String],
    ) -> Option<DiagnosticsBaseline> {
        if !self.pool.late_diagnostics().may_wait(&server.config().name, server.root()) {
            return None;
        }
        let limit = self.deadline.saturating_duration_since(Instant::now());
        let connection = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return None,
            connection = server.connect(limit) => connection.ok()?,
        };
        self.pool.late_diagnostics().mark_running(&server.config().name, server.root());
        let not_yet_diagnosed =
            paths.iter().filter(|path| self.existing.contains(*path)).cloned().collect();
        Some(DiagnosticsBaseline {
            events_seen: connection.documents().event_counters(),
            connection,
            snapshot: DiagnosticsSnapshot::new(),
            not_yet_diagnosed,
            other_files: OtherFileErrorPolicy::Unknown,
        })
    }

    /// Pulls the diagnostics of just-opened files as they were before the change.
    async fn diagnose_before_change(&self, baseline: &mut DiagnosticsBaseline) {
        let connection = Arc::clone(&baseline.connection);
        let paths: Vec<String> = baseline
            .not_yet_diagnosed
            .iter()
            .filter(|path| connection.documents().document_text(path).is_some())
            .take(MAX_AWAITED_FILES)
            .cloned()
            .collect();
        if paths.is_empty() || !connection.supports(PULL_METHOD) {
            return;
        }
        let pull_deadline =
            Instant::now() + self.deadline.saturating_duration_since(Instant::now()) / 2;
        let pulls =
            join_all(paths.iter().map(|path| pull_diagnostics(&connection, path, pull_deadline)));
        let answered = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return,
            answered = pulls => answered,
        };
        for (path, _) in paths.iter().zip(answered).filter(|(_, answered)| *answered) {
            baseline.not_yet_diagnosed.remove(path);
        }
        baseline.snapshot = connection.documents().diagnostics_snapshot();
    }

    fn send_change(&self, connection: &LspClient, path: &str) -> Option<SentDocumentChange> {
        let (_, text) = self.new_texts.iter().find(|(changed, _)| changed == path)?;
        let kind = change_kind((path, text.as_ref()), &self.existing);
        send_change(self.pool.workspace(), connection, (path, text.as_ref()), kind)
    }

    /// Waits until a server has reported on changes, and returns the files it reported on.
    async fn wait_for_settled(
        &self,
        connection: &LspClient,
        settle: Duration,
        marks: &[SentDocumentChange],
    ) -> BTreeSet<String> {
        let documents = connection.documents();
        let short_deadline = Instant::now() + SILENT_SERVER_TIMEOUT;
        let deadline = if documents.missed_responses() < 2 {
            self.deadline
        } else {
            self.deadline.min(short_deadline)
        };
        let has_time = deadline.saturating_duration_since(Instant::now()) >= SILENT_SERVER_TIMEOUT;
        let waits = marks
            .iter()
            .take(MAX_AWAITED_FILES)
            .map(|mark| wait_for_diagnostics(connection, settle, mark, deadline));
        let responded = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return BTreeSet::new(),
            responded = join_all(waits) => responded,
        };
        // A change whose step has no time left says nothing about the server.
        if !marks.is_empty() && has_time {
            documents.note_response(if responded.iter().all(|responded| *responded) {
                ChangeResponseOutcome::Received
            } else {
                ChangeResponseOutcome::Missed
            });
        }
        let responded = marks.iter().zip(responded).filter(|(_, responded)| *responded);
        responded.map(|(mark, _)| mark.path.clone()).collect()
    }

    /// Pulls other open documents that may depend on the change (`interFileDependencies`).
    async fn pull_other_documents(
        &self,
        connection: &LspClient,
        baseline: &mut DiagnosticsBaseline,
        paths: &[String],
    ) {
        let Some(options) = connection.method_options(PULL_METHOD) else { return };
        if options.get("interFileDependencies") == Some(&Value::Bool(false)) {
            return;
        }
        let limit = self.deadline.min(Instant::now() + OTHER_DOCUMENTS_TIMEOUT);
        let others: Vec<String> = connection
            .documents()
            .recent_paths()
            .into_iter()
            .filter(|path| !paths.contains(path))
            .take(MAX_OTHER_FILES)
            .collect();
        // Errors in a document that was never pulled before are not new.
        let never_pulled: Vec<&String> =
            others.iter().filter(|path| !connection.documents().was_pulled(path)).collect();
        let pulls = join_all(others.iter().map(|path| pull_diagnostics(connection, path, limit)));
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => return,
            _ = pulls => {}
        }
        let snapshot = connection.documents().diagnostics_snapshot();
        for path in never_pulled {
            if let Some(diagnostics) = snapshot.get(path) {
                baseline.snapshot.insert(path.clone(), diagnostics.clone());
            }
        }
    }

    fn compare_diagnostics(
        &self,
        server: &str,
        baseline: &DiagnosticsBaseline,
        snapshot: &DiagnosticsSnapshot,
        settled: &BTreeSet<String>,
        unsettled: &UnsettledFiles,
    ) -> Option<DiagnosticsReport> {
        let documents = baseline.connection.documents();
        let diagnostics_of = |snapshot: &DiagnosticsSnapshot, path: &str| {
            snapshot.get(path).map(FileDiagnostics::merged).unwrap_or_default()
        };
        let mut own = Vec::new();
        let mut fixed = Vec::new();
        for path in settled {
            let current = diagnostics_of(snapshot, path);
            if current.is_empty() && documents.take_reported(path) {
                fixed.push(path.clone());
            }
            let first_seen = baseline.not_yet_diagnosed.contains(path);
            let before =
                if first_seen { Vec::new() } else { diagnostics_of(&baseline.snapshot, path) };
            let (new, remaining) = diagnostics::new_diagnostics(&before, current);
            own.push(FileDiagnosticsReport { path: path.clone(), new, remaining, first_seen });
        }
        let mut others = Vec::new();
        if baseline.other_files == OtherFileErrorPolicy::Compared && !settled.is_empty() {
            for (path, current) in snapshot.iter().filter(|(path, _)| !settled.contains(*path)) {
                let is_changed = self.new_texts.iter().any(|(changed, _)| changed == path);
                if is_changed || unsettled.known_diagnostics.contains_key(path) {
                    continue;
                }
                let (new, remaining) = diagnostics::new_diagnostics(
                    &diagnostics_of(&baseline.snapshot, path),
                    current.merged(),
                );
                if !new.is_empty() {
                    others.push(FileDiagnosticsReport {
                        path: path.clone(),
                        new,
                        remaining,
                        first_seen: false,
                    });
                }
            }
        }
        others.sort_by_key(|report| std::cmp::Reverse(report.new.len()));
        others.iter_mut().take(MAX_OTHER_FILES).for_each(|report| self.add_source_lines(report));
        for report in own.iter().chain(others.iter().take(MAX_OTHER_FILES)) {
            if !report.new.is_empty() {
                documents.mark_reported(&report.path);
            }
        }
        let text = diagnostics::review_text(server, &own, &others, &fixed);
        let new_errors = own.iter().chain(&others).map(|report| report.new.len()).sum();
        let remaining_errors = own.iter().map(|report| report.remaining).sum();
        (!text.is_empty()).then_some(DiagnosticsReport { text, new_errors, remaining_errors })
    }

    /// Adds source lines to the diagnostics of a file that is not open.
    fn add_source_lines(&self, report: &mut FileDiagnosticsReport) {
        if report.new.iter().all(|finding| finding.source_line.is_some()) {
            return;
        }
        let text = file_watch::read_text(self.granted, &report.path).map(LineIndex::new);
        let Some(text) = text else { return };
        for finding in report.new.iter_mut().filter(|finding| finding.source_line.is_none()) {
            finding.source_line = Some(text.line(finding.position.line).trim().to_owned());
        }
    }
}
