//! Implements `windlass mcp …`: the configured MCP servers and logins to them.

mod inspect;
pub(crate) mod token_store;

use crate::CliExit;
use crate::args::{McpAddArgs, McpCommand};
use crate::reports::mcp_servers::{self, McpServerInfo};
use crate::setup::LoadedProject;
use crate::terminal::output;
use anyhow::{anyhow, bail};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use windlass_mcp::AddressPolicy;
use windlass_project::config::edit;
use windlass_project::{
    ApiKeyStore, ConfigFlags, ConfigLayer, ConfigOrigin, McpServerConfig, McpTransport, ServerLogs,
};

/// Runs a `windlass mcp` command.
pub(crate) async fn run_mcp(command: McpCommand) -> anyhow::Result<CliExit> {
    match command {
        McpCommand::List { check: true, .. } => inspect::check_servers().await,
        McpCommand::List { check: false, json } => list_servers(json),
        McpCommand::Add(add) => add.run().await,
        McpCommand::Tools { name, accept, json } => inspect::show_tools(&name, accept, json).await,
        McpCommand::Remove { name } => remove_server(&name),
        McpCommand::Login { name, scope } => login(&name, scope).await,
        McpCommand::Logout { name } => logout(&name),
        McpCommand::Logs { name, lines } => show_logs(&name, lines),
        McpCommand::Serve(serve) => crate::commands::mcp_serve::run_serve(serve).await,
    }
}

fn list_servers(json: bool) -> anyhow::Result<CliExit> {
    let setup = LoadedProject::load(ConfigFlags::default())?;
    let servers = mcp_servers::collect_servers(&setup)?;
    if json {
        let rows: Vec<Value> = servers.iter().map(McpServerInfo::to_json).collect();
        output::print_json(&serde_json::to_string_pretty(&rows)?);
        return Ok(CliExit::Done);
    }
    if servers.is_empty() {
        output::print_note("no servers yet; add one with `windlass mcp add NAME -- COMMAND`");
    }
    let width = servers.iter().map(|server| server.name().len()).max().unwrap_or_default();
    for server in &servers {
        output::print_line(&format!("{:<width$}  {}", server.name(), server.describe()));
    }
    Ok(CliExit::Done)
}

impl McpAddArgs {
    async fn run(&self) -> anyhow::Result<CliExit> {
        let setup = LoadedProject::load(ConfigFlags::default())?;
        if let Some((_, origin)) = setup.config.servers.get(&self.name) {
            bail!(
                "server `{}` already exists ({origin}). Choose another name, or remove it first: \
                 windlass mcp remove {}",
                self.name,
                self.name
            );
        }
        self.check_project_limits()?;
        let value = self.to_config_value()?;
        let file = if self.project { &setup.root } else { &setup.dirs.config };
        let file = file.join("windlass.jsonc");
        output::print_note(&format!("new entry in {}: server `{}`", file.display(), self.name));
        for line in self.describe_effects() {
            output::print_note(&format!("  {line}"));
        }
        let confirmed = self.yes || output::confirm("Add the server? [y/N] ");
        if !confirmed {
            output::print_note("not added; use --yes to add it without confirmation");
            return Ok(CliExit::Denied);
        }
        let Some(change) = edit::insert(&file, ("mcp", &self.name), &value)? else {
            bail!("{} already contains a server `{}`", file.display(), self.name);
        };
        self.check_written_config(change)?;
        if self.project {
            output::print_note("added; it takes effect once you trust this folder: windlass trust");
            return Ok(CliExit::Done);
        }
        inspect::connect_first_time(&self.name).await
    }

    /// Rejects settings that a project's config does not accept. That config is not read before the
    /// folder is trusted, so the error is reported now.
    fn check_project_limits(&self) -> anyhow::Result<()> {
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !(1..=32).contains(&self.name.len()) || !self.name.bytes().all(is_valid) {
            bail!("invalid name: use letters, digits, `_` and `-`, at most 32");
        }
        if self.project && self.url.as_ref().is_some_and(|url| !url.starts_with("https://")) {
            bail!("a project's server must use https; change the URL, or leave out --project");
        }
        let reads_env = |text: &String| text.contains("{env:");
        if self.project && (self.env.iter().any(reads_env) || self.header.iter().any(reads_env)) {
            bail!(
                "a project's config cannot read environment variables; leave out --project to \
                 use {{env:…}}"
            );
        }
        Ok(())
    }

