//! Tests of `replace`: large inputs, generated texts and error messages.

use super::{EditError, MatchStrategy, ReplaceCount, TextSplice, replace};
use expect_test::expect;
use proptest::prelude::{Strategy as _, prop_oneof, proptest};
use proptest::test_runner::Config;
use proptest::{collection::vec, prop_assert, prop_assert_eq, sample::select};

/// Returns the text after an edit.
pub(super) fn apply(text: &str, splices: &[TextSplice]) -> String {
    let (mut after, mut position) = (String::new(), 0);
    for splice in splices {
        after.push_str(&text[position..splice.range.start]);
        after.push_str(&splice.new_text);
        position = splice.range.end;
    }
    after + &text[position..]
}

pub(super) fn apply_edit(
    text: &str,
    old: &str,
    new: &str,
    count: ReplaceCount,
) -> (String, MatchStrategy) {
    match replace(text, old, new, count) {
        Ok(replaced) => (apply(text, &replaced.splices), replaced.strategy),
        Err(error) => panic!("{text:?} {old:?}: {error:?}"),
    }
}

pub(super) fn edit_error(text: &str, old: &str, new: &str, count: ReplaceCount) -> EditError {
    match replace(text, old, new, count) {
        Ok(replaced) => panic!("{text:?} {old:?}: {replaced:?}"),
        Err(error) => error,
    }
}

#[test]
fn an_empty_or_identical_edit_is_rejected() {
    assert_eq!(edit_error("a", "a", "a", ReplaceCount::One), EditError::OldEqualsNew);
    assert_eq!(edit_error("a\n", "a\r\n", "a\n", ReplaceCount::All), EditError::OldEqualsNew);
    assert_eq!(edit_error("a", "", "b", ReplaceCount::One), EditError::EmptyOldText);
    assert_eq!(edit_error("a", "", "b", ReplaceCount::All), EditError::EmptyOldText);
}

#[test]
fn whitespace_is_replaced_only_exactly() {
    for (text, old, new, count, after) in [
        ("a\tb", "\t", " ", ReplaceCount::One, "a b"),
        ("a\n\n\nb\n", "\n\n\n", "\n\n", ReplaceCount::One, "a\n\nb\n"),
        ("a\n\n\nb\n", "\r\n\r\n\r\n", "\n", ReplaceCount::One, "a\nb\n"),
        ("a\tb\tc", "\t", "", ReplaceCount::All, "abc"),
    ] {
        assert_eq!(apply_edit(text, old, new, count).0, after, "{text:?} {old:?}");
    }
    let error = edit_error("a\tb\n\tc", "\t", " ", ReplaceCount::One);
    assert!(matches!(&error, EditError::Ambiguous { lines, .. } if *lines == [1, 2]), "{error:?}");
    for text in ["a b", "a\n  \nb"] {
        let error = edit_error(text, "\n\t\n", "\n", ReplaceCount::All).to_string();
        assert!(error.contains("only whitespace") && !error.contains("empty"), "{error}");
    }
}

#[test]
fn an_ambiguous_replace_all_does_not_suggest_replace_all() {
    let error = edit_error("a \na \na \n", "a\na\n", "b\n", ReplaceCount::All);
    assert!(matches!(error, EditError::Ambiguous { .. }), "{error:?}");
    assert!(!error.to_string().contains("replaceAll"), "{error}");
}

