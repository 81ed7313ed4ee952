//! Translates a `SandboxProfile` into a Seatbelt profile for macOS. Untested: it has not run on
//! macOS yet.
//!
//! The last matching rule wins, so the general rules come first: everything a program needs, then
//! writable folders, then protected paths, then hidden paths. The same rules cover paths that do
//! not exist yet, so macOS needs no `PathGuard`.

use super::{NetworkAccess, SandboxProfile};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Rules that every program needs to start.
const BASE_PROFILE: &str = r#"(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow file-read*)
(allow file-ioctl (regex #"^/dev/tty"))
(allow file-write* (literal "/dev/null") (literal "/dev/zero") (regex #"^/dev/tty") (literal "/dev/ptmx"))
(allow pseudo-tty)
(allow ipc-posix-sem)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
"#;

/// Protected names that may not exist yet, as regular expressions beneath a writable folder.
const PROTECTED_PATH_PATTERNS: [&str; 4] = [
    r"/\.git/(config|hooks|info|worktrees|commondir|gitdir)",
    r"/\.git/modules/.*/(config|hooks|info)",
    r"/\.(vscode|idea|cursor|claude|codex|gemini|husky|windlass|devcontainer)(/|$)",
    r"/(\.mcp\.json|\.envrc|\.npmrc|\.bashrc|\.zshrc|\.gitmodules|\.gitconfig|windlass\.jsonc)$",
];

/// Builds the text of the profile for `sandbox-exec`.
pub fn build_profile(profile: &SandboxProfile) -> String {
    let mut text = BASE_PROFILE.to_owned();
    // Writing to a `String` does not fail.
    let mut add_rule = |rule: String| _ = writeln!(text, "{rule}");
    // The last rule that matches applies, so a hidden folder comes before the visible folders in it.
    let visible: Vec<&Path> = profile.shown_paths().collect();
    let (enclosing, others): (Vec<&PathBuf>, Vec<&PathBuf>) = profile
        .hidden_paths
        .iter()
        .partition(|hidden| visible.iter().any(|folder| folder.starts_with(hidden)));
    for path in &enclosing {
        add_rule(format!("(deny file-read* file-write* (subpath {}))", quote_path(path)));
    }
    for folder in visible.iter().filter(|_| !enclosing.is_empty()) {
        add_rule(format!("(allow file-read* (subpath {}))", quote_path(folder)));
    }
    for folder in profile.changeable_folders() {
        add_rule(format!("(allow file-write* (subpath {}))", quote_path(folder)));
    }
    for folder in profile.writable_folders() {
        for pattern in PROTECTED_PATH_PATTERNS {
            let start = escape_regex(&folder.to_string_lossy());
            add_rule(format!("(deny file-write* (regex #\"(?i)^{start}(/.*)?{pattern}\"))"));
        }
    }
    for path in &profile.protected_paths {
        add_rule(format!("(deny file-write* (subpath {}))", quote_path(path)));
        // Prevents renaming a folder on the way to the protected path.
        for ancestor in path.ancestors().skip(1).take_while(|ancestor| *ancestor != profile.root) {
            add_rule(format!("(deny file-write-unlink (literal {}))", quote_path(ancestor)));
        }
    }
    for path in others.into_iter().chain(&profile.private_paths) {
        add_rule(format!("(deny file-read* file-write* (subpath {}))", quote_path(path)));
    }
    match profile.network {
        NetworkAccess::None => {}
        NetworkAccess::Proxy { port } => {
            add_rule(format!("(allow network-outbound (remote ip \"localhost:{port}\"))"));
        }
        NetworkAccess::Unrestricted => add_rule("(allow network*)".to_owned()),
    }
    text
}

/// Quotes a path as a string literal of the profile language.
fn quote_path(path: &Path) -> String {
    let mut quoted = String::from("\"");
    for character in path.to_string_lossy().chars() {
        if matches!(character, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('"');
    quoted
}

/// Escapes a path for a regular expression of the profile language.
fn escape_regex(path: &str) -> String {
    let mut escaped = String::new();
    for character in path.chars() {
        match character {
            // A quote would end the expression, even after a backslash.
            '"' => escaped.push('.'),
            c if c.is_alphanumeric() || matches!(c, '/' | '-' | '_' | ' ') => escaped.push(c),
            c => escaped.extend(['\\', c]),
        }
    }
    escaped
}

/// Wraps the command in `sandbox-exec` with its profile. Set the standard streams after this call,
/// because it replaces the command.
#[cfg(not(target_os = "linux"))]
#[allow(
    clippy::disallowed_methods,
    reason = "the sandbox crate is the only one that starts processes"
)]
pub(super) fn enter_seatbelt(profile: &SandboxProfile, command: &mut std::process::Command) {
    let mut wrapped = std::process::Command::new("/usr/bin/sandbox-exec");
    wrapped.arg("-p").arg(build_profile(profile)).arg("--").arg(command.get_program());
    wrapped.args(command.get_args()).env_clear();
    let variables =
        command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
    let variables: Vec<(std::ffi::OsString, std::ffi::OsString)> = variables.collect();
    wrapped.envs(variables).env("TMPDIR", &profile.temp_dir);
    wrapped.current_dir(command.get_current_dir().unwrap_or(&profile.root));
    *command = wrapped;
}
