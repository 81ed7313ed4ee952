//! A sheet: something that is asked for once and then read, or said yes to.

use super::pager::Pager;
use super::{Flow, Panel, charts, say};
use crate::cx::{Cx, Look};
use crate::ink::Row;
use crate::keys::Command;
use crate::known::Known;
use crate::lay;
use crate::theme::Role;
use crate::wrap;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::wire::{Answered, Request};
use windlass_protocol::{
    ContextPart, Cost, Fault, Op, Query, Reply, Scope, Seq, SessionId, Todo, Usage, View, wire,
};

/// A diff with more lines than this is taller than a screen.
const TALL: usize = 200;

/// What a sheet shows.
#[derive(Debug)]
enum Content {
    /// A sentence, because there is nothing.
    Nothing(&'static str),
    /// Something was asked for.
    Awaited(&'static str),
    /// It could not be had.
    Failed(Fault),
    Changes {
        facts: Vec<Seq>,
        diff: String,
    },
    Todos(Vec<Todo>),
    Cost {
        usage: Usage,
        cost: Cost,
        agents: (usize, Cost),
    },
    Context {
        window: Option<u64>,
        reserve: u64,
        parts: Vec<ContextPart>,
    },
    Doctor(Vec<wire::Row>),
}

/// What is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Read,
    TakeBack,
    DoAgain,
}

/// A sheet.
#[derive(Debug)]
pub struct Sheet {
    title: &'static str,
    usage: Use,
    session: Option<SessionId>,
    content: Content,
    waits: Vec<u64>,
    agents: (usize, Cost),
    pager: Pager,
    agreed: Option<String>,
}

impl Sheet {
    fn new(title: &'static str, content: Content, waits: Vec<u64>, cx: &Cx<'_>) -> Sheet {
        let (session, agents, pager) = (cx.known.session, (0, Cost(0)), Pager::default());
        let agreed = None;
        Sheet { title, usage: Use::Read, session, content, waits, agents, pager, agreed }
    }

    /// One about a session, by what it asks for; a sentence instead if there is no session.
    fn about(
        title: &'static str,
        what: &'static str,
        cx: &mut Cx<'_>,
        queries: impl FnOnce(SessionId) -> Vec<Query>,
    ) -> Sheet {
        let Some(session) = cx.known.session else {
            return Sheet::new(title, Content::Nothing("there is no session yet"), Vec::new(), cx);
        };
        let waits = queries(session).into_iter().map(|query| cx.query(query)).collect();
        Sheet::new(title, Content::Awaited(what), waits, cx)
    }

    /// What taking the last turn's changes back would change.
    pub fn undo(cx: &mut Cx<'_>) -> Sheet {
        let (scope, view) = (Scope::LastTurn, View::Back);
        let sheet = Sheet::about("Undo", "looking at what changed", cx, |session| {
            vec![Query::Changes { session, scope, view }]
        });
        Sheet { usage: Use::TakeBack, ..sheet }
    }

    /// What doing again what was taken back would change.
    pub fn redo(cx: &mut Cx<'_>) -> Sheet {
        let (scope, view) = (Scope::LastUndo, View::Back);
        let sheet = Sheet::about("Redo", "looking at what was taken back", cx, |session| {
            vec![Query::Changes { session, scope, view }]
        });
        Sheet { usage: Use::DoAgain, ..sheet }
    }

    /// Everything the session changed.
    pub fn diff(cx: &mut Cx<'_>) -> Sheet {
        let (scope, view) = (Scope::All, View::Made);
        Sheet::about("Changes of this session", "looking at what changed", cx, |session| {
            vec![Query::Changes { session, scope, view }]
        })
    }

    /// What is to be done. A session that was just opened is asked for it.
    pub fn todos(cx: &mut Cx<'_>) -> Sheet {
        if cx.known.todos.is_empty() {
            return Sheet::about("Todos", "reading the session", cx, |session| {
                vec![Query::Transcript { session }]
            });
        }
        let todos = cx.known.todos.clone();
        Sheet::new("Todos", Content::Todos(todos), Vec::new(), cx)
    }

    /// What the session used.
    pub fn cost(cx: &mut Cx<'_>) -> Sheet {
        let workspace = Some(cx.known.standing.root.clone()).filter(|root| !root.is_empty());
        Sheet::about("Cost", "adding it up", cx, |session| {
            vec![Query::Sessions { workspace }, Query::Transcript { session }]
        })
    }

    /// What fills the window.
    pub fn context(cx: &mut Cx<'_>) -> Sheet {
        Sheet::about("Context", "measuring", cx, |session| vec![Query::Context { session }])
    }

    /// What there is to work with.
    pub fn doctor(cx: &mut Cx<'_>) -> Sheet {
        let waits = vec![cx.ask(Request::Doctor)];
        Sheet::new("Doctor", Content::Awaited("looking around"), waits, cx)
    }

