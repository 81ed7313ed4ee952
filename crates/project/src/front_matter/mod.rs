//! Parses front matter: the settings at the head of a Markdown file, between two lines of `---`.
//!
//! It supports the part of YAML that such files use: maps by indentation, lists, plain and quoted
//! scalars, and block texts. Other syntax is an error with its line, never guessed at, because the
//! settings may contain permission rules.

use serde_json::{Map, Value};

/// Limits the nesting of maps.
const MAX_MAP_DEPTH: usize = 4;

/// A file split into `settings` and `body`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FrontMatter {
    /// The settings in the order they were written.
    pub(crate) settings: Map<String, Value>,
    /// The text below the front matter.
    pub(crate) body: String,
}

/// A parse error and its line in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrontMatterError {
    pub(crate) line: usize,
    pub(crate) message: String,
}

#[derive(Clone, Copy, Debug)]
struct FrontMatterLine<'a> {
    number: usize,
    indent: usize,
    text: &'a str,
    /// The line with its indentation, for block texts.
    raw: &'a str,
}

/// Parses a file. One that does not begin with `---` has no settings.
pub(crate) fn parse_front_matter(text: &str) -> Result<FrontMatter, FrontMatterError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().enumerate();
    let is_fence = |line: &str| line.trim_end() == "---";
    if !lines.next().is_some_and(|(_, line)| is_fence(line)) {
        return Ok(FrontMatter { settings: Map::new(), body: text.trim().to_owned() });
    }
    let mut head = Vec::new();
    for (index, raw) in lines.by_ref() {
        if is_fence(raw) {
            let body: Vec<&str> = lines.map(|(_, line)| line).collect();
            let mut parser = FrontMatterParser { lines: &head };
            let settings = parser.parse_map(0, 0)?;
            if let Some(next_line) = parser.peek_line() {
                return Err(parse_error(next_line.number, "the line is not indented enough"));
            }
            return Ok(FrontMatter { settings, body: body.join("\n").trim().to_owned() });
        }
        let text = raw.trim();
        let indentation = raw.get(..raw.len() - raw.trim_start().len()).unwrap_or_default();
        if indentation.contains('\t') {
            return Err(parse_error(index + 1, "indented with a tab; use spaces"));
        }
        head.push(FrontMatterLine { number: index + 1, indent: indentation.len(), text, raw });
    }
    Err(parse_error(1, "the front matter is not closed; end it with ---"))
}

fn parse_error(line: usize, message: &str) -> FrontMatterError {
    FrontMatterError { line, message: message.to_owned() }
}

struct FrontMatterParser<'a> {
    lines: &'a [FrontMatterLine<'a>],
}

impl<'a> FrontMatterParser<'a> {
    /// Returns the next line that is neither blank nor a `#` comment.
    fn peek_line(&mut self) -> Option<FrontMatterLine<'a>> {
        while let Some((first, rest)) = self.lines.split_first() {
            if !first.text.is_empty() && !first.text.starts_with('#') {
                return Some(*first);
            }
            self.lines = rest;
        }
        None
    }

    fn skip_line(&mut self) {
        self.lines = self.lines.split_first().map(|(_, rest)| rest).unwrap_or_default();
    }

    /// Parses a map whose keys are indented by `indent`.
    fn parse_map(
        &mut self,
        indent: usize,
        depth: usize,
    ) -> Result<Map<String, Value>, FrontMatterError> {
        let mut map = Map::new();
        while let Some(line) = self.peek_line() {
            if line.indent < indent {
                break;
            }
            if line.indent > indent {
                return Err(parse_error(line.number, "unexpected indentation"));
            }
            self.skip_line();
            let (key, rest) = parse_key(line)?;
            let value = self.parse_value(line, rest, depth)?;
            if map.insert(key.clone(), value).is_some() {
                return Err(parse_error(line.number, &format!("duplicate key `{key}`")));
            }
        }
        Ok(map)
    }

    fn parse_value(
        &mut self,
        line: FrontMatterLine<'a>,
        rest: &str,
        depth: usize,
    ) -> Result<Value, FrontMatterError> {
        if let Some(joiner) = block_joiner(rest) {
            return Ok(self.parse_block_text(line.indent, joiner).into());
        }
        if !rest.is_empty() {
            return parse_scalar(line.number, rest);
        }
        let Some(next) = self.peek_line() else { return Ok(Value::Null) };
        let is_list = |candidate: &FrontMatterLine<'_>| {
            candidate.text == "-" || candidate.text.starts_with("- ")
        };
        if is_list(&next) && next.indent >= line.indent {
            return self.parse_list(next.indent);
        }
        if next.indent <= line.indent {
            return Ok(Value::Null);
        }
        if depth >= MAX_MAP_DEPTH {
            return Err(parse_error(next.number, "nested too deeply"));
        }
        self.parse_map(next.indent, depth + 1).map(Value::Object)
    }

    fn parse_list(&mut self, indent: usize) -> Result<Value, FrontMatterError> {
        let mut items = Vec::new();
        while let Some(line) = self.peek_line().filter(|line| line.indent == indent) {
            let Some(item) = line.text.strip_prefix('-') else { break };
            self.skip_line();
            items.push(parse_scalar(line.number, item.trim())?);
        }
        Ok(items.into())
    }

    /// Collects the lines below a key that are indented further.
    fn parse_block_text(&mut self, indent: usize, joiner: &str) -> String {
        let mut lines: Vec<&str> = Vec::new();
        let mut margin = None;
        while let Some((first, rest)) = self.lines.split_first() {
            if first.text.is_empty() {
                lines.push("");
            } else if first.indent > indent {
                let margin = *margin.get_or_insert(first.indent);
                let offset = first.indent.min(margin);
                lines.push(first.raw.get(offset..).unwrap_or(first.text).trim_end());
            } else {
                break;
            }
            self.lines = rest;
        }
        lines.join(joiner).trim().to_owned()
    }
}

