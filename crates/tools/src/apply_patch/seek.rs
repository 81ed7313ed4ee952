//! Finding lines among a file's lines, from strict to lax.
//!
//! Lines are numbered by their text once per lens and then compared as numbers, so that a long
//! file of equal lines costs no more than another.

use super::Refusal;
use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

/// How many lines may be compared for one file: seconds at worst, and far more than an honest
/// patch needs.
const STEPS: usize = 400_000_000;

/// How much of a difference between two lines is overlooked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lens {
    Exact,
    /// Whitespace at the end of a line.
    Trailing,
    /// Whitespace around it, so its indentation too.
    Surrounding,
    /// And typographic quotes, dashes and spaces in place of plain ones.
    Plain,
}

impl Lens {
    const ALL: [Lens; 4] = [Lens::Exact, Lens::Trailing, Lens::Surrounding, Lens::Plain];

    /// Whether lines that look equal may differ in more than what nobody sees.
    pub(super) fn is_lax(self) -> bool {
        match self {
            Lens::Exact | Lens::Trailing => false,
            Lens::Surrounding | Lens::Plain => true,
        }
    }

    /// The line as it looks through the lens.
    pub(super) fn see(self, line: &str) -> Cow<'_, str> {
        match self {
            Lens::Exact => Cow::Borrowed(line),
            Lens::Trailing => Cow::Borrowed(line.trim_end()),
            Lens::Surrounding => Cow::Borrowed(line.trim()),
            Lens::Plain if line.is_ascii() => Cow::Borrowed(line.trim()),
            Lens::Plain => Cow::Owned(line.trim().chars().map(plain).collect()),
        }
    }
}

/// The character on a keyboard that stands for a typographic one.
pub(super) fn plain(character: char) -> char {
    match character {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// A file's text by lines, for searching.
pub(super) struct View<'a> {
    pub(super) text: &'a str,
    pub(super) lines: Vec<&'a str>,
    exact: OnceCell<Index<'a>>,
    trailing: OnceCell<Index<'a>>,
    surrounding: OnceCell<Index<'a>>,
    plain: OnceCell<Index<'a>>,
    /// How many lines may still be compared.
    pub(super) left: Cell<usize>,
}

/// Lines as numbers: equal lines have equal numbers.
struct Index<'a> {
    numbers: Vec<u32>,
    known: HashMap<Cow<'a, str>, u32>,
    /// For each number, the line that alone has it.
    lone: Vec<Option<usize>>,
}

impl<'a> Index<'a> {
    fn new(lines: &[&'a str], lens: Lens) -> Index<'a> {
        let mut known: HashMap<Cow<'a, str>, u32> = HashMap::new();
        let mut number = |line: &'a str| {
            let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
            *known.entry(lens.see(line)).or_insert(next)
        };
        let numbers: Vec<u32> = lines.iter().map(|line| number(line)).collect();
        let mut lone: Vec<Option<usize>> = Vec::with_capacity(known.len());
        for (at, number) in numbers.iter().enumerate() {
            match lone.get_mut(*number as usize) {
                Some(seen) => *seen = None,
                None => lone.push(Some(at)),
            }
        }
        Index { numbers, known, lone }
    }

    /// The one place where lines can stand, if one of them stands nowhere else: most hunks have
    /// such a line, and then there is nothing to search.
    fn only_start(&self, needle: &[u32]) -> Option<Option<usize>> {
        let lone = |number: &u32| self.lone.get(*number as usize).copied().flatten();
        let (offset, at) =
            needle.iter().enumerate().find_map(|(offset, number)| Some((offset, lone(number)?)))?;
        let start = at.checked_sub(offset);
        let fits = |start: &usize| {
            self.numbers.get(*start..).is_some_and(|numbers| numbers.starts_with(needle))
        };
        Some(start.filter(fits))
    }
}

impl<'a> View<'a> {
    pub(super) fn new(text: &'a str) -> View<'a> {
        let whole = text.strip_suffix('\n').unwrap_or(text);
        let lines = if text.is_empty() { Vec::new() } else { whole.split('\n').collect() };
        View {
            text,
            lines,
            exact: OnceCell::new(),
            trailing: OnceCell::new(),
            surrounding: OnceCell::new(),
            plain: OnceCell::new(),
            left: Cell::new(STEPS),
        }
    }

    fn index(&self, lens: Lens) -> &Index<'a> {
        let cell = match lens {
            Lens::Exact => &self.exact,
            Lens::Trailing => &self.trailing,
            Lens::Surrounding => &self.surrounding,
            Lens::Plain => &self.plain,
        };
        cell.get_or_init(|| Index::new(&self.lines, lens))
    }

