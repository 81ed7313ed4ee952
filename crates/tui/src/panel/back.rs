//! Going back to an earlier prompt: what came after it no longer counts, and it can be said anew.

use super::list::{Did, Item, List};
use super::pager::Pager;
use super::{Flow, Panel, Parting, say};
use crate::cx::{Cx, Look};
use crate::keys::Command;
use crate::known::Known;
use crate::lay;
use crate::theme::Role;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::text::ago;
use windlass_protocol::wire::Answered;
use windlass_protocol::{Attachment, Fault, Millis, Op, PromptRow, Query, Reply, Scope, Seq, View};

/// So many prompts are offered.
const MOST: u32 = 200;

/// What changed since the prompt that was chosen.
#[derive(Debug)]
struct Since {
    text: String,
    files: Vec<Attachment>,
    to: Seq,
    asked: u64,
    changes: Option<(Vec<Seq>, String)>,
    pager: Pager,
}

/// The earlier prompts, then the question what becomes of files.
#[derive(Debug)]
pub struct Back {
    list: List<(String, Vec<Attachment>, Seq)>,
    listing: u64,
    since: Option<Since>,
    parting: Parting,
    agreed: Option<String>,
}

impl Back {
    /// Asks for them; nothing to go back in without a session.
    pub fn new(cx: &mut Cx<'_>) -> Option<Back> {
        let session = Some(cx.known.session?);
        let listing = cx.query(Query::Prompts { session, most: Some(MOST) });
        let list = List::busy("reading what you said", "nothing was said here yet");
        Some(Back { list, listing, since: None, parting: Parting::Nothing, agreed: None })
    }

    fn choose(&mut self, cx: &mut Cx<'_>) {
        let (Some((_, (text, files, to))), Some(session)) =
            (self.list.selected(), cx.known.session)
        else {
            return;
        };
        let (text, files, to) = (text.clone(), files.clone(), *to);
        let (scope, view) = (Scope::Since { seq: to }, View::Back);
        let asked = cx.query(Query::Changes { session, scope, view });
        self.since = Some(Since { text, files, to, asked, changes: None, pager: Pager::default() });
    }
}

impl Panel for Back {
    fn title(&self) -> String {
        match &self.since {
            None => "Back to an earlier prompt".to_owned(),
            Some(since) => {
                let first = since.text.trim().lines().next().unwrap_or_default();
                format!("Back to: {}", windlass_protocol::text::beginning(first, 50))
            }
        }
    }

    fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> Flow {
        let Some(since) = &mut self.since else {
            if self.list.key(key, &cx.look.keys) == Did::Chose {
                self.choose(cx);
            }
            return Flow::Stay;
        };
        if since.pager.key(key, &cx.look.keys) {
            return Flow::Stay;
        }
        let Some((facts, diff)) = &since.changes else { return Flow::Stay };
        let take_back = match key.code {
            KeyCode::Char('b') => false,
            KeyCode::Enter if facts.is_empty() => false,
            KeyCode::Char('u') if !facts.is_empty() => true,
            _ => return Flow::Stay,
        };
        // Taking files back is a turn of its own, and one steps back only between turns.
        cx.op(Op::Back { to: since.to });
        if take_back {
            cx.op(Op::Undo { facts: facts.clone() });
            self.agreed = Some(diff.clone());
        }
        self.parting = Parting::Prompt(since.text.clone(), since.files.clone());
        Flow::Close
    }

    fn escape(&mut self, _: &mut Cx<'_>) -> Flow {
        match self.since.take() {
            Some(_) => Flow::Stay,
            None => Flow::Close,
        }
    }

    fn paste(&mut self, text: &str, _: &mut Cx<'_>) {
        if self.since.is_none() {
            self.list.paste(text);
        }
    }

    fn wheel(&mut self, lines: i32, _: &mut Cx<'_>) {
        match &mut self.since {
            Some(since) => since.pager.go(lines),
            None => self.list.go(lines),
        }
    }

    fn answer(&mut self, id: u64, answer: &Result<Answered, Fault>, cx: &mut Cx<'_>) -> bool {
        let since = self.since.as_mut().filter(|since| since.asked == id);
        if id != self.listing && since.is_none() {
            return false;
        }
        match (answer, since) {
            (Err(fault), _) => {
                self.list.fail(fault);
                self.since = None;
            }
            (Ok(Answered::Reply { reply: Reply::Changes { facts, diff } }), Some(since)) => {
                since.changes = Some((facts.clone(), diff.clone()));
                since.pager.anew();
            }
            (Ok(Answered::Reply { reply: Reply::Prompts { prompts } }), None) => {
                let item = |row: &PromptRow| {
                    let line = row.text.split_whitespace().collect::<Vec<_>>().join(" ");
                    let item = Item::new(line).column(ago(row.at, Millis(cx.now)));
                    Some((item, (row.text.clone(), row.attachments.clone(), row.back?)))
                };
                self.list.fill(prompts.iter().filter_map(item).collect());
            }
            (Ok(_), _) => {}
        }
        true
    }

    fn parting(&mut self) -> Parting {
        std::mem::take(&mut self.parting)
    }

    fn agreed(&mut self) -> Option<String> {
        self.agreed.take()
    }

    fn height(&self, _: u16, _: &Known) -> u16 {
        let changes = self.since.as_ref().map(|since| since.changes.as_ref());
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
        look: &Look,
        _: &Known,
    ) -> Option<Position> {
        let Some(since) = &mut self.since else {
            let keys = [(Command::Choose, "goes back to it"), (Command::Escape, "closes")];
            return self.list.draw(area, buffer, look, &say::keys(look, &keys));
        };
        let (body, foot) = say::body(area);
        let between = say::between(look);
        let leaves = say::keys(look, &[(Command::Escape, "stays here")]);
        let hints = match &since.changes {
            None => {
                say::dim("looking at what changed since", look).draw(body, buffer);
                leaves
            }
            Some((facts, _)) if facts.is_empty() => {
                say::dim("no file was changed since", look).draw(body, buffer);
                format!("b goes back{between}{leaves}")
            }
            Some((_, diff)) => {
                since.pager.draw(body, buffer, look, |width| {
                    let told = "Files were changed since. Taken back, this would happen:";
                    let mut rows = say::prose(told, Role::Text, width, look);
                    rows.extend(lay::diff(diff, width, look));
                    rows
                });
                let ways = ["b goes back, files stay", "u takes them back, too", &leaves];
                ways.join(between)
            }
        };
        say::hints(&hints, look, foot.width).draw(foot, buffer);
        None
    }
}
