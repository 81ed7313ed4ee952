//! System calls that a caged command does not get, and those that are asked about.
//!
//! Each filter is a BPF program that is made before the fork, so that nothing but the call that
//! installs it happens after. What is refused gets an error, not a signal, so that programs can
//! say what went wrong. A call by another architecture's numbers ends its process: no error could
//! be understood there.

use super::{Backend, Cage, no};
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

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Calls that a command needs for nothing but reaching out of its cage.
const REFUSED: &[i64] = &[
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

/// Memory and queues that have keys instead of paths: without a namespace of its own, a command
/// would share them with the rest of the machine.
const SHARED: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_semget,
    libc::SYS_msgget,
    libc::SYS_mq_open,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

/// Calls that change how a process runs, and which argument says whose: none but the caller.
const TURNS: &[(i64, u8)] = &[
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
];

/// Requests that change what a file is without its being open for writing: flags, attributes,
/// encryption, its version, and that it can never change again.
const ATTRIBUTES: [u64; 6] =
    [0x4008_6602, 0x4004_6602, 0x401c_5820, 0x800c_6613, 0x4008_7602, 0x4080_6685];

/// Requests to btrfs that make and remove names without a call that says so.
const VOLUMES: [u64; 6] =
    [0x5000_9401, 0x5000_940e, 0x5000_940f, 0x5000_9417, 0x5000_9418, 0x5000_943f];

/// Calls that change whose a file is, who may use it, or when it was changed. Mounts that are
/// read-only refuse them; Landlock does not know them.
const RIGHTS: &[i64] = &[
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

/// True if the call changes rights, not names.
pub(super) fn is_about_rights(call: i64) -> bool {
    RIGHTS.contains(&call)
}

/// Calls whose arguments cannot be seen by a filter. Programs take older calls when these are not
/// there: `clone` for `clone3`, `openat` for `openat2`.
const ABSENT: &[i64] = &[libc::SYS_clone3, libc::SYS_openat2, libc::SYS_io_uring_setup];

const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// `unshare` has one more, whose bit means something else to `clone`.
const NEW_TIME: i32 = 0x80;

/// The question of a personality, which changes none.
const WHICH_PERSONALITY: u64 = 0xffff_ffff;

/// The newest call that was known when the rules were written: `mseal` of Linux 6.10. Later ones may
/// do what is refused here, and programs have to do without them anyway. The numbers of x32 are
/// also above it.
const NEWEST: u32 = 462;

/// A filter depends on its backend alone, and the keeper starts many commands: it is built once.
fn kept<T: Clone>(
    place: &OnceLock<T>,
    build: impl FnOnce() -> Result<T, BackendError>,
) -> Result<T, Error> {
    if let Some(kept) = place.get() {
        return Ok(kept.clone());
    }
    let built = build().map_err(|source| no(format!("its filters cannot be built: {source}")))?;
    Ok(place.get_or_init(|| built).clone())
}

/// What every caged command runs under.
pub(super) fn filters(cage: &Cage) -> Result<Vec<BpfProgram>, Error> {
    let build = || -> Result<Vec<BpfProgram>, BackendError> {
        let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
        let makes = |flag: &i32| rule(vec![masked(0, *flag)?]);
        let mut namespaces = NAMESPACES.iter().map(makes).collect::<Result<Vec<_>, _>>()?;
        rules.insert(libc::SYS_clone, namespaces.clone());
        namespaces.push(makes(&NEW_TIME)?);
        rules.insert(libc::SYS_unshare, namespaces);
        let known = vec![unlike(0, WHICH_PERSONALITY)?, unlike(0, 0)?];
        rules.insert(libc::SYS_personality, vec![rule(known)?]);
        // Typing into a terminal for whoever reads from it next.
        let typing = [libc::TIOCSTI, libc::TIOCLINUX];
        let mut requests: Vec<u64> = typing.into_iter().chain(VOLUMES).collect();
        if cage.backend == Backend::Landlock {
            requests.extend(ATTRIBUTES);
        }
        let requests = requests.into_iter().map(|request| rule(vec![like(1, request)?]));
        rules.insert(libc::SYS_ioctl, requests.collect::<Result<_, _>>()?);
        // The limits of other processes, ours among them.
        rules.insert(libc::SYS_prlimit64, vec![rule(vec![unlike(0, 0)?])?]);
        sockets(cage, &mut rules)?;
        if cage.backend == Backend::Landlock {
            rules.extend(SHARED.iter().map(|call| (*call, Vec::new())));
            turns(&mut rules)?;
        }
        #[cfg(target_arch = "x86_64")]
        for call in [libc::SYS_kexec_file_load, libc::SYS_iopl, libc::SYS_ioperm] {
            rules.insert(call, Vec::new());
        }
        let absent = ABSENT.iter().map(|call| (*call, Vec::new())).collect();
        Ok(vec![
            program(rules, SeccompAction::Errno(libc::EPERM as u32))?,
            program(absent, SeccompAction::Errno(libc::ENOSYS as u32))?,
        ])
    };
    static ALONE: OnceLock<Vec<BpfProgram>> = OnceLock::new();
    static SHARING: OnceLock<Vec<BpfProgram>> = OnceLock::new();
    kept(if cage.backend == Backend::Landlock { &SHARING } else { &ALONE }, build)
}

/// Without a namespace of its own, a command could slow down or favour everybody else.
fn turns(rules: &mut Rules) -> Result<(), BackendError> {
    for (call, whose) in TURNS {
        rules.insert(*call, vec![rule(vec![unlike(*whose, 0)?])?]);
    }
    // Here nobody in particular means everything of the same user.
    for (call, user) in [(libc::SYS_setpriority, libc::PRIO_USER as i32), (libc::SYS_ioprio_set, 3)]
    {
        rules.entry(call).or_default().push(rule(vec![like(0, user)?])?);
    }
    Ok(())
}

/// Which sockets there are. A socket of Unix reaches services of the machine whatever the mounts
/// say, so there are none but connected pairs; of those none that send to an address later.
fn sockets(cage: &Cage, rules: &mut Rules) -> Result<(), BackendError> {
    let kind = |kind: i32| {
        let mask = SeccompCmpOp::MaskedEq(0xf);
        SeccompCondition::new(1, SeccompCmpArgLen::Dword, mask, kind as u64)
    };
    let datagrams = [libc::SOCK_DGRAM, libc::SOCK_RAW];
    let datagrams = datagrams.map(|datagram| rule(vec![kind(datagram)?]));
    rules.insert(libc::SYS_socketpair, datagrams.into_iter().collect::<Result<_, _>>()?);

    let mut families = vec![libc::AF_NETLINK];
    let mut refused = vec![rule(vec![like(0, libc::AF_NETLINK)?, unlike(2, 0)?])?];
    let inet = [libc::AF_INET, libc::AF_INET6];
    match cage.backend {
        // It has a network of its own, in which it is alone.
        Backend::Bubblewrap { .. } | Backend::Seatbelt | Backend::Off => families.extend(inet),
        // It would share everybody's.
        Backend::Landlock => {}
    }
    let others = families.iter().map(|family| unlike(0, *family as u64));
    refused.push(rule(others.collect::<Result<_, _>>()?)?);
    rules.insert(libc::SYS_socket, refused);
    Ok(())
}

/// How much is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    /// What makes, changes or takes away names, and who may use them. Mounts hold the rest.
    Names,
    /// Also everything else that changes rights.
    Everything,
}

/// The filter of calls that make or change names: they are held until the door answers.
pub(super) fn asking(asks: Asks) -> Result<BpfProgram, Error> {
    let build = || -> Result<BpfProgram, BackendError> {
        let mut rules = Rules::new();
        let opens = |flags: u8| -> Result<Vec<SeccompRule>, BackendError> {
            let access = SeccompCmpOp::MaskedEq(libc::O_ACCMODE as u64);
            let width = || SeccompCmpArgLen::Dword;
            let write = |how: i32| {
                rule(vec![SeccompCondition::new(flags, width(), access.clone(), how as u64)?])
            };
            Ok(vec![
                write(libc::O_WRONLY)?,
                write(libc::O_RDWR)?,
                rule(vec![masked(flags, libc::O_CREAT)?])?,
                rule(vec![masked(flags, libc::O_TRUNC)?])?,
            ])
        };
        rules.insert(libc::SYS_openat, opens(2)?);
        let mut asked = vec![
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
            // The socket of a pair would get a name by it.
            libc::SYS_bind,
        ];
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        asked.push(libc::SYS_renameat);
        #[cfg(target_arch = "x86_64")]
        {
            rules.insert(libc::SYS_open, opens(1)?);
            asked.extend([libc::SYS_creat, libc::SYS_mkdir, libc::SYS_mknod, libc::SYS_rename]);
            asked.extend([libc::SYS_link, libc::SYS_symlink, libc::SYS_unlink, libc::SYS_rmdir]);
            asked.push(libc::SYS_chmod);
        }
        if asks == Asks::Everything {
            asked.extend(RIGHTS);
        }
        rules.extend(asked.into_iter().map(|call| (call, Vec::new())));
        // The crate has no word for asking somebody, so another answer stands in for it.
        let stand_in = SeccompAction::Trace(0);
        let mut program = program(rules, stand_in.clone())?;
        let (stand_in, asking) = (u32::from(stand_in), libc::SECCOMP_RET_USER_NOTIF);
        let returns = |step: &&mut sock_filter| step.code == RETURN && step.k == stand_in;
        program.iter_mut().filter(returns).for_each(|step| step.k = asking);
        Ok(program)
    };
    static NAMES: OnceLock<BpfProgram> = OnceLock::new();
    static EVERYTHING: OnceLock<BpfProgram> = OnceLock::new();
    match asks {
        Asks::Names => kept(&NAMES, build),
        Asks::Everything => kept(&EVERYTHING, build),
    }
}

/// The code of a step that gives the verdict.
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

fn program(rules: Rules, refused: SeccompAction) -> Result<BpfProgram, BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    let rest: BpfProgram =
        SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)?.try_into()?;
    let step = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    let mut all = vec![
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K, 0, 1, NEWEST),
        step(u32::from(RETURN), 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
    ];
    all.extend(rest);
    Ok(all)
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions)
}

