//! Judging: what servers found in files, what of it is new, and the words for it.
//!
//! Findings move with every edit, so they are compared by what they say and by the text of their
//! line, never by their position. What a server says is bounded here before it is kept. Pure.

use crate::place::{Encoding, Point, Text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// How many findings of a file are kept.
const KEPT: usize = 500;
/// Of how many files findings are kept.
const FILES: usize = 2_000;
/// How many characters of a message are kept.
const LENGTH: usize = 2_000;
/// How many findings of a file are shown.
const SHOWN: usize = 20;
/// How many characters of a message, or of a line, are shown.
const WIDTH: usize = 300;
/// How many other files are spoken of.
pub(crate) const OTHERS: usize = 5;
/// How long a review is at most, in bytes.
const REVIEW: usize = 6 << 10;

/// From which severity on something counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worth {
    /// Errors alone.
    Errors,
    /// Warnings, too.
    Warnings,
}

/// Something that a server finds wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) point: Point,
    /// Line and character from 1, as well as they are known.
    pub(crate) at: (u32, u32),
    pub(crate) code: String,
    pub(crate) message: String,
    /// The line it stands in, trimmed, where the text was at hand.
    pub(crate) text: Option<String>,
}

/// The findings of a list that count.
pub(crate) fn parse(
    list: &Value,
    worth: Worth,
    text: Option<&Text>,
    encoding: Encoding,
) -> Arc<[Finding]> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|item| finding(item, worth, text, encoding)).take(KEPT).collect()
}

fn finding(item: &Value, worth: Worth, text: Option<&Text>, encoding: Encoding) -> Option<Finding> {
    let least = match worth {
        Worth::Errors => 1,
        Worth::Warnings => 2,
    };
    // One that is not said to be anything else is an error.
    if item.get("severity").and_then(Value::as_i64).unwrap_or(1) > least {
        return None;
    }
    let message = item.get("message")?;
    let message = message.as_str().or_else(|| message.get("value")?.as_str())?;
    let code = match item.get("code") {
        Some(Value::String(code)) => cut(&flat(code), 100),
        Some(Value::Number(code)) => code.to_string(),
        Some(_) | None => String::new(),
    };
    let point = item.get("range").and_then(Point::start).unwrap_or_default();
    let at = match text {
        Some(text) => text.ours(point, encoding),
        None => (point.line.saturating_add(1), point.unit.saturating_add(1)),
    };
    let text = text.map(|text| text.line(at.0 - 1).trim().to_owned());
    Some(Finding { point, at, code, message: cut(&flat(message), LENGTH), text })
}

/// A text on one line, without what would move a cursor.
fn flat(text: &str) -> String {
    let words = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => text.split_at_checked(at).map_or("", |(head, _)| head).to_owned() + "…",
        None => text.to_owned(),
    }
}

/// How findings came. A server that does both keeps two lists, neither of which clears the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Pulled,
    Pushed,
}

/// All that was found in a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pulled: Arc<[Finding]>,
    pushed: Arc<[Finding]>,
}

impl Found {
    /// Both without repeats.
    pub(crate) fn all(&self) -> Vec<Finding> {
        let mut all: Vec<Finding> = self.pulled.to_vec();
        let same =
            |a: &Finding, b: &Finding| a.point.line == b.point.line && a.message == b.message;
        for finding in self.pushed.iter() {
            if !self.pulled.iter().any(|known| same(known, finding)) {
                all.push(finding.clone());
            }
        }
        all.sort_by_key(|finding| finding.at);
        all
    }
}

/// What was found by now, by path.
pub(crate) type Snapshot = BTreeMap<String, Found>;

/// What a server has found, bounded.
#[derive(Debug, Default)]
pub(crate) struct Store {
    files: Snapshot,
}

/// Whether a file is one that we look at ourselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    Open,
    Chance,
}

