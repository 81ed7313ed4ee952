//! A person's terminal: a program in a real PTY, with an emulator that reads what it writes.
//!
//! Keys go in as bytes, the screen comes out as cells. What a program asks the terminal (where the
//! cursor is, what colour the ground has) is answered as usual terminals answer it. What it has the
//! terminal do besides drawing is kept: titles, the clipboard, bells, and every sequence that the
//! emulator does not know. Frames between the marks of a synchronised update are seen whole or not
//! at all.

mod seat;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

pub use seat::{Ground, Seat};
pub use vt100::{Cell, Color, Screen};

/// How long something may take to appear before a test gives up.
const PATIENCE: Duration = Duration::from_secs(12);

/// What a program had its terminal do besides drawing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deeds {
    /// Titles that were set.
    pub titles: Vec<String>,
    /// What was put into the clipboard, in base64.
    pub clipboard: Vec<String>,
    /// How often the bell rang.
    pub bells: usize,
    /// Sequences that the emulator does not know, but for those everybody uses.
    pub unknown: Vec<String>,
}

/// A frame that was drawn whole.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// When its last byte was read.
    pub at: Instant,
    /// How many bytes had been written by then.
    pub bytes: usize,
}

struct Emulator {
    /// What is answered when it is asked for its ground.
    answer: Vec<(Duration, String)>,
    deeds: Deeds,
    /// True between the marks of a synchronised update.
    drawing: bool,
    frames: usize,
    replies: Vec<u8>,
    asked: bool,
}

impl vt100::Callbacks for Emulator {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.deeds.bells += 1;
    }

    fn set_window_icon_name(&mut self, _: &mut vt100::Screen, name: &[u8]) {
        self.deeds.titles.push(String::from_utf8_lossy(name).into_owned());
    }

    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.deeds.titles.push(String::from_utf8_lossy(title).into_owned());
    }

    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], text: &[u8]) {
        self.deeds.clipboard.push(String::from_utf8_lossy(text).into_owned());
    }

    fn paste_from_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.deeds.unknown.push("reads the clipboard".into());
    }

    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        second: Option<u8>,
        parameters: &[&[u16]],
        last: char,
    ) {
        let number = parameters.first().and_then(|all| all.first()).copied().unwrap_or(0);
        match (first, last, number) {
            (Some(b'?'), 'h', 2026) => self.drawing = true,
            (Some(b'?'), 'l', 2026) => {
                self.frames += usize::from(self.drawing);
                self.drawing = false;
            }
            // Where is the cursor? Who are you? Which keys can you tell apart?
            (None, 'n', 6) => {
                let (row, column) = screen.cursor_position();
                self.replies.extend(format!("\x1b[{};{}R", row + 1, column + 1).bytes());
            }
            (None, 'c', _) => self.replies.extend(b"\x1b[?62;22c"),
            (Some(b'?'), 'u', _) => self.replies.extend(b"\x1b[?0u"),
            // Focus, the blinking of the cursor and the wheel as arrows are what everybody sets.
            (Some(b'?'), 'h' | 'l', 12 | 1004 | 1007 | 2031) => {}
            (Some(b'>' | b'<' | b'='), 'u', _) => {}
            // The colour of a line under letters, which the emulator does not draw.
            (None, 'm', 58 | 59) => {}
            _ => {
                let mark = |byte: Option<u8>| byte.map(char::from).map(String::from);
                let [first, second] = [first, second].map(|byte| mark(byte).unwrap_or_default());
                self.deeds.unknown.push(format!("CSI {first}{second}{parameters:?}{last}"));
            }
        }
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, parameters: &[&[u8]]) {
        match parameters {
            [b"11", b"?"] => self.asked = true,
            [b"10", b"?"] => {}
            _ => {
                let texts: Vec<_> = parameters.iter().map(|p| String::from_utf8_lossy(p)).collect();
                self.deeds.unknown.push(format!("OSC {}", texts.join(";")));
            }
        }
    }
}

struct Seen {
    parser: vt100::Parser<Emulator>,
    raw: Vec<u8>,
    frames: Vec<Frame>,
    over: bool,
}

/// A program in a terminal. It is killed when this is dropped.
pub struct Terminal {
    keyboard: File,
    /// The other side, kept open so that what is left can be read after the end.
    line: File,
    child: Child,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    stop: Arc<AtomicBool>,
    reader: Option<std::thread::JoinHandle<()>>,
}

fn size_of((columns, rows): (u16, u16)) -> (NonZeroU16, NonZeroU16) {
    (NonZeroU16::new(rows).unwrap(), NonZeroU16::new(columns).unwrap())
}

fn window((columns, rows): (u16, u16)) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

