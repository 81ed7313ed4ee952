//! The loop: what is asked is done, what ends is told, what must end is pursued until it has.

use super::family::{self, Member};
use super::spawn::spawn;
use super::wire::{Ask, Packet, Raw, Start, Tell, receive};
use crate::cage::{Backend, Door};
use crate::command::{Exit, Running};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, getrlimit,
    kill_process, kill_process_group, pidfd_open, setrlimit, wait, waitpid,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often something is looked at that nothing announces.
const TICK: Duration = Duration::from_millis(100);
/// The same while something is being killed.
const HASTE: Duration = Duration::from_millis(5);
/// What does not die within this is stuck in the system, and looked at less often.
const STUCK: Duration = Duration::from_secs(2);
/// How long the end of everything may take.
const LAST: Duration = Duration::from_secs(10);
/// How long a part of a shell may take to become a program.
const SPLIT: Duration = Duration::from_millis(10);
/// How many processes are named when a command ends.
const NAMED: usize = 20;
/// How many that outlive a command are watched at once.
const WATCHED: usize = 16;

/// A command and everything it started.
struct Job {
    pid: Pid,
    /// How it was called.
    line: String,
    /// While it runs.
    command: Option<OwnedFd>,
    /// Some of what outlives it.
    left: Vec<OwnedFd>,
    /// The file of what holds its cage open, which is no part of it.
    frame: Option<(u64, u64)>,
    /// Where it asks about names.
    door: Option<Door>,
    most: usize,
    fate: Fate,
    crowded: bool,
}

#[derive(Clone, Copy)]
enum Fate {
    Free,
    /// Asked to end; killed from then on.
    Asked {
        until: Instant,
    },
    Doomed {
        since: Instant,
    },
}

impl Job {
    fn doom(&mut self) {
        if !self.doomed() {
            self.fate = Fate::Doomed { since: Instant::now() };
            // Nobody in it is answered any more: what it asks fails at once.
            self.door = None;
            // Before anybody is looked for, as that takes a while if they are many. The number is
            // its own as long as it was not reaped.
            if self.command.is_some() {
                let _ = kill_process_group(self.pid, Signal::KILL);
            }
        }
    }

    fn doomed(&self) -> bool {
        matches!(self.fate, Fate::Doomed { .. })
    }
}

/// All jobs of a session.
pub(super) struct Watch {
    socket: OwnedFd,
    me: Pid,
    jobs: BTreeMap<u64, Job>,
    /// Who ended last is taken to own what nobody else does.
    last: Option<u64>,
    counted: Instant,
    /// How many descriptors a command may have.
    files: Rlimit,
    /// What to remove in the end, by its path and what was there.
    litter: Vec<(PathBuf, u64, u64)>,
}

impl Watch {
    pub(super) fn new(socket: OwnedFd) -> Watch {
        let files = getrlimit(Resource::Nofile);
        // Each job takes a few of ours. Fails only where there is no more to have.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files });
        let (jobs, counted) = (BTreeMap::new(), Instant::now());
        let (last, litter) = (None, Vec::new());
        Watch { socket, me: getpid(), jobs, last, counted, files, litter }
    }

    /// Works until the owner is gone, and then until everything else is.
    pub(super) fn run(mut self) -> io::Result<()> {
        let worked = self.work();
        self.end_everything();
        // Without that the owner may still be there, and use it.
        if worked.is_ok() {
            self.sweep();
        }
        worked
    }

    fn work(&mut self) -> io::Result<()> {
        loop {
            if self.rest()? {
                let Some((ask, descriptors)) = receive(&self.socket, RecvFlags::empty())? else {
                    return Ok(());
                };
                self.obey(ask, descriptors)?;
            }
            self.reap()?;
            self.count();
            self.pursue()?;
        }
    }

