//! The files that a command has changed, with their content before and after.

use crate::Error;
use crate::call_workspace::CallWorkspace;
use crate::command::captured_changes::CapturedFiles;
use crate::command::command_types::CommandChanges;
use crate::command::ignore_rules::IgnoreRules;
use crate::command::job::Job;
use crate::confine::NotCapturedReason;
use crate::fs::file_change::{FileContent, PendingFileChange};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use windlass_protocol::path_escapes::escape_path_lossy;

/// Limits the new content of a file, and of all files of a command.
const MAX_VERSION_BYTES: u64 = 10 << 20;
const MAX_TAKEN_BYTES: u64 = 200 << 20;
/// Limits the files that `CommandChanges::not_captured` names.
const MAX_NAMED_FILES: usize = 20;

impl CallWorkspace {
    /// Returns what a job has changed until now, once. Files that the command created are left out
    /// if git ignores them, and so is everything in a folder that git ignores.
    pub fn take_job_changes(&self, job: &Job) -> CommandChanges {
        let mut result = CommandChanges::default();
        let Some(captured) = job.captured_changes() else { return result };
        let files = captured.take();
        let root = self.workspace().root().to_owned();
        let mut ignore_rules = IgnoreRules::new(&root, earlier_ignore_files(&files));
        let (mut more, mut kept_bytes) = (0, 0);
        for (path, before) in files {
            let is_limit = matches!(before, Err(NotCapturedReason::LimitReached));
            if !is_limit && ignore_rules.is_ignored(&path, matches!(before, Ok(None))) {
                continue;
            }
            let real = escape_path_lossy(path.strip_prefix(&root).unwrap_or(&path).as_os_str());
            let after = before.and_then(|before| {
                let after = self.load_version(&real, &mut kept_bytes)?;
                Ok((before, after))
            });
            match after {
                Ok((before, after)) if before == after => {}
                Ok((before, after)) => {
                    let path = real.into_owned();
                    result.changes.push(PendingFileChange { path, before, after });
                }
                Err(reason) if result.not_captured.len() < MAX_NAMED_FILES => {
                    result.not_captured.push(format!("{real} ({})", describe_reason(reason)));
                }
                Err(_) => more += 1,
            }
        }
        if more > 0 {
            result.not_captured.push(format!("{more} more files"));
        }
        result
    }

    /// Loads a file, if it and all others are not too large. A folder counts as no file.
    fn load_version(
        &self,
        real: &str,
        kept_bytes: &mut u64,
    ) -> Result<Option<FileContent>, NotCapturedReason> {
        let size = self.workspace().stat(real).map_or(0, |stat| stat.size);
        if size > MAX_VERSION_BYTES {
            return Err(NotCapturedReason::TooLarge);
        }
        if *kept_bytes + size > MAX_TAKEN_BYTES {
            return Err(NotCapturedReason::LimitReached);
        }
        *kept_bytes += size;
        match self.load_resolved(real.to_owned()) {
            Ok(content) => Ok(content),
            Err(Error::IsFolder { .. }) => Ok(None),
            Err(Error::BecameSymlink { .. } | Error::SpecialFile { .. }) => {
                Err(NotCapturedReason::Special)
            }
            Err(Error::TooLarge { .. }) => Err(NotCapturedReason::TooLarge),
            // A folder on the way to it was replaced.
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotADirectory => Ok(None),
            Err(_) => Err(NotCapturedReason::Unreadable),
        }
    }
}

/// Returns the `.gitignore` files that the command changed, as they were before: otherwise it could
/// hide its changes.
fn earlier_ignore_files(files: &CapturedFiles) -> BTreeMap<PathBuf, Vec<u8>> {
    let is_ignore_file =
        |path: &&PathBuf| path.file_name().is_some_and(|name| name == ".gitignore");
    let earlier = files.iter().filter(|(path, _)| is_ignore_file(path)).map(|(path, before)| {
        let content = before.as_ref().ok().and_then(|before| before.as_ref());
        (path.clone(), content.map(|content| content.bytes.to_vec()).unwrap_or_default())
    });
    earlier.collect()
}

fn describe_reason(reason: NotCapturedReason) -> &'static str {
    match reason {
        NotCapturedReason::TooLarge => "it is or was larger than 10 MB",
        NotCapturedReason::LimitReached => "the command changed too many files",
        NotCapturedReason::Unreadable => "it could not be read",
        NotCapturedReason::Special => "it is not a regular file",
    }
}
