//! Setup that a new process performs on itself before it executes the command: namespaces,
//! Landlock, seccomp filters.
//!
//! Everything that allocates or can fail with a useful message happens before the fork. After the
//! fork there are only system calls, and their order matters: the process gives up privileges
//! before it installs filters, marks descriptors close-on-exec before it hands any back, and
//! installs the notify filter last, because from then on the parent must answer.
//!
//! With bubblewrap, the process executes `bwrap` itself instead of returning, so that the standard
//! streams and `pre_exec` closures of the command keep working.

use super::bubblewrap::{self, BwrapInnerCommand, NetworkIsolation};
use super::descriptor_channel::{descriptor_channel, receive_descriptors, send_descriptors};
use super::path_guard::{PATH_GUARD_ENABLED, PathGuard};
use super::seccomp::{self, SeccompNotifyScope};
use super::session_namespaces::{SessionNamespaces, listen_on_loopback, unshare_network};
use super::{NetworkAccess, SandboxBackend, SandboxProfile, landlock, sandbox_unavailable};
use crate::Error;
use rustix::io::FdFlags;
use rustix::process::{Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};
use seccompiler::BpfProgram;
use std::ffi::{CString, OsStr, OsString, c_char};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// The parent's end of a sandboxed command that is about to start. After `spawn`, it receives the
/// command's descriptors.
#[derive(Debug)]
pub struct PendingSandboxStart {
    channel: Option<OwnedFd>,
    sandbox: Option<SandboxProfile>,
}

/// Descriptors that a started command has handed back to its parent.
#[derive(Debug, Default)]
pub struct ReceivedChildDescriptors {
    /// Receives the system calls of the command that change paths. The caller must answer them as
    /// long as the command runs.
    pub path_guard: Option<PathGuard>,
    /// A socket that listens on the proxy's port in the command's network namespace.
    pub proxy_listener: Option<OwnedFd>,
}

impl PendingSandboxStart {
    pub(super) fn unsandboxed() -> PendingSandboxStart {
        PendingSandboxStart { channel: None, sandbox: None }
    }

    /// Receives the descriptors from the child. Call it after `spawn` has succeeded; it does not
    /// block.
    pub fn finish_entry(self) -> Result<ReceivedChildDescriptors, Error> {
        let (Some(channel), Some(profile)) = (self.channel, self.sandbox) else {
            return Ok(ReceivedChildDescriptors::default());
        };
        let mut entered = ReceivedChildDescriptors::default();
        let mut descriptors = receive_descriptors(&channel)
            .map_err(|source| sandbox_unavailable(source.to_string()))?
            .into_iter();
        if needs_proxy_listener(&profile) {
            entered.proxy_listener = descriptors.next();
        }
        if needs_path_guard(&profile) {
            let listener = descriptors
                .next()
                .ok_or_else(|| sandbox_unavailable("it did not send its seccomp listener"))?;
            entered.path_guard = Some(PathGuard::new(listener, &profile));
        }
        Ok(entered)
    }
}

/// Returns true if the command gets its own network namespace, in which the proxy must listen.
fn needs_proxy_listener(profile: &SandboxProfile) -> bool {
    profile.backend.has_namespaces() && matches!(profile.network, NetworkAccess::Proxy { .. })
}

/// Returns true if there are system calls to check: creation of paths in writable folders, or,
/// under Landlock, metadata changes that nothing else prevents.
fn needs_path_guard(profile: &SandboxProfile) -> bool {
    PATH_GUARD_ENABLED
        && (profile.backend == SandboxBackend::Landlock
            || profile.writable_folders().next().is_some())
}

/// Everything that the child process needs to enter the sandbox in `run_in_child`.
struct ChildSandboxSetup {
    channel: OwnedFd,
    /// The namespaces of the session to enter.
    session_namespaces: Option<Arc<SessionNamespaces>>,
    proxy_port: Option<u16>,
    landlock_ruleset: Option<OwnedFd>,
    filters: Vec<BpfProgram>,
    notify_filter: Option<BpfProgram>,
    /// Descriptors that stay open because the next program reads them.
    inherited_fds: Vec<OwnedFd>,
    exec_target: Option<ExecveArguments>,
}

