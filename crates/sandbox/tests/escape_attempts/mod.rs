//! Attempts to escape the sandbox that no common program makes. The test binary is run again inside
//! the sandbox to make one of them.

use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto};
use std::io::{self, Error};
use std::net::{SocketAddrV4, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};

fn check(result: i64) -> io::Result<()> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

#[allow(unsafe_code, reason = "raw system calls are what is tested")]
fn call(number: i64, arguments: [u64; 5]) -> io::Result<()> {
    let [a, b, c, d, e] = arguments;
    // SAFETY: every address that is passed is null or that of a live value.
    check(unsafe { libc::syscall(number, a, b, c, d, e) })
}

/// Makes the attempt that the variable `ACT` names. Does nothing without it.
#[test]
fn attempt_in_sandbox() {
    let Ok(act) = std::env::var("ACT") else { return };
    let (name, argument) = act.split_once(' ').unwrap_or((&act, ""));
    match perform(name, argument) {
        Ok(()) => println!("\ndid it"),
        Err(error) => println!("\n{error}"),
    }
}

#[allow(clippy::too_many_lines, reason = "a table")]
fn perform(name: &str, argument: &str) -> io::Result<()> {
    let pid = || argument.parse::<u64>().unwrap();
    match name {
        "mount" => call(
            libc::SYS_mount,
            [c"none".as_ptr() as u64, c"/tmp".as_ptr() as u64, c"tmpfs".as_ptr() as u64, 0, 0],
        ),
        "chroot" => call(libc::SYS_chroot, [c"/tmp".as_ptr() as u64, 0, 0, 0, 0]),
        "io_uring" => {
            let parameters = [0_u64; 64];
            call(libc::SYS_io_uring_setup, [4, parameters.as_ptr() as u64, 0, 0, 0])
        }
        "openat2" => {
            let how = [0_u64; 3];
            let (path, how) = (c"/".as_ptr() as u64, how.as_ptr() as u64);
            call(libc::SYS_openat2, [libc::AT_FDCWD as u64, path, how, 24, 0])
        }
        "clone3" => {
            let mut arguments = [0_u64; 11];
            arguments[0] = libc::CLONE_NEWUSER as u64;
            arguments[4] = libc::SIGCHLD as u64;
            call(libc::SYS_clone3, [arguments.as_ptr() as u64, 88, 0, 0, 0])
        }
        // `getpid` of x32.
        "x32" => call(0x4000_0000 | 39, [0; 5]),
        "limits" => {
            let parent = std::os::unix::process::parent_id();
            let limits = [1_u64 << 20; 2];
            call(libc::SYS_prlimit64, [parent.into(), 4, limits.as_ptr() as u64, 0, 0])
        }
        "bpf" => call(libc::SYS_bpf, [0, 0, 0, 0, 0]).or_else(not_refused),
        "keyctl" => call(libc::SYS_keyctl, [0, -3_i64 as u64, 0, 0, 0]),
        "tiocsti" => call(libc::SYS_ioctl, [0, libc::TIOCSTI, c"x".as_ptr() as u64, 0, 0])
            .or_else(not_refused),
        "ptrace" => call(libc::SYS_ptrace, [16, pid(), 0, 0, 0]),
        "ptrace_child" => call(libc::SYS_ptrace, [0, 0, 0, 0, 0]),
        "reads" => {
            let (from, to) = ([0x1000_u64, 8], [argument.as_ptr() as u64, 0]);
            let (from, to) = (from.as_ptr() as u64, to.as_ptr() as u64);
            call(libc::SYS_process_vm_readv, [pid(), to, 1, from, 1])
        }
        "unix" => UnixStream::connect(argument).map(drop),
        "abstract" => {
            let address = SocketAddr::from_abstract_name(argument)?;
            UnixStream::connect_addr(&address).map(drop)
        }
        "pair" => UnixStream::pair().map(drop),
        "pair_sends" => {
            let (one, _other) = UnixDatagram::pair()?;
            one.send_to(b"x", argument).map(drop)
        }
        "pair_binds" => {
            let (one, _other) = UnixStream::pair()?;
            let address = rustix::net::SocketAddrUnix::new(argument)?;
            Ok(rustix::net::bind(&one, &address)?)
        }
        "exchange" => {
            let (one, other) = argument.split_once(' ').unwrap();
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            Ok(rustix::fs::renameat_with(rustix::fs::CWD, one, rustix::fs::CWD, other, flags)?)
        }
        // `setxattrat`, which is newer than the seccomp filter.
        "later" => call(463, [0; 5]).or_else(|error| match error.raw_os_error() {
            Some(libc::ENOSYS) => Err(error),
            _ => Ok(()),
        }),
        "flags" => {
            let file = std::fs::File::open(argument)?;
            let (number, flags) = (std::os::fd::AsRawFd::as_raw_fd(&file) as u64, [0_u64]);
            call(libc::SYS_ioctl, [number, 0x4008_6602, flags.as_ptr() as u64, 0, 0]).or_else(
                |error| match error.raw_os_error() {
                    Some(libc::EROFS) => Err(error),
                    _ => not_refused(error),
                },
            )
        }
        "tcp" => TcpStream::connect(argument).map(drop),
        // Connects and sends in one call, without `connect`.
        "fast_open" => {
            let address: SocketAddrV4 = argument.parse().unwrap();
            let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
            let flags = SendFlags::from_bits_retain(libc::MSG_FASTOPEN as u32);
            rustix::net::sendto(&socket, b"x", flags, &address)?;
            Ok(())
        }
        // A TCP connection over a socket of another protocol.
        "mptcp" => {
            let address: SocketAddrV4 = argument.parse().unwrap();
            let protocol = Some(ipproto::MPTCP);
            let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, protocol)?;
            Ok(rustix::net::connect(&socket, &address)?)
        }
        "udp" => UdpSocket::bind("127.0.0.1:0")?.send_to(b"x", argument).map(drop),
        "packet" => {
            call(libc::SYS_socket, [libc::AF_PACKET as u64, libc::SOCK_RAW as u64, 0, 0, 0])
        }
        "path_race" => race_path_guard(argument),
        // Counts as a success, so that a misspelled attempt that must fail breaks its test.
        other => {
            println!("unknown attempt: {other}");
            Ok(())
        }
    }
}

