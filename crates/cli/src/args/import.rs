//! Arguments of `windlass import`.

use clap::ValueEnum;

#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// Program to import from
    pub(crate) program: ImportProgramArg,
    /// Import the settings in this folder into the project's `windlass.jsonc` and `.windlass`; they
    /// take effect once the folder is trusted
    #[arg(long)]
    pub(crate) project: bool,
    /// Only show what would be imported
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportProgramArg {
    /// OpenCode: `opencode.json`, `.opencode`
    #[value(name = "opencode")]
    OpenCode,
    /// Claude Code: `.claude.json`, `.claude`
    Claude,
}
