//! `windlass mcp …`: the servers of the Model Context Protocol that the config names, and logins to them.

mod look;
pub(crate) mod tokens;

use crate::{Exit, screen, setup::Setup};
use anyhow::{anyhow, bail};
use clap::Subcommand;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use windlass_mcp::Reach;
use windlass_project::{Flags, Journal, Keys, Layer, Origin, Server, Way, edit};

#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    /// Lists the servers: how each is reached, whether you are logged in, and who says so.
    List {
        /// Connects to each, and says what it has or why it does not answer.
        #[arg(long, conflicts_with = "json")]
        check: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Adds a server to your config, after showing what it will be able to do, and connects to it.
    Add(Box<Add>),
    /// Connects to a server and shows its tools, and those that are not what you agreed to.
    Tools {
        /// The server.
        name: String,
        /// Agrees to all of them as they are now.
        #[arg(long)]
        accept: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Takes a server out of the config, and forgets its login.
    Remove {
        /// The server.
        name: String,
    },
    /// Logs in to a server, in your browser.
    Login {
        /// The server.
        name: String,
        /// What to ask for besides, as a server says when it refuses a call.
        #[arg(long)]
        scope: Option<String>,
    },
    /// Forgets what the login to a server gave.
    Logout {
        /// The server.
        name: String,
    },
    /// Shows the last of what a server said besides its answers.
    Logs {
        /// The server.
        name: String,
        /// How many lines.
        #[arg(short = 'n', long, default_value_t = 50)]
        lines: usize,
    },
    /// Serves the tools of this project to other programs, under the rules that hold here. Each
    /// connection is a session that can be looked at and taken back; what a rule would ask about is
    /// refused.
    Serve(crate::serve::Serve),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Add {
    /// What to call it; its tools are named NAME_TOOL.
    name: String,
    /// Into this project's windlass.jsonc, for everybody who works on it and trusts it.
    #[arg(long)]
    project: bool,
    /// A variable of the program's environment; `{env:X}` takes the value from yours.
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "url")]
    env: Vec<String>,
    /// A host the program may reach, or `registries`.
    #[arg(long, value_name = "HOST", conflicts_with = "url")]
    network: Vec<String>,
    /// The program may only read the project.
    #[arg(long, conflicts_with = "url")]
    read_only: bool,
    /// How long it may take to start, in milliseconds.
    #[arg(long, value_name = "MS")]
    timeout: Option<std::num::NonZeroU32>,
    /// The server's address.
    #[arg(long, required_unless_present = "command", conflicts_with = "command")]
    url: Option<String>,
    /// A header that is sent to the address; `{env:X}` takes the value from your environment.
    #[arg(long, value_name = "NAME: VALUE", requires = "url")]
    header: Vec<String>,
    /// Does not ask.
    #[arg(long, short)]
    yes: bool,
    /// The program and its arguments; `{folder}` is the project.
    #[arg(last = true)]
    command: Vec<String>,
}

/// Does a command.
pub(crate) async fn mcp(command: Mcp) -> anyhow::Result<Exit> {
    match command {
        Mcp::List { check: true, .. } => look::check().await,
        Mcp::List { check: false, json } => list(json),
        Mcp::Add(add) => add.run().await,
        Mcp::Tools { name, accept, json } => look::tools(&name, accept, json).await,
        Mcp::Remove { name } => remove(&name),
        Mcp::Login { name, scope } => login(&name, scope).await,
        Mcp::Logout { name } => logout(&name),
        Mcp::Logs { name, lines } => logs(&name, lines),
        Mcp::Serve(serve) => crate::serve::serve(serve).await,
    }
}

fn list(json: bool) -> anyhow::Result<Exit> {
    let setup = Setup::read(Flags::default())?;
    let keys = Keys::open(&setup.places).list()?;
    let logged_in = |name: &str| {
        let key = format!("{}{name}", tokens::PREFIX);
        keys.iter().any(|(known, _)| *known == key)
    };
    let servers = setup.config.servers.values();
    if json {
        let rows: Vec<Value> = servers
            .map(|(server, origin)| {
                let place = match &server.way {
                    Way::Local { command, .. } => json!({"command": command}),
                    Way::Remote { url, .. } => json!({"url": url}),
                };
                json!({"name": server.name, "enabled": server.enabled, "way": place,
                       "logged_in": logged_in(&server.name), "from": origin.to_string()})
            })
            .collect();
        screen::json(&serde_json::to_string_pretty(&rows)?);
        return Ok(Exit::Done);
    }
    if setup.config.servers.is_empty() {
        screen::note("no servers yet; `windlass mcp add NAME -- COMMAND` adds one");
    }
    let width = setup.config.servers.keys().map(String::len).max().unwrap_or_default();
    for (server, origin) in servers {
        let state = match (&server.way, server.enabled) {
            (_, false) => "off, ",
            (Way::Remote { .. }, true) if logged_in(&server.name) => "logged in, ",
            (Way::Remote { .. } | Way::Local { .. }, true) => "",
        };
        screen::line(&format!("{:<width$}  {}  ({state}{origin})", server.name, place(server)));
    }
    Ok(Exit::Done)
}

