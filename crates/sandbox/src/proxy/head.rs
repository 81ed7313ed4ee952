//! The head of an HTTP request, read strictly.
//!
//! Pure. Whatever two readers could understand in two ways is refused: a lone CR or LF, a folded
//! line, two lengths, a length beside chunks, a `Host` that contradicts the target. What is sent
//! on is written anew from what was understood, never copied.

use super::hosts::{Host, split_port};

/// How long a head may be.
pub(super) const LONGEST: usize = 16 * 1024;
/// How many fields it may have.
const MOST_FIELDS: usize = 128;
/// Fields that concern one connection only, or that are written anew.
const NOT_SENT_ON: [&str; 12] = [
    "connection",
    "content-length",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The head of one request.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) method: String,
    pub(super) target: String,
    version: Version,
    fields: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Ten,
    Eleven,
}

/// Where the body of a request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    Length(u64),
    Chunks,
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Tunnel { host: Host, port: u16 },
    Request { host: Host, port: u16, path: String, body: Body },
}

/// Why a request is not served: the place it named, as far as it can be read, and what is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) wrong: Wrong,
}

/// With what.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    Host(&'static str),
    Request(&'static str),
}

/// How many of these bytes are the head, with the empty line that ends it, if it is complete; so
/// many of them were looked at before. An error if no head can begin like this.
pub(super) fn find_end(bytes: &[u8], seen: usize) -> Result<Option<usize>, &'static str> {
    let (old, new) = bytes.split_at_checked(seen.saturating_sub(3)).unwrap_or((bytes, &[]));
    let end = new.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
    let mut before = old.last().copied();
    for byte in new.iter().take(end.unwrap_or(new.len())) {
        let fits = match before {
            None => byte.is_ascii_alphabetic(),
            Some(before) => (*byte == b'\n') == (before == b'\r'),
        };
        if !fits || (byte.is_ascii_control() && !b"\r\n\t".contains(byte)) {
            return Err("It is not HTTP: a line ends wrongly or has a control character");
        }
        before = Some(*byte);
    }
    Ok(end.map(|end| old.len() + end))
}

