//! What this machine has to enclose a command with, found out by trying.
//!
//! It looks once for each process; `windlass doctor` prints the sentences. Bubblewrap is taken from
//! the system's own folders, never from a `PATH` that a repository may have a say in.

use super::Backend;
use std::sync::LazyLock;

/// What was found.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The best that works.
    pub backend: Backend,
    /// What bubblewrap says it is, if it is here.
    pub bubblewrap: Option<String>,
    /// The version of Landlock's interface, if the kernel has it.
    pub landlock: Option<i32>,
    /// Whether the kernel asks somebody about system calls.
    pub asks: bool,
    /// What a person should know, most important first.
    pub words: Vec<String>,
}

/// What this machine gives.
pub fn probe() -> &'static Probe {
    static PROBE: LazyLock<Probe> = LazyLock::new(look);
    &PROBE
}

#[cfg(target_os = "linux")]
use linux::look;
#[cfg(target_os = "linux")]
pub(crate) use linux::system_program;

#[cfg(target_os = "macos")]
fn look() -> Probe {
    let words = vec!["commands run under Seatbelt; this has not been tested yet".to_owned()];
    Probe { backend: Backend::Seatbelt, bubblewrap: None, landlock: None, asks: false, words }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn look() -> Probe {
    let words = vec![
        "there is no sandbox for commands on this system. Every command is asked about".to_owned(),
    ];
    Probe { backend: Backend::Off, bubblewrap: None, landlock: None, asks: false, words }
}

#[cfg(target_os = "linux")]
mod linux {
    #![allow(clippy::disallowed_methods, reason = "starts bubblewrap and reads the kernel's state")]

    use super::super::landlock;
    use super::{Backend, Probe};
    use rustix::process::{Pid, Signal, kill_process_group};
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::thread;
    use std::time::Duration;

    const FOLDERS: [&str; 3] = ["/usr/bin", "/bin", "/usr/local/bin"];

    /// The first version with several filters.
    const OLDEST: (u32, u32) = (0, 6);

    /// The version of Landlock that a cage cannot do without, see `landlock`.
    const LANDLOCK: i32 = 3;

    /// How long a program may take to answer.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// The first that knows signals.
    const SIGNALS: i32 = 6;

    pub(super) fn look() -> Probe {
        let mut words = Vec::new();
        let landlock = landlock::version();
        let asks = fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail")
            .is_ok_and(|actions| actions.contains("user_notif"));
        let found = system_program("bwrap");
        let said = found.as_deref().and_then(version);
        let works = match (&found, &said) {
            (None, _) => {
                words.push("bubblewrap is not installed; install the package `bubblewrap` for the strongest sandbox".to_owned());
                false
            }
            (Some(path), None) => {
                words.push(format!(
                    "{} does not say which version it is, so it is not used",
                    path.display()
                ));
                false
            }
            (Some(path), Some(said)) => tried(path, said, &mut words),
        };
        if !asks {
            words.push("this kernel cannot ask about system calls (seccomp user notification, Linux 5.0), so commands cannot be contained".to_owned());
        }
        let landlocks = landlock.is_some_and(|version| version >= LANDLOCK);
        words.push(match landlock {
            Some(version) => format!("Landlock is here, version {version} of its interface"),
            None => "this kernel has no Landlock, or it is switched off".to_owned(),
        });
        if landlock.is_some_and(|version| version < SIGNALS) {
            words.push("Landlock of this kernel does not keep commands from ending your other processes (Linux 6.12 does)".to_owned());
        }
        let backend = match found {
            Some(program) if works && asks => Backend::Bubblewrap { program },
            Some(_) | None if landlocks && asks => Backend::Landlock,
            Some(_) | None => Backend::Off,
        };
        let chosen = match &backend {
            Backend::Bubblewrap { .. } => "commands run in bubblewrap",
            Backend::Landlock => {
                "commands run under Landlock and seccomp, without namespaces of their own: the fallback"
            }
            Backend::Off | Backend::Seatbelt => {
                "NO SANDBOX: commands cannot be contained on this machine. Every command is asked about"
            }
        };
        words.insert(0, chosen.to_owned());
        Probe { backend, bubblewrap: said, landlock, asks, words }
    }

    /// A program of the system, whatever a search path says.
    pub(crate) fn system_program(name: &str) -> Option<PathBuf> {
        FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(trusted)
    }

    /// Nobody but root can have put it there.
    fn trusted(path: &PathBuf) -> bool {
        let metadata = fs::metadata(path);
        metadata.is_ok_and(|it| it.is_file() && it.uid() == 0 && it.mode() & 0o022 == 0)
    }

    fn version(program: &Path) -> Option<String> {
        let output = run(Command::new(program).arg("--version"), PATIENCE)?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Runs it once with every namespace that a cage needs.
    fn tried(program: &Path, said: &str, words: &mut Vec<String>) -> bool {
        let numbers = said.rsplit(' ').next().unwrap_or_default();
        let mut numbers = numbers.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
        if (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < OLDEST {
            words.push(format!("{said} is too old; 0.6 or newer is needed"));
            return false;
        }
        let mut command = Command::new(program);
        command.args(["--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc"]);
        command.args(["--unshare-uts", "--cap-drop", "ALL", "--ro-bind", "/", "/"]);
        command.args(["--dev", "/dev", "--proc", "/proc", "--", "/bin/sh", "-c", ":"]);
        match run(&mut command, PATIENCE) {
            Some(output) if output.status.success() => true,
            Some(output) => {
                let why = String::from_utf8_lossy(&output.stderr);
                let why = why.lines().next().unwrap_or("it does not say why");
                words.push(format!("{said} is here but does not work: {why}. {}", advice()));
                false
            }
            None => {
                words.push(format!("{said} is here but does not answer"));
                false
            }
        }
    }

    /// What usually keeps bubblewrap from working.
    fn advice() -> &'static str {
        let off = |path: &str, value: &str| {
            fs::read_to_string(path).is_ok_and(|text| text.trim() == value)
        };
        if off("/proc/sys/user/max_user_namespaces", "0")
            || off("/proc/sys/kernel/unprivileged_userns_clone", "0")
        {
            return "User namespaces are switched off; ask whoever runs this machine to allow them";
        }
        if off("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
            return "AppArmor keeps programs from making user namespaces; a profile for bwrap allows it";
        }
        "In a container, it needs user namespaces and a /proc of its own"
    }

    /// What a program said, if it ended soon. It is a group of its own, because what bubblewrap starts
    /// waits for it for good if a hang-up ends it alone; and if it is ended, all of the group is.
    fn run(command: &mut Command, patience: Duration) -> Option<std::process::Output> {
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn().ok()?;
        let pause = Duration::from_millis(10);
        for _ in 0..patience.as_millis() / pause.as_millis() {
            match child.try_wait() {
                Ok(Some(_)) => return child.wait_with_output().ok(),
                Ok(None) => thread::sleep(pause),
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
        use rustix::process::test_kill_process;

        #[test]
        fn of_a_program_that_does_not_answer_nothing_is_left() {
            let mut shell = Command::new("/bin/sh");
            let folder = tempfile::tempdir().unwrap();
            let told = folder.path().join("told");
            shell.args(["-c", "sleep 600 & echo $! >\"$0\"; wait"]).arg(&told);
            assert!(run(&mut shell, Duration::from_millis(500)).is_none());
            let sleeper = fs::read_to_string(&told).unwrap().trim().parse().unwrap();
            let sleeper = Pid::from_raw(sleeper).unwrap();
            for _ in 0..100 {
                if test_kill_process(sleeper).is_err() {
                    return;
                }
                thread::sleep(Duration::from_millis(20));
            }
            panic!("it sleeps on");
        }
    }
}
