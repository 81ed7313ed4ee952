//! Front matter: the settings at the head of a Markdown file, between two lines of `---`.
//!
//! It is the part of YAML that such files use: maps by indentation, lists, plain and quoted
//! scalars, and texts of several lines. What goes beyond that is refused with its line, and never
//! guessed at: rules may stand there.

use serde_json::{Map, Value};

/// No map lies deeper.
const DEEPEST: usize = 4;

/// A file in two parts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Front {
    /// What stands at its head, in the order it was written.
    pub(crate) settings: Map<String, Value>,
    /// The rest.
    pub(crate) body: String,
}

/// What cannot be read, and in which line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unread {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// A line that says something.
#[derive(Clone, Copy, Debug)]
struct Line<'a> {
    number: usize,
    indent: usize,
    text: &'a str,
    /// With its indentation, for texts of several lines.
    raw: &'a str,
}

/// Reads a file. One that does not begin with `---` has no settings.
pub(crate) fn read(text: &str) -> Result<Front, Unread> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().enumerate();
    let fence = |line: &str| line.trim_end() == "---";
    if !lines.next().is_some_and(|(_, line)| fence(line)) {
        return Ok(Front { settings: Map::new(), body: text.trim().to_owned() });
    }
    let mut head = Vec::new();
    for (index, raw) in lines.by_ref() {
        if fence(raw) {
            let body: Vec<&str> = lines.map(|(_, line)| line).collect();
            let mut reader = Reader { lines: &head };
            let settings = reader.map(0, 0)?;
            if let Some(left) = reader.peek() {
                return Err(unread(left.number, "it stands too far to the left"));
            }
            return Ok(Front { settings, body: body.join("\n").trim().to_owned() });
        }
        let text = raw.trim();
        let blank = raw.get(..raw.len() - raw.trim_start().len()).unwrap_or_default();
        if blank.contains('\t') {
            return Err(unread(index + 1, "a tab cannot indent; use spaces"));
        }
        head.push(Line { number: index + 1, indent: blank.len(), text, raw });
    }
    Err(unread(1, "the settings at its head have no end; close them with ---"))
}

fn unread(line: usize, message: &str) -> Unread {
    Unread { line, message: message.to_owned() }
}

struct Reader<'a> {
    lines: &'a [Line<'a>],
}

impl<'a> Reader<'a> {
    /// The next line that says something.
    fn peek(&mut self) -> Option<Line<'a>> {
        while let Some((first, rest)) = self.lines.split_first() {
            if !first.text.is_empty() && !first.text.starts_with('#') {
                return Some(*first);
            }
            self.lines = rest;
        }
        None
    }

    fn skip(&mut self) {
        self.lines = self.lines.split_first().map(|(_, rest)| rest).unwrap_or_default();
    }

    /// A map whose keys stand at this indentation.
    fn map(&mut self, indent: usize, depth: usize) -> Result<Map<String, Value>, Unread> {
        let mut map = Map::new();
        while let Some(line) = self.peek() {
            if line.indent < indent {
                break;
            }
            if line.indent > indent {
                return Err(unread(line.number, "it is indented, and nothing stands above it"));
            }
            self.skip();
            let (key, rest) = key(line)?;
            let value = self.value(line, rest, depth)?;
            if map.insert(key.clone(), value).is_some() {
                return Err(unread(line.number, &format!("`{key}` stands there twice")));
            }
        }
        Ok(map)
    }

    fn value(&mut self, line: Line<'a>, rest: &str, depth: usize) -> Result<Value, Unread> {
        if let Some(joint) = block(rest) {
            return Ok(self.text(line.indent, joint).into());
        }
        if !rest.is_empty() {
            return scalar(line.number, rest);
        }
        let Some(next) = self.peek() else { return Ok(Value::Null) };
        let is_list = |at: &Line<'_>| at.text == "-" || at.text.starts_with("- ");
        if is_list(&next) && next.indent >= line.indent {
            return self.list(next.indent);
        }
        if next.indent <= line.indent {
            return Ok(Value::Null);
        }
        if depth >= DEEPEST {
            return Err(unread(next.number, "it lies too deep"));
        }
        self.map(next.indent, depth + 1).map(Value::Object)
    }

    fn list(&mut self, indent: usize) -> Result<Value, Unread> {
        let mut items = Vec::new();
        while let Some(line) = self.peek().filter(|line| line.indent == indent) {
            let Some(item) = line.text.strip_prefix('-') else { break };
            self.skip();
            items.push(scalar(line.number, item.trim())?);
        }
        Ok(items.into())
    }

    /// The lines below a key that are indented further than it.
    fn text(&mut self, indent: usize, joint: &str) -> String {
        let mut lines: Vec<&str> = Vec::new();
        let mut margin = None;
        while let Some((first, rest)) = self.lines.split_first() {
            if first.text.is_empty() {
                lines.push("");
            } else if first.indent > indent {
                let margin = *margin.get_or_insert(first.indent);
                let cut = first.indent.min(margin);
                lines.push(first.raw.get(cut..).unwrap_or(first.text).trim_end());
            } else {
                break;
            }
            self.lines = rest;
        }
        lines.join(joint).trim().to_owned()
    }
}

