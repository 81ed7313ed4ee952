//! The unified diff between two contents of a file, bounded in time and size.

use crate::text::FileText;
use similar::TextDiff;
use std::time::Duration;

/// Limits of one diff: computing time, and the size of each content.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);
const MAX_DIFF_INPUT_BYTES: usize = 2 << 20;

/// The difference between two contents of a file.
pub(crate) enum FileDiff {
    Unified(String),
    /// A sentence in place of a diff: too large, or not text.
    Omitted(String),
}

impl FileDiff {
    /// Returns the diff, or the sentence in its place.
    pub(crate) fn into_text(self) -> String {
        match self {
            FileDiff::Unified(text) | FileDiff::Omitted(text) => text,
        }
    }
}

/// Compares two contents. This may take a while; `DIFF_TIMEOUT` bounds it.
pub(crate) fn diff(path: &str, before: &[u8], after: &[u8]) -> FileDiff {
    let (from, to) = (before.len(), after.len());
    let omitted =
        |reason| FileDiff::Omitted(format!("{path}: from {from} to {to} bytes; {reason}\n"));
    if from.max(to) > MAX_DIFF_INPUT_BYTES {
        return omitted("too large to show");
    }
    let texts = [before, after].map(|bytes| FileText::decode(bytes.to_vec()));
    let [Ok(before), Ok(after)] = texts else { return omitted("not text") };
    let mut config = TextDiff::configure();
    config.timeout(DIFF_TIMEOUT);
    let diff = config.diff_lines(before.view(), after.view());
    let (old, new) = (format!("a/{path}"), format!("b/{path}"));
    FileDiff::Unified(diff.unified_diff().header(&old, &new).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_that_is_too_large_is_not_compared() {
        let large = vec![b'x'; MAX_DIFF_INPUT_BYTES + 1];
        assert!(matches!(diff("a", &large, b"y"), FileDiff::Omitted(_)));
        assert!(matches!(diff("a", b"x\n", b"y\n"), FileDiff::Unified(_)));
    }
}
