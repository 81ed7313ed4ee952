//! The terminal event loop, the only part of the front end that touches the terminal and the clock.
//!
//! It draws only when something changed, at most once per [`MIN_FRAME_INTERVAL`]. It keeps the
//! invariant that the terminal is restored however the program ends, even by a panic.
#![allow(
    clippy::disallowed_methods,
    reason = "this module is the only one that drives the terminal"
)]

mod background_color_query;
#[cfg(unix)]
mod clipboard_query;
#[cfg(unix)]
mod clipboard_reader;
mod features;
mod modes;
mod notification;
mod stdin_state;

pub use features::{NotificationMethod, TerminalFeatures};

use crate::app::{App, AppEvent, TuiOptions};
use crate::theme::ColorDepth;
use crate::ui_context::UiEffect;
use background_color_query::BackgroundColorQuery;
use base64::Engine as _;
use crossterm::event::{
    Event, EventStream, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEventKind,
};
use crossterm::style::Print;
use crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate};
use crossterm::{execute, queue};
use futures_util::StreamExt as _;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Position;
use std::io::{Stdout, Write as _, stdout};
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use stdin_state::StdinState;
use tokio::sync::mpsc;
use windlass_protocol::frontend_messages::{FrontendRequestMessage, HostMessage};

/// The shortest time between two frames.
const MIN_FRAME_INTERVAL: Duration = Duration::from_millis(16);
/// The number of arrow keys in one batch that count as the mouse wheel: no user types that fast.
const MIN_WHEEL_ARROWS: usize = 3;
/// The lines that one step of the mouse wheel scrolls.
const WHEEL_LINES: i32 = 3;
/// The time after startup during which the terminal may still report its background color. On an
/// earlier exit the program waits for the reply; the shell would otherwise take it for typed input.
const BACKGROUND_REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// The reason that the clipboard programs gave no image, and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClipboardImageError {
    /// No program could run; the clipboard of the terminal is read instead.
    NoProgram(String),
    /// A program ran and found no image.
    NoImage(String),
}

/// Actions that need other processes, which this crate does not start; the caller of [`run`]
/// implements them.
pub trait ExternalProcessActions {
    /// Opens a text in the user's editor, which has the terminal meanwhile, and returns the result.
    fn edit_text(&self, text: &str) -> Option<String>;
    /// Returns the image in the clipboard, as the clipboard programs of this machine see it.
    fn clipboard_image(&self) -> Result<Vec<u8>, ClipboardImageError>;
    /// Suspends this process until it gets the signal to continue.
    fn suspend_process(&self);
    /// Starts a process that writes `sequences` to the terminal and sets `line_settings` if this
    /// process is killed. It learns from the lines `on` and `off` in the returned pipe whether
    /// there is something to restore.
    fn watch_terminal(
        &self,
        sequences: &str,
        line_settings: &str,
    ) -> Option<Box<dyn std::io::Write + Send>>;
}

