//! Edits whose right result is known, made from sources in eight languages: how many of them are
//! applied right, how many are refused, and that none is applied wrong.
//!
//! An edit is made first, on a block of a source, and then spoilt the way a model spoils it. What
//! the file reads afterwards is what the unspoilt edit makes of it.

use super::Count;

/// How many edits of a kind are made for a language.
const EACH: usize = 16;

const LANGUAGES: [(&str, &str, &str); 8] = [
    ("Rust", "    ", include_str!("corpus/rust.txt")),
    ("Python", "    ", include_str!("corpus/python.txt")),
    ("TypeScript", "  ", include_str!("corpus/typescript.txt")),
    ("Go", "\t", include_str!("corpus/go.txt")),
    ("C", "    ", include_str!("corpus/c.txt")),
    ("Java", "    ", include_str!("corpus/java.txt")),
    ("Ruby", "  ", include_str!("corpus/ruby.txt")),
    ("YAML", "  ", include_str!("corpus/yaml.txt")),
];

/// A kind of mistake, and the least of its certain edits that must be applied, in percent.
const KINDS: [(&str, usize, Spoil); 20] = [
    ("none", 100, none),
    ("white space at line ends, in the edit", 100, trailing_in_edit),
    ("white space at line ends, in the file", 100, trailing_in_file),
    ("indented too deep", 95, too_deep),
    ("indented too little", 95, too_shallow),
    ("tabs for spaces, spaces for tabs", 95, other_indent),
    ("first line without its indentation", 85, headless),
    ("spacing within lines", 95, spacing),
    ("escaped once too often", 85, escaped),
    ("blank lines around", 90, surrounded),
    ("CRLF", 100, crlf),
    ("typographic quotes", 85, quotes),
    ("a stale line", 70, stale),
    ("a stale line, indented too deep", 0, stale_and_deep),
    ("a near-duplicate in the file", 95, near_duplicate),
    ("cut off or elided", 0, elided),
    ("twice in the file", 0, twice),
    ("not in the file", 0, absent),
    ("replaceAll", 100, everywhere),
    ("a part of a line, spaced otherwise", 95, part),
];

type Spoil = fn(&mut Dice, &Base) -> Option<Case>;

/// An edit that is right: a block of lines, and what it becomes.
struct Base {
    unit: &'static str,
    /// Another language's source, for what is not there.
    foreign: &'static str,
    lines: Vec<String>,
    first: usize,
    old: Vec<String>,
    new: Vec<Origin>,
}

/// A new line, and the old one that it is or that it changes.
#[derive(Clone)]
struct Origin {
    text: String,
    kept: Option<usize>,
}

struct Case {
    text: String,
    old: String,
    new: String,
    count: Count,
    /// What the file should read, if the edit says it.
    after: Option<String>,
    /// Whether somebody who is careful could tell.
    certain: bool,
}

/// Numbers that are always the same.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % sides.max(1) as u64) as usize
    }
}

