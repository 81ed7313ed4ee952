//! Seccomp filters: the system calls that a sandboxed command may not make, and those that the
//! `PathGuard` checks.
//!
//! Each filter is a BPF program built before the fork, so that only the installing call happens
//! after it. A refused call returns an error instead of raising a signal, so that programs can
//! report the failure. A call with the numbers of another architecture kills its process, because
//! an error could not be understood there.

use super::{SandboxBackend, SandboxProfile, sandbox_unavailable};
use crate::Error;
use rustix::fs::{MemfdFlags, memfd_create};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, sock_filter,
};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::OnceLock;

type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;

/// System calls that a command needs only to reach out of its sandbox.
const REFUSED_SYSCALLS: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_open_by_handle_at,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];

/// System calls for memory and queues with keys instead of paths, such as `shmget`. Without a
/// namespace of its own, a command would share them with the rest of the machine.
const SHARED_IPC_SYSCALLS: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_semget,
    libc::SYS_msgget,
    libc::SYS_mq_open,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

/// System calls that change the scheduling of a process, with the argument that selects the
/// process. Only 0, the caller, is allowed.
const SCHEDULING_SYSCALLS: &[(i64, u8)] = &[
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
];

/// Ioctls that change a file that is not open for writing: flags, attributes, encryption, version
/// and verity, which makes the file immutable.
const ATTRIBUTE_IOCTLS: [u64; 6] =
    [0x4008_6602, 0x4004_6602, 0x401c_5820, 0x800c_6613, 0x4008_7602, 0x4080_6685];

/// Btrfs ioctls that create and remove names without a system call for paths.
const BTRFS_IOCTLS: [u64; 6] =
    [0x5000_9401, 0x5000_940e, 0x5000_940f, 0x5000_9417, 0x5000_9418, 0x5000_943f];

/// System calls that change owner, permissions or timestamps of a file. Read-only mounts refuse
/// them; Landlock does not cover them.
const METADATA_SYSCALLS: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_utimensat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// System calls whose arguments a filter cannot see. They return `ENOSYS`, and programs fall back
/// to older calls: `clone` for `clone3`, `openat` for `openat2`.
const UNSUPPORTED_SYSCALLS: &[i64] =
    &[libc::SYS_clone3, libc::SYS_openat2, libc::SYS_io_uring_setup];

const NAMESPACE_FLAGS: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// A namespace flag of `unshare` only; for `clone` the bit has another meaning.
const CLONE_NEWTIME: i32 = 0x80;

/// The argument of `personality` that queries the value without changing it.
const QUERY_PERSONALITY: u64 = 0xffff_ffff;

/// The newest system call at the time of writing: `mseal` of Linux 6.10. Later calls may do what
/// the filters refuse, and programs have to work without them anyway. The numbers of the x32 ABI
/// are also above it.
const NEWEST_KNOWN_SYSCALL: u32 = 462;

/// Returns the cached filter, or builds it. A filter depends only on the backend, and the
/// supervisor starts many commands.
fn get_or_build<T: Clone>(
    cache: &OnceLock<T>,
    build: impl FnOnce() -> Result<T, BackendError>,
) -> Result<T, Error> {
    if let Some(cached) = cache.get() {
        return Ok(cached.clone());
    }
    let built = build().map_err(|source| {
        sandbox_unavailable(format!("the seccomp filters could not be built: {source}"))
    })?;
    Ok(cache.get_or_init(|| built).clone())
}

/// Builds the filters that every sandboxed command runs under.
pub(super) fn build_filters(profile: &SandboxProfile) -> Result<Vec<BpfProgram>, Error> {
    let build = || -> Result<Vec<BpfProgram>, BackendError> {
        let mut rules: SyscallRules =
            REFUSED_SYSCALLS.iter().map(|call| (*call, Vec::new())).collect();
        let creates_namespace = |flag: &i32| new_rule(vec![has_flag(0, *flag)?]);
        let mut namespaces =
            NAMESPACE_FLAGS.iter().map(creates_namespace).collect::<Result<Vec<_>, _>>()?;
        rules.insert(libc::SYS_clone, namespaces.clone());
        namespaces.push(creates_namespace(&CLONE_NEWTIME)?);
        rules.insert(libc::SYS_unshare, namespaces);
        let unknown_value = vec![arg_differs(0, QUERY_PERSONALITY)?, arg_differs(0, 0)?];
        rules.insert(libc::SYS_personality, vec![new_rule(unknown_value)?]);
        // These ioctls type input into a terminal for its next reader.
        let typing_ioctls = [libc::TIOCSTI, libc::TIOCLINUX];
        let mut requests: Vec<u64> = typing_ioctls.into_iter().chain(BTRFS_IOCTLS).collect();
        if profile.backend == SandboxBackend::Landlock {
            requests.extend(ATTRIBUTE_IOCTLS);
        }
        let requests = requests.into_iter().map(|request| new_rule(vec![arg_equals(1, request)?]));
        rules.insert(libc::SYS_ioctl, requests.collect::<Result<_, _>>()?);
        // Refuses to change the limits of other processes, including those of Windlass.
        rules.insert(libc::SYS_prlimit64, vec![new_rule(vec![arg_differs(0, 0)?])?]);
        restrict_sockets(profile, &mut rules)?;
        if profile.backend == SandboxBackend::Landlock {
            rules.extend(SHARED_IPC_SYSCALLS.iter().map(|call| (*call, Vec::new())));
            restrict_scheduling(&mut rules)?;
        }
        #[cfg(target_arch = "x86_64")]
        for call in [libc::SYS_kexec_file_load, libc::SYS_iopl, libc::SYS_ioperm] {
            rules.insert(call, Vec::new());
        }
        let unsupported = UNSUPPORTED_SYSCALLS.iter().map(|call| (*call, Vec::new())).collect();
        Ok(vec![
            compile_program(rules, SeccompAction::Errno(libc::EPERM as u32))?,
            compile_program(unsupported, SeccompAction::Errno(libc::ENOSYS as u32))?,
        ])
    };
    static NAMESPACED_FILTERS: OnceLock<Vec<BpfProgram>> = OnceLock::new();
    static LANDLOCK_FILTERS: OnceLock<Vec<BpfProgram>> = OnceLock::new();
    get_or_build(
        if profile.backend == SandboxBackend::Landlock {
            &LANDLOCK_FILTERS
        } else {
            &NAMESPACED_FILTERS
        },
        build,
    )
}

