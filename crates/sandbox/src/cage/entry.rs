//! The step over the threshold: what a new process does to itself before it becomes the command.
//!
//! Everything that allocates or can fail for a reason worth telling happens before the fork. After
//! it come system calls alone, in an order that matters: rights are given up before filters are
//! installed, descriptors are closed to the command before anything is handed back, and the filter
//! that asks comes last, because from there on somebody must answer.
//!
//! For bubblewrap the process runs that program itself instead of returning, so that standard
//! streams and closures of the command stay as they are.

use super::bwrap::{self, Call};
use super::door::{DOOR, Door};
use super::seccomp::{self, Asks};
use super::{Backend, Cage, Network, landlock, no};
use crate::Error;
use rustix::fs::{Mode, OFlags};
use rustix::io::FdFlags;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::process::{Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};
use seccompiler::BpfProgram;
use std::ffi::{CString, OsStr, OsString, c_char};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// What a command that is about to start will hand back.
#[derive(Debug)]
pub struct Entered {
    channel: Option<OwnedFd>,
    cage: Option<Cage>,
}

/// What a command that has started has handed back.
#[derive(Debug, Default)]
pub struct Inside {
    /// Where it asks about names. As long as it runs, somebody must answer.
    pub door: Option<Door>,
    /// A socket that listens at the proxy's port, in the command's own network.
    pub listener: Option<OwnedFd>,
}

impl Entered {
    pub(super) fn outside() -> Entered {
        Entered { channel: None, cage: None }
    }

    /// To be called after `spawn` has succeeded; it does not wait.
    pub fn inside(self) -> Result<Inside, Error> {
        let (Some(channel), Some(cage)) = (self.channel, self.cage) else {
            return Ok(Inside::default());
        };
        let mut inside = Inside::default();
        let mut handed = receive(&channel).map_err(|source| no(source.to_string()))?.into_iter();
        if listens(&cage) {
            inside.listener = handed.next();
        }
        if asks(&cage) {
            let listener = handed.next().ok_or_else(|| no("it did not hand over its door"))?;
            inside.door = Some(Door::new(listener, &cage));
        }
        Ok(inside)
    }
}

/// True if the command has a network of its own, in which the proxy must listen.
fn listens(cage: &Cage) -> bool {
    let own = matches!(cage.backend, Backend::Bubblewrap { .. });
    own && matches!(cage.network, Network::Proxy { .. })
}

/// True if there is something to ask about: names that may be made, or rights that nothing else
/// keeps from being changed.
fn asks(cage: &Cage) -> bool {
    DOOR && (cage.backend == Backend::Landlock || cage.writes().next().is_some())
}

/// Everything a process needs to enter by itself.
struct Entry {
    channel: OwnedFd,
    port: Option<u16>,
    rules: Option<OwnedFd>,
    filters: Vec<BpfProgram>,
    asking: Option<BpfProgram>,
    /// Descriptors that the next program reads.
    kept: Vec<OwnedFd>,
    next: Option<Next>,
}

/// Runs the command within bubblewrap.
pub(super) fn wrap(cage: &Cage, program: &Path, command: &mut Command) -> Result<Entered, Error> {
    let system = |source: io::Error| no(source.to_string());
    set_environment(command, Path::new("/tmp"));
    let filters = seccomp::filters(cage)?;
    let kept = filters.iter().map(|filter| seccomp::file(filter)).collect::<io::Result<Vec<_>>>();
    let kept = kept.map_err(system)?;
    let numbers: Vec<i32> = kept.iter().map(AsRawFd::as_raw_fd).collect();
    let call = Call {
        program: command.get_program(),
        arguments: command.get_args().collect(),
        folder: command.get_current_dir(),
    };
    let arguments = bwrap::arguments(cage, &call, &numbers);
    let variables = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let next = Next::new(program, &arguments, variables).map_err(system)?;
    let asking = asks(cage).then(|| seccomp::asking(Asks::Names)).transpose()?;
    let port = match cage.network {
        Network::Proxy { port } => Some(port),
        Network::None | Network::Open => None,
    };
    let entry = |channel| Entry {
        channel,
        port,
        rules: None,
        filters: Vec::new(),
        asking,
        kept,
        next: Some(next),
    };
    begin(cage, command, entry)
}

