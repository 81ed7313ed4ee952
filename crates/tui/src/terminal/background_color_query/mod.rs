//! Extracts the terminal's background color reply from the key events.
//!
//! The reply arrives like typed keys, `ESC ] 11 ; rgb:RRRR/GGGG/BBBB ESC \`. crossterm does not
//! know it and turns each byte into a key: Alt+], letters, Alt+\. This module reassembles them.
//! Nothing blocks on the reply: it may come with the first key, much later, in pieces or never. It
//! keeps the invariant that no part of it is taken for typed input.
//!
//! No other query is sent with it, such as one for the terminal's identity, to learn that no reply
//! will come: while a piece of *that* reply is missing, crossterm takes all typed keys for the rest
//! of it. The query for the clipboard asks for the identity, but only after a key, and crossterm
//! does not read the terminal meanwhile (`clipboard_reader`).

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

/// A color as red, green, blue.
pub(super) type RgbColor = (u8, u8, u8);

/// The escape sequence that asks for the background color (OSC 11).
#[cfg(unix)]
pub(super) const BACKGROUND_QUERY: &str = "\x1b]11;?\x1b\\";
/// The time for which a key that may begin a reply is held back. The rest of a reply follows at
/// once, unless the user typed the key.
const ESCAPE_HOLD_MS: u64 = 25;
/// The time after which a reply counts as ended, even if its terminator is missing.
const REPLY_TIMEOUT_MS: u64 = 1_000;
/// Bounds the length of a reply; no color needs more characters.
const MAX_REPLY_CHARS: usize = 64;

/// The state of the `BACKGROUND_QUERY`.
#[derive(Debug, Default)]
pub(super) enum BackgroundColorQuery {
    /// Not queried, or already answered.
    #[default]
    Inactive,
    /// Queried; nothing of the reply has arrived.
    Waiting,
    /// These keys may begin the reply; the first arrived at this time.
    MaybeReply(Vec<Event>, u64),
    /// The part of the reply received so far, and the time at which it began.
    ReadingReply(String, u64),
}

impl BackgroundColorQuery {
    /// Returns true while a reply may still arrive, that is, in all states but `Inactive`.
    pub(super) fn is_active(&self) -> bool {
        !matches!(self, BackgroundColorQuery::Inactive)
    }

    /// Returns the time at which held keys or a partial reply time out.
    pub(super) fn next_wakeup(&self) -> Option<u64> {
        match self {
            BackgroundColorQuery::Inactive | BackgroundColorQuery::Waiting => None,
            BackgroundColorQuery::MaybeReply(_, since) => Some(since + ESCAPE_HOLD_MS),
            BackgroundColorQuery::ReadingReply(_, since) => Some(since + REPLY_TIMEOUT_MS),
        }
    }

    /// Separates typed events from the reply; returns both, the color only once the reply is
    /// complete.
    pub(super) fn filter_events(
        &mut self,
        events: Vec<Event>,
        now: u64,
    ) -> (Vec<Event>, Option<RgbColor>) {
        let (mut typed, mut background) = (Vec::new(), None);
        for event in events {
            match &event {
                Event::Key(key) => background = self.on_key(*key, now, &mut typed).or(background),
                _ => typed.push(event),
            }
        }
        (typed, background)
    }

    /// Returns the held keys as typed, if no reply followed in time.
    pub(super) fn release_held_keys(&mut self, now: u64) -> Vec<Event> {
        if self.next_wakeup().is_none_or(|deadline| now < deadline) {
            return Vec::new();
        }
        match std::mem::take(self) {
            BackgroundColorQuery::MaybeReply(held, _) => {
                *self = BackgroundColorQuery::Waiting;
                held
            }
            BackgroundColorQuery::Inactive
            | BackgroundColorQuery::Waiting
            | BackgroundColorQuery::ReadingReply(..) => Vec::new(),
        }
    }