impl Store {
    pub(crate) fn put(&mut self, path: &str, way: Way, found: Arc<[Finding]>, interest: Interest) {
        if let Some(file) = self.files.get_mut(path) {
            match way {
                Way::Pulled => file.pulled = found,
                Way::Pushed => file.pushed = found,
            }
            if file.pulled.is_empty() && file.pushed.is_empty() {
                self.files.remove(path);
            }
            return;
        }
        if found.is_empty() {
            return;
        }
        if self.files.len() >= FILES {
            match interest {
                Interest::Open => drop(self.files.pop_last()),
                Interest::Chance => return,
            }
        }
        let mut file = Found::default();
        match way {
            Way::Pulled => file.pulled = found,
            Way::Pushed => file.pushed = found,
        }
        self.files.insert(path.to_owned(), file);
    }

    pub(crate) fn forget(&mut self, path: &str) {
        self.files.remove(path);
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.files.clone()
    }
}

/// What is new in `after`, and how many of it were there before. What is said of a line whose text
/// was not at hand is the same as what is said of any other line in the same words.
pub(crate) fn difference(before: &[Finding], after: Vec<Finding>) -> (Vec<Finding>, usize) {
    let mut known: BTreeMap<(&str, &str), Vec<Option<&str>>> = BTreeMap::new();
    for finding in before {
        let texts = known.entry((&finding.code, &finding.message)).or_default();
        texts.push(finding.text.as_deref());
    }
    type Fits = fn(Option<&str>, Option<&str>) -> bool;
    let passes: [Fits; 2] = [|a, b| a == b, |a, b| a.is_none() || b.is_none()];
    let mut matched = vec![false; after.len()];
    for fits in passes {
        for (finding, matched) in after.iter().zip(&mut matched).filter(|(_, matched)| !**matched) {
            let key = (finding.code.as_str(), finding.message.as_str());
            let Some(texts) = known.get_mut(&key) else { continue };
            let place = texts.iter().position(|text| fits(*text, finding.text.as_deref()));
            *matched = place.map(|place| texts.swap_remove(place)).is_some();
        }
    }
    let left = matched.iter().filter(|matched| **matched).count();
    drop(known);
    let new = after.into_iter().zip(matched).filter(|(_, matched)| !matched);
    let new = new.map(|(finding, _)| finding).collect();
    (new, left)
}

/// What is said of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) path: String,
    pub(crate) new: Vec<Finding>,
    pub(crate) left: usize,
    /// Nothing was known of it before, so that everything is told.
    pub(crate) strange: bool,
}

/// What a server makes of a change, in words. Empty if there is nothing to say.
pub(crate) fn words(server: &str, own: &[Told], others: &[Told], fixed: &[String]) -> String {
    let mut text = String::new();
    let new: usize = own.iter().filter(|told| !told.strange).map(|told| told.new.len()).sum();
    if new > 0 {
        let _ = writeln!(text, "This brings {} ({server}):", count(new, "new error"));
        own.iter().filter(|told| !told.strange).for_each(|told| list(&mut text, told));
    }
    for told in own.iter().filter(|told| told.strange && !told.new.is_empty()) {
        let path = &told.path;
        let _ = writeln!(text, "Errors in {path}, which was not looked at before ({server}):");
        list(&mut text, told);
    }
    if !others.is_empty() {
        let _ = match text.is_empty() {
            true => writeln!(text, "This brings new errors in other files ({server}):"),
            false => writeln!(text, "Also new in other files:"),
        };
        others.iter().take(OTHERS).for_each(|told| list(&mut text, told));
        if others.len() > OTHERS {
            let _ = writeln!(text, "and in {}", count(others.len() - OTHERS, "more file"));
        }
    }
    let left: usize = own.iter().map(|told| told.left).sum();
    if !text.is_empty() && left > 0 {
        let _ = match left {
            1 => writeln!(text, "1 error that was there before is not shown."),
            _ => writeln!(text, "{left} errors that were there before are not shown."),
        };
    }
    for path in fixed {
        let _ = writeln!(text, "{path} has no errors any more ({server}).");
    }
    bounded(text.trim_end())
}

/// What came later than the answer to a change, in words.
pub(crate) fn late_words(server: &str, changed: &[String], told: &[Told]) -> String {
    let new: usize = told.iter().map(|told| told.new.len()).sum();
    let mut text = format!(
        "After your change of {}, {server} reports {}:\n",
        cut(&changed.join(", "), WIDTH),
        count(new, "new error")
    );
    told.iter().for_each(|told| list(&mut text, told));
    let mut lines: Vec<&str> = text.lines().collect();
    let more = lines.len().saturating_sub(11);
    lines.truncate(11);
    let mut text = lines.join("\n");
    if more > 0 {
        text.push_str("\n…");
    }
    bounded(&text)
}

