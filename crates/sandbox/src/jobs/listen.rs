//! Hearing a command: one thread that takes what it says as fast as it comes.
//!
//! What is known of a job is in a [`Record`], which does not hold the line to the keeper, so that a
//! thread that still listens does not keep a session's commands alive.

use super::tape::Tape;
use super::{Ending, Error, Exit, Glimpse, Running, hold};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, ioctl_fionread, read, write};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How much is read at once.
const GULP: usize = 64 << 10;
/// How often whoever watches is told.
const BEAT: Duration = Duration::from_millis(100);
/// How long the last words of a command may take to arrive: from what it piped them through.
const DRAIN: Duration = Duration::from_millis(200);
/// If nothing comes for so long, they have.
const QUIET: Duration = Duration::from_millis(100);
const GLIMPSED: usize = 5;
const GLIMPSE: usize = 2 << 10;
/// The pauses between attempts to write to somebody who does not read.
const SHORT: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_millis(20);
/// How long nobody may read before it is given up.
const UNREAD: Duration = Duration::from_secs(5);

/// What is known of a job.
pub(super) struct Record {
    pub(super) id: u64,
    pub(super) command: String,
    began: Instant,
    tape: Mutex<Tape>,
    input: Option<OwnedFd>,
    /// What listens in its network, until somebody takes it.
    listener: Mutex<Option<OwnedFd>>,
    state: watch::Sender<State>,
    glimpse: watch::Sender<Glimpse>,
    /// Wakes the thread that listens.
    bell: OwnedFd,
}

#[derive(Default)]
struct State {
    started: Option<Result<i32, String>>,
    ending: Option<Ending>,
    /// What it said until it ended is on the tape.
    heard: bool,
    /// Nothing more will be.
    silent: bool,
    gone: bool,
}

impl Record {
    pub(super) fn new(id: u64, command: String, input: Option<OwnedFd>) -> io::Result<Arc<Record>> {
        Ok(Arc::new(Record {
            id,
            command,
            began: Instant::now(),
            tape: Mutex::default(),
            input,
            listener: Mutex::default(),
            state: watch::Sender::default(),
            glimpse: watch::Sender::default(),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        }))
    }

    pub(super) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn start(&self, pid: i32, listener: Option<OwnedFd>) {
        *hold(&self.listener) = listener;
        self.state.send_modify(|state| state.started = Some(Ok(pid)));
    }

    /// Not if it was started already.
    pub(super) fn fail(&self, why: String) {
        self.state.send_modify(|state| {
            state.started.get_or_insert(Err(why));
        });
    }

    /// Not if it has ended already.
    pub(super) fn end(&self, exit: Exit, still: Vec<Running>, more: usize) {
        let took = self.began.elapsed();
        self.state.send_modify(|state| {
            state.ending.get_or_insert(Ending { exit, still, more, took });
        });
        self.ring();
    }

    pub(super) fn leave(&self, crowded: bool) {
        self.state.send_modify(|state| {
            state.gone = true;
            // The command may have ended in time, and what it left behind was too many.
            if let (true, Some(ending)) = (crowded, &mut state.ending)
                && !matches!(ending.exit, Exit::Crowded(_))
            {
                ending.exit = Exit::Crowded(super::MOST);
            }
        });
        self.ring();
    }

    /// Whoever listens looks again. Fails only if it was rung so often that it cannot be missed.
    fn ring(&self) {
        let _ = write(&self.bell, &1u64.to_ne_bytes());
    }

    pub(super) async fn started(&self) -> Result<i32, Error> {
        let mut state = self.state.subscribe();
        let Ok(state) = state.wait_for(|state| state.started.is_some()).await else {
            return Err(Error::Lost);
        };
        match &state.started {
            Some(Ok(pid)) => Ok(*pid),
            Some(Err(why)) => Err(Error::NotStarted { why: why.clone() }),
            None => Err(Error::Lost),
        }
    }

    pub(super) async fn ended(&self) -> Ending {
        let mut state = self.state.subscribe();
        let ended = state.wait_for(|state| state.ending.is_some() && state.heard).await;
        // The sender is in the record, so it cannot be gone.
        ended.ok().and_then(|state| state.ending.clone()).unwrap_or(Ending {
            exit: Exit::Lost,
            still: Vec::new(),
            more: 0,
            took: Duration::ZERO,
        })
    }

    pub(super) async fn left(&self) {
        let _ = self.state.subscribe().wait_for(|state| state.gone).await;
    }

    pub(super) fn listener(&self) -> Option<OwnedFd> {
        hold(&self.listener).take()
    }

    pub(super) fn pid(&self) -> Option<i32> {
        self.state.borrow().started.clone()?.ok()
    }

    pub(super) fn ending(&self) -> Option<Ending> {
        self.state.borrow().ending.clone()
    }

    pub(super) fn gone(&self) -> bool {
        self.state.borrow().gone
    }

