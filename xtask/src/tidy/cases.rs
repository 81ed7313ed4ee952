//! Checks that every `.case` file is run: the `tests.rs` (or `tests/mod.rs`) next to its folder
//! lists it.

use super::Files;
use std::path::Path;

pub(crate) fn check(files: &Files) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, _) in files.with_extension("case") {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let folder = path.parent().and_then(Path::parent).unwrap_or(Path::new(""));
        let is_run_by = |tests: &str| {
            files
                .0
                .iter()
                .any(|(path, text)| *path == folder.join(tests) && lists_case(text, &name))
        };
        if !is_run_by("tests.rs") && !is_run_by("tests/mod.rs") {
            faults.push(format!("{}: no test runs this case", path.display()));
        }
    }
    faults
}

/// Returns true if a test file lists a case inside `cases!( … )`.
fn lists_case(text: &str, case: &str) -> bool {
    text.split("cases!(").skip(1).any(|rest| {
        let list = rest.split(");").next().unwrap_or_default();
        list.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == case)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unused_case_is_reported() {
        let tests = "cases!(run, \"read/cases\":\n    works,\n);\n// forgotten\n";
        let files = Files::fixture(&[
            ("tools/src/read/tests.rs", tests),
            ("tools/src/read/cases/works.case", "# It works."),
            ("tools/src/read/cases/forgotten.case", "# It is not run."),
            ("tools/src/write/cases/works.case", "# It has no tests next to it."),
        ]);
        assert_eq!(
            check(&files),
            [
                "tools/src/read/cases/forgotten.case: no test runs this case",
                "tools/src/write/cases/works.case: no test runs this case",
            ]
        );
    }
}
