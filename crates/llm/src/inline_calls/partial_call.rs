//! Collects the text of an inline call in a `PartialInlineCall`, finds its end, and parses it.

use super::call::{InlineCall, parse_broken_call, parse_call};
use super::json_scan::{self, InlineJsonScanner};
use super::tags::InlineCallSyntax;
use serde_json::{Map, Value};

/// Bounds the text after a tag that does not yet show whether it is a call.
const MAX_HEAD_BYTES: usize = 256;

/// Tokens between or after calls that have no meaning.
const IGNORED_TOKENS: &[&str] =
    &["<tool_call>", "[TOOL_CALLS]", "<|python_tag|>", "<|eom_id|>", "<|eot_id|>", "</s>"];

const PARAMETER_OPEN: &str = "<parameter=";
const PARAMETER_CLOSE: &str = "</parameter>";

/// A call whose text is still arriving.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PartialInlineCall {
    syntax: InlineCallSyntax,
    /// The whole text, including the tag and the whitespace before it.
    raw: String,
    /// Offset of the tag in `raw`.
    tag_start: usize,
    /// Offset of the end of the tag in `raw`.
    body_start: usize,
    content: InlineCallBodySyntax,
    /// Offset after the first closing tag that may be part of an argument.
    ambiguous_end: Option<usize>,
}

/// The syntax of a call's body.
#[derive(Clone, Debug, PartialEq)]
enum InlineCallBodySyntax {
    Unknown,
    Json(InlineJsonScanner),
    /// Tagged parameters, with the number of open ones.
    Tags(usize),
}

/// The state of a call after a character was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InlineCallProgress {
    Incomplete,
    Complete,
    NotACall,
}

/// Tells whether the closing tag of a call was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClosingTagPresence {
    Present,
    Missing,
}

impl PartialInlineCall {
    /// Starts a call with its tag (`tag`) and the whitespace before it.
    pub(super) fn new(
        syntax: InlineCallSyntax,
        whitespace: String,
        tag: &str,
    ) -> PartialInlineCall {
        let tag_start = whitespace.len();
        let mut raw = whitespace;
        raw.push_str(tag);
        let body_start = raw.len();
        PartialInlineCall {
            syntax,
            raw,
            tag_start,
            body_start,
            content: InlineCallBodySyntax::Unknown,
            ambiguous_end: None,
        }
    }

    /// Adds the next character.
    pub(super) fn push_char(&mut self, c: char) -> InlineCallProgress {
        self.raw.push(c);
        match &mut self.content {
            InlineCallBodySyntax::Unknown => return self.detect_content(),
            InlineCallBodySyntax::Json(scan) => {
                scan.push_char(c);
            }
            InlineCallBodySyntax::Tags(open) => match c {
                '=' if self.raw.ends_with(PARAMETER_OPEN) => *open += 1,
                '>' if self.raw.ends_with(PARAMETER_CLOSE) => *open = open.saturating_sub(1),
                _ => {}
            },
        }
        let is_closed =
            c == '>' && self.syntax.closing_tag().is_some_and(|tag| self.raw.ends_with(tag));
        let is_quoted = match &self.content {
            InlineCallBodySyntax::Unknown => false,
            InlineCallBodySyntax::Json(scan) => scan.is_in_string(),
            InlineCallBodySyntax::Tags(open) => *open > 0,
        };
        match (is_closed, is_quoted) {
            (true, false) => InlineCallProgress::Complete,
            (true, true) => {
                self.ambiguous_end.get_or_insert(self.raw.len());
                InlineCallProgress::Incomplete
            }
            (false, _) => InlineCallProgress::Incomplete,
        }
    }

    fn detect_content(&mut self) -> InlineCallProgress {
        let body = self.body();
        if body.len() > MAX_HEAD_BYTES {
            return InlineCallProgress::NotACall;
        }
        let progress;
        (progress, self.content) = match classify_head(self.syntax, body) {
            InlineCallBodyKind::Unknown => {
                (InlineCallProgress::Incomplete, InlineCallBodySyntax::Unknown)
            }
            InlineCallBodyKind::NotACall => {
                (InlineCallProgress::NotACall, InlineCallBodySyntax::Unknown)
            }
            InlineCallBodyKind::Tags => {
                (InlineCallProgress::Incomplete, InlineCallBodySyntax::Tags(0))
            }
            InlineCallBodyKind::Json => {
                let mut scan = InlineJsonScanner::default();
                scan.push_char('{');
                (InlineCallProgress::Incomplete, InlineCallBodySyntax::Json(scan))
            }
        };
        progress
    }

