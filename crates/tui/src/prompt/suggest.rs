//! The list above the prompt: files and agents behind `@`, commands behind `/`, prompts of before.
//!
//! The list follows what is written. A needle that grows is looked for only in what matched before,
//! so that a key costs little in a project of any size.

use super::buffer::Buffer;
use super::history::History;
use super::stock::{Entry, Stock};
use crate::cx::Cx;
use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use windlass_protocol::wire::Listing;

/// So many rows are kept of what matches.
const MOST: usize = 64;

/// What a list is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Files and agents.
    Mention,
    /// Commands.
    Slash,
    /// Prompts of before.
    Past,
}

/// A row of the list.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    pub(super) entry: Entry,
    /// Which of the name's clusters matched.
    pub(super) marks: Vec<u32>,
}

/// A list that is open.
#[derive(Debug)]
pub(super) struct List {
    pub(super) kind: Kind,
    /// Where in the text the sign stands that opened it.
    start: usize,
    pub(super) needle: String,
    pub(super) rows: Vec<Choice>,
    pub(super) chosen: usize,
    /// True if the person went to the row that is chosen.
    moved: bool,
    /// True while what it is of has not come yet.
    pub(super) looking: bool,
    /// The files that matched, by number, while the needle only grows.
    matched: Option<Vec<u32>>,
}

/// Whether a list may be opened by what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opens {
    /// Something was typed.
    Yes,
    /// The cursor was only moved, or something was pasted.
    No,
}

/// The list, if one is open, and what lists are made of.
#[derive(Debug, Default)]
pub(super) struct Suggest {
    pub(super) list: Option<List>,
    pub(super) stock: Stock,
    matcher: Option<Matcher>,
    /// Where the sign stands whose list was closed.
    closed: Option<usize>,
    /// How many names were looked at for the last key.
    #[cfg(test)]
    pub(super) looked_at: usize,
}

/// The sign before the cursor that a list belongs to, and what stands between them.
fn token(buffer: &Buffer) -> Option<(Kind, usize, &str)> {
    let (raw, before) = (buffer.raw(), buffer.before());
    if raw.starts_with('!') {
        return None;
    }
    if let Some(needle) = before.strip_prefix('/')
        && !needle.contains(char::is_whitespace)
    {
        return command_name(raw).map(|_| (Kind::Slash, 0, needle));
    }
    let sign = before.rfind('@')?;
    let (left, needle) = (before.get(..sign)?, before.get(sign + 1..)?);
    let opens = left.is_empty()
        || left.ends_with(|last: char| last.is_whitespace() || "([{\"'`,".contains(last));
    (opens && !needle.contains(char::is_whitespace)).then_some((Kind::Mention, sign, needle))
}

/// The name behind a `/` at the beginning of a text, if it can be one of a command; a path cannot.
pub(crate) fn command_name(raw: &str) -> Option<&str> {
    let name = raw.strip_prefix('/')?.split(char::is_whitespace).next()?;
    let fits = |letter: char| letter.is_alphanumeric() || "-_:.".contains(letter);
    name.chars().all(fits).then_some(name)
}

impl Suggest {
    /// Follows what is written now.
    pub(super) fn follow(&mut self, buffer: &Buffer, opens: Opens, cx: &mut Cx<'_>) {
        let Some((kind, start, needle)) = token(buffer) else {
            (self.list, self.closed) = (None, None);
            return;
        };
        if self.closed.is_some_and(|closed| closed != start) {
            self.closed = None;
        }
        let same = self.list.as_ref().is_some_and(|list| (list.kind, list.start) == (kind, start));
        if kind == Kind::Slash {
            self.stock.want(Listing::Commands, cx);
        }
        if self.closed.is_some() || (opens == Opens::No && !same) {
            self.list = None;
            return;
        }
        if !same {
            if kind == Kind::Mention {
                self.stock.want(Listing::Files, cx);
                self.stock.want(Listing::Agents, cx);
            }
            self.list = Some(List::new(kind, start));
        }
        let needle = needle.to_owned();
        self.fill(&needle, &cx.look.keys);
    }

    /// Opens the list of earlier prompts, or goes to the next row of it.
    pub(super) fn open_past(&mut self, history: &History) {
        self.list = Some(List::new(Kind::Past, 0));
        self.find_past(String::new(), history);
    }

