//! Filters of `find` that select some files by their names.

use super::option_grammar::{ParsedArgument, has_option};
use super::system_paths::is_specific_name;
use crate::shell::ShellWord;

/// Returns true if all files that `find` selects match a specific name.
pub(super) fn selects_by_name(arguments: &[ParsedArgument], operands: &[&ShellWord]) -> bool {
    let names_files = |argument: &ParsedArgument| match argument {
        ParsedArgument::Option { name, value: Some(ShellWord::Plain(pattern)), .. } => {
            matches!(name.as_str(), "-name" | "-iname") && is_specific_name(pattern)
        }
        ParsedArgument::Option { .. }
        | ParsedArgument::Operand(_)
        | ParsedArgument::MaybeOption(_)
        | ParsedArgument::Opaque(_) => false,
    };
    let has_alternatives = has_option(arguments, &["-o", "-or", "-not"])
        || operands.iter().any(|word| matches!(word.text(), "!" | ","));
    !has_alternatives && arguments.iter().any(names_files)
}
