//! Programs that run other programs: what they run is what counts.
//!
//! Start reading at [`peel`].

use super::class::{Class, Finding};
use super::grammar::{self, Argument, Known};
use super::wrapping::{LOCAL, WRAPPERS, Wrapper};
use crate::shell::Word;

/// What is left when a wrapper is taken off.
#[derive(Debug)]
pub(super) enum Peeled {
    /// It is no wrapper.
    Program,
    /// It runs these words, after it set these variables and wrote these files.
    Words { words: Vec<Word>, assignments: Vec<(String, Word)>, writes: Vec<Word>, floor: Finding },
    /// It runs this text as a script, and writes these files.
    Script { text: Word, writes: Vec<Word>, floor: Finding },
    /// `find` and what it runs for each file.
    Find { rest: Vec<Word>, commands: Vec<Vec<Word>> },
    /// Nothing else runs.
    Nothing { reads: Vec<Word>, assignments: Vec<(String, Word)>, floor: Finding },
}

/// What a command has besides its words.
pub(super) struct Input<'a> {
    /// Its input is a pipe.
    pub(super) piped: bool,
    /// The here-documents and here-strings it is fed with.
    pub(super) documents: &'a [Word],
}

/// Takes one wrapper off.
pub(super) fn peel(program: &str, words: &[Word], input: &Input<'_>) -> Peeled {
    match program {
        "sh" | "bash" | "zsh" | "dash" | "ksh" | "ash" | "mksh" | "fish" | "rbash" | "csh"
        | "tcsh" | "yash" | "nu" => shell(words, input),
        "env" => env(words),
        "su" | "runuser" if words.iter().any(|word| is_command_option(word.text())) => su(words),
        "command" if options_hold(words, &["-v", "-V"]) => Peeled::Program,
        "eval" => joined(words, Finding::new(Class::Work, "eval runs text")),
        "parallel" => {
            let mut floor = Finding::new(Class::Work, "parallel runs text");
            if words.first().is_none_or(|word| word.text().starts_with('-')) {
                floor.add(unknown(program, "its options"));
            }
            joined(words, floor)
        }
        "trap" => match words.first() {
            Some(word) if words.len() > 1 => {
                let floor = Finding::new(Class::Work, "trap runs text later");
                Peeled::Script { text: word.clone(), writes: Vec::new(), floor }
            }
            Some(_) | None => Peeled::Program,
        },
        "script" => script(words),
        "find" if words.iter().any(|word| runs(word.text())) => find(words),
        "export" | "declare" | "typeset" | "local" | "readonly" => variables(program, words),
        "source" | "." => source(words, input),
        _ => interpreter(program, words, input)
            .or_else(|| program.starts_with("python").then(|| module(words)).flatten())
            .or_else(|| wrapper(program, words))
            .unwrap_or(Peeled::Program),
    }
}

fn is_command_option(text: &str) -> bool {
    text == "-c" || text.starts_with("--command")
}

fn options_hold(words: &[Word], names: &[&str]) -> bool {
    let options = words.iter().take_while(|word| word.text().starts_with('-'));
    options.into_iter().any(|word| names.contains(&word.text()))
}

/// The row of a wrapper, and the words after its name.
fn find_wrapper<'a>(program: &str, words: &'a [Word]) -> Option<(&'static Wrapper, &'a [Word])> {
    if let [Word::Plain(only)] = words
        && matches!(only.as_str(), "--version" | "--help")
    {
        return None;
    }
    let named =
        |name: &str| WRAPPERS.iter().find(|row| row.name.split('|').any(|known| known == name));
    match (named(program), words.split_first()) {
        (Some(row), _) => Some((row, words)),
        (None, Some((first, rest))) => Some((named(&format!("{program} {}", first.text()))?, rest)),
        (None, None) => None,
    }
}

