//! Arguments of the terminal UI and of `windlass init`.

use super::PermissionModeArgs;

/// Start options of the interactive terminal UI.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Interactive options")]
pub(crate) struct TuiArgs {
    /// A prompt to send on start, or a folder to work in
    #[arg(value_name = "PROMPT|DIR")]
    pub(crate) target: Option<String>,
    /// Print the answer and exit, like `windlass run`; the options of `run` apply
    #[arg(long, short)]
    pub(crate) print: bool,
    /// Resume the last session of this folder
    #[arg(long, short)]
    pub(crate) r#continue: bool,
    /// Resume a session: its ID, or at least 4 of its first or last characters; the last session of
    /// this folder without one
    #[arg(
        long,
        short,
        visible_alias = "resume",
        value_name = "ID",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with = "continue"
    )]
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
    /// Send this prompt on start, even if it is a single word
    #[arg(long, value_name = "TEXT", conflicts_with = "target")]
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
