//! Strict parser for the head of an HTTP request.
//!
//! Pure. It refuses everything that two parsers could read differently: a lone CR or LF, a folded
//! line, two lengths, a length with chunked encoding, a `Host` that contradicts the target. The
//! forwarded head is written anew from the parsed values, never copied.

use super::host_allowlist::{Host, split_port};
use super::upstream::HttpRequestForm;

pub(super) const MAX_HEAD_BYTES: usize = 16 * 1024;
const MAX_FIELDS: usize = 128;
/// Fields that apply to one connection only, or that `rewrite` writes anew.
const HOP_BY_HOP_FIELDS: [&str; 12] = [
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
pub(super) struct RequestHead {
    pub(super) method: String,
    pub(super) target: String,
    version: HttpVersion,
    fields: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HttpVersion {
    Http10,
    Http11,
}

/// Framing of a request body: `Content-Length` or chunked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyFraming {
    Length(u64),
    Chunked,
}

/// The operation that a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProxyRequest {
    Tunnel { host: Host, port: u16 },
    Forward { host: Host, port: u16, path: String, body: BodyFraming },
}

/// A request that the proxy refuses: the host it named, as far as it could be parsed, and the
/// problem.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InvalidProxyRequest {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) problem: ProxyRequestProblem,
}

/// The invalid part of the request, with a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProxyRequestProblem {
    Host(&'static str),
    Request(&'static str),
}

/// Returns the length of the head, including the empty line that ends it, or `None` if it is
/// incomplete. The first `seen` bytes were checked in earlier calls. Fails if no head can start
/// with these bytes.
pub(super) fn find_head_end(bytes: &[u8], seen: usize) -> Result<Option<usize>, &'static str> {
    let (old, new) = bytes.split_at_checked(seen.saturating_sub(3)).unwrap_or((bytes, &[]));
    let end = new.windows(4).position(|window| window == b"\r\n\r\n").map(|start| start + 4);
    let mut previous = old.last().copied();
    for byte in new.iter().take(end.unwrap_or(new.len())) {
        let is_valid = match previous {
            None => byte.is_ascii_alphabetic(),
            Some(previous) => (*byte == b'\n') == (previous == b'\r'),
        };
        if !is_valid || (byte.is_ascii_control() && !b"\r\n\t".contains(byte)) {
            return Err("The request is not HTTP: it has an invalid line ending or a control \
                        character");
        }
        previous = Some(*byte);
    }
    Ok(end.map(|end| old.len() + end))
}

