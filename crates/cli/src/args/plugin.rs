//! Arguments of `windlass plugin`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Add a plugin, after showing everything it may access; replaces a plugin of the same name,
    /// after showing the differences
    Add {
        /// A folder, an npm-style archive (.tgz), `NAME@MARKETPLACE`, `npm:NAME` for an npm package
        /// in the form of OpenCode plugins, `owner/repo` on GitHub or the https URL of a git
        /// repository, with `#NAME` for a branch or tag. Without it, adds the packages that your
        /// config lists under `plugin`
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
    /// Manage marketplaces: lists of plugins in Claude's form
    #[command(subcommand)]
    Marketplace(MarketplaceCommand),
}

/// Subcommands of `windlass plugin marketplace`.
#[derive(Debug, Subcommand)]
pub(crate) enum MarketplaceCommand {
    /// Add a marketplace; nothing of it is used until you add a plugin
    Add {
        /// A folder, `owner/repo` on GitHub or the https URL of a git repository, with `#NAME` for
        /// a branch or tag
        source: String,
    },
    /// List marketplaces, or the plugins of one
    List {
        /// Name of a marketplace
        name: Option<String>,
    },
    /// Remove a marketplace; plugins that you added from it stay
    Remove {
        /// Name of the marketplace
        name: String,
    },
    /// Fetch the list of a marketplace again, or of all
    Update {
        /// Name of a marketplace
        name: Option<String>,
    },
}
