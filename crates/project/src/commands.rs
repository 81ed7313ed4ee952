//! Commands: prompts with a name. One is a Markdown file: settings at its head, and below them what
//! the model is asked, with places for what is said when it is used.
//!
//! A template is read once, from left to right: what is put in is text, and nothing in it means
//! anything further.

use crate::config::Config;
use crate::file::{self, Diagnostic, Layer, Origin};
use crate::front;
use crate::{Error, Places};
use serde_json::Value;
use std::path::Path;
use windlass_protocol::text::beginning;

/// No folder has more commands.
const MOST: usize = 200;
/// No command needs more text.
const LONGEST: usize = 64 << 10;
const LONGEST_DESCRIPTION: usize = 1_000;
/// How many files a prompt takes along.
const MOST_FILES: usize = 16;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its name, which is its file's.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What the model is asked.
    pub template: String,
}

/// A prompt in the making.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// What is asked.
    pub text: String,
    /// The files it names, each once.
    pub files: Vec<String>,
    /// The commands of which the output goes into it, from left to right.
    pub runs: Vec<Run>,
}

/// A command of the shell in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// As it is written: nothing is put into it.
    pub command: String,
    /// Where in the text its output goes.
    pub at: usize,
}

impl Run {
    /// A text with what each command gave in its place.
    pub fn fill<'a>(text: &str, gave: impl IntoIterator<Item = (&'a Run, &'a str)>) -> String {
        let (mut filled, mut from) = (String::new(), 0);
        for (run, gave) in gave {
            filled.push_str(text.get(from..run.at).unwrap_or_default());
            filled.push_str(gave);
            from = run.at;
        }
        filled.push_str(text.get(from..).unwrap_or_default());
        filled
    }
}

/// The commands there are, and what is wrong with those that are not among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commands {
    /// Sorted by name.
    pub all: Vec<Command>,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
}

impl Commands {
    /// What the person and their plugins have and, of a trusted folder, what the project has.
    pub fn load(places: &Places, config: &Config) -> Result<Commands, Error> {
        let mut commands = Commands::default();
        for (path, text) in file::documents(&places.config.join("commands"), MOST)? {
            commands.take(Layer::User, &path, &text);
        }
        for plugin in &config.plugins {
            for command in &plugin.parts.commands {
                commands.place(Layer::Plugin, &plugin.lodging.root, Ok(command.clone()));
            }
        }
        for (path, text) in config.documents(".windlass/commands/").take(MOST) {
            commands.take(Layer::Project, &path, &text);
        }
        commands.all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(commands)
    }

    /// The command of this name.
    pub fn find(&self, name: &str) -> Option<&Command> {
        self.all.iter().find(|command| command.name == name)
    }

    fn take(&mut self, layer: Layer, path: &Path, text: &str) {
        self.place(layer, path, read(path, text));
    }

    fn place(&mut self, layer: Layer, path: &Path, read: Result<Command, (usize, String)>) {
        let command = match read {
            Ok(command) if self.find(&command.name).is_none() => Ok(command),
            Ok(command) => Err((1, format!("there is another command {}", command.name))),
            Err(wrong) => Err(wrong),
        };
        match command {
            Ok(command) => self.all.push(command),
            Err((line, message)) => {
                let origin = Origin { layer, file: Some(path.to_owned()), line, column: 1 };
                let message = format!("{message}; the command is left out");
                self.diagnostics.push(Diagnostic { origin, message, fatal: false });
            }
        }
    }
}

/// A command, or in which line what is wrong with it.
pub(crate) fn read(path: &Path, text: &str) -> Result<Command, (usize, String)> {
    let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let plain = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.');
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return Err((1, "a command's name has letters, digits, `-`, `_` and `.`".to_owned()));
    }
    if text.len() > LONGEST {
        return Err((1, format!("it is longer than {} kB", LONGEST >> 10)));
    }
    let front = front::read(text).map_err(|unread| (unread.line, unread.message))?;
    if front.body.trim().is_empty() {
        return Err((1, "it asks nothing".to_owned()));
    }
    let description = front.settings.get("description").and_then(Value::as_str);
    Ok(Command {
        name: name.to_owned(),
        description: beginning(description.unwrap_or_default().trim(), LONGEST_DESCRIPTION),
        template: front.body,
    })
}

