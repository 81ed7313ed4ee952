//! Tests of `locate_hunks`: positions, match tolerance, and ambiguous hunks.

use super::apply_update;
use crate::apply_patch::line_search::{HunkSearchText, MatchTolerance};
use crate::apply_patch::{HunkLine, LocatedHunks, PatchHunk, locate_hunks};

fn assert_applies(before: &str, lines: &str, after: &str) {
    assert_eq!(apply_update(before, lines).as_deref(), Ok(after), "{lines}");
}

fn apply_error(before: &str, lines: &str) -> String {
    apply_update(before, lines).expect_err(lines)
}

#[test]
fn a_hunk_needs_no_header_and_blank_lines_need_no_space() {
    assert_applies("a\n\nb\n", " a\n\n-b\n+c", "a\n\nc\n");
    assert_applies("a\n\nb\n", "\n-b\n+c", "a\n\nc\n");
    assert_applies("a\nb\n", "\n@@\n-b\n+c\n\n", "a\nc\n");
    // Before a marker they may be only padding.
    assert_applies("a\nb\nx\n", "@@\n-b\n+c\n\n\n", "a\nc\nx\n");
    assert_applies("b\n\nx\n", "@@\n-b\n+c\n", "c\n\nx\n");
    assert_applies("b\n \t\nx\n", "@@\n-b\n+c\n", "c\n \t\nx\n");
    // So they cannot choose between matches, and they count if they fit another match.
    let error = apply_error("b\n\nx\nb\nx\n", "@@\n-b\n+c\n");
    assert!(error.contains("lines 1 and 4"), "{error}");
    let error = apply_error("  b\n\nx\nb\nx\n", "@@\n-b\n+c\n");
    assert!(error.contains("lines 1 and 4"), "{error}");
    assert_applies("  b\n\nx\nb\nx\n", "@@\n-b\n+c\n x\n", "  b\n\nx\nc\nx\n");
    assert_applies("b\nx\nb\n\n", "@@\n-b\n+c\n\n*** End of File", "b\nx\nc\n\n");
    // Next to added lines alone they are ignored.
    assert_applies("a\n\nb\n", "@@\n+c\n\n", "a\n\nb\nc\n");
}

#[test]
fn a_missing_final_newline_is_added_only_after_the_last_line() {
    assert_applies("a\nb", "-b\n+c", "a\nc\n");
    assert_applies("a\nb", " a\n-b", "a\n");
    assert_applies("a\nb", "-a\n+x\n b", "x\nb");
    assert_applies("a\nb", " b\n+c", "a\nb\nc\n");
    assert_applies("a\nb", "@@\n+c", "a\nb\nc\n");
    assert_applies("a", "-a", "");
    assert_applies("", "+a", "a\n");
    assert_applies("", "@@\n+a\n*** End of File", "a\n");
    assert_applies("\n", "+a", "\na\n");
    // The line without a newline is removed.
    assert_applies("a\nb", "-b\n@@\n+c", "a\nc\n");
    assert_applies("a\nb", "@@\n+c\n@@\n+d", "a\nb\nc\nd\n");
    assert_applies("a\r\nb", " b\n+c", "a\r\nb\r\nc\r\n");
}

#[test]
fn the_end_of_the_file_is_tried_first() {
    let before = "x\ny\nx\ny\n";
    assert_applies(before, "@@\n x\n-y\n+z\n*** End of File", "x\ny\nx\nz\n");
    // Even if another match is stricter.
    assert_applies("x\ny\n  x\n  y\n", "@@\n x\n-y\n+z\n*** End of File", "x\ny\n  x\n  z\n");
}

#[test]
fn an_end_of_file_hunk_elsewhere_must_be_unique() {
    assert_applies("a\nb\nc\n", "@@\n-b\n*** End of File", "a\nc\n");
    assert!(apply_error("b\nb\nc\n", "@@\n-b\n*** End of File").contains("lines 1 and 2"));
}

#[test]
fn an_ambiguous_hunk_is_rejected_with_its_matches() {
    assert_eq!(
        apply_error("x\na\nx\nb\nx\n", "@@\n-x\n+y"),
        "line 3 of the patch: this hunk matches more than one place in f: lines 1, 3 and 5.\n    \
         -x\n    +y\nAdd context lines around it, or an \"@@\" line that quotes a line above the \
         place."
    );
    let many = apply_error(&"x\n".repeat(100), "-x");
    assert!(many.contains("lines 1, 2, 3, 4, 5 and 6 and possibly more."), "{many}");
    // A strict match is unique even if other lines match loosely.
    assert_applies("  x\nx\n", "-x\n+y", "  x\ny\n");
    // Only matches below the previous hunk count.
    assert_applies("x\na\nx\n", "-a\n@@\n-x\n+y", "x\ny\n");
    // Matches may overlap.
    assert!(apply_error("x\nx\nx\n", "-x\n-x").contains("lines 1 and 2"));
}

