//! A scrollable view of the full content of a question.

use super::card::RenderedQuestionContent;
use super::question_content::QuestionContentPart;
use super::row_paging::scroll_position;
use crate::keys::{KeyScope, UiCommand};
use crate::panel::{Panel, PanelControlFlow};
use crate::safe_line::SafeLine;
use crate::session_state::SessionState;
use crate::theme::StyleRole;
use crate::ui_context::{Appearance, UiContext};
use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

/// The full-view panel. It is read-only and answers nothing.
#[derive(Debug)]
pub(crate) struct QuestionFullView {
    title: String,
    parts: Vec<QuestionContentPart>,
    rendered: RenderedQuestionContent,
    top_row: usize,
    /// The number of rows visible at the last draw.
    page_rows: usize,
}

impl QuestionFullView {
    pub(crate) fn new(title: String, parts: Vec<QuestionContentPart>) -> QuestionFullView {
        QuestionFullView {
            title,
            parts,
            rendered: RenderedQuestionContent::default(),
            top_row: 0,
            page_rows: 1,
        }
    }
}

impl Panel for QuestionFullView {
    fn title(&self) -> String {
        self.title.clone()
    }

    fn on_key(&mut self, key: &KeyEvent, cx: &mut UiContext<'_>) -> PanelControlFlow {
        if cx.appearance.key_map.command_for(KeyScope::Question, key)
            == Some(UiCommand::ShowFullView)
        {
            return PanelControlFlow::Close;
        }
        self.top_row = scroll_position(self.top_row, self.page_rows, key, cx.appearance);
        PanelControlFlow::Stay
    }

    fn on_wheel(&mut self, lines: i32, _: &mut UiContext<'_>) {
        self.top_row =
            self.top_row.saturating_add_signed(isize::try_from(lines).unwrap_or_default());
    }

    fn height(&self, width: u16, state: &SessionState) -> u16 {
        let _ = (width, state);
        u16::MAX
    }

    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        appearance: &Appearance,
        state: &SessionState,
    ) -> Option<Position> {
        let _ = state;
        let rows: Vec<&SafeLine> =
            self.rendered.render(&self.parts, usize::from(area.width), appearance)[0]
                .iter()
                .flatten()
                .collect();
        let page_rows = usize::from(area.height.saturating_sub(1));
        let top = self.top_row.min(rows.len().saturating_sub(page_rows));
        let row_areas = area.rows();
        for (row, row_area) in rows.iter().skip(top).take(page_rows).zip(row_areas) {
            row.draw(row_area, buffer);
        }
        let last_row = (top + page_rows).min(rows.len());
        let hint =
            |command| super::choices::pressed_key_label(&appearance.key_map.key_hint(command));
        let scroll_hint = match rows.len() > page_rows {
            true => format!("{} {} scroll · ", hint(UiCommand::RowDown), hint(UiCommand::PageDown)),
            false => String::new(),
        };
        let close_hint = format!("{} or Esc to go back", hint(UiCommand::ShowFullView));
        let text = format!(" {}–{last_row} of {} · {scroll_hint}{close_hint}", top + 1, rows.len());
        let text = if appearance.ascii { text.replace(['–', '·'], "-") } else { text };
        let footer_area = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
        SafeLine::styled(appearance.style(StyleRole::Dim), &text)
            .draw(footer_area.intersection(area), buffer);
        (self.top_row, self.page_rows) = (top, page_rows.max(1));
        None
    }
}
