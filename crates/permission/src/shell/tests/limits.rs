//! Limits of the parsers: time, stack depth, text length and number of commands.
#![allow(clippy::disallowed_methods, reason = "the tests measure time and use small stacks")]

use super::super::ambiguity_reasons::ShellAmbiguity;
use super::super::{MAX_COMMAND_BYTES, MAX_SEGMENTS, ShellWord, parse_command_line};
use super::{check_invariants, segments};
use std::time::{Duration, Instant};

/// Everything that opens a nested construct, and other text that is costly to repeat.
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
                let text = opener.repeat(count.min(MAX_COMMAND_BYTES / opener.len()));
                parse_command_line(&text);
                parse_command_line(&format!("a {text}"));
            }
            // Balanced, where the opener has a closing character.
            let close: String = opener.chars().rev().map(closing_char).collect();
            for count in [38, 60, 500] {
                parse_command_line(&format!("{} a; {}", opener.repeat(count), close.repeat(count)));
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
                assert!(
                    !segments(&parse_command_line(&text).items).is_empty() || open.contains("(("),
                    "{text}"
                );
            }
        }
        // The parser nests these to the left.
        for operator in ["&&", "||", " -a ", "|", ";", "+", "\n"] {
            let count = MAX_COMMAND_BYTES / (operator.len() + 1) - 10;
            let operands = vec!["a"; count].join(operator);
            for (open, close) in
                [("[[ ", " ]]"), ("(( ", " ))"), ("a $((", "))"), ("[ ", " ]"), ("", "")]
            {
                parse_command_line(&format!("{open}{operands}{close}"));
            }
        }
    };
    std::thread::Builder::new().stack_size(512 * 1024).spawn(run).unwrap().join().unwrap();
}

fn closing_char(character: char) -> char {
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
            opener.repeat(MAX_COMMAND_BYTES / opener.len()),
            format!("{} a", opener.repeat(40)),
            format!("a {}", format!("{opener} a ").repeat(9_000 / opener.len())),
        ] {
            let started = Instant::now();
            parse_command_line(&text);
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
fn the_number_of_commands_is_limited() {
    for join in ["; ", " && ", "\n", " || "] {
        let text = vec!["a"; MAX_SEGMENTS].join(join);
        let parsed = parse_command_line(&text);
        assert_eq!(parsed.ambiguities, [], "{join:?}");
        assert_eq!(segments(&parsed.items).len(), MAX_SEGMENTS);
    }
    let text = vec!["a"; MAX_SEGMENTS + 1].join(";");
    let parsed = parse_command_line(&text);
    assert_eq!(parsed.ambiguities, [ShellAmbiguity::TooManySegments]);
    assert!(matches!(segments(&parsed.items).last().unwrap().words[..], [ShellWord::Opaque(_)]));
}

#[test]
fn a_text_that_is_too_long_or_too_deep_is_one_opaque_command() {
    let long = format!("a {}", "b".repeat(MAX_COMMAND_BYTES));
    let parsed = parse_command_line(&long);
    assert_eq!(parsed.ambiguities, [ShellAmbiguity::TooLong]);
    assert!(
        matches!(&segments(&parsed.items)[..], [one] if one.words == [ShellWord::Opaque(long)])
    );
    let longest = format!("a {}", "b".repeat(MAX_COMMAND_BYTES - 2));
    assert_eq!(parse_command_line(&longest).ambiguities, []);
    let deep = format!("{}rm x{}", "{ ".repeat(1_000), "; }".repeat(1_000));
    let parsed = parse_command_line(&deep);
    assert!(parsed.ambiguities.contains(&ShellAmbiguity::TooDeep));
    assert!(
        segments(&parsed.items).iter().any(|each| matches!(each.words[..], [ShellWord::Opaque(_)]))
    );
}

#[test]
fn heredocs_with_an_empty_delimiter_terminate() {
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
            let parsed = parse_command_line(&text);
            assert!(!parsed.ambiguities.is_empty(), "{text:?}");
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
    let mut state = 1_u64;
    for _ in 0..60_000 {
        let mut text = String::new();
        for _ in 0..8 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push_str(PIECES[(state >> 33) as usize % PIECES.len()]);
            parse_command_line(&text);
        }
    }
}

#[test]
fn no_character_makes_a_parser_panic() {
    for character in ['é', '\u{2028}', '\u{ffff}', '\u{e012c}', '\u{10ffff}'] {
        for prefix in OPENERS.iter().chain(&["a ", "a{1..", "$", "${", "a=", "<<", "\\", "~"]) {
            parse_command_line(&format!("{prefix}{character}"));
            parse_command_line(&format!("{prefix}{character}{character} {character}={character}"));
        }
    }
    let parsed = parse_command_line("cat é/ü 'ß' naïve*");
    assert_eq!(parsed.ambiguities, []);
    let words = |each: &ShellWord| each.text().to_owned();
    let words: Vec<String> = segments(&parsed.items)[0].words.iter().map(words).collect();
    assert_eq!(words, ["cat", "é/ü", "ß", "naïve*"]);
}

#[test]
fn numbers_that_overflow_a_parser_are_ambiguous() {
    for text in
        ["a 99999999999>b", "99999999999<b", "a 99999\\\n999999>b", "a ~99999999999999999999"]
    {
        check_invariants(text);
    }
    assert!(!parse_command_line("a 99999999999>b").ambiguities.is_empty());
}
