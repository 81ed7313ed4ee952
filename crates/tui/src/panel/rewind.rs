//! The rewind panel (`/rewind`): goes back to an earlier prompt, drops the messages after it, and
//! restores the prompt for editing.

use super::filter_list::{FilterList, ListItem, ListKeyOutcome};
use super::pager::Pager;
use super::{Panel, PanelControlFlow, PanelResult, shared_rows};
use crate::keys::UiCommand;
use crate::render;
use crate::session_state::SessionState;
use crate::theme::StyleRole;
use crate::ui_context::{Appearance, UiContext};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::display_text::format_age;
use windlass_protocol::frontend_messages::HostResponse;
use windlass_protocol::{
    Attachment, DiffDirection, Fault, LogSeq, PromptHistoryRow, QueryReply, SessionOp,
    SessionQuery, UndoScope, UnixMillis,
};

const MAX_OFFERED_PROMPTS: u32 = 200;

/// The file changes since the chosen prompt.
#[derive(Debug)]
struct RewindPreview {
    text: String,
    files: Vec<Attachment>,
    target_seq: LogSeq,
    changes_request: u64,
    changes: Option<(Vec<LogSeq>, String)>,
    pager: Pager,
}

/// The list of earlier prompts, then the choice to keep or undo file changes.
#[derive(Debug)]
pub struct RewindPanel {
    list: FilterList<(String, Vec<Attachment>, LogSeq)>,
    list_request: u64,
    preview: Option<RewindPreview>,
    result: PanelResult,
    approved_change: Option<String>,
}

impl RewindPanel {
    /// Requests the earlier prompts with `SessionQuery::Prompts`; returns `None` without a session.
    pub fn new(cx: &mut UiContext<'_>) -> Option<RewindPanel> {
        let session = Some(cx.state.session?);
        let list_request =
            cx.send_query(SessionQuery::Prompts { session, limit: Some(MAX_OFFERED_PROMPTS) });
        let list = FilterList::loading("Loading your prompts", "No prompts yet");
        Some(RewindPanel {
            list,
            list_request,
            preview: None,
            result: PanelResult::Nothing,
            approved_change: None,
        })
    }

    fn preview_selected(&mut self, cx: &mut UiContext<'_>) {
        let (Some((_, (text, files, target_seq))), Some(session)) =
            (self.list.selected(), cx.state.session)
        else {
            return;
        };
        let (text, files, target_seq) = (text.clone(), files.clone(), *target_seq);
        let changes_request = cx.send_query(SessionQuery::Changes {
            session,
            scope: UndoScope::Since { seq: target_seq },
            direction: DiffDirection::Reverse,
        });
        self.preview = Some(RewindPreview {
            text,
            files,
            target_seq,
            changes_request,
            changes: None,
            pager: Pager::default(),
        });
    }
}

impl Panel for RewindPanel {
    fn title(&self) -> String {
        match &self.preview {
            None => "Rewind to an earlier prompt".to_owned(),
            Some(preview) => {
                let first_line = preview.text.trim().lines().next().unwrap_or_default();
                format!(
                    "Rewind to: {}",
                    windlass_protocol::display_text::truncate_chars(first_line, 50)
                )
            }
        }
    }

    fn on_key(&mut self, key: &KeyEvent, cx: &mut UiContext<'_>) -> PanelControlFlow {
        let Some(preview) = &mut self.preview else {
            if self.list.on_key(key, &cx.appearance.key_map) == ListKeyOutcome::RowChosen {
                self.preview_selected(cx);
            }
            return PanelControlFlow::Stay;
        };
        if preview.pager.on_key(key, &cx.appearance.key_map) {
            return PanelControlFlow::Stay;
        }
        let Some((facts, diff)) = &preview.changes else { return PanelControlFlow::Stay };
        let undo_files = match key.code {
            KeyCode::Char('b') => false,
            KeyCode::Enter if facts.is_empty() => false,
            KeyCode::Char('u') if !facts.is_empty() => true,
            _ => return PanelControlFlow::Stay,
        };
        // Send `Rewind` first: an undo is a turn of its own, and a rewind is possible only between
        // turns.
        cx.send_op(SessionOp::Rewind { to: preview.target_seq });
        if undo_files {
            cx.send_op(SessionOp::Undo { facts: facts.clone() });
            self.approved_change = Some(diff.clone());
        }
        self.result = PanelResult::RestorePrompt(preview.text.clone(), preview.files.clone());
        PanelControlFlow::Close
    }

