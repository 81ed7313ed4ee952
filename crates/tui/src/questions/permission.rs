//! A permission request: the accesses of a call, the reason for asking, and the available answers.

use super::access_descriptions;
use super::choices::AnswerKeyChoice;
use super::question_content::{QuestionContentPart, QuotedText};
use crate::keys::{KeyScope, UiCommand};
use crate::text_input::TextInput;
use crate::ui_context::Appearance;
use crossterm::event::{KeyCode, KeyEvent};
use windlass_protocol::display_text::to_one_line;
use windlass_protocol::{ApprovalKind, ApprovalScope, CallRepair, PermissionAnswer, ToolAccess};

/// The content of a `PermissionAsked` fact.
pub(crate) struct PermissionDetails<'a> {
    pub(crate) accesses: &'a [ToolAccess],
    pub(crate) reason: &'a str,
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
    /// A warning, shown if approval gives the command full access.
    pub(crate) warning: Option<&'static str>,
    pub(crate) parts: Vec<QuestionContentPart>,
    /// True if the call can be approved for the session or the project.
    allows_lasting: bool,
    /// The calls that can be approved together with this one.
    approval_kind: Option<ApprovalKind>,
    /// The open input for the reason of a denial.
    pub(crate) denial_reason: Option<TextInput>,
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
        let mut parts = access_descriptions::describe_accesses(details.accesses, details.preview);
        let mut push_prose = |label, text: &str| {
            parts.push(QuestionContentPart::new(label, QuotedText::Prose(to_one_line(text))));
        };
        if let Some(kind) = approval_kind {
            push_prose("kind", &kind.describe());
        }
        push_prose("why", details.reason);
        if let Some(agent) = details.agent {
            push_prose("who", if agent.is_empty() { "a subagent" } else { agent });
        }
        parts.extend(details.repair.map(access_descriptions::describe_repair));
        PermissionQuestion {
            headline: match creates_file(details.accesses, details.preview) {
                true => "Create a file".to_owned(),
                false => ToolAccess::headline(details.accesses),
            },
            warning: leaves_sandbox.then_some(
                "This command runs outside the sandbox, with full access \
                                       to your account.",
            ),
            parts,
            allows_lasting: !leaves_sandbox,
            approval_kind: approval_kind.cloned(),
            denial_reason: None,
        }
    }

    /// Returns the `AnswerKeyChoice`s in labeled groups.
    pub(crate) fn key_choices(
        &self,
        appearance: &Appearance,
    ) -> Vec<(&'static str, Vec<AnswerKeyChoice>)> {
        let keys = &appearance.key_map;
        if self.denial_reason.is_some() {
            let choices = vec![
                AnswerKeyChoice::for_key("Enter", "deny with this reason", "deny"),
                AnswerKeyChoice::for_key("Esc", "go back", "back"),
            ];
            return vec![("", choices)];
        }
        let choice = |command, label, short_label| {
            AnswerKeyChoice::for_command(keys, command, label, short_label)
        };
        let mut yes = vec![choice(UiCommand::AllowOnce, "once", "once")];
        if self.allows_lasting {
            yes.push(choice(UiCommand::AllowForSession, "for this session", "session"));
            yes.push(choice(UiCommand::AllowForProject, "always in this project", "project"));
        }
        let no = vec![
            choice(UiCommand::Deny, "deny and stop", "deny"),
            choice(UiCommand::DenyWithReason, "deny with a reason", "reason"),
        ];
        let mut groups = vec![("yes", yes)];
        if self.approval_kind.is_some() {
            groups.push(("", self.kind_choices(appearance)));
        }
        groups.push(("no", no));
        let view = choice(UiCommand::ShowFullView, "view the full request", "view full");
        groups.push(("", vec![view]));
        groups
    }

    /// Returns the choices that approve all calls of this kind.
    fn kind_choices(&self, appearance: &Appearance) -> Vec<AnswerKeyChoice> {
        let keys = &appearance.key_map;
        let label = self.describe_kind();
        let (session, project) = (UiCommand::AllowKindForSession, UiCommand::AllowKindForProject);
        let accepts = |scope| self.accepts(&PermissionAnswer::Kind { scope });
        let choice = |command, label: &str, short_label| {
            AnswerKeyChoice::for_command(keys, command, label, short_label)
        };
        match (accepts(ApprovalScope::Session), accepts(ApprovalScope::Project)) {
            (true, true) => vec![
                choice(session, &label, "kind, session"),
                choice(project, "always in this project", "kind, project"),
            ],
            (true, false) => vec![choice(session, &label, "kind, session")],
            (false, _) => vec![choice(project, &label, "kind, project")],
        }
    }

    /// Describes the approval of all calls of this kind: `all cargo test commands this session`.
    pub(crate) fn describe_kind(&self) -> String {
        let kind = self.approval_kind.as_ref();
        let is_for_session = kind.is_some_and(|kind| kind.allows_scope(ApprovalScope::Session));
        let scope = if is_for_session { "this session" } else { "always in this project" };
        format!("{} {scope}", kind.map(ApprovalKind::describe).unwrap_or_default())
    }

    /// Handles a key. Enter never approves.
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
        if key.code == KeyCode::Enter {
            return QuestionKeyOutcome::Handled;
        }
        let answer = match appearance.key_map.command_for(KeyScope::Question, key) {
            Some(UiCommand::AllowOnce) => PermissionAnswer::Once,
            Some(UiCommand::AllowForSession) => PermissionAnswer::Session,
            Some(UiCommand::AllowForProject) => PermissionAnswer::Project,
            Some(UiCommand::AllowKindForSession) => {
                PermissionAnswer::Kind { scope: ApprovalScope::Session }
            }
            Some(UiCommand::AllowKindForProject) => {
                PermissionAnswer::Kind { scope: ApprovalScope::Project }
            }
            Some(UiCommand::Deny) => PermissionAnswer::No { reason: None },
            Some(UiCommand::DenyWithReason) => {
                self.denial_reason = Some(TextInput::default());
                return QuestionKeyOutcome::Handled;
            }
            Some(UiCommand::ShowFullView) => return QuestionKeyOutcome::ShowFullView,
            _ => return QuestionKeyOutcome::Ignored,
        };
        if self.accepts(&answer) {
            QuestionKeyOutcome::Answer(answer)
        } else {
            QuestionKeyOutcome::Ignored
        }
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
