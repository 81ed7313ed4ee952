//! Texts of every encoding and line end, changed at any place; and bytes that are no text.

use super::format::{Codec, Order};
use super::{Format, Lines, Splice, Text, Unwritable, detect};
use encoding_rs::{BIG5, EUC_KR, Encoding, GBK, SHIFT_JIS, WINDOWS_1251, WINDOWS_1252};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::{collection::vec, prop_assert, prop_assert_eq, sample::select};
use std::io::BufReader;

const fn legacy(encoding: &'static Encoding) -> Format {
    Format { codec: Codec::Legacy(encoding), marked: false }
}

const FORMATS: [Format; 11] = [
    Format::UTF_8,
    Format { codec: Codec::Utf8, marked: true },
    Format { codec: Codec::Utf16(Order::Little), marked: true },
    Format { codec: Codec::Utf16(Order::Big), marked: true },
    Format { codec: Codec::Utf16(Order::Little), marked: false },
    legacy(WINDOWS_1252),
    legacy(GBK),
    legacy(SHIFT_JIS),
    legacy(BIG5),
    legacy(EUC_KR),
    legacy(WINDOWS_1251),
];

/// Characters that the format has, more than one byte wide where it has such.
fn letters(format: Format) -> &'static [char] {
    match format.codec {
        Codec::Utf8 | Codec::Utf16(_) => {
            &['a', 'b', ' ', '\t', 'ü', '漢', '\u{a0a}', '\u{a00}', '😀', '\u{301}', '\u{feff}']
        }
        Codec::Legacy(encoding) => match encoding.name() {
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

/// A text with the line ends as stored; a CR may stand alone.
fn stored(format: Format) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => select(letters(format)).prop_map(String::from),
        2 => Just("\n".to_owned()),
        2 => Just("\r\n".to_owned()),
        1 => Just("\r".to_owned()),
    ];
    let uniform = |end: &'static str| {
        vec(
            prop_oneof![4 => select(letters(format)).prop_map(String::from), 1 => Just(end.into())],
            0..60,
        )
    };
    prop_oneof![vec(piece, 0..60), uniform("\n"), uniform("\r\n")].prop_map(|text| text.concat())
}

fn text(format: Format, stored: &str) -> Text {
    let bytes = [format.mark(), &format.encode(stored).unwrap()].concat();
    Text::decode_as(format, bytes)
}

/// A place of the view, whatever number it is picked with.
fn place(view: &str, pick: usize) -> usize {
    let places: Vec<usize> = view.char_indices().map(|(at, _)| at).chain([view.len()]).collect();
    places[pick % places.len()]
}

fn range(view: &str, picks: (usize, usize)) -> std::ops::Range<usize> {
    let (one, other) = (place(view, picks.0), place(view, picks.1));
    one.min(other)..one.max(other)
}

fn spliced(text: &Text, range: std::ops::Range<usize>, new: &str) -> Result<Vec<u8>, Unwritable> {
    text.splice(&[Splice { range, new: new.to_owned() }])
}

/// Where bytes that must stay end at the front and begin at the back, found without the code under
/// test: by encoding what stands before and after the change as it was stored.
fn kept(text: &Text, range: std::ops::Range<usize>, raw: &str) -> (usize, usize) {
    let mut view_at = 0;
    let mut starts = Vec::new();
    let mut chars = raw.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        starts.push((view_at, at));
        if char == '\r' && chars.peek().is_some_and(|(_, next)| *next == '\n') {
            chars.next();
            view_at += 1;
        } else {
            view_at += char.len_utf8();
        }
    }
    starts.push((view_at, raw.len()));
    let raw_at = |view| starts.iter().find(|(at, _)| *at == view).unwrap().1;
    let front = text.format.encode(&raw[..raw_at(range.start)]).unwrap();
    let back = text.format.encode(&raw[raw_at(range.end)..]).unwrap();
    (text.format.mark().len() + front.len(), back.len())
}

