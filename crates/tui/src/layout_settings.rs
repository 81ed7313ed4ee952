//! The user's settings for the layout of the screen and the editing mode of the prompt.

/// When the side panel is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SidePanelSetting {
    /// On a wide screen.
    #[default]
    Auto,
    /// Whenever there is room for it and for the transcript.
    On,
    /// Only after the command `panel`.
    Off,
}

/// A part of the status line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusItem {
    Mode,
    Model,
    Context,
    Cost,
    /// The running subagents.
    Agents,
    Jobs,
    Todos,
    /// The agent of the session, unless it is the default one.
    Agent,
    Title,
    Branch,
    Folder,
    /// The clients that watch the session besides this one.
    Clients,
    /// The MCP servers in use.
    McpServers,
    /// The language servers in use.
    LanguageServers,
}

/// All status items with their names in the config file.
pub const STATUS_ITEMS: [(StatusItem, &str); 14] = [
    (StatusItem::Mode, "mode"),
    (StatusItem::Model, "model"),
    (StatusItem::Context, "context"),
    (StatusItem::Cost, "cost"),
    (StatusItem::Agents, "agents"),
    (StatusItem::Jobs, "jobs"),
    (StatusItem::Todos, "todos"),
    (StatusItem::Agent, "agent"),
    (StatusItem::Title, "title"),
    (StatusItem::Branch, "branch"),
    (StatusItem::Folder, "folder"),
    (StatusItem::Clients, "clients"),
    (StatusItem::McpServers, "mcp"),
    (StatusItem::LanguageServers, "lsp"),
];

/// The content of the status line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StatusLineSetting {
    /// The built-in arrangement, with items at the left and at the right.
    #[default]
    Automatic,
    /// These items, the most important first.
    Items(Vec<StatusItem>),
    /// The first line that the user's own command prints; the host runs it.
    Command,
}

impl StatusLineSetting {
    /// Parses the names of items; also returns a message for each unknown name.
    pub fn from_names(names: &[String]) -> (StatusLineSetting, Vec<String>) {
        let (mut items, mut problems) = (Vec::new(), Vec::new());
        for name in names {
            match STATUS_ITEMS.iter().find(|(_, item_name)| item_name == name) {
                Some((item, _)) => items.push(*item),
                None => {
                    let known: Vec<&str> = STATUS_ITEMS.iter().map(|(_, name)| *name).collect();
                    problems.push(format!(
                        "unknown status item {name:?}; available: {}",
                        known.join(", ")
                    ));
                }
            }
        }
        (StatusLineSetting::Items(items), problems)
    }
}

/// The layout of the screen and the editing mode of the prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayoutSettings {
    pub side_panel: SidePanelSetting,
    pub status_line: StatusLineSetting,
    /// True if the prompt has the modes and keys of vi.
    pub vim: bool,
}
