//! `windlass plugin`: other people's plugins are looked at, added, listed and taken out.

use crate::mcp::tokens;
use crate::setup::Setup;
use crate::{Exit, screen};
use anyhow::{anyhow, bail};
use clap::Subcommand;
use serde_json::{Value, json};
use std::path::Path;
use windlass_plugin::hook::objection;
use windlass_project::{
    Change, Contents, Flags, Format, Keys, Offer, Places, PluginSource, Plugins, Scratch,
};
use windlass_sandbox::Hosts;

/// How many lines of what cannot be used are shown.
const MOST_FAULTS: usize = 40;

#[derive(Debug, Subcommand)]
pub(crate) enum Plugin {
    /// Adds a plugin, after showing everything it may touch. A plugin of the same name is replaced,
    /// after showing what is different.
    Add {
        /// A folder, a packed archive as npm makes them (.tgz), or the https address of a git
        /// repository; `#NAME` behind it is a branch or a tag.
        source: String,
        /// Does not ask.
        #[arg(long, short)]
        yes: bool,
    },
    /// Lists the plugins and what they bring.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Takes a plugin out.
    Remove {
        /// The plugin.
        name: String,
    },
}

/// Does a command.
pub(crate) async fn plugin(command: Plugin) -> anyhow::Result<Exit> {
    match command {
        Plugin::Add { source, yes } => add(&source, Asking { yes }).await,
        Plugin::List { json } => list(json),
        Plugin::Remove { name } => remove(&name),
    }
}

/// Whether the person said yes before they were asked.
struct Asking {
    yes: bool,
}

async fn add(source: &str, asking: Asking) -> anyhow::Result<Exit> {
    let (places, _) = Setup::places()?;
    let (contents, source) = fetch(&places, source).await?;
    let mut plugins = Plugins::read(&places)?;
    let mut offer = plugins.survey(contents)?;
    offer.faults.extend(unusable(&offer));
    let name = offer.manifest.name.clone();
    let change = plugins.change(&offer);
    if change.as_ref().is_some_and(Change::is_none) {
        screen::note(&format!("the plugin {name} is there already, and nothing of it has changed"));
        return Ok(Exit::Done);
    }
    introduce(&offer, &source);
    match &change {
        None => tell("it may touch:", &offer.touches),
        Some(change) => compare(change, &offer),
    }
    if offer.touches.is_empty() {
        screen::note("nothing of it can be used here");
    }
    if offer.faults.len() > MOST_FAULTS {
        let more = offer.faults.len() - MOST_FAULTS;
        offer.faults.truncate(MOST_FAULTS);
        offer.faults.push(format!("… and {more} more"));
    }
    tell("what of it is not used:", &offer.faults);
    let question = if change.is_some() { "Replace it? [y/N] " } else { "Add it? [y/N] " };
    let agreed = asking.yes || screen::agrees(question);
    if !agreed {
        screen::note("not added; use --yes to add it without being asked");
        return Ok(Exit::Denied);
    }
    plugins.add(&offer, source)?;
    screen::note(&format!(
        "added; it counts from the next start on. `windlass plugin remove {name}` takes it out"
    ));
    Ok(Exit::Done)
}

/// What a plugin is, and that nobody vouches for it.
fn introduce(offer: &Offer, source: &PluginSource) {
    let manifest = &offer.manifest;
    let version = manifest.version.as_deref().map(|it| format!(" {it}")).unwrap_or_default();
    let form = match manifest.format {
        Format::Agent => "",
        Format::Claude => ", in Claude's form",
    };
    screen::note(&format!("the plugin {}{version}, from {source}{form}", manifest.name));
    if let Some(description) = &manifest.description {
        screen::note(&format!("  it says: {description}"));
    }
}

fn tell(what: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    screen::note(what);
    for line in lines {
        screen::note(&format!("  {line}"));
    }
    if what.starts_with("it may") {
        screen::note("  its programs run in the sandbox and may also write in a folder of its own");
    }
}

/// What is different from the plugin that is there.
fn compare(change: &Change, offer: &Offer) {
    if change.is_blind {
        screen::note(
            "the one that is there is no longer what you added, so nothing can be compared",
        );
        return tell("it may touch:", &offer.touches);
    }
    if change.more.is_empty() && change.less.is_empty() {
        screen::note("it may touch what the one that is there may:");
        offer.touches.iter().for_each(|line| screen::note(&format!("  {line}")));
    } else {
        screen::note("it may touch, other than the one that is there:");
        change.less.iter().for_each(|line| screen::note(&format!("  - {line}")));
        change.more.iter().for_each(|line| screen::note(&format!("  + {line}")));
    }
    tell("its files:", &change.files);
}

