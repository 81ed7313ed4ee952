//! Explains command failures that the sandbox caused, in one sentence that the model can act on.
//!
//! Programs print `Permission denied` without saying whose permission is missing. This module
//! searches the output and adds the reason, which the program cannot know. It guesses only where
//! the output names something that the sandbox restricts.

use super::{NetworkAccess, SandboxBackend, SandboxProfile, normalize_path, protected_names};
use std::path::Path;

const READ_ONLY_ERRORS: [&str; 3] = ["Read-only file system", "EROFS", "Errno 30"];
const PERMISSION_DENIED_ERRORS: [&str; 5] =
    ["Permission denied", "permission denied", "EACCES", "Errno 13", "Device or resource busy"];
const NOT_FOUND_ERRORS: [&str; 4] =
    ["No such file or directory", "no such file or directory", "ENOENT", "Errno 2]"];
const NETWORK_ERRORS: [&str; 14] = [
    "Network is unreachable",
    "ENETUNREACH",
    "Could not resolve host",
    "could not resolve host",
    "Could not resolve hostname",
    "Temporary failure in name resolution",
    "Name or service not known",
    "EAI_AGAIN",
    "getaddrinfo",
    "failed to lookup address",
    "error sending request",
    "Failed to connect",
    "Connection refused",
    "dial tcp",
];
const NOT_PERMITTED_ERRORS: [&str; 4] =
    ["Operation not permitted", "operation not permitted", "EPERM", "Errno 1]"];
/// Names of the call that debuggers and tracers use.
const TRACING_MARKERS: [&str; 3] = ["ptrace", "PTRACE_", "perf_event_open"];
/// Signs of a program that creates a Unix socket.
const UNIX_SOCKET_MARKERS: [&str; 4] =
    ["AF_UNIX", "multiprocessing/managers.py", "_socket.socket.__init__", "listen EPERM"];
const SOCKET_MARKERS: [&str; 6] =
    [" socket", "socket:", ".sock", "Docker daemon", "docker daemon", "gpg-agent"];
/// Messages of git about a file that it cannot write, with or without the reason.
const GIT_WRITE_ERRORS: [&str; 3] =
    ["could not lock config file", "nable to create '", "could not write to"];

/// Returns an explanation if the output of a failed command shows that the sandbox caused the
/// failure.
pub fn explain_failure(
    output: &str,
    code: Option<i32>,
    profile: &SandboxProfile,
) -> Option<String> {
    if code == Some(0) || profile.backend == SandboxBackend::Off {
        return None;
    }
    let lines = || output.lines().rev().take(200).filter(|line| line.len() < 4_096);
    let contains =
        |markers: &[&str]| lines().any(|line| markers.iter().any(|marker| line.contains(marker)));
    if contains(&NOT_PERMITTED_ERRORS) && contains(&TRACING_MARKERS) {
        return Some(
            "The sandbox blocks tracing, so debuggers and tracers do not work. Print or log \
             instead, or ask the user to run the command."
                .to_owned(),
        );
    }
    if contains(&NOT_PERMITTED_ERRORS) && contains(&UNIX_SOCKET_MARKERS) {
        return Some(
            "The sandbox blocks Unix sockets. Listen on 127.0.0.1 instead of a path, avoid what \
             needs such a socket (multiprocessing.Manager, docker, ssh-agent), or ask the user to \
             run the command."
                .to_owned(),
        );
    }
    lines().find_map(|line| explain_line(line, profile))
}

fn explain_line(line: &str, profile: &SandboxProfile) -> Option<String> {
    let contains = |markers: &[&str]| markers.iter().any(|marker| line.contains(marker));
    let is_read_only = contains(&READ_ONLY_ERRORS);
    if line.contains("LeakSanitizer") {
        return Some(
            "The sandbox blocks tracing, which LeakSanitizer needs. Set \
             ASAN_OPTIONS=detect_leaks=0, or ask the user to run the command."
                .to_owned(),
        );
    }
    if !is_read_only
        && contains(&SOCKET_MARKERS)
        && (contains(&PERMISSION_DENIED_ERRORS) || contains(&NOT_PERMITTED_ERRORS))
    {
        return Some(
            "The sandbox blocks sockets of services on this machine. Work without the service, or \
             ask the user to run the command."
                .to_owned(),
        );
    }
    if contains(&GIT_WRITE_ERRORS) && profile.workspace_writable {
        let is_in_git = |path: &&str| path.split('/').any(|part| part == ".git");
        let relative =
            |path: &str| profile.root.join(path).strip_prefix(&profile.root).map(Path::to_owned);
        let is_protected = |path: &&str| {
            relative(path).is_ok_and(|path| {
                protected_names::write_block_reason(&path.to_string_lossy()).is_some()
            })
        };
        if let Some(path) = find_paths(line).filter(is_in_git).find(is_protected) {
            return explain_path(path, profile);
        }
    }
    if contains(&NOT_FOUND_ERRORS) {
        // Only a path in a hidden folder looks as if it did not exist.
        let path = failing_path(line)?;
        profile.hiding_path(&normalize_path(&profile.root.join(path)))?;
        return explain_path(path, profile);
    }
    if is_read_only || contains(&PERMISSION_DENIED_ERRORS) {
        return failing_path(line).and_then(|path| explain_path(path, profile)).or_else(|| {
            is_read_only.then(|| match profile.workspace_writable {
                true => "The sandbox allows writing only in the workspace and in $TMPDIR, and \
                         not to protected files. Write there instead."
                    .to_owned(),
                false => READ_ONLY_MODE_EXPLANATION.to_owned(),
            })
        });
    }
    if contains(&NOT_PERMITTED_ERRORS) {
        return Some(
            "The sandbox blocks this system call (mounts, namespaces, tracing and similar). Find \
             another way, or ask the user to run the command."
                .to_owned(),
        );
    }
    let is_loopback = contains(&["127.0.0.1", "localhost", "::1"]);
    if contains(&NETWORK_ERRORS) && is_loopback && profile.backend.has_namespaces() {
        return Some(
            "Nothing listens at this port in the sandbox, which has its own localhost. Servers \
             that run outside cannot be reached: start the server with `background`, and wait \
             until it listens."
                .to_owned(),
        );
    }
    if contains(&NETWORK_ERRORS) {
        return match profile.network {
            NetworkAccess::None => Some(
                "The sandbox has no network. Work offline, or fetch in a separate command such as \
                 `cargo fetch` or `npm ci`, which gets the network if approved."
                    .to_owned(),
            ),
            NetworkAccess::Proxy { .. } => Some(
                "The sandbox reaches allowed hosts only, and only through the proxy in \
                 HTTPS_PROXY. Ask the user to allow the host, or use a program that honors the \
                 proxy."
                    .to_owned(),
            ),
            NetworkAccess::Unrestricted => None,
        };
    }
    None
}

