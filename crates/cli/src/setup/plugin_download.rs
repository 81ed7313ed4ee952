//! Downloads of plugins: runs a script in a sandbox that reaches only the hosts it needs, and
//! fetches a repository with `git`, without the user's git config and without running programs of
//! the repository.

use super::{LoadedProject, real_path};
use anyhow::{anyhow, bail};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use windlass_project::PluginContents;
use windlass_protocol::PermissionMode;
use windlass_sandbox::{
    HostAllowlist, ProcessExit, ProcessSandboxAccess, ProcessSpec, Workspace, WorkspaceAccess,
};
use windlass_toolkit::ProcessLauncher;

const FETCH_TIMEOUT: Duration = Duration::from_secs(180);

/// Fetches one commit into a temporary repository, prints its id and writes its files, or one file
/// or folder of it, as an archive, which is empty if there is no such file or folder. It runs nothing from the repository and allows no other protocol.
const FETCH_SCRIPT: &str = r#"
set -euo pipefail
folder=$(mktemp -d)
export GIT_DIR="$folder/fetched"
git() {
  command git -c protocol.allow=never -c protocol.https.allow=always -c protocol.file.allow=always \
    -c core.hooksPath=/dev/null -c core.fsmonitor=false -c credential.helper= \
    -c transfer.fsckObjects=true "$@"
}
git init --quiet --bare --template= "$GIT_DIR"
git fetch --quiet --depth=1 --no-tags --no-recurse-submodules -- "$1" "$2"
git rev-parse --verify 'FETCH_HEAD^{commit}'
if [[ -z "$3" ]]; then
  git archive --format=tar FETCH_HEAD
elif git cat-file -e "FETCH_HEAD:$3" 2>/dev/null; then
  git --literal-pathspecs archive --format=tar FETCH_HEAD -- "$3"
fi
"#;

impl LoadedProject {
    /// Fetches a branch or tag of a repository, or its default branch. Returns the commit id and
    /// its files, or those in `part`, as a tar archive. `folder` is an empty folder that serves only as the workspace.
    pub(crate) async fn fetch_repository(
        &self,
        url: &str,
        name: Option<&str>,
        part: &str,
        folder: &Path,
    ) -> anyhow::Result<(String, Vec<u8>)> {
        let hosts = url_host(url)?;
        let name = name.unwrap_or("HEAD");
        let is_plain = |c: char| c.is_alphanumeric() || "-_./".contains(c);
        if name.is_empty() || name.starts_with('-') || !name.chars().all(is_plain) {
            bail!("invalid branch or tag name `{name}`");
        }
        let folder = real_path(folder);
        let env = git_environment(&folder);
        let arguments = [url, name, part];
        let fetch = self.run_download(&folder, ("git", FETCH_SCRIPT), &arguments, env, hosts);
        let stdout = fetch.await.map_err(|reason| {
            anyhow!("cannot fetch {url}: {reason}. Clone it yourself and add the folder")
        })?;
        let end = stdout.iter().position(|byte| *byte == b'\n');
        let parts = end.and_then(|end| stdout.split_at_checked(end + 1));
        let commit = parts.and_then(|(line, _)| std::str::from_utf8(line).ok()).map(str::trim);
        let is_hash = |commit: &&str| {
            commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        match (commit.filter(is_hash), parts) {
            (Some(commit), Some((_, archive))) => Ok((commit.to_owned(), archive.to_vec())),
            (None, _) | (_, None) => bail!("unexpected output from git while fetching {url}"),
        }
    }
}

impl LoadedProject {
    /// Runs a script with `bash` in a sandbox that reaches only `hosts`, and returns its output.
    /// `folder` is an empty folder that serves only as the workspace.
    pub(super) async fn run_download(
        &self,
        folder: &Path,
        (name, script): (&str, &str),
        arguments: &[&str],
        env: Vec<(OsString, OsString)>,
        hosts: HostAllowlist,
    ) -> anyhow::Result<Vec<u8>> {
        let workspace = Workspace::open(folder)?.with_shell(self.shell_config()?);
        let machine_paths = workspace
            .machine_paths()
            .ok_or_else(|| anyhow!("the workspace cannot run commands"))?;
        let policy = self.build_policy(machine_paths, PermissionMode::Auto)?;
        let launcher = ProcessLauncher::new(&workspace, &policy);
        let arguments = ["-c", script, name].iter().chain(arguments).map(OsString::from).collect();
        let process = ProcessSpec {
            name: format!("plugin/{name}"),
            program: "bash".into(),
            arguments,
            env,
            folder: folder.to_owned(),
            sandbox_access: ProcessSandboxAccess {
                workspace: WorkspaceAccess::Read,
                writable_folders: Vec::new(),
                hosts,
                sandbox_mode: None,
            },
        };
        run_and_capture(&launcher, process).await.map_err(|reason| anyhow!(reason))
    }
}

fn git_environment(home: &Path) -> Vec<(OsString, OsString)> {
    let fixed = [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ASKPASS", "true"),
        ("GIT_ALLOW_PROTOCOL", "https:file"),
    ];
    let fixed = fixed.map(|(name, value)| (name.into(), value.into()));
    fixed.into_iter().chain([("HOME".into(), home.into())]).collect()
}

/// Returns the host of a URL, the only one that the sandbox may reach.
fn url_host(url: &str) -> anyhow::Result<HostAllowlist> {
    if url.starts_with("file://") {
        return Ok(HostAllowlist::none());
    }
    let rest = url.strip_prefix("https://").unwrap_or_default();
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        bail!("the URL must not contain a user name, because the URL is saved in plain text");
    }
    if host.is_empty() || host.contains('*') {
        bail!("{url} contains no valid host");
    }
    Ok(HostAllowlist::parse(&[host.to_owned()])?)
}

