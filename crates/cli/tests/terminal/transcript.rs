//! The transcript: search, and images.

use crate::tui_driver::{CTRL_F, ENTER, ESC, open_tui, send_prompt, wait_until_ready};
use base64::Engine as _;
use serde_json::json;
use windlass_testkit::terminal::{Cell, Color, Screen};

#[test]
fn search_finds_text_far_up_and_keeps_the_position() {
    let line = |number: u32| match number {
        20 => "Here the Heron sleeps.\\n\\n".to_owned(),
        _ => format!("Line {number} of the answer.\\n\\n"),
    };
    let long = format!("say {}", (1..400).map(line).collect::<String>());
    let (env, terminal) = open_tui(&[&long, "say No heron here."], "");
    send_prompt(&terminal, "go");
    terminal.wait_text("Line 399");
    send_prompt(&terminal, "and now?");
    terminal.wait_text("No heron here.");
    terminal.press(CTRL_F);
    terminal.wait_text("type to search");
    terminal.press("heron");
    terminal.wait_text("2 of 2");
    terminal.press(ENTER);
    terminal.wait_text("Here the Heron sleeps.");
    terminal.wait_text("1 of 2");
    assert_eq!(terminal.look(inverse_text), "Heron");
    // More text narrows the search, and none of it goes into the prompt.
    terminal.press("s");
    terminal.wait_text("no matches");
    terminal.press(ESC);
    terminal.wait_gone("no matches");
    assert!(terminal.text().contains("Here the Heron sleeps."), "{}", terminal.text());
    assert_eq!(env.model.requests().len(), 2, "the search was sent to the model");
    terminal.press("on");
    terminal.wait_text("› on");
}

fn cells(screen: &Screen) -> impl Iterator<Item = &Cell> {
    let (rows, columns) = screen.size();
    let row = move |row: u16| (0..columns.get()).filter_map(move |column| screen.cell(row, column));
    (0..rows.get()).flat_map(row)
}

/// Returns the text in inverse colors.
fn inverse_text(screen: &Screen) -> String {
    cells(screen).filter(|cell| cell.inverse()).map(|cell| cell.contents().to_owned()).collect()
}

/// 64 by 32 pixels, red on the left and blue on the right.
pub const FLAG_PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAgCAIAAAAt/+nTAAAAOklEQVR42u3PMQ0AAAgDMKRMCv4vJKGBg69JDbQmeZWeVyUgICAgICAgICAgICAgICAgICAgICAgcLVzggCIvZqtZAAAAABJRU5ErkJggg==";

#[test]
fn an_image_that_was_read_is_drawn_or_described() {
    let read = format!("call read {}", json!({"filePath": "flag.png"}));
    let env = crate::support::TestEnv::new(&[&read, "say A flag."], "");
    let flag = base64::engine::general_purpose::STANDARD.decode(FLAG_PNG).unwrap();
    std::fs::write(env.root().join("flag.png"), flag).unwrap();
    let terminal = env.terminal().set("COLORTERM", "truecolor").start();
    wait_until_ready(&terminal);
    send_prompt(&terminal, "what is on it?");
    terminal.wait_text("A flag.");
    terminal.wait_text("image, 64×32 PNG, 1 kB");
    terminal.wait_for("both colors", |screen| {
        let colors = half_block_colors(screen);
        let has_color = |red: std::ops::Range<u8>, blue: std::ops::Range<u8>| {
            colors.iter().any(|(r, b)| red.contains(r) && blue.contains(b))
        };
        has_color(0xc8..0xd8, 0x18..0x28) && has_color(0x18..0x28, 0xc8..0xd8)
    });
    drop(terminal);
    let plain = env.terminal().set("TERM", "xterm").with(&["--continue"]).start();
    plain.wait_text("image, 64×32 PNG, 1 kB");
    assert_eq!(plain.look(half_block_colors), []);
}

/// Returns the red and blue of the half blocks on the screen.
fn half_block_colors(screen: &Screen) -> Vec<(u8, u8)> {
    let color = |cell: &Cell| match cell.fgcolor() {
        Color::Rgb(red, _, blue) => (red, blue),
        other => panic!("{other:?}"),
    };
    cells(screen).filter(|cell| cell.contents() == "▀").map(color).collect()
}
