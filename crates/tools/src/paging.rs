//! Where a page of results stands among all of them, in words.

use windlass_toolkit::Failure;

/// How many results a page holds.
pub(crate) const PAGE: usize = 100;

/// The last result that can be asked for: all before it are kept while it is looked for.
const FARTHEST: u64 = 100_000;

/// How many remarks stand below a page.
const REMARKS: usize = 5;

/// How many results there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Total {
    /// So many.
    Exactly(usize),
    /// So many were counted before counting stopped.
    MoreThan(usize),
}

impl Total {
    fn counted(self) -> usize {
        match self {
            Total::Exactly(count) | Total::MoreThan(count) => count,
        }
    }
}

impl std::fmt::Display for Total {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Total::Exactly(count) => write!(f, "{count}"),
            Total::MoreThan(count) => write!(f, "more than {count}"),
        }
    }
}

/// The results before the page, counting from 0.
pub(crate) fn skipped(offset: Option<u64>) -> Result<usize, Failure> {
    let offset = offset.unwrap_or(1);
    match usize::try_from(offset.saturating_sub(1)) {
        Ok(skipped) if offset <= FARTHEST => Ok(skipped),
        Ok(_) | Err(_) => Err(Failure::new(format!(
            "offset {offset} is too far: only the first {FARTHEST} results can be shown. Narrow \
             the pattern or the path instead"
        ))),
    }
}

/// Remarks below a page, each on its own line; `rest` says what those are that have no room.
pub(crate) fn remarks(remarks: &[String], rest: &str) -> String {
    let mut text: String =
        remarks.iter().take(REMARKS).map(|remark| format!("\n[{remark}]")).collect();
    if remarks.len() > REMARKS {
        text.push_str(&format!("\n[{} more {rest}]", remarks.len() - REMARKS));
    }
    text
}

/// The line below a page that does not hold everything; nothing below one that does. `results`
/// names one and several of them.
pub(crate) fn footer(
    skipped: usize,
    shown: usize,
    total: Total,
    results: [&str; 2],
) -> Result<String, Failure> {
    let [one, several] = results;
    let last = skipped + shown;
    if shown == 0 && skipped > 0 {
        let count = total.counted();
        let (are, noun) = if count == 1 { ("is", one) } else { ("are", several) };
        let first = skipped + 1;
        return Err(Failure::new(format!(
            "{one} {first} is past the end: there {are} {total} {noun}"
        )));
    }
    Ok(match (skipped, last < total.counted()) {
        (0, false) => String::new(),
        (0, true) => format!("[{shown} of {total} {several}; the next with offset {}]", last + 1),
        (_, false) => format!("[{several} {} to {last} of {total}]", skipped + 1),
        (_, true) => format!(
            "[{several} {} to {last} of {total}; the next with offset {}]",
            skipped + 1,
            last + 1
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footer_says_where_the_page_stands() {
        let files = ["file", "files"];
        for (skipped, shown, total, expected) in [
            (0, 5, Total::Exactly(5), ""),
            (0, 100, Total::Exactly(1234), "[100 of 1234 files; the next with offset 101]"),
            (0, 9, Total::MoreThan(99), "[9 of more than 99 files; the next with offset 10]"),
            (100, 100, Total::Exactly(234), "[files 101 to 200 of 234; the next with offset 201]"),
            (200, 34, Total::Exactly(234), "[files 201 to 234 of 234]"),
        ] {
            assert_eq!(footer(skipped, shown, total, files).unwrap(), expected);
        }
        let past = footer(7, 0, Total::Exactly(1), files).unwrap_err();
        assert_eq!(past.text, "file 8 is past the end: there is 1 file");
    }

    #[test]
    fn an_offset_is_a_number_of_results_and_not_too_far() {
        for (offset, expected) in [(None, 0), (Some(0), 0), (Some(1), 0), (Some(101), 100)] {
            assert_eq!(skipped(offset).unwrap(), expected);
        }
        assert_eq!(skipped(Some(FARTHEST)).unwrap(), 99_999);
        for offset in [FARTHEST + 1, u64::MAX] {
            let words = skipped(Some(offset)).unwrap_err().text;
            assert!(words.contains(&offset.to_string()) && words.contains("Narrow"), "{words}");
        }
    }

    #[test]
    fn remarks_are_few() {
        let all: Vec<String> = (1..=7).map(|n| n.to_string()).collect();
        assert_eq!(remarks(&[], "things"), "");
        assert_eq!(remarks(&all[..5], "things"), "\n[1]\n[2]\n[3]\n[4]\n[5]");
        assert!(remarks(&all, "things").ends_with("\n[5]\n[2 more things]"));
    }
}
