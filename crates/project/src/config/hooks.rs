//! The `hooks` of a config.

use super::hook_config::{parse_hook_entry, parse_hook_point};
use super::{Config, ConfigEnv};
use crate::config::file_parser::{ConfigLayer, ParsedConfig};
use crate::config::json_pointer;
use serde_json::Value;
use std::collections::BTreeMap;

impl Config {
    /// Applies the `hooks` of a file. A hook that cannot be parsed may exist to deny calls, so in
    /// the user's own config it prevents the start.
    pub(super) fn apply_hooks(
        &mut self,
        layer: ConfigLayer,
        hooks: BTreeMap<String, Vec<Value>>,
        file: &mut ParsedConfig,
        config_env: &dyn ConfigEnv,
    ) {
        for (name, entries) in hooks {
            let pointer = json_pointer::join("/hooks", &name);
            let point = match parse_hook_point(&name) {
                Ok(point) => point,
                Err(reason) => {
                    file.add_fault(&pointer, &reason);
                    continue;
                }
            };
            for (index, entry) in entries.into_iter().enumerate() {
                let pointer = format!("{pointer}/{index}");
                match parse_hook_entry(entry, point, layer) {
                    Err(reason) => file.add_fault(&pointer, &reason),
                    Ok(parsed_hooks) => {
                        for mut hook in parsed_hooks {
                            if let Err(reason) = hook.expand_headers(config_env) {
                                file.add_fault(&pointer, &reason);
                                continue;
                            }
                            if hook.name.is_empty() {
                                hook.name = format!("{point}-{}", self.hooks.len() + 1);
                            }
                            let origin = file.origin_of(&pointer).clone();
                            self.record_value(
                                &format!("hooks.{point}.{}", hook.name),
                                &hook.command.display_text(),
                                &origin,
                            );
                            self.hooks.push(hook);
                        }
                    }
                }
            }
        }
    }
}
