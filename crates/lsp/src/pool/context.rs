//! State that all servers of a workspace share: launcher, time limits and installed programs.
//!
//! Search results, including missing programs, are cached for a while, so that an edit costs no
//! search. Start reading at [`PoolContext::find_program`].

use crate::config::{LspServerConfig, LspTimeouts};
use crate::project_markers::{ancestors, join_path};
use crate::server_log::ServerLog;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use windlass_protocol::mutex_lock::lock;
use windlass_sandbox::Workspace;
use windlass_toolkit::ProcessLauncher;
use windlass_toolkit::process_health::HealthChanges;

/// Lifetime of a `CachedProgramPath`.
const PROGRAM_CACHE_TTL: Duration = Duration::from_secs(30);
const MAX_CACHED_PROGRAMS: usize = 4_096;
/// Placeholder for a folder that only the server's own process may change.
const CACHE_PLACEHOLDER: &str = "{cache}";

/// State that all servers of a workspace share.
pub(crate) struct PoolContext {
    pub(crate) launcher: ProcessLauncher,
    pub(crate) log: Arc<dyn ServerLog>,
    pub(crate) timeouts: LspTimeouts,
    /// Receives state changes of the servers.
    pub(crate) changes: HealthChanges,
    created_at: Instant,
    /// Cached searches by server name and project root.
    programs: Mutex<HashMap<(String, String), CachedProgramPath>>,
}

/// A cached search for a program; `path` is `None` if it is missing.
struct CachedProgramPath {
    expires_at: Instant,
    path: Option<PathBuf>,
}

impl PoolContext {
    pub(crate) fn new(
        launcher: ProcessLauncher,
        log: Arc<dyn ServerLog>,
        timeouts: LspTimeouts,
        changes: HealthChanges,
    ) -> PoolContext {
        PoolContext {
            launcher,
            log,
            timeouts,
            changes,
            created_at: Instant::now(),
            programs: Mutex::default(),
        }
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        self.launcher.workspace()
    }

    /// Converts a path of the workspace to an absolute one.
    pub(crate) fn absolute_path(&self, path: &str) -> PathBuf {
        self.workspace().absolute_path(path)
    }

    /// Returns the time since the pool was created, as the clock of `ProcessHealth`.
    pub(crate) fn elapsed(&self) -> Duration {
        self.created_at.elapsed()
    }

    /// Finds the program of a server for a project root.
    pub(crate) fn find_program(&self, config: &LspServerConfig, root: &str) -> Option<PathBuf> {
        let key = (config.name.clone(), root.to_owned());
        if let Some(cached) = lock(&self.programs).get(&key)
            && Instant::now() < cached.expires_at
        {
            return cached.path.clone();
        }
        let path = self.search_program(config, root);
        self.cache_program(key, path.clone());
        path
    }

    /// Records that a start found the program missing, even if the file exists.
    pub(crate) fn mark_missing(&self, config: &LspServerConfig, root: &str) {
        self.cache_program((config.name.clone(), root.to_owned()), None);
    }

    fn cache_program(&self, key: (String, String), path: Option<PathBuf>) {
        let mut programs = lock(&self.programs);
        if programs.len() >= MAX_CACHED_PROGRAMS {
            programs.clear();
        }
        programs.insert(
            key,
            CachedProgramPath { expires_at: Instant::now() + PROGRAM_CACHE_TTL, path },
        );
    }

    fn search_program(&self, config: &LspServerConfig, root: &str) -> Option<PathBuf> {
        let workspace = self.workspace();
        let local = ancestors(root).find_map(|folder| {
            let mut local = config.local.iter().map(|name| join_path(folder, name));
            local.find(|path| file_exists(workspace, path))
        });
        if let Some(local) = local {
            return Some(workspace.absolute_path(&local));
        }
        let program = Path::new(config.command.first()?);
        if program.is_absolute() {
            return Some(program.to_owned());
        }
        if program.parent() != Some(Path::new("")) {
            let relative = program.to_str()?;
            return file_exists(workspace, relative).then(|| workspace.root().join(relative));
        }
        workspace.machine_paths()?.find_installed(program)
    }

    /// Replaces `{cache}` with the folder of the process; `None` if it has none.
    pub(crate) fn fill_cache_placeholder(&self, text: &str, process: &str) -> Option<String> {
        if !text.contains(CACHE_PLACEHOLDER) {
            return Some(text.to_owned());
        }
        let folder = self.workspace().process_folder(process)?;
        Some(text.replace(CACHE_PLACEHOLDER, folder.to_str()?))
    }

    /// Replaces `{cache}` in all strings of a value. Strings without a folder become null.
    pub(crate) fn fill_cache_placeholders(&self, value: &Value, process: &str) -> Value {
        match value {
            Value::String(text) => {
                self.fill_cache_placeholder(text, process).map_or(Value::Null, Value::String)
            }
            Value::Array(items) => {
                items.iter().map(|item| self.fill_cache_placeholders(item, process)).collect()
            }
            Value::Object(fields) => {
                let fill = |(name, item): (&String, &Value)| {
                    (name.clone(), self.fill_cache_placeholders(item, process))
                };
                Value::Object(fields.iter().map(fill).collect::<Map<_, _>>())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

/// Returns the folder of a file.
pub(crate) fn parent_folder(path: &str) -> &str {
    path.rsplit_once('/').map_or(".", |(folder, _)| folder)
}

/// Returns true if the path is a file, or a link to a file of the workspace.
pub(crate) fn file_exists(workspace: &Workspace, path: &str) -> bool {
    let real = || workspace.resolve_inside(path).ok().and_then(|real| workspace.stat(&real));
    workspace.stat(path).or_else(real).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_of_a_file_at_the_root_is_a_dot() {
        assert_eq!((parent_folder("a/b.rs"), parent_folder("b.rs")), ("a", "."));
    }
}
