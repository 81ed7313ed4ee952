//! What can be said of the screen, and of the first file a model writes.

use super::Bounds;

/// How the screen begins.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of the screen")]
pub(crate) struct Screen {
    /// Goes on with this folder's last session.
    #[arg(long, short)]
    pub(crate) r#continue: bool,
    /// Goes on with a session: its id, or the beginning or end of it.
    #[arg(long, short, value_name = "ID", conflicts_with = "continue")]
    pub(crate) session: Option<String>,
    /// The model, as `provider/model`.
    #[arg(long, short, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// The agent that works in new sessions; `windlass agent list` lists them.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Says this first, in the session that is begun or gone on with.
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// Writes everything as plain lines, one after the other, for a screen reader or a simple
    /// terminal.
    #[arg(long)]
    pub(crate) linear: bool,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
}

/// What AGENTS.md is written with.
#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// What the file should hold besides, in your words.
    pub(crate) more: Option<String>,
    /// The model, as `provider/model`.
    #[arg(long, short, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
}
