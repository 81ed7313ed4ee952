//! What a call would do, in plain words.

use super::sheet::{Part, Source};
use crate::lay;
use windlass_protocol::access::is_root;
use windlass_protocol::text::one_line;
use windlass_protocol::{Access, Repair};

/// Everything a call would do, as parts: what it is about first.
pub(crate) fn parts(accesses: &[Access], preview: Option<&str>) -> Vec<Part> {
    let named = match accesses {
        [access] => Access::headline(accesses).ends_with(&format!(" {}", access.subject())),
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
                if !is_root(folder) {
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
            | Access::Accept { .. } => rest.push(access.words()),
        }
    }
    if let Some(preview) = preview.filter(|preview| !preview.trim().is_empty()) {
        let shown = match is_diff(preview) {
            true => Source::Diff(preview.to_owned()),
            false => Source::Words(preview.to_owned()),
        };
        // What its heads say need not be said again.
        if let Source::Diff(diff) = &shown {
            let named = lay::files_of(diff);
            files.retain(|file| !named.contains(file));
        }
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
