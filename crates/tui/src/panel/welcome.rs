//! The first run: which model to ask, found by looking around, and a key where one is needed. It is
//! also `/login`, where only the key counts.

use super::login::Login;
use super::{Flow, Panel, Parting};
use crate::asked::choices::{self, Choice, Keyed};
use crate::asked::page;
use crate::cx::{Cx, Look};
use crate::ink::Row;
use crate::keys::{Command, Place};
use crate::known::Known;
use crate::theme::Role;
use crate::wrap::{self, Break};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::Fault;
use windlass_protocol::wire::{Answered, Found, Keep, Request};

/// What a person may want to say first.
const SAMPLE: &str = "Explain what this project does and how it is built";

/// What it is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A model has to be chosen.
    First,
    /// A key is to be kept.
    Login,
}

/// How far the looking is.
#[derive(Clone, Debug, PartialEq)]
enum State {
    Looking(u64),
    Found(Vec<Found>),
    Failed(Fault),
}

/// The panel.
#[derive(Debug)]
pub struct Welcome {
    purpose: Purpose,
    state: State,
    /// The row that is marked.
    at: usize,
    login: Option<Login>,
    /// The model that was chosen, and the request that says so.
    chosen: Option<(String, u64)>,
    /// Why a model cannot be asked.
    fault: Option<Fault>,
    over: bool,
    scrolled: (usize, usize),
}

impl Welcome {
    /// Looks around.
    pub fn new(purpose: Purpose, cx: &mut Cx<'_>) -> Welcome {
        let state = State::Looking(cx.ask(Request::LookAround));
        Welcome {
            purpose,
            state,
            at: 0,
            login: None,
            chosen: None,
            fault: None,
            over: false,
            scrolled: (0, 1),
        }
    }

    /// Asks for the key of a provider, or for the provider first if none is named.
    pub fn login(provider: &str, cx: &mut Cx<'_>) -> Welcome {
        let mut panel = Welcome::new(Purpose::Login, cx);
        panel.login = Some(provider.trim()).filter(|name| !name.is_empty()).map(Login::new);
        panel
    }

    fn found(&self) -> &[Found] {
        match &self.state {
            State::Found(found) => found,
            State::Looking(_) | State::Failed(_) => &[],
        }
    }

    /// How many can be asked at once. They come first.
    fn ready(&self) -> usize {
        self.found().iter().take_while(|found| found.ready).count()
    }

    fn choose(&mut self, cx: &mut Cx<'_>) {
        let Some(found) = self.found().get(self.at).cloned() else { return };
        match found.models.first().filter(|_| found.ready && self.purpose == Purpose::First) {
            Some(model) if self.chosen.is_none() => {
                let request = Request::Model { model: model.clone(), keep: Keep::Always };
                self.chosen = Some((model.clone(), cx.ask(request)));
                self.fault = None;
            }
            Some(_) => {}
            None => self.login = Some(Login::new(&found.provider)),
        }
    }