impl Head {
    /// Reads a head with the empty line that ends it.
    pub(super) fn parse(bytes: &[u8]) -> Result<Head, &'static str> {
        let text = str::from_utf8(bytes).map_err(|_| "it is not text")?;
        let text = text.strip_suffix("\r\n\r\n").ok_or("it is cut off")?;
        let mut lines = text.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err("its first line is not METHOD TARGET VERSION");
        };
        let version = match version {
            "HTTP/1.0" => Version::Ten,
            "HTTP/1.1" => Version::Eleven,
            _ => return Err("its version is not HTTP/1.0 or HTTP/1.1"),
        };
        let visible = target.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_token(method) || target.is_empty() || !visible {
            return Err("its first line has a character that does not belong there");
        }
        let mut fields = Vec::new();
        for line in lines {
            let (name, value) = line.split_once(':').ok_or("a field has no colon")?;
            if !is_token(name) {
                return Err("the name of a field is not one, or a line is folded");
            }
            if value.contains(['\r', '\n']) || fields.len() == MOST_FIELDS {
                return Err("it has too many fields, or a line ends wrongly");
            }
            fields.push((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()));
        }
        Ok(Head { method: method.to_owned(), target: target.to_owned(), version, fields })
    }

    /// The values of a field, in order.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.fields.iter().filter(move |(each, _)| each.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }

    /// What it asks for.
    pub(super) fn wish(&self) -> Result<Wish, Flaw> {
        let flaw = |wrong| Flaw { host: self.target.clone(), port: 0, wrong };
        let tunnel = self.method == "CONNECT";
        let (authority, path) = if tunnel {
            (self.target.as_str(), "")
        } else {
            let rest = self.target.split_at_checked(7);
            let rest = rest.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("http://"));
            let (_, rest) = rest.ok_or_else(|| {
                flaw(Wrong::Request("a proxy wants the whole address, beginning with http://"))
            })?;
            rest.split_at_checked(rest.find(['/', '?']).unwrap_or(rest.len())).unwrap_or((rest, ""))
        };
        if self.target.contains('#') {
            return Err(flaw(Wrong::Host("it has a character that no host name has")));
        }
        let (name, port) = split_port(authority).map_err(|why| flaw(Wrong::Host(why)))?;
        let port = match (port, tunnel) {
            (Some(port), _) => port,
            (None, false) => 80,
            (None, true) => return Err(flaw(Wrong::Host("it has no port"))),
        };
        let at = |wrong| Flaw { host: name.to_owned(), port, wrong };
        // Without brackets, the end of such an address and a port look the same.
        if name.contains(':') && !name.starts_with('[') {
            return Err(at(Wrong::Host("an IPv6 address stands in brackets")));
        }
        let host = Host::read(name).map_err(|why| at(Wrong::Host(why)))?;
        let body = self.body().map_err(|why| at(Wrong::Request(why)))?;
        if tunnel {
            return match body {
                Body::Length(0) => Ok(Wish::Tunnel { host, port }),
                Body::Length(_) | Body::Chunks => Err(at(Wrong::Request("CONNECT has no body"))),
            };
        }
        if !self.agrees(&host, port) {
            return Err(at(Wrong::Request("its Host field names another host than its address")));
        }
        let path = match path {
            "" if self.method == "OPTIONS" => "*".to_owned(),
            path if path.starts_with('/') => path.to_owned(),
            path => format!("/{path}"),
        };
        Ok(Wish::Request { host, port, path, body })
    }

    /// Whether the field `Host` is missing or says the same as the target.
    fn agrees(&self, host: &Host, port: u16) -> bool {
        let mut named = self.all("host");
        let Some(first) = named.next() else { return true };
        let said = split_port(first).ok().and_then(|(name, port)| {
            let host = Host::read(name).ok()?;
            Some((host, port.unwrap_or(80)))
        });
        named.next().is_none() && said.is_some_and(|said| said == (host.clone(), port))
    }

    fn body(&self) -> Result<Body, &'static str> {
        let mut lengths = self.all("content-length");
        let mut codings = self.all("transfer-encoding");
        let first = (lengths.next(), codings.next());
        if lengths.next().is_some() || codings.next().is_some() {
            return Err("it says twice how long its body is");
        }
        match first {
            (None, None) => Ok(Body::Length(0)),
            (Some(_), Some(_)) => Err("it says in two ways how long its body is"),
            (Some(length), None) => {
                let digits = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
                let length = length.parse().ok().filter(|_| digits);
                length.map(Body::Length).ok_or("the length of its body is not a number")
            }
            (None, Some(coding)) => {
                let chunked = coding.eq_ignore_ascii_case("chunked");
                if chunked && self.version == Version::Eleven {
                    Ok(Body::Chunks)
                } else {
                    Err("its Transfer-Encoding is not served")
                }
            }
        }
    }

    /// The head that is sent on to the host itself.
    pub(super) fn rewrite(&self, host: &Host, port: u16, path: &str, body: Body) -> String {
        let version = match self.version {
            Version::Ten => "HTTP/1.0",
            Version::Eleven => "HTTP/1.1",
        };
        let place = if port == 80 { host.to_string() } else { format!("{host}:{port}") };
        let mut head = format!("{} {path} {version}\r\nHost: {place}\r\n", self.method);
        let listed: Vec<String> = self
            .all("connection")
            .flat_map(|value| value.split(','))
            .map(|name| name.trim().to_ascii_lowercase())
            .collect();
        for (name, value) in &self.fields {
            let lower = name.to_ascii_lowercase();
            if !NOT_SENT_ON.contains(&lower.as_str()) && !listed.contains(&lower) {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        match body {
            Body::Chunks => head.push_str("Transfer-Encoding: chunked\r\n"),
            Body::Length(0) if self.all("content-length").next().is_none() => {}
            Body::Length(length) => head.push_str(&format!("Content-Length: {length}\r\n")),
        }
        head.push_str("Connection: close\r\n\r\n");
        head
    }
}

/// Whether these are the characters of a method or of a field's name.
fn is_token(text: &str) -> bool {
    let one = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(one)
}

#[cfg(test)]
mod tests;
