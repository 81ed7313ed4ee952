//! Layouts, as they stand on the screen.

use super::*;
use crate::theme::{Depth, Ground, Theme};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use ratatui::style::Color;

fn look() -> Look {
    let theme = Theme::find("windlass", Ground::Dark, Depth::True).unwrap();
    Look { theme, ..Look::default() }
}

fn ascii() -> Look {
    Look { ascii: true, ..look() }
}

/// Rows as text, each checked to fit.
fn shown(rows: &[Row], width: usize) -> String {
    let mut text = String::new();
    for row in rows {
        assert!(row.width() <= width, "wider than {width}: {row:?}");
        text.push_str(row.as_str().trim_end());
        text.push('\n');
    }
    text
}

fn check(rows: &[Row], width: usize, expected: Expect) {
    expected.assert_eq(&shown(rows, width));
}

/// The pieces of rows that have a role's style.
fn in_role(rows: &[Row], role: Role) -> Vec<String> {
    let style = look().style(role);
    let pieces = rows.iter().flat_map(Row::pieces);
    pieces.filter(|(known, _)| *known == style).map(|(_, text)| text.to_owned()).collect()
}

const ANSWER: &str = "\
# What I found

The parser reads **one line** at a time, so `read_line` *never* sees a ~~whole~~ block. See
[the book](https://example.org/book) or <https://example.org/>.

## Steps
1. Read the file, which is much longer than one might think at first
2. Change it:
   - here
   - there, and in a place that takes more than a row to name when the window is narrow
10. Test it

- [x] done
- [ ] open

> A quote that is
> on two lines
>
> and goes on.

```rust
fn main() {
\tprintln!(\"hello\"); // a comment that is quite long, longer than a narrow window
}
```

| name | what it is | cost |
|:-----|:----------:|-----:|
| one  | the first thing there is | 1 |
| two  | another | 20 |

---

<details>hidden?</details>

[ref]: https://example.org/only
";

#[test]
fn an_answer_in_a_usual_window() {
    let rows = markdown(ANSWER, 80, &look());
    check(
        &rows,
        80,
        expect![[r#"
            What I found

            The parser reads one line at a time, so read_line never sees a whole block. See
            the book (https://example.org/book) or https://example.org/.

            Steps
            1. Read the file, which is much longer than one might think at first
            2. Change it:
               • here
               • there, and in a place that takes more than a row to name when the window is
                 narrow
            3. Test it

            • ☑ done
            • ☐ open

            ▏ A quote that is on two lines
            ▏
            ▏ and goes on.

              fn main() {
                  println!("hello"); // a comment that is quite long, longer than a narrow
                window
              }

            name │        what it is        │ cost
            ─────┼──────────────────────────┼─────
            one  │ the first thing there is │    1
            two  │         another          │   20

            ────────────────────────────────────────────────────────────────────────────────

            <details>hidden?</details>

            [ref]: https://example.org/only
        "#]],
    );
    assert_eq!(in_role(&rows, Role::Heading), ["What I found", "Steps"]);
    assert_eq!(in_role(&rows, Role::Literal), ["read_line"]);
    assert_eq!(in_role(&rows, Role::Keyword), ["fn"]);
    assert_eq!(in_role(&rows, Role::String), ["\"hello\""]);
}

#[test]
fn an_answer_in_a_narrow_window() {
    check(
        &markdown(ANSWER, 40, &look()),
        40,
        expect![[r#"
            What I found

            The parser reads one line at a time, so
            read_line never sees a whole block. See
            the book (https://example.org/book) or
            https://example.org/.

            Steps
            1. Read the file, which is much longer
               than one might think at first
            2. Change it:
               • here
               • there, and in a place that takes
                 more than a row to name when the
                 window is narrow
            3. Test it

            • ☑ done
            • ☐ open

            ▏ A quote that is on two lines
            ▏
            ▏ and goes on.

              fn main() {
                  println!("hello"); // a comment
                that is quite long, longer than a
                narrow window
              }

            name │        what it is        │ cost
            ─────┼──────────────────────────┼─────
            one  │ the first thing there is │    1
            two  │         another          │   20

            ────────────────────────────────────────

            <details>hidden?</details>

            [ref]: https://example.org/only
        "#]],
    );
}

#[test]
fn an_answer_without_anything_but_ascii() {
    let rows = markdown(ANSWER, 40, &ascii());
    assert!(shown(&rows, 40).is_ascii());
}

#[test]
fn a_table_too_wide_for_its_columns_becomes_a_list() {
    let text = "| a | b | c | d | e |\n|-|-|-|-|-|\n\
                | first cell | second cell | third cell | fourth | fifth one |\n| 1 | | 3 | 4 | 5 |";
    check(
        &markdown(text, 30, &look()),
        30,
        expect![[r#"
        a: first cell
        b: second cell
        c: third cell
        d: fourth
        e: fifth one

        a: 1
        b:
        c: 3
        d: 4
        e: 5
    "#]],
    );
    check(
        &markdown(text, 50, &look()),
        50,
        expect![[r#"
        a        │ b        │ c        │ d      │ e
        ─────────┼──────────┼──────────┼────────┼─────────
        first    │ second   │ third    │ fourth │ fifth
        cell     │ cell     │ cell     │        │ one
        1        │          │ 3        │ 4      │ 5
    "#]],
    );
}

#[test]
fn code_of_a_known_language_is_painted_and_other_text_is_not() {
    let text = "let x = 1;\n";
    let painted = code(text, "rs", 40, &look());
    assert_eq!(in_role(&painted, Role::Keyword), ["let"]);
    assert_eq!(in_role(&painted, Role::Number), ["1"]);
    for unknown in ["", "text", "no such language"] {
        assert_eq!(code(text, unknown, 40, &look()), plain(text, 40, Role::Text, &look()));
    }
}

#[test]
fn many_languages_are_known() {
    let known = "rust python py ts typescript tsx js json jsonc yaml toml bash sh zsh console go java c cpp c++ html css sql diff ruby dockerfile makefile kotlin swift markdown php lua xml nix zig";
    let missing: Vec<&str> =
        known.split(' ').filter(|name| !code::Painter::new(name, &look()).knows()).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn code_that_would_take_long_is_not_painted() {
    let long = format!("let x = \"{}\";", "y".repeat(5_000));
    assert_eq!(in_role(&code(&long, "rust", 80, &look()), Role::Keyword), Vec::<String>::new());
    let many = "let x = 1;\n".repeat(2_500);
    assert_eq!(in_role(&code(&many, "rust", 80, &look()), Role::Keyword).len(), 2_000);
}

const CHANGE: &str = "\
--- a/src/lib.rs
+++ b/src/lib.rs
@@ -8,4 +8,5 @@ fn parse
 fn parse(text: &str) -> Option<u32> {
-    let number = text.parse().ok();
+    let number = text.trim().parse().ok();
+    // Nothing is not a number, and neither is a text that is much longer than that.
 \tnumber
 }
@@ -120,2 +121,2 @@ impl Other
-old and gone
+something else
 same
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+first
\\ No newline at end of file
";

#[test]
fn a_change_with_its_numbers_and_marks() {
    let rows = diff(CHANGE, 80, &look());
    check(
        &rows,
        80,
        expect![[r#"
            src/lib.rs  +3 -2
              8   8   fn parse(text: &str) -> Option<u32> {
              9     -     let number = text.parse().ok();
                  9 +     let number = text.trim().parse().ok();
                 10 +     // Nothing is not a number, and neither is a text that is much
                      longer than that.
             10  11       number
             11  12   }
              ⋯  impl Other
            120     - old and gone
                121 + something else
            121 122   same

            new.txt new  +1 -0
                  1 + first
        "#]],
    );
    assert_eq!(in_role(&rows, Role::AddedWord), ["trim()."]);
}

#[test]
fn a_change_in_narrow_windows() {
    check(
        &diff(CHANGE, 40, &look()),
        40,
        expect![[r#"
            src/lib.rs  +3 -2
              8   fn parse(text: &str) ->
                  Option<u32> {
              9 -     let number =
                  text.parse().ok();
              9 +     let number =
                  text.trim().parse().ok();
             10 +     // Nothing is not a number,
                  and neither is a text that is much
                  longer than that.
             11       number
             12   }
              ⋯  impl Other
            120 - old and gone
            121 + something else
            122   same

            new.txt new  +1 -0
              1 + first
        "#]],
    );
    check(
        &diff(CHANGE, 20, &ascii()),
        20,
        expect![[r#"
            src/lib.rs  +3 -2
              fn parse(text:
              &str) ->
              Option<u32> {
            -     let number =
              text.parse().ok();
            +     let number =
              text.trim().parse(
              ).ok();
            +     // Nothing is
              not a number, and
              neither is a text
              that is much
              longer than that.
                  number
              }
              ...  impl Other
            - old and gone
            + something else
              same

            new.txt new  +1 -0
            + first
        "#]],
    );
}

#[test]
fn what_is_no_change_stands_as_it_is() {
    check(
        &diff("a.bin: 3 bytes become 4 bytes; they are no text", 80, &look()),
        80,
        expect![[r#"
        a.bin: 3 bytes become 4 bytes; they are no text
    "#]],
    );
    // A line that only looks like the head of a file is part of its hunk.
    let text = "--- a/x\n+++ b/x\n@@ -1,2 +1,1 @@\n--- a/y\n same\n";
    check(
        &diff(text, 80, &look()),
        80,
        expect![[r#"
        x  +0 -1
        1   - -- a/y
        2 1   same
    "#]],
    );
}

#[test]
fn an_output_keeps_its_colours_and_shows_what_was_written_last() {
    let text = "\x1b[1;31merror\x1b[0m: \x1b[38;5;208mno\x1b[m \x1b[38;2;1;2;3mway\x1b[0m\n\
                10%\r50%\r100%\nabc\x08\x08X\nlong line\r\x1b[Kshort\n\ta\tb\n漢字\rab\n\
                \x1b]0;title\x07after\x1b[2Jclear\x1b[10;10Hmove\x1b[?1049halt\x1b(Bset\x1b7save\n\
                \x1b]52;c;aGk=\x1b\\clip\x1bPq#0\x1b\\dcs\x07\x1b[8mseen\x1b[30;40mseen too\x1b[0m\n";
    let rows = terminal(text, 80, &look());
    check(
        &rows,
        80,
        expect![[r#"
        error: no way
        100%
        aXc
        short
                a       b
        ab字
        afterclearmovealtsetsave
        clipdcsseenseen too
    "#]],
    );
    let style = |text: &str| {
        let mut pieces = rows.iter().flat_map(Row::pieces);
        pieces.find(|(_, known)| *known == text).map(|(style, _)| style).unwrap()
    };
    assert_eq!(style("error").fg, Some(Color::Red));
    assert_eq!(style("no").fg, Some(Color::Indexed(208)));
    assert_eq!(style("way").fg, Some(Color::Rgb(1, 2, 3)));
    let bare = Look { theme: Theme { depth: Depth::None, ..look().theme }, ..look() };
    let colours = terminal(text, 80, &bare)
        .iter()
        .flat_map(Row::pieces)
        .filter(|(style, _)| style.fg.is_some() || style.bg.is_some())
        .count();
    assert_eq!(colours, 0);
}

fn todos() -> Vec<Todo> {
    let todo =
        |content: &str, status, priority| Todo { content: content.to_owned(), status, priority };
    vec![
        todo("Read the parser", Status::Completed, Priority::Medium),
        todo(
            "Change how it reads lines, and everything that depends on it",
            Status::InProgress,
            Priority::High,
        ),
        todo("Test it", Status::Pending, Priority::Low),
        todo("Rewrite it", Status::Cancelled, Priority::Low),
    ]
}

#[test]
fn a_checklist_shows_how_far_it_is() {
    check(
        &checklist(&todos(), 80, &look()),
        80,
        expect![[r#"
        ☑ Read the parser
        ◐ Change how it reads lines, and everything that depends on it (high)
        ☐ Test it
        ☒ Rewrite it
    "#]],
    );
    check(
        &checklist(&todos(), 40, &ascii()),
        40,
        expect![[r#"
        [x] Read the parser
        [~] Change how it reads lines, and
            everything that depends on it (high)
        [ ] Test it
        [-] Rewrite it
    "#]],
    );
}

/// Feeds a text in pieces, laying out after each one.
fn drafted(text: &str, cuts: &[usize], width: usize, look: &Look) -> Vec<Row> {
    let mut draft = Draft::default();
    let mut rest = text;
    for cut in cuts {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(*cut));
        draft.push(piece);
        draft.height(width, look);
        rest = behind;
    }
    draft.push(rest);
    let height = draft.height(width, look);
    let rows = draft.rows(width, look, 0..usize::MAX);
    assert_eq!(rows.len(), height);
    rows
}

#[test]
fn a_draft_fed_by_single_letters_is_the_whole_in_the_end() {
    let cuts = vec![1; ANSWER.len()];
    assert_eq!(drafted(ANSWER, &cuts, 60, &look()), markdown(ANSWER, 60, &look()));
}

#[test]
fn a_draft_gives_the_rows_that_are_wanted_and_follows_the_width() {
    let mut draft = Draft::default();
    draft.push("one\n\ntwo\n\nthree");
    let texts = |rows: Vec<Row>| rows.iter().map(Row::text).collect::<Vec<_>>();
    assert_eq!(texts(draft.rows(10, &look(), 1..4)), ["", "two", ""]);
    assert_eq!(texts(draft.rows(10, &look(), 4..9)), ["three"]);
    assert_eq!(texts(draft.rows(3, &look(), 3..9)), ["", "thr", "ee"]);
    assert_eq!(texts(draft.rows(3, &look(), 7..9)), Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_draft_fed_in_any_pieces_is_the_whole_in_the_end(
        text in "((\n|  |    |```|```rs|~~~|- |\\* |1\\. |7\\) |> |# |---|\\||<b>|\\[a\\]|\\*\\*|_|`|word |漢|\r)\n{0,2}){0,40}",
        cuts in proptest::collection::vec(0_usize..9, 0..30),
        width in 2_usize..50,
    ) {
        prop_assert_eq!(drafted(&text, &cuts, width, &look()), markdown(&text, width, &look()));
    }

    #[test]
    fn no_layout_is_wider_than_asked_or_swallows_words(text in "\\PC{0,80}", words in "([a-z]{1,8}|[-*>#|`~+@\\[\\]<] ?|\n){0,60}", width in 8_usize..60) {
        let todo = Todo { content: words.clone(), status: Status::Pending, priority: Priority::High };
        for text in [&text, &words] {
            let all = [
                markdown(text, width, &look()),
                code(text, "rust", width, &look()),
                diff(text, width, &look()),
                diff(&format!("@@ -1,9 +1,9 @@\n{text}"), width, &look()),
                terminal(text, width, &look()),
                plain(text, width, Role::Text, &look()),
                checklist(std::slice::from_ref(&todo), width, &ascii()),
            ];
            for rows in &all {
                shown(rows, width);
            }
        }
        let letters = |text: &str| text.chars().filter(char::is_ascii_lowercase).collect::<String>();
        let rows = markdown(&words, 60, &look());
        let laid: String = rows.iter().map(|row| letters(row.as_str())).collect();
        // Links, tags and languages aside, every letter is still there.
        if !words.contains(['<', '[', '`', '~']) {
            prop_assert_eq!(laid, letters(&words));
        }
    }
}
