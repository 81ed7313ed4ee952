//! What is read: finding in it, and pictures in it.

use crate::place::{CTRL_F, ENTER, ESC, open, ready, say};
use base64::Engine as _;
use serde_json::json;
use windlass_testkit::terminal::{Cell, Color, Screen};

#[test]
fn a_text_is_found_far_up_and_one_stays_there() {
    let line = |number: u32| match number {
        20 => "Here the Heron sleeps.\\n\\n".to_owned(),
        _ => format!("Line {number} of the answer.\\n\\n"),
    };
    let long = format!("say {}", (1..400).map(line).collect::<String>());
    let (yard, terminal) = open(&[&long, "say No heron here."], "");
    say(&terminal, "go");
    terminal.wait_text("Line 399");
    say(&terminal, "and now?");
    terminal.wait_text("No heron here.");
    terminal.press(CTRL_F);
    terminal.wait_text("type what to find");
    terminal.press("heron");
    terminal.wait_text("2 of 2");
    terminal.press(ENTER);
    terminal.wait_text("Here the Heron sleeps.");
    terminal.wait_text("1 of 2");
    assert_eq!(terminal.look(marked), "Heron");
    // What is typed narrows, and none of it went into the prompt.
    terminal.press("s");
    terminal.wait_text("nothing found");
    terminal.press(ESC);
    terminal.wait_gone("nothing found");
    assert!(terminal.text().contains("Here the Heron sleeps."), "{}", terminal.text());
    assert_eq!(yard.model.requests().len(), 2, "a search is nothing to a model");
    terminal.press("on");
    terminal.wait_text("› on");
}

fn cells(screen: &Screen) -> impl Iterator<Item = &Cell> {
    let (rows, columns) = screen.size();
    let row = move |row: u16| (0..columns.get()).filter_map(move |column| screen.cell(row, column));
    (0..rows.get()).flat_map(row)
}

/// What is drawn in reverse.
fn marked(screen: &Screen) -> String {
    cells(screen).filter(|cell| cell.inverse()).map(|cell| cell.contents().to_owned()).collect()
}

/// 64 by 32 pixels, red on the left and blue on the right.
const FLAG: &str = "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAgCAIAAAAt/+nTAAAAOklEQVR42u3PMQ0AAAgDMKRMCv4vJKGBg69JDbQmeZWeVyUgICAgICAgICAgICAgICAgICAgICAgcLVzggCIvZqtZAAAAABJRU5ErkJggg==";

#[test]
fn a_picture_that_was_read_is_seen_or_described() {
    let read = format!("call read {}", json!({"filePath": "flag.png"}));
    let yard = crate::yard::Yard::new(&[&read, "say A flag."], "");
    let flag = base64::engine::general_purpose::STANDARD.decode(FLAG).unwrap();
    std::fs::write(yard.root().join("flag.png"), flag).unwrap();
    let terminal = yard.seat().set("COLORTERM", "truecolor").start();
    ready(&terminal);
    say(&terminal, "what is on it?");
    terminal.wait_text("A flag.");
    terminal.wait_text("picture, 64×32 PNG, 1 kB");
    terminal.wait_for("both colours", |screen| {
        let colours = painted(screen);
        let seen = |red: std::ops::Range<u8>, blue: std::ops::Range<u8>| {
            colours.iter().any(|(r, b)| red.contains(r) && blue.contains(b))
        };
        seen(0xc8..0xd8, 0x18..0x28) && seen(0x18..0x28, 0xc8..0xd8)
    });
    drop(terminal);
    let plain = yard.seat().set("TERM", "xterm").with(&["--continue"]).start();
    plain.wait_text("picture, 64×32 PNG, 1 kB");
    assert_eq!(plain.look(painted), []);
}

/// Red and blue of the half blocks on the screen.
fn painted(screen: &Screen) -> Vec<(u8, u8)> {
    let colour = |cell: &Cell| match cell.fgcolor() {
        Color::Rgb(red, _, blue) => (red, blue),
        other => panic!("{other:?}"),
    };
    cells(screen).filter(|cell| cell.contents() == "▀").map(colour).collect()
}