impl RequestHead {
    /// Parses a head, including the empty line that ends it.
    pub(super) fn parse(bytes: &[u8]) -> Result<RequestHead, &'static str> {
        let text = str::from_utf8(bytes).map_err(|_| "the request is not valid UTF-8")?;
        let text = text.strip_suffix("\r\n\r\n").ok_or("the request is incomplete")?;
        let mut lines = text.split("\r\n");
        let mut parts = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err("the request line is not METHOD TARGET VERSION");
        };
        let version = match version {
            "HTTP/1.0" => HttpVersion::Http10,
            "HTTP/1.1" => HttpVersion::Http11,
            _ => return Err("the version is not HTTP/1.0 or HTTP/1.1"),
        };
        let is_visible = target.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_token(method) || target.is_empty() || !is_visible {
            return Err("the request line contains an invalid character");
        }
        let mut fields = Vec::new();
        for line in lines {
            let (name, value) = line.split_once(':').ok_or("a header has no colon")?;
            if !is_token(name) {
                return Err("a header name is invalid, or a line is folded");
            }
            if value.contains(['\r', '\n']) || fields.len() == MAX_FIELDS {
                return Err("the request has too many headers, or an invalid line ending");
            }
            fields.push((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()));
        }
        Ok(RequestHead { method: method.to_owned(), target: target.to_owned(), version, fields })
    }

    /// Returns the values of a field, in order.
    pub(super) fn field_values(&self, name: &str) -> impl Iterator<Item = &str> {
        let matching =
            self.fields.iter().filter(move |(field_name, _)| field_name.eq_ignore_ascii_case(name));
        matching.map(|(_, value)| value.as_str())
    }

    /// Interprets the head as a `Tunnel` or `Forward` request.
    pub(super) fn parse_request(&self) -> Result<ProxyRequest, InvalidProxyRequest> {
        let invalid_target =
            |problem| InvalidProxyRequest { host: self.target.clone(), port: 0, problem };
        let is_tunnel = self.method == "CONNECT";
        let (authority, path) = if is_tunnel {
            (self.target.as_str(), "")
        } else {
            let rest = self.target.split_at_checked(7);
            let rest = rest.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("http://"));
            let (_, rest) = rest.ok_or_else(|| {
                invalid_target(ProxyRequestProblem::Request(
                    "a proxy request needs the full URL, starting with http://",
                ))
            })?;
            rest.split_at_checked(rest.find(['/', '?']).unwrap_or(rest.len())).unwrap_or((rest, ""))
        };
        if self.target.contains('#') {
            return Err(invalid_target(ProxyRequestProblem::Host(
                "it contains a character that is invalid in a host name",
            )));
        }
        let (name, port) = split_port(authority)
            .map_err(|reason| invalid_target(ProxyRequestProblem::Host(reason)))?;
        let port = match (port, is_tunnel) {
            (Some(port), _) => port,
            (None, false) => 80,
            (None, true) => {
                return Err(invalid_target(ProxyRequestProblem::Host("the port is missing")));
            }
        };
        let invalid_request =
            |problem| InvalidProxyRequest { host: name.to_owned(), port, problem };
        // Without brackets, the end of an IPv6 address looks like a port.
        if name.contains(':') && !name.starts_with('[') {
            return Err(invalid_request(ProxyRequestProblem::Host(
                "an IPv6 address must be in brackets",
            )));
        }
        let host = Host::parse(name)
            .map_err(|reason| invalid_request(ProxyRequestProblem::Host(reason)))?;
        let body = self
            .body_framing()
            .map_err(|reason| invalid_request(ProxyRequestProblem::Request(reason)))?;
        if is_tunnel {
            return match body {
                BodyFraming::Length(0) => Ok(ProxyRequest::Tunnel { host, port }),
                BodyFraming::Length(_) | BodyFraming::Chunked => Err(invalid_request(
                    ProxyRequestProblem::Request("CONNECT must not have a body"),
                )),
            };
        }
        if !self.host_field_matches(&host, port) {
            return Err(invalid_request(ProxyRequestProblem::Request(
                "the Host header and the URL name different hosts",
            )));
        }
        let path = match path {
            "" if self.method == "OPTIONS" => "*".to_owned(),
            path if path.starts_with('/') => path.to_owned(),
            path => format!("/{path}"),
        };
        Ok(ProxyRequest::Forward { host, port, path, body })
    }

    /// Returns true if the `Host` field is missing or agrees with the target.
    fn host_field_matches(&self, host: &Host, port: u16) -> bool {
        let mut values = self.field_values("host");
        let Some(first) = values.next() else { return true };
        let parsed = split_port(first).ok().and_then(|(name, port)| {
            let host = Host::parse(name).ok()?;
            Some((host, port.unwrap_or(80)))
        });
        values.next().is_none() && parsed.is_some_and(|parsed| parsed == (host.clone(), port))
    }

    fn body_framing(&self) -> Result<BodyFraming, &'static str> {
        let mut lengths = self.field_values("content-length");
        let mut codings = self.field_values("transfer-encoding");
        let first = (lengths.next(), codings.next());
        if lengths.next().is_some() || codings.next().is_some() {
            return Err("the length of the body is given twice");
        }
        match first {
            (None, None) => Ok(BodyFraming::Length(0)),
            (Some(_), Some(_)) => Err("the length of the body is given in two ways"),
            (Some(length), None) => {
                let is_numeric = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
                let length = length.parse().ok().filter(|_| is_numeric);
                length.map(BodyFraming::Length).ok_or("the length of the body is not a number")
            }
            (None, Some(coding)) => {
                let is_chunked = coding.eq_ignore_ascii_case("chunked");
                if is_chunked && self.version == HttpVersion::Http11 {
                    Ok(BodyFraming::Chunked)
                } else {
                    Err("the Transfer-Encoding is unsupported")
                }
            }
        }
    }

    /// Writes the head to forward to the host.
    pub(super) fn rewrite(
        &self,
        host: &Host,
        port: u16,
        path: &str,
        body: BodyFraming,
        form: &HttpRequestForm,
    ) -> String {
        let version = match self.version {
            HttpVersion::Http10 => "HTTP/1.0",
            HttpVersion::Http11 => "HTTP/1.1",
        };
        let authority = if port == 80 { host.to_string() } else { format!("{host}:{port}") };
        let target = match form {
            HttpRequestForm::Origin => path.to_owned(),
            HttpRequestForm::Proxy { .. } if path == "*" => format!("http://{authority}"),
            HttpRequestForm::Proxy { .. } => format!("http://{authority}{path}"),
        };
        let mut head = format!("{} {target} {version}\r\nHost: {authority}\r\n", self.method);
        if let HttpRequestForm::Proxy { authorization: Some(authorization) } = form {
            head.push_str(&format!("Proxy-Authorization: {authorization}\r\n"));
        }
        let connection_fields: Vec<String> = self
            .field_values("connection")
            .flat_map(|value| value.split(','))
            .map(|name| name.trim().to_ascii_lowercase())
            .collect();
        for (name, value) in &self.fields {
            let lower = name.to_ascii_lowercase();
            if !HOP_BY_HOP_FIELDS.contains(&lower.as_str()) && !connection_fields.contains(&lower) {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        match body {
            BodyFraming::Chunked => head.push_str("Transfer-Encoding: chunked\r\n"),
            BodyFraming::Length(0) if self.field_values("content-length").next().is_none() => {}
            BodyFraming::Length(length) => head.push_str(&format!("Content-Length: {length}\r\n")),
        }
        head.push_str("Connection: close\r\n\r\n");
        head
    }
}

/// Returns true for the characters of a method or field name.
fn is_token(text: &str) -> bool {
    let is_token_char =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token_char)
}

