//! What the keeper and its owner say to each other: JSON in packets, with descriptors beside it.
//!
//! A packet is sent whole or not at all, so nobody waits in the middle of one. What is too long for
//! a packet goes through a file in memory, whose descriptor comes last.

use crate::cage::Cage;
use crate::command::{Exit, Running};
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

/// A longer message goes through a file in memory.
const PACKET: usize = 32 << 10;
/// No message is longer.
const LONGEST: u64 = 16 << 20;
const PLAIN: u8 = b'p';
const FILED: u8 = b'f';

/// What the owner wants.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) enum Ask {
    /// A command, with the descriptors its [`Input`] says, and of its output last.
    Start(Box<Start>),
    /// That a job ends: asked first, then killed after so many milliseconds.
    End { job: u64, grace: u64 },
    /// That a folder is removed once the owner is gone and everything has ended.
    Sweep { folder: Raw },
}

/// A command to start.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct Start {
    pub(crate) job: u64,
    pub(crate) program: Raw,
    pub(crate) arguments: Vec<Raw>,
    /// The whole of it.
    pub(crate) environment: Vec<(Raw, Raw)>,
    pub(crate) folder: Raw,
    pub(crate) cage: Cage,
    pub(crate) input: Input,
    pub(crate) limits: Limits,
}

/// Where a command reads.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    /// Nothing.
    Nothing,
    /// The first descriptor.
    Pipe,
    /// The terminal that is also its output.
    Terminal,
    /// The first descriptor; the second is its output and the third takes its complaints.
    Three,
}

/// How much a command may use.
#[derive(Serialize, Deserialize, Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The largest file it may write, in bytes.
    pub(crate) file: u64,
    /// How many processes it may have at once.
    pub(crate) processes: usize,
}

/// What the keeper has to say.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) enum Tell {
    /// It runs; what listens in its network comes beside it, if it has one.
    Started {
        job: u64,
        pid: i32,
    },
    Failed {
        job: u64,
        why: String,
    },
    /// The command itself has ended; this much of what it started has not.
    Ended {
        job: u64,
        exit: Exit,
        still: Vec<Running>,
        more: usize,
    },
    /// Nothing of a job is left.
    Gone {
        job: u64,
        crowded: bool,
    },
}

/// Text of the system: almost always UTF-8, but nothing makes it so.
#[derive(Serialize, Deserialize, Debug, Clone)]
#[serde(untagged)]
pub(crate) enum Raw {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<OsString> for Raw {
    fn from(raw: OsString) -> Raw {
        raw.into_string().map_or_else(|raw| Raw::Bytes(raw.into_vec()), Raw::Text)
    }
}

impl From<&Raw> for OsString {
    fn from(raw: &Raw) -> OsString {
        match raw {
            Raw::Text(text) => text.into(),
            Raw::Bytes(bytes) => OsString::from_vec(bytes.clone()),
        }
    }
}

/// A message that can be sent, again if the other side has no room for it now.
pub(crate) struct Packet {
    bytes: Vec<u8>,
    file: Option<OwnedFd>,
}

impl Packet {
    pub(crate) fn new(message: &impl Serialize) -> io::Result<Packet> {
        let mut bytes = vec![PLAIN];
        serde_json::to_writer(&mut bytes, message)?;
        if bytes.len() <= PACKET {
            return Ok(Packet { bytes, file: None });
        }
        let mut file = File::from(memfd_create("windlass", MemfdFlags::CLOEXEC)?);
        file.write_all(bytes.get(1..).unwrap_or_default())?;
        Ok(Packet { bytes: vec![FILED], file: Some(file.into()) })
    }

    /// Sends it, if the flags say so without waiting for room.
    pub(crate) fn send(
        &self,
        socket: impl AsFd,
        descriptors: &[BorrowedFd<'_>],
        flags: SendFlags,
    ) -> Result<(), Errno> {
        let file = self.file.as_ref().map(AsFd::as_fd);
        let descriptors: Vec<_> = descriptors.iter().copied().chain(file).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            return Err(Errno::TOOBIG);
        }
        let flags = flags | SendFlags::NOSIGNAL;
        loop {
            match sendmsg(&socket, &[IoSlice::new(&self.bytes)], &mut beside, flags) {
                Err(Errno::INTR) => {}
                other => return other.map(|_| ()),
            }
        }
    }
}

/// The next message and what came with it, if the flags say so without waiting for it. `None` when
/// the other side is gone.
pub(crate) fn receive<T: DeserializeOwned>(
    socket: impl AsFd,
    flags: RecvFlags,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let mut bytes = vec![0; PACKET + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let length = loop {
        let mut slices = [IoSliceMut::new(&mut bytes)];
        match recvmsg(&socket, &mut slices, &mut beside, flags) {
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET) => return Ok(None),
            other => break other?.bytes,
        }
    };
    let mut descriptors: Vec<OwnedFd> = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    bytes.truncate(length);
    let message = match bytes.split_first() {
        None => return Ok(None),
        Some((&PLAIN, text)) => serde_json::from_slice(text)?,
        Some((&FILED, _)) => {
            let file = descriptors.pop().ok_or(io::ErrorKind::InvalidData)?;
            let mut file = File::from(file);
            file.seek(SeekFrom::Start(0))?;
            let mut text = Vec::new();
            file.take(LONGEST).read_to_end(&mut text)?;
            serde_json::from_slice(&text)?
        }
        Some(_) => return Err(io::ErrorKind::InvalidData.into()),
    };
    Ok(Some((message, descriptors)))
}
