//! A provider's key: written unseen, kept by the host, never shown again.

use crate::asked::line::Line;
use crate::cx::{Cx, Look};
use crate::ink::Row;
use crate::theme::Role;
use crate::wrap::{self, Break};
use crossterm::event::{KeyCode, KeyEvent};
use windlass_protocol::Fault;
use windlass_protocol::wire::{Key, Request};

/// What becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Login {
    /// A key is being written.
    Writing {
        /// Whose.
        provider: String,
        /// The key.
        line: Line,
        /// The request that keeps it, once it is on its way.
        sent: Option<u64>,
        /// Why it could not be kept.
        fault: Option<Fault>,
    },
    /// It is kept.
    Kept {
        /// Whose it is.
        provider: String,
    },
}

impl Login {
    /// Asks for a provider's key.
    pub(super) fn new(provider: &str) -> Login {
        let line = Line::masked();
        Login::Writing { provider: provider.to_owned(), line, sent: None, fault: None }
    }

    /// Takes in a key of the keyboard.
    pub(super) fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) {
        let Login::Writing { provider, line, sent, fault } = self else { return };
        if key.code == KeyCode::Enter {
            let text = line.text().trim().to_owned();
            if !text.is_empty() && sent.is_none() {
                let request = Request::Login { provider: provider.clone(), key: Key(text) };
                (*sent, *fault) = (Some(cx.ask(request)), None);
            }
        } else {
            line.key(key, cx.look);
        }
    }

    /// Takes in what was pasted. Nothing that was pasted is sent before Enter.
    pub(super) fn paste(&mut self, text: &str) {
        if let Login::Writing { line, .. } = self {
            line.write(text.trim());
        }
    }

    /// Takes in whether it was kept; true if that was asked here.
    pub(super) fn answer(&mut self, id: u64, failed: Option<&Fault>) -> bool {
        let Login::Writing { provider, sent, fault, line } = self else { return false };
        if *sent != Some(id) {
            return false;
        }
        match failed {
            Some(why) => {
                (*sent, *fault) = (None, Some(why.clone()));
                *line = Line::masked();
            }
            None => *self = Login::Kept { provider: std::mem::take(provider) },
        }
        true
    }

    /// What stands above the choices, and where the cursor is: column and row.
    pub(super) fn rows(&self, width: usize, look: &Look) -> (Vec<Row>, Option<(usize, usize)>) {
        let Login::Writing { provider, line, sent, fault } = self else {
            return (Vec::new(), None);
        };
        let said = |role, text: &str| {
            let row = Row::of(look.style(role), &format!(" {text}"));
            wrap::wrap(&row, width.max(8), Break::Words, 1)
        };
        let text = "Write or paste it; it is not shown. It is kept on this machine, and sent to \
                    nobody but the provider.";
        let mut rows = said(Role::Text, &format!("The key of {provider}."));
        rows.extend(said(Role::Dim, text));
        rows.push(Row::default());
        let mut row = Row::of(look.style(Role::Accent), if look.ascii { " > " } else { " › " });
        let start = row.width();
        let (written, column) = line.row(width.saturating_sub(start), look);
        written.pieces().for_each(|(style, text)| row.push(style, text));
        let cursor = (start + column, rows.len());
        rows.push(row);
        if sent.is_some() {
            rows.extend(said(Role::Dim, "keeping it"));
        }
        if let Some(fault) = fault {
            rows.extend(said(Role::Bad, &crate::fault::told(fault)));
        }
        (rows, Some(cursor))
    }
}
