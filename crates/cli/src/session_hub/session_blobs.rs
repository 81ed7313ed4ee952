//! Files of sessions for the clients of a server: a client gets those that a session names which it
//! may see, and those that it has just sent itself.
//!
//! The log stores the files of all folders together, so the name of a file alone opens none.

use super::SessionHub;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;
use windlass_engine::Engine;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::{BlobRef, Fact, Fault, QueryReply, RequestError, SessionId, SessionQuery};
use windlass_server::Caller;

/// Number of files of each kind that are remembered.
const MAX_REMEMBERED: usize = 256;
/// Time for which a client gets a file that it sent, and that no prompt names yet.
const SENT_TIMEOUT: Duration = Duration::from_secs(3600);

/// Files that clients may read, without a search of the log.
#[derive(Default)]
pub(super) struct ReadableBlobs {
    /// Files that a client sent, by its name.
    sent: VecDeque<(String, BlobRef, Instant)>,
    /// Files that were found in the log of a session.
    found: VecDeque<(SessionId, BlobRef)>,
}

impl ReadableBlobs {
    fn contains(&self, client: &str, session: SessionId, blob: &BlobRef) -> bool {
        let is_sent = |(sender, sent, at): &(String, BlobRef, Instant)| {
            sender == client && sent == blob && at.elapsed() < SENT_TIMEOUT
        };
        let is_found = |(other, found): &(SessionId, BlobRef)| *other == session && found == blob;
        self.sent.iter().any(is_sent) || self.found.iter().any(is_found)
    }
}

/// Adds an entry, and removes the oldest one if there are too many.
fn remember<T>(entries: &mut VecDeque<T>, entry: T) {
    if entries.len() >= MAX_REMEMBERED {
        entries.pop_front();
    }
    entries.push_back(entry);
}

impl SessionHub {
    /// Remembers the files that a client has sent, or that a prompt of it mentions.
    pub(super) fn note_sent_blobs(&self, caller: &Caller, response: &HostResponse) {
        let attachments = match response {
            HostResponse::BlobStored { attachment } => std::slice::from_ref(attachment),
            HostResponse::PreparedPrompt { attachments, .. } => attachments.as_slice(),
            _ => return,
        };
        let mut readable = lock(&self.readable_blobs);
        for attachment in attachments {
            let entry = (caller.client.name.clone(), attachment.blob.clone(), Instant::now());
            remember(&mut readable.sent, entry);
        }
    }

    /// Returns true if a client may read a file through a session. What it sends to the model of the
    /// session, it can read.
    pub(super) async fn may_read_blob(
        &self,
        caller: &Caller,
        session: SessionId,
        blob: &BlobRef,
    ) -> Result<bool, RequestError> {
        if self.options.roots.is_none() {
            return Ok(true);
        }
        if lock(&self.readable_blobs).contains(&caller.client.name, session, blob) {
            return Ok(true);
        }
        let engine = self.workspace_of(session).await?.state().inspect_engine().await?;
        let is_named = names_blob(&engine, session, blob).await?;
        if is_named {
            remember(&mut lock(&self.readable_blobs).found, (session, blob.clone()));
        }
        Ok(is_named)
    }

    /// Answers a request for a file of a session.
    pub(super) async fn answer_blob_request(
        &self,
        caller: &Caller,
        (session, blob): (SessionId, BlobRef),
        request: FrontendRequest,
    ) -> Result<HostResponse, RequestError> {
        if self.options.roots.is_none() {
            // The only client is the user, who may read every file.
            let workspace = self.named_workspace(caller.workspace.as_deref()).await?;
            return Ok(workspace.state().answer_request(request).await?);
        }
        let state = self.workspace_of(session).await?.state();
        let not_found =
            || RequestError::NotFound { text: format!("session {session} has no such file") };
        if !self.may_read_blob(caller, session, &blob).await? {
            return Err(not_found());
        }
        match state.answer_request(request).await {
            // The file is no longer stored.
            Err(Fault::Storage { .. }) => Err(not_found()),
            answer => Ok(answer?),
        }
    }
}

/// Returns true if a fact of a session, or of one that it started, names a file.
async fn names_blob(engine: &Engine, session: SessionId, blob: &BlobRef) -> Result<bool, Fault> {
    let mut sessions = vec![session];
    let mut index = 0;
    while let Some(session) = sessions.get(index).copied() {
        index += 1;
        let mut after = 0;
        loop {
            let query = SessionQuery::Events { session, after, limit: None };
            let events = match engine.query(query).await {
                Ok(QueryReply::Events { events }) => events,
                // The session has no facts yet.
                Ok(_) | Err(Fault::Config { .. }) => break,
                Err(fault) => return Err(fault),
            };
            let Some(last) = events.last() else { break };
            after = last.seq;
            for record in &events {
                if record.fact.named_blobs().any(|named| named == blob) {
                    return Ok(true);
                }
                if let Fact::SubagentStarted { session, .. } = &record.fact
                    && !sessions.contains(session)
                {
                    sessions.push(*session);
                }
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_file_is_readable_by_its_sender_and_through_the_session_that_names_it() {
        let blob = |number: usize| BlobRef::for_bytes(&number.to_be_bytes());
        let session = |number| SessionId(Uuid::from_u128(number));
        let mut readable = ReadableBlobs::default();
        remember(&mut readable.sent, ("phone".to_owned(), blob(0), Instant::now()));
        remember(&mut readable.found, (session(1), blob(1)));
        assert!(readable.contains("phone", session(2), &blob(0)));
        assert!(!readable.contains("laptop", session(2), &blob(0)));
        assert!(readable.contains("laptop", session(1), &blob(1)));
        assert!(!readable.contains("phone", session(2), &blob(1)));
        for number in 0..1_000 {
            remember(&mut readable.found, (session(3), blob(number)));
        }
        assert_eq!(readable.found.len(), MAX_REMEMBERED);
        assert!(readable.contains("phone", session(3), &blob(999)));
        assert!(!readable.contains("phone", session(3), &blob(1)));
    }
}
