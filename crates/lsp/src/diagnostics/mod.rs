//! Diagnostics after a change: comparison with those before, and the text of a report.
//!
//! Positions move with every edit, so diagnostics are compared by message and by the text of their
//! line, never by position. This module performs no I/O.

pub(crate) mod late;
pub(crate) mod wait_for_diagnostics;

use crate::documents::diagnostic_store::LspDiagnostic;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use windlass_protocol::display_text::truncate_chars;

/// Limit for the diagnostics of one file in a report.
const MAX_SHOWN_DIAGNOSTICS: usize = 20;
/// Limit for the characters of a message, or of a source line, in a report.
const MAX_SHOWN_CHARS: usize = 300;
/// Limit for other files in a review.
pub(crate) const MAX_OTHER_FILES: usize = 5;
const MAX_REVIEW_BYTES: usize = 6 << 10;

/// Returns the diagnostics of `after` that are new, and the number of those that existed before. A
/// diagnostic whose line text is unknown matches any other with the same code and message.
pub(crate) fn new_diagnostics(
    before: &[LspDiagnostic],
    after: Vec<LspDiagnostic>,
) -> (Vec<LspDiagnostic>, usize) {
    let mut known: BTreeMap<(&str, &str), Vec<Option<&str>>> = BTreeMap::new();
    for finding in before {
        let texts = known.entry((&finding.code, &finding.message)).or_default();
        texts.push(finding.source_line.as_deref());
    }
    type LineComparison = fn(Option<&str>, Option<&str>) -> bool;
    let passes: [LineComparison; 2] = [|a, b| a == b, |a, b| a.is_none() || b.is_none()];
    let mut matched = vec![false; after.len()];
    for matches in passes {
        for (finding, matched) in after.iter().zip(&mut matched).filter(|(_, matched)| !**matched) {
            let key = (finding.code.as_str(), finding.message.as_str());
            let Some(texts) = known.get_mut(&key) else { continue };
            let index =
                texts.iter().position(|text| matches(*text, finding.source_line.as_deref()));
            *matched = index.map(|index| texts.swap_remove(index)).is_some();
        }
    }
    let remaining = matched.iter().filter(|matched| **matched).count();
    drop(known);
    let new = after.into_iter().zip(matched).filter(|(_, matched)| !matched);
    let new = new.map(|(finding, _)| finding).collect();
    (new, remaining)
}

/// Report on one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileDiagnosticsReport {
    pub(crate) path: String,
    pub(crate) new: Vec<LspDiagnostic>,
    pub(crate) remaining: usize,
    /// Nothing was known of the file before, so all its errors are reported.
    pub(crate) first_seen: bool,
}

/// Formats the report of a server on a change; empty if there is nothing to report.
pub(crate) fn review_text(
    server: &str,
    own: &[FileDiagnosticsReport],
    others: &[FileDiagnosticsReport],
    fixed: &[String],
) -> String {
    let mut text = String::new();
    let new: usize =
        own.iter().filter(|report| !report.first_seen).map(|report| report.new.len()).sum();
    if new > 0 {
        let _ = writeln!(text, "This introduces {} ({server}):", count_text(new, "new error"));
        own.iter()
            .filter(|report| !report.first_seen)
            .for_each(|report| append_report(&mut text, report));
    }
    for report in own.iter().filter(|report| report.first_seen && !report.new.is_empty()) {
        let path = &report.path;
        let _ = writeln!(text, "Errors in {path}, which was not checked before ({server}):");
        append_report(&mut text, report);
    }
    if !others.is_empty() {
        let _ = match text.is_empty() {
            true => writeln!(text, "This introduces new errors in other files ({server}):"),
            false => writeln!(text, "Also new in other files:"),
        };
        others.iter().take(MAX_OTHER_FILES).for_each(|report| append_report(&mut text, report));
        if others.len() > MAX_OTHER_FILES {
            let _ = writeln!(
                text,
                "and in {}",
                count_text(others.len() - MAX_OTHER_FILES, "more file")
            );
        }
    }
    let remaining: usize = own.iter().map(|report| report.remaining).sum();
    if !text.is_empty() && remaining > 0 {
        let _ = match remaining {
            1 => writeln!(text, "1 error that existed before is not shown."),
            _ => writeln!(text, "{remaining} errors that existed before are not shown."),
        };
    }
    for path in fixed {
        let _ = writeln!(text, "{path} no longer has errors ({server}).");
    }
    truncate_lines(text.trim_end())
}

