//! A command that was started: what it says, how it ended, and what can be told about it.

use crate::Error;
use crate::cage::{self, Cage, Snapshot};
use crate::command::{Ending, Exit, Glimpse, Heard, Piece, Reached};
use crate::jobs::{Job, hold};
use crate::trail::Trail;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use windlass_protocol::{JobRow, Millis};

/// How many pieces can follow each other: the rest of the beginning, and the end.
const PIECES: usize = 2;

/// So much of what it said a person is shown.
const SHOWN: usize = 32 << 10;

/// How many hosts that were refused are named.
const NAMED: usize = 5;

/// A command of a session.
pub struct Task {
    job: Job,
    cage: Cage,
    /// How protected paths stood before it began.
    before: Option<Snapshot>,
    trail: Arc<Mutex<Trail>>,
    /// What was different from what was asked for, when it was started.
    notes: Vec<String>,
    /// What leads it to the network, and is not repeated.
    secrets: Vec<String>,
    /// How far it has been read.
    place: Mutex<u64>,
    /// Its last remarks were made.
    remarked: AtomicBool,
    /// It is left in the background.
    announced: AtomicBool,
}

impl Task {
    pub(crate) fn new(
        job: Job,
        cage: Cage,
        before: Option<Snapshot>,
        trail: Arc<Mutex<Trail>>,
        notes: Vec<String>,
        secrets: Vec<String>,
    ) -> Task {
        let (place, remarked, announced) = Default::default();
        Task { job, cage, before, trail, notes, secrets, place, remarked, announced }
    }

    /// Its number in the session.
    pub fn id(&self) -> u64 {
        self.job.id()
    }

    /// What was run.
    pub fn command(&self) -> &str {
        self.job.command()
    }

    /// Waits until its command ends, also if something it started goes on.
    pub async fn ended(&self) -> Ending {
        self.job.ended().await
    }

    /// How its command ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        self.job.ending()
    }

    /// Waits until nothing of it runs.
    pub(crate) async fn left(&self) {
        self.job.left().await;
    }

    /// What a person is told of it, at this time, with its last few lines.
    pub fn row(&self, now: Millis) -> JobRow {
        let exit = self.ending().and_then(|ending| match ending.exit {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) | Exit::Crowded(_) | Exit::Lost => None,
        });
        let age = u64::try_from(self.job.age().as_millis()).unwrap_or(u64::MAX);
        JobRow {
            id: self.id(),
            command: self.command().to_owned(),
            running: !self.gone(),
            exit,
            since: Millis(now.0.saturating_sub(age)),
            tail: self.mask(&self.watch().borrow().last),
        }
    }

    /// True if it was left in the background.
    pub fn announced(&self) -> bool {
        self.announced.load(Ordering::Acquire)
    }

    pub(crate) fn set_announced(&self) {
        self.announced.store(true, Ordering::Release);
    }

    /// True if nothing of it runs.
    pub fn gone(&self) -> bool {
        self.job.gone()
    }

    /// What it has said so far, as it said it. Show it to nobody without [`Task::mask`].
    pub fn heard(&self) -> Heard {
        self.job.read()
    }

    /// The end of what it has said, as much as a person reads.
    pub fn said(&self) -> String {
        let heard = self.heard();
        let all = if heard.missing() > 0 { heard.tail } else { [heard.head, heard.tail].concat() };
        let (over, shown) = all.split_at(all.len().saturating_sub(SHOWN));
        // A line that was cut is left out.
        let cut = shown.iter().position(|byte| *byte == b'\n').filter(|_| !over.is_empty());
        let shown = shown.get(cut.map_or(0, |end| end + 1)..).unwrap_or_default();
        self.mask(&String::from_utf8_lossy(shown))
    }

    /// What it has said since a place, which is 0 at first and is moved on: one piece, or two with
    /// a gap between them. However fast it speaks, that is all that was kept, and not what it says
    /// meanwhile.
    pub fn heard_on(&self, place: &mut u64) -> Vec<Piece> {
        let mut pieces = Vec::new();
        while pieces.len() < PIECES {
            let mut piece = self.job.read_on(*place);
            if piece.next == *place {
                break;
            }
            *place = piece.next;
            piece.text = self.mask(&piece.text);
            pieces.push(piece);
        }
        pieces
    }

    /// What it has said since this was last asked.
    pub fn unread(&self) -> Vec<Piece> {
        self.heard_on(&mut hold(&self.place))
    }

    /// A text of it without what leads to the network.
    pub fn mask(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for secret in &self.secrets {
            masked = masked.replace(secret.as_str(), "…");
        }
        masked
    }

    /// What it says while it does.
    pub fn watch(&self) -> watch::Receiver<Glimpse> {
        self.job.watch()
    }

    /// Writes to its input.
    pub async fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        self.job.write(bytes).await
    }

    /// Ends it and everything it started.
    pub async fn kill(&self) {
        self.job.kill().await;
    }

    /// Has it ended, without waiting until it is.
    pub async fn dismiss(&self) {
        self.job.dismiss().await;
    }

    /// The hosts it wanted to reach from this place on: each once for each answer, in the order in
    /// which they came first.
    pub fn reached(&self, place: usize) -> Vec<Reached> {
        hold(&self.trail).since(place)
    }

    /// How many more decisions about hosts there were than are kept.
    pub fn unkept(&self) -> u64 {
        hold(&self.trail).dropped()
    }

    /// True if no files are looked at for [`Task::remarks`], so that it takes no time.
    pub fn is_plain(&self) -> bool {
        self.before.is_none()
    }

    /// What whoever reads its output should know besides: what the cage stood in the way of,
    /// which hosts were refused, and which protected paths are not as they were.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = self.notes.clone();
        if let Some(ending) = self.ending() {
            let heard = self.heard();
            let said = [heard.head, heard.tail].concat();
            let said = String::from_utf8_lossy(&said);
            let code = match ending.exit {
                Exit::Code(code) => Some(code),
                Exit::Signal(_) | Exit::Crowded(_) | Exit::Lost => None,
            };
            remarks.extend(cage::explain(&said, code, &self.cage));
        }
        remarks.extend(refusals(&self.reached(0), self.unkept()));
        let changed = self.before.as_ref().map(cage::changed).unwrap_or_default();
        if !changed.is_empty() {
            let names: Vec<String> =
                changed.iter().map(|path| path.display().to_string()).collect();
            remarks.push(format!(
                "protected paths changed while it ran: {}. If nobody else did that, tell the \
                 person before anything else",
                names.join(", ")
            ));
        }
        remarks
    }

    /// The same once its command has ended, for the first who asks.
    pub fn last_remarks(&self) -> Vec<String> {
        let first = self.ending().is_some() && !self.remarked.swap(true, Ordering::AcqRel);
        if first { self.remarks() } else { Vec::new() }
    }
}

/// A sentence about the hosts that were refused, if there are any.
pub(crate) fn refusals(reached: &[Reached], unkept: u64) -> Option<String> {
    let refused: Vec<&Reached> = reached.iter().filter(|one| one.refused.is_some()).collect();
    let first = refused.first()?;
    let names: Vec<&str> = refused.iter().take(NAMED).map(|one| one.host.as_str()).collect();
    let more = refused.len().saturating_sub(NAMED) as u64 + unkept;
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let why = first.refused.as_deref().unwrap_or_default();
    Some(format!("the network was refused: {}{more} ({why})", names.join(", ")))
}
