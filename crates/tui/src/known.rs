//! What is known of the session on the screen: the fold behind the status line and the panels.
//!
//! It hears every event as it comes. A session that is gone on with has a past, of which the last
//! page is taken in when it comes, and what lies further back from the transcript.

use crate::story::words::{Words, words};
use std::collections::BTreeMap;
use windlass_protocol::text::duration;
use windlass_protocol::transcript::Prompt;
use windlass_protocol::wire::{Answered, Request, Standing};
use windlass_protocol::{
    CallId, Cost, Event, Fact, Fault, JobRow, Live, Mode, Purpose, Record, Reply, Seq, SessionId,
    Stream, Todo, Transcript, TurnEnd, Usage, todo,
};

/// So many commands in the background are remembered; those that run, however many they are.
const MOST_JOBS: usize = 64;
/// When a job began is told as its age, so it may differ by so many milliseconds.
const SAME: u64 = 100;

/// How things stand.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// What the host said of the folder.
    pub standing: Standing,
    /// The session, once there is one.
    pub session: Option<SessionId>,
    /// Its last position.
    pub head: Seq,
    /// Its title.
    pub title: String,
    /// The agent that works in it.
    pub agent: String,
    /// Its mode.
    pub mode: Mode,
    /// The model that was asked last, or will be.
    pub model: String,
    /// The turn under way, and since when.
    pub turn: Option<(u32, u64)>,
    /// True while a stop was asked for and has not come.
    pub stopping: bool,
    /// How the last turn ended.
    pub end: Option<TurnEnd>,
    /// What all steps used that were seen.
    pub usage: Usage,
    /// What the session cost.
    pub cost: Cost,
    /// How many tokens the last request took.
    pub context: u64,
    /// What is still to be done.
    pub todos: Vec<Todo>,
    /// Prompts that wait, oldest first.
    pub waiting: Vec<Prompt>,
    /// Agents that were given work: the call, and what they do.
    pub children: BTreeMap<SessionId, Child>,
    /// The commands in the background that were heard of.
    pub jobs: BTreeMap<u64, JobRow>,
    /// What goes on now, in a few words.
    pub doing: String,
    /// The calls of this turn in words, and whether they run.
    pub(crate) calls: Vec<(CallId, Words, Going)>,
    /// What was heard before the past came, while it has not.
    pub(crate) early: Option<Vec<Record>>,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Going {
    /// It was made.
    Comes,
    /// A person is asked about it, or by it.
    Waits,
    /// It runs.
    Runs,
}

/// An agent at work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Child {
    /// The call that gave it its work.
    pub call: Option<CallId>,
    /// Its name.
    pub agent: String,
    /// Its last position that was heard of.
    pub head: Seq,
    /// What it does now.
    pub doing: String,
    /// How many calls it made.
    pub calls: u32,
    /// True when it is done.
    pub done: bool,
}

impl Known {
    /// True while the model, or a call, is at work.
    pub fn busy(&self) -> bool {
        self.turn.is_some()
    }

    /// Begins a session with the agent that was chosen.
    pub fn begin(&self) -> Request {
        Request::Begin { agent: Some(self.agent.clone()).filter(|agent| !agent.is_empty()) }
    }

    /// Takes in an event of the session, or of one that it began.
    pub fn hear(&mut self, event: &Event, now: u64) {
        match event {
            Event::Fact(record) if Some(record.session) == self.session => {
                if let Some(early) = &mut self.early {
                    early.push(record.clone());
                }
                self.hear_record(record, now);
            }
            Event::Live(glimpse) if Some(glimpse.session) == self.session => {
                self.hear_live(&glimpse.live);
            }
            Event::Fact(record) => self.hear_child(record),
            Event::Live(_) => {}
        }
    }

    fn hear_record(&mut self, record: &Record, now: u64) {
        self.head = self.head.max(record.seq);
        self.hear_fact(&record.fact, now);
    }

