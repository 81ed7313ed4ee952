//! Reads an image from the clipboard of the terminal, with kitty's protocol (OSC 5522). It works
//! over SSH, where no clipboard program reaches the user's machine.
//!
//! The terminal is asked only when the user presses the key for it, and first whether it knows the
//! protocol. Nearly every terminal answers the question about its attributes, which follows, so
//! that a missing answer costs no time. `ClipboardQuery` is pure; `clipboard_reader` reads and
//! writes the terminal.

use base64::Engine as _;

/// Asks whether the terminal knows the protocol, and for its attributes.
pub(super) const SUPPORT_QUERY: &str = "\x1b[?5522$p\x1b[c";
/// Asks for the image; the payload is `image/png` in Base64.
const READ_REQUEST: &str = "\x1b]5522;type=read;aW1hZ2UvcG5n\x1b\\";
/// The byte of Ctrl+C.
const CTRL_C: u8 = 0x03;
/// No provider accepts a larger image.
const MAX_IMAGE_BYTES: usize = 20 << 20;
/// Bounds one sequence; terminals send at most 4 KB of data in each.
const MAX_SEQUENCE_BYTES: usize = 64 << 10;

/// The next step of the caller.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ClipboardQueryStep {
    /// Read more bytes.
    Wait,
    /// Write these bytes to the terminal, then read more.
    Write(&'static str),
    /// The terminal does not know the protocol.
    Unsupported,
    /// The image, or the reason there is none.
    Done(Result<Vec<u8>, String>),
}

/// The state of a query, after `SUPPORT_QUERY` was written.
#[derive(Debug, Default)]
pub(super) struct ClipboardQuery {
    /// The bytes of a sequence that is not complete yet.
    pending: Vec<u8>,
    /// True once the terminal was asked for the image.
    is_read_requested: bool,
    image: Vec<u8>,
}

impl ClipboardQuery {
    /// Returns true once the terminal was asked for the image.
    pub(super) fn is_read_requested(&self) -> bool {
        self.is_read_requested
    }

    /// Returns the result if the terminal has stopped answering.
    pub(super) fn timeout_result(&self) -> Option<Result<Vec<u8>, String>> {
        let reason = "the terminal does not answer; paste the path of the image instead";
        self.is_read_requested.then(|| Err(reason.to_owned()))
    }

    /// Handles that nothing arrived for a moment: a lone `ESC` is then the key.
    pub(super) fn on_quiet(&self) -> ClipboardQueryStep {
        match self.pending.as_slice() {
            b"\x1b" => ClipboardQueryStep::Done(Err(cancelled())),
            _ => ClipboardQueryStep::Wait,
        }
    }

    /// Handles bytes from the terminal. Esc and Ctrl+C end the query; other keys that the user
    /// presses meanwhile are dropped.
    pub(super) fn on_bytes(&mut self, bytes: &[u8]) -> ClipboardQueryStep {
        self.pending.extend_from_slice(bytes);
        loop {
            if self.drop_plain_bytes().contains(&CTRL_C) {
                return ClipboardQueryStep::Done(Err(cancelled()));
            }
            let Some(sequence) = self.take_sequence() else { break };
            match self.on_sequence(&sequence) {
                ClipboardQueryStep::Wait => {}
                step => return step,
            }
        }
        match self.pending.len() > MAX_SEQUENCE_BYTES {
            true => ClipboardQueryStep::Done(Err(invalid_reply())),
            false => ClipboardQueryStep::Wait,
        }
    }

    /// Removes the bytes before the next escape sequence from `pending`: keys.
    fn drop_plain_bytes(&mut self) -> Vec<u8> {
        let start = self.pending.iter().position(|byte| *byte == 0x1b);
        self.pending.drain(..start.unwrap_or(self.pending.len())).collect()
    }

    /// Removes the escape sequence at the start of `pending`, if it is complete.
    fn take_sequence(&mut self) -> Option<Vec<u8>> {
        let end = match self.pending.get(1)? {
            b'[' => {
                let is_final = |byte: &u8| (0x40..=0x7e).contains(byte);
                self.pending.iter().skip(2).position(is_final)? + 3
            }
            b']' => {
                let bell = self.pending.iter().position(|byte| *byte == 0x07).map(|at| at + 1);
                let string_end = self.pending.windows(2).skip(2).position(|it| it == b"\x1b\\");
                let string_end = string_end.map(|at| at + 4);
                bell.into_iter().chain(string_end).min()?
            }
            _ => 2,
        };
        Some(self.pending.drain(..end).collect())
    }

