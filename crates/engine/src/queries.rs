//! Queries about sessions beyond their facts: prompt history, text search, and context usage. They
//! open and change nothing.

use crate::engine::Engine;
use crate::faults::storage_fault;
use crate::session::rewind::RewindPoints;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use windlass_protocol::{
    ContextUsagePart, Fact, FactRecord, Fault, LogSeq, LogTextFinder, PromptHistoryRow, PromptId,
    QueryReply, SearchPattern, SessionId, UnixMillis,
};
use windlass_storage::{PageLimit, StorageError};

/// Number of prompts returned by default, and at limit.
const DEFAULT_PROMPT_COUNT: u32 = 200;
const MAX_PROMPT_COUNT: u32 = 5_000;

/// Maximum total bytes of the texts that `list_prompts` returns.
const MAX_PROMPTS_BYTES: usize = 4 << 20;

/// Number of facts read per prompt: the prompt itself, and the start and end of its turn.
const FACTS_PER_PROMPT: usize = 4;

impl Engine {
    /// Lists the user's prompts, newest first.
    pub(crate) async fn list_prompts(
        &self,
        session: Option<SessionId>,
        limit: Option<u32>,
    ) -> Result<Vec<PromptHistoryRow>, Fault> {
        let limit = limit.unwrap_or(DEFAULT_PROMPT_COUNT).min(MAX_PROMPT_COUNT) as usize;
        let mut rows = match session {
            Some(session) => {
                let records = self.read_turn_facts(session, limit).await?;
                if records.is_empty()
                    && self
                        .log
                        .read_page(session, 0, PageLimit::facts(1))
                        .await
                        .map_err(storage_fault)?
                        .is_empty()
                {
                    return Err(storage_fault(StorageError::SessionNotFound { session }));
                }
                prompt_rows(&records)
            }
            None => self.workspace_prompts(limit).await?,
        };
        rows.truncate(limit);
        let mut bytes = 0;
        rows.retain(|row| {
            bytes += row.text.len();
            bytes <= MAX_PROMPTS_BYTES
        });
        Ok(rows)
    }

    async fn read_turn_facts(
        &self,
        session: SessionId,
        limit: usize,
    ) -> Result<Vec<FactRecord>, Fault> {
        let facts = limit.saturating_mul(FACTS_PER_PROMPT).max(FACTS_PER_PROMPT);
        self.log.read_turn_facts(session, facts).await.map_err(storage_fault)
    }

    /// Lists the newest prompts of all sessions that the user started in this workspace.
    async fn workspace_prompts(&self, limit: usize) -> Result<Vec<PromptHistoryRow>, Fault> {
        let mut sessions = self.list_sessions(Some(&self.workspace_path())).await?;
        sessions.retain(|row| row.parent.is_none());
        let mut rows: Vec<PromptHistoryRow> = Vec::new();
        // A session made by `fork` repeats the prompts of its source session with their original
        // times.
        let mut known: HashSet<(UnixMillis, String)> = HashSet::new();
        for session in sessions {
            // Sessions are sorted by `changed_at`, so the remaining ones contain only older
            // prompts.
            let oldest = limit.checked_sub(1).and_then(|last| rows.get(last));
            if limit == 0 || oldest.is_some_and(|oldest| oldest.at > session.changed_at) {
                break;
            }
            let session_rows = prompt_rows(&self.read_turn_facts(session.session, limit).await?);
            let new =
                session_rows.into_iter().filter(|row| known.insert((row.at, row.text.clone())));
            rows.extend(new.map(|row| PromptHistoryRow { rewind_to: None, ..row }));
            rows.sort_by_key(|row| std::cmp::Reverse((row.at, row.session, row.seq)));
            rows.truncate(limit);
        }
        Ok(rows)
    }

    /// Finds a text in a session. Only one page of the log is in memory at a time.
    pub(crate) async fn find_text(
        &self,
        session: SessionId,
        text: &str,
    ) -> Result<QueryReply, Fault> {
        let Some(pattern) = SearchPattern::new(text) else {
            return Err(Fault::Config { message: "no search text given".to_owned() });
        };
        let (mut finder, mut through) = (LogTextFinder::new(pattern), 0);
        loop {
            let page = self.log.read(session, through).await.map_err(storage_fault)?;
            page.iter().for_each(|record| finder.push(record));
            match page.last() {
                Some(last) => through = last.seq,
                None if through == 0 => {
                    return Err(storage_fault(StorageError::SessionNotFound { session }));
                }
                None => {
                    return Ok(QueryReply::TextMatches { matches: finder.into_matches(), through });
                }
            }
        }
    }

    /// Estimates the parts of the session's next request.
    pub(crate) async fn context_usage(&self, session: SessionId) -> Result<QueryReply, Fault> {
        let page = self.log.read(session, 0).await.map_err(storage_fault)?;
        if page.is_empty() {
            return Err(storage_fault(StorageError::SessionNotFound { session }));
        }
        let (base, state) = self.load_session(session, page).await?;
        let runtime = match state.transcript().mode {
            Some(mode) => Arc::new(base.runtime.in_mode(mode)),
            None => base.runtime,
        };
        let tools = runtime.snapshot(&base.settings.step_context()).await.listed_summaries();
        let tools = serde_json::to_string(&tools).unwrap_or_default();
        let (context_window, output_reserve) = state.window_and_reserve();
        let parts = state.context_usage(&tools);
        let parts = parts.into_iter().map(|(name, tokens)| ContextUsagePart { name, tokens });
        Ok(QueryReply::Context { context_window, output_reserve, parts: parts.collect() })
    }
}

/// Extracts the prompts from these facts, newest first, each with its `rewind_to` position.
fn prompt_rows(records: &[FactRecord]) -> Vec<PromptHistoryRow> {
    let mut rewind_points = RewindPoints::default();
    let mut turn_starts: HashMap<PromptId, LogSeq> = HashMap::new();
    for record in records {
        rewind_points.push(record.seq, &record.fact);
        match &record.fact {
            Fact::TurnStarted { prompt: Some(prompt), .. } => {
                turn_starts.insert(*prompt, record.seq);
            }
            Fact::Rewound { to } => turn_starts.retain(|_, seq| *seq <= *to),
            _ => {}
        }
    }
    let row = |record: &FactRecord| {
        let Fact::PromptSubmitted { prompt, text, attachments, .. } = &record.fact else {
            return None;
        };
        // A queued prompt is recorded within the turn before its own.
        let rewind_to = turn_starts.get(prompt).map(|start| match record.seq.saturating_sub(1) {
            before if rewind_points.can_rewind_to(before) => before,
            _ => start.saturating_sub(1),
        });
        Some(PromptHistoryRow {
            session: record.session,
            seq: record.seq,
            at: record.at,
            text: text.clone(),
            attachments: attachments.clone(),
            rewind_to,
        })
    };
    records.iter().rev().filter_map(row).collect()
}