#[test]
fn an_anchor_selects_the_first_match_below_it() {
    let before = "fn a\n  x\nfn b\n  x\n  x\n";
    assert_applies(before, "@@ fn b\n-  x\n+  y", "fn a\n  x\nfn b\n  y\n  x\n");
    assert_applies(before, "@@ fn a\n-  x\n+  y", "fn a\n  y\nfn b\n  x\n  x\n");
    assert_applies(before, "@@ fn a\n+  new", "fn a\n  new\n  x\nfn b\n  x\n  x\n");
    assert_applies("x\nx\n", "@@ x\n-x\n+y", "x\ny\n");
    // Anchors nest, and loose matching applies to them too.
    let nested = "class A\n  def f\n    x\nclass B\n  def f\n    x\n";
    let after = "class A\n  def f\n    x\nclass B\n  def f\n    y\n";
    assert_applies(nested, "@@ class B\n@@ def f\n-    x\n+    y", after);
    assert_applies(nested, "@@ class B\n@@   def f \n-    x\n+    y", after);
    // Consecutive hunks may have the same anchor if the match is unique without it.
    let twice = "@@ class A\n-    x\n@@ class A\n@@ class B\n-    x";
    assert_applies(nested, twice, "class A\n  def f\nclass B\n  def f\n");
    assert_applies("class A\n  x\n  y\n", "@@ class A\n-  x\n@@ class A\n-  y", "class A\n");
    let unclear = "@@ class A\n-  x\n@@ class A\n-  y";
    assert!(apply_error("class A\n  x\n  y\n  y\n", unclear).contains("lines 3 and 4"));
    let above = apply_error("class A\n  x\n", "@@ class A\n-  x\n@@ class A\n+  y");
    assert!(above.contains("the previous hunk ends further down"), "{above}");
}

#[test]
fn an_anchor_may_be_repeated_as_the_first_line() {
    assert_applies(
        "fn a\n  x\nfn b\n  x\n",
        "@@ fn b\n fn b\n-  x\n+  y",
        "fn a\n  x\nfn b\n  y\n",
    );
    assert_applies(
        "fn a\n  z\nfn a\n  x\n",
        "@@ fn a\n fn a\n-  x\n+  y",
        "fn a\n  z\nfn a\n  y\n",
    );
    let error = apply_error("fn a\n  x\nfn a\n  x\n", "@@ fn a\n fn a\n-  x\n+  y");
    assert!(error.contains("lines 1 and 3"), "{error}");
}

#[test]
fn a_missing_anchor_is_quoted() {
    assert_eq!(
        apply_error("fn one(a: u8) {\n}\n", "@@ fn one(a: u16) {\n-}"),
        "line 3 of the patch: this hunk quotes a line in \"@@ fn one(a: u16) {\" that is not in \
         f.\n    @@ fn one(a: u16) {\n    -}\nThe closest text is line 1 (- the patch, + the \
         file):\n-   | fn one(a: u16) {\n+ 1 | fn one(a: u8) {\nAfter \"@@\", write one whole \
         line of the file, or nothing."
    );
}

#[test]
fn context_lines_keep_the_text_of_the_file() {
    assert_applies("a  \nb\t\nc\n", " a\n-b\n+B\n c  ", "a  \nB\nc\n");
    assert_applies(
        "say \u{201c}hi\u{201d} \u{2014} now\nx\n",
        " say \"hi\" - now\n-x\n+y",
        "say \u{201c}hi\u{201d} \u{2014} now\ny\n",
    );
    assert_applies("a\u{a0}b\nx\n", " a b\n-x", "a\u{a0}b\n");
    assert_applies("it's\nx\n", " it\u{2019}s\n-x", "it's\n");
}

#[test]
fn added_lines_follow_a_uniform_shift_of_indentation() {
    assert_applies(
        "\tif a {\n\t\tb\n\t}\n",
        " if a {\n-\tb\n+\tc\n+\n+\td\n }",
        "\tif a {\n\t\tc\n\n\t\td\n\t}\n",
    );
    assert_applies("a:\n  b\n", "     a:\n-      b\n+      c\n+    d", "a:\n  c\nd\n");
    // Removed lines need no shift.
    assert_applies("  a\n\tb\n", " a\n-b", "  a\n");
    // Blank lines do not show an indentation.
    assert_applies("    a\n\n    b\n", " a\n   \n-b\n+c", "    a\n\n    c\n");
}

