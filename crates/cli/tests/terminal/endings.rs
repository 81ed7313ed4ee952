//! However it ends, the terminal is left as it was found.

use crate::place::{CTRL_C, CTRL_D, open, ready, say};
use rustix::process::Signal;
use rustix::termios::LocalModes;
use windlass_testkit::terminal::Terminal;

#[track_caller]
fn is_restored(terminal: &Terminal, why: &str) {
    let line = terminal.line_settings();
    let cooked = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
    assert!(line.local_modes.contains(cooked), "{why}: the line is still raw");
    terminal.look(|screen| {
        assert!(!screen.alternate_screen(), "{why}: it is still on the other screen");
        assert!(!screen.hide_cursor(), "{why}: the cursor is hidden");
        assert!(!screen.bracketed_paste(), "{why}: pastes are still marked");
    });
}

#[test]
fn the_terminal_is_given_back_by_every_way_out() {
    type Way = (&'static str, fn(&Terminal));
    let ways: [Way; 5] = [
        ("ctrl+d", |terminal| terminal.press(CTRL_D)),
        ("/quit", |terminal| say(terminal, "/quit")),
        ("ctrl+c twice", |terminal| {
            terminal.press(CTRL_C);
            std::thread::sleep(std::time::Duration::from_millis(80));
            terminal.press(CTRL_C);
        }),
        ("SIGTERM", |terminal| terminal.signal(Signal::TERM)),
        ("SIGHUP", |terminal| terminal.signal(Signal::HUP)),
    ];
    for (name, leave) in ways {
        let (_yard, mut terminal) = open(&[], "");
        assert!(terminal.look(|screen| screen.alternate_screen()), "{name}");
        leave(&terminal);
        terminal.end();
        is_restored(&terminal, name);
    }
}

#[test]
fn leaving_in_mid_sentence_keeps_the_session_and_says_how_to_come_back() {
    let (yard, mut terminal) = open(&["say One two \ngate never", "say Back."], "");
    say(&terminal, "count");
    terminal.wait_text("One two");
    terminal.press(CTRL_D);
    terminal.end();
    is_restored(&terminal, "in mid sentence");
    assert!(terminal.text().contains("windlass --continue"), "{}", terminal.text());
    let terminal = yard.seat().with(&["--continue"]).start();
    ready(&terminal);
    terminal.wait_text("One two");
}

#[test]
fn without_a_terminal_it_says_what_to_do_instead() {
    let yard = crate::yard::Yard::new(&[], "");
    let (code, _, told) = yard.run(&[]);
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("windlass run"), "{told}");
}

/// A terminal that is closed under a program, and whether that ends.
const CLOSES: &str = r#"
import fcntl, os, pty, struct, sys, termios, time
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
seen = b""
while b"Windlass" not in seen:
    seen += os.read(terminal, 65536)
os.close(terminal)
for _ in range(100):
    ended, _ = os.waitpid(child, os.WNOHANG)
    if ended:
        sys.exit("ended")
    time.sleep(0.1)
os.kill(child, 9)
sys.exit("still there")
"#;

#[test]
fn a_terminal_that_is_closed_leaves_nothing_behind() {
    let yard = crate::yard::Yard::new(&[], "");
    let mut python = yard.wrapped(&["python3", "-c", CLOSES], &[]);
    python.env("TERM", "xterm-256color");
    let told = python.output().unwrap();
    let told = String::from_utf8_lossy(&told.stderr);
    assert_eq!(told.trim(), "ended");
}