impl Terminal {
    fn start(seat: &Seat) -> Terminal {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let name = ptsname(&screen, Vec::new()).unwrap().into_string().unwrap();
        let line = File::options().read(true).write(true).open(name).unwrap();
        tcsetwinsize(&line, window(seat.size)).unwrap();
        // `setsid --ctty` makes it the program's own terminal, so that it is told of new sizes.
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(&seat.program).args(&seat.arguments);
        command.current_dir(&seat.folder).env_clear().env("TERM", "xterm-256color");
        command.envs(seat.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(line.try_clone().unwrap()).stdout(line.try_clone().unwrap());
        let child = command.stderr(line.try_clone().unwrap()).spawn().unwrap();
        let (rows, columns) = size_of(seat.size);
        let emulator = Emulator {
            answer: seat.answer.clone(),
            deeds: Deeds::default(),
            drawing: false,
            frames: 0,
            replies: Vec::new(),
            asked: false,
        };
        let parser = vt100::Parser::new_with_callbacks(rows, columns, 0, emulator);
        let seen = Seen { parser, raw: Vec::new(), frames: Vec::new(), over: false };
        let seen = Arc::new((Mutex::new(seen), Condvar::new()));
        let keyboard = File::from(screen);
        let stop = Arc::new(AtomicBool::new(false));
        let reader = {
            let (screen, seen, stop) =
                (keyboard.try_clone().unwrap(), Arc::clone(&seen), Arc::clone(&stop));
            std::thread::spawn(move || read(screen, &seen, &stop))
        };
        Terminal { keyboard, line, child, seen, stop, reader: Some(reader) }
    }

    /// Presses keys, as the bytes that terminals send for them.
    pub fn press(&self, keys: &str) {
        (&self.keyboard).write_all(keys.as_bytes()).unwrap();
    }

    /// Pastes a text.
    pub fn paste(&self, text: &str) {
        self.press(&format!("\x1b[200~{text}\x1b[201~"));
    }

    /// Waits until the screen is as wanted, with no frame half drawn.
    #[track_caller]
    pub fn wait_for(&self, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) {
        let reached = self.reaches(PATIENCE, wanted);
        assert!(reached, "{what}: it never came to that\n{}", self.text());
    }

    /// Waits until this text stands on the screen.
    #[track_caller]
    pub fn wait_text(&self, text: &str) {
        self.wait_for(&format!("`{text}` on the screen"), |screen| {
            screen.contents().contains(text)
        });
    }

    /// Waits until this text stands on the screen no longer.
    #[track_caller]
    pub fn wait_gone(&self, text: &str) {
        self.wait_for(&format!("no `{text}`"), |screen| !screen.contents().contains(text));
    }

    /// Whether the screen comes to be as wanted within a time.
    pub fn reaches(&self, time: Duration, wanted: impl Fn(&vt100::Screen) -> bool) -> bool {
        let deadline = Instant::now() + time;
        let (seen, changed) = &*self.seen;
        let mut seen = seen.lock().unwrap();
        loop {
            if !seen.parser.callbacks().drawing && wanted(seen.parser.screen()) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || seen.over {
                return false;
            }
            seen = changed.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// Waits until nothing was written for a while.
    pub fn settle(&self, quiet: Duration) {
        let deadline = Instant::now() + PATIENCE;
        let mut before = self.written();
        loop {
            std::thread::sleep(quiet);
            let now = self.written();
            if now == before {
                return;
            }
            assert!(Instant::now() < deadline, "it never came to rest\n{}", self.text());
            before = now;
        }
    }

    /// Looks at the screen.
    pub fn look<T>(&self, at: impl FnOnce(&vt100::Screen) -> T) -> T {
        at(self.seen.0.lock().unwrap().parser.screen())
    }

    /// The screen as it is now.
    pub fn screen(&self) -> vt100::Screen {
        self.look(Clone::clone)
    }

    /// The text on the screen, a row a line, without blanks at the ends.
    pub fn text(&self) -> String {
        self.look(|screen| {
            let rows = screen.rows(0, screen.size().1.get());
            rows.map(|row| row.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
        })
    }

    /// Everything that was written.
    pub fn raw(&self) -> Vec<u8> {
        self.seen.0.lock().unwrap().raw.clone()
    }

    /// How many bytes were written.
    pub fn written(&self) -> usize {
        self.seen.0.lock().unwrap().raw.len()
    }

    /// The frames that were drawn.
    pub fn frames(&self) -> Vec<Frame> {
        self.seen.0.lock().unwrap().frames.clone()
    }

    /// What it had the terminal do besides drawing.
    pub fn deeds(&self) -> Deeds {
        self.seen.0.lock().unwrap().parser.callbacks().deeds.clone()
    }

    /// Gives the terminal another size.
    pub fn resize(&self, columns: u16, rows: u16) {
        // The emulator first: what is written for the new size finds it there.
        let (height, width) = size_of((columns, rows));
        self.seen.0.lock().unwrap().parser.set_size(height, width);
        tcsetwinsize(&self.line, window((columns, rows))).unwrap();
    }

    /// How the line is set: whether it is raw, whether it echoes.
    pub fn line_settings(&self) -> Termios {
        tcgetattr(&self.line).unwrap()
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// True once it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end, and until everything it wrote is read.
    #[track_caller]
    pub fn end(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "it never ended\n{}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        };
        self.settle(Duration::from_millis(30));
        status
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.stop.store(true, Ordering::SeqCst);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// Reads what the program writes until there is no more, and answers what it asks the terminal.
fn read(mut screen: File, seen: &(Mutex<Seen>, Condvar), stop: &AtomicBool) {
    let mut piece = vec![0; 1 << 16];
    let mut rest = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let ready = {
            let mut ready = [PollFd::new(&screen, PollFlags::IN)];
            poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 50_000_000 })).unwrap_or(0)
        };
        if ready == 0 {
            continue;
        }
        let count = screen.read(&mut piece).unwrap_or(0);
        let mut now = seen.0.lock().unwrap();
        if count == 0 {
            now.over = true;
            seen.1.notify_all();
            return;
        }
        let now = &mut *now;
        now.raw.extend(&piece[..count]);
        let before = now.parser.callbacks().frames;
        let shown = visible(&mut rest, &piece[..count]);
        now.parser.process(&shown);
        let emulator = now.parser.callbacks_mut();
        let replies = std::mem::take(&mut emulator.replies);
        if emulator.frames > before {
            now.frames.push(Frame { at: Instant::now(), bytes: now.raw.len() });
        }
        let _ = screen.write_all(&replies);
        if std::mem::take(&mut emulator.asked) {
            answer(&screen, emulator.answer.clone());
        }
        seen.1.notify_all();
    }
}

/// Answers which ground there is; what takes time is no reason not to read on.
fn answer(screen: &File, pieces: Vec<(Duration, String)>) {
    let mut screen = screen.try_clone().unwrap();
    std::thread::spawn(move || {
        for (pause, piece) in pieces {
            std::thread::sleep(pause);
            let _ = screen.write_all(piece.as_bytes());
        }
    });
}

/// Terminals draw U+FFFD, and the emulator leaves it out; a box stands for it there. What may be the
/// beginning of one waits for what follows.
fn visible(rest: &mut Vec<u8>, piece: &[u8]) -> Vec<u8> {
    const LOST: [u8; 3] = [0xef, 0xbf, 0xbd];
    let mut bytes = std::mem::take(rest);
    bytes.extend(piece);
    for at in 0..bytes.len().saturating_sub(2) {
        if bytes[at..at + 3] == LOST {
            bytes[at..at + 3].copy_from_slice("□".as_bytes());
        }
    }
    let open = [2, 1].into_iter().find(|&count| bytes.ends_with(&LOST[..count])).unwrap_or(0);
    *rest = bytes.split_off(bytes.len() - open);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Terminal {
        Seat::new("sh", "/")
            .with(&["-c", line])
            .set("PATH", std::env::var_os("PATH").unwrap())
            .start()
    }

    #[test]
    fn what_is_drawn_is_seen_and_what_is_pressed_arrives() {
        let mut terminal =
            shell("stty -echo; printf '\\033[2;3Hname? '; read name; echo hello $name");
        terminal.wait_text("  name?");
        terminal.press("you\r");
        terminal.wait_text("hello you");
        assert!(terminal.end().success());
        assert_eq!(terminal.deeds(), Deeds::default());
    }

    #[test]
    fn a_sign_for_what_is_lost_takes_its_column() {
        let mut rest = Vec::new();
        let mut shown = visible(&mut rest, b"a\xef");
        shown.extend(visible(&mut rest, b"\xbf"));
        shown.extend(visible(&mut rest, b"\xbdb\xefx"));
        assert_eq!((shown, rest), ([b"a", "□".as_bytes(), b"b\xefx"].concat(), Vec::new()));
    }

    #[test]
    fn a_new_size_is_told() {
        let terminal = shell("trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done");
        terminal.wait_text("24 80");
        terminal.resize(40, 12);
        terminal.wait_text("12 40");
    }

    #[test]
    fn what_is_done_besides_drawing_is_kept() {
        let mut terminal =
            shell("printf '\\033]2;T\\007\\033]52;c;aGk=\\007\\007\\033[?9999h\\033]9;x\\007'");
        terminal.end();
        let deeds = terminal.deeds();
        assert_eq!(
            (deeds.titles, deeds.clipboard, deeds.bells),
            (vec!["T".into()], vec!["aGk=".into()], 1)
        );
        assert_eq!(deeds.unknown, ["CSI ?[[9999]]h", "OSC 9;x"]);
    }

    #[test]
    fn a_frame_is_seen_whole_or_not_at_all() {
        let terminal =
            shell("printf '\\033[?2026hone'; sleep 0.4; printf ' two\\033[?2026l'; sleep 5");
        terminal.wait_for("one", |screen| {
            let text = screen.contents();
            assert!(!text.contains("one") || text.contains("two"), "half a frame was shown");
            text.contains("two")
        });
        assert_eq!(terminal.frames().len(), 1);
    }

    #[test]
    fn a_question_to_the_terminal_is_answered() {
        let ask = "stty raw -echo; printf '\\033[6n'; dd bs=1 count=6 2>/dev/null | od -An -c";
        shell(ask).wait_text("033   [   1   ;   1   R");
    }
}
