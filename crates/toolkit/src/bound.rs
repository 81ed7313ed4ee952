//! Bounding: what a model reads has a limit, and says what it leaves out.

/// How much of an output a model is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Lines, half of them from the head and half from the tail.
    pub lines: usize,
    /// Bytes, likewise.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { lines: 2_000, bytes: 50 * 1024 }
    }
}

/// Head and tail of a text that is over the limits, with what was left out between them; `None`
/// if it is within. `reference` says where the whole text can be read.
pub fn cut(text: &str, limits: Limits, reference: &str) -> Option<String> {
    if text.len() <= limits.bytes && text.lines().count() <= limits.lines {
        return None;
    }
    let head = head(text, limits.lines / 2, limits.bytes / 2);
    let rest = text.get(head.len()..).unwrap_or_default();
    let tail = tail(rest, limits.lines / 2, limits.bytes / 2);
    let middle = rest.get(..rest.len() - tail.len()).unwrap_or_default();
    let lines = middle.lines().count();
    let left_out =
        format!("[{lines} lines, {} bytes left out; all of it: {reference}]", middle.len());
    let head = head.strip_suffix('\n').unwrap_or(head);
    Some(format!("{head}\n{left_out}\n{tail}"))
}

/// The longest beginning within the limits: whole lines, or a part of the first one.
fn head(text: &str, lines: usize, bytes: usize) -> &str {
    let mut end = 0;
    for line in text.split_inclusive('\n').take(lines) {
        if end + line.len() > bytes {
            if end == 0 {
                end = text.floor_char_boundary(bytes);
            }
            break;
        }
        end += line.len();
    }
    text.get(..end).unwrap_or_default()
}

/// The longest end within the limits, likewise.
fn tail(text: &str, lines: usize, bytes: usize) -> &str {
    let mut start = text.len();
    for line in text.split_inclusive('\n').rev().take(lines) {
        if text.len() - start + line.len() > bytes {
            if start == text.len() {
                start = text.ceil_char_boundary(text.len().saturating_sub(bytes));
            }
            break;
        }
        start -= line.len();
    }
    text.get(start..).unwrap_or_default()
}

/// A text without terminal escapes and other control characters, so that nothing a tool prints
/// can steer a terminal or hide from a reader. Line ends and tabs stay.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => match characters.peek() {
                // A control sequence: parameters, then one final character.
                Some('[') => {
                    characters.next();
                    for part in characters.by_ref() {
                        if ('@'..='~').contains(&part) {
                            break;
                        }
                    }
                }
                // An operating system command, or another string: up to a bell or a terminator.
                Some(']' | 'P' | 'X' | '^' | '_') => {
                    while let Some(part) = characters.next() {
                        if part == '\u{7}' || part == '\u{9c}' {
                            break;
                        }
                        if part == '\u{1b}' {
                            characters.next_if_eq(&'\\');
                            break;
                        }
                    }
                }
                Some(_) => {
                    characters.next();
                }
                None => {}
            },
            '\n' | '\t' => plain.push(character),
            '\r' if characters.peek() == Some(&'\n') => plain.push(character),
            // Bidirectional overrides show a text in another order than it has.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            other if other.is_control() => {}
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Limits = Limits { lines: 4, bytes: 40 };

    #[test]
    fn within_the_limits_nothing_changes() {
        assert_eq!(cut("a\nb\nc\nd", SMALL, "r"), None);
        assert_eq!(cut("", SMALL, "r"), None);
    }

    #[test]
    fn head_and_tail_stay_and_the_middle_is_counted_exactly() {
        let text: String = (1..=10).map(|n| format!("line {n}\n")).collect();
        assert_eq!(
            cut(&text, SMALL, "blob:x").unwrap(),
            "line 1\nline 2\n[6 lines, 42 bytes left out; all of it: blob:x]\nline 9\nline 10\n"
        );
    }

    #[test]
    fn one_huge_line_is_cut_inside() {
        let text = "ü".repeat(1_000);
        let cut = cut(&text, SMALL, "r").unwrap();
        assert!(cut.starts_with("üüüüüüüüüü\n[1 lines, 1960 bytes left out"), "{cut}");
        assert!(cut.ends_with("\nüüüüüüüüüü"), "{cut}");
    }

    #[test]
    fn what_is_kept_and_what_is_counted_add_up() {
        for length in [41, 100, 5_000] {
            let text: String = (0..length).map(|n| if n % 7 == 0 { '\n' } else { 'x' }).collect();
            let cut = cut(&text, SMALL, "r").unwrap();
            let (head, rest) = cut.split_once("\n[").unwrap();
            let (counts, tail) = rest.split_once("]\n").unwrap();
            let bytes: usize =
                counts.split(", ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
            let kept = head.len() + tail.len() + bytes;
            assert!(kept == text.len() || kept + 1 == text.len(), "{cut}");
        }
    }

    #[test]
    fn nothing_that_steers_a_terminal_passes() {
        for (raw, clean) in [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]52;c;ZXZpbA==\u{7}text", "text"),
            ("\u{1b}]0;title\u{1b}\\text", "text"),
            ("a\u{8}b\rc\r\nd\te", "abc\r\nd\te"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("\u{1b}Pq#0\u{1b}\\x", "x"),
            ("\u{9b}31mx", "31mx"),
            ("safe\u{202e}txt.exe", "safetxt.exe"),
        ] {
            assert_eq!(plain(raw), clean, "{raw:?}");
        }
    }
}
