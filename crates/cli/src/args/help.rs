//! Help texts: the commands of `windlass` in groups, and examples.

use super::CliArgs;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory, FromArgMatches};
use std::fmt::Write;

/// The subcommands in the groups that `windlass --help` shows.
const COMMAND_GROUPS: [(&str, &[&str]); 4] = [
    ("Work", &["run", "init", "session"]),
    ("Set up", &["auth", "models", "config", "trust", "permission", "doctor"]),
    ("Extend", &["agent", "tool", "mcp", "plugin", "import"]),
    ("Reference", &["schema", "completions", "man", "help"]),
];

/// A command line, and what it does.
type CommandExample = (&'static str, &'static str);

/// The examples below the help of a command, by its path.
const EXAMPLES: [(&[&str], &[CommandExample]); 8] = [
    (
        &[],
        &[
            ("windlass", "Open the terminal UI in this folder"),
            ("windlass run \"fix the failing test\"", "Run one prompt and print the answer"),
            ("git diff | windlass run \"review this\"", "Add standard input to the prompt"),
            ("windlass --continue", "Resume the last session of this folder"),
        ],
    ),
    (
        &["run"],
        &[
            ("windlass run --mode plan \"how is the cache invalidated?\"", "Change nothing"),
            ("windlass run --continue \"now add a test\"", "Resume the last session"),
            ("windlass run --output json --max-cost 0.50 \"…\"", "For scripts, with a limit"),
        ],
    ),
    (
        &["session"],
        &[
            ("windlass session list", "List the sessions of this folder"),
            ("windlass session diff 7f3a", "Show what a session changed"),
            ("windlass session undo 7f3a", "Undo those changes"),
        ],
    ),
    (
        &["tool"],
        &[("windlass tool call grep '{\"pattern\": \"TODO\"}'", "Call a tool without a model")],
    ),
    (
        &["auth"],
        &[("windlass auth login anthropic", "Save an API key, typed or from standard input")],
    ),
    (
        &["mcp"],
        &[
            ("windlass mcp add docs --url https://example.com/mcp", "Add a server over HTTP"),
            (
                "windlass mcp add git -- uvx mcp-server-git",
                "Add a local server, started with this command",
            ),
            ("windlass mcp serve", "Serve this project's tools over stdio"),
        ],
    ),
    (
        &["permission"],
        &[(
            "windlass permission explain \"git push\"",
            "Tell if a command needs approval, and why",
        )],
    ),
    (&["import"], &[("windlass import claude", "Show what would be imported, then ask")]),
];

/// Returns the definition of the command line, with groups and examples.
pub(crate) fn command() -> Command {
    let mut command = CliArgs::command();
    command.build();
    let groups = render_groups(&command);
    let command = command.help_template(format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n\
         {{options}}{{after-help}}"
    ));
    EXAMPLES.iter().fold(command, |command, (path, examples)| add_examples(command, path, examples))
}

/// Parses the arguments of the process. Prints help or an error and exits instead, if needed.
pub(crate) fn parse() -> CliArgs {
    let matches = command().try_get_matches().unwrap_or_else(|error| add_command_tip(error).exit());
    CliArgs::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Replaces clap's guess at an unknown command by a tip, if the words show what was meant: a
/// prompt, or a command that has another name here.
fn add_command_tip(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let tip = match name.as_str() {
        "login" | "logout" => format!("use `windlass auth {name}`"),
        name if name.contains(char::is_whitespace) => {
            format!("to send a prompt, use `windlass run \"{name}\"`")
        }
        _ => return error,
    };
    error.remove(ContextKind::SuggestedSubcommand);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

fn render_groups(command: &Command) -> String {
    let names = COMMAND_GROUPS.iter().flat_map(|(_, names)| *names);
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (title, names) in COMMAND_GROUPS {
        let _ = writeln!(text, "{title}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name:<width$}  {about}");
        }
        text.push('\n');
    }
    text
}

fn add_examples(command: Command, path: &[&str], examples: &[(&str, &str)]) -> Command {
    if let [first, rest @ ..] = path {
        return command.mut_subcommand(*first, |command| add_examples(command, rest, examples));
    }
    let width = examples.iter().map(|(line, _)| line.chars().count()).max().unwrap_or_default();
    let mut text = String::from("Examples:\n");
    for (line, description) in examples {
        let _ = writeln!(text, "  {line:<width$}  {description}");
    }
    let existing = command.get_after_help().map(|help| format!("{help}\n\n")).unwrap_or_default();
    command.after_help(StyledStr::from(format!("{existing}{}", text.trim_end())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> =
            COMMAND_GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = command();
        let mut commands: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        commands.sort_unstable();
        assert_eq!(grouped, commands);
    }

    #[test]
    fn every_example_parses() {
        for (_, examples) in EXAMPLES {
            for (line, _) in examples {
                let line = line.rsplit_once(" | ").map_or(*line, |(_, line)| line);
                let words = shell_words(line);
                let parsed = command().try_get_matches_from(&words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn an_unknown_command_gets_a_tip() {
        for (words, tip) in [
            (
                ["windlass", "fix the bug"],
                "tip: to send a prompt, use `windlass run \"fix the bug\"`",
            ),
            (["windlass", "login"], "tip: use `windlass auth login`"),
        ] {
            let error = command().try_get_matches_from(words).unwrap_err();
            let message = add_command_tip(error).to_string();
            assert!(message.contains(tip) && !message.contains("plugin"), "{message}");
        }
    }

    /// Splits a command line at spaces outside of quotes.
    fn shell_words(line: &str) -> Vec<String> {
        let (mut words, mut quote) = (vec![String::new()], None);
        for c in line.chars() {
            match (c, quote) {
                ('"' | '\'', None) => quote = Some(c),
                (c, Some(quote_char)) if c == quote_char => quote = None,
                (' ', None) => words.push(String::new()),
                (c, _) => words.last_mut().unwrap().push(c),
            }
        }
        words
    }
}
