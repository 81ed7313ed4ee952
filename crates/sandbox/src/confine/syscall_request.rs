//! The system calls that create, change or remove files, decoded from their registers.
//!
//! Pointers stay addresses here: the memory behind them belongs to the sandboxed process, which may
//! change it at any time. So it is read once, and the copy is used.

use super::resolve_path::FinalSymlinkMode;

/// A path argument of a system call: the folder descriptor and the address of the text. Without an
/// address, the descriptor itself is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SyscallPath {
    pub folder_fd: Option<i32>,
    pub address: u64,
    pub final_symlink: FinalSymlinkMode,
}

/// A system call that the notify filter reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyscallRequest {
    Open { path: SyscallPath, flags: i32, mode: u32 },
    MakeFolder { path: SyscallPath, mode: u32 },
    MakeNode { path: SyscallPath, mode: u32, device: u64 },
    Remove { path: SyscallPath, flags: i32 },
    Rename { from: SyscallPath, to: SyscallPath, flags: u32 },
    Link { from: SyscallPath, to: SyscallPath },
    Symlink { target_address: u64, path: SyscallPath },
    Truncate { path: SyscallPath, length: u64 },
    SetMode { path: SyscallPath, mode: u32 },
    SetOwner { path: SyscallPath, user: u32, group: u32 },
    SetTimes { path: SyscallPath, times: TimesArgument },
    SetAttribute { path: SyscallPath, name: u64, value: u64, size: usize, flags: u32 },
    RemoveAttribute { path: SyscallPath, name: u64 },
    Bind { fd: i32, address: u64, length: usize },
}

/// The address of the times that a call sets, and their layout. The address 0 means now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimesArgument {
    /// Two `timespec`s.
    Nanoseconds(u64),
    /// Two `timeval`s.
    Microseconds(u64),
    /// A `utimbuf`: two numbers of seconds.
    Seconds(u64),
}

