//! The files that a command has changed, with their content before and after.

use crate::Error;
use crate::call_workspace::CallWorkspace;
use crate::command::command_types::CommandChanges;
use crate::command::ignore_rules::IgnoreRules;
use crate::command::job::Job;
use crate::confine::NotCapturedReason;
use crate::fs::file_change::{FileContent, PendingFileChange};
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::path_escapes::escape_path_lossy;

/// Limits the files that `CommandChanges::not_captured` names.
const MAX_NAMED_FILES: usize = 20;

impl CallWorkspace {
    /// Returns what a job has changed since the last call. Files that the command created are left
    /// out if git ignores them, and so is everything in a folder that git ignores.
    pub fn take_job_changes(&self, job: &Job) -> CommandChanges {
        let mut result = CommandChanges::default();
        let Some(captured) = job.captured_changes() else { return result };
        // Read before the files, so that no change after it is missed.
        let is_gone = job.is_gone();
        let mut guard = lock(&captured.reader);
        let Some(reader) = guard.as_mut() else { return result };
        // Without the rest, later changes are unknown, but those until here are not.
        let _ = reader.read_new_records();
        let root = self.workspace().root().to_owned();
        let mut ignore_rules = IgnoreRules::new(&root);
        let mut more = 0;
        for (path, known) in &mut reader.known {
            let is_new = matches!(known, Ok(None));
            if ignore_rules.is_ignored(path, is_new) {
                continue;
            }
            let name = path.strip_prefix(&root).unwrap_or(path);
            let real = escape_path_lossy(name.as_os_str()).into_owned();
            let reason = match &*known {
                Err(reason) => describe_reason(*reason),
                Ok(before) => match self.load_file_version(real.clone()) {
                    Ok(after) if after == *before => continue,
                    Ok(after) => {
                        let before = std::mem::replace(known, Ok(after.clone()));
                        let before = before.ok().flatten();
                        result.changes.push(PendingFileChange { path: real, before, after });
                        continue;
                    }
                    Err(Error::BecameSymlink { .. } | Error::SpecialFile { .. }) => {
                        describe_reason(NotCapturedReason::Special)
                    }
                    Err(Error::TooLarge { .. }) => "it is too large now",
                    Err(_) => describe_reason(NotCapturedReason::Unreadable),
                },
            };
            match result.not_captured.len() < MAX_NAMED_FILES {
                true => result.not_captured.push(format!("{} ({reason})", name.display())),
                false => more += 1,
            }
        }
        if more > 0 {
            result.not_captured.push(format!("{more} more files"));
        }
        reader.known.retain(|_, known| known.is_ok());
        if is_gone {
            *guard = None;
        }
        result
    }
}

impl CallWorkspace {
    /// Loads a file; a folder counts as no file.
    fn load_file_version(&self, real: String) -> Result<Option<FileContent>, Error> {
        match self.load_resolved(real) {
            Err(Error::IsFolder { .. }) => Ok(None),
            other => other,
        }
    }
}

fn describe_reason(reason: NotCapturedReason) -> &'static str {
    match reason {
        NotCapturedReason::TooLarge => "it was larger than 10 MB",
        NotCapturedReason::LimitReached => "the command changed too many files",
        NotCapturedReason::Unreadable => "it could not be read",
        NotCapturedReason::Special => "it is not a regular file",
    }
}
