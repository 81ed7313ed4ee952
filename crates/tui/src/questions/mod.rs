//! Permission requests and user questions, shown one at a time in order of arrival.
//!
//! It keeps the invariant I-TYPED: a key typed for the prompt answers no question; see
//! `type_ahead_guard`. Enter gives only an answer that the user walked to.

pub(crate) mod access_descriptions;
pub(crate) mod answer_list;
mod card;
mod changed_lines;
pub(crate) mod choices;
pub(crate) mod form;
mod full_view;
pub(crate) mod permission;
pub(crate) mod question_content;
pub(crate) mod queue;
mod row_paging;
mod type_ahead_guard;

#[cfg(test)]
pub(crate) mod tests;

use crate::keys::UiCommand;
use crate::panel::Panel;
use crate::session_state::SessionState;
use crate::text_input::TextInput;
use crate::theme::StyleRole;
use crate::ui_context::{Appearance, UiContext, UiEffect};
use card::{QuestionCard, RenderedQuestionContent};
use choices::KeyFocus;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use permission::QuestionKeyOutcome;
use question_content::{QuestionContentPart, QuotedText};
use queue::{PendingQuestion, PendingQuestionQueue, PreApproval, QuestionQueueChange};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
pub(crate) use type_ahead_guard::KeyDestination;
use type_ahead_guard::TypeAheadGuard;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::{
    CallId, ClientInfo, Event, Fault, LogSeq, PermissionAnswer, SessionId, SessionOp,
};

pub(crate) use row_paging::{draw_page, scroll_position};
pub(crate) use type_ahead_guard::ANSWER_DELAY_MS;

impl PendingQuestion {
    fn text_input(&self) -> Option<&TextInput> {
        match self {
            PendingQuestion::Permission(permission) => permission.denial_reason.as_ref(),
            PendingQuestion::UserQuestion(form) => form.text_input.as_ref(),
        }
    }

    fn text_input_mut(&mut self) -> Option<&mut TextInput> {
        match self {
            PendingQuestion::Permission(permission) => permission.denial_reason.as_mut(),
            PendingQuestion::UserQuestion(form) => form.text_input.as_mut(),
        }
    }

    /// Handles a key; returns the answer as an `SessionOp` if the key completes one.
    fn on_key(
        &mut self,
        key: &KeyEvent,
        (call, asked): (CallId, LogSeq),
        appearance: &Appearance,
    ) -> QuestionKeyOutcome<SessionOp> {
        let asked = Some(asked);
        match self {
            PendingQuestion::Permission(permission) => permission
                .on_key(key, appearance)
                .map(|answer| SessionOp::AnswerPermission { call, answer, asked }),
            PendingQuestion::UserQuestion(form) => form
                .on_key(key, appearance)
                .map(|answers| SessionOp::AnswerQuestion { call, answers, asked }),
        }
    }
}

/// The panel of pending questions; it shows the first one of its `PendingQuestionQueue`.
#[derive(Debug, Default)]
pub struct QuestionPanel {
    queue: PendingQuestionQueue,
    focus_guard: TypeAheadGuard,
    /// The rendered parts of the first question.
    rendered: RenderedQuestionContent,
    /// The keyboard focus, updated before each draw.
    key_focus: KeyFocus,
    /// The height requested last, and the maximum it was computed for.
    wanted_rows: (usize, usize),
    /// True if the answers have numbers on the screen.
    shows_numbers: bool,
}

/// Returns true if a key types or moves within text, as opposed to scrolling and the like.
pub fn is_typing_key(key: &KeyEvent) -> bool {
    match key.code {
        KeyCode::Char(_) => (key.modifiers - KeyModifiers::SHIFT).is_empty(),
        KeyCode::Enter
        | KeyCode::Backspace
        | KeyCode::Delete
        | KeyCode::Left
        | KeyCode::Right
        | KeyCode::Up
        | KeyCode::Down => true,
        _ => false,
    }
}

/// The kind of a pending question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionKind {
    /// Esc denies it or stops the turn.
    Permission,
    /// Esc does not answer it.
    UserQuestion,
}