/// Parses any bytes as a head, and checks that a head which is forwarded names the host that was
/// checked, once, and carries nothing that was meant for the proxy. For the fuzzer.
pub(super) fn invariants_hold(bytes: &[u8]) -> bool {
    let whole = find_head_end(bytes, 0);
    let in_two_parts = (0..bytes.len().min(200)).all(|cut| {
        match find_head_end(bytes.get(..cut).unwrap_or_default(), 0) {
            Ok(None) => find_head_end(bytes, cut) == whole,
            Ok(Some(end)) => whole == Ok(Some(end)),
            Err(_) => whole.is_err(),
        }
    });
    let Ok(Some(end)) = whole else { return in_two_parts };
    let Ok(head) = RequestHead::parse(bytes.get(..end).unwrap_or_default()) else {
        return in_two_parts;
    };
    let Ok(ProxyRequest::Forward { host, port, path, body }) = head.parse_request() else {
        return in_two_parts;
    };
    let forwarded = head.rewrite(&host, port, &path, body, &HttpRequestForm::Origin);
    let Ok(forwarded) = RequestHead::parse(forwarded.as_bytes()) else { return false };
    in_two_parts
        && forwarded.target == path
        && forwarded.field_values("host").count() == 1
        && forwarded.host_field_matches(&host, port)
        && forwarded.body_framing() == Ok(body)
        && forwarded.field_values("proxy-authorization").next().is_none()
}

#[cfg(test)]
mod tests;
