//! The trust panel (`/trust`, and the first start in a folder): shows what a folder would make
//! Windlass run or the model follow, and asks what to do.
//!
//! The panel lists everything before it asks. The invariant I-TYPED applies here as it does to
//! questions: a key typed just before the panel opened decides nothing and goes into the prompt.

use super::{Panel, PanelControlFlow, PanelResult};
use crate::questions::answer_list::{self, AnswerRow, RowCursor, RowKeyOutcome};
use crate::questions::choices::{self, AnswerKeyChoice, KeyFocus};
use crate::questions::question_content::{QuestionContentPart, QuotedText};
use crate::questions::{ANSWER_DELAY_MS, scroll_position};
use crate::safe_line::SafeLine;
use crate::session_state::SessionState;
use crate::theme::StyleRole;
use crate::ui_context::{Appearance, UiContext};
use crate::wrap::{self, WrapMode};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse, TrustState};
use windlass_protocol::{Fault, TrustDecision, TrustReview};

/// Progress of the trust review.
#[derive(Clone, Debug, PartialEq)]
enum TrustPanelState {
    /// The host is reviewing the folder (`FrontendRequest::ReviewTrust`).
    Loading,
    Loaded(TrustReview),
    /// The review or the decision failed.
    Failed(Fault),
}

/// The panel in which the user decides about trust.
#[derive(Debug)]
pub struct TrustPanel {
    state: TrustPanelState,
    pending_request: Option<u64>,
    /// The time at which the content appeared or the last key was pressed; `ANSWER_DELAY_MS` counts
    /// from it.
    quiet_since: u64,
    cursor: RowCursor,
    top_row: usize,
    page_rows: usize,
    /// The message shown after the decision is saved.
    done_message: Option<&'static str>,
    finished: bool,
}

impl TrustPanel {
    /// Opens the panel on the user's request and sends `FrontendRequest::ReviewTrust`.
    pub fn open(cx: &mut UiContext<'_>) -> TrustPanel {
        let pending_request = Some(cx.send_request(FrontendRequest::ReviewTrust));
        TrustPanel { pending_request, ..TrustPanel::with_state(TrustPanelState::Loading, cx.now) }
    }

    /// Opens the panel with the findings of a review.
    pub fn with_review(review: TrustReview, now: u64) -> TrustPanel {
        TrustPanel::with_state(TrustPanelState::Loaded(review), now)
    }

    fn with_state(state: TrustPanelState, quiet_since: u64) -> TrustPanel {
        TrustPanel {
            state,
            pending_request: None,
            quiet_since,
            cursor: RowCursor::default(),
            top_row: 0,
            page_rows: 1,
            done_message: None,
            finished: false,
        }
    }

    /// Returns true if the folder is trusted in its current state.
    fn is_trusted(&self) -> bool {
        matches!(&self.state, TrustPanelState::Loaded(review) if review.is_trusted())
    }

    /// Returns the review to decide about; `None` if the folder is trusted or not reviewed.
    fn open_review(&self) -> Option<&TrustReview> {
        match &self.state {
            TrustPanelState::Loaded(review) if !review.is_trusted() => Some(review),
            TrustPanelState::Loading | TrustPanelState::Loaded(_) | TrustPanelState::Failed(_) => {
                None
            }
        }
    }

    fn answer_rows(&self) -> Vec<AnswerRow> {
        let Some(review) = self.open_review() else { return Vec::new() };
        let row = |decision| {
            let (key, short_label) = match decision {
                TrustDecision::Trust => ("t", "trust"),
                TrustDecision::TrustAndAsk => ("a", "trust, ask"),
                TrustDecision::Decline => ("n", "no"),
            };
            AnswerRow { key: key.to_owned(), label: review.answer_label(decision), short_label }
        };
        review.answers().into_iter().map(row).collect()
    }

    /// Performs an answer of the user.
    fn decide(&mut self, decision: TrustDecision, cx: &mut UiContext<'_>) -> PanelControlFlow {
        let message = match decision {
            TrustDecision::Decline => {
                if is_undecided(cx.state.host_status.trust) {
                    cx.send_request(FrontendRequest::SetTrust { decision, seen: None });
                }
                return PanelControlFlow::Close;
            }
            TrustDecision::Trust => "This folder is trusted until its settings change",
            TrustDecision::TrustAndAsk => {
                "This folder is trusted until its settings change; the mode stays ask"
            }
        };
        self.send_decision(decision, message, cx);
        PanelControlFlow::Stay
    }

    fn send_decision(
        &mut self,
        decision: TrustDecision,
        done_message: &'static str,
        cx: &mut UiContext<'_>,
    ) {
        if self.pending_request.is_none() {
            let request = FrontendRequest::SetTrust { decision, seen: None };
            (self.pending_request, self.done_message) =
                (Some(cx.send_request(request)), Some(done_message));
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
            TrustPanelState::Loaded(review) => {
                if let Some(warning) = review.warning() {
                    rows.extend(wrapped_text(StyleRole::Warning, warning));
                    rows.push(SafeLine::default());
                }
                let changes = review.changes.as_ref().filter(|changes| !changes.is_empty());
                if let Some(changes) = changes {
                    rows.extend(wrapped_text(StyleRole::Warning, TrustReview::CHANGES_HEADING));
                    rows.extend(list("now", changes));
                    rows.push(SafeLine::default());
                }
                rows.extend(wrapped_text(StyleRole::Text, &review.introduction(folder)));
                if !review.requested_actions.is_empty() {
                    rows.extend(list("", &review.requested_actions));
                }
                rows.push(SafeLine::default());
                if review.is_trusted() {
                    let text = "The folder is trusted until its settings change.";
                    rows.extend(wrapped_text(StyleRole::Success, text));
                    rows.extend(wrapped_text(StyleRole::Dim, TrustReview::REVOKE_EFFECTS));
                } else {
                    for effect in review.effects() {
                        rows.extend(wrapped_text(StyleRole::Dim, &effect));
                    }
                    rows.extend(wrapped_text(StyleRole::Dim, review.decline_effect()));
                }
            }
        }
        rows
    }

