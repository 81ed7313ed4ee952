//! Reads the output of a command in a thread of its own, as fast as it arrives.
//!
//! The state of a job is in a [`SharedJobState`]. The record does not own the connection to the
//! supervisor, so a reader thread that still runs does not keep a session's commands alive.
#![allow(
    clippy::disallowed_methods,
    reason = "the sandbox crate owns the threads that read the output of commands"
)]

use crate::Error;
use crate::command::command_types::{ExitReport, LeftoverProcess, OutputPreview, ProcessExit};
use crate::command::head_tail_buffer::HeadTailBuffer;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, ioctl_fionread, read, write};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use windlass_protocol::mutex_lock::lock;

const READ_BUFFER_BYTES: usize = 64 << 10;
/// Least time between two updates of the [`OutputPreview`].
const PREVIEW_INTERVAL: Duration = Duration::from_millis(100);
/// Longest wait for a command's last output after it exits; programs that it pipes through may
/// deliver output late.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
/// The output counts as complete after this long without a byte.
const DRAIN_QUIET_TIME: Duration = Duration::from_millis(100);
const MAX_PREVIEW_LINES: usize = 5;
const MAX_PREVIEW_BYTES: usize = 2 << 10;
/// Bounds of the delay between attempts to write to a command that does not read its stdin.
const MIN_WRITE_RETRY_DELAY: Duration = Duration::from_millis(1);
const MAX_WRITE_RETRY_DELAY: Duration = Duration::from_millis(20);
/// Longest time a command may leave its stdin unread before a write fails.
const STDIN_WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// State of a job: its output, stdin, start result and exit.
pub(crate) struct SharedJobState {
    pub(crate) id: u64,
    pub(crate) command: String,
    started_at: Instant,
    output: Mutex<HeadTailBuffer>,
    stdin: Option<OwnedFd>,
    /// Listening socket inside the command's network namespace, until [`SharedJobState::take_listener`]
    /// takes it.
    listener: Mutex<Option<OwnedFd>>,
    state: watch::Sender<JobState>,
    preview: watch::Sender<OutputPreview>,
    /// Eventfd that wakes the reader thread; see `wake_reader`.
    wakeup: OwnedFd,
}

#[derive(Default)]
struct JobState {
    start_result: Option<Result<i32, String>>,
    exit_report: Option<ExitReport>,
    /// The buffer contains everything the command wrote before it exited.
    exit_output_read: bool,
    /// All writers have closed the output; no more will arrive.
    output_closed: bool,
    gone: bool,
}

impl SharedJobState {
    pub(crate) fn new(
        id: u64,
        command: String,
        stdin: Option<OwnedFd>,
        output: HeadTailBuffer,
    ) -> io::Result<Arc<SharedJobState>> {
        Ok(Arc::new(SharedJobState {
            id,
            command,
            started_at: Instant::now(),
            output: Mutex::new(output),
            stdin,
            listener: Mutex::default(),
            state: watch::Sender::default(),
            preview: watch::Sender::default(),
            wakeup: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        }))
    }

    pub(crate) fn age(&self) -> Duration {
        self.started_at.elapsed()
    }

    pub(crate) fn set_started(&self, pid: i32, listener: Option<OwnedFd>) {
        *lock(&self.listener) = listener;
        self.state.send_modify(|state| state.start_result = Some(Ok(pid)));
    }

    /// Records that the start failed, unless the job has already started.
    pub(crate) fn set_failed(&self, reason: String) {
        self.state.send_modify(|state| {
            state.start_result.get_or_insert(Err(reason));
        });
    }

    /// Records the exit, unless one is already recorded.
    pub(crate) fn set_exited(
        &self,
        exit: ProcessExit,
        leftover: Vec<LeftoverProcess>,
        more_leftover: usize,
    ) {
        let duration = self.started_at.elapsed();
        self.state.send_modify(|state| {
            state.exit_report.get_or_insert(ExitReport { exit, leftover, more_leftover, duration });
        });
        self.wake_reader();
    }

