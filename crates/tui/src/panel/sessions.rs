//! The sessions of this folder: to find one again, go on with it, copy it or delete it.

use super::list::{Did, Item, List};
use super::{Flow, Panel, say};
use crate::app::status::money;
use crate::cx::{Cx, Look};
use crate::keys::{Command, Place};
use crate::known::Known;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::wire::{Answered, Request};
use windlass_protocol::{Fault, Hit, Query, Reply, SessionId, SessionSummary, TurnEnd};

/// So many letters are looked for in what was said, too.
const WORD: usize = 3;
/// What was said stands under this.
const SAID: &str = "Said there";

/// The sessions.
#[derive(Debug)]
pub struct Sessions {
    list: List<SessionId>,
    sessions: Vec<SessionSummary>,
    hits: Vec<Hit>,
    listing: u64,
    search: Option<u64>,
    deleting: Option<(u64, SessionId)>,
    opening: Option<u64>,
    /// The session whose deletion is asked about.
    doubted: Option<SessionId>,
    over: bool,
}

impl Sessions {
    /// Asks for them.
    pub fn new(behind: &str, cx: &mut Cx<'_>) -> Sessions {
        let workspace = Some(cx.known.standing.root.clone()).filter(|root| !root.is_empty());
        let listing = cx.query(Query::Sessions { workspace });
        let mut list = List::busy("reading the sessions", "there is no session here yet");
        list.look_for(behind.trim());
        Sessions {
            list,
            sessions: Vec::new(),
            hits: Vec::new(),
            listing,
            search: None,
            deleting: None,
            opening: None,
            doubted: None,
            over: false,
        }
    }

    fn fill(&mut self, cx: &Cx<'_>) {
        let item = |summary: &SessionSummary| {
            let title = if summary.title.is_empty() { "(nothing said)" } else { &summary.title };
            let cost = if summary.cost.0 > 0 { money(summary.cost) } else { String::new() };
            let item = Item::new(title)
                .column(state(summary))
                .column(cost)
                .column(say::ago(summary.changed, cx.now));
            let current = Some(summary.session) == cx.known.session;
            (Item { current, ..item }, summary.session)
        };
        let hit = |hit: &Hit| {
            let item = Item::new(&hit.title).note(&hit.snippet).under(SAID);
            (Item { always: true, ..item }, hit.session)
        };
        // What an agent did for a session is part of that session.
        let listed = |hit: &&Hit| self.sessions.iter().any(|known| known.session == hit.session);
        let hits = self.hits.iter().filter(listed).map(hit);
        self.list.fill(self.sessions.iter().map(item).chain(hits).collect());
    }

    fn look(&mut self, cx: &mut Cx<'_>) {
        let words = self.list.filter().trim().to_owned();
        if words.chars().count() < WORD {
            self.search = None;
            if !self.hits.is_empty() {
                self.hits.clear();
                self.fill(cx);
            }
            return;
        }
        let workspace = Some(cx.known.standing.root.clone()).filter(|root| !root.is_empty());
        self.search = Some(cx.query(Query::Search { words, workspace }));
    }

    fn open(&mut self, request: Request, cx: &mut Cx<'_>) {
        self.opening = Some(cx.ask(request));
        self.list.state = super::list::State::Busy("opening it");
    }

    fn doubt(&mut self, cx: &Cx<'_>) {
        let Some((item, session)) = self.list.selected() else { return };
        if Some(*session) == cx.known.session {
            self.list.question = Some("this one is open; /new leaves it first".to_owned());
            return;
        }
        let name = windlass_protocol::text::beginning(&item.name, 30);
        self.doubted = Some(*session);
        self.list.question = Some(format!("y deletes it for good: {name}"));
    }

