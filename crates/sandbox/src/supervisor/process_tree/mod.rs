//! The process tree, read from `/proc`.

use super::job_mark::JobMark;
use crate::command::command_types::LeftoverProcess;
use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Limits the command line in a process description.
const MAX_COMMAND_LINE_CHARS: usize = 200;

/// A process as read from `/proc/<pid>/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessInfo {
    pub(crate) pid: i32,
    parent_pid: i32,
    pub(crate) process_group: i32,
    pub(crate) session: i32,
    is_alive: bool,
}

/// Returns every living descendant of `ancestor`, each with the child of `ancestor` that it
/// descends from.
///
/// While `/proc` is read, parents exit and their children move to `ancestor`. A child read before
/// that has a parent that no longer exists, and its whole subtree would be missed; a fork bomb
/// consists mostly of such processes. A process cannot join the session of another, so every
/// process in a session that a descendant is in is a descendant as well.
pub(crate) fn descendants(ancestor: i32) -> Vec<(ProcessInfo, ProcessInfo)> {
    select_descendants(ancestor, all_pids().filter_map(read_process))
}

/// Selects the descendants of `ancestor` from processes that were not all read at the same time.
fn select_descendants(
    ancestor: i32,
    all_processes: impl Iterator<Item = ProcessInfo>,
) -> Vec<(ProcessInfo, ProcessInfo)> {
    let mut children: HashMap<i32, Vec<ProcessInfo>> = HashMap::new();
    let mut own_session = None;
    for process in all_processes {
        if process.pid == ancestor {
            own_session = Some(process.session);
        }
        children.entry(process.parent_pid).or_default().push(process);
    }
    let direct = children.remove(&ancestor).unwrap_or_default();
    let mut pending: Vec<_> = direct.into_iter().map(|process| (process, process)).collect();
    let mut processes = Vec::new();
    while let Some((process, top)) = pending.pop() {
        // Removes the entry, so that even a cycle, which can appear when parents change during the
        // walk, ends.
        let next = children.remove(&process.pid).unwrap_or_default();
        pending.extend(next.into_iter().map(|child| (child, top)));
        processes.push((process, top));
    }
    let sessions: HashMap<i32, ProcessInfo> =
        processes.iter().map(|(process, top)| (process.session, *top)).collect();
    let missed = children.into_values().flatten().filter(|process| process.pid != ancestor);
    processes.extend(
        missed
            .filter(|process| Some(process.session) != own_session)
            .filter_map(|process| sessions.get(&process.session).map(|top| (process, *top))),
    );
    // The walk passes through dead processes, because their children may be alive, but does not
    // return them.
    processes.retain(|(process, _)| process.is_alive);
    processes
}

/// Returns the resident memory of a process in bytes, or 0 if it is gone.
pub(crate) fn memory_bytes(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// Returns the children of a single-threaded process, including exited ones that are not reaped.
/// Returns `None` if the kernel does not provide them.
pub(crate) fn child_pids(pid: i32) -> Option<Vec<i32>> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    text.split_ascii_whitespace().map(|pid| pid.parse().ok()).collect()
}

/// Counts the descendants of a process, up to a limit, without reading the other processes of the
/// system. Processes that change their parent during the count can be missed or counted twice.
/// Returns the limit if the kernel does not list the children of processes.
pub(crate) fn count_descendants(ancestor: i32, limit: usize) -> usize {
    let mut pending = vec![ancestor];
    let mut count = 0;
    while let Some(pid) = pending.pop().filter(|_| count < limit) {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let Ok(children) = fs::read_to_string(task.path().join("children")) else {
                // A thread that has just exited has no children; the ancestor has not exited.
                match pid == ancestor {
                    true => return limit,
                    false => continue,
                }
            };
            let children =
                children.split_ascii_whitespace().filter_map(|child| child.parse::<i32>().ok());
            let before = pending.len();
            pending.extend(children);
            count += pending.len() - before;
        }
    }
    count.min(limit)
}

