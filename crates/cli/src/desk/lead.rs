//! What a command of the person's own has run before the model is asked, as `windlass run --command`
//! does it.
//!
//! Each is a call of the person's own in the session that is open: the same rules, the same sandbox,
//! the same record. If one does not run, the model hears nothing.

use super::Desk;
use crate::command::{given, title};
use windlass_project::Run;
use windlass_protocol::wire::{Answered, Down};
use windlass_protocol::{Event, Fact, Fault, Live, Op, Outcome, SessionId, TurnEnd};

/// Runs that are under way.
pub(super) struct Lead {
    /// The request that is answered when all have run.
    id: u64,
    session: SessionId,
    /// What is asked then, with places for what they give.
    text: String,
    runs: Vec<Run>,
    gave: Vec<String>,
    /// The turn in which the next one runs, once it does.
    turn: Option<u32>,
    outcome: Option<Outcome>,
}

impl Lead {
    /// The one that is next.
    fn next(&self) -> Option<&Run> {
        self.runs.get(self.gave.len())
    }

    /// Takes in what happens in the session: what the call gave when it is over, or that it gave
    /// nothing.
    fn hear(&mut self, event: &Event) -> Option<Result<String, ()>> {
        match event {
            // A call that was turned down never begins.
            Event::Live(glimpse) if glimpse.session == self.session => {
                let noticed = matches!(glimpse.live, Live::Noticed { .. });
                (noticed && self.turn.is_none()).then_some(Err(()))
            }
            Event::Fact(record) if record.session == self.session => match &record.fact {
                Fact::TurnStarted { turn, prompt: None } => {
                    (self.turn, self.outcome) = (Some(*turn), None);
                    None
                }
                Fact::Settled { outcome, .. } => {
                    self.outcome = Some(outcome.clone());
                    None
                }
                Fact::TurnEnded { turn, end } if self.turn == Some(*turn) => {
                    self.turn = None;
                    Some(match (self.outcome.take(), end) {
                        (Some(Outcome::Completed { output }), TurnEnd::Done) => Ok(given(&output)),
                        _ => Err(()),
                    })
                }
                _ => None,
            },
            Event::Fact(_) | Event::Live(_) => None,
        }
    }
}

impl Desk {
    /// Answers what a command asks, once all has run that it wants run first.
    pub(super) async fn lead(&mut self, id: u64, (text, runs): (String, Vec<Run>)) {
        let Some(first) = runs.first() else {
            return self.answer(id, Ok(Answered::Prompt { text }));
        };
        let Some(open) = &self.open else {
            let message = format!("`{}` runs in a session, and none is open", first.command);
            return self.answer(id, Err(Fault::Config { message }));
        };
        let session = open.handle.session;
        let (gave, turn, outcome) = (Vec::new(), None, None);
        let lead = Lead { id, session, text, runs, gave, turn, outcome };
        if self.lead.is_some() {
            return self.give_up(&lead);
        }
        if open.handle.head() == 0
            && self.spoken != Some(session)
            && let Some(title) = title(&lead.text)
        {
            // Else it would be called after the first command that runs.
            open.handle.send(Op::Rename { title }).await;
        }
        self.lead = Some(lead);
        self.run_next().await;
    }

    /// Runs the next one, or answers if there is none.
    async fn run_next(&mut self) {
        let (Some(lead), Some(open)) = (&self.lead, &self.open) else { return };
        match lead.next() {
            Some(run) => {
                open.handle.send(Op::shell(&run.command)).await;
            }
            None => {
                let gave = lead.runs.iter().zip(lead.gave.iter().map(String::as_str));
                let (id, text) = (lead.id, Run::fill(&lead.text, gave));
                self.lead = None;
                self.answer(id, Ok(Answered::Prompt { text }));
            }
        }
    }

    /// Goes on with them when something happened.
    pub(super) async fn follow(&mut self, event: &Event) {
        match self.lead.as_mut().and_then(|lead| lead.hear(event)) {
            None => {}
            Some(Ok(gave)) => {
                self.lead.iter_mut().for_each(|lead| lead.gave.push(gave.clone()));
                self.run_next().await;
            }
            Some(Err(())) => {
                if let Some(lead) = self.lead.take() {
                    self.give_up(&lead);
                }
            }
        }
    }

    /// What was to run in a session that is open no more does not run.
    pub(super) fn part_with_lead(&mut self) {
        let open = self.open.as_ref().map(|open| open.handle.session);
        if let Some(lead) = self.lead.take_if(|lead| Some(lead.session) != open) {
            self.give_up(&lead);
        }
    }

    fn give_up(&mut self, lead: &Lead) {
        let command = lead.next().map(|run| run.command.as_str()).unwrap_or_default();
        let text = format!("the model was not asked, because this did not run: {command}");
        self.outbox.push_back(Down::Note { text });
        self.answer(lead.id, Ok(Answered::Done));
    }
}
