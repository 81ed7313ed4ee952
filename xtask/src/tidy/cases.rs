//! Every `.case` is run: the `tests.rs` (or `tests/mod.rs`) beside its folder names it.

use super::Files;
use std::path::Path;

pub(crate) fn check(files: &Files) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, _) in files.with_ending("case") {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let beside = path.parent().and_then(Path::parent).unwrap_or(Path::new(""));
        let runs = |tests: &str| {
            files.0.iter().any(|(path, text)| *path == beside.join(tests) && names(text, &name))
        };
        if !runs("tests.rs") && !runs("tests/mod.rs") {
            faults.push(format!("{}: nobody runs this case", path.display()));
        }
    }
    faults
}

/// True if a test file names a case inside `cases!( … )`.
fn names(text: &str, case: &str) -> bool {
    text.split("cases!(").skip(1).any(|rest| {
        let list = rest.split(");").next().unwrap_or_default();
        list.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == case)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_nobody_runs_is_stopped() {
        let tests = "cases!(run, \"read/cases\":\n    works,\n);\n// forgotten\n";
        let files = Files::fixture(&[
            ("tools/src/read/tests.rs", tests),
            ("tools/src/read/cases/works.case", "# It works."),
            ("tools/src/read/cases/forgotten.case", "# It is not run."),
            ("tools/src/write/cases/works.case", "# It has no tests beside it."),
        ]);
        assert_eq!(
            check(&files),
            [
                "tools/src/read/cases/forgotten.case: nobody runs this case",
                "tools/src/write/cases/works.case: nobody runs this case",
            ]
        );
    }
}
