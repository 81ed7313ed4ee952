//! What is plain, what is doubted, and what is found all the same.

mod differential;
mod limits;
mod strings;

use super::doubt::Doubt;
use super::{Item, Redirect, RedirectKind, Segment, Word, quote, read};
use proptest::prelude::*;

fn segments(items: &[Item]) -> Vec<&Segment> {
    differential::commands(items).collect()
}

/// The words of every command of a text that must be plain.
fn words(text: &str) -> Vec<Vec<Word>> {
    let reading = read(text);
    assert_eq!(reading.doubts, Vec::<String>::new(), "{text:?}");
    segments(&reading.items).into_iter().map(|each| each.words.clone()).collect()
}

/// Every known first word that is found, in plain and in doubtful texts.
fn programs(text: &str) -> Vec<String> {
    let reading = read(text);
    let first = |segment: &&Segment| match segment.words.first() {
        Some(Word::Plain(word)) => Some(word.clone()),
        _ => None,
    };
    segments(&reading.items).iter().filter_map(first).collect()
}

fn plain(words: &[&str]) -> Vec<Word> {
    words.iter().map(|word| Word::Plain((*word).to_owned())).collect()
}

fn only(text: &str) -> Segment {
    let reading = read(text);
    assert_eq!(reading.doubts, Vec::<String>::new(), "{text:?}");
    match reading.items.as_slice() {
        [Item::Command(segment)] => segment.clone(),
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
        assert_eq!(words(text), [plain(expected)], "{text:?}");
    }
}

#[test]
fn wildcards_and_homes_are_patterns() {
    let pattern = |text: &str| Word::Pattern(text.to_owned());
    for text in ["*", "a?", "[ab]", "a*b", "~", "~/b", "~root/b", "[", "]"] {
        let [_, word] = &only(&format!("ls {text}")).words[..] else { panic!("{text}") };
        let expected = match text {
            "[" | "]" => Word::Plain(text.to_owned()),
            text => pattern(text),
        };
        assert_eq!(*word, expected);
    }
    assert_eq!(only("ls 'a b'*").words[1], pattern("a b*"));
    assert_eq!(only("A=~/b c").assignments, [("A".to_owned(), pattern("~/b"))]);
    assert_eq!(only("A=* c").assignments, [("A".to_owned(), Word::Plain("*".to_owned()))]);
}

#[test]
fn redirections_are_told_in_every_place_and_form() {
    let write = |target: &str| Redirect {
        kind: RedirectKind::Write,
        target: Word::Plain(target.to_owned()),
    };
    for text in ["a >f", "a > f", ">f a", "a 2>f", "a >>f", "a >|f", "a &>f", "a &>>f", "a >&f"] {
        let segment = only(text);
        assert_eq!(segment.words, plain(&["a"]), "{text}");
        assert_eq!(segment.redirects, [write("f")], "{text}");
    }
    for text in ["a 2>&1", "a >&2", "a <&-", "a 2>&-", "a 1>&2-"] {
        assert_eq!(only(text).redirects, [], "{text}");
    }
    assert_eq!(only("a <f").redirects[0].kind, RedirectKind::Read);
    assert_eq!(only("a <<<'b c'").redirects[0].kind, RedirectKind::Text);
    assert_eq!(only("> f").redirects, [write("f")]);
    assert_eq!(only("> f").text, "> f");
    assert_eq!(only("a 2>&1 > f").text, "a 2>&1 > f");
    // This one is not in the tree, but the other parser knows it.
    let reading = read("a <>f");
    assert!(segments(&reading.items).iter().any(|each| each.redirects == [write("f")]));
    let group = read("(a; b) > f");
    assert_eq!(segments(&group.items)[0].redirects, [write("f")]);
}

#[test]
fn a_quoted_document_is_plain_and_whatever_stands_on_its_line_is_seen() {
    let segment = only("cat > f <<'EOF'\n$x `y`\nEOF\n");
    let kind = RedirectKind::Document { body: "$x `y`\n".to_owned(), quoted: true };
    assert_eq!(segment.redirects[1].kind, kind);
    assert_eq!(segment.text, "cat > f <<'EOF'");
    assert_eq!(programs("cat <<'A' && rm x\nb\nA\n"), ["cat", "rm"]);
    assert_eq!(programs("cat <<'A' | rm x | c\nb\nA\nd\n"), ["cat", "rm", "c", "d"]);
    let tabs = only("cat <<-'A'\n\tb\n\tA\n");
    let kind = RedirectKind::Document { body: "b\n".to_owned(), quoted: true };
    assert_eq!(tabs.redirects[0].kind, kind);
}

