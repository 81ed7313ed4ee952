//! The cage as a profile of macOS's sandbox. Untested: no such machine has run it yet.
//!
//! The last rule that fits wins, so the order is the reverse of a list of exceptions: everything
//! that is needed, then what may be written, then what is guarded, then what is hidden. Names that
//! do not exist yet are closed by the same rules, so there is no door on macOS.

use super::{Cage, Network};
use std::fmt::Write;
use std::path::Path;

/// What every program needs to start.
const BASE: &str = r#"(version 1)
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

/// Protected names that may not exist yet, as regular expressions beneath the root.
const CLOSED: [&str; 4] = [
    r"/\.git/(config|hooks|info|worktrees|commondir|gitdir)",
    r"/\.git/modules/.*/(config|hooks|info)",
    r"/\.(vscode|idea|cursor|claude|codex|gemini|husky|windlass|devcontainer)(/|$)",
    r"/(\.mcp\.json|\.envrc|\.npmrc|\.bashrc|\.zshrc|\.gitmodules|\.gitconfig|windlass\.jsonc)$",
];

/// The profile of a cage.
pub fn profile(cage: &Cage) -> String {
    let mut text = BASE.to_owned();
    // Writing to a string does not fail.
    let mut line = |words: String| _ = writeln!(text, "{words}");
    for folder in cage.writes().chain([cage.temp.as_path()]) {
        line(format!("(allow file-write* (subpath {}))", quote(folder)));
    }
    for folder in cage.writes() {
        for closed in CLOSED {
            let start = escape(&folder.to_string_lossy());
            line(format!("(deny file-write* (regex #\"(?i)^{start}(/.*)?{closed}\"))"));
        }
    }
    for path in &cage.guarded {
        line(format!("(deny file-write* (subpath {}))", quote(path)));
        // Nobody renames a folder on the way to it.
        for above in path.ancestors().skip(1).take_while(|above| *above != cage.root) {
            line(format!("(deny file-write-unlink (literal {}))", quote(above)));
        }
    }
    for path in cage.hidden.iter().chain(&cage.private) {
        line(format!("(deny file-read* file-write* (subpath {}))", quote(path)));
    }
    match cage.network {
        Network::None => {}
        Network::Proxy { port } => {
            line(format!("(allow network-outbound (remote ip \"localhost:{port}\"))"));
        }
        Network::Open => line("(allow network*)".to_owned()),
    }
    text
}

/// A path as a string of the profile's language.
fn quote(path: &Path) -> String {
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

/// A path as a part of a regular expression of the profile's language.
fn escape(path: &str) -> String {
    let mut escaped = String::new();
    for character in path.chars() {
        match character {
            // A quote would end the expression, whatever stands before it.
            '"' => escaped.push('.'),
            c if c.is_alphanumeric() || matches!(c, '/' | '-' | '_' | ' ') => escaped.push(c),
            c => escaped.extend(['\\', c]),
        }
    }
    escaped
}

/// Runs the command under its profile. Standard streams must be named after this.
#[cfg(not(target_os = "linux"))]
#[allow(clippy::disallowed_methods, reason = "processes are started in this crate only")]
pub(super) fn wrap(cage: &Cage, command: &mut std::process::Command) {
    let mut wrapped = std::process::Command::new("/usr/bin/sandbox-exec");
    wrapped.arg("-p").arg(profile(cage)).arg("--").arg(command.get_program());
    wrapped.args(command.get_args()).env_clear();
    let set = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
    let set: Vec<(std::ffi::OsString, std::ffi::OsString)> = set.collect();
    wrapped.envs(set).env("TMPDIR", &cage.temp);
    wrapped.current_dir(command.get_current_dir().unwrap_or(&cage.root));
    *command = wrapped;
}
