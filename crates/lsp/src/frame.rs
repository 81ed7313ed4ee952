//! Frames: messages with their length before them, cut out of whatever a server writes.
//!
//! It reads nothing itself: bytes come in pieces, and where they are cut makes no difference. Nothing
//! is kept beyond the bounds below, however the bytes are made up. Some servers print words to the
//! same pipe; a little of that is passed over. Start reading at [`Frames::step`].

/// How long a head may be.
pub const HEAD: usize = 4 << 10;
/// So many lines may a head have.
const LINES: usize = 8;
/// How long a message may be.
pub const BODY: usize = 16 << 20;
/// So many bytes may be neither, in all.
pub const NOISE: usize = 64 << 10;

/// What says how long a message is.
const LENGTH: &[u8] = b"content-length:";
/// What may stand before that.
const KIND: &[u8] = b"content-type:";

/// Why nothing more can be understood of what comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The head does not end.
    Head,
    /// The head is no head.
    Odd,
    /// The message would be longer than one may be; as far as the number can be told.
    Long(u64),
    /// There is too much that is no message.
    Noise,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Head => write!(f, "it sent a head of more than {} kB", HEAD >> 10),
            Fault::Odd => f.write_str("it sent a message whose length cannot be told"),
            Fault::Long(_) => write!(f, "it sent a message of more than {} MB", BODY >> 20),
            Fault::Noise => f.write_str("it wrote too much that is no message"),
        }
    }
}

/// What has come so far.
#[derive(Debug, Default)]
pub struct Frames {
    /// The line of a head that has begun.
    line: Vec<u8>,
    /// The line is too long to be one of a head, and passed over.
    passing: bool,
    /// Lines and bytes of this head.
    head: (usize, usize),
    length: Option<usize>,
    /// The message that has begun, and how long it will be.
    body: Option<(Vec<u8>, usize)>,
    noise: usize,
}

impl Frames {
    /// Takes bytes off the front of a piece: all of them, or those up to the end of a message, which
    /// is given. After a fault nothing good comes any more.
    pub fn step(&mut self, piece: &mut &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        while !piece.is_empty() {
            if let Some((body, length)) = &mut self.body {
                let wanted = length.saturating_sub(body.len()).min(piece.len());
                let (taken, rest) = piece.split_at_checked(wanted).unwrap_or((*piece, &[]));
                body.extend_from_slice(taken);
                *piece = rest;
            } else {
                self.gather(piece)?;
            }
            if let Some((body, length)) = self.body.take_if(|(body, length)| body.len() == *length)
            {
                debug_assert_eq!(body.len(), length);
                return Ok(Some(body));
            }
        }
        Ok(None)
    }

    /// True if a message has begun and is not whole.
    pub fn torn(&self) -> bool {
        self.body.is_some() || self.head.0 > 0 || !self.line.is_empty()
    }

    /// What is kept at most until the next piece, in bytes.
    pub fn weight(&self) -> usize {
        self.line.len() + self.body.as_ref().map_or(0, |(body, _)| body.len())
    }

    /// Takes bytes up to the end of a line.
    fn gather(&mut self, piece: &mut &[u8]) -> Result<(), Fault> {
        let end = piece.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(piece.len(), |end| end + 1);
        let (taken, rest) = piece.split_at_checked(used).unwrap_or((*piece, &[]));
        *piece = rest;
        if self.passing {
            self.passing = end.is_none();
            return self.pass_over(taken.len());
        }
        // A longer line is none of a head: it is not gathered to find that out.
        let room = (HEAD + 1).saturating_sub(self.head.1 + self.line.len());
        if taken.len() > room {
            let (near, far) = taken.split_at_checked(room).unwrap_or((taken, &[]));
            self.line.extend_from_slice(near);
            if self.head.0 > 0 || find(&self.line, LENGTH).is_some() {
                return Err(Fault::Head);
            }
            let all = self.line.len() + far.len();
            self.line.clear();
            self.passing = end.is_none();
            return self.pass_over(all);
        }
        self.line.extend_from_slice(taken);
        if end.is_some() {
            let line = std::mem::take(&mut self.line);
            self.take(&line)?;
        }
        Ok(())
    }