    /// Looks for other words among earlier prompts.
    pub(super) fn find_past(&mut self, needle: String, history: &History) {
        let Some(list) = self.list.as_mut().filter(|list| list.kind == Kind::Past) else { return };
        list.rows = history
            .find(&needle)
            .into_iter()
            .take(MOST)
            .map(|text| Choice { marks: marked(text, &needle), entry: Entry::past(text) })
            .collect();
        (list.chosen, list.needle) = (0, needle);
    }

    /// Closes the list; false if there is none.
    pub(super) fn close(&mut self) -> bool {
        let list = self.list.take();
        if let Some(list) = &list
            && list.kind != Kind::Past
        {
            self.closed = Some(list.start);
        }
        list.is_some()
    }

    /// Goes some rows up or down, round the ends.
    pub(super) fn walk(&mut self, by: isize) {
        if let Some(list) = &mut self.list {
            let rows = list.rows.len().max(1);
            let by = by.rem_euclid(isize::try_from(rows).unwrap_or(1)).unsigned_abs();
            list.chosen = (list.chosen + by) % rows;
            list.moved = true;
        }
    }

    /// The row that is chosen.
    pub(super) fn chosen(&self) -> Option<&Choice> {
        self.list.as_ref().and_then(|list| list.rows.get(list.chosen))
    }

    /// The part of the text that a choice takes the place of, up to the cursor.
    pub(super) fn start(&self) -> usize {
        self.list.as_ref().map_or(0, |list| list.start)
    }

    /// True if Enter means the row that is chosen, and not what is written.
    pub(super) fn is_meant(&self) -> bool {
        let (Some(list), Some(choice)) = (&self.list, self.chosen()) else { return false };
        let name = choice.entry.name.as_str();
        match list.kind {
            Kind::Past => true,
            Kind::Mention => name != list.needle,
            // A sign alone means nothing yet.
            Kind::Slash => {
                list.moved || (!list.needle.is_empty() && name.starts_with(&list.needle))
            }
        }
    }

    /// Takes in a list; true if it was asked for here.
    pub(super) fn answer(
        &mut self,
        id: u64,
        rows: Option<&[windlass_protocol::wire::Row]>,
        cx: &mut Cx<'_>,
    ) -> bool {
        if !self.stock.answer(id, rows, cx.now) {
            return false;
        }
        if let Some(list) = &mut self.list {
            list.matched = None;
            let needle = list.needle.clone();
            self.fill(&needle, &cx.look.keys);
        }
        true
    }

    fn fill(&mut self, needle: &str, keys: &crate::keys::Keys) {
        let Some(list) = self.list.as_mut() else { return };
        let grows = needle.starts_with(&list.needle) && !list.needle.is_empty();
        if list.needle != needle {
            (list.chosen, list.moved) = (0, false);
        }
        needle.clone_into(&mut list.needle);
        let matcher =
            self.matcher.get_or_insert_with(|| Matcher::new(Config::DEFAULT.match_paths()));
        let mut search = Search::new(needle, matcher);
        let mut found: Vec<(u32, Entry)> = Vec::new();
        match list.kind {
            Kind::Past => return,
            Kind::Slash => {
                list.looking = !self.stock.has(Listing::Commands);
                for entry in self.stock.commands(keys) {
                    // What begins like it comes first, in the order of the table.
                    let score = search.score(&entry.name).map(|score| match entry.name.as_str() {
                        name if name == needle => u32::MAX,
                        name if name.starts_with(needle) => u32::MAX - 1,
                        _ => score,
                    });
                    found.extend(score.map(|score| (score, entry)));
                }
            }
            Kind::Mention => {
                list.looking = !self.stock.has(Listing::Files);
                for entry in self.stock.agents() {
                    found.extend(search.score(&entry.name).map(|score| (score, entry)));
                }
                let before = list.matched.take().filter(|_| grows);
                let (best, matched) = search.files(&self.stock.files, before);
                list.matched = matched;
                found.extend(best.into_iter().map(|(score, name)| (score, Entry::file(name))));
            }
        }
        found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        found.truncate(MOST);
        list.rows = found
            .into_iter()
            .map(|(_, entry)| Choice { marks: search.marks(&entry.name), entry })
            .collect();
        list.chosen = list.chosen.min(list.rows.len().saturating_sub(1));
        #[cfg(test)]
        {
            self.looked_at = search.looked_at;
        }
    }
}

