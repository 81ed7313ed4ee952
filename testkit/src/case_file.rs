//! `.case` files: one sentence, the state before, the action, and the expected result.
//!
//! ```text
//! # Reading a file numbers its lines.
//! == file README.md
//! Hello
//! == call read
//! {"filePath": "README.md"}
//! == outcome
//! completed
//! 1: Hello
//! ```
//! A section begins with `== name argument` and goes on to the next one. `UPDATE_EXPECT=1`
//! rewrites the sections that a test compares.

use std::path::{Path, PathBuf};

/// One `.case` file.
#[derive(Clone, Debug)]
pub struct Case {
    path: PathBuf,
    /// The behavior that the case shows.
    pub sentence: String,
    /// Its sections, in order.
    pub sections: Vec<CaseSection>,
}

/// One section of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseSection {
    /// The kind of the section.
    pub name: String,
    /// The rest of its first line.
    pub argument: String,
    /// The lines below, each with its line ending.
    pub body: String,
}

impl Case {
    /// Reads a case; panics if it has no sentence.
    pub fn load(path: impl AsRef<Path>) -> Case {
        let path = path.as_ref().to_owned();
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Case::parse(path, &text)
    }

    /// Parses a case; `path` is only shown in messages.
    pub fn parse(path: impl Into<PathBuf>, text: &str) -> Case {
        let path = path.into();
        let mut sentence = String::new();
        let mut sections: Vec<CaseSection> = Vec::new();
        for line in text.split_inclusive('\n') {
            if let Some(head) = line.strip_prefix("== ") {
                let (name, argument) =
                    head.trim_end().split_once(' ').unwrap_or((head.trim_end(), ""));
                sections.push(CaseSection {
                    name: name.into(),
                    argument: argument.into(),
                    body: String::new(),
                });
            } else if let Some(section) = sections.last_mut() {
                section.body.push_str(line);
            } else if let Some(words) = line.strip_prefix("# ") {
                sentence.push_str(words);
            }
        }
        assert!(!sentence.is_empty(), "{} has no sentence: begin it with `# `", path.display());
        Case { path, sentence, sections }
    }

    /// Returns all sections with this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a CaseSection> {
        self.sections.iter().filter(move |section| section.name == name)
    }

    /// Returns the first section with this name.
    pub fn one(&self, name: &str) -> &CaseSection {
        let found = self.sections.iter().find(|section| section.name == name);
        found.unwrap_or_else(|| panic!("{}: no `== {name}`", self.path.display()))
    }

    /// Compares the sections with these names to the actual ones, or rewrites them.
    pub fn check(self, names: &[&str], actual: &[CaseSection]) {
        let expected: Vec<&CaseSection> =
            self.sections.iter().filter(|s| names.contains(&s.name.as_str())).collect();
        if expected.iter().copied().eq(actual) {
            return;
        }
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            let Case { path, sentence, mut sections } = self;
            sections.retain(|section| !names.contains(&section.name.as_str()));
            sections.extend_from_slice(actual);
            let text = Case { path: path.clone(), sentence, sections }.to_string();
            std::fs::write(path, text).unwrap();
            return;
        }
        let lines =
            |sections: &[&CaseSection]| sections.iter().map(|s| render(s)).collect::<String>();
        panic!(
            "{}\n{}\n--- expected\n{}--- actual\n{}",
            self.path.display(),
            self.sentence.trim(),
            lines(&expected),
            lines(&actual.iter().collect::<Vec<_>>()),
        );
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in self.sentence.lines() {
            writeln!(f, "# {line}")?;
        }
        self.sections.iter().try_for_each(|section| f.write_str(&render(section)))
    }
}

impl CaseSection {
    /// Creates a section whose body ends with a line ending.
    pub fn new(name: &str, argument: &str, body: &str) -> CaseSection {
        let end = if body.is_empty() || body.ends_with('\n') { "" } else { "\n" };
        CaseSection { name: name.into(), argument: argument.into(), body: format!("{body}{end}") }
    }
}

fn render(section: &CaseSection) -> String {
    let head = format!("== {} {}", section.name, section.argument);
    format!("{}\n{}", head.trim_end(), section.body)
}

/// Generates a test for each case: `cases!(run, "read/cases": reads_a_file, lists_a_folder)`
/// runs `src/read/cases/reads_a_file.case`, and so on.
#[macro_export]
macro_rules! cases {
    ($run:path, $folder:literal: $($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/", $folder);
            $run($crate::Case::load(format!("{folder}/{}.case", stringify!($name))));
        }
    )*};
}