    fn on_sequence(&mut self, sequence: &[u8]) -> ClipboardQueryStep {
        let text = String::from_utf8_lossy(sequence);
        if is_cancel_key(&text) {
            return ClipboardQueryStep::Done(Err(cancelled()));
        }
        if let Some(mode) = text.strip_prefix("\x1b[?5522;") {
            // 0 means unknown, and 4 means that the terminal never permits it.
            let is_supported = mode.starts_with(['1', '2', '3']) && mode.ends_with("$y");
            if is_supported && !self.is_read_requested {
                self.is_read_requested = true;
                return ClipboardQueryStep::Write(READ_REQUEST);
            }
        } else if text.starts_with("\x1b[?") && text.ends_with('c') && !self.is_read_requested {
            return ClipboardQueryStep::Unsupported;
        } else if let Some(reply) = text.strip_prefix("\x1b]5522;")
            && self.is_read_requested
        {
            return self.on_reply(reply.trim_end_matches(['\x07', '\\', '\x1b']));
        }
        ClipboardQueryStep::Wait
    }

    fn on_reply(&mut self, reply: &str) -> ClipboardQueryStep {
        let (metadata, payload) = reply.split_once(';').unwrap_or((reply, ""));
        let status = metadata.split(':').find_map(|pair| pair.strip_prefix("status="));
        match status {
            Some("OK") => ClipboardQueryStep::Wait,
            Some("DATA") => {
                let data = base64::engine::general_purpose::STANDARD.decode(payload);
                let Ok(data) = data else { return ClipboardQueryStep::Done(Err(invalid_reply())) };
                if self.image.len() + data.len() > MAX_IMAGE_BYTES {
                    let reason = "the image in the clipboard is larger than 20 MB".to_owned();
                    return ClipboardQueryStep::Done(Err(reason));
                }
                self.image.extend(data);
                ClipboardQueryStep::Wait
            }
            Some("DONE") if self.image.is_empty() => {
                ClipboardQueryStep::Done(Err("the clipboard contains no image".to_owned()))
            }
            Some("DONE") => ClipboardQueryStep::Done(Ok(std::mem::take(&mut self.image))),
            Some("EPERM") => {
                let reason = "the terminal did not permit reading the clipboard".to_owned();
                ClipboardQueryStep::Done(Err(reason))
            }
            Some(_) | None => ClipboardQueryStep::Done(Err(invalid_reply())),
        }
    }
}

/// Returns true for Esc pressed twice, and for Esc or Ctrl+C in the form of the kitty keyboard
/// protocol. Caps Lock and Num Lock do not matter.
fn is_cancel_key(sequence: &str) -> bool {
    const CTRL: u16 = 4;
    const LOCKS: u16 = 64 | 128;
    if sequence == "\x1b\x1b" {
        return true;
    }
    let key = sequence.strip_prefix("\x1b[").and_then(|key| key.strip_suffix('u'));
    let Some(key) = key else { return false };
    let (code, modifiers) = key.split_once(';').unwrap_or((key, "1"));
    // The protocol adds 1 to the modifiers.
    let modifiers = modifiers.parse::<u16>().ok().and_then(|modifiers| modifiers.checked_sub(1));
    let Some(modifiers) = modifiers.map(|modifiers| modifiers & !LOCKS) else { return false };
    matches!((code, modifiers), ("27", 0) | ("99", CTRL))
}

fn cancelled() -> String {
    "reading the clipboard was cancelled".to_owned()
}

