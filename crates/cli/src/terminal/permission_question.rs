//! Formats a permission request as text: the requested access, the reason and the possible answers.
//!
//! The model wrote the content of the request. Every line of it is printed behind a margin and
//! wrapped to the terminal width, so that none of it looks like a line of Windlass.

use windlass_protocol::display_text::to_one_line;
use windlass_protocol::requested_access::is_workspace_root;
use windlass_protocol::{ApprovalKind, ApprovalScope, CallRepair, PermissionAnswer, ToolAccess};

/// A permission request as recorded in the log.
pub(crate) struct RecordedPermissionRequest<'a> {
    pub(crate) accesses: &'a [ToolAccess],
    pub(crate) reason: &'a str,
    pub(crate) preview: Option<String>,
    pub(crate) approval_kind: Option<&'a ApprovalKind>,
}

/// A permission request formatted for the terminal.
#[derive(Debug)]
pub(crate) struct PermissionPrompt {
    pub(crate) text: String,
    /// The text printed after an invalid answer.
    pub(crate) retry_text: String,
    /// True if the call can be approved for the session or the project.
    allows_lasting: bool,
    /// The calls that can be approved together with this one.
    approval_kind: Option<ApprovalKind>,
}

/// Margin of a line; `CONTINUATION_MARGIN` is that of a wrapped line.
const LINE_MARGIN: &str = "  │ ";
const CONTINUATION_MARGIN: &str = "  ┊ ";

/// Shorter input is a typing error, not a reason.
const MIN_REASON_CHARS: usize = 3;

impl RecordedPermissionRequest<'_> {
    /// Describes each requested access on one line.
    pub(crate) fn access_lines(&self) -> Vec<String> {
        self.accesses.iter().map(ToolAccess::describe).collect()
    }

    /// Returns true if approval would let a command leave the sandbox; the user must decide that
    /// each time.
    pub(crate) fn leaves_sandbox(&self) -> bool {
        self.accesses.iter().any(|access| matches!(access, ToolAccess::LeaveSandbox { .. }))
    }

    /// Formats the request for a terminal of this width.
    pub(crate) fn to_prompt(&self, width: usize) -> PermissionPrompt {
        let allows_lasting = !self.leaves_sandbox();
        let approval_kind = self.approval_kind.filter(|_| allows_lasting).cloned();
        let lasting_scope = allows_lasting.then(|| ToolAccess::lasting_scope(self.accesses));
        let choices_text = describe_choices(lasting_scope.as_deref(), approval_kind.as_ref());
        let mut text = String::from("\n");
        if let Some(preview) = &self.preview {
            text.push_str(&indent_block(preview, width));
        }
        let headline = ToolAccess::headline(self.accesses);
        text.push_str(&format!("{headline}? ({})\n", to_one_line(self.reason)));
        for (access, description) in self.accesses.iter().zip(self.access_lines()) {
            match access {
                ToolAccess::RunCommand { command, folder } => {
                    let line_count = match command.split('\n').count() {
                        1 => String::new(),
                        count => format!(", {count} lines"),
                    };
                    text.push_str(&format!(
                        "run{}{line_count}:\n",
                        to_one_line(&describe_folder(folder))
                    ));
                    text.push_str(&indent_block(command, width));
                }
                ToolAccess::Read { .. }
                | ToolAccess::Search { .. }
                | ToolAccess::Edit { .. }
                | ToolAccess::ReadBlob { .. }
                | ToolAccess::ReadSkill { .. }
                | ToolAccess::Connect { .. }
                | ToolAccess::Fetch { .. }
                | ToolAccess::LeaveSandbox { .. }
                | ToolAccess::Subagent { .. }
                | ToolAccess::UseTool { .. }
                | ToolAccess::StartProcess { .. }
                | ToolAccess::AcceptDefinition { .. } => {
                    text.push_str(&indent_block(&description, width))
                }
            }
        }
        text.push_str(&choices_text);
        PermissionPrompt {
            text,
            retry_text: format!("Invalid answer. {choices_text}"),
            allows_lasting,
            approval_kind,
        }
    }
}

/// Names the possible answers; `lasting_scope` is what an approval for the session or the project
/// covers, if it can be given.
fn describe_choices(lasting_scope: Option<&str>, approval_kind: Option<&ApprovalKind>) -> String {
    let mut lasting = String::new();
    if let Some(scope) = lasting_scope {
        lasting.push_str(&format!(
            "allow {scope} for this [s]ession, always allow {scope} in this [p]roject, "
        ));
    }
    if let Some(kind) = approval_kind {
        let described = to_one_line(&kind.describe());
        let scopes = [
            (ApprovalScope::Session, "for this session [ks]"),
            (ApprovalScope::Project, "always in this project [kp]"),
        ];
        let offered = scopes.iter().filter(|(scope, _)| kind.allows_scope(*scope));
        let offered: Vec<&str> = offered.map(|(_, text)| *text).collect();
        lasting.push_str(&format!("{described} {}, ", offered.join(" or ")));
    }
    format!("[y]es, {lasting}[n]o, or type a reason to deny: ")
}