/// Formats diagnostics that arrived after the result of a change.
pub(crate) fn late_report_text(
    server: &str,
    changed: &[String],
    reports: &[FileDiagnosticsReport],
) -> String {
    let (old, new): (Vec<_>, Vec<_>) = reports.iter().partition(|report| report.first_seen);
    let count =
        |reports: &[&FileDiagnosticsReport]| reports.iter().map(|report| report.new.len()).sum();
    let mut text = format!(
        "After your change to {}, {server} reports {}:\n",
        truncate_chars(&changed.join(", "), MAX_SHOWN_CHARS),
        match new.is_empty() {
            true => {
                let errors = count_text(count(&old), "error");
                format!("{errors} in files that it had not checked before")
            }
            false => count_text(count(&new), "new error"),
        }
    );
    new.iter().for_each(|report| append_report(&mut text, report));
    if !new.is_empty() && !old.is_empty() {
        text.push_str("Also errors in files that it had not checked before:\n");
    }
    old.iter().for_each(|report| append_report(&mut text, report));
    let mut lines: Vec<&str> = text.lines().collect();
    let more = lines.len().saturating_sub(11);
    lines.truncate(11);
    let mut text = lines.join("\n");
    if more > 0 {
        text.push_str("\n…");
    }
    truncate_lines(&text)
}

fn append_report(text: &mut String, report: &FileDiagnosticsReport) {
    for LspDiagnostic {
        line_and_character: (line, character), code, message, source_line, ..
    } in report.new.iter().take(MAX_SHOWN_DIAGNOSTICS)
    {
        let code = if code.is_empty() { String::new() } else { format!(" [{code}]") };
        let message = truncate_chars(message, MAX_SHOWN_CHARS);
        let _ = writeln!(text, "{}:{line}:{character}: {message}{code}", report.path);
        if let Some(source_line) =
            source_line.as_deref().filter(|source_line| !source_line.is_empty())
        {
            let _ = writeln!(text, "    {}", truncate_chars(source_line, MAX_SHOWN_CHARS));
        }
    }
    if report.new.len() > MAX_SHOWN_DIAGNOSTICS {
        let _ = writeln!(
            text,
            "and {} more in {}",
            report.new.len() - MAX_SHOWN_DIAGNOSTICS,
            report.path
        );
    }
}

/// Truncates text to `MAX_REVIEW_BYTES`, at a line boundary.
fn truncate_lines(text: &str) -> String {
    if text.len() <= MAX_REVIEW_BYTES {
        return text.to_owned();
    }
    let mut truncated = String::new();
    for line in text.lines() {
        if truncated.len() + line.len() > MAX_REVIEW_BYTES {
            break;
        }
        truncated.push_str(line);
        truncated.push('\n');
    }
    truncated + "…"
}

