//! The commands in the background: what they are, what they said last, and the end of them.

use super::list::{Did, Item, List};
use super::pager::Pager;
use super::{Flow, Panel, say};
use crate::cx::{Cx, Look};
use crate::keys::Command;
use crate::known::Known;
use crate::lay;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::text::ago;
use windlass_protocol::wire::Answered;
use windlass_protocol::{Event, Fault, Glimpse, JobRow, Live, Millis, Op, Query, Reply};

/// The jobs.
#[derive(Debug)]
pub struct Jobs {
    list: List<u64>,
    /// The request under way, and whether something was said since.
    asked: Option<u64>,
    late: bool,
    /// The one that is looked at, with all that it said.
    open: Option<(JobRow, Pager)>,
    /// The one whose end is asked about.
    doubted: Option<u64>,
}

impl Jobs {
    /// Lists those that were heard of, and asks for the rest.
    pub fn new(cx: &mut Cx<'_>) -> Jobs {
        let list = List::of(Vec::new(), "nothing runs in the background");
        let mut jobs = Jobs { list, asked: None, late: false, open: None, doubted: None };
        jobs.fill(cx);
        jobs.look(cx);
        jobs
    }

    /// Asks what they said. Of what is said meanwhile one asks again when the answer is there.
    fn look(&mut self, cx: &mut Cx<'_>) {
        match (cx.known.session, self.asked) {
            (Some(session), None) => self.asked = Some(cx.query(Query::Jobs { session })),
            (_, asked) => self.late = asked.is_some(),
        }
    }

    /// Lists them anew, the last one first. The selected one stays the selected one.
    fn fill(&mut self, cx: &Cx<'_>) {
        let selected = self.list.selected().map(|(_, job)| *job);
        let item = |job: &JobRow| {
            let last = job.tail.trim_end().lines().next_back().unwrap_or_default();
            let item = Item::new(&job.command)
                .note(last)
                .column(state(job))
                .column(ago(job.since, Millis(cx.now)));
            (Item { current: job.running, ..item }, job.id)
        };
        self.list.fill(cx.known.jobs.values().rev().map(item).collect());
        self.list.select(|_, job| Some(*job) == selected);
        if let Some((open, _)) = &mut self.open
            && let Some(job) = cx.known.jobs.get(&open.id)
        {
            (open.running, open.exit) = (job.running, job.exit);
        }
    }

    /// Asks whether a job is to be ended.
    fn doubt(&mut self, job: &JobRow) {
        let name = windlass_protocol::text::beginning(&job.command, 30);
        self.doubted = job.running.then_some(job.id);
        self.list.question = Some(match job.running {
            true => format!("y ends it: {name}"),
            false => "it has ended already".to_owned(),
        });
    }
}

/// How a job stands.
pub(crate) fn state(job: &JobRow) -> String {
    match (job.running, job.exit) {
        (true, _) => "runs".to_owned(),
        (false, Some(0)) => "done".to_owned(),
        (false, Some(code)) => format!("failed with {code}"),
        (false, None) => "ended".to_owned(),
    }
}

impl Panel for Jobs {
    fn title(&self) -> String {
        match &self.open {
            Some((job, _)) => windlass_protocol::text::beginning(&job.command, 60),
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
            }
            return Flow::Stay;
        }
        let did = self.list.key(key, &cx.look.keys);
        let selected = self.list.selected().and_then(|(_, job)| cx.known.jobs.get(job));
        match (did, selected) {
            (Did::Wants(Command::DeleteRow), Some(job)) => self.doubt(job),
            (Did::Chose, Some(job)) => {
                let mut pager = Pager::default();
                pager.follow();
                self.open = Some((job.clone(), pager));
                self.look(cx);
            }
            _ => {}
        }
        Flow::Stay
    }

    fn escape(&mut self, _: &mut Cx<'_>) -> Flow {
        match self.open.take().is_some() | self.list.question.take().is_some() {
            true => Flow::Stay,
            false => Flow::Close,
        }
    }

    fn paste(&mut self, text: &str, _: &mut Cx<'_>) {
        if self.open.is_none() {
            self.list.paste(text);
        }
    }

    fn wheel(&mut self, lines: i32, _: &mut Cx<'_>) {
        match &mut self.open {
            Some((_, pager)) => pager.go(lines),
            None => self.list.go(lines),
        }
    }

    fn hear(&mut self, event: &Event, cx: &mut Cx<'_>) {
        let Event::Live(Glimpse { session, live: Live::Job { job }, .. }) = event else { return };
        if Some(*session) != cx.known.session {
            return;
        }
        self.fill(cx);
        if self.open.as_ref().is_some_and(|(open, _)| open.id == job.id) {
            self.look(cx);
        }
    }

    fn answer(&mut self, id: u64, answer: &Result<Answered, Fault>, cx: &mut Cx<'_>) -> bool {
        if self.asked.take_if(|asked| *asked == id).is_none() {
            return false;
        }
        self.fill(cx);
        match answer {
            Err(fault) => self.list.fail(fault),
            Ok(Answered::Reply { reply: Reply::Jobs { jobs } }) => {
                if let Some((open, pager)) = &mut self.open
                    && let Some(job) = jobs.iter().find(|job| job.id == open.id)
                {
                    open.tail.clone_from(&job.tail);
                    pager.follow();
                }
            }
            Ok(_) => {}
        }
        if std::mem::take(&mut self.late) {
            self.look(cx);
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
        let Some((job, pager)) = &mut self.open else {
            let keys = [
                (Command::Choose, "shows what it said"),
                (Command::DeleteRow, "ends it"),
                (Command::Escape, "closes"),
            ];
            return self.list.draw(area, buffer, look, &say::keys(look, &keys));
        };
        let (body, foot) = say::body(area);
        pager.draw(body, buffer, look, |width| {
            let said = job.tail.as_str();
            let said = if said.trim().is_empty() { "(it has said nothing)" } else { said };
            let rows = lay::terminal(said, width.saturating_sub(say::MARGIN + 1).max(1), look);
            rows.iter().map(|row| say::indented(row, say::MARGIN)).collect()
        });
        let back = say::keys(look, &[(Command::Escape, "goes back to the list")]);
        let place = Some(pager.place()).filter(|place| !place.is_empty());
        let hints: Vec<String> = [state(job), back].into_iter().chain(place).collect();
        let hints = hints.join(say::between(look));
        say::hints(&hints, look, foot.width).draw(foot, buffer);
        None
    }
}
