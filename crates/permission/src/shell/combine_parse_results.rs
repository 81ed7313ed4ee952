//! Combines the results of both parsers into a `ParsedCommandLine`: one result if they agree, the
//! union of their commands if not.

use super::ambiguity_reasons::ShellAmbiguity;
use super::parse_result::ShellParseResult;
use super::precheck;
use super::{CommandOrScopeBoundary, ParsedCommandLine, Redirect, ShellWord, SimpleShellCommand};
use std::collections::HashSet;
use std::fmt::Write as _;

/// Returns the result for a text that is too long to parse.
pub(super) fn unparsed_command_line(text: &str, prechecked: ShellParseResult) -> ParsedCommandLine {
    let mut items = prechecked.items;
    items.push(opaque_command(text));
    ParsedCommandLine {
        items,
        exceeds_limits: true,
        ambiguities: prechecked.ambiguities.into_iter().collect(),
    }
}

/// Merges the parser results. `prechecked` contains the ambiguities of the precheck; a failed
/// parser contributes only its ambiguity.
pub(super) fn combine_parses(
    text: &str,
    prechecked: ShellParseResult,
    tree_sitter: Result<ShellParseResult, ShellAmbiguity>,
    brush: Result<ShellParseResult, ShellAmbiguity>,
) -> ParsedCommandLine {
    let mut ambiguities = prechecked.ambiguities;
    let any_failed = tree_sitter.is_err() || brush.is_err();
    let mut item_lists = Vec::new();
    for result in [tree_sitter, brush] {
        match result {
            Ok(result) => {
                ambiguities.extend(&result.ambiguities);
                item_lists.push(result.items);
            }
            Err(ambiguity) => {
                ambiguities.insert(ambiguity);
            }
        }
    }
    if ambiguities.contains(&ShellAmbiguity::Variable) {
        ambiguities.extend(precheck::evaluating_expansions(text));
    }
    let mut item_lists = item_lists.into_iter();
    let mut items = item_lists.next().unwrap_or_default();
    if let Some(other) = item_lists.next()
        && !same_items(&items, &other)
    {
        ambiguities.insert(ShellAmbiguity::ParsersDisagree);
        add_missing_commands(&mut items, other);
    }
    // Each of these hides commands that the other parser might have found.
    let incomplete_kinds =
        [ShellAmbiguity::TooDeep, ShellAmbiguity::TooManySegments, ShellAmbiguity::SyntaxError];
    if any_failed || incomplete_kinds.iter().any(|ambiguity| ambiguities.contains(ambiguity)) {
        items.push(opaque_command(text));
    }
    let exceeds_limits = [ShellAmbiguity::TooDeep, ShellAmbiguity::TooManySegments]
        .iter()
        .any(|ambiguity| ambiguities.contains(ambiguity));
    ParsedCommandLine { items, exceeds_limits, ambiguities: ambiguities.into_iter().collect() }
}

/// Returns the whole text as one unknown command, with a single `ShellWord::Opaque`.
fn opaque_command(text: &str) -> CommandOrScopeBoundary {
    let words = vec![ShellWord::Opaque(text.to_owned())];
    CommandOrScopeBoundary::Command(SimpleShellCommand {
        text: text.to_owned(),
        words,
        ..SimpleShellCommand::default()
    })
}

fn same_items(one: &[CommandOrScopeBoundary], other: &[CommandOrScopeBoundary]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|pair| match pair {
            (CommandOrScopeBoundary::Command(one), CommandOrScopeBoundary::Command(other)) => {
                same_segment(one, other)
            }
            (one, other) => one == other,
        })
}

/// Returns true if both are the same command, even if the parsers show its text differently.
fn same_segment(one: &SimpleShellCommand, other: &SimpleShellCommand) -> bool {
    segment_key(one) == segment_key(other)
}

/// Adds commands that `items` lacks, each in its own scope, because their position is unknown.
fn add_missing_commands(
    items: &mut Vec<CommandOrScopeBoundary>,
    other: Vec<CommandOrScopeBoundary>,
) {
    let mut seen: HashSet<String> = items.iter().filter_map(as_segment).map(segment_key).collect();
    for item in other {
        if as_segment(&item).is_some_and(|segment| seen.insert(segment_key(segment))) {
            items.extend([
                CommandOrScopeBoundary::EnterScope,
                item,
                CommandOrScopeBoundary::LeaveScope,
            ]);
        }
    }
}

fn as_segment(item: &CommandOrScopeBoundary) -> Option<&SimpleShellCommand> {
    match item {
        CommandOrScopeBoundary::Command(segment) => Some(segment),
        CommandOrScopeBoundary::EnterScope | CommandOrScopeBoundary::LeaveScope => None,
    }
}

/// Returns a key of everything significant in a command. The spelling of unknown words is not: each
/// parser shows it differently, and the word is an ambiguity anyway.
fn segment_key(segment: &SimpleShellCommand) -> String {
    let SimpleShellCommand { text: _, assignments, words, redirects, has_piped_input } = segment;
    let mut key = format!("{has_piped_input} {} {}", words.len(), assignments.len());
    let mut add = |word: &ShellWord| match word {
        ShellWord::Plain(text) => drop(write!(key, " plain {text:?}")),
        ShellWord::Pattern(text) => drop(write!(key, " pattern {text:?}")),
        ShellWord::Opaque(_) => key.push_str(" opaque"),
    };
    words.iter().for_each(&mut add);
    for (name, value) in assignments {
        add(&ShellWord::Plain(name.clone()));
        add(value);
    }
    for Redirect { kind, target } in redirects {
        add(&ShellWord::Plain(format!("{kind:?}")));
        add(target);
    }
    key
}
