//! What becomes of a template, and that nothing that was said is more than text.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use proptest::prelude::*;

fn draft(template: &str, arguments: &str) -> Draft {
    let template = template.to_owned();
    Command { name: "c".into(), description: String::new(), template }.draft(arguments)
}

#[test]
fn what_was_said_takes_its_place() {
    for (template, arguments, text) in [
        ("Mend $1 in $2.", "it here now", "Mend it in here."),
        ("Mend $ARGUMENTS now", " all of it ", "Mend all of it now"),
        ("Mend $1", "'two words' x", "Mend two words"),
        ("Mend $3|", "a b", "Mend |"),
        ("Costs $10 or $0 or $", "a", "Costs $10 or $0 or $\n\na"),
        ("Plain.", "and more", "Plain.\n\nand more"),
        ("Plain.", "  ", "Plain."),
        ("é$1é", "ü", "éüé"),
    ] {
        assert_eq!(draft(template, arguments).text, text, "{template}");
    }
}

#[test]
fn files_are_named_and_mail_is_not() {
    let it =
        draft("See @src/a.rs, @src/a.rs and (@b.md). Ask me@example.org or `@c`. @$1", "d.txt");
    assert_eq!(it.files, ["src/a.rs", "b.md", "d.txt"]);
    assert!(it.text.ends_with("@d.txt"), "{}", it.text);
    assert!(draft("a @ b @", "").files.is_empty());
}

#[test]
fn commands_are_told_apart_from_what_is_asked() {
    let it = draft("Status: !`git status --short` Wow! `code` !``", "");
    let runs: Vec<&str> = it.runs.iter().map(|run| run.command.as_str()).collect();
    assert_eq!(runs, ["git status --short"]);
    assert_eq!(it.text, "Status:  Wow! `code` !``");
}

#[test]
fn what_commands_gave_stands_in_their_places_and_is_read_no_further() {
    let it = draft("!`a`é$1!`b $1` @f!`c`.", "!`d`");
    let runs: Vec<&str> = it.runs.iter().map(|run| run.command.as_str()).collect();
    assert_eq!(runs, ["a", "b $1", "c"], "nothing that is said gets into a command");
    let gave = it.runs.iter().zip(["$1", "", "@g !`e`"]);
    assert_eq!(Run::fill(&it.text, gave), "$1é!`d` @f@g !`e`.");
}

#[test]
fn what_is_no_command_says_why() {
    for (path, text) in [
        ("/c/a b.md", "x"),
        ("/c/a.md", "---\ndescription: d\n---\n \n"),
        ("/c/a.md", "---\ndescription: [\n---\nx"),
    ] {
        assert!(read(Path::new(path), text).is_err(), "{path} {text}");
    }
    assert!(read(Path::new("/c/a.md"), &"x".repeat(LONGEST + 1)).is_err());
    let command = read(Path::new("/c/a.md"), "---\ndescription: d\nagent: plan\n---\nGo.").unwrap();
    assert_eq!((command.description.as_str(), command.template.as_str()), ("d", "Go."));
}

proptest! {
    #[test]
    fn nothing_that_was_said_is_more_than_text(said in "[ !`@$1-9A-Za-z/.\"']{0,40}") {
        let it = draft("Do $ARGUMENTS", &said);
        prop_assert!(it.runs.is_empty() && it.files.is_empty());
        prop_assert_eq!(it.text, format!("Do {}", said.trim()));
    }

    #[test]
    fn any_template_is_read(template in any::<String>(), said in any::<String>()) {
        let it = draft(&template, &said);
        prop_assert!(it.files.len() <= MOST_FILES);
    }
}
