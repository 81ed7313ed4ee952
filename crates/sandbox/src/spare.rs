//! The names beside a file under which a change of it is prepared.

use cap_std::fs::Dir;
use std::sync::atomic::{AtomicU64, Ordering};

/// The names beside a file that one change of it uses. They tell whose they are, so that they can
/// be cleared away after a crash.
pub(crate) struct Spare {
    pub(crate) owner: u32,
    number: u64,
    pub(crate) kind: Kind,
}

/// What stands at such a name.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A new content that is not in place yet.
    Draft,
    /// A new content that is about to be swapped, or what it was swapped with.
    Swap,
}

impl Spare {
    const HEAD: &str = ".windlass-";

    /// Names that nothing in a folder has.
    pub(crate) fn new(dir: &Dir) -> Spare {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            let spare = Spare { owner: std::process::id(), number, kind: Kind::Draft };
            // Another process of this number may have died and left one.
            let taken = |name: String| dir.symlink_metadata(name).is_ok();
            if !taken(spare.draft()) && !taken(spare.swap()) {
                return spare;
            }
        }
    }

    pub(crate) fn draft(&self) -> String {
        format!("{}{}-{}.draft", Spare::HEAD, self.owner, self.number)
    }

    pub(crate) fn swap(&self) -> String {
        format!("{}{}-{}.swap", Spare::HEAD, self.owner, self.number)
    }

    pub(crate) fn parse(name: &str) -> Option<Spare> {
        let (middle, ending) = name.strip_prefix(Spare::HEAD)?.rsplit_once('.')?;
        let kind = match ending {
            "draft" => Kind::Draft,
            "swap" => Kind::Swap,
            _ => return None,
        };
        let (owner, number) = middle.split_once('-')?;
        Some(Spare { owner: owner.parse().ok()?, number: number.parse().ok()?, kind })
    }
}

/// True if a process may still be there.
#[cfg(unix)]
pub(crate) fn lives(id: u32) -> bool {
    let id = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    id.is_some_and(|id| rustix::process::test_kill_process(id) != Err(rustix::io::Errno::SRCH))
}

#[cfg(not(unix))]
pub(crate) fn lives(_: u32) -> bool {
    true
}
