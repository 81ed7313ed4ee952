//! What a plugin may touch, in lines that a person reads before they say yes, and what is different
//! from the last time they did.

use super::contents::Contents;
use super::manifest::Manifest;
use super::parts::Parts;
use super::{Lodging, Offer, Wired};
use crate::config::HookCommand;

/// How many changed files are named.
const MOST_NAMED: usize = 30;

/// What is different from the plugin that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// What it may touch now and could not.
    pub more: Vec<String>,
    /// What it could touch and no longer does.
    pub less: Vec<String>,
    /// Files, each behind a sign: `+` for new, `~` for changed, `-` for gone.
    pub files: Vec<String>,
    /// What is there cannot be compared with: it is no longer what was added.
    pub is_blind: bool,
}

impl Change {
    pub(super) fn between(before: Option<Offer>, now: &Offer) -> Change {
        let Some(before) = before else {
            return Change { more: now.touches.clone(), is_blind: true, ..Change::default() };
        };
        let apart = |one: &[String], other: &[String]| -> Vec<String> {
            one.iter().filter(|line| !other.contains(line)).cloned().collect()
        };
        Change {
            more: apart(&now.touches, &before.touches),
            less: apart(&before.touches, &now.touches),
            files: files(&before.contents, &now.contents),
            is_blind: false,
        }
    }

    /// Nothing is.
    pub fn is_none(&self) -> bool {
        *self == Change::default()
    }
}

fn files(before: &Contents, now: &Contents) -> Vec<String> {
    let mut files = now.since(before);
    let more = files.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        files.truncate(MOST_NAMED);
        files.push(format!("… and {more} more"));
    }
    files
}

/// The lines.
pub(super) fn of(manifest: &Manifest, parts: &Parts, lodging: &Lodging) -> Vec<String> {
    let mut lines: Vec<String> = parts.servers.iter().map(server).collect();
    for hook in &parts.hooks {
        let command = match &hook.command {
            HookCommand::Argv(words) => spelled(words),
            HookCommand::Shell(line) => format!("bash -c {line:?}"),
        };
        let about = hook.matcher.as_deref().unwrap_or("everything");
        let may = may(hook.write, &hook.network, "reaches no host");
        let (name, point) = (&hook.name, hook.point);
        lines.push(format!("hook {name}: at {point}, about {about}; runs {command}; {may}"));
    }
    let wanted = &manifest.wants.tools;
    for tool in &parts.tools {
        let usual = "reaches what `sandbox.network` names";
        let may = may(wanted.write, &wanted.network, usual);
        lines.push(format!("tool {}: runs {}; {may}", tool.name, tool.file));
    }
    let names = |kind: &str, names: Vec<&str>| match names.as_slice() {
        [] => None,
        [one] => Some(format!("1 {kind}: {one}")),
        several => Some(format!("{} {kind}s: {}", several.len(), several.join(", "))),
    };
    let skills = parts.skills.iter().map(|skill| skill.name.as_str()).collect();
    let commands = parts.commands.iter().map(|command| command.name.as_str()).collect();
    let agents = parts.agents.iter().map(|agent| agent.name.as_str()).collect();
    lines.extend(names("skill", skills));
    lines.extend(names("command", commands));
    lines.extend(names("agent", agents));
    lines.iter().map(|line| flat(&lodging.take_out(line))).collect()
}

/// Words as they are told apart.
fn spelled(words: &[String]) -> String {
    let odd = |word: &String| word.is_empty() || word.contains([' ', '"', '\'', '\\']);
    let spell = |word: &String| if odd(word) { format!("{word:?}") } else { word.clone() };
    words.iter().map(spell).collect::<Vec<_>>().join(" ")
}

/// A text that stays in its line, so that it cannot look like another one.
pub(super) fn flat(text: &str) -> String {
    let mut line = String::new();
    for letter in text.chars() {
        if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}') {
            line.extend(letter.escape_default());
        } else {
            line.push(letter);
        }
    }
    line
}

fn server(wired: &Wired) -> String {
    let server = &wired.server;
    let mut line = format!("server {}: ", wired.name);
    match (&server.command, &server.url) {
        (Some(command), _) => {
            line.push_str(&format!("runs {}", spelled(command)));
            let hosts = server.network.as_deref().unwrap_or_default();
            let usual = "reaches what `sandbox.network` names";
            line.push_str(&format!("; {}", may(server.write == Some(true), hosts, usual)));
            line.push_str(&list("sets", server.env.keys()));
        }
        (None, url) => {
            line.push_str(&format!("reaches {}", url.as_deref().unwrap_or_default()));
            line.push_str(&list("sends the headers", server.headers.keys()));
        }
    }
    line.push_str(&list("is given your", wired.reads.iter()));
    line
}

fn list<'a>(verb: &str, names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    if names.is_empty() { String::new() } else { format!("; {verb} {}", names.join(", ")) }
}

fn may(write: bool, hosts: &[String], usual: &str) -> String {
    let project = if write { "READS AND WRITES the project" } else { "reads the project" };
    let hosts = match hosts {
        [] => usual.to_owned(),
        hosts => format!("reaches {}", hosts.join(", ")),
    };
    format!("{project}, {hosts}")
}
