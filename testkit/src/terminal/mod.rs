//! A terminal for tests: a program in a real PTY, with an emulator that reads its output.
//!
//! Keys are sent as bytes, and the screen is read as cells. Queries of the program (cursor
//! position, background color) are answered as by usual terminals. Other effects are recorded:
//! titles, the clipboard, bells, and every sequence that the emulator does not know. A frame in a
//! synchronized update is visible only when it is complete.

mod command;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

pub use command::{EmulatedBackground, TerminalCommand};
pub use vt100::{Cell, Color, Screen};

/// Time limit for a change of the screen.
const WAIT_TIMEOUT: Duration = Duration::from_secs(12);

/// Effects of a program on its terminal other than drawing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminalEffects {
    /// Titles that were set.
    pub titles: Vec<String>,
    /// Texts that were copied to the clipboard, in base64.
    pub clipboard: Vec<String>,
    /// Number of bells.
    pub bells: usize,
    /// Sequences that the emulator does not know, except for common ones.
    pub unknown: Vec<String>,
}

/// A complete frame.
#[derive(Clone, Copy, Debug)]
pub struct TerminalFrame {
    /// Time when its last byte was read.
    pub at: Instant,
    /// Number of bytes written until then.
    pub bytes: usize,
}

struct EmulatorCallbacks {
    /// The answer to a background query.
    background_reply: Vec<(Duration, String)>,
    knows_clipboard: bool,
    effects: TerminalEffects,
    /// True inside a synchronized update.
    drawing: bool,
    frames: usize,
    replies: Vec<u8>,
    background_queried: bool,
}

impl vt100::Callbacks for EmulatorCallbacks {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.effects.bells += 1;
    }

    fn set_window_icon_name(&mut self, _: &mut vt100::Screen, name: &[u8]) {
        self.effects.titles.push(String::from_utf8_lossy(name).into_owned());
    }

    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.effects.titles.push(String::from_utf8_lossy(title).into_owned());
    }

    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], text: &[u8]) {
        self.effects.clipboard.push(String::from_utf8_lossy(text).into_owned());
    }

    fn paste_from_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.effects.unknown.push("reads the clipboard".into());
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
            // Queries for the cursor position, the device attributes and the keyboard protocol.
            (None, 'n', 6) => {
                let (row, column) = screen.cursor_position();
                self.replies.extend(format!("\x1b[{};{}R", row + 1, column + 1).bytes());
            }
            (None, 'c', _) => self.replies.extend(b"\x1b[?62;22c"),
            (Some(b'?'), 'u', _) => self.replies.extend(b"\x1b[?0u"),
            (Some(b'?'), 'p', 5522) if self.knows_clipboard => {
                self.replies.extend(b"\x1b[?5522;2$y")
            }
            (Some(b'?'), 'p', 5522) => self.replies.extend(b"\x1b[?5522;0$y"),
            // Focus events, cursor blinking and wheel-as-arrows are common.
            (Some(b'?'), 'h' | 'l', 12 | 1004 | 1007 | 2031) => {}
            (Some(b'>' | b'<' | b'='), 'u', _) => {}
            // `modifyOtherKeys` and its format; saving and restoring the title.
            (Some(b'>'), 'm' | 'f', 4) | (None, 't', 22 | 23) => {}
            // The underline color, which the emulator does not draw.
            (None, 'm', 58 | 59) => {}
            _ => {
                let to_text = |byte: Option<u8>| byte.map(char::from).map(String::from);
                let [first, second] = [first, second].map(|byte| to_text(byte).unwrap_or_default());
                self.effects.unknown.push(format!("CSI {first}{second}{parameters:?}{last}"));
            }
        }
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, parameters: &[&[u8]]) {
        match parameters {
            [b"11", b"?"] => self.background_queried = true,
            [b"10", b"?"] => {}
            _ => {
                let texts: Vec<_> = parameters.iter().map(|p| String::from_utf8_lossy(p)).collect();
                self.effects.unknown.push(format!("OSC {}", texts.join(";")));
            }
        }
    }
}

