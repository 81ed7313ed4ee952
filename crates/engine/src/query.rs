//! What can be asked about sessions besides their facts: what people asked for, where a text stands,
//! and what fills a model's window. Nothing is opened or changed by it.

use crate::agents::Begun;
use crate::host::{Engine, storage};
use crate::session::back::Track;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use windlass_protocol::{
    ContextPart, Fact, Fault, Finder, Millis, Needle, PromptId, PromptRow, Record, Reply, Seq,
    SessionId, Transcript,
};
use windlass_storage::Error;

/// How many prompts are given if nobody says, and at most.
const USUAL: u32 = 200;
const MOST: u32 = 5_000;

/// How many bytes they may be together.
const BYTES: usize = 4 << 20;

/// So many facts are looked at for one prompt: its own, and how its turn began and ended.
const FACTS: usize = 4;

impl Engine {
    /// What people asked for, newest first.
    pub(crate) async fn prompts(
        &self,
        session: Option<SessionId>,
        most: Option<u32>,
    ) -> Result<Vec<PromptRow>, Fault> {
        let most = most.unwrap_or(USUAL).min(MOST) as usize;
        let mut rows = match session {
            Some(session) => {
                let found = self.landmarks(session, most).await?;
                if found.is_empty()
                    && self.log.read_some(session, 0, 1).await.map_err(storage)?.is_empty()
                {
                    return Err(storage(Error::NoSession { session }));
                }
                rows_of(&found)
            }
            None => self.prompts_here(most).await?,
        };
        rows.truncate(most);
        let mut bytes = 0;
        rows.retain(|row| {
            bytes += row.text.len();
            bytes <= BYTES
        });
        Ok(rows)
    }

    async fn landmarks(&self, session: SessionId, most: usize) -> Result<Vec<Record>, Fault> {
        let facts = most.saturating_mul(FACTS).max(FACTS);
        self.log.landmarks(session, facts).await.map_err(storage)
    }

    /// The newest prompts of all sessions that people began here.
    async fn prompts_here(&self, most: usize) -> Result<Vec<PromptRow>, Fault> {
        let mut sessions = self.list(Some(&self.workspace())).await?;
        sessions.retain(|row| row.parent.is_none());
        let mut rows: Vec<PromptRow> = Vec::new();
        // A fork has the prompts of the other session with their own times.
        let mut known: HashSet<(Millis, String)> = HashSet::new();
        for session in sessions {
            // They come by their last change, so the others have older ones only.
            let oldest = most.checked_sub(1).and_then(|last| rows.get(last));
            if most == 0 || oldest.is_some_and(|oldest| oldest.at > session.changed) {
                break;
            }
            let found = rows_of(&self.landmarks(session.session, most).await?);
            let new = found.into_iter().filter(|row| known.insert((row.at, row.text.clone())));
            rows.extend(new.map(|row| PromptRow { back: None, ..row }));
            rows.sort_by_key(|row| std::cmp::Reverse((row.at, row.session, row.seq)));
            rows.truncate(most);
        }
        Ok(rows)
    }

    /// Where a text stands in a session. A page of its log is held at a time.
    pub(crate) async fn places(&self, session: SessionId, text: &str) -> Result<Reply, Fault> {
        let Some(needle) = Needle::new(text) else {
            return Err(Fault::Config { message: "say what to look for".to_owned() });
        };
        let (mut finder, mut through) = (Finder::new(needle), 0);
        loop {
            let page = self.log.read(session, through).await.map_err(storage)?;
            page.iter().for_each(|record| finder.push(record));
            match page.last() {
                Some(last) => through = last.seq,
                None if through == 0 => return Err(storage(Error::NoSession { session })),
                None => return Ok(Reply::Places { places: finder.places(), through }),
            }
        }
    }

    /// What the next request of a session would be made of.
    pub(crate) async fn context(&self, session: SessionId) -> Result<Reply, Fault> {
        let page = self.log.read(session, 0).await.map_err(storage)?;
        if page.is_empty() {
            return Err(storage(Error::NoSession { session }));
        }
        let opened = Transcript::of(page.get(..1).unwrap_or_default());
        let begun = opened.parent.map_or(Begun::ByPerson, |_| Begun::ByCall);
        let base = self.base(&opened.agent, begun)?;
        let state = self.replay(session, page, base.settings.terms()).await.map_err(storage)?;
        let runtime = match state.transcript().mode {
            Some(mode) => Arc::new(base.runtime.in_mode(mode)),
            None => base.runtime,
        };
        let tools = runtime.snapshot(&base.settings.scene()).await.offered();
        let tools = serde_json::to_string(&tools).unwrap_or_default();
        let (window, reserve) = state.window();
        let parts = state.context(&tools);
        let parts = parts.into_iter().map(|(name, tokens)| ContextPart { name, tokens });
        Ok(Reply::Context { window, reserve, parts: parts.collect() })
    }
}

/// The prompts that these facts tell of, newest first, and where to step back to before each.
fn rows_of(records: &[Record]) -> Vec<PromptRow> {
    let mut track = Track::default();
    let mut begun: HashMap<PromptId, Seq> = HashMap::new();
    for record in records {
        track.push(record.seq, &record.fact);
        match &record.fact {
            Fact::TurnStarted { prompt: Some(prompt), .. } => {
                begun.insert(*prompt, record.seq);
            }
            Fact::Reverted { to } => begun.retain(|_, seq| *seq <= *to),
            _ => {}
        }
    }
    let row = |record: &Record| {
        let Fact::Prompted { prompt, text, attachments, .. } = &record.fact else { return None };
        // One that waited stands in the turn before its own.
        let back = begun.get(prompt).map(|begun| match record.seq.saturating_sub(1) {
            before if track.leads_to(before) => before,
            _ => begun.saturating_sub(1),
        });
        let (session, seq, at, text) = (record.session, record.seq, record.at, text.clone());
        let attachments = attachments.clone();
        Some(PromptRow { session, seq, at, text, attachments, back })
    };
    records.iter().rev().filter_map(row).collect()
}
