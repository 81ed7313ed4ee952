//! The clock and the source of unique ids, for the `InputTimeAndId` of every input.

use crate::session::InputTimeAndId;
use windlass_protocol::UnixMillis;

/// Returns the current time and a new unique id.
#[allow(clippy::disallowed_methods, reason = "the only place that reads the clock and creates ids")]
pub(crate) fn new_stamp() -> InputTimeAndId {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let at = UnixMillis(since.unwrap_or_default().as_millis() as u64);
    InputTimeAndId { at, id: uuid::Uuid::now_v7() }
}
