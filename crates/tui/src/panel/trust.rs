//! The trust panel (`/trust`): shows what a folder would make Windlass run or follow, and lets the
//! user trust it or not.
//!
//! The panel lists everything before it asks. A key typed for the prompt just before the panel
//! opened decides nothing: the invariant I-TYPED applies here as it does to questions.

use super::{Panel, PanelControlFlow, PanelResult};
use crate::questions::choices::{self, AnswerKeyChoice, KeyFocus};
use crate::questions::question_content::{QuestionContentPart, QuotedText};
use crate::questions::{FOCUS_DELAY_MS, scroll_position};
use crate::safe_line::SafeLine;
use crate::session_state::SessionState;
use crate::theme::StyleRole;
use crate::ui_context::{Appearance, UiContext};
use crate::wrap::{self, WrapMode};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::Fault;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse, TrustState};

/// The hint for an untrusted folder that has nothing to run, shown where nothing else says so.
pub const UNTRUSTED_NOTICE: &str =
    "Not trusted: AGENTS.md ignored, language servers off; /trust to change";

const TRUST_EFFECTS: &str = "If you trust this folder, Windlass runs and follows these settings, \
                             reads its AGENTS.md, and starts language servers and formatters for \
                             its files, until one of these settings changes. It also switches to \
                             mode auto, unless your config sets another mode: edits in the folder \
                             and sandboxed commands run without asking.";
const TRUST_EFFECTS_NO_PROGRAMS: &str = "If you trust this folder, Windlass reads its AGENTS.md, \
                                         and starts language servers and formatters for its \
                                         files, until settings such as `.windlass` appear in it. \
                                         It also switches to mode auto, unless your config sets \
                                         another mode: edits in the folder and sandboxed \
                                         commands run without asking.";
pub(crate) const DISTRUST_EFFECTS: &str = "If you do not, its settings and AGENTS.md are ignored \
                                           and the default mode stays ask.";

pub(crate) const REVOKE_EFFECTS: &str = "If you revoke trust, Windlass stops the programs it \
                                         started for this folder, ignores its settings and \
                                         AGENTS.md, reads its files only as text, and asks \
                                         before changes unless your config sets another mode.";

/// Explains the effect of trusting a folder with these `requested_actions`.
pub(crate) fn trust_effects(requested_actions: &[String]) -> &'static str {
    if requested_actions.is_empty() { TRUST_EFFECTS_NO_PROGRAMS } else { TRUST_EFFECTS }
}

/// Progress of the trust review.
#[derive(Clone, Debug, PartialEq)]
enum TrustPanelState {
    /// The host is reviewing the folder (`FrontendRequest::ReviewTrust`).
    Loading,
    /// The actions the folder requests, and those of them that changed since it was trusted.
    Loaded { requested_actions: Vec<String>, changes: Option<Vec<String>> },
    /// The review or the decision failed.
    Failed(Fault),
}

/// The panel in which the user decides about trust.
#[derive(Debug)]
pub struct TrustPanel {
    state: TrustPanelState,
    pending_request: Option<u64>,
    /// The time at which the content appeared or the last character was typed; `FOCUS_DELAY_MS`
    /// counts from it.
    quiet_since: u64,
    top_row: usize,
    page_rows: usize,
    /// The message shown after the decision is saved.
    done_message: &'static str,
    finished: bool,
}

impl TrustPanel {
    /// Opens the panel on the user's request and sends `FrontendRequest::ReviewTrust`.
    pub fn open(cx: &mut UiContext<'_>) -> TrustPanel {
        let pending_request = Some(cx.send_request(FrontendRequest::ReviewTrust));
        TrustPanel { pending_request, ..TrustPanel::with_state(TrustPanelState::Loading, cx.now) }
    }

    /// Opens the panel with the findings of a review.
    pub fn with_findings(
        requested_actions: Vec<String>,
        changes: Option<Vec<String>>,
        now: u64,
    ) -> TrustPanel {
        TrustPanel::with_state(TrustPanelState::Loaded { requested_actions, changes }, now)
    }

