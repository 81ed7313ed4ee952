//! What stands on the screen before anything was said.

use super::Story;
use super::rows::{self, Lay, MARGIN, inset};
use crate::ink::Row;
use crate::keys::Command;
use crate::theme::Role;
use crate::wrap;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use windlass_protocol::wire::{Standing, Trusted};

impl Story {
    /// Draws what stands there before anything was said, and the notes.
    pub(super) fn draw_welcome(&mut self, area: Rect, buffer: &mut Buffer, lay: &Lay<'_>) {
        let mut rows = welcome(&lay.known.standing, lay, usize::from(area.height));
        for note in self.fold.notes() {
            rows.push(Row::default());
            rows.extend(rows::note(note, lay));
        }
        let hidden = rows.len().saturating_sub(usize::from(area.height));
        self.shown.clear();
        for (y, row) in (area.y..area.bottom()).zip(rows.into_iter().skip(hidden)) {
            row.draw(Rect { y, height: 1, ..area }, buffer);
        }
    }
}

fn welcome(standing: &Standing, lay: &Lay<'_>, height: usize) -> Vec<Row> {
    if standing.version.is_empty() {
        return Vec::new();
    }
    let look = lay.look;
    let (dim, text) = (look.style(Role::Dim), look.style(Role::Text));
    let mut rows = vec![
        Row::default(),
        Row::of(look.style(Role::Accent), "Windlass").and(dim, &format!(" {}", standing.version)),
        Row::default(),
    ];
    let branch = standing.branch.as_ref().map(|branch| format!(" · {branch}"));
    let mut fact = |name: &str, value: &str, more: &str| {
        let name = format!("{name:<9}");
        rows.push(Row::of(dim, &name).and(text, value).and(dim, &lay.ours(more)));
    };
    fact("folder", &standing.workspace, &branch.unwrap_or_default());
    fact(
        "model",
        standing.model.as_deref().unwrap_or("none yet"),
        &match standing.model {
            Some(_) => String::new(),
            None => " · /model chooses one".to_owned(),
        },
    );
    fact("mode", lay.known.mode.name(), mode(lay.known.mode));
    fact("sandbox", &standing.sandbox, "");
    match standing.trust {
        Trusted::Yes => {}
        Trusted::Unasked | Trusted::No => {
            fact("trust", "none", " · AGENTS.md is not read, nothing here is run; /trust");
        }
        Trusted::Changed => {
            fact("trust", "none", " · the folder has changed since it was trusted; /trust");
        }
    }
    if height > rows.len() + 7 {
        rows.push(Row::default());
        let keys = [
            (Command::Mode, "changes the mode"),
            (Command::Sessions, "goes on with an earlier session"),
            (Command::Help, "lists keys and commands"),
        ];
        let hint = |key: &str, what: &str| {
            Row::of(look.style(Role::Strong), &format!("{key:<10}")).and(dim, what)
        };
        rows.push(hint("@", "names a file, / a command, ! runs a line in the shell"));
        rows.extend(keys.map(|(command, what)| hint(&lay.key(command), what)));
    }
    let width = lay.width.saturating_sub(MARGIN);
    inset(rows.iter().map(|row| wrap::cut(row, width, look)).collect(), MARGIN)
}

fn mode(mode: windlass_protocol::Mode) -> &'static str {
    use windlass_protocol::Mode;
    match mode {
        Mode::Plan => " · nothing is changed",
        Mode::Ask => " · asks before it changes something",
        Mode::Auto => " · works freely within the folder and the sandbox",
        Mode::Full => " · asks nothing; the sandbox stays",
    }
}