/// Formats a count with its noun: `1 new error`, `2 new errors`.
pub(crate) fn count_text(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        _ => format!("{number} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::diagnostic_store::tests::diagnostic;
    use proptest::prelude::{Strategy, prop};
    use proptest::{prop_assert, prop_assert_eq, proptest};

    #[test]
    fn a_moved_diagnostic_is_not_new() {
        let before = [diagnostic(3, "m", Some("f(1)")), diagnostic(9, "m", Some("f(2)"))];
        let after = vec![diagnostic(7, "m", Some("f(2)")), diagnostic(8, "m", Some("f(3)"))];
        let (new, remaining) = new_diagnostics(&before, after);
        assert_eq!((new, remaining), (vec![diagnostic(8, "m", Some("f(3)"))], 1));
        // A second occurrence is new.
        let twice = vec![diagnostic(3, "m", Some("f(1)")), diagnostic(4, "m", Some("f(1)"))];
        assert_eq!(new_diagnostics(&before, twice).0.len(), 1);
        // Without a source line, the message decides.
        assert_eq!(
            new_diagnostics(&[diagnostic(3, "m", None)], vec![diagnostic(5, "m", Some("f(9)"))]).1,
            1
        );
    }

    #[test]
    fn the_review_lists_new_errors_and_counts_old_ones() {
        let own = FileDiagnosticsReport {
            path: "src/a.py".into(),
            new: vec![diagnostic(2, "bad", Some("f(\"s\")"))],
            remaining: 2,
            first_seen: false,
        };
        let other = FileDiagnosticsReport {
            path: "src/b.py".into(),
            new: vec![diagnostic(9, "worse", None)],
            remaining: 4,
            first_seen: false,
        };
        assert_eq!(
            review_text("pyright", std::slice::from_ref(&own), std::slice::from_ref(&other), &[]),
            "This introduces 1 new error (pyright):\nsrc/a.py:3:3: bad [E1]\n    f(\"s\")\nAlso new in other \
             files:\nsrc/b.py:10:3: worse [E1]\n2 errors that existed before are not shown."
        );
        let quiet = FileDiagnosticsReport { new: Vec::new(), ..own.clone() };
        assert_eq!(review_text("pyright", std::slice::from_ref(&quiet), &[], &[]), "");
        assert_eq!(
            review_text("pyright", &[quiet], &[], &["src/a.py".into()]),
            "src/a.py no longer has errors (pyright)."
        );
        let first_seen = FileDiagnosticsReport { first_seen: true, remaining: 0, ..own };
        assert!(review_text("pyright", &[first_seen], &[], &[]).starts_with(
            "Errors in src/a.py, which was not checked before (pyright):\nsrc/a.py:3:3"
        ));
    }

    #[test]
    fn a_review_is_limited() {
        let long = "x".repeat(2_000);
        let new: Vec<LspDiagnostic> =
            (0..400).map(|line| diagnostic(line, &long, Some(&long))).collect();
        let reports: Vec<FileDiagnosticsReport> = (0..9)
            .map(|file| FileDiagnosticsReport {
                path: format!("f{file}"),
                new: new.clone(),
                remaining: 0,
                first_seen: false,
            })
            .collect();
        let text = review_text("s", &reports, &reports, &[]);
        assert!(text.len() <= MAX_REVIEW_BYTES + 4 && text.ends_with('…'), "{}", text.len());
        let late = late_report_text("s", &["a".repeat(5_000)], &reports);
        assert!(late.len() <= MAX_REVIEW_BYTES + 4 && late.lines().count() <= 12, "{late}");
    }

    fn diagnostics() -> impl Strategy<Value = Vec<LspDiagnostic>> {
        let texts = prop::sample::select(vec![None, Some("x"), Some("y")]);
        let one = (0_u32..5, prop::sample::select(vec!["m", "n"]), texts);
        let one = one.prop_map(|(line, message, text)| diagnostic(line, message, text));
        prop::collection::vec(one, 0..12)
    }

    proptest! {
        #[test]
        fn every_diagnostic_is_new_or_remaining(before in diagnostics(), after in diagnostics()) {
            let (new, remaining) = new_diagnostics(&before, after.clone());
            prop_assert_eq!(new.len() + remaining, after.len());
            prop_assert!(remaining <= before.len());
            prop_assert!(new.len() >= after.len().saturating_sub(before.len()));
            prop_assert!(new.iter().all(|one| after.contains(one)));
        }

        #[test]
        fn moved_and_reordered_diagnostics_are_not_new(before in diagnostics(), by in 0_u32..9) {
            let mut after = before.clone();
            after.iter_mut().for_each(|one| one.line_and_character.0 += by);
            after.reverse();
            prop_assert_eq!(new_diagnostics(&before, after), (Vec::new(), before.len()));
        }
    }
}