fn wrapper(program: &str, words: &[Word]) -> Option<Peeled> {
    let (wrapper, words) = find_wrapper(program, words)?;
    let mut floor = Finding::new(wrapper.floor, format!("{program} runs another program"));
    // Options end at the first operand: what follows belongs to the program that is run.
    let mut at = 0;
    let mut values = Vec::new();
    while let Some(word) = words.get(at) {
        let text = word.text();
        if text == "--" {
            at += 1;
            break;
        }
        if matches!(word, Word::Opaque(_)) {
            floor.add(unknown(program, text));
            break;
        }
        if !text.starts_with('-') || text == "-" {
            break;
        }
        let rest = words.get(at..).unwrap_or_default();
        let rest = rest.get(..2).unwrap_or(rest);
        let arguments = grammar::parse(wrapper.options, rest);
        let takes_next = arguments.iter().all(|argument| !matches!(argument, Argument::Operand(_)))
            && arguments.iter().any(|argument| {
                matches!(argument, Argument::Option { value: Some(value), .. }
                    if rest.get(1) == Some(value) && !text.contains('='))
            });
        let strange = arguments.iter().any(|argument| {
            matches!(argument, Argument::Option { known: Known::NotHarmless, name, .. }
                if text.starts_with(name.as_str()) || name.len() == 2 && text.contains(name.trim_start_matches('-')))
        });
        if strange {
            floor.add(unknown(program, text));
        }
        values.extend(arguments.into_iter().filter_map(|argument| match argument {
            Argument::Option { value, .. } => value,
            Argument::Operand(_) | Argument::Loose(_) | Argument::Opaque(_) => None,
        }));
        at += if takes_next { 2 } else { 1 };
    }
    let mut rest = words.get(at..).unwrap_or_default().iter().cloned();
    let skipped: Vec<Word> = rest.by_ref().take(wrapper.skips).collect();
    for word in skipped.iter().filter(|word| matches!(word, Word::Opaque(_))) {
        floor.add(unknown(program, word.text()));
    }
    let mut words: Vec<Word> = rest.collect();
    let mut assignments = Vec::new();
    if wrapper.floor == Class::Guard {
        // These take variables before the program.
        while let Some((name, value)) = words.first().and_then(|word| is_assignment(word.text())) {
            assignments.push((name.to_owned(), Word::Plain(value.to_owned())));
            words.remove(0);
        }
    }
    let fetched = matches!(program, "npx" | "npm")
        && words.first().is_some_and(|word| !LOCAL.contains(&word.text()));
    if fetched {
        floor.add(Finding::new(Class::Network, format!("{program} fetches what it runs")));
    }
    let writes = match program {
        "flock" => skipped,
        "strace" | "ltrace" => values,
        _ => Vec::new(),
    };
    if matches!(program, "flock")
        && matches!(words.first().map(Word::text), Some("-c" | "--command"))
    {
        let text = words.get(1).cloned().unwrap_or(Word::Opaque(String::new()));
        return Some(Peeled::Script { text, writes, floor });
    }
    if program == "watch" {
        return Some(joined(&words, floor));
    }
    if program.ends_with("xargs") {
        if words.is_empty() {
            words.push(Word::Plain("echo".to_owned()));
        }
        words.push(Word::Opaque("…".to_owned()));
    }
    match words.is_empty() {
        true => Some(Peeled::Nothing { reads: Vec::new(), assignments: Vec::new(), floor }),
        false => Some(Peeled::Words { words, assignments, writes, floor }),
    }
}

/// `su -c TEXT`.
fn su(words: &[Word]) -> Peeled {
    let floor = Finding::new(Class::Guard, "su gains the rights of somebody else");
    let text = words.iter().enumerate().find_map(|(at, word)| match word.text() {
        "-c" | "--command" => words.get(at.saturating_add(1)).cloned(),
        text => text.strip_prefix("--command=").map(|text| Word::Plain(text.to_owned())),
    });
    match text {
        Some(text) => Peeled::Script { text, writes: Vec::new(), floor },
        None => Peeled::Program,
    }
}

/// `python3 -m pip` is pip.
fn module(words: &[Word]) -> Option<Peeled> {
    let (first, rest) = words.split_first()?;
    let (name, rest) = match first.text() {
        "-m" => rest.split_first().map(|(name, rest)| (name.text(), rest))?,
        text => (text.strip_prefix("-m")?, rest),
    };
    let pip = matches!(name, "pip" | "pip3" | "pipx" | "poetry" | "uv");
    pip.then(|| {
        let words = std::iter::once(Word::Plain(name.to_owned())).chain(rest.iter().cloned());
        Peeled::Words {
            words: words.collect(),
            assignments: Vec::new(),
            writes: Vec::new(),
            floor: Finding::new(Class::Work, "python runs a module"),
        }
    })
}

fn unknown(program: &str, text: &str) -> Finding {
    Finding::new(Class::Unknown, format!("nobody knows what {program} runs after {text}"))
}

