//! The terminal's answer to which ground it has, picked out of the keys.
//!
//! Answers come the way keys come, `ESC ] 11 ; rgb:RRRR/GGGG/BBBB ESC \`, and crossterm, which does
//! not know this one, makes a key of each byte: Alt+], letters, Alt+\. Here they are put together
//! again. Nobody waits for it: it may come with the first key, much later, in pieces or never, and
//! what it consists of is never typed.
//!
//! Nothing else is asked, such as which terminal this is, to know that no answer will come: as long
//! as a piece of *that* answer is missing, crossterm takes whatever is typed for the rest of it.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

/// Red, green, blue.
pub(super) type Rgb = (u8, u8, u8);

/// What asks for the ground.
pub(super) const QUESTION: &str = "\x1b]11;?\x1b\\";
/// So long a key that may begin an answer is held back. The rest follows at once, unless the key was
/// meant.
const DOUBT: u64 = 25;
/// An answer is over so long after it began, though its end be missing.
const WHOLE: u64 = 1_000;
/// No colour takes more letters.
const LETTERS: usize = 64;

/// Who listens for the answer.
#[derive(Debug, Default)]
pub(super) enum Ear {
    /// Nobody: it was not asked for, or it was heard.
    #[default]
    Closed,
    /// Nothing of it was heard yet.
    Open,
    /// These keys may begin it, the first at this time.
    Doubt(Vec<Event>, u64),
    /// It began at this time, and this was heard of it.
    Answer(String, u64),
}

impl Ear {
    /// True as long as an answer may come.
    pub(super) fn listens(&self) -> bool {
        !matches!(self, Ear::Closed)
    }

    /// When something is to be done though nothing is heard.
    pub(super) fn wakes(&self) -> Option<u64> {
        match self {
            Ear::Closed | Ear::Open => None,
            Ear::Doubt(_, since) => Some(since + DOUBT),
            Ear::Answer(_, since) => Some(since + WHOLE),
        }
    }

    /// What was typed of what came in, and the ground, if it was answered.
    pub(super) fn sift(&mut self, events: Vec<Event>, now: u64) -> (Vec<Event>, Option<Rgb>) {
        let (mut typed, mut ground) = (Vec::new(), None);
        for event in events {
            match &event {
                Event::Key(key) => ground = self.hear(*key, now, &mut typed).or(ground),
                _ => typed.push(event),
            }
        }
        (typed, ground)
    }

    /// What was typed after all, now that nothing followed it.
    pub(super) fn give_up(&mut self, now: u64) -> Vec<Event> {
        if self.wakes().is_none_or(|at| now < at) {
            return Vec::new();
        }
        match std::mem::take(self) {
            Ear::Doubt(held, _) => {
                *self = Ear::Open;
                held
            }
            Ear::Closed | Ear::Open | Ear::Answer(..) => Vec::new(),
        }
    }

    fn hear(&mut self, key: KeyEvent, now: u64, typed: &mut Vec<Event>) -> Option<Rgb> {
        match self {
            Ear::Closed => typed.push(Event::Key(key)),
            Ear::Open if is_escape(&key) || is_alt(&key, ']') => {
                *self = Ear::Doubt(vec![Event::Key(key)], now);
            }
            Ear::Open => typed.push(Event::Key(key)),
            Ear::Doubt(held, since) => match (held.as_slice(), letter(&key)) {
                // The first byte came alone, and was taken for the key Esc.
                ([Event::Key(first)], Some(']')) if is_escape(first) => held.push(Event::Key(key)),
                ([Event::Key(first)], _) if is_escape(first) => return self.doubt(key, now, typed),
                (_, Some(digit @ '0'..='9')) => *self = Ear::Answer(digit.into(), *since),
                _ => return self.doubt(key, now, typed),
            },
            Ear::Answer(said, _) => {
                let ended = said.ends_with('\x1b') && letter(&key) == Some('\\');
                if ended || is_alt(&key, '\\') || is_bell(&key) {
                    let said = std::mem::take(said);
                    // Where another question was answered, ours may still be.
                    let ours = said.strip_prefix("11;");
                    *self = if ours.is_some() { Ear::Closed } else { Ear::Open };
                    return ours.and_then(|ours| colour(ours.trim_end_matches('\x1b')));
                }
                // Whatever else it may contain is no key, either.
                if said.len() >= LETTERS {
                    said.pop();
                }
                said.extend(if is_escape(&key) { Some('\x1b') } else { letter(&key) });
            }
        }
        None
    }

    /// What was held back was typed; the key after it may begin an answer again.
    fn doubt(&mut self, key: KeyEvent, now: u64, typed: &mut Vec<Event>) -> Option<Rgb> {
        if let Ear::Doubt(held, _) = std::mem::replace(self, Ear::Open) {
            typed.extend(held);
        }
        self.hear(key, now, typed)
    }
}

fn is_escape(key: &KeyEvent) -> bool {
    key.code == KeyCode::Esc && key.modifiers.is_empty()
}

fn is_alt(key: &KeyEvent, letter: char) -> bool {
    key.code == KeyCode::Char(letter) && key.modifiers == KeyModifiers::ALT
}

/// BEL, which ends such sequences as well.
fn is_bell(key: &KeyEvent) -> bool {
    key.code == KeyCode::Char('g') && key.modifiers == KeyModifiers::CONTROL
}

fn letter(key: &KeyEvent) -> Option<char> {
    match key.code {
        KeyCode::Char(letter) if (key.modifiers - KeyModifiers::SHIFT).is_empty() => Some(letter),
        _ => None,
    }
}

/// `rgb:R/G/B`, or `rgba:R/G/B/A`, with one to four hexadecimal digits each.
fn colour(spelled: &str) -> Option<Rgb> {
    let (kind, parts) = spelled.split_once(':')?;
    let parts: Vec<u8> = parts.split('/').map(part).collect::<Option<_>>()?;
    match (kind, parts.as_slice()) {
        ("rgb", [red, green, blue]) | ("rgba", [red, green, blue, _]) => {
            Some((*red, *green, *blue))
        }
        _ => None,
    }
}

fn part(digits: &str) -> Option<u8> {
    let hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let most = match digits.len() {
        1 => 0xf,
        2 => 0xff,
        3 => 0xfff,
        4 => 0xffff,
        _ => return None,
    };
    let value = hexadecimal.then(|| u32::from_str_radix(digits, 16).ok())??;
    u8::try_from(value * 255 / most).ok()
}

#[cfg(test)]
mod tests;
