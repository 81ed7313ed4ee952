//! A call under way: where it ends, and what it says.

use super::json::{self, Scan};
use super::marks::Form;
use serde_json::{Map, Value};

/// A call as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Written {
    pub(super) tool: String,
    pub(super) arguments: String,
}

/// The longest beginning that does not say yet whether it is a call.
const LONGEST_HEAD: usize = 256;

/// What may stand between calls or after them and means nothing.
const BETWEEN: &[&str] =
    &["<tool_call>", "[TOOL_CALLS]", "<|python_tag|>", "<|eom_id|>", "<|eot_id|>", "</s>"];

const OPEN: &str = "<parameter=";
const CLOSE: &str = "</parameter>";

/// A call under way.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gather {
    form: Form,
    /// All of it, with its mark and the whitespace before it.
    raw: String,
    /// Where in `raw` the mark is.
    mark: usize,
    /// Where in `raw` the mark ends.
    body: usize,
    inside: Inside,
    /// The end of the first closing tag that may be part of an argument.
    doubtful: Option<usize>,
}

/// What a call is made of.
#[derive(Clone, Debug, PartialEq)]
enum Inside {
    Unknown,
    Json(Scan),
    /// Parameters in tags, and how many of them are open.
    Tags(usize),
}

/// What a character did to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    More,
    /// It is complete.
    Closed,
    /// It is no call.
    Bad,
}

/// Whether a call's closing tag was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Written,
    Missing,
}

impl Gather {
    /// A call that begins with a mark, after some whitespace.
    pub(super) fn new(form: Form, before: String, mark: &str) -> Gather {
        let (at, mut raw) = (before.len(), before);
        raw.push_str(mark);
        let body = raw.len();
        Gather { form, raw, mark: at, body, inside: Inside::Unknown, doubtful: None }
    }

    /// Takes in the next character.
    pub(super) fn take(&mut self, c: char) -> Step {
        self.raw.push(c);
        match &mut self.inside {
            Inside::Unknown => return self.begin(),
            Inside::Json(scan) => {
                scan.take(c);
            }
            Inside::Tags(open) => match c {
                '=' if self.raw.ends_with(OPEN) => *open += 1,
                '>' if self.raw.ends_with(CLOSE) => *open = open.saturating_sub(1),
                _ => {}
            },
        }
        let closed = c == '>' && self.form.close().is_some_and(|tag| self.raw.ends_with(tag));
        let quoted = match &self.inside {
            Inside::Unknown => false,
            Inside::Json(scan) => scan.in_string(),
            Inside::Tags(open) => *open > 0,
        };
        match (closed, quoted) {
            (true, false) => Step::Closed,
            (true, true) => {
                self.doubtful.get_or_insert(self.raw.len());
                Step::More
            }
            (false, _) => Step::More,
        }
    }

    fn begin(&mut self) -> Step {
        let body = self.body();
        if body.len() > LONGEST_HEAD {
            return Step::Bad;
        }
        let step;
        (step, self.inside) = match head(self.form, body) {
            Head::Unknown => (Step::More, Inside::Unknown),
            Head::Bad => (Step::Bad, Inside::Unknown),
            Head::Tags => (Step::More, Inside::Tags(0)),
            Head::Json => {
                let mut scan = Scan::default();
                scan.take('{');
                (Step::More, Inside::Json(scan))
            }
        };
        step
    }

    fn body(&self) -> &str {
        self.raw.get(self.body..).unwrap_or_default()
    }

    /// How much there is of it.
    pub(super) fn len(&self) -> usize {
        self.raw.len()
    }

    /// Its text.
    pub(super) fn into_raw(self) -> String {
        self.raw
    }

    /// Its mark and what is before it, and what follows.
    pub(super) fn split(self) -> (String, String) {
        let body = self.body().to_owned();
        let mut mark = self.raw;
        mark.truncate(self.body);
        (mark, body)
    }

    /// It up to the first doubtful end, and what follows.
    pub(super) fn split_at_doubt(mut self) -> (Gather, Option<String>) {
        let rest = self.doubtful.take().map(|end| self.raw.split_off(end));
        (self, rest)
    }

    /// The calls it makes, if it can be read.
    pub(super) fn calls(&self, end: End) -> Option<Vec<Written>> {
        let body = self.body();
        let calls = match (self.form, &self.inside) {
            (_, Inside::Unknown) => None,
            (Form::Function, _) => functions(self.raw.get(self.mark..)?, end),
            (Form::Tag | Form::Bracket | Form::Python, Inside::Json(_) | Inside::Tags(_)) => {
                let body = match (self.form.close(), end) {
                    (Some(tag), End::Written) => body.strip_suffix(tag)?,
                    (Some(_), End::Missing) | (None, _) => body,
                };
                match (&self.inside, end) {
                    (Inside::Tags(_), _) => functions(body, end),
                    (_, End::Missing) => sequence(body),
                    (_, End::Written) => {
                        sequence(body).or_else(|| json::broken(body.trim()).map(|call| vec![call]))
                    }
                }
            }
        };
        calls.filter(|calls| !calls.is_empty())
    }
}

enum Head {
    Unknown,
    Bad,
    Json,
    Tags,
}