#[test]
fn a_shift_that_is_not_uniform_is_rejected() {
    for (before, lines) in [
        ("  a\n      b\n", " a\n-b\n+c"),
        ("\ta\n", "-    a\n+    b"),
        ("a\n  b\n", "   a\n-    b\n+ c"),
    ] {
        let error = apply_error(before, lines);
        assert!(error.contains("the difference is not uniform"), "{error}");
        assert!(error.ends_with("Read the file and copy the indentation exactly."), "{error}");
    }
}

#[test]
fn a_hunk_without_a_match_quotes_the_closest_text() {
    assert_eq!(
        apply_error("one\ntwo\nthree\nfour\n", "@@\n one\n two\n-3\n+4\n five"),
        "line 3 of the patch: this hunk does not match f.\n     one\n     two\n    -3\n    …\n\
         The closest text is lines 1 to 4 (- the patch, + the file):\n  1 | one\n  2 | two\n\
         -   | 3\n-   | five\n+ 3 | three\n+ 4 | four\nRead the file and copy its lines exactly."
    );
    let similar = apply_error("a\nlet value = compute(1);\n", "-let value = compute(2);\n+x");
    assert!(similar.contains("\n+ 2 | let value = compute(1);\n"), "{similar}");
    assert!(apply_error("", "-x").contains("The file is empty."));
    assert!(apply_error("abc\n", "-x").contains("Nothing in the file is similar."));
    let end = apply_error("one\ntwo words\n", " two words\n-three");
    assert!(
        end.contains("line 2 (- the patch, + the file):\n  2 | two words\n-   | three\n"),
        "{end}"
    );
    let order = apply_error("a\nb\n", "-b\n@@\n-a");
    assert!(
        order.contains("matches f only at line 1, which is not below the hunk before it."),
        "{order}"
    );
    let above = apply_error("a\nb\n", "@@ b\n-a");
    assert!(
        above.contains("matches f only at line 1, which is not below its \"@@\" line."),
        "{above}"
    );
}

#[test]
fn only_changed_lines_are_spliced() {
    let hunk = PatchHunk {
        lines: vec![
            HunkLine::Context("a".into()),
            HunkLine::Remove("b".into()),
            HunkLine::Context("c".into()),
            HunkLine::Add("d".into()),
        ],
        ..PatchHunk::default()
    };
    let LocatedHunks { splices, is_loose_match } =
        locate_hunks("f", "a\nb\nc\n", &[&[hunk]]).unwrap();
    assert!(!is_loose_match);
    let parts: Vec<_> =
        splices.iter().map(|splice| (splice.range.clone(), splice.new_text.as_str())).collect();
    assert_eq!(parts, [(2..4, ""), (6..6, "d\n")]);
}

#[test]
fn insertions_at_one_line_keep_the_order_of_the_patch() {
    assert_applies("a\nb\n", " a\n+1\n@@\n+2\n b", "a\n1\n2\nb\n");
    assert_applies("a\n", "@@\n+1\n@@\n+2\n*** Update File: f\n@@\n+3", "a\n1\n2\n3\n");
    // An insertion by a later section comes before the replacement at the same line.
    assert_applies("a\nb\n", "-b\n+B\n*** Update File: f\n@@ a\n+1", "a\n1\nB\n");
}

#[test]
fn a_long_file_of_equal_lines_is_searched_quickly() {
    let before = "x\n".repeat(500_000);
    let equal = "-x\n".repeat(1_000);
    assert!(apply_error(&before, &format!("@@\n{equal}")).contains("more than one place"));
    let with_mismatch = format!("@@\n{equal}-y");
    assert!(apply_error(&before, &with_mismatch).contains("does not match"));
    let last = format!("{before}y\n");
    assert_eq!(apply_update(&last, &with_mismatch).unwrap().len(), before.len() - 2_000);
    // Near misses everywhere: the matched prefix is long each time.
    let blocks = format!("{}y\n", "x\n".repeat(999)).repeat(500);
    assert!(apply_error(&blocks, &format!("@@\n{equal}-y")).contains("does not match"));
}

