//! The UI commands, their key scopes, and the row type of `COMMAND_TABLE`.

/// The part of the UI in which a key binding applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyScope {
    /// Everywhere, unless the focused scope binds the key itself.
    Global,
    /// In the prompt.
    Prompt,
    /// In a permission request or a user question.
    Question,
    /// In a list or another panel.
    Panel,
}

/// A command that the user can run by key, after `/` or from a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "`COMMAND_TABLE` describes each command")]
pub enum UiCommand {
    Quit,
    Interrupt,
    Escape,
    Suspend,
    Redraw,
    Help,
    Mode,
    FocusQuestion,
    Sessions,
    NewSession,
    Fork,
    Rewind,
    Rename,
    Detach,
    Retry,
    Compact,
    Undo,
    Redo,
    Diff,
    Model,
    Agent,
    Todos,
    Jobs,
    Subagents,
    Cost,
    Context,
    Doctor,
    McpServers,
    Permissions,
    LanguageServers,
    Plugins,
    Stats,
    Export,
    Theme,
    Trust,
    Login,
    Init,
    Goal,
    CopyAnswer,
    ToggleDetails,
    ToggleAllDetails,
    SelectUp,
    SelectDown,
    SidePanel,
    PageUp,
    PageDown,
    LineUp,
    LineDown,
    ScrollToTop,
    ScrollToEnd,
    PreviousPrompt,
    NextPrompt,
    FindText,
    CommandPalette,
    Effort,
    Review,
    Skills,
    Hooks,
    Config,
    SendPrompt,
    QueuePrompt,
    Newline,
    OpenEditor,
    PasteImage,
    AcceptCompletion,
    HistoryUp,
    HistoryDown,
    HistoryFind,
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    DeleteLeft,
    DeleteRight,
    DeleteWordLeft,
    DeleteWordRight,
    DeleteToStart,
    DeleteToEnd,
    Yank,
    UndoEdit,
    AllowOnce,
    AllowForSession,
    AllowForProject,
    AllowKindForSession,
    AllowKindForProject,
    Deny,
    DenyWithReason,
    ShowFullView,
    ChooseRow,
    RowUp,
    RowDown,
    ToggleMark,
    ChooseAndSave,
    ForkRow,
    RenameRow,
    RestartRow,
    ExpandRow,
    CollapseRow,
    DeleteRow,
    ToggleFavorite,
}

/// A row of `COMMAND_TABLE`.
#[derive(Clone, Copy, Debug)]
pub struct CommandEntry {
    /// The `UiCommand` of this row.
    pub command: UiCommand,
    /// The name in the config and after `/`.
    pub name: &'static str,
    /// Further names after `/`, which users of other programs type; see `with_aliases`.
    pub aliases: &'static [&'static str],
    /// The `KeyScope` in which its keys apply.
    pub scope: KeyScope,
    /// True if the user can type it after `/`.
    pub is_slash_command: bool,
    /// The default keys, separated by spaces; the user's config can override them.
    pub default_keys: &'static str,
    /// A one-sentence description, shown in the help.
    pub description: &'static str,
}

pub(super) const fn command_entry(
    command: UiCommand,
    (name, scope, is_slash_command): (&'static str, KeyScope, bool),
    default_keys: &'static str,
    description: &'static str,
) -> CommandEntry {
    CommandEntry { command, name, aliases: &[], scope, is_slash_command, default_keys, description }
}

impl CommandEntry {
    /// Returns the row with further names after `/`.
    pub(super) const fn with_aliases(self, aliases: &'static [&'static str]) -> CommandEntry {
        CommandEntry { aliases, ..self }
    }

    /// Returns true if `/NAME` runs this command.
    pub fn is_called(&self, name: &str) -> bool {
        self.is_slash_command && (self.name == name || self.aliases.contains(&name))
    }
}
