//! Describes changes since a folder was trusted, in lines for the user.
//!
//! Names and texts come from the repository. A name is escaped, so that it stays one line and
//! imitates nothing else. A text is split only at line feeds, so that each line has its mark in
//! front. The front end makes control characters visible.

use super::project_settings_summary::describe_settings;
use super::scan::{ScannedFile, ScannedFileKind, ScannedFiles, is_settings_file};
use similar::TextDiff;
use std::time::Duration;

/// The time to search for a minimal diff.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);

pub(super) fn display_name(name: &str) -> String {
    name.escape_debug().to_string()
}

/// Returns the title of a file in a list.
pub(super) fn file_title(name: &str, file: &ScannedFile) -> String {
    let name = display_name(name);
    match file.kind {
        ScannedFileKind::File => name,
        ScannedFileKind::Executable => format!("{name} (a program)"),
        ScannedFileKind::Link => {
            let target = file.text.as_deref().map_or_else(|| "elsewhere".to_owned(), display_name);
            format!("{name} (a symbolic link to {target}, not followed)")
        }
    }
}

/// Returns the settings of a file. A link has none; `None` if the text was not kept.
fn settings_lines(name: &str, file: &ScannedFile) -> Option<Vec<String>> {
    match file.kind {
        ScannedFileKind::Link => Some(Vec::new()),
        ScannedFileKind::File | ScannedFileKind::Executable => {
            Some(describe_settings(name, file.text.as_deref()?))
        }
    }
}

/// Returns the lines to compare. Settings files are compared by setting, never as text, so that a
/// secret in a config is not shown.
fn comparable_lines(name: &str, file: &ScannedFile) -> Option<Vec<String>> {
    if is_settings_file(name) {
        return settings_lines(name, file);
    }
    Some(file.text.as_deref()?.split('\n').map(str::to_owned).collect())
}

/// Describes the difference line by line.
pub(super) fn diff_lines(before: &ScannedFiles, now: &ScannedFiles) -> Vec<String> {
    let mut lines = Vec::new();
    let removed = before.iter().filter(|(name, _)| !now.contains_key(*name));
    lines.extend(removed.map(|(name, file)| format!("removed: {}", file_title(name, file))));
    for (name, file) in now {
        match before.get(name) {
            None => lines.push(format!("added: {}", file_title(name, file))),
            Some(old) if old.kind == file.kind && old.digest == file.digest => {}
            Some(old) => push_changed_file(name, old, file, &mut lines),
        }
    }
    lines
}

fn push_changed_file(name: &str, old: &ScannedFile, new: &ScannedFile, lines: &mut Vec<String>) {
    lines.push(match (old.kind, new.kind) {
        (old, new) if old == new => format!("changed: {}", display_name(name)),
        (ScannedFileKind::Link, ScannedFileKind::File | ScannedFileKind::Executable) => {
            format!("changed: {} is no longer a symbolic link", display_name(name))
        }
        (ScannedFileKind::File | ScannedFileKind::Executable, ScannedFileKind::Link) => {
            format!("changed: {}", file_title(name, new))
        }
        (ScannedFileKind::File, _) => {
            format!("changed: {} is now executable", display_name(name))
        }
        (ScannedFileKind::Executable | ScannedFileKind::Link, _) => {
            format!("changed: {} is no longer executable", display_name(name))
        }
    });
    if old.digest == new.digest {
        return;
    }
    let Some((before, now)) = comparable_lines(name, old).zip(comparable_lines(name, new)) else {
        lines.push("  (not text, or too long to compare; review the file yourself)".to_owned());
        return;
    };
    let changes = unified_diff(&as_slices(&before), &as_slices(&now));
    if changes.is_empty() {
        lines.push("  (only comments, formatting or an API key changed)".to_owned());
    }
    lines.extend(changes.into_iter().map(|line| format!("  {line}")));
}

fn as_slices(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
}

fn unified_diff(old: &[&str], new: &[&str]) -> Vec<String> {
    let diff =
        TextDiff::configure().newline_terminated(false).timeout(DIFF_TIMEOUT).diff_slices(old, new);
    let text = diff.unified_diff().context_radius(3).to_string();
    text.split_terminator('\n').map(str::to_owned).collect()
}
