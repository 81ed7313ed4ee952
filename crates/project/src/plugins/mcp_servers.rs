//! MCP servers of plugins: their names, the access their manifest requests, and variable expansion.
//!
//! The Agent Plugins format expands only `${PLUGIN_ROOT}` and `${PLUGIN_DATA}`, in arguments,
//! environment values and the working directory. Claude's format also expands variables of the
//! user's environment; here only in values and headers, and the user sees each of them before
//! approval.

use super::manifest::{PluginManifest, PluginManifestFormat};
use super::plugin_folders::PluginDirs;
use crate::config::file_parser::ConfigLayer;
use crate::config::mcp_server_config::{McpServerConfig, parse_listed_raw, resolve_server};
use crate::{ConfigEnv, McpServerSettings};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

const MAX_NAME_BYTES: usize = 32;
/// Programs such as `npx` that download the packages they run.
const PACKAGE_RUNNERS: [&str; 3] = ["npx", "uvx", "bunx"];

/// An MCP server of a plugin.
#[derive(Clone, Debug)]
pub(crate) struct PluginMcpServer {
    /// The qualified name.
    pub(crate) name: String,
    pub(super) name_in_plugin: String,
    /// The variables of the user's environment that it receives.
    pub(super) env_names: BTreeSet<String>,
    pub(super) server: McpServerSettings,
    plugin_dirs: PluginDirs,
}

impl PluginMcpServer {
    pub(super) fn read(
        name_in_plugin: &str,
        value: &Value,
        manifest: &PluginManifest,
        plugin_dirs: &PluginDirs,
    ) -> Result<PluginMcpServer, String> {
        let mut server = parse_listed_raw(value)?;
        let expand = |text: &str| plugin_dirs.expand_dirs(text);
        let expand_all = |values: &mut BTreeMap<String, SecretString>| {
            for value in values.values_mut() {
                *value = SecretString::from(expand(value.expose_secret()));
            }
        };
        if let Some(command) = &mut server.command {
            // The Agent Plugins format takes the program literally; `PluginManifestFormat::Claude`
            // expands it too.
            let literal = usize::from(manifest.format == PluginManifestFormat::AgentPlugins);
            command.iter_mut().skip(literal).for_each(|word| *word = expand(word));
        }
        expand_all(&mut server.env);
        let mut env_names = BTreeSet::new();
        if manifest.format == PluginManifestFormat::Claude {
            expand_all(&mut server.headers);
            server.url = server.url.as_deref().map(expand);
            let words = server.command.iter().flatten().chain(&server.url);
            if words.chain(&server.cwd).any(|word| !variable_names(&expand(word)).is_empty()) {
                return Err("it uses environment variables outside `env` and `headers`".into());
            }
            for value in server.env.values().chain(server.headers.values()) {
                env_names.extend(variable_names(value.expose_secret()));
            }
        }
        if server.command.is_some() {
            server.cwd = Some(working_folder(server.cwd.as_deref().map(expand), plugin_dirs)?);
        }
        let access = manifest.access.servers.get(name_in_plugin).cloned().unwrap_or_default();
        if server.command.is_some() {
            let mut network = access.network;
            let program = server.command.iter().flatten().next();
            let program = program.and_then(|program| Path::new(program).file_name());
            let downloads_packages =
                program.is_some_and(|name| PACKAGE_RUNNERS.iter().any(|runner| name == *runner));
            if downloads_packages && !network.iter().any(|host| host == "registries") {
                network.push("registries".to_owned());
            }
            (server.write, server.network) = (Some(access.write), Some(network));
        } else if access.write || !access.network.is_empty() {
            return Err("a server with a URL cannot request write or network access".into());
        }
        server.timeout = access.timeout;
        let name = qualified_name(&manifest.name, name_in_plugin);
        let plugin_server = PluginMcpServer {
            name,
            name_in_plugin: name_in_plugin.to_owned(),
            env_names,
            server,
            plugin_dirs: plugin_dirs.clone(),
        };
        plugin_server.resolve(&AllVariablesSetEnv)?;
        Ok(plugin_server)
    }

