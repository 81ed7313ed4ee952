//! Drawing of the prompt: a mark that shows the effect of Enter, the text, and a hint beside it.

use super::chips::PromptChip;
use super::completion::{CompletionChoice, CompletionList, CompletionListKind};
use super::completion_cache::CompletionKind;
use super::{PromptEditor, wrapped_rows};
use crate::keys::UiCommand;
use crate::safe_line::{self, SafeLine};
use crate::session_state::SessionState;
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use crate::wrap;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use unicode_segmentation::UnicodeSegmentation;

const MARK_COLUMNS: u16 = 2;
const MAX_LIST_ROWS: usize = 8;
/// Longer notices stand above the prompt, not beside it.
const MAX_SIDE_NOTICE_COLUMNS: usize = 40;
const MAX_NOTICE_ROWS: usize = 3;
/// The width from which on completions become no wider than their longest texts.
const WIDE_LIST_COLUMNS: usize = 110;
/// The maximum width of the name column in the command list, if something follows the name.
const MAX_NAME_COLUMNS: usize = 18;

/// Returns the width available for text, without the mark (`MARK_COLUMNS`) and the cursor.
fn text_columns(width: u16) -> usize {
    usize::from(width.saturating_sub(MARK_COLUMNS + 1)).max(1)
}

impl PromptEditor {
    pub(super) fn text_height(&self, width: u16) -> u16 {
        if self.is_searching_history() {
            return 1;
        }
        let rows = wrapped_rows::wrap_rows(&self.buffer, text_columns(width)).len();
        u16::try_from(rows).unwrap_or(u16::MAX).min(self.screen_rows / 3).max(1)
    }

