//! What one parser found so far.

use super::doubt::Doubt;
use super::{Item, MOST_SEGMENTS, Segment, Word};
use std::collections::BTreeSet;

/// Words that are not commands, but the shell's own language.
pub(super) const RESERVED: [&str; 22] = [
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while", "{", "}",
];

#[derive(Clone, Debug, Default)]
pub(super) struct Finding {
    pub(super) items: Vec<Item>,
    pub(super) doubts: BTreeSet<Doubt>,
    segments: usize,
}

impl Finding {
    pub(super) fn doubt(&mut self, doubt: Doubt) {
        self.doubts.insert(doubt);
    }

    pub(super) fn has(&self, doubt: Doubt) -> bool {
        self.doubts.contains(&doubt)
    }

    pub(super) fn push(&mut self, segment: Segment) {
        if self.segments >= MOST_SEGMENTS {
            return self.doubt(Doubt::Segments);
        }
        if segment.words.is_empty()
            && segment.assignments.is_empty()
            && segment.redirects.is_empty()
        {
            return;
        }
        // The quotes are gone by now, so a program of such a name is doubted, too.
        if let Some(Word::Plain(first)) = segment.words.first()
            && RESERVED.contains(&first.as_str())
        {
            self.doubt(Doubt::Reserved);
        }
        self.segments += 1;
        self.items.push(Item::Command(segment));
    }
}

/// True if the file behind `>&` is known. Bash expands that word a second time after its quotes are
/// gone, so that `>&'$(rm x)'` runs `rm`.
pub(super) fn survives_expansion(target: &str) -> bool {
    let safe = |each: char| each.is_ascii_alphanumeric() || "_./+,@%=".contains(each);
    !target.is_empty() && target.chars().all(safe)
}
