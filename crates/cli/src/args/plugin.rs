//! Arguments of `windlass plugin`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Add a plugin, after showing everything it may access; replaces a plugin of the same name,
    /// after showing the differences
    Add {
        /// A folder, an npm-style archive (.tgz), `npm:NAME` for an npm package in the form of
        /// OpenCode plugins, or the https URL of a git repository, with `#NAME` for a branch or tag.
        /// Without it, adds the packages that your config lists under `plugin`
        source: Option<String>,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// List plugins and their contents
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a plugin
    Remove {
        /// Name of the plugin
        name: String,
    },
}