    /// Draws the prompt and returns the cursor position. `state` tells whether Enter steers a
    /// running turn or starts one.
    pub fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        appearance: &Appearance,
        state: &SessionState,
    ) -> Option<Position> {
        if area.height == 0 || area.width <= MARK_COLUMNS {
            return None;
        }
        self.text_columns = text_columns(area.width);
        let text_rows = self.text_height(area.width).min(area.height);
        let notice_rows = self.notice_rows(area.width, appearance);
        let notice_height = u16::try_from(notice_rows.len()).unwrap_or(0);
        let notice_height = notice_height.min(area.height - text_rows);
        let list_rows = self.list_height().min(area.height - text_rows - notice_height);
        if let Some(list) = &self.completion.list {
            let is_unknown = list.kind == CompletionListKind::SlashCommand && list.rows.is_empty();
            let cache = Some(&self.completion.cache).filter(|_| is_unknown);
            let tip = cache.and_then(|cache| cache.unknown_command_tip(&list.query));
            let list_area = Rect { height: list_rows, ..area };
            draw_completions(list, tip.as_deref(), list_area, buffer, appearance);
        }
        for (row, y) in notice_rows.iter().zip(area.y + list_rows..).take(notice_height.into()) {
            row.draw(Rect { y, height: 1, ..area }, buffer);
        }
        let top = area.y + list_rows + notice_height;
        let text_area = Rect { y: top, height: text_rows, ..area };
        match self.completion.list.as_ref().filter(|list| list.kind == CompletionListKind::History)
        {
            Some(list) => Some(draw_history_query(list, text_area, buffer, appearance)),
            None => self.draw_text(text_area, buffer, appearance, state),
        }
    }

    /// Returns the rows above the text for a notice that is too long to stand beside it.
    pub(super) fn notice_rows(&self, width: u16, appearance: &Appearance) -> Vec<SafeLine> {
        let is_long = |notice: &&String| safe_line::display_width(notice) > MAX_SIDE_NOTICE_COLUMNS;
        let Some(notice) = self.notice.as_ref().filter(is_long) else { return Vec::new() };
        let row = SafeLine::styled(appearance.style(StyleRole::Warning), notice);
        let columns = text_columns(width);
        let rows = wrap::wrap(&row, columns, wrap::WrapMode::Words, 0);
        let indent = " ".repeat(usize::from(MARK_COLUMNS));
        let indented = rows.iter().take(MAX_NOTICE_ROWS).map(|row| {
            let mut indented = SafeLine::styled(Style::default(), &indent);
            indented.append(row);
            indented
        });
        indented.collect()
    }

    /// Moves the cursor to a clicked cell, given as row and column of the prompt's area.
    pub fn click(&mut self, (row, column): (usize, usize)) {
        let Some(row) = row.checked_sub(usize::from(self.list_height())) else { return };
        if self.is_searching_history() {
            return;
        }
        let rows = wrapped_rows::wrap_rows(&self.buffer, self.text_columns);
        let cell = (self.top_row + row, column.saturating_sub(usize::from(MARK_COLUMNS)));
        let offset = wrapped_rows::offset_at_column(&self.buffer, &rows, cell, self.text_columns);
        if let Some(offset) = offset {
            self.buffer.move_cursor(offset);
        }
    }

    pub(super) fn list_height(&self) -> u16 {
        let Some(list) = &self.completion.list else { return 0 };
        u16::try_from(list.rows.len().clamp(1, MAX_LIST_ROWS)).unwrap_or(1)
    }

    fn draw_text(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        appearance: &Appearance,
        state: &SessionState,
    ) -> Option<Position> {
        let rows = wrapped_rows::wrap_rows(&self.buffer, self.text_columns);
        let (row, column) = wrapped_rows::cursor_position(&self.buffer, &rows, self.text_columns);
        let visible_rows = usize::from(area.height);
        self.top_row = self.top_row.min(rows.len().saturating_sub(visible_rows)).min(row);
        self.top_row = self.top_row.max((row + 1).saturating_sub(visible_rows));
        let inner_area =
            Rect { x: area.x + MARK_COLUMNS, width: area.width - MARK_COLUMNS, ..area };
        for (line, span) in rows.iter().skip(self.top_row).take(visible_rows).enumerate() {
            let row_area = Rect { y: area.y + u16::try_from(line).unwrap_or(0), ..inner_area };
            let line_row = self.render_span(*span, appearance);
            line_row.draw(row_area, buffer);
            if line + 1 == visible_rows.min(rows.len() - self.top_row) {
                self.draw_hint(line_row.width(), row_area, buffer, appearance, state);
            }
        }
        let (mark, role) = self.prompt_mark(appearance);
        let role = if state.is_busy() && role == StyleRole::Accent { StyleRole::Dim } else { role };
        SafeLine::styled(appearance.style(role), mark).draw(area, buffer);
        if self.top_row > 0 {
            SafeLine::styled(
                appearance.style(StyleRole::Dim),
                if appearance.ascii { "^" } else { "↑" },
            )
            .draw(area, buffer);
        }
        if self.top_row + visible_rows < rows.len() {
            let last = Rect { y: area.bottom() - 1, ..area };
            SafeLine::styled(
                appearance.style(StyleRole::Dim),
                if appearance.ascii { "v" } else { "↓" },
            )
            .draw(last, buffer);
        }
        let x = inner_area.x + u16::try_from(column).unwrap_or(0);
        let y = area.y + u16::try_from(row - self.top_row).unwrap_or(0);
        Some(Position::new(x.min(area.right() - 1), y))
    }

    fn render_span(&self, span: wrapped_rows::RowByteRange, appearance: &Appearance) -> SafeLine {
        let text = self.buffer.raw_text().get(span.start..span.end).unwrap_or_default();
        let mut row = SafeLine::default();
        let mut plain = String::new();
        for (offset, cluster) in super::cursor::clusters(text) {
            if span.start + offset == 0 && self.buffer.hides_prefix() {
                continue;
            }
            let display = wrapped_rows::display_cluster(&self.buffer, cluster, self.text_columns);
            let chip = self.buffer.chip_for(cluster);
            if chip.is_some_and(|chip| *chip != PromptChip::PlainAtSign) {
                row.push_text(appearance.style(StyleRole::Text), &std::mem::take(&mut plain));
                row.push_text(appearance.style(StyleRole::Accent), &display);
            } else {
                plain.push_str(&display);
            }
        }
        row.push_text(appearance.style(StyleRole::Text), &plain);
        row
    }

    /// Returns the mark that shows the effect of Enter: `!`, `/` or `›`.
    fn prompt_mark(&self, appearance: &Appearance) -> (&'static str, StyleRole) {
        match self.mode_prefix() {
            Some('!') => ("!", StyleRole::Warning),
            Some(_) => ("/", StyleRole::Accent),
            None if appearance.ascii => (">", StyleRole::Accent),
            None => ("›", StyleRole::Accent),
        }
    }

    /// Draws the hint beside the text, or in its place if it is empty: the longest one that fits.
    fn draw_hint(
        &self,
        used_width: usize,
        area: Rect,
        buffer: &mut Buffer,
        appearance: &Appearance,
        state: &SessionState,
    ) {
        let available = usize::from(area.width);
        let dim = appearance.style(StyleRole::Dim);
        if let Some(notice) = &self.notice
            && safe_line::display_width(notice) <= MAX_SIDE_NOTICE_COLUMNS
        {
            let row = SafeLine::styled(appearance.style(StyleRole::Warning), notice);
            draw_right_aligned(row, used_width, area, buffer);
            return;
        }
        let steering_hints = self.steering_hints(appearance, state);
        if !self.buffer.raw_text().is_empty() {
            let fits = steering_hints
                .iter()
                .find(|hint| used_width + 2 + safe_line::display_width(hint) < available);
            if let Some(hint) = fits {
                draw_right_aligned(SafeLine::styled(dim, hint), used_width, area, buffer);
            }
            return;
        }
        let idle = [
            "Ask anything · @ file · / command · ! shell",
            "Ask anything · @ file · / command",
            "Ask anything",
        ];
        let hints: Vec<String> = if steering_hints.is_empty() {
            let suggestion = self.suggestion.into_iter();
            let suggestion = suggestion
                .flat_map(|text| [format!("Try: {text} (Tab accepts)"), format!("Try: {text}")]);
            suggestion.chain(idle.map(str::to_owned)).collect()
        } else {
            steering_hints
        };
        let to_ascii = |hint: String| if appearance.ascii { hint.replace('·', "-") } else { hint };
        let fits =
            hints.into_iter().map(to_ascii).find(|hint| safe_line::display_width(hint) < available);
        SafeLine::styled(dim, &fits.unwrap_or_default()).draw(area, buffer);
    }

    /// Returns the key hints for a running turn, longest first.
    fn steering_hints(&self, appearance: &Appearance, state: &SessionState) -> Vec<String> {
        if !state.is_busy() {
            return Vec::new();
        }
        let separator = if appearance.ascii { "-" } else { "·" };
        let key = |command| key_label(&appearance.key_map.key_hint(command));
        let (send, queue) = (key(UiCommand::SendPrompt), key(UiCommand::QueuePrompt));
        let send_and_queue = format!("{send}: send now {separator} {queue}: send when done");
        let mut hints = vec![send_and_queue, format!("{send}: send now")];
        if self.buffer.raw_text().is_empty() && !state.queued_prompts.is_empty() {
            let up = key(UiCommand::HistoryUp);
            hints.insert(
                0,
                format!(
                    "{send}: send now {separator} {queue}: send when done {separator} \
                     {up}: edit queued"
                ),
            );
        }
        hints
    }
}

