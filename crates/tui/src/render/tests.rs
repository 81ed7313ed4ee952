//! Tests of the renderers: Markdown, code, diffs, terminal output and todo lists.

use super::*;
use crate::theme::{ColorDepth, TerminalBackground, Theme};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use ratatui::style::Color;

fn appearance() -> Appearance {
    let theme = Theme::find("windlass", TerminalBackground::Dark, ColorDepth::TrueColor).unwrap();
    Appearance { theme, ..Appearance::default() }
}

fn ascii() -> Appearance {
    Appearance { ascii: true, ..appearance() }
}

/// Returns rows as text and asserts that each fits into `width`.
fn rows_text(rows: &[SafeLine], width: usize) -> String {
    let mut text = String::new();
    for row in rows {
        assert!(row.width() <= width, "wider than {width}: {row:?}");
        text.push_str(row.as_str().trim_end());
        text.push('\n');
    }
    text
}

fn assert_rows(rows: &[SafeLine], width: usize, expected: Expect) {
    expected.assert_eq(&rows_text(rows, width));
}

/// Returns the texts of the spans that have the style of a role.
fn spans_with_role(rows: &[SafeLine], role: StyleRole) -> Vec<String> {
    let style = appearance().style(role);
    let spans = rows.iter().flat_map(SafeLine::spans);
    spans.filter(|(span_style, _)| *span_style == style).map(|(_, text)| text.to_owned()).collect()
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
    let rows = render_markdown(ANSWER, 80, &appearance());
    assert_rows(
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

            ☑ done
            ☐ open

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
    assert_eq!(spans_with_role(&rows, StyleRole::Heading), ["What I found", "Steps"]);
    assert_eq!(spans_with_role(&rows, StyleRole::Literal), ["read_line"]);
    assert_eq!(spans_with_role(&rows, StyleRole::Keyword), ["fn"]);
    assert_eq!(spans_with_role(&rows, StyleRole::String), ["\"hello\""]);
}

#[test]
fn an_answer_in_a_narrow_window() {
    assert_rows(
        &render_markdown(ANSWER, 40, &appearance()),
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

            ☑ done
            ☐ open

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
fn an_answer_in_ascii_only() {
    let rows = render_markdown(ANSWER, 40, &ascii());
    assert!(rows_text(&rows, 40).is_ascii());
}

#[test]
fn a_table_too_wide_for_its_columns_becomes_a_list() {
    let text = "| a | b | c | d | e |\n|-|-|-|-|-|\n\
                | first cell | second cell | third cell | fourth | fifth one |\n| 1 | | 3 | 4 | 5 |";
    assert_rows(
        &render_markdown(text, 30, &appearance()),
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
    assert_rows(
        &render_markdown(text, 50, &appearance()),
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
fn code_of_a_known_language_is_highlighted_and_other_text_is_not() {
    let text = "let x = 1;\n";
    let highlighted = render_code(text, "rs", 40, &appearance());
    assert_eq!(spans_with_role(&highlighted, StyleRole::Keyword), ["let"]);
    assert_eq!(spans_with_role(&highlighted, StyleRole::Number), ["1"]);
    for language in ["", "text", "no such language"] {
        assert_eq!(
            render_code(text, language, 40, &appearance()),
            render_plain(text, 40, StyleRole::Text, &appearance())
        );
    }
}

#[test]
fn many_languages_are_known() {
    let names = "rust python py ts typescript tsx js json jsonc yaml toml bash sh zsh console go \
                 java c cpp c++ html css sql diff ruby dockerfile makefile kotlin swift \
                 markdown php lua xml nix zig";
    let missing: Vec<&str> = names
        .split(' ')
        .filter(|name| !highlight::Highlighter::new(name, &appearance()).knows_language())
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn very_long_code_is_not_highlighted() {
    let long = format!("let x = \"{}\";", "y".repeat(5_000));
    assert_eq!(
        spans_with_role(&render_code(&long, "rust", 80, &appearance()), StyleRole::Keyword),
        Vec::<String>::new()
    );
    let many = "let x = 1;\n".repeat(2_500);
    assert_eq!(
        spans_with_role(&render_code(&many, "rust", 80, &appearance()), StyleRole::Keyword).len(),
        2_000
    );
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
fn a_diff_with_line_numbers_and_markers() {
    let rows = render_diff(CHANGE, 80, &appearance());
    assert_rows(
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
    assert_eq!(spans_with_role(&rows, StyleRole::AddedWord), ["trim()."]);
}

#[test]
fn a_wide_diff_has_two_columns() {
    let rows = render_diff(CHANGE, 132, &appearance());
    assert_rows(
        &rows,
        132,
        expect![[r#"
        src/lib.rs  +3 -2
          8   fn parse(text: &str) -> Option<u32> {                      │   8   fn parse(text: &str) -> Option<u32> {
          9 -     let number = text.parse().ok();                        │   9 +     let number = text.trim().parse().ok();
                                                                         │  10 +     // Nothing is not a number, and neither is a text that
                                                                         │       is much longer than that.
         10       number                                                 │  11       number
         11   }                                                          │  12   }
          ⋯  impl Other
        120 - old and gone                                               │ 121 + something else
        121   same                                                       │ 122   same

        new.txt new  +1 -0
              1 + first
    "#]],
    );
    assert_eq!(spans_with_role(&rows, StyleRole::AddedWord), ["trim()."]);
    assert!(!rows_text(&render_diff(CHANGE, 131, &appearance()), 131).contains('│'));
    assert!(rows_text(&render_diff(CHANGE, 140, &ascii()), 140).contains(" | "));
}

#[test]
fn a_diff_in_narrow_windows() {
    assert_rows(
        &render_diff(CHANGE, 40, &appearance()),
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
    assert_rows(
        &render_diff(CHANGE, 20, &ascii()),
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
fn a_diff_has_syntax_colors_where_its_background_allows_them() {
    let diff = "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n def total(items):\n\
                -    return len(items)\n+    return sum(items)\n";
    let keyword = |depth: ColorDepth| {
        let theme = Theme::find("windlass", TerminalBackground::Dark, depth).unwrap();
        let appearance = Appearance { theme, ..Appearance::default() };
        let keyword_color = appearance.style(StyleRole::Keyword).fg;
        let rows = render_diff(diff, 80, &appearance);
        let spans: Vec<String> = rows
            .iter()
            .flat_map(SafeLine::spans)
            .filter(|(style, _)| style.fg.is_some() && style.fg == keyword_color)
            .map(|(_, text)| text.trim().to_owned())
            .collect();
        spans
    };
    assert_eq!(keyword(ColorDepth::TrueColor), ["def", "return", "return"]);
    assert_eq!(keyword(ColorDepth::Ansi256), ["def"]);
    assert!(keyword(ColorDepth::Ansi16).is_empty());
    // The words that changed keep the style that marks them.
    let rows = render_diff(diff, 80, &appearance());
    assert_eq!(spans_with_role(&rows, StyleRole::RemovedWord), ["len"]);
    assert_eq!(spans_with_role(&rows, StyleRole::AddedWord), ["sum"]);
}

#[test]
fn only_prose_is_limited_on_a_wide_screen() {
    let text = format!(
        "{}\n\n| a | b |\n|---|---|\n| {} | x |\n\n```\n{}\n```\n\n- {}\n",
        "word ".repeat(40),
        "cell ".repeat(24).trim_end(),
        "c".repeat(140),
        "item ".repeat(30),
    );
    let rows = render_markdown(&text, 160, &appearance());
    let widest = |part: &str| {
        let rows = rows.iter().filter(|row| row.as_str().contains(part));
        rows.map(SafeLine::width).max().unwrap()
    };
    assert!(widest("word") <= MAX_PROSE_WIDTH && widest("item") <= MAX_PROSE_WIDTH);
    assert_eq!(rows.iter().filter(|row| row.as_str().contains("cell")).count(), 1);
    assert_eq!(widest("ccc"), 142);
}

#[test]
fn text_that_is_no_diff_stays_unchanged() {
    assert_rows(
        &render_diff("a.bin: from 3 to 4 bytes; not text", 80, &appearance()),
        80,
        expect![[r#"
        a.bin: from 3 to 4 bytes; not text
    "#]],
    );
    // A line that only looks like the head of a file is part of its hunk.
    let text = "--- a/x\n+++ b/x\n@@ -1,2 +1,1 @@\n--- a/y\n same\n";
    assert_rows(
        &render_diff(text, 80, &appearance()),
        80,
        expect![[r#"
        x  +0 -1
        1   - -- a/y
        2 1   same
    "#]],
    );
}

#[test]
fn terminal_output_keeps_its_colors_and_shows_the_last_text_written() {
    let text = "\x1b[1;31merror\x1b[0m: \x1b[38;5;208mno\x1b[m \x1b[38;2;1;2;3mway\x1b[0m\n\
                10%\r50%\r100%\nabc\x08\x08X\nlong line\r\x1b[Kshort\n\ta\tb\n漢字\rab\n\
                \x1b]0;title\x07after\x1b[2Jclear\x1b[10;10Hmove\x1b[?1049halt\x1b(Bset\x1b7save\n\
                \x1b]52;c;aGk=\x1b\\clip\x1bPq#0\x1b\\dcs\x07\x1b[8mseen\x1b[30;40mseen too\x1b[0m\n";
    let rows = render_terminal_output(text, 80, &appearance());
    assert_rows(
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
        let mut spans = rows.iter().flat_map(SafeLine::spans);
        spans.find(|(_, span_text)| *span_text == text).map(|(style, _)| style).unwrap()
    };
    assert_eq!(style("error").fg, Some(Color::Red));
    assert_eq!(style("no").fg, Some(Color::Indexed(208)));
    assert_eq!(style("way").fg, Some(Color::Rgb(1, 2, 3)));
    let monochrome = Appearance {
        theme: Theme { color_depth: ColorDepth::Monochrome, ..appearance().theme },
        ..appearance()
    };
    let colored_spans = render_terminal_output(text, 80, &monochrome)
        .iter()
        .flat_map(SafeLine::spans)
        .filter(|(style, _)| style.fg.is_some() || style.bg.is_some())
        .count();
    assert_eq!(colored_spans, 0);
}

fn todos() -> Vec<TodoItem> {
    let todo = |content: &str, status, priority| TodoItem {
        content: content.to_owned(),
        status,
        priority,
    };
    vec![
        todo("Read the parser", TodoStatus::Completed, TodoPriority::Medium),
        todo(
            "Change how it reads lines, and everything that depends on it",
            TodoStatus::InProgress,
            TodoPriority::High,
        ),
        todo("Test it", TodoStatus::Pending, TodoPriority::Low),
        todo("Rewrite it", TodoStatus::Cancelled, TodoPriority::Low),
    ]
}

#[test]
fn a_todo_list_shows_its_progress() {
    assert_rows(
        &render_todos(&todos(), 80, &appearance()),
        80,
        expect![[r#"
        ☑ Read the parser
        ◐ Change how it reads lines, and everything that depends on it (high)
        ☐ Test it
        ☒ Rewrite it
    "#]],
    );
    assert_rows(
        &render_todos(&todos(), 40, &ascii()),
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

/// Feeds a text to a `MarkdownStream` in pieces and renders after each one.
fn stream_in_pieces(
    text: &str,
    cuts: &[usize],
    width: usize,
    appearance: &Appearance,
) -> Vec<SafeLine> {
    let mut stream = MarkdownStream::default();
    let mut rest = text;
    for cut in cuts {
        let (piece, remaining) = rest.split_at(rest.floor_char_boundary(*cut));
        stream.push(piece);
        stream.height(width, appearance);
        rest = remaining;
    }
    stream.push(rest);
    let height = stream.height(width, appearance);
    let rows = stream.rows(width, appearance, 0..usize::MAX);
    assert_eq!(rows.len(), height);
    rows
}

#[test]
fn a_stream_fed_by_single_characters_equals_the_full_rendering() {
    let cuts = vec![1; ANSWER.len()];
    assert_eq!(
        stream_in_pieces(ANSWER, &cuts, 60, &appearance()),
        render_markdown(ANSWER, 60, &appearance())
    );
}

#[test]
fn a_stream_returns_the_requested_rows_and_follows_the_width() {
    let mut stream = MarkdownStream::default();
    stream.push("one\n\ntwo\n\nthree");
    let texts = |rows: Vec<SafeLine>| rows.iter().map(SafeLine::text).collect::<Vec<_>>();
    assert_eq!(texts(stream.rows(10, &appearance(), 1..4)), ["", "two", ""]);
    assert_eq!(texts(stream.rows(10, &appearance(), 4..9)), ["three"]);
    assert_eq!(texts(stream.rows(3, &appearance(), 3..9)), ["", "thr", "ee"]);
    assert_eq!(texts(stream.rows(3, &appearance(), 7..9)), Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_stream_fed_in_any_pieces_equals_the_full_rendering(
        text in "((\n|  |    |```|```rs|~~~|- |\\* |1\\. |7\\) |> |# |---|\\||<b>|\\[a\\]|\\*\\*|_|`|word |漢|\r)\n{0,2}){0,40}",
        cuts in proptest::collection::vec(0_usize..9, 0..30),
        width in 2_usize..50,
    ) {
        let streamed = stream_in_pieces(&text, &cuts, width, &appearance());
        prop_assert_eq!(streamed, render_markdown(&text, width, &appearance()));
    }

    #[test]
    fn no_rendering_is_wider_than_requested_or_loses_words(
        text in "\\PC{0,80}",
        words in "([a-z]{1,8}|[-*>#|`~+@\\[\\]<] ?|\n){0,60}",
        width in 8_usize..60,
    ) {
        let todo = TodoItem {
            content: words.clone(),
            status: TodoStatus::Pending,
            priority: TodoPriority::High,
        };
        for text in [&text, &words] {
            let renderings = [
                render_markdown(text, width, &appearance()),
                render_code(text, "rust", width, &appearance()),
                render_diff(text, width, &appearance()),
                render_diff(&format!("@@ -1,9 +1,9 @@\n{text}"), width, &appearance()),
                render_terminal_output(text, width, &appearance()),
                render_plain(text, width, StyleRole::Text, &appearance()),
                render_todos(std::slice::from_ref(&todo), width, &ascii()),
            ];
            for rows in &renderings {
                rows_text(rows, width);
            }
        }
        let letters = |text: &str| text.chars().filter(char::is_ascii_lowercase).collect::<String>();
        let rows = render_markdown(&words, 60, &appearance());
        let rendered: String = rows.iter().map(|row| letters(row.as_str())).collect();
        // Except for links, tags and languages, every letter is still there.
        if !words.contains(['<', '[', '`', '~']) {
            prop_assert_eq!(rendered, letters(&words));
        }
    }
}
