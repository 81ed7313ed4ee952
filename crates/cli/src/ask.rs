//! Questions to the person, one at a time, and the key that stops everything.

use crate::screen;
use std::collections::VecDeque;
use tokio::sync::mpsc;
use windlass_protocol::{Answer, CallId};

/// The questions that wait, and the one that stands on the screen.
#[derive(Default)]
pub(crate) struct Questions {
    waiting: VecDeque<(CallId, String)>,
    open: Option<CallId>,
    lines: Option<mpsc::Receiver<Option<String>>>,
}

impl Questions {
    /// Takes in a question, to be asked when its turn comes.
    pub(crate) fn add(&mut self, call: CallId, question: String) {
        self.waiting.push_back((call, question));
    }

    /// Takes back what no longer needs an answer.
    pub(crate) fn settle(&mut self, call: CallId) {
        self.waiting.retain(|(waiting, _)| *waiting != call);
        self.open.take_if(|open| *open == call);
    }

    /// Takes everything back: the person wants to stop.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.open = None;
    }

    /// True while the person is being asked.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The answer to the question on the screen. Lines that were typed without a question answer
    /// nothing.
    pub(crate) async fn answered(&mut self) -> (CallId, Answer) {
        loop {
            let line = match &mut self.lines {
                Some(lines) => lines.recv().await.flatten(),
                None => std::future::pending().await,
            };
            if let Some(call) = self.open.take() {
                return (call, answer(line));
            }
            if line.is_none() {
                // The end of the input: nothing more will be typed.
                self.lines = None;
            }
        }
    }

    /// Asks the next one, unless one is being asked.
    pub(crate) fn next(&mut self) {
        if self.open.is_none()
            && let Some((call, question)) = self.waiting.pop_front()
        {
            screen::pose(&question);
            self.open = Some(call);
            self.lines.get_or_insert_with(listen);
        }
    }
}

fn answer(line: Option<String>) -> Answer {
    let Some(line) = line else { return Answer::No { reason: None } };
    match line.to_lowercase().as_str() {
        "y" | "yes" => Answer::Once,
        "s" | "session" => Answer::Session,
        "" | "n" | "no" => Answer::No { reason: None },
        _ => Answer::No { reason: Some(line) },
    }
}

/// Reads lines where it holds nobody up: whoever never answers must not keep the process from
/// ending. There is one reader, so that an answer cannot reach another question than the one on
/// the screen.
#[allow(clippy::disallowed_methods, reason = "a thread of its own may be left behind at the end")]
fn listen() -> mpsc::Receiver<Option<String>> {
    let (lines, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        loop {
            let line = screen::read_line();
            let end = line.is_none();
            if lines.blocking_send(line).is_err() || end {
                return;
            }
        }
    });
    receiver
}

/// The person's Ctrl-C, as often as they press it. None is lost while something else is going on.
pub(crate) struct Stops {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
    #[cfg(windows)]
    signal: tokio::signal::windows::CtrlC,
}

impl Stops {
    pub(crate) fn new() -> std::io::Result<Stops> {
        #[cfg(unix)]
        let signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
        #[cfg(windows)]
        let signal = tokio::signal::windows::ctrl_c()?;
        Ok(Stops { signal })
    }

    pub(crate) async fn pressed(&mut self) {
        if self.signal.recv().await.is_none() {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yes_is_a_yes_however_it_is_written_and_all_else_is_a_no() {
        for (line, expected) in [
            ("y", Answer::Once),
            ("Y", Answer::Once),
            ("Yes", Answer::Once),
            ("S", Answer::Session),
            ("", Answer::No { reason: None }),
            ("No", Answer::No { reason: None }),
            ("Use b", Answer::No { reason: Some("Use b".into()) }),
        ] {
            assert_eq!(answer(Some(line.into())), expected, "{line}");
        }
        assert_eq!(answer(None), Answer::No { reason: None });
    }
}
