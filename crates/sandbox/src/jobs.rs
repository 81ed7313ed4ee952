//! The commands of a session: started through the keeper, heard, written to, waited for and ended.
//!
//! A job is a command and everything it starts. It is over for whoever waits when the command
//! itself ends; what goes on in the background stays known until it is gone, and none of it
//! outlives the session: see [`crate::keeper()`]. Start reading at [`Jobs::start`].
#![allow(
    clippy::disallowed_methods,
    reason = "commands are started here only; one thread a command hears it, so that no volume of output holds up a session"
)]

mod input;
mod line;
mod listen;
mod tape;

use crate::command::{Ending, Exit, Glimpse, Heard, Piece, Running, Stdin};
use crate::keeper::wire::{Ask, Input, Limits, Raw, Start};
use crate::{Cage, Error};
use input::{Source, Three};
use line::Line;
use listen::Record;
use rustix::fd::{AsFd, OwnedFd};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a command that was asked to end may take.
const GRACE: Duration = Duration::from_secs(3);
/// The same when the session ends.
const PARTING: Duration = Duration::from_secs(1);
/// How long the keeper may take for something that is its own to do.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest file a command may write.
const LARGEST: u64 = 4 << 30;
/// How many processes a command may have at once.
const MOST: usize = 2000;
/// How many jobs of which nothing is left can still be read.
const REMEMBERED: usize = 32;

/// A command to run.
#[derive(Clone, Debug)]
pub struct Order {
    /// What the shell is told.
    pub command: String,
    /// The shell: bash.
    pub shell: PathBuf,
    /// Where.
    pub folder: PathBuf,
    /// The whole environment; nothing is inherited. See [`crate::environment()`].
    pub env: Vec<(OsString, OsString)>,
    /// What contains it.
    pub cage: Cage,
    /// What it reads.
    pub stdin: Stdin,
}

/// A program to keep running.
pub(crate) struct Engagement {
    /// What it is known by.
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) folder: PathBuf,
    /// The whole of it.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cage: Cage,
}

/// A program that is kept, and our ends of what it reads and says.
pub(crate) struct Kept {
    pub(crate) job: Job,
    pub(crate) input: OwnedFd,
    pub(crate) output: OwnedFd,
}

/// The commands of a session. When its last clone is gone, whatever still runs is ended.
#[derive(Clone, Default)]
pub struct Jobs(Arc<Session>);

#[derive(Default)]
struct Session {
    line: Mutex<Option<Arc<Line>>>,
    jobs: Mutex<BTreeMap<u64, Job>>,
    count: Mutex<u64>,
    /// A folder that goes with the session, however that ends.
    temp: Option<PathBuf>,
}

impl Drop for Session {
    fn drop(&mut self) {
        // Whoever still holds a job must not keep it running.
        if let Some(line) = hold(&self.line).take() {
            line.close();
        }
    }
}

/// A command that was started.
#[derive(Clone)]
pub struct Job {
    record: Arc<Record>,
    line: Arc<Line>,
}

impl Jobs {
    /// None yet. What starts them is started with the first.
    pub fn new() -> Jobs {
        Jobs::default()
    }

    /// The same for a session with a folder of temporary files. It is removed when the session has
    /// ended and nothing of it runs, also if it was killed.
    pub fn with_temp(temp: &Path) -> Jobs {
        let mut session = Session::default();
        session.temp = Some(temp.to_owned());
        Jobs(Arc::new(session))
    }

    /// Starts a command. If nobody waits for it to be started any more, it is ended.
    pub async fn start(&self, order: Order) -> Result<Job, Error> {
        let (source, theirs, input) = Source::open(order.stdin).map_err(not_started)?;
        let id = self.next();
        let record = Record::new(id, order.command.clone(), source.writing).map_err(not_started)?;
        self.begin(record, start(id, order, input), theirs, source.reading).await
    }

