//! Arguments of the terminal UI and of `windlass init`.

use super::PermissionModeArgs;

/// Start options of the interactive terminal UI.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Interactive options")]
pub(crate) struct TuiArgs {
    /// Resume the last session of this folder
    #[arg(long, short)]
    pub(crate) r#continue: bool,
    /// Resume a session: its ID, or at least 4 of its first or last characters
    #[arg(long, short, value_name = "ID", conflicts_with = "continue")]
    pub(crate) session: Option<String>,
    /// Use this model; further ones after commas take over if it fails
    #[arg(long, short, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// Use this model for titles and summaries
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) small_model: Option<String>,
    /// Use this agent in new sessions; see `windlass agent list`
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Send this prompt on start
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// Print plain lines one after another, for screen readers and simple terminals
    #[arg(long)]
    pub(crate) linear: bool,
    #[command(flatten)]
    pub(crate) mode_args: PermissionModeArgs,
}

/// Arguments of `windlass init`.
#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    /// Additional instructions for the contents of the file
    pub(crate) instructions: Option<String>,
    /// Use this model
    #[arg(long, short, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
}
