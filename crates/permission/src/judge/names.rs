//! Names of places beyond the workspace: what anybody may read, what the system believes.

use super::class::{Class, Finding};
use super::paths::Use;
use std::path::{Component, Path, PathBuf};

/// What anybody may read beyond the workspace.
#[rustfmt::skip]
const PUBLIC: &[&str] = &[
    "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/nix", "/tmp", "/etc/os-release",
    "/etc/lsb-release", "/etc/debian_version", "/etc/alpine-release", "/etc/hosts", "/etc/hostname",
    "/etc/resolv.conf", "/etc/issue", "/etc/timezone", "/etc/localtime", "/etc/services",
    "/etc/protocols", "/etc/shells", "/etc/mime.types", "/proc/cpuinfo", "/proc/meminfo",
    "/proc/version", "/proc/loadavg", "/proc/uptime", "/proc/stat", "/proc/filesystems",
    "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/stdin",
];

/// The same, below the home folder.
#[rustfmt::skip]
const PUBLIC_AT_HOME: &[&str] = &[".cargo/registry/src", ".rustup/toolchains", "go/pkg/mod"];

/// What the system runs or believes.
#[rustfmt::skip]
const SYSTEM: &[&str] = &[
    "/etc/sudoers", "/etc/sudoers.d", "/etc/passwd", "/etc/shadow", "/etc/group", "/etc/gshadow",
    "/etc/pam.d", "/etc/security", "/etc/ssh", "/etc/crontab", "/etc/cron.d", "/etc/cron.daily",
    "/etc/cron.hourly", "/etc/cron.weekly", "/etc/cron.monthly", "/etc/profile", "/etc/profile.d",
    "/etc/bash.bashrc", "/etc/bashrc", "/etc/zsh", "/etc/zshenv", "/etc/zshrc", "/etc/zprofile",
    "/etc/environment", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload",
    "/etc/systemd", "/etc/init.d", "/etc/rc.local", "/etc/xdg/autostart", "/etc/gitconfig", "/boot",
    "/var/spool/cron", "/usr/lib/systemd", "/lib/systemd",
];

/// What may be written to without a change to anything.
const SINKS: &[&str] = &["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"];

/// True for what anybody may read.
pub(super) fn is_public(path: &Path, home: Option<&Path>) -> bool {
    let kept = |home: &Path| PUBLIC_AT_HOME.iter().any(|part| path.starts_with(home.join(part)));
    under(path, PUBLIC) || home.is_some_and(kept)
}

/// True for what the system runs or believes.
pub(super) fn is_system(path: &Path) -> bool {
    under(path, SYSTEM)
}

/// Names of the system that stand for something else.
pub(super) fn device(path: &str, how: Use) -> Option<Finding> {
    if how == Use::Write && SINKS.contains(&path) {
        return Some(Finding::harmless());
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let alias = ["cwd", "root", "fd", "environ", "mem", "exe", "task", "map_files", "maps"];
    match parts.as_slice() {
        ["dev", "tcp" | "udp", ..] if path.starts_with('/') => {
            Some(Finding::new(Class::Network, format!("{path} opens a connection")))
        }
        ["dev", "fd", ..] if path.starts_with('/') => {
            Some(Finding::new(Class::Beyond, format!("nobody knows what {path} is")))
        }
        ["proc", _, name, ..] if path.starts_with('/') && alias.contains(name) => {
            Some(Finding::new(Class::Beyond, format!("{path} is another name of something")))
        }
        ["dev", ..] if path.starts_with('/') && how == Use::Write => {
            Some(Finding::new(Class::Guard, format!("{path} is a device")))
        }
        _ => None,
    }
}

fn under(path: &Path, folders: &[&str]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// The path without `.` and `..`, as it is spelled.
pub(super) fn straighten(path: &Path) -> PathBuf {
    let mut straight = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                straight.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => straight.push(part),
        }
    }
    straight
}