    /// Takes a whole line.
    fn take(&mut self, line: &[u8]) -> Result<(), Fault> {
        let text = line.trim_ascii();
        match (text.is_empty(), self.length) {
            (true, Some(length)) => {
                (self.length, self.head) = (None, (0, 0));
                self.body = Some((Vec::with_capacity(length), length));
                return Ok(());
            }
            (true, None) => {
                let all = line.len() + self.head.1;
                self.head = (0, 0);
                return self.pass_over(all);
            }
            (false, _) => {}
        }
        if let Some(at) = find(text, LENGTH) {
            // What was printed without an end of line stands before it.
            if at > 0 && self.head.0 > 0 {
                return Err(Fault::Odd);
            }
            self.pass_over(at)?;
            let said = text.get(at + LENGTH.len()..).unwrap_or_default();
            let length = number(said.trim_ascii())?;
            if self.length.is_some_and(|known| known != length) {
                return Err(Fault::Odd);
            }
            self.length = Some(length);
        } else if self.length.is_none() && find(text, KIND) != Some(0) {
            let all = line.len() + self.head.1;
            self.head = (0, 0);
            return self.pass_over(all);
        } else if !text.contains(&b':') {
            return Err(Fault::Odd);
        }
        self.head = (self.head.0 + 1, self.head.1 + line.len());
        if self.head.0 > LINES || self.head.1 > HEAD { Err(Fault::Head) } else { Ok(()) }
    }

    fn pass_over(&mut self, bytes: usize) -> Result<(), Fault> {
        self.noise = self.noise.saturating_add(bytes);
        if self.noise > NOISE { Err(Fault::Noise) } else { Ok(()) }
    }
}

/// Where words stand in a text, in whatever case they are spelled.
fn find(text: &[u8], words: &[u8]) -> Option<usize> {
    text.windows(words.len()).position(|part| part.eq_ignore_ascii_case(words))
}

fn number(digits: &[u8]) -> Result<usize, Fault> {
    let text = std::str::from_utf8(digits).map_err(|_| Fault::Odd)?;
    if text.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Fault::Odd);
    }
    let length = text.parse::<u64>().map_err(|_| Fault::Long(u64::MAX))?;
    match usize::try_from(length) {
        Ok(length) if length <= BODY => Ok(length),
        Ok(_) | Err(_) => Err(Fault::Long(length)),
    }
}

