//! What the process takes: memory, descriptors, threads, children, time.

use std::fmt;

/// One look at the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Resident megabytes.
    pub(crate) memory: f64,
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
    pub(crate) children: usize,
}

impl Sample {
    pub(crate) fn take() -> Sample {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let number = |key: &str| -> f64 {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().unwrap()
        };
        Sample {
            memory: number("VmRSS") / 1024.0,
            // The one that lists them is among them.
            descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count() - 1,
            threads: number("Threads") as usize,
            children: children().len(),
        }
    }

    /// True if it has nothing that the other has not.
    pub(crate) fn is_within(&self, other: &Sample) -> bool {
        self.descriptors <= other.descriptors
            && self.threads <= other.threads
            && self.children <= other.children
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sample { memory, descriptors, threads, children } = self;
        write!(
            f,
            "{memory:.1} MB, {descriptors} descriptors, {threads} threads, {children} children"
        )
    }
}

/// What stands in `/proc/PID/stat` behind the name, which may hold anything.
fn stat(process: &str) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    Some(rest.split(' ').map(str::to_owned).collect())
}

fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let processes = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    processes.filter(|process| stat(process).is_some_and(|stat| stat[1] == own)).collect()
}

/// Seconds of the processors that this process and its children have had.
pub(crate) fn worked() -> f64 {
    let ticks = |process: String| -> f64 {
        let stat = stat(&process).unwrap_or_default();
        stat.iter().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum()
    };
    let ticks: f64 = children().into_iter().chain(["self".to_owned()]).map(ticks).sum();
    ticks / rustix::param::clock_ticks_per_second() as f64
}

/// The median memory of some samples.
pub(crate) fn median(samples: &[Sample]) -> f64 {
    let mut all: Vec<f64> = samples.iter().map(|sample| sample.memory).collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
