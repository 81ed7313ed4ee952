//! Why a command failed, where it was the cage: one sentence that a model can act on.
//!
//! Programs say `Permission denied` and leave open whose permission. This reads their words and
//! adds what they cannot know. It guesses only where the words name what the cage closes.

use super::{Backend, Cage, Network, names};
use std::path::Path;

const READ_ONLY: [&str; 3] = ["Read-only file system", "EROFS", "Errno 30"];
const DENIED: [&str; 5] =
    ["Permission denied", "permission denied", "EACCES", "Errno 13", "Device or resource busy"];
const UNREACHABLE: [&str; 14] = [
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
const FORBIDDEN: [&str; 4] =
    ["Operation not permitted", "operation not permitted", "EPERM", "Errno 1]"];
const SOCKET: [&str; 6] =
    [" socket", "socket:", ".sock", "Docker daemon", "docker daemon", "gpg-agent"];
/// What git says of a file that it cannot write, with or without the reason.
const LOCKED: [&str; 3] = ["could not lock config file", "nable to create '", "could not write to"];

/// The sentence, if the output of a failed command has the marks of its cage.
pub fn explain(output: &str, code: Option<i32>, cage: &Cage) -> Option<String> {
    if code == Some(0) || cage.backend == Backend::Off {
        return None;
    }
    let mut lines = output.lines().rev().take(200).filter(|line| line.len() < 4_096);
    lines.find_map(|line| sentence(line, cage))
}

fn sentence(line: &str, cage: &Cage) -> Option<String> {
    let says = |marks: &[&str]| marks.iter().any(|mark| line.contains(mark));
    let closed = says(&READ_ONLY);
    if !closed && says(&SOCKET) && (says(&DENIED) || says(&FORBIDDEN)) {
        return Some("The sandbox gives commands no sockets of services on this machine; do it without that service, or ask the person to run it.".to_owned());
    }
    if says(&LOCKED) && cage.writable {
        let git = |path: &&str| path.split('/').any(|part| part == ".git");
        let within = |path: &str| cage.root.join(path).strip_prefix(&cage.root).map(Path::to_owned);
        let shut = |path: &&str| {
            within(path).is_ok_and(|path| names::closed(&path.to_string_lossy()).is_some())
        };
        if let Some(path) = paths(line).filter(git).find(shut) {
            return about(path, cage);
        }
    }
    if closed || says(&DENIED) {
        return named(line).and_then(|path| about(path, cage)).or_else(|| {
            closed.then(|| match cage.writable {
                true => "The sandbox lets commands write in the workspace and in $TMPDIR only, and not to protected files; write there instead.".to_owned(),
                false => PLAN.to_owned(),
            })
        });
    }
    if says(&FORBIDDEN) {
        return Some("The sandbox does not permit this system call (mounts, namespaces, tracing and the like); find a way without it, or ask the person to run it.".to_owned());
    }
    if says(&UNREACHABLE) {
        return match cage.network {
            Network::None => Some("The sandbox has no network; work with what is here, or ask for the network.".to_owned()),
            Network::Proxy { .. } => Some("The sandbox reaches permitted hosts only, and only through the proxy in HTTPS_PROXY; ask for the host, or use a program that goes by the proxy.".to_owned()),
            Network::Open => None,
        };
    }
    None
}

const PLAN: &str = "Nothing can be written in this mode, nor by a command that was let through because it only looks; say what you would change, or ask for another mode.";

/// The path that a complaint is about: what stands right before it, as in `ls: a/b: Permission
/// denied`, or else the last word that looks like a path.
fn named(line: &str) -> Option<&str> {
    let marks = READ_ONLY.iter().chain(&DENIED);
    let before = marks.filter_map(|mark| line.find(mark)).min().and_then(|at| line.get(..at))?;
    let before = before.trim_end().trim_end_matches(':');
    let last = before.rsplit(": ").next().unwrap_or(before);
    let bare = last.trim_matches(['\'', '"', '`', '‘', '’', ' ']);
    let bare = Some(bare).filter(|bare| !bare.is_empty() && !bare.contains(' '));
    paths(last).last().or(bare).or_else(|| paths(line).last())
}

/// Words of a line that look like paths.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let edge = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`' | '‘' | '’' | '(' | ')');
    let words = line.split(edge).map(|word| word.trim_matches([':', ',', ';']));
    words.filter(|word| word.contains('/') || word.starts_with('.') && word.len() > 1)
}

fn about(path: &str, cage: &Cage) -> Option<String> {
    let spelled = Path::new(path);
    let whole = cage.root.join(spelled);
    if cage.hidden.iter().chain(&cage.private).any(|hidden| whole.starts_with(hidden)) {
        return Some(format!(
            "{path} holds secrets, which the sandbox does not show to commands; do without it."
        ));
    }
    let Ok(within) = whole.strip_prefix(&cage.root) else {
        let free = ["/tmp", "/var/tmp", "/dev", "/proc"].map(Path::new);
        let free = free.into_iter().chain([cage.temp.as_path()]);
        let free = free.chain(cage.write.iter().map(|path| path.as_path()));
        let mut free = free;
        return match free.any(|folder| whole.starts_with(folder)) {
            true => None,
            false => Some(format!(
                "{path} is outside the workspace, where the sandbox lets commands read only; write in the workspace or in $TMPDIR."
            )),
        };
    };
    if !cage.writable {
        return Some(PLAN.to_owned());
    }
    let why = names::closed(&within.to_string_lossy())?;
    Some(format!(
        "{path} is protected, because {why}; commands cannot change it. Leave it as it is, or ask the person to change it."
    ))
}
