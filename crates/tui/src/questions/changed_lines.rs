//! A unified diff without its context lines, for a screen that has no room for them.

/// Removes the context lines of a unified diff. Each run of changed lines becomes a hunk with its
/// own header, so that line numbers stay right. A diff in another form is returned as it is.
pub(crate) fn without_context(unified_diff: &str) -> String {
    let mut output = String::new();
    let (mut old_line, mut new_line) = (0, 0);
    let (mut in_hunk, mut run): (bool, Vec<&str>) = (false, Vec::new());
    for line in unified_diff.split_inclusive('\n') {
        if let Some(starts) = hunk_starts(line) {
            push_run(&mut output, &mut run, (&mut old_line, &mut new_line));
            (old_line, new_line) = starts;
            in_hunk = true;
            continue;
        }
        match line.chars().next() {
            Some('+' | '-') if in_hunk && !is_file_header(line) => run.push(line),
            Some('\\') if in_hunk && !run.is_empty() => run.push(line),
            Some(' ' | '\n') if in_hunk => {
                push_run(&mut output, &mut run, (&mut old_line, &mut new_line));
                old_line += 1;
                new_line += 1;
            }
            _ => {
                push_run(&mut output, &mut run, (&mut old_line, &mut new_line));
                in_hunk = false;
                output.push_str(line);
            }
        }
    }
    push_run(&mut output, &mut run, (&mut old_line, &mut new_line));
    output
}

/// Writes a run of changed lines as a hunk and advances the line numbers behind it.
fn push_run(output: &mut String, run: &mut Vec<&str>, (old, new): (&mut usize, &mut usize)) {
    if run.is_empty() {
        return;
    }
    let removed = run.iter().filter(|line| line.starts_with('-')).count();
    let added = run.iter().filter(|line| line.starts_with('+')).count();
    output.push_str(&format!("@@ -{old},{removed} +{new},{added} @@\n"));
    run.drain(..).for_each(|line| output.push_str(line));
    *old += removed;
    *new += added;
}

/// Returns the first line numbers in a hunk header such as `@@ -3,7 +3,8 @@`.
fn hunk_starts(line: &str) -> Option<(usize, usize)> {
    let mut ranges = line.strip_prefix("@@ -")?.split(' ');
    let start = |range: &str| range.split(',').next()?.parse::<usize>().ok();
    let old = start(ranges.next()?)?;
    let new = start(ranges.next()?.strip_prefix('+')?)?;
    Some((old, new))
}

/// Returns true for the header lines of the next file, which look like changed lines.
fn is_file_header(line: &str) -> bool {
    line.starts_with("--- a/") || line.starts_with("+++ b/") || line.starts_with("--- /dev/null")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_lines_stay_with_their_numbers() {
        let diff = "--- a/x\n+++ b/x\n@@ -3,7 +3,7 @@ fn f\n c\n d\n-old\n+new\n e\n-f\n g\n";
        assert_eq!(
            without_context(diff),
            "--- a/x\n+++ b/x\n@@ -5,1 +5,1 @@\n-old\n+new\n@@ -7,1 +7,0 @@\n-f\n"
        );
        assert_eq!(without_context("no diff\n"), "no diff\n");
    }
}