    pub(crate) fn set_gone(&self, exceeded_limit: Option<ProcessExit>) {
        self.state.send_modify(|state| {
            state.gone = true;
            // The command may have exited normally while the processes it left behind exceeded the
            // limit.
            if let (Some(limit), Some(report)) = (exceeded_limit, &mut state.exit_report) {
                report.exit = limit;
            }
        });
        self.wake_reader();
    }

    /// Wakes the reader thread. The write fails only if the counter is full, in which case a wakeup
    /// is already pending.
    fn wake_reader(&self) {
        let _ = write(&self.wakeup, &1u64.to_ne_bytes());
    }

    pub(crate) async fn wait_for_start(&self) -> Result<i32, Error> {
        let mut state = self.state.subscribe();
        let Ok(state) = state.wait_for(|state| state.start_result.is_some()).await else {
            return Err(Error::SupervisorLost);
        };
        match &state.start_result {
            Some(Ok(pid)) => Ok(*pid),
            Some(Err(reason)) => Err(Error::NotStarted { reason: reason.clone() }),
            None => Err(Error::SupervisorLost),
        }
    }

    pub(crate) async fn wait_for_exit(&self) -> ExitReport {
        let mut state = self.state.subscribe();
        let exited =
            state.wait_for(|state| state.exit_report.is_some() && state.exit_output_read).await;
        // The record owns the sender, so the channel cannot be closed.
        exited.ok().and_then(|state| state.exit_report.clone()).unwrap_or(ExitReport {
            exit: ProcessExit::SupervisorLost,
            leftover: Vec::new(),
            more_leftover: 0,
            duration: Duration::ZERO,
        })
    }

    pub(crate) async fn wait_until_gone(&self) {
        let _ = self.state.subscribe().wait_for(|state| state.gone).await;
    }

    pub(crate) fn take_listener(&self) -> Option<OwnedFd> {
        lock(&self.listener).take()
    }

    pub(crate) fn pid(&self) -> Option<i32> {
        self.state.borrow().start_result.clone()?.ok()
    }

    pub(crate) fn exit_report(&self) -> Option<ExitReport> {
        let state = self.state.borrow();
        let mut report = state.exit_report.clone()?;
        if state.gone {
            // They were still running when the command exited.
            (report.leftover, report.more_leftover) = (Vec::new(), 0);
        }
        Some(report)
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.state.borrow().gone
    }

    pub(crate) fn is_output_closed(&self) -> bool {
        self.state.borrow().output_closed
    }

    pub(crate) fn output(&self) -> MutexGuard<'_, HeadTailBuffer> {
        lock(&self.output)
    }

    pub(crate) fn watch_output(&self) -> watch::Receiver<OutputPreview> {
        self.preview.subscribe()
    }

    fn publish_preview(&self) {
        let preview = {
            let buffer = self.output();
            let last_lines = buffer.last_lines(MAX_PREVIEW_LINES, MAX_PREVIEW_BYTES);
            OutputPreview {
                last_lines,
                total_bytes: buffer.total_bytes(),
                total_lines: buffer.total_lines(),
            }
        };
        self.preview.send_replace(preview);
    }

    pub(crate) async fn write_stdin(&self, mut bytes: &[u8]) -> Result<(), Error> {
        let total = bytes.len();
        let mut delay = MIN_WRITE_RETRY_DELAY;
        let mut waited = Duration::ZERO;
        let input = self.stdin.as_ref().ok_or(Error::NoStdin)?;
        while !bytes.is_empty() {
            match write(input, bytes) {
                Ok(count) => {
                    bytes = bytes.get(count..).unwrap_or_default();
                    delay = MIN_WRITE_RETRY_DELAY;
                    waited = Duration::ZERO;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.is_gone() => return Err(Error::StdinClosed),
                Err(Errno::AGAIN) if waited >= STDIN_WRITE_TIMEOUT => {
                    return Err(Error::StdinNotRead { written: total - bytes.len(), total });
                }
                Err(Errno::AGAIN) => {
                    tokio::time::sleep(delay).await;
                    waited += delay;
                    delay = (delay * 2).min(MAX_WRITE_RETRY_DELAY);
                }
                Err(_) => return Err(Error::StdinClosed),
            }
        }
        Ok(())
    }
}