/// Refuses scheduling changes to other processes, as in `setpriority`. Without a namespace of its
/// own, a command could slow down or favor any of them.
fn restrict_scheduling(rules: &mut SyscallRules) -> Result<(), BackendError> {
    for (call, argument) in SCHEDULING_SYSCALLS {
        rules.insert(*call, vec![new_rule(vec![arg_differs(*argument, 0)?])?]);
    }
    // With these selectors, 0 means all processes of the same user.
    for (call, user) in [(libc::SYS_setpriority, libc::PRIO_USER as i32), (libc::SYS_ioprio_set, 3)]
    {
        rules.entry(call).or_default().push(new_rule(vec![arg_equals(0, user)?])?);
    }
    Ok(())
}

/// Restricts the sockets that a command can create. A Unix socket reaches services of the machine
/// regardless of the mounts, so only connected pairs are allowed, and no datagram pairs, which
/// could send to an address later.
fn restrict_sockets(
    profile: &SandboxProfile,
    rules: &mut SyscallRules,
) -> Result<(), BackendError> {
    let kind = |kind: i32| {
        let mask = SeccompCmpOp::MaskedEq(0xf);
        SeccompCondition::new(1, SeccompCmpArgLen::Dword, mask, kind as u64)
    };
    let datagrams = [libc::SOCK_DGRAM, libc::SOCK_RAW];
    let datagrams = datagrams.map(|datagram| new_rule(vec![kind(datagram)?]));
    rules.insert(libc::SYS_socketpair, datagrams.into_iter().collect::<Result<_, _>>()?);

    let mut families = vec![libc::AF_NETLINK];
    let mut refused = vec![new_rule(vec![arg_equals(0, libc::AF_NETLINK)?, arg_differs(2, 0)?])?];
    let inet = [libc::AF_INET, libc::AF_INET6];
    match profile.backend {
        // The command is alone in its network namespace.
        SandboxBackend::Bubblewrap { .. } | SandboxBackend::Seatbelt | SandboxBackend::Off => {
            families.extend(inet)
        }
        // The command would share the network of the machine.
        SandboxBackend::Landlock => {}
    }
    let others = families.iter().map(|family| arg_differs(0, *family as u64));
    refused.push(new_rule(others.collect::<Result<_, _>>()?)?);
    rules.insert(libc::SYS_socket, refused);
    Ok(())
}

/// Range of system calls that the notify filter reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeccompNotifyScope {
    /// Calls that create, change or remove names, or change permissions. Mounts protect against the
    /// rest.
    PathChanges,
    /// Also all other calls that change metadata.
    AllChanges,
}

