//! Custom commands: named prompts in Markdown files, with settings in the front matter and a
//! template with placeholders such as `$ARGUMENTS` below.

pub(crate) mod template;

pub use template::{CustomCommand, ExpandedPrompt, TemplateShellCommand};

use crate::config::Config;
use crate::config::file_parser::{self, ConfigDiagnostic, ConfigLayer, ConfigOrigin};
use crate::custom_tools::ScriptConfig;
use crate::{Dirs, ProjectError};
use std::path::Path;
use template::parse_command;

const MAX_COMMANDS_PER_FOLDER: usize = 200;

/// All usable custom commands, and diagnostics about the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CustomCommands {
    /// Sorted by name.
    pub all: Vec<CustomCommand>,
    pub diagnostics: Vec<ConfigDiagnostic>,
}

impl CustomCommands {
    /// Loads the commands of the user and of plugins and, if the folder is trusted, those of the
    /// project.
    pub fn load(dirs: &Dirs, config: &Config) -> Result<CustomCommands, ProjectError> {
        let mut commands = CustomCommands::default();
        for (path, text) in
            file_parser::read_documents(&dirs.config.join("commands"), MAX_COMMANDS_PER_FOLDER)?
        {
            commands.add_file(ConfigLayer::User, &path, &text);
        }
        for plugin in &config.plugins {
            for command in &plugin.components.commands {
                commands.insert(ConfigLayer::Plugin, &plugin.plugin_dirs.root, Ok(command.clone()));
            }
        }
        for (path, text) in config.documents(".windlass/commands/").take(MAX_COMMANDS_PER_FOLDER) {
            commands.add_file(ConfigLayer::Project, &path, &text);
        }
        commands.all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(commands)
    }

    /// Adds the commands of scripts, which never replace another command.
    pub fn add_script_configs(&mut self, configs: &[ScriptConfig]) {
        for config in configs {
            for command in &config.commands {
                self.insert(ConfigLayer::Plugin, &config.source, Ok(command.clone()));
            }
        }
        self.all.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// Returns the command of this name.
    pub fn find(&self, name: &str) -> Option<&CustomCommand> {
        self.all.iter().find(|command| command.name == name)
    }

    fn add_file(&mut self, layer: ConfigLayer, path: &Path, text: &str) {
        self.insert(layer, path, parse_command(path, text));
    }

    fn insert(
        &mut self,
        layer: ConfigLayer,
        path: &Path,
        parsed: Result<CustomCommand, (usize, String)>,
    ) {
        let command = match parsed {
            Ok(command) if self.find(&command.name).is_none() => {
                Ok(CustomCommand { is_own: layer == ConfigLayer::User, ..command })
            }
            Ok(command) => Err((1, format!("a command named `{}` already exists", command.name))),
            Err(error) => Err(error),
        };
        match command {
            Ok(command) => self.all.push(command),
            Err((line, message)) => {
                let origin = ConfigOrigin { layer, file: Some(path.to_owned()), line, column: 1 };
                let message = format!("{message}; the command is skipped");
                self.diagnostics.push(ConfigDiagnostic { origin, message, fatal: false });
            }
        }
    }
}
