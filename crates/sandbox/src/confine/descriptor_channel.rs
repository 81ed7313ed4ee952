//! Sends file descriptors from a forked process to its parent, without allocation.

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Creates the parent's and the child's end of a channel.
pub(super) fn descriptor_channel() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// Sends up to two descriptors in one message. Allocates nothing.
pub(super) fn send_descriptors(
    channel: &OwnedFd,
    first: Option<BorrowedFd<'_>>,
    second: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let two: [BorrowedFd<'_>; 2];
    let one: [BorrowedFd<'_>; 1];
    let descriptors: &[BorrowedFd<'_>] = match (first, second) {
        (Some(first), Some(second)) => {
            two = [first, second];
            &two
        }
        (Some(only), None) | (None, Some(only)) => {
            one = [only];
            &one
        }
        (None, None) => &[],
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    rustix::net::sendmsg(channel, &[IoSlice::new(b"!")], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives the descriptors of one message. It does not block.
pub(super) fn receive_descriptors(channel: &OwnedFd) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    rustix::net::recvmsg(channel, &mut [IoSliceMut::new(&mut byte)], &mut control, flags)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok(descriptors)
}
