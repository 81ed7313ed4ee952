//! Implements `windlass plugin`: adds, lists and removes third-party plugins.

use crate::CliExit;
use crate::args::PluginCommand;
use crate::commands::mcp::token_store;
use crate::commands::plugin_fetch::fetch_contents;
use crate::commands::plugin_marketplace::{fetch_listed_plugin, run_marketplace};
use crate::reports::plugins::{PluginInfo, collect_plugins};
use crate::setup::{LoadedProject, ScriptPreview};
use crate::terminal::output;
use anyhow::anyhow;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use windlass_plugin::hook::matcher_error;
use windlass_project::{
    ApiKeyStore, ConfigFlags, ConfigLayer, ConfigOrigin, InstalledPlugins, PluginCandidate,
    PluginDiff, PluginDownloadDir, PluginManifestFormat, PluginSource,
};
use windlass_sandbox::HostAllowlist;

/// Limit for the printed list of unusable parts, in lines.
const MAX_SHOWN_FAULTS: usize = 40;

/// Runs a `windlass plugin` command.
pub(crate) async fn run_plugin(command: PluginCommand) -> anyhow::Result<CliExit> {
    match command {
        PluginCommand::Add { source: Some(source), yes } => {
            add_plugin(&source, PluginAddConsent { yes }).await
        }
        PluginCommand::Add { source: None, yes } => add_listed_plugins(yes).await,
        PluginCommand::List { json } => list_plugins(json),
        PluginCommand::Remove { name } => remove_plugin(&name),
        PluginCommand::Marketplace(command) => run_marketplace(command).await,
    }
}

/// Records if the user confirmed in advance with `--yes`.
struct PluginAddConsent {
    yes: bool,
}

async fn add_plugin(source: &str, confirmation: PluginAddConsent) -> anyhow::Result<CliExit> {
    let (dirs, _) = LoadedProject::find_dirs()?;
    let listed = match LoadedProject::path_exists(Path::new(source)) {
        true => None,
        false => fetch_listed_plugin(&dirs, source).await?,
    };
    let (contents, source) = match listed {
        Some(listed) => listed,
        None => fetch_contents(&dirs, source, "").await?,
    };
    let mut plugins =
        InstalledPlugins::read(&dirs)?.with_claude_tools(windlass_tools::claude_names());
    let mut candidate = plugins.inspect(contents)?;
    candidate.faults.extend(find_unusable_parts(&candidate));
    let name = candidate.manifest.name.clone();
    let change = plugins.compare_installed(&candidate);
    if change.as_ref().is_some_and(PluginDiff::is_empty) {
        output::print_note(&format!("plugin {name} is already installed and unchanged"));
        return Ok(CliExit::Done);
    }
    print_plugin(&candidate, &source);
    match &change {
        None => print_section("it can access:", &candidate.access_lines),
        Some(change) => print_changes(change, &candidate),
    }
    if candidate.components.tools.iter().any(|tool| tool.is_script) {
        let setup = LoadedProject::load(ConfigFlags::default())?;
        let scratch = PluginDownloadDir::new(&dirs)?;
        match setup.preview_scripts(&candidate, scratch.path()).await {
            Ok(scripts) => {
                let (loaded, failed): (Vec<_>, Vec<_>) =
                    scripts.into_iter().partition(|script| script.is_loaded);
                let to_lines = |scripts: Vec<ScriptPreview>| -> Vec<String> {
                    scripts.into_iter().map(|script| script.line).collect()
                };
                print_section("its scripts, as they describe themselves:", &to_lines(loaded));
                // A plugin that cannot be loaded denies all calls, because it could have a hook.
                if !failed.is_empty() {
                    output::print_error(&format!(
                        "nothing was added, because the plugin {name} cannot work here: {}",
                        to_lines(failed).join("; ")
                    ));
                    return Ok(CliExit::Failed);
                }
            }
            Err(error) => output::print_note(&format!("its scripts are not described: {error}")),
        }
    }
    if candidate.access_lines.is_empty() {
        output::print_note("it contains nothing that can be used here");
    }
    if candidate.faults.len() > MAX_SHOWN_FAULTS {
        let more = candidate.faults.len() - MAX_SHOWN_FAULTS;
        candidate.faults.truncate(MAX_SHOWN_FAULTS);
        candidate.faults.push(format!("… and {more} more"));
    }
    print_section("not used:", &candidate.faults);
    let question =
        if change.is_some() { "Replace the plugin? [y/N] " } else { "Add the plugin? [y/N] " };
    let confirmed = confirmation.yes || output::confirm(question);
    if !confirmed {
        output::print_note("not added; use --yes to add it without confirmation");
        return Ok(CliExit::Denied);
    }
    plugins.add(&candidate, source)?;
    output::print_note(&format!(
        "added; it takes effect at the next start. To remove it: `windlass plugin remove {name}`"
    ));
    Ok(CliExit::Done)
}