/// Runs the terminal front end until the user quits.
pub async fn run(
    options: TuiOptions,
    requests: mpsc::Sender<FrontendRequestMessage>,
    mut messages: mpsc::Receiver<HostMessage>,
    actions: &dyn ExternalProcessActions,
) -> std::io::Result<()> {
    let started = Instant::now();
    // Counted from 1970, for ages, but monotonic even if the system clock is changed meanwhile.
    let epoch_offset = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = || (epoch_offset + started.elapsed()).as_millis() as u64;
    let line_settings = modes::line_settings();
    let mut screen = TerminalScreen::enter(options.features)?;
    if options.appearance.theme.color_depth > ColorDepth::Monochrome {
        screen.query_background()?;
    }
    let (mut app, ui_effects) = App::new(options, now());
    let mut stdin = Some(EventStream::new());
    let (mut last_drawn, mut needs_draw) = (None, true);
    let mut is_running =
        screen.perform(ui_effects, &requests, actions, &mut app, &mut stdin, &now).await?;
    while is_running {
        if needs_draw && last_drawn.is_none_or(|at: Instant| at.elapsed() >= MIN_FRAME_INTERVAL) {
            let is_first_frame = last_drawn.is_none() && !screen.is_watched;
            screen.draw(&mut app)?;
            if is_first_frame {
                screen.watch(&line_settings, actions);
            }
            (last_drawn, needs_draw) = (Some(Instant::now()), false);
        }
        let next_wakeup =
            [app.next_wakeup(), screen.background_query.next_wakeup()].into_iter().flatten().min();
        let sleep_duration = match (needs_draw, last_drawn, next_wakeup) {
            (true, Some(at), _) => MIN_FRAME_INTERVAL.saturating_sub(at.elapsed()),
            (_, _, Some(next_wakeup)) => Duration::from_millis(next_wakeup.saturating_sub(now())),
            (_, _, None) => Duration::from_secs(3600),
        };
        let stream = stdin.get_or_insert_with(EventStream::new);
        let mut inputs = Vec::new();
        tokio::select! {
            biased;
            event = next_event(stream) => match event {
                Some(Ok(event)) => {
                    let mut events = vec![event];
                    while let Some(Ok(event)) = try_next_event(stream).await {
                        events.push(event);
                    }
                    // A terminal with the same size as before may have been smaller in between.
                    let resized = events.iter().any(|event| matches!(event, Event::Resize(..)));
                    screen.needs_full_redraw |= resized;
                    let (typed, background) = screen.background_query.filter_events(events, now());
                    inputs = to_app_events(typed);
                    inputs.extend(background.map(AppEvent::BackgroundColor));
                    // Draw typed input at once, without waiting for the frame interval.
                    (last_drawn, needs_draw) = (None, needs_draw || screen.needs_full_redraw);
                }
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            },
            message = messages.recv() => match message {
                Some(message) => inputs.push(AppEvent::HostMessage(Box::new(message))),
                None => return Ok(()),
            },
            () = tokio::time::sleep(sleep_duration) => {
                inputs = to_app_events(screen.background_query.release_held_keys(now()));
                if !needs_draw {
                    inputs.push(AppEvent::Tick);
                }
            }
        }
        while inputs.len() < 256
            && let Ok(message) = messages.try_recv()
        {
            inputs.push(AppEvent::HostMessage(Box::new(message)));
        }
        for input in inputs {
            needs_draw = true;
            let ui_effects = app.update(input, now());
            is_running &=
                screen.perform(ui_effects, &requests, actions, &mut app, &mut stdin, &now).await?;
        }
    }
    screen.await_background_reply(&mut stdin).await;
    Ok(())
}

/// Returns the next event, or `None` when the terminal is gone. That is checked before reading: a
/// closed terminal reads as endless end-of-file, and crossterm would loop forever.
///
/// crossterm is notified of input only once, and drops the notification if a resize came with it or
/// if more input arrived than one read takes; the keys would then wait for the next one. So if
/// input is readable and crossterm has no event, it is notified again.
async fn next_event(stream: &mut EventStream) -> Option<std::io::Result<Event>> {
    std::future::poll_fn(|cx| {
        let stdin_state = StdinState::poll_stdin();
        if stdin_state == StdinState::Closed {
            return Poll::Ready(None);
        }
        let event = stream.poll_next_unpin(cx);
        if event.is_pending() && stdin_state == StdinState::Readable {
            wake_event_reader();
        }
        event
    })
    .await
}

/// Wakes the reader that waits for terminal input: Linux does so whenever `tcsetattr` sets the
/// terminal settings, even to the same values.
#[cfg(unix)]
fn wake_event_reader() {
    use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
    let stdin = std::io::stdin();
    // If setting them fails, the next key wakes the reader.
    let _ =
        tcgetattr(&stdin).and_then(|settings| tcsetattr(&stdin, OptionalActions::Now, &settings));
}

#[cfg(not(unix))]
fn wake_event_reader() {}