    /// Sleeps until there is something to do. True if the owner has said something.
    fn rest(&mut self) -> io::Result<bool> {
        let mut places = vec![PollFd::new(&self.socket, PollFlags::IN)];
        let mut pause = None;
        for job in self.jobs.values() {
            places.extend(job.door.iter().map(|door| PollFd::new(door, PollFlags::IN)));
            let watched = job.command.iter().chain(&job.left);
            places.extend(watched.map(|process| PollFd::new(process, PollFlags::IN)));
            let next = match job.fate {
                Fate::Doomed { since } if since.elapsed() < STUCK => HASTE,
                Fate::Doomed { .. } | Fate::Free => TICK,
                Fate::Asked { until } => {
                    until.saturating_duration_since(Instant::now()).clamp(HASTE, TICK)
                }
            };
            pause = Some(pause.map_or(next, |pause: Duration| pause.min(next)));
        }
        let pause = pause.and_then(|pause| Timespec::try_from(pause).ok());
        match poll(&mut places, pause.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = places.iter().map(|place| !place.revents().is_empty()).collect();
        drop(places);
        let mut ready = ready.into_iter();
        let said = ready.next().unwrap_or_default();
        if said {
            // The owner comes first: what waits at the doors still does so in the next turn.
            return Ok(true);
        }
        for job in self.jobs.values_mut() {
            if let Some(door) = &job.door
                && ready.next().unwrap_or_default()
                // One that cannot be answered is closed, and refuses everything.
                && door.answer().map_or(true, |answered| answered.over)
            {
                job.door = None;
            }
            let ended = if job.command.is_some() { ready.next() } else { None };
            debug_assert!(ended.is_none() || job.left.is_empty());
            job.left.retain(|_| !ready.next().unwrap_or_default());
        }
        Ok(false)
    }

    fn obey(&mut self, ask: Ask, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        match ask {
            Ask::Start(start) => self.start(&start, descriptors),
            Ask::Sweep { folder } => {
                self.remember(&folder);
                Ok(())
            }
            Ask::End { job, grace } => {
                let Some(wanted) = self.jobs.get_mut(&job) else { return Ok(()) };
                match grace {
                    0 => wanted.doom(),
                    grace if !wanted.doomed() => {
                        let until = Instant::now() + Duration::from_millis(grace);
                        wanted.fate = Fate::Asked { until };
                        for member in self.members(job) {
                            signal(member.pid, Signal::TERM);
                            // One that was stopped could not hear it.
                            signal(member.pid, Signal::CONT);
                        }
                    }
                    _ => {}
                }
                Ok(())
            }
        }
    }

    fn start(&mut self, start: &Start, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        let job = start.job;
        let (pid, inside) = match spawn(start, descriptors, self.files) {
            Ok(started) => started,
            Err(why) => return self.tell(&Tell::Failed { job, why }),
        };
        // It is our child and was not reaped, so it can be opened even if it has ended.
        let command = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(command) => Some(command),
            // One that cannot be watched is not kept.
            Err(error) => {
                let _ = kill_process_group(pid, Signal::KILL);
                signal(pid.as_raw_pid(), Signal::KILL);
                let _ = waitpid(Some(pid), WaitOptions::empty());
                return self.tell(&Tell::Failed { job, why: error.to_string() });
            }
        };
        let (most, left) = (start.limits.processes, Vec::new());
        let words = std::iter::once(&start.program).chain(&start.arguments);
        let words: Vec<_> = words.map(|word| OsString::from(word).into_string()).collect();
        let line = family::shorten(words.iter().flatten().map(String::as_str));
        let (fate, door) = (Fate::Free, inside.door);
        let frame = match &start.cage.backend {
            Backend::Bubblewrap { program } => fs::metadata(program).ok(),
            Backend::Landlock | Backend::Seatbelt | Backend::Off => None,
        };
        let frame = frame.map(|file| (file.dev(), file.ino()));
        let started = Job { pid, line, command, left, frame, door, most, fate, crowded: false };
        self.jobs.insert(job, started);
        let listener: Vec<OwnedFd> = inside.listener.into_iter().collect();
        self.tell_with(&Tell::Started { job, pid: pid.as_raw_pid() }, &listener)
    }

