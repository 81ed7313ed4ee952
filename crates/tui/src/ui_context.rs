//! The context passed to each UI component on an event: appearance, session state, clock and
//! outputs (commands, effects, requests).

use crate::keys::{KeyMap, UiCommand};
use crate::layout_settings::LayoutSettings;
use crate::session_state::SessionState;
use crate::theme::{StyleRole, Theme};
use ratatui::style::Style;
use windlass_protocol::frontend_messages::{FrontendRequest, FrontendRequestMessage};
use windlass_protocol::{SessionOp, SessionQuery};

/// Display settings: theme, key map and character set.
#[derive(Clone, Debug, Default)]
pub struct Appearance {
    /// The color `Theme`.
    pub theme: Theme,
    /// The key bindings (`KeyMap`).
    pub key_map: KeyMap,
    /// True if the UI itself draws only ASCII characters.
    pub ascii: bool,
    /// The layout of the screen and the editing mode of the prompt.
    pub layout: LayoutSettings,
}

impl Appearance {
    /// Returns the theme's `Style` for a role.
    pub fn style(&self, role: StyleRole) -> Style {
        self.theme.style(role)
    }
}

/// A side effect that only the terminal event loop around [`App`](crate::App) can perform.
#[derive(Clone, Debug, PartialEq)]
pub enum UiEffect {
    /// Sends a request to the host.
    Send(Box<FrontendRequestMessage>),
    /// Ends the program.
    Quit,
    /// Copies a text to the clipboard, on the user's request.
    CopyToClipboard(String),
    /// Opens a text in the user's editor; the result comes back as `AppEvent::EditorClosed`.
    OpenEditor(String),
    /// Reads an image from the clipboard; the image, or the reason there is none, comes back as
    /// `AppEvent::ClipboardImage`.
    ReadClipboardImage,
    /// Notifies the user, who may be looking at another window.
    Notify(String),
    /// Redraws the whole screen.
    Redraw,
    /// Suspends this process until the shell resumes it (Ctrl-Z).
    Suspend,
}

/// The context that a UI component, such as a `Panel` or the `PromptEditor`, gets when it handles
/// an event.
pub struct UiContext<'a> {
    /// The display settings; mutable, because a panel can preview a theme.
    pub appearance: &'a mut Appearance,
    /// The `SessionState` of the session on the screen.
    pub state: &'a SessionState,
    /// The current time, in milliseconds since 1970.
    pub now: u64,
    /// The commands to run after this event. Keys, `/` commands and panels all go through it.
    pub commands: &'a mut Vec<UiCommand>,
    pub(crate) effects: &'a mut Vec<UiEffect>,
    pub(crate) next_request_id: &'a mut u64,
}

impl UiContext<'_> {
    /// Sends a request and returns the id that its response will carry.
    pub fn send_request(&mut self, request: FrontendRequest) -> u64 {
        *self.next_request_id += 1;
        let id = *self.next_request_id;
        self.effects.push(UiEffect::Send(Box::new(FrontendRequestMessage { id, request })));
        id
    }

    /// Sends a read-only `SessionQuery` and returns its request id.
    pub fn send_query(&mut self, query: SessionQuery) -> u64 {
        self.send_request(FrontendRequest::Query { query })
    }

    /// Sends an `SessionOp` to the session on the screen, if there is one.
    pub fn send_op(&mut self, op: SessionOp) {
        if let Some(session) = self.state.session {
            self.send_request(FrontendRequest::SessionOp { session, id: None, op });
        }
    }

    /// Queues a `UiEffect` for the terminal event loop.
    pub fn push_effect(&mut self, effect: UiEffect) {
        self.effects.push(effect);
    }

    /// Queues a `UiCommand`, as if the user had typed it.
    pub fn push_command(&mut self, command: UiCommand) {
        self.commands.push(command);
    }
}
