//! Help texts: the commands of `windlass` in groups, and examples.

use super::CliArgs;
use clap::builder::StyledStr;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Command, CommandFactory, FromArgMatches};
use std::ffi::OsString;
use std::fmt::Write;

/// The subcommands in the groups that `windlass --help` shows.
const COMMAND_GROUPS: [(&str, &[&str]); 5] = [
    ("Work", &["run", "init", "session", "stats"]),
    ("Server", &["serve", "attach", "ps", "fleet"]),
    ("Set up", &["auth", "models", "config", "trust", "permission", "doctor"]),
    ("Extend", &["agent", "tool", "mcp", "plugin", "import"]),
    ("Reference", &["schema", "completions", "man", "help"]),
];

/// A command line, and what it does.
type CommandExample = (&'static str, &'static str);

/// The examples below the help of a command, by its path.
const EXAMPLES: [(&[&str], &[CommandExample]); 23] = [
    (
        &[],
        &[
            ("windlass", "Open the terminal UI in this folder"),
            ("windlass ../other", "Open it in another folder"),
            ("windlass \"fix the failing test\"", "Open it and send a prompt"),
            ("windlass -p \"fix the failing test\"", "Print the answer and exit (`windlass run`)"),
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
        &["serve"],
        &[
            ("windlass serve", "Keep the sessions of this folder in a server"),
            ("windlass serve --root ~/api --root ~/page", "Work in two folders"),
            ("windlass serve --listen 127.0.0.1:4270", "Also accept clients with a token"),
            ("windlass serve token add phone --right read", "Create a token"),
            ("windlass serve stop", "Stop the server"),
        ],
    ),
    (
        &["fleet"],
        &[
            ("windlass fleet status", "Show the nodes of the fleet in WINDLASS_FLEET"),
            ("windlass fleet tenant add api --root /srv/work/api", "Add a team"),
            ("windlass fleet user add api/anna --right write", "Add a user to it"),
            ("windlass fleet token add api/anna laptop", "Create a token for the user"),
            ("windlass fleet drain 3f2a", "Stop a node"),
        ],
    ),
    (
        &["attach"],
        &[
            ("windlass attach", "Open the terminal UI on the server of this machine"),
            ("windlass attach --continue", "Open the last session of this folder"),
            ("windlass attach http://127.0.0.1:4270", "Use the token in WINDLASS_TOKEN"),
        ],
    ),
    (&["ps"], &[("windlass ps --json", "List the open sessions for a script")]),
    (
        &["session"],
        &[
            ("windlass session list", "List the sessions of this folder"),
            ("windlass session diff", "Show what the last session changed"),
            ("windlass session undo 7f3a", "Undo the changes of a session's last turn"),
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
    (&["init"], &[("windlass init \"name the test commands\"", "Write AGENTS.md, with a wish")]),
    (&["stats"], &[("windlass stats --days 7", "Show the usage of the last week")]),
    (&["models"], &[("windlass models anthropic", "List the models of one provider")]),
    (&["config"], &[("windlass config", "Show the settings in effect and their origin")]),
    (&["trust"], &[("windlass trust", "Show what this folder would run, then ask")]),
    (
        &["doctor"],
        &[
            ("windlass doctor", "Check this machine and the config"),
            ("windlass doctor --repair", "Save what a damaged session log still contains"),
        ],
    ),
    (&["agent"], &[("windlass agent list", "List the agents for `--agent`")]),
    (
        &["plugin"],
        &[
            ("windlass plugin add ../plugin", "Show what a plugin may access, then ask"),
            ("windlass plugin list", "List plugins and their contents"),
        ],
    ),
    (&["schema"], &[("windlass schema config > config.schema.json", "Save it for an editor")]),
    (
        &["completions"],
        &[("windlass completions bash > windlass.bash", "Save them; source it in ~/.bashrc")],
    ),
    (&["man"], &[("windlass man > windlass.1", "Save the page; `man ./windlass.1` shows it")]),
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
    parse_from(std::env::args_os().collect()).unwrap_or_else(|error| error.exit())
}

fn parse_from(words: Vec<OsString>) -> Result<CliArgs, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(rewrite_print(words, &command))?;
    let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    if let (Some(name), true) = (matches.subcommand_name(), TUI_ARGS.into_iter().any(is_given)) {
        let message = format!("options and prompts of `windlass {name}` follow its name");
        return Err(command.error(ErrorKind::ArgumentConflict, message));
    }
    CliArgs::from_arg_matches(&matches)
}

/// The arguments of the terminal UI, which no command takes before its name.
const TUI_ARGS: [&str; 12] = [
    "target",
    "print",
    "continue",
    "session",
    "model",
    "small_model",
    "agent",
    "prompt",
    "linear",
    "mode",
    "sandbox",
    "add_dir",
];

/// Turns `windlass -p …` into `windlass run …`, so that all options of `run` apply. `-p` may stand in
/// a group of short flags, such as `-cp`.
fn rewrite_print(mut words: Vec<OsString>, command: &Command) -> Vec<OsString> {
    let is_command = |word: &OsString| {
        command.get_subcommands().any(|subcommand| word == subcommand.get_name()) || word == "--"
    };
    let options = words.iter().skip(1).take_while(|word| !is_command(word));
    let print = options.enumerate().find_map(|(index, word)| {
        let rest = without_print(word.to_str()?, command)?;
        Some((index + 1, rest))
    });
    if let Some((index, rest)) = print {
        words.remove(index);
        if let Some(rest) = rest {
            words.insert(index, rest.into());
        }
        words.insert(1, "run".into());
    }
    words
}

/// Returns the other flags of a word that contains `-p`, if any; `None` for other words. The letters
/// after a flag with a value are that value.
fn without_print(word: &str, command: &Command) -> Option<Option<String>> {
    if word == "--print" {
        return Some(None);
    }
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    let position = letters.find('p')?;
    let is_switch = |letter: char| {
        let run = command.find_subcommand("run").into_iter();
        let mut options = run.chain([command]).flat_map(Command::get_arguments);
        options
            .any(|option| option.get_short() == Some(letter) && !option.get_action().takes_values())
    };
    let (before, after) = (letters.get(..position)?, letters.get(position + 1..)?);
    before.chars().all(is_switch).then(|| {
        let rest = format!("{before}{after}");
        (!rest.is_empty()).then(|| format!("-{rest}"))
    })
}

/// Returns the message for a word that is neither a command nor a folder.
pub(crate) fn unknown_command_message(word: &str) -> String {
    let command = command();
    let names = command.get_subcommands().map(Command::get_name);
    let tip = match word {
        "login" | "logout" => format!("Use `windlass auth {word}`."),
        "resume" => "Use `windlass --resume`.".to_owned(),
        _ => match windlass_tui::closest_name(word, names) {
            Some(name) => format!("Did you mean `windlass {name}`?"),
            None => "`windlass --help` lists the commands.".to_owned(),
        },
    };
    format!("unknown command or folder `{word}`. {tip} To send a single word: --prompt {word}")
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
                let line = line.split_once(" > ").map_or(line, |(line, _)| line);
                let words = shell_words(line);
                let parsed = command().try_get_matches_from(&words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }

    /// Returns what `--help` prints for a command.
    fn help_text(path: &[&str]) -> String {
        let words = ["windlass"].iter().chain(path).chain(&["--help"]).map(OsString::from);
        let error = parse_from(words.collect()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DisplayHelp, "{path:?}");
        error.to_string()
    }

    #[test]
    fn the_help_of_every_command_has_examples() {
        for (path, examples) in EXAMPLES {
            let help = help_text(path);
            for (line, description) in examples {
                let is_example =
                    |row: &str| row.contains(line) && row.trim_end().ends_with(description);
                assert!(help.lines().any(is_example), "{line}: {help}");
            }
        }
        for name in command().get_subcommands().map(Command::get_name) {
            let has_examples = EXAMPLES.iter().any(|(path, _)| *path == [name]);
            assert!(has_examples || name == "help", "{name} has no examples");
        }
    }

    #[test]
    fn the_help_names_the_exit_codes_of_a_command() {
        for (path, code) in [
            (&["session", "undo"][..], "3  not confirmed"),
            (&["session", "redo"], "3  not confirmed"),
            (&["run"], "3  denied"),
            (&["tool", "call"], "3  denied"),
        ] {
            let help = help_text(path);
            let after = help.split_once("Exit codes:").map(|(_, after)| after);
            assert!(after.is_some_and(|after| after.contains(code)), "{path:?}: {help}");
        }
    }

    fn parse_line(line: &str) -> Result<CliArgs, clap::Error> {
        parse_from(shell_words(line).into_iter().map(OsString::from).collect())
    }

    #[test]
    fn an_unknown_command_gets_a_tip() {
        for (word, tip) in [
            ("login", "Use `windlass auth login`"),
            ("sesion", "Did you mean `windlass session`?"),
            ("doctr", "Did you mean `windlass doctor`?"),
            ("banana", "`windlass --help` lists the commands"),
        ] {
            let message = unknown_command_message(word);
            assert!(message.contains(tip), "{message}");
            assert_eq!(parse_line(&format!("windlass {word}")).unwrap().tui.target.unwrap(), word);
        }
    }

    #[test]
    fn print_takes_the_options_of_run() {
        for line in [
            "windlass -p \"say hi\" --output json",
            "windlass --print --output json \"say hi\"",
            "windlass --output json \"say hi\" -p",
            "windlass -C /tmp --print --output json \"say hi\"",
        ] {
            let args = parse_line(line).unwrap();
            let Some(crate::args::CliCommand::Run(run)) = args.command else { panic!("{line}") };
            assert_eq!(run.prompt.as_deref(), Some("say hi"), "{line}");
            assert_eq!(run.output, crate::args::RunOutputFormat::Json, "{line}");
        }
        for (line, yes) in [
            ("windlass -cp \"go on\"", false),
            ("windlass -pc \"go on\"", false),
            ("windlass -c -yp \"go on\"", true),
            ("windlass -pcmx/y \"go on\"", false),
        ] {
            let args = parse_line(line).unwrap();
            let Some(crate::args::CliCommand::Run(run)) = args.command else { panic!("{line}") };
            assert_eq!((run.prompt.as_deref(), run.r#continue), (Some("go on"), true), "{line}");
            assert_eq!(run.yes, yes, "{line}");
            assert_eq!(run.model.is_some(), line.contains("x/y"), "{line}");
        }
        // The letters after `-m` are a model.
        let model = parse_line("windlass -mopenai/gpt").unwrap().tui.model;
        assert_eq!(model.as_deref(), Some("openai/gpt"));
        // `-p` after a command is the command's own.
        assert!(parse_line("windlass session list -p").is_err());
    }

    #[test]
    fn options_of_the_screen_do_not_mix_with_commands() {
        for line in ["windlass --model a/b run hi", "windlass \"fix it\" session list"] {
            assert_eq!(parse_line(line).unwrap_err().kind(), ErrorKind::ArgumentConflict, "{line}");
        }
        for line in ["windlass -C /tmp session list", "windlass session list -C /tmp"] {
            assert_eq!(parse_line(line).unwrap().folder.unwrap(), std::path::Path::new("/tmp"));
        }
    }

    #[test]
    fn resume_takes_an_id_or_none() {
        let session = |line| parse_line(line).unwrap().tui.session;
        assert_eq!(session("windlass --resume").as_deref(), Some(""));
        assert_eq!(session("windlass --resume 7f3a").as_deref(), Some("7f3a"));
        assert_eq!(session("windlass -s 7f3a \"go on\"").as_deref(), Some("7f3a"));
        assert_eq!(session("windlass"), None);
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