/// Runs the command under Landlock.
pub(super) fn lock(cage: &Cage, command: &mut Command) -> Result<Entered, Error> {
    set_environment(command, &cage.temp);
    if command.get_current_dir().is_none() {
        command.current_dir(&cage.root);
    }
    let rules = Some(landlock::rules(cage)?);
    let filters = seccomp::filters(cage)?;
    let asking = asks(cage).then(|| seccomp::asking(Asks::Everything)).transpose()?;
    let entry = |channel| Entry {
        channel,
        port: None,
        rules,
        filters,
        asking,
        kept: Vec::new(),
        next: None,
    };
    begin(cage, command, entry)
}

/// The command gets what was set on it, and a folder for its temporary files.
fn set_environment(command: &mut Command, temp: &Path) {
    let set = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
    let set: Vec<(OsString, OsString)> = set.collect();
    command.env_clear().envs(set).env("TMPDIR", temp);
}

fn begin(
    cage: &Cage,
    command: &mut Command,
    entry: impl FnOnce(OwnedFd) -> Entry,
) -> Result<Entered, Error> {
    let flags = SocketFlags::CLOEXEC;
    let pair = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    let (ours, theirs) = pair.map_err(|source| no(source.to_string()))?;
    let entry = entry(theirs);
    #[allow(unsafe_code, reason = "a process can only be caged by itself")]
    // SAFETY: the closure makes system calls and touches memory that was there before the fork; it
    // allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || entry.cross());
    }
    Ok(Entered { channel: Some(ours), cage: Some(cage.clone()) })
}

impl Entry {
    /// Called in the new process, after the fork.
    fn cross(&self) -> io::Result<()> {
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(Resource::Core, none)?;
        let listener = self.port.map(separate).transpose()?;
        rustix::thread::set_no_new_privs(true)?;
        close_from(3)?;
        for kept in &self.kept {
            rustix::io::fcntl_setfd(kept, FdFlags::empty())?;
        }
        if let Some(rules) = &self.rules {
            landlock::restrict(rules)?;
            let empty = CapabilitySet::empty();
            let sets = CapabilitySets { effective: empty, permitted: empty, inheritable: empty };
            rustix::thread::set_capabilities(None, sets)?;
        }
        for filter in &self.filters {
            seccomp::install(filter)?;
        }
        let door =
            self.asking.as_ref().map(|filter| seccomp::install_asking(filter)).transpose()?;
        send(&self.channel, listener.as_ref(), door.as_ref())?;
        match &self.next {
            Some(next) => Err(next.run()),
            None => Ok(()),
        }
    }
}

/// A network of the process's own, with a socket that listens on its loopback.
fn separate(port: u16) -> io::Result<OwnedFd> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    #[allow(unsafe_code, reason = "the call is unsafe for those who share descriptors")]
    // SAFETY: neither flag touches descriptors, and the process has one thread.
    unsafe {
        rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)?;
    }
    put("/proc/self/setgroups", b"deny")?;
    put("/proc/self/uid_map", Line::same(user.as_raw()).bytes())?;
    put("/proc/self/gid_map", Line::same(group.as_raw()).bytes())?;
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    raise_loopback(&socket)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    rustix::net::listen(&socket, 128)?;
    Ok(socket)
}

fn put(path: &str, text: &[u8]) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text)?;
    Ok(())
}

/// A line of a map that maps one number to itself, without allocating.
struct Line {
    text: [u8; 32],
    length: usize,
}

impl Line {
    fn same(number: u32) -> Line {
        let mut line = Line { text: [0; 32], length: 0 };
        // It fits: two numbers of ten digits and four more bytes.
        let _ = io::Write::write_fmt(&mut line, format_args!("{number} {number} 1\n"));
        line
    }

