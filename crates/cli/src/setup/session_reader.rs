//! Reads the recorded session for plugins that ask for it.

use super::ProjectContext;
use std::collections::VecDeque;
use std::path::PathBuf;
use windlass_plugin::SessionReader;
use windlass_protocol::{Fact, FactRecord, LogSeq, SessionId};

/// Limits the facts that a plugin gets; the oldest are left out.
const MAX_FACTS: usize = 5_000;
const MAX_FACT_BYTES: usize = 4 << 20;

/// The log of sessions, opened when a plugin reads one for the first time.
pub(super) struct LogSessionReader {
    pub(super) folder: PathBuf,
    pub(super) context: ProjectContext,
}

impl std::fmt::Debug for LogSessionReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogSessionReader").field("folder", &self.folder).finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl SessionReader for LogSessionReader {
    async fn read_session(&self, session: SessionId) -> Result<Vec<FactRecord>, String> {
        let log = self.context.log(&self.folder).await;
        let log = log.map_err(|error| error.to_string())?;
        let mut first = None;
        let mut facts: VecDeque<(usize, FactRecord)> = VecDeque::new();
        let (mut bytes, mut last): (usize, LogSeq) = (0, 0);
        loop {
            let page = log.read(session, last).await.map_err(|error| error.to_string())?;
            let Some(end) = page.last() else { break };
            last = end.seq;
            for record in page {
                match record.fact {
                    Fact::SessionOpened { .. } => first = Some(record),
                    // The system prompt is large, and not part of the conversation.
                    Fact::HookRan { .. } | Fact::SystemPromptSet { .. } => {}
                    _ => {
                        let size = serde_json::to_vec(&record).map_or(0, |json| json.len());
                        bytes += size;
                        facts.push_back((size, record));
                    }
                }
                while bytes > MAX_FACT_BYTES || facts.len() > MAX_FACTS {
                    let Some((size, _)) = facts.pop_front() else { break };
                    bytes -= size;
                }
            }
        }
        Ok(first.into_iter().chain(facts.into_iter().map(|(_, record)| record)).collect())
    }
}
