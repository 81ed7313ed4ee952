//! What a model is told of a command: its output in order, how it ended, what still runs.

use std::time::Duration;
use windlass_protocol::{Display, Output};
use windlass_sandbox::{Ending, Exit, Heard, Reached, Task};
use windlass_toolkit::Failure;
use windlass_toolkit::bound::plain;

/// How much of an output that was not kept whole is shown, in bytes and lines: of its head, and of
/// its tail. Both fit into what a model is given, so that the counts between them stay.
const HEAD: (usize, usize) = (16 << 10, 700);
const TAIL: (usize, usize) = (24 << 10, 1_000);

/// How many hosts are named in the record.
const HOSTS: usize = 50;

/// The result of a command that has ended, or was ended after so long.
pub(super) fn report(task: &Task, stopped: Option<Duration>) -> Output {
    let (heard, end) = (task.heard(), task.ending());
    let mut text = told(&heard, |text| task.mask(text));
    if heard.bytes == 0 {
        text.push_str("(no output)");
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&ending(end.as_ref(), stopped));
    text.push_str(&remarked(&task.last_remarks()));
    let mut metadata = serde_json::Map::new();
    metadata.insert("bytes".to_owned(), heard.bytes.into());
    metadata.insert("lines".to_owned(), heard.lines.into());
    if let Some(Ending { exit: Exit::Code(code), .. }) = &end {
        metadata.insert("exit".to_owned(), (*code).into());
    }
    let hosts = network(&task.reached(0), task.unkept());
    if !hosts.is_empty() {
        metadata.insert("network".to_owned(), hosts.into());
    }
    let display = Display::Terminal { coloured: None };
    Output { title: task.command().to_owned(), text, metadata, display, ..Output::default() }
}

/// How a command ended, in a line of its own.
pub(crate) fn ending(end: Option<&Ending>, stopped: Option<Duration>) -> String {
    let took = |end: &Ending| match end.took.as_secs() {
        0 => String::new(),
        seconds => format!(" after {seconds} s"),
    };
    let mut line = match (stopped, end) {
        (Some(patience), _) => format!(
            "ended, because it still ran after {} s. Give it more time, or run it in the background",
            patience.as_secs_f32()
        ),
        (None, None) => "still running".to_owned(),
        (None, Some(end)) => match end.exit {
            Exit::Code(code) => format!("exit code {code}{}", took(end)),
            Exit::Signal(signal) => format!("ended by signal {signal}{}", took(end)),
            Exit::Crowded(most) => format!("ended, because it had more than {most} processes"),
            Exit::Lost => "lost: what runs commands was ended from outside".to_owned(),
        },
    };
    if let Some(Ending { still, more, .. }) = end.filter(|end| !end.still.is_empty()) {
        let names: Vec<String> =
            still.iter().map(|left| format!("{} (pid {})", left.name, left.pid)).collect();
        line.push_str(&format!("; still running: {}", names.join(", ")));
        if *more > 0 {
            line.push_str(&format!(" and {more} more"));
        }
    }
    format!("({line})")
}

/// What a command that was interrupted has said, and what must be known of it.
pub(super) fn interrupted(task: &Task) -> Failure {
    let text = told(&task.heard(), |text| task.mask(text));
    let remarks = remarked(&task.remarks());
    Failure::new(format!("{text}\n(interrupted; the command was ended){remarks}"))
}

/// Remarks, each in a line of its own.
pub(crate) fn remarked(remarks: &[String]) -> String {
    remarks.iter().map(|remark| format!("\n({remark})")).collect()
}

/// Where a command went, for the record: what was let through first.
fn network(reached: &[Reached], unkept: u64) -> Vec<String> {
    let (refused, allowed): (Vec<_>, Vec<_>) =
        reached.iter().partition(|one| one.refused.is_some());
    let mut lines: Vec<String> = Vec::new();
    for one in allowed.iter().chain(&refused).take(HOSTS) {
        let times = if one.times > 1 { format!(" {} times", one.times) } else { String::new() };
        lines.push(match &one.refused {
            None => format!("{}{times}", one.host),
            Some(why) => format!("{}{times} (refused: {why})", one.host),
        });
    }
    match reached.len().saturating_sub(HOSTS) as u64 + unkept {
        0 => {}
        more => lines.push(format!("and {more} more")),
    }
    lines
}