impl QuestionPanel {
    /// Returns the client that answered a question that waits here, if this event says so.
    pub fn answered_by<'a>(&self, event: &'a Event) -> Option<&'a ClientInfo> {
        match event {
            Event::Fact(record) => self.queue.answered_by(record),
            Event::Live(_) => None,
        }
    }

    /// Updates the queue from an event: new questions, answers, and events that make questions
    /// obsolete.
    pub fn on_event(&mut self, event: &Event, cx: &mut UiContext<'_>) {
        let Event::Fact(record) = event else { return };
        let previous_serial = self.queue.current_serial();
        match self.queue.on_record(record, cx.state) {
            QuestionQueueChange::None => {}
            QuestionQueueChange::PreApproved(call, asked) => {
                let (answer, asked) = (PermissionAnswer::Once, Some(asked));
                cx.send_op(SessionOp::AnswerPermission { call, answer, asked });
            }
            QuestionQueueChange::QuestionAdded => {
                cx.push_effect(UiEffect::Notify("Waiting for your answer".to_owned()));
            }
        }
        self.update_current_question(previous_serial, cx.now);
    }

    /// Removes the questions of a session that stopped by itself, because it can no longer receive
    /// answers.
    pub fn on_session_stopped(&mut self, session: SessionId, cx: &UiContext<'_>) {
        let previous_serial = self.queue.current_serial();
        self.queue.remove_session(session, cx.state);
        self.update_current_question(previous_serial, cx.now);
    }

    /// Resets the focus and the rendered parts if the current question changed.
    fn update_current_question(&mut self, previous_serial: Option<u64>, now: u64) {
        if self.queue.current_serial() != previous_serial {
            self.focus_guard.on_question_shown(now);
            self.rendered = RenderedQuestionContent::default();
        }
    }

    /// Records a `PreApproval` that the user gave in advance.
    pub(crate) fn pre_approve(&mut self, pre_approval: PreApproval) {
        self.queue.pre_approve(pre_approval);
    }

    /// Handles the response to a sent answer; returns true if it was accepted. A question whose
    /// answer failed is asked again.
    pub fn on_response(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        cx: &mut UiContext<'_>,
    ) -> bool {
        let previous_serial = self.queue.current_serial();
        let is_own_answer = self.queue.on_response(id, response);
        self.update_current_question(previous_serial, cx.now);
        is_own_answer && response.is_ok()
    }

    /// Returns true if a question is pending.
    pub fn is_open(&self) -> bool {
        self.queue.first().is_some()
    }

    /// Returns the kind of the question to answer now.
    pub(crate) fn kind(&self) -> Option<QuestionKind> {
        self.queue.first().map(|first| match first.question {
            PendingQuestion::Permission(_) => QuestionKind::Permission,
            PendingQuestion::UserQuestion(_) => QuestionKind::UserQuestion,
        })
    }

    /// Returns the number of pending questions.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns true if no question is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Records typing outside the question; see `TypeAheadGuard::on_typing`.
    pub fn on_typing(&mut self, now: u64) {
        self.focus_guard.on_typing(now);
    }

    /// Records that a panel or the search covers the question and received a key.
    pub fn on_covered(&mut self, now: u64) {
        self.focus_guard.on_covered(now);
    }

    /// Decides whether a typing key is for the question or for the prompt.
    pub(crate) fn key_destination(
        &mut self,
        key: &KeyEvent,
        now: u64,
        prompt_is_empty: bool,
    ) -> KeyDestination {
        let is_text_open = self.is_typing();
        self.focus_guard.destination(key, now, (prompt_is_empty, is_text_open))
    }

    /// Returns true if the question receives keys now.
    pub fn has_focus(&self, now: u64, prompt_is_empty: bool) -> bool {
        self.is_open() && self.focus_guard.has_focus(now, prompt_is_empty || self.is_typing())
    }

    /// Returns true if a text input is open in the question.
    fn is_typing(&self) -> bool {
        self.queue.first().is_some_and(|first| first.question.text_input().is_some())
    }

    /// Returns the time at which the question takes the focus by itself, if that is in the future.
    pub fn next_wakeup(&self, now: u64) -> Option<u64> {
        self.focus_guard.next_wakeup(now).filter(|_| self.is_open())
    }

    /// Moves the focus to the question, or back to the prompt.
    pub fn toggle_focus(&mut self, now: u64, prompt_is_empty: bool) {
        self.focus_guard.toggle_focus(now, prompt_is_empty || self.is_typing());
    }

    /// Updates the `KeyFocus` for the next draw; `is_covered` means that a panel or list in front
    /// receives the keys.
    pub fn update_focus(&mut self, now: u64, prompt_is_empty: bool, is_covered: bool) {
        self.key_focus = match self.has_focus(now, prompt_is_empty) {
            _ if is_covered => KeyFocus::Covered,
            true => KeyFocus::Here,
            false => KeyFocus::Prompt,
        };
    }

    /// Handles a key; returns false if it has no meaning here.
    pub fn on_key(&mut self, key: &KeyEvent, cx: &mut UiContext<'_>) -> bool {
        let previous_serial = self.queue.current_serial();
        let Some(first) = self.queue.first_mut() else { return false };
        let is_digit = matches!(key.code, KeyCode::Char('1'..='9'));
        let is_permission = matches!(first.question, PendingQuestion::Permission(_));
        let is_text_open = first.question.text_input().is_some();
        // A number that is not on the screen is the start of a prompt.
        if is_digit && is_permission && !is_text_open && !self.shows_numbers {
            return false;
        }
        let op = match first.question.on_key(key, (first.call, first.asked), cx.appearance) {
            QuestionKeyOutcome::Ignored => return false,
            QuestionKeyOutcome::Handled => {
                if let PendingQuestion::UserQuestion(_) = first.question {
                    self.rendered = RenderedQuestionContent::default();
                }
                return true;
            }
            QuestionKeyOutcome::ShowFullView => {
                cx.push_command(UiCommand::ShowFullView);
                return true;
            }
            QuestionKeyOutcome::Answer(op) => op,
        };
        if let Some(session) = cx.state.session {
            self.queue.mark_answered(cx.send_request(FrontendRequest::SessionOp {
                session,
                id: None,
                op,
            }));
            self.update_current_question(previous_serial, cx.now);
        }
        true
    }

    /// Inserts pasted text into an open text input; returns false if the paste is for the prompt.
    pub fn on_paste(&mut self, text: &str, now: u64, prompt_is_empty: bool) -> bool {
        let has_focus = self.has_focus(now, prompt_is_empty);
        let input = self.queue.first_mut().and_then(|first| first.question.text_input_mut());
        let Some(input) = input.filter(|_| has_focus) else { return false };
        input.insert(text);
        true
    }

    /// Returns a `QuestionFullView` panel with the content of the first question.
    pub fn full_view(&self) -> Option<Box<dyn Panel>> {
        let (title, parts) = match &self.queue.first()?.question {
            PendingQuestion::Permission(permission) => {
                (permission.headline.clone(), permission.parts.clone())
            }
            PendingQuestion::UserQuestion(form) => {
                let options =
                    QuestionContentPart::new("", QuotedText::Prose(form.numbered_options()));
                (form.headline(), form.question_parts().into_iter().chain([options]).collect())
            }
        };
        Some(Box::new(full_view::QuestionFullView::new(title, parts)))
    }

    /// Returns the preferred height, at most `max_rows`.
    pub fn height(&mut self, width: u16, max_rows: u16, appearance: &Appearance) -> u16 {
        let (rows, _) = self.render(usize::from(width), usize::from(max_rows), appearance);
        self.wanted_rows = (rows.len(), usize::from(max_rows));
        u16::try_from(rows.len()).unwrap_or(max_rows)
    }

    /// Draws the first question, and returns the cursor position if there is a text input.
    pub fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        appearance: &Appearance,
        state: &SessionState,
    ) -> Option<Position> {
        let _ = state;
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        // If the area has the requested height, use the same maximum as `height` did, so that the
        // layout is the same.
        let max_rows = if self.wanted_rows.0 == height { self.wanted_rows.1 } else { height };
        let (rows, cursor) = self.render(width, max_rows, appearance);
        for (row, row_area) in rows.iter().zip(area.rows()) {
            row.draw(row_area, buffer);
        }
        let (column, row) = cursor.filter(|_| self.key_focus == KeyFocus::Here)?;
        let offset_by =
            |start: u16, offset: usize| start + u16::try_from(offset).unwrap_or(u16::MAX - start);
        Some(Position::new(offset_by(area.x, column), offset_by(area.y, row)))
    }

    fn render(
        &mut self,
        width: usize,
        max_rows: usize,
        appearance: &Appearance,
    ) -> (Vec<crate::safe_line::SafeLine>, Option<(usize, usize)>) {
        let (position_label, key_focus) = (self.queue.position_label(), self.key_focus);
        let Some(first) = self.queue.first_mut() else { return (Vec::new(), None) };
        let rendered = &mut self.rendered;
        let (card, parts) = match &mut first.question {
            PendingQuestion::Permission(question) => {
                let card = QuestionCard {
                    headline: question.headline.clone(),
                    role: question.role(),
                    warning: question.warning.as_deref(),
                    position_label,
                    key_focus,
                    options: (Vec::new(), 0),
                    note: None,
                    answers: (question.answer_rows(appearance), question.cursor),
                    choices: question.key_choices(appearance),
                    text_input: question.denial_reason.as_ref().map(|input| ("no", input)),
                };
                (card, rendered.render(&question.parts, width, appearance))
            }
            PendingQuestion::UserQuestion(form) => {
                let position_label: Vec<String> =
                    form.page_label().into_iter().chain(position_label).collect();
                let card = QuestionCard {
                    headline: form.headline(),
                    role: StyleRole::Accent,
                    warning: None,
                    position_label: (!position_label.is_empty()).then(|| position_label.join(", ")),
                    key_focus,
                    options: (form.option_rows(width, appearance), form.selected_row()),
                    note: form.escape_note(appearance),
                    answers: Default::default(),
                    choices: form.key_choices(appearance),
                    text_input: form.text_input.as_ref().map(|input| ("own", input)),
                };
                (card, rendered.render(&form.question_parts(), width, appearance))
            }
        };
        let card = card.render(parts, (width, max_rows), appearance);
        self.shows_numbers = card.shows_numbers;
        (card.rows, card.cursor)
    }
}
