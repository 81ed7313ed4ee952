//! Servers as rows of data: which files they know, where their project begins, and how they start.

use crate::Sign;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// A language server, as far as it can be said in data.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// What it is called.
    pub name: String,
    /// What it is for. Of several rows for one language the first one that fits serves a file.
    pub language: String,
    /// The program and what it is called with. `{cache}` is a folder of its own.
    pub command: Vec<String>,
    /// Where the project itself may bring the program, relative to the root or a folder above it.
    #[serde(default)]
    pub local: Vec<String>,
    /// The ends of the names of its files, such as `.ts`, each with what the protocol calls them.
    #[serde(default)]
    pub extensions: BTreeMap<String, String>,
    /// Whole names of files, such as `go.mod`, likewise.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// What stands where a project begins: names of the first tier count before those of the next.
    #[serde(default)]
    pub roots: Vec<Vec<String>>,
    /// It also serves where nothing says that a project begins.
    #[serde(default)]
    pub alone: bool,
    /// It serves besides the one of the language, as linters do.
    #[serde(default)]
    pub beside: bool,
    /// It serves only where all of these hold.
    #[serde(default)]
    pub when: Vec<Sign>,
    /// What its environment has besides that of a command.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What it is told when it starts.
    #[serde(default)]
    pub initialization: Value,
    /// What it hears when it asks for its settings.
    #[serde(default)]
    pub settings: Value,
    /// How long after its first word about a change it may have another, in milliseconds.
    #[serde(default)]
    pub settle: u64,
    /// The most memory that it may use, in megabytes.
    #[serde(default = "memory")]
    pub memory: u64,
    /// It may change the project. Only the person's own config can say so.
    #[serde(default, skip_deserializing)]
    pub write: bool,
    /// Its warnings count as errors do.
    #[serde(default)]
    pub warnings: bool,
    /// How a person gets it.
    pub install: String,
}

fn memory() -> u64 {
    2_048
}

impl Row {
    /// How long after its first word about a change it may have another.
    pub fn settle(&self) -> Duration {
        Duration::from_millis(self.settle)
    }
}

/// The rows that come with this program, in the order in which they are preferred.
pub fn known() -> Vec<Row> {
    let rows = include_str!("servers.json").replace("{os}", os()).replace("{arch}", arch());
    // A test reads them.
    serde_json::from_str(&rows).unwrap_or_default()
}

/// This system, as npm packages spell it.
fn os() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    }
}

/// This machine, likewise.
fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn signs(signs: &[Sign]) -> Vec<&Sign> {
        let mut all = Vec::new();
        for sign in signs {
            match sign {
                Sign::Any(any) => all.extend(self::signs(any)),
                Sign::File(_) | Sign::Holds { .. } | Sign::Version { .. } => all.push(sign),
            }
        }
        all
    }

    /// What a shell would make something of. Nothing here goes through one.
    const SHELL: &[char] =
        &['|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '"', '\'', ' ', '*', '?', '~'];

    #[test]
    fn rows_are_sound() {
        let text = include_str!("servers.json");
        let rows: Vec<Row> = serde_json::from_str(text).unwrap();
        assert_eq!(known().len(), rows.len());
        assert!(rows.len() > 40);
        let mut names = BTreeSet::new();
        let mut kinds: BTreeMap<(&str, &str), &str> = BTreeMap::new();
        for row in &rows {
            let name = &row.name;
            assert!(names.insert(name), "{name} stands there twice");
            let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
            assert!(!name.is_empty() && name.chars().all(plain), "{name}");
            assert!(!row.language.is_empty() && !row.install.is_empty(), "{name}");
            let program = row.command.first().expect(name);
            assert!(program.chars().all(plain), "{name}: a bare name, looked for in PATH");
            assert!(!row.command.iter().any(|word| word.contains(SHELL)), "{name}");
            for local in &row.local {
                let parts: Vec<&str> = local.split('/').collect();
                let within = |part: &&str| !part.is_empty() && !part.starts_with("..");
                assert!(parts.len() > 1 && parts.iter().all(within), "{name}: {local}");
            }
            assert!(!(row.extensions.is_empty() && row.files.is_empty()), "{name}");
            for (end, kind) in row.extensions.iter().chain(&row.files) {
                assert_eq!(row.extensions.contains_key(end), end.starts_with('.'), "{name}: {end}");
                assert!(!kind.is_empty(), "{name}: {end}");
                let first = kinds.entry((&row.language, end)).or_insert(kind);
                assert_eq!(*first, kind, "{name}: {end} is called one way in one language");
            }
            assert!(row.alone || !row.roots.is_empty(), "{name} serves nowhere");
            for root in row.roots.iter().flatten() {
                assert!(!root.is_empty() && !root.contains(['*', '?', '/', '[']), "{name}: {root}");
            }
            for sign in signs(&row.when) {
                match sign {
                    Sign::Holds { holds, .. } => {
                        assert!(regex::Regex::new(holds).is_ok(), "{name}")
                    }
                    Sign::Version { pointer, .. } => assert!(pointer.starts_with('/'), "{name}"),
                    Sign::File(file) => assert!(!file.is_empty(), "{name}"),
                    Sign::Any(_) => panic!("it was taken apart"),
                }
            }
            assert!(row.memory >= 512 && !row.write, "{name}");
            assert!(row.settle() <= Duration::from_secs(1), "{name}");
        }
    }

    #[test]
    fn nothing_is_left_to_be_filled_in_but_the_cache() {
        for row in known() {
            let shown = format!("{row:?}").replace("{cache}", "");
            for word in ["{os}", "{arch}", "{root}", "{file}"] {
                assert!(!shown.contains(word), "{}: {word}", row.name);
            }
        }
    }

    #[test]
    fn a_row_says_nothing_that_nobody_knows_and_cannot_make_itself_write() {
        let row = |more: &str| {
            let text = format!(
                r#"{{"name": "a", "language": "a", "command": ["a"], "install": "a"{more}}}"#
            );
            serde_json::from_str::<Row>(&text)
        };
        assert!(row("").is_ok());
        assert!(row(r#", "memroy": 1"#).is_err());
        assert!(!row(r#", "write": true"#).is_ok_and(|row| row.write));
    }
}
