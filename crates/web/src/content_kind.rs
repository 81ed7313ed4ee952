//! Detects the kind of a response by its first bytes, then by its `Content-Type`.

/// Kind of the fetched content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentKind {
    /// HTML or XHTML.
    Html,
    /// Any other text.
    Text,
    /// A PNG, JPEG, GIF or WebP image.
    Image,
    /// A PDF document.
    Pdf,
    /// Anything else.
    Unknown,
}

/// Media subtypes that are text in addition to `text/*`.
const TEXT_MEDIA_TYPES: [&str; 10] =
    ["json", "xml", "javascript", "ecmascript", "yaml", "toml", "x-sh", "sql", "graphql", "ndjson"];

impl ContentKind {
    /// Detects the kind from the `Content-Type` and the first bytes of a response.
    pub fn detect(content_type: Option<&str>, bytes: &[u8]) -> ContentKind {
        match bytes {
            [0x89, b'P', b'N', b'G', ..]
            | [0xff, 0xd8, 0xff, ..]
            | [b'G', b'I', b'F', b'8', ..]
            | [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => {
                return ContentKind::Image;
            }
            [b'%', b'P', b'D', b'F', b'-', ..] => return ContentKind::Pdf,
            _ => {}
        }
        let content_type =
            content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let content_type = content_type.to_ascii_lowercase();
        let (class, kind) = content_type.split_once('/').unwrap_or(("", ""));
        match (class, kind) {
            ("text", "html") | ("application", "xhtml+xml") => ContentKind::Html,
            ("text", _) => ContentKind::Text,
            ("application" | "image", kind)
                if kind.split(['+', '.']).any(|part| TEXT_MEDIA_TYPES.contains(&part))
                    || TEXT_MEDIA_TYPES
                        .iter()
                        .any(|subtype| kind.strip_prefix("x-") == Some(subtype)) =>
            {
                ContentKind::Text
            }
            _ if starts_like_html(bytes) => ContentKind::Html,
            _ => ContentKind::Unknown,
        }
    }
}

fn starts_like_html(bytes: &[u8]) -> bool {
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
    fn the_bytes_take_precedence_over_the_content_type() {
        let png = b"\x89PNG\r\n\x1a\n";
        for (content_type, bytes, kind) in [
            (Some("text/html"), &png[..], ContentKind::Image),
            (Some("text/html; charset=x"), b"hello", ContentKind::Html),
            (Some("TEXT/Plain"), b"<html>", ContentKind::Text),
            (Some("application/json"), b"{}", ContentKind::Text),
            (Some("application/ld+json"), b"{}", ContentKind::Text),
            (Some("application/vnd.api+json"), b"{}", ContentKind::Text),
            (Some("image/svg+xml"), b"<svg/>", ContentKind::Text),
            (Some("application/x-yaml"), b"a: b", ContentKind::Text),
            (Some("application/octet-stream"), b"%PDF-1.7", ContentKind::Pdf),
            (Some("application/octet-stream"), b"PK\x03\x04", ContentKind::Unknown),
            (Some("image/png"), b"\n <!DOCTYPE HTML>", ContentKind::Html),
            (None, b"\xef\xbb\xbf<html lang=en>", ContentKind::Html),
            (None, b"", ContentKind::Unknown),
        ] {
            assert_eq!(
                ContentKind::detect(content_type, bytes),
                kind,
                "{content_type:?} {bytes:?}"
            );
        }
    }
}
