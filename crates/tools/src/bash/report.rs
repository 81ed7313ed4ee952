//! Renders the result of a command for the model: its output in order, its exit, and processes
//! still running.

use std::time::Duration;
use windlass_protocol::{OutputDisplay, ToolOutput};
use windlass_sandbox::{CapturedOutput, ExitReport, HostAttempt, Job, ProcessExit};
use windlass_toolkit::CallFailure;
use windlass_toolkit::truncate_output::strip_controls;

/// Limits in bytes and lines for the head and the tail of an output that was not kept whole. Both
/// fit into a tool result, so that the counts between them are never truncated.
const HEAD_LIMITS: (usize, usize) = (16 << 10, 700);
const TAIL_LIMITS: (usize, usize) = (24 << 10, 1_000);

/// Hosts listed in the `network` metadata.
const MAX_LISTED_HOSTS: usize = 50;

/// Builds the result of a job that has ended, or was killed after the time in `timed_out`.
pub(super) fn report_job(job: &Job, timed_out: Option<Duration>) -> ToolOutput {
    let (output, exit) = (job.output(), job.exit_report());
    let mut text = match job.take_whole_output() {
        Some(whole) => job.mask_secrets(&String::from_utf8_lossy(&whole)),
        None => render_output(&output, |text| job.mask_secrets(text)),
    };
    if output.total_bytes == 0 {
        text.push_str("(no output)");
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&describe_exit(exit.as_ref(), timed_out));
    if exit.as_ref().is_some_and(|exit| !exit.leftover.is_empty()) {
        let arguments = format!("{{\"id\": {}, \"action\": \"kill\"}}", job.id());
        text.push_str(&format!("\n(end what still runs with job {arguments})"));
    }
    text.push_str(&format_notes(&job.final_notes()));
    let mut metadata = serde_json::Map::new();
    metadata.insert("bytes".to_owned(), output.total_bytes.into());
    metadata.insert("lines".to_owned(), output.total_lines.into());
    if let Some(ExitReport { exit: ProcessExit::Code(code), .. }) = &exit {
        metadata.insert("exit".to_owned(), (*code).into());
    }
    let hosts = describe_hosts(&job.host_attempts(0), job.dropped_hosts());
    if !hosts.is_empty() {
        metadata.insert("network".to_owned(), hosts.into());
    }
    let title = match &exit {
        Some(ExitReport { exit: ProcessExit::Code(code), .. }) => format!("exit {code}"),
        Some(_) | None => String::new(),
    };
    let display = OutputDisplay::Terminal { colored_text: None };
    ToolOutput { title, text, metadata, display, ..ToolOutput::default() }
}

/// Describes in one line how a command ended.
pub(crate) fn describe_exit(exit: Option<&ExitReport>, timed_out: Option<Duration>) -> String {
    let duration_suffix = |exit: &ExitReport| match exit.duration.as_secs() {
        0 => String::new(),
        seconds => format!(" after {seconds} s"),
    };
    let mut line = match (timed_out, exit) {
        (Some(timeout), _) => format!(
            "killed: timed out after {} s. Set a longer timeout, or run it in the background",
            timeout.as_secs_f32()
        ),
        (None, None) => "still running".to_owned(),
        (None, Some(exit)) => match exit.exit {
            ProcessExit::Code(code) => format!("exit code {code}{}", duration_suffix(exit)),
            ProcessExit::Signal(signal) => {
                format!("killed by signal {signal}{}", duration_suffix(exit))
            }
            ProcessExit::TooManyProcesses(limit) => {
                format!("killed: it had more than {limit} processes")
            }
            ProcessExit::OutOfMemory => "killed: the machine was almost out of memory".to_owned(),
            ProcessExit::DiskFull => "killed: the disk was almost full".to_owned(),
            ProcessExit::SupervisorLost => {
                "exit status unknown: the supervisor was killed".to_owned()
            }
        },
    };
    if let Some(ExitReport { leftover, more_leftover, .. }) =
        exit.filter(|exit| !exit.leftover.is_empty())
    {
        let names: Vec<String> = leftover.iter().map(|process| process.name.clone()).collect();
        line.push_str(&format!("; still running: {}", names.join(", ")));
        if *more_leftover > 0 {
            line.push_str(&format!(" and {more_leftover} more"));
        }
    }
    format!("({line})")
}

/// Builds the failure of an interrupted command, with its output so far and its notes.
pub(super) fn interrupted_failure(job: &Job) -> CallFailure {
    let text = render_output(&job.output(), |text| job.mask_secrets(text));
    let notes = format_notes(&job.notes());
    CallFailure::new(format!("{text}\n(interrupted; the command was killed){notes}"))
}

/// Formats notes, one per line.
pub(crate) fn format_notes(notes: &[String]) -> String {
    notes.iter().map(|note| format!("\n({note})")).collect()
}

/// Lists the hosts that a command tried to reach, for the log: allowed ones first.
fn describe_hosts(attempts: &[HostAttempt], dropped_count: u64) -> Vec<String> {
    let (refused, allowed): (Vec<_>, Vec<_>) =
        attempts.iter().partition(|attempt| attempt.refusal.is_some());
    let mut lines: Vec<String> = Vec::new();
    for attempt in allowed.iter().chain(&refused).take(MAX_LISTED_HOSTS) {
        let times =
            if attempt.count > 1 { format!(" {} times", attempt.count) } else { String::new() };
        lines.push(match &attempt.refusal {
            None => format!("{}{times}", attempt.host),
            Some(reason) => format!("{}{times} (refused: {reason})", attempt.host),
        });
    }
    match attempts.len().saturating_sub(MAX_LISTED_HOSTS) as u64 + dropped_count {
        0 => {}
        more => lines.push(format!("and {more} more")),
    }
    lines
}

