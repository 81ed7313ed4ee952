//! The intermediate result of one parser: `CommandOrScopeBoundary`s and ambiguities.

use super::ambiguity_reasons::ShellAmbiguity;
use super::{CommandOrScopeBoundary, MAX_SEGMENTS, ShellWord, SimpleShellCommand};
use std::collections::BTreeSet;

/// Reserved words of the shell language, which are not commands.
pub(super) const RESERVED_WORDS: [&str; 22] = [
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while", "{", "}",
];

#[derive(Clone, Debug, Default)]
pub(super) struct ShellParseResult {
    pub(super) items: Vec<CommandOrScopeBoundary>,
    pub(super) ambiguities: BTreeSet<ShellAmbiguity>,
    segment_count: usize,
}

impl ShellParseResult {
    pub(super) fn add_ambiguity(&mut self, ambiguity: ShellAmbiguity) {
        self.ambiguities.insert(ambiguity);
    }

    pub(super) fn has_ambiguity(&self, ambiguity: ShellAmbiguity) -> bool {
        self.ambiguities.contains(&ambiguity)
    }

    /// Adds the variable of a loop, as assignments of all its values.
    pub(super) fn push_loop_variable(&mut self, name: &str, mut values: Vec<ShellWord>) {
        if values.is_empty() {
            values.push(ShellWord::Opaque("$@".to_owned()));
        }
        let assignments = values.into_iter().map(|value| (name.to_owned(), value)).collect();
        let text = format!("for {name}");
        self.push_segment(SimpleShellCommand {
            text,
            assignments,
            ..SimpleShellCommand::default()
        });
    }

    pub(super) fn push_segment(&mut self, segment: SimpleShellCommand) {
        if self.segment_count >= MAX_SEGMENTS {
            return self.add_ambiguity(ShellAmbiguity::TooManySegments);
        }
        if segment.words.is_empty()
            && segment.assignments.is_empty()
            && segment.redirects.is_empty()
        {
            return;
        }
        // The quotes are already removed, so a program with such a name is also flagged.
        if let Some(ShellWord::Plain(first)) = segment.words.first()
            && RESERVED_WORDS.contains(&first.as_str())
        {
            self.add_ambiguity(ShellAmbiguity::ReservedWord);
        }
        self.segment_count += 1;
        self.items.push(CommandOrScopeBoundary::Command(segment));
    }
}

/// Returns true if the file after `>&` is certain. Bash expands that word a second time after quote
/// removal, so `>&'$(rm x)'` runs `rm`.
pub(super) fn is_expansion_safe(target: &str) -> bool {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "_./+,@%=".contains(c);
    !target.is_empty() && target.chars().all(is_safe)
}
