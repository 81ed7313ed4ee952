//! The position at which a stream of a session begins.

use windlass_engine::Engine;
use windlass_protocol::{LogPosition, LogSeq, QueryReply, SessionId, SessionQuery};

/// Returns a position of the log of a session, with its epoch if the log has it.
pub(super) async fn log_position(engine: &Engine, session: SessionId, seq: LogSeq) -> LogPosition {
    let unchecked = LogPosition::unchecked(seq);
    let Some(after) = seq.checked_sub(1) else { return unchecked };
    let query = SessionQuery::Events { session, after, limit: Some(1) };
    let Ok(QueryReply::Events { events }) = engine.query(query).await else { return unchecked };
    events.first().filter(|record| record.seq == seq).map_or(unchecked, LogPosition::of)
}
