//! A permission request: the accesses of a call, the reason for asking, and the available answers.

use super::access_descriptions;
use super::answer_list::{AnswerRow, RowCursor, RowKeyOutcome};
use super::choices::{AnswerKeyChoice, pressed_key_label};
use super::question_content::{QuestionContentPart, QuotedText};
use crate::keys::{KeyScope, UiCommand};
use crate::text_input::TextInput;
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use crossterm::event::{KeyCode, KeyEvent};
use windlass_protocol::display_text::to_one_line;
use windlass_protocol::{
    ApprovalKind, ApprovalScope, CallRepair, PermissionAnswer, RequestDanger, ToolAccess,
};

/// The content of a `PermissionAsked` fact.
pub(crate) struct PermissionDetails<'a> {
    pub(crate) accesses: &'a [ToolAccess],
    pub(crate) reason: &'a str,
    pub(crate) danger: RequestDanger,
    pub(crate) preview: Option<&'a str>,
    pub(crate) approval_kind: Option<&'a ApprovalKind>,
    pub(crate) repair: Option<&'a CallRepair>,
    /// The subagent that asks; `None` for the session on the screen.
    pub(crate) agent: Option<&'a str>,
}

/// A permission request as shown to the user.
#[derive(Clone, Debug)]
pub(crate) struct PermissionQuestion {
    pub(crate) headline: String,
    /// The reason of a dangerous request, shown first and in the color of its danger.
    pub(crate) warning: Option<String>,
    pub(crate) danger: RequestDanger,
    pub(crate) parts: Vec<QuestionContentPart>,
    /// True if the call can be approved for the session or the project.
    allows_lasting: bool,
    /// The accesses that an approval for the session or the project covers, in words.
    lasting_scope: String,
    /// The calls that can be approved together with this one.
    approval_kind: Option<ApprovalKind>,
    /// `approval_kind` in words that can stand outside the margin.
    kind_label: String,
    /// The open input for the reason of a denial.
    pub(crate) denial_reason: Option<TextInput>,
    pub(crate) cursor: RowCursor,
}

/// The action of an `AnswerRow`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AnswerAction {
    Answer(PermissionAnswer),
    /// Opens the input for a reason.
    AskReason,
}

/// The effect of a key on a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QuestionKeyOutcome<T> {
    /// The key has no meaning here.
    Ignored,
    Handled,
    /// The user asked for the full view.
    ShowFullView,
    Answer(T),
}

impl<T> QuestionKeyOutcome<T> {
    /// Converts the answer.
    pub(crate) fn map<U>(self, convert: impl FnOnce(T) -> U) -> QuestionKeyOutcome<U> {
        match self {
            QuestionKeyOutcome::Ignored => QuestionKeyOutcome::Ignored,
            QuestionKeyOutcome::Handled => QuestionKeyOutcome::Handled,
            QuestionKeyOutcome::ShowFullView => QuestionKeyOutcome::ShowFullView,
            QuestionKeyOutcome::Answer(value) => QuestionKeyOutcome::Answer(convert(value)),
        }
    }
}

/// Returns true if the only access is an edit that the preview shows as a new file.
fn creates_file(accesses: &[ToolAccess], preview: Option<&str>) -> bool {
    let [ToolAccess::Edit { path }] = accesses else { return false };
    // The third line of the diff, unless the path itself has several.
    let hunk = preview.filter(|_| !path.contains('\n')).and_then(|diff| diff.lines().nth(2));
    hunk.is_some_and(|hunk| hunk.starts_with("@@ -0,0 +"))
}

