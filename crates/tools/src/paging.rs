//! Page footers and notes for paged results, and the limits of a page.

use windlass_toolkit::CallFailure;

pub(crate) const RESULTS_PER_PAGE: usize = 100;

/// The largest `offset` a call may request: a search keeps all results before it in memory.
const MAX_OFFSET: u64 = 100_000;

/// Notes shown below a page.
const MAX_SHOWN_NOTES: usize = 5;

/// The total number of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultTotal {
    Exact(usize),
    /// A lower bound: counting stopped there.
    MoreThan(usize),
}

impl ResultTotal {
    /// Returns the total with its noun, singular or plural: `3 matches`.
    pub(crate) fn describe(self, [singular, plural]: [&str; 2]) -> String {
        match self {
            ResultTotal::Exact(1) => format!("1 {singular}"),
            ResultTotal::Exact(_) | ResultTotal::MoreThan(_) => format!("{self} {plural}"),
        }
    }

    fn count(self) -> usize {
        match self {
            ResultTotal::Exact(count) | ResultTotal::MoreThan(count) => count,
        }
    }
}

impl std::fmt::Display for ResultTotal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ResultTotal::Exact(count) => write!(f, "{count}"),
            ResultTotal::MoreThan(count) => write!(f, "more than {count}"),
        }
    }
}

/// Converts an `offset`, which counts from 1, to the number of results to skip.
pub(crate) fn results_to_skip(offset: Option<u64>) -> Result<usize, CallFailure> {
    let offset = offset.unwrap_or(1);
    match usize::try_from(offset.saturating_sub(1)) {
        Ok(skipped) if offset <= MAX_OFFSET => Ok(skipped),
        Ok(_) | Err(_) => Err(CallFailure::new(format!(
            "offset {offset} is too large: only the first {MAX_OFFSET} results can be shown. \
             Narrow the pattern or the path instead"
        ))),
    }
}

/// Formats notes below a page, one per line; `noun` describes those beyond `MAX_SHOWN_NOTES`.
pub(crate) fn page_notes(notes: &[String], noun: &str) -> String {
    let mut text: String =
        notes.iter().take(MAX_SHOWN_NOTES).map(|note| format!("\n[{note}]")).collect();
    if notes.len() > MAX_SHOWN_NOTES {
        text.push_str(&format!("\n[{} more {noun}]", notes.len() - MAX_SHOWN_NOTES));
    }
    text
}

/// Returns the footer of a page that does not show everything; empty for one that does. `results`
/// is the singular and plural noun of a result.
pub(crate) fn page_footer(
    skipped: usize,
    shown: usize,
    total: ResultTotal,
    results: [&str; 2],
) -> Result<String, CallFailure> {
    let [singular, plural] = results;
    let last = skipped + shown;
    if shown == 0 && skipped > 0 {
        let count = total.count();
        let (verb, noun) = if count == 1 { ("is", singular) } else { ("are", plural) };
        let first = skipped + 1;
        return Err(CallFailure::new(format!(
            "{singular} {first} is past the end: there {verb} {total} {noun}"
        )));
    }
    Ok(match (skipped, last < total.count()) {
        (0, false) => String::new(),
        (0, true) => format!("[{shown} of {total} {plural}; continue with offset {}]", last + 1),
        (_, false) => format!("[{plural} {} to {last} of {total}]", skipped + 1),
        (_, true) => format!(
            "[{plural} {} to {last} of {total}; continue with offset {}]",
            skipped + 1,
            last + 1
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footer_shows_the_range_and_the_total() {
        let files = ["file", "files"];
        for (skipped, shown, total, expected) in [
            (0, 5, ResultTotal::Exact(5), ""),
            (0, 100, ResultTotal::Exact(1234), "[100 of 1234 files; continue with offset 101]"),
            (0, 9, ResultTotal::MoreThan(99), "[9 of more than 99 files; continue with offset 10]"),
            (
                100,
                100,
                ResultTotal::Exact(234),
                "[files 101 to 200 of 234; continue with offset 201]",
            ),
            (200, 34, ResultTotal::Exact(234), "[files 201 to 234 of 234]"),
        ] {
            assert_eq!(page_footer(skipped, shown, total, files).unwrap(), expected);
        }
        let failure = page_footer(7, 0, ResultTotal::Exact(1), files).unwrap_err();
        assert_eq!(failure.text, "file 8 is past the end: there is 1 file");
    }

    #[test]
    fn an_offset_counts_results_and_has_a_maximum() {
        for (offset, expected) in [(None, 0), (Some(0), 0), (Some(1), 0), (Some(101), 100)] {
            assert_eq!(results_to_skip(offset).unwrap(), expected);
        }
        assert_eq!(results_to_skip(Some(MAX_OFFSET)).unwrap(), 99_999);
        for offset in [MAX_OFFSET + 1, u64::MAX] {
            let message = results_to_skip(Some(offset)).unwrap_err().text;
            assert!(
                message.contains(&offset.to_string()) && message.contains("Narrow"),
                "{message}"
            );
        }
    }

    #[test]
    fn only_the_first_notes_are_shown() {
        let all: Vec<String> = (1..=7).map(|n| n.to_string()).collect();
        assert_eq!(page_notes(&[], "things"), "");
        assert_eq!(page_notes(&all[..5], "things"), "\n[1]\n[2]\n[3]\n[4]\n[5]");
        assert!(page_notes(&all, "things").ends_with("\n[5]\n[2 more things]"));
    }
}
