//! Text helpers for display: hidden characters, truncation, and formatting of ages and durations.

use crate::ids_and_timestamps::UnixMillis;
use std::path::Path;

/// Returns the name of a model with its reasoning effort or variant, if one is set.
pub fn model_with_effort(model: &str, effort: Option<&str>) -> String {
    match effort {
        Some(effort) => format!("{model} ({effort})"),
        None => model.to_owned(),
    }
}

/// Returns true for characters that reorder the displayed text, break its lines or are invisible.
///
/// Variation selectors, which choose a form of the preceding character, are not included: emoji
/// need them.
pub fn is_hidden_or_bidi(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e00ff}' | '\u{e01f0}'..='\u{e0fff}'
    )
}

/// Returns the first `max_chars` characters of a text, followed by `…` if there are more.
pub fn truncate_chars(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Returns the first line of a text that is not empty. If it ends in a colon, the first item of the
/// list below follows it.
pub fn first_line_with_item(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    match lines.next().filter(|_| first.ends_with(':')) {
        Some(item) => format!("{first} {}", item.strip_prefix("- ").unwrap_or(item)),
        None => first.to_owned(),
    }
}

/// Joins the lines of a text into one line with `⏎`, so that it cannot look like several entries.
pub fn to_one_line(text: &str) -> String {
    text.replace("\r\n", "⏎").replace('\n', "⏎")
}

/// Returns the name of a folder as sessions record it: its path, or a `file:` URL if the path is not
/// valid UTF-8, so that two folders never have the same name.
pub fn workspace_name(folder: &Path) -> String {
    if let Some(path) = folder.to_str() {
        return path.to_owned();
    }
    let mut name = String::from("file://");
    for byte in folder.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' => name.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => name.push(char::from(*byte)),
            byte => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name
}

/// Returns a count with its noun: `1 line`, `2 matches`.
pub fn pluralize(count: usize, noun: &str) -> String {
    let suffix = match (count, noun.ends_with("ch")) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{count} {noun}{suffix}")
}

/// Formats a number of bytes: `812 B`, `12.4 kB`, `3.0 MB`.
pub fn format_bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{}.{} kB", bytes / 1_000, bytes % 1_000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// Describes a call that the model is still writing: `write src/main.rs … 12.4 kB`.
pub fn describe_partial_call(tool: &str, path: Option<&str>, argument_bytes: u64) -> String {
    let path = path.map(|path| format!(" {path}")).unwrap_or_default();
    to_one_line(&format!("{tool}{path} … {}", format_bytes(argument_bytes)))
}

/// Returns true for a one-word name that cannot hide anything: ASCII letters, digits and `._-:/@`.
pub fn is_plain_name(name: &str) -> bool {
    let is_allowed =
        |character: char| character.is_ascii_alphanumeric() || "._-:/@".contains(character);
    !name.is_empty() && name.len() <= 40 && name.chars().all(is_allowed)
}

/// Formats the time since `then` as briefly as possible.
pub fn format_age(then: UnixMillis, now: UnixMillis) -> String {
    const MINUTE_SECS: u64 = 60;
    const HOUR_SECS: u64 = 60 * MINUTE_SECS;
    const DAY_SECS: u64 = 24 * HOUR_SECS;
    let seconds = now.0.saturating_sub(then.0) / 1000;
    match seconds {
        0..MINUTE_SECS => "now".to_owned(),
        MINUTE_SECS..HOUR_SECS => format!("{}m", seconds / MINUTE_SECS),
        HOUR_SECS..DAY_SECS => format!("{}h", seconds / HOUR_SECS),
        _ if seconds < 14 * DAY_SECS => format!("{}d", seconds / DAY_SECS),
        _ if seconds < 60 * DAY_SECS => format!("{}w", seconds / (7 * DAY_SECS)),
        _ if seconds < 730 * DAY_SECS => format!("{}mo", seconds / (30 * DAY_SECS)),
        _ => format!("{}y", seconds / (365 * DAY_SECS)),
    }
}

/// Formats a duration for the user: `8 s`, `2 m 05 s`, `1 h 02 m`.
pub fn format_duration(milliseconds: u64) -> String {
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
        let formatted = ages.map(|age| format_age(UnixMillis(1_000), UnixMillis(1_000 + age)));
        assert_eq!(formatted, ["now", "now", "1m", "5h", "1d", "2w", "3mo"]);
        assert_eq!(format_age(UnixMillis(5_000), UnixMillis(0)), "now", "the clock was set back");
        assert_eq!(format_age(UnixMillis(0), UnixMillis(24 * 800 * hours)), "2y");
    }

    #[test]
    fn durations_have_at_most_two_units() {
        let formatted = [8_999, 125_000, 3_720_000].map(format_duration);
        assert_eq!(formatted, ["8 s", "2 m 05 s", "1 h 02 m"]);
    }

    #[test]
    fn a_first_line_with_a_colon_names_what_follows() {
        for (text, expected) in [
            ("", ""),
            ("\n  no such file \nTry b.", "no such file"),
            (
                "invalid arguments:\n- `a`: required\n- `b`: required",
                "invalid arguments: `a`: required",
            ),
            ("invalid arguments:", "invalid arguments:"),
            ("the server said:\n\nno", "the server said: no"),
        ] {
            assert_eq!(first_line_with_item(text), expected);
        }
    }

    #[test]
    fn several_lines_become_one_line() {
        assert_eq!(to_one_line("a\r\nb\nc"), "a⏎b⏎c");
    }

    #[test]
    fn a_name_with_other_characters_is_not_plain() {
        assert!(is_plain_name("mcp/git") && is_plain_name("docs.rs:8080"));
        for name in ["", "a b", "a\nb", "naïve", "│", &"a".repeat(41)] {
            assert!(!is_plain_name(name), "{name}");
        }
    }

    #[test]
    fn invisible_and_reordering_characters_are_hidden() {
        let hidden = "\u{ad}\u{61c}\u{180e}\u{115f}\u{1160}\u{3164}\u{ffa0}\u{200b}\u{200d}\u{200e}\
                      \u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{206f}\u{feff}\
                      \u{fff9}\u{fffb}\u{e0001}\u{e0041}\u{e007f}";
        for character in hidden.chars() {
            assert!(is_hidden_or_bidi(character), "U+{:04X}", character as u32);
        }
    }

    #[test]
    fn usual_characters_are_not_hidden() {
        for character in "aé ß\u{a0}\u{301}漢한ก\u{e31}🙂\u{fe0f}\u{fffd}\u{2026}\u{202f}".chars()
        {
            assert!(!is_hidden_or_bidi(character), "U+{:04X}", character as u32);
        }
    }

    #[cfg(unix)]
    #[test]
    fn folders_that_differ_in_any_byte_have_different_names() {
        use std::os::unix::ffi::OsStrExt;
        let name =
            |bytes: &[u8]| super::workspace_name(Path::new(std::ffi::OsStr::from_bytes(bytes)));
        assert_eq!(name("/tmp/ä b".as_bytes()), "/tmp/ä b");
        assert_eq!(name(b"/tmp/inv\xff%"), "file:///tmp/inv%FF%25");
        assert_ne!(name(b"/tmp/inv\xff"), name(b"/tmp/inv\xfe"));
    }
}
