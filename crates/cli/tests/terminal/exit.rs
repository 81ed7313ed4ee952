//! Every exit restores the terminal.

use crate::support::is_attached;
use crate::tui_driver::{CTRL_C, CTRL_D, open_tui, send_prompt, wait_until_ready};
use rustix::process::Signal;
use rustix::termios::LocalModes;
use windlass_testkit::terminal::Terminal;

#[track_caller]
fn assert_restored(terminal: &Terminal, exit: &str) {
    let line = terminal.line_settings();
    let cooked = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
    assert!(line.local_modes.contains(cooked), "{exit}: the line is still raw");
    terminal.look(|screen| {
        assert!(!screen.alternate_screen(), "{exit}: the alternate screen is still on");
        assert!(!screen.hide_cursor(), "{exit}: the cursor is hidden");
        assert!(!screen.bracketed_paste(), "{exit}: bracketed paste is still on");
        let mouse = format!("{:?}", screen.mouse_protocol_mode());
        assert_eq!(mouse, "None", "{exit}: the mouse is still reported");
    });
}

/// Asserts that every mode the emulator does not track was switched off as often as on.
#[track_caller]
fn assert_modes_balanced(terminal: &Terminal, exit: &str) {
    let raw = String::from_utf8_lossy(&terminal.raw()).into_owned();
    for (on, off) in [
        ("\x1b[>1u", "\x1b[<1u"),
        ("\x1b[>4;1m", "\x1b[>4m"),
        ("\x1b[?1004h", "\x1b[?1004l"),
        ("\x1b[?1006h", "\x1b[?1006l"),
        ("\x1b[22;0t", "\x1b[23;0t"),
    ] {
        let (switched_on, switched_off) = (raw.matches(on).count(), raw.matches(off).count());
        assert!(switched_on > 0, "{exit}: {on:?} was never written");
        assert_eq!(switched_on, switched_off, "{exit}: {on:?}");
    }
}

#[test]
fn a_killed_process_leaves_the_terminal_as_it_was() {
    let (_env, mut terminal) = open_tui(&["say One two \ngate never"], "");
    send_prompt(&terminal, "count");
    terminal.wait_text("One two");
    terminal.signal(Signal::KILL);
    terminal.end();
    terminal.wait_for("the main screen", |screen| !screen.alternate_screen());
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
    let is_raw = |terminal: &Terminal| {
        !terminal.line_settings().local_modes.contains(LocalModes::ICANON | LocalModes::ISIG)
    };
    while is_raw(&terminal) && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_restored(&terminal, "SIGKILL");
    assert_modes_balanced(&terminal, "SIGKILL");
}

#[test]
fn every_exit_restores_the_terminal() {
    type Exit = (&'static str, fn(&Terminal));
    let exits: [Exit; 5] = [
        ("ctrl+d", |terminal| terminal.press(CTRL_D)),
        ("/quit", |terminal| send_prompt(terminal, "/quit")),
        ("ctrl+c twice", |terminal| {
            terminal.press(CTRL_C);
            std::thread::sleep(std::time::Duration::from_millis(80));
            terminal.press(CTRL_C);
        }),
        ("SIGTERM", |terminal| terminal.signal(Signal::TERM)),
        ("SIGHUP", |terminal| terminal.signal(Signal::HUP)),
    ];
    for (name, leave) in exits {
        let (_env, mut terminal) = open_tui(&[], "");
        assert!(terminal.look(|screen| screen.alternate_screen()), "{name}");
        leave(&terminal);
        terminal.end();
        assert_restored(&terminal, name);
        assert_modes_balanced(&terminal, name);
    }
}

#[test]
fn an_exit_during_a_response_keeps_the_session_and_says_how_to_continue() {
    if is_attached() {
        // The response goes on in the server.
        return;
    }
    let (env, mut terminal) = open_tui(&["say One two \ngate never", "say Back."], "");
    send_prompt(&terminal, "count");
    terminal.wait_text("One two");
    terminal.press(CTRL_D);
    terminal.end();
    assert_restored(&terminal, "during a response");
    assert!(terminal.text().contains("windlass --continue"), "{}", terminal.text());
    let terminal = env.terminal().with(&["--continue"]).start();
    wait_until_ready(&terminal);
    terminal.wait_text("count");
    terminal.wait_text("/retry continues");
}

#[test]
fn without_a_terminal_the_error_points_to_run() {
    let env = crate::support::TestEnv::new(&[], "");
    let (code, _, stderr) = env.run(&[]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("windlass run"), "{stderr}");
}

/// Closes the terminal of a program and prints whether the program ends.
const CLOSE_TERMINAL: &str = r#"
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
fn the_process_ends_when_its_terminal_is_closed() {
    let env = crate::support::TestEnv::new(&[], "");
    let mut python = env.wrapped(&["python3", "-c", CLOSE_TERMINAL], &[]);
    python.env("TERM", "xterm-256color");
    let output = python.output().unwrap();
    let result = String::from_utf8_lossy(&output.stderr);
    assert_eq!(result.trim(), "ended");
}