    pub(super) fn silent(&self) -> bool {
        self.state.borrow().silent
    }

    pub(super) fn tape(&self) -> MutexGuard<'_, Tape> {
        hold(&self.tape)
    }

    pub(super) fn watch(&self) -> watch::Receiver<Glimpse> {
        self.glimpse.subscribe()
    }

    fn show(&self) {
        let glimpse = {
            let tape = self.tape();
            let last = tape.ending(GLIMPSED, GLIMPSE);
            Glimpse { last, bytes: tape.bytes(), lines: tape.lines() }
        };
        self.glimpse.send_replace(glimpse);
    }

    pub(super) async fn write(&self, mut bytes: &[u8]) -> Result<(), Error> {
        let whole = bytes.len();
        let (mut pause, mut waited) = (SHORT, Duration::ZERO);
        let input = self.input.as_ref().ok_or(Error::NoInput)?;
        while !bytes.is_empty() {
            match write(input, bytes) {
                Ok(count) => {
                    bytes = bytes.get(count..).unwrap_or_default();
                    (pause, waited) = (SHORT, Duration::ZERO);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.gone() => return Err(Error::Deaf),
                Err(Errno::AGAIN) if waited >= UNREAD => {
                    return Err(Error::Unread { taken: whole - bytes.len(), whole });
                }
                Err(Errno::AGAIN) => {
                    tokio::time::sleep(pause).await;
                    waited += pause;
                    pause = (pause * 2).min(LONG);
                }
                Err(_) => return Err(Error::Deaf),
            }
        }
        Ok(())
    }
}

/// Listens to a command in a thread of its own until nobody can say anything more.
pub(super) fn listen(source: OwnedFd, record: &Arc<Record>) -> io::Result<()> {
    let record = Arc::clone(record);
    let hear = move || {
        Ear { source, record: &record, ended: None, shown: None, dirty: false }.hear();
        record.show();
        record.state.send_modify(|state| (state.heard, state.silent) = (true, true));
    };
    thread::Builder::new().name("command".to_owned()).stack_size(256 << 10).spawn(hear)?;
    Ok(())
}

struct Ear<'a> {
    source: OwnedFd,
    record: &'a Record,
    ended: Option<Last>,
    shown: Option<Instant>,
    dirty: bool,
}

/// What is known since the command has ended.
struct Last {
    since: Instant,
    heard: Instant,
    /// How much was still to be heard then.
    owed: u64,
    told: bool,
}

impl Ear<'_> {
    fn hear(&mut self) {
        let mut buffer = vec![0; GULP];
        loop {
            match read(&self.source, &mut *buffer) {
                Ok(0) => return,
                Ok(count) => {
                    self.record.tape().push(buffer.get(..count).unwrap_or_default());
                    self.dirty = true;
                    if let Some(last) = &mut self.ended {
                        last.heard = Instant::now();
                        last.owed = last.owed.saturating_sub(count as u64);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if let Some(last) = &mut self.ended {
                        last.owed = 0;
                    }
                    if self.wait().is_err() {
                        return;
                    }
                }
                // How a terminal says that nobody has it open any more.
                Err(_) => return,
            }
            self.show();
            self.settle();
        }
    }

    /// Waits for more, for the end of the command, or until something is due.
    fn wait(&mut self) -> Result<(), Errno> {
        let show = self.dirty.then(|| self.until_shown());
        let quiet = self.ended.as_ref().filter(|last| !last.told).map(|_| QUIET);
        let pause = show.into_iter().chain(quiet).min();
        let pause = pause.and_then(|pause| Timespec::try_from(pause).ok());
        let mut places = [
            PollFd::new(&self.source, PollFlags::IN),
            PollFd::new(&self.record.bell, PollFlags::IN),
        ];
        match poll(&mut places, pause.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        let _ = read(&self.record.bell, &mut [0; 8]);
        Ok(())
    }

    fn until_shown(&self) -> Duration {
        self.shown.map_or(Duration::ZERO, |shown| BEAT.saturating_sub(shown.elapsed()))
    }

    fn show(&mut self) {
        if self.dirty && self.until_shown().is_zero() {
            self.record.show();
            (self.dirty, self.shown) = (false, Some(Instant::now()));
        }
    }

    /// Tells when everything was heard that the command itself can have said.
    fn settle(&mut self) {
        let now = Instant::now();
        match &mut self.ended {
            None if self.record.state.borrow().ending.is_some() => {
                let owed = ioctl_fionread(&self.source).unwrap_or_default();
                self.ended = Some(Last { since: now, heard: now, owed, told: false });
            }
            None => {}
            Some(last) if last.told || last.owed > 0 => {}
            Some(last) => {
                let quiet = now.duration_since(last.heard) >= QUIET;
                if quiet || now.duration_since(last.since) >= DRAIN {
                    last.told = true;
                    self.record.state.send_modify(|state| state.heard = true);
                }
            }
        }
    }
}
