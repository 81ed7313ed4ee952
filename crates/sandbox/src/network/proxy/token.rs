//! The secret token that distinguishes the session's own commands from other clients on this
//! machine.

use super::request_head::RequestHead;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read};

/// User name that accompanies the token, for protocols that require one.
pub(crate) const PROXY_USER: &str = "windlass";

/// Generates an unguessable token.
pub(crate) fn new_token() -> io::Result<String> {
    let mut bytes = [0; 24];
    #[allow(clippy::disallowed_methods, reason = "random bytes come from the system")]
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns the forms in which a token can appear in output: plain, and as HTTP basic credentials.
#[cfg(target_os = "linux")]
pub(crate) fn visible_forms(token: &str) -> [String; 2] {
    [token.to_owned(), ProxyToken::new(token).basic]
}

/// The credentials that a client must present. It does not implement `Debug`, so it cannot be
/// printed.
pub(super) struct ProxyToken {
    plain: String,
    basic: String,
}

impl ProxyToken {
    pub(super) fn new(plain: &str) -> ProxyToken {
        let basic = STANDARD.encode(format!("{PROXY_USER}:{plain}"));
        ProxyToken { plain: plain.to_owned(), basic }
    }

    /// Returns true if the request contains exactly one `Proxy-Authorization` field with the token.
    pub(super) fn is_shown_in(&self, head: &RequestHead) -> bool {
        let mut values = head.field_values("proxy-authorization");
        let (Some(value), None) = (values.next(), values.next()) else { return false };
        let Some((scheme, credential)) = value.split_once(' ') else { return false };
        scheme.eq_ignore_ascii_case("basic")
            && constant_time_eq(credential.trim().as_bytes(), &self.basic)
    }

    /// Returns true if the user name and password are the right ones.
    pub(super) fn matches_credentials(&self, user: &[u8], password: &[u8]) -> bool {
        constant_time_eq(user, PROXY_USER) & constant_time_eq(password, &self.plain)
    }
}

/// Compares in constant time, so that the time does not reveal the first difference. The length is
/// not secret.
fn constant_time_eq(presented: &[u8], expected: &str) -> bool {
    let differ = |sum: u8, (a, b): (&u8, &u8)| black_box(sum | (a ^ b));
    presented.len() == expected.len()
        && presented.iter().zip(expected.as_bytes()).fold(0, differ) == 0
}

/// Percent-encodes a token for use as the password in a URL.
pub(crate) fn percent_encode(token: &str) -> String {
    let mut escaped = String::new();
    for byte in token.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}