    fn take(&mut self, reply: &Reply) {
        let content = match reply {
            Reply::Changes { facts, .. } if facts.is_empty() => {
                Content::Nothing(match self.usage {
                    Use::Read => "this session has changed no file",
                    Use::TakeBack => "there is nothing to take back",
                    Use::DoAgain => "nothing was taken back",
                })
            }
            Reply::Changes { facts, diff } => {
                Content::Changes { facts: facts.clone(), diff: diff.clone() }
            }
            Reply::Sessions { sessions } => {
                let ours = sessions.iter().filter(|one| one.parent == self.session);
                for one in ours.filter(|one| one.parent.is_some()) {
                    self.agents.0 += 1;
                    self.agents.1 += one.cost;
                }
                return;
            }
            Reply::Transcript { transcript } if self.title == "Todos" => {
                let todos = transcript.todos();
                match todos.is_empty() {
                    true => Content::Nothing("nothing is on the list"),
                    false => Content::Todos(todos),
                }
            }
            Reply::Transcript { transcript } => Content::Cost {
                usage: transcript.usage,
                cost: transcript.cost,
                agents: self.agents,
            },
            Reply::Context { window, reserve, parts } => {
                Content::Context { window: *window, reserve: *reserve, parts: parts.clone() }
            }
            Reply::Events { .. }
            | Reply::Prompts { .. }
            | Reply::Jobs { .. }
            | Reply::Found { .. }
            | Reply::Places { .. }
            | Reply::Tools { .. } => return,
        };
        self.content = content;
    }

    fn hints(&self, look: &Look) -> String {
        let act = match (&self.content, self.usage) {
            (Content::Changes { .. }, Use::TakeBack) => Some("y takes this back"),
            (Content::Changes { .. }, Use::DoAgain) => Some("y does this again"),
            _ => None,
        };
        let closes = say::keys(look, &[(Command::Escape, "closes")]);
        let scrolls = say::keys(look, &[(Command::PageDown, "scrolls")]);
        let place = self.pager.place();
        let mut said: Vec<String> = act.map(str::to_owned).into_iter().collect();
        if !place.is_empty() {
            said.push(scrolls);
        }
        said.extend([closes, place].into_iter().filter(|text| !text.is_empty()));
        said.join(say::between(look))
    }
}

/// The rows of a content at a width.
fn lay(content: &Content, width: usize, look: &Look) -> Vec<Row> {
    let inner = width.saturating_sub(say::MARGIN + 1).max(1);
    let indent = |rows: Vec<Row>| rows.iter().map(|row| say::indented(row, say::MARGIN)).collect();
    match content {
        Content::Nothing(text) | Content::Awaited(text) => say::prose(text, Role::Dim, width, look),
        Content::Failed(fault) => say::fault_rows(fault, width, look),
        Content::Changes { diff, .. } => indent(lay::diff(diff, inner, look)),
        Content::Todos(todos) => indent(lay::checklist(todos, inner, look)),
        Content::Cost { usage, cost, agents } => {
            indent(charts::cost(usage, *cost, *agents, inner, look))
        }
        Content::Context { window, reserve, parts } => {
            indent(charts::context(*window, *reserve, parts, inner, look))
        }
        Content::Doctor(rows) => charts::doctor(rows, width, look),
    }
}

impl Panel for Sheet {
    fn title(&self) -> String {
        self.title.to_owned()
    }

    fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> Flow {
        if self.pager.key(key, &cx.look.keys) {
            return Flow::Stay;
        }
        match (&self.content, self.usage) {
            (Content::Changes { .. }, Use::Read) => Flow::Stay,
            (Content::Changes { facts, diff }, Use::TakeBack | Use::DoAgain) => {
                if key.code == KeyCode::Char('y') {
                    self.agreed = Some(diff.clone());
                    cx.op(Op::Undo { facts: facts.clone() });
                }
                Flow::Close
            }
            // There is nothing to say yes to yet: a key that came too early closes nothing.
            (Content::Awaited(_), _) => Flow::Stay,
            (
                Content::Nothing(_)
                | Content::Failed(_)
                | Content::Todos(_)
                | Content::Cost { .. }
                | Content::Context { .. }
                | Content::Doctor(_),
                _,
            ) => match key.code {
                KeyCode::Enter | KeyCode::Char('q') => Flow::Close,
                _ => Flow::Stay,
            },
        }
    }

    fn wheel(&mut self, lines: i32, _: &mut Cx<'_>) {
        self.pager.go(lines);
    }

    fn agreed(&mut self) -> Option<String> {
        self.agreed.take()
    }

    fn hear(&mut self, _: &windlass_protocol::Event, cx: &mut Cx<'_>) {
        if let Content::Todos(todos) = &mut self.content
            && *todos != cx.known.todos
            && !cx.known.todos.is_empty()
        {
            todos.clone_from(&cx.known.todos);
            self.pager.anew();
        }
    }

    fn answer(&mut self, id: u64, answer: &Result<Answered, Fault>, _: &mut Cx<'_>) -> bool {
        if !self.waits.contains(&id) {
            return false;
        }
        match answer {
            Ok(Answered::Reply { reply }) => self.take(reply),
            Ok(Answered::Rows { rows }) => self.content = Content::Doctor(rows.clone()),
            Ok(_) => {}
            Err(fault) => self.content = Content::Failed(fault.clone()),
        }
        self.pager.anew();
        true
    }

    fn height(&self, width: u16, _: &Known) -> u16 {
        let rows = match &self.content {
            // More than any screen has is not laid out to be counted.
            Content::Changes { diff, .. } if diff.lines().nth(TALL).is_some() => return u16::MAX,
            content => lay(content, usize::from(width), &Look::default()).len(),
        };
        u16::try_from(rows + 2).unwrap_or(u16::MAX)
    }

    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        look: &Look,
        _: &Known,
    ) -> Option<Position> {
        let (body, foot) = say::body(area);
        let content = &self.content;
        self.pager.draw(body, buffer, look, |width| lay(content, width, look));
        let row = say::hints(&self.hints(look), look, foot.width);
        wrap::cut(&row, usize::from(foot.width), look).draw(foot, buffer);
        None
    }
}
