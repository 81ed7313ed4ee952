//! `tidy`: rules of this project that the compiler and Clippy do not check. Each check is a
//! function of the project's files, so that a test can pass it files that break the rule.

mod api_growth;
mod cases;
mod crate_graph;
mod docs;
mod import_cycles;
mod names;
mod source_rules;

use std::path::{Path, PathBuf};

/// Returns all violations in the project, one line each.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let files = Files::read(root)?;
    let mut faults = crate_graph::check(root)?;
    faults.extend(source_rules::check(&files));
    faults.extend(names::check(&files));
    faults.extend(import_cycles::check(&files));
    faults.extend(cases::check(&files));
    faults.extend(docs::check(root, &files));
    faults.extend(api_growth::check(root)?);
    Ok(faults)
}

/// The text files of the project, without `target`, `.git` and `node_modules`.
pub(crate) struct Files(Vec<(PathBuf, String)>);

impl Files {
    fn read(root: &Path) -> anyhow::Result<Files> {
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

    fn with_extension<'a>(
        &'a self,
        extension: &'a str,
    ) -> impl Iterator<Item = (&'a Path, &'a str)> {
        let matches = move |path: &Path| path.extension().is_some_and(|found| found == extension);
        self.0.iter().filter(move |(path, _)| matches(path)).map(|(p, t)| (p.as_path(), t.as_str()))
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
