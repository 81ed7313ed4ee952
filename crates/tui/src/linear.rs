//! The linear mode: everything as lines, one after the other, for a screen reader, a dumb terminal or
//! whoever prefers it. No cursor is moved, nothing is drawn over and nothing has a colour.
//!
//! [`Linear`] is pure, as [`App`](crate::App) is; this file alone reads lines and prints them. Lines
//! of ours begin at the left; what a model, a tool or a file says stands two columns to the right, so
//! that no text of theirs can pass for a question of ours.
#![allow(clippy::disallowed_methods, reason = "this is the door to a terminal without a screen")]

mod asked;
mod commands;
mod lately;
mod talk;
#[cfg(test)]
mod tests;

pub use talk::{Linear, Said};

use crate::app::Options;
use crate::cx::Act;
use std::io::{BufRead as _, Write as _};
use tokio::sync::mpsc;
use windlass_protocol::wire::{Down, Up};

/// Runs until the person leaves. `pressed` waits for the next Ctrl-C, also for one that came before.
pub async fn run(
    options: Options,
    up: mpsc::Sender<Up>,
    mut down: mpsc::Receiver<Down>,
    mut pressed: impl AsyncFnMut(),
) -> std::io::Result<()> {
    let mut lines = typed();
    let (mut linear, mut told) = Linear::new(options);
    loop {
        if !carry_out(told, &up).await? {
            return Ok(());
        }
        let said = tokio::select! {
            line = lines.recv() => line.map_or(Said::End, Said::Line),
            message = down.recv() => match message {
                Some(message) => Said::Down(Box::new(message)),
                None => return Ok(()),
            },
            () = pressed() => Said::Interrupt,
        };
        told = linear.update(said);
    }
}

/// Prints what is to be read and sends what is to be sent; false when it is over.
async fn carry_out(
    (lines, acts): (Vec<String>, Vec<Act>),
    up: &mpsc::Sender<Up>,
) -> std::io::Result<bool> {
    if !lines.is_empty() {
        let mut out = std::io::stdout().lock();
        for line in lines {
            writeln!(out, "{line}")?;
        }
        out.flush()?;
    }
    for act in acts {
        match act {
            Act::Send(message) => {
                if up.send(*message).await.is_err() {
                    return Ok(false);
                }
            }
            Act::Quit => return Ok(false),
            // There is no screen to do these on.
            Act::Copy(_) | Act::Edit(_) | Act::Picture | Act::Bell | Act::Redraw | Act::Suspend => {
            }
        }
    }
    Ok(true)
}

/// The lines that are typed. They are read on a thread of their own: reading cannot be stopped, and
/// the thread ends with the process.
fn typed() -> mpsc::Receiver<String> {
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