/// The output as text: whole if it was kept whole, else its head and tail with what lies between
/// counted. What is shown is measured as it is shown, since bytes that are no text grow.
fn told(heard: &Heard, mask: impl Fn(&str) -> String) -> String {
    if heard.missing() == 0 {
        let whole = [heard.head.as_slice(), &heard.tail].concat();
        return mask(&String::from_utf8_lossy(&whole));
    }
    let shown = |part: &[u8]| plain(&mask(&String::from_utf8_lossy(part)));
    let head = fit(
        HEAD,
        |bytes| {
            let part = heard.head.get(..bytes).unwrap_or(&heard.head);
            let line = memchr::memchr_iter(b'\n', part).nth(HEAD.1 - 1);
            line.and_then(|line| part.get(..=line)).unwrap_or(part)
        },
        shown,
    );
    let tail = fit(
        TAIL,
        |bytes| {
            let part =
                heard.tail.get(heard.tail.len().saturating_sub(bytes)..).unwrap_or(&heard.tail);
            let line = memchr::memrchr_iter(b'\n', part).nth(TAIL.1);
            line.and_then(|line| part.get(line + 1..)).unwrap_or(part)
        },
        shown,
    );
    let ends = |part: &[u8]| memchr::memchr_iter(b'\n', part).count() as u64;
    // The last line counts, also if it has no end.
    let open = u64::from(tail.last().is_some_and(|last| *last != b'\n'));
    let bytes = heard.bytes.saturating_sub((head.len() + tail.len()) as u64);
    let between = heard.lines.saturating_sub(ends(head) + ends(tail) + open);
    format!(
        "{}\n[... {bytes} bytes in {between} lines left out here, of {} bytes in {} lines; they were \
         not kept ...]\n{}",
        shown(head),
        heard.bytes,
        heard.lines,
        shown(tail),
    )
}

/// The largest part, as `part` cuts it to a number of bytes, that is within the limit as it is
/// shown.
fn fit<'a>(
    (limit, _): (usize, usize),
    part: impl Fn(usize) -> &'a [u8],
    shown: impl Fn(&[u8]) -> String,
) -> &'a [u8] {
    let mut bytes = limit;
    loop {
        let fits = part(bytes);
        let length = shown(fits).len();
        if length <= limit || bytes == 0 {
            return fits;
        }
        // In proportion, and always less than before.
        bytes = (bytes * limit / length).min(bytes - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(all: &[u8]) -> Heard {
        let tail = all.len() - (256 << 10);
        let ends = all.iter().filter(|byte| **byte == b'\n').count() as u64;
        Heard {
            head: all[..64 << 10].to_vec(),
            tail: all[tail..].to_vec(),
            bytes: all.len() as u64,
            lines: ends + u64::from(all.last() != Some(&b'\n')),
        }
    }

    /// What a model is given, as the road bounds it.
    fn given(all: &[u8]) -> String {
        let text = format!("{}\n(exit code 0)", told(&heard(all), str::to_owned));
        let text = plain(&text);
        let cut = windlass_toolkit::bound::cut(&text, Default::default(), "r");
        cut.unwrap_or(text)
    }

    #[test]
    fn the_counts_stay_whatever_the_bytes_are() {
        for byte in [0xff, 0x00, 0x1b, 0x7f, b'x', b'\n', 0xe2] {
            let text = given(&vec![byte; 1 << 20]);
            assert!(text.contains("of 1048576 bytes in"), "{byte}: {}", text.len());
            assert!(text.len() < 50 << 10 && text.ends_with("(exit code 0)"), "{byte}");
        }
    }

    #[test]
    fn what_is_left_out_is_counted_exactly_with_and_without_a_last_line_end() {
        for end in ["", "\n"] {
            let all = format!("{}last{end}", "a line\n".repeat(100_000));
            let text = given(all.as_bytes());
            let (head, rest) = text.split_once("\n[... ").unwrap();
            let (note, tail) = rest.split_once("]\n").unwrap();
            let between: usize = note.split(' ').nth(3).unwrap().parse().unwrap();
            let tail = tail.strip_suffix("\n(exit code 0)").unwrap();
            let kept = head.lines().count() + tail.lines().count();
            assert_eq!(kept + between, 100_001, "{note}");
        }
    }

    #[test]
    fn where_it_went_is_bounded_and_what_was_let_through_comes_first() {
        let refused = |number| Reached {
            host: format!("h{number}:443"),
            refused: Some("not listed".to_owned()),
            times: 1,
        };
        let mut all: Vec<Reached> = (0..200).map(refused).collect();
        all.push(Reached { host: "reached:443".to_owned(), refused: None, times: 3 });
        let lines = network(&all, 7);
        assert_eq!(lines.len(), HOSTS + 1);
        assert_eq!(lines[0], "reached:443 3 times");
        assert_eq!(lines.last().unwrap(), &format!("and {} more", 201 - HOSTS + 7));
    }
}
