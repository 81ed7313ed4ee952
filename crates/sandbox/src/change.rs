//! Changing files: all of a batch or none of it, on record first, and never over what somebody
//! else wrote in the meantime.
//!
//! Every new content is written to a draft beside its file and flushed. Then the batch goes on
//! record. Only then are drafts and files swapped, one by one; what a swap brings out is compared
//! with what the change was made from. If it is something else, or anything fails, everything is
//! swapped back. Whoever looks sees a whole old file or a whole new one.

use crate::hold::{current, mode_of, own, sync, whole};
use crate::spare::{Kind, Spare, lives};
use crate::swap::{self, Way};
use crate::world::{Missing, Place, failed};
use crate::{Error, World};
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, OpenOptions};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use windlass_protocol::{Access, BlobRef};

/// The largest file that is changed here: its old bytes are kept, so that the change can be taken
/// back.
pub const LARGEST: u64 = 32 << 20;

/// How many batches are being swapped in.
static SWAPPING: AtomicUsize = AtomicUsize::new(0);

/// Waits until no batch is being swapped in, or the patience is over. A process that ends while one
/// is would leave it half made until the session is opened again.
pub fn settle_down(patience: Duration) {
    const BLINK: Duration = Duration::from_millis(5);
    for _ in 0..patience.as_millis() / BLINK.as_millis() {
        if SWAPPING.load(Ordering::SeqCst) == 0 {
            return;
        }
        std::thread::sleep(BLINK);
    }
}

/// A whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// Who may do what with it, where the system has such a thing.
    pub mode: Option<u32>,
}

/// What is to become of a file.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// Where it is.
    pub path: String,
    /// What the change was made from; if the file holds anything else, it is not made.
    pub before: Option<Arc<[u8]>>,
    /// What it is to hold; none to remove it.
    pub after: Option<Arc<[u8]>>,
    /// The mode it is to have, if not the one it has.
    pub mode: Option<u32>,
}

/// A change that is about to be made.
#[derive(Clone, Debug)]
pub struct Pending {
    /// The resolved path.
    pub path: String,
    /// What stands there.
    pub before: Option<Content>,
    /// What is to stand there.
    pub after: Option<Content>,
}

/// Whoever puts changes on record before they are made. A change that cannot be recorded is not
/// made.
pub trait Ledger: Send + Sync {
    /// Records a batch. An error says why it could not.
    fn record(&self, batch: Vec<Pending>) -> Result<(), String>;

    /// What became of the batch that was recorded last. Called once for each.
    fn close(&self, end: End);
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was made.
    Made,
    /// It was not; everything is as it was.
    Unmade,
}

/// One file of a batch.
struct Item {
    place: Place,
    spare: Spare,
    before: Option<Content>,
    after: Option<Content>,
    stage: Stage,
}

/// How far a file has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Planned,
    /// The new content is in the draft.
    Drafted,
    /// The draft goes by the name it is swapped under.
    Ready,
    /// It is in place, and what stood there is at that name.
    Swapped,
}

/// Files that change together.
#[derive(Default)]
struct Batch {
    items: Vec<Item>,
    /// Folders that had to be made, outermost first.
    made: Vec<(Dir, String)>,
    way: Way,
}

impl World {
    /// The whole content of a file that can be changed here; `None` if there is none.
    pub fn load(&self, path: &str) -> Result<Option<Content>, Error> {
        let real = self.locate(path)?;
        self.check(Access::Read { path: real.clone() }, &real)?;
        self.whole(real)
    }