fn format_and_texts() -> impl Strategy<Value = (Format, String, String)> {
    select(&FORMATS).prop_flat_map(|format| (Just(format), stored(format), stored(format)))
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
        let made = spliced(&text, range.clone(), &new).unwrap();
        let (front, back) = kept(&text, range.clone(), &raw);
        let bytes = text.bytes();
        prop_assert_eq!(&made[..front], &bytes[..front]);
        prop_assert_eq!(&made[made.len() - back..], &bytes[bytes.len() - back..]);

        let mut expected = text.view().to_owned();
        expected.replace_range(range, &new.replace("\r\n", "\n"));
        prop_assert_eq!(format.view(&made), expected);
    }

    #[test]
    fn lines_that_are_repeated_keep_their_bytes(
        (format, raw, new) in format_and_texts(),
        picks in any::<(usize, usize)>(),
    ) {
        // The whole file as one hunk: what stands around the change is repeated in it.
        let text = text(format, &raw);
        let view = text.view();
        let range = range(view, picks);
        let hunk = [&view[..range.start], &new, &view[range.end..]].concat();
        let made = spliced(&text, 0..view.len(), &hunk).unwrap();
        let hunk = hunk.replace("\r\n", "\n");
        let shared: usize = view.split_inclusive('\n').zip(hunk.split_inclusive('\n'))
            .take_while(|(old, new)| old == new).map(|(line, _)| line.len()).sum();
        let (front, _) = kept(&text, shared..shared, &raw);
        prop_assert_eq!(&made[..front], &text.bytes()[..front]);
        prop_assert_eq!(format.view(&made), hunk);
    }

    #[test]
    fn a_splice_that_changes_nothing_leaves_every_byte(
        (format, raw, _) in format_and_texts(),
        picks in any::<(usize, usize)>(),
    ) {
        let text = text(format, &raw);
        let range = range(text.view(), picks);
        let same = text.view()[range.clone()].to_owned();
        // A view with a CR before its LF reads as a CRLF, and is taken for one.
        if !same.contains("\r\n") {
            prop_assert_eq!(spliced(&text, range, &same).unwrap(), text.bytes());
        }
        prop_assert_eq!(text.splice(&[]).unwrap(), text.bytes());
    }

    #[test]
    fn many_splices_are_as_good_as_one_after_the_other(
        (format, raw, new) in format_and_texts(),
        mut picks in vec(any::<usize>(), 6),
    ) {
        let text = text(format, &raw);
        picks.iter_mut().for_each(|pick| *pick = place(text.view(), *pick));
        picks.sort_unstable();
        let splices: Vec<Splice> = picks
            .chunks(2)
            .map(|pair| Splice { range: pair[0]..pair[1], new: new.clone() })
            .collect();
        let made = text.splice(&splices).unwrap();
        let mut expected = text.view().to_owned();
        for splice in splices.iter().rev() {
            expected.replace_range(splice.range.clone(), &new.replace("\r\n", "\n"));
        }
        prop_assert_eq!(format.view(&made), expected);
    }

    #[test]
    fn bytes_that_cannot_be_decoded_stay(
        format in select(&FORMATS),
        bytes in vec(prop_oneof![any::<u8>(), select(&b"ab\n\r\x30\x81\xd8\xdc\xe4\xbd"[..])], 0..80),
        picks in any::<(usize, usize)>(),
        new in "[ab\n]{0,4}",
    ) {
        let bytes = [format.mark(), &bytes].concat();
        let text = Text::decode_as(format, bytes.clone());
        prop_assert_eq!(text.splice(&[]).unwrap(), bytes.clone());
        let range = range(text.view(), picks);
        match spliced(&text, range.clone(), &new) {
            Err(Unwritable::Undecodable) => prop_assert!(false, "{new:?}"),
            Err(_) => {}
            Ok(made) => {
                let mut expected = text.view().to_owned();
                expected.replace_range(range, &new);
                prop_assert_eq!(format.view(&made), expected);
                // As much was kept at the front and back as the change left alone.
                let front = made.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
                let rest = made.len().min(bytes.len()) - front;
                let back = made.iter().rev().zip(bytes.iter().rev()).take(rest)
                    .take_while(|(a, b)| a == b).count();
                let most = (new.len() * 2 + 1) * 2;
                prop_assert!(made.len() - front - back <= most, "{made:02x?} {bytes:02x?}");
            }
        }
    }

    #[test]
    fn any_bytes_are_read_as_they_are_decoded(
        bytes in vec(prop_oneof![any::<u8>(), select(&b"ab\n\r\x30\x81\xd8\xdc\xe4\xbd"[..])], 0..200),
        format in select(&FORMATS),
        capacity in 1_usize..9,
    ) {
        let bytes = [format.mark(), &bytes].concat();
        let _ = detect(&bytes);
        let Ok(text) = Text::decode(bytes.clone()) else { return Ok(()) };
        let mut lines = Lines::open(BufReader::with_capacity(capacity, bytes.as_slice())).unwrap();
        let mut read = Vec::new();
        while let Some(line) = lines.read().unwrap() {
            prop_assert_eq!(line.more, 0);
            read.push(line.text);
        }
        let shown: Vec<&str> = text.view().split_terminator('\n').collect();
        prop_assert_eq!(&read, &shown);

        let mut lines = Lines::open(BufReader::with_capacity(capacity, bytes.as_slice())).unwrap();
        prop_assert_eq!(lines.skip(2).unwrap(), shown.len().min(2) as u64);
        let rest = lines.count(u64::MAX).unwrap();
        prop_assert_eq!(rest.lines, shown.len().saturating_sub(2) as u64);
        prop_assert!(rest.ended);
    }

    #[test]
    fn splices_that_do_not_fit_are_refused(ranges in vec(any::<(u8, u8)>(), 0..4)) {
        let text = Text::decode("grün\r\nüber 😀\n".into()).unwrap();
        let splices: Vec<Splice> = ranges
            .iter()
            .map(|(start, end)| Splice { range: (*start % 24) as usize..(*end % 24) as usize, new: "x".into() })
            .collect();
        let _ = text.splice(&splices);
    }
}

