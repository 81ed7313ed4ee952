//! Unambiguous words, ambiguities, and commands that are found despite ambiguities.

mod command_line_generator;
mod differential;
mod limits;

use super::ambiguity_reasons::ShellAmbiguity;
use super::{
    CommandOrScopeBoundary, Redirect, RedirectKind, ShellWord, SimpleShellCommand,
    parse_command_line, quote,
};
use proptest::prelude::*;

fn segments(items: &[CommandOrScopeBoundary]) -> Vec<&SimpleShellCommand> {
    differential::command_segments(items).collect()
}

/// Returns the words of every command of a text that must be unambiguous.
fn plain_words(text: &str) -> Vec<Vec<ShellWord>> {
    let parsed = parse_command_line(text);
    assert_eq!(parsed.ambiguities, [], "{text:?}");
    segments(&parsed.items).into_iter().map(|each| each.words.clone()).collect()
}

/// Returns the first word of every command, if it is plain; the text may be ambiguous.
fn program_names(text: &str) -> Vec<String> {
    let parsed = parse_command_line(text);
    let first = |segment: &&SimpleShellCommand| match segment.words.first() {
        Some(ShellWord::Plain(word)) => Some(word.clone()),
        _ => None,
    };
    segments(&parsed.items).iter().filter_map(first).collect()
}

fn to_plain(words: &[&str]) -> Vec<ShellWord> {
    words.iter().map(|word| ShellWord::Plain((*word).to_owned())).collect()
}

fn single_segment(text: &str) -> SimpleShellCommand {
    let parsed = parse_command_line(text);
    assert_eq!(parsed.ambiguities, [], "{text:?}");
    match parsed.items.as_slice() {
        [CommandOrScopeBoundary::Command(segment)] => segment.clone(),
        other => panic!("{text:?} is {other:?}"),
    }
}

