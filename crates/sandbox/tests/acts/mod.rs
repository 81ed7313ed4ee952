//! What a caged process tries that no common program does for it. The test's own binary is run in
//! the cage once more, to do one of these.

use std::io::{self, Error};
use std::net::{TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};

fn check(result: i64) -> io::Result<()> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

#[allow(unsafe_code, reason = "these calls are what is tested")]
fn call(number: i64, arguments: [u64; 5]) -> io::Result<()> {
    let [a, b, c, d, e] = arguments;
    // SAFETY: every address that is passed is none or that of a live value.
    check(unsafe { libc::syscall(number, a, b, c, d, e) })
}

/// Does nothing unless it is told to.
#[test]
fn inside() {
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
        // `setxattrat`, which is newer than the rules.
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
        "udp" => UdpSocket::bind("127.0.0.1:0")?.send_to(b"x", argument).map(drop),
        "packet" => {
            call(libc::SYS_socket, [libc::AF_PACKET as u64, libc::SOCK_RAW as u64, 0, 0, 0])
        }
        "outruns" => outruns(argument),
        other => panic!("nobody knows how to {other}"),
    }
}

/// An error that says the filter let the call through.
fn not_refused(error: Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::EPERM) => Err(error),
        _ => Ok(()),
    }
}

/// Makes a name by changing the path while the door looks at it.
#[allow(unsafe_code, reason = "an attack on memory")]
fn outruns(name: &str) -> io::Result<()> {
    use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
    let good = format!("{:width$}\0", "a", width = 1).into_bytes();
    let mut buffer = vec![0_u8; 64];
    buffer[..good.len()].copy_from_slice(&good);
    let bad: Vec<u8> = name.bytes().chain([0]).collect();
    let address = AtomicPtr::new(buffer.as_mut_ptr());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for text in [&good, &bad] {
                    // SAFETY: both fit in the buffer, which outlives the scope; the race is meant.
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
        let mut result = Err(Error::from(io::ErrorKind::TimedOut));
        for _ in 0..20_000 {
            let path = address.load(Ordering::Relaxed) as u64;
            let flags = (libc::O_CREAT | libc::O_WRONLY) as u64;
            let _ = call(libc::SYS_mknod, [path, (libc::S_IFREG | 0o644) as u64, 0, 0, 0])
                .or_else(|_| call(libc::SYS_truncate, [path, flags, 0, 0, 0]));
            if std::fs::symlink_metadata(name).is_ok() {
                result = Ok(());
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
        result
    })
}