impl SyscallRequest {
    /// Decodes a call. `None` for calls that the filter does not report.
    #[allow(clippy::too_many_lines, reason = "a table")]
    pub(super) fn decode(number: i32, arguments: &[u64; 6]) -> Option<SyscallRequest> {
        use FinalSymlinkMode::{Follow, Keep};
        let [first, second, third, fourth, fifth, _] = *arguments;
        let at = |folder: u64, address: u64, final_symlink| SyscallPath {
            folder_fd: Some(as_fd(folder)),
            address,
            final_symlink,
        };
        let at_cwd =
            |address: u64, final_symlink| SyscallPath { folder_fd: None, address, final_symlink };
        let descriptor =
            |fd: u64| SyscallPath { folder_fd: Some(as_fd(fd)), address: 0, final_symlink: Follow };
        let unless_no_follow = |flags: u64| match flags as i32 & libc::AT_SYMLINK_NOFOLLOW {
            0 => Follow,
            _ => Keep,
        };
        let if_follow = |flags: u64| match flags as i32 & libc::AT_SYMLINK_FOLLOW {
            0 => Keep,
            _ => Follow,
        };
        Some(match i64::from(number) {
            libc::SYS_openat => {
                let (flags, mode) = (third as i32, fourth as u32);
                SyscallRequest::Open { path: at(first, second, open_mode(flags)), flags, mode }
            }
            libc::SYS_mkdirat => {
                SyscallRequest::MakeFolder { path: at(first, second, Keep), mode: third as u32 }
            }
            libc::SYS_mknodat => SyscallRequest::MakeNode {
                path: at(first, second, Keep),
                mode: third as u32,
                device: fourth,
            },
            libc::SYS_unlinkat => {
                SyscallRequest::Remove { path: at(first, second, Keep), flags: third as i32 }
            }
            libc::SYS_renameat2 => SyscallRequest::Rename {
                from: at(first, second, Keep),
                to: at(third, fourth, Keep),
                flags: fifth as u32,
            },
            libc::SYS_linkat => SyscallRequest::Link {
                from: at(first, second, if_follow(fifth)),
                to: at(third, fourth, Keep),
            },
            libc::SYS_symlinkat => {
                SyscallRequest::Symlink { target_address: first, path: at(second, third, Keep) }
            }
            libc::SYS_truncate => {
                SyscallRequest::Truncate { path: at_cwd(first, Follow), length: second }
            }
            libc::SYS_fchmod => {
                SyscallRequest::SetMode { path: descriptor(first), mode: second as u32 }
            }
            libc::SYS_fchmodat => {
                SyscallRequest::SetMode { path: at(first, second, Follow), mode: third as u32 }
            }
            libc::SYS_fchmodat2 => SyscallRequest::SetMode {
                path: at(first, second, unless_no_follow(fourth)),
                mode: third as u32,
            },
            libc::SYS_fchown => {
                let (user, group) = (second as u32, third as u32);
                SyscallRequest::SetOwner { path: descriptor(first), user, group }
            }
            libc::SYS_fchownat => SyscallRequest::SetOwner {
                path: at(first, second, unless_no_follow(fifth)),
                user: third as u32,
                group: fourth as u32,
            },
            libc::SYS_utimensat => SyscallRequest::SetTimes {
                path: at(first, second, unless_no_follow(fourth)),
                times: TimesArgument::Nanoseconds(third),
            },
            libc::SYS_setxattr | libc::SYS_lsetxattr | libc::SYS_fsetxattr => {
                SyscallRequest::SetAttribute {
                    path: attribute_path(number, first),
                    name: second,
                    value: third,
                    size: usize::try_from(fourth).unwrap_or(usize::MAX),
                    flags: fifth as u32,
                }
            }
            libc::SYS_removexattr | libc::SYS_lremovexattr | libc::SYS_fremovexattr => {
                SyscallRequest::RemoveAttribute {
                    path: attribute_path(number, first),
                    name: second,
                }
            }
            libc::SYS_bind => SyscallRequest::Bind {
                fd: as_fd(first),
                address: second,
                length: third as u32 as usize,
            },
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            libc::SYS_renameat => SyscallRequest::Rename {
                from: at(first, second, Keep),
                to: at(third, fourth, Keep),
                flags: 0,
            },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => {
                let (flags, mode) = (second as i32, third as u32);
                SyscallRequest::Open { path: at_cwd(first, open_mode(flags)), flags, mode }
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => SyscallRequest::Open {
                path: at_cwd(first, Follow),
                flags: libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC,
                mode: second as u32,
            },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mkdir => {
                SyscallRequest::MakeFolder { path: at_cwd(first, Keep), mode: second as u32 }
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mknod => SyscallRequest::MakeNode {
                path: at_cwd(first, Keep),
                mode: second as u32,
                device: third,
            },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_unlink => SyscallRequest::Remove { path: at_cwd(first, Keep), flags: 0 },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rmdir => {
                SyscallRequest::Remove { path: at_cwd(first, Keep), flags: libc::AT_REMOVEDIR }
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => SyscallRequest::Rename {
                from: at_cwd(first, Keep),
                to: at_cwd(second, Keep),
                flags: 0,
            },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_link => {
                SyscallRequest::Link { from: at_cwd(first, Keep), to: at_cwd(second, Keep) }
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_symlink => {
                SyscallRequest::Symlink { target_address: first, path: at_cwd(second, Keep) }
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_chmod => {
                SyscallRequest::SetMode { path: at_cwd(first, Follow), mode: second as u32 }
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_chown | libc::SYS_lchown => SyscallRequest::SetOwner {
                path: at_cwd(
                    first,
                    if i64::from(number) == libc::SYS_chown { Follow } else { Keep },
                ),
                user: second as u32,
                group: third as u32,
            },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_utime => SyscallRequest::SetTimes {
                path: at_cwd(first, Follow),
                times: TimesArgument::Seconds(second),
            },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_utimes => SyscallRequest::SetTimes {
                path: at_cwd(first, Follow),
                times: TimesArgument::Microseconds(second),
            },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_futimesat => SyscallRequest::SetTimes {
                path: at(first, second, Follow),
                times: TimesArgument::Microseconds(third),
            },
            _ => return None,
        })
    }

    /// Returns the paths that the call affects: the one it moves or links from, and the one it
    /// creates, changes or removes.
    pub(super) fn paths(&self) -> (Option<SyscallPath>, Option<SyscallPath>) {
        match *self {
            SyscallRequest::Rename { from, to, .. } | SyscallRequest::Link { from, to } => {
                (Some(from), Some(to))
            }
            SyscallRequest::Open { path, .. }
            | SyscallRequest::MakeFolder { path, .. }
            | SyscallRequest::MakeNode { path, .. }
            | SyscallRequest::Remove { path, .. }
            | SyscallRequest::Symlink { path, .. }
            | SyscallRequest::Truncate { path, .. }
            | SyscallRequest::SetMode { path, .. }
            | SyscallRequest::SetOwner { path, .. }
            | SyscallRequest::SetTimes { path, .. }
            | SyscallRequest::SetAttribute { path, .. }
            | SyscallRequest::RemoveAttribute { path, .. } => (None, Some(path)),
            SyscallRequest::Bind { .. } => (None, None),
        }
    }

    /// Returns true if the call removes a name or gives it to another file.
    pub(super) fn is_removal(&self) -> bool {
        matches!(self, SyscallRequest::Remove { .. } | SyscallRequest::Rename { .. })
    }

    /// Returns true if the call swaps two names.
    pub(super) fn is_exchange(&self) -> bool {
        matches!(self, SyscallRequest::Rename { flags, .. } if flags & libc::RENAME_EXCHANGE != 0)
    }
}

/// Descriptors have 32 bits, so the upper bits of the register do not count.
fn as_fd(register: u64) -> i32 {
    register as u32 as i32
}

fn open_mode(flags: i32) -> FinalSymlinkMode {
    let keeps_link =
        flags & libc::O_NOFOLLOW != 0 || flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0;
    if keeps_link { FinalSymlinkMode::Keep } else { FinalSymlinkMode::Follow }
}

fn attribute_path(number: i32, first: u64) -> SyscallPath {
    match i64::from(number) {
        libc::SYS_fsetxattr | libc::SYS_fremovexattr => SyscallPath {
            folder_fd: Some(as_fd(first)),
            address: 0,
            final_symlink: FinalSymlinkMode::Follow,
        },
        libc::SYS_lsetxattr | libc::SYS_lremovexattr => {
            SyscallPath { folder_fd: None, address: first, final_symlink: FinalSymlinkMode::Keep }
        }
        _ => {
            SyscallPath { folder_fd: None, address: first, final_symlink: FinalSymlinkMode::Follow }
        }
    }
}