    fn rows(&self, width: usize, look: &Look) -> (Vec<Row>, Option<(usize, usize)>) {
        if let Some(login) = &self.login {
            return login.rows(width, look);
        }
        let said = |role, text: &str| {
            let row = Row::of(look.style(role), &format!(" {text}"));
            wrap::wrap(&row, width.max(8), Break::Words, 1)
        };
        let found = self.found();
        let ready = self.ready() > 0;
        let mut rows = Vec::new();
        match (&self.state, self.purpose) {
            (State::Looking(_), _) => {
                let text = "Looking for keys in the environment and for model servers on this \
                            machine.";
                rows.extend(said(Role::Dim, text));
            }
            (State::Failed(fault), _) => {
                rows.extend(said(Role::Bad, &crate::fault::told(fault)));
            }
            (State::Found(_), Purpose::Login) => {
                rows.extend(said(Role::Text, "Whose key is to be kept?"));
            }
            (State::Found(_), Purpose::First) if ready => {
                rows.extend(said(Role::Text, "A model does the work. Which one is asked?"));
            }
            (State::Found(_), Purpose::First) => {
                let text = "A model does the work, and none can be asked yet: no key is set, and \
                            no model server answers on this machine.";
                rows.extend(said(Role::Text, text));
                let text = "Set a key such as ANTHROPIC_API_KEY in the environment and start \
                            again. Or start a server, such as `ollama serve`, and look again.";
                let text = match found.is_empty() {
                    true => text.to_owned(),
                    false => format!("Choose a provider below and give its key. {text}"),
                };
                rows.extend(said(Role::Dim, &text));
            }
        }
        if !found.is_empty() {
            rows.push(Row::default());
        }
        for (at, found) in found.iter().enumerate() {
            // What is ready stands apart from what needs a key.
            if at > 0 && at == self.ready() {
                rows.push(Row::default());
            }
            rows.push(self.row(at, found, width, look));
        }
        if let Some((model, _)) = &self.chosen {
            rows.extend(said(Role::Dim, &format!("asking whether {model} can be used")));
        }
        if let Some(fault) = &self.fault {
            rows.push(Row::default());
            rows.extend(said(Role::Bad, &crate::fault::told(fault)));
        }
        (rows, None)
    }

    fn row(&self, at: usize, found: &Found, width: usize, look: &Look) -> Row {
        let here = at == self.at;
        let sign = match (here, look.ascii) {
            (true, false) => " › ",
            (true, true) => " > ",
            (false, _) => "   ",
        };
        let model = found.models.first().filter(|_| found.ready);
        let name = model.unwrap_or(&found.provider);
        let wide = self.found().iter().map(|found| {
            let model = found.models.first().filter(|_| found.ready);
            model.unwrap_or(&found.provider).chars().count()
        });
        let column = wide.max().unwrap_or_default().min(width / 2);
        let role = if here { Role::Strong } else { Role::Text };
        let name = Row::of(look.style(role), name);
        let name = wrap::cut(&name, column, look);
        let mut row = Row::of(look.style(Role::Accent), sign);
        name.pieces().for_each(|(style, text)| row.push(style, text));
        let gap = " ".repeat(column.saturating_sub(name.width()) + 2);
        let role = if found.ready { Role::Good } else { Role::Dim };
        // Where a key comes from is told of the row one is at; told of all, it drowns them.
        let brief = found.how.split(';').next().unwrap_or_default();
        let how = if here || found.ready { found.how.as_str() } else { brief };
        row.push(look.style(role), &format!("{gap}{how}"));
        wrap::cut(&row, width, look)
    }

    fn foot(&self, width: usize, look: &Look) -> Vec<Row> {
        let mut choices = Vec::new();
        if self.login.is_some() {
            choices.push(Choice::by("Enter", "keeps it", "keeps it"));
            choices.push(Choice::by("Esc", "goes back", "back"));
        } else {
            match self.state {
                State::Found(ref found) if !found.is_empty() => {
                    choices.push(Choice::by("Enter", "takes the row", "takes it"));
                    choices.push(Choice::by("r", "looks again", "again"));
                }
                State::Found(_) | State::Failed(_) => {
                    choices.push(Choice::by("r", "looks again", "again"));
                }
                State::Looking(_) => {}
            }
            choices.push(Choice::by("Esc", "later", "later"));
        }
        choices::rows(&[("", choices)], width, Keyed::Here, look)
    }
}

impl Panel for Welcome {
    fn title(&self) -> String {
        match (&self.login, self.purpose) {
            (Some(_), _) | (None, Purpose::Login) => "Sign in".to_owned(),
            (None, Purpose::First) => "Welcome to Windlass".to_owned(),
        }
    }

    fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> Flow {
        if let Some(login) = &mut self.login {
            login.key(key, cx);
            return Flow::Stay;
        }
        match (key.code, cx.look.keys.find(Place::Panel, key)) {
            (KeyCode::Char('r'), _) if !matches!(self.state, State::Looking(_)) => {
                (self.state, self.at) = (State::Looking(cx.ask(Request::LookAround)), 0);
            }
            (_, Some(Command::Up)) => self.at = self.at.saturating_sub(1),
            (_, Some(Command::Down)) => {
                self.at = (self.at + 1).min(self.found().len().saturating_sub(1));
            }
            (_, Some(Command::Choose)) => self.choose(cx),
            _ => {}
        }
        Flow::Stay
    }

