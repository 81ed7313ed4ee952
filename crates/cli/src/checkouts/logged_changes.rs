//! The files that tools have changed since a checkpoint, as the log has them.

use std::collections::BTreeMap;
use windlass_protocol::{CallId, Fact, FileChange, FileVersion, LogSeq, SessionId, UnixMillis};
use windlass_storage::{Log, StorageError, read_all};

/// Returns the last version of each file that a session or its subagents have changed after a
/// position and a time; `None` for files that are deleted. Paths outside the folder are left out.
pub(super) async fn logged_versions(
    log: &dyn Log,
    session: SessionId,
    (position, at): (LogSeq, UnixMillis),
) -> Result<BTreeMap<String, Option<FileVersion>>, StorageError> {
    let mut changes: Vec<(UnixMillis, CallId, Vec<FileChange>)> = Vec::new();
    let mut sessions = vec![session];
    let mut next = 0;
    while let Some(&current) = sessions.get(next) {
        next += 1;
        for record in read_all(log, current, 0).await? {
            let is_later = match current == session {
                true => record.seq > position,
                // The position is one of the session, not of its subagents.
                false => record.at >= at,
            };
            match record.fact {
                Fact::SubagentStarted { session, .. } if !sessions.contains(&session) => {
                    sessions.push(session);
                }
                Fact::FilesChanging { call, changes: files } if is_later => {
                    changes.push((record.at, call, files));
                }
                Fact::FilesUnchanged { call } => {
                    let last = changes.iter().rposition(|(_, changing, _)| *changing == call);
                    if let Some(last) = last {
                        changes.remove(last);
                    }
                }
                _ => {}
            }
        }
    }
    changes.sort_by_key(|(at, ..)| *at);
    let files = changes.into_iter().flat_map(|(.., files)| files);
    let is_inside = |change: &FileChange| {
        let is_plain = |part: &str| !matches!(part, "" | "." | "..") && part != ".git";
        change.path.split('/').all(is_plain) && !change.path.contains(['\0', '\n'])
    };
    Ok(files.filter(is_inside).map(|change| (change.path, change.after)).collect())
}
