//! What a call would do, in plain words.

use super::sheet::{Part, Source};
use windlass_protocol::{Access, Repair};

/// What stands over a question, wholly in our words. A name that a model chose is part of it only
/// where it cannot be taken for anything else.
pub(crate) fn headline(accesses: &[Access]) -> String {
    let Some(first) = accesses.iter().max_by_key(|access| std::cmp::Reverse(rank(access))) else {
        return "Go on".to_owned();
    };
    let alike = |access: &&Access| rank(access) == rank(first);
    let many = accesses.iter().filter(alike).count();
    let named = |with: &str, without: &str, name: &str| match plain(name) {
        true => format!("{with} {name}"),
        false => without.to_owned(),
    };
    match first {
        Access::Leave { .. } => "Leave the sandbox".to_owned(),
        Access::Run { .. } => counted(many, "Run a command", "Run", "commands"),
        Access::Engage { .. } => "Start a program and keep it running".to_owned(),
        Access::Accept { .. } => "Take a tool's new definition".to_owned(),
        Access::Edit { .. } => counted(many, "Change a file", "Change", "files"),
        Access::Connect { host } if host == "*" => "Reach the network".to_owned(),
        Access::Connect { host } => named("Reach", "Reach a host", host),
        Access::Fetch { host } => named("Fetch from", "Fetch from a host", host),
        Access::Use { tool } => named("Use the tool", "Use a tool", tool),
        Access::Task { agent } => named("Give work to the agent", "Give work to an agent", agent),
        Access::Read { .. } => counted(many, "Read a file", "Read", "files"),
        Access::Search { .. } => counted(many, "Look through a folder", "Look through", "folders"),
        Access::Recall { .. } => "Read an output that was kept".to_owned(),
        Access::Skill { name } => named("Read the skill", "Read a skill", name),
    }
}

fn counted(many: usize, one: &str, verb: &str, things: &str) -> String {
    if many == 1 { one.to_owned() } else { format!("{verb} {many} {things}") }
}

/// True for a name of one word that nothing can be hidden in.
pub(crate) fn plain(name: &str) -> bool {
    let fits = |sign: char| sign.is_ascii_alphanumeric() || "._-:/@".contains(sign);
    !name.is_empty() && name.len() <= 40 && name.chars().all(fits)
}

/// The smaller, the more a person wants to know of it first.
fn rank(access: &Access) -> u8 {
    match access {
        Access::Leave { .. } => 0,
        Access::Run { .. } => 1,
        Access::Engage { .. } => 2,
        Access::Accept { .. } => 3,
        Access::Edit { .. } => 4,
        Access::Connect { .. } => 5,
        Access::Fetch { .. } => 6,
        Access::Use { .. } => 7,
        Access::Task { .. } => 8,
        Access::Read { .. } => 9,
        Access::Search { .. } => 10,
        Access::Recall { .. } => 11,
        Access::Skill { .. } => 12,
    }
}

/// What it would do beyond what was shown, in a line.
fn also(access: &Access) -> String {
    match access {
        Access::Leave { command } => format!("runs outside of the sandbox: {command}"),
        Access::Run { command, .. } => format!("runs {command}"),
        Access::Engage { servant, command } => format!("starts {servant}: {command}"),
        Access::Accept { what } => format!("takes the new definition of {what}"),
        Access::Edit { path } => format!("changes {path}"),
        Access::Connect { host } if host == "*" => "reaches the network".to_owned(),
        Access::Connect { host } => format!("reaches {host}"),
        Access::Fetch { host } => format!("fetches from {host}"),
        Access::Use { tool } => format!("uses {tool}"),
        Access::Task { agent } => format!("gives work to {agent}"),
        Access::Read { path } => format!("reads {path}"),
        Access::Search { path } => format!("looks through {path}"),
        Access::Recall { blob } => format!("reads the output {blob}"),
        Access::Skill { name } => format!("reads the skill {name}"),
    }
}

/// Everything a call would do, as parts: what it is about first.
pub(crate) fn parts(accesses: &[Access], preview: Option<&str>) -> Vec<Part> {
    let named = match accesses {
        [access] => headline(accesses).ends_with(&format!(" {}", access.subject())),
        _ => false,
    };
    let mut parts = Vec::new();
    let mut rest: Vec<String> = Vec::new();
    let mut files = Vec::new();
    let runs = accesses.iter().any(|access| matches!(access, Access::Run { .. }));
    for access in accesses {
        match access {
            Access::Run { command, folder } => {
                parts.push(Part::new("", Source::Command(command.clone())));
                if !matches!(folder.as_str(), "" | ".") {
                    parts.push(Part::new("in", Source::Words(one_line(folder))));
                }
            }
            // It says what the command beside it says.
            Access::Leave { .. } if runs => {}
            Access::Leave { command } => {
                parts.push(Part::new("", Source::Command(command.clone())));
            }
            Access::Engage { servant, command } => {
                parts.push(Part::new("", Source::Command(command.clone())));
                parts.push(Part::new("as", Source::Words(one_line(servant))));
            }
            Access::Edit { path } => files.push(one_line(path)),
            // The headline says it.
            Access::Skill { .. }
            | Access::Connect { .. }
            | Access::Fetch { .. }
            | Access::Task { .. }
            | Access::Use { .. }
                if named => {}
            Access::Read { .. }
            | Access::Search { .. }
            | Access::Recall { .. }
            | Access::Skill { .. }
            | Access::Connect { .. }
            | Access::Fetch { .. }
            | Access::Task { .. }
            | Access::Use { .. }
            | Access::Accept { .. } => rest.push(one_line(&also(access))),
        }
    }
    if let Some(preview) = preview.filter(|preview| !preview.trim().is_empty()) {
        let shown = match is_diff(preview) {
            true => Source::Diff(preview.to_owned()),
            false => Source::Words(preview.to_owned()),
        };
        parts.push(Part::new("", shown));
    }
    if !files.is_empty() {
        parts.push(Part::new("file", Source::Words(files.join("\n"))));
    }
    if !rest.is_empty() {
        let label = if parts.is_empty() { "" } else { "also" };
        parts.push(Part::new(label, Source::Words(rest.join("\n"))));
    }
    parts
}

/// What was made of a call that was not quite right.
pub(crate) fn repaired(repair: &Repair) -> Part {
    let Repair { arguments, changes } = repair;
    let text = format!("{}. It means: {arguments}", changes.join("; "));
    Part::new("note", Source::Words(format!("It was not quite right: {text}")))
}

/// True for a change in unified form.
fn is_diff(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("@@ "))
        || (text.starts_with("--- ") && text.lines().any(|line| line.starts_with("+++ ")))
}

/// A text of several lines must not look like several entries.
pub(crate) fn one_line(text: &str) -> String {
    text.replace("\r\n", "⏎").replace('\n', "⏎")
}
