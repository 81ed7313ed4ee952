//! A corpus of edits with known results, generated from sources in eight languages. It measures how
//! many are applied correctly and how many are refused, and checks that none is applied wrongly.
//!
//! Each case starts as a correct edit of a source block, and then gets a mistake that models make.
//! The expected file content is the result of the edit without the mistake.

mod mistakes;

use super::ReplaceCount;

/// Edits per language for each of the `MISTAKE_KINDS`.
const EDITS_PER_KIND: usize = 16;

const SAMPLE_LANGUAGES: [(&str, &str, &str); 8] = [
    ("Rust", "    ", include_str!("rust.txt")),
    ("Python", "    ", include_str!("python.txt")),
    ("TypeScript", "  ", include_str!("typescript.txt")),
    ("Go", "\t", include_str!("go.txt")),
    ("C", "    ", include_str!("c.txt")),
    ("Java", "    ", include_str!("java.txt")),
    ("Ruby", "  ", include_str!("ruby.txt")),
    ("YAML", "  ", include_str!("yaml.txt")),
];

/// A correct edit: a block of lines and its new text.
struct CorpusEdit {
    indent_unit: &'static str,
    /// The source of another language, for text that does not occur in the file.
    other_source: &'static str,
    lines: Vec<String>,
    first_line: usize,
    old: Vec<String>,
    new: Vec<CorpusEditLine>,
}

/// A line of the new text, and the index of the old line that it keeps.
#[derive(Clone)]
struct CorpusEditLine {
    text: String,
    old_line: Option<usize>,
}

struct CorpusCase {
    text: String,
    old: String,
    new: String,
    count: ReplaceCount,
    /// File content after the edit; `None` if the edit does not determine it.
    expected: Option<String>,
    /// True if a careful reader could tell the right result.
    is_certain: bool,
}

/// A deterministic random number generator.
struct SeededRng(u64);

impl SeededRng {
    fn next_below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }
}

impl CorpusEdit {
    /// Generates an edit of a block that occurs once in the source.
    fn generate(rng: &mut SeededRng, language: usize) -> Option<CorpusEdit> {
        let (_, indent_unit, source) = SAMPLE_LANGUAGES[language];
        let other_source = SAMPLE_LANGUAGES[(language + 1 + rng.next_below(7)) % 8].2;
        let lines: Vec<String> = source.lines().map(str::to_owned).collect();
        let length = 2 + rng.next_below(9);
        let first_line = rng.next_below(lines.len() - length);
        let old = lines[first_line..first_line + length].to_vec();
        if source.matches(&old.join("\n")).count() != 1
            || old[0].trim().is_empty()
            || old[length - 1].trim().is_empty()
        {
            return None;
        }
        let mut new: Vec<CorpusEditLine> = old
            .iter()
            .enumerate()
            .map(|(index, line)| CorpusEditLine { text: line.clone(), old_line: Some(index) })
            .collect();
        let index = rng.next_below(length);
        let indent = |line: &str| line[..line.len() - line.trim_start().len()].to_owned();
        let new_line = |text: String| CorpusEditLine { text, old_line: None };
        match rng.next_below(5) {
            0 | 1 => new[index] = new_line(replace_word(rng, &old[index])?),
            2 => {
                let line = new_line(format!(
                    "{}inserted_{}(\"x\");",
                    indent(&old[index]),
                    rng.next_below(100)
                ));
                new.insert(index + 1, line);
            }
            3 => {
                new.remove(index);
            }
            _ if old[index].trim().is_empty() => return None,
            _ => {
                let margin = indent(&old[index]);
                new[index] = new_line(format!("{indent_unit}{}", old[index]));
                new.insert(index + 1, new_line(format!("{margin}end_of_wrap")));
                new.insert(index, new_line(format!("{margin}if ready_{}:", rng.next_below(100))));
            }
        }
        let base = CorpusEdit { indent_unit, other_source, lines, first_line, old, new };
        (!base.old_text().trim().is_empty() && !base.new.is_empty()).then_some(base)
    }

    fn old_text(&self) -> String {
        self.old.join("\n")
    }

    fn new_text(&self) -> String {
        let lines: Vec<&str> = self.new.iter().map(|line| line.text.as_str()).collect();
        lines.join("\n")
    }

    fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }

    /// Returns the source with `block` in place of the edited block.
    fn source_with(&self, block: &str) -> String {
        let mut lines: Vec<&str> =
            self.lines[..self.first_line].iter().map(String::as_str).collect();
        lines.push(block);
        lines.extend(self.lines[self.first_line + self.old.len()..].iter().map(String::as_str));
        lines.join("\n") + "\n"
    }

    /// Returns the edit with a mistake in every line, as `apply_mistake` makes it.
    fn with_mistake(&self, mut apply_mistake: impl FnMut(&str) -> String) -> CorpusCase {
        let old: Vec<String> = self.old.iter().map(|line| apply_mistake(line)).collect();
        let new = self.new.iter().map(|line| match line.old_line {
            Some(index) => old[index].clone(),
            None => apply_mistake(&line.text),
        });
        let new = new.collect::<Vec<_>>().join("\n");
        self.to_case(old.join("\n"), new)
    }

    fn to_case(&self, old: String, new: String) -> CorpusCase {
        let after = Some(self.source_with(&self.new_text()));
        CorpusCase {
            text: self.text(),
            old,
            new,
            count: ReplaceCount::One,
            expected: after,
            is_certain: true,
        }
    }

    /// Picks a middle line that the edit keeps.
    fn pick_kept_middle_line(&self, rng: &mut SeededRng) -> Option<usize> {
        let is_kept = |index: &usize| self.new.iter().any(|line| line.old_line == Some(*index));
        let is_distinctive = |index: &usize| self.old[*index].trim().len() > 8;
        let middle: Vec<usize> =
            (1..self.old.len() - 1).filter(is_kept).filter(is_distinctive).collect();
        middle.get(rng.next_below(middle.len())).copied()
    }

    /// Replaces one old line, and the new line that keeps it, by `line`.
    fn stale_line_case(&self, index: usize, line: &str) -> CorpusCase {
        let mut old = self.old.clone();
        old[index] = line.to_owned();
        let new = self.new.iter().map(|new_line| match new_line.old_line {
            Some(old_index) if old_index == index => line,
            _ => new_line.text.as_str(),
        });
        let new = new.collect::<Vec<_>>().join("\n");
        self.to_case(old.join("\n"), new)
    }
}

/// Replaces one word of a line.
fn replace_word(rng: &mut SeededRng, line: &str) -> Option<String> {
    let mut words: Vec<(usize, &str)> = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(char::is_alphanumeric) {
        let word = &rest[start..];
        let end = word.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(word.len());
        words.push((line.len() - word.len(), &word[..end]));
        rest = &word[end..];
    }
    let (offset, word) = *words.get(rng.next_below(words.len()))?;
    let replacement = match word.parse::<u64>() {
        Ok(number) => (number + 1).to_string(),
        Err(_) => format!("{word}_two"),
    };
    Some(format!("{}{replacement}{}", &line[..offset], &line[offset + word.len()..]))
}

#[cfg(test)]
mod tests;
