//! Words whose value is not known, as far as it can be told all the same.

use crate::shell::Word;
use std::path::Path;

/// The word with the home and the folder it runs in set in, as if they were written out. It stays
/// opaque if anything else in it is not known; nothing if the home is not known.
pub(super) fn known(text: &str, home: Option<&Path>) -> Option<Word> {
    let text = text.replace('"', "");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at_checked(at)?;
        out.push_str(before);
        let value = |name: &str| match name {
            "HOME" => home.and_then(Path::to_str),
            _ => Some("."),
        };
        let found = ["HOME", "PWD"].into_iter().find_map(|name| {
            let braced = after.strip_prefix(&format!("${{{name}}}"));
            let bare = after.strip_prefix(&format!("${name}")).filter(|rest| {
                !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_')
            });
            Some((name, braced.or(bare)?))
        });
        match found {
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
        true => Word::Opaque(out),
        false if out.contains(['*', '?', '[']) => Word::Pattern(out),
        false => Word::Plain(out),
    })
}

/// True if a word leads out of the folder it stands in, whatever is not known of it. What stands
/// in a substitution is no path.
pub(super) fn leaves(text: &str) -> bool {
    let (mut depth, mut ticks) = (0_usize, false);
    let mut outside = String::new();
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '`' => ticks = !ticks,
            _ if depth == 0 && !ticks => outside.push(letter),
            _ => {}
        }
    }
    outside.starts_with('/') || outside.contains("..")
}
