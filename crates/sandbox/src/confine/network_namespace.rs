//! Network namespaces with nothing but a loopback interface.
//!
//! The commands of a session share one, so that a server in one command can be reached by the next.
//! The loopback interface, the ports and the abstract sockets of the machine stay out of reach. The
//! supervisor keeps the namespace: it exists as long as a descriptor of it is open.

use super::descriptor_channel::{descriptor_channel, receive_descriptors, send_descriptors};
use crate::fork::{exit_process, fork};
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{WaitOptions, waitpid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::ffi::c_char;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// A network namespace that processes can enter, and the user namespace that owns it.
#[derive(Debug)]
pub struct NetworkNamespace {
    user: OwnedFd,
    network: OwnedFd,
}

impl NetworkNamespace {
    /// Creates a namespace. The calling process must have a single thread; it does not enter the
    /// namespace itself.
    pub(crate) fn create() -> io::Result<NetworkNamespace> {
        let (channel, child_channel) = descriptor_channel()?;
        let Some(child) = fork()? else {
            let _ = create_and_send(&child_channel);
            exit_process();
        };
        drop(child_channel);
        waitpid(Some(child), WaitOptions::empty())?;
        let mut descriptors = receive_descriptors(&channel)?.into_iter();
        match (descriptors.next(), descriptors.next()) {
            (Some(user), Some(network)) => Ok(NetworkNamespace { user, network }),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Moves the calling process, which must have a single thread, into the namespace. Allocates
    /// nothing.
    pub(super) fn enter(&self) -> io::Result<()> {
        move_into_link_name_space(self.user.as_fd(), Some(LinkNameSpaceType::User))?;
        move_into_link_name_space(self.network.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(())
    }
}

/// Creates the namespaces in a forked process and sends them to its parent.
fn create_and_send(channel: &OwnedFd) -> io::Result<()> {
    unshare_network()?;
    let open = |path: &str| rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let (user, network) = (open("/proc/self/ns/user")?, open("/proc/self/ns/net")?);
    send_descriptors(channel, Some(user.as_fd()), Some(network.as_fd()))
}

/// Moves the calling process into new user and network namespaces, and raises the loopback
/// interface. Allocates nothing.
pub(super) fn unshare_network() -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    #[allow(unsafe_code, reason = "the call is unsafe if descriptors are shared")]
    // SAFETY: neither flag affects descriptors, and the process has a single thread.
    unsafe {
        rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)?;
    }
    write_proc_file("/proc/self/setgroups", b"deny")?;
    write_proc_file("/proc/self/uid_map", IdMapLine::identity(user.as_raw()).as_bytes())?;
    write_proc_file("/proc/self/gid_map", IdMapLine::identity(group.as_raw()).as_bytes())?;
    // Any socket will do to configure the interface.
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    raise_loopback(&socket)
}

/// Returns a socket that listens on the loopback interface of the current namespace. Allocates
/// nothing.
pub(super) fn listen_on_loopback(port: u16) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    rustix::net::listen(&socket, 128)?;
    Ok(socket)
}

fn write_proc_file(path: &str, text: &[u8]) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text)?;
    Ok(())
}

/// A line of `uid_map` or `gid_map` that maps one id to itself, formatted without allocation.
struct IdMapLine {
    text: [u8; 32],
    length: usize,
}

impl IdMapLine {
    fn identity(id: u32) -> IdMapLine {
        let mut line = IdMapLine { text: [0; 32], length: 0 };
        // The line fits: two numbers of at most ten digits, plus four bytes.
        let _ = io::Write::write_fmt(&mut line, format_args!("{id} {id} 1\n"));
        line
    }

    fn as_bytes(&self) -> &[u8] {
        self.text.get(..self.length).unwrap_or_default()
    }
}

impl io::Write for IdMapLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let free = self.text.iter_mut().skip(self.length);
        let written = free.zip(bytes).map(|(to, from)| *to = *from).count();
        self.length += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn raise_loopback(socket: &OwnedFd) -> io::Result<()> {
    #[allow(unsafe_code, reason = "there is no safe call to configure interfaces")]
    // SAFETY: an all-zero `ifreq` is valid; the union is written, never read; the call reads
    // `request` while it is alive.
    let result = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name.iter_mut().zip(b"lo").for_each(|(to, from)| *to = *from as c_char);
        request.ifr_ifru.ifru_flags = libc::IFF_UP as i16;
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
