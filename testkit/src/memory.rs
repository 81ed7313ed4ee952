//! How much memory the process of a test has had.

/// The most memory that this process has had since it was last told to forget, in kB.
pub fn most() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim_end_matches("kB").trim().parse().unwrap()
}

/// Forgets it, and says how much it is now.
pub fn forget() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    most()
}
