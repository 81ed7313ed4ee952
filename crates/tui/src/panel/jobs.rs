//! The commands in the background: what they are, what they said last, and the end of them.

use super::list::{Did, Item, List};
use super::pager::Pager;
use super::{Flow, Panel, say};
use crate::cx::{Cx, Look};
use crate::keys::{Command, Place};
use crate::known::Known;
use crate::lay;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::wire::Answered;
use windlass_protocol::{Event, Fault, JobRow, Op, Query, Reply};

/// The jobs.
#[derive(Debug)]
pub struct Jobs {
    list: List<JobRow>,
    asked: Option<u64>,
    /// The one whose output is looked at.
    open: Option<(u64, Pager)>,
    /// The one whose end is asked about.
    doubted: Option<u64>,
}

impl Jobs {
    /// Asks for them.
    pub fn new(cx: &mut Cx<'_>) -> Jobs {
        let empty = "nothing runs in the background";
        let list = match cx.known.session {
            Some(_) => List::busy("looking at what runs", empty),
            None => List::of(Vec::new(), empty),
        };
        let mut jobs = Jobs { list, asked: None, open: None, doubted: None };
        jobs.look(cx);
        jobs
    }

    fn look(&mut self, cx: &mut Cx<'_>) {
        if let (Some(session), None) = (cx.known.session, self.asked) {
            self.asked = Some(cx.query(Query::Jobs { session }));
        }
    }

    fn job(&self, id: u64) -> Option<&JobRow> {
        self.list.items().iter().map(|(_, job)| job).find(|job| job.id == id)
    }
}

fn state(job: &JobRow) -> String {
    match (job.running, job.exit) {
        (true, _) => "runs".to_owned(),
        (false, Some(0)) => "done".to_owned(),
        (false, Some(code)) => format!("failed with {code}"),
        (false, None) => "ended".to_owned(),
    }
}

impl Panel for Jobs {
    fn title(&self) -> String {
        match self.open.as_ref().and_then(|(id, _)| self.job(*id)) {
            Some(job) => windlass_protocol::text::beginning(&job.command, 60),
            None => "Jobs".to_owned(),
        }
    }

    fn key(&mut self, key: &KeyEvent, cx: &mut Cx<'_>) -> Flow {
        if let Some((_, pager)) = &mut self.open {
            pager.key(key, &cx.look.keys);
            return Flow::Stay;
        }
        if self.list.question.take().is_some() {
            if let (Some(job), KeyCode::Char('y')) = (self.doubted.take(), key.code) {
                cx.op(Op::EndJob { job });
                self.look(cx);
            }
            return Flow::Stay;
        }
        let selected = self.list.selected().map(|(_, job)| job.clone());
        if let (Some(Command::DeleteRow), Some(job)) =
            (cx.look.keys.find(Place::Panel, key), &selected)
        {
            let name = windlass_protocol::text::beginning(&job.command, 30);
            self.doubted = job.running.then_some(job.id);
            self.list.question = Some(match job.running {
                true => format!("y ends it: {name}"),
                false => "it has ended already".to_owned(),
            });
            return Flow::Stay;
        }
        if let (Did::Chose, Some(job)) = (self.list.key(key, &cx.look.keys), selected) {
            self.open = Some((job.id, Pager::default()));
        }
        Flow::Stay
    }

    fn escape(&mut self, _: &mut Cx<'_>) -> Flow {
        self.doubted = None;
        match self.open.take().is_some() | self.list.question.take().is_some() {
            true => Flow::Stay,
            false => Flow::Close,
        }
    }

    fn wheel(&mut self, lines: i32, _: &mut Cx<'_>) {
        match &mut self.open {
            Some((_, pager)) => pager.go(lines),
            None => self.list.go(lines),
        }
    }

    fn hear(&mut self, event: &Event, cx: &mut Cx<'_>) {
        // What runs is looked at again whenever something came of a call.
        if matches!(event, Event::Fact(_)) {
            self.look(cx);
        }
    }

    fn answer(&mut self, id: u64, answer: &Result<Answered, Fault>, cx: &mut Cx<'_>) -> bool {
        if self.asked.take_if(|asked| *asked == id).is_none() {
            return false;
        }
        match answer {
            Err(fault) => self.list.fail(fault),
            Ok(Answered::Reply { reply: Reply::Jobs { jobs } }) => {
                let item = |job: &JobRow| {
                    let last = job.tail.trim_end().lines().next_back().unwrap_or_default();
                    let item = Item::new(&job.command)
                        .note(last)
                        .column(state(job))
                        .column(say::ago(job.since, cx.now));
                    (Item { current: job.running, ..item }, job.clone())
                };
                self.list.fill(jobs.iter().rev().map(item).collect());
                if let Some((_, pager)) = &mut self.open {
                    pager.anew();
                }
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
        _: &Known,
    ) -> Option<Position> {
        let tail = self.open.as_ref().and_then(|(id, _)| self.job(*id)).map(|job| {
            let said = if job.tail.trim().is_empty() { "(it has said nothing)" } else { &job.tail };
            said.to_owned()
        });
        let (Some(tail), Some((_, pager))) = (tail, &mut self.open) else {
            let keys = [
                (Command::Choose, "shows what it said"),
                (Command::DeleteRow, "ends it"),
                (Command::Escape, "closes"),
            ];
            return self.list.draw(area, buffer, look, &say::keys(look, &keys));
        };
        let (body, foot) = say::body(area);
        pager.draw(body, buffer, look, |width| {
            let rows = lay::terminal(&tail, width.saturating_sub(say::MARGIN + 1).max(1), look);
            rows.iter().map(|row| say::indented(row, say::MARGIN)).collect()
        });
        let back = say::keys(look, &[(Command::Escape, "goes back to the list")]);
        let place = Some(pager.place()).filter(|place| !place.is_empty());
        let hints: Vec<String> = std::iter::once(back).chain(place).collect();
        let hints = hints.join(say::between(look));
        say::hints(&hints, look, foot.width).draw(foot, buffer);
        None
    }
}
