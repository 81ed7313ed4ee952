//! The state of the whole screen: `AppEvent`s (keys, host messages, time) go in, requests and
//! `UiEffect`s come out.

mod agent_switch;
mod attention;
mod block_selection;
mod commands;
pub(crate) mod connection;
pub(crate) mod side_panel;
mod startup;
pub(crate) mod status;
mod status_command;
mod update;
mod view;

use crate::keys::UiCommand;
use crate::panel::Panel;
use crate::prompt::{PromptEditor, Submission};
use crate::questions::QuestionPanel;
use crate::session_state::SessionState;
use crate::transcript::TranscriptView;
use crate::ui_context::{Appearance, UiContext, UiEffect};
use crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};
use std::collections::HashMap;
use windlass_protocol::SessionId;
use windlass_protocol::frontend_messages::{HostMessage, StatusLineInput};

/// Start options of the terminal front end, passed to [`App::new`].
#[derive(Clone, Debug, Default)]
pub struct TuiOptions {
    pub appearance: Appearance,
    /// The session to resume.
    pub session: Option<SessionId>,
    /// The first prompt to submit.
    pub prompt: Option<String>,
    /// Messages to show to the user at startup, such as keys that cannot be bound.
    pub notes: Vec<String>,
    /// The features of the terminal that the UI uses.
    pub features: crate::terminal::TerminalFeatures,
}

/// An input of [`App::update`].
#[derive(Clone, Debug, PartialEq)]
pub enum AppEvent {
    Key(KeyEvent),
    Paste(String),
    /// The mouse wheel was turned by this many lines, as in `ScrollTarget::Lines`; positive is
    /// down, negative is up.
    MouseWheel(i32),
    /// The left mouse button was pressed at this cell.
    Click(Position),
    /// The terminal got the keyboard focus, or lost it.
    Focus(bool),
    /// The terminal reported its background color: red, green, blue.
    BackgroundColor((u8, u8, u8)),
    HostMessage(Box<HostMessage>),
    /// Time has passed since the last event.
    Tick,
    /// The user closed the editor; `None` if the editor could not be used.
    EditorClosed(Option<String>),
    /// The image in the clipboard, or the reason there is none: the result of
    /// `UiEffect::ReadClipboardImage`.
    ClipboardImage(Result<Vec<u8>, String>),
}

/// The kind of response that `App` itself waits for, by request id.
#[derive(Clone, Debug, PartialEq)]
enum PendingResponse {
    HostStatus,
    /// The actions that the folder requests, for the `TrustPanel`.
    TrustReview,
    /// A session that was created or opened; the `Submission` is sent to it next.
    SessionOpened(Option<Submission>),
    /// The session that the user named at the start; the prompt is sent to it next.
    InitialSessionOpened(Option<String>),
    /// The prompt text that a `Submission::CustomCommand` expands to.
    ExpandedCommand(Submission),
    /// The answer to a prompt, which is put back into the editor if it was refused.
    PromptSent(Submission),
    /// Success or failure; only a failure is reported to the user.
    FailureOnly,
    /// The output of the user's status line command.
    StatusLine,
    /// The path of a file written by `ExportSession`.
    WrittenPath,
    /// The agents, to switch to the next one.
    NextAgent,
    /// The end of `DetachSession`; the user interface ends then.
    Detached,
}

