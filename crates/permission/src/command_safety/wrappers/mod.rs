//! Unwraps programs that run other programs: the inner command decides.
//!
//! Start reading at [`unwrap_command`].

mod shells;

use super::option_grammar::{self, OptionSafety, ParsedArgument};
use super::risk::{Risk, RiskFinding};
use super::word_expansion::is_variable_name;
use super::wrapper_table::{NPX_LOCAL_TOOLS, WRAPPER_ROWS, WrapperProgram};
use crate::shell::ShellWord;
use shells::{unwrap_piped_interpreter, unwrap_script_program, unwrap_shell, unwrap_source};

/// The result of removing one wrapper.
#[derive(Debug)]
pub(super) enum UnwrappedCommand {
    /// The program is not a wrapper.
    NotWrapper,
    /// The wrapper runs `words` after it sets `assignments` and writes the files `writes`.
    Command {
        words: Vec<ShellWord>,
        assignments: Vec<(String, ShellWord)>,
        writes: Vec<ShellWord>,
        floor: RiskFinding,
    },
    /// The wrapper runs `text` as a script and writes the files `writes`.
    Script { text: ShellWord, writes: Vec<ShellWord>, floor: RiskFinding },
    /// `find`, with the commands it runs for each file.
    FindCommands { rest: Vec<ShellWord>, commands: Vec<Vec<ShellWord>> },
    /// The program runs no further command that can be evaluated.
    NoCommand { reads: Vec<ShellWord>, assignments: Vec<(String, ShellWord)>, floor: RiskFinding },
}

/// The input of a command besides its words.
pub(super) struct CommandStdin<'a> {
    pub(super) has_piped_input: bool,
    /// Here-documents and here-strings that serve as input.
    pub(super) here_documents: &'a [ShellWord],
}

/// Removes one wrapper.
pub(super) fn unwrap_command(
    program: &str,
    words: &[ShellWord],
    input: &CommandStdin<'_>,
) -> UnwrappedCommand {
    match program {
        "sh" | "bash" | "zsh" | "dash" | "ksh" | "ash" | "mksh" | "fish" | "rbash" | "csh"
        | "tcsh" | "yash" | "nu" => unwrap_shell(words, input),
        "env" => unwrap_env(words),
        "su" | "runuser" if words.iter().any(|word| is_command_option(word.text())) => {
            unwrap_su(words)
        }
        "command" if has_leading_option(words, &["-v", "-V"]) => UnwrappedCommand::NotWrapper,
        "eval" => join_as_script(
            words,
            RiskFinding::new(Risk::WorkspaceWrite, "eval runs its arguments as a command"),
        ),
        "parallel" => {
            let mut floor =
                RiskFinding::new(Risk::WorkspaceWrite, "parallel runs its arguments as commands");
            if words.first().is_none_or(|word| word.text().starts_with('-')) {
                floor.merge(unknown_command(program, "its options"));
            }
            join_as_script(words, floor)
        }
        "trap" => match words.first() {
            Some(word) if words.len() > 1 => {
                let floor = RiskFinding::new(Risk::WorkspaceWrite, "trap runs a command later");
                UnwrappedCommand::Script { text: word.clone(), writes: Vec::new(), floor }
            }
            Some(_) | None => UnwrappedCommand::NotWrapper,
        },
        "script" => unwrap_script_program(words),
        "find" if words.iter().any(|word| is_exec_action(word.text())) => unwrap_find(words),
        "export" | "declare" | "typeset" | "local" | "readonly" => {
            unwrap_declaration(program, words)
        }
        "read" => unwrap_read(words),
        "source" | "." => unwrap_source(words, input),
        _ => unwrap_piped_interpreter(program, words, input)
            .or_else(|| {
                program.starts_with("python").then(|| unwrap_python_module(words)).flatten()
            })
            .or_else(|| unwrap_listed_wrapper(program, words))
            .unwrap_or(UnwrappedCommand::NotWrapper),
    }
}

fn is_command_option(text: &str) -> bool {
    text == "-c" || text.starts_with("--command")
}

fn has_leading_option(words: &[ShellWord], names: &[&str]) -> bool {
    let options = words.iter().take_while(|word| word.text().starts_with('-'));
    options.into_iter().any(|word| names.contains(&word.text()))
}