const READ_ONLY_MODE_EXPLANATION: &str = "Files are read-only here: the mode is plan, or the \
                                          command was allowed because it only reads. Describe \
                                          the change instead, or ask for another mode.";

/// Returns the path that an error message is about: the one right before the message, as in `ls:
/// a/b: Permission denied`, otherwise the last word that looks like a path.
fn failing_path(line: &str) -> Option<&str> {
    let messages =
        READ_ONLY_ERRORS.iter().chain(&PERMISSION_DENIED_ERRORS).chain(&NOT_FOUND_ERRORS);
    let before = messages
        .filter_map(|message| line.find(message))
        .min()
        .and_then(|start| line.get(..start))?;
    let before = before.trim_end().trim_end_matches(':');
    let segment = before.rsplit(": ").next().unwrap_or(before);
    let bare = segment.trim_matches(['\'', '"', '`', '‘', '’', ' ']);
    let bare = Some(bare).filter(|bare| !bare.is_empty() && !bare.contains(' '));
    find_paths(segment).last().or(bare).or_else(|| find_paths(line).last())
}

/// Returns the words of a line that look like paths.
fn find_paths(line: &str) -> impl Iterator<Item = &str> {
    let is_boundary =
        |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`' | '‘' | '’' | '(' | ')');
    let words = line.split(is_boundary).map(|word| word.trim_matches([':', ',', ';']));
    words.filter(|word| word.contains('/') || word.starts_with('.') && word.len() > 1)
}

fn explain_path(path: &str, profile: &SandboxProfile) -> Option<String> {
    let absolute = normalize_path(&profile.root.join(path));
    if let Some(hidden) = profile.hiding_path(&absolute) {
        // Of the hidden paths, only the home folder contains others.
        let is_home = profile
            .hidden_paths
            .iter()
            .any(|other| other.starts_with(hidden) && other.as_path() != hidden);
        return Some(if absolute.starts_with(&profile.root) {
            format!(
                "{path} is hidden from commands that the user has not approved, because of its \
                 name or a permission rule. Do without it, or ask the user to allow reading it."
            )
        } else if is_home {
            format!(
                "{path} is in the home folder, which is hidden from commands that the user has \
                 not approved. Do without it, or ask the user to add it to sandbox.read."
            )
        } else {
            format!(
                "{path} contains secrets, which the sandbox hides from commands. Do without it."
            )
        });
    }
    let Ok(relative) = absolute.strip_prefix(&profile.root) else {
        let writable = ["/tmp", "/var/tmp", "/dev", "/proc"].map(Path::new);
        let writable = writable.into_iter().chain([profile.temp_dir.as_path()]);
        let mut writable = writable.chain(profile.extra_writable.iter().map(|path| path.as_path()));
        return match writable.any(|folder| absolute.starts_with(folder)) {
            true => None,
            false => Some(format!(
                "{path} is outside the workspace, where the sandbox allows only reading. Write \
                 in the workspace or in $TMPDIR."
            )),
        };
    };
    if !profile.workspace_writable {
        return Some(READ_ONLY_MODE_EXPLANATION.to_owned());
    }
    let Some(reason) = protected_names::write_block_reason(&relative.to_string_lossy()) else {
        let is_restricted =
            profile.protected_paths.iter().any(|protected| absolute.starts_with(protected));
        return is_restricted.then(|| {
            format!(
                "A permission rule keeps commands from changing {path}. Leave it unchanged, or \
                 ask the user to allow the change."
            )
        });
    };
    Some(format!(
        "{path} is protected, because {reason}; commands cannot change it. Leave it unchanged, or \
         ask the user to change it."
    ))
}
