//! What an answer is: by its first bytes, then by what it says of itself.

/// What kind of thing was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// HTML.
    Page,
    /// Text of another kind.
    Text,
    /// A PNG, JPEG, GIF or WebP picture.
    Picture,
    /// A PDF.
    Document,
    /// Whatever its bytes are.
    Unknown,
}

/// Types besides `text/*` that are text.
const TEXTS: [&str; 10] =
    ["json", "xml", "javascript", "ecmascript", "yaml", "toml", "x-sh", "sql", "graphql", "ndjson"];

impl Kind {
    /// Reads the type and the first bytes of an answer.
    pub fn of(said: Option<&str>, bytes: &[u8]) -> Kind {
        match bytes {
            [0x89, b'P', b'N', b'G', ..]
            | [0xff, 0xd8, 0xff, ..]
            | [b'G', b'I', b'F', b'8', ..]
            | [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => {
                return Kind::Picture;
            }
            [b'%', b'P', b'D', b'F', b'-', ..] => return Kind::Document,
            _ => {}
        }
        let said = said.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let said = said.to_ascii_lowercase();
        let (class, kind) = said.split_once('/').unwrap_or(("", ""));
        match (class, kind) {
            ("text", "html") | ("application", "xhtml+xml") => Kind::Page,
            ("text", _) => Kind::Text,
            ("application" | "image", kind)
                if kind.split(['+', '.']).any(|part| TEXTS.contains(&part))
                    || TEXTS.iter().any(|text| kind.strip_prefix("x-") == Some(text)) =>
            {
                Kind::Text
            }
            _ if begins_as_page(bytes) => Kind::Page,
            _ => Kind::Unknown,
        }
    }
}

fn begins_as_page(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii_start();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii_start();
    [&b"<!doctype html"[..], b"<html"]
        .iter()
        .any(|mark| text.get(..mark.len()).is_some_and(|start| start.eq_ignore_ascii_case(mark)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_more_than_words() {
        let png = b"\x89PNG\r\n\x1a\n";
        for (said, bytes, kind) in [
            (Some("text/html"), &png[..], Kind::Picture),
            (Some("text/html; charset=x"), b"hello", Kind::Page),
            (Some("TEXT/Plain"), b"<html>", Kind::Text),
            (Some("application/json"), b"{}", Kind::Text),
            (Some("application/ld+json"), b"{}", Kind::Text),
            (Some("application/vnd.api+json"), b"{}", Kind::Text),
            (Some("image/svg+xml"), b"<svg/>", Kind::Text),
            (Some("application/x-yaml"), b"a: b", Kind::Text),
            (Some("application/octet-stream"), b"%PDF-1.7", Kind::Document),
            (Some("application/octet-stream"), b"PK\x03\x04", Kind::Unknown),
            (Some("image/png"), b"\n <!DOCTYPE HTML>", Kind::Page),
            (None, b"\xef\xbb\xbf<html lang=en>", Kind::Page),
            (None, b"", Kind::Unknown),
        ] {
            assert_eq!(Kind::of(said, bytes), kind, "{said:?} {bytes:?}");
        }
    }
}