/// Runs a program and returns its output if it succeeds, or the reason for the failure.
async fn run_and_capture(launcher: &ProcessLauncher, spec: ProcessSpec) -> Result<Vec<u8>, String> {
    let run = async {
        let process = launcher.launch(spec).await.map_err(|failure| failure.text)?;
        let (stdin, stdout, process) = process.split();
        drop(stdin);
        let mut output = Vec::new();
        let result = stdout.take(PluginContents::MAX_ARCHIVE_BYTES).read_to_end(&mut output).await;
        result.map_err(|error| error.to_string())?;
        if output.len() as u64 >= PluginContents::MAX_ARCHIVE_BYTES {
            process.terminate(Duration::ZERO).await;
            return Err("it is larger than the limit for plugins".to_owned());
        }
        match process.wait_for_exit().await.exit {
            ProcessExit::Code(0) => Ok(output),
            ProcessExit::Code(_)
            | ProcessExit::Signal(_)
            | ProcessExit::TooManyProcesses(_)
            | ProcessExit::OutOfMemory
            | ProcessExit::DiskFull
            | ProcessExit::SupervisorLost => {
                Err(process.exit_summary().unwrap_or_else(|| "it was stopped".to_owned()))
            }
        }
    };
    let result = tokio::time::timeout(FETCH_TIMEOUT, run).await;
    result.unwrap_or_else(|_| Err(format!("timed out after {} s", FETCH_TIMEOUT.as_secs())))
}

#[cfg(test)]
mod tests {
    use super::url_host;

    #[test]
    fn a_url_has_one_host_and_no_user_name() {
        for url in ["https://a.example/x", "https://a.example:8443/x.git", "file:///x"] {
            assert!(url_host(url).is_ok(), "{url}");
        }
        for url in
            ["https://", "https:///x", "https://me:key@a.example/x", "https://*/x", "http://a/x"]
        {
            assert!(url_host(url).is_err(), "{url}");
        }
    }
}
