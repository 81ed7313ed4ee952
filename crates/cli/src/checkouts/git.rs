//! Runs `git` for the node, outside the sandbox.
//!
//! A session may have written anything into its checkout, also into `.git`. So files of a checkout
//! are read and written with the config of a repository of the node only, and without the user's
//! config, filters and hooks. Of a checkout's own `.git`, only branches are fetched, which git allows
//! from repositories that are not trusted.
#![allow(
    clippy::disallowed_methods,
    reason = "the node itself runs git, with the keys of its user"
)]

use anyhow::{Context, bail};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Limit for a command that reaches another repository: a large one is fetched once, when its first
/// session begins.
const NETWORK_TIMEOUT: Duration = Duration::from_secs(600);
/// Limit for other commands. A session can make them hang, for example with a pipe as `.gitignore`.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of bytes of an error that are shown.
const MAX_ERROR_BYTES: usize = 500;

/// Settings of all commands: nothing of a repository is executed, and nothing runs in the background.
const SETTINGS: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.autocrlf=false",
    "core.quotePath=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// Variables that all commands get.
const COMMON_VARIABLES: &[&str] = &["PATH", "HOME", "USERPROFILE", "SYSTEMROOT", "TMPDIR", "TEMP"];
/// Variables that commands get that reach another repository.
const USER_VARIABLES: &[&str] = &[
    "USER",
    "LOGNAME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "SSH_AUTH_SOCK",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "GIT_SSL_CAINFO",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
];

/// The processes of a command. They are killed when this is dropped, unless they have ended.
#[cfg(unix)]
struct ProcessGroup(Option<u32>);

#[cfg(unix)]
impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0.and_then(|id| i32::try_from(id).ok())
            && let Some(group) = rustix::process::Pid::from_raw(group)
        {
            // Usually, there is none any more.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// A repository that commands run in.
#[derive(Clone, Copy)]
pub(super) struct Git<'a> {
    repository: &'a Path,
    /// The folder whose files are read or written.
    work_tree: Option<&'a Path>,
    index: Option<&'a Path>,
    /// The user's config and keys are used, to reach another repository.
    uses_user_config: bool,
}

impl<'a> Git<'a> {
    /// Returns commands for a repository that only this program writes.
    pub(super) fn new(repository: &'a Path) -> Git<'a> {
        Git { repository, work_tree: None, index: None, uses_user_config: false }
    }

    /// Reads and writes the files of a folder, with an index of this program.
    pub(super) fn with_work_tree(self, folder: &'a Path, index: &'a Path) -> Git<'a> {
        Git { work_tree: Some(folder), index: Some(index), ..self }
    }

    /// Uses an index of this program.
    pub(super) fn with_index(self, index: &'a Path) -> Git<'a> {
        Git { index: Some(index), ..self }
    }

    /// Uses the config of the user, for commands that reach another repository.
    pub(super) fn with_user_config(self) -> Git<'a> {
        Git { uses_user_config: true, ..self }
    }

    /// Runs a command, and returns its output.
    pub(super) async fn run(&self, arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
        self.run_with_input(arguments, &[]).await
    }

    /// Runs a command, and returns its output without the last line break.
    pub(super) async fn line(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = String::from_utf8(self.run(arguments).await?)?;
        Ok(output.trim_end_matches('\n').to_owned())
    }

    /// Runs a command with input, and returns its output.
    pub(super) async fn run_with_input(
        &self,
        arguments: &[&str],
        input: &[u8],
    ) -> anyhow::Result<Vec<u8>> {
        let name = arguments.first().copied().unwrap_or_default();
        let run = async {
            let mut child = self.command(arguments).spawn().context("cannot start git")?;
            #[cfg(unix)]
            let _group = ProcessGroup(child.id());
            let mut stdin = child.stdin.take();
            let write = async {
                if let Some(stdin) = &mut stdin {
                    // A command that has failed does not read it.
                    let _ = stdin.write_all(input).await;
                }
                drop(stdin);
            };
            let ((), output) = tokio::join!(write, child.wait_with_output());
            anyhow::Ok(output?)
        };
        let limit = if self.uses_user_config { NETWORK_TIMEOUT } else { LOCAL_TIMEOUT };
        let output = tokio::time::timeout(limit, run).await;
        let output = output.with_context(|| format!("`git {name}` takes too long"))??;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            let error = crate::redact::redact(error.trim());
            let end = error.floor_char_boundary(MAX_ERROR_BYTES);
            bail!("`git {name}` failed: {}", error.get(..end).unwrap_or_default());
        }
        Ok(output.stdout)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        // No variable with a secret of this process.
        command.env_clear().env("GIT_TERMINAL_PROMPT", "0").env("GIT_NO_LAZY_FETCH", "1");
        let user_variables = if self.uses_user_config { USER_VARIABLES } else { &[] };
        for variable in COMMON_VARIABLES.iter().chain(user_variables) {
            if let Some(value) = std::env::var_os(variable) {
                command.env(variable, value);
            }
        }
        command.env("GIT_DIR", self.repository);
        if let Some(folder) = self.work_tree {
            command.env("GIT_WORK_TREE", folder).current_dir(folder);
        }
        if let Some(index) = self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        if !self.uses_user_config {
            command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        }
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "windlass");
            command.env(format!("GIT_{role}_EMAIL"), "windlass@localhost");
        }
        // It starts other programs, which must end with it.
        #[cfg(unix)]
        command.process_group(0);
        command.args(arguments).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}
