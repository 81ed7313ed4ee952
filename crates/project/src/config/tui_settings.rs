//! Settings of the terminal interface (`tui`).

use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Appearance and keys of the terminal interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TuiSettings {
    /// The name of the theme; `/theme` lists them.
    pub theme: Option<String>,
    /// Custom styles for parts of the screen, such as `"accent": "bold #d08770"`.
    #[serde(default)]
    pub colors: BTreeMap<String, String>,
    /// Key bindings of commands, such as `"editor": "ctrl+e"`; several separated by spaces, `""`
    /// for none. `/help` lists the commands.
    #[serde(default)]
    pub keys: BTreeMap<String, String>,
    /// Write everything as plain lines, for a screen reader or a simple terminal.
    pub linear: Option<bool>,
    /// Draw lines and marks in ASCII only.
    pub ascii: Option<bool>,
    /// Models at the top of `/model`, each as `provider/model`.
    #[serde(default)]
    pub favorite_models: Vec<String>,
    /// Use the mouse: the wheel scrolls, a click opens a call. `true` if absent. To select text
    /// with the mouse, hold Shift.
    pub mouse: Option<bool>,
    /// Edit the prompt with the modes and keys of vi.
    pub vim: Option<bool>,
    /// The side panel with the session, the todos and the changed files; `auto` if absent.
    pub side_panel: Option<SidePanelMode>,
    /// The content of the status line.
    pub status_line: Option<StatusLineContent>,
    /// Notifications when a turn ends or a question waits while the terminal is not focused;
    /// `auto` if absent.
    pub notifications: Option<NotificationMode>,
}

/// When the side panel is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SidePanelMode {
    /// On a wide screen.
    Auto,
    /// Whenever it fits.
    On,
    /// Only after `/panel`.
    Off,
}

/// The content of the status line.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum StatusLineContent {
    /// Items, the most important first: `mode`, `model`, `context`, `cost`, `agents`, `jobs`,
    /// `todos`, `agent`, `title`, `branch`, `folder`.
    Items(Vec<String>),
    /// The first line that a command of yours prints.
    Command(StatusLineCommand),
}

/// A command that prints the status line.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatusLineCommand {
    /// The command for the shell. It reads the state of the session as JSON from its standard
    /// input, runs outside the sandbox, and has two seconds.
    pub command: String,
}

/// The kind of notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotificationMode {
    /// A notification of the desktop if the terminal can show one, otherwise the bell.
    Auto,
    /// The terminal bell.
    Bell,
    /// No notifications, no window title and no progress.
    Off,
}
