//! The layout of a frame: the transcript, a panel or a question over it, the `PromptSeparatorLine`, the
//! prompt and the status line.

use super::App;
use super::status::{self, PromptSeparatorLine, StatusTexts};
use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use crate::wrap;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

impl App {
    /// Draws a frame and returns the cursor position.
    pub fn draw(&mut self, buffer: &mut Buffer) -> Option<Position> {
        let area = buffer.area;
        self.prompt.set_screen_rows(area.height);
        let prompt_height =
            self.prompt.height(area.width, &self.appearance).min(area.height / 2).max(1);
        // While a panel or the search is open, a question stays visible with at most its first row.
        let is_covered = !self.panels.is_empty() || self.transcript.is_finding();
        let max_question_height =
            if is_covered { 1 } else { area.height.saturating_sub(prompt_height + 3) };
        let list_is_open = self.prompt.has_open_list() && !self.question_has_focus();
        self.questions.update_focus(self.now, self.prompt.is_empty(), is_covered || list_is_open);
        let question_height = self
            .questions
            .height(area.width, max_question_height, &self.appearance)
            .min(max_question_height);
        let transcript_height = area.height.saturating_sub(prompt_height + question_height + 2);
        let mut top = area.y;
        let mut take_rows = |height: u16| {
            let part = Rect { y: top, height, ..area }.intersection(area);
            top = top.saturating_add(height);
            part
        };
        let top_area = take_rows(transcript_height);
        let side_width = self.side_panel_width(area.width);
        let transcript_area = Rect { width: top_area.width - side_width, ..top_area };
        let side_area = Rect { x: transcript_area.right(), width: side_width, ..top_area };
        let question_area = take_rows(question_height);
        let rule_area = take_rows(1);
        let prompt_area = take_rows(prompt_height);
        let status_area = take_rows(1);
        (self.transcript_area, self.prompt_area) = (transcript_area, prompt_area);
        self.screen_columns = area.width;
        self.draw_side_panel(side_area, buffer);
        let search_cursor =
            self.transcript.draw(transcript_area, buffer, &self.appearance, &self.state);
        let mut cursor = self.draw_panel(transcript_area, buffer);
        if self.panels.is_empty() {
            cursor = search_cursor;
        }
        if question_height > 0 {
            let question_cursor =
                self.questions.draw(question_area, buffer, &self.appearance, &self.state);
            cursor = cursor.or(question_cursor);
        }
        let width = usize::from(area.width);
        self.prompt_rule().render(width, &self.appearance, &self.state).draw(rule_area, buffer);
        let prompt_cursor = self.prompt.draw(prompt_area, buffer, &self.appearance, &self.state);
        let prompt_has_focus = !is_covered && !self.question_has_focus();
        if prompt_has_focus {
            cursor = prompt_cursor;
        }
        let texts = StatusTexts {
            editing_mode: self.prompt.editing_mode(&self.appearance),
            command_output: &self.status_text,
        };
        status::render_status_line(width, texts, &self.appearance, &self.state)
            .draw(status_area, buffer);
        cursor.filter(|at| area.contains(*at))
    }

    /// Draws the open panel over the bottom of the transcript.
    pub(crate) fn draw_panel(
        &mut self,
        transcript_area: Rect,
        buffer: &mut Buffer,
    ) -> Option<Position> {
        let panel = self.panels.last_mut()?;
        let content_height = panel
            .height(transcript_area.width, &self.state)
            .min(transcript_area.height.saturating_sub(1));
        let top = transcript_area.bottom().saturating_sub(content_height + 1);
        let panel_area = Rect { y: top, height: content_height + 1, ..transcript_area }
            .intersection(transcript_area);
        ratatui::widgets::Widget::render(ratatui::widgets::Clear, panel_area, buffer);
        let border_style = self.appearance.style(StyleRole::Border);
        let line = if self.appearance.ascii { "-" } else { "─" };
        let title = SafeLine::styled(border_style, &format!("{} ", line.repeat(2)))
            .with_text(self.appearance.style(StyleRole::Strong), &panel.title());
        let fill_width = usize::from(transcript_area.width).saturating_sub(title.width() + 1);
        let title = title.with_text(border_style, &format!(" {}", line.repeat(fill_width)));
        wrap::truncate(&title, usize::from(panel_area.width), &self.appearance)
            .draw(panel_area, buffer);
        let content_area =
            Rect { y: panel_area.y + 1, height: panel_area.height.saturating_sub(1), ..panel_area };
        panel.draw(content_area, buffer, &self.appearance, &self.state)
    }

    fn prompt_rule(&self) -> PromptSeparatorLine<'_> {
        let hint = self.hint.as_ref().map(|(hint, _)| hint.as_str());
        let turn_millis = self.state.turn.map(|(_, since)| self.now.saturating_sub(since));
        PromptSeparatorLine { hint, turn_millis, now: self.now, question: self.questions.kind() }
    }
}