/// What only whoever runs it can say: patterns and hosts that are none.
fn unusable(offer: &Offer) -> Vec<String> {
    let mut faults = Vec::new();
    for hook in &offer.parts.hooks {
        let wrong = hook.matcher.as_deref().and_then(objection);
        let wrong = wrong.or_else(|| Hosts::parse(&hook.network).err().map(|it| it.to_string()));
        let line = |why: String| why.split_whitespace().collect::<Vec<_>>().join(" ");
        faults.extend(wrong.map(|why| format!("the hook {}: {}", hook.name, line(why))));
    }
    for (what, hosts) in offer.hosts() {
        let wrong = Hosts::parse(hosts).err();
        faults.extend(wrong.map(|why| format!("{what}: {why}")));
    }
    faults
}

async fn fetch(places: &Places, source: &str) -> anyhow::Result<(Contents, PluginSource)> {
    if Setup::is_there(Path::new(source)) {
        return Ok(Contents::at(Path::new(source))?);
    }
    if source.starts_with("git@") || source.starts_with("ssh://") {
        bail!(
            "a repository is fetched by https only, so that nothing of yours is used for it. Clone it \
             yourself, and add the folder"
        );
    }
    if !source.starts_with("https://") && !source.starts_with("file://") {
        bail!("there is no folder and no file {source}");
    }
    if source.ends_with(".tgz") || source.ends_with(".tar.gz") {
        bail!("download {source} yourself, and add the file");
    }
    let (url, name) = source.split_once('#').map_or((source, None), |(url, it)| (url, Some(it)));
    let setup = Setup::read(Flags::default())?;
    let scratch = Scratch::new(places)?;
    let (commit, archive) = setup.fetch_repository(url, name, scratch.path()).await?;
    let contents = Contents::of_archive(&archive, url)?;
    Ok((contents, PluginSource::Git { url: source.to_owned(), commit }))
}

fn list(as_json: bool) -> anyhow::Result<Exit> {
    let (places, _) = Setup::places()?;
    let plugins = Plugins::read(&places)?;
    let mut rows = Vec::new();
    for (name, plugin) in plugins.all() {
        let loaded = plugins.load_one(name, plugin);
        let version = plugin.version.as_deref().unwrap_or("-");
        let brings = match &loaded {
            Ok(loaded) => loaded.parts.counts(),
            Err(why) => format!("left out: {why}"),
        };
        if as_json {
            let short: String = plugin.digest.chars().take(12).collect();
            let touches: Value = match &loaded {
                Ok(loaded) => json!(loaded.touches()),
                Err(_) => Value::Null,
            };
            rows.push(json!({"name": name, "version": plugin.version, "digest": short,
                "from": plugin.source.to_string(), "touches": touches,
                "left_out": loaded.err()}));
        } else {
            screen::line(&format!("{name:<16}  {version:<8}  {brings}  ({})", plugin.source));
        }
    }
    if as_json {
        screen::json(&serde_json::to_string_pretty(&rows)?);
    } else if plugins.all().next().is_none() {
        screen::note("no plugins yet; `windlass plugin add SOURCE` shows one and adds it");
    }
    Ok(Exit::Done)
}

fn remove(name: &str) -> anyhow::Result<Exit> {
    let (places, _) = Setup::places()?;
    let mut plugins = Plugins::read(&places)?;
    let servers = plugins.find(name).and_then(|plugin| plugins.load_one(name, plugin).ok());
    let Some(kept) = plugins.remove(name)? else {
        let names: Vec<&str> = plugins.all().map(|(name, _)| name).collect();
        let near = screen::near(name, &names);
        return Err(anyhow!(
            "there is no plugin `{name}`. {near}`windlass plugin list` shows them"
        ));
    };
    screen::note(&format!("the plugin {name} is no longer there"));
    if Setup::is_there(&kept) {
        screen::note(&format!("what it kept is still in {}", kept.display()));
    }
    for server in servers.iter().flat_map(|loaded| loaded.parts.server_names()) {
        if Keys::open(&places).remove(&format!("{}{server}", tokens::PREFIX))? {
            screen::note(&format!("the login of {server} is forgotten"));
        }
    }
    Ok(Exit::Done)
}
