//! What gets onto the screen, and what does not.

use super::*;
use proptest::prelude::*;

fn row(text: &str) -> Row {
    Row::of(Style::default(), text)
}

#[test]
fn control_characters_become_their_signs() {
    assert_eq!(harmless("\x1b[31mred\x1b[0m"), "␛[31mred␛[0m");
    assert_eq!(harmless("a\rb\nc\x07\x08\x7f"), "a␍b␊c␇␈␡");
    assert_eq!(harmless("\r\n"), "␍␊");
    assert_eq!(harmless("\u{9b}31m\u{9d}0;x\u{9c}"), "\u{fffd}31m\u{fffd}0;x\u{fffd}");
}

#[test]
fn what_turns_a_text_around_or_hides_in_it_is_shown_as_lost() {
    assert_eq!(harmless("a\u{202e}b\u{2066}c\u{ad}d"), "a\u{fffd}b\u{fffd}c\u{fffd}d");
    assert_eq!(harmless("a\u{200b}b\u{200d}c\u{feff}"), "a\u{fffd}b\u{fffd}c\u{fffd}");
    assert_eq!(harmless("x\u{e0041}\u{e0042}"), "x\u{fffd}\u{fffd}");
    assert_eq!(harmless("x\u{fe0f}\u{fe01}"), "x\u{fffd}\u{fffd}");
    assert_eq!(harmless("\u{3164}\u{115f}\u{ffa0}"), "\u{fffd}\u{fffd}\u{fffd}");
}

#[test]
fn a_tab_leads_to_the_next_multiple_of_four() {
    assert_eq!(harmless("\ta\tbcd\te"), "    a   bcd e");
    assert_eq!(row("ab").and(Style::default(), "\tc").text(), "ab  c");
    assert_eq!(harmless("漢\tc"), "漢  c");
}

#[test]
fn what_people_write_stays_as_it_is() {
    for (text, columns) in [
        ("plain text", 10),
        ("e\u{301}a\u{308}", 2),
        ("漢字かな", 8),
        ("한글", 4),
        ("\u{1112}\u{1161}\u{11ab}", 2),
        ("ไทยที่", 4),
        ("नमस्ते", 4),
        ("שָׁלוֹם", 4),
        ("مرحبا", 5),
        ("🙂🇩🇪", 4),
        ("\u{e0b0}", 1),
        ("… ─ │ ☐ ☑ → ✓", 13),
    ] {
        assert_eq!(harmless(text), text);
        assert_eq!(width(text), columns, "{text}");
        assert_eq!(row(text).width(), columns, "{text}");
    }
}

#[test]
fn emoji_are_written_so_that_all_terminals_agree_on_their_width() {
    for (text, shown, columns) in [
        ("❤\u{fe0f}", "❤", 1),
        ("⌚\u{fe0e}", "⌚", 2),
        ("1\u{fe0f}\u{20e3}", "1\u{20e3}", 1),
        ("👍🏽", "👍", 2),
        ("👩\u{200d}💻", "👩💻", 4),
        ("👩🏽\u{200d}❤\u{fe0f}\u{200d}👩", "👩❤👩", 5),
        ("🏽", "\u{fffd}", 1),
        ("ｶﾞﾊﾟ", "ｶ\u{3099}ﾊ\u{309a}", 2),
    ] {
        assert_eq!(harmless(text), shown);
        assert_eq!(row(text).width(), columns, "{text}");
    }
}

#[test]
fn a_flood_of_marks_stays_in_its_cell() {
    let flood = format!("e{}x", "\u{301}".repeat(1000));
    assert_eq!(harmless(&flood), format!("e{}\u{fffd}x", "\u{301}".repeat(4)));
    assert_eq!(harmless("\u{301}x"), "\u{fffd}x");
    assert_eq!(harmless(&"\u{1100}".repeat(50)), "\u{fffd}");
}

#[test]
fn a_row_draws_nothing_beyond_its_area() {
    let symbols = |buffer: &Buffer, y: u16| -> String {
        (0..8).map(|x| buffer[(x, y)].symbol().to_owned()).collect()
    };
    let mut buffer = Buffer::with_lines(["........", "........"]);
    row("ab漢字cd").draw(Rect::new(1, 0, 5, 2), &mut buffer);
    row("zz").draw(Rect::new(7, 1, 9, 9), &mut buffer);
    row("zz").draw(Rect::new(70, 10, 9, 9), &mut buffer);
    assert_eq!(symbols(&buffer, 0), ".ab漢 ...");
    assert_eq!(symbols(&buffer, 1), ".......z");
}

#[test]
fn a_part_of_a_row_keeps_its_styles() {
    let bold = Style::default().bold();
    let whole = row("ab").and(bold, "cd").and(Style::default(), "ef");
    let pieces = |row: &Row| row.pieces().map(|(_, text)| text.to_owned()).collect::<Vec<_>>();
    assert_eq!(pieces(&whole.part(1..5)), ["b", "cd", "e"]);
    assert_eq!(whole.part(1..5).width(), 4);
    assert_eq!(whole.style_at(2), bold);
    let mut twice = whole.clone();
    twice.extend(&whole);
    assert_eq!(pieces(&twice), ["ab", "cd", "efab", "cd", "ef"]);
    assert_eq!(twice.width(), 12);
}

proptest! {
    #[test]
    fn nothing_that_steers_a_terminal_passes(text in any::<String>(), more in any::<String>()) {
        let shown = harmless(&text);
        prop_assert!(!shown.chars().any(|sign| sign.is_control() || hides(sign)));
        prop_assert_eq!(&harmless(&shown), &shown, "twice is once");
        let row = row(&text).and(Style::default(), &more);
        prop_assert_eq!(row.width(), measure(row.as_str()));
        prop_assert_eq!(row.width(), apart(row.as_str()), "every terminal agrees");
    }

    #[test]
    fn a_row_is_as_wide_as_what_is_drawn(text in "[\\x00-\\x20a-z漢🙂\u{301}\u{200d}\u{fe0f}👍🏽🇩🇪ﾞᄀक्ष]{0,30}") {
        let row = row(&text);
        let mut buffer = Buffer::empty(Rect::new(0, 0, 400, 1));
        let (end, _) = buffer.set_stringn(0, 0, row.as_str(), 400, Style::default());
        prop_assert_eq!(usize::from(end), row.width());
    }
}
