//! Detects by trial which sandbox backend works on this machine.
//!
//! The detection runs once per process; `windlass doctor` prints the messages. Bubblewrap comes
//! from the system's own folders, never from a `PATH` that a repository may influence.

use super::SandboxBackend;
use std::sync::LazyLock;

/// Result of the detection.
#[derive(Clone, Debug)]
pub struct SandboxProbeResult {
    /// The best backend that works.
    pub backend: SandboxBackend,
    /// The version that bubblewrap reports, if it is installed.
    pub bubblewrap: Option<String>,
    /// Landlock ABI version, if the kernel supports Landlock.
    pub landlock: Option<i32>,
    /// The kernel supports seccomp user notification.
    pub has_user_notify: bool,
    /// Messages for the user, most important first.
    pub messages: Vec<String>,
}

/// Returns the `SandboxProbeResult` of this machine, detected once per process.
pub fn probe() -> &'static SandboxProbeResult {
    static PROBE_RESULT: LazyLock<SandboxProbeResult> = LazyLock::new(detect);
    &PROBE_RESULT
}

#[cfg(target_os = "linux")]
use linux::detect;
#[cfg(target_os = "linux")]
pub(crate) use linux::system_program;

#[cfg(target_os = "macos")]
fn detect() -> SandboxProbeResult {
    let messages = vec!["commands run under Seatbelt (not tested yet)".to_owned()];
    SandboxProbeResult {
        backend: SandboxBackend::Seatbelt,
        bubblewrap: None,
        landlock: None,
        has_user_notify: false,
        messages,
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn detect() -> SandboxProbeResult {
    let messages =
        vec!["no sandbox is available on this system. Every command requires approval".to_owned()];
    SandboxProbeResult {
        backend: SandboxBackend::Off,
        bubblewrap: None,
        landlock: None,
        has_user_notify: false,
        messages,
    }
}

#[cfg(target_os = "linux")]
mod linux {
    #![allow(clippy::disallowed_methods, reason = "starts bubblewrap and reads the kernel's state")]

    use super::super::landlock;
    use super::{SandboxBackend, SandboxProbeResult};
    use rustix::process::{Pid, Signal, kill_process_group};
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::thread;
    use std::time::Duration;

    const SYSTEM_BIN_FOLDERS: [&str; 3] = ["/usr/bin", "/bin", "/usr/local/bin"];

    /// The first version of bubblewrap that accepts several seccomp filters.
    const MIN_BUBBLEWRAP_VERSION: (u32, u32) = (0, 6);

    /// Time limit for one run of `bwrap`.
    const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

    /// The first Landlock ABI that restricts signals.
    const SIGNAL_SCOPE_VERSION: i32 = 6;

    pub(super) fn detect() -> SandboxProbeResult {
        let mut messages = Vec::new();
        let landlock = landlock::abi_version();
        let has_user_notify = fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail")
            .is_ok_and(|actions| actions.contains("user_notif"))
            && kernel_version().is_some_and(|version| version >= MIN_KERNEL_VERSION);
        let program = system_program("bwrap");
        let bubblewrap = program.as_deref().and_then(bubblewrap_version);
        let bubblewrap_works = match (&program, &bubblewrap) {
            (None, _) => {
                messages.push("bubblewrap is not installed; install the package `bubblewrap` for the strongest sandbox".to_owned());
                false
            }
            (Some(path), None) => {
                messages.push(format!(
                    "{} does not report its version, so it is not used",
                    path.display()
                ));
                false
            }
            (Some(path), Some(bubblewrap)) => try_bubblewrap(path, bubblewrap, &mut messages),
        };
        if !has_user_notify {
            messages.push(
                "this kernel does not support seccomp user notification (Linux 5.14), so commands \
                 cannot be sandboxed"
                    .to_owned(),
            );
        }
        let landlock_works = landlock.is_some_and(|version| version >= landlock::MIN_ABI_VERSION);
        messages.push(match landlock {
            Some(version) => format!("Landlock available (ABI {version})"),
            None => "Landlock not available: this kernel does not support it, or it is disabled"
                .to_owned(),
        });
        if landlock.is_some_and(|version| version < SIGNAL_SCOPE_VERSION) {
            messages.push(
                "Landlock of this kernel does not prevent commands from killing your other \
                 processes (Linux 6.12 does)"
                    .to_owned(),
            );
        }
        let backend = match program {
            Some(program) if bubblewrap_works && has_user_notify => {
                SandboxBackend::Bubblewrap { program }
            }
            Some(_) | None if landlock_works && has_user_notify => SandboxBackend::Landlock,
            Some(_) | None => SandboxBackend::Off,
        };
        let chosen = match &backend {
            SandboxBackend::Bubblewrap { .. } => "commands run in bubblewrap",
            SandboxBackend::Landlock => {
                "commands run under Landlock and seccomp, without their own namespaces (fallback)"
            }
            SandboxBackend::Off | SandboxBackend::Seatbelt => {
                "NO SANDBOX: commands cannot be sandboxed on this machine. Every command \
                 requires approval"
            }
        };
        messages.insert(0, chosen.to_owned());
        SandboxProbeResult { backend, bubblewrap, landlock, has_user_notify, messages }
    }

    /// The first kernel that hands a file over as the result of a suspended call.
    const MIN_KERNEL_VERSION: (u32, u32) = (5, 14);

    /// Returns major and minor version of the kernel.
    fn kernel_version() -> Option<(u32, u32)> {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    }

    /// Returns a program from the system's folders, independent of `PATH`.
    pub(crate) fn system_program(name: &str) -> Option<PathBuf> {
        SYSTEM_BIN_FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(is_root_owned)
    }

    /// Returns true for a file that only root can have put there.
    fn is_root_owned(path: &PathBuf) -> bool {
        let metadata = fs::metadata(path);
        metadata.is_ok_and(|metadata| {
            metadata.is_file() && metadata.uid() == 0 && metadata.mode() & 0o022 == 0
        })
    }

    fn bubblewrap_version(program: &Path) -> Option<String> {
        let output = run_with_timeout(Command::new(program).arg("--version"), PROBE_TIMEOUT)?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Runs bubblewrap once with every namespace that a sandbox needs.
    fn try_bubblewrap(program: &Path, version: &str, messages: &mut Vec<String>) -> bool {
        let numbers = version.rsplit(' ').next().unwrap_or_default();
        let mut numbers = numbers.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
        if (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < MIN_BUBBLEWRAP_VERSION {
            messages.push(format!("{version} is too old; 0.6 or newer is required"));
            return false;
        }
        let mut command = Command::new(program);
        command.args(["--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc"]);
        command.args(["--unshare-uts", "--cap-drop", "ALL", "--ro-bind", "/", "/"]);
        command.args(["--dev", "/dev", "--proc", "/proc", "--", "/bin/sh", "-c", ":"]);
        match run_with_timeout(&mut command, PROBE_TIMEOUT) {
            Some(output) if output.status.success() => true,
            Some(output) => {
                let reason = String::from_utf8_lossy(&output.stderr);
                let reason = reason.lines().next().unwrap_or("no reason given");
                messages.push(format!(
                    "{version} is installed but does not work: {reason}. {}",
                    namespace_advice()
                ));
                false
            }
            None => {
                messages.push(format!("{version} is installed but does not respond"));
                false
            }
        }
    }

    /// Returns advice on the usual obstacles to bubblewrap.
    fn namespace_advice() -> &'static str {
        let is_set = |path: &str, value: &str| {
            fs::read_to_string(path).is_ok_and(|text| text.trim() == value)
        };
        if is_set("/proc/sys/user/max_user_namespaces", "0")
            || is_set("/proc/sys/kernel/unprivileged_userns_clone", "0")
        {
            return "User namespaces are disabled; ask the administrator of this machine to \
                    enable them";
        }
        if is_set("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
            return "AppArmor blocks user namespaces; add a profile for bwrap that allows them";
        }
        "In a container, bubblewrap needs user namespaces and its own /proc"
    }

    /// Returns the output of a program if it ends within `time_limit`. The program runs in its own
    /// process group, because a child of bubblewrap waits forever if a hang-up ends bubblewrap
    /// alone. On timeout the whole group is killed.
    fn run_with_timeout(
        command: &mut Command,
        time_limit: Duration,
    ) -> Option<std::process::Output> {
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn().ok()?;
        let interval = Duration::from_millis(10);
        for _ in 0..time_limit.as_millis() / interval.as_millis() {
            match child.try_wait() {
                Ok(Some(_)) => return child.wait_with_output().ok(),
                Ok(None) => thread::sleep(interval),
                Err(_) => break,
            }
        }
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        let _ = child.wait();
        None
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::supervisor::process_tree::living_process;

        #[test]
        fn a_program_that_times_out_leaves_no_process() {
            let mut shell = Command::new("/bin/sh");
            let folder = tempfile::tempdir().unwrap();
            let pid_file = folder.path().join("pid");
            shell.args(["-c", "sleep 600 & echo $! >\"$0\"; wait"]).arg(&pid_file);
            assert!(run_with_timeout(&mut shell, Duration::from_millis(500)).is_none());
            let sleep_pid = fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
            // A process that init has not reaped yet is dead as well.
            for _ in 0..500 {
                if living_process(sleep_pid).is_none() {
                    return;
                }
                thread::sleep(Duration::from_millis(20));
            }
            panic!("the sleep process still runs");
        }
    }
}
