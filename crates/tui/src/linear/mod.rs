//! The linear mode: plain lines of output for a screen reader, a dumb terminal, or users who prefer
//! it. It never moves the cursor, overwrites text or uses color.
//!
//! [`LinearUi`] is pure, like [`App`](crate::App); only this file reads and prints lines. Lines of
//! the UI start at the left edge; text from a model, a tool or a file is indented by two columns,
//! so that it cannot pass for a question of the UI.
#![allow(
    clippy::disallowed_methods,
    reason = "the linear mode reads and writes the terminal directly"
)]

mod commands;
mod questions;
mod recap;
mod reports;
mod session_commands;
mod state;
#[cfg(test)]
mod tests;

pub use state::{LinearUi, LinearUiEvent};

use crate::app::TuiOptions;
use crate::ui_context::UiEffect;
use std::io::{BufRead as _, Write as _};
use tokio::sync::mpsc;
use windlass_protocol::frontend_messages::{FrontendRequestMessage, HostMessage};

/// Runs the linear mode until the user quits. `interrupted` resolves on the next Ctrl-C, including
/// one pressed before the call.
pub async fn run(
    options: TuiOptions,
    requests: mpsc::Sender<FrontendRequestMessage>,
    mut messages: mpsc::Receiver<HostMessage>,
    mut interrupted: impl AsyncFnMut(),
) -> std::io::Result<()> {
    let mut lines = spawn_line_reader();
    let (mut linear, mut output) = LinearUi::new(options);
    loop {
        if !perform(output, &requests).await? {
            return Ok(());
        }
        let input = tokio::select! {
            line = lines.recv() => line.map_or(LinearUiEvent::EndOfInput, LinearUiEvent::Line),
            message = messages.recv() => match message {
                Some(message) => LinearUiEvent::HostMessage(Box::new(message)),
                None => return Ok(()),
            },
            () = interrupted() => LinearUiEvent::Interrupt,
        };
        output = linear.update(input);
    }
}

/// Prints the lines and performs the effects; returns false when the program should end.
async fn perform(
    (lines, ui_effects): (Vec<String>, Vec<UiEffect>),
    requests: &mpsc::Sender<FrontendRequestMessage>,
) -> std::io::Result<bool> {
    if !lines.is_empty() {
        let mut stdout = std::io::stdout().lock();
        for line in lines {
            writeln!(stdout, "{line}")?;
        }
        stdout.flush()?;
    }
    for effect in ui_effects {
        match effect {
            UiEffect::Send(message) => {
                if requests.send(*message).await.is_err() {
                    return Ok(false);
                }
            }
            UiEffect::Quit => return Ok(false),
            // These effects need a screen.
            UiEffect::CopyToClipboard(_)
            | UiEffect::OpenEditor(_)
            | UiEffect::ReadClipboardImage
            | UiEffect::Notify(_)
            | UiEffect::Redraw
            | UiEffect::Suspend => {}
        }
    }
    Ok(true)
}

/// Reads stdin lines on a separate thread. A blocking read cannot be canceled; the thread ends with
/// the process.
fn spawn_line_reader() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(16);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}
