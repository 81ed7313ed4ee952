//! The secret that tells the session's own commands from everyone else on this machine.

use super::head::Head;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read};

/// The user's name that goes with the token, for protocols that want one.
pub(crate) const USER: &str = "windlass";

/// A token that nobody can guess.
pub(crate) fn new_token() -> io::Result<String> {
    let mut bytes = [0; 24];
    #[allow(clippy::disallowed_methods, reason = "chance comes from the system")]
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The forms in which a token can be seen: as it is, and in a header.
pub(crate) fn shown(token: &str) -> [String; 2] {
    [token.to_owned(), Token::new(token).basic]
}

/// What a client has to show. It does not print.
pub(super) struct Token {
    plain: String,
    basic: String,
}

impl Token {
    pub(super) fn new(plain: &str) -> Token {
        let basic = STANDARD.encode(format!("{USER}:{plain}"));
        Token { plain: plain.to_owned(), basic }
    }

    /// Whether a request shows it, once.
    pub(super) fn is_in(&self, head: &Head) -> bool {
        let mut shown = head.all("proxy-authorization");
        let (Some(value), None) = (shown.next(), shown.next()) else { return false };
        let Some((scheme, credential)) = value.split_once(' ') else { return false };
        scheme.eq_ignore_ascii_case("basic") && same(credential.trim().as_bytes(), &self.basic)
    }

    /// Whether these are the name and the password.
    pub(super) fn is(&self, user: &[u8], password: &[u8]) -> bool {
        same(user, USER) & same(password, &self.plain)
    }
}

/// Compares in a time that does not tell where the first difference is. The length is no secret.
fn same(shown: &[u8], kept: &str) -> bool {
    let differ = |sum: u8, (a, b): (&u8, &u8)| black_box(sum | (a ^ b));
    shown.len() == kept.len() && shown.iter().zip(kept.as_bytes()).fold(0, differ) == 0
}

/// Makes a token fit for the password of an address.
pub(crate) fn escape(token: &str) -> String {
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
