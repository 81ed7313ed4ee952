//! Peak memory of the test process.

/// Returns the peak memory of this process since the last `reset_peak`.
pub fn peak_kb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim_end_matches("kB").trim().parse().unwrap()
}

/// Resets the peak, and returns the current memory in kB.
pub fn reset_peak() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    peak_kb()
}
