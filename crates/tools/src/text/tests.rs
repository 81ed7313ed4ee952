//! Tests of splices in texts of every encoding and line ending, and of binary content.

use super::encoding::{ByteOrder, TextCodec};
use super::{EncodeTextError, FileText, TextEncoding, TextLineReader, TextSplice, detect_encoding};
use encoding_rs::{BIG5, EUC_KR, Encoding, GBK, SHIFT_JIS, WINDOWS_1251, WINDOWS_1252};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::{collection::vec, prop_assert, prop_assert_eq, sample::select};
use std::io::BufReader;

const fn legacy(encoding: &'static Encoding) -> TextEncoding {
    TextEncoding { codec: TextCodec::Legacy(encoding), has_bom: false }
}

const FORMATS: [TextEncoding; 11] = [
    TextEncoding::UTF_8,
    TextEncoding { codec: TextCodec::Utf8, has_bom: true },
    TextEncoding { codec: TextCodec::Utf16(ByteOrder::Little), has_bom: true },
    TextEncoding { codec: TextCodec::Utf16(ByteOrder::Big), has_bom: true },
    TextEncoding { codec: TextCodec::Utf16(ByteOrder::Little), has_bom: false },
    legacy(WINDOWS_1252),
    legacy(GBK),
    legacy(SHIFT_JIS),
    legacy(BIG5),
    legacy(EUC_KR),
    legacy(WINDOWS_1251),
];

/// Returns characters that the encoding contains, multibyte ones if possible.
fn sample_chars(format: TextEncoding) -> &'static [char] {
    match format.codec {
        TextCodec::Utf8 | TextCodec::Utf16(_) => {
            &['a', 'b', ' ', '\t', 'ü', '漢', '\u{a0a}', '\u{a00}', '😀', '\u{301}', '\u{feff}']
        }
        TextCodec::Legacy(encoding) => match encoding.name() {
            "windows-1252" => &['a', 'b', ' ', '\t', 'ü', 'ß', '€', 'é', '\u{81}'],
            "windows-1251" => &['a', 'b', ' ', 'д', 'о', 'м', 'Ж', '№'],
            "GBK" => &['a', 'b', '0', ' ', '中', '文', '字', '€', '丂'],
            "Shift_JIS" => &['a', '\\', '~', ' ', '日', '本', 'ｱ', '表', 'ソ'],
            "Big5" => &['a', '\\', ' ', '中', '許', '功', '蓋'],
            "EUC-KR" => &['a', 'A', ' ', '한', '국', '뢔', '똠'],
            other => panic!("{other}"),
        },
    }
}

/// Generates a text with its stored line endings; a CR may be bare.
fn stored_text(format: TextEncoding) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => select(sample_chars(format)).prop_map(String::from),
        2 => Just("\n".to_owned()),
        2 => Just("\r\n".to_owned()),
        1 => Just("\r".to_owned()),
    ];
    let uniform = |ending: &'static str| {
        vec(
            prop_oneof![
                4 => select(sample_chars(format)).prop_map(String::from),
                1 => Just(ending.into()),
            ],
            0..60,
        )
    };
    prop_oneof![vec(piece, 0..60), uniform("\n"), uniform("\r\n")].prop_map(|text| text.concat())
}

fn text(format: TextEncoding, raw: &str) -> FileText {
    let bytes = [format.bom(), &format.encode(raw).unwrap()].concat();
    FileText::decode_as(format, bytes)
}

/// Maps any number to a character boundary of the view.
fn char_boundary(view: &str, pick: usize) -> usize {
    let boundaries: Vec<usize> =
        view.char_indices().map(|(index, _)| index).chain([view.len()]).collect();
    boundaries[pick % boundaries.len()]
}

fn range(view: &str, picks: (usize, usize)) -> std::ops::Range<usize> {
    let (first, second) = (char_boundary(view, picks.0), char_boundary(view, picks.1));
    first.min(second)..first.max(second)
}

fn apply_splice(
    text: &FileText,
    range: std::ops::Range<usize>,
    new: &str,
) -> Result<Vec<u8>, EncodeTextError> {
    text.splice(&[TextSplice { range, new_text: new.to_owned() }])
}