/// All bits of the flag are set.
fn masked(argument: u8, flag: i32) -> Result<SeccompCondition, BackendError> {
    let flag = u64::from(flag as u32);
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag), flag)
}

fn like(argument: u8, value: impl TryInto<u64>) -> Result<SeccompCondition, BackendError> {
    let value = value.try_into().unwrap_or_default();
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn unlike(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

/// A filter as a file, for a program that installs it.
pub(super) fn file(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let mut file = std::fs::File::from(memfd_create("filter", MemfdFlags::CLOEXEC)?);
    for step in program {
        let mut bytes = [0; 8];
        let parts = [&step.code.to_ne_bytes()[..], &[step.jt, step.jf], &step.k.to_ne_bytes()];
        bytes.iter_mut().zip(parts.into_iter().flatten()).for_each(|(to, from)| *to = *from);
        file.write_all(&bytes)?;
    }
    std::io::Seek::rewind(&mut file)?;
    // Away from the numbers that standard streams are put at.
    Ok(rustix::io::fcntl_dupfd_cloexec(&file, 10)?)
}

/// Installs a filter on this thread. Nothing is allocated, so it may follow a fork.
pub(super) fn install(program: &[sock_filter]) -> io::Result<()> {
    set(program, 0).map(drop)
}

/// Installs a filter that asks, and returns where it asks.
pub(super) fn install_asking(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let listen = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // So that a signal that comes meanwhile does not ask everything twice; since Linux 5.19.
    let number = set(program, listen | WAIT_KILLABLE).or_else(|_| set(program, listen))?;
    #[allow(unsafe_code, reason = "a descriptor that no safe call makes")]
    // SAFETY: the kernel has just made this descriptor for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

const WAIT_KILLABLE: libc::c_ulong = 1 << 5;

fn set(program: &[sock_filter], flags: libc::c_ulong) -> io::Result<i32> {
    let length = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut().cast() };
    #[allow(unsafe_code, reason = "there is no safe call to install a filter that asks")]
    // SAFETY: the program lives until the call returns and is only read; its steps have the layout
    // of the kernel's, as its crate promises.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    };
    match i32::try_from(result) {
        Ok(number) if number >= 0 => Ok(number),
        Ok(_) | Err(_) => Err(io::Error::last_os_error()),
    }
}