fn encoded(encoding: &'static Encoding, text: &str) -> Vec<u8> {
    let (bytes, _, lossy) = encoding.encode(text);
    assert!(!lossy, "{text}");
    bytes.into_owned()
}

#[test]
fn sentences_tell_their_encoding() {
    let sentences: [(&'static Encoding, &str); 6] = [
        (WINDOWS_1252, "Die Straße führt über den Fluss, größtenteils ohne Schäden.\n"),
        (WINDOWS_1252, "// Prüft, ob die Größe paßt\nint groesse = 0;\n"),
        (GBK, "这是一个用于测试的中文句子，它包含了足够多的汉字。\n"),
        (SHIFT_JIS, "これは日本語の文章です。漢字とひらがなが含まれています。\n"),
        (WINDOWS_1251, "Это предложение на русском языке, и в нём достаточно букв.\n"),
        (EUC_KR, "이것은 한국어 문장이며 충분한 글자를 담고 있습니다.\n"),
    ];
    for (encoding, sentence) in sentences {
        let text = Text::decode(encoded(encoding, sentence)).unwrap();
        assert_eq!((text.encoding(), text.view()), (encoding.name(), sentence));
    }
}

#[test]
fn utf_16_is_known_without_a_mark() {
    for sentence in
        ["hello, world\r\n", "int main(void) {}\n", "Это предложение на русском языке\n"]
    {
        let little: Vec<u8> = sentence.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = sentence.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for (bytes, name) in [(little, "UTF-16LE"), (big, "UTF-16BE")] {
            let text = Text::decode(bytes).unwrap();
            assert_eq!((text.encoding(), text.view()), (name, &*sentence.replace("\r\n", "\n")));
        }
    }
}

#[test]
fn what_is_no_text_says_what_it_seems_to_be() {
    let kind = |bytes: &[u8]| Text::decode(bytes.to_vec()).unwrap_err().to_string();
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
    // Colours of a terminal, backspaces and form feeds are text.
    assert!(Text::decode(b"\x1b[1mN\x08N\x1b[0m\x0c\x1b[2J".to_vec()).is_ok());
}

#[test]
fn utf_8_that_was_hurt_is_still_utf_8() {
    let mut bytes = "Größe, Übung, Äpfel, öfter\nschön\n".as_bytes().to_vec();
    bytes.splice(9..9, [0xff, 0xe2, 0x82]);
    let text = Text::decode(bytes.clone()).unwrap();
    assert_eq!(text.encoding(), "UTF-8");
    let at = text.view().find("schön").unwrap();
    let made = spliced(&text, at..at + "schön".len(), "gut").unwrap();
    assert_eq!(made[..bytes.len() - 7], bytes[..bytes.len() - 7]);
    assert!(made.ends_with(b"\ngut\n"));
    // A cut head does not hurt it.
    assert!(detect(&"ü".as_bytes()[..1]).unwrap().is_utf8());
}

#[test]
fn a_late_letter_is_not_missed() {
    let mut bytes = b"plain line\n".repeat(200_000);
    bytes.extend(encoded(WINDOWS_1252, "Die Größe der Übung für Anfänger\n"));
    assert_eq!(Text::decode(bytes).unwrap().encoding(), "windows-1252");
}

#[test]
fn new_line_ends_take_after_their_neighbours() {
    let splice = |raw: &str, range, new: &str| {
        let made = spliced(&Text::decode(raw.into()).unwrap(), range, new).unwrap();
        String::from_utf8(made).unwrap()
    };
    // The first line that is replaced.
    assert_eq!(splice("a\r\nb\nc\n", 0..4, "x\ny\nz\n"), "x\r\ny\r\nz\nc\n");
    assert_eq!(splice("a\r\nb\nc\n", 2..4, "x\ny\n"), "a\r\nx\ny\nc\n");
    assert_eq!(splice("abc\r\nd\n", 1..2, "x\ny"), "ax\r\nyc\r\nd\n");
    // The line before, then the line after.
    assert_eq!(splice("a\r\nb\n", 2..2, "x\n"), "a\r\nx\r\nb\n");
    assert_eq!(splice("a\nb\r\n", 0..0, "x\n"), "x\na\nb\r\n");
    assert_eq!(splice("a\r\nb", 3..3, "\nc"), "a\r\nb\r\nc");
    assert_eq!(splice("", 0..0, "x\ny\n"), "x\ny\n");
    // A hunk with lines that stay: they keep what they have.
    assert_eq!(splice("a\r\nb\nc\r\nd\n", 0..8, "a\nb\nX\nd\n"), "a\r\nb\nX\r\nd\n");
    // A CR in front of a line feed does not become part of its line end.
    assert_eq!(splice("a\rb\n", 2..3, ""), "a\r\r\n");
    assert_eq!(splice("ab\n", 2..2, "\r"), "ab\r\r\n");
    assert_eq!(splice("a\rb", 2..2, "\n"), "a\r\r\nb");
}

#[test]
fn what_an_encoding_lacks_is_refused_with_words() {
    let german = Text::decode(encoded(WINDOWS_1252, "Größe für Männer\n")).unwrap();
    let error = spliced(&german, 0..1, "→").unwrap_err();
    assert_eq!(
        error.to_string(),
        "'→' (U+2192) cannot be written: the file is in windows-1252, which does not have it. \
         Use other characters, or write the whole file anew: it then becomes UTF-8"
    );
    let japanese = Text::decode_as(legacy(SHIFT_JIS), encoded(SHIFT_JIS, "日本語\n"));
    // The encoder has bytes for these, which mean another character.
    for character in ['¥', '‾', '−'] {
        let error = spliced(&japanese, 0..0, &character.to_string()).unwrap_err();
        assert_eq!(error, Unwritable::Character { character, encoding: "Shift_JIS" });
        assert!(japanese.rewrite(&format!("a{character}")).is_err());
    }
}

#[test]
fn the_stand_in_for_undecodable_bytes_is_not_written() {
    let bytes = b"\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc one \xff two\nend\n".to_vec();
    let text = Text::decode(bytes.clone()).unwrap();
    let all = 0..text.view().len();
    assert_eq!(spliced(&text, all.clone(), "new \u{fffd}\n").unwrap_err(), Unwritable::Undecodable);
    // Repeated, it keeps its byte; replaced, it goes.
    let made = spliced(&text, all.clone(), "üüüü one \u{fffd} three\nend\n").unwrap();
    assert_eq!(made, b"\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc one \xff three\nend\n");
    assert_eq!(spliced(&text, all, "new\n").unwrap(), b"new\n");
}

#[test]
fn the_stand_in_is_a_character_where_everything_can_be_decoded() {
    let utf_16 = |text: &str| -> Vec<u8> {
        let units = "\u{feff}".encode_utf16().chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    for (bytes, made) in [
        ("a\u{fffd}b\n".into(), "a\u{fffd}c\u{fffd}\n".as_bytes().to_vec()),
        ("a\u{fffd}b\r\n".into(), "a\u{fffd}c\u{fffd}\r\n".into()),
        (utf_16("a\u{fffd}b\n"), utf_16("a\u{fffd}c\u{fffd}\n")),
    ] {
        let text = Text::decode(bytes).unwrap();
        assert_eq!(spliced(&text, 4..5, "c\u{fffd}").unwrap(), made);
        assert_eq!(text.rewrite("a\u{fffd}c\u{fffd}\n").unwrap(), made);
    }
    // Half a character at the end, half a pair, and a byte that is none.
    let hurt = [&utf_16("ab\n")[..], b"x"].concat();
    let lone = [&utf_16("ab\n")[..], b"\x00\xd8"].concat();
    for bytes in [hurt, lone, "üüüü".as_bytes().iter().copied().chain([0xff]).collect()] {
        let text = Text::decode(bytes).unwrap();
        assert_eq!(spliced(&text, 0..0, "\u{fffd}").unwrap_err(), Unwritable::Undecodable);
        assert_eq!(text.rewrite("\u{fffd}").unwrap_err(), Unwritable::Undecodable);
    }
    let german = Text::decode(encoded(WINDOWS_1252, "Größe für Männer\n")).unwrap();
    let error = spliced(&german, 0..0, "\u{fffd}").unwrap_err();
    assert!(matches!(error, Unwritable::Character { character: '\u{fffd}', .. }), "{error:?}");
}

/// Walking from the start of the line for every splice would take minutes.
#[test]
#[allow(clippy::disallowed_methods, reason = "the test measures itself")]
fn many_splices_in_one_long_line_take_linear_time() {
    let line = format!("let x={};", "é".repeat(45)).repeat(10_000);
    let utf_16: Vec<u8> =
        "\u{feff}".encode_utf16().chain(line.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    for bytes in [format!("{line}\r\n").into_bytes(), utf_16] {
        let text = Text::decode(bytes).unwrap();
        let found = text.view().match_indices("let");
        let splices: Vec<Splice> =
            found.map(|(at, _)| Splice { range: at..at + 3, new: "const".into() }).collect();
        assert_eq!(splices.len(), 10_000);
        let started = std::time::Instant::now();
        let made = text.splice(&splices).unwrap();
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
        let expected = text.view().replace("let", "const");
        assert_eq!(Text::decode(made).unwrap().view(), expected);
    }
}

#[test]
fn new_lines_end_in_a_carriage_return_where_all_do() {
    let put = |raw: &str, range, new: &str| {
        let text = Text::decode(raw.into()).unwrap();
        let made = text.splice_lines(&[Splice { range, new: new.to_owned() }]).unwrap();
        String::from_utf8(made).unwrap()
    };
    assert_eq!(put("a\rb\rc\r", 2..4, "x\ny\n"), "a\rx\ry\rc\r");
    assert_eq!(put("a\rb", 2..3, "x\ny\n"), "a\rx\ry\r");
    assert_eq!(put("a\r", 0..0, "x\n"), "x\ra\r");
    // Where one line ends otherwise, it decides.
    assert_eq!(put("a\rb\nc\r", 0..0, "x\n"), "x\na\rb\nc\r");
    assert_eq!(put("a\rb\r\n", 0..0, "x\n"), "x\r\na\rb\r\n");
    assert_eq!(put("", 0..0, "x\ny\n"), "x\ny\n");
    let utf_16: Vec<u8> = "\u{feff}a\rb\r".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let made =
        Text::decode(utf_16).unwrap().splice_lines(&[Splice { range: 2..4, new: "x\n".into() }]);
    let expected: Vec<u8> = "\u{feff}a\rx\r".encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(made.unwrap(), expected);
}

#[test]
fn one_stray_letter_in_a_large_file_is_read_and_kept() {
    let plain = b"let value = compute(1);\n";
    for tail in [&b""[..], b"\n", b"t\xe9\n", b" // done\n"] {
        for (before, after) in [(0, 100_000), (100_000, 0), (50_000, 50_000)] {
            let stray = [b"// caf\xe9", tail].concat();
            let bytes = [plain.repeat(before), stray.clone(), plain.repeat(after)].concat();
            let text = Text::decode(bytes.clone()).unwrap();
            assert_eq!(text.encoding(), "windows-1252", "{tail:?} {before} {after}");
            let at = text.view().find("caf").unwrap();
            let made = spliced(&text, at..at + 1, "C").unwrap();
            let start = before * plain.len() + 3;
            assert_eq!(made.len(), bytes.len());
            assert_eq!(made[start], b'C');
            assert!(made[..start] == bytes[..start] && made[start + 1..] == bytes[start + 1..]);
        }
    }
}

#[test]
fn bytes_beside_a_change_do_not_melt_into_it() {
    // A lone first byte of a pair would swallow what is put after it.
    let japanese = Text::decode_as(legacy(SHIFT_JIS), b"\x93\xfa\x81\n".to_vec());
    let end = japanese.view().len() - 1;
    assert_eq!(spliced(&japanese, end..end, "A").unwrap_err(), Unwritable::Seam);
    // Taking out what stands between two halves would make them one character.
    let halves = Text::decode_as(Format::UTF_8, b"\xe4b\xbd\xbd\n".to_vec());
    assert_eq!(spliced(&halves, 3..4, "").unwrap_err(), Unwritable::Seam);
}

#[test]
fn a_unit_of_two_characters_is_not_cut() {
    let text = Text::decode_as(legacy(BIG5), b"a\x88\x62b\r\n".to_vec());
    assert_eq!(text.view(), "a\u{ca}\u{304}b\n");
    let error = spliced(&text, 3..5, "x").unwrap_err();
    assert_eq!(error, Unwritable::Character { character: '\u{ca}', encoding: "Big5" });
    assert_eq!(spliced(&text, 1..5, "x").unwrap(), b"axb\r\n");
    assert_eq!(spliced(&text, 5..6, "c").unwrap(), b"a\x88\x62c\r\n");
}

#[test]
fn two_spellings_of_a_character_stay_apart() {
    // NEC and IBM rows of Shift_JIS hold some characters twice.
    let text = Text::decode_as(legacy(SHIFT_JIS), b"\xed\x40 \xfa\x5c x\n".to_vec());
    let at = text.view().find('x').unwrap();
    assert_eq!(spliced(&text, at..at + 1, "y").unwrap(), b"\xed\x40 \xfa\x5c y\n");
    // A line put before one like it leaves that one whole.
    let text = Text::decode_as(legacy(SHIFT_JIS), b"\xed\x40 1\n".to_vec());
    let made = spliced(&text, 0..text.view().len(), "纊 2\n纊 1\n").unwrap();
    assert_eq!(made, b"\xfa\x5c 2\n\xed\x40 1\n");
}

#[test]
fn rewriting_keeps_encoding_mark_and_line_ends() {
    let rewrite =
        |raw: &[u8], content: &str| Text::decode(raw.to_vec()).unwrap().rewrite(content).unwrap();
    assert_eq!(rewrite(b"\xef\xbb\xbfa\r\nb\r\n", "x\ny"), b"\xef\xbb\xbfx\r\ny\r\n");
    assert_eq!(rewrite(b"\xef\xbb\xbfa\n", "\u{feff}x\r\n"), b"\xef\xbb\xbfx\n");
    assert_eq!(rewrite(b"\xff\xfea\0\n\0", "b"), b"\xff\xfeb\0\n\0");
    assert_eq!(rewrite(b"a\r\nb\r\nc\n", "x\ny\n"), b"x\r\ny\r\n");
    assert_eq!(rewrite(b"a\nb", "x"), b"x");
    assert_eq!(rewrite(b"a\n", ""), b"");
    assert_eq!(rewrite(b"", "x\r\ny"), b"x\r\ny");
}

#[test]
fn a_file_that_becomes_utf_8_keeps_its_line_ends() {
    let german = encoded(WINDOWS_1252, "Größe\r\nfür Männer\r\n");
    let text = Text::decode(german).unwrap();
    assert!(matches!(text.rewrite("→\nü"), Err(Unwritable::Character { character: '→', .. })));
    let made = text.rewrite_in_utf8("→\nü \u{fffd}");
    assert_eq!(made, "→\r\nü \u{fffd}\r\n".as_bytes());
    assert_eq!(Text::decode(made).unwrap().encoding(), "UTF-8");
    let marked = Text::decode("\u{feff}a\n".into()).unwrap();
    assert_eq!(marked.rewrite_in_utf8("b"), "\u{feff}b\n".as_bytes());
    let wide = Text::decode(b"\xff\xfea\0".to_vec()).unwrap();
    assert_eq!(wide.rewrite_in_utf8("b"), b"b");
}

#[test]
fn a_long_line_says_how_much_more_it_has() {
    for (line, more) in
        [("ü".repeat(2_000), 0), ("😀".repeat(2_001), 4), ("x".repeat(99_999), 97_999)]
    {
        for end in ["", "\n", "\r\n"] {
            let source = format!("\u{feff}{line}{end}");
            let mut lines = Lines::open(source.as_bytes()).unwrap();
            let first = lines.read().unwrap().unwrap();
            assert_eq!(
                (first.text.chars().count(), first.more),
                (line.chars().count().min(2_000), more)
            );
            assert!(lines.read().unwrap().is_none());
        }
    }
}