    fn escape(&mut self, cx: &mut Cx<'_>) -> Flow {
        let _ = cx;
        match (self.login.take(), &self.state) {
            // With a name given there was nothing to choose from.
            (Some(_), State::Found(found)) if !found.is_empty() => Flow::Stay,
            (Some(_) | None, _) => Flow::Close,
        }
    }

    fn paste(&mut self, text: &str, cx: &mut Cx<'_>) {
        let _ = cx;
        if let Some(login) = &mut self.login {
            login.paste(text);
        }
    }

    fn answer(&mut self, id: u64, answer: &Result<Answered, Fault>, cx: &mut Cx<'_>) -> bool {
        let failed = answer.as_ref().err();
        if self.login.as_mut().is_some_and(|login| login.answer(id, failed)) {
            if let Some(Login::Kept { .. }) = self.login {
                match self.purpose {
                    Purpose::Login => self.over = true,
                    Purpose::First => {
                        self.login = None;
                        (self.state, self.at) = (State::Looking(cx.ask(Request::LookAround)), 0);
                    }
                }
            }
            return true;
        }
        if self.state == State::Looking(id) {
            self.state = match answer {
                Ok(Answered::Found { found }) => {
                    let mut found = found.clone();
                    found.sort_by_key(|found| !found.ready);
                    State::Found(found)
                }
                Ok(_) => State::Found(Vec::new()),
                Err(fault) => State::Failed(fault.clone()),
            };
            return true;
        }
        if self.chosen.as_ref().is_some_and(|(_, sent)| *sent == id) {
            match failed {
                Some(fault) => (self.chosen, self.fault) = (None, Some(fault.clone())),
                None => self.over = true,
            }
            return true;
        }
        false
    }

    fn done(&self) -> bool {
        self.over
    }

    fn parting(&mut self) -> Parting {
        match (&self.login, self.purpose, self.over) {
            (Some(Login::Kept { provider }), Purpose::Login, true) => {
                Parting::Hint(format!("the key of {provider} is kept"))
            }
            (_, Purpose::First, true) => Parting::Prompt(SAMPLE.to_owned(), Vec::new()),
            (_, Purpose::First, false) => Parting::Hint(
                "no model is chosen yet: /login keeps a key, /model chooses".to_owned(),
            ),
            (_, Purpose::Login, _) => Parting::Nothing,
        }
    }

    fn height(&self, width: u16, known: &Known) -> u16 {
        let _ = known;
        let (rows, _) = self.rows(usize::from(width), &Look::default());
        u16::try_from(rows.len() + 2).unwrap_or(u16::MAX)
    }

    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        look: &Look,
        known: &Known,
    ) -> Option<Position> {
        let _ = known;
        let width = usize::from(area.width);
        let (rows, cursor) = self.rows(width, look);
        let foot = self.foot(width, look);
        let (mut top, mut seen) = self.scrolled;
        // The row that is marked, or written in, stays in sight.
        let listed = self.found().len();
        let marked = match cursor {
            Some((_, row)) => row,
            None if listed == 0 => 0,
            None => {
                let above = rows.iter().take_while(|row| row.width() > 0).count() + 1;
                let apart = self.ready() > 0 && self.at >= self.ready();
                above + self.at + usize::from(apart)
            }
        };
        let least =
            (marked + 1).saturating_sub(usize::from(area.height).saturating_sub(foot.len() + 1));
        top = top.max(least).min(marked);
        page((&mut top, &mut seen), (&rows, &foot), (area, buffer), look);
        self.scrolled = (top, seen);
        let (column, row) = cursor?;
        let at =
            |start: u16, by: usize| start.saturating_add(u16::try_from(by).unwrap_or(u16::MAX));
        Some(Position::new(at(area.x, column), at(area.y, row.saturating_sub(top))))
    }
}
