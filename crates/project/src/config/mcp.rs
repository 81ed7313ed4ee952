//! Servers of the Model Context Protocol: in our config, in OpenCode's form, and in the `.mcp.json` of
//! a trusted project.
//!
//! A project's server never takes the place of one of the person's own, reads nothing of the
//! environment, stays in the sandbox, and is reached over https only.

use super::Config;
use super::settings::{McpClient, McpKind, McpLogin, McpServer, ToolSettings};
use crate::config::Outside;
use crate::file::{Comments, File, Layer, Origin};
use crate::plugins::Lodging;
use crate::pointer;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use windlass_protocol::BlobRef;

/// How long a server may take to start.
const START: Duration = Duration::from_secs(30);
/// How long a name may be.
const LONGEST_NAME: usize = 32;

/// A server.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its name, which its tools begin with.
    pub name: String,
    /// How it is reached.
    pub way: Way,
    /// Whether it is used.
    pub enabled: bool,
    /// How long it may take to start.
    pub timeout: Duration,
    /// The version of the protocol to speak, if somebody says so.
    pub protocol: Option<String>,
    /// What names what would be started or reached. Values of the environment and of headers are
    /// not part of it, only their names.
    pub digest: String,
    /// Where the plugin is that brings it, if one does.
    pub plugin: Option<Lodging>,
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub enum Way {
    /// It is a program.
    Local {
        /// The program and its arguments.
        command: Vec<String>,
        /// What it finds in its environment besides.
        env: BTreeMap<String, SecretString>,
        /// Where it runs, if somebody says so.
        cwd: Option<String>,
        /// It may write in the project.
        write: bool,
        /// The hosts it may reach besides.
        network: Vec<String>,
        /// It is kept in the sandbox.
        sandbox: bool,
    },
    /// It is at an address.
    Remote {
        /// The address.
        url: String,
        /// Headers that are sent with every request.
        headers: BTreeMap<String, SecretString>,
        /// How to log in; none for never.
        oauth: Option<OAuth>,
    },
}

/// How to log in to a server.
#[derive(Clone, Debug, Default)]
pub struct OAuth {
    /// The client's name, if the server gave one.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<SecretString>,
    /// What to ask for.
    pub scope: Option<String>,
    /// The port of this machine that the browser comes back to.
    pub callback_port: Option<u16>,
}

impl Config {
    /// Takes a server whole, or says what is wrong with it.
    pub(super) fn take_server(
        &mut self,
        layer: Layer,
        file: &mut File,
        (name, server): (String, McpServer),
        outside: &dyn Outside,
    ) {
        let pointer = pointer::join("/mcp", &name);
        if file.marred.contains(&pointer) {
            return;
        }
        if let Some(why) = self.objection(layer, &name) {
            return file.fault(&pointer, &why);
        }
        match resolved(layer, &name, server, outside) {
            Err((at, why)) => file.fault(&format!("{pointer}{at}"), &why),
            Ok(server) => {
                let prefix = format!("mcp.{name}.");
                self.shown.retain(|(shown, ..)| !shown.starts_with(&prefix));
                if let Some(value) = file.at(&pointer).cloned() {
                    self.show_all(&format!("mcp.{name}"), &value, &pointer, file);
                }
                self.servers.insert(name, (server, file.origin(&pointer).clone()));
            }
        }
    }

    /// Takes over the servers that a trusted project lists for other programs.
    pub(super) fn take_mcp_list(&mut self, path: &Path, text: &str) {
        let mut file = File::bare(path, Layer::Project, text, Comments::Refused);
        let listed = file.at("/mcpServers").and_then(Value::as_object).cloned();
        for (name, value) in listed.into_iter().flatten() {
            let pointer = pointer::join("/mcpServers", &name);
            let taken = self.servers.contains_key(&name);
            let why = match self.objection(Layer::Project, &name) {
                Some(why) => Some(why),
                None if taken => Some(format!("the config already has a server `{name}`")),
                None => None,
            };
            let server = match why {
                Some(why) => Err(why),
                None => listed_server(&value).and_then(|server| {
                    resolved(Layer::Project, &name, server, &Nothing).map_err(|(_, why)| why)
                }),
            };
            match server {
                Err(why) => {
                    file.fault(&pointer, &format!("{why}; the server `{name}` is left out"));
                }
                Ok(server) => {
                    let origin = file.origin(&pointer).clone();
                    self.show_all(&format!("mcp.{name}"), &value, &pointer, &file);
                    self.servers.insert(name, (server, origin));
                }
            }
        }
        // What is wrong with another program's file keeps nobody from starting.
        let faults = std::mem::take(&mut file.diagnostics).into_iter();
        self.diagnostics.extend(faults.map(|mut fault| {
            fault.fatal = false;
            fault
        }));
    }

