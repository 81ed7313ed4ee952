//! The processes of jobs: which job owns them, their descriptions, and signals to them.

use super::Supervisor;
use crate::command::command_types::LeftoverProcess;
use crate::supervisor::job_mark::JobMark;
use crate::supervisor::process_tree::{self, ProcessInfo};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Time for a process that a shell forked to execute its program.
const FORK_EXEC_DELAY: Duration = Duration::from_millis(10);
/// Limits the leftover processes that `SupervisorEvent::Exited` names.
pub(super) const MAX_NAMED_PROCESSES: usize = 20;
/// Limits the leftover processes of a job that are watched at once.
const MAX_WATCHED_PROCESSES: usize = 16;

impl Supervisor {
    pub(super) fn job_processes(&self, number: u64) -> Vec<ProcessInfo> {
        let all_processes = self.all_processes().into_iter();
        all_processes.filter(|(owner, _)| *owner == number).map(|(_, process)| process).collect()
    }

    /// Returns every living process with the job it belongs to. Orphans of one session have one
    /// owner, so the owner is determined once per session, however many processes it has.
    pub(super) fn all_processes(&self) -> Vec<(u64, ProcessInfo)> {
        let mut owners: BTreeMap<i32, Option<u64>> = BTreeMap::new();
        let processes = process_tree::descendants(self.own_pid.as_raw_pid()).into_iter();
        let processes = processes.filter_map(|(process, top)| {
            let owner = *owners.entry(top.session).or_insert_with(|| self.owning_job(top));
            Some((owner?, process))
        });
        processes.collect()
    }

    /// Returns the job that owns a child of the supervisor. A process cannot join another session,
    /// and a session ID is not reused while the session lasts, so it is more reliable than
    /// the `JobMark`, which a process can change.
    fn owning_job(&self, child: ProcessInfo) -> Option<u64> {
        let led_by = |leader: i32| {
            let mut jobs = self.jobs.iter();
            jobs.find(|(_, job)| job.pid.as_raw_pid() == leader).map(|(number, _)| *number)
        };
        let marked = || {
            let mark = JobMark::of_process(child.pid)?;
            self.jobs.keys().copied().find(|number| JobMark::new(self.own_pid, *number) == mark)
        };
        let last = || self.last_ended.filter(|number| self.jobs.contains_key(number));
        led_by(child.session)
            .or_else(|| led_by(child.process_group))
            .or_else(marked)
            .or_else(last)
            .or_else(|| self.jobs.keys().next_back().copied())
    }

    /// Returns the supervisor's children that are not running commands. Leftovers of commands that
    /// have exited are among them or their descendants.
    pub(super) fn orphans(&self) -> Option<Vec<i32>> {
        let is_command = |pid: &i32| {
            let mut jobs = self.jobs.values();
            jobs.any(|job| job.command_pidfd.is_some() && job.pid.as_raw_pid() == *pid)
        };
        let children = process_tree::child_pids(self.own_pid.as_raw_pid())?.into_iter();
        Some(children.filter(|pid| !is_command(pid)).collect())
    }

    /// Returns true if no child of the supervisor belongs to a job whose command has exited.
    ///
    /// A scan of `/proc` can miss processes that fork and exit faster than it reads them, but every
    /// living process of such a job has an ancestor among the supervisor's children. Only the
    /// supervisor removes children from the list, by reaping them, and new ones are appended to it,
    /// so a read of the list misses none. A child that has exited may have had children of its own
    /// when the list was read; the answer is then false until it is reaped.
    pub(super) fn has_no_orphan(&self, number: u64) -> bool {
        // Without the list, the scan must do.
        let Some(orphans) = self.orphans() else { return true };
        orphans.into_iter().all(|pid| {
            process_tree::living_process(pid)
                .is_some_and(|process| self.owning_job(process) != Some(number))
        })
    }

    /// Returns the leftover processes of a command that has exited, if they are only those that
    /// kept its sandbox open: the first process of a namespace, alone in it and about to exit. This
    /// is far cheaper than reading every process of the system. Returns `None` if there may be
    /// more.
    pub(super) fn sandbox_leftovers(&self, number: u64) -> Option<Vec<ProcessInfo>> {
        let sandbox_program = self.jobs.get(&number)?.sandbox_program;
        let orphans = self.orphans()?;
        orphans
            .into_iter()
            .map(|pid| process_tree::childless_process(pid, sandbox_program?))
            .collect()
    }
}

/// Describes the processes that outlive a command. A process that a shell has just forked looks
/// like the shell until it executes its program, and has no command line during `exec`, so this
/// waits a moment and looks again.
pub(super) fn describe_leftovers(
    processes: &[ProcessInfo],
    command_line: &str,
) -> Vec<LeftoverProcess> {
    let describe = || -> Vec<LeftoverProcess> {
        let named = processes.iter().take(MAX_NAMED_PROCESSES);
        named.filter_map(|process| process_tree::describe_process(process.pid)).collect()
    };
    let is_starting = |leftover: &LeftoverProcess| {
        leftover.command_line == command_line || leftover.command_line == leftover.name
    };
    let first = describe();
    match first.iter().any(is_starting) {
        true => {
            std::thread::sleep(FORK_EXEC_DELAY);
            describe()
        }
        false => first,
    }
}

/// Opens pidfds for processes; skips those that have exited in the meantime.
pub(super) fn open_pidfds(processes: &[ProcessInfo]) -> Vec<OwnedFd> {
    let pids = processes.iter().filter_map(|process| Pid::from_raw(process.pid));
    pids.take(MAX_WATCHED_PROCESSES)
        .filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
        .collect()
}

/// Kills processes, whole groups first: a group dies in one step that no fork escapes, while
/// processes killed one by one may multiply faster than they are found. A group belongs to one
/// session, and every session here belongs to one job.
pub(super) fn kill_processes(processes: &[ProcessInfo], own_pid: Pid) {
    let groups: BTreeSet<i32> = processes.iter().map(|process| process.process_group).collect();
    for group in groups.into_iter().filter_map(Pid::from_raw).filter(|group| *group != own_pid) {
        // Fails only if the group is already gone.
        let _ = kill_process_group(group, Signal::KILL);
    }
    processes.iter().for_each(|process| send_signal(process.pid, Signal::KILL));
}

/// Sends a signal. Fails only if the process has exited, or if its PID now belongs to a process
/// that we may not signal.
pub(super) fn send_signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}
