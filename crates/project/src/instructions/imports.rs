//! Imports in instruction files: `@path` in the text of a file adds the file at that path.
//!
//! A path is relative to the file that names it, and may not lead out of the folder in which that
//! file was found. A model may edit instructions, so an import reaches only files that it may read
//! anyway, and follows no links. A word after `@` that is not such a file stays a word, and code is
//! not searched.

use super::{InstructionText, has_link, read_beneath};
use std::path::{Component, Path, PathBuf};

const MAX_IMPORT_DEPTH: usize = 5;

/// Returns the files that a text imports, directly and through other imports, in order. `file` is the
/// path of the text in the folder of the `Importer`.
pub(super) fn imported_texts(
    importer: &Importer<'_>,
    file: &Path,
    text: &str,
) -> Vec<InstructionText> {
    let mut found = Vec::new();
    let mut seen = vec![file.to_owned()];
    add_imports(importer, file, text, (&mut seen, &mut found), MAX_IMPORT_DEPTH);
    found
}

/// The folder of a file with imports.
pub(super) struct Importer<'a> {
    /// The folder that imports may not leave.
    pub(super) folder: &'a Path,
    pub(super) display_prefix: &'a str,
    /// Returns true if the model may read the file at a path in the folder without asking.
    pub(super) may_read: &'a dyn Fn(&str) -> bool,
}

fn add_imports(
    importer: &Importer<'_>,
    file: &Path,
    text: &str,
    (seen, found): (&mut Vec<PathBuf>, &mut Vec<InstructionText>),
    depth: usize,
) {
    if depth == 0 {
        return;
    }
    for name in import_names(text) {
        let parent = file.parent().unwrap_or(Path::new(""));
        let Some(path) = normalize(&parent.join(name)) else { continue };
        if seen.len() > super::MAX_INSTRUCTION_FILES || seen.contains(&path) {
            continue;
        }
        let shown = path.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/");
        if !(importer.may_read)(&shown) || has_link(importer.folder, &path) {
            continue;
        }
        let display_path = format!("{}{shown}", importer.display_prefix);
        let Some(imported) = read_beneath(importer.folder, &path, &display_path) else { continue };
        seen.push(path.clone());
        let imported_text = imported.text.clone();
        found.push(imported);
        let next = (&mut *seen, &mut *found);
        add_imports(importer, &path, &imported_text, next, depth - 1);
    }
}

/// Returns the path without `.` and `..`; `None` if it leaves its folder.
fn normalize(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !normal.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(normal)
}

/// Returns the words after `@` at the start of a word, outside of code.
fn import_names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut in_fence = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            in_fence = !in_fence;
            continue;
        }
        if in_fence {
            continue;
        }
        // Every second part is between backticks.
        for part in line.split('`').step_by(2) {
            let words = part.split_whitespace().filter_map(|word| word.strip_prefix('@'));
            let trimmed = words.map(|word| word.trim_end_matches(['.', ',', ';', ':', ')', '!']));
            names.extend(trimmed.filter(|word| !word.is_empty()));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_words_outside_of_code() {
        let text = "See @docs/style.md, and @../up.md.\nMail a@b.c or `@code.md`\n```\n@fence.md\n```\n- @list.md";
        assert_eq!(import_names(text), ["docs/style.md", "../up.md", "list.md"]);
    }

    #[test]
    fn a_path_stays_in_its_folder() {
        let rows = [
            ("a/b.md", Some("a/b.md")),
            ("a/../b.md", Some("b.md")),
            ("./b.md", Some("b.md")),
            ("../b.md", None),
            ("a/../../b.md", None),
            ("/etc/passwd", None),
        ];
        for (path, expected) in rows {
            assert_eq!(normalize(Path::new(path)), expected.map(PathBuf::from), "{path}");
        }
    }
}