/// Draws the history search query in place of the prompt text.
fn draw_history_query(
    list: &CompletionList,
    area: Rect,
    buffer: &mut Buffer,
    appearance: &Appearance,
) -> Position {
    let row = SafeLine::styled(appearance.style(StyleRole::Accent), "? ")
        .with_text(appearance.style(StyleRole::Text), &list.query);
    row.draw(area, buffer);
    let width = u16::try_from(row.width()).unwrap_or(u16::MAX);
    if list.query.is_empty() {
        let hint = SafeLine::styled(appearance.style(StyleRole::Dim), "search earlier prompts");
        hint.draw(
            Rect { x: area.x + MARK_COLUMNS, width: area.width - MARK_COLUMNS, ..area },
            buffer,
        );
    }
    Position::new(area.x.saturating_add(width).min(area.right() - 1), area.y)
}

fn draw_completions(
    list: &CompletionList,
    unknown_command_tip: Option<&str>,
    area: Rect,
    buffer: &mut Buffer,
    appearance: &Appearance,
) {
    let visible_rows = usize::from(area.height);
    if list.rows.is_empty() {
        let text = match list.kind {
            _ if list.is_loading => "loading …",
            CompletionListKind::Mention if list.is_incomplete => {
                "no match among the first 100,000 files; type the full path instead"
            }
            CompletionListKind::Mention => "no matching file or agent",
            CompletionListKind::SlashCommand => "Unknown command",
            CompletionListKind::History => "no matching prompt",
        };
        let text = match (list.kind, unknown_command_tip) {
            (CompletionListKind::SlashCommand, Some(tip)) if !list.is_loading => {
                format!("{text}. {tip}")
            }
            _ => text.to_owned(),
        };
        let text = if appearance.ascii { text.replace('…', "...") } else { text };
        SafeLine::styled(appearance.style(StyleRole::Dim), &format!("  {text}")).draw(area, buffer);
        return;
    }
    let first = list.selected.saturating_sub(visible_rows.saturating_sub(1));
    let rows = list.rows.iter().enumerate().skip(first).take(visible_rows);
    let name_widths = list
        .rows
        .iter()
        .skip(first)
        .take(visible_rows)
        .map(|choice| safe_line::display_width(&choice.entry.name));
    let name_width = name_widths.max().unwrap_or(0).min(MAX_NAME_COLUMNS);
    let text_widths = list.rows.iter().map(|choice| {
        let entry = &choice.entry;
        let texts = [&entry.name, &entry.note, &entry.key];
        texts.map(|text| safe_line::display_width(text)).iter().sum::<usize>()
    });
    let text_width = MAX_NAME_COLUMNS + 8 + text_widths.max().unwrap_or(0);
    let width = usize::from(area.width).min(text_width.max(WIDE_LIST_COLUMNS));
    for (line, (number, choice)) in rows.enumerate() {
        let row_area = Rect { y: area.y + u16::try_from(line).unwrap_or(0), ..area };
        let is_selected = number == list.selected;
        let mut row = render_choice(choice, is_selected, (name_width, width), appearance);
        if is_selected {
            row.pad_to(Style::default(), width);
            row = row.with_base_style(appearance.style(StyleRole::Selected));
        }
        row.draw(row_area, buffer);
    }
}