/// Starts an `OutputReader` thread that reads the output of a command until all writers have closed
/// it.
pub(crate) fn start_output_reader(source: OwnedFd, record: &Arc<SharedJobState>) -> io::Result<()> {
    let record = Arc::clone(record);
    let read_output = move || {
        OutputReader { source, record: &record, drain: None, last_preview: None, dirty: false }
            .read_to_end();
        record.publish_preview();
        record.state.send_modify(|state| {
            state.exit_output_read = true;
            state.output_closed = true;
        });
    };
    thread::Builder::new().name("command".to_owned()).stack_size(256 << 10).spawn(read_output)?;
    Ok(())
}

struct OutputReader<'a> {
    source: OwnedFd,
    record: &'a SharedJobState,
    drain: Option<OutputDrainProgress>,
    last_preview: Option<Instant>,
    dirty: bool,
}

/// Progress of draining the output after the command has exited.
struct OutputDrainProgress {
    started_at: Instant,
    last_read: Instant,
    /// Bytes that were unread when the command exited (`FIONREAD`).
    pending_bytes: u64,
    reported: bool,
}

impl OutputReader<'_> {
    fn read_to_end(&mut self) {
        let mut buffer = vec![0; READ_BUFFER_BYTES];
        loop {
            match read(&self.source, &mut *buffer) {
                Ok(0) => return,
                Ok(count) => {
                    self.record.output().push(buffer.get(..count).unwrap_or_default());
                    self.dirty = true;
                    if let Some(drain) = &mut self.drain {
                        drain.last_read = Instant::now();
                        drain.pending_bytes = drain.pending_bytes.saturating_sub(count as u64);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if let Some(drain) = &mut self.drain {
                        drain.pending_bytes = 0;
                    }
                    if self.wait().is_err() {
                        return;
                    }
                }
                // A terminal reports an error when no process has it open any more.
                Err(_) => return,
            }
            self.publish_preview();
            self.check_drained();
        }
    }

    /// Waits for output, for the exit of the command, or until a preview or the drain check is due.
    fn wait(&mut self) -> Result<(), Errno> {
        let preview_delay = self.dirty.then(|| self.until_next_preview());
        let drain_delay =
            self.drain.as_ref().filter(|last| !last.reported).map(|_| DRAIN_QUIET_TIME);
        let timeout = preview_delay.into_iter().chain(drain_delay).min();
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut fds = [
            PollFd::new(&self.source, PollFlags::IN),
            PollFd::new(&self.record.wakeup, PollFlags::IN),
        ];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        let _ = read(&self.record.wakeup, &mut [0; 8]);
        Ok(())
    }

    fn until_next_preview(&self) -> Duration {
        self.last_preview
            .map_or(Duration::ZERO, |last| PREVIEW_INTERVAL.saturating_sub(last.elapsed()))
    }

    fn publish_preview(&mut self) {
        if self.dirty && self.until_next_preview().is_zero() {
            self.record.publish_preview();
            self.dirty = false;
            self.last_preview = Some(Instant::now());
        }
    }

    /// Sets `exit_output_read` once everything the command itself can have written has been read.
    fn check_drained(&mut self) {
        let now = Instant::now();
        match &mut self.drain {
            None if self.record.state.borrow().exit_report.is_some() => {
                let pending_bytes = ioctl_fionread(&self.source).unwrap_or_default();
                self.drain = Some(OutputDrainProgress {
                    started_at: now,
                    last_read: now,
                    pending_bytes,
                    reported: false,
                });
            }
            None => {}
            Some(drain) if drain.reported || drain.pending_bytes > 0 => {}
            Some(drain) => {
                let is_quiet = now.duration_since(drain.last_read) >= DRAIN_QUIET_TIME;
                if is_quiet || now.duration_since(drain.started_at) >= DRAIN_TIMEOUT {
                    drain.reported = true;
                    self.record.state.send_modify(|state| state.exit_output_read = true);
                }
            }
        }
    }
}