/// Returns the row of a wrapper and the words after its name.
fn find_wrapper<'a>(
    program: &str,
    words: &'a [ShellWord],
) -> Option<(&'static WrapperProgram, &'a [ShellWord])> {
    if let [ShellWord::Plain(only)] = words
        && matches!(only.as_str(), "--version" | "--help")
    {
        return None;
    }
    let find_row = |name: &str| {
        WRAPPER_ROWS.iter().find(|row| row.names.split('|').any(|row_name| row_name == name))
    };
    match (find_row(program), words.split_first()) {
        (Some(row), _) => Some((row, words)),
        (None, Some((first, rest))) => {
            Some((find_row(&format!("{program} {}", first.text()))?, rest))
        }
        (None, None) => None,
    }
}

fn unwrap_listed_wrapper(program: &str, words: &[ShellWord]) -> Option<UnwrappedCommand> {
    let (wrapper, words) = find_wrapper(program, words)?;
    let privileges =
        if wrapper.min_risk == Risk::Destructive { " with more privileges" } else { "" };
    let reason = format!("`{program}` runs another program{privileges}");
    let mut floor = RiskFinding::new(wrapper.min_risk, reason);
    // Options end at the first operand: the rest belongs to the inner command.
    let mut index = 0;
    let mut values = Vec::new();
    let mut replaced_texts = Vec::new();
    while let Some(word) = words.get(index) {
        let text = word.text();
        if text == "--" {
            index += 1;
            break;
        }
        if matches!(word, ShellWord::Opaque(_)) {
            floor.merge(unknown_command(program, text));
            break;
        }
        if !text.starts_with('-') || text == "-" {
            break;
        }
        let rest = words.get(index..).unwrap_or_default();
        let rest = rest.get(..2).unwrap_or(rest);
        let arguments = option_grammar::parse_arguments(wrapper.options, rest);
        let takes_next =
            arguments.iter().all(|argument| !matches!(argument, ParsedArgument::Operand(_)))
                && arguments.iter().any(|argument| {
                    matches!(argument, ParsedArgument::Option { value: Some(value), .. }
                    if rest.get(1) == Some(value) && !text.contains('='))
                });
        let is_unknown_option = arguments.iter().any(|argument| {
            matches!(argument, ParsedArgument::Option { safety: OptionSafety::NotHarmless, name, .. }
                if text.starts_with(name.as_str()) || name.len() == 2 && text.contains(name.trim_start_matches('-')))
        });
        if is_unknown_option {
            floor.merge(unknown_command(program, text));
        }
        replaced_texts.extend(arguments.iter().filter_map(|argument| match argument {
            ParsedArgument::Option { name, value: Some(value), .. }
                if matches!(name.as_str(), "-I" | "-i" | "--replace") =>
            {
                Some(value.text().to_owned())
            }
            _ => None,
        }));
        values.extend(arguments.into_iter().filter_map(|argument| match argument {
            ParsedArgument::Option { value, .. } => value,
            ParsedArgument::Operand(_)
            | ParsedArgument::MaybeOption(_)
            | ParsedArgument::Opaque(_) => None,
        }));
        index += if takes_next { 2 } else { 1 };
    }
    let mut rest = words.get(index..).unwrap_or_default().iter().cloned();
    let skipped: Vec<ShellWord> = rest.by_ref().take(wrapper.skipped_words).collect();
    for word in skipped.iter().filter(|word| matches!(word, ShellWord::Opaque(_))) {
        floor.merge(unknown_command(program, word.text()));
    }
    let mut words: Vec<ShellWord> = rest.collect();
    let mut assignments = Vec::new();
    if wrapper.min_risk == Risk::Destructive {
        // Wrappers such as `sudo` accept variables before the program.
        while let Some((name, value)) = words.first().and_then(|word| split_assignment(word.text()))
        {
            assignments.push((name.to_owned(), ShellWord::Plain(value.to_owned())));
            words.remove(0);
        }
    }
    let downloads_code = matches!(program, "npx" | "npm")
        && words.first().is_some_and(|word| !NPX_LOCAL_TOOLS.contains(&word.text()));
    if downloads_code {
        floor.merge(RiskFinding::new(
            Risk::Network,
            format!("`{program}` downloads the code that it runs"),
        ));
    }
    let writes = match program {
        "flock" => skipped,
        "strace" | "ltrace" => values,
        _ => Vec::new(),
    };
    if matches!(program, "flock")
        && matches!(words.first().map(ShellWord::text), Some("-c" | "--command"))
    {
        let text = words.get(1).cloned().unwrap_or(ShellWord::Opaque(String::new()));
        return Some(UnwrappedCommand::Script { text, writes, floor });
    }
    if program == "watch" {
        return Some(join_as_script(&words, floor));
    }
    if program.ends_with("xargs") {
        if words.is_empty() {
            words.push(ShellWord::Plain("echo".to_owned()));
        }
        // With `-I`, the lines that it reads replace a text in the words.
        for word in &mut words {
            if replaced_texts.iter().any(|text| word.text().contains(text)) {
                *word = ShellWord::Opaque(word.text().to_owned());
            }
        }
        words.push(ShellWord::Opaque(option_grammar::ADDED_WORDS.to_owned()));
    }
    match words.is_empty() {
        true => {
            Some(UnwrappedCommand::NoCommand { reads: Vec::new(), assignments: Vec::new(), floor })
        }
        false => Some(UnwrappedCommand::Command { words, assignments, writes, floor }),
    }
}