    /// Why a layer cannot bring a server of this name.
    fn objection(&self, layer: Layer, name: &str) -> Option<String> {
        if let Some(why) = unfit_name(name) {
            return Some(why);
        }
        let own = |(_, origin): &(Server, Origin)| origin.layer == Layer::User;
        let taken = layer == Layer::Project && self.servers.get(name).is_some_and(own);
        taken.then(|| format!("your own config already has a server `{name}`"))
    }

    /// How tools of others are told of is the person's to say.
    pub(super) fn take_tools(
        &mut self,
        layer: Layer,
        tools: Option<ToolSettings>,
        file: &mut File,
    ) {
        let Some(tools) = tools else { return };
        if layer == Layer::Project {
            return file.fault("/tools", "a project cannot say how tools are told of");
        }
        if let Some(value) = file.at("/tools").cloned() {
            self.show_all("tools", &value, "/tools", file);
        }
        self.tools = tools;
    }
}

/// A project finds nothing outside.
struct Nothing;

impl Outside for Nothing {
    fn env(&self, _name: &str) -> Option<String> {
        None
    }

    fn knows(&self, _provider: &str) -> Option<&'static str> {
        None
    }
}

/// Why nothing can be called so.
pub(super) fn unfit_name(name: &str) -> Option<String> {
    let fits = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'-');
    let unfit = !(1..=LONGEST_NAME).contains(&name.len()) || !name.bytes().all(fits);
    unfit.then(|| format!("a name has letters, digits, `_` and `-`, {LONGEST_NAME} at most"))
}