impl Base {
    /// A block that stands once in the source, changed somewhere.
    fn make(dice: &mut Dice, language: usize) -> Option<Base> {
        let (_, unit, source) = LANGUAGES[language];
        let foreign = LANGUAGES[(language + 1 + dice.roll(7)) % 8].2;
        let lines: Vec<String> = source.lines().map(str::to_owned).collect();
        let length = 2 + dice.roll(9);
        let first = dice.roll(lines.len() - length);
        let old = lines[first..first + length].to_vec();
        if source.matches(&old.join("\n")).count() != 1
            || old[0].trim().is_empty()
            || old[length - 1].trim().is_empty()
        {
            return None;
        }
        let mut new: Vec<Origin> = old
            .iter()
            .enumerate()
            .map(|(at, line)| Origin { text: line.clone(), kept: Some(at) })
            .collect();
        let at = dice.roll(length);
        let indent = |line: &str| line[..line.len() - line.trim_start().len()].to_owned();
        let fresh = |text: String| Origin { text, kept: None };
        match dice.roll(5) {
            0 | 1 => new[at] = fresh(other_word(dice, &old[at])?),
            2 => {
                let line =
                    fresh(format!("{}inserted_{}(\"x\");", indent(&old[at]), dice.roll(100)));
                new.insert(at + 1, line);
            }
            3 => {
                new.remove(at);
            }
            _ if old[at].trim().is_empty() => return None,
            _ => {
                let margin = indent(&old[at]);
                new[at] = fresh(format!("{unit}{}", old[at]));
                new.insert(at + 1, fresh(format!("{margin}end_of_wrap")));
                new.insert(at, fresh(format!("{margin}if ready_{}:", dice.roll(100))));
            }
        }
        let base = Base { unit, foreign, lines, first, old, new };
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

    /// The source with the block as given.
    fn with(&self, block: &str) -> String {
        let mut lines: Vec<&str> = self.lines[..self.first].iter().map(String::as_str).collect();
        lines.push(block);
        lines.extend(self.lines[self.first + self.old.len()..].iter().map(String::as_str));
        lines.join("\n") + "\n"
    }

    /// The edit with every line of it spoilt.
    fn spoilt(&self, mut spoil: impl FnMut(&str) -> String) -> Case {
        let old: Vec<String> = self.old.iter().map(|line| spoil(line)).collect();
        let new = self.new.iter().map(|line| match line.kept {
            Some(at) => old[at].clone(),
            None => spoil(&line.text),
        });
        let new = new.collect::<Vec<_>>().join("\n");
        self.case(old.join("\n"), new)
    }

    fn case(&self, old: String, new: String) -> Case {
        let after = Some(self.with(&self.new_text()));
        Case { text: self.text(), old, new, count: Count::One, after, certain: true }
    }

    /// A middle line that the edit keeps.
    fn middle(&self, dice: &mut Dice) -> Option<usize> {
        let kept = |at: &usize| self.new.iter().any(|line| line.kept == Some(*at));
        let telling = |at: &usize| self.old[*at].trim().len() > 8;
        let middle: Vec<usize> = (1..self.old.len() - 1).filter(kept).filter(telling).collect();
        middle.get(dice.roll(middle.len())).copied()
    }

    /// The edit with one old line, and the new one that keeps it, replaced.
    fn stale(&self, at: usize, line: &str) -> Case {
        let mut old = self.old.clone();
        old[at] = line.to_owned();
        let new = self.new.iter().map(|found| match found.kept {
            Some(kept) if kept == at => line,
            _ => found.text.as_str(),
        });
        let new = new.collect::<Vec<_>>().join("\n");
        self.case(old.join("\n"), new)
    }
}

/// A line in which one word is another one.
fn other_word(dice: &mut Dice, line: &str) -> Option<String> {
    let mut words: Vec<(usize, &str)> = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(char::is_alphanumeric) {
        let word = &rest[start..];
        let end = word.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(word.len());
        words.push((line.len() - word.len(), &word[..end]));
        rest = &word[end..];
    }
    let (at, word) = *words.get(dice.roll(words.len()))?;
    let other = match word.parse::<u64>() {
        Ok(number) => (number + 1).to_string(),
        Err(_) => format!("{word}_two"),
    };
    Some(format!("{}{other}{}", &line[..at], &line[at + word.len()..]))
}

fn none(_: &mut Dice, base: &Base) -> Option<Case> {
    Some(base.case(base.old_text(), base.new_text()))
}

fn trailing_in_edit(dice: &mut Dice, base: &Base) -> Option<Case> {
    let space = ["  ", "\t", " "][dice.roll(3)];
    let mut case = base.spoilt(|line| match dice.roll(2) {
        0 => line.to_owned(),
        _ => format!("{line}{space}"),
    });
    let old: Vec<&str> = case.old.split('\n').collect();
    let line = |line: &Origin| line.kept.map_or(line.text.clone(), |at| old[at].to_owned());
    case.new = base.new.iter().map(line).collect::<Vec<_>>().join("\n");
    Some(case)
}

fn trailing_in_file(dice: &mut Dice, base: &Base) -> Option<Case> {
    let mut drifted: Vec<String> = base.old.clone();
    let at = dice.roll(drifted.len() - 1);
    drifted[at].push_str("  ");
    let kept = |line: &Origin| match line.kept {
        Some(at) => drifted[at].clone(),
        None => line.text.clone(),
    };
    // Whether a changed line keeps its white space is a matter of taste.
    base.new.iter().find(|line| line.kept == Some(at) && !base.old[at].trim().is_empty())?;
    let after: Vec<String> = base.new.iter().map(kept).collect();
    let mut case = base.case(base.old_text(), base.new_text());
    case.text = base.with(&drifted.join("\n"));
    case.after = Some(base.with(&after.join("\n")));
    Some(case)
}

fn deeper(line: &str, by: &str) -> String {
    if line.trim().is_empty() { line.to_owned() } else { format!("{by}{line}") }
}

fn too_deep(dice: &mut Dice, base: &Base) -> Option<Case> {
    let by = base.unit.repeat(1 + dice.roll(2));
    let case = base.spoilt(|line| deeper(line, &by));
    (!case.text.contains(&case.old)).then_some(case)
}

fn too_shallow(_: &mut Dice, base: &Base) -> Option<Case> {
    let lines = base.old.iter().map(String::as_str);
    let lines = lines.chain(base.new.iter().map(|line| line.text.as_str()));
    let full = lines.filter(|line| !line.trim().is_empty());
    let margin = full.map(|line| line.len() - line.trim_start().len()).min()?;
    let case = base.spoilt(|line| line.get(margin..).unwrap_or_default().to_owned());
    // Lines without their margin may stand exactly so somewhere else.
    (margin > 0 && !case.text.contains(&format!("\n{}", case.old))).then_some(case)
}

fn other_indent(_: &mut Dice, base: &Base) -> Option<Case> {
    let (from, to) = if base.unit == "\t" { ("\t", "    ") } else { (base.unit, "\t") };
    let lines = base.old.iter().chain(base.new.iter().map(|line| &line.text));
    let indents: Vec<usize> = lines.map(|line| line.len() - line.trim_start().len()).collect();
    let whole = indents.iter().all(|indent| indent % from.len() == 0);
    let indented = indents.iter().take(base.old.len()).any(|indent| *indent > 0);
    (whole && indented).then(|| {
        base.spoilt(|line| {
            let content = line.trim_start();
            to.repeat((line.len() - content.len()) / from.len()) + content
        })
    })
}

fn headless(_: &mut Dice, base: &Base) -> Option<Case> {
    let (first, kept) = (base.old[0].trim_start(), base.new[0].kept == Some(0));
    let mut case =
        (kept && first != base.old[0] && base.old.len() > 2).then(|| base.stale(0, first))?;
    case.old = case.old.replacen('\n', "  \n", 1);
    case.new = case.new.replacen('\n', "  \n", 1);
    Some(case)
}

fn spacing(_: &mut Dice, base: &Base) -> Option<Case> {
    let spaced = |line: &str| {
        let content = line.trim_start();
        let (indent, _) = line.split_at(line.len() - content.len());
        indent.to_owned() + &content.replacen(' ', "  ", 1)
    };
    // What a new line's spacing should be, nobody knows; it is given as it is.
    let mut case = base.spoilt(spaced);
    let new = base.new.iter().map(|line| match line.kept {
        Some(at) => spaced(&base.old[at]),
        None => line.text.clone(),
    });
    case.new = new.collect::<Vec<_>>().join("\n");
    (case.old != base.old_text()).then_some(case)
}

fn escaped(dice: &mut Dice, base: &Base) -> Option<Case> {
    let all = dice.roll(2) == 0;
    let escape = |text: String| {
        let text = if all { text.replace('\\', "\\\\") } else { text };
        let text = text.replace('"', "\\\"");
        if all { text.replace('\n', "\\n").replace('\t', "\\t") } else { text }
    };
    let case = base.case(escape(base.old_text()), escape(base.new_text()));
    let half = !all && (base.old_text().contains('\\') || base.new_text().contains('\\'));
    (case.old != base.old_text() && !half).then_some(case)
}

fn surrounded(dice: &mut Dice, base: &Base) -> Option<Case> {
    let (before, after) = [("\n", "\n"), ("\n\n", ""), ("", "\n\n\n")][dice.roll(3)];
    let around = |text: String| format!("{before}{text}{after}");
    let case = base.case(around(base.old_text()), around(base.new_text()));
    (!case.text.contains(&case.old)).then_some(case)
}

fn crlf(dice: &mut Dice, base: &Base) -> Option<Case> {
    let (old, new) = (base.old_text(), base.new_text());
    let (old_end, new_end) = [("\r\n", "\r\n"), ("\r\n", "\n"), ("\n", "\r\n")][dice.roll(3)];
    Some(base.case(old.replace('\n', old_end), new.replace('\n', new_end)))
}

fn quotes(dice: &mut Dice, base: &Base) -> Option<Case> {
    let straight = |text: &str| text.replace(['“', '”'], "\"").replace('–', "-");
    let at = base.middle(dice)?;
    if straight(&base.old[at]) != base.old[at] {
        return Some(base.stale(at, &straight(&base.old[at])));
    }
    if !base.old[at].contains('"') {
        // Nothing but what is not ASCII anyway.
        return (!base.old_text().is_ascii()).then(|| base.case(base.old_text(), base.new_text()));
    }
    let curly = base.old[at].replacen('"', "“", 1).replacen('"', "”", 1);
    let mut case = base.stale(at, &curly);
    case.certain = base.old.len() > 4;
    Some(case)
}

fn stale(dice: &mut Dice, base: &Base) -> Option<Case> {
    let at = base.middle(dice)?;
    let line = other_word(dice, &base.old[at])?;
    Some(base.stale(at, &line))
}

fn stale_and_deep(dice: &mut Dice, base: &Base) -> Option<Case> {
    let case = stale(dice, base)?;
    let by = |text: &str| {
        let lines = text.split('\n').map(|line| deeper(line, base.unit));
        lines.collect::<Vec<_>>().join("\n")
    };
    let (old, new) = (by(&case.old), by(&case.new));
    Some(Case { old, new, certain: false, ..case })
}

fn near_duplicate(dice: &mut Dice, base: &Base) -> Option<Case> {
    let at = dice.roll(base.old.len());
    let mut twin = base.old.clone();
    twin[at] = other_word(dice, &twin[at])?;
    let variant = dice.roll(3);
    let mut case = match variant {
        0 => trailing_in_edit(dice, base)?,
        1 => stale(dice, base)?,
        _ => {
            // A third block, as near to one as to the other.
            let third = other_word(dice, &twin[at])?;
            let kept = base.new.iter().any(|line| line.kept == Some(at));
            (kept && third != base.old[at]).then(|| base.stale(at, &third))?
        }
    };
    case.certain = variant == 0;
    let twin = twin.join("\n");
    let before = dice.roll(2) == 0;
    let add =
        |text: &str| if before { format!("{twin}\n\n{text}") } else { format!("{text}\n{twin}\n") };
    case.text = add(&case.text);
    // What is stale may have become the twin by chance.
    if variant > 0 && case.text.contains(&case.old) {
        return None;
    }
    case.after = case.after.filter(|_| variant < 2).map(|after| add(&after));
    Some(case)
}

fn elided(dice: &mut Dice, base: &Base) -> Option<Case> {
    if dice.roll(2) == 0 {
        // The last line is cut in its middle, and the others have white space behind.
        let last = base.old.last()?;
        let kept =
            base.new.last()?.kept == Some(base.old.len() - 1) && base.new.first()?.kept == Some(0);
        let cut = last.char_indices().nth(last.chars().count() / 2)?.0;
        let mut case = kept.then(|| base.stale(base.old.len() - 1, &last[..cut]))?;
        case.old = case.old.replacen('\n', " \n", 1);
        case.new = case.new.replacen('\n', " \n", 1);
        return Some(Case { certain: false, ..case });
    }
    let at = base.middle(dice)?;
    let upto = (at + 1 + dice.roll(3)).min(base.old.len() - 1);
    let kept = |at: usize| base.new.iter().any(|line| line.kept == Some(at));
    if !(at..upto).all(kept) {
        return None;
    }
    let mut old: Vec<&str> = base.old.iter().map(String::as_str).collect();
    old.splice(at..upto, ["    ..."]);
    let mut new: Vec<&str> = Vec::new();
    for line in &base.new {
        match line.kept {
            Some(kept) if kept == at => new.push("    ..."),
            Some(kept) if kept > at && kept < upto => {}
            _ => new.push(&line.text),
        }
    }
    let case = base.case(old.join("\n"), new.join("\n"));
    Some(Case { certain: false, ..case })
}

fn twice(dice: &mut Dice, base: &Base) -> Option<Case> {
    let mut case = match dice.roll(3) {
        0 => none(dice, base)?,
        1 => trailing_in_edit(dice, base)?,
        _ => too_deep(dice, base)?,
    };
    case.text = format!("{}\n{}\n", case.text, base.old_text());
    Some(Case { after: None, certain: false, ..case })
}

fn absent(dice: &mut Dice, base: &Base) -> Option<Case> {
    let case = match dice.roll(3) {
        0 => none(dice, base)?,
        1 => trailing_in_edit(dice, base)?,
        _ => stale(dice, base)?,
    };
    let text = if dice.roll(2) == 0 { base.foreign.to_owned() } else { base.with("") };
    let still = text.contains(&case.old);
    (!still).then_some(Case { text, after: None, certain: false, ..case })
}

fn everywhere(dice: &mut Dice, base: &Base) -> Option<Case> {
    let line = base.old[dice.roll(base.old.len())].as_str();
    let words: Vec<&str> =
        line.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2).collect();
    let old = (*words.get(dice.roll(words.len()))?).to_owned();
    let (text, new) = (base.text(), format!("{old}$&é"));
    let after = Some(text.replace(&old, &new));
    Some(Case { text, old, new, count: Count::All, after, certain: true })
}

