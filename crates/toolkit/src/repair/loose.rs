//! From loose JSON to strict JSON, in one pass and without recursion.
//!
//! It knows strings, comments and words, and leaves the grammar to the parser that reads what it
//! writes: there is one opinion on what is valid, and what it does not know it copies.

use std::iter::Peekable;
use std::str::CharIndices;

const COMMAS: &str = "trailing commas were dropped";
const QUOTES: &str = "single quotes around strings were read as double quotes";
const KEYS: &str = "keys without quotes were quoted";
const COMMENTS: &str = "comments were left out";
const CONTROLS: &str = "raw line breaks or control characters in strings were escaped";
const WORDS: &str = "True, False or None were read as true, false or null";

/// Strict JSON in one line, unless what was written is broken.
pub(super) struct Strict {
    pub(super) json: String,
    pub(super) changes: Vec<&'static str>,
    /// What the text ends in the middle of.
    pub(super) inside: Option<&'static str>,
    marks: Vec<Mark>,
}

/// From here on, what was written and what was read from it run in parallel.
struct Mark {
    json: usize,
    written: usize,
}

impl Strict {
    /// Where a byte of the JSON was written.
    pub(super) fn origin(&self, at: usize) -> usize {
        let next = self.marks.partition_point(|mark| mark.json <= at);
        let mark = next.checked_sub(1).and_then(|index| self.marks.get(index));
        mark.map_or(at, |mark| mark.written + (at - mark.json))
    }
}

/// Rewrites a text. Fails at a backslash before a raw control character, which has no one meaning.
pub(super) fn strict(written: &str) -> Result<Strict, usize> {
    let mut scan = Scan {
        rest: written.char_indices().peekable(),
        out: Strict {
            json: String::with_capacity(written.len()),
            changes: Vec::new(),
            inside: None,
            marks: Vec::new(),
        },
        open: Vec::new(),
        last: None,
        comma: None,
    };
    while let Some((at, c)) = scan.rest.next() {
        scan.token(at, c)?;
    }
    scan.write_comma();
    if scan.out.inside.is_none() {
        let part = |open: &char| if *open == '{' { "an object" } else { "an array" };
        scan.out.inside = scan.open.last().map(part);
    }
    Ok(scan.out)
}

struct Scan<'a> {
    rest: Peekable<CharIndices<'a>>,
    out: Strict,
    open: Vec<char>,
    /// What was last seen besides space and comments.
    last: Option<char>,
    /// A comma that is written only if something follows it.
    comma: Option<usize>,
}

impl Scan<'_> {
    fn token(&mut self, at: usize, c: char) -> Result<(), usize> {
        match c {
            ' ' | '\t' | '\n' | '\r' => self.space(),
            '/' if self.rest.next_if(|(_, c)| *c == '/').is_some() => self.line_comment(),
            '/' if self.rest.next_if(|(_, c)| *c == '*').is_some() => self.block_comment(),
            '"' | '\'' => self.string(at, c)?,
            ',' => self.comma(at),
            '{' | '[' => {
                self.open.push(c);
                self.copy(at, c);
            }
            '}' | ']' => {
                self.open.pop();
                if self.comma.take().is_some() {
                    self.change(COMMAS);
                }
                self.copy(at, c);
            }
            c if c.is_alphabetic() || c == '_' || c == '$' => self.word(at, c),
            c => self.copy(at, c),
        }
        Ok(())
    }

    /// Space keeps words apart, and is otherwise of no use.
    fn space(&mut self) {
        if self.comma.is_none() && !self.out.json.ends_with(' ') {
            self.out.json.push(' ');
        }
    }

    fn line_comment(&mut self) {
        self.change(COMMENTS);
        while self.rest.next_if(|(_, c)| *c != '\n').is_some() {}
        self.space();
    }

    fn block_comment(&mut self) {
        self.change(COMMENTS);
        let mut before = None;
        loop {
            match self.rest.next() {
                None => return self.out.inside = Some("a comment"),
                Some((_, '/')) if before == Some('*') => return self.space(),
                Some((_, c)) => before = Some(c),
            }
        }
    }

    fn comma(&mut self, at: usize) {
        self.write_comma();
        let after_value = !matches!(self.last, None | Some('{' | '[' | ',' | ':'));
        if after_value && !self.open.is_empty() {
            self.comma = Some(at);
            self.last = Some(',');
        } else {
            self.copy(at, ',');
        }
    }

    fn word(&mut self, at: usize, first: char) {
        let is_key = self.open.last() == Some(&'{') && matches!(self.last, Some('{' | ','));
        let mut word = String::from(first);
        let inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-');
        while let Some((_, c)) = self.rest.next_if(|(_, c)| inner(*c)) {
            word.push(c);
        }
        self.begin(at);
        let json = match word.as_str() {
            _ if is_key => {
                self.change(KEYS);
                word = format!("\"{word}\"");
                &word
            }
            "True" | "False" | "None" => {
                self.change(WORDS);
                match word.as_str() {
                    "True" => "true",
                    "False" => "false",
                    _ => "null",
                }
            }
            other => other,
        };
        self.out.json.push_str(json);
        self.last = Some(first);
    }

    fn string(&mut self, at: usize, quote: char) -> Result<(), usize> {
        self.begin(at);
        if quote == '\'' {
            self.change(QUOTES);
        }
        self.out.json.push('"');
        self.last = Some(quote);
        while let Some((at, c)) = self.rest.next() {
            self.mark(at);
            match c {
                c if c == quote => {
                    self.out.json.push('"');
                    return Ok(());
                }
                '\\' => match self.rest.next() {
                    Some((_, '\'')) if quote == '\'' => self.out.json.push('\''),
                    Some((_, c)) if c < ' ' => return Err(at),
                    Some((_, c)) => self.out.json.extend(['\\', c]),
                    None => break,
                },
                '"' => self.out.json.push_str("\\\""),
                c if c < ' ' => {
                    self.change(CONTROLS);
                    self.out.json.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                c => self.out.json.push(c),
            }
        }
        self.out.inside = Some("a string");
        Ok(())
    }

    fn copy(&mut self, at: usize, c: char) {
        self.begin(at);
        self.out.json.push(c);
        self.last = Some(c);
    }

    fn begin(&mut self, at: usize) {
        self.write_comma();
        self.mark(at);
    }

    fn write_comma(&mut self) {
        if let Some(at) = self.comma.take() {
            self.mark(at);
            self.out.json.push(',');
        }
    }

    fn mark(&mut self, written: usize) {
        let json = self.out.json.len();
        let runs_on = |mark: &Mark| mark.written + (json - mark.json) == written;
        if !self.out.marks.last().is_some_and(runs_on) {
            self.out.marks.push(Mark { json, written });
        }
    }

    fn change(&mut self, change: &'static str) {
        if !self.out.changes.contains(&change) {
            self.out.changes.push(change);
        }
    }
}