/// How the lines of a text are put together, if a value is one of several lines.
fn block(rest: &str) -> Option<&'static str> {
    match rest {
        "|" | "|-" | "|+" => Some("\n"),
        ">" | ">-" | ">+" => Some(" "),
        _ => None,
    }
}

/// A line's key, and what follows its colon.
fn key(line: Line<'_>) -> Result<(String, &str), Unread> {
    let missing = || unread(line.number, "expected `key: value`");
    if line.text.starts_with(['"', '\'']) {
        let (key, rest) = quoted(line.number, line.text)?;
        let rest = rest.trim_start().strip_prefix(':').ok_or_else(missing)?;
        return Ok((key, uncommented(rest)));
    }
    let found = line.text.match_indices(':').find(|(at, _)| {
        let after = line.text.get(at + 1..).unwrap_or_default();
        after.is_empty() || after.starts_with(' ')
    });
    let (at, _) = found.ok_or_else(missing)?;
    let (key, rest) = line.text.split_at_checked(at).ok_or_else(missing)?;
    let key = key.trim();
    if key.is_empty() || key.starts_with(['-', '?', '[', '{', '&', '!']) {
        return Err(missing());
    }
    Ok((key.to_owned(), uncommented(rest.strip_prefix(':').unwrap_or(rest))))
}

/// A value without the comment behind it.
fn uncommented(text: &str) -> &str {
    let text = text.trim();
    if text.starts_with(['"', '\'']) {
        return text;
    }
    if text.starts_with('#') {
        return "";
    }
    text.split_once(" #").map_or(text, |(value, _)| value).trim_end()
}

fn scalar(number: usize, text: &str) -> Result<Value, Unread> {
    if text.starts_with(['"', '\'']) {
        let (value, rest) = quoted(number, text)?;
        let rest = rest.trim();
        if !rest.is_empty() && !rest.starts_with('#') {
            return Err(unread(number, "something follows the closing quote"));
        }
        return Ok(value.into());
    }
    if text == "{}" {
        return Ok(Map::new().into());
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let items = inner.split(',').map(str::trim).filter(|item| !item.is_empty());
        let items: Result<Vec<Value>, Unread> = items.map(|item| scalar(number, item)).collect();
        return Ok(items?.into());
    }
    if text.starts_with(['{', '[', '&', '*', '!', '|', '>', '%', '@', '`']) {
        return Err(unread(number, "this is more YAML than is read here; put it in quotes"));
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

/// A quoted text, and what follows it.
fn quoted(number: usize, text: &str) -> Result<(String, &str), Unread> {
    let mut told = String::new();
    let mut signs = text.char_indices();
    let quote = signs.next().map(|(_, sign)| sign);
    while let Some((at, sign)) = signs.next() {
        if Some(sign) == quote {
            let rest = text.get(at + 1..).unwrap_or_default();
            if quote == Some('\'') && rest.starts_with('\'') {
                told.push('\'');
                signs.next();
                continue;
            }
            return Ok((told, rest));
        }
        match sign {
            '\\' if quote == Some('"') => match signs.next().map(|(_, sign)| sign) {
                Some('n') => told.push('\n'),
                Some('t') => told.push('\t'),
                Some(sign @ ('"' | '\\' | '/')) => told.push(sign),
                Some(_) | None => return Err(unread(number, "this escape is not known")),
            },
            sign => told.push(sign),
        }
    }
    Err(unread(number, "the quote is not closed"))
}

#[cfg(test)]
mod tests;
