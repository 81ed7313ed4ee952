//! The commands that apply everywhere, with their default keys.
//!
//! Some terminals reserve Alt keys, so each command with an Alt key is also a `/` command.

use super::command::{CommandEntry, KeyScope, UiCommand, command_entry};

/// The commands of `KeyScope::Global`, in the order of the help.
pub(super) const GLOBAL_COMMANDS: &[CommandEntry] = &[
    command_entry(
        UiCommand::Interrupt,
        ("interrupt", KeyScope::Global, false),
        "ctrl+c",
        "Stop the model or clear the prompt; twice to quit",
    ),
    command_entry(
        UiCommand::Escape,
        ("escape", KeyScope::Global, false),
        "esc",
        "Close a panel or stop the model; twice to rewind",
    ),
    command_entry(
        UiCommand::Suspend,
        ("suspend", KeyScope::Global, false),
        "ctrl+z",
        "Suspend to the shell; resume with `fg`",
    ),
    command_entry(
        UiCommand::Redraw,
        ("redraw", KeyScope::Global, false),
        "ctrl+l",
        "Redraw the screen",
    ),
    command_entry(
        UiCommand::Help,
        ("help", KeyScope::Global, true),
        "f1",
        "List commands and keys (? on an empty prompt)",
    )
    .with_aliases(&["keys", "shortcuts", "keymap"]),
    command_entry(
        UiCommand::CommandPalette,
        ("commands", KeyScope::Global, true),
        "ctrl+p",
        "Search all commands",
    )
    .with_aliases(&["palette"]),
    command_entry(
        UiCommand::Mode,
        ("mode", KeyScope::Global, true),
        "shift+tab",
        "Switch to the next mode: plan, ask, auto",
    ),
    command_entry(
        UiCommand::FocusQuestion,
        ("answer", KeyScope::Global, false),
        "tab",
        "Answer the question, or switch the agent if none waits",
    ),
    command_entry(
        UiCommand::Sessions,
        ("sessions", KeyScope::Global, true),
        "ctrl+s",
        "List, search, open, fork, rename and delete sessions",
    )
    .with_aliases(&["resume", "continue"]),
    command_entry(
        UiCommand::NewSession,
        ("new", KeyScope::Global, true),
        "",
        "Start a new session",
    )
    .with_aliases(&["clear", "reset"]),
    command_entry(
        UiCommand::Fork,
        ("fork", KeyScope::Global, true),
        "",
        "Continue in a copy of this session",
    ),
    command_entry(
        UiCommand::Rewind,
        ("rewind", KeyScope::Global, true),
        "",
        "Rewind to an earlier prompt",
    )
    .with_aliases(&["back", "checkpoint"]),
    command_entry(
        UiCommand::Rename,
        ("rename", KeyScope::Global, true),
        "",
        "Rename this session: /rename TITLE",
    ),
    command_entry(
        UiCommand::Detach,
        ("detach", KeyScope::Global, true),
        "",
        "Hand this session over to the server and quit",
    ),
    command_entry(
        UiCommand::Retry,
        ("retry", KeyScope::Global, true),
        "",
        "Try again after a failed turn",
    ),
    command_entry(
        UiCommand::Compact,
        ("compact", KeyScope::Global, true),
        "",
        "Summarize the conversation to free context",
    ),
    command_entry(
        UiCommand::Undo,
        ("undo", KeyScope::Global, true),
        "",
        "Preview and undo the last turn's file changes",
    ),
    command_entry(UiCommand::Redo, ("redo", KeyScope::Global, true), "", "Redo the last undo"),
    command_entry(
        UiCommand::Diff,
        ("diff", KeyScope::Global, true),
        "",
        "Show all file changes of this session",
    ),
    command_entry(UiCommand::Model, ("model", KeyScope::Global, true), "alt+m", "Choose the model")
        .with_aliases(&["models"]),
    command_entry(
        UiCommand::Effort,
        ("effort", KeyScope::Global, true),
        "alt+e",
        "Choose the reasoning effort or variant of the model",
    )
    .with_aliases(&["variant", "thinking", "reasoning"]),
    command_entry(
        UiCommand::Agent,
        ("agent", KeyScope::Global, true),
        "",
        "Choose the agent of this session (Tab: the next one)",
    )
    .with_aliases(&["agents"]),
    command_entry(
        UiCommand::Todos,
        ("todos", KeyScope::Global, true),
        "ctrl+t",
        "Show the todo list",
    ),
    command_entry(
        UiCommand::Jobs,
        ("jobs", KeyScope::Global, true),
        "alt+j",
        "Show background commands",
    ),
    command_entry(
        UiCommand::Subagents,
        ("tasks", KeyScope::Global, true),
        "ctrl+g",
        "Show the subagents and what they do",
    )
    .with_aliases(&["subagents"]),
    command_entry(
        UiCommand::Cost,
        ("cost", KeyScope::Global, true),
        "",
        "Show token usage and cost of this session",
    )
    .with_aliases(&["usage"]),
    command_entry(
        UiCommand::Context,
        ("context", KeyScope::Global, true),
        "",
        "Show what fills the context window",
    ),
    command_entry(
        UiCommand::Doctor,
        ("doctor", KeyScope::Global, true),
        "",
        "Check the installation",
    )
    .with_aliases(&["status"]),
    command_entry(
        UiCommand::McpServers,
        ("mcp", KeyScope::Global, true),
        "",
        "Show MCP servers: state, tools, log; restart one",
    ),
    command_entry(
        UiCommand::Permissions,
        ("permissions", KeyScope::Global, true),
        "",
        "Show rules and approvals; revoke an approval",
    ),
    command_entry(
        UiCommand::LanguageServers,
        ("lsp", KeyScope::Global, true),
        "",
        "Show language servers: state, log; restart one",
    ),
    command_entry(UiCommand::Plugins, ("plugins", KeyScope::Global, true), "", "Show plugins"),
    command_entry(
        UiCommand::Stats,
        ("stats", KeyScope::Global, true),
        "",
        "Show usage by day, model and tool: /stats DAYS",
    ),
    command_entry(
        UiCommand::Export,
        ("export", KeyScope::Global, true),
        "",
        "Export this session: /export NAME.html, .md or .jsonl",
    )
    .with_aliases(&["share"]),
    command_entry(UiCommand::Theme, ("theme", KeyScope::Global, true), "", "Choose the colors")
        .with_aliases(&["themes"]),
    command_entry(
        UiCommand::Skills,
        ("skills", KeyScope::Global, true),
        "",
        "List the skills that the model can load",
    ),
    command_entry(
        UiCommand::Hooks,
        ("hooks", KeyScope::Global, true),
        "",
        "List the hooks in effect",
    ),
    command_entry(
        UiCommand::Config,
        ("config", KeyScope::Global, true),
        "",
        "Show the settings in effect and their origin",
    )
    .with_aliases(&["settings"]),
    command_entry(
        UiCommand::Trust,
        ("trust", KeyScope::Global, true),
        "",
        "Review and trust this folder, or revoke trust",
    ),
    command_entry(
        UiCommand::Login,
        ("login", KeyScope::Global, true),
        "",
        "Save a provider's API key",
    ),
    command_entry(
        UiCommand::Goal,
        ("goal", KeyScope::Global, true),
        "",
        "Work until it is true: /goal CONDITION or /goal !COMMAND",
    ),
    command_entry(
        UiCommand::Init,
        ("init", KeyScope::Global, true),
        "",
        "Let the model write this project's AGENTS.md",
    ),
    command_entry(
        UiCommand::Review,
        ("review", KeyScope::Global, true),
        "",
        "Review uncommitted changes, or a branch: /review BRANCH",
    ),
    command_entry(
        UiCommand::CopyAnswer,
        ("copy", KeyScope::Global, true),
        "",
        "Copy an answer, a prompt or a code block",
    ),
    command_entry(
        UiCommand::Quit,
        ("quit", KeyScope::Global, true),
        "ctrl+d",
        "Quit (the session can be resumed)",
    )
    .with_aliases(&["exit", "q"]),
    command_entry(
        UiCommand::ToggleDetails,
        ("details", KeyScope::Global, true),
        "ctrl+o",
        "Expand or collapse the block in the middle of the screen",
    ),
    command_entry(
        UiCommand::ToggleAllDetails,
        ("details-all", KeyScope::Global, false),
        "alt+o",
        "Expand or collapse all blocks",
    ),
    command_entry(
        UiCommand::SelectUp,
        ("select-up", KeyScope::Global, false),
        "shift+up",
        "Select the previous block; Enter expands or collapses it",
    ),
    command_entry(
        UiCommand::SelectDown,
        ("select-down", KeyScope::Global, false),
        "shift+down",
        "Select the next block",
    ),
    command_entry(
        UiCommand::SidePanel,
        ("panel", KeyScope::Global, true),
        "alt+p",
        "Show or hide the side panel",
    ),
    command_entry(
        UiCommand::PageUp,
        ("page-up", KeyScope::Global, false),
        "pageup",
        "Scroll up a page",
    ),
    command_entry(
        UiCommand::PageDown,
        ("page-down", KeyScope::Global, false),
        "pagedown",
        "Scroll down a page",
    ),
    command_entry(
        UiCommand::LineUp,
        ("line-up", KeyScope::Global, false),
        "ctrl+up",
        "Scroll up a line",
    ),
    command_entry(
        UiCommand::LineDown,
        ("line-down", KeyScope::Global, false),
        "ctrl+down",
        "Scroll down a line",
    ),
    command_entry(
        UiCommand::ScrollToTop,
        ("top", KeyScope::Global, false),
        "ctrl+home",
        "Scroll to the beginning",
    ),
    command_entry(
        UiCommand::ScrollToEnd,
        ("end", KeyScope::Global, false),
        "ctrl+end",
        "Scroll to the end",
    ),
    command_entry(
        UiCommand::PreviousPrompt,
        ("previous-prompt", KeyScope::Global, false),
        "alt+up",
        "Scroll up to the previous prompt",
    ),
    command_entry(
        UiCommand::NextPrompt,
        ("next-prompt", KeyScope::Global, false),
        "alt+down",
        "Scroll down to the next prompt",
    ),
    command_entry(
        UiCommand::FindText,
        ("find", KeyScope::Global, true),
        "ctrl+f",
        "Find text in this session: /find TEXT",
    ),
];