    fn render_footer(&self, width: usize, appearance: &Appearance) -> Vec<SafeLine> {
        let answers = self.answer_rows();
        if !answers.is_empty() {
            let focus = KeyFocus::Here;
            return answer_list::render_rows(&answers, self.cursor, width, focus, appearance);
        }
        let close = AnswerKeyChoice::for_key("Esc", "close", "close");
        let choices = match self.is_trusted() {
            true => vec![AnswerKeyChoice::for_key("r", "revoke trust", "revoke"), close],
            false => vec![close],
        };
        choices::render_choices(&[("", choices)], width, KeyFocus::Here, appearance)
    }
}

/// Returns true if the user has not answered for the current state of the folder.
fn is_undecided(trust: TrustState) -> bool {
    matches!(trust, TrustState::NotAsked | TrustState::ChangedSinceTrust)
}

impl Panel for TrustPanel {
    fn title(&self) -> String {
        match &self.state {
            TrustPanelState::Loaded(TrustReview { changes: Some(changes), .. })
                if !changes.is_empty() =>
            {
                "This folder has changed since you trusted it".to_owned()
            }
            TrustPanelState::Loaded(_) if self.open_review().is_some() => {
                "Do you trust this folder?".to_owned()
            }
            TrustPanelState::Loading | TrustPanelState::Loaded(_) | TrustPanelState::Failed(_) => {
                "Trust".to_owned()
            }
        }
    }

    fn on_key(&mut self, key: &KeyEvent, cx: &mut UiContext<'_>) -> PanelControlFlow {
        let is_quiet = cx.now >= self.quiet_since + ANSWER_DELAY_MS;
        self.quiet_since = cx.now;
        let is_text = (key.modifiers - KeyModifiers::SHIFT).is_empty();
        let character = match key.code {
            KeyCode::Char(character) if is_text => Some(character),
            _ => None,
        };
        let decisions = self.open_review().map(TrustReview::answers).unwrap_or_default();
        if decisions.is_empty() {
            if let Some('r') = character.filter(|_| is_quiet && self.is_trusted()) {
                self.send_decision(TrustDecision::Decline, "This folder is no longer trusted", cx);
            }
            self.top_row = scroll_position(self.top_row, self.page_rows, key, cx.appearance);
            return PanelControlFlow::Stay;
        }
        // Keys in a row are text for the prompt, not answers.
        if !is_quiet {
            return match character {
                Some(_) => PanelControlFlow::TypeIntoPrompt,
                None => PanelControlFlow::Stay,
            };
        }
        if let RowKeyOutcome::Chosen(index) =
            self.cursor.on_key(key, decisions.len(), cx.appearance)
        {
            return decisions
                .get(index)
                .map_or(PanelControlFlow::Stay, |decision| self.decide(*decision, cx));
        }
        match character {
            Some('t') => self.decide(TrustDecision::Trust, cx),
            Some('a') if decisions.contains(&TrustDecision::TrustAndAsk) => {
                self.decide(TrustDecision::TrustAndAsk, cx)
            }
            Some('n') => self.decide(TrustDecision::Decline, cx),
            Some(_) => PanelControlFlow::TypeIntoPrompt,
            None => {
                match key.code {
                    KeyCode::PageUp | KeyCode::PageDown | KeyCode::Home | KeyCode::End => {
                        self.top_row =
                            scroll_position(self.top_row, self.page_rows, key, cx.appearance);
                    }
                    _ => {}
                }
                PanelControlFlow::Stay
            }
        }
    }

    /// Decides nothing: the question returns at the next start. An Esc typed just before the panel
    /// opened was not meant for it.
    fn on_escape(&mut self, cx: &mut UiContext<'_>) -> PanelControlFlow {
        if self.open_review().is_none() || cx.now >= self.quiet_since + ANSWER_DELAY_MS {
            return PanelControlFlow::Close;
        }
        self.quiet_since = cx.now;
        PanelControlFlow::Stay
    }

    /// Decides nothing: the question returns at the next start.
    fn on_interrupt(&mut self, _: &mut UiContext<'_>) {}

    fn is_question(&self) -> bool {
        self.open_review().is_some()
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
            Ok(HostResponse::TrustReview { review }) => {
                self.state = TrustPanelState::Loaded((**review).clone());
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
        PanelResult::TrustAnswered(self.done_message.filter(|_| self.finished))
    }

    fn height(&self, width: u16, state: &SessionState) -> u16 {
        let width = usize::from(width);
        let rows = self.render(width, &Appearance::default(), state).len();
        let footer = self.render_footer(width, &Appearance::default()).len();
        u16::try_from(rows + 1 + footer).unwrap_or(u16::MAX)
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