#[test]
fn many_hunks_in_a_long_file_are_limited() {
    let repeated: String = (0..400_000).map(|number| format!("{}\n", number % 1000)).collect();
    let error = apply_error(&repeated, &"@@ 999\n-0\n+x\n".repeat(300));
    assert!(error.contains("lines 1001, 2001, 3001, 4001, 5001 and 6001 and possibly"), "{error}");
    // Repeated anchors, each followed by a unique line.
    let anchored: String = (0..40_000).map(|number| format!("f\n{number}\n")).collect();
    let hunks: String = (0..300).map(|number| format!("@@ f\n-{number}\n+x\n")).collect();
    assert_eq!(apply_update(&anchored, &hunks).unwrap().matches('x').count(), 300);
    let distinct: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    let hunks: String = (0..9_000).map(|number| format!("@@\n-{number}\n+x\n")).collect();
    assert_eq!(apply_update(&distinct, &hunks).unwrap().matches('x').count(), 9_000);
    // Every line occurs twice and every pair once: each search reads to the end.
    let numbers = 0..1_000;
    let pairs: String =
        numbers.clone().chain(numbers.rev()).map(|number| format!("{number}\n")).collect();
    let view = HunkSearchText::new(&pairs);
    assert_eq!(view.find_lines(&["7", "8"], 0, 2).unwrap(), Some((MatchTolerance::Exact, vec![7])));
    view.remaining_steps.set(5_000);
    let error = (0..10).find_map(|_| view.find_lines(&["7", "8"], 0, 2).err()).unwrap().to_string();
    assert!(error.starts_with("finding this many hunks"), "{error}");
}

#[test]
fn context_lines_without_their_mark_do_not_shift_added_lines() {
    let before = "    def f():\n        a = 1\n        c = 3\n";
    let after = "    def f():\n        a = 1\n        b = 2\n        c = 3\n";
    assert_applies(before, "        a = 1\n+        b = 2\n        c = 3", after);
    // A removed line that matches exactly shows that the marks are missing.
    assert_applies("    a\n    b\n", "    a\n-    b\n+      c", "    a\n      c\n");
    // A shift that a removed line has too is a real shift.
    assert_applies("    a\n    b\n", "    a\n-   b\n+   c", "    a\n    c\n");
    for (before, lines) in [
        // With indentation by single spaces, both readings are possible.
        (" a\n c\n", " a\n+b\n c"),
        (" begin\n end\n", " begin\n+ middle\n end"),
        ("  a\n   b\n    c\n", "    c\n+   d"),
        // No line of the file is indented like the new one.
        ("    a\n    c\n", "    a\n+      b\n    c"),
        ("    a\n    c\n", "    a\n+   b\n    c"),
    ] {
        let error = apply_error(before, lines);
        assert!(error.contains("lack their leading space"), "{lines}: {error}");
    }
}

#[test]
fn a_repeated_anchor_must_lead_to_one_match() {
    let run = "    def run(self):\n        x = 1\n        y = 2\n";
    let before = format!("class A:\n{run}\nclass B:\n{run}");
    let hunk = "         x = 1\n-        y = 2\n+        y = 3";
    let error = apply_error(&before, &format!("@@     def run(self):\n{hunk}"));
    assert!(error.contains("matches more than one place in f: lines 3 and 8."), "{error}");
    let twice = before.replace("y = 2", "y = 3");
    let a = format!("{}{}", &twice[..before.len() / 2], &before[before.len() / 2..]);
    let b = format!("{}{}", &before[..before.len() / 2], &twice[before.len() / 2..]);
    assert_applies(&before, &format!("@@ class A:\n@@ def run(self):\n{hunk}"), &a);
    assert_applies(&before, &format!("@@ class B:\n@@ def run(self):\n{hunk}"), &b);
    assert_applies(
        &before,
        &format!("@@ class A:\n@@ def run(self):\n     def run(self):\n{hunk}"),
        &a,
    );
    // Lines that follow only one of the anchors are unique.
    assert_applies("f\n  a\nf\n  b\n", "@@ f\n-  b", "f\n  a\nf\n");
    assert_applies("f\n  a\nf\n  b\n", "@@ f\n-  a", "f\nf\n  b\n");
    // Nested anchors help only if they distinguish the matches.
    let class = format!("class A:\n{run}\n{run}\nclass B:\n{run}");
    let error = apply_error(&class, &format!("@@ class A:\n@@ def run(self):\n{hunk}"));
    assert!(error.contains("lines 3 and 7."), "{error}");
    let both = format!("{before}\n{before}");
    let error = apply_error(&both, &format!("@@ class A:\n@@ def run(self):\n{hunk}"));
    assert!(error.contains("lines 3 and 13."), "{error}");
    // An insertion fits below each anchor.
    let error = apply_error("f\nx\nf\n", "@@ f\n+y");
    assert!(error.contains("lines 1 and 3"), "{error}");
    assert_applies("f\nx\nf\n", "@@ f\n+y\n*** End of File", "f\nx\nf\ny\n");
    // The anchor above the previous hunk is as possible as the one below it.
    let error = apply_error("f\n  a\n  b\nf\n  b\n", "-  a\n@@ f\n-  b");
    assert!(error.contains("lines 3 and 5"), "{error}");
}
