//! `tidy`: the project's rules that no compiler knows. Each check is a function over what the
//! project says, so that a test can show it a project that breaks the rule.

mod cases;
mod docs;
mod graph;
mod source;

use std::path::{Path, PathBuf};

/// All faults of the project, one line each.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let files = Files::of(root)?;
    let mut faults = graph::check(root)?;
    faults.extend(source::check(&files));
    faults.extend(cases::check(&files));
    faults.extend(docs::check(root, &files));
    Ok(faults)
}

/// The project's files, as git would keep them, with their text.
pub(crate) struct Files(Vec<(PathBuf, String)>);

impl Files {
    fn of(root: &Path) -> anyhow::Result<Files> {
        let mut files = Vec::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder)? {
                let path = entry?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if path.is_dir() {
                    if !matches!(name.as_str(), "target" | ".git" | "node_modules") {
                        folders.push(path);
                    }
                } else if let Ok(text) = std::fs::read_to_string(&path) {
                    files.push((path.strip_prefix(root)?.to_owned(), text));
                }
            }
        }
        files.sort();
        Ok(Files(files))
    }

    fn with_ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = (&'a Path, &'a str)> {
        let fits = move |path: &Path| path.extension().is_some_and(|found| found == ending);
        self.0.iter().filter(move |(path, _)| fits(path)).map(|(p, t)| (p.as_path(), t.as_str()))
    }

    #[cfg(test)]
    pub(crate) fn fixture(files: &[(&str, &str)]) -> Files {
        Files(files.iter().map(|(path, text)| (path.into(), (*text).to_owned())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_tidy() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let faults = check(root).unwrap();
        assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    }
}