/// Adds the packages that the config lists and that are not added, one after the other. `--yes`
/// does not apply to packages that only a project lists, because a plugin is added for all projects.
async fn add_listed_plugins(yes: bool) -> anyhow::Result<CliExit> {
    let setup = LoadedProject::load(ConfigFlags::default())?;
    let packages = setup.missing_packages()?;
    if packages.is_empty() {
        output::print_note("all plugins that the config lists are added");
    }
    let is_from_project =
        |origin: &ConfigOrigin| matches!(origin.layer, ConfigLayer::Project | ConfigLayer::Plugin);
    let (from_project, from_user): (Vec<_>, Vec<_>) =
        packages.into_iter().partition(|(_, origin)| is_from_project(origin));
    let mut seen = BTreeSet::new();
    let mut exit = CliExit::Done;
    for (package, origin) in from_user.into_iter().chain(from_project) {
        if !seen.insert(package.clone()) {
            continue;
        }
        let is_from_project = is_from_project(&origin);
        if is_from_project && !output::is_interactive() {
            output::print_note(&format!(
                "{package} is not added, because only the project lists it ({origin}). To add it \
                 for all projects, run `windlass plugin add npm:{package}`"
            ));
            exit = CliExit::Denied;
            continue;
        }
        output::print_note(&format!("{package} is listed in {origin}"));
        let consent = PluginAddConsent { yes: yes && !is_from_project };
        match add_plugin(&format!("npm:{package}"), consent).await? {
            CliExit::Done => {}
            other => exit = other,
        }
    }
    Ok(exit)
}

impl LoadedProject {
    /// Returns the packages that the config lists under `plugin` and that are not added, each with
    /// its place in a config.
    pub(crate) fn missing_packages(&self) -> anyhow::Result<Vec<(String, ConfigOrigin)>> {
        let installed = InstalledPlugins::read(&self.dirs)?;
        let missing = self.config.plugin_list.missing_packages(&installed).into_iter();
        Ok(missing.map(|(package, origin)| (package.argument(), origin.clone())).collect())
    }

    /// Prints a note about the packages that the config lists and that are not added.
    pub(crate) fn note_missing_packages(&self) {
        let packages = self.missing_packages().unwrap_or_default();
        let packages: Vec<String> = packages.into_iter().map(|(package, _)| package).collect();
        if !packages.is_empty() {
            output::print_note(&format!(
                "note: the config lists plugins that are not added: {}; run `windlass plugin add`",
                packages.join(", ")
            ));
        }
    }
}

/// Prints the plugin's name, version, source and its own description, marked as such.
fn print_plugin(candidate: &PluginCandidate, source: &PluginSource) {
    let manifest = &candidate.manifest;
    let version =
        manifest.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let format = match manifest.format {
        PluginManifestFormat::AgentPlugins => "",
        PluginManifestFormat::Claude => ", in Claude's format",
    };
    output::print_note(&format!("plugin {}{version}, from {source}{format}", manifest.name));
    if let Some(description) = &manifest.description {
        output::print_note(&format!("  its description: {description}"));
    }
}

