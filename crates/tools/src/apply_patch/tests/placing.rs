//! Where hunks stand, through which lens, and what is refused as unclear.

use super::change;
use crate::apply_patch::seek::{Lens, View};
use crate::apply_patch::{Hunk, Line, Placed, place};

fn ok(before: &str, lines: &str, after: &str) {
    assert_eq!(change(before, lines).as_deref(), Ok(after), "{lines}");
}

fn refused(before: &str, lines: &str) -> String {
    change(before, lines).expect_err(lines)
}

#[test]
fn a_hunk_needs_no_header_and_blank_lines_need_no_space() {
    ok("a\n\nb\n", " a\n\n-b\n+c", "a\n\nc\n");
    ok("a\n\nb\n", "\n-b\n+c", "a\n\nc\n");
    ok("a\nb\n", "\n@@\n-b\n+c\n\n", "a\nc\n");
    // Before a marker they may be only space.
    ok("a\nb\nx\n", "@@\n-b\n+c\n\n\n", "a\nc\nx\n");
    ok("b\n\nx\n", "@@\n-b\n+c\n", "c\n\nx\n");
    ok("b\n \t\nx\n", "@@\n-b\n+c\n", "c\n \t\nx\n");
    // So they cannot choose between places, nor be overlooked where they fit another.
    let unclear = refused("b\n\nx\nb\nx\n", "@@\n-b\n+c\n");
    assert!(unclear.contains("lines 1 and 4"), "{unclear}");
    let unclear = refused("  b\n\nx\nb\nx\n", "@@\n-b\n+c\n");
    assert!(unclear.contains("lines 1 and 4"), "{unclear}");
    ok("  b\n\nx\nb\nx\n", "@@\n-b\n+c\n x\n", "  b\n\nx\nc\nx\n");
    ok("b\nx\nb\n\n", "@@\n-b\n+c\n\n*** End of File", "b\nx\nc\n\n");
    // Beside added lines alone they say nothing.
    ok("a\n\nb\n", "@@\n+c\n\n", "a\n\nb\nc\n");
}

#[test]
fn a_file_without_a_final_newline_gets_one_only_where_lines_come_after_its_last() {
    ok("a\nb", "-b\n+c", "a\nc\n");
    ok("a\nb", " a\n-b", "a\n");
    ok("a\nb", "-a\n+x\n b", "x\nb");
    ok("a\nb", " b\n+c", "a\nb\nc\n");
    ok("a\nb", "@@\n+c", "a\nb\nc\n");
    ok("a", "-a", "");
    ok("", "+a", "a\n");
    ok("", "@@\n+a\n*** End of File", "a\n");
    ok("\n", "+a", "\na\n");
    // The line that lacked the end goes, so there is nothing to end.
    ok("a\nb", "-b\n@@\n+c", "a\nc\n");
    ok("a\nb", "@@\n+c\n@@\n+d", "a\nb\nc\nd\n");
    ok("a\r\nb", " b\n+c", "a\r\nb\r\nc\r\n");
}

#[test]
fn the_end_of_the_file_is_tried_first() {
    let before = "x\ny\nx\ny\n";
    ok(before, "@@\n x\n-y\n+z\n*** End of File", "x\ny\nx\nz\n");
    // Even where another place fits better.
    ok("x\ny\n  x\n  y\n", "@@\n x\n-y\n+z\n*** End of File", "x\ny\n  x\n  z\n");
}

#[test]
fn an_end_that_is_elsewhere_must_be_one_place() {
    ok("a\nb\nc\n", "@@\n-b\n*** End of File", "a\nc\n");
    assert!(refused("b\nb\nc\n", "@@\n-b\n*** End of File").contains("lines 1 and 2"));
}

#[test]
fn a_hunk_that_fits_twice_is_refused_with_its_places() {
    assert_eq!(
        refused("x\na\nx\nb\nx\n", "@@\n-x\n+y"),
        "line 3 of the patch: this hunk fits more than one place of f: lines 1, 3 and 5.\n    \
         -x\n    +y\nAdd lines of context around it, or an \"@@\" line with a line that stands \
         above the place."
    );
    let many = refused(&"x\n".repeat(100), "-x");
    assert!(many.contains("lines 1, 2, 3, 4, 5 and 6 and perhaps more."), "{many}");
    // A stricter fit is one place, whatever else fits loosely.
    ok("  x\nx\n", "-x\n+y", "  x\ny\n");
    // Only what comes below the hunk before counts.
    ok("x\na\nx\n", "-a\n@@\n-x\n+y", "x\ny\n");
    // A place may overlap itself.
    assert!(refused("x\nx\nx\n", "-x\n-x").contains("lines 1 and 2"));
}