/// Prepares the command to run inside bubblewrap, through `exec_target`.
pub(super) fn enter_bubblewrap(
    profile: &SandboxProfile,
    program: &Path,
    command: &mut Command,
    session_namespaces: Option<Arc<SessionNamespaces>>,
) -> Result<PendingSandboxStart, Error> {
    let unavailable = |source: io::Error| sandbox_unavailable(source.to_string());
    set_environment(command, Path::new("/tmp"));
    let filters = seccomp::build_filters(profile)?;
    let filter_fds = filters
        .iter()
        .map(|filter| seccomp::write_to_memfd(filter))
        .collect::<io::Result<Vec<_>>>();
    let filter_fds = filter_fds.map_err(unavailable)?;
    let fd_numbers: Vec<i32> = filter_fds.iter().map(AsRawFd::as_raw_fd).collect();
    let wrapped = BwrapInnerCommand {
        program: command.get_program(),
        arguments: command.get_args().collect(),
        folder: command.get_current_dir(),
    };
    let proxy_port = match profile.network {
        NetworkAccess::Proxy { port } => Some(port),
        NetworkAccess::None | NetworkAccess::Unrestricted => None,
    };
    let isolation = match proxy_port.is_some() || session_namespaces.is_some() {
        true => NetworkIsolation::BeforeBubblewrap,
        false => NetworkIsolation::ByBubblewrap,
    };
    let arguments = bubblewrap::build_arguments(profile, &wrapped, &fd_numbers, isolation);
    let variables = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let exec_target = ExecveArguments::new(program, &arguments, variables).map_err(unavailable)?;
    let notify_filter = needs_path_guard(profile)
        .then(|| seccomp::notify_filter(SeccompNotifyScope::PathChanges))
        .transpose()?;
    let entry = |channel| ChildSandboxSetup {
        channel,
        session_namespaces,
        proxy_port,
        landlock_ruleset: None,
        filters: Vec::new(),
        notify_filter,
        inherited_fds: filter_fds,
        exec_target: Some(exec_target),
    };
    install_pre_exec(profile, command, entry)
}

/// Prepares the command to run under Landlock.
pub(super) fn enter_landlock(
    profile: &SandboxProfile,
    command: &mut Command,
) -> Result<PendingSandboxStart, Error> {
    set_environment(command, &profile.temp_dir);
    if command.get_current_dir().is_none() {
        command.current_dir(&profile.root);
    }
    let landlock_ruleset = Some(landlock::ruleset(profile)?);
    let filters = seccomp::build_filters(profile)?;
    let notify_filter = needs_path_guard(profile)
        .then(|| seccomp::notify_filter(SeccompNotifyScope::AllChanges))
        .transpose()?;
    let entry = |channel| ChildSandboxSetup {
        channel,
        session_namespaces: None,
        proxy_port: None,
        landlock_ruleset,
        filters,
        notify_filter,
        inherited_fds: Vec::new(),
        exec_target: None,
    };
    install_pre_exec(profile, command, entry)
}

/// Limits the environment to the variables set on the command, and sets `TMPDIR`.
fn set_environment(command: &mut Command, temp_dir: &Path) {
    let variables =
        command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
    let variables: Vec<(OsString, OsString)> = variables.collect();
    command.env_clear().envs(variables).env("TMPDIR", temp_dir);
}

fn install_pre_exec(
    profile: &SandboxProfile,
    command: &mut Command,
    entry: impl FnOnce(OwnedFd) -> ChildSandboxSetup,
) -> Result<PendingSandboxStart, Error> {
    let (channel, child_channel) =
        descriptor_channel().map_err(|source| sandbox_unavailable(source.to_string()))?;
    let entry = entry(child_channel);
    #[allow(unsafe_code, reason = "a process can only sandbox itself, between fork and exec")]
    // SAFETY: the `pre_exec` closure only makes system calls and uses memory from before the fork;
    // it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || entry.run_in_child());
    }
    Ok(PendingSandboxStart { channel: Some(channel), sandbox: Some(profile.clone()) })
}