/// A message with its length before it.
pub fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, Option<Fault>) {
        let (mut frames, mut found) = (Frames::default(), Vec::new());
        for piece in pieces {
            let mut piece = piece;
            while !piece.is_empty() {
                match frames.step(&mut piece) {
                    Ok(Some(body)) => found.push(body),
                    Ok(None) => assert!(piece.is_empty()),
                    Err(fault) => return (found, Some(fault)),
                }
                assert!(frames.weight() <= BODY + HEAD + 1);
            }
        }
        (found, None)
    }

    fn texts(bytes: &[u8]) -> (Vec<String>, Option<Fault>) {
        let (found, fault) = read([bytes]);
        (found.into_iter().map(|body| String::from_utf8(body).unwrap()).collect(), fault)
    }

    /// Several messages with everything that may stand around them.
    fn mixed() -> Vec<u8> {
        let mut all = b"Starting up, please wait\n\r\nloading: 10 %\n".to_vec();
        all.extend(framed(b"{\"a\":1}"));
        all.extend(framed(b""));
        all.extend(b"no end of lineContent-Length: 2\r\n\r\nhi");
        all.extend(b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n");
        all.extend(b"content-LENGTH:   3  \nX-More: yes\n\nabc");
        all.extend(framed("Content-Length: 9\r\n\r\nä".as_bytes()));
        all
    }

    #[test]
    fn every_cut_gives_the_same_messages() {
        let all = mixed();
        let (whole, fault) = read([all.as_slice()]);
        assert_eq!((whole.len(), fault), (5, None));
        assert_eq!(whole[4], "Content-Length: 9\r\n\r\nä".as_bytes());
        for first in 0..all.len() {
            let (head, tail) = all.split_at(first);
            assert_eq!(read([head, tail]).0, whole, "cut at {first}");
        }
        assert_eq!(read(all.chunks(1)).0, whole);
    }

    #[test]
    fn hostile_heads_end_it_with_words() {
        let long = |count: usize| vec![b'x'; count];
        let lines = |count| [b"Content-Length: 1\r\n".to_vec(), b"A: b\r\n".repeat(count)].concat();
        let padded = [b"Content-Length: 1".to_vec(), b" ".repeat(HEAD)].concat();
        for (bytes, fault) in [
            (b"Content-Length: 104857600\r\n\r\n".to_vec(), Fault::Long(104_857_600)),
            (b"Content-Length: 16777217\r\n".to_vec(), Fault::Long(16_777_217)),
            (b"Content-Length: 99999999999999999999999\r\n".to_vec(), Fault::Long(u64::MAX)),
            (b"Content-Length: -1\r\n".to_vec(), Fault::Odd),
            (b"Content-Length: +1\r\n".to_vec(), Fault::Odd),
            (b"Content-Length:\r\n".to_vec(), Fault::Odd),
            (b"Content-Length: 1 2\r\n".to_vec(), Fault::Odd),
            (b"Content-Length: 0x10\r\n".to_vec(), Fault::Odd),
            (b"Content-Length: \xff\r\n".to_vec(), Fault::Odd),
            (b"Content-Length: 1\r\nContent-Length: 2\r\n".to_vec(), Fault::Odd),
            (b"Content-Length: 1\r\nno colon\r\n".to_vec(), Fault::Odd),
            (lines(8), Fault::Head),
            (padded, Fault::Head),
            (long(NOISE + 1), Fault::Noise),
            (b"noise\n".repeat(NOISE / 6 + 1), Fault::Noise),
            (b"\n".repeat(NOISE + 1), Fault::Noise),
            (b"Content-Type: x\r\n\r\n".repeat(4_000), Fault::Noise),
        ] {
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
            assert_eq!(texts(&bytes), (Vec::new(), Some(fault.clone())), "{shown:?}");
            assert_eq!(read(bytes.chunks(7)).1.as_ref(), Some(&fault), "{shown:?} in pieces");
            assert!(fault.to_string().starts_with("it "));
        }
        assert_eq!(texts(&[lines(7), b"\r\nx".to_vec()].concat()), (vec!["x".into()], None));
    }

    #[test]
    fn a_header_without_end_is_not_gathered() {
        let mut frames = Frames::default();
        let block = vec![b'y'; 1 << 10];
        let mut said = Ok(None);
        for _ in 0..1_000_000 {
            said = frames.step(&mut block.as_slice());
            assert!(frames.weight() <= HEAD + 1);
            if said.is_err() {
                break;
            }
        }
        assert_eq!(said, Err(Fault::Noise));
    }

    #[test]
    fn half_a_message_is_known_to_be_half() {
        let mut frames = Frames::default();
        assert!(!frames.torn());
        for piece in ["Content-Le", "ngth: 4\r\n", "\r\n", "abc"] {
            assert_eq!(frames.step(&mut piece.as_bytes()), Ok(None));
            assert!(frames.torn(), "{piece}");
        }
        assert_eq!(frames.step(&mut &b"d"[..]), Ok(Some(b"abcd".to_vec())));
        assert!(!frames.torn());
    }

    proptest! {
        /// Whatever comes, in whatever pieces: the same is found, and little is kept.
        #[test]
        fn cuts_make_no_difference(
            parts in proptest::collection::vec(prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..40),
                "[a-zA-Z :-]{0,30}\r?\n".prop_map(String::into_bytes),
                "Content-Length: [0-9]{1,2}\r\n(\r\n)?".prop_map(String::into_bytes),
                proptest::collection::vec(any::<u8>(), 0..60).prop_map(|body| framed(&body)),
            ], 0..12),
            size in 1..50_usize,
        ) {
            let all = parts.concat();
            prop_assert_eq!(read([all.as_slice()]), read(all.chunks(size)));
        }

        #[test]
        fn what_is_framed_is_read_back(bodies in proptest::collection::vec(
            proptest::collection::vec(any::<u8>(), 0..200), 0..8), size in 1..99_usize) {
            let all: Vec<u8> = bodies.iter().flat_map(|body| framed(body)).collect();
            prop_assert_eq!(read(all.chunks(size)), (bodies, None));
        }
    }
}