impl List {
    fn new(kind: Kind, start: usize) -> List {
        List {
            kind,
            start,
            needle: String::new(),
            rows: Vec::new(),
            chosen: 0,
            moved: false,
            looking: false,
            matched: None,
        }
    }
}

/// A needle that is looked for.
struct Search<'a> {
    atom: Option<Atom>,
    matcher: &'a mut Matcher,
    letters: Vec<char>,
    looked_at: usize,
}

impl<'a> Search<'a> {
    fn new(needle: &str, matcher: &'a mut Matcher) -> Search<'a> {
        let atom = (!needle.is_empty()).then(|| {
            let (case, marks) = (CaseMatching::Smart, Normalization::Smart);
            Atom::new(needle, case, marks, AtomKind::Fuzzy, false)
        });
        Search { atom, matcher, letters: Vec::new(), looked_at: 0 }
    }

    /// How well a name matches; everything matches nothing.
    fn score(&mut self, name: &str) -> Option<u32> {
        let Some(atom) = &self.atom else { return Some(0) };
        self.looked_at += 1;
        let name = Utf32Str::new(name, &mut self.letters);
        atom.score(name, self.matcher).map(u32::from)
    }

    fn marks(&mut self, name: &str) -> Vec<u32> {
        let mut marks = Vec::new();
        if let Some(atom) = &self.atom {
            let name = Utf32Str::new(name, &mut self.letters);
            atom.indices(name, self.matcher, &mut marks);
            marks.sort_unstable();
            marks.dedup();
        }
        marks
    }

    /// The files that match best, and the numbers of all that match.
    fn files<'f>(
        &mut self,
        files: &'f [Box<str>],
        before: Option<Vec<u32>>,
    ) -> (Vec<(u32, &'f str)>, Option<Vec<u32>>) {
        if self.atom.is_none() {
            return (files.iter().take(MOST).map(|file| (0, file.as_ref())).collect(), None);
        }
        let all = || 0..u32::try_from(files.len()).unwrap_or(u32::MAX);
        let numbers: Box<dyn Iterator<Item = u32>> = match before {
            Some(before) => Box::new(before.into_iter()),
            None => Box::new(all()),
        };
        let mut matched: Vec<(u32, u32)> = Vec::new();
        for number in numbers {
            let Some(file) = usize::try_from(number).ok().and_then(|number| files.get(number))
            else {
                continue;
            };
            matched.extend(self.score(file).map(|score| (score, number)));
        }
        let numbers: Vec<u32> = matched.iter().map(|(_, number)| *number).collect();
        let name = |number: u32| usize::try_from(number).ok().and_then(|number| files.get(number));
        // Of equals the shorter one is likelier to be meant.
        let order = |(score, number): &(u32, u32)| {
            (std::cmp::Reverse(*score), name(*number).map_or(0, |name| name.len()), *number)
        };
        if matched.len() > MOST {
            matched.select_nth_unstable_by_key(MOST, order);
            matched.truncate(MOST);
        }
        matched.sort_by_key(order);
        let best = matched.into_iter().filter_map(|(score, number)| Some((score, name(number)?)));
        (best.map(|(score, name)| (score, name.as_ref())).collect(), Some(numbers))
    }
}

/// The clusters of a text that belong to one of these words.
fn marked(text: &str, words: &str) -> Vec<u32> {
    use unicode_segmentation::UnicodeSegmentation;
    let low: Vec<String> = text.graphemes(true).map(str::to_lowercase).collect();
    let mut marks = Vec::new();
    for word in words.split_whitespace().map(str::to_lowercase) {
        let word: Vec<String> = word.graphemes(true).map(str::to_owned).collect();
        for (at, part) in low.windows(word.len().max(1)).enumerate() {
            if part == word.as_slice() {
                let at = u32::try_from(at).unwrap_or(u32::MAX);
                let length = u32::try_from(word.len()).unwrap_or(0);
                marks.extend((0..length).map(|offset| at.saturating_add(offset)));
            }
        }
    }
    marks.sort_unstable();
    marks.dedup();
    marks
}
