//! The tokens of a running server: who presents one, which login codes wait, and which streams end
//! with a token.

use super::{
    AccessTokens, LOGIN_CODE_VALIDITY_MS, TokenDigest, TokenError, TokenKind, token_digest,
    token_text,
};
use crate::server_messages::TokenRow;
use std::collections::HashMap;
use std::sync::Mutex;
use tokio_util::sync::CancellationToken;
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::{AccessRight, Fault, RequestError, UnixMillis};

/// Maximum number of login codes that wait for a page.
const MAX_LOGIN_CODES: usize = 16;

/// Stores the list of tokens.
pub trait AccessTokenStore: Send + Sync {
    /// Stores the list so that it survives a crash.
    fn save(&self, tokens: &AccessTokens) -> Result<(), Fault>;
}

/// The tokens and login codes of a running server.
pub struct TokenRegistry {
    state: Mutex<TokenRegistryState>,
    store: Box<dyn AccessTokenStore>,
}

struct TokenRegistryState {
    tokens: AccessTokens,
    /// Tokens whose cancellation ends the streams of a client, by the name of its token.
    revocations: HashMap<String, CancellationToken>,
    login_codes: Vec<PendingLoginCode>,
    /// The tokens of the users of a fleet, by their digests.
    team: HashMap<[u8; 32], KnownTeamToken>,
}

/// A token of a user of a fleet, which other servers accept, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamToken {
    /// SHA-256 digest of the token.
    pub digest: [u8; 32],
    /// Tenant of the user; `None` for one of the server's own clients.
    pub tenant: Option<String>,
    /// Name of the user.
    pub user: String,
    /// Name of the token.
    pub name: String,
    /// Right of the token.
    pub right: AccessRight,
    /// Time after which it is not valid; never if absent.
    pub expires_at: Option<UnixMillis>,
}

struct KnownTeamToken {
    token: TeamToken,
    revoked: CancellationToken,
}

/// A login code that no page has used.
struct PendingLoginCode {
    digest: TokenDigest,
    right: AccessRight,
    expires_at: UnixMillis,
}

/// The client that presented a token.
#[derive(Clone, Debug)]
pub struct TokenIdentity {
    /// Name of the token, or tenant and user of the fleet: what limits count by.
    pub name: String,
    /// Name of the client, as others see it.
    pub user: String,
    /// Tenant of the client, if it is one of a fleet.
    pub tenant: Option<String>,
    /// Right of the client.
    pub right: AccessRight,
    /// Cancelled when the token is revoked.
    pub revoked: CancellationToken,
    /// Time after which the token is not valid.
    pub expires_at: Option<UnixMillis>,
}

impl TokenRegistry {
    /// Creates a registry of loaded tokens.
    pub fn new(tokens: AccessTokens, store: Box<dyn AccessTokenStore>) -> TokenRegistry {
        let state = TokenRegistryState {
            tokens,
            revocations: HashMap::new(),
            login_codes: Vec::new(),
            team: HashMap::new(),
        };
        TokenRegistry { state: Mutex::new(state), store }
    }

    /// Adds a token with 256 random bits and returns its text.
    pub fn add(
        &self,
        name: &str,
        right: AccessRight,
        secret: [u8; 32],
        now: UnixMillis,
        expires_at: Option<UnixMillis>,
    ) -> Result<String, RequestError> {
        let mut state = lock(&self.state);
        let mut tokens = state.tokens.clone();
        let text = tokens.add(name, right, secret, now, expires_at)?;
        self.store.save(&tokens)?;
        state.tokens = tokens;
        Ok(text)
    }

    /// Revokes a token and ends the streams of its clients. The token is revoked even if the list
    /// could not be stored.
    pub fn revoke(&self, name: &str) -> Result<(), RequestError> {
        let mut state = lock(&self.state);
        state.tokens.revoke(name)?;
        state.end_streams_of_missing();
        Ok(self.store.save(&state.tokens)?)
    }

    /// Returns the client that presents a token.
    pub fn authenticate(
        &self,
        text: &str,
        kind: TokenKind,
        now: UnixMillis,
    ) -> Option<TokenIdentity> {
        let mut state = lock(&self.state);
        let Some(found) = state.tokens.find(text, kind, now) else {
            return state.find_team_token(text, now).filter(|_| kind == TokenKind::Bearer);
        };
        let name = found.name.clone();
        if state.tokens.note_use(&name, now)
            && let Err(fault) = self.store.save(&state.tokens)
        {
            tracing::warn!(%fault, "the last use of a token was not saved");
        }
        let token = state.tokens.iter().find(|token| token.name == name)?;
        let (right, expires_at) = (token.right, token.expires_at);
        let revoked = state.revocations.entry(name.clone()).or_default().clone();
        let (user, tenant) = (name.clone(), None);
        Some(TokenIdentity { name, user, tenant, right, revoked, expires_at })
    }