impl PermissionQuestion {
    /// Builds the request from the logged details.
    pub(crate) fn new(details: &PermissionDetails<'_>) -> PermissionQuestion {
        let leaves_sandbox =
            details.accesses.iter().any(|access| matches!(access, ToolAccess::LeaveSandbox { .. }));
        let approval_kind = details.approval_kind.filter(|_| !leaves_sandbox);
        let kind_label = approval_kind.map(access_descriptions::kind_label).unwrap_or_default();
        let mut parts = access_descriptions::describe_accesses(details.accesses, details.preview);
        let mut push_prose = |label, text: &str| {
            parts.push(QuestionContentPart::new(label, QuotedText::Prose(to_one_line(text))));
        };
        if let Some(kind) = approval_kind.filter(|kind| kind.describe() != kind_label) {
            push_prose("kind", &kind.describe());
        }
        // A dangerous request has its reason in the warning.
        if details.danger == RequestDanger::Normal || leaves_sandbox {
            push_prose("why", details.reason);
        }
        if let Some(agent) = details.agent {
            push_prose("who", if agent.is_empty() { "a subagent" } else { agent });
        }
        parts.extend(details.repair.map(access_descriptions::describe_repair));
        PermissionQuestion {
            headline: match creates_file(details.accesses, details.preview) {
                true => "Create a file".to_owned(),
                false => ToolAccess::headline(details.accesses),
            },
            warning: match (leaves_sandbox, details.danger) {
                (true, _) => Some(
                    "This command runs outside the sandbox, with full access to your account."
                        .to_owned(),
                ),
                (false, RequestDanger::Normal) => None,
                (false, RequestDanger::Elevated | RequestDanger::High) => {
                    Some(capitalize(&to_one_line(details.reason)))
                }
            },
            danger: if leaves_sandbox { RequestDanger::High } else { details.danger },
            parts,
            allows_lasting: !leaves_sandbox,
            lasting_scope: ToolAccess::lasting_scope(details.accesses),
            approval_kind: approval_kind.cloned(),
            kind_label,
            denial_reason: None,
            cursor: RowCursor::default(),
        }
    }

    /// Returns the color of the headline and the warning.
    pub(crate) fn role(&self) -> StyleRole {
        match self.danger {
            RequestDanger::Normal => StyleRole::Accent,
            RequestDanger::Elevated => StyleRole::Warning,
            RequestDanger::High => StyleRole::Error,
        }
    }

    /// Returns the offered answers with their keys, full labels and short labels.
    fn answers(&self) -> Vec<(UiCommand, AnswerAction, String, &'static str)> {
        let (kind, scope) = (&self.kind_label, &self.lasting_scope);
        let kind_answer = |scope| PermissionAnswer::Kind { scope };
        let answers = [
            (UiCommand::AllowOnce, PermissionAnswer::Once, "Yes, once".to_owned(), "once"),
            (
                UiCommand::AllowForSession,
                PermissionAnswer::Session,
                format!("Yes, and allow {scope} this session"),
                "session",
            ),
            (
                UiCommand::AllowForProject,
                PermissionAnswer::Project,
                format!("Yes, and always allow {scope} in this project"),
                "project",
            ),
            (
                UiCommand::AllowKindForSession,
                kind_answer(ApprovalScope::Session),
                format!("Yes, and allow {kind} this session"),
                "all, session",
            ),
            (
                UiCommand::AllowKindForProject,
                kind_answer(ApprovalScope::Project),
                format!("Yes, and always allow {kind} in this project"),
                "all, project",
            ),
            (
                UiCommand::Deny,
                PermissionAnswer::No { reason: None },
                "No, and stop".to_owned(),
                "deny",
            ),
        ];
        let offered = answers.into_iter().filter(|(_, answer, ..)| self.accepts(answer));
        let offered = offered.map(|(command, answer, label, short_label)| {
            (command, AnswerAction::Answer(answer), label, short_label)
        });
        let label = "No, and tell the model what to do instead".to_owned();
        let reason = (UiCommand::DenyWithReason, AnswerAction::AskReason, label, "reason");
        offered.chain([reason]).collect()
    }

    /// Returns the rows of the answer list; none while a reason is typed.
    pub(crate) fn answer_rows(&self, appearance: &Appearance) -> Vec<AnswerRow> {
        if self.denial_reason.is_some() {
            return Vec::new();
        }
        let row = |(command, _, label, short_label): (UiCommand, _, String, &'static str)| {
            let key = pressed_key_label(&appearance.key_map.key_hint(command));
            AnswerRow { key, label, short_label }
        };
        self.answers().into_iter().map(row).collect()
    }

