//! Trust: what a folder would have us run or obey, and whether it may.
//!
//! It lists what it is about before it asks, and a key that was typed for the prompt just before it
//! came says neither yes nor no: I-TYPED holds here as for questions.

use super::{Flow, Panel, Parting};
use crate::asked::choices::{self, Choice, Keyed};
use crate::asked::sheet::{Part, Source};
use crate::asked::{CALM, scroll};
use crate::cx::{Cx, Look};
use crate::ink::Row;
use crate::known::Known;
use crate::theme::Role;
use crate::wrap::{self, Break};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::Fault;
use windlass_protocol::wire::{Answered, Request, Trusted};

/// What is said of a folder that has nothing to run, where nothing else says it.
pub const NOTHING: &str = "not trusted: AGENTS.md is not read, no language server started; /trust";

const MEANS: &str = "If you trust it, this is started and obeyed, its AGENTS.md is read, and language \
                     servers and formatters are started for its files, until any of it changes.";
const MEANS_LITTLE: &str = "If you trust it, its AGENTS.md is read, and language servers and formatters \
                            are started for its files, until something in it changes.";
pub(crate) const MEANS_NOT: &str = "If you do not, its files are read as text and nothing else. Either way the \
                         model is allowed nothing by this: what it does is asked about and held by \
                         the sandbox as before.";

pub(crate) const MEANS_BACK: &str = "If you take that back, what it started is ended and not started again, and \
                          its files are read as text and nothing else.";

/// What it means to trust a folder that would have us do this.
pub(crate) fn means(would: &[String]) -> &'static str {
    if would.is_empty() { MEANS_LITTLE } else { MEANS }
}

/// What is known of the folder.
#[derive(Clone, Debug, PartialEq)]
enum State {
    /// It is being looked at.
    Looking,
    /// This is what it would have us do, and what of that is other than before.
    Looked { would: Vec<String>, since: Option<Vec<String>> },
    /// It could not be looked at, or trusted.
    Failed(Fault),
}

/// The panel.
#[derive(Debug)]
pub struct Trust {
    state: State,
    /// The request under way.
    waits: Option<u64>,
    /// When it came, or the last key that meant nothing.
    since: u64,
    top: usize,
    page: usize,
    /// What is said once it is done.
    said: &'static str,
    over: bool,
}

impl Trust {
    /// Looks at the folder because the person asked for it.
    pub fn look(cx: &mut Cx<'_>) -> Trust {
        let waits = Some(cx.ask(Request::LookAtTrust));
        Trust { waits, ..Trust::of(State::Looking, cx.now) }
    }

    /// Shows what was found.
    pub fn found(would: Vec<String>, since: Option<Vec<String>>, now: u64) -> Trust {
        Trust::of(State::Looked { would, since }, now)
    }

    fn of(state: State, since: u64) -> Trust {
        Trust { state, waits: None, since, top: 0, page: 1, said: "", over: false }
    }

    /// True if it is trusted as it is now.
    fn holds(&self) -> bool {
        matches!(&self.state, State::Looked { since: Some(since), .. } if since.is_empty())
    }

    /// True if there is something that can be said yes to.
    fn asks(&self) -> bool {
        matches!(self.state, State::Looked { .. }) && !self.holds()
    }

    fn say(&mut self, yes: bool, said: &'static str, cx: &mut Cx<'_>) {
        if self.waits.is_none() {
            (self.waits, self.said) = (Some(cx.ask(Request::Trust { yes })), said);
        }
    }