    fn body(&self) -> &str {
        self.raw.get(self.body_start..).unwrap_or_default()
    }

    /// Returns the length of the text in bytes.
    pub(super) fn len(&self) -> usize {
        self.raw.len()
    }

    pub(super) fn into_raw(self) -> String {
        self.raw
    }

    /// Splits the text after the tag: the tag with the whitespace before it, and the body.
    pub(super) fn split_tag(self) -> (String, String) {
        let body = self.body().to_owned();
        let mut tag = self.raw;
        tag.truncate(self.body_start);
        (tag, body)
    }

    /// Splits the text at `ambiguous_end`: the call up to there, and the rest.
    pub(super) fn split_at_ambiguous_end(mut self) -> (PartialInlineCall, Option<String>) {
        let rest = self.ambiguous_end.take().map(|end| self.raw.split_off(end));
        (self, rest)
    }

    /// Parses the calls in the text; returns `None` if it is not readable.
    pub(super) fn parse_calls(&self, end: ClosingTagPresence) -> Option<Vec<InlineCall>> {
        let body = self.body();
        let calls = match (self.syntax, &self.content) {
            (_, InlineCallBodySyntax::Unknown) => None,
            (InlineCallSyntax::Function, _) => {
                parse_function_tags(self.raw.get(self.tag_start..)?, end)
            }
            (
                InlineCallSyntax::Tag | InlineCallSyntax::Bracket | InlineCallSyntax::Python,
                InlineCallBodySyntax::Json(_) | InlineCallBodySyntax::Tags(_),
            ) => {
                let body = match (self.syntax.closing_tag(), end) {
                    (Some(tag), ClosingTagPresence::Present) => body.strip_suffix(tag)?,
                    (Some(_), ClosingTagPresence::Missing) | (None, _) => body,
                };
                match (&self.content, end) {
                    (InlineCallBodySyntax::Tags(_), _) => parse_function_tags(body, end),
                    (_, ClosingTagPresence::Missing) => parse_json_calls(body),
                    (_, ClosingTagPresence::Present) => parse_json_calls(body)
                        .or_else(|| parse_broken_call(body.trim()).map(|call| vec![call])),
                }
            }
        };
        calls.filter(|calls| !calls.is_empty())
    }
}

enum InlineCallBodyKind {
    Unknown,
    NotACall,
    Json,
    Tags,
}

/// Classifies a call by the beginning of its body. Called after every character.
fn classify_head(syntax: InlineCallSyntax, body: &str) -> InlineCallBodyKind {
    let trimmed = body.trim_start();
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    let after_name = trimmed.trim_start_matches(is_name);
    let has_name = after_name.len() < trimmed.len();
    match (syntax, trimmed.chars().next()) {
        (InlineCallSyntax::Function, _) => match (has_name, after_name.chars().next()) {
            (_, None) => InlineCallBodyKind::Unknown,
            (true, Some('{')) => InlineCallBodyKind::Json,
            (true, Some('>')) => {
                match after_name.trim_start_matches('>').trim_start().chars().next() {
                    None => InlineCallBodyKind::Unknown,
                    Some('{') => InlineCallBodyKind::Json,
                    Some('<') => InlineCallBodyKind::Tags,
                    Some(_) => InlineCallBodyKind::NotACall,
                }
            }
            (_, Some(_)) => InlineCallBodyKind::NotACall,
        },
        (_, None) => InlineCallBodyKind::Unknown,
        (_, Some('{' | '[')) => InlineCallBodyKind::Json,
        (InlineCallSyntax::Tag, Some('<')) if trimmed == "<function=" => InlineCallBodyKind::Tags,
        (InlineCallSyntax::Tag, Some('<')) if "<function=".starts_with(trimmed) => {
            InlineCallBodyKind::Unknown
        }
        (InlineCallSyntax::Bracket, Some(_)) if has_name => {
            match after_name.trim_start().chars().next() {
                None => InlineCallBodyKind::Unknown,
                Some('{') => InlineCallBodyKind::Json,
                Some('[') if after_name.starts_with('[') => InlineCallBodyKind::Json,
                Some(_) => InlineCallBodyKind::NotACall,
            }
        }
        (InlineCallSyntax::Tag | InlineCallSyntax::Bracket | InlineCallSyntax::Python, Some(_)) => {
            InlineCallBodyKind::NotACall
        }
    }
}