/// Renders a completion row: the name with its matches highlighted, the note, and the key that runs
/// it.
fn render_choice(
    choice: &CompletionChoice,
    is_selected: bool,
    (name_width, width): (usize, usize),
    appearance: &Appearance,
) -> SafeLine {
    let entry = &choice.entry;
    let prefix = match entry.kind {
        CompletionKind::File | CompletionKind::PastPrompt => "  ",
        CompletionKind::Agent => " @",
        CompletionKind::BuiltinCommand(_) | CompletionKind::CustomCommand => " /",
    };
    // Dim text is hard to read on the background of the selected row.
    let dim_role = if is_selected { StyleRole::Text } else { StyleRole::Dim };
    let (text, dim) = (appearance.style(StyleRole::Text), appearance.style(dim_role));
    let match_style = appearance.style(StyleRole::Accent).add_modifier(Modifier::BOLD);
    let mut row = SafeLine::styled(text, prefix);
    let available = width.saturating_sub(row.width() + 1);
    let name = entry.name.replace('\n', " ");
    let clusters: Vec<&str> = name.graphemes(true).collect();
    // A long path differs from others at its end, a prompt at its start, so cut the other side.
    let mut skipped = 0;
    let mut total_width: usize =
        clusters.iter().map(|cluster| safe_line::display_width(cluster)).sum();
    if entry.kind != CompletionKind::PastPrompt && total_width > available {
        row.push_text(dim, if appearance.ascii { "." } else { "…" });
        for cluster in &clusters {
            if total_width < available {
                break;
            }
            total_width -= safe_line::display_width(cluster);
            skipped += 1;
        }
    }
    for (number, cluster) in clusters.iter().enumerate().skip(skipped).take(width) {
        let is_match =
            u32::try_from(number).is_ok_and(|number| choice.matched_clusters.contains(&number));
        row.push_text(if is_match { match_style } else { text }, cluster);
    }
    if !entry.note.is_empty() || !entry.key.is_empty() {
        row.pad_to(text, name_width + 2);
        let key = key_label(&entry.key);
        let remaining = width.saturating_sub(row.width() + 2);
        let shows_key = !key.is_empty() && remaining > safe_line::display_width(&key) + 24;
        let available =
            if shows_key { remaining - safe_line::display_width(&key) - 2 } else { remaining };
        row.push_text(text, "  ");
        row.append(&wrap::truncate(&SafeLine::styled(dim, &entry.note), available, appearance));
        if shows_key {
            row.pad_to(text, width.saturating_sub(safe_line::display_width(&key) + 1));
            row.push_text(dim, &key);
        }
    }
    wrap::truncate(&row, width, appearance)
}

fn draw_right_aligned(row: SafeLine, used_width: usize, area: Rect, buffer: &mut Buffer) {
    let width = u16::try_from(row.width()).unwrap_or(u16::MAX).min(area.width);
    let available = area.width.saturating_sub(u16::try_from(used_width).unwrap_or(u16::MAX));
    if width < available || used_width == 0 {
        row.draw(Rect { x: area.right() - width, width, ..area }, buffer);
    }
}

/// Returns the display label of a key.
fn key_label(key: &str) -> String {
    let parts = key.split('+').map(|part| {
        let mut characters = part.chars();
        let first = characters.next().map(char::to_uppercase);
        first.into_iter().flatten().chain(characters).collect::<String>()
    });
    parts.collect::<Vec<String>>().join("+")
}
