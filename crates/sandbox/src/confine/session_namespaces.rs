//! The namespaces that the commands of a session share.
//!
//! Their network namespace has nothing but a loopback interface, so that a server in one command can
//! be reached by the next, while the ports and the abstract sockets of the machine stay out of
//! reach. In their mount namespace, overlays cover the package caches of the user. The supervisor
//! keeps the namespaces: they exist as long as a descriptor of them is open.

use super::cache_overlays::CacheOverlay;
use super::descriptor_channel::{descriptor_channel, receive_descriptors, send_descriptors};
use crate::fork::{exit_process, fork};
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create};
use rustix::mount::MountPropagationFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{WaitOptions, waitpid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::ffi::c_char;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Namespaces that processes can enter, and the user namespace that owns them.
#[derive(Debug)]
pub struct SessionNamespaces {
    user: OwnedFd,
    network: OwnedFd,
    mount: Option<OwnedFd>,
    /// Folders that an overlay covers in the mount namespace.
    overlaid_folders: Vec<PathBuf>,
}

impl SessionNamespaces {
    /// Creates the namespaces. The calling process must have a single thread; it does not enter the
    /// namespaces itself.
    pub(crate) fn create() -> io::Result<SessionNamespaces> {
        let channel = run_in_child(create_and_send)?;
        let mut descriptors = receive_descriptors(&channel)?.into_iter();
        let (Some(user), Some(network)) = (descriptors.next(), descriptors.next()) else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        Ok(SessionNamespaces { user, network, mount: None, overlaid_folders: Vec::new() })
    }

    /// Returns these namespaces with a mount namespace that has those of the overlays which can be
    /// mounted, and all earlier ones. The calling process must have a single thread.
    pub(crate) fn with_overlays(&self, overlays: &[CacheOverlay]) -> io::Result<SessionNamespaces> {
        let channel = run_in_child(|channel| self.mount_and_send(channel, overlays))?;
        let mut descriptors = receive_descriptors(&channel)?.into_iter();
        let (Some(mount), Some(mounted)) = (descriptors.next(), descriptors.next()) else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let mut indexes = Vec::new();
        let mut mounted = File::from(mounted);
        mounted.seek(SeekFrom::Start(0))?;
        mounted.read_to_end(&mut indexes)?;
        let folder = |index: &u8| Some(overlays.get(usize::from(*index))?.folder.clone());
        let mut overlaid_folders = self.overlaid_folders.clone();
        overlaid_folders.extend(indexes.iter().filter_map(folder));
        let (user, network) = (self.user.try_clone()?, self.network.try_clone()?);
        Ok(SessionNamespaces { user, network, mount: Some(mount), overlaid_folders })
    }

    /// Returns true if an overlay covers this folder of the user, so that changes do not reach it.
    pub(crate) fn is_overlaid(&self, folder: &Path) -> bool {
        self.overlaid_folders.iter().any(|overlaid| overlaid == folder)
    }

    /// Moves the calling process, which must have a single thread, into the namespaces. Allocates
    /// nothing.
    pub(super) fn enter(&self) -> io::Result<()> {
        move_into_link_name_space(self.user.as_fd(), Some(LinkNameSpaceType::User))?;
        move_into_link_name_space(self.network.as_fd(), Some(LinkNameSpaceType::Network))?;
        if let Some(mount) = &self.mount {
            move_into_link_name_space(mount.as_fd(), Some(LinkNameSpaceType::Mount))?;
        }
        Ok(())
    }

    /// Mounts the overlays in a forked process, and sends its mount namespace and a file with the
    /// indexes of the mounted ones to its parent.
    fn mount_and_send(&self, channel: &OwnedFd, overlays: &[CacheOverlay]) -> io::Result<()> {
        self.enter()?;
        #[allow(unsafe_code, reason = "the call is unsafe if descriptors are shared")]
        // SAFETY: the flag does not affect descriptors, and the process has a single thread.
        unsafe {
            rustix::thread::unshare_unsafe(UnshareFlags::NEWNS)?;
        }
        let downstream = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        rustix::mount::mount_change("/", downstream)?;
        let mut mounted = Vec::new();
        for (index, overlay) in (0..=u8::MAX).zip(overlays) {
            if overlay.mount().is_ok() {
                mounted.push(index);
            }
        }
        let mut indexes = File::from(memfd_create("overlays", MemfdFlags::CLOEXEC)?);
        indexes.write_all(&mounted)?;
        let mount = open_namespace("mnt")?;
        send_descriptors(channel, Some(mount.as_fd()), Some(indexes.as_fd()))
    }
}

/// Forks a process that calls `send` and ends, and returns the channel with what it sent.
fn run_in_child(send: impl FnOnce(&OwnedFd) -> io::Result<()>) -> io::Result<OwnedFd> {
    let (channel, child_channel) = descriptor_channel()?;
    let Some(child) = fork()? else {
        let _ = send(&child_channel);
        exit_process();
    };
    drop(child_channel);
    waitpid(Some(child), WaitOptions::empty())?;
    Ok(channel)
}

/// Creates the namespaces in a forked process and sends them to its parent.
fn create_and_send(channel: &OwnedFd) -> io::Result<()> {
    unshare_network()?;
    let (user, network) = (open_namespace("user")?, open_namespace("net")?);
    send_descriptors(channel, Some(user.as_fd()), Some(network.as_fd()))
}

fn open_namespace(name: &str) -> io::Result<OwnedFd> {
    let path = Path::new("/proc/self/ns").join(name);
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
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
        let _ = Write::write_fmt(&mut line, format_args!("{id} {id} 1\n"));
        line
    }

    fn as_bytes(&self) -> &[u8] {
        self.text.get(..self.length).unwrap_or_default()
    }
}

impl Write for IdMapLine {
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