fn unseen(text: &str) -> Finding {
    Finding::new(Class::Unseen, format!("a shell runs {text}, which nobody has seen"))
}

fn is_assignment(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    (!name.is_empty() && !name.starts_with('-') && name.chars().all(plain)).then_some((name, value))
}

fn env(words: &[Word]) -> Peeled {
    let mut floor = Finding::harmless();
    let mut assignments = Vec::new();
    let mut words = words.iter();
    let mut rest = Vec::new();
    while let Some(word) = words.next() {
        let text = word.text();
        match (text, word) {
            (_, Word::Opaque(_)) => {
                floor.add(unknown("env", text));
                rest.push(word.clone());
                break;
            }
            ("-i" | "-" | "-0" | "-v" | "--ignore-environment" | "--null" | "--", _) => {}
            ("-u" | "--unset", _) => {
                words.next();
                floor.add(Finding::new(Class::Work, "env takes a variable away"));
            }
            ("-C" | "--chdir", _) => {
                words.next();
                floor.add(Finding::new(Class::Beyond, "env goes to another folder"));
            }
            _ if text.starts_with("-S") || text.starts_with("--split-string") => {
                let glued = text.trim_start_matches("--split-string").trim_start_matches("-S");
                let first = match glued.trim_start_matches('=') {
                    "" => words.next().cloned(),
                    glued => Some(Word::Plain(glued.to_owned())),
                };
                let all: Vec<Word> = first.into_iter().chain(words.cloned()).collect();
                return joined(&all, Finding::new(Class::Work, "env splits a text"));
            }
            _ if text.starts_with('-') => floor.add(unknown("env", text)),
            _ => match is_assignment(text) {
                Some((name, value)) => {
                    assignments.push((name.to_owned(), Word::Plain(value.to_owned())));
                }
                None => {
                    rest.push(word.clone());
                    break;
                }
            },
        }
    }
    rest.extend(words.cloned());
    match (rest.is_empty(), assignments.is_empty() && floor.class == Class::Read) {
        (true, true) => Peeled::Program,
        (true, false) => Peeled::Nothing { reads: Vec::new(), assignments, floor },
        (false, _) => Peeled::Words { words: rest, assignments, writes: Vec::new(), floor },
    }
}

/// Words that become one text.
fn joined(words: &[Word], floor: Finding) -> Peeled {
    let known = words.iter().all(|word| word.plain().is_some());
    let text = words.iter().map(Word::text).collect::<Vec<_>>().join(" ");
    let text = if known { Word::Plain(text) } else { Word::Opaque(text) };
    Peeled::Script { text, writes: Vec::new(), floor }
}

fn shell(words: &[Word], input: &Input<'_>) -> Peeled {
    let mut floor = Finding::harmless();
    let mut words = words.iter();
    let (mut runs_text, mut reads_input) = (false, false);
    let mut operand = None;
    while let Some(word) = words.next() {
        let text = word.text();
        if matches!(word, Word::Opaque(_)) || !text.starts_with(['-', '+']) || text == "-" {
            operand = Some(word.clone());
            break;
        }
        match text {
            "--" => {}
            "--norc" | "--noprofile" | "--posix" => {}
            "--rcfile" | "--init-file" => {
                words.next();
                floor.add(Finding::new(Class::Unknown, "a shell runs another file first"));
            }
            long if long.starts_with("--") => {
                floor.add(Finding::new(Class::Work, format!("{long} changes what a shell does")));
            }
            short => {
                for letter in short.chars().skip(1) {
                    match letter {
                        'c' => runs_text = true,
                        's' => reads_input = true,
                        'o' | 'O' => {
                            words.next();
                        }
                        'e' | 'u' | 'x' | 'f' | 'h' => {}
                        _ => floor.add(Finding::new(Class::Work, "a shell is told more")),
                    }
                }
            }
        }
    }
    let stdin =
        |word: &Word| matches!(word.text(), "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0");
    match operand {
        Some(text) if runs_text => Peeled::Script { text, writes: Vec::new(), floor },
        Some(file) if !reads_input && !stdin(&file) => {
            match file {
                Word::Opaque(ref text) => floor.add(unseen(text)),
                Word::Plain(_) | Word::Pattern(_) => {
                    floor.add(Finding::new(Class::Work, "a shell runs a file"));
                }
            }
            Peeled::Nothing { reads: vec![file], assignments: Vec::new(), floor }
        }
        Some(_) | None => fed(floor, input),
    }
}

