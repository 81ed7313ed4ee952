//! Resolves words that the shell expands, as far as their value can be known.

use crate::shell::ShellWord;
use std::path::Path;

/// Replaces `$HOME` and `$PWD` in a word. The result stays `ShellWord::Opaque` if any other part is
/// unknown. Returns `None` if the home folder is unknown.
pub(super) fn expand_known_variables(text: &str, home: Option<&Path>) -> Option<ShellWord> {
    let text = text.replace('"', "");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(index) = rest.find('$') {
        let (before, after) = rest.split_at_checked(index)?;
        out.push_str(before);
        let value = |name: &str| match name {
            "HOME" => home.and_then(Path::to_str),
            _ => Some("."),
        };
        let variable = ["HOME", "PWD"].into_iter().find_map(|name| {
            let braced = after.strip_prefix(&format!("${{{name}}}"));
            let bare = after
                .strip_prefix(&format!("${name}"))
                .filter(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'));
            Some((name, braced.or(bare)?))
        });
        match variable {
            Some((name, after)) => {
                out.push_str(value(name)?);
                rest = after;
            }
            None => {
                out.push('$');
                rest = after.strip_prefix('$')?;
            }
        }
    }
    out.push_str(rest);
    Some(match out.contains(['$', '`', '\\', '\'', '{', '(', '<']) {
        true => ShellWord::Opaque(out),
        false if out.contains(['*', '?', '[']) => ShellWord::Pattern(out),
        false => ShellWord::Plain(out),
    })
}

/// Returns true if a word leads out of the current folder, whatever its unknown parts are. Text
/// inside a substitution is not a path.
pub(super) fn leads_outside(text: &str) -> bool {
    let mut depth = 0_usize;
    let mut in_backticks = false;
    let mut outside = String::new();
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '`' => in_backticks = !in_backticks,
            _ if depth == 0 && !in_backticks => outside.push(c),
            _ => {}
        }
    }
    outside.starts_with('/') || outside.contains("..")
}
