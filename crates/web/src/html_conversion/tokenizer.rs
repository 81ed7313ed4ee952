//! Splits markup into tags and text in one pass.
//!
//! The tokenizer knows no document structure: it accepts any input, looks at every byte a bounded
//! number of times, and decodes nothing. Start reading at [`MarkupTokenizer`].

/// A token of markup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkupToken<'a> {
    /// Text with its character references undecoded.
    Text(&'a str),
    /// Start tag: the name as written, and the text after it.
    StartTag { name: &'a str, attributes: &'a str },
    /// End tag.
    EndTag { name: &'a str },
}

/// Elements whose content is text, even if it looks like markup, such as `script`.
const RAW_TEXT_ELEMENTS: [&str; 8] =
    ["script", "style", "title", "textarea", "iframe", "noembed", "noframes", "xmp"];
/// Elements without content and end tag, such as `br`.
const VOID_ELEMENTS: [&str; 16] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr", "keygen", "frame",
];

/// Returns true for an element without an end tag.
pub(super) fn is_void(name: &str) -> bool {
    VOID_ELEMENTS.contains(&name)
}

/// Iterator over the tokens of a text.
pub(super) struct MarkupTokenizer<'a> {
    rest: &'a str,
    /// Raw text element whose content comes next.
    raw_element: Option<&'a str>,
}

impl<'a> MarkupTokenizer<'a> {
    pub(super) fn new(markup: &'a str) -> MarkupTokenizer<'a> {
        MarkupTokenizer { rest: markup, raw_element: None }
    }

    /// Takes `bytes` bytes; takes everything if that is not a character boundary.
    fn take_bytes(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// Takes everything up to and including `mark`, or to the end.
    fn take_past(&mut self, mark: &str) -> &'a str {
        let bytes = self.rest.find(mark).map_or(self.rest.len(), |at| at + mark.len());
        self.take_bytes(bytes)
    }

    /// Takes the content of a raw text element.
    fn take_raw_content(&mut self, name: &str) -> &'a str {
        let mut from = 0;
        loop {
            let found = self.rest.get(from..).and_then(|rest| rest.find("</"));
            let Some(at) = found.map(|at| from + at) else {
                return self.take_bytes(self.rest.len());
            };
            let after = self.rest.as_bytes().get(at + 2..at + 2 + name.len());
            if after.is_some_and(|after| after.eq_ignore_ascii_case(name.as_bytes())) {
                return self.take_bytes(at);
            }
            from = at + 2;
        }
    }

    /// Parses a tag at its `<`; `None` if the `<` is only a character.
    fn parse_tag(&mut self) -> Option<MarkupToken<'a>> {
        let (is_end_tag, inner) = match self.rest.strip_prefix("</") {
            Some(inner) => (true, inner),
            None => (false, self.rest.strip_prefix('<')?),
        };
        if !inner.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return None;
        }
        let end = find_tag_end(inner);
        let skipped = self.rest.len() - inner.len();
        self.take_bytes(skipped);
        let tag = self.take_bytes(end);
        self.take_bytes(1);
        let name_end = tag.find(|c: char| c.is_ascii_whitespace() || c == '/').unwrap_or(tag.len());
        let (name, attributes) = tag.split_at_checked(name_end)?;
        if is_end_tag {
            return Some(MarkupToken::EndTag { name });
        }
        self.raw_element =
            RAW_TEXT_ELEMENTS.iter().any(|raw| name.eq_ignore_ascii_case(raw)).then_some(name);
        Some(MarkupToken::StartTag { name, attributes })
    }
}

/// Returns the position of the `>` that ends a tag, outside of quotes.
fn find_tag_end(inner: &str) -> usize {
    let mut quote = None;
    let mut previous = b' ';
    for (at, byte) in inner.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at,
            // Quotes count only at the start of a value.
            (None, b'"' | b'\'') if previous == b'=' => quote = Some(byte),
            (Some(open), close) if open == close => quote = None,
            (Some(_) | None, _) => {}
        }
        if !byte.is_ascii_whitespace() {
            previous = byte;
        }
    }
    inner.len()
}

impl<'a> Iterator for MarkupTokenizer<'a> {
    type Item = MarkupToken<'a>;