/// Returns an event that is already available. The stream wakes the task that polled it last, so
/// this polls with our own waker; polling with a no-op waker would leave us asleep at the next key.
async fn try_next_event(stream: &mut EventStream) -> Option<std::io::Result<Event>> {
    std::future::poll_fn(|cx| match stream.poll_next_unpin(cx) {
        Poll::Ready(event) => Poll::Ready(event),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Converts terminal events to `AppEvent`s. A batch of arrow keys counts as the mouse wheel, since
/// some terminals send the wheel as arrows.
fn to_app_events(events: Vec<Event>) -> Vec<AppEvent> {
    let arrow_lines = |event: &Event| match event {
        Event::Key(KeyEvent { code: KeyCode::Up, modifiers: KeyModifiers::NONE, .. }) => Some(-1),
        Event::Key(KeyEvent { code: KeyCode::Down, modifiers: KeyModifiers::NONE, .. }) => Some(1),
        _ => None,
    };
    let wheel_lines: Vec<i32> = events.iter().filter_map(arrow_lines).collect();
    if wheel_lines.len() >= MIN_WHEEL_ARROWS && wheel_lines.len() == events.len() {
        return vec![AppEvent::MouseWheel(wheel_lines.into_iter().sum())];
    }
    let to_app_event = |event| match event {
        Event::Key(key) => Some(AppEvent::Key(key)),
        Event::Paste(text) => Some(AppEvent::Paste(text)),
        Event::FocusGained => Some(AppEvent::Focus(true)),
        Event::FocusLost => Some(AppEvent::Focus(false)),
        Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::ScrollUp => Some(AppEvent::MouseWheel(-WHEEL_LINES)),
            MouseEventKind::ScrollDown => Some(AppEvent::MouseWheel(WHEEL_LINES)),
            MouseEventKind::Down(MouseButton::Left) => {
                Some(AppEvent::Click(Position::new(mouse.column, mouse.row)))
            }
            _ => None,
        },
        Event::Resize(..) => None,
    };
    events.into_iter().filter_map(to_app_event).collect()
}

/// The terminal in raw mode on the alternate screen; `Drop` restores it.
struct TerminalScreen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    background_query: BackgroundColorQuery,
    queried_at: Instant,
    features: TerminalFeatures,
    /// True if a process outside restores the terminal after `SIGKILL`.
    is_watched: bool,
    /// The window title and the progress state that were written last.
    title: String,
    shows_progress: bool,
    /// True if the previous frame cannot be trusted.
    needs_full_redraw: bool,
}

impl TerminalScreen {
    fn enter(features: TerminalFeatures) -> std::io::Result<TerminalScreen> {
        let previous_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            modes::restore();
            previous_hook(panic);
        }));
        modes::set_up(features)?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        Ok(TerminalScreen {
            terminal,
            background_query: BackgroundColorQuery::default(),
            queried_at: Instant::now(),
            features,
            is_watched: false,
            title: String::new(),
            shows_progress: false,
            needs_full_redraw: false,
        })
    }

    /// Starts the process that restores the terminal after `SIGKILL`.
    fn watch(&mut self, line_settings: &str, actions: &dyn ExternalProcessActions) {
        self.is_watched = true;
        let sequences = modes::restore_sequences(&self.features);
        modes::set_watch(actions.watch_terminal(&sequences, line_settings));
    }

    /// Asks the terminal for its background color. The reply, if any, arrives among the keys.
    #[cfg(unix)]
    fn query_background(&mut self) -> std::io::Result<()> {
        self.background_query = BackgroundColorQuery::Waiting;
        execute!(stdout(), Print(background_color_query::BACKGROUND_QUERY))
    }

    /// Does nothing: outside Unix, keys do not arrive as bytes, and replies are untested there.
    #[cfg(not(unix))]
    fn query_background(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    /// Waits for a pending background reply before another program takes the terminal.
    async fn await_background_reply(&mut self, event_stream: &mut Option<EventStream>) {
        let remaining = BACKGROUND_REPLY_TIMEOUT.saturating_sub(self.queried_at.elapsed());
        if remaining.is_zero() {
            return;
        }
        let stream = event_stream.get_or_insert_with(EventStream::new);
        let reply = async {
            while self.background_query.is_active()
                && let Some(Ok(event)) = next_event(stream).await
            {
                self.background_query.filter_events(vec![event], 0);
            }
        };
        // The result of the `timeout` no longer matters.
        let _ = tokio::time::timeout(remaining, reply).await;
    }

    /// Reads an image from the clipboard of the terminal; `None` if it does not know the protocol.
    #[cfg(unix)]
    async fn read_terminal_clipboard(
        &mut self,
        event_stream: &mut Option<EventStream>,
    ) -> std::io::Result<Option<Result<Vec<u8>, String>>> {
        self.await_background_reply(event_stream).await;
        // Otherwise crossterm would take the reply for keys. Its reader ends a moment later.
        *event_stream = None;
        tokio::time::sleep(MIN_FRAME_INTERVAL).await;
        // A late reply is not taken for typed input either.
        self.background_query = BackgroundColorQuery::Waiting;
        let image = clipboard_reader::read_image().await;
        // The terminal may have been resized meanwhile.
        self.needs_full_redraw = true;
        image
    }

    #[cfg(not(unix))]
    async fn read_terminal_clipboard(
        &mut self,
        _: &mut Option<EventStream>,
    ) -> std::io::Result<Option<Result<Vec<u8>, String>>> {
        Ok(None)
    }

    fn draw(&mut self, app: &mut App) -> std::io::Result<()> {
        queue!(stdout(), BeginSynchronizedUpdate)?;
        if std::mem::take(&mut self.needs_full_redraw) {
            // Not `clear`: it asks the terminal for the cursor position and waits for the reply.
            self.terminal.resize(self.terminal.size()?.into())?;
        }
        self.terminal.draw(|frame| {
            if let Some(cursor) = app.draw(frame.buffer_mut()) {
                frame.set_cursor_position(cursor);
            }
        })?;
        execute!(stdout(), EndSynchronizedUpdate)?;
        self.update_title(app)
    }

    /// Writes the window title and the progress state, if they changed.
    fn update_title(&mut self, app: &App) -> std::io::Result<()> {
        let title = app.window_title();
        if self.features.notification != NotificationMethod::Off && title != self.title {
            execute!(stdout(), Print(notification::title_sequence(&title)))?;
            self.title = title;
        }
        let is_busy = app.state().is_busy();
        if self.features.progress && is_busy != self.shows_progress {
            execute!(stdout(), Print(notification::progress_sequence(is_busy)))?;
            self.shows_progress = is_busy;
        }
        Ok(())
    }

    /// Switches the modes on again after another program had the terminal.
    fn resume(&mut self) -> std::io::Result<()> {
        (self.title, self.shows_progress) = (String::new(), false);
        self.needs_full_redraw = true;
        modes::set_up(self.features)
    }

    /// Performs the `UiEffect`s of the app; returns false when the program should end. Some take
    /// long, so `now` is a clock.
    async fn perform(
        &mut self,
        ui_effects: Vec<UiEffect>,
        requests: &mpsc::Sender<FrontendRequestMessage>,
        actions: &dyn ExternalProcessActions,
        app: &mut App,
        event_stream: &mut Option<EventStream>,
        now: &dyn Fn() -> u64,
    ) -> std::io::Result<bool> {
        let mut ui_effects = std::collections::VecDeque::from(ui_effects);
        while let Some(effect) = ui_effects.pop_front() {
            match effect {
                UiEffect::Send(message) => {
                    if requests.send(*message).await.is_err() {
                        return Ok(false);
                    }
                }
                UiEffect::Quit => return Ok(false),
                UiEffect::CopyToClipboard(text) => {
                    let text = base64::engine::general_purpose::STANDARD.encode(text);
                    let mut out = stdout().lock();
                    write!(out, "\x1b]52;c;{text}\x07")?;
                    out.flush()?;
                }
                UiEffect::OpenEditor(text) => {
                    self.await_background_reply(event_stream).await;
                    *event_stream = None;
                    modes::restore();
                    let edited = actions.edit_text(&text);
                    self.resume()?;
                    ui_effects.extend(app.update(AppEvent::EditorClosed(edited), now()));
                }
                UiEffect::ReadClipboardImage => {
                    let image = match actions.clipboard_image() {
                        Ok(image) => Ok(image),
                        Err(ClipboardImageError::NoProgram(reason)) if self.features.reports => {
                            let image = self.read_terminal_clipboard(event_stream).await?;
                            image.unwrap_or(Err(reason))
                        }
                        Err(
                            ClipboardImageError::NoProgram(reason)
                            | ClipboardImageError::NoImage(reason),
                        ) => Err(reason),
                    };
                    ui_effects.extend(app.update(AppEvent::ClipboardImage(image), now()));
                }
                UiEffect::Notify(text) => {
                    let method = self.features.notification;
                    execute!(stdout(), Print(notification::notification_sequence(method, &text)))?;
                }
                UiEffect::Redraw => self.needs_full_redraw = true,
                UiEffect::Suspend => {
                    self.await_background_reply(event_stream).await;
                    *event_stream = None;
                    modes::restore();
                    actions.suspend_process();
                    self.resume()?;
                }
            }
        }
        Ok(true)
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        modes::restore();
    }
}