impl ChildSandboxSetup {
    /// Enters the sandbox. Runs in the child process, after the fork.
    fn run_in_child(&self) -> io::Result<()> {
        let zero = Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(Resource::Core, zero)?;
        match &self.session_namespaces {
            Some(namespaces) => namespaces.enter()?,
            None if self.proxy_port.is_some() => unshare_network()?,
            None => {}
        }
        let listener = self.proxy_port.map(listen_on_loopback).transpose()?;
        rustix::thread::set_no_new_privs(true)?;
        set_cloexec_from(3)?;
        for fd in &self.inherited_fds {
            rustix::io::fcntl_setfd(fd, FdFlags::empty())?;
        }
        if let Some(ruleset) = &self.landlock_ruleset {
            landlock::restrict_self(ruleset)?;
            let empty = CapabilitySet::empty();
            let sets = CapabilitySets { effective: empty, permitted: empty, inheritable: empty };
            rustix::thread::set_capabilities(None, sets)?;
        }
        for filter in &self.filters {
            seccomp::install_filter(filter)?;
        }
        let notify_fd = self
            .notify_filter
            .as_ref()
            .map(|filter| seccomp::install_notify_filter(filter))
            .transpose()?;
        let listener = listener.as_ref().map(AsFd::as_fd);
        send_descriptors(&self.channel, listener, notify_fd.as_ref().map(AsFd::as_fd))?;
        match &self.exec_target {
            Some(target) => Err(target.exec()),
            None => Ok(()),
        }
    }
}

/// Marks every descriptor from `first` on as close-on-exec.
fn set_cloexec_from(first: u32) -> io::Result<()> {
    #[allow(unsafe_code, reason = "there is no safe call for a range of descriptors")]
    // SAFETY: with `CLOSE_RANGE_CLOEXEC` the call marks descriptors and closes none.
    let result =
        unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Program, arguments and environment in the form that `execve` takes.
struct ExecveArguments {
    program: CString,
    arguments: CStringArray,
    variables: CStringArray,
}

/// Strings and the null-terminated array of their pointers.
struct CStringArray {
    #[allow(dead_code, reason = "keeps the strings alive that the pointers refer to")]
    strings: Vec<CString>,
    pointers: Vec<*const c_char>,
}

#[allow(unsafe_code, reason = "raw pointers are not `Send`")]
// SAFETY: the pointers refer to strings that the same value owns, and no code writes to them.
unsafe impl Send for CStringArray {}
#[allow(unsafe_code, reason = "raw pointers are not `Sync`")]
// SAFETY: as for `Send`.
unsafe impl Sync for CStringArray {}

impl CStringArray {
    fn new(strings: impl Iterator<Item = Vec<u8>>) -> io::Result<CStringArray> {
        let strings = strings.map(CString::new).collect::<Result<Vec<_>, _>>()?;
        let mut pointers: Vec<*const c_char> =
            strings.iter().map(|string| string.as_ptr()).collect();
        pointers.push(std::ptr::null());
        Ok(CStringArray { strings, pointers })
    }
}

impl ExecveArguments {
    fn new<'a>(
        program: &Path,
        arguments: &[OsString],
        variables: impl Iterator<Item = (&'a OsStr, &'a OsStr)>,
    ) -> io::Result<ExecveArguments> {
        let program = program.as_os_str().as_bytes();
        let arguments = arguments.iter().map(|argument| argument.as_bytes().to_vec());
        let variables =
            variables.map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat());
        Ok(ExecveArguments {
            program: CString::new(program)?,
            arguments: CStringArray::new([program.to_vec()].into_iter().chain(arguments))?,
            variables: CStringArray::new(variables)?,
        })
    }

    /// Replaces the process by the program. Returns only on failure, with the error.
    fn exec(&self) -> io::Error {
        let arguments = &self.arguments.pointers;
        let variables = &self.variables.pointers;
        #[allow(unsafe_code, reason = "the standard library would search PATH and allocate")]
        // SAFETY: both arrays end with a null pointer, and all strings live as long as `self`.
        unsafe {
            libc::execve(self.program.as_ptr(), arguments.as_ptr(), variables.as_ptr());
        }
        io::Error::last_os_error()
    }
}