/// What the beginning of a call says about the rest. It is asked after every character.
fn head(form: Form, body: &str) -> Head {
    let trimmed = body.trim_start();
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    let after_name = trimmed.trim_start_matches(is_name);
    let named = after_name.len() < trimmed.len();
    match (form, trimmed.chars().next()) {
        (Form::Function, _) => match (named, after_name.chars().next()) {
            (_, None) => Head::Unknown,
            (true, Some('{')) => Head::Json,
            (true, Some('>')) => {
                match after_name.trim_start_matches('>').trim_start().chars().next() {
                    None => Head::Unknown,
                    Some('{') => Head::Json,
                    Some('<') => Head::Tags,
                    Some(_) => Head::Bad,
                }
            }
            (_, Some(_)) => Head::Bad,
        },
        (_, None) => Head::Unknown,
        (_, Some('{' | '[')) => Head::Json,
        (Form::Tag, Some('<')) if trimmed == "<function=" => Head::Tags,
        (Form::Tag, Some('<')) if "<function=".starts_with(trimmed) => Head::Unknown,
        (Form::Bracket, Some(_)) if named => match after_name.trim_start().chars().next() {
            None => Head::Unknown,
            Some('{') => Head::Json,
            Some('[') if after_name.starts_with('[') => Head::Json,
            Some(_) => Head::Bad,
        },
        (Form::Tag | Form::Bracket | Form::Python, Some(_)) => Head::Bad,
    }
}

/// Calls as JSON, one after the other, all of them whole.
fn sequence(body: &str) -> Option<Vec<Written>> {
    let mut calls = Vec::new();
    let mut rest = body;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        if let Some(after) = BETWEEN.iter().find_map(|mark| rest.strip_prefix(mark)) {
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Some(calls);
        }
        rest = match json::closed(rest) {
            Some((value, after)) => {
                for object in json::objects(value)? {
                    calls.push(json::call(object)?);
                }
                after
            }
            None => {
                let (call, after) = prefixed(rest)?;
                calls.push(call);
                after
            }
        };
    }
}

/// Splits `name{…}`, `name[ARGS]{…}` or `name[CALL_ID]id[ARGS]{…}` off the front.
fn prefixed(text: &str) -> Option<(Written, &str)> {
    let (name, rest) = text.split_at_checked(text.find(['{', '['])?)?;
    let rest = match rest.strip_prefix("[CALL_ID]") {
        Some(id) => id.split_at_checked(id.find(['{', '['])?)?.1,
        None => rest,
    };
    let rest = rest.strip_prefix("[ARGS]").unwrap_or(rest).trim_start();
    let (arguments, after) = json::closed(rest).filter(|_| rest.starts_with('{'))?;
    let tool = Some(name.trim()).filter(|name| !name.is_empty())?.to_owned();
    Some((Written { tool, arguments: arguments.to_owned() }, after))
}

/// Calls as tags, one after the other.
fn functions(body: &str, end: End) -> Option<Vec<Written>> {
    let mut calls = Vec::new();
    let mut rest = body.trim();
    while let Some(after) = rest.strip_prefix("<function=") {
        let (name, inner) = after.split_at_checked(after.find(['>', '{'])?)?;
        let inner = inner.strip_prefix('>').unwrap_or(inner).trim_start();
        let tool = Some(name.trim()).filter(|name| !name.is_empty())?.to_owned();
        let (arguments, after) = match inner.starts_with('{') {
            true => object(inner, end)?,
            false => parameters(inner, end)?,
        };
        calls.push(Written { tool, arguments });
        rest = after.trim_start();
    }
    rest.is_empty().then_some(calls)
}

/// Splits arguments as JSON and their closing tag off the front.
fn object(text: &str, end: End) -> Option<(String, &str)> {
    if let Some((arguments, after)) = json::closed(text) {
        let after = after.trim_start();
        match after.strip_prefix("</function>") {
            Some(after) => return Some((arguments.to_owned(), after)),
            None if after.is_empty() => return Some((arguments.to_owned(), after)),
            None => {}
        }
    }
    let broken = text.strip_suffix("</function>").filter(|_| end == End::Written)?;
    Some((broken.trim_end().to_owned(), ""))
}

/// Splits parameters in tags and the closing tag of their function off the front. Their values are
/// strings, whatever they hold: what else they might be only the tool's schema can say.
fn parameters(text: &str, end: End) -> Option<(String, &str)> {
    let mut arguments = Map::new();
    let mut rest = text;
    while let Some(after) = rest.strip_prefix(OPEN) {
        let (key, inner) = after.split_once('>')?;
        let (value, after) = parameter(inner)?;
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        arguments.insert(key.trim().to_owned(), Value::String(value.to_owned()));
        rest = after.trim_start();
    }
    let after = match rest.strip_prefix("</function>") {
        Some(after) => after,
        None if rest.is_empty() && end == End::Written => rest,
        None => return None,
    };
    Some((Value::Object(arguments).to_string(), after))
}

/// Splits a parameter's value at the tag that closes it; a value may hold parameters itself.
fn parameter(text: &str) -> Option<(&str, &str)> {
    let mut open = 1_usize;
    for (at, _) in text.match_indices('<') {
        let (value, rest) = text.split_at_checked(at)?;
        if rest.starts_with(OPEN) {
            open += 1;
        } else if let Some(after) = rest.strip_prefix(CLOSE) {
            open -= 1;
            if open == 0 {
                return Some((value, after));
            }
        }
    }
    None
}
