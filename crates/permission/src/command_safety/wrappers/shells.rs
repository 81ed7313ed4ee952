//! Shells and interpreters that run a script: an argument, a file or standard input.

use super::{CommandStdin, UnwrappedCommand, unknown_command, unseen_script};
use crate::command_safety::risk::{Risk, RiskFinding};
use crate::shell::ShellWord;

pub(super) fn unwrap_shell(words: &[ShellWord], input: &CommandStdin<'_>) -> UnwrappedCommand {
    let mut floor = RiskFinding::harmless();
    let mut words = words.iter();
    let (mut runs_text, mut reads_input, mut only_checks) = (false, false, false);
    let mut operand = None;
    while let Some(word) = words.next() {
        let text = word.text();
        if matches!(word, ShellWord::Opaque(_)) || !text.starts_with(['-', '+']) || text == "-" {
            operand = Some(word.clone());
            break;
        }
        match text {
            "--" => {}
            "--norc" | "--noprofile" | "--posix" => {}
            "--rcfile" | "--init-file" => {
                words.next();
                floor.merge(RiskFinding::new(Risk::Unknown, "a shell runs another file first"));
            }
            long if long.starts_with("--") => {
                floor.merge(RiskFinding::new(
                    Risk::WorkspaceWrite,
                    format!("`{long}` can change what the shell does"),
                ));
            }
            short => {
                for letter in short.chars().skip(1) {
                    match letter {
                        'c' => runs_text = true,
                        's' => reads_input = true,
                        // Parses the script and runs nothing.
                        'n' => only_checks = short.starts_with('-'),
                        'o' | 'O' => {
                            words.next();
                        }
                        'e' | 'u' | 'x' | 'f' | 'h' => {}
                        _ => floor.merge(RiskFinding::new(
                            Risk::WorkspaceWrite,
                            "the shell has unknown options",
                        )),
                    }
                }
            }
        }
    }
    let is_stdin = |word: &ShellWord| {
        matches!(word.text(), "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
    };
    match operand {
        Some(text) if runs_text => UnwrappedCommand::Script { text, writes: Vec::new(), floor },
        Some(file) if !reads_input && only_checks => {
            floor.merge(RiskFinding::new(Risk::WorkspaceWrite, "a shell checks a script file"));
            UnwrappedCommand::NoCommand { reads: vec![file], assignments: Vec::new(), floor }
        }
        Some(file) if !reads_input && !is_stdin(&file) => {
            match file {
                ShellWord::Opaque(ref text) => floor.merge(unseen_script(text)),
                ShellWord::Plain(_) | ShellWord::Pattern(_) => {
                    floor.merge(RiskFinding::new(
                        Risk::WorkspaceWrite,
                        "a shell runs a script file",
                    ));
                }
            }
            UnwrappedCommand::NoCommand { reads: vec![file], assignments: Vec::new(), floor }
        }
        Some(_) | None => unwrap_stdin_shell(floor, input),
    }
}

/// Unwraps a shell that runs its standard input.
pub(super) fn unwrap_stdin_shell(
    mut floor: RiskFinding,
    input: &CommandStdin<'_>,
) -> UnwrappedCommand {
    if let Some(text) = input.here_documents.last() {
        return UnwrappedCommand::Script { text: text.clone(), writes: Vec::new(), floor };
    }
    floor.merge(match input.has_piped_input {
        true => RiskFinding::new(Risk::UnseenScript, "a shell runs input from a pipe"),
        false => RiskFinding::new(Risk::WorkspaceWrite, "a shell runs its standard input"),
    });
    UnwrappedCommand::NoCommand { reads: Vec::new(), assignments: Vec::new(), floor }
}

pub(super) fn unwrap_script_program(words: &[ShellWord]) -> UnwrappedCommand {
    let mut words = words.iter();
    let floor =
        RiskFinding::new(Risk::WorkspaceWrite, "script records the output of another program");
    let (mut command, mut writes) = (None, Vec::new());
    while let Some(word) = words.next() {
        let text = word.text();
        let attached = match text.strip_prefix("--command") {
            Some(attached) => Some(attached.trim_start_matches('=')),
            None => text
                .strip_prefix('-')
                .filter(|rest| !rest.starts_with('-'))
                .and_then(|rest| rest.split_once('c'))
                .map(|(_, attached)| attached),
        };
        match attached {
            Some("") => command = words.next().cloned(),
            Some(attached) => command = Some(ShellWord::Plain(attached.to_owned())),
            None if text.starts_with('-') => {}
            None => writes.push(word.clone()),
        }
    }
    match command {
        Some(text) => UnwrappedCommand::Script { text, writes, floor },
        None => UnwrappedCommand::NotWrapper,
    }
}

pub(super) fn unwrap_source(words: &[ShellWord], input: &CommandStdin<'_>) -> UnwrappedCommand {
    let mut floor = RiskFinding::new(Risk::WorkspaceWrite, "a shell runs a script file");
    let reads: Vec<ShellWord> = words.iter().take(1).cloned().collect();
    for word in &reads {
        match word {
            ShellWord::Opaque(text) => floor.merge(unseen_script(text)),
            ShellWord::Pattern(text) => floor.merge(unknown_command("a shell", text)),
            ShellWord::Plain(text) if text.starts_with("/dev/") || text.starts_with("/proc/") => {
                return unwrap_stdin_shell(floor, input);
            }
            ShellWord::Plain(_) => {}
        }
    }
    UnwrappedCommand::NoCommand { reads, assignments: Vec::new(), floor }
}

/// Handles an interpreter that runs the script it reads from a pipe.
pub(super) fn unwrap_piped_interpreter(
    program: &str,
    words: &[ShellWord],
    input: &CommandStdin<'_>,
) -> Option<UnwrappedCommand> {
    let names = ["python", "node", "perl", "ruby", "php", "lua", "deno", "bun", "Rscript", "tclsh"];
    if !input.has_piped_input || !names.iter().any(|name| program.starts_with(name)) {
        return None;
    }
    let names_script = |word: &ShellWord| {
        let text = word.text();
        !text.starts_with('-')
            || text.starts_with("--")
            || text.chars().skip(1).any(|c| matches!(c, 'c' | 'e' | 'm' | 'p' | 'r' | 'V' | 'n'))
    };
    if words.iter().any(|word| names_script(word) && word.text() != "/dev/stdin") {
        return None;
    }
    let floor = RiskFinding::new(Risk::UnseenScript, format!("`{program}` runs input from a pipe"));
    Some(UnwrappedCommand::NoCommand { reads: Vec::new(), assignments: Vec::new(), floor })
}
