//! The environment a command gets: what is on a list, and what keeps programs quiet.
//!
//! Nothing is inherited by default, so that no key of a provider, no socket of an agent and no
//! variable that makes a program load code comes along unseen. What is added keeps programs from
//! asking and git from running what a repository names.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What a command may inherit: where tools are, who it runs for and what language they speak.
const INHERITED: &[&str] = &[
    "ANDROID_HOME",
    "BUN_INSTALL",
    "CARGO_HOME",
    "CI",
    "CONDA_DEFAULT_ENV",
    "CONDA_PREFIX",
    "CURL_CA_BUNDLE",
    "DENO_DIR",
    "DOTNET_ROOT",
    "GOPATH",
    "GOROOT",
    "HOME",
    "HOMEBREW_PREFIX",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LC_ADDRESS",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
    "LOGNAME",
    "NODE_ENV",
    "NODE_EXTRA_CA_CERTS",
    "NVM_DIR",
    "PNPM_HOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "REQUESTS_CA_BUNDLE",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SDKMAN_DIR",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// What keeps programs from asking and from waiting for somebody to turn a page.
const ADDED: &[(&str, &str)] = &[
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("EDITOR", "true"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_EDITOR", "true"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("PAGER", "cat"),
    ("VISUAL", "true"),
];

/// Outranks every configuration file of git, also the repository's own. An empty `diff.external`
/// is not among them: git would try to run it.
const GIT: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("protocol.allow", "never"),
    ("protocol.ext.allow", "never"),
    // A clone of a folder, but no submodule that names one.
    ("protocol.file.allow", "user"),
    ("protocol.https.allow", "always"),
    ("protocol.ssh.allow", "always"),
    ("safe.bareRepository", "explicit"),
];

const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
const USUAL_TERMINAL: &str = "xterm-256color";

/// Whether git runs the hooks of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hooks {
    /// As the repository has them: its folder is trusted.
    Run,
    /// Never.
    Skip,
}

/// What a command's environment depends on.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Whether it gets a terminal.
    pub terminal: bool,
    /// Whether git runs hooks.
    pub hooks: Hooks,
}

/// The whole environment of a command, but for what its cage adds: where temporary files go.
pub fn environment(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    surroundings: &Surroundings,
) -> Vec<(OsString, OsString)> {
    let mut found = Vec::new();
    let mut path = None;
    let mut terminal = None;
    for (name, value) in inherited {
        match name.to_str() {
            Some("PATH") => path = Some(trusted(&value)),
            Some("TERM") => terminal = Some(value),
            Some(name) if INHERITED.binary_search(&name).is_ok() => {
                found.push((OsString::from(name), value));
            }
            Some(_) | None => {}
        }
    }
    let path = path.filter(|path| !path.is_empty());
    let terminal = match surroundings.terminal {
        true => terminal.unwrap_or_else(|| USUAL_TERMINAL.into()),
        false => "dumb".into(),
    };
    found.push(("PATH".into(), path.unwrap_or_else(|| USUAL_PATH.into())));
    found.push(("TERM".into(), terminal));
    found.extend(ADDED.iter().map(|(name, value)| ((*name).into(), (*value).into())));
    let hooks = match surroundings.hooks {
        Hooks::Run => None,
        Hooks::Skip => Some(("core.hooksPath", "/dev/null")),
    };
    let mut count = 0;
    for (key, value) in GIT.iter().copied().chain(hooks) {
        found.push((format!("GIT_CONFIG_KEY_{count}").into(), key.into()));
        found.push((format!("GIT_CONFIG_VALUE_{count}").into(), value.into()));
        count += 1;
    }
    found.push(("GIT_CONFIG_COUNT".into(), count.to_string().into()));
    found
}

/// A path to programs without the entries that mean another folder wherever a command runs.
fn trusted(path: &OsStr) -> OsString {
    let entries = std::env::split_paths(path).filter(|entry: &PathBuf| Path::is_absolute(entry));
    std::env::join_paths(entries).unwrap_or_default()
}

#[cfg(test)]
mod tests;
