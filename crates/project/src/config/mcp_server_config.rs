//! The config of an MCP server, resolved from its settings.
//!
//! A server of a project cannot read the environment, stays in the sandbox, and is reached over
//! https only.

use super::env::{ConfigEnv, FieldError, expand_env_values, field_error};
use super::schema::{McpLoginSettings, McpOAuthClientSettings, McpServerKind, McpServerSettings};
use crate::config::file_parser::ConfigLayer;
use crate::plugins::PluginDirs;
use secrecy::SecretString;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_protocol::BlobRef;

/// The default time for a server to start.
const DEFAULT_START_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_NAME_BYTES: usize = 32;

/// The resolved config of an MCP server.
#[derive(Clone, Debug)]
pub struct McpServerConfig {
    /// The name, which is the prefix of its tools.
    pub name: String,
    pub transport: McpTransport,
    pub enabled: bool,
    /// The time it may take to start.
    pub timeout: Duration,
    /// The protocol version to use, if configured.
    pub protocol: Option<String>,
    /// A digest of the program or URL. It covers the names of environment variables and headers,
    /// not their values.
    pub digest: String,
    /// The `PluginDirs` of the plugin that brings it, if any.
    pub plugin: Option<PluginDirs>,
}

/// The transport of an MCP server.
#[derive(Clone, Debug)]
pub enum McpTransport {
    /// A program that is started.
    Stdio {
        /// The program and its arguments.
        command: Vec<String>,
        /// Additional environment variables.
        env: BTreeMap<String, SecretString>,
        /// The working directory, if configured.
        cwd: Option<String>,
        /// `true` if it may write in the project.
        write: bool,
        /// Additional hosts that it may reach.
        network: Vec<String>,
        /// `true` if it runs in the sandbox.
        sandbox: bool,
    },
    /// A server at a URL.
    Http {
        url: String,
        /// Headers sent with every request.
        headers: BTreeMap<String, SecretString>,
        /// The OAuth settings; `None` to never log in.
        oauth: Option<McpOAuthConfig>,
        /// `true` for a server with one event stream (`"type": "sse"`).
        uses_sse: bool,
    },
}

/// The OAuth settings of an MCP server.
#[derive(Clone, Debug, Default)]
pub struct McpOAuthConfig {
    /// The client ID, if the server assigned one.
    pub client_id: Option<String>,
    pub client_secret: Option<SecretString>,
    /// The scope to request.
    pub scope: Option<String>,
    /// The local port that the browser is redirected to.
    pub callback_port: Option<u16>,
}

/// Returns the problem with a name, if any.
pub(super) fn name_problem(name: &str) -> Option<String> {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let is_invalid = !(1..=MAX_NAME_BYTES).contains(&name.len()) || !name.bytes().all(is_name_byte);
    is_invalid
        .then(|| format!("invalid name: use up to {MAX_NAME_BYTES} letters, digits, `_` and `-`"))
}

/// Resolves the settings of a server that a layer defines.
pub(crate) fn resolve_server(
    layer: ConfigLayer,
    name: &str,
    server: McpServerSettings,
    config_env: &dyn ConfigEnv,
) -> Result<McpServerConfig, FieldError> {
    let kind = match (server.kind, &server.command, &server.url) {
        (Some(McpServerKind::Local) | None, Some(_), None) => McpServerKind::Local,
        (Some(McpServerKind::Remote) | None, None, Some(_)) => McpServerKind::Remote,
        (Some(McpServerKind::Sse), None, Some(_)) => McpServerKind::Sse,
        (_, Some(_), Some(_)) => {
            return field_error("/url", "set either `command` or `url`, not both");
        }
        (Some(McpServerKind::Remote | McpServerKind::Sse), ..) => {
            return field_error("", "missing `url`");
        }
        (Some(McpServerKind::Local), ..) => return field_error("", "missing `command`"),
        (None, None, None) => return field_error("", "missing `command` or `url`"),
    };
    let is_user_defined = !matches!(layer, ConfigLayer::Project | ConfigLayer::Plugin);
    let (enabled, protocol) = (server.enabled.unwrap_or(true), server.protocol.clone());
    let timeout =
        server.timeout.map_or(DEFAULT_START_TIMEOUT, |ms| Duration::from_millis(ms.get().into()));
    if let Some(version) = &protocol
        && !["2025-11-25", "2026-07-28"].contains(&version.as_str())
    {
        return field_error("/protocol", "`protocol` must be `2025-11-25` or `2026-07-28`");
    }
    let transport = match kind {
        McpServerKind::Local => resolve_stdio(server, (is_user_defined, config_env))?,
        McpServerKind::Remote | McpServerKind::Sse => {
            resolve_http(server, kind, layer, (is_user_defined, config_env))?
        }
    };
    let digest = transport_digest(&transport);
    Ok(McpServerConfig {
        name: name.to_owned(),
        transport,
        enabled,
        timeout,
        protocol,
        digest,
        plugin: None,
    })
}

