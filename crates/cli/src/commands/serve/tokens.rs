//! Tokens of clients that connect over TCP: `windlass serve token`.
//!
//! The file has only their digests. Only the server writes it while it runs; the command asks it
//! over its socket then.

use crate::args::ServeTokenCommand;
use crate::setup::LoadedProject;
use crate::terminal::output;
use crate::{CliExit, now_millis};
use anyhow::bail;
use std::sync::Arc;
use windlass_project::{ServerFiles, TokensLock};
use windlass_protocol::display_text::format_age;
use windlass_protocol::{Fault, RequestError, UnixMillis};
use windlass_server::{
    AccessTokenStore, AccessTokens, NewTokenRequest, RemoteHost, ServerAddress, TokenRegistry,
    TokenRow,
};

/// The file of the tokens.
struct TokenFile(ServerFiles);

impl AccessTokenStore for TokenFile {
    fn save(&self, tokens: &AccessTokens) -> Result<(), Fault> {
        let written = self.0.write_tokens(tokens);
        written.map_err(|error| Fault::Storage { message: error.to_string() })
    }
}

/// The tokens of the file, while no other process can change them.
pub(super) struct LockedTokens {
    pub(super) tokens: Arc<TokenRegistry>,
    _lock: TokensLock,
}

impl LockedTokens {
    /// Loads the tokens of the file.
    pub(super) fn load(files: &ServerFiles) -> anyhow::Result<LockedTokens> {
        let Some(lock) = files.try_lock_tokens()? else {
            bail!("another process is changing the tokens. Try again");
        };
        let tokens: AccessTokens = files.read_tokens()?.unwrap_or_default();
        let tokens = TokenRegistry::new(tokens, Box::new(TokenFile(files.clone())));
        Ok(LockedTokens { tokens: Arc::new(tokens), _lock: lock })
    }
}

/// The tokens, in the file or in the server that runs.
enum TokenSource {
    File(LockedTokens),
    Server(RemoteHost),
}

impl TokenSource {
    async fn open(files: &ServerFiles) -> anyhow::Result<TokenSource> {
        let Some(running) = files.running_server()? else {
            return Ok(TokenSource::File(LockedTokens::load(files)?));
        };
        if cfg!(not(unix)) {
            bail!("a server is running. Stop it first, then change its tokens");
        }
        let address = ServerAddress::Socket(running.socket);
        Ok(TokenSource::Server(RemoteHost::connect(address).await?))
    }

    /// Adds a token and returns its text.
    async fn add(&self, request: NewTokenRequest) -> anyhow::Result<String> {
        Ok(match self {
            TokenSource::File(LockedTokens { tokens, .. }) => {
                let secret = LoadedProject::random_bytes()?;
                let NewTokenRequest { name, right, expires_at } = request;
                tokens.add(&name, right, secret, now_millis(), expires_at)?
            }
            TokenSource::Server(server) => server.new_token(&request).await?.token,
        })
    }

    async fn rows(&self) -> Result<Vec<TokenRow>, RequestError> {
        match self {
            TokenSource::File(LockedTokens { tokens, .. }) => Ok(tokens.rows()),
            TokenSource::Server(server) => server.tokens().await,
        }
    }

    async fn revoke(&self, name: &str) -> Result<(), RequestError> {
        match self {
            TokenSource::File(LockedTokens { tokens, .. }) => tokens.revoke(name),
            TokenSource::Server(server) => server.revoke_token(name).await,
        }
    }
}

/// Runs `windlass serve token`.
pub(super) async fn run_token(
    command: ServeTokenCommand,
    files: &ServerFiles,
) -> anyhow::Result<CliExit> {
    let tokens = TokenSource::open(files).await?;
    match command {
        ServeTokenCommand::Add { name, right, days } => {
            let ends = |days| UnixMillis(now_millis().0 + u64::from(days) * UnixMillis::PER_DAY);
            let (right, expires_at) = (right.into(), days.map(ends));
            let request = NewTokenRequest { name: name.clone(), right, expires_at };
            let token = tokens.add(request).await?;
            output::print_note(&format!(
                "created the token {name}. Copy it now, it is not shown again:"
            ));
            output::print_line(&token);
        }
        ServeTokenCommand::List { json: true } => {
            output::print_json(&serde_json::to_string_pretty(&tokens.rows().await?)?);
        }
        ServeTokenCommand::List { json: false } => {
            let rows = tokens.rows().await?;
            if rows.is_empty() {
                output::print_note("no tokens; create one: `windlass serve token add NAME`");
            }
            rows.iter().for_each(|row| output::print_line(&describe_token(row)));
        }
        ServeTokenCommand::Revoke { name } => {
            tokens.revoke(&name).await?;
            output::print_note(&format!("revoked the token {name}"));
        }
    }
    Ok(CliExit::Done)
}

fn describe_token(row: &TokenRow) -> String {
    let now = now_millis();
    let used = match row.last_used_at {
        Some(at) => format!("used {}", format_age(at, now)),
        None => "never used".to_owned(),
    };
    let ends = describe_expiry(row.expires_at);
    format!("{:<20}  {:<5}  {used}, {ends}", row.name, row.right.to_string())
}

/// Returns how long a token is valid.
pub(crate) fn describe_expiry(expires_at: Option<UnixMillis>) -> String {
    let now = now_millis();
    match expires_at {
        Some(at) if at <= now => "expired".to_owned(),
        Some(at) => format!("expires in {} d", (at.0 - now.0).div_ceil(UnixMillis::PER_DAY)),
        None => "does not expire".to_owned(),
    }
}