    /// Calls `revert` on the change if the config rejects the new server.
    fn check_written_config(&self, change: edit::RevertibleConfigChange) -> anyhow::Result<()> {
        if self.project {
            return Ok(());
        }
        let error = match LoadedProject::load(ConfigFlags::default()) {
            Ok(setup) if setup.config.servers.contains_key(&self.name) => return Ok(()),
            Ok(_) => anyhow!("the config rejected the server `{}`", self.name),
            Err(error) => error,
        };
        change.revert()?;
        Err(error.context("nothing was added"))
    }

    /// Returns the server as a value of the `mcp` config section.
    fn to_config_value(&self) -> anyhow::Result<Value> {
        let mut value = Map::new();
        if let Some(url) = &self.url {
            value.insert("type".into(), "remote".into());
            value.insert("url".into(), url.clone().into());
            let headers = parse_pairs(&self.header, ':')?;
            if !headers.is_empty() {
                value.insert("headers".into(), headers.into());
            }
        } else {
            value.insert("type".into(), "local".into());
            value.insert("command".into(), self.command.clone().into());
            let env = parse_pairs(&self.env, '=')?;
            if !env.is_empty() {
                value.insert("env".into(), env.into());
            }
            let network = self.network_hosts();
            if !network.is_empty() {
                value.insert("network".into(), network.into());
            }
            if self.read_only || self.project {
                value.insert("write".into(), (!self.read_only).into());
            }
        }
        if let Some(timeout) = self.timeout {
            value.insert("timeout".into(), timeout.get().into());
        }
        Ok(value.into())
    }

    /// Returns the allowed hosts; adds `registries` for programs that download what they run
    /// (`npx`, `uvx`, `bunx`).
    fn network_hosts(&self) -> Vec<String> {
        let mut hosts = self.network.clone();
        let program = self.command.first().map(|program| Path::new(program).file_name());
        let downloads = program.flatten().is_some_and(|name| {
            ["npx", "uvx", "bunx"].iter().any(|downloader| name == *downloader)
        });
        if downloads && !hosts.iter().any(|host| host == "registries") {
            hosts.push("registries".into());
        }
        hosts
    }

    /// Describes the effects of adding this server, one per line.
    fn describe_effects(&self) -> Vec<String> {
        if let Some(url) = &self.url {
            let mut lines = vec![format!("connects to {url}")];
            lines.extend(self.header.iter().filter_map(|header| {
                header.split_once(':').map(|(name, _)| format!("sends the header {name}"))
            }));
            return lines;
        }
        let access = if self.read_only { "only read" } else { "read and write" };
        let hosts = self.network_hosts();
        let network = match hosts.as_slice() {
            [] => "only the hosts in `sandbox.network`".to_owned(),
            hosts => {
                let names = hosts.iter().map(|host| match host.as_str() {
                    "registries" => "package registries",
                    host => host,
                });
                names.collect::<Vec<&str>>().join(", ")
            }
        };
        vec![
            format!("runs `{}` in the sandbox", self.command.join(" ")),
            format!("can {access} the project"),
            format!("can connect to {network}"),
        ]
    }
}

/// Parses `KEY=VALUE` or `NAME: VALUE` pairs.
fn parse_pairs(texts: &[String], separator: char) -> anyhow::Result<Map<String, Value>> {
    let pair = |text: &String| {
        let (name, value) = text.split_once(separator)?;
        let value = if separator == ':' { value.trim() } else { value };
        Some((name.trim().to_owned(), value.into()))
    };
    let invalid = |text: &String| {
        // The rest may be a secret.
        let name: String =
            text.chars().take_while(|c| c.is_ascii_alphanumeric()).take(20).collect();
        anyhow!("`{name}…` does not contain `{separator}`; use the form `NAME{separator}VALUE`")
    };
    texts.iter().map(|text| pair(text).ok_or_else(|| invalid(text))).collect()
}

/// Returns the [`AddressPolicy`] of a server. Servers of plugins and projects must have a public
/// address, unless a plugin names one on this machine explicitly (`http://`).
pub(crate) fn address_policy(layer: ConfigLayer, url: &str) -> AddressPolicy {
    match layer {
        ConfigLayer::Plugin if url.starts_with("http://") => AddressPolicy::Anywhere,
        ConfigLayer::Plugin | ConfigLayer::Project => AddressPolicy::PublicOnly,
        ConfigLayer::User | ConfigLayer::Flag | ConfigLayer::Managed => AddressPolicy::Anywhere,
    }
}