impl Command {
    /// The prompt, with what was said put in: `$ARGUMENTS` is all of it, `$1` to `$9` are its words.
    /// What no place takes stands at the end.
    pub fn draft(&self, arguments: &str) -> Draft {
        let words = words(arguments);
        let (mut draft, mut taken) = (Draft::default(), false);
        let mut rest = self.template.as_str();
        while let Some(sign) = rest.chars().next() {
            let before = draft.text.chars().next_back();
            let (_, behind) = rest.split_at(sign.len_utf8());
            rest = match sign {
                '$' => match place(behind, arguments, &words) {
                    Some((said, left)) => {
                        taken = true;
                        draft.text.push_str(said);
                        left
                    }
                    None => push(&mut draft.text, sign, behind),
                },
                '!' if behind.starts_with('`') => match quoted(behind) {
                    Some((command, left)) => {
                        let (command, at) = (command.to_owned(), draft.text.len());
                        draft.runs.push(Run { command, at });
                        left
                    }
                    None => push(&mut draft.text, sign, behind),
                },
                '@' if !before.is_some_and(|it| it.is_alphanumeric() || it == '`') => {
                    let (file, left, put) = named(behind, arguments, &words);
                    taken |= put;
                    if !file.is_empty() && !draft.files.contains(&file) {
                        draft.files.push(file.clone());
                    }
                    draft.text.push('@');
                    draft.text.push_str(&file);
                    left
                }
                _ => push(&mut draft.text, sign, behind),
            };
        }
        draft.files.truncate(MOST_FILES);
        if !taken && !arguments.trim().is_empty() {
            draft.text.push_str("\n\n");
            draft.text.push_str(arguments.trim());
        }
        draft
    }
}

fn push<'a>(text: &mut String, sign: char, behind: &'a str) -> &'a str {
    text.push(sign);
    behind
}

/// What takes a place behind a `$`, and what is left behind it.
fn place<'a>(
    behind: &'a str,
    arguments: &'a str,
    words: &'a [String],
) -> Option<(&'a str, &'a str)> {
    if let Some(left) = behind.strip_prefix("ARGUMENTS") {
        return Some((arguments.trim(), left));
    }
    let digit =
        behind.chars().next().and_then(|sign| sign.to_digit(10)).filter(|digit| *digit > 0)?;
    let (_, left) = behind.split_at_checked(1)?;
    // `$10` is no place.
    if left.starts_with(|sign: char| sign.is_ascii_digit()) {
        return None;
    }
    let word = words.get(digit as usize - 1).map(String::as_str).unwrap_or_default();
    Some((word, left))
}

/// A command between backticks, and what is left behind it.
fn quoted(behind: &str) -> Option<(&str, &str)> {
    behind.strip_prefix('`')?.split_once('`').filter(|(command, _)| !command.trim().is_empty())
}

/// The file behind an `@`, what is left behind it, and whether something that was said is in it.
fn named<'a>(behind: &'a str, arguments: &str, words: &[String]) -> (String, &'a str, bool) {
    let ends = |sign: char| sign.is_whitespace() || "`,;()[]{}<>\"'".contains(sign);
    let end = behind.find(ends).unwrap_or(behind.len());
    let whole = behind.get(..end).unwrap_or_default();
    let name = whole.trim_end_matches(['.', ':', '!', '?']);
    let left = behind.get(name.len()..).unwrap_or_default();
    match name.strip_prefix('$').and_then(|it| place(it, arguments, words)) {
        Some((said, tail)) => (format!("{said}{tail}"), left, true),
        None => (name.to_owned(), left, false),
    }
}

/// The words of a text, as a shell would tell them apart: quotes hold words together.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut within) = (Vec::new(), None::<String>, None);
    for sign in text.chars() {
        match (within, sign) {
            (Some(quote), _) if sign == quote => within = None,
            (None, '"' | '\'') => {
                within = Some(sign);
                word.get_or_insert_default();
            }
            (None, _) if sign.is_whitespace() => words.extend(word.take()),
            (Some(_) | None, _) => word.get_or_insert_default().push(sign),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests;