    /// What a key means to the question that stands there; true if there was one.
    fn settle(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> bool {
        if self.list.question.take().is_none() {
            return false;
        }
        if let Some(session) = self.doubted.take()
            && key.code == KeyCode::Char('y')
        {
            let id = cx.ask(Request::Delete { session });
            self.deleting = Some((id, session));
        }
        true
    }
}

/// How a session ended, if there is something to say about it.
fn state(summary: &SessionSummary) -> &'static str {
    match &summary.end {
        None if summary.length <= 1 => "",
        None => "unfinished",
        Some(TurnEnd::Done) => "",
        Some(TurnEnd::Denied) => "denied",
        Some(TurnEnd::Interrupted) => "stopped",
        Some(TurnEnd::Looped { .. } | TurnEnd::Limit { .. }) => "held",
        Some(TurnEnd::Failed { .. }) => "failed",
    }
}

impl Panel for Sessions {
    fn title(&self) -> String {
        "Sessions".to_owned()
    }

    fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> Flow {
        if self.settle(key, cx) || self.opening.is_some() {
            return Flow::Stay;
        }
        let selected = self.list.selected().map(|(_, session)| *session);
        match (cx.look.keys.find(Place::Panel, key), selected) {
            (Some(Command::ForkRow), Some(session)) => {
                self.open(Request::Fork { session, turn: None }, cx);
                return Flow::Stay;
            }
            (Some(Command::DeleteRow), Some(_)) => {
                self.doubt(cx);
                return Flow::Stay;
            }
            _ => {}
        }
        match (self.list.key(key, &cx.look.keys), selected) {
            (Did::Chose, selected) if selected == cx.known.session => return Flow::Close,
            (Did::Chose, Some(session)) => self.open(Request::Open { session }, cx),
            (Did::Filtered, _) => self.look(cx),
            (Did::Chose | Did::Moved | Did::Nothing, _) => {}
        }
        Flow::Stay
    }

    fn escape(&mut self, _: &mut Cx<'_>) -> Flow {
        self.doubted = None;
        match self.list.question.take() {
            Some(_) => Flow::Stay,
            None => Flow::Close,
        }
    }

    fn paste(&mut self, text: &str, cx: &mut Cx<'_>) {
        self.list.paste(text);
        self.look(cx);
    }

    fn wheel(&mut self, lines: i32, _: &mut Cx<'_>) {
        self.list.go(lines);
    }

    fn answer(&mut self, id: u64, answer: &Result<Answered, Fault>, cx: &mut Cx<'_>) -> bool {
        let of_ours = [Some(self.listing), self.search, self.opening];
        let deleting = self.deleting.take_if(|(asked, _)| *asked == id);
        if !of_ours.contains(&Some(id)) && deleting.is_none() {
            return false;
        }
        match (answer, deleting) {
            (Err(fault), _) => self.list.fail(fault),
            (Ok(Answered::Reply { reply: Reply::Sessions { sessions } }), _) => {
                let whole = |summary: &&SessionSummary| summary.parent.is_none();
                self.sessions = sessions.iter().filter(whole).cloned().collect();
                self.fill(cx);
                self.look(cx);
            }
            (Ok(Answered::Reply { reply: Reply::Found { hits } }), _) => {
                self.hits.clone_from(hits);
                self.fill(cx);
            }
            (Ok(_), Some((_, session))) => {
                self.sessions.retain(|known| known.session != session);
                self.hits.retain(|hit| hit.session != session);
                self.fill(cx);
            }
            (Ok(_), None) => self.over = Some(id) == self.opening,
        }
        self.opening.take_if(|asked| *asked == id);
        true
    }

    fn done(&self) -> bool {
        self.over
    }

    fn height(&self, _: u16, _: &Known) -> u16 {
        self.list.height()
    }

    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        look: &Look,
        _: &Known,
    ) -> Option<Position> {
        let hints = say::keys(
            look,
            &[
                (Command::Choose, "opens"),
                (Command::ForkRow, "forks"),
                (Command::DeleteRow, "deletes"),
                (Command::Escape, "closes"),
            ],
        );
        self.list.draw(area, buffer, look, &hints)
    }
}
