//! What plugins bring joins the config: behind what the person says, before what a project does.

use super::{Config, HookCommand, Outside};
use crate::file::{Diagnostic, Layer, Origin};
use crate::plugins::Loaded;

impl Config {
    /// Takes over servers and hooks. A plugin takes nothing that is the person's, and a project
    /// nothing that is a plugin's.
    pub(super) fn take_plugins(&mut self, plugins: Vec<Loaded>, outside: &dyn Outside) {
        for plugin in &plugins {
            let file = Some(plugin.lodging.root.clone());
            let origin = Origin { layer: Layer::Plugin, file, line: 1, column: 1 };
            for wired in &plugin.parts.servers {
                let name = &wired.name;
                let taken = self.servers.get(name).map(|(_, origin)| origin.clone());
                let server = match &taken {
                    Some(other) if other.layer != Layer::Project => {
                        Err(format!("{other} already has a server `{name}`"))
                    }
                    Some(_) | None => wired.settle(outside),
                };
                let server = match server {
                    Ok(server) => server,
                    Err(why) => {
                        let message = format!("{why}; the server `{name}` is left out");
                        self.complain(origin.clone(), message);
                        continue;
                    }
                };
                if let Some(other) = taken {
                    let message = format!("a plugin has a server `{name}`; this one is left out");
                    let prefix = format!("mcp.{name}.");
                    self.shown.retain(|(shown, ..)| !shown.starts_with(&prefix));
                    self.complain(other, message);
                }
                self.show(&format!("mcp.{name}"), "from a plugin", &origin);
                self.servers.insert(name.clone(), (server, origin.clone()));
            }
            for hook in &plugin.parts.hooks {
                let shown = match &hook.command {
                    HookCommand::Argv(words) => words.join(" "),
                    HookCommand::Shell(line) => line.clone(),
                };
                self.show(&format!("hooks.{}.{}", hook.point, hook.name), &shown, &origin);
                self.hooks.push(hook.clone());
            }
        }
        self.plugins = plugins;
    }

    fn complain(&mut self, origin: Origin, message: String) {
        self.diagnostics.push(Diagnostic { origin, message, fatal: false });
    }
}
