//! Messages between the supervisor and its owner: JSON in packets, with file descriptors attached.
//!
//! A packet is sent whole or not at all, so neither side waits in the middle of one. A message too
//! long for a packet goes through a memfd, whose descriptor is the last one attached.

use crate::command::command_types::{LeftoverProcess, ProcessExit};
use crate::confine::{PackageCaches, SandboxProfile};
use crate::supervisor::limits::JobLimits;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStringExt;

/// Longest message in a packet; a longer one goes through a memfd.
const MAX_PACKET_BYTES: usize = 32 << 10;
/// Longest message through a memfd.
const MAX_MESSAGE_BYTES: u64 = 16 << 20;
const INLINE_TAG: u8 = b'p';
const MEMFD_TAG: u8 = b'f';

/// A request from the owner to the supervisor.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) enum SupervisorRequest {
    /// Starts a command. The descriptors are those of its [`StdioLayout`], with the output streams
    /// last, and then the capture file, if there is one.
    Start(Box<SpawnRequest>),
    /// Ends a job: asks it to end, then kills it after `grace` milliseconds.
    End { job: u64, grace: u64 },
    /// Removes a folder once the owner is gone and everything has ended.
    RemoveFolder { folder: SerializedOsString },
}

/// A command or process to start.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct SpawnRequest {
    pub(crate) job: u64,
    pub(crate) program: SerializedOsString,
    pub(crate) arguments: Vec<SerializedOsString>,
    /// The whole environment; nothing is inherited.
    pub(crate) environment: Vec<(SerializedOsString, SerializedOsString)>,
    pub(crate) folder: SerializedOsString,
    pub(crate) sandbox: SandboxProfile,
    /// Caches to add to the sandbox.
    pub(crate) package_caches: Option<PackageCaches>,
    pub(crate) stdio: StdioLayout,
    /// The last descriptor is a file that takes what the command is about to change.
    pub(crate) has_capture_file: bool,
    pub(crate) limits: JobLimits,
}

/// Assignment of the attached descriptors to the standard streams.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StdioLayout {
    /// No stdin; the descriptor is the output.
    NoStdin,
    /// Stdin is the first descriptor.
    Pipe,
    /// Stdin is the terminal that is also the output.
    Terminal,
    /// Stdin, stdout and stderr are the three descriptors, in this order.
    ThreePipes,
}

/// An event from the supervisor to its owner.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) enum SupervisorEvent {
    /// The job runs. Its listening socket is attached if it has a network namespace with a proxy
    /// port.
    Started {
        job: u64,
        pid: i32,
    },
    Failed {
        job: u64,
        reason: String,
    },
    /// The command itself has exited; `leftover` and `more_leftover` are processes of the job that
    /// still run.
    Exited {
        job: u64,
        exit: ProcessExit,
        leftover: Vec<LeftoverProcess>,
        more_leftover: usize,
    },
    /// No process of the job is left.
    Gone {
        job: u64,
        exceeded_limit: Option<ProcessExit>,
    },
}

/// Text of the operating system: usually UTF-8, but not necessarily.
#[derive(Serialize, Deserialize, Debug, Clone)]
#[serde(untagged)]
pub(crate) enum SerializedOsString {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<OsString> for SerializedOsString {
    fn from(raw: OsString) -> SerializedOsString {
        raw.into_string()
            .map_or_else(|raw| SerializedOsString::Bytes(raw.into_vec()), SerializedOsString::Text)
    }
}

impl From<&SerializedOsString> for OsString {
    fn from(raw: &SerializedOsString) -> OsString {
        match raw {
            SerializedOsString::Text(text) => text.into(),
            SerializedOsString::Bytes(bytes) => OsString::from_vec(bytes.clone()),
        }
    }
}

/// An encoded message, which can be sent again if the receiver has no room now.
pub(crate) struct SupervisorPacket {
    bytes: Vec<u8>,
    file: Option<OwnedFd>,
}

impl SupervisorPacket {
    pub(crate) fn new(message: &impl Serialize) -> io::Result<SupervisorPacket> {
        let mut bytes = vec![INLINE_TAG];
        serde_json::to_writer(&mut bytes, message)?;
        if bytes.len() <= MAX_PACKET_BYTES {
            return Ok(SupervisorPacket { bytes, file: None });
        }
        let mut file = File::from(memfd_create("windlass", MemfdFlags::CLOEXEC)?);
        file.write_all(bytes.get(1..).unwrap_or_default())?;
        Ok(SupervisorPacket { bytes: vec![MEMFD_TAG], file: Some(file.into()) })
    }

    /// Sends the packet; `flags` determine whether it waits for room.
    pub(crate) fn send(
        &self,
        socket: impl AsFd,
        descriptors: &[BorrowedFd<'_>],
        flags: SendFlags,
    ) -> Result<(), Errno> {
        let file = self.file.as_ref().map(AsFd::as_fd);
        let descriptors: Vec<_> = descriptors.iter().copied().chain(file).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors))
        {
            return Err(Errno::TOOBIG);
        }
        let flags = flags | SendFlags::NOSIGNAL;
        loop {
            match sendmsg(&socket, &[IoSlice::new(&self.bytes)], &mut ancillary, flags) {
                Err(Errno::INTR) => {}
                other => return other.map(|_| ()),
            }
        }
    }
}

/// Decodes any bytes as a request, and returns true if encoding it again gives the same request.
/// For the fuzzer.
#[doc(hidden)]
pub fn decode_request(bytes: &[u8]) -> bool {
    let Ok(request) = serde_json::from_slice::<SupervisorRequest>(bytes) else { return true };
    let encoded = serde_json::to_vec(&request).unwrap_or_default();
    serde_json::from_slice::<SupervisorRequest>(&encoded)
        .is_ok_and(|again| format!("{again:?}") == format!("{request:?}"))
}

/// Receives the next message and its descriptors; `flags` determine whether it waits. Returns
/// `None` when the other side is gone.
pub(crate) fn receive_message<T: DeserializeOwned>(
    socket: impl AsFd,
    flags: RecvFlags,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let mut bytes = vec![0; MAX_PACKET_BYTES + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let length = loop {
        let mut slices = [IoSliceMut::new(&mut bytes)];
        match recvmsg(&socket, &mut slices, &mut ancillary, flags) {
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET) => return Ok(None),
            other => break other?.bytes,
        }
    };
    let mut descriptors: Vec<OwnedFd> = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    bytes.truncate(length);
    let message = match bytes.split_first() {
        None => return Ok(None),
        Some((&INLINE_TAG, text)) => serde_json::from_slice(text)?,
        Some((&MEMFD_TAG, _)) => {
            let file = descriptors.pop().ok_or(io::ErrorKind::InvalidData)?;
            let mut file = File::from(file);
            file.seek(SeekFrom::Start(0))?;
            let mut text = Vec::new();
            file.take(MAX_MESSAGE_BYTES).read_to_end(&mut text)?;
            serde_json::from_slice(&text)?
        }
        Some(_) => return Err(io::ErrorKind::InvalidData.into()),
    };
    Ok(Some((message, descriptors)))
}
