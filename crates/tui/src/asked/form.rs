//! What a call wants to know: one question a page, answered by a number, by the row or in words, and
//! looked over before it is sent where there are several.
//!
//! A choice here is no permission, so Enter takes the row. Only a plan has no row to begin with: yes
//! to it lets the model work.

use super::choices::Choice;
use super::line::Line;
use super::permission::Heard;
use super::sheet::{self, Edge, MARGIN, Part, Source};
use crate::cx::Look;
use crate::ink::Row;
use crate::keys::{Command, Place};
use crate::theme::Role;
use crate::wrap::{self, Break};
use crossterm::event::{KeyCode, KeyEvent};
use std::collections::BTreeSet;
use windlass_protocol::text::{one_line, plain};
use windlass_protocol::{Inquiry, Mode, Suggestion};

/// What is behind every plan; the headline says it.
const CARRY_OUT: &str = "Carry the plan out?";

/// What was chosen of a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Reply {
    chosen: Vec<usize>,
    own: Option<String>,
}

/// Questions as they are put.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    inquiries: Vec<Inquiry>,
    replies: Vec<Reply>,
    agent: Option<String>,
    /// The question on the screen; the one behind the last is all of them, to be looked over.
    page: usize,
    /// The row that Enter takes.
    at: Option<usize>,
    /// Own words, while they are being written.
    pub(crate) line: Option<Line>,
    /// Esc was pressed, which answers nothing.
    escaped: bool,
}

/// True if this is the question whether to carry a plan out.
pub(crate) fn is_plan(inquiry: &Inquiry) -> bool {
    let labels: Vec<&str> = inquiry.options.iter().map(|option| option.label.as_str()).collect();
    labels == [Mode::Auto.name(), Mode::Ask.name(), "no"] && inquiry.header == "Plan"
}

impl Form {
    /// Questions of the model, or of an agent.
    pub(crate) fn new(inquiries: &[Inquiry], agent: Option<&str>) -> Form {
        let replies = inquiries.iter().map(|_| Reply::default()).collect();
        let agent = agent.map(str::to_owned);
        let (inquiries, line) = (inquiries.to_vec(), None);
        let mut form = Form { inquiries, replies, agent, page: 0, at: None, line, escaped: false };
        form.turn(0);
        form
    }

    /// The question on the screen.
    pub(crate) fn open(&self) -> Option<&Inquiry> {
        self.inquiries.get(self.page)
    }

    /// Goes to a page.
    fn turn(&mut self, page: usize) {
        self.page = page.min(self.inquiries.len());
        self.line = None;
        let chosen = self.replies.get(self.page).and_then(|reply| reply.chosen.first().copied());
        let first = self.open().filter(|inquiry| !is_plan(inquiry)).map(|_| 0);
        self.at = chosen.or(first);
    }

    /// Takes in a line, where there are no keys: numbers of options, own words, or `n` for no answer.
    pub(crate) fn take(&mut self, line: &str) -> Heard<Vec<Vec<String>>> {
        let Some(inquiry) = self.open() else { return Heard::Unused };
        let place = |word: &str| {
            let at = word.parse::<usize>().ok()?.checked_sub(1)?;
            (at < inquiry.options.len()).then_some(at)
        };
        let words = line.split([',', ' ']).filter(|word| !word.is_empty());
        let chosen: Option<BTreeSet<usize>> = words.map(place).collect();
        let reply = match chosen {
            _ if line == "n" => Reply::default(),
            Some(chosen) if chosen.len() == 1 || inquiry.multiple => {
                Reply { chosen: chosen.into_iter().collect(), own: None }
            }
            _ if inquiry.custom => Reply { chosen: Vec::new(), own: Some(line.to_owned()) },
            _ => return Heard::Unused,
        };
        self.replies.get_mut(self.page).into_iter().for_each(|it| *it = reply.clone());
        if self.page + 1 >= self.inquiries.len() {
            return Heard::Said(self.said());
        }
        self.turn(self.page + 1);
        Heard::Used
    }

    /// What stands over it.
    pub(crate) fn headline(&self) -> String {
        match (self.open(), self.agent.as_deref()) {
            (None, _) => "Your answers".to_owned(),
            (Some(inquiry), _) if is_plan(inquiry) => "A plan: carry it out?".to_owned(),
            (_, Some(agent)) if plain(agent) => format!("The agent {agent} asks"),
            (_, Some(_)) => "An agent asks".to_owned(),
            (_, None) => "The model asks".to_owned(),
        }
    }