/// Unwraps `su -c TEXT`.
fn unwrap_su(words: &[ShellWord]) -> UnwrappedCommand {
    let floor = RiskFinding::new(Risk::Destructive, "su runs commands as another user");
    let text = words.iter().enumerate().find_map(|(index, word)| match word.text() {
        "-c" | "--command" => words.get(index.saturating_add(1)).cloned(),
        text => text.strip_prefix("--command=").map(|text| ShellWord::Plain(text.to_owned())),
    });
    match text {
        Some(text) => UnwrappedCommand::Script { text, writes: Vec::new(), floor },
        None => UnwrappedCommand::NotWrapper,
    }
}

/// Unwraps `python3 -m pip` to `pip`.
fn unwrap_python_module(words: &[ShellWord]) -> Option<UnwrappedCommand> {
    let (first, rest) = words.split_first()?;
    let (name, rest) = match first.text() {
        "-m" => rest.split_first().map(|(name, rest)| (name.text(), rest))?,
        text => (text.strip_prefix("-m")?, rest),
    };
    let is_package_tool = matches!(name, "pip" | "pip3" | "pipx" | "poetry" | "uv");
    is_package_tool.then(|| {
        let words = std::iter::once(ShellWord::Plain(name.to_owned())).chain(rest.iter().cloned());
        UnwrappedCommand::Command {
            words: words.collect(),
            assignments: Vec::new(),
            writes: Vec::new(),
            floor: RiskFinding::new(Risk::WorkspaceWrite, "python runs a module"),
        }
    })
}

fn unknown_command(program: &str, text: &str) -> RiskFinding {
    RiskFinding::new(Risk::Unknown, format!("it is unknown what {program} runs after {text}"))
}

fn unseen_script(text: &str) -> RiskFinding {
    RiskFinding::new(Risk::UnseenScript, format!("a shell runs `{text}`, whose content is unknown"))
}

fn split_assignment(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && !name.starts_with('-') && name.chars().all(is_name_char))
        .then_some((name, value))
}

fn unwrap_env(words: &[ShellWord]) -> UnwrappedCommand {
    let mut floor = RiskFinding::harmless();
    let mut assignments = Vec::new();
    let mut words = words.iter();
    let mut rest = Vec::new();
    while let Some(word) = words.next() {
        let text = word.text();
        match (text, word) {
            (_, ShellWord::Opaque(_)) => {
                floor.merge(unknown_command("env", text));
                rest.push(word.clone());
                break;
            }
            ("-i" | "-" | "-0" | "-v" | "--ignore-environment" | "--null" | "--", _) => {}
            ("-u" | "--unset", _) => {
                words.next();
                floor.merge(RiskFinding::new(Risk::WorkspaceWrite, "env removes a variable"));
            }
            ("-C" | "--chdir", _) => {
                words.next();
                floor.merge(RiskFinding::new(
                    Risk::OutsideWorkspace,
                    "env changes to another folder",
                ));
            }
            _ if text.starts_with("-S") || text.starts_with("--split-string") => {
                let attached = text.trim_start_matches("--split-string").trim_start_matches("-S");
                let first = match attached.trim_start_matches('=') {
                    "" => words.next().cloned(),
                    attached => Some(ShellWord::Plain(attached.to_owned())),
                };
                let script_words: Vec<ShellWord> =
                    first.into_iter().chain(words.cloned()).collect();
                return join_as_script(
                    &script_words,
                    RiskFinding::new(Risk::WorkspaceWrite, "env splits a string into a command"),
                );
            }
            _ if text.starts_with('-') => floor.merge(unknown_command("env", text)),
            _ => match split_assignment(text) {
                Some((name, value)) => {
                    assignments.push((name.to_owned(), ShellWord::Plain(value.to_owned())));
                }
                None => {
                    rest.push(word.clone());
                    break;
                }
            },
        }
    }
    rest.extend(words.cloned());
    match (rest.is_empty(), assignments.is_empty() && floor.risk == Risk::ReadOnly) {
        (true, true) => UnwrappedCommand::NotWrapper,
        (true, false) => UnwrappedCommand::NoCommand { reads: Vec::new(), assignments, floor },
        (false, _) => {
            UnwrappedCommand::Command { words: rest, assignments, writes: Vec::new(), floor }
        }
    }
}