/// How a server is reached, in a line. Values of its environment are not part of it.
fn place(server: &Server) -> String {
    match &server.way {
        Way::Local { command, .. } => command.join(" "),
        Way::Remote { url, .. } => url.clone(),
    }
}

impl Add {
    async fn run(&self) -> anyhow::Result<Exit> {
        let setup = Setup::read(Flags::default())?;
        if let Some((_, origin)) = setup.config.servers.get(&self.name) {
            bail!(
                "there is a server `{}` already ({origin}). Choose another name, or take it out first: \
                 windlass mcp remove {}",
                self.name,
                self.name
            );
        }
        self.fits()?;
        let value = self.value()?;
        let file = if self.project { &setup.root } else { &setup.places.config };
        let file = file.join("windlass.jsonc");
        screen::note(&format!("{} gets the server `{}`:", file.display(), self.name));
        for line in self.means() {
            screen::note(&format!("  {line}"));
        }
        let agreed = self.yes || screen::agrees("Add it? [y/N] ");
        if !agreed {
            screen::note("not added; use --yes to add it without being asked");
            return Ok(Exit::Denied);
        }
        let Some(made) = edit::put(&file, ("mcp", &self.name), &value)? else {
            bail!("{} has a server `{}` already", file.display(), self.name);
        };
        self.check(made)?;
        if self.project {
            screen::note("added; it counts once this folder is trusted: windlass trust");
            return Ok(Exit::Done);
        }
        look::greet(&self.name).await
    }

    /// What a project's config would not take is not read before the folder is trusted, so it is said now.
    fn fits(&self) -> anyhow::Result<()> {
        let fits = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'-');
        if !(1..=32).contains(&self.name.len()) || !self.name.bytes().all(fits) {
            bail!("a name has letters, digits, `_` and `-`, 32 at most");
        }
        if self.project && self.url.as_ref().is_some_and(|url| !url.starts_with("https://")) {
            bail!(
                "a project's server is reached by https only; leave out --project, or change the address"
            );
        }
        let secret = |text: &String| text.contains("{env:");
        if self.project && (self.env.iter().any(secret) || self.header.iter().any(secret)) {
            bail!(
                "a project reads nothing of the environment; leave out --project to use {{env:…}}"
            );
        }
        Ok(())
    }

    /// What was written is taken back if the config does not take it.
    fn check(&self, made: edit::Made) -> anyhow::Result<()> {
        if self.project {
            return Ok(());
        }
        let wrong = match Setup::read(Flags::default()) {
            Ok(setup) if setup.config.servers.contains_key(&self.name) => return Ok(()),
            Ok(_) => anyhow!("the config does not take the server `{}`", self.name),
            Err(error) => error,
        };
        made.take_back()?;
        Err(wrong.context("nothing was added"))
    }

    /// The server as the config has it.
    fn value(&self) -> anyhow::Result<Value> {
        let mut value = Map::new();
        if let Some(url) = &self.url {
            value.insert("type".into(), "remote".into());
            value.insert("url".into(), url.clone().into());
            let headers = pairs(&self.header, ':')?;
            if !headers.is_empty() {
                value.insert("headers".into(), headers.into());
            }
        } else {
            value.insert("type".into(), "local".into());
            value.insert("command".into(), self.command.clone().into());
            let env = pairs(&self.env, '=')?;
            if !env.is_empty() {
                value.insert("env".into(), env.into());
            }
            let network = self.hosts();
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

    /// Programs that fetch what they run need the registries.
    fn hosts(&self) -> Vec<String> {
        let mut hosts = self.network.clone();
        let program = self.command.first().map(|program| Path::new(program).file_name());
        let fetches = program
            .flatten()
            .is_some_and(|name| ["npx", "uvx", "bunx"].iter().any(|known| name == *known));
        if fetches && !hosts.iter().any(|host| host == "registries") {
            hosts.push("registries".into());
        }
        hosts
    }

    /// What it means, line by line.
    fn means(&self) -> Vec<String> {
        if let Some(url) = &self.url {
            let mut lines = vec![format!("reached at {url}")];
            lines.extend(self.header.iter().filter_map(|header| {
                header.split_once(':').map(|(name, _)| format!("with the header {name}"))
            }));
            return lines;
        }
        let may = if self.read_only { "only read" } else { "read and write" };
        let hosts = self.hosts();
        let network = match hosts.as_slice() {
            [] => "no host but those of `sandbox.network`".to_owned(),
            hosts => hosts.join(", "),
        };
        vec![
            format!("runs {}", self.command.join(" ")),
            format!("in the sandbox, where it may {may} the project"),
            format!("and reach {network}"),
        ]
    }
}

/// `KEY=VALUE` or `NAME: VALUE`.
fn pairs(texts: &[String], between: char) -> anyhow::Result<Map<String, Value>> {
    let pair = |text: &String| {
        let (name, value) = text.split_once(between)?;
        let value = if between == ':' { value.trim() } else { value };
        Some((name.trim().to_owned(), value.into()))
    };
    let wrong = |text: &String| {
        // The rest may be a secret.
        let name: String =
            text.chars().take_while(|c| c.is_ascii_alphanumeric()).take(20).collect();
        anyhow!("`{name}…` has no `{between}` in it; write a name, `{between}` and a value")
    };
    texts.iter().map(|text| pair(text).ok_or_else(|| wrong(text))).collect()
}

/// How far a server may be looked for. What others bring is at a public address, unless a plugin spells
/// out that it is on this machine.
pub(crate) fn reach(layer: Layer, url: &str) -> Reach {
    match layer {
        Layer::Plugin if url.starts_with("http://") => Reach::Anywhere,
        Layer::Plugin | Layer::Project => Reach::Public,
        Layer::User | Layer::Flag | Layer::Managed => Reach::Anywhere,
    }
}

/// A server and where it stands.
pub(crate) fn found<'a>(setup: &'a Setup, name: &str) -> anyhow::Result<&'a (Server, Origin)> {
    setup.config.servers.get(name).ok_or_else(|| {
        let names: Vec<&str> = setup.config.servers.keys().map(String::as_str).collect();
        let near = screen::near(name, &names);
        anyhow!("there is no server `{name}`. {near}`windlass mcp list` shows them")
    })
}