    /// Takes leave of every child that has ended.
    fn reap(&mut self) -> io::Result<()> {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let found = self.jobs.iter_mut().find(|(_, job)| job.pid == pid);
            if let Some((&number, job)) = found
                && job.command.take().is_some()
            {
                self.last = Some(number);
                self.end(number, status)?;
            }
        }
        Ok(())
    }

    /// Tells that a command has ended, and what of it has not.
    fn end(&mut self, number: u64, status: WaitStatus) -> io::Result<()> {
        let members = self.frames(number).unwrap_or_else(|| self.members(number));
        let Some(job) = self.jobs.get_mut(&number) else { return Ok(()) };
        let exit = match (job.crowded, status.exit_status(), status.terminating_signal()) {
            (true, _, _) => Exit::Crowded(job.most),
            (false, Some(code), _) => Exit::Code(code),
            (false, None, signal) => Exit::Signal(signal.unwrap_or_default()),
        };
        let mut still = Vec::new();
        let mut more = 0;
        if job.doomed() {
            slay(&members, self.me);
        } else {
            let frames = |member: &Member| job.frame.is_some_and(|it| family::runs(member.pid, it));
            let theirs: Vec<Member> =
                members.iter().filter(|member| !frames(member)).copied().collect();
            still = introduce(&theirs, &job.line);
            more = theirs.len().saturating_sub(NAMED);
        }
        job.left = follow(&members);
        self.tell(&Tell::Ended { job: number, exit, still, more })?;
        match members.is_empty() {
            true => self.leave(number),
            false => Ok(()),
        }
    }

    /// What is left of a command that has ended, if it is nothing but what held its cage open: the
    /// first process of a namespace that is alone in it, and about to end. Far cheaper than to look
    /// at every process of the system. `None` if there may be more.
    fn frames(&self, number: u64) -> Option<Vec<Member>> {
        let frame = self.jobs.get(&number)?.frame;
        let orphans = self.orphans()?;
        orphans.into_iter().map(|pid| family::alone(pid, frame?)).collect()
    }

    /// The children that are no running command. What is left of those that have ended is among
    /// them, or beneath.
    fn orphans(&self) -> Option<Vec<i32>> {
        let runs = |pid: &i32| {
            let mut jobs = self.jobs.values();
            jobs.any(|job| job.command.is_some() && job.pid.as_raw_pid() == *pid)
        };
        let children = family::children(self.me.as_raw_pid())?.into_iter();
        Some(children.filter(|pid| !runs(pid)).collect())
    }

    /// Dooms a job of too many processes. The cheap question first: if the whole system has fewer,
    /// so has every job.
    fn count(&mut self) {
        let Some(most) = self.jobs.values().map(|job| job.most).min() else { return };
        if self.counted.elapsed() < TICK {
            return;
        }
        self.counted = Instant::now();
        if family::total() < most {
            return;
        }
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        for (number, _) in self.everybody() {
            *counts.entry(number).or_default() += 1;
        }
        for (number, count) in counts {
            if let Some(job) = self.jobs.get_mut(&number)
                && count > job.most
            {
                job.crowded = true;
                job.doom();
            }
        }
        // A walk over many takes long; it must not be all there is.
        self.counted = Instant::now();
    }

    /// Kills what is doomed, and tells of jobs of which nothing is left.
    fn pursue(&mut self) -> io::Result<()> {
        for job in self.jobs.values_mut() {
            if matches!(job.fate, Fate::Asked { until } if until <= Instant::now()) {
                job.doom();
            }
        }
        let over = |job: &Job| job.command.is_none() && job.left.is_empty();
        let doomed = self.jobs.values().any(Job::doomed);
        if !doomed && !self.jobs.values().any(over) {
            return Ok(());
        }
        let nobody = !doomed && self.orphans().is_some_and(|orphans| orphans.is_empty());
        let everybody = if nobody { Vec::new() } else { self.everybody() };
        let mut gone = Vec::new();
        for (number, job) in &mut self.jobs {
            let mine = everybody.iter().filter(|(owner, _)| owner == number);
            let mine: Vec<Member> = mine.map(|(_, member)| *member).collect();
            if job.doomed() {
                slay(&mine, self.me);
            }
            if over(job) {
                job.left = follow(&mine);
                if mine.is_empty() {
                    gone.push(*number);
                }
            }
        }
        gone.into_iter().try_for_each(|number| self.leave(number))
    }

    fn leave(&mut self, number: u64) -> io::Result<()> {
        let Some(job) = self.jobs.remove(&number) else { return Ok(()) };
        self.tell(&Tell::Gone { job: number, crowded: job.crowded })
    }

    fn members(&self, number: u64) -> Vec<Member> {
        let everybody = self.everybody().into_iter();
        everybody.filter(|(owner, _)| *owner == number).map(|(_, member)| member).collect()
    }

    /// Every living process, with the job it is counted to. Orphans of one session have one owner,
    /// so it is looked for once, however many they are.
    fn everybody(&self) -> Vec<(u64, Member)> {
        let mut owners: BTreeMap<i32, Option<u64>> = BTreeMap::new();
        let found = family::beneath(self.me.as_raw_pid()).into_iter();
        let found = found.filter_map(|(member, top)| {
            let owner = *owners.entry(top.session).or_insert_with(|| self.owner(top));
            Some((owner?, member))
        });
        found.collect()
    }

    /// Whose a child of the keeper is. A session cannot be joined, and its number is not given to
    /// another process while it lasts, so it is surer than the mark, which a process can shed.
    fn owner(&self, child: Member) -> Option<u64> {
        let led = |leader: i32| {
            let mut jobs = self.jobs.iter();
            jobs.find(|(_, job)| job.pid.as_raw_pid() == leader).map(|(number, _)| *number)
        };
        let marked = || {
            let mark = family::mark(child.pid)?;
            let (keeper, number) = mark.split_once('.')?;
            let number = number.parse().ok().filter(|number| self.jobs.contains_key(number));
            number.filter(|_| keeper.parse() == Ok(self.me.as_raw_pid()))
        };
        let last = || self.last.filter(|number| self.jobs.contains_key(number));
        led(child.session)
            .or_else(|| led(child.group))
            .or_else(marked)
            .or_else(last)
            .or_else(|| self.jobs.keys().next_back().copied())
    }

    fn tell(&self, tell: &Tell) -> io::Result<()> {
        self.tell_with(tell, &[])
    }

    fn tell_with(&self, tell: &Tell, beside: &[OwnedFd]) -> io::Result<()> {
        let beside: Vec<BorrowedFd<'_>> = beside.iter().map(AsFd::as_fd).collect();
        let sent = Packet::new(tell)?.send(&self.socket, &beside, SendFlags::empty());
        match sent {
            // Nobody listens any more; the next receipt says so too.
            Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Notes what a folder is now, so that nothing else that comes to bear its name is removed.
    fn remember(&mut self, folder: &Raw) {
        let folder = PathBuf::from(OsString::from(folder));
        let found = fs::symlink_metadata(&folder).ok().filter(|found| found.is_dir());
        self.litter.extend(found.map(|found| (folder, found.dev(), found.ino())));
    }

    /// Removes what it was told to. Links in it are removed, not followed.
    fn sweep(&self) {
        for (folder, device, number) in &self.litter {
            let found = fs::symlink_metadata(folder).ok();
            if found.is_some_and(|it| it.is_dir() && (it.dev(), it.ino()) == (*device, *number)) {
                // Its owner may be at it as well; whoever is last finds nothing.
                let _ = fs::remove_dir_all(folder);
            }
        }
    }

    /// Kills whatever descends from us until nothing does.
    fn end_everything(&mut self) {
        let start = Instant::now();
        while start.elapsed() < LAST {
            let everybody = family::beneath(self.me.as_raw_pid());
            slay(&everybody.into_iter().map(|(member, _)| member).collect::<Vec<_>>(), self.me);
            loop {
                match wait(WaitOptions::NOHANG) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    // No child is left, and so no descendant.
                    Err(_) => return,
                }
            }
            std::thread::sleep(HASTE);
        }
    }
}

