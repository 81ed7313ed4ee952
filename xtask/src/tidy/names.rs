//! Naming and voice rules of `STYLE.md` for production code: unique type names without participles,
//! constants with a subject, and doc comments in plain English.

use super::Files;
use super::source_rules::{is_fixture, is_test, production};
use std::collections::BTreeMap;
use std::path::Path;

/// Type names that play the same role wherever they are defined.
const SHARED_TYPES: &[&str] = &["Error", "Config", "State", "Inner", "Output", "Input"];

/// Irregular participles; regular ones end in `ed`.
const PARTICIPLES: &[&str] = &[
    "Heard", "Said", "Told", "Kept", "Held", "Found", "Seen", "Made", "Given", "Known", "Gone",
    "Laid", "Left", "Lost", "Sent", "Spent", "Done", "Begun", "Born", "Brought", "Meant", "Ran",
    "Shown", "Swept", "Taken", "Written", "Drawn", "Broke", "Broken", "Bound",
];

/// Constants that name a size or a duration without saying of what.
const BARE_CONSTANTS: &[&str] = &[
    "LONGEST", "MOST", "PATIENCE", "DEEPEST", "LARGEST", "SHOWN", "GRACE", "PARTING", "BLINK",
    "TICK", "BEAT", "MOMENT", "ARRIVAL", "ROOM", "PLENTY", "DEAR", "RING", "INBOX", "LIMIT", "MAX",
];

/// First words of a doc comment that does not name its subject.
const QUESTION_WORDS: &[&str] =
    &["What", "How", "Where", "Who", "Whom", "Whose", "Which", "Why", "Whether"];

/// Words for an actor that is not named.
const UNNAMED_ACTORS: &[&str] = &["somebody", "nobody", "whoever", "anybody", "everybody"];

pub(crate) fn check(files: &Files) -> Vec<String> {
    let mut faults = Vec::new();
    let mut types: BTreeMap<String, Vec<(String, bool)>> = BTreeMap::new();
    for (path, text) in files.with_extension("rs").filter(|(path, _)| is_production(path)) {
        let at = path.display().to_string();
        let mut doc: Vec<&str> = Vec::new();
        let mut has_cfg = false;
        for (number, line) in production(text).lines().enumerate() {
            let is_associated = line.starts_with(' ');
            let line = line.trim();
            if let Some(comment) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) {
                doc.push(comment.trim());
                continue;
            }
            if !doc.is_empty() {
                faults.extend(doc_fault(&doc).map(|fault| format!("{at}:{number}: {fault}")));
                doc.clear();
            }
            if let Some(attribute) = line.strip_prefix("#[") {
                has_cfg |= attribute.starts_with("cfg(");
                continue;
            }
            let keywords = ["struct", "enum", "trait", "union", "type"];
            let keywords = if is_associated { &keywords[..4] } else { &keywords[..] };
            if let Some(name) = defined(line, keywords) {
                if is_participle(name) {
                    faults.push(format!("{at}: `{name}` is a participle; name the thing"));
                }
                let platform = has_cfg || at.contains("/unsupported/");
                types.entry(name.to_owned()).or_default().push((at.clone(), platform));
            }
            if let Some(name) = defined(line, &["const", "static"])
                && BARE_CONSTANTS.contains(&name)
            {
                faults.push(format!("{at}: `{name}` does not say of what; name thing and unit"));
            }
            has_cfg = false;
        }
    }
    for (name, places) in types {
        // Definitions for different platforms are one type.
        let variants = places.iter().filter(|(_, platform)| *platform).count();
        let distinct =
            places.len() - variants.saturating_sub(usize::from(variants == places.len()));
        if distinct > 1 && !SHARED_TYPES.contains(&name.as_str()) {
            let places: Vec<&str> = places.iter().map(|(at, _)| at.as_str()).collect();
            faults.push(format!("`{name}` is defined more than once: {}", places.join(", ")));
        }
    }
    faults
}

fn is_production(path: &Path) -> bool {
    path.starts_with("crates")
        && path.components().any(|part| part.as_os_str() == "src")
        && !is_test(path)
        && !is_fixture(path)
}

/// The name that a line defines with one of these keywords.
fn defined<'a>(line: &'a str, keywords: &[&str]) -> Option<&'a str> {
    let rest = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => line,
    };
    let (keyword, rest) = rest.split_once(' ')?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let name = rest.get(..end)?;
    let capital = name.starts_with(|first: char| first.is_ascii_uppercase());
    (keywords.contains(&keyword) && capital).then_some(name)
}

fn is_participle(name: &str) -> bool {
    let one_word = name.chars().filter(char::is_ascii_uppercase).count() == 1;
    let regular = name.ends_with("ed") && !name.ends_with("eed");
    one_word && (regular || PARTICIPLES.contains(&name))
}

fn doc_fault(doc: &[&str]) -> Option<String> {
    let text = doc.join(" ");
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
    let first = words.next().unwrap_or_default();
    if QUESTION_WORDS.contains(&first) {
        return Some(format!("a comment begins with \"{first}\"; name its subject"));
    }
    let actor = words.find(|word| UNNAMED_ACTORS.contains(&word.to_lowercase().as_str()));
    actor.map(|actor| format!("a comment says \"{actor}\"; say user, model, caller or server"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_naming_rule_is_checked() {
        let cases = [
            ("/// A thing.\nstruct Asked;", "`Asked` is a participle"),
            ("/// A thing.\npub(crate) struct Kept;", "`Kept` is a participle"),
            ("const LONGEST: usize = 1;", "`LONGEST` does not say of what"),
            ("/// What it is.\nstruct A;", "begins with \"What\""),
            ("/// A text that\n/// nobody reads.\nstruct A;", "says \"nobody\""),
            ("enum Twice {}\nstruct Twice;", "`Twice` is defined more than once"),
        ];
        for (text, fault) in cases {
            let faults = check(&Files::fixture(&[("crates/a/src/b.rs", text)]));
            assert!(faults.iter().any(|found| found.contains(fault)), "{text}: {faults:?}");
        }
        let fine = "/// The limit.\nconst MAX_LINES: usize = 1;\nstruct Seed;\n#[cfg(unix)]\nstruct \
                    One;\n#[cfg(not(unix))]\nstruct One;\n#[cfg(test)]\nmod tests {\n struct Told;";
        assert_eq!(check(&Files::fixture(&[("crates/a/src/b.rs", fine)])), [""; 0]);
        assert_eq!(check(&Files::fixture(&[("crates/a/tests/b.rs", "struct Told;")])), [""; 0]);
    }
}
