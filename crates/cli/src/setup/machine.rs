//! The machine and its processes: random bytes, private files, limits and signals.
#![allow(
    clippy::disallowed_methods,
    reason = "the files are those of the user and of this process, not of a project"
)]

use super::LoadedProject;
use anyhow::{Context, bail};
use std::path::Path;

impl LoadedProject {
    /// Returns unpredictable random bytes from the system.
    pub(crate) fn random_bytes() -> anyhow::Result<[u8; 32]> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).context("cannot get random bytes from the system")?;
        Ok(bytes)
    }

    /// Rejects a secret file that group or others can access (`0o077`).
    #[cfg(unix)]
    pub(crate) fn check_private(path: &Path) -> anyhow::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let name = path.display();
        let metadata = path.metadata().with_context(|| format!("cannot read {name}"))?;
        if metadata.permissions().mode() & 0o077 != 0 {
            bail!(
                "{name} is readable by other users. Run `chmod 600 {name}`, or choose another file"
            );
        }
        Ok(())
    }

    #[cfg(not(unix))]
    pub(crate) fn check_private(_: &Path) -> anyhow::Result<()> {
        Ok(())
    }

    /// Returns the name of this machine.
    pub(crate) fn host_name() -> String {
        #[cfg(unix)]
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        #[cfg(not(unix))]
        let name = LoadedProject::env_variable("COMPUTERNAME").unwrap_or_default();
        name
    }

    /// Returns the name of this start of the machine, and of the space of its process ids. Processes
    /// of one host see each other.
    pub(crate) fn host_identity() -> Option<String> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let process_ids = std::fs::read_link("/proc/self/ns/pid").ok()?;
        Some(format!("{} {}", boot.trim(), process_ids.display()))
    }

    /// Returns false if no process of this machine has this id.
    pub(crate) fn is_process_running(pid: u32) -> bool {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, test_kill_process};
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            // A process of another user may not be sent signals, but runs.
            pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
        }
        #[cfg(not(unix))]
        {
            let _ = pid;
            true
        }
    }

    /// Raises the number of files that this process may have open to `count`, if the system permits.
    pub(crate) fn raise_open_file_limit(count: u64) {
        #[cfg(unix)]
        {
            use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
            let limit = getrlimit(Resource::Nofile);
            let count = limit.maximum.map_or(count, |maximum| count.min(maximum));
            if limit.current.is_some_and(|current| current < count) {
                let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(count), ..limit });
            }
        }
        #[cfg(not(unix))]
        let _ = count;
    }

    /// Asks another process of the user to stop.
    #[cfg(unix)]
    pub(crate) fn ask_process_to_stop(pid: u32) -> anyhow::Result<()> {
        use rustix::process::{Pid, Signal, kill_process};
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("invalid process id")?;
        kill_process(pid, Signal::TERM).context("cannot stop the process")
    }

    #[cfg(not(unix))]
    pub(crate) fn ask_process_to_stop(pid: u32) -> anyhow::Result<()> {
        bail!("end the process {pid} in the task manager")
    }

    /// Removes a socket of ours that no longer listens.
    pub(crate) fn remove_socket(path: &Path) -> std::io::Result<()> {
        std::fs::remove_file(path)
    }
}