    /// Starts a program to keep. What it reads and says is the caller's; what it complains of is
    /// heard as what a command says is. It is known until [`Jobs::forget`].
    pub(crate) async fn keep(&self, wanted: Engagement) -> Result<Kept, Error> {
        let (ours, theirs) = Three::open().map_err(not_started)?;
        let id = self.next();
        let record = Record::new(id, wanted.name, None).map_err(not_started)?;
        let start = Start {
            job: id,
            program: wanted.program.into_os_string().into(),
            arguments: wanted.arguments.into_iter().map(Raw::from).collect(),
            environment: raw(wanted.env),
            folder: wanted.folder.into_os_string().into(),
            cage: wanted.cage,
            input: Input::Three,
            limits: Limits { file: LARGEST, processes: MOST },
        };
        let job = self.begin(record, start, theirs, ours.complaints).await?;
        Ok(Kept { job, input: ours.input, output: ours.output })
    }

    /// Knows a job no longer. It does not end by that.
    pub(crate) fn forget(&self, job: &Job) {
        hold(&self.0.jobs).remove(&job.id());
    }

    fn next(&self) -> u64 {
        let mut count = hold(&self.0.count);
        *count += 1;
        *count
    }

    async fn begin(
        &self,
        record: Arc<Record>,
        start: Start,
        theirs: Vec<OwnedFd>,
        heard: OwnedFd,
    ) -> Result<Job, Error> {
        let job = Job { record: Arc::clone(&record), line: self.line()? };
        job.line.expect(&record);
        self.remember(&job);
        let mut started = Starting { job: Some(job.clone()), jobs: self };
        job.line.send(&Ask::Start(Box::new(start)), &theirs).await?;
        drop(theirs);
        listen::listen(heard, &record).map_err(not_started)?;
        record.started().await?;
        started.job = None;
        Ok(job)
    }

    /// All that are known, oldest first.
    pub fn list(&self) -> Vec<Job> {
        hold(&self.0.jobs).values().cloned().collect()
    }

    /// Ends everything that still runs. Nothing does when it returns, unless the system itself
    /// holds a process.
    pub async fn end_all(&self) {
        let jobs: Vec<Job> = self.list().into_iter().filter(|job| !job.gone()).collect();
        for job in &jobs {
            let _ = job.ask_to_end(PARTING).await;
        }
        for job in &jobs {
            // What does not go is pursued by the keeper, as long as it lives.
            let _ = timeout(PARTING + PATIENCE, job.record.left()).await;
        }
    }

    /// The line to the keeper; a new one if the last one was lost.
    fn line(&self) -> Result<Arc<Line>, Error> {
        let mut line = hold(&self.0.line);
        match line.as_ref().filter(|line| line.holds()) {
            Some(line) => Ok(Arc::clone(line)),
            None => {
                let new = Line::open(self.0.temp.as_deref());
                let new = new.map_err(|source| Error::NoKeeper { source })?;
                Ok(Arc::clone(line.insert(new)))
            }
        }
    }

    /// Only so many that are over are kept, as each holds what it said.
    fn remember(&self, job: &Job) {
        let mut jobs = hold(&self.0.jobs);
        let over: Vec<u64> = jobs.iter().filter(|(_, job)| job.gone()).map(|(id, _)| *id).collect();
        for id in over.iter().rev().skip(REMEMBERED - 1) {
            jobs.remove(id);
        }
        jobs.insert(job.id(), job.clone());
    }
}

/// A job that nobody has yet. If it stays so, it is forgotten and ended.
struct Starting<'a> {
    job: Option<Job>,
    jobs: &'a Jobs,
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            hold(&self.jobs.0.jobs).remove(&job.id());
            // If it was not started there is nothing to end; if it cannot be said now, the keeper
            // does not listen, and the end of the session ends the job.
            let _ = job.line.send_now(&Ask::End { job: job.id(), grace: 0 });
        }
    }
}

fn not_started(error: std::io::Error) -> Error {
    Error::NotStarted { why: error.to_string() }
}

fn raw(environment: Vec<(OsString, OsString)>) -> Vec<(Raw, Raw)> {
    environment.into_iter().map(|(name, value)| (Raw::from(name), Raw::from(value))).collect()
}

