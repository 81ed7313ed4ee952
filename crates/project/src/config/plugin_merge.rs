//! Merges plugins into the config: weaker than the user's settings, stronger than a project's.

use super::{Config, ConfigEnv};
use crate::config::file_parser::{ConfigDiagnostic, ConfigLayer, ConfigOrigin};
use crate::plugins::LoadedPlugin;

impl Config {
    /// Adds the servers and hooks of each `LoadedPlugin`. A plugin replaces nothing of the user's,
    /// and a project replaces nothing of a plugin's.
    pub(super) fn apply_plugins(&mut self, plugins: Vec<LoadedPlugin>, config_env: &dyn ConfigEnv) {
        for plugin in &plugins {
            let file = Some(plugin.plugin_dirs.root.clone());
            let origin = ConfigOrigin { layer: ConfigLayer::Plugin, file, line: 1, column: 1 };
            for plugin_server in &plugin.components.servers {
                let name = &plugin_server.name;
                let existing = self.servers.get(name).map(|(_, origin)| origin.clone());
                let server = match &existing {
                    Some(other) if other.layer != ConfigLayer::Project => {
                        Err(format!("{other} already has a server `{name}`"))
                    }
                    Some(_) | None => plugin_server.resolve(config_env),
                };
                let server = match server {
                    Ok(server) => server,
                    Err(reason) => {
                        let message = format!("{reason}; the server `{name}` is skipped");
                        self.add_diagnostic(origin.clone(), message);
                        continue;
                    }
                };
                if let Some(other) = existing {
                    let message = format!("a plugin has a server `{name}`; this one is skipped");
                    let prefix = format!("mcp.{name}.");
                    self.effective_values
                        .retain(|(value_name, ..)| !value_name.starts_with(&prefix));
                    self.add_diagnostic(other, message);
                }
                self.record_value(&format!("mcp.{name}"), "from a plugin", &origin);
                self.servers.insert(name.clone(), (server, origin.clone()));
            }
            for hook in &plugin.components.hooks {
                let command_text = hook.command.display_text();
                self.record_value(
                    &format!("hooks.{}.{}", hook.point, hook.name),
                    &command_text,
                    &origin,
                );
                self.hooks.push(hook.clone());
            }
        }
        self.plugins = plugins;
    }

    fn add_diagnostic(&mut self, origin: ConfigOrigin, message: String) {
        self.diagnostics.push(ConfigDiagnostic { origin, message, fatal: false });
    }
}