fn remove(name: &str) -> anyhow::Result<Exit> {
    let setup = Setup::read(Flags::default())?;
    let (server, origin) = found(&setup, name)?;
    if let Some(plugin) = &server.plugin {
        let plugin = &plugin.plugin;
        bail!(
            "`{name}` comes with the plugin {plugin}. Take that out: windlass plugin remove {plugin}"
        );
    }
    let file = origin.file.clone().unwrap_or_else(PathBuf::new);
    if file.ends_with(".mcp.json") {
        bail!(
            "`{name}` is in {}, which other programs read, too. Take it out there by hand, or keep it \
             from running: \"permission\": {{\"servant\": {{\"mcp/{name}\": \"deny\"}}}}",
            file.display()
        );
    }
    if edit::remove(&file, ("mcp", name))?.is_none() {
        bail!("{} has no server `{name}`", file.display());
    }
    screen::note(&format!("`{name}` is no longer in {}", file.display()));
    if Keys::open(&setup.places).remove(&format!("{}{name}", tokens::PREFIX))? {
        screen::note("its login is forgotten");
    }
    Ok(Exit::Done)
}

async fn login(name: &str, scope: Option<String>) -> anyhow::Result<Exit> {
    let setup = Setup::read(Flags::default())?;
    let (server, origin) = found(&setup, name)?;
    let Way::Remote { url, oauth, .. } = &server.way else {
        bail!("`{name}` is a program, and programs have no login");
    };
    let Some(oauth) = oauth else {
        bail!("the config says that `{name}` has no login (\"oauth\": false)");
    };
    let mut oauth = tokens::login(oauth);
    if let Some(more) = scope {
        let all = oauth.scope.map_or_else(|| more.clone(), |scope| format!("{scope} {more}"));
        oauth.scope = Some(all);
    }
    let reach = reach(origin.layer, url);
    let store = tokens::store(&setup.places, name);
    let login = windlass_mcp::Login { url, reach, oauth: &oauth, store: &store, challenge: None };
    let page = |page: &str| {
        screen::note(&format!("Log in to {name} on this page:\n  {page}"));
        // Where there is no browser, the page can be opened on another machine only by hand.
        let _ = windlass_sandbox::open_page(page);
    };
    tokio::select! {
        done = login.run(&page) => done.map_err(|failure| anyhow!(failure.text))?,
        _ = tokio::signal::ctrl_c() => {
            screen::note("not logged in");
            return Ok(Exit::Interrupted);
        }
    }
    screen::note(&format!("you are logged in to {name}"));
    Ok(Exit::Done)
}

fn logout(name: &str) -> anyhow::Result<Exit> {
    let (places, _) = Setup::places()?;
    if !Keys::open(&places).remove(&format!("{}{name}", tokens::PREFIX))? {
        screen::error(&format!(
            "you are not logged in to `{name}`. `windlass mcp list` shows the servers"
        ));
        return Ok(Exit::Failed);
    }
    screen::note(&format!(
        "the login to {name} is forgotten here; the server may still know of it"
    ));
    Ok(Exit::Done)
}

fn logs(name: &str, lines: usize) -> anyhow::Result<Exit> {
    let setup = Setup::read(Flags::default())?;
    found(&setup, name)?;
    match Journal::of(&setup.places, "mcp").tail(name, lines)? {
        Some(lines) => lines.iter().for_each(|line| screen::line(line)),
        None => {
            screen::note(&format!("nothing is known of {name}; it has not run, or said nothing"))
        }
    }
    Ok(Exit::Done)
}