#[test]
fn scopes_are_told() {
    let shape = |text: &str| -> String {
        let letter = |item: &Item| match item {
            Item::Enter => "(".to_owned(),
            Item::Leave => ")".to_owned(),
            Item::Command(Segment { words, piped, .. }) => {
                let pipe = if *piped { "|" } else { "" };
                let Some(Word::Plain(word)) = words.first() else { return "?".to_owned() };
                format!("{pipe}{word}")
            }
        };
        read(text).items.iter().map(letter).collect()
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
fn every_doubt_is_told() {
    let cases: &[(Doubt, &[&str])] = &[
        (Doubt::Control, &["a \u{1}", "a\r", "a\0b", "a \u{7f}", "a \u{85}", "a '\u{1b}[1m'"]),
        (Doubt::Hidden, &["a\u{a0}b", "a \u{202e}b", "a\u{200b}", "a '\u{2003}'", "a \u{feff}"]),
        (Doubt::Broken, &["a 'b", "a \"b", "a (", "a )", "a `b", "a && ", "| a", "a ;; b"]),
        (Doubt::Substitution, &["a $(b)", "a `b`", "a \"$(b)\"", "a \"`b`\"", "$(a)"]),
        (Doubt::Variable, &["a $b", "a ${b}", "a \"$b\"", "a $1", "a $?", "$a", "a ${b:-c}"]),
        (Doubt::Arithmetic, &["a $((1))", "((a))", "a $[1]"]),
        (Doubt::Process, &["a <(b)", "a >(b)"]),
        (Doubt::Document, &["a <<B\n$c\nB\n", "a <<B\n`c`\nB\n", "a <<B\nc\\\nB\nB\n"]),
        (Doubt::Escapes, &["a $'b'", "a $\"b\""]),
        (Doubt::Braces, &["a {b,c}", "a {1..3}", "a b{c,d}e", "{a,b} c", "a {a..c}"]),
        (Doubt::Mixed, &["a '*'*", "a \\[b*", "a *\"\""]),
        (Doubt::Tilde, &["a ~\"b\"", "a b=~/c", "A=b:~/c d", "a ~''/b", "a ~\\/b", "a <<<b:~"]),
        (Doubt::Array, &["a=(b c)", "a[1]=b"]),
        (Doubt::Append, &["a+=b"]),
        (Doubt::Loop, &["for a in b; do c; done", "while a; do b; done", "until a; do b; done"]),
        (Doubt::Condition, &["if a; then b; fi"]),
        (Doubt::Case, &["case a in b) c;; esac"]),
        (Doubt::Function, &["a() { b; }", "function a { b; }", "a() (b)"]),
        (Doubt::Test, &["[[ a = b ]]"]),
        (Doubt::Background, &["a &", "a & b", "(a &)"]),
        (Doubt::Coprocess, &["coproc a"]),
        (Doubt::Time, &["time a", "time -p a"]),
        (Doubt::Reserved, &["'if' a", "\\time b"]),
        (Doubt::Descriptor, &["a {b}>c", "a |& b", "a >&'b c'", "a <&b"]),
        (Doubt::Comment, &["a # b", "# a\nb", "a\n# b"]),
        (Doubt::Unknown, &["a $%", "a \"$\"b"]),
        (Doubt::Differ, &["a \\ b", "echo [a] [ ] ["]),
    ];
    for (doubt, texts) in cases {
        for text in *texts {
            let doubts = read(text).doubts;
            assert!(doubts.iter().any(|each| each == doubt.says()), "{text:?} gives {doubts:?}");
        }
    }
}

#[test]
fn commands_are_found_wherever_they_hide() {
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
        assert!(programs(text).iter().any(|word| word == "rm"), "{text:?}: {:?}", read(text));
    }
}

#[test]
fn what_is_not_a_command_is_not_taken_for_one() {
    for text in ["echo 'a; rm x'", "echo \"a && rm x\"", "echo a\\;rm", "cat <<'A'\nrm x\nA\n"] {
        let found = words(text);
        assert_eq!(found.len(), 1, "{text:?}");
    }
}

#[test]
fn bash_expands_a_copied_descriptor_twice() {
    assert!(!read("a >&'$(rm x)'").doubts.is_empty());
    assert_eq!(only("a >&b.txt").redirects.len(), 1);
}

#[test]
fn a_text_without_commands_is_plain_and_empty() {
    for text in ["", " ", "\n", "\n\n \t\n"] {
        let reading = read(text);
        assert!(reading.doubts.is_empty() && reading.items.is_empty(), "{text:?}: {reading:?}");
    }
}

#[test]
fn quoted_words_can_be_read_by_people() {
    assert_eq!(quote(["git", "diff", "a b"]), "git diff 'a b'");
    assert_eq!(quote(["a", "it's", "", "--b=c", "$x"]), r"a 'it'\''s' '' --b=c '$x'");
    assert_eq!(quote(["A=b", "A=b"]), "'A=b' A=b");
    assert_eq!(quote(["if"]), "'if'");
    assert_eq!(quote(["a", "b\nc\u{202e}"]), r"a $'b\nc\U0000202e'");
}

fn seen() -> impl Strategy<Value = String> {
    "[ -~éß日]{0,12}"
}

proptest! {
    #[test]
    fn quoted_words_are_read_back(first in "[a-zA-Z0-9.*'\" $~{}-]{1,6}", rest in prop::collection::vec(seen(), 0..5)) {
        prop_assume!(!super::finding::RESERVED.contains(&first.as_str()));
        let all: Vec<_> = std::iter::once(first).chain(rest).collect();
        let line = quote(&all);
        let expected: Vec<_> = all.into_iter().map(Word::Plain).collect();
        prop_assert_eq!(only(&line).words, expected, "{}", line);
    }

    #[test]
    fn any_text_can_be_read(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn any_shell_like_text_can_be_read(text in "([ -~\n\t]|[$(){}<>|&;'\"`\\\\\n ]|<<A|case |if |in |do |\\$\\(|\\$\\{|\\[\\[ |99999999999>|~99999999999999999999 |\\{1\\.\\.99999999999999999999\\}){0,60}") {
        check(&text);
    }
}

/// What holds for the reading of any text.
fn check(text: &str) {
    assert!(super::holds(text), "{text:?}: {:?}", read(text));
}