/// Returns the line separator of a block text (`|` or `>`), if the value starts one.
fn block_joiner(rest: &str) -> Option<&'static str> {
    match rest {
        "|" | "|-" | "|+" => Some("\n"),
        ">" | ">-" | ">+" => Some(" "),
        _ => None,
    }
}

/// Splits a line into its key and the text after the colon.
fn parse_key(line: FrontMatterLine<'_>) -> Result<(String, &str), FrontMatterError> {
    let missing = || parse_error(line.number, "expected `key: value`");
    if line.text.starts_with(['"', '\'']) {
        let (key, rest) = parse_quoted(line.number, line.text)?;
        let rest = rest.trim_start().strip_prefix(':').ok_or_else(missing)?;
        return Ok((key, strip_comment(rest)));
    }
    let colon = line.text.match_indices(':').find(|(index, _)| {
        let after = line.text.get(index + 1..).unwrap_or_default();
        after.is_empty() || after.starts_with(' ')
    });
    let (index, _) = colon.ok_or_else(missing)?;
    let (key, rest) = line.text.split_at_checked(index).ok_or_else(missing)?;
    let key = key.trim();
    if key.is_empty() || key.starts_with(['-', '?', '[', '{', '&', '!']) {
        return Err(missing());
    }
    Ok((key.to_owned(), strip_comment(rest.strip_prefix(':').unwrap_or(rest))))
}

/// Removes a trailing `#` comment from a value.
fn strip_comment(text: &str) -> &str {
    let text = text.trim();
    if text.starts_with(['"', '\'']) {
        return text;
    }
    if text.starts_with('#') {
        return "";
    }
    text.split_once(" #").map_or(text, |(value, _)| value).trim_end()
}

fn parse_scalar(number: usize, text: &str) -> Result<Value, FrontMatterError> {
    if text.starts_with(['"', '\'']) {
        let (value, rest) = parse_quoted(number, text)?;
        let rest = rest.trim();
        if !rest.is_empty() && !rest.starts_with('#') {
            return Err(parse_error(number, "unexpected text after the closing quote"));
        }
        return Ok(value.into());
    }
    if text == "{}" {
        return Ok(Map::new().into());
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let items = inner.split(',').map(str::trim).filter(|item| !item.is_empty());
        let items: Result<Vec<Value>, FrontMatterError> =
            items.map(|item| parse_scalar(number, item)).collect();
        return Ok(items?.into());
    }
    if text.starts_with(['{', '[', '&', '*', '!', '|', '>', '%', '@', '`']) {
        return Err(parse_error(number, "unsupported YAML; put the value in quotes"));
    }
    Ok(match text {
        "true" => true.into(),
        "false" => false.into(),
        "null" | "~" => Value::Null,
        text => match text.parse::<f64>().ok().filter(|number| number.is_finite()) {
            Some(number) => number.into(),
            None => text.into(),
        },
    })
}

/// Parses a quoted text. Returns it and the rest of the line.
fn parse_quoted(number: usize, text: &str) -> Result<(String, &str), FrontMatterError> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    let quote = chars.next().map(|(_, c)| c);
    while let Some((index, c)) = chars.next() {
        if Some(c) == quote {
            let rest = text.get(index + 1..).unwrap_or_default();
            if quote == Some('\'') && rest.starts_with('\'') {
                value.push('\'');
                chars.next();
                continue;
            }
            return Ok((value, rest));
        }
        match c {
            '\\' if quote == Some('"') => match chars.next().map(|(_, c)| c) {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some(c @ ('"' | '\\' | '/')) => value.push(c),
                Some(_) | None => return Err(parse_error(number, "unknown escape sequence")),
            },
            c => value.push(c),
        }
    }
    Err(parse_error(number, "missing closing quote"))
}

#[cfg(test)]
mod tests;