    /// Replaces the tokens of the users of a fleet. Streams of those that are gone, or have another
    /// right, end.
    pub fn set_team_tokens(&self, tokens: impl Iterator<Item = TeamToken>) {
        let mut state = lock(&self.state);
        let mut before = std::mem::take(&mut state.team);
        for token in tokens {
            let revoked = match before.get(&token.digest) {
                Some(known) if known.token == token => known.revoked.clone(),
                _ => CancellationToken::new(),
            };
            state.team.insert(token.digest, KnownTeamToken { token, revoked });
        }
        for (digest, gone) in before.drain() {
            if state.team.get(&digest).is_none_or(|known| known.token != gone.token) {
                gone.revoked.cancel();
            }
        }
    }

    /// Creates a login code with 256 random bits.
    pub fn new_login_code(&self, right: AccessRight, secret: [u8; 32], now: UnixMillis) -> String {
        let mut state = lock(&self.state);
        let code = token_text(secret);
        let expires_at = UnixMillis(now.0.saturating_add(LOGIN_CODE_VALIDITY_MS));
        state.login_codes.retain(|pending| now < pending.expires_at);
        if state.login_codes.len() >= MAX_LOGIN_CODES {
            state.login_codes.remove(0);
        }
        let digest = TokenDigest::of(&code);
        state.login_codes.push(PendingLoginCode { digest, right, expires_at });
        code
    }

    /// Exchanges a login code, which then is used, for the token of a page.
    pub fn redeem_login_code(
        &self,
        code: &str,
        secret: [u8; 32],
        now: UnixMillis,
    ) -> Result<String, RequestError> {
        let mut state = lock(&self.state);
        let digest = TokenDigest::of(code);
        let index = state.login_codes.iter().position(|pending| pending.digest.equals(&digest));
        let pending = index.map(|index| state.login_codes.swap_remove(index));
        let pending = pending.filter(|pending| now < pending.expires_at);
        let Some(pending) = pending else { return Err(RequestError::Unauthorized) };
        let mut tokens = state.tokens.clone();
        let (_, text) = tokens.add_page(pending.right, secret, now);
        self.store.save(&tokens)?;
        state.tokens = tokens;
        Ok(text)
    }

    /// Returns the time after which a token is not valid, which its use may have moved;
    /// `UnixMillis::default()` if it no longer exists, and `None` if it does not expire.
    pub(crate) fn expires_at(&self, name: &str) -> Option<UnixMillis> {
        let state = lock(&self.state);
        let token = state.tokens.iter().find(|token| token.name == name);
        token.map_or(Some(UnixMillis::default()), |token| token.expires_at)
    }

    /// Returns all tokens without their digests.
    pub fn rows(&self) -> Vec<TokenRow> {
        lock(&self.state).tokens.rows()
    }
}

impl TokenRegistryState {
    /// Returns the user of a fleet that presents a token.
    fn find_team_token(&self, text: &str, now: UnixMillis) -> Option<TokenIdentity> {
        let known = self.team.get(&token_digest(text));
        let is_valid = |known: &&KnownTeamToken| known.token.expires_at.is_none_or(|at| now < at);
        let KnownTeamToken { token, revoked } = known.filter(is_valid)?;
        let TeamToken { tenant, user, right, .. } = token.clone();
        // No name of an own token has a slash.
        let name = format!("{}/{user}", tenant.as_deref().unwrap_or_default());
        // The fleet removes it when it expires.
        let expires_at = None;
        Some(TokenIdentity { name, user, tenant, right, revoked: revoked.clone(), expires_at })
    }

    fn end_streams_of_missing(&mut self) {
        let tokens = &self.tokens;
        let is_missing = |name: &String| !tokens.iter().any(|token| token.name == *name);
        for (_, revoked) in self.revocations.extract_if(|name, _| is_missing(name)) {
            revoked.cancel();
        }
    }
}

impl From<TokenError> for RequestError {
    fn from(error: TokenError) -> RequestError {
        let text = error.to_string();
        match error {
            TokenError::InvalidName => RequestError::Invalid { text },
            TokenError::NameTaken => RequestError::Conflict { text },
            TokenError::NotFound => RequestError::NotFound { text },
        }
    }
}
