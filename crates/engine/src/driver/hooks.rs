//! Hooks around a session, where no call is: at its start and end, at a prompt, at the end of a turn.
//!
//! A prompt waits until the hooks have let it pass, and the first one until those of the start have
//! said what the model is to know; if one of them would not have the model briefed, it is not asked. Those that only watch are asked one after the other, beside the
//! session, which never waits for them before it ends.

use super::{Driver, stamp};
use crate::session::Input;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc};
use tokio::task::{JoinError, JoinSet};
use windlass_protocol::{
    Attachment, Delivery, Event, Fact, Fault, Glimpse, Live, Mode, Op, Point, Purpose, Record,
    SessionId, TurnEnd, Verdict,
};
use windlass_toolkit::hook::fire;
use windlass_toolkit::{Firing, Heard, Hook, Matter, Moment, Stopped};

/// How much may wait for the hooks that watch. What comes on top they do not see.
const QUEUE: usize = 256;

/// How long a session that ends waits for the hooks that watch it.
const PARTING: Duration = Duration::from_secs(60);

/// Where hooks of a session stand.
#[derive(Default)]
pub(super) struct Hooking {
    /// The prompts that wait for hooks; the first is before them, unless the start is.
    held: VecDeque<Held>,
    asking: JoinSet<Answered>,
    /// Those of the start have answered.
    begun: bool,
    /// Who would not have the model briefed.
    stopped: Option<Stopped>,
    /// What came of it and is next.
    due: VecDeque<Input>,
    queue: Option<mpsc::Sender<(Mode, Matter)>>,
    watching: JoinSet<()>,
    /// How much the hooks that watch have not seen.
    missed: u64,
    /// The last turn in which they were told that something is summed up.
    summed: Option<u32>,
}

/// What came of asking hooks.
#[derive(Default)]
pub(super) struct Answered {
    inputs: Vec<Input>,
    /// It was about the start.
    begins: bool,
    stopped: Option<Stopped>,
}

/// A prompt that waits for hooks.
#[derive(Clone)]
struct Held {
    text: String,
    attachments: Vec<Attachment>,
    when: Delivery,
}

/// Whom hooks are asked for, kept for as long as that takes.
#[derive(Clone)]
pub(super) struct Place {
    hooks: Arc<[Arc<dyn Hook>]>,
    session: SessionId,
    folder: String,
}

impl Place {
    pub(super) async fn fire(
        &self,
        mode: Mode,
        matter: Matter,
    ) -> (Vec<Firing>, Result<Heard, Stopped>) {
        let (session, folder) = (self.session, self.folder.as_str());
        fire(&self.hooks, &Moment { session, call: None, folder, mode }, matter).await
    }
}

impl Hooking {
    /// What came of asking hooks, if it was not taken in yet.
    pub(super) fn due(&mut self) -> Option<Input> {
        self.due.pop_front()
    }

    /// Waits for the hooks that are being asked.
    pub(super) async fn asked(&mut self) -> Option<Result<Answered, JoinError>> {
        self.asking.join_next().await
    }
}

impl Driver {
    pub(super) fn is_heard(&self, point: Point) -> bool {
        self.runtime.hooks.iter().any(|hook| hook.at(point, None))
    }

    pub(super) fn place(&self) -> Place {
        let folder = self.runtime.workspace.root().to_string_lossy().into_owned();
        Place { hooks: self.runtime.hooks.clone().into(), session: self.claim.session, folder }
    }

    /// Asks the hooks of the start. What they say comes before the first prompt.
    pub(super) fn begin_hooks(&mut self) {
        let brief = Arc::clone(self.session.to_brief());
        let briefs = !brief.is_empty() && self.is_heard(Point::System);
        let starts = self.is_heard(Point::SessionStart);
        if !briefs && !starts {
            self.hooking.begun = true;
            return;
        }
        let source = if self.session.head() == 0 { "startup" } else { "resume" };
        let what = json!({ "source": source });
        let (place, mode) = (self.place(), self.runtime.policy.mode());
        self.hooking.asking.spawn(async move {
            let mut answered = Answered { begins: true, ..Answered::default() };
            if briefs {
                let matter = Matter::System { text: brief.to_string() };
                let (firings, heard) = place.fire(mode, matter).await;
                let (text, stopped) = match heard {
                    Ok(Heard { matter: Matter::System { text }, .. }) => (text.into(), None),
                    Ok(_) => (brief, None),
                    Err(stopped) => (brief, Some(stopped)),
                };
                answered.inputs.push(Input::Briefing { text, firings });
                answered.stopped = stopped;
            }
            if starts {
                let matter = Matter::Told { point: Point::SessionStart, what };
                let (firings, heard) = place.fire(mode, matter).await;
                answered.inputs.push(Input::Hooked { call: None, firings });
                let told = context(heard).into_iter().map(|text| Input::Told { text });
                answered.inputs.extend(told);
            }
            answered
        });
    }

