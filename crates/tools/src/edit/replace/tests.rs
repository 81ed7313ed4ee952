//! What holds for every edit: hostile sizes, any text at all, and what the one who wrote it reads.

use super::{Count, Miss, Splice, Strategy, replace};
use expect_test::expect;
use proptest::prelude::{Strategy as _, prop_oneof, proptest};
use proptest::test_runner::Config;
use proptest::{collection::vec, prop_assert, prop_assert_eq, sample::select};

/// The text after an edit.
pub(super) fn apply(text: &str, splices: &[Splice]) -> String {
    let (mut after, mut from) = (String::new(), 0);
    for splice in splices {
        after.push_str(&text[from..splice.range.start]);
        after.push_str(&splice.new);
        from = splice.range.end;
    }
    after + &text[from..]
}

pub(super) fn applied(text: &str, old: &str, new: &str, count: Count) -> (String, Strategy) {
    match replace(text, old, new, count) {
        Ok(replaced) => (apply(text, &replaced.splices), replaced.strategy),
        Err(miss) => panic!("{text:?} {old:?}: {miss:?}"),
    }
}

pub(super) fn refused(text: &str, old: &str, new: &str, count: Count) -> Miss {
    match replace(text, old, new, count) {
        Ok(replaced) => panic!("{text:?} {old:?}: {replaced:?}"),
        Err(miss) => miss,
    }
}

#[test]
fn an_edit_that_says_nothing_is_refused() {
    assert_eq!(refused("a", "a", "a", Count::One), Miss::Same);
    assert_eq!(refused("a\n", "a\r\n", "a\n", Count::All), Miss::Same);
    assert_eq!(refused("a", "", "b", Count::One), Miss::Empty);
    assert_eq!(refused("a", "", "b", Count::All), Miss::Empty);
}

#[test]
fn white_space_is_text_where_it_stands_exactly() {
    for (text, old, new, count, after) in [
        ("a\tb", "\t", " ", Count::One, "a b"),
        ("a\n\n\nb\n", "\n\n\n", "\n\n", Count::One, "a\n\nb\n"),
        ("a\n\n\nb\n", "\r\n\r\n\r\n", "\n", Count::One, "a\nb\n"),
        ("a\tb\tc", "\t", "", Count::All, "abc"),
    ] {
        assert_eq!(applied(text, old, new, count).0, after, "{text:?} {old:?}");
    }
    let miss = refused("a\tb\n\tc", "\t", " ", Count::One);
    assert!(matches!(&miss, Miss::Ambiguous { lines, .. } if *lines == [1, 2]), "{miss:?}");
    for text in ["a b", "a\n  \nb"] {
        let miss = refused(text, "\n\t\n", "\n", Count::All).to_string();
        assert!(miss.contains("white space") && !miss.contains("empty"), "{miss}");
    }
}

#[test]
fn who_wants_all_places_is_not_told_to_want_them() {
    let miss = refused("a \na \na \n", "a\na\n", "b\n", Count::All);
    assert!(matches!(miss, Miss::Ambiguous { .. }), "{miss:?}");
    assert!(!miss.to_string().contains("replaceAll"), "{miss}");
}