    fn next(&mut self) -> Option<MarkupToken<'a>> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            if let Some(name) = self.raw_element.take() {
                return Some(MarkupToken::Text(self.take_raw_content(name)));
            }
            match self.rest.find('<') {
                Some(0) => {}
                Some(at) => return Some(MarkupToken::Text(self.take_bytes(at))),
                None => return Some(MarkupToken::Text(self.take_bytes(self.rest.len()))),
            }
            if self.rest.starts_with("<!--") {
                self.take_past("-->");
            } else if self.rest.starts_with("<![CDATA[") {
                self.take_past("]]>");
            } else if self.rest.starts_with("<!") || self.rest.starts_with("<?") {
                self.take_past(">");
            } else if let Some(tag) = self.parse_tag() {
                return Some(tag);
            } else {
                self.take_bytes(1);
                return Some(MarkupToken::Text("&lt;"));
            }
        }
    }
}

/// Iterates over the attributes of a tag, with their names as written.
pub(super) fn parse_attributes(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if rest.is_empty() {
            return None;
        }
        // A name may begin with `=`. It has at least one character, so the loop terminates.
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let end = rest
            .char_indices()
            .find(|(at, c)| *at >= first && (c.is_ascii_whitespace() || matches!(c, '=' | '/')));
        let (name, after) = rest.split_at_checked(end.map_or(rest.len(), |(at, _)| at))?;
        let after = after.trim_start_matches(|c: char| c.is_ascii_whitespace());
        let Some(value) = after.strip_prefix('=') else {
            rest = after;
            return Some((name, ""));
        };
        let value = value.trim_start_matches(|c: char| c.is_ascii_whitespace());
        let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''));
        let (value, after) = match quote {
            Some(quote) => {
                let inner = value.get(1..).unwrap_or_default();
                inner.split_once(quote).unwrap_or((inner, ""))
            }
            None => {
                let end = value.find(|c: char| c.is_ascii_whitespace()).unwrap_or(value.len());
                value.split_at_checked(end).unwrap_or((value, ""))
            }
        };
        rest = after;
        Some((name, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokenize(markup: &str) -> Vec<MarkupToken<'_>> {
        MarkupTokenizer::new(markup).collect()
    }

    #[test]
    fn tags_and_text_are_separated() {
        assert_eq!(
            tokenize("a<B class=x>c</B ><!-- <i> --><br/>1 < 2<!doctype html>"),
            [
                MarkupToken::Text("a"),
                MarkupToken::StartTag { name: "B", attributes: " class=x" },
                MarkupToken::Text("c"),
                MarkupToken::EndTag { name: "B" },
                MarkupToken::StartTag { name: "br", attributes: "/" },
                MarkupToken::Text("1 "),
                MarkupToken::Text("&lt;"),
                MarkupToken::Text(" 2"),
            ]
        );
    }

    #[test]
    fn a_bracket_in_quotes_does_not_end_a_tag() {
        let [MarkupToken::StartTag { attributes: found, .. }, MarkupToken::Text("b")] =
            tokenize("<a title='x > y' href=\"/q?a>b\">b")[..]
        else {
            panic!("expected a tag and a text")
        };
        assert_eq!(
            parse_attributes(found).collect::<Vec<_>>(),
            [("title", "x > y"), ("href", "/q?a>b")]
        );
    }

    #[test]
    fn a_script_is_text_until_its_end_tag() {
        assert_eq!(
            tokenize("<SCRIPT>if (a</b/.test('<p>')) {}</script>x"),
            [
                MarkupToken::StartTag { name: "SCRIPT", attributes: "" },
                MarkupToken::Text("if (a</b/.test('<p>')) {}"),
                MarkupToken::EndTag { name: "script" },
                MarkupToken::Text("x"),
            ]
        );
        assert_eq!(tokenize("<style>a{").len(), 2);
    }

    #[test]
    fn attributes_of_all_kinds_are_parsed() {
        let found: Vec<_> = parse_attributes(" a b=1 c = '2 3' d=\"\" =e/ f=g/h").collect();
        assert_eq!(
            found,
            [("a", ""), ("b", "1"), ("c", "2 3"), ("d", ""), ("=e", ""), ("f", "g/h")]
        );
    }

    proptest! {
        #[test]
        fn tokens_are_parts_of_the_markup(markup in "[<>/!a-c=\"' \\-\u{e9}]{0,80}") {
            for token in MarkupTokenizer::new(&markup) {
                let (MarkupToken::Text(text)
                | MarkupToken::StartTag { name: text, .. }
                | MarkupToken::EndTag { name: text }) = token;
                prop_assert!(text == "&lt;" || markup.contains(text));
                if let MarkupToken::StartTag { attributes: found, .. } = token {
                    for (name, value) in parse_attributes(found) {
                        prop_assert!(found.contains(name) && found.contains(value));
                    }
                }
            }
        }
    }
}