    fn with_state(state: TrustPanelState, quiet_since: u64) -> TrustPanel {
        TrustPanel {
            state,
            pending_request: None,
            quiet_since,
            top_row: 0,
            page_rows: 1,
            done_message: "",
            finished: false,
        }
    }

    /// Returns true if the folder is trusted in its current state.
    fn is_trusted(&self) -> bool {
        matches!(
            &self.state,
            TrustPanelState::Loaded { changes: Some(changes), .. } if changes.is_empty()
        )
    }

    /// Returns true if the review is loaded and the folder is not trusted in its current state.
    fn can_approve(&self) -> bool {
        matches!(self.state, TrustPanelState::Loaded { .. }) && !self.is_trusted()
    }

    fn send_decision(&mut self, trusted: bool, done_message: &'static str, cx: &mut UiContext<'_>) {
        if self.pending_request.is_none() {
            (self.pending_request, self.done_message) =
                (Some(cx.send_request(FrontendRequest::SetTrust { trusted })), done_message);
        }
    }

    fn render(&self, width: usize, appearance: &Appearance, state: &SessionState) -> Vec<SafeLine> {
        let wrapped_text = |role: StyleRole, text: &str| {
            let row = SafeLine::styled(appearance.style(role), text);
            let rows = wrap::wrap(&row, width.saturating_sub(2).max(8), WrapMode::Words, 0);
            rows.into_iter().map(|row| {
                let mut indented = SafeLine::styled(appearance.style(StyleRole::Text), " ");
                row.spans().for_each(|(style, text)| indented.push_text(style, text));
                indented
            })
        };
        let list = |label: &'static str, lines: &[String]| {
            let lines: Vec<String> = lines
                .iter()
                .map(|line| windlass_protocol::display_text::to_one_line(line))
                .collect();
            QuestionContentPart::new(label, QuotedText::Prose(lines.join("\n")))
                .render(width, appearance)
        };
        let folder = match state.host_status.workspace.as_str() {
            "" => "This folder",
            folder => folder,
        };
        let mut rows = Vec::new();
        match &self.state {
            TrustPanelState::Loading => {
                rows.extend(wrapped_text(StyleRole::Dim, "Checking what this folder would run"))
            }
            TrustPanelState::Failed(fault) => {
                rows.extend(wrapped_text(StyleRole::Error, &crate::error_hints::describe(fault)));
            }
            TrustPanelState::Loaded { requested_actions, changes } => {
                if let Some(changes) = changes.as_ref().filter(|changes| !changes.is_empty()) {
                    rows.extend(wrapped_text(StyleRole::Warning, "Changed since you trusted it:"));
                    rows.extend(list("now", changes));
                    rows.push(SafeLine::default());
                }
                match requested_actions.is_empty() {
                    true => {
                        let text = "contains no settings that Windlass would run or follow.";
                        rows.extend(wrapped_text(StyleRole::Text, &format!("{folder} {text}")));
                    }
                    false => {
                        let effect = if self.is_trusted() {
                            "runs or follows"
                        } else {
                            "would run or follow"
                        };
                        let text = format!("{folder} contains settings that Windlass {effect}:");
                        rows.extend(wrapped_text(StyleRole::Text, &text));
                        rows.extend(list("", requested_actions));
                    }
                }
                rows.push(SafeLine::default());
                if self.can_approve() {
                    rows.extend(wrapped_text(StyleRole::Dim, trust_effects(requested_actions)));
                    rows.extend(wrapped_text(StyleRole::Dim, DISTRUST_EFFECTS));
                } else {
                    let text = "The folder is trusted until its settings change.";
                    rows.extend(wrapped_text(StyleRole::Success, text));
                    rows.extend(wrapped_text(StyleRole::Dim, REVOKE_EFFECTS));
                }
            }
        }
        rows
    }

    fn render_footer(&self, width: usize, appearance: &Appearance) -> Vec<SafeLine> {
        let not_now = AnswerKeyChoice::for_key("n", "not now", "not now");
        let close = AnswerKeyChoice::for_key("Esc", "close", "close");
        let choices = match (self.can_approve(), self.is_trusted()) {
            (true, _) => {
                vec![AnswerKeyChoice::for_key("t", "trust this folder", "trust"), not_now]
            }
            (false, true) => {
                vec![AnswerKeyChoice::for_key("r", "revoke trust", "revoke"), close]
            }
            (false, false) => vec![close],
        };
        choices::render_choices(&[("", choices)], width, KeyFocus::Here, appearance)
    }
}

