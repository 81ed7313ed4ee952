//! Tokens of clients: their rights, expiry and revocation, without files, clock or randomness.
//!
//! Only digests of tokens are stored, and a presented token is compared with all of them in a time
//! that reveals nothing. Start reading at [`TokenRegistry`], which a server shares with all its
//! connections.

mod registry;

pub use registry::{AccessTokenStore, TeamToken, TokenIdentity, TokenRegistry};

use crate::server_messages::TokenRow;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use windlass_protocol::{AccessRight, UnixMillis};

/// First characters of every token, by which redaction finds tokens in texts.
pub const TOKEN_PREFIX: &str = "wlt_";
/// Validity of a page's cookie after its last use.
pub const PAGE_VALIDITY_MS: u64 = 30 * 24 * 60 * 60 * 1_000;
/// Validity of a login code.
pub const LOGIN_CODE_VALIDITY_MS: u64 = 60_000;
/// Maximum length of a token's name.
const MAX_NAME_BYTES: usize = 64;
/// Precision of `AccessToken::last_used_at`, so that not every request writes a file.
const LAST_USED_PRECISION_MS: u64 = 60_000;

/// A token that a client may present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessToken {
    /// Unique name.
    pub name: String,
    /// Right of clients with the token.
    pub right: AccessRight,
    /// Form in which clients present it.
    pub kind: TokenKind,
    /// SHA-256 digest of the token.
    digest: TokenDigest,
    /// Time of creation.
    pub created_at: UnixMillis,
    /// Time of the last use, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<UnixMillis>,
    /// Time after which the token is not valid; never if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixMillis>,
}

/// Form in which a client presents a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    /// The header `Authorization`.
    Bearer,
    /// The cookie of a page.
    Page,
}

/// The tokens of a server, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessTokens {
    tokens: Vec<AccessToken>,
}

/// The reason why a list of tokens was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The name is not allowed.
    #[error(
        "A token's name has up to 64 letters, digits, `.`, `_` and `-`, and does not begin with `.`."
    )]
    InvalidName,
    /// Another token has this name.
    #[error("A token of this name exists. Choose another name, or revoke it first.")]
    NameTaken,
    /// No token has this name.
    #[error("No token has this name. `windlass serve token list` lists all tokens.")]
    NotFound,
}

/// Returns true for a name that a token may have.
pub fn is_token_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(is_allowed)
}

/// Returns the text of a token with 256 random bits.
pub fn token_text(secret: [u8; 32]) -> String {
    format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(secret))
}

/// Returns the SHA-256 digest of the text of a token, which is what is stored.
pub fn token_digest(text: &str) -> [u8; 32] {
    TokenDigest::of(text).0
}

impl AccessToken {
    /// Returns true if the token is valid no longer.
    pub fn is_expired(&self, now: UnixMillis) -> bool {
        self.expires_at.is_some_and(|expires_at| now >= expires_at)
    }
}

impl AccessTokens {
    /// Adds a token with 256 random bits and returns its text, which is not stored.
    pub fn add(
        &mut self,
        name: &str,
        right: AccessRight,
        secret: [u8; 32],
        now: UnixMillis,
        expires_at: Option<UnixMillis>,
    ) -> Result<String, TokenError> {
        if !is_token_name(name) {
            return Err(TokenError::InvalidName);
        }
        self.tokens.retain(|token| !token.is_expired(now));
        if self.tokens.iter().any(|token| token.name == name) {
            return Err(TokenError::NameTaken);
        }
        let name = name.to_owned();
        Ok(self.push(name, right, TokenKind::Bearer, secret, now, expires_at))
    }