struct TerminalState {
    parser: vt100::Parser<EmulatorCallbacks>,
    raw: Vec<u8>,
    frames: Vec<TerminalFrame>,
    is_closed: bool,
}

/// A program in a terminal. The program is killed when this is dropped.
pub struct Terminal {
    pty: File,
    /// The other side, kept open so that the rest of the output can be read after the exit.
    tty: File,
    child: Child,
    state: Arc<(Mutex<TerminalState>, Condvar)>,
    stop: Arc<AtomicBool>,
    reader: Option<std::thread::JoinHandle<()>>,
}

fn screen_size((columns, rows): (u16, u16)) -> (NonZeroU16, NonZeroU16) {
    (NonZeroU16::new(rows).unwrap(), NonZeroU16::new(columns).unwrap())
}

fn window_size((columns, rows): (u16, u16)) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

impl Terminal {
    fn start(settings: &TerminalCommand) -> Terminal {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        // A program that inherits it keeps its own terminal open, and outlives a killed test.
        fcntl_setfd(&screen, FdFlags::CLOEXEC).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let name = ptsname(&screen, Vec::new()).unwrap().into_string().unwrap();
        let tty = File::options().read(true).write(true).open(name).unwrap();
        tcsetwinsize(&tty, window_size(settings.size)).unwrap();
        // `setsid --ctty` makes this the controlling terminal, which signals new sizes.
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(&settings.program).args(&settings.arguments);
        command.current_dir(&settings.folder).env_clear().env("TERM", "xterm-256color");
        command.envs(settings.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(tty.try_clone().unwrap()).stdout(tty.try_clone().unwrap());
        let child = command.stderr(tty.try_clone().unwrap()).spawn().unwrap();
        let (rows, columns) = screen_size(settings.size);
        let emulator = EmulatorCallbacks {
            background_reply: settings.background_reply.clone(),
            knows_clipboard: settings.knows_clipboard,
            effects: TerminalEffects::default(),
            drawing: false,
            frames: 0,
            replies: Vec::new(),
            background_queried: false,
        };
        let parser = vt100::Parser::new_with_callbacks(rows, columns, 0, emulator);
        let state = TerminalState { parser, raw: Vec::new(), frames: Vec::new(), is_closed: false };
        let state = Arc::new((Mutex::new(state), Condvar::new()));
        let pty = File::from(screen);
        let stop = Arc::new(AtomicBool::new(false));
        let reader = {
            let (screen, state, stop) =
                (pty.try_clone().unwrap(), Arc::clone(&state), Arc::clone(&stop));
            std::thread::spawn(move || read_output(screen, &state, &stop))
        };
        Terminal { pty, tty, child, state, stop, reader: Some(reader) }
    }

    /// Presses keys, as the bytes that terminals send for them.
    pub fn press(&self, keys: &str) {
        (&self.pty).write_all(keys.as_bytes()).unwrap();
    }

    /// Pastes a text.
    pub fn paste(&self, text: &str) {
        self.press(&format!("\x1b[200~{text}\x1b[201~"));
    }

    /// Waits until the screen satisfies a condition, with no incomplete frame.
    #[track_caller]
    pub fn wait_for(&self, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) {
        let reached = self.reaches(WAIT_TIMEOUT, wanted);
        assert!(reached, "{what}: not reached\n{}", self.text());
    }

    /// Waits until this text is on the screen.
    #[track_caller]
    pub fn wait_text(&self, text: &str) {
        self.wait_for(&format!("`{text}` on the screen"), |screen| {
            screen.contents().contains(text)
        });
    }

    /// Waits until this text is no longer on the screen.
    #[track_caller]
    pub fn wait_gone(&self, text: &str) {
        self.wait_for(&format!("no `{text}`"), |screen| !screen.contents().contains(text));
    }

    /// Returns true if the screen satisfies a condition within a time limit.
    pub fn reaches(&self, time: Duration, wanted: impl Fn(&vt100::Screen) -> bool) -> bool {
        let deadline = Instant::now() + time;
        let (state, changed) = &*self.state;
        let mut state = state.lock().unwrap();
        loop {
            if !state.parser.callbacks().drawing && wanted(state.parser.screen()) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || state.is_closed {
                return false;
            }
            state = changed.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Waits until nothing is written for this time.
    pub fn settle(&self, quiet: Duration) {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        let mut before = self.written();
        loop {
            std::thread::sleep(quiet);
            let current = self.written();
            if current == before {
                return;
            }
            assert!(Instant::now() < deadline, "the output never settled\n{}", self.text());
            before = current;
        }
    }

    /// Applies a function to the screen.
    pub fn look<T>(&self, at: impl FnOnce(&vt100::Screen) -> T) -> T {
        at(self.state.0.lock().unwrap().parser.screen())
    }

    /// Returns a copy of the screen.
    pub fn screen(&self) -> vt100::Screen {
        self.look(Clone::clone)
    }

    /// Returns the text on the screen, one line for each row, without trailing spaces.
    pub fn text(&self) -> String {
        self.look(|screen| {
            let rows = screen.rows(0, screen.size().1.get());
            rows.map(|row| row.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
        })
    }

    /// Returns all output.
    pub fn raw(&self) -> Vec<u8> {
        self.state.0.lock().unwrap().raw.clone()
    }

    /// Returns the number of bytes written.
    pub fn written(&self) -> usize {
        self.state.0.lock().unwrap().raw.len()
    }

    /// Returns the complete frames.
    pub fn frames(&self) -> Vec<TerminalFrame> {
        self.state.0.lock().unwrap().frames.clone()
    }

    /// Returns the effects other than drawing.
    pub fn effects(&self) -> TerminalEffects {
        self.state.0.lock().unwrap().parser.callbacks().effects.clone()
    }

    /// Resizes the terminal.
    pub fn resize(&self, columns: u16, rows: u16) {
        // The emulator first, so that output for the new size fits.
        let (height, width) = screen_size((columns, rows));
        self.state.0.lock().unwrap().parser.set_size(height, width);
        tcsetwinsize(&self.tty, window_size((columns, rows))).unwrap();
    }

    /// Returns the settings of the TTY, such as raw mode and echo.
    pub fn line_settings(&self) -> Termios {
        tcgetattr(&self.tty).unwrap()
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Returns true if the program has exited.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until the program has exited and all its output is read.
    #[track_caller]
    pub fn end(&mut self) -> ExitStatus {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "the program never exited\n{}", self.text());
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

/// Reads the output of the program until its end, and answers its queries.
fn read_output(mut screen: File, state: &(Mutex<TerminalState>, Condvar), stop: &AtomicBool) {
    let mut chunk = vec![0; 1 << 16];
    let mut rest = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let ready = {
            let mut ready = [PollFd::new(&screen, PollFlags::IN)];
            poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 50_000_000 })).unwrap_or(0)
        };
        if ready == 0 {
            continue;
        }
        let count = screen.read(&mut chunk).unwrap_or(0);
        let mut current = state.0.lock().unwrap();
        if count == 0 {
            current.is_closed = true;
            state.1.notify_all();
            return;
        }
        let current = &mut *current;
        current.raw.extend(&chunk[..count]);
        let before = current.parser.callbacks().frames;
        let visible = replace_lost_characters(&mut rest, &chunk[..count]);
        current.parser.process(&visible);
        let emulator = current.parser.callbacks_mut();
        let replies = std::mem::take(&mut emulator.replies);
        if emulator.frames > before {
            current.frames.push(TerminalFrame { at: Instant::now(), bytes: current.raw.len() });
        }
        let _ = screen.write_all(&replies);
        if std::mem::take(&mut emulator.background_queried) {
            answer_background_query(&screen, emulator.background_reply.clone());
        }
        state.1.notify_all();
    }
}

/// Answers a background query on a thread of its own, so that pauses do not block reading.
fn answer_background_query(screen: &File, chunks: Vec<(Duration, String)>) {
    let mut screen = screen.try_clone().unwrap();
    std::thread::spawn(move || {
        for (pause, chunk) in chunks {
            std::thread::sleep(pause);
            let _ = screen.write_all(chunk.as_bytes());
        }
    });
}

/// Replaces U+FFFD with a box, because the emulator does not draw it. Keeps an incomplete one in
/// `rest` until more bytes arrive.
fn replace_lost_characters(rest: &mut Vec<u8>, chunk: &[u8]) -> Vec<u8> {
    const REPLACEMENT_CHARACTER: [u8; 3] = [0xef, 0xbf, 0xbd];
    let mut bytes = std::mem::take(rest);
    bytes.extend(chunk);
    for at in 0..bytes.len().saturating_sub(2) {
        if bytes[at..at + 3] == REPLACEMENT_CHARACTER {
            bytes[at..at + 3].copy_from_slice("□".as_bytes());
        }
    }
    let open = [2, 1]
        .into_iter()
        .find(|&count| bytes.ends_with(&REPLACEMENT_CHARACTER[..count]))
        .unwrap_or(0);
    *rest = bytes.split_off(bytes.len() - open);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Terminal {
        TerminalCommand::new("sh", "/")
            .with(&["-c", script])
            .set("PATH", std::env::var_os("PATH").unwrap())
            .start()
    }

    #[test]
    fn output_is_shown_and_keys_arrive() {
        let mut terminal =
            shell("stty -echo; printf '\\033[2;3Hname? '; read name; echo hello $name");
        terminal.wait_text("  name?");
        terminal.press("you\r");
        terminal.wait_text("hello you");
        assert!(terminal.end().success());
        assert_eq!(terminal.effects(), TerminalEffects::default());
    }

    #[test]
    fn a_replacement_character_takes_its_column() {
        let mut rest = Vec::new();
        let mut visible = replace_lost_characters(&mut rest, b"a\xef");
        visible.extend(replace_lost_characters(&mut rest, b"\xbf"));
        visible.extend(replace_lost_characters(&mut rest, b"\xbdb\xefx"));
        assert_eq!((visible, rest), ([b"a", "□".as_bytes(), b"b\xefx"].concat(), Vec::new()));
    }

    #[test]
    fn a_resize_is_signaled() {
        let terminal = shell("trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done");
        terminal.wait_text("24 80");
        terminal.resize(40, 12);
        terminal.wait_text("12 40");
    }

    #[test]
    fn effects_other_than_drawing_are_recorded() {
        let mut terminal =
            shell("printf '\\033]2;T\\007\\033]52;c;aGk=\\007\\007\\033[?9999h\\033]9;x\\007'");
        terminal.end();
        let effects = terminal.effects();
        assert_eq!(
            (effects.titles, effects.clipboard, effects.bells),
            (vec!["T".into()], vec!["aGk=".into()], 1)
        );
        assert_eq!(effects.unknown, ["CSI ?[[9999]]h", "OSC 9;x"]);
    }

    #[test]
    fn a_frame_is_shown_only_when_complete() {
        let terminal =
            shell("printf '\\033[?2026hone'; sleep 0.4; printf ' two\\033[?2026l'; sleep 5");
        terminal.wait_for("one", |screen| {
            let text = screen.contents();
            assert!(!text.contains("one") || text.contains("two"), "an incomplete frame was shown");
            text.contains("two")
        });
        assert_eq!(terminal.frames().len(), 1);
    }

    #[test]
    fn a_cursor_position_query_is_answered() {
        let query = "stty raw -echo; printf '\\033[6n'; dd bs=1 count=6 2>/dev/null | od -An -c";
        shell(query).wait_text("033   [   1   ;   1   R");
    }
}
