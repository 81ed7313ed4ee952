//! Resource usage of this process: memory, file descriptors, threads, child processes and CPU time.

use std::fmt;

/// The resource usage at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResourceSample {
    /// Resident memory in megabytes.
    pub(crate) memory: f64,
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
    pub(crate) children: usize,
}

impl ResourceSample {
    pub(crate) fn take() -> ResourceSample {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let number = |key: &str| -> f64 {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().unwrap()
        };
        ResourceSample {
            memory: number("VmRSS") / 1024.0,
            // Without the descriptor that reads the list.
            descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count() - 1,
            threads: number("Threads") as usize,
            children: children().len(),
        }
    }

    /// True if no count is higher than in `other`.
    pub(crate) fn is_within(&self, other: &ResourceSample) -> bool {
        self.descriptors <= other.descriptors
            && self.threads <= other.threads
            && self.children <= other.children
    }
}

impl fmt::Display for ResourceSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ResourceSample { memory, descriptors, threads, children } = self;
        write!(
            f,
            "{memory:.1} MB, {descriptors} descriptors, {threads} threads, {children} children"
        )
    }
}

/// Returns the fields of `/proc/PID/stat` after the name.
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

/// Returns the CPU time of this process and its children in seconds.
pub(crate) fn cpu_seconds() -> f64 {
    let ticks = |process: String| -> f64 {
        let stat = stat(&process).unwrap_or_default();
        stat.iter().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum()
    };
    let ticks: f64 = children().into_iter().chain(["self".to_owned()]).map(ticks).sum();
    ticks / rustix::param::clock_ticks_per_second() as f64
}

/// Returns the median memory of `samples`.
pub(crate) fn median_memory(samples: &[ResourceSample]) -> f64 {
    let mut all: Vec<f64> = samples.iter().map(|sample| sample.memory).collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