/// Finds a configured server and its `ConfigOrigin`.
pub(crate) fn find_server<'a>(
    setup: &'a LoadedProject,
    name: &str,
) -> anyhow::Result<&'a (McpServerConfig, ConfigOrigin)> {
    setup.config.servers.get(name).ok_or_else(|| {
        let names: Vec<&str> = setup.config.servers.keys().map(String::as_str).collect();
        let suggestion = output::did_you_mean(name, &names);
        anyhow!("unknown server `{name}`. {suggestion}Run `windlass mcp list` to see all servers")
    })
}

fn remove_server(name: &str) -> anyhow::Result<CliExit> {
    let setup = LoadedProject::load(ConfigFlags::default())?;
    let (server, origin) = find_server(&setup, name)?;
    if let Some(plugin) = &server.plugin {
        let plugin = &plugin.plugin;
        bail!(
            "`{name}` belongs to the plugin {plugin}. Remove the plugin instead: windlass plugin \
             remove {plugin}"
        );
    }
    let file = origin.file.clone().unwrap_or_else(PathBuf::new);
    if file.ends_with(".mcp.json") {
        bail!(
            "`{name}` is defined in {}, which other programs also read. Remove it there by hand, \
             or prevent it from starting: \"permission\": {{\"process\": {{\"mcp/{name}\": \
             \"deny\"}}}}",
            file.display()
        );
    }
    if edit::remove(&file, ("mcp", name))?.is_none() {
        bail!("{} does not contain the server `{name}`", file.display());
    }
    output::print_note(&format!("removed `{name}` from {}", file.display()));
    if ApiKeyStore::open(&setup.dirs).remove(&format!("{}{name}", token_store::KEY_NAME_PREFIX))? {
        output::print_note("removed its login");
    }
    Ok(CliExit::Done)
}

async fn login(name: &str, scope: Option<String>) -> anyhow::Result<CliExit> {
    let setup = LoadedProject::load(ConfigFlags::default())?;
    let (server, origin) = find_server(&setup, name)?;
    let McpTransport::Http { url, oauth, .. } = &server.transport else {
        bail!("`{name}` is a local program; only remote servers have a login");
    };
    let Some(oauth) = oauth else {
        bail!("login for `{name}` is turned off in the config (\"oauth\": false)");
    };
    let mut oauth = token_store::oauth_config(oauth);
    if let Some(additional) = scope {
        let scopes =
            oauth.scope.map_or_else(|| additional.clone(), |scope| format!("{scope} {additional}"));
        oauth.scope = Some(scopes);
    }
    let address_policy = address_policy(origin.layer, url);
    let store = token_store::token_store(&setup.dirs, name);
    let login = windlass_mcp::OAuthLogin {
        url,
        address_policy,
        oauth: &oauth,
        store: &store,
        challenge: None,
    };
    let open_page = |page: &str| {
        output::print_note(&format!("Log in to {name} in your browser:\n  {page}"));
        // Without a browser on this machine, the user can open the page elsewhere by hand.
        let _ = windlass_sandbox::open_page(page);
    };
    tokio::select! {
        result = login.run(&open_page) => result.map_err(|failure| anyhow!(failure.text))?,
        _ = tokio::signal::ctrl_c() => {
            output::print_note("not logged in");
            return Ok(CliExit::Interrupted);
        }
    }
    output::print_note(&format!("logged in to {name}"));
    Ok(CliExit::Done)
}

fn logout(name: &str) -> anyhow::Result<CliExit> {
    let (dirs, _) = LoadedProject::find_dirs()?;
    if !ApiKeyStore::open(&dirs).remove(&format!("{}{name}", token_store::KEY_NAME_PREFIX))? {
        output::print_error(&format!(
            "not logged in to `{name}`. Run `windlass mcp list` to see all servers"
        ));
        return Ok(CliExit::Failed);
    }
    output::print_note(&format!(
        "logged out of {name} on this machine; the server may still list the login"
    ));
    Ok(CliExit::Done)
}

fn show_logs(name: &str, lines: usize) -> anyhow::Result<CliExit> {
    let setup = LoadedProject::load(ConfigFlags::default())?;
    find_server(&setup, name)?;
    match ServerLogs::new(&setup.dirs, "mcp").tail(name, lines)? {
        Some(lines) => lines.iter().for_each(|line| output::print_line(line)),
        None => {
            output::print_note(&format!("no log for {name}: it has not run, or printed nothing"))
        }
    }
    Ok(CliExit::Done)
}