fn start(job: u64, order: Order, input: Input) -> Start {
    Start {
        job,
        program: order.shell.into_os_string().into(),
        arguments: vec![Raw::Text("-c".to_owned()), Raw::Text(order.command)],
        environment: raw(order.env),
        folder: order.folder.into_os_string().into(),
        cage: order.cage,
        input,
        limits: Limits { file: LARGEST, processes: MOST },
    }
}

impl Job {
    /// Its number in the session.
    pub fn id(&self) -> u64 {
        self.record.id
    }

    /// What was run.
    pub fn command(&self) -> &str {
        &self.record.command
    }

    /// How long ago it was started.
    pub(crate) fn age(&self) -> Duration {
        self.record.age()
    }

    /// The number of its process.
    pub fn pid(&self) -> Option<i32> {
        self.record.pid()
    }

    /// What listens at the proxy's port in its own network; once, and only if it has one.
    pub fn listener(&self) -> Option<OwnedFd> {
        self.record.listener()
    }

    /// How its command ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        self.record.ending()
    }

    /// True if nothing of it runs.
    pub fn gone(&self) -> bool {
        self.record.gone()
    }

    /// Waits until its command ends and what it said until then was heard, also if something it
    /// started goes on.
    pub async fn ended(&self) -> Ending {
        self.record.ended().await
    }

    /// Waits until nothing of it runs.
    pub async fn left(&self) {
        self.record.left().await;
    }

    /// What it has said so far: the beginning, the end, and how much it was.
    pub fn read(&self) -> Heard {
        self.record.tape().heard()
    }

    /// What it has said since a place, which is 0 at first and then [`Piece::next`].
    pub fn read_on(&self, place: u64) -> Piece {
        let over = self.record.silent();
        self.record.tape().since(place, over)
    }

    /// What it says while it does: a new value at most every 100 ms.
    pub fn watch(&self) -> watch::Receiver<Glimpse> {
        self.record.watch()
    }

    /// Writes to its input, exactly this. If nobody reads on for 5 s, it says how much was taken; if
    /// it is given up before, a part may have been.
    pub async fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        self.record.write(bytes).await
    }

    /// Asks it and everything it started to end, and kills what has not after 3 s. Nothing of it
    /// runs when it returns, unless the system itself holds a process.
    pub async fn kill(&self) {
        self.kill_after(GRACE).await;
    }

    /// Asks it to end, and does not wait until it has.
    pub async fn dismiss(&self) {
        if !self.gone() {
            // If the line is lost, so is the job.
            let _ = self.ask_to_end(GRACE).await;
        }
    }

    /// Has it ended by whoever cannot wait for that.
    pub(crate) fn abandon(&self, grace: Duration) {
        if self.gone() {
            return;
        }
        let millis = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let said = self.line.send_now(&Ask::End { job: self.id(), grace: millis });
        // There was no room for it now. Without a runtime the end of the session ends it.
        if let (Err(_), true, Ok(runtime)) =
            (said, self.line.holds(), tokio::runtime::Handle::try_current())
        {
            let job = self.clone();
            runtime.spawn(async move { job.kill_after(grace).await });
        }
    }

    /// The same as [`Job::kill`] with another patience; none at all kills at once.
    pub async fn kill_after(&self, grace: Duration) {
        if self.gone() {
            return;
        }
        // If the line is lost, so is the job.
        if self.ask_to_end(grace).await.is_ok() {
            let _ = timeout(grace + PATIENCE, self.record.left()).await;
        }
    }

    async fn ask_to_end(&self, grace: Duration) -> Result<(), Error> {
        let grace = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.line.send(&Ask::End { job: self.id(), grace }, &[]).await
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Job").field("id", &self.id()).finish_non_exhaustive()
    }
}

/// What a panic elsewhere left behind is whole here, as every change is one step.
pub(crate) fn hold<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn borrowed(descriptors: &[OwnedFd]) -> Vec<rustix::fd::BorrowedFd<'_>> {
    descriptors.iter().map(AsFd::as_fd).collect()
}
