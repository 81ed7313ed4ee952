//! A custom command: its file, and the expansion of its template.
//!
//! A template is expanded in one pass from left to right: inserted text is not expanded again.

use crate::allowed_tools::parse_allowed_tools;
use crate::front_matter;
use serde_json::Value;
use std::path::Path;
use windlass_protocol::display_text::truncate_chars;

const MAX_COMMAND_BYTES: usize = 64 << 10;
const MAX_DESCRIPTION_BYTES: usize = 1_000;
const MAX_PROMPT_FILES: usize = 16;

/// A custom command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomCommand {
    /// The file name without extension.
    pub name: String,
    pub description: String,
    /// True for a command of the user's own. Only such a command chooses the agent and the model of a
    /// session.
    pub is_own: bool,
    /// The agent that carries it out; the session's own if not set.
    pub agent: Option<String>,
    /// True if `agent` works on it in a session of its own (`subtask`).
    pub is_subtask: bool,
    /// The model as written, which may be no `provider/model` if another program defines it.
    pub model: Option<String>,
    /// The tools in `allowed-tools`; empty if not set.
    pub tools: Vec<String>,
    /// The prompt with its placeholders, such as `$1`.
    pub template: String,
}

/// A prompt after expansion, before the output of its `shell_steps` is inserted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpandedPrompt {
    pub text: String,
    /// The files that the prompt names, each once.
    pub files: Vec<String>,
    /// Shell commands whose output goes into `text`, from left to right.
    pub shell_steps: Vec<TemplateShellCommand>,
    /// The placeholders such as `$2` for which no argument was given.
    pub missing_arguments: Vec<String>,
}

impl ExpandedPrompt {
    /// Adds the placeholder that begins after `$`, if it is that of a word that was not given.
    fn add_missing_argument(&mut self, after: &str, words: &[String]) {
        let digit = after.chars().next().and_then(|c| c.to_digit(10));
        let Some(digit) = digit.filter(|digit| *digit as usize > words.len()) else { return };
        let placeholder = format!("${digit}");
        if !self.missing_arguments.contains(&placeholder) {
            self.missing_arguments.push(placeholder);
        }
    }
}

/// A shell command in a template, written as `` !`command` ``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateShellCommand {
    /// The command as written: no argument is inserted.
    pub command: String,
    /// The byte offset in `ExpandedPrompt::text` at which the output goes.
    pub offset: usize,
}

impl TemplateShellCommand {
    /// Inserts the output of each command at its `offset`.
    pub fn insert_outputs<'a>(
        text: &str,
        outputs: impl IntoIterator<Item = (&'a TemplateShellCommand, &'a str)>,
    ) -> String {
        let mut filled = String::new();
        let mut start = 0;
        for (step, output) in outputs {
            filled.push_str(text.get(start..step.offset).unwrap_or_default());
            filled.push_str(output);
            start = step.offset;
        }
        filled.push_str(text.get(start..).unwrap_or_default());
        filled
    }
}

/// Parses a command file, or returns the line and the message of an error.
pub(crate) fn parse_command(path: &Path, text: &str) -> Result<CustomCommand, (usize, String)> {
    let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_name_char) {
        return Err((
            1,
            "invalid command name: use up to 64 letters, digits, `-`, `_` and `.`".to_owned(),
        ));
    }
    if text.len() > MAX_COMMAND_BYTES {
        return Err((1, format!("larger than {} kB", MAX_COMMAND_BYTES >> 10)));
    }
    let front =
        front_matter::parse_front_matter(text).map_err(|error| (error.line, error.message))?;
    if front.body.trim().is_empty() {
        return Err((1, "the prompt is empty".to_owned()));
    }
    let setting = |key: &str| {
        let text = front.settings.get(key).and_then(Value::as_str).map(str::trim);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let hint = setting("argument-hint").map(|hint| format!(" {hint}"));
    let description = setting("description").unwrap_or_default() + &hint.unwrap_or_default();
    let tools = parse_allowed_tools(front.settings.get("allowed-tools"));
    Ok(CustomCommand {
        name: name.to_owned(),
        description: truncate_chars(description.trim(), MAX_DESCRIPTION_BYTES),
        is_own: false,
        agent: setting("agent"),
        is_subtask: front.settings.get("subtask").and_then(Value::as_bool).unwrap_or_default(),
        model: setting("model").filter(|model| model != "inherit"),
        tools: tools.map_err(|message| (1, message))?,
        template: front.body,
    })
}

