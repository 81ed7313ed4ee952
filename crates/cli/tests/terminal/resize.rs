//! Resizes, small terminals, and terminals without colors.

use crate::support::TestEnv;
use crate::tui_driver::{QUIET_TIME, send_prompt, wait_until_ready};
use rustix::process::Signal;
use windlass_testkit::terminal::{Screen, Terminal};

const MARKDOWN_REPLY: &str = "say # A tale\\n\\nIt is **long**, 語 and 🦀, and `wraps` in every width there is.\
    \\n\\n- one\\n- two\\n\\n```rust\\nfn main() { println!(\"hello\"); }\\n```\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |\\n\
    \\nThe end.";

/// Checks that the screen equals a complete redraw.
fn assert_equals_redraw(terminal: &Terminal, when: &str) {
    terminal.settle(QUIET_TIME);
    let before = terminal.text();
    terminal.press("\x0c");
    terminal.settle(QUIET_TIME);
    assert_eq!(before, terminal.text(), "{when}: the screen differs from a redraw");
    let has_query = terminal.raw().windows(4).any(|bytes| bytes == b"\x1b[6n");
    assert!(!has_query, "{when}: the cursor was queried, which not every terminal answers");
}

#[test]
fn resizes_during_a_response_leave_a_correct_screen() {
    let words = "word ".repeat(40);
    let reply =
        format!("{}\ngate end\nsay The end.", format!("say {words}\nstall 20\n").repeat(25));
    let env = TestEnv::new(&[&reply], "");
    let terminal = env.terminal().start();
    wait_until_ready(&terminal);
    send_prompt(&terminal, "go");
    let mut random: u32 = 12345;
    for _ in 0..40 {
        random = random.wrapping_mul(1_103_515_245).wrapping_add(12345);
        let (columns, rows) = (20 + (random >> 16) % 120, 5 + (random >> 8) % 45);
        terminal.resize(columns as u16, rows as u16);
        std::thread::sleep(std::time::Duration::from_millis(15));
    }
    env.model.wait_at_gate("end");
    env.model.open_gate("end");
    terminal.resize(80, 24);
    terminal.wait_text("The end.");
    assert_equals_redraw(&terminal, "after many resizes");
    for size in [(40, 12), (120, 40), (20, 6), (80, 24)] {
        terminal.resize(size.0, size.1);
        assert_equals_redraw(&terminal, &format!("in {size:?}"));
    }
}

/// A key and a resize at the same time must both be handled at once.
#[test]
fn a_key_at_the_time_of_a_resize_is_not_lost() {
    let env = TestEnv::new(&[], "");
    let terminal = env.terminal().start();
    wait_until_ready(&terminal);
    let letters = |screen: &Screen| screen.contents().matches('ж').count();
    for round in 1..=300 {
        terminal.resize(90 + (round % 2) as u16, 24);
        let pause = std::time::Instant::now();
        while pause.elapsed() < std::time::Duration::from_micros(round as u64 % 60 * 5) {}
        terminal.press("ж");
        terminal.wait_for(&format!("letter {round}"), |screen| letters(screen) == round);
    }
}

#[test]
fn a_resize_at_the_time_of_a_key_is_not_lost() {
    let env = TestEnv::new(&[], "");
    let terminal = env.terminal().start();
    wait_until_ready(&terminal);
    for columns in [60, 100, 50, 80] {
        // Both arrive while the process is stopped, and it reads the key first.
        terminal.signal(Signal::STOP);
        terminal.settle(QUIET_TIME);
        terminal.press("x");
        terminal.resize(columns, 24);
        terminal.signal(Signal::CONT);
        terminal.wait_for(&format!("a rule of {columns}"), |screen| {
            screen.contents().lines().any(|line| line == "─".repeat(columns.into()))
        });
    }
}

#[test]
fn more_keys_than_one_read_returns_all_arrive() {
    let env = TestEnv::new(&[], "");
    let terminal = env.terminal().sized(200, 50).start();
    wait_until_ready(&terminal);
    terminal.press(&"ж".repeat(1500));
    terminal.wait_for("1,500 letters", |screen| screen.contents().matches('ж').count() == 1500);
}