impl Panel for TrustPanel {
    fn title(&self) -> String {
        match &self.state {
            TrustPanelState::Loaded { changes: Some(changes), .. } if !changes.is_empty() => {
                "This folder has changed since you trusted it".to_owned()
            }
            TrustPanelState::Loaded { .. } if self.can_approve() => {
                "Do you trust this folder?".to_owned()
            }
            TrustPanelState::Loading
            | TrustPanelState::Loaded { .. }
            | TrustPanelState::Failed(_) => "Trust".to_owned(),
        }
    }

    fn on_key(&mut self, key: &KeyEvent, cx: &mut UiContext<'_>) -> PanelControlFlow {
        let is_text = (key.modifiers - KeyModifiers::SHIFT).is_empty();
        if let (KeyCode::Char(character), true) = (key.code, is_text) {
            let is_quiet = cx.now >= self.quiet_since + FOCUS_DELAY_MS;
            self.quiet_since = cx.now;
            match character {
                't' if is_quiet && self.can_approve() => {
                    self.send_decision(
                        true,
                        "This folder is trusted until its settings change",
                        cx,
                    );
                }
                'r' if is_quiet && self.is_trusted() => {
                    self.send_decision(false, "This folder is no longer trusted", cx);
                }
                'n' if is_quiet && self.can_approve() => return self.on_escape(cx),
                ' ' => self.top_row += self.page_rows,
                _ => {}
            }
            return PanelControlFlow::Stay;
        }
        self.top_row = scroll_position(self.top_row, self.page_rows, key, cx.appearance);
        PanelControlFlow::Stay
    }

    fn on_escape(&mut self, cx: &mut UiContext<'_>) -> PanelControlFlow {
        let is_undecided = matches!(
            cx.state.host_status.trust,
            TrustState::NotAsked | TrustState::ChangedSinceTrust
        );
        if self.can_approve() && is_undecided {
            cx.send_request(FrontendRequest::SetTrust { trusted: false });
        }
        PanelControlFlow::Close
    }

    fn on_wheel(&mut self, lines: i32, _: &mut UiContext<'_>) {
        self.top_row =
            self.top_row.saturating_add_signed(isize::try_from(lines).unwrap_or_default());
    }

    fn on_response(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        cx: &mut UiContext<'_>,
    ) -> bool {
        if self.pending_request != Some(id) {
            return false;
        }
        (self.pending_request, self.quiet_since) = (None, cx.now);
        match response {
            Ok(HostResponse::TrustReview { requested_actions, changes }) => {
                self.state = TrustPanelState::Loaded {
                    requested_actions: requested_actions.clone(),
                    changes: changes.clone(),
                };
            }
            Ok(_) => self.finished = true,
            Err(fault) => self.state = TrustPanelState::Failed(fault.clone()),
        }
        true
    }

    fn is_done(&self) -> bool {
        self.finished
    }

    fn take_result(&mut self) -> PanelResult {
        match self.finished {
            true => PanelResult::ShowHint(self.done_message.to_owned()),
            false => PanelResult::Nothing,
        }
    }

    fn height(&self, width: u16, state: &SessionState) -> u16 {
        let width = usize::from(width);
        let rows = self.render(width, &Appearance::default(), state).len();
        u16::try_from(rows + 2).unwrap_or(u16::MAX)
    }

    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        appearance: &Appearance,
        state: &SessionState,
    ) -> Option<Position> {
        let width = usize::from(area.width);
        let rows = self.render(width, appearance, state);
        let footer = self.render_footer(width, appearance);
        crate::questions::draw_page(
            (&mut self.top_row, &mut self.page_rows),
            (&rows, &footer),
            (area, buffer),
            appearance,
        );
        None
    }
}
