//! Reads an image from the clipboard of the terminal: writes and reads what `ClipboardQuery` asks
//! for.
#![allow(clippy::disallowed_methods, reason = "it reads the terminal and the clock")]

use super::clipboard_query::{ClipboardQuery, ClipboardQueryStep, SUPPORT_QUERY};
use super::stdin_state::StdinState;
use crossterm::execute;
use crossterm::style::Print;
use std::io::stdout;
use std::time::{Duration, Instant};

/// The time for the terminal to say whether it knows the protocol. A terminal that answers the
/// question about its attributes, as nearly all do, ends the wait at once.
const SUPPORT_TIMEOUT: Duration = Duration::from_millis(1_500);
/// The time for the next part of an image. The terminal may ask the user first.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit for a whole image.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// The time between two looks at the terminal; other tasks run meanwhile.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// The time after which an `ESC` without more bytes is the key, and after which a reply that is no
/// longer wanted counts as ended.
const QUIET_TIME: Duration = Duration::from_millis(100);

/// The result of reading terminal input.
enum TerminalInput {
    /// Nothing arrived within the time.
    Nothing,
    /// The number of bytes that were read.
    Bytes(usize),
    Closed,
}

/// Returns the image, or the reason there is none; `None` if the terminal does not know the
/// protocol. Esc and Ctrl+C end it; other keys that are pressed meanwhile are dropped.
pub(super) async fn read_image() -> std::io::Result<Option<Result<Vec<u8>, String>>> {
    execute!(stdout(), Print(SUPPORT_QUERY))?;
    let end = Instant::now() + TIME_LIMIT;
    let mut buffer = vec![0; 64 << 10];
    let mut query = ClipboardQuery::default();
    let mut last_input = Instant::now();
    let result = loop {
        let timeout = if query.is_read_requested() { REPLY_TIMEOUT } else { SUPPORT_TIMEOUT };
        let deadline = end.min(last_input + timeout);
        let step = match read_input(&mut buffer, deadline.min(Instant::now() + QUIET_TIME)).await? {
            TerminalInput::Bytes(count) => {
                last_input = Instant::now();
                query.on_bytes(buffer.get(..count).unwrap_or_default())
            }
            TerminalInput::Nothing if Instant::now() < deadline => query.on_quiet(),
            TerminalInput::Nothing | TerminalInput::Closed => break query.timeout_result(),
        };
        match step {
            ClipboardQueryStep::Wait => {}
            ClipboardQueryStep::Write(sequence) => execute!(stdout(), Print(sequence))?,
            ClipboardQueryStep::Unsupported => break None,
            ClipboardQueryStep::Done(result) => break Some(result),
        }
    };
    if matches!(result, Some(Err(_))) {
        // The rest of a reply must not be taken for typed keys.
        let quiet_deadline = || end.min(Instant::now() + QUIET_TIME);
        while let TerminalInput::Bytes(_) = read_input(&mut buffer, quiet_deadline()).await? {}
    }
    Ok(result)
}

/// Reads what the terminal has sent, or sends before the deadline.
async fn read_input(buffer: &mut [u8], deadline: Instant) -> std::io::Result<TerminalInput> {
    loop {
        match StdinState::poll_stdin() {
            StdinState::Readable => match rustix::io::read(std::io::stdin(), &mut *buffer) {
                Ok(0) => return Ok(TerminalInput::Closed),
                Ok(count) => return Ok(TerminalInput::Bytes(count)),
                // A signal, such as the one of a resize.
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            },
            StdinState::Closed => return Ok(TerminalInput::Closed),
            StdinState::Idle => {}
        }
        if Instant::now() >= deadline {
            return Ok(TerminalInput::Nothing);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