    /// What becomes of what a person says: a prompt may have to wait.
    pub(super) fn hear(&mut self, op: Op) -> Option<Input> {
        match op {
            Op::Prompt { text, attachments, when }
                if !self.hooking.begun
                    || self.hooking.stopped.is_some()
                    || !self.hooking.asking.is_empty()
                    || self.prompts_are_heard() =>
            {
                self.hooking.held.push_back(Held { text, attachments, when });
                // Those of the start may have been interrupted.
                if !self.hooking.begun && self.hooking.asking.is_empty() {
                    self.begin_hooks();
                }
                self.ask_hooks();
                None
            }
            // What is not with the model yet never gets there.
            Op::Interrupt if !self.session.busy() && !self.hooking.held.is_empty() => {
                self.hooking.asking = JoinSet::new();
                for _ in std::mem::take(&mut self.hooking.held) {
                    let text = "[interrupted while hooks were asked]".to_owned();
                    let (end, firings) = (TurnEnd::Interrupted, Vec::new());
                    self.hooking.due.push_back(Input::Withheld { text, end, firings });
                }
                None
            }
            op => Some(Input::Op(op)),
        }
    }

    /// What a call asks a session it began is no person's prompt.
    fn prompts_are_heard(&self) -> bool {
        self.family.ancestors.is_empty() && self.is_heard(Point::Prompt)
    }

    /// Shows the next prompt to the hooks, if none is before them.
    fn ask_hooks(&mut self) {
        if !self.hooking.asking.is_empty() {
            return;
        }
        if let Some(Stopped { hook, reason }) = &self.hooking.stopped {
            let text = format!("[withheld by the hook {hook}: {reason}]");
            for _ in std::mem::take(&mut self.hooking.held) {
                let (text, end, firings) = (text.clone(), TurnEnd::Denied, Vec::new());
                self.hooking.due.push_back(Input::Withheld { text, end, firings });
            }
        }
        let Some(held) = self.hooking.held.front().cloned() else { return };
        if !self.prompts_are_heard() {
            self.hooking.held.pop_front();
            let Held { text, attachments, when } = held;
            self.hooking.due.push_back(Input::Op(Op::Prompt { text, attachments, when }));
            return self.ask_hooks();
        }
        let (place, mode) = (self.place(), self.runtime.policy.mode());
        self.hooking.asking.spawn(async move {
            let Held { text, attachments, when } = held;
            let (firings, heard) = place.fire(mode, Matter::Prompt { text: text.clone() }).await;
            let input = match heard {
                Ok(Heard { matter, context, .. }) => {
                    let text = match matter {
                        Matter::Prompt { text } => text,
                        _ => text,
                    };
                    Input::Prompted { text, attachments, when, firings, context }
                }
                Err(Stopped { hook, reason }) => {
                    let text = format!("[withheld by the hook {hook}: {reason}]");
                    Input::Withheld { text, end: TurnEnd::Denied, firings }
                }
            };
            Answered { inputs: vec![input], ..Answered::default() }
        });
    }

    /// Takes in what came of asking hooks, and goes on with the next prompt.
    pub(super) fn heard(&mut self, asked: Result<Answered, JoinError>) {
        let prompt =
            |input: &Input| matches!(input, Input::Prompted { .. } | Input::Withheld { .. });
        match asked {
            Ok(Answered { inputs, begins, stopped }) => {
                self.hooking.begun |= begins;
                self.hooking.stopped = stopped.or_else(|| self.hooking.stopped.take());
                if inputs.iter().any(prompt) {
                    self.hooking.held.pop_front();
                }
                self.hooking.due.extend(inputs);
            }
            Err(error) => {
                tracing::debug!(%error, "asking hooks broke off");
                if self.hooking.held.pop_front().is_some() {
                    let text = "[withheld: asking hooks broke off]".to_owned();
                    let (end, firings) = (TurnEnd::Denied, Vec::new());
                    self.hooking.due.push_back(Input::Withheld { text, end, firings });
                }
            }
        }
        self.ask_hooks();
    }

