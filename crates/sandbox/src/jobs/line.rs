//! The line to a keeper: started when it is opened, gone when it is dropped.

use super::listen::Record;
use super::{Error, PATIENCE, borrowed, hold};
use crate::ERRAND;
use crate::command::Exit;
use crate::keeper::wire::{Ask, Packet, Raw, Tell, receive};
use crate::keeper::{KEEPER, family};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, shutdown, socketpair,
};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// How long to wait before a message is tried again for which there was no room.
const PAUSE: Duration = Duration::from_millis(5);

/// Whoever waits for news from a keeper.
#[derive(Default)]
struct Waiting {
    records: Mutex<BTreeMap<u64, Arc<Record>>>,
    lost: AtomicBool,
}

pub(super) struct Line {
    socket: OwnedFd,
    waiting: Arc<Waiting>,
}

impl Line {
    /// Starts a keeper, and tells it of a folder to remove when everything is over.
    pub(super) fn open(temp: Option<&Path>) -> io::Result<Arc<Line>> {
        // A program that is not ours and does not know errands would start itself without end.
        if std::env::args_os().nth(1).is_some_and(|first| first == ERRAND) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let keeper = Command::new("/proc/self/exe")
            .arg0("pawl")
            .args([ERRAND, KEEPER])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let waiting = Arc::new(Waiting::default());
        let line = Line { socket: ours.try_clone()?, waiting: Arc::clone(&waiting) };
        #[allow(unsafe_code, reason = "a type could hand out another descriptor each time")]
        // SAFETY: an `OwnedFd` is one descriptor for as long as it lives.
        let ours = unsafe { AsyncFd::register_with_interest(ours, Interest::READABLE)? };
        // It ends when the keeper does, and that when the line is dropped.
        tokio::spawn(hear(ours, waiting, keeper));
        if let Some(temp) = temp {
            line.send_now(&Ask::Sweep { folder: Raw::from(temp.as_os_str().to_owned()) })?;
        }
        Ok(Arc::new(line))
    }

    /// False if the keeper is gone.
    pub(super) fn holds(&self) -> bool {
        !self.waiting.lost.load(Ordering::Acquire)
    }

    /// Whoever it is about hears of it from now on.
    pub(super) fn expect(&self, record: &Arc<Record>) {
        let mut records = hold(&self.waiting.records);
        match self.holds() {
            true => drop(records.insert(record.id, Arc::clone(record))),
            // It was lost after it was looked at; nobody would tell.
            false => lose(record),
        }
    }

    /// Says something; waits while there is no room, but not for ever.
    pub(super) async fn send(&self, ask: &Ask, descriptors: &[OwnedFd]) -> Result<(), Error> {
        let packet =
            Packet::new(ask).map_err(|error| Error::NotStarted { why: error.to_string() })?;
        let descriptors = borrowed(descriptors);
        let mut waited = Duration::ZERO;
        loop {
            match packet.send(&self.socket, &descriptors, SendFlags::DONTWAIT) {
                Ok(()) => return Ok(()),
                Err(Errno::AGAIN) if waited < PATIENCE => {
                    tokio::time::sleep(PAUSE).await;
                    waited += PAUSE;
                }
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(Error::Lost),
                Err(error) => return Err(Error::NoKeeper { source: error.into() }),
            }
        }
    }

    /// The keeper reads that nobody is there, and ends everything; its last words are still heard.
    pub(super) fn close(&self) {
        let _ = shutdown(&self.socket, Shutdown::Write);
    }

    /// Says something if there is room.
    pub(super) fn send_now(&self, ask: &Ask) -> io::Result<()> {
        Ok(Packet::new(ask)?.send(&self.socket, &[], SendFlags::DONTWAIT)?)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.close();
    }
}

/// Passes on what a keeper says until it is gone, and tells everybody who still waits that it is.
async fn hear(socket: AsyncFd<OwnedFd>, waiting: Arc<Waiting>, mut keeper: Child) {
    let next = |socket: &OwnedFd| receive::<Tell>(socket, RecvFlags::DONTWAIT);
    while let Ok(Some((tell, beside))) = socket.async_io(Interest::READABLE, next).await {
        let mut records = hold(&waiting.records);
        let (Tell::Started { job, .. }
        | Tell::Failed { job, .. }
        | Tell::Ended { job, .. }
        | Tell::Gone { job, .. }) = &tell;
        let Some(record) = records.get(job).cloned() else { continue };
        match tell {
            Tell::Started { pid, .. } => record.start(pid, beside.into_iter().next()),
            Tell::Ended { exit, still, more, .. } => record.end(exit, still, more),
            Tell::Failed { job, why } => {
                record.fail(why);
                records.remove(&job);
            }
            Tell::Gone { job, crowded } => {
                record.leave(crowded);
                records.remove(&job);
            }
        }
    }
    let lost = {
        let mut records = hold(&waiting.records);
        waiting.lost.store(true, Ordering::Release);
        std::mem::take(&mut *records)
    };
    let bury = move || {
        // One that does not understand us must not stay.
        let _ = keeper.kill();
        let _ = keeper.wait();
        if !lost.is_empty() {
            clear_up(keeper.id());
        }
        lost.values().for_each(|record| lose(record));
    };
    // A runtime that ends has nobody left who waits.
    let _ = tokio::task::spawn_blocking(bury).await;
}

/// Kills what a keeper that was killed could not. Its commands died with it, but what they had
/// started did not; it is found by its mark.
fn clear_up(keeper: u32) {
    for _ in 0..20 {
        let left = family::marked(&format!("{keeper}."));
        if left.is_empty() {
            return;
        }
        for pid in left.into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        thread::sleep(PAUSE);
    }
}

fn lose(record: &Record) {
    record.fail(Error::Lost.to_string());
    record.end(Exit::Lost, Vec::new(), 0);
    record.leave(false);
}
