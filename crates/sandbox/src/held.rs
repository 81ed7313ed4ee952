//! What keeps a servant running, and what is known of it.

use crate::cage::{self, Cage};
use crate::command::{Ending, Exit, Heard, Piece, Reached};
use crate::jobs::{Job, hold};
use crate::keeper::family;
use crate::task::refusals;
use crate::trail::Trail;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How much of the end of its complaints is told.
const COMPLAINT: usize = 2 << 10;

/// How long one that nobody wants any more may take to end.
const PARTING: Duration = Duration::from_secs(1);

const WIDER: &str = "What it may touch stands with it in the config: \"write\" and \"network\", and \
                     in your own config \"sandbox\": false, which also leads to services of this \
                     machine";

/// What keeps a servant running. When the last one is dropped, it and everything it started is
/// ended.
pub struct Held {
    name: String,
    job: Job,
    cage: Cage,
    trail: Arc<Mutex<Trail>>,
    /// What was different from what was asked for, when it was started.
    notes: Vec<String>,
    /// What leads it to the network, and is not repeated.
    secrets: Vec<String>,
}

impl Held {
    pub(crate) fn new(
        name: String,
        job: Job,
        cage: Cage,
        trail: Arc<Mutex<Trail>>,
        notes: Vec<String>,
        secrets: Vec<String>,
    ) -> Held {
        Held { name, job, cage, trail, notes, secrets }
    }

    /// What it is known by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of its process.
    pub fn pid(&self) -> Option<i32> {
        self.job.pid()
    }

    /// Waits until it ends and what it complained of until then was heard.
    pub async fn ended(&self) -> Ending {
        self.job.ended().await
    }

    /// How it ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        self.job.ending()
    }

    /// True if nothing of it runs, nor of what it started.
    pub fn gone(&self) -> bool {
        self.job.gone()
    }

    /// How much memory it and everything it started use, in bytes; what they share counts for each.
    /// It looks at every process of the machine.
    pub fn memory(&self) -> u64 {
        let Some(pid) = self.pid().filter(|_| !self.gone()) else { return 0 };
        let members = family::beneath(pid).into_iter().map(|(member, _)| member.pid);
        members.chain([pid]).map(family::memory).sum()
    }

    /// Everything that is kept of its complaints, as it wrote them. Show it to nobody.
    pub fn heard(&self) -> Heard {
        self.job.read()
    }

    /// What it complained of since a place, which is 0 at first and then [`Piece::next`].
    pub fn heard_on(&self, place: u64) -> Piece {
        let mut piece = self.job.read_on(place);
        piece.text = self.mask(&piece.text);
        piece
    }

    /// The end of its complaints, to be shown.
    pub fn complaint(&self) -> String {
        let heard = self.job.read();
        // What is missing between them is no end of a line of the head.
        let said = if heard.missing() > 0 { heard.tail } else { [heard.head, heard.tail].concat() };
        let text = self.mask(&String::from_utf8_lossy(&said));
        let plain: String =
            text.chars().filter(|each| !each.is_control() || matches!(each, '\n' | '\t')).collect();
        let plain = plain.trim();
        let start = plain.ceil_char_boundary(plain.len().saturating_sub(COMPLAINT));
        plain.get(start..).unwrap_or_default().trim_start().to_owned()
    }

    /// How it ended and why, as far as that is known, in sentences; `None` while it runs.
    pub fn last_words(&self) -> Option<String> {
        let ending = self.ending()?;
        let how = match ending.exit {
            Exit::Code(code) => format!("exited with code {code}"),
            Exit::Signal(signal) => format!("was ended by signal {signal}"),
            Exit::Crowded(most) => format!("was ended, because it had more than {most} processes"),
            Exit::Lost => "was ended from outside".to_owned(),
        };
        let said = self.complaint();
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        let remarks: String = self.remarks().iter().map(|remark| format!("\n({remark})")).collect();
        Some(format!("{} {how}{said}{remarks}", self.name))
    }

    /// What its cage was or stood in the way of, as far as it can be known.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = self.notes.clone();
        let code = self.ending().and_then(|ending| match ending.exit {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) | Exit::Crowded(_) | Exit::Lost => None,
        });
        let refused = {
            let trail = hold(&self.trail);
            refusals(&trail.since(0), trail.dropped())
        };
        let caged = cage::explain(&self.complaint(), code, &self.cage);
        let stood = caged.is_some() || refused.is_some();
        remarks.extend(caged);
        remarks.extend(refused);
        remarks.extend(stood.then(|| WIDER.to_owned()));
        remarks
    }

    /// The hosts it wanted to reach from this place on: each once for each answer, in the order in
    /// which they came first.
    pub fn reached(&self, place: usize) -> Vec<Reached> {
        hold(&self.trail).since(place)
    }

    /// Asks it and everything it started to end, and kills what has not after the grace. Nothing of
    /// it runs when it returns, unless the system itself holds a process.
    pub async fn end(&self, grace: Duration) {
        self.job.kill_after(grace).await;
    }

    fn mask(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for secret in &self.secrets {
            masked = masked.replace(secret.as_str(), "…");
        }
        masked
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.job.abandon(PARTING);
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("name", &self.name).finish_non_exhaustive()
    }
}
