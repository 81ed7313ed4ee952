//! Sizes and colours: what is on the screen fits it, whatever it was before.

use crate::place::{REST, ready, say};
use crate::yard::Yard;
use rustix::process::Signal;
use windlass_testkit::terminal::{Screen, Terminal};

const TALE: &str = "say # A tale\\n\\nIt is **long**, 語 and 🦀, and `wraps` in every width there is.\
    \\n\\n- one\\n- two\\n\\n```rust\\nfn main() { println!(\"hello\"); }\\n```\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |\\n\
    \\nThe end.";

/// The screen as it is, and as it is when everything is drawn anew.
fn compare(terminal: &Terminal, when: &str) {
    terminal.settle(REST);
    let before = terminal.text();
    terminal.press("\x0c");
    terminal.settle(REST);
    assert_eq!(before, terminal.text(), "{when}: the screen was not what a fresh one is");
    let asks = terminal.raw().windows(4).any(|bytes| bytes == b"\x1b[6n");
    assert!(!asks, "{when}: it asks for the cursor, and not every terminal answers");
}

#[test]
fn sizes_that_change_while_the_model_speaks_leave_no_trace() {
    let words = "word ".repeat(40);
    let reply =
        format!("{}\ngate end\nsay The end.", format!("say {words}\nstall 20\n").repeat(25));
    let yard = Yard::new(&[&reply], "");
    let terminal = yard.seat().start();
    ready(&terminal);
    say(&terminal, "go");
    let mut chance: u32 = 12345;
    for _ in 0..40 {
        chance = chance.wrapping_mul(1_103_515_245).wrapping_add(12345);
        let (columns, rows) = (20 + (chance >> 16) % 120, 5 + (chance >> 8) % 45);
        terminal.resize(columns as u16, rows as u16);
        std::thread::sleep(std::time::Duration::from_millis(15));
    }
    yard.model.wait_at_gate("end");
    yard.model.open_gate("end");
    terminal.resize(80, 24);
    terminal.wait_text("The end.");
    compare(&terminal, "after a storm");
    for size in [(40, 12), (120, 40), (20, 6), (80, 24)] {
        terminal.resize(size.0, size.1);
        compare(&terminal, &format!("in {size:?}"));
    }
}

/// Keys and sizes that come together: neither waits for the next of its kind.
#[test]
fn a_key_that_comes_with_a_new_size_is_not_lost() {
    let yard = Yard::new(&[], "");
    let terminal = yard.seat().start();
    ready(&terminal);
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
fn a_size_that_comes_with_a_key_is_seen() {
    let yard = Yard::new(&[], "");
    let terminal = yard.seat().start();
    ready(&terminal);
    for columns in [60, 100, 50, 80] {
        // While it stands still both come to it, and it finds the key first.
        terminal.signal(Signal::STOP);
        terminal.settle(REST);
        terminal.press("x");
        terminal.resize(columns, 24);
        terminal.signal(Signal::CONT);
        terminal.wait_for(&format!("a rule of {columns}"), |screen| {
            screen.contents().lines().any(|line| line == "─".repeat(columns.into()))
        });
    }
}

#[test]
fn more_keys_than_are_read_at_a_time_all_arrive() {
    let yard = Yard::new(&[], "");
    let terminal = yard.seat().sized(200, 50).start();
    ready(&terminal);
    terminal.press(&"ж".repeat(1500));
    terminal.wait_for("1,500 letters", |screen| screen.contents().matches('ж').count() == 1500);
}

#[test]
fn every_row_fits_in_forty_columns_and_in_few_rows() {
    let yard = Yard::new(&[TALE], "");
    let terminal = yard.seat().sized(40, 12).start();
    crate::place::ready(&terminal);
    say(&terminal, "tell it");
    terminal.wait_text("The end.");
    terminal.settle(REST);
    for size in [(40, 24), (40, 8), (12, 4), (1, 1), (3, 2), (40, 24)] {
        terminal.resize(size.0, size.1);
        terminal.settle(REST);
    }
    terminal.wait_text("The end.");
    assert!(terminal.look(|screen| (0..24).all(|row| !screen.row_wrapped(row))), "a row ran over");
}

#[test]
fn without_colours_none_is_written() {
    let yard = Yard::new(&[TALE], "");
    let terminal = yard.seat().set("NO_COLOR", "1").start();
    ready(&terminal);
    say(&terminal, "tell it");
    terminal.wait_text("The end.");
    say(&terminal, "/help");
    terminal.settle(REST);
    let raw = String::from_utf8_lossy(&terminal.raw()).into_owned();
    for sequence in raw.split("\x1b[").skip(1) {
        let Some((numbers, _)) = sequence.split_once('m') else { continue };
        if !numbers.bytes().all(|byte| byte.is_ascii_digit() || byte == b';' || byte == b':') {
            continue;
        }
        let coloured = numbers.split([';', ':']).filter_map(|n| n.parse::<u16>().ok());
        let coloured: Vec<u16> =
            coloured.filter(|n| matches!(n, 30..=38 | 40..=48 | 58 | 90..=107)).collect();
        assert!(coloured.is_empty(), "a colour is written: {numbers}");
    }
}

#[test]
fn a_terminal_that_can_nothing_is_given_plain_lines() {
    let yard = Yard::new(&[TALE], "");
    for seat in [yard.seat().set("TERM", "dumb"), yard.seat().with(&["--linear"])] {
        let terminal = seat.start();
        terminal.wait_text("scripted/m");
        terminal.press("tell it\r");
        terminal.wait_text("The end.");
        let raw = terminal.raw();
        assert!(!raw.contains(&0x1b), "{}", String::from_utf8_lossy(&raw));
    }
}
