//! Who descends from whom, as `/proc` tells it.

use super::MARK;
use crate::command::Running;
use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How much of a command line is told.
const LINE: usize = 200;

/// A living process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) pid: i32,
    parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    lives: bool,
}

/// Every living process beneath one, each with the child of that one it descends from.
pub(crate) fn beneath(elder: i32) -> Vec<(Member, Member)> {
    let mut children: HashMap<i32, Vec<Member>> = HashMap::new();
    for pid in everybody() {
        if let Some(member) = look(pid) {
            children.entry(member.parent).or_default().push(member);
        }
    }
    let first = children.remove(&elder).unwrap_or_default();
    let mut open: Vec<_> = first.into_iter().map(|member| (member, member)).collect();
    let mut found = Vec::new();
    while let Some((member, top)) = open.pop() {
        // Taken out, so that not even a loop, which parents changing under the walk might fake,
        // keeps it.
        let next = children.remove(&member.pid).unwrap_or_default();
        open.extend(next.into_iter().map(|child| (child, top)));
        found.push((member, top));
    }
    // The dead are walked through, as their children may live, but do not count.
    found.retain(|(member, _)| member.lives);
    found
}

/// The memory of a process, in bytes; nothing if it is gone.
pub(crate) fn memory(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// The children of a process of one thread, also those that have ended and were not reaped. `None`
/// where the system does not say.
pub(crate) fn children(pid: i32) -> Option<Vec<i32>> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    text.split_ascii_whitespace().map(|pid| pid.parse().ok()).collect()
}

/// A process, if it runs this very file and has no living child.
pub(crate) fn alone(pid: i32, program: (u64, u64)) -> Option<Member> {
    let dead = |child: &i32| look(*child).is_none_or(|child| !child.lives);
    let alone = runs(pid, program) && children(pid)?.iter().all(dead);
    look(pid).filter(|_| alone)
}

/// How many threads the whole system has: no job can have more processes.
pub(crate) fn total() -> usize {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let total = text.split_ascii_whitespace().nth(3).and_then(|word| word.split_once('/'));
    total.and_then(|(_, total)| total.parse().ok()).unwrap_or(usize::MAX)
}

/// What a process was marked with when it, or who started it, was started.
pub(crate) fn mark(pid: i32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut entries = environment.split(|byte| *byte == 0);
    let mark = entries.find_map(|entry| entry.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))?;
    Some(String::from_utf8_lossy(mark).into_owned())
}

/// Every process whose mark starts like this.
pub(crate) fn marked(head: &str) -> Vec<i32> {
    everybody().filter(|pid| mark(*pid).is_some_and(|mark| mark.starts_with(head))).collect()
}

/// What a person or a model recognises a process by.
pub(crate) fn introduce(pid: i32) -> Option<Running> {
    let folder = Path::new("/proc").join(pid.to_string());
    let name = fs::read(folder.join("comm")).ok()?;
    let mut line = Vec::new();
    let file = fs::File::open(folder.join("cmdline")).ok()?;
    file.take(4 * LINE as u64).read_to_end(&mut line).ok()?;
    let line = String::from_utf8_lossy(&line);
    let line = shorten(line.split('\0').filter(|word| !word.is_empty()));
    let name = shorten([String::from_utf8_lossy(&name).trim_end()]);
    Some(Running { pid, line: if line.is_empty() { name.clone() } else { line }, name })
}

/// True if a process runs this very file, or is so near its end that it runs none.
pub(crate) fn runs(pid: i32, program: (u64, u64)) -> bool {
    let found = fs::metadata(format!("/proc/{pid}/exe"));
    found.map_or(true, |found| (found.dev(), found.ino()) == program)
}

/// Words as one short line.
pub(crate) fn shorten<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let line = words.into_iter().collect::<Vec<_>>().join(" ");
    let plain = line.chars().map(|char| if char.is_control() { ' ' } else { char });
    plain.take(LINE).collect()
}

fn everybody() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn look(pid: i32) -> Option<Member> {
    let mut text = [0; 512];
    let mut file = fs::File::open(format!("/proc/{pid}/stat")).ok()?;
    let length = file.read(&mut text).ok()?;
    read(pid, text.get(..length)?)
}

/// The name may hold anything, also brackets and spaces, so it is skipped from the end. One whose
/// first thread has ended looks dead, but lives as long as it has others.
fn read(pid: i32, text: &[u8]) -> Option<Member> {
    let end = memchr::memrchr(b')', text)?;
    let rest = std::str::from_utf8(text.get(end + 1..)?).ok()?;
    let mut words = rest.split_ascii_whitespace();
    let dead = matches!(words.next()?, "Z" | "X");
    let mut number = || words.next()?.parse().ok();
    let (parent, group, session) = (number()?, number()?, number()?);
    let threads: i32 = words.nth(13)?.parse().ok()?;
    Some(Member { pid, parent, group, session, lives: !dead || threads > 1 })
}

#[cfg(test)]
mod tests;