#[test]
fn an_anchor_chooses_the_first_place_below_it() {
    let before = "fn a\n  x\nfn b\n  x\n  x\n";
    ok(before, "@@ fn b\n-  x\n+  y", "fn a\n  x\nfn b\n  y\n  x\n");
    ok(before, "@@ fn a\n-  x\n+  y", "fn a\n  y\nfn b\n  x\n  x\n");
    ok(before, "@@ fn a\n+  new", "fn a\n  new\n  x\nfn b\n  x\n  x\n");
    ok("x\nx\n", "@@ x\n-x\n+y", "x\ny\n");
    // They nest, and are found through the lenses too.
    let nested = "class A\n  def f\n    x\nclass B\n  def f\n    x\n";
    let after = "class A\n  def f\n    x\nclass B\n  def f\n    y\n";
    ok(nested, "@@ class B\n@@ def f\n-    x\n+    y", after);
    ok(nested, "@@ class B\n@@   def f \n-    x\n+    y", after);
    // Hunks after each other may name one line, when the place is clear without it.
    let twice = "@@ class A\n-    x\n@@ class A\n@@ class B\n-    x";
    ok(nested, twice, "class A\n  def f\nclass B\n  def f\n");
    ok("class A\n  x\n  y\n", "@@ class A\n-  x\n@@ class A\n-  y", "class A\n");
    let unclear = "@@ class A\n-  x\n@@ class A\n-  y";
    assert!(refused("class A\n  x\n  y\n  y\n", unclear).contains("lines 3 and 4"));
    let above = refused("class A\n  x\n", "@@ class A\n-  x\n@@ class A\n+  y");
    assert!(above.contains("the hunk before it ends further down"), "{above}");
}

#[test]
fn an_anchor_may_be_written_again_as_the_first_line() {
    ok("fn a\n  x\nfn b\n  x\n", "@@ fn b\n fn b\n-  x\n+  y", "fn a\n  x\nfn b\n  y\n");
    ok("fn a\n  z\nfn a\n  x\n", "@@ fn a\n fn a\n-  x\n+  y", "fn a\n  z\nfn a\n  y\n");
    let unclear = refused("fn a\n  x\nfn a\n  x\n", "@@ fn a\n fn a\n-  x\n+  y");
    assert!(unclear.contains("lines 1 and 3"), "{unclear}");
}

#[test]
fn an_anchor_that_is_not_there_is_named() {
    assert_eq!(
        refused("fn one(a: u8) {\n}\n", "@@ fn one(a: u16) {\n-}"),
        "line 3 of the patch: this hunk names a line in \"@@ fn one(a: u16) {\" that f does not \
         have.\n    @@ fn one(a: u16) {\n    -}\nThe nearest text is line 1 (- the patch, + the \
         file):\n-   | fn one(a: u16) {\n+ 1 | fn one(a: u8) {\nAfter \"@@\" stands one whole line of \
         the file, or nothing."
    );
}

#[test]
fn lines_that_are_kept_keep_the_files_own_text() {
    ok("a  \nb\t\nc\n", " a\n-b\n+B\n c  ", "a  \nB\nc\n");
    ok(
        "say \u{201c}hi\u{201d} \u{2014} now\nx\n",
        " say \"hi\" - now\n-x\n+y",
        "say \u{201c}hi\u{201d} \u{2014} now\ny\n",
    );
    ok("a\u{a0}b\nx\n", " a b\n-x", "a\u{a0}b\n");
    ok("it's\nx\n", " it\u{2019}s\n-x", "it's\n");
}

#[test]
fn new_lines_follow_an_even_shift_of_indentation() {
    ok(
        "\tif a {\n\t\tb\n\t}\n",
        " if a {\n-\tb\n+\tc\n+\n+\td\n }",
        "\tif a {\n\t\tc\n\n\t\td\n\t}\n",
    );
    ok("a:\n  b\n", "     a:\n-      b\n+      c\n+    d", "a:\n  c\nd\n");
    // Lines that only go need no shift.
    ok("  a\n\tb\n", " a\n-b", "  a\n");
    // Blank lines tell nothing about it.
    ok("    a\n\n    b\n", " a\n   \n-b\n+c", "    a\n\n    c\n");
}

