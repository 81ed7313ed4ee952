//! Builds the environment of a command: inherited variables from a fixed list, plus settings that
//! keep programs non-interactive.
//!
//! Nothing else is inherited, so that no provider API key, no agent socket and no variable that
//! makes a program load code reaches a command unnoticed. The added variables keep programs from
//! prompting and git from running programs that a repository names.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Variables that a command inherits: locations of tools, the user, and the locale. Sorted, because
/// `command_environment` searches them by bisection.
const INHERITED_VARIABLES: &[&str] = &[
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

/// Variables that keep programs from prompting and from opening a pager.
const NON_INTERACTIVE_VARIABLES: &[(&str, &str)] = &[
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("EDITOR", "true"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_EDITOR", "true"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("PAGER", "cat"),
    ("VISUAL", "true"),
];

/// Git settings that override every git configuration file, including the repository's own. An
/// empty `diff.external` is not among them, because git would try to run it.
const GIT_CONFIG_OVERRIDES: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("log.showSignature", "false"),
    ("protocol.allow", "never"),
    ("protocol.ext.allow", "never"),
    // Allows cloning from a folder, but no submodule that names one.
    ("protocol.file.allow", "user"),
    ("protocol.http.allow", "always"),
    ("protocol.https.allow", "always"),
    ("protocol.ssh.allow", "always"),
    ("safe.bareRepository", "explicit"),
];

/// Git settings that also override those of a repository that is not trusted: each of them names a
/// program that git runs even if it only reads, for example to verify a signature.
const UNTRUSTED_GIT_OVERRIDES: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.sshCommand", "ssh"),
    ("gpg.program", "gpg"),
    ("gpg.openpgp.program", "gpg"),
    ("gpg.x509.program", "gpgsm"),
    ("gpg.ssh.program", "ssh-keygen"),
];

/// Variable that keeps git from fetching missing objects, which the repository can make it do with
/// a program of its own.
const NO_LAZY_FETCH_VARIABLE: (&str, &str) = ("GIT_NO_LAZY_FETCH", "1");

const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
const DEFAULT_TERM: &str = "xterm-256color";

/// Setting for running the git hooks of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitHookMode {
    /// Runs hooks as the repository defines them, because its folder is trusted.
    Run,
    Skip,
}

/// Options that a command's environment depends on.
#[derive(Clone, Debug)]
pub struct CommandEnvironmentOptions {
    pub has_terminal: bool,
    pub git_hooks: GitHookMode,
}

/// Returns the whole environment of a command, except the temporary folder, which the
/// `SandboxProfile` adds.
pub fn command_environment(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    options: &CommandEnvironmentOptions,
) -> Vec<(OsString, OsString)> {
    let mut environment = Vec::new();
    let mut path = None;
    let mut terminal = None;
    for (name, value) in inherited {
        match name.to_str() {
            Some("PATH") => path = Some(absolute_path_entries(&value)),
            Some("TERM") => terminal = Some(value),
            Some(name) if INHERITED_VARIABLES.binary_search(&name).is_ok() => {
                environment.push((OsString::from(name), value));
            }
            Some(_) | None => {}
        }
    }
    let path = path.filter(|path| !path.is_empty());
    let terminal = match options.has_terminal {
        true => terminal.unwrap_or_else(|| DEFAULT_TERM.into()),
        false => "dumb".into(),
    };
    environment.push(("PATH".into(), path.unwrap_or_else(|| DEFAULT_PATH.into())));
    environment.push(("TERM".into(), terminal));
    environment.extend(
        NON_INTERACTIVE_VARIABLES.iter().map(|(name, value)| ((*name).into(), (*value).into())),
    );
    let (overrides, fetching) = match options.git_hooks {
        GitHookMode::Run => (&[][..], None),
        GitHookMode::Skip => (UNTRUSTED_GIT_OVERRIDES, Some(NO_LAZY_FETCH_VARIABLE)),
    };
    environment.extend(fetching.map(|(name, value)| (name.into(), value.into())));
    let mut count = 0;
    for (key, value) in GIT_CONFIG_OVERRIDES.iter().chain(overrides).copied() {
        environment.push((format!("GIT_CONFIG_KEY_{count}").into(), key.into()));
        environment.push((format!("GIT_CONFIG_VALUE_{count}").into(), value.into()));
        count += 1;
    }
    environment.push(("GIT_CONFIG_COUNT".into(), count.to_string().into()));
    environment
}

/// Removes relative entries from a `PATH` value, because they mean a different folder in each
/// working folder.
fn absolute_path_entries(path: &OsStr) -> OsString {
    let entries = std::env::split_paths(path).filter(|entry: &PathBuf| Path::is_absolute(entry));
    std::env::join_paths(entries).unwrap_or_default()
}

#[cfg(test)]
mod tests;