/// Returns success for every error but `EPERM`, because any other error shows that the filter
/// allowed the call.
fn not_refused(error: Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::EPERM) => Err(error),
        _ => Ok(()),
    }
}

/// Tries to reach a protected name by changing the path while the path guard checks it. The
/// argument is the name and the number of tries.
#[allow(unsafe_code, reason = "the attack changes memory during a system call")]
fn race_path_guard(argument: &str) -> io::Result<()> {
    use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
    let (name, tries) = argument.split_once(' ').unwrap();
    let good = b"a\0".to_vec();
    let mut buffer = vec![0_u8; 256];
    buffer[..good.len()].copy_from_slice(&good);
    let bad: Vec<u8> = name.bytes().chain([0]).collect();
    let address = AtomicPtr::new(buffer.as_mut_ptr());
    let done = AtomicBool::new(false);
    let existed = std::fs::symlink_metadata(name).is_ok();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for text in [&good, &bad] {
                    // SAFETY: both texts fit in the buffer, which outlives the scope. The race is
                    // intended.
                    unsafe {
                        std::ptr::copy_nonoverlapping(
                            text.as_ptr(),
                            address.load(Ordering::Relaxed),
                            text.len(),
                        );
                    }
                }
            }
        });
        let result = (0..tries.parse::<usize>().unwrap()).find(|index| {
            make_racing_call(*index, address.load(Ordering::Relaxed) as u64);
            !existed && index.is_multiple_of(64) && std::fs::symlink_metadata(name).is_ok()
        });
        done.store(true, Ordering::Relaxed);
        result.map(drop).ok_or_else(|| Error::from(io::ErrorKind::TimedOut))
    })
}

/// Makes one of the calls that create, change or remove a name.
fn make_racing_call(index: usize, path: u64) {
    let other = c"other".as_ptr() as u64;
    let cwd = i64::from(libc::AT_FDCWD) as u64;
    let open = |flags: i32| {
        #[allow(unsafe_code, reason = "raw system calls are what is tested")]
        // SAFETY: the path is that of a live buffer, and the descriptor is closed once.
        unsafe {
            let fd = libc::syscall(libc::SYS_openat, cwd, path, flags, 0o755);
            if let Ok(fd) = i32::try_from(fd)
                && fd >= 0
            {
                libc::write(fd, c"evil".as_ptr().cast(), 4);
                libc::close(fd);
            }
        }
    };
    match index % 12 {
        0 => open(libc::O_CREAT | libc::O_WRONLY),
        1 => open(libc::O_WRONLY | libc::O_TRUNC),
        2 => drop(call(libc::SYS_mknod, [path, (libc::S_IFREG | 0o755) as u64, 0, 0, 0])),
        3 => drop(call(libc::SYS_unlink, [path, 0, 0, 0, 0])),
        4 => drop(call(libc::SYS_mkdir, [path, 0o755, 0, 0, 0])),
        5 => drop(call(libc::SYS_rmdir, [path, 0, 0, 0, 0])),
        6 => drop(call(libc::SYS_symlink, [c"/tmp".as_ptr() as u64, path, 0, 0, 0])),
        7 => drop(call(libc::SYS_mknod, [other, (libc::S_IFREG | 0o755) as u64, 0, 0, 0])),
        8 => drop(call(libc::SYS_rename, [other, path, 0, 0, 0])),
        9 => drop(call(libc::SYS_link, [other, path, 0, 0, 0])),
        10 => drop(call(libc::SYS_truncate, [path, 0, 0, 0, 0])),
        _ => drop(call(libc::SYS_chmod, [path, 0o777, 0, 0, 0])),
    }
}