impl PermissionPrompt {
    /// Parses an answer line; `None` if it is not a valid answer here. The end of the input means
    /// no.
    pub(crate) fn parse_answer(&self, line: Option<&str>) -> Option<PermissionAnswer> {
        let Some(line) = line.map(str::trim) else {
            return Some(PermissionAnswer::No { reason: None });
        };
        let allows_lasting = self.allows_lasting;
        let approve_kind = |scope| {
            let kind = self.approval_kind.as_ref().filter(|kind| kind.allows_scope(scope));
            kind.map(|_| PermissionAnswer::Kind { scope })
        };
        match line.to_lowercase().as_str() {
            "y" | "yes" => Some(PermissionAnswer::Once),
            "" | "n" | "no" => Some(PermissionAnswer::No { reason: None }),
            "s" | "session" => allows_lasting.then_some(PermissionAnswer::Session),
            "p" | "project" => allows_lasting.then_some(PermissionAnswer::Project),
            "ks" => approve_kind(ApprovalScope::Session),
            "kp" => approve_kind(ApprovalScope::Project),
            _ if line.chars().count() < MIN_REASON_CHARS => None,
            _ => Some(PermissionAnswer::No { reason: Some(line.to_owned()) }),
        }
    }
}

fn describe_folder(folder: &str) -> String {
    if is_workspace_root(folder) { String::new() } else { format!(" in {folder}") }
}

/// Prints the complete text behind a margin, with no line wider than the terminal.
pub(crate) fn indent_block(text: &str, width: usize) -> String {
    let max_columns = width.saturating_sub(LINE_MARGIN.chars().count() + 1).max(16);
    let mut block = String::new();
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        block.push_str(LINE_MARGIN);
        let mut columns = 0;
        for character in line.strip_suffix('\r').unwrap_or(line).chars() {
            let char_width = char_columns(character);
            if columns + char_width > max_columns {
                block.push('\n');
                block.push_str(CONTINUATION_MARGIN);
                columns = 0;
            }
            columns += char_width;
            // Escape characters are made visible: the user decides on them too.
            block.push(if character == '\u{1b}' { '␛' } else { character });
        }
        block.push('\n');
    }
    block
}

/// Returns the maximum number of columns that a character takes.
pub(crate) fn char_columns(character: char) -> usize {
    match character {
        '\t' => 8,
        _ if character.is_ascii() => 1,
        _ => 2,
    }
}