    /// Adds the token of a page and returns its name and text.
    fn add_page(
        &mut self,
        right: AccessRight,
        secret: [u8; 32],
        now: UnixMillis,
    ) -> (String, String) {
        self.tokens.retain(|token| !token.is_expired(now));
        let is_free = |name: &String| !self.tokens.iter().any(|token| token.name == *name);
        let numbers = 1..=self.tokens.len().saturating_add(1);
        let name = numbers.map(|number| format!("page-{number}")).find(is_free);
        let name = name.unwrap_or_else(|| "page".to_owned());
        let expires_at = Some(UnixMillis(now.0.saturating_add(PAGE_VALIDITY_MS)));
        let text = self.push(name.clone(), right, TokenKind::Page, secret, now, expires_at);
        (name, text)
    }

    fn push(
        &mut self,
        name: String,
        right: AccessRight,
        kind: TokenKind,
        secret: [u8; 32],
        created_at: UnixMillis,
        expires_at: Option<UnixMillis>,
    ) -> String {
        let text = token_text(secret);
        let digest = TokenDigest::of(&text);
        let last_used_at = None;
        self.tokens.push(AccessToken {
            name,
            right,
            kind,
            digest,
            created_at,
            last_used_at,
            expires_at,
        });
        text
    }

    /// Removes a token.
    pub fn revoke(&mut self, name: &str) -> Result<(), TokenError> {
        let count = self.tokens.len();
        self.tokens.retain(|token| token.name != name);
        match self.tokens.len() < count {
            true => Ok(()),
            false => Err(TokenError::NotFound),
        }
    }

    /// Returns the valid token that a client presents.
    pub fn find(&self, text: &str, kind: TokenKind, now: UnixMillis) -> Option<&AccessToken> {
        let digest = TokenDigest::of(text);
        // All tokens are compared, whichever matches.
        let found = self.tokens.iter().fold(None, |found, token| {
            match token.digest.equals(&digest) && token.kind == kind {
                true => Some(token),
                false => found,
            }
        });
        found.filter(|token| !token.is_expired(now))
    }

    /// Notes the use of a token, which extends the validity of a page. Returns true if the list
    /// changed.
    fn note_use(&mut self, name: &str, now: UnixMillis) -> bool {
        let Some(token) = self.tokens.iter_mut().find(|token| token.name == name) else {
            return false;
        };
        let used_before = token.last_used_at.unwrap_or_default();
        if now.0.saturating_sub(used_before.0) < LAST_USED_PRECISION_MS {
            return false;
        }
        token.last_used_at = Some(now);
        if token.kind == TokenKind::Page {
            token.expires_at = Some(UnixMillis(now.0.saturating_add(PAGE_VALIDITY_MS)));
        }
        true
    }

    /// Returns all tokens.
    pub fn iter(&self) -> impl Iterator<Item = &AccessToken> {
        self.tokens.iter()
    }

    /// Returns all tokens without their digests.
    pub fn rows(&self) -> Vec<TokenRow> {
        let row = |token: &AccessToken| TokenRow {
            name: token.name.clone(),
            right: token.right,
            is_page: token.kind == TokenKind::Page,
            created_at: token.created_at,
            last_used_at: token.last_used_at,
            expires_at: token.expires_at,
        };
        self.tokens.iter().map(row).collect()
    }
}

/// SHA-256 digest of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct TokenDigest([u8; 32]);

impl TokenDigest {
    pub(crate) fn of(text: &str) -> TokenDigest {
        TokenDigest(Sha256::digest(text.as_bytes()).into())
    }

    /// Compares in a time that does not reveal how much is equal.
    pub(crate) fn equals(&self, other: &TokenDigest) -> bool {
        let differ = self.0.iter().zip(&other.0).fold(0, |differ, (one, two)| differ | (one ^ two));
        std::hint::black_box(differ) == 0
    }
}

impl From<TokenDigest> for String {
    fn from(digest: TokenDigest) -> String {
        URL_SAFE_NO_PAD.encode(digest.0)
    }
}

impl TryFrom<String> for TokenDigest {
    type Error = &'static str;

    fn try_from(text: String) -> Result<TokenDigest, &'static str> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok();
        let digest = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        digest.map(TokenDigest).ok_or("invalid digest of a token")
    }
}

#[cfg(test)]
mod tests;
