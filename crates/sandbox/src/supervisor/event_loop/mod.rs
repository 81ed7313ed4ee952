//! Event loop of the supervisor: handles requests, reports exits, and kills jobs that must end
//! until they are gone.

mod free_resources;
mod job_processes;
mod running_job;
mod session_sandbox;

use super::messages::{
    SpawnRequest, SupervisorEvent, SupervisorPacket, SupervisorRequest, receive_message,
};
use super::orphan_guard::{FolderToRemove, OrphanGuard};
use super::process_tree::{self, ProcessInfo};
use super::spawn::spawn_command;
use crate::command::command_types::ProcessExit;
use crate::confine::{ChangeCapture, PathGuard, SandboxBackend};
use free_resources::WatchedDisk;
use job_processes::{
    MAX_NAMED_PROCESSES, describe_leftovers, kill_processes, open_pidfds, send_signal,
};
use running_job::{JobTerminationState, RunningJob};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, getrlimit,
    kill_process_group, pidfd_open, setrlimit, wait, waitpid,
};
use session_sandbox::SessionSandbox;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Interval for checks that no file descriptor signals.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// A job with less memory is not killed when the machine has little memory left.
const MIN_KILLED_MEMORY: u64 = 64 << 20;
/// Part of the limit on processes below which a job needs no exact count.
const ROUGH_COUNT_DIVISOR: usize = 4;
/// Interval for checks whether a named pipe has got a reader.
const WAITING_OPEN_INTERVAL: Duration = Duration::from_millis(10);
/// Interval for checks while a job is being killed.
const KILL_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// A process that survives `SIGKILL` this long is stuck in the kernel and checked less often.
const KILL_STUCK_AFTER: Duration = Duration::from_secs(2);
/// Longest time for killing everything at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// The supervisor of all jobs of a session.
pub(super) struct Supervisor {
    socket: OwnedFd,
    own_pid: Pid,
    jobs: BTreeMap<u64, RunningJob>,
    /// The job that ended last; it is taken to own processes that no other job owns.
    last_ended: Option<u64>,
    counted_at: Instant,
    /// Limit on open file descriptors for commands (`RLIMIT_NOFILE`).
    fd_limit: Rlimit,
    folders_to_remove: Vec<FolderToRemove>,
    guard: OrphanGuard,
    session_sandbox: SessionSandbox,
}

impl Supervisor {
    pub(super) fn new(socket: OwnedFd, guard: OrphanGuard) -> Supervisor {
        let fd_limit = getrlimit(Resource::Nofile);
        // Each job uses a few descriptors of the supervisor. Fails only if the limit cannot be
        // raised.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: fd_limit.maximum, ..fd_limit });
        Supervisor {
            socket,
            own_pid: getpid(),
            jobs: BTreeMap::new(),
            last_ended: None,
            counted_at: Instant::now(),
            fd_limit,
            folders_to_remove: Vec::new(),
            guard,
            session_sandbox: SessionSandbox::default(),
        }
    }

    /// Runs until the owner is gone, then until every process is gone.
    pub(super) fn run(mut self) -> io::Result<()> {
        let result = self.run_event_loop();
        self.kill_everything();
        // After an error the owner may still be alive and use the folders.
        if result.is_ok() {
            self.folders_to_remove.iter().for_each(FolderToRemove::remove);
        }
        self.guard.dismiss();
        result
    }

    fn run_event_loop(&mut self) -> io::Result<()> {
        loop {
            if self.wait_for_events()? {
                let Some((request, descriptors)) =
                    receive_message(&self.socket, RecvFlags::empty())?
                else {
                    return Ok(());
                };
                self.handle_request(request, descriptors)?;
            }
            self.reap_children()?;
            self.enforce_limits();
            self.kill_and_report_gone()?;
        }
    }

