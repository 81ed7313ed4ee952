//! Changing files: all of a batch or none of it, on record first, and never over what somebody
//! else wrote in the meantime.
//!
//! Every new content is written to a draft beside its file and flushed. Then the batch goes on
//! record. Only then are drafts and files swapped, one by one; what a swap brings out is compared
//! with what the change was made from. If it is something else, or anything fails, everything is
//! swapped back. Whoever looks sees a whole old file or a whole new one.

use crate::swap::{self, Way};
use crate::world::{Missing, Place, failed};
use crate::{Error, World};
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, OpenOptions};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use windlass_protocol::Access;

/// The largest file that is changed here: its old bytes are kept, so that the change can be taken
/// back.
pub const LARGEST: u64 = 32 << 20;

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
}

/// One file of a batch.
struct Item {
    place: Place,
    /// The name beside the file that holds the new content first, and the old one after the swap.
    spare: String,
    draft: Option<File>,
    before: Option<Content>,
    after: Option<Content>,
    swapped: bool,
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
        match self.walk(real, Missing::Fail, &mut Vec::new()) {
            Ok(place) => current(&place),
            Err(Error::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Clears away what processes that have died left beside a file.
    pub fn clear_spares(&self, path: &str) {
        let place = self.locate(path).and_then(|real| {
            self.check(Access::Edit { path: real.clone() }, &real)?;
            self.walk(real, Missing::Fail, &mut Vec::new())
        });
        let Ok(Place { parent, .. }) = place else { return };
        for entry in parent.entries().into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if owner(&name).is_some_and(|id| !lives(id)) {
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
        let changed = self.stage(rewrites, &mut batch).and_then(|()| {
            let recorded = ledger.record(batch.items.iter().map(Item::pending).collect());
            recorded.map_err(|reason| Error::Unrecorded { reason })?;
            batch.commit()
        });
        match changed {
            Ok(()) => batch.finish(),
            Err(_) => batch.roll_back(),
        }
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
            let spare = spare(&place.parent);
            let (draft, after, swapped) = (None, None, false);
            batch.items.push(Item { place, spare, draft, before, after, swapped });
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
                let folder = point().and_then(|()| place.parent.open("."));
                let synced = folder.and_then(|folder| folder.sync_all());
                synced.map_err(|error| failed(&place.real, error))?;
            }
        }
        for (parent, name) in &self.made {
            let folder = parent.open(".").and_then(|folder| folder.sync_all());
            folder.map_err(|error| failed(name, error))?;
        }
        Ok(())
    }

    /// Removes what the files held before. If a spare stays, it is only in the way.
    fn finish(self) {
        for item in self.items.iter().filter(|item| item.before.is_some()) {
            let _ = item.place.parent.remove_file(&item.spare);
        }
    }

    fn roll_back(mut self) {
        let way = self.way;
        for item in self.items.iter_mut().rev() {
            item.swap_back(way);
            if item.draft.is_some() {
                let _ = item.place.parent.remove_file(&item.spare);
            }
        }
        for (parent, name) in self.made.iter().rev() {
            // If somebody has put something in since, it stays.
            let _ = parent.remove_dir(name);
        }
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
        let opened = point().and_then(|()| parent.open_with(&self.spare, &options));
        let draft = self.draft.insert(opened.map_err(failed)?);
        let written = own(draft, parent, &self.place.name, mode)
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
        let swapped = point().and_then(|()| match (&self.before, &self.after) {
            (Some(_), Some(_)) => swap::replace(parent, &self.spare, name, way),
            (None, Some(_)) => swap::place(parent, &self.spare, name, way),
            (Some(_), None) => swap::take(parent, name, &self.spare, way),
            (None, None) => Ok(()),
        });
        match swapped {
            Ok(()) => self.swapped = true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(stale()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(stale()),
            Err(error) => return Err(failed(real, error)),
        }
        let Some(before) = &self.before else { return Ok(()) };
        // Whatever came out is what would be lost: it must be what the change was made from.
        let out = point().and_then(|()| whole(parent, &self.spare));
        match out.map_err(|error| failed(real, error))? {
            Some(out) if *out == *before.bytes => Ok(()),
            Some(_) | None => Err(stale()),
        }
    }

    fn swap_back(&mut self, way: Way) {
        let Place { parent, name, .. } = &self.place;
        if !std::mem::take(&mut self.swapped) {
            return;
        }
        // There is nothing better to do if this fails: the log knows what stood here.
        let _ = match (&self.before, &self.after) {
            (Some(_), Some(_)) => swap::replace(parent, &self.spare, name, way),
            (None, Some(_)) => parent.rename(name, parent, &self.spare),
            (Some(_), None) => swap::place(parent, &self.spare, name, way),
            (None, None) => Ok(()),
        };
    }
}

/// What a file holds now.
fn current(place: &Place) -> Result<Option<Content>, Error> {
    let failed = |error| failed(&place.real, error);
    let data = match place.parent.symlink_metadata(&place.name) {
        Ok(data) if data.is_file() => data,
        Ok(data) if data.is_symlink() => return Err(Error::Swapped { path: place.real.clone() }),
        Ok(data) if data.is_dir() => return Err(Error::Folder { path: place.real.clone() }),
        Ok(_) => return Err(Error::Special { path: place.real.clone() }),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if data.len() > LARGEST {
        return Err(Error::TooLarge { path: place.real.clone(), bytes: data.len() });
    }
    let bytes = whole(&place.parent, &place.name).map_err(failed)?;
    match bytes {
        Some(bytes) => Ok(Some(Content { bytes: bytes.into(), mode: mode_of(&data) })),
        None => Err(Error::TooLarge { path: place.real.clone(), bytes: data.len() }),
    }
}

/// All bytes of a file, or `None` if it is larger than what is changed here.
fn whole(parent: &Dir, name: &str) -> std::io::Result<Option<Vec<u8>>> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    cap_fs_ext::OpenOptionsSyncExt::nonblock(&mut options, true);
    let file = parent.open_with(name, &options)?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= LARGEST).then_some(bytes))
}