    pub(crate) fn whole(&self, real: String) -> Result<Option<Content>, Error> {
        match self.find(real) {
            Ok(place) => current(&place),
            Err(Error::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Clears away what processes that have died left beside a file: drafts, and of what was
    /// being swapped only contents that are known elsewhere. Anything else may be the only copy of
    /// what somebody saved at that very moment.
    pub fn clear_spares(&self, path: &str, known: &[BlobRef]) {
        let place = self.locate(path).and_then(|real| {
            self.check(Access::Edit { path: real.clone() }, &real)?;
            self.find(real)
        });
        let Ok(Place { parent, .. }) = place else { return };
        for entry in parent.entries().into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(spare) = Spare::parse(&name).filter(|spare| !lives(spare.owner)) else {
                continue;
            };
            let content = || whole(&parent, &name).ok().flatten();
            let clear = match spare.kind {
                Kind::Draft => true,
                Kind::Swap => content().is_some_and(|bytes| known.contains(&BlobRef::of(&bytes))),
            };
            if clear {
                let _ = parent.remove_file(&name);
            }
        }
    }

    /// Changes files: all of them or none. When it returns, the new contents are on the disk.
    pub fn change(&self, rewrites: &[Rewrite]) -> Result<(), Error> {
        self.change_by(rewrites, Way::default())
    }

    pub(crate) fn change_by(&self, rewrites: &[Rewrite], way: Way) -> Result<(), Error> {
        let ledger = self.ledger().ok_or(Error::Unrecorded { reason: "nobody keeps it".into() })?;
        let mut batch = Batch { way, ..Batch::default() };
        let recorded = self.stage(rewrites, &mut batch).and_then(|()| {
            let recorded = ledger.record(batch.items.iter().map(Item::pending).collect());
            recorded.map_err(|reason| Error::Unrecorded { reason })
        });
        if let Err(error) = recorded {
            batch.roll_back();
            return Err(error);
        }
        SWAPPING.fetch_add(1, Ordering::SeqCst);
        let changed = match batch.commit() {
            Ok(()) => {
                batch.finish();
                ledger.close(End::Made);
                Ok(())
            }
            Err(error) => {
                let kept = batch.roll_back();
                ledger.close(End::Unmade);
                Err(kept.map_or(error, |kept| Error::Kept { kept }))
            }
        };
        SWAPPING.fetch_sub(1, Ordering::SeqCst);
        changed
    }

    /// Compares what stands at every path with what is expected there, and writes the drafts.
    fn stage(&self, rewrites: &[Rewrite], batch: &mut Batch) -> Result<(), Error> {
        let mut paths = BTreeSet::new();
        for rewrite in rewrites {
            let real = self.locate(&rewrite.path)?;
            self.check(Access::Edit { path: real.clone() }, &real)?;
            if real == "." {
                return Err(Error::Special { path: real });
            }
            if !paths.insert(real.clone()) {
                return Err(Error::Twice { path: real });
            }
            let missing = if rewrite.after.is_some() { Missing::Make } else { Missing::Fail };
            let place = self.walk(real, missing, &mut batch.made)?;
            let before = current(&place)?;
            if before.as_ref().map(|content| &content.bytes) != rewrite.before.as_ref() {
                return Err(Error::Stale { path: place.real });
            }
            let mode = before.as_ref().and_then(|content| content.mode);
            if mode.is_some_and(|mode| mode & 0o222 == 0) {
                return Err(Error::ReadOnly { path: place.real });
            }
            let (spare, after) = (Spare::new(&place.parent), None);
            batch.items.push(Item { place, spare, before, after, stage: Stage::Planned });
            if let (Some(bytes), Some(item)) = (&rewrite.after, batch.items.last_mut()) {
                item.write(Arc::clone(bytes), rewrite.mode)?;
            }
        }
        Ok(())
    }
}

impl Batch {
    fn commit(&mut self) -> Result<(), Error> {
        let way = self.way;
        for item in &mut self.items {
            item.swap(way)?;
        }
        let mut synced = BTreeSet::new();
        for Item { place, .. } in &self.items {
            if synced.insert(place.real.rsplit_once('/').map_or("", |(folder, _)| folder)) {
                let synced = point().and_then(|()| sync(&place.parent));
                synced.map_err(|error| failed(&place.real, error))?;
            }
        }
        for (parent, name) in &self.made {
            sync(parent).map_err(|error| failed(name, error))?;
        }
        Ok(())
    }

    /// Removes what the files held before, which each swap has compared with what is on record.
    fn finish(self) {
        for item in self.items.iter().filter(|item| item.before.is_some()) {
            let _ = item.place.parent.remove_file(item.spare.swap());
        }
    }

    /// Puts everything back. What somebody else has saved meanwhile stays where they saved it; if
    /// that cannot be, it is kept beside, and its path returned.
    fn roll_back(mut self) -> Option<String> {
        let way = self.way;
        let mut kept = None;
        for item in self.items.iter_mut().rev() {
            kept = item.put_back(way).or(kept);
        }
        for (parent, name) in self.made.iter().rev() {
            // If somebody has put something in since, it stays.
            let _ = parent.remove_dir(name);
        }
        kept
    }
}

impl Item {
    fn pending(&self) -> Pending {
        let path = self.place.real.clone();
        Pending { path, before: self.before.clone(), after: self.after.clone() }
    }

    /// Writes the new content beside the file, with the file's owner and mode.
    fn write(&mut self, bytes: Arc<[u8]>, mode: Option<u32>) -> Result<(), Error> {
        let failed = |error| failed(&self.place.real, error);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).follow(FollowSymlinks::No);
        let mode = mode.or(self.before.as_ref().and_then(|content| content.mode));
        #[cfg(unix)]
        if mode.is_some() {
            // Until it has the other's mode, nobody else may read it.
            cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let parent = &self.place.parent;
        let opened = point().and_then(|()| parent.open_with(self.spare.draft(), &options));
        let mut draft = opened.map_err(failed)?;
        self.stage = Stage::Drafted;
        let written = own(&draft, parent, &self.place.name, mode)
            .and_then(|()| point())
            .and_then(|()| draft.write_all(&bytes))
            .and_then(|()| point())
            .and_then(|()| draft.sync_all())
            .and_then(|()| draft.metadata());
        let mode = written.map(|data| mode_of(&data)).map_err(failed)?;
        self.after = Some(Content { bytes, mode });
        Ok(())
    }

    fn swap(&mut self, way: Way) -> Result<(), Error> {
        let Place { real, parent, name } = &self.place;
        let stale = || Error::Stale { path: real.clone() };
        let (draft, spare) = (self.spare.draft(), self.spare.swap());
        if self.after.is_some() {
            // From here on the name may hold what is nowhere else, and says so.
            let ready = point().and_then(|()| parent.rename(draft, parent, &spare));
            ready.map_err(|error| failed(real, error))?;
            self.stage = Stage::Ready;
        }
        let swapped = match (&self.before, &self.after) {
            (Some(_), Some(_)) => swap::exchange(parent, &spare, name, way),
            (None, Some(_)) => swap::place(parent, &spare, name, way),
            (Some(_), None) => swap::place(parent, name, &spare, way),
            (None, None) => Ok(()),
        };
        match swapped {
            Ok(()) => self.stage = Stage::Swapped,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(stale()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(stale()),
            Err(error) => return Err(failed(real, error)),
        }
        let Some(before) = &self.before else { return Ok(()) };
        // Whatever came out is what would be lost: it must be what the change was made from.
        let out = point().and_then(|()| whole(parent, &spare));
        match out.map_err(|error| failed(real, error))? {
            Some(out) if *out == *before.bytes => Ok(()),
            Some(_) | None => Err(stale()),
        }
    }

    /// Undoes whatever was done. What is then at the spare name is removed if it is our own, or on
    /// record; otherwise it stays, and its path is returned.
    fn put_back(&mut self, way: Way) -> Option<String> {
        let Place { real, parent, name } = &self.place;
        let spare = self.spare.swap();
        let holds = |at: &str, content: &Option<Content>| {
            let bytes = whole(parent, at).ok().flatten();
            content.as_ref().map(|content| &*content.bytes) == bytes.as_deref()
        };
        if self.stage == Stage::Swapped {
            match (&self.before, &self.after) {
                (Some(_), Some(_)) => match swap::exchange(parent, &spare, name, way) {
                    // Somebody has saved over what we had put there: theirs stays.
                    Ok(()) if !holds(&spare, &self.after) => {
                        let _ = swap::exchange(parent, &spare, name, way);
                    }
                    Ok(()) => {}
                    // They have removed or moved it: what stood there before is what is left.
                    Err(_) => drop(swap::place(parent, &spare, name, way)),
                },
                (None, Some(_)) => {
                    let taken = swap::place(parent, name, &spare, way);
                    if taken.is_ok() && !holds(&spare, &self.after) {
                        let _ = swap::place(parent, &spare, name, way);
                    }
                }
                (Some(_), None) => drop(swap::place(parent, &spare, name, way)),
                (None, None) => {}
            }
        }
        if self.stage == Stage::Drafted {
            let _ = parent.remove_file(self.spare.draft());
        }
        if parent.symlink_metadata(&spare).is_err() {
            return None;
        }
        if holds(&spare, &self.after) || holds(&spare, &self.before) {
            let _ = parent.remove_file(&spare);
            return None;
        }
        let folder = real.rsplit_once('/').map(|(folder, _)| format!("{folder}/"));
        Some(folder.unwrap_or_default() + &spare)
    }
}

/// Where a test makes something fail.
#[cfg(test)]
pub(crate) fn point() -> std::io::Result<()> {
    tests::point()
}

#[cfg(not(test))]
pub(crate) fn point() -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests;
