//! No text takes long, goes deep or brings the parsers down.
#![allow(
    clippy::disallowed_methods,
    reason = "time is what is measured, and stacks are made small"
)]

use super::super::doubt::Doubt;
use super::super::{LONGEST, MOST_SEGMENTS, Word, read};
use super::{check, segments};
use std::time::{Duration, Instant};

/// Everything that opens something, and other things that repeat badly.
const OPENERS: &[&str] = &[
    "(",
    "( ",
    "((",
    "$(",
    "$( ",
    "$((",
    "${",
    "${a:-",
    "$[",
    "`",
    "\"",
    "'",
    "\"$(",
    "{ ",
    "{",
    "{a,",
    "[",
    "[ ",
    "[[ ",
    "[[ ( ",
    "[[ ! ",
    "if ",
    "if a; then ",
    "while ",
    "until ",
    "for a in b; do ",
    "for ((",
    "case a in b) ",
    "case a in (b) ",
    "case a in ",
    "select a in b; do ",
    "a() { ",
    "a() (",
    "function a { ",
    "function a () ",
    "coproc ",
    "coproc a { ",
    "! ",
    "time ",
    "a=(",
    "a[",
    "<(",
    "a <(",
    "> >(",
    "<<A ",
    "<<'A' ",
    "<<-A ",
    "<<'' ",
    "<<\"\"\n",
    "<<A\n",
    "a <<A | ",
    "a <<A && ",
    "<<<",
    "\\",
    "\\\n",
    "a && ",
    "a || ",
    "a | ",
    "a |& ",
    "a & ",
    "a; ",
    "a\n",
    "\n",
    ";",
    "&",
    "|",
    "&&",
    ">",
    "> a ",
    "<",
    "2>&1 ",
    "$a",
    "$",
    "~",
    "~/",
    "*",
    "?(",
    "!(",
    "@(a|",
    "#",
    "# a\n",
    "a=",
    "a=b ",
    "=",
    "1",
    "9>",
    "-a ",
    "-eq ",
    "]",
    ")",
    "}",
    "fi ",
    "done ",
    "esac ",
    ";;",
    "é",
    "\u{1}",
    "\0",
    "\r\n",
    "{1..",
    "a#",
    "\"a\"",
    "'a'",
    "\\ ",
    "$'",
    "$\"",
    "$'a'",
    "declare a=",
    "export ",
    "unset ",
    "((a",
    "$((a+",
    "$((${a:-$(",
    "a `b \\`",
    "[[ a =~ (",
    "[[ a == ",
    "[ a = ",
    "++",
    "a ? b : ",
];

#[test]
fn nothing_overflows_a_small_stack() {
    let run = || {
        for opener in OPENERS {
            for count in [10, 39, 41, 1_000] {
                let text = opener.repeat(count.min(LONGEST / opener.len()));
                read(&text);
                read(&format!("a {text}"));
            }
            // Balanced, as far as anything can be.
            let close: String = opener.chars().rev().map(closing).collect();
            for count in [38, 60, 500] {
                read(&format!("{} a; {}", opener.repeat(count), close.repeat(count)));
            }
        }
        for (open, close) in [
            ("{ ", "; }"),
            ("(", ")"),
            ("( ", " )"),
            ("if a; then ", "; fi"),
            ("a $(", ")"),
            ("a \"$(", ")\""),
            ("case a in b) ", ";; esac"),
            ("while ", "; do b; done"),
            ("for a in b; do ", "; done"),
            ("a() { ", "; }"),
            ("a ${b:-", "}"),
            ("[[ ( ", " ) ]]"),
            ("a <(", ")"),
            ("a $((", "))"),
        ] {
            for count in [10, 20, 30, 39, 40, 41, 80, 400] {
                let text = format!("{}rm x{}", open.repeat(count), close.repeat(count));
                assert!(!segments(&read(&text).items).is_empty() || open.contains("(("), "{text}");
            }
        }
    };
    std::thread::Builder::new().stack_size(512 * 1024).spawn(run).unwrap().join().unwrap();
}

fn closing(character: char) -> char {
    match character {
        '(' => ')',
        '{' => '}',
        '[' => ']',
        '$' => ' ',
        other => other,
    }
}