fn print_section(title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    output::print_note(title);
    for line in lines {
        output::print_note(&format!("  {line}"));
    }
    if title.starts_with("it can") {
        output::print_note(
            "  its programs run in the sandbox and can also write to the plugin's data folder",
        );
    }
}

/// Prints the differences from the installed plugin, or everything if `cannot_compare` is set.
fn print_changes(change: &PluginDiff, candidate: &PluginCandidate) {
    if change.cannot_compare {
        output::print_note(
            "the installed plugin has been modified since you added it, so changes cannot be \
             shown",
        );
        return print_section("it can access:", &candidate.access_lines);
    }
    if change.added_access.is_empty() && change.removed_access.is_empty() {
        output::print_note("it can access the same as the installed version:");
        candidate.access_lines.iter().for_each(|line| output::print_note(&format!("  {line}")));
    } else {
        output::print_note("changes in what it can access:");
        change.removed_access.iter().for_each(|line| output::print_note(&format!("  - {line}")));
        change.added_access.iter().for_each(|line| output::print_note(&format!("  + {line}")));
    }
    print_section("changed files:", &change.files);
}

/// Finds errors that only the executing crates can detect: invalid hook matchers and hosts.
fn find_unusable_parts(candidate: &PluginCandidate) -> Vec<String> {
    let mut faults = Vec::new();
    for hook in &candidate.components.hooks {
        let error = hook.matcher.as_deref().and_then(matcher_error);
        let error = error
            .or_else(|| HostAllowlist::parse(&hook.network).err().map(|error| error.to_string()));
        let to_one_line = |error: String| error.split_whitespace().collect::<Vec<_>>().join(" ");
        faults.extend(error.map(|error| format!("hook {}: {}", hook.name, to_one_line(error))));
    }
    for (part, hosts) in candidate.requested_hosts() {
        let error = HostAllowlist::parse(hosts).err();
        faults.extend(error.map(|error| format!("{part}: {error}")));
    }
    faults
}

fn list_plugins(as_json: bool) -> anyhow::Result<CliExit> {
    let (dirs, _) = LoadedProject::find_dirs()?;
    let plugins = collect_plugins(&dirs)?;
    if as_json {
        let rows: Vec<Value> = plugins.iter().map(PluginInfo::to_json).collect();
        output::print_json(&serde_json::to_string_pretty(&rows)?);
        return Ok(CliExit::Done);
    }
    if plugins.is_empty() {
        output::print_note("no plugins yet; add one with `windlass plugin add SOURCE`");
    }
    for plugin in &plugins {
        let version = plugin.version.as_deref().unwrap_or("-");
        output::print_line(&format!(
            "{:<16}  {version:<8}  {}  ({})",
            plugin.name,
            plugin.describe_contents(),
            plugin.source
        ));
    }
    Ok(CliExit::Done)
}

fn remove_plugin(name: &str) -> anyhow::Result<CliExit> {
    let (dirs, _) = LoadedProject::find_dirs()?;
    let mut plugins =
        InstalledPlugins::read(&dirs)?.with_claude_tools(windlass_tools::claude_names());
    let servers = plugins.find(name).and_then(|plugin| plugins.load_one(name, plugin).ok());
    let Some(data_folder) = plugins.remove(name)? else {
        let names: Vec<&str> = plugins.all().map(|(name, _)| name).collect();
        let suggestion = output::did_you_mean(name, &names);
        return Err(anyhow!(
            "unknown plugin `{name}`. {suggestion}Run `windlass plugin list` to see all plugins"
        ));
    };
    output::print_note(&format!("removed plugin {name}"));
    if LoadedProject::path_exists(&data_folder) {
        output::print_note(&format!("its data is still in {}", data_folder.display()));
    }
    for server in servers.iter().flat_map(|loaded| loaded.components.server_names()) {
        if ApiKeyStore::open(&dirs).remove(&format!("{}{server}", token_store::KEY_NAME_PREFIX))? {
            output::print_note(&format!("logged out of {server}"));
        }
    }
    Ok(CliExit::Done)
}
