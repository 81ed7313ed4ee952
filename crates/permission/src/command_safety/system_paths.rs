//! Well-known paths: public ones, those that the system runs or trusts, and secret files.

use super::path_use::PathUse;
use super::risk::{Risk, RiskFinding};
use std::path::{Component, Path, PathBuf};

/// Paths outside the workspace that every command may read.
#[rustfmt::skip]
const PUBLIC_PATHS: &[&str] = &[
    "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/nix", "/tmp", "/etc/os-release",
    "/etc/lsb-release", "/etc/debian_version", "/etc/alpine-release", "/etc/hosts", "/etc/hostname",
    "/etc/resolv.conf", "/etc/issue", "/etc/timezone", "/etc/localtime", "/etc/services",
    "/etc/protocols", "/etc/shells", "/etc/mime.types", "/proc/cpuinfo", "/proc/meminfo",
    "/proc/version", "/proc/loadavg", "/proc/uptime", "/proc/stat", "/proc/filesystems",
    "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/stdin",
];

/// Paths below the home folder that every command may read.
#[rustfmt::skip]
const PUBLIC_HOME_PATHS: &[&str] = &[
    ".cargo/registry/src", ".cargo/git/checkouts", ".rustup/toolchains", "go/pkg/mod",
    ".m2/repository", ".nuget/packages", ".pub-cache/hosted", ".bun/install/cache",
];

/// Paths that the system runs or trusts.
#[rustfmt::skip]
const SYSTEM_PATHS: &[&str] = &[
    "/etc/sudoers", "/etc/sudoers.d", "/etc/passwd", "/etc/shadow", "/etc/group", "/etc/gshadow",
    "/etc/pam.d", "/etc/security", "/etc/ssh", "/etc/crontab", "/etc/cron.d", "/etc/cron.daily",
    "/etc/cron.hourly", "/etc/cron.weekly", "/etc/cron.monthly", "/etc/profile", "/etc/profile.d",
    "/etc/bash.bashrc", "/etc/bashrc", "/etc/zsh", "/etc/zshenv", "/etc/zshrc", "/etc/zprofile",
    "/etc/environment", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload",
    "/etc/systemd", "/etc/init.d", "/etc/rc.local", "/etc/xdg/autostart", "/etc/gitconfig", "/boot",
    "/var/spool/cron", "/usr/lib/systemd", "/lib/systemd",
];

/// Devices that can be written to without changing anything.
const OUTPUT_DEVICES: &[&str] = &["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"];

/// Returns true for `PUBLIC_PATHS` and `PUBLIC_HOME_PATHS`, which every command may read.
pub(crate) fn is_public_path(path: &Path, home: Option<&Path>) -> bool {
    let is_public_home_path =
        |home: &Path| PUBLIC_HOME_PATHS.iter().any(|part| path.starts_with(home.join(part)));
    is_under_any(path, PUBLIC_PATHS) || home.is_some_and(is_public_home_path)
}

/// Folders that contain the programs of the system.
const PROGRAM_FOLDERS: &[&str] =
    &["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/local/sbin"];

/// Returns true for a program of the system.
pub(super) fn is_system_program(path: &Path) -> bool {
    path.parent()
        .is_some_and(|folder| PROGRAM_FOLDERS.iter().any(|other| folder == Path::new(other)))
}

/// Returns true for `SYSTEM_PATHS`, which the system runs or trusts.
pub(crate) fn is_system_path(path: &Path) -> bool {
    is_under_any(path, SYSTEM_PATHS)
}

/// Evaluates special files of `/dev` and `/proc` that stand for something else.
pub(super) fn evaluate_device(path: &str, path_use: PathUse) -> Option<RiskFinding> {
    if path_use == PathUse::Write && OUTPUT_DEVICES.contains(&path) {
        return Some(RiskFinding::harmless());
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let process_files = ["cwd", "root", "fd", "environ", "mem", "exe", "task", "map_files", "maps"];
    match parts.as_slice() {
        ["dev", "tcp" | "udp", ..] if path.starts_with('/') => {
            Some(RiskFinding::new(Risk::Network, format!("`{path}` opens a network connection")))
        }
        ["dev", "fd", ..] if path.starts_with('/') => Some(RiskFinding::new(
            Risk::OutsideWorkspace,
            format!("the file behind `{path}` is unknown"),
        )),
        ["proc", _, name, ..] if path.starts_with('/') && process_files.contains(name) => {
            Some(RiskFinding::new(
                Risk::OutsideWorkspace,
                format!("`{path}` exposes files or memory of a process"),
            ))
        }
        ["dev", ..] if path.starts_with('/') && path_use == PathUse::Write => {
            Some(RiskFinding::new(Risk::Destructive, format!("`{path}` is a device")))
        }
        _ => None,
    }
}

fn is_under_any(path: &Path, folders: &[&str]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// Returns true for a name without wildcards, or a pattern that only some names match, such as
/// `*.log`.
pub(super) fn is_specific_name(pattern: &str) -> bool {
    let letters = pattern.chars().filter(char::is_ascii_alphanumeric).count();
    !pattern.contains(['*', '?', '[']) || letters >= 2 && !pattern.contains('[')
}

/// Removes `.` and `..` from a path by name, without resolving links.
pub(super) fn normalize_path(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normalized.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                normalized.push(part)
            }
        }
    }
    normalized
}

pub(super) fn secret_file_finding(path: &str) -> RiskFinding {
    let reason = format!("`{path}` usually contains secrets");
    RiskFinding { exposes_secrets: true, ..RiskFinding::new(Risk::OutsideWorkspace, reason) }
}
