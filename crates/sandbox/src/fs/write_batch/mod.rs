//! Changes files in batches: all or nothing, recorded first, and never over concurrent changes by
//! other programs.
//!
//! Each new content is written to a draft next to its file and flushed. Then the batch is recorded.
//! Only then are drafts and files exchanged, one by one, and the content that an exchange displaces
//! is compared with the content that the change started from. If it differs, or any step fails,
//! everything is exchanged back. A reader always sees a complete old file or a complete new one.

use crate::call_workspace::{CallWorkspace, MissingFolderPolicy};
use crate::error::{Error, io_error};
use crate::fs::exchange_files::{self, FileExchangeMethod};
use crate::fs::failpoint::failpoint;
use crate::fs::file_change::{FileContent, FileWrite, PendingFileChange, WriteBatchOutcome};
use crate::fs::file_io::{copy_ownership, mode_of, read_bytes, read_content, sync_folder};
use crate::fs::resolved_path::ResolvedPath;
use crate::fs::temp_names::{TempName, TempNameKind, is_process_alive};
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, OpenOptions};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use windlass_protocol::{BlobRef, ToolAccess};

/// Number of batches that are being committed.
static ACTIVE_BATCHES: AtomicUsize = AtomicUsize::new(0);

/// Waits until no batch is being committed, but at most `time_limit`. A process that ends during a
/// commit would leave the batch incomplete until the session is resumed.
pub fn wait_for_writes(time_limit: Duration) {
    const POLL_INTERVAL: Duration = Duration::from_millis(5);
    for _ in 0..time_limit.as_millis() / POLL_INTERVAL.as_millis() {
        if ACTIVE_BATCHES.load(Ordering::SeqCst) == 0 {
            return;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

struct WriteBatchFile {
    target: ResolvedPath,
    temp_name: TempName,
    before: Option<FileContent>,
    after: Option<FileContent>,
    stage: WriteStage,
}

/// Progress of one file of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteStage {
    Planned,
    /// The draft contains the new content.
    DraftWritten,
    /// The draft has its swap name.
    Ready,
    /// The new content is in place, and the old content is at the swap name.
    Swapped,
}

/// Files that `write_files` changes together.
#[derive(Default)]
struct WriteBatch {
    files: Vec<WriteBatchFile>,
    /// Folders that the batch created, outermost first.
    created_folders: Vec<(Dir, PathBuf)>,
    method: FileExchangeMethod,
}

impl CallWorkspace {
    /// Removes temporary files that dead processes left next to a file: all drafts, but swap files
    /// only if their content is in `known`. Any other swap file may be the only copy of a content
    /// that another program saved at that moment.
    pub fn remove_stale_temp_files(&self, path: &str, known: &[BlobRef]) {
        let target = self.resolve_path(path).and_then(|real| {
            self.check_granted(ToolAccess::Edit { path: real.clone() }, &real)?;
            self.open_existing_parent(real)
        });
        let Ok(ResolvedPath { parent, .. }) = target else { return };
        for entry in parent.entries().into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(temp_name) =
                TempName::parse(&name).filter(|temp_name| !is_process_alive(temp_name.owner_pid))
            else {
                continue;
            };
            let content = || read_bytes(&parent, name.as_ref()).ok().flatten();
            let is_removable = match temp_name.kind {
                TempNameKind::Draft => true,
                TempNameKind::Swap => {
                    content().is_some_and(|bytes| known.contains(&BlobRef::for_bytes(&bytes)))
                }
            };
            if is_removable {
                let _ = parent.remove_file(&name);
            }
        }
    }

    /// Changes files: all of them or none. On return, the new contents are on disk.
    pub fn write_files(&self, writes: &[FileWrite]) -> Result<(), Error> {
        self.write_files_with(writes, FileExchangeMethod::default())
    }

    pub(crate) fn write_files_with(
        &self,
        writes: &[FileWrite],
        method: FileExchangeMethod,
    ) -> Result<(), Error> {
        let recorder = self
            .recorder()
            .ok_or(Error::NotRecorded { reason: "no change recorder is set".into() })?;
        let mut batch = WriteBatch { method, ..WriteBatch::default() };
        let recorded = self.stage_writes(writes, &mut batch).and_then(|()| {
            let recorded = recorder
                .record_batch(batch.files.iter().map(WriteBatchFile::to_pending_change).collect());
            recorded.map_err(|reason| Error::NotRecorded { reason })
        });
        if let Err(error) = recorded {
            batch.roll_back();
            return Err(error);
        }
        ACTIVE_BATCHES.fetch_add(1, Ordering::SeqCst);
        let result = match batch.commit() {
            Ok(()) => {
                batch.remove_old_contents();
                recorder.close_batch(WriteBatchOutcome::Committed);
                Ok(())
            }
            Err(error) => {
                let kept_path = batch.roll_back();
                recorder.close_batch(WriteBatchOutcome::RolledBack);
                Err(kept_path.map_or(error, |kept_path| Error::ConcurrentSave { kept_path }))
            }
        };
        ACTIVE_BATCHES.fetch_sub(1, Ordering::SeqCst);
        result
    }

    /// Compares the current content at every path with the expected one, and writes the drafts.
    fn stage_writes(&self, writes: &[FileWrite], batch: &mut WriteBatch) -> Result<(), Error> {
        let mut paths = BTreeSet::new();
        for write in writes {
            let real = self.resolve_path(&write.path)?;
            self.check_granted(ToolAccess::Edit { path: real.clone() }, &real)?;
            if real == "." {
                return Err(Error::SpecialFile { path: real });
            }
            if !paths.insert(real.clone()) {
                return Err(Error::DuplicatePath { path: real });
            }
            let missing = if write.after.is_some() {
                MissingFolderPolicy::Create
            } else {
                MissingFolderPolicy::Fail
            };
            let target = self.open_parent(real, missing, &mut batch.created_folders)?;
            let before = read_content(&target)?;
            if before.as_ref().map(|content| &content.bytes) != write.before.as_ref() {
                return Err(Error::Stale { path: target.path });
            }
            let mode = before.as_ref().and_then(|content| content.mode);
            if mode.is_some_and(|mode| mode & 0o222 == 0) {
                return Err(Error::ReadOnly { path: target.path });
            }
            let temp_name = TempName::new(&target.parent);
            batch.files.push(WriteBatchFile {
                target,
                temp_name,
                before,
                after: None,
                stage: WriteStage::Planned,
            });
            if let (Some(bytes), Some(file)) = (&write.after, batch.files.last_mut()) {
                file.write_draft(Arc::clone(bytes), write.mode)?;
            }
        }
        Ok(())
    }
}

impl WriteBatch {
    fn commit(&mut self) -> Result<(), Error> {
        let method = self.method;
        for file in &mut self.files {
            file.swap_in(method)?;
        }
        let mut synced = BTreeSet::new();
        for WriteBatchFile { target, .. } in &self.files {
            if synced.insert(target.path.rsplit_once('/').map_or("", |(folder, _)| folder)) {
                let synced = failpoint().and_then(|()| sync_folder(&target.parent));
                synced.map_err(|error| io_error(&target.path, error))?;
            }
        }
        for (parent, name) in &self.created_folders {
            sync_folder(parent).map_err(|error| io_error(&name.to_string_lossy(), error))?;
        }
        Ok(())
    }

    /// Removes the old contents, which each exchange has compared with the recorded ones.
    fn remove_old_contents(self) {
        for file in self.files.iter().filter(|file| file.before.is_some()) {
            let _ = file.target.parent.remove_file(file.temp_name.swap_name());
        }
    }

    /// Undoes all steps. A content that another program has saved meanwhile stays in place. If that
    /// is impossible, it stays at its swap name, and the function returns that path.
    fn roll_back(mut self) -> Option<String> {
        let method = self.method;
        let mut kept_path = None;
        for file in self.files.iter_mut().rev() {
            kept_path = file.roll_back(method).or(kept_path);
        }
        for (parent, name) in self.created_folders.iter().rev() {
            // A folder that contains new files of another program stays.
            let _ = parent.remove_dir(name);
        }
        kept_path
    }
}

impl WriteBatchFile {
    fn to_pending_change(&self) -> PendingFileChange {
        let path = self.target.path.clone();
        PendingFileChange { path, before: self.before.clone(), after: self.after.clone() }
    }

    /// Writes the new content next to the file, with the owner and mode of the file.
    fn write_draft(&mut self, bytes: Arc<[u8]>, mode: Option<u32>) -> Result<(), Error> {
        let to_error = |error| io_error(&self.target.path, error);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).follow(FollowSymlinks::No);
        let mode = mode.or(self.before.as_ref().and_then(|content| content.mode));
        #[cfg(unix)]
        if mode.is_some() {
            // No other user may read the draft before it has its final mode.
            cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let parent = &self.target.parent;
        let opened =
            failpoint().and_then(|()| parent.open_with(self.temp_name.draft_name(), &options));
        let mut draft = opened.map_err(to_error)?;
        self.stage = WriteStage::DraftWritten;
        let written = copy_ownership(&draft, parent, &self.target.name, mode)
            .and_then(|()| failpoint())
            .and_then(|()| draft.write_all(&bytes))
            .and_then(|()| failpoint())
            .and_then(|()| draft.sync_all())
            .and_then(|()| draft.metadata());
        let mode = written.map(|metadata| mode_of(&metadata)).map_err(to_error)?;
        self.after = Some(FileContent { bytes, mode });
        Ok(())
    }

    fn swap_in(&mut self, method: FileExchangeMethod) -> Result<(), Error> {
        let ResolvedPath { path, parent, name } = &self.target;
        let stale = || Error::Stale { path: path.clone() };
        let draft = self.temp_name.draft_name();
        let swap = self.temp_name.swap_name();
        if self.after.is_some() {
            // From here on the file may contain the only copy of a content, and the swap name marks
            // that.
            let renamed = failpoint().and_then(|()| parent.rename(draft, parent, &swap));
            renamed.map_err(|error| io_error(path, error))?;
            self.stage = WriteStage::Ready;
        }
        let result = match (&self.before, &self.after) {
            (Some(_), Some(_)) => exchange_files::exchange(parent, &swap, name, method),
            (None, Some(_)) => {
                exchange_files::rename_no_replace(parent, swap.as_ref(), name, method)
            }
            (Some(_), None) => {
                exchange_files::rename_no_replace(parent, name, swap.as_ref(), method)
            }
            (None, None) => Ok(()),
        };
        match result {
            Ok(()) => self.stage = WriteStage::Swapped,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(stale()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(stale()),
            Err(error) => return Err(io_error(path, error)),
        }
        let Some(before) = &self.before else { return Ok(()) };
        // The displaced content would be lost, so it must be the one that the change started from.
        let displaced = failpoint().and_then(|()| read_bytes(parent, swap.as_ref()));
        match displaced.map_err(|error| io_error(path, error))? {
            Some(displaced) if *displaced == *before.bytes => Ok(()),
            Some(_) | None => Err(stale()),
        }
    }

    /// Undoes all steps for this file. Then removes the swap file if its content is ours or
    /// recorded; otherwise keeps it and returns its path.
    fn roll_back(&mut self, method: FileExchangeMethod) -> Option<String> {
        let ResolvedPath { path, parent, name } = &self.target;
        let swap = self.temp_name.swap_name();
        let has_content = |file_name: &str, content: &Option<FileContent>| {
            let bytes = read_bytes(parent, file_name.as_ref()).ok().flatten();
            content.as_ref().map(|content| &*content.bytes) == bytes.as_deref()
        };
        if self.stage == WriteStage::Swapped {
            match (&self.before, &self.after) {
                (Some(_), Some(_)) => match exchange_files::exchange(parent, &swap, name, method) {
                    // Another program has saved over the new content: its version stays.
                    Ok(()) if !has_content(&swap, &self.after) => {
                        let _ = exchange_files::exchange(parent, &swap, name, method);
                    }
                    Ok(()) => {}
                    // The other program has removed or moved the file, so only the old content is
                    // left to restore.
                    Err(_) => {
                        drop(exchange_files::rename_no_replace(parent, swap.as_ref(), name, method))
                    }
                },
                (None, Some(_)) => {
                    let result =
                        exchange_files::rename_no_replace(parent, name, swap.as_ref(), method);
                    if result.is_ok() && !has_content(&swap, &self.after) {
                        let _ =
                            exchange_files::rename_no_replace(parent, swap.as_ref(), name, method);
                    }
                }
                (Some(_), None) => {
                    drop(exchange_files::rename_no_replace(parent, swap.as_ref(), name, method))
                }
                (None, None) => {}
            }
        }
        if self.stage == WriteStage::DraftWritten {
            let _ = parent.remove_file(self.temp_name.draft_name());
        }
        if parent.symlink_metadata(&swap).is_err() {
            return None;
        }
        if has_content(&swap, &self.after) || has_content(&swap, &self.before) {
            let _ = parent.remove_file(&swap);
            return None;
        }
        let folder = path.rsplit_once('/').map(|(folder, _)| format!("{folder}/"));
        Some(folder.unwrap_or_default() + &swap)
    }
}

#[cfg(test)]
mod tests;
