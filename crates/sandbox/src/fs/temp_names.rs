//! Names of the temporary files that a change creates next to a file.

use cap_std::fs::Dir;
use std::sync::atomic::{AtomicU64, Ordering};

/// Temporary names next to a file for one change of it. They contain the pid of their owner, so
/// that they can be removed after a crash.
pub(crate) struct TempName {
    pub(crate) owner_pid: u32,
    number: u64,
    pub(crate) kind: TempNameKind,
}

/// Kind of content at a temporary name.
#[derive(Clone, Copy)]
pub(crate) enum TempNameKind {
    /// New content that is not in place yet.
    Draft,
    /// New content that is about to be exchanged, or the content that it was exchanged with.
    Swap,
}

impl TempName {
    const NAME_PREFIX: &str = ".windlass-";

    /// Returns a temporary name that is unused in the folder.
    pub(crate) fn new(dir: &Dir) -> TempName {
        static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
            let temp_name =
                TempName { owner_pid: std::process::id(), number, kind: TempNameKind::Draft };
            // A dead process with the same pid may have left one.
            let exists = |name: String| dir.symlink_metadata(name).is_ok();
            if !exists(temp_name.draft_name()) && !exists(temp_name.swap_name()) {
                return temp_name;
            }
        }
    }

    pub(crate) fn draft_name(&self) -> String {
        format!("{}{}-{}.draft", TempName::NAME_PREFIX, self.owner_pid, self.number)
    }

    pub(crate) fn swap_name(&self) -> String {
        format!("{}{}-{}.swap", TempName::NAME_PREFIX, self.owner_pid, self.number)
    }

    pub(crate) fn parse(name: &str) -> Option<TempName> {
        let (middle, extension) = name.strip_prefix(TempName::NAME_PREFIX)?.rsplit_once('.')?;
        let kind = match extension {
            "draft" => TempNameKind::Draft,
            "swap" => TempNameKind::Swap,
            _ => return None,
        };
        let (owner, number) = middle.split_once('-')?;
        Some(TempName { owner_pid: owner.parse().ok()?, number: number.parse().ok()?, kind })
    }
}

/// Returns true if the process may still be running.
#[cfg(unix)]
pub(crate) fn is_process_alive(id: u32) -> bool {
    let id = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    id.is_some_and(|id| rustix::process::test_kill_process(id) != Err(rustix::io::Errno::SRCH))
}

#[cfg(not(unix))]
pub(crate) fn is_process_alive(_: u32) -> bool {
    true
}