/// What is wrong, and where below the server.
pub(crate) type Wrong = (&'static str, String);

pub(super) fn wrong<T>(at: &'static str, why: impl Into<String>) -> Result<T, Wrong> {
    Err((at, why.into()))
}

pub(crate) fn resolved(
    layer: Layer,
    name: &str,
    server: McpServer,
    outside: &dyn Outside,
) -> Result<Server, Wrong> {
    let kind = match (server.kind, &server.command, &server.url) {
        (Some(McpKind::Local) | None, Some(_), None) => McpKind::Local,
        (Some(McpKind::Remote) | None, None, Some(_)) => McpKind::Remote,
        (_, Some(_), Some(_)) => return wrong("/url", "it is a program or an address, not both"),
        (Some(McpKind::Remote), ..) => return wrong("", "`url` is missing here"),
        (Some(McpKind::Local), ..) => return wrong("", "`command` is missing here"),
        (None, None, None) => return wrong("", "`command` or `url` is missing here"),
    };
    let own = !matches!(layer, Layer::Project | Layer::Plugin);
    let (enabled, protocol) = (server.enabled.unwrap_or(true), server.protocol.clone());
    let timeout = server.timeout.map_or(START, |ms| Duration::from_millis(ms.get().into()));
    if let Some(version) = &protocol
        && !["2025-11-25", "2026-07-28"].contains(&version.as_str())
    {
        return wrong("/protocol", "a version is `2025-11-25` or `2026-07-28`");
    }
    let way = match kind {
        McpKind::Local => local(server, (own, outside))?,
        McpKind::Remote => remote(server, layer, (own, outside))?,
    };
    let digest = digest(&way);
    Ok(Server { name: name.to_owned(), way, enabled, timeout, protocol, digest, plugin: None })
}

fn local(server: McpServer, (own, outside): (bool, &dyn Outside)) -> Result<Way, Wrong> {
    let command = server.command.unwrap_or_default();
    if command.first().is_none_or(|program| program.trim().is_empty()) {
        return wrong("/command", "it names no program");
    }
    if command.iter().any(|part| part.contains('\0')) {
        return wrong("/command", "no program can be given this");
    }
    if !server.headers.is_empty() || server.oauth.is_some() {
        return wrong("", "a program has no headers and no login");
    }
    if let (false, Some(false)) = (own, server.sandbox) {
        return wrong("/sandbox", "a project cannot leave the sandbox");
    }
    let mut env = server.environment;
    env.extend(server.env);
    let unfit = |name: &String| name.is_empty() || name.contains(['=', '\0']);
    if env.keys().any(unfit) {
        return wrong("/env", "this is no name of a variable");
    }
    Ok(Way::Local {
        command,
        env: filled("/env", env, (own, outside))?,
        cwd: server.cwd,
        write: server.write.unwrap_or(own),
        network: server.network.unwrap_or_default(),
        sandbox: server.sandbox.unwrap_or(true),
    })
}

fn remote(
    server: McpServer,
    layer: Layer,
    (own, outside): (bool, &dyn Outside),
) -> Result<Way, Wrong> {
    let url = server.url.unwrap_or_default();
    let here = layer == Layer::Plugin && is_loopback(&url);
    let reached = url.starts_with("https://") || (own || here) && url.starts_with("http://");
    if !reached {
        let why = if own {
            "an address begins with https://"
        } else {
            "a project's server is reached over https only, and so is a plugin's"
        };
        return wrong("/url", why);
    }
    let local = !server.env.is_empty() || !server.environment.is_empty() || server.cwd.is_some();
    if local || server.write.is_some() || server.network.is_some() || server.sandbox.is_some() {
        return wrong("", "an address has no environment, no folder and no sandbox");
    }
    let oauth = match server.oauth {
        Some(McpLogin::Whether(false)) => None,
        Some(McpLogin::Whether(true)) | None => Some(OAuth::default()),
        Some(McpLogin::As(McpClient { client_id, client_secret, scope, callback_port })) => {
            let secret = client_secret.into_iter().map(|it| ("clientSecret".to_owned(), it));
            let secret = filled("/oauth/clientSecret", secret.collect(), (own, outside))?;
            let client_secret = secret.into_values().next();
            Some(OAuth { client_id, client_secret, scope, callback_port })
        }
    };
    let headers = filled("/headers", server.headers, (own, outside))?;
    Ok(Way::Remote { url, headers, oauth })
}

/// Values with what they say of the environment put in, which a project cannot.
pub(super) fn filled(
    at: &'static str,
    values: BTreeMap<String, SecretString>,
    (own, outside): (bool, &dyn Outside),
) -> Result<BTreeMap<String, SecretString>, Wrong> {
    let mut filled = BTreeMap::new();
    for (name, value) in values {
        let mut rest = value.expose_secret();
        let mut whole = String::new();
        if rest.contains("{file:") {
            return wrong(at, "`{file:…}` is not read; use `{env:NAME}`");
        }
        while let Some((before, after)) = rest.split_once("{env:") {
            if !own {
                return wrong(at, "a project cannot read the environment, nor can a plugin");
            }
            let Some((variable, behind)) = after.split_once('}') else {
                return wrong(at, "`{env:` is not closed");
            };
            let Some(value) = outside.env(variable) else {
                return wrong(at, format!("the environment variable {variable} is not set"));
            };
            whole.push_str(before);
            whole.push_str(&value);
            rest = behind;
        }
        whole.push_str(rest);
        filled.insert(name, SecretString::from(whole));
    }
    Ok(filled)
}

/// A server as other programs list it.
fn listed_server(value: &Value) -> Result<McpServer, String> {
    if value.to_string().contains("${") {
        return Err("a project cannot read the environment (`${…}`)".into());
    }
    listed(value)
}

/// The same, with whatever stands in its words.
pub(crate) fn listed(value: &Value) -> Result<McpServer, String> {
    let Value::Object(map) = value else { return Err("this is no server".into()) };
    let mut map = map.clone();
    let kind = map.shift_remove("type");
    let args = map.shift_remove("args").unwrap_or_else(|| json!([]));
    match kind.as_ref().and_then(Value::as_str) {
        Some("stdio" | "http" | "streamable-http") => {}
        Some("sse") => return Err("servers of the kind `sse` are no longer spoken to".into()),
        None if kind.is_none() => {}
        Some(_) | None => return Err("this kind of server is not known".into()),
    }
    if let Some(program) = map.shift_remove("command") {
        let Value::Array(args) = args else { return Err("`args` is no list".into()) };
        map.insert("command".into(), std::iter::once(program).chain(args).collect());
    }
    // What only other programs know changes nothing of what is started.
    let ours = ["command", "env", "cwd", "url", "headers"];
    map.retain(|key, _| ours.contains(&key.as_str()));
    serde_json::from_value(Value::Object(map)).map_err(|error| error.to_string())
}

/// True for an address of this machine, spelled as one.
pub(crate) fn is_loopback(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

/// What names what would be started or reached.
fn digest(way: &Way) -> String {
    let said = match way {
        Way::Local { command, env, cwd, .. } => {
            json!({"command": command, "cwd": cwd, "env": env.keys().collect::<Vec<_>>()})
        }
        Way::Remote { url, headers, .. } => {
            json!({"url": url, "headers": headers.keys().collect::<Vec<_>>()})
        }
    };
    BlobRef::of(said.to_string().as_bytes()).as_str().to_owned()
}