/// Parses a sequence of complete calls in JSON.
fn parse_json_calls(body: &str) -> Option<Vec<InlineCall>> {
    let mut calls = Vec::new();
    let mut rest = body;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        if let Some(after) = IGNORED_TOKENS.iter().find_map(|token| rest.strip_prefix(token)) {
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Some(calls);
        }
        rest = match json_scan::split_closed(rest) {
            Some((value, after)) => {
                for object in json_scan::parse_objects(value)? {
                    calls.push(parse_call(object)?);
                }
                after
            }
            None => {
                let (call, after) = split_named_call(rest)?;
                calls.push(call);
                after
            }
        };
    }
}

/// Splits `name{…}`, `name[ARGS]{…}` or `name[CALL_ID]id[ARGS]{…}` off the front.
fn split_named_call(text: &str) -> Option<(InlineCall, &str)> {
    let (name, rest) = text.split_at_checked(text.find(['{', '['])?)?;
    let rest = match rest.strip_prefix("[CALL_ID]") {
        Some(id) => id.split_at_checked(id.find(['{', '['])?)?.1,
        None => rest,
    };
    let rest = rest.strip_prefix("[ARGS]").unwrap_or(rest).trim_start();
    let (arguments, after) = json_scan::split_closed(rest).filter(|_| rest.starts_with('{'))?;
    let tool = Some(name.trim()).filter(|name| !name.is_empty())?.to_owned();
    Some((InlineCall { tool, arguments: arguments.to_owned() }, after))
}

/// Parses a sequence of calls in `<function=…>` tags.
fn parse_function_tags(body: &str, end: ClosingTagPresence) -> Option<Vec<InlineCall>> {
    let mut calls = Vec::new();
    let mut rest = body.trim();
    while let Some(after) = rest.strip_prefix("<function=") {
        let (name, inner) = after.split_at_checked(after.find(['>', '{'])?)?;
        let inner = inner.strip_prefix('>').unwrap_or(inner).trim_start();
        let tool = Some(name.trim()).filter(|name| !name.is_empty())?.to_owned();
        let (arguments, after) = match inner.starts_with('{') {
            true => split_json_arguments(inner, end)?,
            false => split_parameters(inner, end)?,
        };
        calls.push(InlineCall { tool, arguments });
        rest = after.trim_start();
    }
    rest.is_empty().then_some(calls)
}

/// Splits JSON arguments and their closing tag off the front.
fn split_json_arguments(text: &str, end: ClosingTagPresence) -> Option<(String, &str)> {
    if let Some((arguments, after)) = json_scan::split_closed(text) {
        let after = after.trim_start();
        match after.strip_prefix("</function>") {
            Some(after) => return Some((arguments.to_owned(), after)),
            None if after.is_empty() => return Some((arguments.to_owned(), after)),
            None => {}
        }
    }
    let broken = text.strip_suffix("</function>").filter(|_| end == ClosingTagPresence::Present)?;
    Some((broken.trim_end().to_owned(), ""))
}

/// Splits tagged parameters and the closing tag of their function off the front. All values are
/// strings: only the tool's schema could tell another type.
fn split_parameters(text: &str, end: ClosingTagPresence) -> Option<(String, &str)> {
    let mut arguments = Map::new();
    let mut rest = text;
    while let Some(after) = rest.strip_prefix(PARAMETER_OPEN) {
        let (key, inner) = after.split_once('>')?;
        let (value, after) = split_parameter_value(inner)?;
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        arguments.insert(key.trim().to_owned(), Value::String(value.to_owned()));
        rest = after.trim_start();
    }
    let after = match rest.strip_prefix("</function>") {
        Some(after) => after,
        None if rest.is_empty() && end == ClosingTagPresence::Present => rest,
        None => return None,
    };
    Some((Value::Object(arguments).to_string(), after))
}

/// Splits a parameter value at its closing tag; a value may itself contain parameters.
fn split_parameter_value(text: &str) -> Option<(&str, &str)> {
    let mut depth = 1_usize;
    for (index, _) in text.match_indices('<') {
        let (value, rest) = text.split_at_checked(index)?;
        if rest.starts_with(PARAMETER_OPEN) {
            depth += 1;
        } else if let Some(after) = rest.strip_prefix(PARAMETER_CLOSE) {
            depth -= 1;
            if depth == 0 {
                return Some((value, after));
            }
        }
    }
    None
}
