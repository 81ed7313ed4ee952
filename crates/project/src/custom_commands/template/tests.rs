//! Expansion of templates; arguments are only text.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use proptest::prelude::*;

fn expand(template: &str, arguments: &str) -> ExpandedPrompt {
    let template = template.to_owned();
    let command = parse_command(Path::new("c.md"), "text").unwrap();
    CustomCommand { template, ..command }.expand(arguments)
}

#[test]
fn arguments_replace_placeholders() {
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
        assert_eq!(expand(template, arguments).text, text, "{template}");
    }
}

#[test]
fn file_references_are_found_and_mail_addresses_are_not() {
    let prompt =
        expand("See @src/a.rs, @src/a.rs and (@b.md). Ask me@example.org or `@c`. @$1", "d.txt");
    assert_eq!(prompt.files, ["src/a.rs", "b.md", "d.txt"]);
    assert!(prompt.text.ends_with("@d.txt"), "{}", prompt.text);
    assert!(expand("a @ b @", "").files.is_empty());
}

#[test]
fn placeholders_without_an_argument_are_reported() {
    let template = "Mend @$1 in $2 and $3, $3, $10, $ARGUMENTS: !`awk '{print $4}'` @$5";
    assert_eq!(expand(template, "a b").missing_arguments, ["$3", "$5"]);
    assert!(expand("Mend $1", "it").missing_arguments.is_empty());
}

#[test]
fn shell_steps_are_separated_from_the_text() {
    let prompt = expand("Status: !`git status --short` Wow! `code` !``", "");
    let commands: Vec<&str> = prompt.shell_steps.iter().map(|step| step.command.as_str()).collect();
    assert_eq!(commands, ["git status --short"]);
    assert_eq!(prompt.text, "Status:  Wow! `code` !``");
}

#[test]
fn outputs_are_inserted_and_not_expanded_again() {
    let prompt = expand("!`a`é$1!`b $1` @f!`c`.", "!`d`");
    let commands: Vec<&str> = prompt.shell_steps.iter().map(|step| step.command.as_str()).collect();
    assert_eq!(commands, ["a", "b $1", "c"], "arguments must not get into a command");
    let outputs = prompt.shell_steps.iter().zip(["$1", "", "@g !`e`"]);
    assert_eq!(TemplateShellCommand::insert_outputs(&prompt.text, outputs), "$1é!`d` @f@g !`e`.");
}

#[test]
fn an_invalid_command_file_is_an_error() {
    for (path, text) in [
        ("/c/a b.md", "x"),
        ("/c/a.md", "---\ndescription: d\n---\n \n"),
        ("/c/a.md", "---\ndescription: [\n---\nx"),
    ] {
        assert!(parse_command(Path::new(path), text).is_err(), "{path} {text}");
    }
    assert!(parse_command(Path::new("/c/a.md"), &"x".repeat(MAX_COMMAND_BYTES + 1)).is_err());
    let command =
        parse_command(Path::new("/c/a.md"), "---\ndescription: d\nagent: plan\n---\nGo.").unwrap();
    assert_eq!((command.description.as_str(), command.template.as_str()), ("d", "Go."));
}

proptest! {
    #[test]
    fn arguments_are_only_text(arguments in "[ !`@$1-9A-Za-z/.\"']{0,40}") {
        let prompt = expand("Do $ARGUMENTS", &arguments);
        prop_assert!(prompt.shell_steps.is_empty() && prompt.files.is_empty());
        prop_assert_eq!(prompt.text, format!("Do {}", arguments.trim()));
    }

    #[test]
    fn any_template_can_be_expanded(template in any::<String>(), arguments in any::<String>()) {
        let prompt = expand(&template, &arguments);
        prop_assert!(prompt.files.len() <= MAX_PROMPT_FILES);
    }
}