#[test]
fn rows_fit_into_small_terminals() {
    let env = TestEnv::new(&[MARKDOWN_REPLY], "");
    let terminal = env.terminal().sized(40, 12).start();
    crate::tui_driver::wait_until_ready(&terminal);
    send_prompt(&terminal, "tell it");
    terminal.wait_text("The end.");
    terminal.settle(QUIET_TIME);
    for size in [(40, 24), (40, 8), (12, 4), (1, 1), (3, 2), (40, 24)] {
        terminal.resize(size.0, size.1);
        terminal.settle(QUIET_TIME);
    }
    terminal.wait_text("The end.");
    assert!(
        terminal.look(|screen| (0..24).all(|row| !screen.row_wrapped(row))),
        "a row was wrapped"
    );
}

#[test]
fn no_color_disables_all_colors() {
    let env = TestEnv::new(&[MARKDOWN_REPLY], "");
    let terminal = env.terminal().set("NO_COLOR", "1").start();
    wait_until_ready(&terminal);
    send_prompt(&terminal, "tell it");
    terminal.wait_text("The end.");
    send_prompt(&terminal, "/help");
    terminal.settle(QUIET_TIME);
    let raw = String::from_utf8_lossy(&terminal.raw()).into_owned();
    for sequence in raw.split("\x1b[").skip(1) {
        let Some((numbers, _)) = sequence.split_once('m') else { continue };
        if !numbers.bytes().all(|byte| byte.is_ascii_digit() || byte == b';' || byte == b':') {
            continue;
        }
        let colors = numbers.split([';', ':']).filter_map(|n| n.parse::<u16>().ok());
        let colors: Vec<u16> =
            colors.filter(|n| matches!(n, 30..=38 | 40..=48 | 58 | 90..=107)).collect();
        assert!(colors.is_empty(), "a color was written: {numbers}");
    }
}

/// Returns the row with a text, and whether the first character of the text is bold, underlined or
/// reversed.
fn find_text(terminal: &windlass_testkit::terminal::Terminal, text: &str) -> (String, bool) {
    terminal.look(|screen| {
        let (rows, columns) = screen.size();
        for row in 0..rows.get() {
            let line: String = (0..columns.get())
                .map(|column| {
                    let cell = screen.cell(row, column);
                    let contents = cell.map(|cell| cell.contents().to_owned());
                    contents.filter(|it| !it.is_empty()).unwrap_or_else(|| " ".to_owned())
                })
                .collect();
            let Some(offset) = line.find(text) else { continue };
            let column = line[..offset].chars().count() as u16;
            let cell = screen.cell(row, column).unwrap();
            return (line, cell.bold() || cell.inverse() || cell.underline());
        }
        panic!("{text} is not on the screen: {}", screen.contents());
    })
}

#[test]
fn without_colors_marks_and_bold_text_keep_the_hierarchy() {
    let run = r#"call bash {"command": "echo broken; false", "description": "Fail"}"#;
    let edit = r#"call write {"filePath": "README.md", "content": "A large project.\n"}"#;
    let settings = r#""permission": {"bash": "allow"}"#;
    let read = r#"call read {"filePath": "README.md"}"#;
    let env = TestEnv::new(&[run, read, edit, "say Over."], settings);
    let terminal = env.terminal().set("NO_COLOR", "1").sized(80, 40).start();
    wait_until_ready(&terminal);
    send_prompt(&terminal, "go");
    terminal.wait_text("1. Yes, once (y)");
    std::thread::sleep(crate::tui_driver::QUESTION_DELAY);
    // A failed call.
    let (row, is_marked) = find_text(&terminal, "✗ ");
    assert!(row.contains("exit 1") && is_marked, "{row}");
    // The title of a question stands in a rule.
    let (row, is_marked) = find_text(&terminal, "Edit a file");
    assert!(row.contains("── ") && is_marked, "{row}");
    // The lines of a diff have signs.
    let (removed, _) = find_text(&terminal, "A small project.");
    let (added, _) = find_text(&terminal, "A large project.");
    assert!(removed.contains(" - ") && added.contains(" + "), "{removed}\n{added}");
    // A selected row has a pointer.
    terminal.press("\x1b[B");
    terminal.wait_text("› 1. Yes, once (y)");
    let (row, is_marked) = find_text(&terminal, "› 1.");
    assert!(is_marked, "{row}");
    terminal.press("y");
    terminal.wait_text("Over.");
}

#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let env = TestEnv::new(&[MARKDOWN_REPLY], "");
    for command in [env.terminal().set("TERM", "dumb"), env.terminal().with(&["--linear"])] {
        let terminal = command.start();
        terminal.wait_text("scripted/m");
        terminal.press("tell it\r");
        terminal.wait_text("The end.");
        let raw = terminal.raw();
        assert!(!raw.contains(&0x1b), "{}", String::from_utf8_lossy(&raw));
    }
}
