//! Messages about the server itself, which no host answers: its version, tokens and logins.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use windlass_protocol::{AccessRight, UnixMillis};

/// Revision of the messages between client and server. Additions do not change it.
pub const WIRE_REVISION: u32 = 1;

/// The server, and what it lets this client do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerInfo {
    /// Version of Windlass.
    pub version: String,
    /// Revision of the messages: [`WIRE_REVISION`].
    pub wire: u32,
    /// Name of the machine that the server runs on.
    #[serde(default)]
    pub host: String,
    /// Folders that clients may work in, for the parameter `workspace`. The first one is used
    /// without it.
    #[serde(default)]
    pub roots: Vec<String>,
    /// Right of the client.
    pub right: AccessRight,
    /// Name of the client: of its token, or of the user.
    pub client: String,
}

/// A code that logs a page in, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoginCode {
    /// The code. It belongs into the fragment of the link, which no browser sends.
    pub code: String,
    /// Time until the code expires.
    pub expires_in_ms: u64,
}

/// The request of a page to log in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PageLoginRequest {
    /// Code from [`LoginCode::code`].
    pub code: String,
}

/// The request for a new token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewTokenRequest {
    /// Name of the token: up to 64 letters, digits, `.`, `_` and `-`, the first no `.`.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$"))]
    pub name: String,
    /// Right of clients with the token.
    pub right: AccessRight,
    /// Time after which the token is not valid; never if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixMillis>,
}

/// A new token. The server cannot show it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewTokenSecret {
    /// Name of the token.
    pub name: String,
    /// The token, for the header `Authorization: Bearer TOKEN`.
    pub token: String,
}

/// All tokens, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenList {
    /// The tokens.
    pub tokens: Vec<TokenRow>,
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenRow {
    /// Name of the token.
    pub name: String,
    /// Right of clients with the token.
    pub right: AccessRight,
    /// True for the cookie of a page.
    pub is_page: bool,
    /// Time of creation.
    pub created_at: UnixMillis,
    /// Time of the last use, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<UnixMillis>,
    /// Time after which the token is not valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixMillis>,
}

/// Returns the schema of a type, for the OpenAPI document.
pub(crate) fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}
