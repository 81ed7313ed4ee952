//! Converts loose JSON to strict JSON, in one pass and without recursion.
//!
//! It handles strings, comments and words, and leaves the grammar to the JSON parser that reads the
//! result: only the parser decides what is valid, and anything unknown is copied.

use std::iter::Peekable;
use std::str::CharIndices;

const COMMAS_DROPPED: &str = "trailing commas were removed";
const SINGLE_QUOTES_REPLACED: &str = "single quotes around strings were read as double quotes";
const KEYS_QUOTED: &str = "keys without quotes were quoted";
const COMMENTS_REMOVED: &str = "comments were removed";
const CONTROLS_ESCAPED: &str = "raw line breaks or control characters in strings were escaped";
const PYTHON_LITERALS_REPLACED: &str = "True, False or None were read as true, false or null";

/// The result of `to_strict_json`: JSON, in one line unless the input is broken.
pub(super) struct StrictJson {
    pub(super) json: String,
    pub(super) changes: Vec<&'static str>,
    /// The element in which the text ends, if it is cut off.
    pub(super) unfinished: Option<&'static str>,
    offset_marks: Vec<OffsetSyncPoint>,
}

/// A position from which offsets in the input and in the JSON advance together.
struct OffsetSyncPoint {
    json: usize,
    source: usize,
}

impl StrictJson {
    /// Returns the input offset of a byte of the JSON.
    pub(super) fn source_offset(&self, offset: usize) -> usize {
        let next = self.offset_marks.partition_point(|mark| mark.json <= offset);
        let mark = next.checked_sub(1).and_then(|index| self.offset_marks.get(index));
        mark.map_or(offset, |mark| mark.source + (offset - mark.json))
    }
}

/// Converts a text. Fails at a backslash before a raw control character, which is ambiguous.
pub(super) fn to_strict_json(text: &str) -> Result<StrictJson, usize> {
    let mut scanner = JsonSyntaxRepair {
        rest: text.char_indices().peekable(),
        out: StrictJson {
            json: String::with_capacity(text.len()),
            changes: Vec::new(),
            unfinished: None,
            offset_marks: Vec::new(),
        },
        open: Vec::new(),
        last: None,
        comma: None,
    };
    while let Some((at, c)) = scanner.rest.next() {
        scanner.scan_token(at, c)?;
    }
    scanner.write_comma();
    if scanner.out.unfinished.is_none() {
        let kind = |open: &char| if *open == '{' { "an object" } else { "an array" };
        scanner.out.unfinished = scanner.open.last().map(kind);
    }
    Ok(scanner.out)
}

struct JsonSyntaxRepair<'a> {
    rest: Peekable<CharIndices<'a>>,
    out: StrictJson,
    open: Vec<char>,
    /// The last character other than whitespace and comments.
    last: Option<char>,
    /// A comma that is written only if another value follows.
    comma: Option<usize>,
}

impl JsonSyntaxRepair<'_> {
    fn scan_token(&mut self, at: usize, c: char) -> Result<(), usize> {
        match c {
            ' ' | '\t' | '\n' | '\r' => self.write_space(),
            '/' if self.rest.next_if(|(_, c)| *c == '/').is_some() => self.skip_line_comment(),
            '/' if self.rest.next_if(|(_, c)| *c == '*').is_some() => self.skip_block_comment(),
            '"' | '\'' => self.scan_string(at, c)?,
            ',' => self.hold_comma(at),
            '{' | '[' => {
                self.open.push(c);
                self.copy_char(at, c);
            }
            '}' | ']' => {
                self.open.pop();
                if self.comma.take().is_some() {
                    self.add_change(COMMAS_DROPPED);
                }
                self.copy_char(at, c);
            }
            c if c.is_alphabetic() || c == '_' || c == '$' => self.scan_word(at, c),
            c => self.copy_char(at, c),
        }
        Ok(())
    }

    /// Writes one space, which is needed only to separate words.
    fn write_space(&mut self) {
        if self.comma.is_none() && !self.out.json.ends_with(' ') {
            self.out.json.push(' ');
        }
    }

    fn skip_line_comment(&mut self) {
        self.add_change(COMMENTS_REMOVED);
        while self.rest.next_if(|(_, c)| *c != '\n').is_some() {}
        self.write_space();
    }

    fn skip_block_comment(&mut self) {
        self.add_change(COMMENTS_REMOVED);
        let mut previous = None;
        loop {
            match self.rest.next() {
                None => return self.out.unfinished = Some("a comment"),
                Some((_, '/')) if previous == Some('*') => return self.write_space(),
                Some((_, c)) => previous = Some(c),
            }
        }
    }

    fn hold_comma(&mut self, at: usize) {
        self.write_comma();
        let after_value = !matches!(self.last, None | Some('{' | '[' | ',' | ':'));
        if after_value && !self.open.is_empty() {
            self.comma = Some(at);
            self.last = Some(',');
        } else {
            self.copy_char(at, ',');
        }
    }

    fn scan_word(&mut self, at: usize, first: char) {
        let is_key = self.open.last() == Some(&'{') && matches!(self.last, Some('{' | ','));
        let mut word = String::from(first);
        let is_word_char = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-');
        while let Some((_, c)) = self.rest.next_if(|(_, c)| is_word_char(*c)) {
            word.push(c);
        }
        self.begin_value(at);
        let json = match word.as_str() {
            _ if is_key => {
                self.add_change(KEYS_QUOTED);
                word = format!("\"{word}\"");
                &word
            }
            "True" | "False" | "None" => {
                self.add_change(PYTHON_LITERALS_REPLACED);
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

    fn scan_string(&mut self, at: usize, quote: char) -> Result<(), usize> {
        self.begin_value(at);
        if quote == '\'' {
            self.add_change(SINGLE_QUOTES_REPLACED);
        }
        self.out.json.push('"');
        self.last = Some(quote);
        while let Some((at, c)) = self.rest.next() {
            self.add_offset_mark(at);
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
                    self.add_change(CONTROLS_ESCAPED);
                    self.out.json.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                c => self.out.json.push(c),
            }
        }
        self.out.unfinished = Some("a string");
        Ok(())
    }

    fn copy_char(&mut self, at: usize, c: char) {
        self.begin_value(at);
        self.out.json.push(c);
        self.last = Some(c);
    }

    fn begin_value(&mut self, at: usize) {
        self.write_comma();
        self.add_offset_mark(at);
    }

    fn write_comma(&mut self) {
        if let Some(at) = self.comma.take() {
            self.add_offset_mark(at);
            self.out.json.push(',');
        }
    }

    fn add_offset_mark(&mut self, source: usize) {
        let json = self.out.json.len();
        let is_contiguous = |mark: &OffsetSyncPoint| mark.source + (json - mark.json) == source;
        if !self.out.offset_marks.last().is_some_and(is_contiguous) {
            self.out.offset_marks.push(OffsetSyncPoint { json, source });
        }
    }

    fn add_change(&mut self, change: &'static str) {
        if !self.out.changes.contains(&change) {
            self.out.changes.push(change);
        }
    }
}