/// A part of a line; the file has it, or only longer words that hold it.
fn part(dice: &mut Dice, base: &Base) -> Option<Case> {
    let at = dice.roll(base.old.len());
    let line = base.old[at].as_str();
    let content = line.trim();
    let spaced = |text: &str| text.replacen(' ', "  ", 1);
    let changed = other_word(dice, content)?;
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let once = words(&base.text()).matches(&words(content)).count() == 1;
    if content.contains('\\') || !content.contains(' ') || !once {
        return None;
    }
    let is_word = |found: Option<char>| found.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let longer = match dice.roll(3) {
        0 if is_word(content.chars().next()) => Some(format!("pre{content}")),
        1 if is_word(content.chars().next_back()) => Some(format!("{content}_9")),
        _ => None,
    };
    let indent = &line[..line.len() - line.trim_start().len()];
    let with = |content: &str| {
        let mut block = base.old.clone();
        block[at] = format!("{indent}{content}");
        base.with(&block.join("\n"))
    };
    let mut case = base.case(spaced(content), spaced(&changed));
    case.certain = longer.is_none();
    case.after = case.certain.then(|| with(&format!("[{changed}]")));
    case.text = with(&longer.unwrap_or_else(|| format!("[{content}]")));
    Some(case)
}

#[cfg(test)]
mod tests;