    fn rows(&self, width: usize, look: &Look, known: &Known) -> Vec<Row> {
        let said = |role: Role, text: &str| {
            let row = Row::of(look.style(role), text);
            let rows = wrap::wrap(&row, width.saturating_sub(2).max(8), Break::Words, 0);
            rows.into_iter().map(|row| {
                let mut moved = Row::of(look.style(Role::Text), " ");
                row.pieces().for_each(|(style, text)| moved.push(style, text));
                moved
            })
        };
        let list = |label: &'static str, lines: &[String]| {
            let lines: Vec<String> =
                lines.iter().map(|line| windlass_protocol::text::one_line(line)).collect();
            Part::new(label, Source::Words(lines.join("\n"))).lay(width, look)
        };
        let folder = match known.standing.workspace.as_str() {
            "" => "This folder",
            folder => folder,
        };
        let mut rows = Vec::new();
        match &self.state {
            State::Looking => rows.extend(said(Role::Dim, "looking at what this folder would run")),
            State::Failed(fault) => {
                rows.extend(said(Role::Bad, &crate::fault::told(fault)));
            }
            State::Looked { would, since } => {
                if let Some(since) = since.as_ref().filter(|since| !since.is_empty()) {
                    rows.extend(said(Role::Warn, "Since you trusted it, this has changed:"));
                    rows.extend(list("now", since));
                    rows.push(Row::default());
                }
                match would.is_empty() {
                    true => {
                        let text = "has nothing of its own that Windlass would run.";
                        rows.extend(said(Role::Text, &format!("{folder} {text}")));
                    }
                    false => {
                        let has = if self.holds() { "has" } else { "would have" };
                        let text = format!("{folder} {has} Windlass run or obey:");
                        rows.extend(said(Role::Text, &text));
                        rows.extend(list("", would));
                    }
                }
                rows.push(Row::default());
                if self.asks() {
                    rows.extend(said(Role::Dim, means(would)));
                    rows.extend(said(Role::Dim, MEANS_NOT));
                } else {
                    rows.extend(said(Role::Good, "It is trusted as it is now."));
                    rows.extend(said(Role::Dim, MEANS_BACK));
                }
            }
        }
        rows
    }

    fn foot(&self, width: usize, look: &Look) -> Vec<Row> {
        let not_now = Choice::by("n", "not now", "not now");
        let closes = Choice::by("esc", "closes", "closes");
        let choices = match (self.asks(), self.holds()) {
            (true, _) => vec![Choice::by("t", "trust it as it is now", "trust it"), not_now],
            (false, true) => vec![Choice::by("r", "no longer trust it", "take it back"), closes],
            (false, false) => vec![closes],
        };
        choices::rows(&[("", choices)], width, Keyed::Here, look)
    }
}

impl Panel for Trust {
    fn title(&self) -> String {
        match &self.state {
            State::Looked { since: Some(since), .. } if !since.is_empty() => {
                "This folder has changed since you trusted it".to_owned()
            }
            State::Looked { .. } if self.asks() => "Do you trust this folder?".to_owned(),
            State::Looking | State::Looked { .. } | State::Failed(_) => "Trust".to_owned(),
        }
    }

    fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> Flow {
        let typed = (key.modifiers - KeyModifiers::SHIFT).is_empty();
        if let (KeyCode::Char(letter), true) = (key.code, typed) {
            let calm = cx.now >= self.since + CALM;
            self.since = cx.now;
            match letter {
                't' if calm && self.asks() => {
                    self.say(true, "this folder is trusted until what is in it changes", cx);
                }
                'r' if calm && self.holds() => {
                    self.say(false, "this folder is no longer trusted", cx);
                }
                'n' if calm && self.asks() => return self.escape(cx),
                ' ' => self.top += self.page,
                _ => {}
            }
            return Flow::Stay;
        }
        self.top = scroll(self.top, self.page, key, cx.look);
        Flow::Stay
    }

    fn escape(&mut self, cx: &mut Cx<'_>) -> Flow {
        let unasked = matches!(cx.known.standing.trust, Trusted::Unasked | Trusted::Changed);
        if self.asks() && unasked {
            cx.ask(Request::Trust { yes: false });
        }
        Flow::Close
    }

    fn wheel(&mut self, lines: i32, _: &mut Cx<'_>) {
        self.top = self.top.saturating_add_signed(isize::try_from(lines).unwrap_or_default());
    }

    fn answer(&mut self, id: u64, answer: &Result<Answered, Fault>, cx: &mut Cx<'_>) -> bool {
        if self.waits != Some(id) {
            return false;
        }
        (self.waits, self.since) = (None, cx.now);
        match answer {
            Ok(Answered::Trust { would, since }) => {
                self.state = State::Looked { would: would.clone(), since: since.clone() };
            }
            Ok(_) => self.over = true,
            Err(fault) => self.state = State::Failed(fault.clone()),
        }
        true
    }

    fn done(&self) -> bool {
        self.over
    }

    fn parting(&mut self) -> Parting {
        match self.over {
            true => Parting::Hint(self.said.to_owned()),
            false => Parting::Nothing,
        }
    }

    fn height(&self, width: u16, known: &Known) -> u16 {
        let width = usize::from(width);
        let rows = self.rows(width, &Look::default(), known).len();
        u16::try_from(rows + 2).unwrap_or(u16::MAX)
    }

    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        look: &Look,
        known: &Known,
    ) -> Option<Position> {
        let width = usize::from(area.width);
        let rows = self.rows(width, look, known);
        let foot = self.foot(width, look);
        crate::asked::page((&mut self.top, &mut self.page), (&rows, &foot), (area, buffer), look);
        None
    }
}