    /// Takes in what was before a session was opened here: its last page, or all of it.
    pub fn remember(&mut self, answer: &Result<Answered, Fault>, now: u64) {
        match answer {
            Ok(Answered::Reply { reply: Reply::Events { events } }) => self.past(events, now),
            Ok(Answered::Reply { reply: Reply::Transcript { transcript } }) => {
                self.whole(transcript);
            }
            Ok(_) | Err(_) => self.early = None,
        }
    }

    /// The last page, or all there is if it begins with the beginning.
    fn past(&mut self, events: &[Record], now: u64) {
        let early = self.early.take().unwrap_or_default();
        let last = events.last().map_or(0, |record| record.seq);
        *self = Known {
            standing: std::mem::take(&mut self.standing),
            session: self.session,
            head: self.head,
            agent: std::mem::take(&mut self.agent),
            model: std::mem::take(&mut self.model),
            mode: self.mode,
            jobs: std::mem::take(&mut self.jobs),
            ..Known::default()
        };
        let end = events.last().map_or(0, |record| record.at.0);
        for record in events.iter().chain(early.iter().filter(|record| record.seq > last)) {
            // How long ago it was, as far as the log knows.
            let ago = end.saturating_sub(record.at.0);
            self.hear_record(record, now.saturating_sub(ago));
        }
    }

    /// What lies further back than the last page.
    fn whole(&mut self, transcript: &Transcript) {
        self.title.clone_from(&transcript.title);
        self.mode = transcript.mode.unwrap_or(self.mode);
        self.todos = transcript.todos();
        (self.usage, self.cost) = (transcript.usage, transcript.cost);
        if !transcript.agent.is_empty() {
            self.agent.clone_from(&transcript.agent);
        }
        self.waiting.clone_from(&transcript.waiting);
    }

    /// Takes in how it is with all commands in the background, as something may have been missed.
    pub fn hear_jobs(&mut self, answer: &Result<Answered, Fault>) {
        if let Ok(Answered::Reply { reply: Reply::Jobs { jobs } }) = answer {
            jobs.iter().for_each(|job| self.hear_job(job));
        }
    }

    fn hear_job(&mut self, job: &JobRow) {
        // An answer may be older than what was heard since, and nothing that has ended runs again. One
        // of the same number that began later is another one: the session was opened anew.
        let over = self.jobs.get(&job.id).filter(|known| !known.running);
        if over.is_none_or(|known| !job.running || job.since.0 > known.since.0 + SAME) {
            self.jobs.insert(job.id, job.clone());
        }
        let over = self.jobs.values().find(|job| !job.running).map(|job| job.id);
        if let Some(over) = over.filter(|_| self.jobs.len() > MOST_JOBS) {
            self.jobs.remove(&over);
        }
    }