    /// Tells the hooks that watch of a fact that is on record.
    pub(super) fn tell_hooks(&mut self, record: &Record) {
        match &record.fact {
            Fact::TurnEnded { turn, end } => {
                self.show_hooks(Point::TurnEnd, || json!({"turn": turn, "end": end}));
            }
            Fact::StepStarted { turn, purpose: Purpose::Summary, .. }
                if self.hooking.summed != Some(*turn) =>
            {
                self.hooking.summed = Some(*turn);
                let trigger = if self.session.is_prompted() { "auto" } else { "manual" };
                self.show_hooks(Point::Compaction, || json!({ "trigger": trigger }));
            }
            _ => {}
        }
        // What hooks say is not shown to them: that would have no end.
        if !matches!(record.fact, Fact::Hooked { .. }) {
            self.show_hooks(Point::Event, || json!(record));
        }
    }

    /// Shows something to the hooks that watch, as soon as they have seen what came before it.
    fn show_hooks(&mut self, point: Point, what: impl FnOnce() -> Value) {
        if !self.is_heard(point) {
            return;
        }
        let matter = (self.runtime.policy.mode(), Matter::Told { point, what: what() });
        let queue = match &self.hooking.queue {
            Some(queue) => queue.clone(),
            None => {
                let (queue, matters) = mpsc::channel(QUEUE);
                let (inputs, events) = (self.inputs.clone(), self.events.clone());
                self.hooking.watching.spawn(watch(matters, self.place(), inputs, events));
                self.hooking.queue = Some(queue.clone());
                queue
            }
        };
        if queue.try_send(matter).is_err() {
            self.hooking.missed += 1;
        }
    }

    /// Tells the hooks that the session ends, and waits until they have seen everything.
    pub(super) async fn part_with_hooks(
        &mut self,
        inputs: &mut mpsc::Receiver<Input>,
    ) -> Result<(), Fault> {
        self.hooking.asking.shutdown().await;
        if self.session.head() > 0 {
            self.show_hooks(Point::SessionEnd, || json!({}));
        }
        if self.hooking.queue.take().is_none() {
            return Ok(());
        }
        if self.hooking.missed > 0 {
            tracing::warn!(missed = self.hooking.missed, "hooks were too slow to see everything");
        }
        let mut watching = std::mem::take(&mut self.hooking.watching);
        let deadline = tokio::time::sleep(PARTING);
        tokio::pin!(deadline);
        loop {
            let input = tokio::select! {
                biased;
                Some(input) = inputs.recv() => input,
                _ = watching.join_next() => break,
                () = &mut deadline => break,
            };
            self.take_in(input).await?;
        }
        while let Ok(input) = inputs.try_recv() {
            self.take_in(input).await?;
        }
        Ok(())
    }

    /// Of what comes after the end, only what hooks said counts.
    async fn take_in(&mut self, input: Input) -> Result<(), Fault> {
        if !matches!(input, Input::Hooked { .. }) {
            return Ok(());
        }
        let stamp = stamp();
        for effect in self.session.apply(stamp, input) {
            self.perform(stamp, effect).await?;
        }
        Ok(())
    }
}

/// What the model is to be told of.
fn context(heard: Result<Heard, Stopped>) -> Vec<String> {
    heard.map(|heard| heard.context).unwrap_or_default()
}

/// Asks the hooks that watch, one matter after the other. What they say of every fact is shown and not
/// kept, unless they failed.
async fn watch(
    mut matters: mpsc::Receiver<(Mode, Matter)>,
    place: Place,
    inputs: mpsc::Sender<Input>,
    events: broadcast::Sender<Arc<Event>>,
) {
    while let Some((mode, matter)) = matters.recv().await {
        let every = matter.point() == Point::Event;
        let (firings, heard) = place.fire(mode, matter).await;
        let (kept, shown): (Vec<_>, Vec<_>) = firings
            .into_iter()
            .partition(|firing| !every || matches!(firing.verdict, Verdict::Failed { .. }));
        for Firing { hook, point, took, verdict } in shown {
            let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            let live = Live::Hooked { call: None, hook, point, took_ms, verdict };
            let glimpse = Glimpse { session: place.session, at: stamp().at, live };
            let _ = events.send(Arc::new(Event::Live(glimpse)));
        }
        if !kept.is_empty() {
            let _ = inputs.send(Input::Hooked { call: None, firings: kept }).await;
        }
        for text in context(heard) {
            let _ = inputs.send(Input::Told { text }).await;
        }
    }
}