impl CustomCommand {
    /// Expands the template: `$ARGUMENTS` is the whole argument text, `$1` to `$9` are its words.
    /// Arguments that no placeholder takes are appended.
    pub fn expand(&self, arguments: &str) -> ExpandedPrompt {
        let words = split_words(arguments);
        let mut prompt = ExpandedPrompt::default();
        let mut uses_arguments = false;
        let mut rest = self.template.as_str();
        while let Some(c) = rest.chars().next() {
            let previous = prompt.text.chars().next_back();
            let (_, after) = rest.split_at(c.len_utf8());
            rest = match c {
                '$' => match expand_placeholder(after, arguments, &words) {
                    Some((inserted, remaining)) => {
                        uses_arguments = true;
                        prompt.add_missing_argument(after, &words);
                        prompt.text.push_str(inserted);
                        remaining
                    }
                    None => push_char(&mut prompt.text, c, after),
                },
                '!' if after.starts_with('`') => match split_backticks(after) {
                    Some((command, remaining)) => {
                        let offset = prompt.text.len();
                        prompt
                            .shell_steps
                            .push(TemplateShellCommand { command: command.to_owned(), offset });
                        remaining
                    }
                    None => push_char(&mut prompt.text, c, after),
                },
                '@' if !previous.is_some_and(|it| it.is_alphanumeric() || it == '`') => {
                    let (file, remaining, has_argument) = split_file_name(after, arguments, &words);
                    uses_arguments |= has_argument;
                    if let Some(placeholder) = after.strip_prefix('$').filter(|_| has_argument) {
                        prompt.add_missing_argument(placeholder, &words);
                    }
                    if !file.is_empty() && !prompt.files.contains(&file) {
                        prompt.files.push(file.clone());
                    }
                    prompt.text.push('@');
                    prompt.text.push_str(&file);
                    remaining
                }
                _ => push_char(&mut prompt.text, c, after),
            };
        }
        prompt.files.truncate(MAX_PROMPT_FILES);
        if !uses_arguments && !arguments.trim().is_empty() {
            prompt.text.push_str("\n\n");
            prompt.text.push_str(arguments.trim());
        }
        prompt
    }
}

fn push_char<'a>(text: &mut String, c: char, after: &'a str) -> &'a str {
    text.push(c);
    after
}

/// Expands a placeholder after `$`. Returns the inserted text and the rest of the template.
fn expand_placeholder<'a>(
    after: &'a str,
    arguments: &'a str,
    words: &'a [String],
) -> Option<(&'a str, &'a str)> {
    if let Some(remaining) = after.strip_prefix("ARGUMENTS") {
        return Some((arguments.trim(), remaining));
    }
    let digit = after.chars().next().and_then(|c| c.to_digit(10)).filter(|digit| *digit > 0)?;
    let (_, remaining) = after.split_at_checked(1)?;
    // `$10` is not a placeholder.
    if remaining.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let word = words.get(digit as usize - 1).map(String::as_str).unwrap_or_default();
    Some((word, remaining))
}

/// Splits off a command between backticks.
fn split_backticks(after: &str) -> Option<(&str, &str)> {
    after.strip_prefix('`')?.split_once('`').filter(|(command, _)| !command.trim().is_empty())
}

/// Splits off the file name after `@`. Returns the name, the rest, and true if the name contains an
/// argument.
fn split_file_name<'a>(
    after: &'a str,
    arguments: &str,
    words: &[String],
) -> (String, &'a str, bool) {
    let is_delimiter = |c: char| c.is_whitespace() || "`,;()[]{}<>\"'".contains(c);
    let end = after.find(is_delimiter).unwrap_or(after.len());
    let token = after.get(..end).unwrap_or_default();
    let name = token.trim_end_matches(['.', ':', '!', '?']);
    let remaining = after.get(name.len()..).unwrap_or_default();
    match name.strip_prefix('$').and_then(|it| expand_placeholder(it, arguments, words)) {
        Some((inserted, tail)) => (format!("{inserted}{tail}"), remaining, true),
        None => (name.to_owned(), remaining, false),
    }
}

/// Splits a text into words like a shell: `'` and `"` keep words together.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut quote_char = None;
    for c in text.chars() {
        match (quote_char, c) {
            (Some(quote), _) if c == quote => quote_char = None,
            (None, '"' | '\'') => {
                quote_char = Some(c);
                word.get_or_insert_default();
            }
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            (Some(_) | None, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests;