/// The application state: the parts of the screen, the `SessionState` and the requests under way.
#[derive(Debug, Default)]
pub struct App {
    appearance: Appearance,
    state: SessionState,
    transcript: TranscriptView,
    prompt: PromptEditor,
    questions: QuestionPanel,
    panels: Vec<Box<dyn Panel>>,
    now: u64,
    next_request_id: u64,
    pending_responses: HashMap<u64, PendingResponse>,
    /// The session to open and the prompt to submit as soon as `HostStatus` is known and the trust
    /// question is answered.
    initial_session: Option<SessionId>,
    initial_prompt: Option<String>,
    /// The last press of Ctrl-C or Esc and its time; a second press in a row does more.
    last_press: Option<(UiCommand, u64)>,
    /// A temporary message for the `PromptSeparatorLine`, and the time at which it disappears.
    hint: Option<(String, u64)>,
    /// The time of the last key or paste.
    last_typed_at: Option<u64>,
    /// True if the terminal has the keyboard focus; `None` if it does not report that.
    is_focused: Option<bool>,
    /// The user's choice to show or hide the side panel, in place of its setting.
    side_panel_choice: Option<bool>,
    /// The output of the user's status line command, and the input it ran with last.
    status_text: String,
    status_input: Option<StatusLineInput>,
    /// The areas of the last frame, for clicks.
    transcript_area: Rect,
    prompt_area: Rect,
    screen_columns: u16,
}

impl App {
    /// Creates the `App` and returns its first effects.
    pub fn new(options: TuiOptions, now: u64) -> (App, Vec<UiEffect>) {
        let TuiOptions { appearance, session, prompt, notes, .. } = options;
        let mut app = App {
            appearance,
            initial_session: session,
            initial_prompt: prompt,
            now,
            ..App::default()
        };
        for note in notes {
            app.transcript.add_note(&note);
        }
        let mut ui_effects = Vec::new();
        let id = app.with_parts(&mut ui_effects, |_, cx| {
            cx.send_request(windlass_protocol::frontend_messages::FrontendRequest::status())
        });
        app.pending_responses.insert(id, PendingResponse::HostStatus);
        (app, ui_effects)
    }

    /// Returns the current `Appearance`.
    pub fn appearance(&self) -> &Appearance {
        &self.appearance
    }

    /// Returns the `SessionState` of the session on the screen.
    pub fn state(&self) -> &SessionState {
        &self.state
    }

    /// Returns the time at which the screen changes without an event, if any.
    pub fn next_wakeup(&self) -> Option<u64> {
        const SECOND_MS: u64 = 1000;
        let clock = self.state.turn.map(|(_, since)| {
            let elapsed = self.now.saturating_sub(since);
            since + (elapsed / SECOND_MS + 1) * SECOND_MS
        });
        let hint = self.hint.as_ref().map(|(_, until)| *until);
        let questions = self.questions.next_wakeup(self.now);
        let transcript = self.transcript.next_wakeup(self.now);
        let image = self.transcript.needs_image().then_some(self.now);
        [clock, hint, questions, transcript, image].into_iter().flatten().min()
    }

    /// Returns true if a question receives the keys now.
    fn question_has_focus(&self) -> bool {
        self.questions.has_focus(self.now, self.prompt.is_empty())
    }

    /// Runs `action` with `AppParts` and a `UiContext` that borrow disjoint fields of `App`, then
    /// performs the commands it queued.
    fn with_parts<T>(
        &mut self,
        ui_effects: &mut Vec<UiEffect>,
        action: impl FnOnce(&mut AppParts<'_>, &mut UiContext<'_>) -> T,
    ) -> T {
        let mut commands = Vec::new();
        let mut cx = UiContext {
            appearance: &mut self.appearance,
            state: &self.state,
            now: self.now,
            commands: &mut commands,
            effects: ui_effects,
            next_request_id: &mut self.next_request_id,
        };
        let mut parts = AppParts {
            transcript: &mut self.transcript,
            prompt: &mut self.prompt,
            questions: &mut self.questions,
            panels: &mut self.panels,
        };
        let result = action(&mut parts, &mut cx);
        for command in commands {
            self.perform(command, "", ui_effects);
        }
        result
    }
}

/// The parts of the screen that handle events.
struct AppParts<'a> {
    transcript: &'a mut TranscriptView,
    prompt: &'a mut PromptEditor,
    questions: &'a mut QuestionPanel,
    panels: &'a mut Vec<Box<dyn Panel>>,
}

#[cfg(test)]
mod tests;