/// Names what outlives a command. A part of a shell that was just split off looks like the shell
/// itself until it becomes the program it is meant to be, and has no words while it does: that is
/// worth a moment.
fn introduce(members: &[Member], line: &str) -> Vec<Running> {
    let introduce = || -> Vec<Running> {
        let named = members.iter().take(NAMED);
        named.filter_map(|member| family::introduce(member.pid)).collect()
    };
    let first = introduce();
    match first.iter().any(|one| one.line == line || one.line == one.name) {
        true => {
            std::thread::sleep(SPLIT);
            introduce()
        }
        false => first,
    }
}

/// One that has ended in the meantime is not followed.
fn follow(members: &[Member]) -> Vec<OwnedFd> {
    let pids = members.iter().filter_map(|member| Pid::from_raw(member.pid));
    pids.take(WATCHED).filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()).collect()
}

/// Kills processes, whole groups first: a group dies in one step that no fork escapes, while what
/// is killed one by one may multiply faster than it is found. A group is of one session, and every
/// session here is of one job.
fn slay(members: &[Member], me: Pid) {
    let groups: BTreeSet<i32> = members.iter().map(|member| member.group).collect();
    for group in groups.into_iter().filter_map(Pid::from_raw).filter(|group| *group != me) {
        // Fails only if it is gone already.
        let _ = kill_process_group(group, Signal::KILL);
    }
    members.iter().for_each(|member| signal(member.pid, Signal::KILL));
}

/// Fails only if it has ended already, or became somebody else whom nobody here can end.
fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}
