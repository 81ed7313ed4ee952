//! What the checks share.

use std::ffi::OsString;
use std::future::Future;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use windlass_sandbox::{Backend, Cage, Ending, Job, Jobs, Network, Order, Stdin};

/// Nothing here takes longer, or it hangs.
const LONGEST: Duration = Duration::from_secs(100);

pub fn run<T>(check: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(LONGEST, check).await.expect("it hangs") })
}

pub fn soak() -> bool {
    std::env::var_os("WINDLASS_SOAK").is_some()
}

pub fn cage() -> Cage {
    Cage {
        backend: Backend::Off,
        root: "/".into(),
        writable: true,
        write: Vec::new(),
        temp: "/tmp".into(),
        hidden: Vec::new(),
        private: Vec::new(),
        guarded: Vec::new(),
        network: Network::Open,
    }
}

/// The cages of this machine, around a folder.
pub fn cages(root: &Path, temp: &Path) -> Vec<Cage> {
    let bubblewrap = windlass_sandbox::probe().backend.clone();
    assert!(matches!(bubblewrap, Backend::Bubblewrap { .. }), "{bubblewrap:?}");
    let around = |backend| Cage {
        backend,
        root: root.canonicalize().unwrap(),
        temp: temp.canonicalize().unwrap(),
        network: Network::None,
        ..cage()
    };
    vec![around(bubblewrap), around(Backend::Landlock)]
}

pub fn environment() -> Vec<(OsString, OsString)> {
    vec![("PATH".into(), std::env::var_os("PATH").unwrap())]
}

pub fn order(command: &str) -> Order {
    Order {
        command: command.to_owned(),
        shell: "/bin/bash".into(),
        folder: "/".into(),
        env: environment(),
        cage: cage(),
        stdin: Stdin::Closed,
    }
}

pub fn with(stdin: Stdin, command: &str) -> Order {
    Order { stdin, ..order(command) }
}

pub async fn start(jobs: &Jobs, command: &str) -> Job {
    jobs.start(order(command)).await.unwrap()
}

/// What a command says and how it ends.
pub async fn said(jobs: &Jobs, command: &str) -> (String, Ending) {
    let job = start(jobs, command).await;
    let ending = job.ended().await;
    (text(&job), ending)
}

pub fn text(job: &Job) -> String {
    let heard = job.read();
    assert_eq!(heard.missing(), 0);
    String::from_utf8([heard.head, heard.tail].concat()).unwrap()
}

/// A word that nothing else on the machine has in its command line, and that `sleep` takes.
pub fn nap() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("600.{:07}{count:04}", std::process::id())
}

/// The living processes with a word in their command line.
pub fn alive(word: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A shell whose script names the nap counts too, but not ourselves or an owner.
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(word) && !line.contains(" owner ") {
            found.push(pid);
        }
    }
    found
}

/// Waits until something is so. Returns how long it took.
pub async fn until(what: &str, mut so: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    start.elapsed()
}

/// The process that keeps our commands.
pub fn keepers() -> Vec<i32> {
    let me = std::process::id();
    let children = std::fs::read_to_string(format!("/proc/{me}/task/{me}/children"));
    let mine = children.unwrap();
    let pids = mine.split_whitespace().map(|pid| pid.parse().unwrap());
    pids.filter(|pid| name(*pid) == "pawl").collect()
}

pub fn name(pid: i32) -> String {
    let name = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("comm"));
    name.unwrap_or_default().trim().to_owned()
}

pub fn kill(pid: i32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Names the folder that goes with an owner.
pub const TEMP: &str = "OWNERS_TEMP";

/// Runs commands, says that it does, and waits to be killed.
pub fn own(commands: &[String]) -> ExitCode {
    run(async {
        let jobs = match std::env::var_os(TEMP) {
            Some(temp) => Jobs::with_temp(Path::new(&temp)),
            None => Jobs::new(),
        };
        for command in commands {
            let job = start(&jobs, command).await;
            if !command.ends_with("wait") {
                job.ended().await;
            }
        }
        println!("ready");
        std::io::stdout().flush().unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
    });
    ExitCode::FAILURE
}

/// Commands of which something goes on, each in its own way.
pub fn detached(nap: &str) -> Vec<String> {
    vec![
        format!("sleep {nap} & echo done"),
        format!("nohup sleep {nap} >/dev/null 2>&1 & echo done"),
        format!("setsid -f sleep {nap}; echo done"),
        format!("(setsid bash -c 'sleep {nap} & disown; exec sleep {nap}' &) ; echo done"),
        format!("env -i /usr/bin/setsid -f /bin/sleep {nap}; echo done"),
        format!(
            "perl -e 'use POSIX; fork and exit; setsid; fork and exit; close STDOUT; close STDERR; exec \"sleep\", \"{nap}\"'; echo done"
        ),
        format!("trap '' TERM HUP INT; sleep {nap} & trap '' TERM; echo done"),
    ]
}