/// Joins words into the text of a script.
fn join_as_script(words: &[ShellWord], floor: RiskFinding) -> UnwrappedCommand {
    let is_plain = words.iter().all(|word| word.as_plain().is_some());
    let text = words.iter().map(ShellWord::text).collect::<Vec<_>>().join(" ");
    let text = if is_plain { ShellWord::Plain(text) } else { ShellWord::Opaque(text) };
    UnwrappedCommand::Script { text, writes: Vec::new(), floor }
}

fn is_exec_action(text: &str) -> bool {
    matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir")
}

fn unwrap_find(words: &[ShellWord]) -> UnwrappedCommand {
    let (mut rest, mut commands) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !is_exec_action(word.text()) {
            rest.push(word.clone());
            continue;
        }
        let mut follows_braces = false;
        let command = words.by_ref().take_while(|word| {
            let is_end = word.text() == ";" || follows_braces && word.text() == "+";
            follows_braces = word.text() == "{}";
            !is_end
        });
        commands.push(
            command
                .map(|word| match word.text().contains("{}") {
                    true => ShellWord::Opaque(word.text().to_owned()),
                    false => word.clone(),
                })
                .collect(),
        );
    }
    UnwrappedCommand::FindCommands { rest, commands }
}

fn is_harmless_declaration_option(text: &str) -> bool {
    let letters = text.strip_prefix('-');
    letters
        .is_some_and(|letters| !letters.is_empty() && letters.chars().all(|c| "xrgp".contains(c)))
}

/// Unwraps the builtin that sets variables to what it reads.
fn unwrap_read(words: &[ShellWord]) -> UnwrappedCommand {
    let mut floor = RiskFinding::new(Risk::ConfinedRead, "`read` sets variables");
    let mut assignments = Vec::new();
    let value = || ShellWord::Opaque("$REPLY".to_owned());
    for argument in option_grammar::parse_arguments("-r -s -e -d: -n: -N: -p: -t: -u: -a:", words) {
        match argument {
            ParsedArgument::Option { name, value: Some(array), .. } if name == "-a" => {
                assignments.push((array.text().to_owned(), value()));
            }
            ParsedArgument::Option { safety: OptionSafety::Harmless, .. } => {}
            ParsedArgument::Operand(ShellWord::Plain(name)) if is_variable_name(&name) => {
                assignments.push((name, value()));
            }
            ParsedArgument::Option { name, .. } => floor.merge(unknown_command("read", &name)),
            ParsedArgument::Operand(word)
            | ParsedArgument::MaybeOption(word)
            | ParsedArgument::Opaque(word) => floor.merge(unknown_command("read", word.text())),
        }
    }
    UnwrappedCommand::NoCommand { reads: Vec::new(), assignments, floor }
}

fn unwrap_declaration(program: &str, words: &[ShellWord]) -> UnwrappedCommand {
    let mut floor = RiskFinding::new(Risk::ConfinedRead, format!("`{program}` changes variables"));
    let mut assignments = Vec::new();
    for word in words {
        let text = word.text();
        match (split_assignment(text), word) {
            (Some((name, value)), _) => {
                assignments.push((name.to_owned(), ShellWord::Opaque(value.to_owned())));
            }
            (None, ShellWord::Plain(_)) if is_harmless_declaration_option(text) => {}
            (None, ShellWord::Plain(name)) if is_variable_name(name) => {
                assignments.push((name.clone(), ShellWord::Opaque(String::new())));
            }
            // An integer variable evaluates its values, a reference stands for another variable.
            (None, _) => floor.merge(unknown_command(program, text)),
        }
    }
    UnwrappedCommand::NoCommand { reads: Vec::new(), assignments, floor }
}
