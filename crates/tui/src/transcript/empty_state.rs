//! The empty transcript, shown before the first prompt.

use super::TranscriptView;
use super::block_rows;
use super::render_context::{LEFT_MARGIN, RenderContext, indent_rows};
use crate::keys::UiCommand;
use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use crate::wrap;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use windlass_protocol::frontend_messages::{HostStatus, TrustState};

impl TranscriptView {
    /// Draws the empty transcript with the `HostStatus` and the notes.
    pub(super) fn draw_empty_state(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        render_cx: &RenderContext<'_>,
    ) {
        let mut rows =
            render_empty_state(&render_cx.state.host_status, render_cx, usize::from(area.height));
        for note in self.blocks.notes() {
            rows.push(SafeLine::default());
            rows.extend(block_rows::render_note(note, render_cx));
        }
        let hidden = rows.len().saturating_sub(usize::from(area.height));
        self.visible_blocks.clear();
        self.visible_block_rows.clear();
        for (y, row) in (area.y..area.bottom()).zip(rows.into_iter().skip(hidden)) {
            row.draw(Rect { y, height: 1, ..area }, buffer);
        }
    }
}

fn render_empty_state(
    status: &HostStatus,
    render_cx: &RenderContext<'_>,
    height: usize,
) -> Vec<SafeLine> {
    if status.version.is_empty() {
        return Vec::new();
    }
    let appearance = render_cx.appearance;
    let (dim, text) = (appearance.style(StyleRole::Dim), appearance.style(StyleRole::Text));
    let mut rows = vec![
        SafeLine::default(),
        SafeLine::styled(appearance.style(StyleRole::Accent), "Windlass")
            .with_text(dim, &format!(" {}", status.version)),
        SafeLine::default(),
    ];
    let branch = status.branch.as_ref().map(|branch| format!(" · {branch}"));
    let mut push_row = |name: &str, value: &str, note: &str| {
        let name = format!("{name:<9}");
        rows.push(
            SafeLine::styled(dim, &name)
                .with_text(text, value)
                .with_text(dim, &render_cx.ascii_fallback(note)),
        );
    };
    push_row("folder", &status.workspace, &branch.unwrap_or_default());
    push_row(
        "model",
        status.model.as_deref().unwrap_or("none yet"),
        &match status.model {
            Some(_) => String::new(),
            None => " · use /model to choose one".to_owned(),
        },
    );
    push_row("mode", render_cx.state.mode.name(), describe_mode(render_cx.state.mode));
    push_row("sandbox", &status.sandbox, "");
    match status.trust {
        TrustState::Trusted => {}
        TrustState::NotAsked | TrustState::Declined => {
            push_row(
                "trust",
                "not trusted",
                " · AGENTS.md ignored, language servers off; /trust to change",
            );
        }
        TrustState::ChangedSinceTrust => {
            push_row(
                "trust",
                "not trusted",
                " · the folder changed since you trusted it; /trust to review",
            );
        }
    }
    if height > rows.len() + 9 {
        rows.push(SafeLine::default());
        let keys = [
            (UiCommand::Mode, "change the mode"),
            (UiCommand::Sessions, "resume an earlier session"),
            (UiCommand::CommandPalette, "find a command"),
        ];
        let hint = |key: &str, description: &str| {
            SafeLine::styled(appearance.style(StyleRole::Strong), &format!("{key:<10}"))
                .with_text(dim, description)
        };
        rows.push(hint("@", "attach a file"));
        rows.push(hint("/", "run a command"));
        rows.push(hint("!", "run a shell command"));
        rows.push(hint("?", "help"));
        rows.extend(
            keys.map(|(command, description)| hint(&render_cx.key_hint(command), description)),
        );
    }
    let width = render_cx.width.saturating_sub(LEFT_MARGIN);
    indent_rows(
        rows.iter().map(|row| wrap::truncate(row, width, appearance)).collect(),
        LEFT_MARGIN,
    )
}

fn describe_mode(mode: windlass_protocol::PermissionMode) -> &'static str {
    use windlass_protocol::PermissionMode;
    match mode {
        PermissionMode::Plan => " · read-only; changes nothing",
        PermissionMode::Ask => " · asks before it changes anything",
        PermissionMode::Auto => {
            " · edits files in this folder and runs sandboxed commands without asking"
        }
        PermissionMode::Full => " · never asks; the sandbox stays on",
    }
}