    /// Waits for something to do. Returns true if the owner has sent a request.
    fn wait_for_events(&mut self) -> io::Result<bool> {
        let mut fds = vec![PollFd::new(&self.socket, PollFlags::IN)];
        let mut timeout = None;
        for job in self.jobs.values() {
            fds.extend(
                job.path_guard.iter().map(|path_guard| PollFd::new(path_guard, PollFlags::IN)),
            );
            let pidfds = job.command_pidfd.iter().chain(&job.leftover_pidfds);
            fds.extend(pidfds.map(|process| PollFd::new(process, PollFlags::IN)));
            let interval = match job.fate {
                JobTerminationState::Killing { since } if since.elapsed() < KILL_STUCK_AFTER => {
                    KILL_POLL_INTERVAL
                }
                JobTerminationState::Killing { .. } | JobTerminationState::Running => POLL_INTERVAL,
                JobTerminationState::Terminating { kill_at } => kill_at
                    .saturating_duration_since(Instant::now())
                    .clamp(KILL_POLL_INTERVAL, POLL_INTERVAL),
            };
            let has_waiting_opens =
                job.path_guard.as_ref().is_some_and(PathGuard::has_waiting_opens);
            let interval =
                if has_waiting_opens { interval.min(WAITING_OPEN_INTERVAL) } else { interval };
            timeout = Some(timeout.map_or(interval, |timeout: Duration| timeout.min(interval)));
        }
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let mut ready = ready.into_iter();
        let has_request = ready.next().unwrap_or_default();
        if has_request {
            // The owner comes first; calls that wait at a `PathGuard` are answered in the next
            // iteration.
            return Ok(true);
        }
        for job in self.jobs.values_mut() {
            if let Some(path_guard) = &mut job.path_guard
                && (ready.next().unwrap_or_default() || path_guard.has_waiting_opens())
                // A guard that cannot answer is closed, so it refuses everything.
                && path_guard.answer_pending().map_or(true, |report| report.closed)
            {
                job.path_guard = None;
            }
            let command_event = if job.command_pidfd.is_some() { ready.next() } else { None };
            debug_assert!(command_event.is_none() || job.leftover_pidfds.is_empty());
            job.leftover_pidfds.retain(|_| !ready.next().unwrap_or_default());
        }
        Ok(false)
    }

    fn handle_request(
        &mut self,
        request: SupervisorRequest,
        descriptors: Vec<OwnedFd>,
    ) -> io::Result<()> {
        match request {
            SupervisorRequest::Start(spawn_request) => self.start_job(&spawn_request, descriptors),
            SupervisorRequest::RemoveFolder { folder } => {
                self.remove_at_end(PathBuf::from(OsString::from(&folder)));
                Ok(())
            }
            SupervisorRequest::End { job, grace } => {
                let Some(running) = self.jobs.get_mut(&job) else { return Ok(()) };
                match grace {
                    0 => running.start_killing(),
                    grace if !running.is_being_killed() => {
                        let kill_at = Instant::now() + Duration::from_millis(grace);
                        running.fate = JobTerminationState::Terminating { kill_at };
                        for process in self.job_processes(job) {
                            send_signal(process.pid, Signal::TERM);
                            // A stopped process could not handle `SIGTERM`.
                            send_signal(process.pid, Signal::CONT);
                        }
                    }
                    _ => {}
                }
                Ok(())
            }
        }
    }