/// Renders the output: whole if it was kept whole, else its head and tail with the gap between them
/// counted. Limits apply to the rendered text, since bytes that are not text grow.
fn render_output(output: &CapturedOutput, mask: impl Fn(&str) -> String) -> String {
    if output.dropped_bytes() == 0 {
        let whole = [output.head.as_slice(), &output.tail].concat();
        return mask(&String::from_utf8_lossy(&whole));
    }
    let render = |part: &[u8]| strip_controls(&mask(&String::from_utf8_lossy(part)));
    let head = fit_to_limit(
        HEAD_LIMITS,
        |bytes| {
            let part = output.head.get(..bytes).unwrap_or(&output.head);
            let line = memchr::memchr_iter(b'\n', part).nth(HEAD_LIMITS.1 - 1);
            line.and_then(|line| part.get(..=line)).unwrap_or(part)
        },
        render,
    );
    let tail = fit_to_limit(
        TAIL_LIMITS,
        |bytes| {
            let part =
                output.tail.get(output.tail.len().saturating_sub(bytes)..).unwrap_or(&output.tail);
            let line = memchr::memrchr_iter(b'\n', part).nth(TAIL_LIMITS.1);
            line.and_then(|line| part.get(line + 1..)).unwrap_or(part)
        },
        render,
    );
    let line_ends = |part: &[u8]| memchr::memchr_iter(b'\n', part).count() as u64;
    // The last line counts even without a line ending.
    let unterminated = u64::from(tail.last().is_some_and(|last| *last != b'\n'));
    let bytes = output.total_bytes.saturating_sub((head.len() + tail.len()) as u64);
    let omitted_lines =
        output.total_lines.saturating_sub(line_ends(head) + line_ends(tail) + unterminated);
    format!(
        "{}\n[... {bytes} bytes in {omitted_lines} lines omitted, of {} bytes in {} lines; they \
         were not saved ...]\n{}",
        render(head),
        output.total_bytes,
        output.total_lines,
        render(tail),
    )
}

/// Returns the largest part, as `part` cuts it to a number of bytes, whose rendering fits the
/// limit.
fn fit_to_limit<'a>(
    (limit, _): (usize, usize),
    part: impl Fn(usize) -> &'a [u8],
    render: impl Fn(&[u8]) -> String,
) -> &'a [u8] {
    let mut bytes = limit;
    loop {
        let candidate = part(bytes);
        let length = render(candidate).len();
        if length <= limit || bytes == 0 {
            return candidate;
        }
        // Shrinks in proportion, and always by at least one byte.
        bytes = (bytes * limit / length).min(bytes - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(all: &[u8]) -> CapturedOutput {
        let tail = all.len() - (256 << 10);
        let line_ends = all.iter().filter(|byte| **byte == b'\n').count() as u64;
        CapturedOutput {
            head: all[..64 << 10].to_vec(),
            tail: all[tail..].to_vec(),
            total_bytes: all.len() as u64,
            total_lines: line_ends + u64::from(all.last() != Some(&b'\n')),
        }
    }

    /// Returns the text that the model receives after truncation.
    fn model_text(all: &[u8]) -> String {
        let text = format!("{}\n(exit code 0)", render_output(&output(all), str::to_owned));
        let text = strip_controls(&text);
        let truncated = windlass_toolkit::truncate_output::truncate(&text, Default::default(), "r");
        truncated.unwrap_or(text)
    }

    #[test]
    fn the_byte_count_is_kept_for_any_bytes() {
        for byte in [0xff, 0x00, 0x1b, 0x7f, b'x', b'\n', 0xe2] {
            let text = model_text(&vec![byte; 1 << 20]);
            assert!(text.contains("of 1048576 bytes in"), "{byte}: {}", text.len());
            assert!(text.len() < 50 << 10 && text.ends_with("(exit code 0)"), "{byte}");
        }
    }

    #[test]
    fn omitted_lines_are_counted_exactly() {
        for end in ["", "\n"] {
            let all = format!("{}last{end}", "a line\n".repeat(100_000));
            let text = model_text(all.as_bytes());
            let (head, rest) = text.split_once("\n[... ").unwrap();
            let (note, tail) = rest.split_once("]\n").unwrap();
            let omitted: usize = note.split(' ').nth(3).unwrap().parse().unwrap();
            let tail = tail.strip_suffix("\n(exit code 0)").unwrap();
            let shown_lines = head.lines().count() + tail.lines().count();
            assert_eq!(shown_lines + omitted, 100_001, "{note}");
        }
    }

    #[test]
    fn hosts_are_limited_and_allowed_ones_come_first() {
        let refused = |number| HostAttempt {
            host: format!("h{number}:443"),
            refusal: Some("not listed".to_owned()),
            count: 1,
        };
        let mut all: Vec<HostAttempt> = (0..200).map(refused).collect();
        all.push(HostAttempt { host: "reached:443".to_owned(), refusal: None, count: 3 });
        let lines = describe_hosts(&all, 7);
        assert_eq!(lines.len(), MAX_LISTED_HOSTS + 1);
        assert_eq!(lines[0], "reached:443 3 times");
        assert_eq!(lines.last().unwrap(), &format!("and {} more", 201 - MAX_LISTED_HOSTS + 7));
    }
}
