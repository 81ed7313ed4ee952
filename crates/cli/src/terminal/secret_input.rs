//! Reads a secret: typed at a terminal without echo, or a line of standard input. The terminal mode
//! is restored afterwards, even after Ctrl-C.

use crate::terminal::output;
use secrecy::SecretString;
use secrecy::zeroize::Zeroizing;
use std::io::{BufRead, IsTerminal, Read};

/// Bounds an input line; real secrets are far shorter.
const MAX_LINE_BYTES: u64 = 1 << 16;

/// Reads a line and trims it; `None` if the user pressed Ctrl-C. At a terminal it prints the
/// question first.
pub(crate) fn read_secret(question: &str) -> anyhow::Result<Option<SecretString>> {
    let input = std::io::stdin();
    let mut text = Zeroizing::new(Vec::new());
    if input.is_terminal() {
        output::print_question(question);
        let end = read_typed(&mut text);
        output::print_note("");
        if end? == SecretInputEnd::Interrupted {
            return Ok(None);
        }
    } else {
        input.lock().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut text)?;
    }
    if text.len() as u64 > MAX_LINE_BYTES {
        anyhow::bail!("the line is too long");
    }
    match std::str::from_utf8(&text) {
        Ok(text) => Ok(Some(SecretString::from(text.trim()))),
        Err(_) => anyhow::bail!("the input is not UTF-8 text"),
    }
}

#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(not(unix), allow(dead_code, reason = "secrets are only typed on Unix"))]
enum SecretInputEnd {
    Entered,
    Interrupted,
}

#[cfg(unix)]
fn read_typed(text: &mut Vec<u8>) -> anyhow::Result<SecretInputEnd> {
    let input = std::io::stdin();
    let echo_off = EchoOff::new(&input)?;
    let end = read_line(input.lock().bytes(), text);
    drop(echo_off);
    Ok(end?)
}

#[cfg(not(unix))]
fn read_typed(_: &mut Vec<u8>) -> anyhow::Result<SecretInputEnd> {
    anyhow::bail!("cannot hide typed input on this system; pipe the key in")
}

/// Reads typed bytes until Enter. The terminal is in raw mode, so the editing keys are handled
/// here.
#[cfg(unix)]
fn read_line(
    bytes: impl Iterator<Item = std::io::Result<u8>>,
    text: &mut Vec<u8>,
) -> std::io::Result<SecretInputEnd> {
    const CTRL_C: u8 = 3;
    const CTRL_D: u8 = 4;
    const BACKSPACE: u8 = 8;
    const CTRL_U: u8 = 21;
    const DELETE: u8 = 127;
    for byte in bytes.take(MAX_LINE_BYTES as usize + 1) {
        match byte? {
            b'\r' | b'\n' | CTRL_D => return Ok(SecretInputEnd::Entered),
            CTRL_C => return Ok(SecretInputEnd::Interrupted),
            CTRL_U => text.clear(),
            // Removes all bytes of a multi-byte character.
            BACKSPACE | DELETE => while text.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            byte => text.push(byte),
        }
    }
    Ok(SecretInputEnd::Entered)
}

/// Turns off echo and line editing of the terminal until it is dropped.
#[cfg(unix)]
struct EchoOff<'a> {
    terminal: &'a std::io::Stdin,
    saved_mode: rustix::termios::Termios,
}

#[cfg(unix)]
impl EchoOff<'_> {
    fn new(terminal: &std::io::Stdin) -> std::io::Result<EchoOff<'_>> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let saved_mode = tcgetattr(terminal)?;
        let mut mode = saved_mode.clone();
        // With `ISIG`, Ctrl-C would end the process before the terminal mode is restored.
        let off = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG | LocalModes::IEXTEN;
        mode.local_modes.remove(off);
        tcsetattr(terminal, OptionalActions::Flush, &mode)?;
        Ok(EchoOff { terminal, saved_mode })
    }
}

#[cfg(unix)]
impl Drop for EchoOff<'_> {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.saved_mode);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn hidden_input_can_be_edited() {
        for (keys, expected, end) in [
            ("sk-1\r", "sk-1", SecretInputEnd::Entered),
            ("sk-1\nmore", "sk-1", SecretInputEnd::Entered),
            ("sk-2\u{7f}3\u{8}4\r", "sk-4", SecretInputEnd::Entered),
            ("\u{7f}ö\u{7f}a\r", "a", SecretInputEnd::Entered),
            ("wrong\u{15}right\r", "right", SecretInputEnd::Entered),
            ("sk-5\u{4}", "sk-5", SecretInputEnd::Entered),
            ("sk-6", "sk-6", SecretInputEnd::Entered),
            ("sk-7\u{3}\r", "sk-7", SecretInputEnd::Interrupted),
        ] {
            let mut text = Vec::new();
            assert_eq!(read_line(keys.bytes().map(Ok), &mut text).unwrap(), end, "{keys:?}");
            assert_eq!(String::from_utf8(text).unwrap(), expected, "{keys:?}");
        }
    }
}
