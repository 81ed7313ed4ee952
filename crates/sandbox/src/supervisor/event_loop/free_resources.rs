//! Memory and disk space that the machine has left.

use super::super::messages::SpawnRequest;
use rustix::fs::statvfs;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

/// A job is not blamed for a full disk if the free space shrank by less while it ran.
const MIN_DISK_SHRINK: u64 = 64 << 20;

/// Returns the memory that programs can get without swapping, in bytes.
pub(super) fn available_memory() -> Option<u64> {
    parse_available(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// A file system that a job can fill.
pub(super) struct WatchedDisk {
    path: PathBuf,
    free_at_start: u64,
}

impl WatchedDisk {
    /// Returns the file systems of a job's folder and its temporary files.
    pub(super) fn of_job(request: &SpawnRequest) -> Vec<WatchedDisk> {
        let folder = PathBuf::from(OsString::from(&request.folder));
        let paths = [folder, request.sandbox.temp_dir.clone()].into_iter();
        let watch = |path: PathBuf| Some(WatchedDisk { free_at_start: free_bytes(&path)?, path });
        paths.filter_map(watch).collect()
    }

    /// Returns true if little space is left, and there was clearly more when the job started.
    pub(super) fn is_filled(&self, min_free: u64) -> bool {
        let Some(free) = free_bytes(&self.path) else { return false };
        free < min_free && self.free_at_start.saturating_sub(free) >= MIN_DISK_SHRINK
    }
}

fn free_bytes(path: &PathBuf) -> Option<u64> {
    let disk = statvfs(path).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::parse_available;

    #[test]
    fn available_memory_is_read_from_meminfo() {
        let text = "MemTotal:       24000000 kB\nMemFree:  1 kB\nMemAvailable:   12345 kB\n";
        assert_eq!(parse_available(text), Some(12_345 * 1024));
        assert_eq!(parse_available("MemTotal: 5 kB\n"), None);
        assert!(super::available_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
