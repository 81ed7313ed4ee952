//! Markup cut into tags and text, in one pass over it.
//!
//! It knows no document: whatever comes is cut somehow, every byte is looked at a bounded number of
//! times, and nothing is decoded. Start reading at [`Tokens`].

/// A piece of markup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Text, its character references as they are.
    Text(&'a str),
    /// The start of an element: its name as written, and what follows the name.
    Open { name: &'a str, attributes: &'a str },
    /// The end of an element.
    Close { name: &'a str },
}

/// Elements whose content is text, whatever it looks like.
const RAW: [&str; 8] =
    ["script", "style", "title", "textarea", "iframe", "noembed", "noframes", "xmp"];
/// Elements that hold nothing and have no end.
const VOID: [&str; 16] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr", "keygen", "frame",
];

/// True for an element that has no end.
pub(super) fn void(name: &str) -> bool {
    VOID.contains(&name)
}

/// The pieces of a text, in order.
pub(super) struct Tokens<'a> {
    rest: &'a str,
    /// The element whose content comes next and is no markup.
    raw: Option<&'a str>,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(markup: &'a str) -> Tokens<'a> {
        Tokens { rest: markup, raw: None }
    }

    /// Takes so many bytes; all there are if that is no place to cut.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// Takes what comes before a mark and the mark, or everything.
    fn take_past(&mut self, mark: &str) -> &'a str {
        let bytes = self.rest.find(mark).map_or(self.rest.len(), |at| at + mark.len());
        self.take(bytes)
    }

    /// The content of an element that holds no markup.
    fn content(&mut self, name: &str) -> &'a str {
        let mut from = 0;
        loop {
            let found = self.rest.get(from..).and_then(|rest| rest.find("</"));
            let Some(at) = found.map(|at| from + at) else { return self.take(self.rest.len()) };
            let after = self.rest.as_bytes().get(at + 2..at + 2 + name.len());
            if after.is_some_and(|after| after.eq_ignore_ascii_case(name.as_bytes())) {
                return self.take(at);
            }
            from = at + 2;
        }
    }

    /// A tag, at its `<`; none if it is only a character.
    fn tag(&mut self) -> Option<Token<'a>> {
        let (closes, inner) = match self.rest.strip_prefix("</") {
            Some(inner) => (true, inner),
            None => (false, self.rest.strip_prefix('<')?),
        };
        if !inner.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return None;
        }
        let end = tag_end(inner);
        let skipped = self.rest.len() - inner.len();
        self.take(skipped);
        let whole = self.take(end);
        self.take(1);
        let named =
            whole.find(|c: char| c.is_ascii_whitespace() || c == '/').unwrap_or(whole.len());
        let (name, attributes) = whole.split_at_checked(named)?;
        if closes {
            return Some(Token::Close { name });
        }
        self.raw = RAW.iter().any(|raw| name.eq_ignore_ascii_case(raw)).then_some(name);
        Some(Token::Open { name, attributes })
    }
}

/// Where a tag ends: its `>`, unless that stands in quotes.
fn tag_end(inner: &str) -> usize {
    let mut quote = None;
    let mut before = b' ';
    for (at, byte) in inner.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at,
            // Quotes mean something only where a value begins.
            (None, b'"' | b'\'') if before == b'=' => quote = Some(byte),
            (Some(open), close) if open == close => quote = None,
            (Some(_) | None, _) => {}
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    inner.len()
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            if let Some(name) = self.raw.take() {
                return Some(Token::Text(self.content(name)));
            }
            match self.rest.find('<') {
                Some(0) => {}
                Some(at) => return Some(Token::Text(self.take(at))),
                None => return Some(Token::Text(self.take(self.rest.len()))),
            }
            if self.rest.starts_with("<!--") {
                self.take_past("-->");
            } else if self.rest.starts_with("<![CDATA[") {
                self.take_past("]]>");
            } else if self.rest.starts_with("<!") || self.rest.starts_with("<?") {
                self.take_past(">");
            } else if let Some(tag) = self.tag() {
                return Some(tag);
            } else {
                self.take(1);
                return Some(Token::Text("&lt;"));
            }
        }
    }
}

/// The attributes of a tag, names as they are written.
pub(super) fn attributes(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if rest.is_empty() {
            return None;
        }
        // A name may begin with `=`, and is at least a character long, so that this ends.
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

    fn cut(markup: &str) -> Vec<Token<'_>> {
        Tokens::new(markup).collect()
    }

    #[test]
    fn tags_and_text_are_told_apart() {
        assert_eq!(
            cut("a<B class=x>c</B ><!-- <i> --><br/>1 < 2<!doctype html>"),
            [
                Token::Text("a"),
                Token::Open { name: "B", attributes: " class=x" },
                Token::Text("c"),
                Token::Close { name: "B" },
                Token::Open { name: "br", attributes: "/" },
                Token::Text("1 "),
                Token::Text("&lt;"),
                Token::Text(" 2"),
            ]
        );
    }

    #[test]
    fn a_bracket_in_quotes_ends_no_tag() {
        let [Token::Open { attributes: found, .. }, Token::Text("b")] =
            cut("<a title='x > y' href=\"/q?a>b\">b")[..]
        else {
            panic!("not a tag and a text")
        };
        assert_eq!(attributes(found).collect::<Vec<_>>(), [("title", "x > y"), ("href", "/q?a>b")]);
    }

    #[test]
    fn scripts_are_text_up_to_their_own_end() {
        assert_eq!(
            cut("<SCRIPT>if (a</b/.test('<p>')) {}</script>x"),
            [
                Token::Open { name: "SCRIPT", attributes: "" },
                Token::Text("if (a</b/.test('<p>')) {}"),
                Token::Close { name: "script" },
                Token::Text("x"),
            ]
        );
        assert_eq!(cut("<style>a{").len(), 2);
    }

    #[test]
    fn attributes_of_all_kinds_are_read() {
        let found: Vec<_> = attributes(" a b=1 c = '2 3' d=\"\" =e/ f=g/h").collect();
        assert_eq!(
            found,
            [("a", ""), ("b", "1"), ("c", "2 3"), ("d", ""), ("=e", ""), ("f", "g/h")]
        );
    }

    proptest! {
        #[test]
        fn nothing_is_invented_and_it_ends(markup in "[<>/!a-c=\"' \\-\u{e9}]{0,80}") {
            for token in Tokens::new(&markup) {
                let (Token::Text(text)
                | Token::Open { name: text, .. }
                | Token::Close { name: text }) = token;
                prop_assert!(text == "&lt;" || markup.contains(text));
                if let Token::Open { attributes: found, .. } = token {
                    for (name, value) in attributes(found) {
                        prop_assert!(found.contains(name) && found.contains(value));
                    }
                }
            }
        }
    }
}
