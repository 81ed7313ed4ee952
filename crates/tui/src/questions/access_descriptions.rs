//! Plain-language descriptions of the accesses of a tool call.

use super::question_content::{QuestionContentPart, QuotedText};
use crate::render;
use windlass_protocol::display_text::to_one_line;
use windlass_protocol::requested_access::is_workspace_root;
use windlass_protocol::{ApprovalKind, CallRepair, ToolAccess};

/// The longest pattern in the label of an answer.
const MAX_PATTERN_CHARS: usize = 40;

/// Describes all `ToolAccess`es of a call as parts, the main one first.
pub(crate) fn describe_accesses(
    accesses: &[ToolAccess],
    preview: Option<&str>,
) -> Vec<QuestionContentPart> {
    let is_in_headline = match accesses {
        [access] => ToolAccess::headline(accesses).ends_with(&format!(" {}", access.subject())),
        _ => false,
    };
    let mut parts = Vec::new();
    let mut rest: Vec<String> = Vec::new();
    let mut files = Vec::new();
    let runs_command =
        accesses.iter().any(|access| matches!(access, ToolAccess::RunCommand { .. }));
    for access in accesses {
        match access {
            ToolAccess::RunCommand { command, folder } => {
                parts.push(QuestionContentPart::new("", QuotedText::Command(command.clone())));
                if !is_workspace_root(folder) {
                    parts.push(QuestionContentPart::new(
                        "in",
                        QuotedText::Prose(to_one_line(folder)),
                    ));
                }
            }
            // The command of the `RunCommand` access already shows it.
            ToolAccess::LeaveSandbox { .. } if runs_command => {}
            ToolAccess::LeaveSandbox { command } => {
                parts.push(QuestionContentPart::new("", QuotedText::Command(command.clone())));
            }
            ToolAccess::StartProcess { process, command } => {
                parts.push(QuestionContentPart::new("", QuotedText::Command(command.clone())));
                parts.push(QuestionContentPart::new("as", QuotedText::Prose(to_one_line(process))));
            }
            ToolAccess::Edit { path } => files.push(to_one_line(path)),
            // The headline already says it.
            ToolAccess::ReadSkill { .. }
            | ToolAccess::Connect { .. }
            | ToolAccess::Fetch { .. }
            | ToolAccess::Subagent { .. }
            | ToolAccess::UseTool { .. }
                if is_in_headline => {}
            ToolAccess::Read { .. }
            | ToolAccess::Search { .. }
            | ToolAccess::ReadBlob { .. }
            | ToolAccess::ReadSkill { .. }
            | ToolAccess::Connect { .. }
            | ToolAccess::Fetch { .. }
            | ToolAccess::Subagent { .. }
            | ToolAccess::UseTool { .. }
            | ToolAccess::AcceptDefinition { .. } => rest.push(access.describe()),
        }
    }
    if let Some(preview) = preview.filter(|preview| !preview.trim().is_empty()) {
        let quoted = match is_diff(preview) {
            true => QuotedText::Diff(preview.to_owned()),
            false => QuotedText::Prose(preview.to_owned()),
        };
        // The headers of the diff already name these files.
        if let QuotedText::Diff(diff) = &quoted {
            let diff_files = render::diff_files(diff);
            files.retain(|file| !diff_files.contains(file));
        }
        parts.push(QuestionContentPart::new("", quoted));
    }
    if !files.is_empty() {
        parts.push(QuestionContentPart::new("file", QuotedText::Prose(files.join("\n"))));
    }
    if !rest.is_empty() {
        let label = if parts.is_empty() { "" } else { "also" };
        parts.push(QuestionContentPart::new(label, QuotedText::Prose(rest.join("\n"))));
    }
    parts
}

/// Describes the calls of a kind for the label of an answer. A pattern of the model's choice is
/// part of it only if it can imitate nothing.
pub(crate) fn kind_label(kind: &ApprovalKind) -> String {
    let ApprovalKind::Commands { pattern } = kind else { return kind.describe() };
    let is_plain_char =
        |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ' ' | '*' | ':' | '@');
    let is_plain = pattern.chars().all(is_plain_char)
        && !pattern.contains("  ")
        && pattern.chars().count() <= MAX_PATTERN_CHARS;
    if is_plain { kind.describe() } else { "all commands of this kind".to_owned() }
}

/// Describes the `CallRepair` of a malformed call.
pub(crate) fn describe_repair(repair: &CallRepair) -> QuestionContentPart {
    let CallRepair { arguments, changes } = repair;
    let text = format!(
        "The call was malformed and was repaired: {}. Repaired arguments: {arguments}",
        changes.join("; ")
    );
    QuestionContentPart::new("note", QuotedText::Prose(text))
}

/// Returns true for a unified diff.
fn is_diff(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("@@ "))
        || (text.starts_with("--- ") && text.lines().any(|line| line.starts_with("+++ ")))
}