fn invalid_reply() -> String {
    "the terminal did not send an image; paste the path of the image instead".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a query to which the terminal has said that it knows the protocol.
    fn requested() -> ClipboardQuery {
        let mut query = ClipboardQuery::default();
        let step = query.on_bytes(b"x\x1b[?5522;2$y\x1b[?62;4c");
        assert_eq!(step, ClipboardQueryStep::Write(READ_REQUEST));
        query
    }

    #[test]
    fn an_image_arrives_in_pieces() {
        let reply = "\x1b]5522;type=read:status=OK\x1b\\\
                     \x1b]5522;type=read:status=DATA:mime=aW1hZ2UvcG5n;aGVs\x1b\\\
                     \x1b]5522;type=read:status=DATA:mime=aW1hZ2UvcG5n;bG8=\x07\
                     \x1b]5522;type=read:status=DONE\x1b\\";
        let expected = ClipboardQueryStep::Done(Ok(b"hello".to_vec()));
        assert_eq!(requested().on_bytes(reply.as_bytes()), expected);
        let mut query = requested();
        let mut last = ClipboardQueryStep::Wait;
        for byte in reply.bytes() {
            assert_eq!(last, ClipboardQueryStep::Wait);
            last = query.on_bytes(&[byte]);
        }
        assert_eq!(last, expected);
    }

    #[test]
    fn a_terminal_without_the_protocol_and_hostile_replies_give_a_reason() {
        let mut query = ClipboardQuery::default();
        let unasked = b"\x1b]5522;type=read:status=DATA;aGVsbG8=\x1b\\\x1b]52;c;aGk=\x07";
        assert_eq!(query.on_bytes(unasked), ClipboardQueryStep::Wait, "nothing was asked");
        let step = query.on_bytes(b"\x1b[?5522;0$y\x1b[?1;2c");
        assert_eq!(step, ClipboardQueryStep::Unsupported);
        for hostile in [
            "\x1b]5522;type=read:status=DATA;***\x1b\\".to_owned(),
            "\x1b]5522;type=read:status=EPERM\x1b\\".to_owned(),
            "\x1b]5522;type=read:status=DONE\x1b\\".to_owned(),
            format!("\x1b]5522;{}", "x".repeat(MAX_SEQUENCE_BYTES)),
        ] {
            let step = requested().on_bytes(hostile.as_bytes());
            assert!(matches!(step, ClipboardQueryStep::Done(Err(_))), "{step:?}");
        }
        let mut query = requested();
        let chunk = format!("\x1b]5522;type=read:status=DATA;{}\x1b\\", "AAAA".repeat(8_000));
        let mut steps = (0..2_000).map(|_| query.on_bytes(chunk.as_bytes()));
        let end = steps.find(|step| *step != ClipboardQueryStep::Wait);
        assert!(matches!(end, Some(ClipboardQueryStep::Done(Err(_)))), "{end:?}");
    }

    #[test]
    fn esc_and_ctrl_c_end_the_query_and_other_keys_do_not() {
        let end = ClipboardQueryStep::Done(Err(cancelled()));
        for mut query in [ClipboardQuery::default(), requested()] {
            // Up, Alt+x, `q`, Shift+Esc and `c` in the form of kitty.
            let keys = "\x1b[A\x1bxq\x1b[27;2u\x1b[99u";
            assert_eq!(query.on_bytes(keys.as_bytes()), ClipboardQueryStep::Wait);
            assert_eq!(query.on_quiet(), ClipboardQueryStep::Wait);
        }
        for keys in ["\x03", "x\x1b[A\x03", "\x1b\x1b", "\x1b[27u", "\x1b[27;129u", "\x1b[99;5u"] {
            assert_eq!(requested().on_bytes(keys.as_bytes()), end, "{keys:?}");
        }
        // The first byte of a reply is not the key, unless nothing follows.
        let mut query = requested();
        assert_eq!(query.on_bytes(b"\x1b"), ClipboardQueryStep::Wait);
        assert_eq!(query.on_quiet(), end);
        assert_eq!(query.on_bytes(b"]5522;type=read:status=OK\x1b\\"), ClipboardQueryStep::Wait);
        assert_eq!(query.on_quiet(), ClipboardQueryStep::Wait);
    }

    #[test]
    fn a_terminal_that_stops_answering_is_named_only_if_it_knows_the_protocol() {
        assert_eq!(ClipboardQuery::default().timeout_result(), None);
        let reason = requested().timeout_result().unwrap().unwrap_err();
        assert!(reason.contains("does not answer"), "{reason}");
    }
}