#[test]
fn words_are_what_bash_passes() {
    let cases: &[(&str, &[&str])] = &[
        (r#"a b'c d'"e f"g\ h"#, &["a", "bc de fg h"]),
        (r#"a "" '' b"#, &["a", "", "", "b"]),
        (r#"a "\$ \` \" \\ \n \'""#, &["a", "$ ` \" \\ \\n \\'"]),
        (r"a '\$ \n'", &["a", r"\$ \n"]),
        ("a \"b\\\nc\"", &["a", "bc"]),
        ("a 'b\\\nc'", &["a", "b\\\nc"]),
        ("a \\\n b", &["a", "b"]),
        ("a 5$ \"5$\" $", &["a", "5$", "5$", "$"]),
        ("a b#c ! =x x= {} {b} ]", &["a", "b#c", "!", "=x", "x=", "{}", "{b}", "]"]),
        ("a HEAD~1 b~ --c=~/d", &["a", "HEAD~1", "b~", "--c=~/d"]),
        (r"a \~ '~' \* '*' \{b,c\}", &["a", "~", "~", "*", "*", "{b,c}"]),
        ("[ ! -f b -a c = d ]", &["[", "!", "-f", "b", "-a", "c", "=", "d", "]"]),
        ("export A=b C", &["export", "A=b", "C"]),
        ("a >b c", &["a", "c"]),
        (">b a c", &["a", "c"]),
        ("a\tb", &["a", "b"]),
        ("a '{b}>c' {}", &["a", "{b}>c", "{}"]),
        ("日本 é", &["日本", "é"]),
        ("awk '{print $1}' \"b's\"", &["awk", "{print $1}", "b's"]),
    ];
    for (text, expected) in cases {
        assert_eq!(plain_words(text), [to_plain(expected)], "{text:?}");
    }
}

#[test]
fn wildcards_and_tildes_are_patterns() {
    let pattern = |text: &str| ShellWord::Pattern(text.to_owned());
    for text in ["*", "a?", "[ab]", "a*b", "~", "~/b", "~root/b", "[", "]"] {
        let [_, word] = &single_segment(&format!("ls {text}")).words[..] else { panic!("{text}") };
        let expected = match text {
            "[" | "]" => ShellWord::Plain(text.to_owned()),
            text => pattern(text),
        };
        assert_eq!(*word, expected);
    }
    assert_eq!(single_segment("ls 'a b'*").words[1], pattern("a b*"));
    assert_eq!(single_segment("A=~/b c").assignments, [("A".to_owned(), pattern("~/b"))]);
    assert_eq!(
        single_segment("A=* c").assignments,
        [("A".to_owned(), ShellWord::Plain("*".to_owned()))]
    );
}

#[test]
fn redirections_are_parsed_in_every_position_and_form() {
    let write = |target: &str| Redirect {
        kind: RedirectKind::Write,
        target: ShellWord::Plain(target.to_owned()),
    };
    for text in ["a >f", "a > f", ">f a", "a 2>f", "a >>f", "a >|f", "a &>f", "a &>>f", "a >&f"] {
        let segment = single_segment(text);
        assert_eq!(segment.words, to_plain(&["a"]), "{text}");
        assert_eq!(segment.redirects, [write("f")], "{text}");
    }
    for text in ["a 2>&1", "a >&2", "a <&-", "a 2>&-", "a 1>&2-"] {
        assert_eq!(single_segment(text).redirects, [], "{text}");
    }
    assert_eq!(single_segment("a <f").redirects[0].kind, RedirectKind::Read);
    assert_eq!(single_segment("a <<<'b c'").redirects[0].kind, RedirectKind::HereString);
    assert_eq!(single_segment("> f").redirects, [write("f")]);
    assert_eq!(single_segment("> f").text, "> f");
    assert_eq!(single_segment("a 2>&1 > f").text, "a 2>&1 > f");
    // Only one of the parsers knows this form.
    let parsed = parse_command_line("a <>f");
    assert!(segments(&parsed.items).iter().any(|each| each.redirects == [write("f")]));
    let group = parse_command_line("(a; b) > f");
    assert_eq!(segments(&group.items)[0].redirects, [write("f")]);
}

#[test]
fn a_quoted_heredoc_is_unambiguous_and_the_rest_of_its_line_is_parsed() {
    let segment = single_segment("cat > f <<'EOF'\n$x `y`\nEOF\n");
    let kind = RedirectKind::HereDocument { body: "$x `y`\n".to_owned(), quoted: true };
    assert_eq!(segment.redirects[1].kind, kind);
    assert_eq!(segment.text, "cat > f <<'EOF'");
    assert_eq!(program_names("cat <<'A' && rm x\nb\nA\n"), ["cat", "rm"]);
    assert_eq!(program_names("cat <<'A' | rm x | c\nb\nA\nd\n"), ["cat", "rm", "c", "d"]);
    let tabs = single_segment("cat <<-'A'\n\tb\n\tA\n");
    let kind = RedirectKind::HereDocument { body: "b\n".to_owned(), quoted: true };
    assert_eq!(tabs.redirects[0].kind, kind);
}

#[test]
fn scopes_are_reported() {
    let shape = |text: &str| -> String {
        let letter = |item: &CommandOrScopeBoundary| match item {
            CommandOrScopeBoundary::EnterScope => "(".to_owned(),
            CommandOrScopeBoundary::LeaveScope => ")".to_owned(),
            CommandOrScopeBoundary::Command(SimpleShellCommand {
                words,
                has_piped_input: piped,
                ..
            }) => {
                let pipe = if *piped { "|" } else { "" };
                let Some(ShellWord::Plain(word)) = words.first() else { return "?".to_owned() };
                format!("{pipe}{word}")
            }
        };
        parse_command_line(text).items.iter().map(letter).collect()
    };
    assert_eq!(shape("a; b && c || d\ne"), "abcde");
    assert_eq!(shape("a | b | c"), "(a)(|b)(|c)");
    assert_eq!(shape("a && b 2>&1 | c && d"), "a(b)(|c)d");
    assert_eq!(shape("(a; b) && { c; d; }"), "(ab)cd");
    assert_eq!(shape("a | (b; c)"), "(a)((|b|c))");
    assert_eq!(shape("! a | b"), "(a)(|b)");
    assert_eq!(shape("a & b"), "(a)b");
    assert_eq!(shape("a $(b)"), "(b)a");
    assert_eq!(shape("f() { a; }; b"), "(a)b");
}

#[test]
fn every_ambiguity_is_reported() {
    let cases: &[(ShellAmbiguity, &[&str])] = &[
        (
            ShellAmbiguity::ControlCharacters,
            &["a \u{1}", "a\r", "a\0b", "a \u{7f}", "a \u{85}", "a '\u{1b}[1m'"],
        ),
        (
            ShellAmbiguity::InvisibleCharacters,
            &["a\u{a0}b", "a \u{202e}b", "a\u{200b}", "a '\u{2003}'", "a \u{feff}"],
        ),
        (
            ShellAmbiguity::SyntaxError,
            &["a 'b", "a \"b", "a (", "a )", "a `b", "a && ", "| a", "a ;; b"],
        ),
        (
            ShellAmbiguity::CommandSubstitution,
            &["a $(b)", "a `b`", "a \"$(b)\"", "a \"`b`\"", "$(a)"],
        ),
        (
            ShellAmbiguity::Variable,
            &["a $b", "a ${b}", "a \"$b\"", "a $1", "a $?", "$a", "a ${b:-c}"],
        ),
        (ShellAmbiguity::Arithmetic, &["a $((1))", "((a))", "a $[1]"]),
        (ShellAmbiguity::ProcessSubstitution, &["a <(b)", "a >(b)"]),
        (
            ShellAmbiguity::HeredocExpansion,
            &["a <<B\n$c\nB\n", "a <<B\n`c`\nB\n", "a <<B\nc\\\nB\nB\n"],
        ),
        (ShellAmbiguity::DollarQuotes, &["a $'b'", "a $\"b\""]),
        (
            ShellAmbiguity::BraceExpansion,
            &["a {b,c}", "a {1..3}", "a b{c,d}e", "{a,b} c", "a {a..c}"],
        ),
        (ShellAmbiguity::PartlyQuotedWildcard, &["a '*'*", "a \\[b*", "a *\"\""]),
        (
            ShellAmbiguity::Tilde,
            &["a ~\"b\"", "a b=~/c", "A=b:~/c d", "a ~''/b", "a ~\\/b", "a <<<b:~"],
        ),
        (ShellAmbiguity::Array, &["a=(b c)", "a[1]=b"]),
        (ShellAmbiguity::AppendAssignment, &["a+=b"]),
        (
            ShellAmbiguity::Loop,
            &["for a in b; do c; done", "while a; do b; done", "until a; do b; done"],
        ),
        (ShellAmbiguity::IfStatement, &["if a; then b; fi"]),
        (ShellAmbiguity::CaseStatement, &["case a in b) c;; esac"]),
        (ShellAmbiguity::FunctionDefinition, &["a() { b; }", "function a { b; }", "a() (b)"]),
        (ShellAmbiguity::DoubleBracketTest, &["[[ a = b ]]"]),
        (ShellAmbiguity::Background, &["a &", "a & b", "(a &)"]),
        (ShellAmbiguity::Coprocess, &["coproc a"]),
        (ShellAmbiguity::TimeKeyword, &["time a", "time -p a"]),
        (ShellAmbiguity::ReservedWord, &["'if' a", "\\time b"]),
        (ShellAmbiguity::UnusualDescriptor, &["a {b}>c", "a |& b", "a >&'b c'", "a <&b"]),
        (ShellAmbiguity::Comment, &["a # b", "# a\nb", "a\n# b"]),
        (ShellAmbiguity::Unknown, &["a $%", "a \"$\"b"]),
        (ShellAmbiguity::ParsersDisagree, &["a \\ b", "echo [a] [ ] ["]),
    ];
    for (ambiguity, texts) in cases {
        for text in *texts {
            let ambiguities = parse_command_line(text).ambiguities;
            assert!(ambiguities.contains(ambiguity), "{text:?} gives {ambiguities:?}");
        }
    }
}

#[test]
fn nested_commands_are_found() {
    let texts = [
        "a $(rm x)",
        "a `rm x`",
        "a \"b $(c \"$(rm x)\")\"",
        "a \"`rm x`\"",
        "a <(rm x)",
        "a > >(rm x)",
        "a <<B\n$(rm x)\nB\n",
        "a <<B\n`rm x`\nB\n",
        "a <<'MSG' 2>&1 | rm x\nb\nMSG\n",
        "a <<<$(rm x)",
        "if a; then rm x; fi",
        "if rm x; then a; fi",
        "if a; then b; elif c; then rm x; else d; fi",
        "for a in b; do rm x; done",
        "for a in $(rm x); do b; done",
        "while a; do rm x; done",
        "until rm x; do b; done",
        "for ((i=0; i<$(rm x); i++)); do b; done",
        "case a in b) rm x;; esac",
        "case $(rm x) in b) c;; esac",
        "f() { rm x; }",
        "function f { rm x; }",
        "f() ( rm x )",
        "[[ -f $(rm x) ]]",
        "[ -f $(rm x) ]",
        "a ${b:-$(rm x)}",
        "a \"${b:-`rm x`}\"",
        "a $((1 + $(rm x)))",
        "((a = $(rm x)))",
        "a=$(rm x)",
        "a=(b $(rm x))",
        "a[$(rm x)]=b",
        "export A=$(rm x)",
        "a & rm x",
        "rm x & a",
        "coproc rm x",
        "time rm x",
        "! rm x",
        "{ a; rm x; }",
        "(a; (b; rm x))",
        "a |& rm x",
        "a\r\nrm x",
        "select a in b; do rm x; done",
        "a # b\nrm x",
        "a 'b' && \"rm\" x",
        "r\\\nm x",
        "> f rm x",
        "A=b rm x",
        "a ;rm x",
        "a $\"$(rm x)\"",
        "a <<B\n${c:-$(rm x)}\nB\n",
    ];
    for text in texts {
        assert!(
            program_names(text).iter().any(|word| word == "rm"),
            "{text:?}: {:?}",
            parse_command_line(text)
        );
    }
}

#[test]
fn quoted_text_is_not_a_command() {
    for text in ["echo 'a; rm x'", "echo \"a && rm x\"", "echo a\\;rm", "cat <<'A'\nrm x\nA\n"] {
        let found = plain_words(text);
        assert_eq!(found.len(), 1, "{text:?}");
    }
}

#[test]
fn a_copied_descriptor_that_bash_expands_twice_is_ambiguous() {
    assert!(!parse_command_line("a >&'$(rm x)'").ambiguities.is_empty());
    assert_eq!(single_segment("a >&b.txt").redirects.len(), 1);
}

#[test]
fn a_text_without_commands_is_unambiguous_and_empty() {
    for text in ["", " ", "\n", "\n\n \t\n"] {
        let parsed = parse_command_line(text);
        assert!(parsed.ambiguities.is_empty() && parsed.items.is_empty(), "{text:?}: {parsed:?}");
    }
}

#[test]
fn quoted_words_are_readable() {
    assert_eq!(quote(["git", "diff", "a b"]), "git diff 'a b'");
    assert_eq!(quote(["a", "it's", "", "--b=c", "$x"]), r"a 'it'\''s' '' --b=c '$x'");
    assert_eq!(quote(["A=b", "A=b"]), "'A=b' A=b");
    assert_eq!(quote(["if"]), "'if'");
    assert_eq!(quote(["a", "=="]), "a '=='");
    assert_eq!(quote(["a", "b\nc\u{202e}"]), r"a $'b\nc\U0000202e'");
}

fn visible_text() -> impl Strategy<Value = String> {
    "[ -~éß日]{0,12}"
}

proptest! {
    #[test]
    fn quoted_words_parse_back(
        first in "[a-zA-Z0-9.*'\" $~{}-]{1,6}",
        rest in prop::collection::vec(visible_text(), 0..5),
    ) {
        prop_assume!(!super::parse_result::RESERVED_WORDS.contains(&first.as_str()));
        let all: Vec<_> = std::iter::once(first).chain(rest).collect();
        let line = quote(&all);
        let expected: Vec<_> = all.into_iter().map(ShellWord::Plain).collect();
        prop_assert_eq!(single_segment(&line).words, expected, "{}", line);
    }

    #[test]
    fn any_text_keeps_the_invariants(text in any::<String>()) {
        check_invariants(&text);
    }

    #[test]
    fn any_shell_like_text_keeps_the_invariants(text in "([ -~\n\t]|[$(){}<>|&;'\"`\\\\\n ]|<<A|case |if |in |do |\\$\\(|\\$\\{|\\[\\[ |99999999999>|~99999999999999999999 |\\{1\\.\\.99999999999999999999\\}){0,60}") {
        check_invariants(&text);
    }
}

/// Checks the invariants that hold for every text.
fn check_invariants(text: &str) {
    assert!(super::invariants_hold(text), "{text:?}: {:?}", parse_command_line(text));
}