    fn on_key(&mut self, key: KeyEvent, now: u64, typed: &mut Vec<Event>) -> Option<RgbColor> {
        match self {
            BackgroundColorQuery::Inactive => typed.push(Event::Key(key)),
            BackgroundColorQuery::Waiting if is_escape(&key) || is_alt(&key, ']') => {
                *self = BackgroundColorQuery::MaybeReply(vec![Event::Key(key)], now);
            }
            BackgroundColorQuery::Waiting => typed.push(Event::Key(key)),
            BackgroundColorQuery::MaybeReply(held, since) => {
                match (held.as_slice(), plain_char(&key)) {
                    // The first byte came alone, so crossterm took it for the Esc key.
                    ([Event::Key(first)], Some(']')) if is_escape(first) => {
                        held.push(Event::Key(key))
                    }
                    ([Event::Key(first)], _) if is_escape(first) => {
                        return self.release_and_retry(key, now, typed);
                    }
                    (_, Some(digit @ '0'..='9')) => {
                        *self = BackgroundColorQuery::ReadingReply(digit.into(), *since)
                    }
                    _ => return self.release_and_retry(key, now, typed),
                }
            }
            BackgroundColorQuery::ReadingReply(reply, _) => {
                let is_terminated = reply.ends_with('\x1b') && plain_char(&key) == Some('\\');
                if is_terminated || is_alt(&key, '\\') || is_bell(&key) {
                    let reply = std::mem::take(reply);
                    // Without the prefix this is the reply to another query, and the own reply
                    // may still come.
                    let color_text = reply.strip_prefix("11;");
                    *self = if color_text.is_some() {
                        BackgroundColorQuery::Inactive
                    } else {
                        BackgroundColorQuery::Waiting
                    };
                    return color_text
                        .and_then(|color_text| parse_color(color_text.trim_end_matches('\x1b')));
                }
                // Keys beyond the limit are not typed input either.
                if reply.len() >= MAX_REPLY_CHARS {
                    reply.pop();
                }
                reply.extend(if is_escape(&key) { Some('\x1b') } else { plain_char(&key) });
            }
        }
        None
    }

    /// Releases the held keys as typed, then handles `key`, which may begin a reply itself.
    fn release_and_retry(
        &mut self,
        key: KeyEvent,
        now: u64,
        typed: &mut Vec<Event>,
    ) -> Option<RgbColor> {
        if let BackgroundColorQuery::MaybeReply(held, _) =
            std::mem::replace(self, BackgroundColorQuery::Waiting)
        {
            typed.extend(held);
        }
        self.on_key(key, now, typed)
    }
}

fn is_escape(key: &KeyEvent) -> bool {
    key.code == KeyCode::Esc && key.modifiers.is_empty()
}

fn is_alt(key: &KeyEvent, letter: char) -> bool {
    key.code == KeyCode::Char(letter) && key.modifiers == KeyModifiers::ALT
}

/// Returns true for BEL, which also terminates such sequences.
fn is_bell(key: &KeyEvent) -> bool {
    key.code == KeyCode::Char('g') && key.modifiers == KeyModifiers::CONTROL
}

fn plain_char(key: &KeyEvent) -> Option<char> {
    match key.code {
        KeyCode::Char(letter) if (key.modifiers - KeyModifiers::SHIFT).is_empty() => Some(letter),
        _ => None,
    }
}

/// Parses `rgb:R/G/B` or `rgba:R/G/B/A` with one to four hexadecimal digits each.
fn parse_color(text: &str) -> Option<RgbColor> {
    let (kind, parts) = text.split_once(':')?;
    let parts: Vec<u8> = parts.split('/').map(parse_component).collect::<Option<_>>()?;
    match (kind, parts.as_slice()) {
        ("rgb", [red, green, blue]) | ("rgba", [red, green, blue, _]) => {
            Some((*red, *green, *blue))
        }
        _ => None,
    }
}

fn parse_component(digits: &str) -> Option<u8> {
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let max_value = match digits.len() {
        1 => 0xf,
        2 => 0xff,
        3 => 0xfff,
        4 => 0xffff,
        _ => return None,
    };
    let value = is_hex.then(|| u32::from_str_radix(digits, 16).ok())??;
    u8::try_from(value * 255 / max_value).ok()
}

#[cfg(test)]
mod tests;