    fn give_answer(&mut self, action: AnswerAction) -> QuestionKeyOutcome<PermissionAnswer> {
        match action {
            AnswerAction::Answer(answer) => QuestionKeyOutcome::Answer(answer),
            AnswerAction::AskReason => {
                self.denial_reason = Some(TextInput::default());
                QuestionKeyOutcome::Handled
            }
        }
    }

    /// Returns the keys beside the answer list, in labeled groups.
    pub(crate) fn key_choices(
        &self,
        appearance: &Appearance,
    ) -> Vec<(&'static str, Vec<AnswerKeyChoice>)> {
        if self.denial_reason.is_some() {
            let choices = vec![
                AnswerKeyChoice::for_key("Enter", "deny with this reason", "deny"),
                AnswerKeyChoice::for_key("Esc", "go back", "back"),
            ];
            return vec![("", choices)];
        }
        let view = AnswerKeyChoice::for_command(
            &appearance.key_map,
            UiCommand::ShowFullView,
            "view the full request",
            "view full",
        );
        vec![("", vec![view])]
    }

    /// Describes the approval of all calls of this kind: `all cargo test commands this session`.
    pub(crate) fn describe_kind(&self) -> String {
        let kind = self.approval_kind.as_ref();
        let is_for_session = kind.is_some_and(|kind| kind.allows_scope(ApprovalScope::Session));
        let scope = if is_for_session { "this session" } else { "always in this project" };
        format!("{} {scope}", kind.map(ApprovalKind::describe).unwrap_or_default())
    }

    /// Returns the accesses that an approval for the session or the project covers, in words.
    pub(crate) fn lasting_scope(&self) -> &str {
        &self.lasting_scope
    }

    /// Handles a key. Enter gives only an answer that the user walked to.
    pub(crate) fn on_key(
        &mut self,
        key: &KeyEvent,
        appearance: &Appearance,
    ) -> QuestionKeyOutcome<PermissionAnswer> {
        if let Some(input) = &mut self.denial_reason {
            match key.code {
                KeyCode::Esc => self.denial_reason = None,
                // Ignore an empty reason: a denial without one ends the turn, which the user did
                // not ask for.
                KeyCode::Enter if input.text().trim().is_empty() => {}
                KeyCode::Enter => {
                    let reason = Some(input.text().trim().to_owned());
                    return QuestionKeyOutcome::Answer(PermissionAnswer::No { reason });
                }
                _ if input.on_key(key, appearance) => {}
                _ => return QuestionKeyOutcome::Ignored,
            }
            return QuestionKeyOutcome::Handled;
        }
        let answers = self.answers();
        match self.cursor.on_key(key, answers.len(), appearance) {
            RowKeyOutcome::Ignored => {}
            RowKeyOutcome::Handled => return QuestionKeyOutcome::Handled,
            RowKeyOutcome::Chosen(index) => {
                let chosen = answers.into_iter().nth(index).map(|(_, action, ..)| action);
                return chosen
                    .map_or(QuestionKeyOutcome::Ignored, |action| self.give_answer(action));
            }
        }
        let command = appearance.key_map.command_for(KeyScope::Question, key);
        if command == Some(UiCommand::ShowFullView) {
            return QuestionKeyOutcome::ShowFullView;
        }
        let chosen = answers.into_iter().find(|(offered, ..)| Some(*offered) == command);
        chosen.map_or(QuestionKeyOutcome::Ignored, |(_, action, ..)| self.give_answer(action))
    }

    /// Returns true if the request offers this `PermissionAnswer`.
    pub(crate) fn accepts(&self, answer: &PermissionAnswer) -> bool {
        match answer {
            PermissionAnswer::Once
            | PermissionAnswer::No { .. }
            | PermissionAnswer::Unavailable { .. } => true,
            PermissionAnswer::Session | PermissionAnswer::Project => self.allows_lasting,
            PermissionAnswer::Kind { scope } => {
                self.approval_kind.as_ref().is_some_and(|kind| kind.allows_scope(*scope))
            }
        }
    }
}

/// Returns the text with its first letter in upper case.
fn capitalize(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(characters).collect()
}