fn resolve_stdio(
    server: McpServerSettings,
    (is_user_defined, config_env): (bool, &dyn ConfigEnv),
) -> Result<McpTransport, FieldError> {
    let command = server.command.unwrap_or_default();
    if command.first().is_none_or(|program| program.trim().is_empty()) {
        return field_error("/command", "`command` is empty");
    }
    if command.iter().any(|part| part.contains('\0')) {
        return field_error("/command", "an argument contains a NUL byte");
    }
    if !server.headers.is_empty() || server.oauth.is_some() {
        return field_error("", "a server with a `command` cannot have `headers` or `oauth`");
    }
    if let (false, Some(false)) = (is_user_defined, server.sandbox) {
        return field_error("/sandbox", "a project cannot disable the sandbox");
    }
    let mut env = server.environment;
    env.extend(server.env);
    let is_invalid = |name: &String| name.is_empty() || name.contains(['=', '\0']);
    if env.keys().any(is_invalid) {
        return field_error("/env", "invalid environment variable name");
    }
    Ok(McpTransport::Stdio {
        command,
        env: expand_env_values("/env", env, (is_user_defined, config_env))?,
        cwd: server.cwd,
        write: server.write.unwrap_or(is_user_defined),
        network: server.network.unwrap_or_default(),
        sandbox: server.sandbox.unwrap_or(true),
    })
}

fn resolve_http(
    server: McpServerSettings,
    kind: McpServerKind,
    layer: ConfigLayer,
    (is_user_defined, config_env): (bool, &dyn ConfigEnv),
) -> Result<McpTransport, FieldError> {
    let url = server.url.unwrap_or_default();
    let is_local_plugin = layer == ConfigLayer::Plugin && is_loopback(&url);
    let is_allowed_url = url.starts_with("https://")
        || (is_user_defined || is_local_plugin) && url.starts_with("http://");
    if !is_allowed_url {
        let message = if is_user_defined {
            "`url` must start with https:// or http://"
        } else {
            "servers of projects and plugins must use https"
        };
        return field_error("/url", message);
    }
    let has_stdio_settings =
        !server.env.is_empty() || !server.environment.is_empty() || server.cwd.is_some();
    if has_stdio_settings
        || server.write.is_some()
        || server.network.is_some()
        || server.sandbox.is_some()
    {
        return field_error(
            "",
            "a server with a `url` cannot have `env`, `cwd`, `write`, `network` or `sandbox`",
        );
    }
    let oauth = match server.oauth {
        Some(McpLoginSettings::Enabled(false)) => None,
        Some(McpLoginSettings::Enabled(true)) | None => Some(McpOAuthConfig::default()),
        Some(McpLoginSettings::Client(McpOAuthClientSettings {
            client_id,
            client_secret,
            scope,
            callback_port,
        })) => {
            let secret = client_secret.into_iter().map(|it| ("clientSecret".to_owned(), it));
            let secret = expand_env_values(
                "/oauth/clientSecret",
                secret.collect(),
                (is_user_defined, config_env),
            )?;
            let client_secret = secret.into_values().next();
            Some(McpOAuthConfig { client_id, client_secret, scope, callback_port })
        }
    };
    let headers = expand_env_values("/headers", server.headers, (is_user_defined, config_env))?;
    let uses_sse = kind == McpServerKind::Sse;
    Ok(McpTransport::Http { url, headers, oauth, uses_sse })
}

/// Parses a server as other programs list it, without a check for `${…}`.
pub(crate) fn parse_listed_raw(value: &Value) -> Result<McpServerSettings, String> {
    let Value::Object(map) = value else { return Err("a server must be an object".into()) };
    let mut map = map.clone();
    let kind = map.shift_remove("type");
    let args = map.shift_remove("args").unwrap_or_else(|| json!([]));
    let mut uses_sse = false;
    match kind.as_ref().and_then(Value::as_str) {
        Some("stdio" | "http" | "streamable-http") => {}
        Some("sse") => uses_sse = true,
        None if kind.is_none() => {}
        Some(_) | None => return Err("unknown server type".into()),
    }
    if let Some(program) = map.shift_remove("command") {
        let Value::Array(args) = args else { return Err("`args` must be a list".into()) };
        map.insert("command".into(), std::iter::once(program).chain(args).collect());
    }
    // Keys that only other programs know do not change the command or the URL.
    let known_keys = ["command", "env", "cwd", "url", "headers"];
    map.retain(|key, _| known_keys.contains(&key.as_str()));
    if uses_sse {
        map.insert("type".into(), "sse".into());
    }
    serde_json::from_value(Value::Object(map)).map_err(|error| error.to_string())
}

/// Returns `true` for the URL of a loopback host, as spelled.
fn is_loopback(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

/// Returns a digest of the program or URL, with the names in `env` and `headers`.
fn transport_digest(transport: &McpTransport) -> String {
    let content = match transport {
        McpTransport::Stdio { command, env, cwd, .. } => {
            json!({"command": command, "cwd": cwd, "env": env.keys().collect::<Vec<_>>()})
        }
        McpTransport::Http { url, headers, .. } => {
            json!({"url": url, "headers": headers.keys().collect::<Vec<_>>()})
        }
    };
    BlobRef::for_bytes(content.to_string().as_bytes()).as_str().to_owned()
}
