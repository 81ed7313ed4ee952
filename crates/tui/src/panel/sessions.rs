//! The sessions of this folder: to find one again, go on with it, copy it or delete it.

use super::Parting;
use super::list::{Did, Item, List};
use super::listed::{Choose, Listed, Then};
use crate::app::status::money;
use crate::cx::Cx;
use crate::keys::Command;
use windlass_protocol::text::ago;
use windlass_protocol::wire::{Answered, Request};
use windlass_protocol::{Fault, Hit, Millis, Query, Reply, SessionId, SessionSummary, TurnEnd};

/// So many letters are looked for in what was said, too.
const WORD: usize = 3;
/// What was said stands under this.
const SAID: &str = "Said there";

/// The sessions.
#[derive(Debug)]
pub struct Sessions {
    sessions: Vec<SessionSummary>,
    hits: Vec<Hit>,
    listing: u64,
    search: Option<u64>,
    deleting: Option<(u64, SessionId)>,
    /// The session whose deletion is asked about.
    doubted: Option<SessionId>,
}

impl Sessions {
    /// Asks for them.
    pub fn list(behind: &str, cx: &mut Cx<'_>) -> Listed<Sessions> {
        let workspace = Some(cx.known.standing.root.clone()).filter(|root| !root.is_empty());
        let listing = cx.query(Query::Sessions { workspace });
        let mut list = List::busy("reading the sessions", "there is no session here yet");
        list.look_for(behind.trim());
        let (sessions, hits) = (Vec::new(), Vec::new());
        let (search, deleting, doubted) = (None, None, None);
        let sessions = Sessions { sessions, hits, listing, search, deleting, doubted };
        Listed::new(list, sessions)
    }

    fn fill(&self, list: &mut List<SessionId>, cx: &Cx<'_>) {
        let item = |summary: &SessionSummary| {
            let title = if summary.title.is_empty() { "(nothing said)" } else { &summary.title };
            let cost = if summary.cost.0 > 0 { money(summary.cost) } else { String::new() };
            let item = Item::new(title)
                .column(state(summary))
                .column(cost)
                .column(ago(summary.changed, Millis(cx.now)));
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
        list.fill(self.sessions.iter().map(item).chain(hits).collect());
    }

    fn look(&mut self, list: &mut List<SessionId>, cx: &mut Cx<'_>) {
        let words = list.filter().trim().to_owned();
        if words.chars().count() < WORD {
            self.search = None;
            if !self.hits.is_empty() {
                self.hits.clear();
                self.fill(list, cx);
            }
            return;
        }
        let workspace = Some(cx.known.standing.root.clone()).filter(|root| !root.is_empty());
        self.search = Some(cx.query(Query::Search { words, workspace }));
    }

    fn doubt(&mut self, list: &mut List<SessionId>, cx: &Cx<'_>) {
        let Some((item, session)) = list.selected() else { return };
        self.doubted = Some(*session).filter(|session| Some(*session) != cx.known.session);
        let name = windlass_protocol::text::beginning(&item.name, 30);
        list.question = Some(match self.doubted {
            Some(_) => format!("y deletes it for good: {name}"),
            None => "this one is open; /new leaves it first".to_owned(),
        });
    }
}

fn open(request: Request) -> Then {
    Then::Ask(request, "opening it", Parting::Nothing)
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

impl Choose for Sessions {
    type Of = SessionId;

    fn title(&self) -> &'static str {
        "Sessions"
    }

    fn hints(&self, _: &List<SessionId>) -> Vec<(Command, &'static str)> {
        vec![
            (Command::Choose, "opens"),
            (Command::ForkRow, "forks"),
            (Command::DeleteRow, "deletes"),
            (Command::Escape, "closes"),
        ]
    }

    fn did(&mut self, did: Did, list: &mut List<SessionId>, cx: &mut Cx<'_>) -> Then {
        let selected = list.selected().map(|(_, session)| *session);
        match (did, selected) {
            (Did::Chose, selected) if selected == cx.known.session => {
                return Then::Close(Parting::Nothing);
            }
            (Did::Chose, Some(session)) => return open(Request::Open { session }),
            (Did::Wants(Command::ForkRow), Some(session)) => {
                return open(Request::Fork { session, turn: None });
            }
            (Did::Wants(Command::DeleteRow), _) => self.doubt(list, cx),
            (Did::Filtered, _) => self.look(list, cx),
            (Did::Agreed, _) => {
                let delete = |session| (cx.ask(Request::Delete { session }), session);
                self.deleting = self.doubted.take().map(delete);
            }
            _ => {}
        }
        Then::Stay
    }

    fn answer(
        &mut self,
        id: u64,
        answer: &Result<Answered, Fault>,
        list: &mut List<SessionId>,
        cx: &mut Cx<'_>,
    ) -> bool {
        let deleting = self.deleting.take_if(|(asked, _)| *asked == id);
        if id != self.listing && Some(id) != self.search && deleting.is_none() {
            return false;
        }
        match (answer, deleting) {
            (Err(fault), _) => list.fail(fault),
            (Ok(Answered::Reply { reply: Reply::Sessions { sessions } }), _) => {
                let whole = |summary: &&SessionSummary| summary.parent.is_none();
                self.sessions = sessions.iter().filter(whole).cloned().collect();
                self.fill(list, cx);
                self.look(list, cx);
            }
            (Ok(Answered::Reply { reply: Reply::Found { hits } }), _) => {
                self.hits.clone_from(hits);
                self.fill(list, cx);
            }
            (Ok(_), Some((_, session))) => {
                self.sessions.retain(|known| known.session != session);
                self.hits.retain(|hit| hit.session != session);
                self.fill(list, cx);
            }
            (Ok(_), None) => {}
        }
        true
    }
}