    /// Resolves the server config with values of the environment.
    pub(crate) fn resolve(&self, config_env: &dyn ConfigEnv) -> Result<McpServerConfig, String> {
        let mut server = self.server.clone();
        let values = server.env.values_mut().chain(server.headers.values_mut());
        for value in values.filter(|_| !self.env_names.is_empty()) {
            *value = SecretString::from(expand_variables(value.expose_secret(), config_env)?);
        }
        let resolved = resolve_server(ConfigLayer::Plugin, &self.name, server, config_env);
        let mut server = resolved.map_err(|(_, reason)| reason)?;
        server.plugin = Some(self.plugin_dirs.clone());
        Ok(server)
    }
}

/// A `ConfigEnv` in which every variable is set, to validate the other settings.
struct AllVariablesSetEnv;

impl ConfigEnv for AllVariablesSetEnv {
    fn env(&self, _name: &str) -> Option<String> {
        Some("set".to_owned())
    }

    fn canonical_provider(&self, _provider: &str) -> Option<&'static str> {
        None
    }
}

/// Returns `PLUGIN-server` with the characters and the length that server names allow.
fn qualified_name(plugin: &str, server: &str) -> String {
    let to_name_char =
        |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
    let full_name = format!("{plugin}-{server}");
    let name: String = full_name.chars().map(to_name_char).collect();
    if name.len() <= MAX_NAME_BYTES {
        return name;
    }
    let hash: String =
        Sha256::digest(full_name.as_bytes()).iter().take(3).map(|b| format!("{b:02x}")).collect();
    let prefix: String = name.chars().take(MAX_NAME_BYTES - 1 - hash.len()).collect();
    format!("{prefix}-{hash}")
}

/// Returns the working directory, which must be in the plugin's own folders.
fn working_folder(cwd: Option<String>, plugin_dirs: &PluginDirs) -> Result<String, String> {
    let path = plugin_dirs.root.join(cwd.as_deref().unwrap_or_default());
    let is_inside = path.starts_with(&plugin_dirs.root) || path.starts_with(&plugin_dirs.data);
    if !is_inside || path.components().any(|part| part == Component::ParentDir) {
        return Err("its `cwd` is outside the plugin's folder".into());
    }
    Ok(path.components().collect::<std::path::PathBuf>().display().to_string())
}

/// Returns the names in `${NAME}` and `${NAME:-default}`.
fn variable_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let _ = replace_variables(text, &mut |name, _| {
        names.push(name.to_owned());
        Ok(String::new())
    });
    names
}

fn expand_variables(text: &str, config_env: &dyn ConfigEnv) -> Result<String, String> {
    replace_variables(text, &mut |name, default| {
        let value = config_env.env(name).or_else(|| default.map(str::to_owned));
        value.ok_or_else(|| format!("the environment variable {name} is not set"))
    })
}

/// Returns the replacement of a variable, given its name and its default in `${NAME:-default}`.
type VariableResolver<'a> = dyn FnMut(&str, Option<&str>) -> Result<String, String> + 'a;

/// Replaces `${NAME}` variables in one pass: inserted text is not expanded again.
fn replace_variables(text: &str, resolve: &mut VariableResolver<'_>) -> Result<String, String> {
    let (mut expanded, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inner, remaining)) = after.split_once('}') else { break };
        let (name, default) =
            inner.split_once(":-").map_or((inner, None), |(name, default)| (name, Some(default)));
        expanded.push_str(before);
        expanded.push_str(&resolve(name, default)?);
        rest = remaining;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn qualified_server_names_are_valid(plugin in "[a-z0-9.-]{1,64}", server in "\\PC{1,40}") {
            let name = qualified_name(&plugin, &server);
            prop_assert!((1..=32).contains(&name.len()), "{name}");
            prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
            prop_assert_eq!(qualified_name(&plugin, &server), name);
        }

        #[test]
        fn only_shown_variables_are_read(text in "[${}:A-C -]{0,24}") {
            let shown = variable_names(&text);
            let requested_names = std::cell::RefCell::new(Vec::new());
            struct FakeRecordingConfigEnv<'a>(&'a std::cell::RefCell<Vec<String>>);
            impl ConfigEnv for FakeRecordingConfigEnv<'_> {
                fn env(&self, name: &str) -> Option<String> {
                    self.0.borrow_mut().push(name.to_owned());
                    Some("${A}".to_owned())
                }
                fn canonical_provider(&self, _: &str) -> Option<&'static str> {
                    None
                }
            }
            expand_variables(&text, &FakeRecordingConfigEnv(&requested_names)).unwrap();
            for name in requested_names.into_inner() {
                prop_assert!(shown.contains(&name), "{name} is read and not shown: {text}");
            }
        }
    }
}