    fn start_job(
        &mut self,
        request: &SpawnRequest,
        mut descriptors: Vec<OwnedFd>,
    ) -> io::Result<()> {
        let job = request.job;
        let capture_file = if request.has_capture_file { descriptors.pop() } else { None };
        let sandbox = self.session_sandbox.sandbox_for_command(request);
        if let Some(folder) = self.session_sandbox.take_folder_to_remove() {
            self.remove_at_end(folder);
        }
        let (pid, mut entered) = match spawn_command(request, descriptors, self.fd_limit, sandbox) {
            Ok(started) => started,
            Err(reason) => return self.send(&SupervisorEvent::Failed { job, reason }),
        };
        // The command is our child and not reaped, so this works even if it has exited.
        let command_pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Some(pidfd),
            // A command that cannot be watched is killed.
            Err(error) => {
                let _ = kill_process_group(pid, Signal::KILL);
                send_signal(pid.as_raw_pid(), Signal::KILL);
                let _ = waitpid(Some(pid), WaitOptions::empty());
                return self.send(&SupervisorEvent::Failed { job, reason: error.to_string() });
            }
        };
        if let (Some(path_guard), Some(file)) = (&mut entered.path_guard, capture_file) {
            let profile = &request.sandbox;
            let folders = [&profile.root].into_iter().chain(&profile.extra_writable);
            path_guard.capture_changes(ChangeCapture::new(file, folders.cloned().collect()));
        }
        let arguments = std::iter::once(&request.program).chain(&request.arguments);
        let arguments: Vec<_> =
            arguments.map(|argument| OsString::from(argument).into_string()).collect();
        let command_line =
            process_tree::short_command_line(arguments.iter().flatten().map(String::as_str));
        let sandbox_program = match &request.sandbox.backend {
            SandboxBackend::Bubblewrap { program } => fs::metadata(program).ok(),
            SandboxBackend::Landlock | SandboxBackend::Seatbelt | SandboxBackend::Off => None,
        };
        let sandbox_program = sandbox_program.map(|metadata| (metadata.dev(), metadata.ino()));
        let started = RunningJob {
            pid,
            command_line,
            command_pidfd,
            leftover_pidfds: Vec::new(),
            sandbox_program,
            path_guard: entered.path_guard,
            limits: request.limits,
            disks: WatchedDisk::of_job(request),
            fate: JobTerminationState::Running,
            exceeded_limit: None,
        };
        self.jobs.insert(job, started);
        let listener: Vec<OwnedFd> = entered.proxy_listener.into_iter().collect();
        self.send_with_fds(&SupervisorEvent::Started { job, pid: pid.as_raw_pid() }, &listener)
    }

    /// Removes a folder once the owner is gone and everything has ended.
    fn remove_at_end(&mut self, folder: PathBuf) {
        let folder = FolderToRemove::new(folder);
        folder.iter().for_each(|folder| self.guard.add_folder(folder));
        self.folders_to_remove.extend(folder);
    }

    /// Reaps every child that has exited, with `report_exit` for commands.
    fn reap_children(&mut self) -> io::Result<()> {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let found = self.jobs.iter_mut().find(|(_, job)| job.pid == pid);
            if let Some((&number, job)) = found
                && job.command_pidfd.take().is_some()
            {
                self.last_ended = Some(number);
                self.report_exit(number, status)?;
            }
        }
        Ok(())
    }

    /// Sends `SupervisorEvent::Exited` for a command, with the processes of its job that still run.
    fn report_exit(&mut self, number: u64, status: WaitStatus) -> io::Result<()> {
        let processes =
            self.sandbox_leftovers(number).unwrap_or_else(|| self.job_processes(number));
        let Some(job) = self.jobs.get_mut(&number) else { return Ok(()) };
        let exit = match (job.exceeded_limit, status.exit_status(), status.terminating_signal()) {
            (Some(exit), _, _) => exit,
            (None, Some(code), _) => ProcessExit::Code(code),
            (None, None, signal) => ProcessExit::Signal(signal.unwrap_or_default()),
        };
        let mut leftover = Vec::new();
        let mut more_leftover = 0;
        if job.is_being_killed() {
            kill_processes(&processes, self.own_pid);
        } else {
            let is_sandbox_program = |process: &ProcessInfo| {
                job.sandbox_program
                    .is_some_and(|program| process_tree::runs_program(process.pid, program))
            };
            let own: Vec<ProcessInfo> =
                processes.iter().filter(|process| !is_sandbox_program(process)).copied().collect();
            leftover = describe_leftovers(&own, &job.command_line);
            more_leftover = own.len().saturating_sub(MAX_NAMED_PROCESSES);
        }
        job.leftover_pidfds = open_pidfds(&processes);
        self.send(&SupervisorEvent::Exited { job: number, exit, leftover, more_leftover })?;
        match processes.is_empty() && self.has_no_orphan(number) {
            true => self.report_gone(number),
            false => Ok(()),
        }
    }

    /// Starts killing jobs that exceed a limit.
    fn enforce_limits(&mut self) {
        if self.jobs.is_empty() || self.counted_at.elapsed() < POLL_INTERVAL {
            return;
        }
        self.counted_at = Instant::now();
        for job in self.jobs.values_mut() {
            let min_free = job.limits.min_free_disk;
            if job.disks.iter().any(|disk| disk.is_filled(min_free)) {
                job.kill_for(ProcessExit::DiskFull);
            }
        }
        self.enforce_memory_limit();
        self.enforce_process_limits();
        // Restarts the interval, because reading many processes takes long and the loop must also
        // do other work.
        self.counted_at = Instant::now();
    }

    /// Starts killing the job with the most memory if the machine has little left.
    fn enforce_memory_limit(&mut self) {
        let needed = self.jobs.values().map(|job| job.limits.min_free_memory).max();
        let is_killing = self.jobs.values().any(RunningJob::is_being_killed);
        let is_low = |needed| free_resources::available_memory().is_some_and(|free| free < needed);
        if is_killing || !needed.is_some_and(is_low) {
            return;
        }
        let mut memory: BTreeMap<u64, u64> = BTreeMap::new();
        for (number, process) in self.all_processes() {
            *memory.entry(number).or_default() += process_tree::memory_bytes(process.pid);
        }
        let largest = memory.into_iter().max_by_key(|(_, bytes)| *bytes);
        // A small job is not the cause.
        let largest = largest.filter(|(_, bytes)| *bytes >= MIN_KILLED_MEMORY);
        if let Some(job) = largest.and_then(|(number, _)| self.jobs.get_mut(&number)) {
            job.kill_for(ProcessExit::OutOfMemory);
        }
    }

    /// Starts killing jobs with too many processes. Checks cheap bounds first: if the whole system
    /// has fewer threads, so has every job. Reading every process of the system takes long on a
    /// machine with many sessions, so the rough count of the own ones must be high as well.
    fn enforce_process_limits(&mut self) {
        let Some(lowest_limit) = self.jobs.values().map(|job| job.limits.max_processes).min()
        else {
            return;
        };
        let rough_limit = lowest_limit / ROUGH_COUNT_DIVISOR;
        let rough_count =
            || process_tree::count_descendants(self.own_pid.as_raw_pid(), rough_limit);
        if process_tree::system_thread_count() < lowest_limit || rough_count() < rough_limit {
            return;
        }
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        for (number, _) in self.all_processes() {
            *counts.entry(number).or_default() += 1;
        }
        for (number, count) in counts {
            if let Some(job) = self.jobs.get_mut(&number)
                && count > job.limits.max_processes
            {
                job.kill_for(ProcessExit::TooManyProcesses(job.limits.max_processes));
            }
        }
    }

    /// Kills the jobs that must end, and sends `SupervisorEvent::Gone` for jobs without processes.
    fn kill_and_report_gone(&mut self) -> io::Result<()> {
        for job in self.jobs.values_mut() {
            if matches!(job.fate, JobTerminationState::Terminating { kill_at } if kill_at <= Instant::now())
            {
                job.start_killing();
            }
        }
        let has_ended =
            |job: &RunningJob| job.command_pidfd.is_none() && job.leftover_pidfds.is_empty();
        let is_killing = self.jobs.values().any(RunningJob::is_being_killed);
        if !is_killing && !self.jobs.values().any(has_ended) {
            return Ok(());
        }
        let has_no_orphans =
            !is_killing && self.orphans().is_some_and(|orphans| orphans.is_empty());
        let all_processes = if has_no_orphans { Vec::new() } else { self.all_processes() };
        let mut gone = Vec::new();
        for (number, job) in &mut self.jobs {
            let own = all_processes.iter().filter(|(owner, _)| owner == number);
            let own: Vec<ProcessInfo> = own.map(|(_, process)| *process).collect();
            if job.is_being_killed() {
                kill_processes(&own, self.own_pid);
            }
            if has_ended(job) {
                job.leftover_pidfds = open_pidfds(&own);
                if own.is_empty() {
                    gone.push(*number);
                }
            }
        }
        gone.retain(|number| self.has_no_orphan(*number));
        gone.into_iter().try_for_each(|number| self.report_gone(number))
    }

    fn report_gone(&mut self, number: u64) -> io::Result<()> {
        let Some(job) = self.jobs.remove(&number) else { return Ok(()) };
        self.send(&SupervisorEvent::Gone { job: number, exceeded_limit: job.exceeded_limit })
    }

    fn send(&self, event: &SupervisorEvent) -> io::Result<()> {
        self.send_with_fds(event, &[])
    }

    fn send_with_fds(&self, event: &SupervisorEvent, descriptors: &[OwnedFd]) -> io::Result<()> {
        let descriptors: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
        let result =
            SupervisorPacket::new(event)?.send(&self.socket, &descriptors, SendFlags::empty());
        match result {
            // The owner is gone; the next receive reports that as well.
            Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Kills all descendants until none is left.
    fn kill_everything(&mut self) {
        let start = Instant::now();
        while start.elapsed() < SHUTDOWN_TIMEOUT {
            let all_processes = process_tree::descendants(self.own_pid.as_raw_pid());
            kill_processes(
                &all_processes.into_iter().map(|(process, _)| process).collect::<Vec<_>>(),
                self.own_pid,
            );
            loop {
                match wait(WaitOptions::NOHANG) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    // No child is left, and therefore no descendant.
                    Err(_) => return,
                }
            }
            std::thread::sleep(KILL_POLL_INTERVAL);
        }
    }
}