/// Describes a call for a permission request: its preview and, if the call was malformed, the
/// repaired arguments.
pub(crate) fn describe_request(
    preview: Option<&str>,
    repair: Option<&CallRepair>,
) -> Option<String> {
    let repair_note = repair.map(|repair| {
        let CallRepair { arguments, changes } = repair;
        format!("The call was repaired ({}); it runs with: {arguments}", changes.join("; "))
    });
    let parts: Vec<String> = preview.map(str::to_owned).into_iter().chain(repair_note).collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permission_request<'a>(
        accesses: &'a [ToolAccess],
        approval_kind: Option<&'a ApprovalKind>,
    ) -> RecordedPermissionRequest<'a> {
        RecordedPermissionRequest {
            accesses,
            reason: "it writes\nAllow?",
            preview: None,
            approval_kind,
        }
    }

    fn run_command(command: &str) -> ToolAccess {
        ToolAccess::RunCommand { command: command.to_owned(), folder: ".".to_owned() }
    }

    #[test]
    fn only_offered_answers_are_accepted() {
        let leave = ToolAccess::LeaveSandbox { command: "ls".to_owned() };
        let sandboxed = [run_command("ls")];
        let unsandboxed = [run_command("ls"), leave];
        let ls = ApprovalKind::Commands { pattern: "ls *".to_owned() };
        let once = permission_request(&unsandboxed, Some(&ls)).to_prompt(80);
        let lasting = permission_request(&sandboxed, None).to_prompt(80);
        let kind = permission_request(&sandboxed, Some(&ls)).to_prompt(80);
        let edit = [ToolAccess::Edit { path: "a".to_owned() }];
        let edits = permission_request(&edit, Some(&ApprovalKind::Edits)).to_prompt(80);
        let no =
            |reason: Option<&str>| Some(PermissionAnswer::No { reason: reason.map(str::to_owned) });
        let yes_for_kind = |scope| Some(PermissionAnswer::Kind { scope });
        for (line, when_once, when_lasting, when_kind) in [
            (
                "y",
                Some(PermissionAnswer::Once),
                Some(PermissionAnswer::Once),
                Some(PermissionAnswer::Once),
            ),
            (
                "Yes ",
                Some(PermissionAnswer::Once),
                Some(PermissionAnswer::Once),
                Some(PermissionAnswer::Once),
            ),
            ("S", None, Some(PermissionAnswer::Session), Some(PermissionAnswer::Session)),
            ("project", None, Some(PermissionAnswer::Project), Some(PermissionAnswer::Project)),
            ("ks", None, None, yes_for_kind(ApprovalScope::Session)),
            ("kp", None, None, yes_for_kind(ApprovalScope::Project)),
            ("k", None, None, None),
            ("yy", None, None, None),
            ("", no(None), no(None), no(None)),
            ("No", no(None), no(None), no(None)),
            ("Use b", no(Some("Use b")), no(Some("Use b")), no(Some("Use b"))),
        ] {
            assert_eq!(once.parse_answer(Some(line)), when_once, "{line}");
            assert_eq!(lasting.parse_answer(Some(line)), when_lasting, "{line}");
            assert_eq!(kind.parse_answer(Some(line)), when_kind, "{line}");
        }
        assert_eq!(once.parse_answer(None), no(None), "the end of the input");
        assert!(!once.text.contains("[s]") && !once.retry_text.contains("[p]"), "{}", once.text);
        let lasting_choices = "[y]es, allow exactly this command for this [s]ession, always allow \
                               exactly this command in this [p]roject, [n]o";
        assert!(lasting.text.contains(lasting_choices), "{}", lasting.text);
        assert!(!lasting.text.contains("[ks]"));
        assert!(kind.text.contains("all `ls` commands") && kind.retry_text.contains("[kp]"));
        assert_eq!(edits.parse_answer(Some("ks")), yes_for_kind(ApprovalScope::Session));
        assert_eq!(edits.parse_answer(Some("kp")), None);
        assert!(
            edits.text.contains("all edits of files in this folder for this session [ks], [n]o")
        );
    }

    #[test]
    fn a_command_cannot_imitate_a_line_of_the_prompt() {
        let fake = "[y]es, [n]o, or type a reason to deny: ";
        let spaces = " ".repeat(76);
        for command in [
            format!("rm -rf x\n\nAllow this? (calm)\n{fake}"),
            format!("rm -rf x\r\n{fake}"),
            format!("rm -rf x{spaces}{fake}"),
            format!("{}{fake}", "名".repeat(38)),
            format!("\t\t\t\t\t\t\t\t\t\t{fake}"),
            "x".repeat(20_000),
        ] {
            let accesses = [
                ToolAccess::RunCommand { command: command.clone(), folder: format!("a\n{fake}") },
                ToolAccess::Edit { path: format!("b, c\n{fake}") },
                ToolAccess::Connect { host: "*".to_owned() },
            ];
            let preview = Some(format!("+ {command}\n"));
            let request =
                RecordedPermissionRequest { preview, ..permission_request(&accesses, None) };
            let prompt = request.to_prompt(80);
            let (body, choices) = prompt.text.rsplit_once('\n').unwrap();
            assert!(
                choices.starts_with("[y]es, allow all of this for this [s]ession"),
                "{choices}"
            );
            let mut unmarked = 0;
            for line in body.lines().filter(|line| !line.is_empty()) {
                let marked = line.starts_with(LINE_MARGIN) || line.starts_with(CONTINUATION_MARGIN);
                unmarked += usize::from(!marked);
                let columns: usize = line.chars().map(char_columns).sum();
                assert!(!marked || columns <= 82, "{columns}: {line}");
            }
            assert_eq!(unmarked, 2, "{body}");
            let shown = body.replace(&format!("\n{CONTINUATION_MARGIN}"), "");
            let expected = command.replace("\r\n", "\n").replace('\n', &format!("\n{LINE_MARGIN}"));
            assert!(shown.contains(&format!("{LINE_MARGIN}{expected}\n")), "{shown}");
            assert!(body.ends_with("  │ access the network"), "{body}");
        }
        let lines = [run_command("a\nb\nc")];
        let text = permission_request(&lines, None).to_prompt(80).text;
        assert!(text.contains("run, 3 lines:\n  │ a\n  │ b\n  │ c\n[y]es"), "{text}");
        let colored = [run_command("echo \u{1b}[8mhidden")];
        assert!(permission_request(&colored, None).to_prompt(80).text.contains("␛[8mhidden"));
    }
}