/// Returns a process unless it has exited.
pub(crate) fn living_process(pid: i32) -> Option<ProcessInfo> {
    read_process(pid).filter(|process| process.is_alive)
}

/// Returns a process if it runs exactly this file and has no living child.
pub(crate) fn childless_process(pid: i32, program: (u64, u64)) -> Option<ProcessInfo> {
    let is_dead = |child: &i32| living_process(*child).is_none();
    let is_childless = runs_program(pid, program) && child_pids(pid)?.iter().all(is_dead);
    read_process(pid).filter(|_| is_childless)
}

/// Returns the number of threads in the whole system: no job can have more processes.
pub(crate) fn system_thread_count() -> usize {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let total = text.split_ascii_whitespace().nth(3).and_then(|word| word.split_once('/'));
    total.and_then(|(_, total)| total.parse().ok()).unwrap_or(usize::MAX)
}

/// Returns the processes of all jobs of a supervisor.
pub(crate) fn find_marked(supervisor_pid: u32) -> Vec<i32> {
    let is_marked = |pid: &i32| {
        JobMark::of_process(*pid).is_some_and(|mark| mark.supervisor_pid == supervisor_pid)
    };
    all_pids().filter(is_marked).collect()
}

/// Describes a process for users and the model.
pub(crate) fn describe_process(pid: i32) -> Option<LeftoverProcess> {
    let folder = Path::new("/proc").join(pid.to_string());
    let name = fs::read(folder.join("comm")).ok()?;
    let mut command_line = Vec::new();
    let file = fs::File::open(folder.join("cmdline")).ok()?;
    file.take(4 * MAX_COMMAND_LINE_CHARS as u64).read_to_end(&mut command_line).ok()?;
    let command_line = String::from_utf8_lossy(&command_line);
    let command_line =
        short_command_line(command_line.split('\0').filter(|argument| !argument.is_empty()));
    let name = short_command_line([String::from_utf8_lossy(&name).trim_end()]);
    Some(LeftoverProcess {
        pid,
        command_line: if command_line.is_empty() { name.clone() } else { command_line },
        name,
    })
}

/// Returns true if a process runs exactly this file, or is so close to its exit that it runs none.
pub(crate) fn runs_program(pid: i32, program: (u64, u64)) -> bool {
    let metadata = fs::metadata(format!("/proc/{pid}/exe"));
    metadata.map_or(true, |metadata| (metadata.dev(), metadata.ino()) == program)
}

/// Joins arguments into one short line without control characters.
pub(crate) fn short_command_line<'a>(arguments: impl IntoIterator<Item = &'a str>) -> String {
    let line = arguments.into_iter().collect::<Vec<_>>().join(" ");
    let plain = line.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(MAX_COMMAND_LINE_CHARS).collect()
}

fn all_pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn read_process(pid: i32) -> Option<ProcessInfo> {
    let mut text = [0; 512];
    let mut file = fs::File::open(format!("/proc/{pid}/stat")).ok()?;
    let length = file.read(&mut text).ok()?;
    parse_stat(pid, text.get(..length)?)
}

/// Parses `/proc/<pid>/stat`. The name may contain anything, including parentheses and spaces, so
/// the parser skips it from the end. A process whose first thread has exited looks dead, but is
/// alive as long as it has other threads.
fn parse_stat(pid: i32, text: &[u8]) -> Option<ProcessInfo> {
    let end = memchr::memrchr(b')', text)?;
    let rest = std::str::from_utf8(text.get(end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    let mut number = || fields.next()?.parse().ok();
    let (parent_pid, process_group, session) = (number()?, number()?, number()?);
    let threads: i32 = fields.nth(13)?.parse().ok()?;
    Some(ProcessInfo { pid, parent_pid, process_group, session, is_alive: !is_dead || threads > 1 })
}

#[cfg(test)]
mod tests;