    fn bytes(&self) -> &[u8] {
        self.text.get(..self.length).unwrap_or_default()
    }
}

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.text.iter_mut().skip(self.length);
        let written = room.zip(bytes).map(|(to, from)| *to = *from).count();
        self.length += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn raise_loopback(socket: &OwnedFd) -> io::Result<()> {
    #[allow(unsafe_code, reason = "there is no safe call for interfaces")]
    // SAFETY: all bytes zero is a valid request; the union is written, never read; the call reads
    // the request while it lives.
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

/// Every descriptor from this number on is closed when the next program starts.
fn close_from(first: u32) -> io::Result<()> {
    #[allow(unsafe_code, reason = "there is no safe call for a range of descriptors")]
    // SAFETY: it marks descriptors and closes none.
    let result =
        unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn send(channel: &OwnedFd, listener: Option<&OwnedFd>, door: Option<&OwnedFd>) -> io::Result<()> {
    let both: [BorrowedFd<'_>; 2];
    let one: [BorrowedFd<'_>; 1];
    let handed: &[BorrowedFd<'_>] = match (listener, door) {
        (Some(listener), Some(door)) => {
            both = [listener.as_fd(), door.as_fd()];
            &both
        }
        (Some(only), None) | (None, Some(only)) => {
            one = [only.as_fd()];
            &one
        }
        (None, None) => &[],
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !handed.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(handed));
    }
    rustix::net::sendmsg(channel, &[IoSlice::new(b"!")], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive(channel: &OwnedFd) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    rustix::net::recvmsg(channel, &mut [IoSliceMut::new(&mut byte)], &mut control, flags)?;
    let mut handed = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            handed.extend(rights);
        }
    }
    Ok(handed)
}

/// The program that a process becomes, with everything in the form that the system takes.
struct Next {
    program: CString,
    arguments: Strings,
    variables: Strings,
}

/// Strings, and the list of their addresses that ends with none.
struct Strings {
    #[allow(dead_code, reason = "keeps alive what the addresses lead to")]
    strings: Vec<CString>,
    addresses: Vec<*const c_char>,
}

#[allow(unsafe_code, reason = "addresses are not sent between threads by themselves")]
// SAFETY: the addresses lead to strings that the same value owns, and nobody writes to them.
unsafe impl Send for Strings {}
#[allow(unsafe_code, reason = "addresses are not shared between threads by themselves")]
// SAFETY: as above.
unsafe impl Sync for Strings {}

impl Strings {
    fn new(strings: impl Iterator<Item = Vec<u8>>) -> io::Result<Strings> {
        let strings = strings.map(CString::new).collect::<Result<Vec<_>, _>>()?;
        let mut addresses: Vec<*const c_char> =
            strings.iter().map(|string| string.as_ptr()).collect();
        addresses.push(std::ptr::null());
        Ok(Strings { strings, addresses })
    }
}

impl Next {
    fn new<'a>(
        program: &Path,
        arguments: &[OsString],
        variables: impl Iterator<Item = (&'a OsStr, &'a OsStr)>,
    ) -> io::Result<Next> {
        let program = program.as_os_str().as_bytes();
        let arguments = arguments.iter().map(|argument| argument.as_bytes().to_vec());
        let variables =
            variables.map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat());
        Ok(Next {
            program: CString::new(program)?,
            arguments: Strings::new([program.to_vec()].into_iter().chain(arguments))?,
            variables: Strings::new(variables)?,
        })
    }

    /// Becomes that program; returns only why it could not.
    fn run(&self) -> io::Error {
        let (arguments, variables) = (&self.arguments.addresses, &self.variables.addresses);
        #[allow(unsafe_code, reason = "the standard library would search and allocate")]
        // SAFETY: both lists end with none, and all strings live as long as `self`.
        unsafe {
            libc::execve(self.program.as_ptr(), arguments.as_ptr(), variables.as_ptr());
        }
        io::Error::last_os_error()
    }
}