/// A scan of the whole file for each match would take minutes.
#[test]
#[allow(clippy::disallowed_methods, reason = "the test measures itself")]
fn many_matches_in_a_long_file_are_found_in_linear_time() {
    let block = "    alpha\n    beta\n\n";
    let text = block.repeat(900) + &"if gamma:\n    delta()\n".repeat(100_000);
    let started = std::time::Instant::now();
    let (after, strategy) = apply_edit(&text, "alpha\nbeta", "alpha\nbeta2", ReplaceCount::All);
    assert_eq!(strategy, MatchStrategy::IndentationFlexible);
    assert_eq!(after, text.replace("beta", "beta2"));
    assert!(
        started.elapsed()
            < windlass_testkit::time_limits::limit(std::time::Duration::from_secs(20)),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn a_match_far_larger_than_the_old_text_is_rejected() {
    let long = "x".repeat(2_000);
    let text = format!(
        "fn start() {{\n    first();\n    second({long});\n    third();\n    last();\n}}\n"
    );
    let old = text.replace(&long, "y");
    let error = edit_error(&text, &old, &old.replace("last();", "end();"), ReplaceCount::One);
    assert!(
        matches!(error, EditError::MatchTooLarge { first_line: 1, last_line: 6, .. }),
        "{error:?}"
    );
}

#[test]
fn error_messages() {
    let text = "fn a() {\n    one(1);\n    two();\n}\n";
    let closest = edit_error(text, "fn a() {\n    one(2);\n}", "x", ReplaceCount::One);
    let ambiguous = edit_error("a\nb\na\n", "a", "c", ReplaceCount::One);
    let outdated = "fn a() {\n    one(2);\n    two();\n}";
    let uncertain =
        edit_error(text, outdated, &outdated.replace("one(2)", "three"), ReplaceCount::One);
    let not_found = edit_error(text, "nothing of this is there", "x", ReplaceCount::One);
    expect![[r#"
        oldString was not found in the file. The closest text is lines 1 to 3 (- oldString, + file):
          1 | fn a() {
        -   |     one(2);
        -   | }
        + 2 |     one(1);
        + 3 |     two();
        Copy the text from the file into oldString, or read the file again.
        oldString matches several places, at lines 1, 3. Add surrounding lines so that it matches only one, or set replaceAll to change every occurrence.
        oldString does not match the file exactly, and too much differs to be sure that this is the right place, so nothing changed. The closest text is lines 1 to 4 (- oldString, + file):
          1 | fn a() {
        -   |     one(2);
        + 2 |     one(1);
          3 |     two();
          4 | }
        Copy the text from the file into oldString and try again.
        oldString was not found in the file, and nothing in it is similar. Read the file and copy the text from it.
    "#]]
    .assert_eq(&format!("{closest}\n{ambiguous}\n{uncertain}\n{not_found}\n"));
}

#[test]
fn pathological_texts_are_fast() {
    let equal = "    }\n".repeat(100_000);
    let numbered: String =
        (0..30_000).map(|n| format!("    let value_{n} = compute({n});\n")).collect();
    let old: String = (0..200).map(|n| format!("  let value_{n} = other({n});\n")).collect();
    let braces = "}\n".repeat(200);
    let framed = format!("    }}\n{old}    }}\n");
    for (text, old) in [
        (&equal, &braces),
        (&equal, &framed),
        (&numbered, &old),
        (&numbered, &format!("{numbered}x\n")),
        (&equal, &format!("{}x", "  }\n".repeat(5_000))),
        (&"a ".repeat(500_000), &"a".repeat(300)),
        (&"a ".repeat(500_000), &"a  ".repeat(300)),
    ] {
        for count in [ReplaceCount::One, ReplaceCount::All] {
            let _ = replace(text, old, &format!("{old}new\n"), count);
        }
    }
}

/// Generates texts of few different lines and words, so that edits often match.
fn texts() -> impl proptest::strategy::Strategy<Value = String> {
    let lines = select(vec![
        "a",
        "b",
        "  a",
        "\ta",
        "a  ",
        "a b",
        "a  b",
        "",
        " ",
        "}",
        "  }",
        "é",
        "“é”",
        "a\\n",
        "\\\"",
        "alpha beta",
        "    alpha  beta",
        "\r",
    ]);
    (vec(lines, 0..12), prop_oneof!["", "\n"]).prop_map(|(lines, end)| lines.join("\n") + &end)
}

#[test]
fn adjacent_lines_at_the_end_of_a_text_can_be_deleted() {
    let text = "    alpha  beta\n    alpha  beta";
    let replaced = replace(text, "alpha beta\n", "", ReplaceCount::All).unwrap();
    assert_eq!(apply(text, &replaced.splices), "");
}

proptest! {
    #![proptest_config(Config { cases: 4_000, ..Config::default() })]

    #[test]
    fn splices_are_sorted_in_bounds_and_at_char_boundaries(
        text in texts(), old in texts(), new in texts(), all in proptest::bool::ANY,
    ) {
        let count = if all { ReplaceCount::All } else { ReplaceCount::One };
        match replace(&text, &old, &new, count) {
            Ok(replaced) => {
                let mut position = 0;
                for splice in &replaced.splices {
                    let range = splice.range.clone();
                    prop_assert!(position <= range.start && range.start <= range.end);
                    prop_assert!(text.get(range.clone()).is_some());
                    position = range.end;
                }
                prop_assert!(apply(&text, &replaced.splices) != text);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn an_exact_match_is_replaced_literally(
        text in texts(),
        from in 0..40_usize,
        length in 1..20_usize,
        new in texts(),
    ) {
        let characters: Vec<char> = text.chars().collect();
        let old: String = characters.iter().skip(from).take(length).collect();
        let new = new.replace('\r', "");
        if old.is_empty() || old == new || old.contains('\r') {
            return Ok(());
        }
        let is_match = |(offset, _): &(usize, char)| text[*offset..].starts_with(&old);
        let is_ambiguous = text.char_indices().filter(is_match).count() > 1;
        match replace(&text, &old, &new, ReplaceCount::One) {
            Ok(replaced) => {
                prop_assert!(!is_ambiguous);
                prop_assert_eq!(apply(&text, &replaced.splices), text.replacen(&old, &new, 1));
                prop_assert_eq!(replaced.strategy, MatchStrategy::Exact);
            }
            Err(error) => {
                let ambiguous = matches!(error, EditError::Ambiguous { .. });
                prop_assert!(is_ambiguous && ambiguous);
            }
        }
        let replaced = replace(&text, &old, &new, ReplaceCount::All).unwrap();
        prop_assert_eq!(apply(&text, &replaced.splices), text.replace(&old, &new));
    }

    #[test]
    fn a_shifted_edit_changes_at_most_one_line(
        text in texts(), first in 0..8_usize, length in 1..5_usize, index in 0..5_usize,
        deeper in select(vec!["  ", "\t", "    "]),
    ) {
        let lines: Vec<&str> = text.split('\n').collect();
        let old: Vec<&str> = lines.iter().copied().skip(first).take(length).collect();
        if index >= old.len() || old.concat().trim().is_empty() || text.contains('\r') {
            return Ok(());
        }
        let mut new = old.clone();
        new[index] = "changed";
        let indent = |lines: &[&str]| -> String {
            lines.iter().map(|line| format!("{deeper}{line}\n")).collect()
        };
        let (old_text, new_text) = (indent(&old), indent(&new));
        if let Ok(replaced) = replace(&text, &old_text, &new_text, ReplaceCount::One) {
            let after = apply(&text, &replaced.splices);
            let changed = after.split('\n').zip(&lines).filter(|(a, b)| a != *b).count();
            prop_assert!(changed <= 1, "{:?} {:?} {:?}", old_text, new_text, after);
        }
    }
}