/// Returns the lengths of the prefix and suffix that a change of `range` must preserve. Computes
/// them without the code under test, by encoding the stored text before and after the change.
fn preserved_lengths(text: &FileText, range: std::ops::Range<usize>, raw: &str) -> (usize, usize) {
    let mut view_offset = 0;
    let mut starts = Vec::new();
    let mut chars = raw.char_indices().peekable();
    while let Some((raw_offset, char)) = chars.next() {
        starts.push((view_offset, raw_offset));
        if char == '\r' && chars.peek().is_some_and(|(_, next)| *next == '\n') {
            chars.next();
            view_offset += 1;
        } else {
            view_offset += char.len_utf8();
        }
    }
    starts.push((view_offset, raw.len()));
    let to_raw_offset = |view| starts.iter().find(|(offset, _)| *offset == view).unwrap().1;
    let prefix = text.encoding.encode(&raw[..to_raw_offset(range.start)]).unwrap();
    let suffix = text.encoding.encode(&raw[to_raw_offset(range.end)..]).unwrap();
    (text.encoding.bom().len() + prefix.len(), suffix.len())
}

fn format_and_texts() -> impl Strategy<Value = (TextEncoding, String, String)> {
    select(&FORMATS)
        .prop_flat_map(|format| (Just(format), stored_text(format), stored_text(format)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_splice_changes_nothing_else(
        (format, raw, new) in format_and_texts(),
        picks in any::<(usize, usize)>(),
    ) {
        let text = text(format, &raw);
        prop_assert_eq!(text.view(), raw.replace("\r\n", "\n"));
        let range = range(text.view(), picks);
        let output = apply_splice(&text, range.clone(), &new).unwrap();
        let (prefix, suffix) = preserved_lengths(&text, range.clone(), &raw);
        let bytes = text.bytes();
        prop_assert_eq!(&output[..prefix], &bytes[..prefix]);
        prop_assert_eq!(&output[output.len() - suffix..], &bytes[bytes.len() - suffix..]);

        let mut expected = text.view().to_owned();
        expected.replace_range(range, &new.replace("\r\n", "\n"));
        prop_assert_eq!(format.decode_view(&output), expected);
    }

    #[test]
    fn repeated_lines_keep_their_bytes(
        (format, raw, new) in format_and_texts(),
        picks in any::<(usize, usize)>(),
    ) {
        // The whole file is one hunk, which repeats the text around the change.
        let text = text(format, &raw);
        let view = text.view();
        let range = range(view, picks);
        let hunk = [&view[..range.start], &new, &view[range.end..]].concat();
        let output = apply_splice(&text, 0..view.len(), &hunk).unwrap();
        let hunk = hunk.replace("\r\n", "\n");
        let shared: usize = view.split_inclusive('\n').zip(hunk.split_inclusive('\n'))
            .take_while(|(old, new)| old == new).map(|(line, _)| line.len()).sum();
        let (prefix, _) = preserved_lengths(&text, shared..shared, &raw);
        prop_assert_eq!(&output[..prefix], &text.bytes()[..prefix]);
        prop_assert_eq!(format.decode_view(&output), hunk);
    }

    #[test]
    fn a_splice_without_difference_preserves_every_byte(
        (format, raw, _) in format_and_texts(),
        picks in any::<(usize, usize)>(),
    ) {
        let text = text(format, &raw);
        let range = range(text.view(), picks);
        let same = text.view()[range.clone()].to_owned();
        // A CR before an LF in new text means a CRLF.
        if !same.contains("\r\n") {
            prop_assert_eq!(apply_splice(&text, range, &same).unwrap(), text.bytes());
        }
        prop_assert_eq!(text.splice(&[]).unwrap(), text.bytes());
    }

    #[test]
    fn many_splices_equal_single_splices_in_sequence(
        (format, raw, new) in format_and_texts(),
        mut picks in vec(any::<usize>(), 6),
    ) {
        let text = text(format, &raw);
        picks.iter_mut().for_each(|pick| *pick = char_boundary(text.view(), *pick));
        picks.sort_unstable();
        let splices: Vec<TextSplice> = picks
            .chunks(2)
            .map(|pair| TextSplice { range: pair[0]..pair[1], new_text: new.clone() })
            .collect();
        let output = text.splice(&splices).unwrap();
        let mut expected = text.view().to_owned();
        for splice in splices.iter().rev() {
            expected.replace_range(splice.range.clone(), &new.replace("\r\n", "\n"));
        }
        prop_assert_eq!(format.decode_view(&output), expected);
    }

    #[test]
    fn undecodable_bytes_are_preserved(
        format in select(&FORMATS),
        bytes in vec(prop_oneof![any::<u8>(), select(&b"ab\n\r\x30\x81\xd8\xdc\xe4\xbd"[..])], 0..80),
        picks in any::<(usize, usize)>(),
        new in "[ab\n]{0,4}",
    ) {
        let bytes = [format.bom(), &bytes].concat();
        let text = FileText::decode_as(format, bytes.clone());
        prop_assert_eq!(text.splice(&[]).unwrap(), bytes.clone());
        let range = range(text.view(), picks);
        match apply_splice(&text, range.clone(), &new) {
            Err(EncodeTextError::ReplacementChar) => prop_assert!(false, "{new:?}"),
            Err(_) => {}
            Ok(output) => {
                let mut expected = text.view().to_owned();
                expected.replace_range(range, &new);
                prop_assert_eq!(format.decode_view(&output), expected);
                // Only the changed bytes differ.
                let prefix = output.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
                let rest = output.len().min(bytes.len()) - prefix;
                let suffix = output.iter().rev().zip(bytes.iter().rev()).take(rest)
                    .take_while(|(a, b)| a == b).count();
                let max_changed = (new.len() * 2 + 1) * 2;
                let changed = output.len() - prefix - suffix;
                prop_assert!(changed <= max_changed, "{output:02x?} {bytes:02x?}");
            }
        }
    }

    #[test]
    fn reading_lines_equals_decoding_the_whole_text(
        bytes in vec(prop_oneof![any::<u8>(), select(&b"ab\n\r\x30\x81\xd8\xdc\xe4\xbd"[..])], 0..200),
        format in select(&FORMATS),
        capacity in 1_usize..9,
    ) {
        let bytes = [format.bom(), &bytes].concat();
        let _ = detect_encoding(&bytes);
        let Ok(text) = FileText::decode(bytes.clone()) else { return Ok(()) };
        let mut lines = TextLineReader::open(BufReader::with_capacity(capacity, bytes.as_slice())).unwrap();
        let mut read = Vec::new();
        while let Some(line) = lines.read_line().unwrap() {
            prop_assert_eq!(line.omitted_bytes, 0);
            read.push(line.text);
        }
        let expected: Vec<&str> = text.view().split_terminator('\n').collect();
        prop_assert_eq!(&read, &expected);

        let mut lines = TextLineReader::open(BufReader::with_capacity(capacity, bytes.as_slice())).unwrap();
        prop_assert_eq!(lines.skip_lines(2).unwrap(), expected.len().min(2) as u64);
        let rest = lines.count_remaining(u64::MAX).unwrap();
        prop_assert_eq!(rest.lines, expected.len().saturating_sub(2) as u64);
        prop_assert!(rest.reached_end);
    }

    #[test]
    fn invalid_splices_do_not_panic(ranges in vec(any::<(u8, u8)>(), 0..4)) {
        let text = FileText::decode("grün\r\nüber 😀\n".into()).unwrap();
        let splices: Vec<TextSplice> = ranges
            .iter()
            .map(|(start, end)| TextSplice { range: (*start % 24) as usize..(*end % 24) as usize, new_text: "x".into() })
            .collect();
        let _ = text.splice(&splices);
    }
}

fn encode_with(encoding: &'static Encoding, text: &str) -> Vec<u8> {
    let (bytes, _, lossy) = encoding.encode(text);
    assert!(!lossy, "{text}");
    bytes.into_owned()
}

#[test]
fn the_encoding_of_a_sentence_is_detected() {
    let sentences: [(&'static Encoding, &str); 6] = [
        (WINDOWS_1252, "Die Straße führt über den Fluss, größtenteils ohne Schäden.\n"),
        (WINDOWS_1252, "// Prüft, ob die Größe paßt\nint groesse = 0;\n"),
        (GBK, "这是一个用于测试的中文句子，它包含了足够多的汉字。\n"),
        (SHIFT_JIS, "これは日本語の文章です。漢字とひらがなが含まれています。\n"),
        (WINDOWS_1251, "Это предложение на русском языке, и в нём достаточно букв.\n"),
        (EUC_KR, "이것은 한국어 문장이며 충분한 글자를 담고 있습니다.\n"),
    ];
    for (encoding, sentence) in sentences {
        let text = FileText::decode(encode_with(encoding, sentence)).unwrap();
        assert_eq!((text.encoding_name(), text.view()), (encoding.name(), sentence));
    }
}

#[test]
fn utf_16_without_a_byte_order_mark_is_detected() {
    for sentence in
        ["hello, world\r\n", "int main(void) {}\n", "Это предложение на русском языке\n"]
    {
        let little: Vec<u8> = sentence.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = sentence.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for (bytes, name) in [(little, "UTF-16LE"), (big, "UTF-16BE")] {
            let text = FileText::decode(bytes).unwrap();
            assert_eq!(
                (text.encoding_name(), text.view()),
                (name, &*sentence.replace("\r\n", "\n"))
            );
        }
    }
}

#[test]
fn binary_content_is_refused_with_its_probable_kind() {
    let kind = |bytes: &[u8]| FileText::decode(bytes.to_vec()).unwrap_err().to_string();
    assert_eq!(
        kind(b"\x7fELF\x02\x01"),
        "this is an ELF program or library; it cannot be read as text"
    );
    assert_eq!(kind(b"SQLite format 3\0"), "this is a SQLite database; it cannot be read as text");
    assert_eq!(kind(b"MZ\x90\0\x03\0\0\0"), "this is a Windows program; it cannot be read as text");
    assert_eq!(
        kind(b"\x01\0\0\0\x02\0\0\0\x03\0\0\0"),
        "this is a binary file; it cannot be read as text"
    );
    assert_eq!(
        kind(b"\x01\x02\x03\x04\x05\x06abc"),
        "this is a binary file; it cannot be read as text"
    );
    assert!(kind(b"\xff\xfe\0\0a\0\0\0").contains("UTF-32"));
    // Terminal colors, backspaces and form feeds are text.
    assert!(FileText::decode(b"\x1b[1mN\x08N\x1b[0m\x0c\x1b[2J".to_vec()).is_ok());
}

#[test]
fn utf_8_with_corrupt_bytes_is_still_utf_8() {
    let mut bytes = "Größe, Übung, Äpfel, öfter\nschön\n".as_bytes().to_vec();
    bytes.splice(9..9, [0xff, 0xe2, 0x82]);
    let text = FileText::decode(bytes.clone()).unwrap();
    assert_eq!(text.encoding_name(), "UTF-8");
    let start = text.view().find("schön").unwrap();
    let output = apply_splice(&text, start..start + "schön".len(), "gut").unwrap();
    assert_eq!(output[..bytes.len() - 7], bytes[..bytes.len() - 7]);
    assert!(output.ends_with(b"\ngut\n"));
    // A truncated head is still UTF-8.
    assert!(detect_encoding(&"ü".as_bytes()[..1]).unwrap().is_utf8());
}

#[test]
fn a_late_non_ascii_character_is_detected() {
    let mut bytes = b"plain line\n".repeat(200_000);
    bytes.extend(encode_with(WINDOWS_1252, "Die Größe der Übung für Anfänger\n"));
    assert_eq!(FileText::decode(bytes).unwrap().encoding_name(), "windows-1252");
}

#[test]
fn new_line_endings_follow_their_neighbors() {
    let splice = |raw: &str, range, new: &str| {
        let output = apply_splice(&FileText::decode(raw.into()).unwrap(), range, new).unwrap();
        String::from_utf8(output).unwrap()
    };
    // The first replaced line decides.
    assert_eq!(splice("a\r\nb\nc\n", 0..4, "x\ny\nz\n"), "x\r\ny\r\nz\nc\n");
    assert_eq!(splice("a\r\nb\nc\n", 2..4, "x\ny\n"), "a\r\nx\ny\nc\n");
    assert_eq!(splice("abc\r\nd\n", 1..2, "x\ny"), "ax\r\nyc\r\nd\n");
    // Otherwise the line before, then the line after.
    assert_eq!(splice("a\r\nb\n", 2..2, "x\n"), "a\r\nx\r\nb\n");
    assert_eq!(splice("a\nb\r\n", 0..0, "x\n"), "x\na\nb\r\n");
    assert_eq!(splice("a\r\nb", 3..3, "\nc"), "a\r\nb\r\nc");
    assert_eq!(splice("", 0..0, "x\ny\n"), "x\ny\n");
    // Unchanged lines of a hunk keep their line endings.
    assert_eq!(splice("a\r\nb\nc\r\nd\n", 0..8, "a\nb\nX\nd\n"), "a\r\nb\nX\r\nd\n");
    // A CR before a line feed does not become part of the line ending.
    assert_eq!(splice("a\rb\n", 2..3, ""), "a\r\r\n");
    assert_eq!(splice("ab\n", 2..2, "\r"), "ab\r\r\n");
    assert_eq!(splice("a\rb", 2..2, "\n"), "a\r\r\nb");
}

#[test]
fn an_unencodable_character_is_refused_with_an_explanation() {
    let german = FileText::decode(encode_with(WINDOWS_1252, "Größe für Männer\n")).unwrap();
    let error = apply_splice(&german, 0..1, "→").unwrap_err();
    assert_eq!(
        error.to_string(),
        "'→' (U+2192) cannot be written: the file is in windows-1252, which does not contain it. \
         Use other characters, or rewrite the whole file, which converts it to UTF-8"
    );
    let japanese = FileText::decode_as(legacy(SHIFT_JIS), encode_with(SHIFT_JIS, "日本語\n"));
    // The encoder has bytes for these characters, but they decode to other ones.
    for character in ['¥', '‾', '−'] {
        let error = apply_splice(&japanese, 0..0, &character.to_string()).unwrap_err();
        assert_eq!(error, EncodeTextError::UnencodableChar { character, encoding: "Shift_JIS" });
        assert!(japanese.rewrite(&format!("a{character}")).is_err());
    }
}

#[test]
fn the_replacement_character_for_undecodable_bytes_is_not_written() {
    let bytes = b"\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc one \xff two\nend\n".to_vec();
    let text = FileText::decode(bytes.clone()).unwrap();
    let all = 0..text.view().len();
    assert_eq!(
        apply_splice(&text, all.clone(), "new \u{fffd}\n").unwrap_err(),
        EncodeTextError::ReplacementChar
    );
    // A repeated U+FFFD keeps its byte; a replaced one is removed.
    let output = apply_splice(&text, all.clone(), "üüüü one \u{fffd} three\nend\n").unwrap();
    assert_eq!(output, b"\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc one \xff three\nend\n");
    assert_eq!(apply_splice(&text, all, "new\n").unwrap(), b"new\n");
}

#[test]
fn the_replacement_character_is_written_if_everything_can_be_decoded() {
    let utf_16 = |text: &str| -> Vec<u8> {
        let units = "\u{feff}".encode_utf16().chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    for (bytes, output) in [
        ("a\u{fffd}b\n".into(), "a\u{fffd}c\u{fffd}\n".as_bytes().to_vec()),
        ("a\u{fffd}b\r\n".into(), "a\u{fffd}c\u{fffd}\r\n".into()),
        (utf_16("a\u{fffd}b\n"), utf_16("a\u{fffd}c\u{fffd}\n")),
    ] {
        let text = FileText::decode(bytes).unwrap();
        assert_eq!(apply_splice(&text, 4..5, "c\u{fffd}").unwrap(), output);
        assert_eq!(text.rewrite("a\u{fffd}c\u{fffd}\n").unwrap(), output);
    }
    // A truncated character, a lone surrogate and an invalid byte.
    let truncated = [&utf_16("ab\n")[..], b"x"].concat();
    let lone_surrogate = [&utf_16("ab\n")[..], b"\x00\xd8"].concat();
    for bytes in
        [truncated, lone_surrogate, "üüüü".as_bytes().iter().copied().chain([0xff]).collect()]
    {
        let text = FileText::decode(bytes).unwrap();
        assert_eq!(
            apply_splice(&text, 0..0, "\u{fffd}").unwrap_err(),
            EncodeTextError::ReplacementChar
        );
        assert_eq!(text.rewrite("\u{fffd}").unwrap_err(), EncodeTextError::ReplacementChar);
    }
    let german = FileText::decode(encode_with(WINDOWS_1252, "Größe für Männer\n")).unwrap();
    let error = apply_splice(&german, 0..0, "\u{fffd}").unwrap_err();
    assert!(
        matches!(error, EncodeTextError::UnencodableChar { character: '\u{fffd}', .. }),
        "{error:?}"
    );
}

/// Walking from the start of the line for every splice would take minutes.
#[test]
#[allow(clippy::disallowed_methods, reason = "the test measures time")]
fn many_splices_in_one_long_line_take_linear_time() {
    let line = format!("let x={};", "é".repeat(45)).repeat(10_000);
    let utf_16: Vec<u8> =
        "\u{feff}".encode_utf16().chain(line.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    for bytes in [format!("{line}\r\n").into_bytes(), utf_16] {
        let text = FileText::decode(bytes).unwrap();
        let matches = text.view().match_indices("let");
        let splices: Vec<TextSplice> = matches
            .map(|(start, _)| TextSplice { range: start..start + 3, new_text: "const".into() })
            .collect();
        assert_eq!(splices.len(), 10_000);
        let started = std::time::Instant::now();
        let output = text.splice(&splices).unwrap();
        assert!(
            started.elapsed()
                < windlass_testkit::time_limits::limit(std::time::Duration::from_secs(20)),
            "{:?}",
            started.elapsed()
        );
        let expected = text.view().replace("let", "const");
        assert_eq!(FileText::decode(output).unwrap().view(), expected);
    }
}

#[test]
fn new_lines_end_in_a_carriage_return_if_all_lines_do() {
    let splice_lines = |raw: &str, range, new: &str| {
        let text = FileText::decode(raw.into()).unwrap();
        let output = text.splice_lines(&[TextSplice { range, new_text: new.to_owned() }]).unwrap();
        String::from_utf8(output).unwrap()
    };
    assert_eq!(splice_lines("a\rb\rc\r", 2..4, "x\ny\n"), "a\rx\ry\rc\r");
    assert_eq!(splice_lines("a\rb", 2..3, "x\ny\n"), "a\rx\ry\r");
    assert_eq!(splice_lines("a\r", 0..0, "x\n"), "x\ra\r");
    // Any other line ending takes precedence.
    assert_eq!(splice_lines("a\rb\nc\r", 0..0, "x\n"), "x\na\rb\nc\r");
    assert_eq!(splice_lines("a\rb\r\n", 0..0, "x\n"), "x\r\na\rb\r\n");
    assert_eq!(splice_lines("", 0..0, "x\ny\n"), "x\ny\n");
    let utf_16: Vec<u8> = "\u{feff}a\rb\r".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let output = FileText::decode(utf_16)
        .unwrap()
        .splice_lines(&[TextSplice { range: 2..4, new_text: "x\n".into() }]);
    let expected: Vec<u8> = "\u{feff}a\rx\r".encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(output.unwrap(), expected);
}

#[test]
fn a_stray_character_in_a_large_file_is_preserved() {
    let plain = b"let value = compute(1);\n";
    for tail in [&b""[..], b"\n", b"t\xe9\n", b" // done\n"] {
        for (before, after) in [(0, 100_000), (100_000, 0), (50_000, 50_000)] {
            let stray = [b"// caf\xe9", tail].concat();
            let bytes = [plain.repeat(before), stray.clone(), plain.repeat(after)].concat();
            let text = FileText::decode(bytes.clone()).unwrap();
            assert_eq!(text.encoding_name(), "windows-1252", "{tail:?} {before} {after}");
            let index = text.view().find("caf").unwrap();
            let output = apply_splice(&text, index..index + 1, "C").unwrap();
            let start = before * plain.len() + 3;
            assert_eq!(output.len(), bytes.len());
            assert_eq!(output[start], b'C');
            assert!(output[..start] == bytes[..start] && output[start + 1..] == bytes[start + 1..]);
        }
    }
}

#[test]
fn a_change_that_joins_undecodable_bytes_is_refused() {
    // A lone lead byte would combine with the character inserted after it.
    let japanese = FileText::decode_as(legacy(SHIFT_JIS), b"\x93\xfa\x81\n".to_vec());
    let end = japanese.view().len() - 1;
    assert_eq!(
        apply_splice(&japanese, end..end, "A").unwrap_err(),
        EncodeTextError::JoinsUndecodableBytes
    );
    // Removing the text between two halves would combine them into one character.
    let halves = FileText::decode_as(TextEncoding::UTF_8, b"\xe4b\xbd\xbd\n".to_vec());
    assert_eq!(
        apply_splice(&halves, 3..4, "").unwrap_err(),
        EncodeTextError::JoinsUndecodableBytes
    );
}

#[test]
fn a_unit_of_two_characters_is_not_split() {
    let text = FileText::decode_as(legacy(BIG5), b"a\x88\x62b\r\n".to_vec());
    assert_eq!(text.view(), "a\u{ca}\u{304}b\n");
    let error = apply_splice(&text, 3..5, "x").unwrap_err();
    assert_eq!(error, EncodeTextError::UnencodableChar { character: '\u{ca}', encoding: "Big5" });
    assert_eq!(apply_splice(&text, 1..5, "x").unwrap(), b"axb\r\n");
    assert_eq!(apply_splice(&text, 5..6, "c").unwrap(), b"a\x88\x62c\r\n");
}

#[test]
fn two_encodings_of_a_character_stay_distinct() {
    // The NEC and IBM rows of Shift_JIS contain some characters twice.
    let text = FileText::decode_as(legacy(SHIFT_JIS), b"\xed\x40 \xfa\x5c x\n".to_vec());
    let index = text.view().find('x').unwrap();
    assert_eq!(apply_splice(&text, index..index + 1, "y").unwrap(), b"\xed\x40 \xfa\x5c y\n");
    // A line inserted before a similar one leaves that one unchanged.
    let text = FileText::decode_as(legacy(SHIFT_JIS), b"\xed\x40 1\n".to_vec());
    let output = apply_splice(&text, 0..text.view().len(), "纊 2\n纊 1\n").unwrap();
    assert_eq!(output, b"\xfa\x5c 2\n\xed\x40 1\n");
}

#[test]
fn rewriting_keeps_encoding_byte_order_mark_and_line_endings() {
    let rewrite = |raw: &[u8], content: &str| {
        FileText::decode(raw.to_vec()).unwrap().rewrite(content).unwrap()
    };
    assert_eq!(rewrite(b"\xef\xbb\xbfa\r\nb\r\n", "x\ny"), b"\xef\xbb\xbfx\r\ny\r\n");
    assert_eq!(rewrite(b"\xef\xbb\xbfa\n", "\u{feff}x\r\n"), b"\xef\xbb\xbfx\n");
    assert_eq!(rewrite(b"\xff\xfea\0\n\0", "b"), b"\xff\xfeb\0\n\0");
    assert_eq!(rewrite(b"a\r\nb\r\nc\n", "x\ny\n"), b"x\r\ny\r\n");
    assert_eq!(rewrite(b"a\nb", "x"), b"x");
    assert_eq!(rewrite(b"a\n", ""), b"");
    assert_eq!(rewrite(b"", "x\r\ny"), b"x\r\ny");
}

#[test]
fn a_file_converted_to_utf_8_keeps_its_line_endings() {
    let german = encode_with(WINDOWS_1252, "Größe\r\nfür Männer\r\n");
    let text = FileText::decode(german).unwrap();
    assert!(matches!(
        text.rewrite("→\nü"),
        Err(EncodeTextError::UnencodableChar { character: '→', .. })
    ));
    let output = text.rewrite_in_utf8("→\nü \u{fffd}");
    assert_eq!(output, "→\r\nü \u{fffd}\r\n".as_bytes());
    assert_eq!(FileText::decode(output).unwrap().encoding_name(), "UTF-8");
    let with_bom = FileText::decode("\u{feff}a\n".into()).unwrap();
    assert_eq!(with_bom.rewrite_in_utf8("b"), "\u{feff}b\n".as_bytes());
    let utf_16 = FileText::decode(b"\xff\xfea\0".to_vec()).unwrap();
    assert_eq!(utf_16.rewrite_in_utf8("b"), b"b");
}

#[test]
fn a_long_line_reports_its_omitted_bytes() {
    for (line, omitted) in
        [("ü".repeat(2_000), 0), ("😀".repeat(2_001), 4), ("x".repeat(99_999), 97_999)]
    {
        for ending in ["", "\n", "\r\n"] {
            let source = format!("\u{feff}{line}{ending}");
            let mut lines = TextLineReader::open(source.as_bytes()).unwrap();
            let first = lines.read_line().unwrap().unwrap();
            assert_eq!(
                (first.text.chars().count(), first.omitted_bytes),
                (line.chars().count().min(2_000), omitted)
            );
            assert!(lines.read_line().unwrap().is_none());
        }
    }
}