    fn on_escape(&mut self, _: &mut UiContext<'_>) -> PanelControlFlow {
        match self.preview.take() {
            Some(_) => PanelControlFlow::Stay,
            None => PanelControlFlow::Close,
        }
    }

    fn on_paste(&mut self, text: &str, _: &mut UiContext<'_>) {
        if self.preview.is_none() {
            self.list.on_paste(text);
        }
    }

    fn on_wheel(&mut self, lines: i32, _: &mut UiContext<'_>) {
        match &mut self.preview {
            Some(preview) => preview.pager.scroll_by(lines),
            None => self.list.move_selection(lines),
        }
    }

    fn on_response(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        cx: &mut UiContext<'_>,
    ) -> bool {
        let preview = self.preview.as_mut().filter(|preview| preview.changes_request == id);
        if id != self.list_request && preview.is_none() {
            return false;
        }
        match (response, preview) {
            (Err(fault), _) => {
                self.list.set_failed(fault);
                self.preview = None;
            }
            (
                Ok(HostResponse::Reply { reply: QueryReply::Changes { facts, diff } }),
                Some(preview),
            ) => {
                preview.changes = Some((facts.clone(), diff.clone()));
                preview.pager.invalidate();
            }
            (Ok(HostResponse::Reply { reply: QueryReply::Prompts { prompts } }), None) => {
                let item = |row: &PromptHistoryRow| {
                    let line = row.text.split_whitespace().collect::<Vec<_>>().join(" ");
                    let item =
                        ListItem::new(line).with_column(format_age(row.at, UnixMillis(cx.now)));
                    Some((item, (row.text.clone(), row.attachments.clone(), row.rewind_to?)))
                };
                self.list.set_items(prompts.iter().filter_map(item).collect());
            }
            (Ok(_), _) => {}
        }
        true
    }

    fn take_result(&mut self) -> PanelResult {
        std::mem::take(&mut self.result)
    }

    fn take_approved_change(&mut self) -> Option<String> {
        self.approved_change.take()
    }

    fn height(&self, _: u16, _: &SessionState) -> u16 {
        let changes = self.preview.as_ref().map(|preview| preview.changes.as_ref());
        match changes {
            None => self.list.height(),
            Some(None) => 3,
            Some(Some((_, diff))) => u16::try_from(diff.lines().count() + 5).unwrap_or(u16::MAX),
        }
    }

    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        appearance: &Appearance,
        _: &SessionState,
    ) -> Option<Position> {
        let Some(preview) = &mut self.preview else {
            let keys = [(UiCommand::ChooseRow, "rewind to it"), (UiCommand::Escape, "close")];
            return self.list.draw(
                area,
                buffer,
                appearance,
                &shared_rows::describe_keys(appearance, &keys),
            );
        };
        let (body, footer) = shared_rows::split_footer(area);
        let separator = shared_rows::item_separator(appearance);
        let cancel_hint = shared_rows::describe_keys(appearance, &[(UiCommand::Escape, "cancel")]);
        let hints = match &preview.changes {
            None => {
                shared_rows::dim_row("Loading the changes since then", appearance)
                    .draw(body, buffer);
                cancel_hint
            }
            Some((facts, _)) if facts.is_empty() => {
                shared_rows::dim_row("No files changed since then", appearance).draw(body, buffer);
                format!("b rewind{separator}{cancel_hint}")
            }
            Some((_, diff)) => {
                preview.pager.draw(body, buffer, appearance, |width| {
                    let message = "Rewind to this prompt? With `u`, these file changes are \
                                   undone:";
                    let mut rows =
                        shared_rows::render_prose(message, StyleRole::Text, width, appearance);
                    let inner = width.saturating_sub(shared_rows::PANEL_MARGIN + 1).max(1);
                    let diff_rows = render::render_diff(diff, inner, appearance);
                    let margin = shared_rows::PANEL_MARGIN;
                    rows.extend(diff_rows.iter().map(|row| shared_rows::indent_row(row, margin)));
                    rows
                });
                let choices = ["b conversation only", "u conversation and files", &cancel_hint];
                choices.join(separator)
            }
        };
        shared_rows::hint_row(&hints, appearance, footer.width).draw(footer, buffer);
        None
    }
}
