//! Connection to a supervisor process, which starts when it opens and ends when it is dropped.

use crate::Error;
use crate::HELPER_ARGUMENT;
use crate::command::command_types::ProcessExit;
use crate::command::output_reader::SharedJobState;
use crate::supervisor::messages::{
    SerializedOsString, SupervisorEvent, SupervisorPacket, SupervisorRequest, receive_message,
};
use crate::supervisor::{SUPERVISOR_HELPER_NAME, orphan_guard};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, shutdown, socketpair,
};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use windlass_protocol::mutex_lock::lock;

/// Time that the supervisor may take for its own work.
pub(super) const SUPERVISOR_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay before a message is sent again after the socket was full.
const SEND_RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// The [`SharedJobState`]s that wait for events from a supervisor.
#[derive(Default)]
struct JobsAwaitingEvents {
    records: Mutex<BTreeMap<u64, Arc<SharedJobState>>>,
    supervisor_lost: AtomicBool,
}

pub(crate) struct SupervisorConnection {
    socket: OwnedFd,
    waiting_jobs: Arc<JobsAwaitingEvents>,
}

impl SupervisorConnection {
    /// Starts a supervisor and tells it to remove the folder `temp` at the end.
    pub(crate) fn open(temp: Option<&Path>) -> io::Result<Arc<SupervisorConnection>> {
        // A program that is not ours and does not know `HELPER_ARGUMENT` would start itself
        // endlessly.
        if std::env::args_os().nth(1).is_some_and(|first| first == HELPER_ARGUMENT) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let (socket, child_socket) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let supervisor = Command::new("/proc/self/exe")
            .arg0("windlass-super")
            .args([HELPER_ARGUMENT, SUPERVISOR_HELPER_NAME])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(child_socket))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let waiting_jobs = Arc::new(JobsAwaitingEvents::default());
        let connection = SupervisorConnection {
            socket: socket.try_clone()?,
            waiting_jobs: Arc::clone(&waiting_jobs),
        };
        #[allow(
            unsafe_code,
            reason = "required by AsyncFd: the value must always return the same descriptor"
        )]
        // SAFETY: an `OwnedFd` is one descriptor for as long as it lives.
        let socket = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE)? };
        // The task ends with the supervisor, which ends when the connection is dropped.
        tokio::spawn(receive_events(socket, waiting_jobs, supervisor));
        if let Some(temp) = temp {
            connection.try_send(&SupervisorRequest::RemoveFolder {
                folder: SerializedOsString::from(temp.as_os_str().to_owned()),
            })?;
        }
        Ok(Arc::new(connection))
    }

    /// Returns false if the supervisor is gone.
    pub(crate) fn is_alive(&self) -> bool {
        !self.waiting_jobs.supervisor_lost.load(Ordering::Acquire)
    }

    /// Registers a job for events of the supervisor.
    pub(crate) fn register(&self, record: &Arc<SharedJobState>) {
        let mut records = lock(&self.waiting_jobs.records);
        match self.is_alive() {
            true => drop(records.insert(record.id, Arc::clone(record))),
            // The connection was lost after the caller checked it, so no event would report the
            // loss.
            false => mark_lost(record),
        }
    }

    /// Sends a request; waits while the socket is full, but at most `SUPERVISOR_TIMEOUT`.
    pub(crate) async fn send(
        &self,
        request: &SupervisorRequest,
        descriptors: &[OwnedFd],
    ) -> Result<(), Error> {
        let packet = SupervisorPacket::new(request)
            .map_err(|error| Error::NotStarted { reason: error.to_string() })?;
        let descriptors: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
        let mut waited = Duration::ZERO;
        loop {
            match packet.send(&self.socket, &descriptors, SendFlags::DONTWAIT) {
                Ok(()) => return Ok(()),
                Err(Errno::AGAIN) if waited < SUPERVISOR_TIMEOUT => {
                    tokio::time::sleep(SEND_RETRY_INTERVAL).await;
                    waited += SEND_RETRY_INTERVAL;
                }
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(Error::SupervisorLost),
                Err(error) => return Err(Error::SupervisorFailed { source: error.into() }),
            }
        }
    }

    /// Shuts down the sending side. The supervisor then ends everything; its last events are still
    /// received.
    pub(crate) fn close(&self) {
        let _ = shutdown(&self.socket, Shutdown::Write);
    }

    /// Sends a request if the socket has room.
    pub(crate) fn try_send(&self, request: &SupervisorRequest) -> io::Result<()> {
        Ok(SupervisorPacket::new(request)?.send(&self.socket, &[], SendFlags::DONTWAIT)?)
    }
}

impl Drop for SupervisorConnection {
    fn drop(&mut self) {
        self.close();
    }
}

/// Dispatches `SupervisorEvent`s until the supervisor is gone, then marks every waiting job as
/// lost.
async fn receive_events(
    socket: AsyncFd<OwnedFd>,
    waiting_jobs: Arc<JobsAwaitingEvents>,
    mut supervisor: Child,
) {
    let next = |socket: &OwnedFd| receive_message::<SupervisorEvent>(socket, RecvFlags::DONTWAIT);
    while let Ok(Some((event, descriptors))) = socket.async_io(Interest::READABLE, next).await {
        let mut records = lock(&waiting_jobs.records);
        let (SupervisorEvent::Started { job, .. }
        | SupervisorEvent::Failed { job, .. }
        | SupervisorEvent::Exited { job, .. }
        | SupervisorEvent::Gone { job, .. }) = &event;
        let Some(record) = records.get(job).cloned() else { continue };
        match event {
            SupervisorEvent::Started { pid, .. } => {
                record.set_started(pid, descriptors.into_iter().next())
            }
            SupervisorEvent::Exited { exit, leftover, more_leftover, .. } => {
                record.set_exited(exit, leftover, more_leftover)
            }
            SupervisorEvent::Failed { job, reason } => {
                record.set_failed(reason);
                records.remove(&job);
            }
            SupervisorEvent::Gone { job, exceeded_limit } => {
                record.set_gone(exceeded_limit);
                records.remove(&job);
            }
        }
    }
    let lost = {
        let mut records = lock(&waiting_jobs.records);
        waiting_jobs.supervisor_lost.store(true, Ordering::Release);
        std::mem::take(&mut *records)
    };
    let clean_up = move || {
        // A supervisor that sends invalid messages must not stay.
        let _ = supervisor.kill();
        let _ = supervisor.wait();
        if !lost.is_empty() {
            // The guard does the same; here it is waited for, so that the jobs are really gone.
            orphan_guard::kill_marked(supervisor.id());
        }
        lost.values().for_each(|record| mark_lost(record));
    };
    // A runtime that shuts down has no waiting callers left.
    let _ = tokio::task::spawn_blocking(clean_up).await;
}

fn mark_lost(record: &SharedJobState) {
    record.set_failed(Error::SupervisorLost.to_string());
    record.set_exited(ProcessExit::SupervisorLost, Vec::new(), 0);
    record.set_gone(None);
}