    /// The first places, at most so many, from a line on where `wanted` stands, through the
    /// strictest lens that shows any.
    pub(super) fn seek(
        &self,
        wanted: &[&str],
        from: usize,
        most: usize,
    ) -> Result<Option<(Lens, Vec<usize>)>, Refusal> {
        if wanted.is_empty() {
            return Ok(None);
        }
        for lens in Lens::ALL {
            let found = self.seek_through(lens, wanted, from, most)?;
            if !found.is_empty() {
                return Ok(Some((lens, found)));
            }
        }
        Ok(None)
    }

    /// The same through one lens.
    pub(super) fn seek_through(
        &self,
        lens: Lens,
        wanted: &[&str],
        from: usize,
        most: usize,
    ) -> Result<Vec<usize>, Refusal> {
        let index = self.index(lens);
        let Some(needle) = numbers(index, wanted, lens) else { return Ok(Vec::new()) };
        match index.only_start(&needle) {
            Some(start) => Ok(start.filter(|start| *start >= from).into_iter().collect()),
            None => self.scan(index, &needle, from, most),
        }
    }

    fn scan(
        &self,
        index: &Index<'_>,
        needle: &[u32],
        from: usize,
        most: usize,
    ) -> Result<Vec<usize>, Refusal> {
        let hay = index.numbers.get(from..).unwrap_or_default();
        let found = places(hay, needle, most);
        let seen = match found.last() {
            Some(last) if found.len() == most => last + needle.len(),
            Some(_) | None => hay.len(),
        };
        self.spend(seen + needle.len())?;
        Ok(found.iter().map(|place| place + from).collect())
    }

    /// Whether the file ends with `wanted`, not before a line.
    pub(super) fn seek_at_end(&self, wanted: &[&str], from: usize) -> Option<(Lens, usize)> {
        let start = self.lines.len().checked_sub(wanted.len()).filter(|start| *start >= from)?;
        let fits = |lens: &Lens| {
            let index = self.index(*lens);
            let needle = numbers(index, wanted, *lens);
            needle.is_some_and(|needle| index.numbers.ends_with(&needle))
        };
        Lens::ALL.into_iter().find(fits).map(|lens| (lens, start))
    }

    /// Takes from what may still be compared.
    pub(super) fn spend(&self, steps: usize) -> Result<(), Refusal> {
        match self.left.get().checked_sub(steps) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(Refusal::new(
                "it takes too long to find so many hunks in so long a file. Send the patch in \
                 parts, with fewer hunks each.",
            )),
        }
    }
}

/// The numbers of lines; nothing when the file does not have one of them.
fn numbers(index: &Index<'_>, wanted: &[&str], lens: Lens) -> Option<Vec<u32>> {
    wanted.iter().map(|line| index.known.get(lens.see(line).as_ref()).copied()).collect()
}

/// Where `needle` stands in `hay`, in time that grows with their lengths only (Knuth, Morris and
/// Pratt): after a mismatch the search goes on with the longest border of what had matched.
fn places(hay: &[u32], needle: &[u32], most: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut borders: Vec<usize> = vec![0];
    let advance = |borders: &[usize], mut length: usize, number: u32| loop {
        if needle.get(length) == Some(&number) {
            return length + 1;
        }
        match length.checked_sub(1) {
            Some(last) => length = borders.get(last).copied().unwrap_or(0),
            None => return 0,
        }
    };
    let mut length = 0;
    for number in needle.iter().skip(1) {
        length = advance(&borders, length, *number);
        borders.push(length);
    }
    let mut length = 0;
    for (at, number) in hay.iter().enumerate() {
        length = advance(&borders, length, *number);
        if length == needle.len() {
            found.push(at + 1 - length);
            if found.len() >= most {
                break;
            }
        }
    }
    found
}