/// Looking at the whole file for each of its places would take minutes.
#[test]
#[allow(clippy::disallowed_methods, reason = "the test measures itself")]
fn many_places_in_a_long_file_are_found_in_linear_time() {
    let block = "    alpha\n    beta\n\n";
    let text = block.repeat(900) + &"if gamma:\n    delta()\n".repeat(100_000);
    let started = std::time::Instant::now();
    let (after, strategy) = applied(&text, "alpha\nbeta", "alpha\nbeta2", Count::All);
    assert_eq!(strategy, Strategy::IndentationFlexible);
    assert_eq!(after, text.replace("beta", "beta2"));
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn a_match_far_larger_than_the_old_text_is_refused() {
    let long = "x".repeat(2_000);
    let text = format!(
        "fn start() {{\n    first();\n    second({long});\n    third();\n    last();\n}}\n"
    );
    let old = text.replace(&long, "y");
    let miss = refused(&text, &old, &old.replace("last();", "end();"), Count::One);
    assert!(matches!(miss, Miss::TooLarge { first: 1, last: 6, .. }), "{miss:?}");
}

#[test]
fn what_a_miss_says() {
    let text = "fn a() {\n    one(1);\n    two();\n}\n";
    let miss = refused(text, "fn a() {\n    one(2);\n}", "x", Count::One);
    let twice = refused("a\nb\na\n", "a", "c", Count::One);
    let drifted = "fn a() {\n    one(2);\n    two();\n}";
    let uncertain = refused(text, drifted, &drifted.replace("one(2)", "three"), Count::One);
    let gone = refused(text, "nothing of this is there", "x", Count::One);
    expect![[r#"
        oldString is not in the file. The nearest text is lines 1 to 3 (- oldString, + file):
          1 | fn a() {
        -   |     one(2);
        -   | }
        + 2 |     one(1);
        + 3 |     two();
        Copy the text from the file into oldString, or read the file again.
        oldString fits several places, at the lines 1, 3. Add lines around it so that it fits one, or set replaceAll to change every occurrence.
        oldString is not in the file as it is written, and too much differs to be sure that this is the place, so nothing changed. The nearest text is lines 1 to 4 (- oldString, + file):
          1 | fn a() {
        -   |     one(2);
        + 2 |     one(1);
          3 |     two();
          4 | }
        Copy the text from the file into oldString and try again.
        oldString is not in the file, and nothing in it is similar. Read the file and copy the text from it.
    "#]]
    .assert_eq(&format!("{miss}\n{twice}\n{uncertain}\n{gone}\n"));
}

#[test]
fn pathological_texts_take_no_time() {
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
        for count in [Count::One, Count::All] {
            let _ = replace(text, old, &format!("{old}new\n"), count);
        }
    }
}

/// Texts of few lines and words, so that edits often fit.
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

proptest! {
    #![proptest_config(Config { cases: 4_000, ..Config::default() })]

    #[test]
    fn splices_are_in_order_in_bounds_and_on_characters(
        text in texts(), old in texts(), new in texts(), all in proptest::bool::ANY,
    ) {
        let count = if all { Count::All } else { Count::One };
        match replace(&text, &old, &new, count) {
            Ok(replaced) => {
                let mut from = 0;
                for splice in &replaced.splices {
                    prop_assert!(from <= splice.range.start && splice.range.start <= splice.range.end);
                    prop_assert!(text.get(splice.range.clone()).is_some());
                    from = splice.range.end;
                }
                prop_assert!(apply(&text, &replaced.splices) != text);
            }
            Err(miss) => prop_assert!(!miss.to_string().is_empty()),
        }
    }

    #[test]
    fn an_exact_edit_is_the_literal_one(text in texts(), from in 0..40_usize, length in 1..20_usize, new in texts()) {
        let characters: Vec<char> = text.chars().collect();
        let old: String = characters.iter().skip(from).take(length).collect();
        let new = new.replace('\r', "");
        if old.is_empty() || old == new || old.contains('\r') {
            return Ok(());
        }
        let several = text.char_indices().filter(|(at, _)| text[*at..].starts_with(&old)).count() > 1;
        match replace(&text, &old, &new, Count::One) {
            Ok(replaced) => {
                prop_assert!(!several);
                prop_assert_eq!(apply(&text, &replaced.splices), text.replacen(&old, &new, 1));
                prop_assert_eq!(replaced.strategy, Strategy::Exact);
            }
            Err(miss) => {
                let ambiguous = matches!(miss, Miss::Ambiguous { .. });
                prop_assert!(several && ambiguous);
            }
        }
        let replaced = replace(&text, &old, &new, Count::All).unwrap();
        prop_assert_eq!(apply(&text, &replaced.splices), text.replace(&old, &new));
    }

    #[test]
    fn an_edit_that_was_shifted_as_a_whole_is_the_exact_one_or_none(
        text in texts(), first in 0..8_usize, length in 1..5_usize, at in 0..5_usize,
        deeper in select(vec!["  ", "\t", "    "]),
    ) {
        let lines: Vec<&str> = text.split('\n').collect();
        let old: Vec<&str> = lines.iter().copied().skip(first).take(length).collect();
        if at >= old.len() || old.concat().trim().is_empty() || text.contains('\r') {
            return Ok(());
        }
        let mut new = old.clone();
        new[at] = "changed";
        let shifted = |lines: &[&str]| -> String {
            lines.iter().map(|line| format!("{deeper}{line}\n")).collect()
        };
        let (old_text, new_text) = (shifted(&old), shifted(&new));
        if let Ok(replaced) = replace(&text, &old_text, &new_text, Count::One) {
            let after = apply(&text, &replaced.splices);
            let changed = after.split('\n').zip(&lines).filter(|(a, b)| a != *b).count();
            prop_assert!(changed <= 1, "{:?} {:?} {:?}", old_text, new_text, after);
        }
    }
}
