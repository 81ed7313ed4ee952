//! Implements `windlass plugin marketplace`: lists of plugins in Claude's form.

use crate::CliExit;
use crate::args::MarketplaceCommand;
use crate::commands::plugin_fetch::{fetch_contents, fetch_stored};
use crate::setup::LoadedProject;
use crate::terminal::output;
use anyhow::{anyhow, bail};
use windlass_project::{
    Dirs, MarketplacePluginSource, PluginContents, PluginMarketplace, PluginMarketplaces,
    PluginSource, is_marketplace_name,
};
use windlass_protocol::display_text::pluralize;

/// Runs a `windlass plugin marketplace` command.
pub(crate) async fn run_marketplace(command: MarketplaceCommand) -> anyhow::Result<CliExit> {
    let (dirs, _) = LoadedProject::find_dirs()?;
    let mut marketplaces = PluginMarketplaces::read(&dirs)?;
    match command {
        MarketplaceCommand::Add { source } if source.starts_with("npm:") => {
            bail!("a marketplace is a folder or a git repository, not an npm package");
        }
        MarketplaceCommand::Add { source } => {
            let list = fetch_contents(&dirs, &source, PluginMarketplace::LIST_PATH).await?;
            let (name, marketplace) = parse_marketplace(list)?;
            let is_other = |known: &&PluginMarketplace| known.source != marketplace.source;
            if let Some(known) = marketplaces.find(&name).filter(is_other) {
                bail!(
                    "the marketplace {name} already comes from {}. Remove it first: windlass \
                     plugin marketplace remove {name}",
                    known.source
                );
            }
            let count = pluralize(marketplace.plugins.len(), "plugin");
            marketplaces.add(&name, marketplace)?;
            output::print_note(&format!(
                "added marketplace {name} with {count}; nothing of it is used until you add a \
                 plugin: windlass plugin add NAME@{name}"
            ));
        }
        MarketplaceCommand::List { name: None } => {
            if marketplaces.all().next().is_none() {
                output::print_note(
                    "no marketplaces yet; add one with `windlass plugin marketplace add SOURCE`",
                );
            }
            for (name, marketplace) in marketplaces.all() {
                let count = pluralize(marketplace.plugins.len(), "plugin");
                output::print_line(&format!("{name:<24}  {count}  ({})", marketplace.source));
            }
        }
        MarketplaceCommand::List { name: Some(name) } => {
            for plugin in &find_marketplace(&marketplaces, &name)?.plugins {
                let text = match &plugin.source {
                    MarketplacePluginSource::Unsupported(reason) => reason,
                    MarketplacePluginSource::MarketplaceFolder(_)
                    | MarketplacePluginSource::Other { .. } => &plugin.description,
                };
                output::print_line(format!("{:<32}  {text}", plugin.name).trim_end());
            }
        }
        MarketplaceCommand::Remove { name } => {
            find_marketplace(&marketplaces, &name)?;
            marketplaces.remove(&name)?;
            output::print_note(&format!("removed marketplace {name}; its plugins stay"));
        }
        MarketplaceCommand::Update { name } => {
            let known: Vec<(String, String)> = match &name {
                Some(name) => {
                    vec![(name.clone(), find_marketplace(&marketplaces, name)?.source.clone())]
                }
                None => marketplaces
                    .all()
                    .map(|(name, marketplace)| (name.to_owned(), marketplace.source.clone()))
                    .collect(),
            };
            for (name, source) in known {
                let list = fetch_stored(&dirs, &source, PluginMarketplace::LIST_PATH).await?;
                let (new_name, marketplace) = parse_marketplace(list)?;
                if new_name != name {
                    bail!("{source} is now the marketplace {new_name}, not {name}; add it again");
                }
                let count = pluralize(marketplace.plugins.len(), "plugin");
                marketplaces.add(&name, marketplace)?;
                output::print_note(&format!("updated marketplace {name}: {count}"));
            }
        }
    }
    Ok(CliExit::Done)
}

/// Fetches a plugin written as `NAME@MARKETPLACE`; `None` if the text has another form.
pub(super) async fn fetch_listed_plugin(
    dirs: &Dirs,
    text: &str,
) -> anyhow::Result<Option<(PluginContents, PluginSource)>> {
    let Some((name, marketplace_name)) = text.split_once('@') else { return Ok(None) };
    if !is_marketplace_name(name) || !is_marketplace_name(marketplace_name) {
        return Ok(None);
    }
    let marketplaces = PluginMarketplaces::read(dirs)?;
    let marketplace = find_marketplace(&marketplaces, marketplace_name)?;
    let Some(plugin) = marketplace.find(name) else {
        let names: Vec<&str> = marketplace.plugins.iter().map(|one| one.name.as_str()).collect();
        bail!(
            "the marketplace {marketplace_name} has no plugin `{name}`. {}Run `windlass plugin \
             marketplace list {marketplace_name}` to see all, or `… update` to fetch the list again",
            output::did_you_mean(name, &names)
        );
    };
    let (source, folder) = match &plugin.source {
        MarketplacePluginSource::MarketplaceFolder(folder) => (&marketplace.source, folder),
        MarketplacePluginSource::Other { source, folder } => (source, folder),
        MarketplacePluginSource::Unsupported(reason) => {
            bail!("{name} of {marketplace_name} cannot be added: {reason}")
        }
    };
    let (contents, fetched_from) = fetch_stored(dirs, source, folder).await?;
    let contents = plugin.select_contents(&contents, folder)?;
    Ok(Some((contents, fetched_from.in_folder(folder))))
}

fn parse_marketplace(
    (contents, fetched_from): (PluginContents, PluginSource),
) -> anyhow::Result<(String, PluginMarketplace)> {
    // The source is used again, maybe from a folder in which `owner/repo` is a path.
    let source = match fetched_from {
        PluginSource::Folder(path) | PluginSource::Tarball(path) => path.display().to_string(),
        PluginSource::Git { url, .. } => url,
        PluginSource::Npm { package, .. } => format!("npm:{package}"),
    };
    Ok(PluginMarketplace::from_contents(&contents, &source)?)
}

fn find_marketplace<'a>(
    marketplaces: &'a PluginMarketplaces,
    name: &str,
) -> anyhow::Result<&'a PluginMarketplace> {
    marketplaces.find(name).ok_or_else(|| {
        let names: Vec<&str> = marketplaces.all().map(|(name, _)| name).collect();
        anyhow!(
            "unknown marketplace `{name}`. {}Run `windlass plugin marketplace list` to see all",
            output::did_you_mean(name, &names)
        )
    })
}