    /// Which page this is of how many.
    pub(crate) fn pages(&self) -> Option<String> {
        let all = self.inquiries.len();
        (all > 1 && self.page < all).then(|| format!("{}/{all}", self.page + 1))
    }

    /// What is asked.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let Some(inquiry) = self.open() else { return Vec::new() };
        if is_plan(inquiry) {
            let plan = inquiry.question.trim_end();
            let plan = plan.strip_suffix(CARRY_OUT).unwrap_or(plan).trim_end();
            return vec![Part::new("", Source::Markdown(format!("{plan}\n")))];
        }
        let asked = format!("{}: {}", one_line(&inquiry.header), inquiry.question);
        vec![Part::new("", Source::Words(asked))]
    }

    /// What can be chosen, each on a line with its number.
    pub(crate) fn listed(&self) -> String {
        let options = self.open().into_iter().flat_map(|inquiry| &inquiry.options);
        let line = |(at, option): (usize, &Suggestion)| {
            let about = match option.description.as_str() {
                "" => String::new(),
                about => format!(": {}", one_line(about)),
            };
            format!("{}. {}{about}", at + 1, one_line(&option.label))
        };
        options.enumerate().map(line).collect::<Vec<_>>().join("\n")
    }

    /// The row that is marked.
    pub(crate) fn at(&self) -> usize {
        self.at.unwrap_or_default()
    }

    /// What can be chosen, or what was: the rows of each.
    pub(crate) fn options(&self, width: usize, look: &Look) -> Vec<Vec<Row>> {
        let Some(inquiry) = self.open() else { return self.looked_over(width, look) };
        let reply = self.replies.get(self.page).cloned().unwrap_or_default();
        let mut rows: Vec<Vec<Row>> = Vec::new();
        for (at, option) in inquiry.options.iter().enumerate() {
            let label = one_line(&option.label);
            let chosen = reply.chosen.contains(&at);
            let what = one_line(&option.description);
            rows.push(self.option(at, chosen, (&label, &what), (width, look)));
        }
        if inquiry.custom {
            let own = one_line(reply.own.as_deref().unwrap_or_default());
            let chosen = reply.own.is_some();
            let at = inquiry.options.len();
            rows.push(self.option(at, chosen, ("in your own words", &own), (width, look)));
        }
        rows
    }

    fn option(
        &self,
        at: usize,
        chosen: bool,
        (label, what): (&str, &str),
        (width, look): (usize, &Look),
    ) -> Vec<Row> {
        let here = self.at == Some(at);
        let cursor = match (here, look.ascii) {
            (true, false) => "›",
            (true, true) => ">",
            (false, _) => " ",
        };
        let mark = match (chosen, self.open().is_some_and(|inquiry| inquiry.multiple)) {
            (true, _) => "x",
            (false, true) if look.ascii => ".",
            (false, true) => "·",
            (false, false) => " ",
        };
        let role = if here { Role::Strong } else { Role::Text };
        let mut row = Row::of(look.style(role), label);
        if !what.is_empty() {
            row.push(look.style(Role::Dim), &format!("  {what}"));
        }
        let room = width.saturating_sub(MARGIN).max(8);
        let pieces = wrap::wrap(&row, room, Break::Words, 2);
        let label = format!("{cursor}{} {mark}", at + 1);
        let rows = pieces.iter().enumerate().map(|(nth, piece)| {
            let label = if nth == 0 { label.as_str() } else { "" };
            sheet::margin(label, Edge::Line, piece, look)
        });
        rows.collect()
    }

    /// Every question and what is answered to it.
    fn looked_over(&self, width: usize, look: &Look) -> Vec<Vec<Row>> {
        let room = width.saturating_sub(MARGIN).max(8);
        let each = self.inquiries.iter().zip(self.said()).enumerate();
        let rows = each.map(|(at, (inquiry, said))| {
            let header = one_line(&inquiry.header);
            let (said, role) = match said.is_empty() {
                true => ("no answer".to_owned(), Role::Dim),
                false => (one_line(&said.join(", ")), Role::Strong),
            };
            let row = Row::of(look.style(Role::Text), &format!("{header}  "))
                .and(look.style(role), &said);
            let pieces = wrap::wrap(&row, room, Break::Words, 2);
            let rows = pieces.iter().enumerate().map(|(nth, piece)| {
                let label = if nth == 0 { format!(" {}", at + 1) } else { String::new() };
                sheet::margin(&label, Edge::Line, piece, look)
            });
            rows.collect()
        });
        rows.collect()
    }

    /// What can be done.
    pub(crate) fn choices(&self, look: &Look) -> Vec<(&'static str, Vec<Choice>)> {
        let of = |command, words, fewer| Choice::of(&look.keys, command, words, fewer);
        let back = if look.ascii { "Left" } else { "←" };
        let Some(inquiry) = self.open() else {
            let choices = vec![
                Choice::by("Enter", "sends them", "sends"),
                Choice::by(back, "goes back", "back"),
            ];
            return vec![("", choices)];
        };
        if self.line.is_some() {
            let choices = vec![
                Choice::by("Enter", "says it", "says it"),
                Choice::by("Esc", "goes back", "back"),
            ];
            return vec![("", choices)];
        }
        let mut choices = Vec::new();
        match (is_plan(inquiry), inquiry.multiple) {
            (true, _) => choices.push(Choice::by("1 2", "yes", "yes")),
            (false, true) => {
                choices.push(of(Command::Mark, "marks", "marks"));
                choices.push(Choice::by("Enter", "goes on", "goes on"));
            }
            (false, false) => choices.push(Choice::by("Enter", "takes it", "takes it")),
        }
        match is_plan(inquiry) {
            true => choices.push(of(Command::No, "keep planning", "no")),
            false => choices.push(of(Command::No, "no answer", "no answer")),
        }
        if inquiry.custom {
            choices.push(of(Command::Reason, "own words", "own words"));
        }
        if self.page > 0 {
            choices.push(Choice::by(back, "goes back", "back"));
        }
        choices.push(of(Command::Whole, "show all", "all"));
        vec![("", choices)]
    }

    /// What is said after Esc.
    pub(crate) fn note(&self, look: &Look) -> Option<String> {
        let keys = (look.keys.hint(Command::No), look.keys.hint(Command::Interrupt));
        let no = match self.open().is_some_and(is_plan) {
            true => "says no",
            false => "gives no answer",
        };
        self.escaped
            .then(|| format!("Esc answers nothing: {} {no}, {} stops the turn", keys.0, keys.1))
    }

    /// What was answered to each.
    fn said(&self) -> Vec<Vec<String>> {
        let each = self.inquiries.iter().zip(&self.replies);
        let said = each.map(|(inquiry, reply)| {
            let chosen = reply.chosen.iter().filter_map(|at| inquiry.options.get(*at));
            chosen.map(|option| option.label.clone()).chain(reply.own.clone()).collect()
        });
        said.collect()
    }

    /// The next page, or all of it if there is none.
    fn next(&mut self) -> Heard<Vec<Vec<String>>> {
        if self.inquiries.len() == 1 {
            return Heard::Said(self.said());
        }
        self.turn(self.page + 1);
        Heard::Used
    }

    /// Takes in a key.
    pub(crate) fn key(&mut self, key: &KeyEvent, look: &Look) -> Heard<Vec<Vec<String>>> {
        if self.line.is_some() {
            return self.key_in_line(key, look);
        }
        self.escaped = key.code == KeyCode::Esc;
        let Some(inquiry) = self.open() else { return self.key_at_the_end(key) };
        let rows = inquiry.options.len() + usize::from(inquiry.custom);
        if let KeyCode::Char(digit @ '1'..='9') = key.code {
            let at = digit.to_digit(10).and_then(|digit| usize::try_from(digit - 1).ok());
            return match at.filter(|at| *at < rows) {
                Some(at) => self.choose(at),
                None => Heard::Unused,
            };
        }
        match key.code {
            KeyCode::Esc => return Heard::Used,
            KeyCode::Left if self.page > 0 => self.turn(self.page - 1),
            KeyCode::Right if self.inquiries.len() > 1 => self.turn(self.page + 1),
            KeyCode::Left | KeyCode::Right => return Heard::Used,
            _ => return self.key_of_table(key, look, rows),
        }
        Heard::Used
    }

    fn key_of_table(
        &mut self,
        key: &KeyEvent,
        look: &Look,
        rows: usize,
    ) -> Heard<Vec<Vec<String>>> {
        let several = self.open().is_some_and(|inquiry| inquiry.multiple);
        let custom = self.open().is_some_and(|inquiry| inquiry.custom);
        match look.keys.find(Place::Panel, key) {
            Some(Command::Up) => {
                self.at = Some(self.at.unwrap_or(rows).saturating_sub(1));
                return Heard::Used;
            }
            Some(Command::Down) => {
                let next = self.at.map_or(0, |at| at + 1);
                self.at = Some(next.min(rows.saturating_sub(1)));
                return Heard::Used;
            }
            Some(Command::Mark) => {
                return self.at.map_or(Heard::Used, |at| self.choose(at));
            }
            Some(Command::Choose) => {
                let reply = self.replies.get(self.page);
                let marked = reply.is_some_and(|it| !it.chosen.is_empty() || it.own.is_some());
                return match self.at {
                    _ if several && marked => self.next(),
                    None => Heard::Used,
                    Some(at) if several => {
                        let heard = self.choose(at);
                        if self.line.is_some() { heard } else { self.next() }
                    }
                    Some(at) => self.choose(at),
                };
            }
            _ => {}
        }
        match look.keys.find(Place::Asked, key) {
            Some(Command::No) => {
                self.replies.get_mut(self.page).into_iter().for_each(|it| *it = Reply::default());
                self.next()
            }
            Some(Command::Reason) if custom => self.choose(rows.saturating_sub(1)),
            Some(Command::Whole) => Heard::Whole,
            _ => Heard::Unused,
        }
    }

    /// Chooses a row: the only one, or one of several.
    fn choose(&mut self, at: usize) -> Heard<Vec<Vec<String>>> {
        self.at = Some(at);
        let Some(inquiry) = self.inquiries.get(self.page) else { return Heard::Unused };
        let (options, several) = (inquiry.options.len(), inquiry.multiple);
        let Some(reply) = self.replies.get_mut(self.page) else { return Heard::Unused };
        if at >= options {
            let mut line = Line::default();
            line.write(reply.own.as_deref().unwrap_or_default());
            self.line = Some(line);
            return Heard::Used;
        }
        if !several {
            *reply = Reply { chosen: vec![at], own: None };
            return self.next();
        }
        match reply.chosen.iter().position(|chosen| *chosen == at) {
            Some(place) => {
                reply.chosen.remove(place);
            }
            None => {
                reply.chosen.push(at);
                reply.chosen.sort_unstable();
            }
        }
        Heard::Used
    }

    fn key_in_line(&mut self, key: &KeyEvent, look: &Look) -> Heard<Vec<Vec<String>>> {
        let several = self.open().is_some_and(|inquiry| inquiry.multiple);
        let Some(line) = &mut self.line else { return Heard::Unused };
        match key.code {
            KeyCode::Esc => self.line = None,
            KeyCode::Enter => {
                let said = line.text().trim().to_owned();
                self.line = None;
                let Some(reply) = self.replies.get_mut(self.page) else { return Heard::Unused };
                reply.own = (!said.is_empty()).then_some(said);
                if !several {
                    reply.chosen.clear();
                }
                // Nothing said is nothing answered: the page stays.
                return if reply.own.is_some() { self.next() } else { Heard::Used };
            }
            _ if line.key(key, look) => {}
            _ => return Heard::Unused,
        }
        Heard::Used
    }

    fn key_at_the_end(&mut self, key: &KeyEvent) -> Heard<Vec<Vec<String>>> {
        match key.code {
            KeyCode::Enter => return Heard::Said(self.said()),
            KeyCode::Left | KeyCode::Up => self.turn(self.page.saturating_sub(1)),
            KeyCode::Esc | KeyCode::Right | KeyCode::Down => {}
            KeyCode::Char(digit @ '1'..='9') => {
                let page = digit.to_digit(10).and_then(|digit| usize::try_from(digit - 1).ok());
                let Some(page) = page.filter(|page| *page < self.inquiries.len()) else {
                    return Heard::Unused;
                };
                self.turn(page);
            }
            _ => return Heard::Unused,
        }
        Heard::Used
    }
}