    fn hear_fact(&mut self, fact: &Fact, now: u64) {
        match fact {
            Fact::Opened { agent, .. } => self.agent.clone_from(agent),
            Fact::ModeChanged { mode } => self.mode = *mode,
            Fact::Renamed { title, cost, .. } => {
                self.title.clone_from(title);
                self.cost += cost.unwrap_or_default();
            }
            Fact::Prompted { prompt, text, attachments, when } => {
                let (id, text, attachments) = (*prompt, text.clone(), attachments.clone());
                self.waiting.push(Prompt { id, text, attachments, when: *when });
            }
            Fact::TurnStarted { turn, prompt } => {
                self.turn = Some((*turn, now));
                self.end = None;
                self.calls.clear();
                self.waiting.retain(|waiting| Some(waiting.id) != *prompt);
                self.doing = "starting".into();
            }
            Fact::Steered { prompt, .. } | Fact::Withdrawn { prompt } => {
                self.waiting.retain(|waiting| waiting.id != *prompt);
            }
            Fact::StepStarted { turn, model, purpose, .. } => {
                // The page that tells of its beginning may not be there.
                self.turn.get_or_insert((*turn, now));
                self.ask(model, *purpose);
            }
            Fact::StepEnded { usage, cost, .. } => {
                self.usage += *usage;
                self.cost += cost.unwrap_or_default();
                if usage.input > 0 {
                    self.context = usage.input + usage.output;
                }
            }
            Fact::Called { call, tool, arguments, .. } => {
                let words = words(tool, arguments, &self.standing.root);
                self.calls.push((*call, words, Going::Comes));
            }
            Fact::Asked { call, .. } | Fact::Inquired { call, .. } => {
                self.goes(*call, Some(Going::Waits));
            }
            Fact::Answered { call, .. } => self.goes(*call, Some(Going::Comes)),
            Fact::Started { call, .. } | Fact::Replied { call, .. } => {
                self.goes(*call, Some(Going::Runs));
            }
            Fact::Spawned { call, session, agent } => {
                let child = Child { call: Some(*call), agent: agent.clone(), ..Child::default() };
                self.children.insert(*session, child);
            }
            Fact::Settled { call, outcome, .. } => {
                self.goes(*call, None);
                if let Some(todos) = todo::told(outcome) {
                    self.todos = todos;
                }
                let done = |child: &&mut Child| child.call == Some(*call);
                self.children.values_mut().filter(done).for_each(|child| child.done = true);
            }
            Fact::Interrupted { .. } => self.stopping = true,
            Fact::TurnEnded { end, .. } => {
                (self.turn, self.stopping) = (None, false);
                self.end = Some(end.clone());
                self.doing.clear();
                self.calls.clear();
            }
            Fact::Retrying { wait_ms, .. } => {
                self.doing = format!("trying again in {}", duration(*wait_ms));
            }
            Fact::Reverted { .. } => {
                self.waiting.clear();
                self.calls.clear();
            }
            Fact::Briefed { .. }
            | Fact::Forked { .. }
            | Fact::Compacted { .. }
            | Fact::Pruned { .. }
            | Fact::Said { .. }
            | Fact::Reasoned { .. }
            | Fact::Changing { .. }
            | Fact::Unchanged { .. }
            | Fact::Hooked { .. }
            | Fact::ContextChanged { .. } => {}
        }
    }

    fn ask(&mut self, model: &String, purpose: Purpose) {
        self.model.clone_from(model);
        let name = model.rsplit('/').next().unwrap_or(model);
        self.doing = match purpose {
            Purpose::Answer => format!("waiting for {name}"),
            Purpose::Summary => "summing up".into(),
        };
    }

    /// A call goes on, or is over. What is waited for counts for more than what runs.
    fn goes(&mut self, call: CallId, going: Option<Going>) {
        match going {
            None => self.calls.retain(|(made, ..)| *made != call),
            Some(going) => {
                let meant = self.calls.iter_mut().filter(|(made, ..)| *made == call);
                meant.for_each(|(.., now)| *now = going);
            }
        }
        let first = |wanted: Going| self.calls.iter().find(|(.., going)| *going == wanted);
        self.doing = match (first(Going::Waits), first(Going::Runs)) {
            (Some(_), _) => "waiting for your answer".into(),
            (None, Some((_, words, _))) => words.doing(),
            (None, None) => "working".into(),
        };
    }

    fn hear_live(&mut self, live: &Live) {
        match live {
            Live::Delta { stream, .. } => {
                self.doing = match stream {
                    Stream::Text => "writing".into(),
                    Stream::Reasoning => "thinking".into(),
                };
            }
            Live::Job { job } => self.hear_job(job),
            Live::Progress { .. }
            | Live::Output { .. }
            | Live::Reached { .. }
            | Live::Hooked { .. }
            | Live::Noticed { .. } => {}
        }
    }

    fn hear_child(&mut self, record: &Record) {
        let Some(child) = self.children.get_mut(&record.session) else { return };
        let fact = &record.fact;
        child.head = record.seq;
        if let Fact::Called { tool, arguments, .. } = fact {
            child.calls += 1;
            child.doing = words(tool, arguments, &self.standing.root).doing();
        }
        if let Fact::Said { .. } = fact {
            child.doing = "writing".into();
        }
        if let Fact::TurnStarted { .. } = fact {
            child.done = false;
        }
        if let Fact::TurnEnded { .. } = fact {
            child.done = true;
        }
    }
}

#[cfg(test)]
mod tests;