#[test]
fn the_longest_text_takes_bounded_time() {
    let limit = Duration::from_secs(20);
    let mut slowest = (Duration::ZERO, String::new());
    for opener in OPENERS {
        for text in [
            opener.repeat(LONGEST / opener.len()),
            format!("{} a", opener.repeat(40)),
            format!("a {}", format!("{opener} a ").repeat(9_000 / opener.len())),
        ] {
            let started = Instant::now();
            read(&text);
            let took = started.elapsed();
            assert!(took < limit, "{opener:?} took {took:?} with {} bytes", text.len());
            if took > slowest.0 {
                slowest = (took, format!("{opener:?}, {} bytes", text.len()));
            }
        }
    }
    println!("the slowest: {slowest:?}");
}

#[test]
fn ten_thousand_commands_are_told_and_no_more() {
    for join in ["; ", " && ", "\n", " || "] {
        let text = vec!["a"; MOST_SEGMENTS].join(join);
        let reading = read(&text);
        assert_eq!(reading.doubts, Vec::<String>::new(), "{join:?}");
        assert_eq!(segments(&reading.items).len(), MOST_SEGMENTS);
    }
    let text = vec!["a"; MOST_SEGMENTS + 1].join(";");
    let reading = read(&text);
    assert_eq!(reading.doubts, [Doubt::Segments.says()]);
    assert!(matches!(segments(&reading.items).last().unwrap().words[..], [Word::Opaque(_)]));
}

#[test]
fn what_is_too_long_or_too_deep_is_one_unknown_command() {
    let long = format!("a {}", "b".repeat(LONGEST));
    let reading = read(&long);
    assert_eq!(reading.doubts, [Doubt::Length.says()]);
    assert!(matches!(&segments(&reading.items)[..], [one] if one.words == [Word::Opaque(long)]));
    let just = format!("a {}", "b".repeat(LONGEST - 2));
    assert_eq!(read(&just).doubts, Vec::<String>::new());
    let deep = format!("{}rm x{}", "{ ".repeat(1_000), "; }".repeat(1_000));
    let reading = read(&deep);
    assert!(reading.doubts.iter().any(|each| each == Doubt::Depth.says()));
    assert!(
        segments(&reading.items).iter().any(|each| matches!(each.words[..], [Word::Opaque(_)]))
    );
}

#[test]
fn documents_that_end_at_nothing_end() {
    for mark in
        ["''", "\"\"", "\\\n''", "-''", "- \"\"''", "''\t", "'' ; a", "'' # b", "#", "", "-"]
    {
        for text in [
            format!("a <<{mark}"),
            format!("a (b<<{mark} "),
            format!("a <\\\n<{mark} "),
            format!("a $(b <<{mark})"),
            format!("a `b <<{mark}`"),
            format!("a <<A <<{mark}\nA\n"),
            format!("a <<{mark}\nb\n\nrm c"),
        ] {
            let reading = read(&text);
            assert!(!reading.doubts.is_empty(), "{text:?}");
        }
    }
    const PIECES: &[&str] = &[
        "<<''",
        "<<\"\"",
        "<<-''",
        "<<A",
        "<<",
        "''",
        "A",
        "a",
        " ",
        "\n",
        "\\",
        "\\\n",
        "#",
        "`",
        "$(",
        ")",
        "'",
        "\"",
        "((",
        "${",
        "}",
        ";",
        "|",
        "{ ",
        "case a in ",
        "<(",
        "$((",
        "[[ ",
        "=",
    ];
    let mut number = 1_u64;
    for _ in 0..60_000 {
        let mut text = String::new();
        for _ in 0..8 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push_str(PIECES[(number >> 33) as usize % PIECES.len()]);
            read(&text);
        }
    }
}

#[test]
fn no_character_brings_a_parser_down() {
    for character in ['é', '\u{2028}', '\u{ffff}', '\u{e012c}', '\u{10ffff}'] {
        for place in OPENERS.iter().chain(&["a ", "a{1..", "$", "${", "a=", "<<", "\\", "~"]) {
            read(&format!("{place}{character}"));
            read(&format!("{place}{character}{character} {character}={character}"));
        }
    }
    let reading = read("cat é/ü 'ß' naïve*");
    assert_eq!(reading.doubts, Vec::<String>::new());
    let words = |each: &Word| each.text().to_owned();
    let words: Vec<String> = segments(&reading.items)[0].words.iter().map(words).collect();
    assert_eq!(words, ["cat", "é/ü", "ß", "naïve*"]);
}

#[test]
fn numbers_that_bring_a_parser_down_are_doubted() {
    for text in
        ["a 99999999999>b", "99999999999<b", "a 99999\\\n999999>b", "a ~99999999999999999999"]
    {
        check(text);
    }
    assert!(!read("a 99999999999>b").doubts.is_empty());
}
