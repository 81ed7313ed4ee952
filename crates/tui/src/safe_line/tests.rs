//! Tests of `SafeLine`: sanitizing, width and drawing.

use super::*;
use proptest::prelude::*;

fn row(text: &str) -> SafeLine {
    SafeLine::styled(Style::default(), text)
}

#[test]
fn control_characters_become_visible_symbols() {
    assert_eq!(sanitize("\x1b[31mred\x1b[0m"), "␛[31mred␛[0m");
    assert_eq!(sanitize("a\rb\nc\x07\x08\x7f"), "a␍b␊c␇␈␡");
    assert_eq!(sanitize("\r\n"), "␍␊");
    assert_eq!(sanitize("\u{9b}31m\u{9d}0;x\u{9c}"), "\u{fffd}31m\u{fffd}0;x\u{fffd}");
}

#[test]
fn bidi_and_hidden_characters_become_replacement_characters() {
    assert_eq!(sanitize("a\u{202e}b\u{2066}c\u{ad}d"), "a\u{fffd}b\u{fffd}c\u{fffd}d");
    assert_eq!(sanitize("a\u{200b}b\u{200d}c\u{feff}"), "a\u{fffd}b\u{fffd}c\u{fffd}");
    assert_eq!(sanitize("x\u{e0041}\u{e0042}"), "x\u{fffd}\u{fffd}");
    assert_eq!(sanitize("x\u{fe0f}\u{fe01}"), "x\u{fffd}\u{fffd}");
    assert_eq!(sanitize("\u{3164}\u{115f}\u{ffa0}"), "\u{fffd}\u{fffd}\u{fffd}");
}

#[test]
fn a_tab_fills_to_the_next_multiple_of_four() {
    assert_eq!(sanitize("\ta\tbcd\te"), "    a   bcd e");
    assert_eq!(row("ab").with_text(Style::default(), "\tc").text(), "ab  c");
    assert_eq!(sanitize("漢\tc"), "漢  c");
}

#[test]
fn ordinary_text_stays_unchanged() {
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
        assert_eq!(sanitize(text), text);
        assert_eq!(display_width(text), columns, "{text}");
        assert_eq!(row(text).width(), columns, "{text}");
    }
}

#[test]
fn emoji_are_simplified_so_that_terminals_agree_on_their_width() {
    for (text, expected, columns) in [
        ("❤\u{fe0f}", "❤", 1),
        ("⌚\u{fe0e}", "⌚", 2),
        ("1\u{fe0f}\u{20e3}", "1\u{20e3}", 1),
        ("👍🏽", "👍", 2),
        ("👩\u{200d}💻", "👩💻", 4),
        ("👩🏽\u{200d}❤\u{fe0f}\u{200d}👩", "👩❤👩", 5),
        ("🏽", "\u{fffd}", 1),
        ("ｶﾞﾊﾟ", "ｶ\u{3099}ﾊ\u{309a}", 2),
    ] {
        assert_eq!(sanitize(text), expected);
        assert_eq!(row(text).width(), columns, "{text}");
    }
}

#[test]
fn too_many_combining_marks_are_truncated() {
    let text = format!("e{}x", "\u{301}".repeat(1000));
    assert_eq!(sanitize(&text), format!("e{}\u{fffd}x", "\u{301}".repeat(4)));
    assert_eq!(sanitize("\u{301}x"), "\u{fffd}x");
    assert_eq!(sanitize(&"\u{1100}".repeat(50)), "\u{fffd}");
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
fn a_slice_of_a_row_keeps_its_styles() {
    let bold = Style::default().bold();
    let full = row("ab").with_text(bold, "cd").with_text(Style::default(), "ef");
    let span_texts =
        |row: &SafeLine| row.spans().map(|(_, text)| text.to_owned()).collect::<Vec<_>>();
    assert_eq!(span_texts(&full.slice(1..5)), ["b", "cd", "e"]);
    assert_eq!(full.slice(1..5).width(), 4);
    assert_eq!(full.style_at(2), bold);
    let mut twice = full.clone();
    twice.append(&full);
    assert_eq!(span_texts(&twice), ["ab", "cd", "efab", "cd", "ef"]);
    assert_eq!(twice.width(), 12);
}

proptest! {
    #[test]
    fn sanitized_text_has_no_control_characters(text in any::<String>(), more in any::<String>()) {
        let sanitized = sanitize(&text);
        let is_unsafe = |character: char| character.is_control() || is_hidden_or_bidi(character);
        prop_assert!(!sanitized.chars().any(is_unsafe));
        prop_assert_eq!(&sanitize(&sanitized), &sanitized, "sanitizing twice changes nothing");
        let row = row(&text).with_text(Style::default(), &more);
        prop_assert_eq!(row.width(), sanitized_width(row.as_str()));
        let char_widths = sum_char_widths(row.as_str());
        prop_assert_eq!(row.width(), char_widths, "all terminals agree on the width");
    }

    #[test]
    fn text_of_prepended_and_joined_characters_is_sanitized_once(
        text in "[a\u{600}\u{605}\u{d4e}\u{110bd}\u{11a84}\u{11d46}\u{301}\u{200d}\u{fe0f}ﾞ漢🙂🏽🇩ᄀक्ष]{0,12}",
    ) {
        let sanitized = sanitize(&text);
        prop_assert_eq!(&sanitize(&sanitized), &sanitized);
        prop_assert_eq!(sanitized_width(&sanitized), sum_char_widths(&sanitized));
    }

    #[test]
    fn the_width_of_a_row_is_its_drawn_width(
        text in "[\\x00-\\x20a-z漢🙂\u{301}\u{200d}\u{fe0f}👍🏽🇩🇪ﾞᄀक्ष]{0,30}",
    ) {
        let row = row(&text);
        let mut buffer = Buffer::empty(Rect::new(0, 0, 400, 1));
        let (end, _) = buffer.set_stringn(0, 0, row.as_str(), 400, Style::default());
        prop_assert_eq!(usize::from(end), row.width());
    }
}
