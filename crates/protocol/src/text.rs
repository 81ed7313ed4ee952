//! Texts as a person sees them: what they can hide, how they begin, and how times are said.

use crate::id::Millis;

/// True for marks that show a text in another order than it has, on other lines, or not at all.
///
/// Selectors that choose a form of the sign before them are not among them: emoji need those.
pub fn hides(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e00ff}' | '\u{e01f0}'..='\u{e0fff}'
    )
}

/// The beginning of a text, of so many characters, and a sign if there is more.
pub fn beginning(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A text of several lines on one: it must not look like several entries.
pub fn one_line(text: &str) -> String {
    text.replace("\r\n", "⏎").replace('\n', "⏎")
}

/// A number of things: `1 line`, `2 matches`.
pub fn counted(number: usize, thing: &str) -> String {
    let end = match (number, thing.ends_with("ch")) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{number} {thing}{end}")
}

/// True for a name of one word that nothing can be hidden in.
pub fn plain(name: &str) -> bool {
    let fits = |sign: char| sign.is_ascii_alphanumeric() || "._-:/@".contains(sign);
    !name.is_empty() && name.len() <= 40 && name.chars().all(fits)
}

/// How long ago something was, as short as it can be said.
pub fn ago(then: Millis, now: Millis) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let seconds = now.0.saturating_sub(then.0) / 1000;
    match seconds {
        0..MINUTE => "now".to_owned(),
        MINUTE..HOUR => format!("{}m", seconds / MINUTE),
        HOUR..DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 14 * DAY => format!("{}d", seconds / DAY),
        _ if seconds < 60 * DAY => format!("{}w", seconds / (7 * DAY)),
        _ if seconds < 730 * DAY => format!("{}mo", seconds / (30 * DAY)),
        _ => format!("{}y", seconds / (365 * DAY)),
    }
}

/// How long something took, as people say it: 8 s, 2 m 05 s, 1 h 02 m.
pub fn duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let hours = 3_600_000;
        let ages = [0, 59_000, 60_000, 5 * hours, 30 * hours, 24 * 20 * hours, 24 * 90 * hours];
        let said = ages.map(|age| ago(Millis(1_000), Millis(1_000 + age)));
        assert_eq!(said, ["now", "now", "1m", "5h", "1d", "2w", "3mo"]);
        assert_eq!(ago(Millis(5_000), Millis(0)), "now", "a clock that went back");
        assert_eq!(ago(Millis(0), Millis(24 * 800 * hours)), "2y");
    }

    #[test]
    fn a_time_reads_as_people_say_it() {
        let said = [8_999, 125_000, 3_720_000].map(duration);
        assert_eq!(said, ["8 s", "2 m 05 s", "1 h 02 m"]);
    }

    #[test]
    fn what_has_several_lines_is_one_entry() {
        assert_eq!(one_line("a\r\nb\nc"), "a⏎b⏎c");
    }

    #[test]
    fn a_name_that_could_be_taken_for_something_else_is_not_plain() {
        assert!(plain("mcp/git") && plain("docs.rs:8080"));
        for name in ["", "a b", "a\nb", "naïve", "│", &"a".repeat(41)] {
            assert!(!plain(name), "{name}");
        }
    }

    #[test]
    fn what_shows_nothing_or_turns_a_text_around_is_known() {
        let hidden = "\u{ad}\u{61c}\u{180e}\u{115f}\u{1160}\u{3164}\u{ffa0}\u{200b}\u{200d}\u{200e}\
                      \u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{206f}\u{feff}\
                      \u{fff9}\u{fffb}\u{e0001}\u{e0041}\u{e007f}";
        for character in hidden.chars() {
            assert!(hides(character), "U+{:04X}", character as u32);
        }
    }

    #[test]
    fn what_people_write_hides_nothing() {
        for character in "aé ß\u{a0}\u{301}漢한ก\u{e31}🙂\u{fe0f}\u{fffd}\u{2026}\u{202f}".chars()
        {
            assert!(!hides(character), "U+{:04X}", character as u32);
        }
    }
}