/// A shell that runs its input.
fn fed(mut floor: Finding, input: &Input<'_>) -> Peeled {
    if let Some(text) = input.documents.last() {
        return Peeled::Script { text: text.clone(), writes: Vec::new(), floor };
    }
    floor.add(match input.piped {
        true => Finding::new(Class::Unseen, "a shell runs what a pipe gives it"),
        false => Finding::new(Class::Work, "a shell runs its input"),
    });
    Peeled::Nothing { reads: Vec::new(), assignments: Vec::new(), floor }
}

fn script(words: &[Word]) -> Peeled {
    let mut words = words.iter();
    let floor = Finding::new(Class::Work, "script records what another program says");
    let (mut command, mut writes) = (None, Vec::new());
    while let Some(word) = words.next() {
        let text = word.text();
        let glued = match text.strip_prefix("--command") {
            Some(glued) => Some(glued.trim_start_matches('=')),
            None => text
                .strip_prefix('-')
                .filter(|rest| !rest.starts_with('-'))
                .and_then(|rest| rest.split_once('c'))
                .map(|(_, glued)| glued),
        };
        match glued {
            Some("") => command = words.next().cloned(),
            Some(glued) => command = Some(Word::Plain(glued.to_owned())),
            None if text.starts_with('-') => {}
            None => writes.push(word.clone()),
        }
    }
    match command {
        Some(text) => Peeled::Script { text, writes, floor },
        None => Peeled::Program,
    }
}

fn runs(text: &str) -> bool {
    matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir")
}

fn find(words: &[Word]) -> Peeled {
    let (mut rest, mut commands) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !runs(word.text()) {
            rest.push(word.clone());
            continue;
        }
        let command = words.by_ref().take_while(|word| !matches!(word.text(), ";" | "+"));
        commands.push(
            command
                .map(|word| match word.text().contains("{}") {
                    true => Word::Opaque(word.text().to_owned()),
                    false => word.clone(),
                })
                .collect(),
        );
    }
    Peeled::Find { rest, commands }
}

fn variables(program: &str, words: &[Word]) -> Peeled {
    let mut floor = Finding::new(Class::Work, format!("{program} changes variables"));
    let mut assignments = Vec::new();
    for word in words {
        let text = word.text();
        match (is_assignment(text), word) {
            (Some((name, value)), _) => {
                assignments.push((name.to_owned(), Word::Opaque(value.to_owned())));
            }
            (None, Word::Opaque(_)) => floor.add(unknown(program, text)),
            (None, Word::Plain(_) | Word::Pattern(_)) => {}
        }
    }
    Peeled::Nothing { reads: Vec::new(), assignments, floor }
}

fn source(words: &[Word], input: &Input<'_>) -> Peeled {
    let mut floor = Finding::new(Class::Work, "a shell runs a file");
    let reads: Vec<Word> = words.iter().take(1).cloned().collect();
    for word in &reads {
        match word {
            Word::Opaque(text) => floor.add(unseen(text)),
            Word::Pattern(text) => floor.add(unknown("a shell", text)),
            Word::Plain(text) if text.starts_with("/dev/") || text.starts_with("/proc/") => {
                return fed(floor, input);
            }
            Word::Plain(_) => {}
        }
    }
    Peeled::Nothing { reads, assignments: Vec::new(), floor }
}

/// An interpreter that runs what a pipe gives it.
fn interpreter(program: &str, words: &[Word], input: &Input<'_>) -> Option<Peeled> {
    let names = ["python", "node", "perl", "ruby", "php", "lua", "deno", "bun", "Rscript", "tclsh"];
    if !input.piped || !names.iter().any(|name| program.starts_with(name)) {
        return None;
    }
    let told = |word: &Word| {
        let text = word.text();
        !text.starts_with('-')
            || text.starts_with("--")
            || text
                .chars()
                .skip(1)
                .any(|letter| matches!(letter, 'c' | 'e' | 'm' | 'p' | 'r' | 'V' | 'n'))
    };
    if words.iter().any(|word| told(word) && word.text() != "/dev/stdin") {
        return None;
    }
    let floor = Finding::new(Class::Unseen, format!("{program} runs what a pipe gives it"));
    Some(Peeled::Nothing { reads: Vec::new(), assignments: Vec::new(), floor })
}