#[test]
fn an_uneven_shift_is_refused() {
    for (before, lines) in [
        ("  a\n      b\n", " a\n-b\n+c"),
        ("\ta\n", "-    a\n+    b"),
        ("a\n  b\n", "   a\n-    b\n+ c"),
    ] {
        let words = refused(before, lines);
        assert!(words.contains("not by an even shift"), "{words}");
        assert!(words.ends_with("Read the file and copy the indentation exactly."), "{words}");
    }
}

#[test]
fn a_hunk_that_does_not_fit_is_told_what_is_nearest() {
    assert_eq!(
        refused("one\ntwo\nthree\nfour\n", "@@\n one\n two\n-3\n+4\n five"),
        "line 3 of the patch: this hunk does not fit f.\n     one\n     two\n    -3\n    …\n\
         The nearest text is lines 1 to 4 (- the patch, + the file):\n  1 | one\n  2 | two\n\
         -   | 3\n-   | five\n+ 3 | three\n+ 4 | four\nRead the file and copy its lines exactly."
    );
    let letters = refused("a\nlet value = compute(1);\n", "-let value = compute(2);\n+x");
    assert!(letters.contains("\n+ 2 | let value = compute(1);\n"), "{letters}");
    assert!(refused("", "-x").contains("The file is empty."));
    assert!(refused("abc\n", "-x").contains("Nothing in the file is like it."));
    let end = refused("one\ntwo words\n", " two words\n-three");
    assert!(
        end.contains("line 2 (- the patch, + the file):\n  2 | two words\n-   | three\n"),
        "{end}"
    );
    let order = refused("a\nb\n", "-b\n@@\n-a");
    assert!(order.contains("fits f at line 1 only, but not below the hunk before it."), "{order}");
    let above = refused("a\nb\n", "@@ b\n-a");
    assert!(above.contains("fits f at line 1 only, but not below its \"@@\" line."), "{above}");
}

#[test]
fn only_lines_that_change_are_touched() {
    let hunk = Hunk {
        lines: vec![
            Line::Keep("a".into()),
            Line::Remove("b".into()),
            Line::Keep("c".into()),
            Line::Add("d".into()),
        ],
        ..Hunk::default()
    };
    let Placed { splices, loosely } = place("f", "a\nb\nc\n", &[&[hunk]]).unwrap();
    assert!(!loosely);
    let parts: Vec<_> = splices.iter().map(|it| (it.range.clone(), it.new.as_str())).collect();
    assert_eq!(parts, [(2..4, ""), (6..6, "d\n")]);
}

#[test]
fn insertions_at_one_place_keep_the_order_of_the_patch() {
    ok("a\nb\n", " a\n+1\n@@\n+2\n b", "a\n1\n2\nb\n");
    ok("a\n", "@@\n+1\n@@\n+2\n*** Update File: f\n@@\n+3", "a\n1\n2\n3\n");
    // An insertion by a later section comes before what replaces the line there.
    ok("a\nb\n", "-b\n+B\n*** Update File: f\n@@ a\n+1", "a\n1\nB\n");
}

#[test]
fn a_long_file_of_equal_lines_costs_no_more_than_another() {
    let before = "x\n".repeat(500_000);
    let equal = "-x\n".repeat(1_000);
    assert!(refused(&before, &format!("@@\n{equal}")).contains("more than one place"));
    let nearly = format!("@@\n{equal}-y");
    assert!(refused(&before, &nearly).contains("does not fit"));
    let last = format!("{before}y\n");
    assert_eq!(change(&last, &nearly).unwrap().len(), before.len() - 2_000);
    // Near misses all over: the border of what matched is long each time.
    let blocks = format!("{}y\n", "x\n".repeat(999)).repeat(500);
    assert!(refused(&blocks, &format!("@@\n{equal}-y")).contains("does not fit"));
}

