//! Reads what nobody may see: typed at a terminal that does not show it, or a line of standard
//! input. The terminal is as it was afterwards, also after Ctrl-C.

use crate::screen;
use secrecy::SecretString;
use secrecy::zeroize::Zeroizing;
use std::io::{BufRead, IsTerminal, Read};

/// A line has no business being longer.
const LONGEST: u64 = 1 << 16;

/// Reads a line, without the space around it; `None` if the person pressed Ctrl-C. At a terminal
/// the question is asked first.
pub(crate) fn read(question: &str) -> anyhow::Result<Option<SecretString>> {
    let input = std::io::stdin();
    let mut text = Zeroizing::new(Vec::new());
    if input.is_terminal() {
        screen::pose(question);
        let typed = typed(&mut text);
        screen::note("");
        if typed? == End::Interrupted {
            return Ok(None);
        }
    } else {
        input.lock().take(LONGEST + 1).read_until(b'\n', &mut text)?;
    }
    if text.len() as u64 > LONGEST {
        anyhow::bail!("that line is too long");
    }
    match std::str::from_utf8(&text) {
        Ok(text) => Ok(Some(SecretString::from(text.trim()))),
        Err(_) => anyhow::bail!("that is not text"),
    }
}

/// How a line that was typed ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Entered,
    Interrupted,
}

#[cfg(unix)]
fn typed(text: &mut Vec<u8>) -> anyhow::Result<End> {
    let input = std::io::stdin();
    let quiet = Quiet::new(&input)?;
    let end = line(input.lock().bytes(), text);
    drop(quiet);
    Ok(end?)
}

#[cfg(not(unix))]
fn typed(_: &mut Vec<u8>) -> anyhow::Result<End> {
    anyhow::bail!("what is typed cannot be hidden on this system; pipe the key in")
}

/// Takes in what is typed until Enter. The terminal does nothing by itself, so its editing keys
/// are done here.
#[cfg(unix)]
fn line(
    bytes: impl Iterator<Item = std::io::Result<u8>>,
    text: &mut Vec<u8>,
) -> std::io::Result<End> {
    const CTRL_C: u8 = 3;
    const CTRL_D: u8 = 4;
    const BACKSPACE: u8 = 8;
    const CTRL_U: u8 = 21;
    const DELETE: u8 = 127;
    for byte in bytes.take(LONGEST as usize + 1) {
        match byte? {
            b'\r' | b'\n' | CTRL_D => return Ok(End::Entered),
            CTRL_C => return Ok(End::Interrupted),
            CTRL_U => text.clear(),
            // A character of several bytes goes as a whole.
            BACKSPACE | DELETE => while text.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            byte => text.push(byte),
        }
    }
    Ok(End::Entered)
}

/// A terminal that shows nothing and hands on every key, until this goes.
#[cfg(unix)]
struct Quiet<'a> {
    terminal: &'a std::io::Stdin,
    before: rustix::termios::Termios,
}

#[cfg(unix)]
impl Quiet<'_> {
    fn new(terminal: &std::io::Stdin) -> std::io::Result<Quiet<'_>> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(terminal)?;
        let mut quiet = before.clone();
        // Ctrl-C would end us before the terminal is as it was.
        let off = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG | LocalModes::IEXTEN;
        quiet.local_modes.remove(off);
        tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(Quiet { terminal, before })
    }
}

#[cfg(unix)]
impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_can_be_edited_unseen() {
        for (keys, expected, end) in [
            ("sk-1\r", "sk-1", End::Entered),
            ("sk-1\nmore", "sk-1", End::Entered),
            ("sk-2\u{7f}3\u{8}4\r", "sk-4", End::Entered),
            ("\u{7f}ö\u{7f}a\r", "a", End::Entered),
            ("wrong\u{15}right\r", "right", End::Entered),
            ("sk-5\u{4}", "sk-5", End::Entered),
            ("sk-6", "sk-6", End::Entered),
            ("sk-7\u{3}\r", "sk-7", End::Interrupted),
        ] {
            let mut text = Vec::new();
            assert_eq!(line(keys.bytes().map(Ok), &mut text).unwrap(), end, "{keys:?}");
            assert_eq!(String::from_utf8(text).unwrap(), expected, "{keys:?}");
        }
    }
}