/// Builds the filter for calls that create or change names. The kernel suspends them until the
/// `PathGuard` answers.
pub(super) fn notify_filter(scope: SeccompNotifyScope) -> Result<BpfProgram, Error> {
    let build = || -> Result<BpfProgram, BackendError> {
        let mut rules = SyscallRules::new();
        let write_rules = |flags: u8| -> Result<Vec<SeccompRule>, BackendError> {
            let access = SeccompCmpOp::MaskedEq(libc::O_ACCMODE as u64);
            let width = || SeccompCmpArgLen::Dword;
            let write = |mode: i32| {
                new_rule(vec![SeccompCondition::new(flags, width(), access.clone(), mode as u64)?])
            };
            Ok(vec![
                write(libc::O_WRONLY)?,
                write(libc::O_RDWR)?,
                new_rule(vec![has_flag(flags, libc::O_CREAT)?])?,
                new_rule(vec![has_flag(flags, libc::O_TRUNC)?])?,
            ])
        };
        rules.insert(libc::SYS_openat, write_rules(2)?);
        let mut syscalls = vec![
            libc::SYS_mkdirat,
            libc::SYS_mknodat,
            libc::SYS_renameat2,
            libc::SYS_linkat,
            libc::SYS_symlinkat,
            libc::SYS_truncate,
            libc::SYS_unlinkat,
            libc::SYS_fchmod,
            libc::SYS_fchmodat,
            libc::SYS_fchmodat2,
            // `bind` would give a name to a socket of a pair.
            libc::SYS_bind,
        ];
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        syscalls.push(libc::SYS_renameat);
        #[cfg(target_arch = "x86_64")]
        {
            rules.insert(libc::SYS_open, write_rules(1)?);
            syscalls.extend([libc::SYS_creat, libc::SYS_mkdir, libc::SYS_mknod, libc::SYS_rename]);
            syscalls.extend([libc::SYS_link, libc::SYS_symlink, libc::SYS_unlink, libc::SYS_rmdir]);
            syscalls.push(libc::SYS_chmod);
        }
        if scope == SeccompNotifyScope::AllChanges {
            syscalls.extend(METADATA_SYSCALLS);
        }
        rules.extend(syscalls.into_iter().map(|call| (call, Vec::new())));
        // `seccompiler` has no action for user notification, so `Trace` is a placeholder that is
        // replaced below.
        let placeholder = SeccompAction::Trace(0);
        let mut program = compile_program(rules, placeholder.clone())?;
        let placeholder = u32::from(placeholder);
        let notify = libc::SECCOMP_RET_USER_NOTIF;
        let is_placeholder = |instruction: &&mut sock_filter| {
            instruction.code == BPF_RETURN && instruction.k == placeholder
        };
        program.iter_mut().filter(is_placeholder).for_each(|instruction| instruction.k = notify);
        Ok(program)
    };
    static PATH_CHANGES_FILTER: OnceLock<BpfProgram> = OnceLock::new();
    static ALL_CHANGES_FILTER: OnceLock<BpfProgram> = OnceLock::new();
    match scope {
        SeccompNotifyScope::PathChanges => get_or_build(&PATH_CHANGES_FILTER, build),
        SeccompNotifyScope::AllChanges => get_or_build(&ALL_CHANGES_FILTER, build),
    }
}

/// Opcode of the BPF instruction that returns the verdict.
const BPF_RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

fn compile_program(
    rules: SyscallRules,
    refused: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    let filter: BpfProgram =
        SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)?.try_into()?;
    let step = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    let mut program = vec![
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K, 0, 1, NEWEST_KNOWN_SYSCALL),
        step(u32::from(BPF_RETURN), 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
    ];
    program.extend(filter);
    Ok(program)
}

fn new_rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions)
}

/// Matches if all bits of the flag are set.
fn has_flag(argument: u8, flag: i32) -> Result<SeccompCondition, BackendError> {
    let flag = u64::from(flag as u32);
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag), flag)
}

fn arg_equals(argument: u8, value: impl TryInto<u64>) -> Result<SeccompCondition, BackendError> {
    let value = value.try_into().unwrap_or_default();
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn arg_differs(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

/// Writes a filter to a memfd, for the program that installs it.
pub(super) fn write_to_memfd(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let mut file = std::fs::File::from(memfd_create("filter", MemfdFlags::CLOEXEC)?);
    for instruction in program {
        let mut bytes = [0; 8];
        let parts = [
            &instruction.code.to_ne_bytes()[..],
            &[instruction.jt, instruction.jf],
            &instruction.k.to_ne_bytes(),
        ];
        bytes.iter_mut().zip(parts.into_iter().flatten()).for_each(|(to, from)| *to = *from);
        file.write_all(&bytes)?;
    }
    std::io::Seek::rewind(&mut file)?;
    // Keeps the descriptor away from the numbers of the standard streams.
    Ok(rustix::io::fcntl_dupfd_cloexec(&file, 10)?)
}

/// Installs a filter on this thread. Allocates nothing, so it may run after a fork.
pub(super) fn install_filter(program: &[sock_filter]) -> io::Result<()> {
    set_filter(program, 0).map(drop)
}

/// Installs a notify filter and returns the descriptor that receives its notifications.
pub(super) fn install_notify_filter(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // `WAIT_KILLABLE` (Linux 5.19) keeps a signal in the meantime from repeating the notification.
    let fd = set_filter(program, flags | WAIT_KILLABLE).or_else(|_| set_filter(program, flags))?;
    #[allow(unsafe_code, reason = "no safe call creates this descriptor")]
    // SAFETY: the kernel has just created the descriptor `fd` for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

const WAIT_KILLABLE: libc::c_ulong = 1 << 5;

fn set_filter(program: &[sock_filter], flags: libc::c_ulong) -> io::Result<i32> {
    let length = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut().cast() };
    #[allow(unsafe_code, reason = "there is no safe call to install a filter with a listener")]
    // SAFETY: the program lives until the call returns and is only read. Its instructions have the
    // kernel's layout, as `seccompiler` guarantees.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    };
    match i32::try_from(result) {
        Ok(fd) if fd >= 0 => Ok(fd),
        Ok(_) | Err(_) => Err(io::Error::last_os_error()),
    }
}