#[test]
fn very_many_hunks_in_a_very_long_file_end() {
    let repeated: String = (0..400_000).map(|number| format!("{}\n", number % 1000)).collect();
    let words = refused(&repeated, &"@@ 999\n-0\n+x\n".repeat(300));
    assert!(words.contains("lines 1001, 2001, 3001, 4001, 5001 and 6001 and perhaps"), "{words}");
    // Names that stand everywhere, and one line below each that stands nowhere else.
    let named: String = (0..40_000).map(|number| format!("f\n{number}\n")).collect();
    let hunks: String = (0..300).map(|number| format!("@@ f\n-{number}\n+x\n")).collect();
    assert_eq!(change(&named, &hunks).unwrap().matches('x').count(), 300);
    let unlike: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    let hunks: String = (0..9_000).map(|number| format!("@@\n-{number}\n+x\n")).collect();
    assert_eq!(change(&unlike, &hunks).unwrap().matches('x').count(), 9_000);
    // Every line stands twice and every pair once: each hunk is searched to the end.
    let there = 0..1_000;
    let pairs: String = there.clone().chain(there.rev()).map(|it| format!("{it}\n")).collect();
    let view = View::new(&pairs);
    assert_eq!(view.seek(&["7", "8"], 0, 2).unwrap(), Some((Lens::Exact, vec![7])));
    view.left.set(5_000);
    let words = (0..10).find_map(|_| view.seek(&["7", "8"], 0, 2).err()).unwrap().to_string();
    assert!(words.starts_with("it takes too long"), "{words}");
}

#[test]
fn kept_lines_that_lack_their_space_do_not_shift_new_ones() {
    let before = "    def f():\n        a = 1\n        c = 3\n";
    let after = "    def f():\n        a = 1\n        b = 2\n        c = 3\n";
    ok(before, "        a = 1\n+        b = 2\n        c = 3", after);
    // A removed line that stands there exactly proves it.
    ok("    a\n    b\n", "    a\n-    b\n+      c", "    a\n      c\n");
    // An even shift that a removed line shows too is one.
    ok("    a\n    b\n", "    a\n-   b\n+   c", "    a\n    c\n");
    for (before, lines) in [
        // Lines that are indented by single spaces: either can be meant.
        (" a\n c\n", " a\n+b\n c"),
        (" begin\n end\n", " begin\n+ middle\n end"),
        ("  a\n   b\n    c\n", "    c\n+   d"),
        // No line of the file is indented like the new one.
        ("    a\n    c\n", "    a\n+      b\n    c"),
        ("    a\n    c\n", "    a\n+   b\n    c"),
    ] {
        let words = refused(before, lines);
        assert!(words.contains("lack the space that marks them"), "{lines}: {words}");
    }
}

#[test]
fn an_anchor_that_stands_in_several_places_must_lead_to_one() {
    let run = "    def run(self):\n        x = 1\n        y = 2\n";
    let before = format!("class A:\n{run}\nclass B:\n{run}");
    let hunk = "         x = 1\n-        y = 2\n+        y = 3";
    let words = refused(&before, &format!("@@     def run(self):\n{hunk}"));
    assert!(words.contains("fits more than one place of f: lines 3 and 8."), "{words}");
    let twice = before.replace("y = 2", "y = 3");
    let a = format!("{}{}", &twice[..before.len() / 2], &before[before.len() / 2..]);
    let b = format!("{}{}", &before[..before.len() / 2], &twice[before.len() / 2..]);
    ok(&before, &format!("@@ class A:\n@@ def run(self):\n{hunk}"), &a);
    ok(&before, &format!("@@ class B:\n@@ def run(self):\n{hunk}"), &b);
    ok(&before, &format!("@@ class A:\n@@ def run(self):\n     def run(self):\n{hunk}"), &a);
    // What follows only one of them is where it is.
    ok("f\n  a\nf\n  b\n", "@@ f\n-  b", "f\n  a\nf\n");
    ok("f\n  a\nf\n  b\n", "@@ f\n-  a", "f\nf\n  b\n");
    // Nested lines help only if they tell the places apart.
    let class = format!("class A:\n{run}\n{run}\nclass B:\n{run}");
    let words = refused(&class, &format!("@@ class A:\n@@ def run(self):\n{hunk}"));
    assert!(words.contains("lines 3 and 7."), "{words}");
    let both = format!("{before}\n{before}");
    let words = refused(&both, &format!("@@ class A:\n@@ def run(self):\n{hunk}"));
    assert!(words.contains("lines 3 and 13."), "{words}");
    // New lines alone fit below each.
    let words = refused("f\nx\nf\n", "@@ f\n+y");
    assert!(words.contains("lines 1 and 3"), "{words}");
    ok("f\nx\nf\n", "@@ f\n+y\n*** End of File", "f\nx\nf\ny\n");
    // The line above the hunk before may be meant as well as the one below.
    let words = refused("f\n  a\n  b\nf\n  b\n", "-  a\n@@ f\n-  b");
    assert!(words.contains("lines 3 and 5"), "{words}");
}
