//! The agents that work for this session, and what each of them does.

use super::list::{Did, Item, List};
use super::{Flow, Panel, say};
use crate::app::status::money;
use crate::cx::{Cx, Look};
use crate::keys::{Command, Place};
use crate::known::Known;
use crate::story::{Details, Scroll, Story};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::text::{ago, counted};
use windlass_protocol::wire::Answered;
use windlass_protocol::{Event, Fault, Millis, Query, Reply, SessionId, SessionSummary};

/// The agents; and the story of the one that is looked at.
#[derive(Debug)]
pub struct Children {
    list: List<SessionId>,
    summaries: Vec<SessionSummary>,
    asked: Option<u64>,
    open: Option<(String, Box<Story>)>,
}

impl Children {
    /// Asks for them.
    pub fn new(cx: &mut Cx<'_>) -> Children {
        let list = List::of(Vec::new(), "no agent was given work in this session");
        let mut children = Children { list, summaries: Vec::new(), asked: None, open: None };
        if cx.known.session.is_some() {
            let workspace = Some(cx.known.standing.root.clone()).filter(|root| !root.is_empty());
            children.asked = Some(cx.query(Query::Sessions { workspace }));
        }
        children.fill(cx);
        children
    }

    /// What was heard of them, and what is on record: a session that was just opened has heard
    /// nothing yet.
    fn fill(&mut self, cx: &Cx<'_>) {
        let mut rows = Vec::new();
        for (session, child) in cx.known.children.iter().rev() {
            let summary = self.summaries.iter().find(|summary| summary.session == *session);
            let note = match (summary, child.done) {
                (Some(summary), _) if !summary.title.is_empty() => summary.title.clone(),
                (Some(_) | None, true) => String::new(),
                (Some(_) | None, false) => child.doing.clone(),
            };
            let state = match child.done {
                true => "done".to_owned(),
                false if child.doing.is_empty() => "works".to_owned(),
                false => child.doing.clone(),
            };
            let item = Item::new(&child.agent)
                .note(note)
                .column(counted(child.calls as usize, "call"))
                .column(state);
            rows.push((Item { current: !child.done, ..item }, *session));
        }
        for summary in &self.summaries {
            if !cx.known.children.contains_key(&summary.session) {
                let item = Item::new("agent")
                    .note(&summary.title)
                    .column(money(summary.cost))
                    .column(ago(summary.changed, Millis(cx.now)));
                rows.push((item, summary.session));
            }
        }
        self.list.fill(rows);
    }
}

impl Panel for Children {
    fn title(&self) -> String {
        match &self.open {
            Some((name, _)) => windlass_protocol::text::beginning(name, 60),
            None => "Agents at work".to_owned(),
        }
    }

    fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> Flow {
        if let Some((_, story)) = &mut self.open {
            if story.finds() && story.find_key(key, cx) {
                return Flow::Stay;
            }
            let scroll = match (cx.look.keys.find(Place::Panel, key), key.code) {
                (Some(Command::Up | Command::LineUp), _) => Scroll::Lines(-1),
                (Some(Command::Down | Command::LineDown), _) => Scroll::Lines(1),
                (Some(Command::PageUp), _) => Scroll::Pages(-1),
                (Some(Command::PageDown | Command::Mark), _) => Scroll::Pages(1),
                (Some(Command::Top), _) | (None, KeyCode::Home) => Scroll::Top,
                (Some(Command::End), _) | (None, KeyCode::End) => Scroll::End,
                (Some(Command::Details), _) => {
                    story.toggle(Details::One);
                    return Flow::Stay;
                }
                (Some(Command::DetailsAll), _) => {
                    story.toggle(Details::All);
                    return Flow::Stay;
                }
                (Some(Command::Find), _) => {
                    story.find("", cx);
                    return Flow::Stay;
                }
                _ => return Flow::Stay,
            };
            story.scroll(scroll, cx);
            return Flow::Stay;
        }
        if self.list.key(key, &cx.look.keys) == Did::Chose
            && let Some((item, session)) = self.list.selected()
        {
            let summary = self.summaries.iter().find(|summary| summary.session == *session);
            let heard = cx.known.children.get(session).map_or(0, |child| child.head);
            let head = summary.map_or(0, |summary| summary.length).max(heard);
            let mut story = Box::new(Story::default());
            story.open(*session, head, cx);
            self.open = Some((format!("{}: {}", item.name, item.note), story));
        }
        Flow::Stay
    }

    fn escape(&mut self, _: &mut Cx<'_>) -> Flow {
        match &mut self.open {
            Some((_, story)) if story.finds() => story.find_no_more(),
            Some(_) => self.open = None,
            None => return Flow::Close,
        }
        Flow::Stay
    }

    fn paste(&mut self, text: &str, cx: &mut Cx<'_>) {
        if let Some((_, story)) = self.open.as_mut().filter(|(_, story)| story.finds()) {
            story.find(text, cx);
        }
    }

    fn wheel(&mut self, lines: i32, cx: &mut Cx<'_>) {
        match &mut self.open {
            Some((_, story)) => story.scroll(Scroll::Lines(lines), cx),
            None => self.list.go(lines),
        }
    }

    fn hear(&mut self, event: &Event, cx: &mut Cx<'_>) {
        match &mut self.open {
            Some((_, story)) => story.hear(event, cx),
            None => self.fill(cx),
        }
    }

    fn answer(&mut self, id: u64, answer: &Result<Answered, Fault>, cx: &mut Cx<'_>) -> bool {
        if let Some((_, story)) = &mut self.open
            && story.answer(id, answer, cx)
        {
            return true;
        }
        if self.asked.take_if(|asked| *asked == id).is_none() {
            return false;
        }
        match answer {
            Err(fault) => self.list.fail(fault),
            Ok(Answered::Reply { reply: Reply::Sessions { sessions } }) => {
                let ours =
                    |one: &&SessionSummary| one.parent.is_some() && one.parent == cx.known.session;
                self.summaries = sessions.iter().filter(ours).cloned().collect();
                self.fill(cx);
            }
            Ok(_) => {}
        }
        true
    }

    fn height(&self, _: u16, _: &Known) -> u16 {
        match &self.open {
            Some(_) => u16::MAX,
            None => self.list.height(),
        }
    }

    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        look: &Look,
        known: &Known,
    ) -> Option<Position> {
        let Some((_, story)) = &mut self.open else {
            let keys = [(Command::Choose, "shows what it does"), (Command::Escape, "closes")];
            return self.list.draw(area, buffer, look, &say::keys(look, &keys));
        };
        let (body, foot) = say::body(area);
        let cursor = story.draw(body, buffer, look, known);
        let keys = [
            (Command::PageUp, "scrolls"),
            (Command::Details, "opens a call"),
            (Command::Escape, "goes back to the list"),
        ];
        say::hints(&say::keys(look, &keys), look, foot.width).draw(foot, buffer);
        cursor
    }
}