fn list(text: &mut String, told: &Told) {
    for Finding { at: (line, character), code, message, text: source, .. } in
        told.new.iter().take(SHOWN)
    {
        let code = if code.is_empty() { String::new() } else { format!(" [{code}]") };
        let message = cut(message, WIDTH);
        let _ = writeln!(text, "{}:{line}:{character}: {message}{code}", told.path);
        if let Some(source) = source.as_deref().filter(|source| !source.is_empty()) {
            let _ = writeln!(text, "    {}", cut(source, WIDTH));
        }
    }
    if told.new.len() > SHOWN {
        let _ = writeln!(text, "and {} more in {}", told.new.len() - SHOWN, told.path);
    }
}

/// At most so many bytes of whole lines.
fn bounded(text: &str) -> String {
    if text.len() <= REVIEW {
        return text.to_owned();
    }
    let mut kept = String::new();
    for line in text.lines() {
        if kept.len() + line.len() > REVIEW {
            break;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    kept + "…"
}

/// A number of things: `1 new error`, `2 new errors`.
pub(crate) fn count(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        _ => format!("{number} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, prop};
    use proptest::{prop_assert, prop_assert_eq, proptest};
    use serde_json::json;

    fn found(line: u32, message: &str, text: Option<&str>) -> Finding {
        let point = Point { line, unit: 2 };
        let text = text.map(str::to_owned);
        Finding { point, at: (line + 1, 3), code: "E1".into(), message: message.into(), text }
    }

    #[test]
    fn odd_items_cost_themselves_alone() {
        let text = Text::new("x = 𝄞 + 1\n".into());
        let list = json!([
            {"range": {"start": {"line": 0, "character": 6}}, "severity": 1, "code": 2322,
             "message": "no\r\n  good\u{1b}[2J"},
            {"message": "no severity, far away", "range": {"start": {"line": 99, "character": 0}}},
            {"severity": 2, "message": "a warning"}, {"severity": 4, "message": "a hint"},
            {"severity": 1}, 7, null, {"severity": 1, "message": {"kind": "markdown", "value": "m"}},
        ]);
        let found = parse(&list, Worth::Errors, Some(&text), Encoding::Utf16);
        let said: Vec<_> = found.iter().map(|one| (one.at, one.message.as_str())).collect();
        assert_eq!(
            said,
            [((1, 6), "no good [2J"), ((2, 1), "no severity, far away"), ((1, 1), "m")]
        );
        assert_eq!((found[0].code.as_str(), found[0].text.as_deref()), ("2322", Some("x = 𝄞 + 1")));
        assert_eq!(parse(&list, Worth::Warnings, None, Encoding::Utf16).len(), 4);
        assert!(parse(&json!("odd"), Worth::Errors, None, Encoding::Utf8).is_empty());
        let many = Value::Array(vec![json!({"message": "x".repeat(9_000)}); 600]);
        let many = parse(&many, Worth::Errors, None, Encoding::Utf8);
        assert_eq!((many.len(), many[0].message.chars().count()), (KEPT, LENGTH + 1));
    }

    #[test]
    fn neither_way_clears_the_other_and_nothing_is_told_twice() {
        let mut store = Store::default();
        let put = |store: &mut Store, way, list: &[Finding]| {
            store.put("a.rs", way, list.into(), Interest::Open);
            store.snapshot().get("a.rs").map(Found::all).unwrap_or_default().len()
        };
        assert_eq!(put(&mut store, Way::Pushed, &[found(3, "a", None), found(4, "b", None)]), 2);
        assert_eq!(put(&mut store, Way::Pulled, &[found(3, "a", Some("x"))]), 2);
        assert_eq!(put(&mut store, Way::Pushed, &[]), 1);
        assert_eq!(put(&mut store, Way::Pulled, &[]), 0);
        assert!(store.files.is_empty());
    }

    #[test]
    fn a_flood_of_files_does_not_push_out_what_is_open() {
        let mut store = Store::default();
        for number in 0..50_000 {
            store.put(
                &format!("f{number}"),
                Way::Pushed,
                [found(0, "m", None)].into(),
                Interest::Chance,
            );
        }
        assert_eq!(store.files.len(), FILES);
        store.put("open", Way::Pushed, [found(0, "m", None)].into(), Interest::Open);
        assert!(store.files.len() == FILES && store.files.contains_key("open"));
    }

    #[test]
    fn what_has_only_moved_is_not_new() {
        let before = [found(3, "m", Some("f(1)")), found(9, "m", Some("f(2)"))];
        let after = vec![found(7, "m", Some("f(2)")), found(8, "m", Some("f(3)"))];
        let (new, left) = difference(&before, after);
        assert_eq!((new, left), (vec![found(8, "m", Some("f(3)"))], 1));
        // The same once more is new.
        let twice = vec![found(3, "m", Some("f(1)")), found(4, "m", Some("f(1)"))];
        assert_eq!(difference(&before, twice).0.len(), 1);
        // Where a text was not at hand, the words decide.
        assert_eq!(difference(&[found(3, "m", None)], vec![found(5, "m", Some("f(9)"))]).1, 1);
    }

    #[test]
    fn the_words_say_what_is_new_and_count_what_is_not() {
        let own = Told {
            path: "src/a.py".into(),
            new: vec![found(2, "bad", Some("f(\"s\")"))],
            left: 2,
            strange: false,
        };
        let other = Told {
            path: "src/b.py".into(),
            new: vec![found(9, "worse", None)],
            left: 4,
            strange: false,
        };
        assert_eq!(
            words("pyright", std::slice::from_ref(&own), std::slice::from_ref(&other), &[]),
            "This brings 1 new error (pyright):\nsrc/a.py:3:3: bad [E1]\n    f(\"s\")\nAlso new in other \
             files:\nsrc/b.py:10:3: worse [E1]\n2 errors that were there before are not shown."
        );
        let quiet = Told { new: Vec::new(), ..own.clone() };
        assert_eq!(words("pyright", std::slice::from_ref(&quiet), &[], &[]), "");
        assert_eq!(
            words("pyright", &[quiet], &[], &["src/a.py".into()]),
            "src/a.py has no errors any more (pyright)."
        );
        let strange = Told { strange: true, left: 0, ..own };
        assert!(words("pyright", &[strange], &[], &[]).starts_with(
            "Errors in src/a.py, which was not looked at before (pyright):\nsrc/a.py:3:3"
        ));
    }

    #[test]
    fn a_review_is_bounded() {
        let long = "x".repeat(2_000);
        let new: Vec<Finding> = (0..400).map(|line| found(line, &long, Some(&long))).collect();
        let told: Vec<Told> = (0..9)
            .map(|file| Told {
                path: format!("f{file}"),
                new: new.clone(),
                left: 0,
                strange: false,
            })
            .collect();
        let text = words("s", &told, &told, &[]);
        assert!(text.len() <= REVIEW + 4 && text.ends_with('…'), "{}", text.len());
        let late = late_words("s", &["a".repeat(5_000)], &told);
        assert!(late.len() <= REVIEW + 4 && late.lines().count() <= 12, "{late}");
    }

    fn findings() -> impl Strategy<Value = Vec<Finding>> {
        let texts = prop::sample::select(vec![None, Some("x"), Some("y")]);
        let one = (0_u32..5, prop::sample::select(vec!["m", "n"]), texts);
        let one = one.prop_map(|(line, message, text)| found(line, message, text));
        prop::collection::vec(one, 0..12)
    }

    proptest! {
        #[test]
        fn new_and_left_are_all_there_is(before in findings(), after in findings()) {
            let (new, left) = difference(&before, after.clone());
            prop_assert_eq!(new.len() + left, after.len());
            prop_assert!(left <= before.len());
            prop_assert!(new.len() >= after.len().saturating_sub(before.len()));
            prop_assert!(new.iter().all(|one| after.contains(one)));
        }

        #[test]
        fn nothing_is_new_in_the_same_moved_and_shuffled(before in findings(), by in 0_u32..9) {
            let mut after = before.clone();
            after.iter_mut().for_each(|one| one.at.0 += by);
            after.reverse();
            prop_assert_eq!(difference(&before, after), (Vec::new(), before.len()));
        }
    }
}