/// Gives a draft the owner of the file it is to replace, as far as we may, and the mode.
#[cfg(unix)]
fn own(draft: &File, parent: &Dir, name: &str, mode: Option<u32>) -> std::io::Result<()> {
    use cap_std::fs::{MetadataExt, PermissionsExt};
    if let Ok(old) = parent.symlink_metadata(name) {
        let new = draft.metadata()?;
        if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
            let (uid, gid) =
                (rustix::fs::Uid::from_raw(old.uid()), rustix::fs::Gid::from_raw(old.gid()));
            // Only root may give a file away; anybody may give it to a group of theirs.
            if rustix::fs::fchown(draft, Some(uid), Some(gid)).is_err() {
                let _ = rustix::fs::fchown(draft, None, Some(gid));
            }
        }
    }
    match mode {
        Some(mode) => draft.set_permissions(cap_std::fs::Permissions::from_mode(mode & 0o7777)),
        None => Ok(()),
    }
}

#[cfg(not(unix))]
fn own(_: &File, _: &Dir, _: &str, _: Option<u32>) -> std::io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn mode_of(data: &cap_std::fs::Metadata) -> Option<u32> {
    Some(cap_std::fs::MetadataExt::mode(data) & 0o7777)
}

#[cfg(not(unix))]
fn mode_of(_: &cap_std::fs::Metadata) -> Option<u32> {
    None
}

const SPARE: (&str, &str) = (".windlass-", ".draft");

/// A name that nothing in a folder has. It tells whose it is, so that it can be cleared away after
/// a crash.
fn spare(dir: &Dir) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let (head, tail) = SPARE;
    loop {
        let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{head}{}-{unique}{tail}", std::process::id());
        // Another process of this number may have died and left one.
        if dir.symlink_metadata(&name).is_err() {
            return name;
        }
    }
}

/// The process that made a spare; `None` if it is something else.
fn owner(name: &str) -> Option<u32> {
    let (head, tail) = SPARE;
    let middle = name.strip_prefix(head)?.strip_suffix(tail)?;
    middle.split_once('-')?.0.parse().ok()
}

/// True if a process may still be there.
#[cfg(unix)]
fn lives(id: u32) -> bool {
    let id = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    id.is_some_and(|id| rustix::process::test_kill_process(id) != Err(rustix::io::Errno::SRCH))
}

#[cfg(not(unix))]
fn lives(_: u32) -> bool {
    true
}

/// Where a test makes something fail.
#[cfg(test)]
pub(crate) fn point() -> std::io::Result<()> {
    tests::point()
}

#[cfg(not(test))]
fn point() -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests;
