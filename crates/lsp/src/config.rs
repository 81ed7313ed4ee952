//! Configuration of language servers: each server as data (its files, project roots and start
//! command), and the time limits of all.

use crate::project_markers::ProjectMarker;
use crate::server_log::ServerLog;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use windlass_toolkit::ProcessLauncher;
use windlass_toolkit::process_health::HealthChanges;

/// Time limits of [`LanguageServers`](crate::LanguageServers).
#[derive(Clone, Copy, Debug)]
pub struct LspTimeouts {
    /// Limit for the answer to `initialize`.
    pub start: Duration,
    /// Limit for the answer to a request.
    pub answer: Duration,
    /// Limit for collecting the diagnostics that are reported together with the changes of a step.
    pub review: Duration,
    /// Time after which an unused server is stopped.
    pub idle: Duration,
}

impl Default for LspTimeouts {
    fn default() -> LspTimeouts {
        LspTimeouts {
            start: Duration::from_secs(20),
            answer: Duration::from_secs(10),
            review: Duration::from_secs(1),
            idle: Duration::from_secs(600),
        }
    }
}

/// Everything that [`LanguageServers::open`](crate::LanguageServers::open) needs.
pub struct LspConfig {
    /// Servers in order of preference.
    pub servers: Vec<LspServerConfig>,
    /// Launches the server processes in the sandbox.
    pub launcher: ProcessLauncher,
    /// Receives the log output of servers.
    pub log: Arc<dyn ServerLog>,
    /// Time limits for starts, requests, reviews and idle servers.
    pub timeouts: LspTimeouts,
    /// Receives state changes of the servers.
    pub changes: HealthChanges,
}

/// A language server described as data: one row of `servers.json` or of the user's configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LspServerConfig {
    /// Name of the server, unique among the rows.
    pub name: String,
    /// Language that the server is for. The first matching row of a language serves a file.
    pub language: String,
    /// Program and arguments. `{cache}` expands to a folder of the server's own.
    pub command: Vec<String>,
    /// Paths at which the project itself may bring the program, relative to the root or a folder
    /// above it.
    #[serde(default)]
    pub local: Vec<String>,
    /// File extensions such as `.ts`, each with its LSP `languageId`.
    #[serde(default)]
    pub extensions: BTreeMap<String, String>,
    /// Whole file names such as `go.mod`, each with its LSP `languageId`.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// File names that mark a project root, in tiers: an earlier tier takes precedence over a later
    /// one.
    #[serde(default)]
    pub roots: Vec<Vec<String>>,
    /// Serves files outside any project, too.
    #[serde(default)]
    pub single_file: bool,
    /// Serves in addition to the main server of the language, as linters do.
    #[serde(default)]
    pub additional: bool,
    /// Markers that must all be present for the server to serve a file.
    #[serde(default)]
    pub requires: Vec<ProjectMarker>,
    /// Environment variables in addition to those of a command.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The `initializationOptions` of the `initialize` request.
    #[serde(default)]
    pub initialization: Value,
    /// Settings that answer `workspace/configuration`.
    #[serde(default)]
    pub settings: Value,
    /// Milliseconds after the first diagnostics of a change in which the server may publish more.
    #[serde(default)]
    pub settle: u64,
    /// Memory limit in megabytes.
    #[serde(default = "default_memory_mb")]
    pub memory: u64,
    /// Lets the server change the project. Only the user's own configuration can set it.
    #[serde(default, skip_deserializing)]
    pub write: bool,
    /// Treats warnings of the server as errors.
    #[serde(default)]
    pub warnings: bool,
    /// Instructions for the user to install the server.
    pub install: String,
}

fn default_memory_mb() -> u64 {
    2_048
}

impl LspServerConfig {
    /// Returns the time after the first diagnostics of a change in which the server may publish
    /// more.
    pub fn settle_time(&self) -> Duration {
        Duration::from_millis(self.settle)
    }

    /// Returns the LSP `languageId` of a file, if the server is for it.
    pub(crate) fn language_id(&self, path: &str) -> Option<&str> {
        let (_, name) = path.rsplit_once('/').unwrap_or(("", path));
        let longest = || {
            let matching =
                self.extensions.iter().filter(|(extension, _)| name.ends_with(extension.as_str()));
            matching.max_by_key(|(extension, _)| extension.len()).map(|(_, id)| id)
        };
        self.files.get(name).or_else(longest).map(String::as_str)
    }
}

/// Returns the built-in servers, in order of preference.
pub fn built_in_servers() -> Vec<LspServerConfig> {
    let rows = include_str!("servers.json").replace("{os}", npm_os()).replace("{arch}", npm_arch());
    // A test parses `servers.json`, so the default is never used.
    serde_json::from_str(&rows).unwrap_or_default()
}

/// Returns the name that npm packages use for this operating system.
fn npm_os() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    }
}

/// Returns the name that npm packages use for this CPU architecture.
fn npm_arch() -> &'static str {
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

    fn flatten_markers(markers: &[ProjectMarker]) -> Vec<&ProjectMarker> {
        let mut all = Vec::new();
        for marker in markers {
            match marker {
                ProjectMarker::AnyFile(any) => all.extend(self::flatten_markers(any)),
                ProjectMarker::File(_)
                | ProjectMarker::FileContains { .. }
                | ProjectMarker::Version { .. } => all.push(marker),
            }
        }
        all
    }

    /// Characters that a shell would interpret. Commands are started without a shell.
    const SHELL_CHARACTERS: &[char] =
        &['|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '"', '\'', ' ', '*', '?', '~'];

    #[test]
    fn built_in_servers_are_valid() {
        let text = include_str!("servers.json");
        let rows: Vec<LspServerConfig> = serde_json::from_str(text).unwrap();
        assert_eq!(built_in_servers().len(), rows.len());
        assert!(rows.len() > 40);
        let mut names = BTreeSet::new();
        let mut language_ids: BTreeMap<(&str, &str), &str> = BTreeMap::new();
        for row in &rows {
            let name = &row.name;
            assert!(names.insert(name), "{name} is defined twice");
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
            assert!(!name.is_empty() && name.chars().all(is_plain), "{name}");
            assert!(!row.language.is_empty() && !row.install.is_empty(), "{name}");
            let program = row.command.first().expect(name);
            assert!(
                program.chars().all(is_plain),
                "{name}: the program must be a bare name that is searched in PATH"
            );
            assert!(!row.command.iter().any(|word| word.contains(SHELL_CHARACTERS)), "{name}");
            for local in &row.local {
                let parts: Vec<&str> = local.split('/').collect();
                let is_inside = |part: &&str| !part.is_empty() && !part.starts_with("..");
                assert!(parts.len() > 1 && parts.iter().all(is_inside), "{name}: {local}");
            }
            assert!(!(row.extensions.is_empty() && row.files.is_empty()), "{name}");
            for (extension, language_id) in row.extensions.iter().chain(&row.files) {
                assert_eq!(
                    row.extensions.contains_key(extension),
                    extension.starts_with('.'),
                    "{name}: {extension}"
                );
                assert!(!language_id.is_empty(), "{name}: {extension}");
                let first = language_ids.entry((&row.language, extension)).or_insert(language_id);
                assert_eq!(
                    *first, language_id,
                    "{name}: {extension} has one language id in each language"
                );
            }
            assert!(
                row.single_file || !row.roots.is_empty(),
                "{name} has no roots and serves no single files"
            );
            for root in row.roots.iter().flatten() {
                assert!(!root.is_empty() && !root.contains(['*', '?', '/', '[']), "{name}: {root}");
            }
            for marker in flatten_markers(&row.requires) {
                match marker {
                    ProjectMarker::FileContains { holds, .. } => {
                        assert!(regex::Regex::new(holds).is_ok(), "{name}")
                    }
                    ProjectMarker::Version { pointer, .. } => {
                        assert!(pointer.starts_with('/'), "{name}")
                    }
                    ProjectMarker::File(file) => assert!(!file.is_empty(), "{name}"),
                    ProjectMarker::AnyFile(_) => panic!("`flatten_markers` returns no `AnyFile`"),
                }
            }
            assert!(row.memory >= 512 && !row.write, "{name}");
            assert!(row.settle_time() <= Duration::from_secs(1), "{name}");
        }
    }

    #[test]
    fn built_in_servers_have_no_placeholder_but_the_cache() {
        for row in built_in_servers() {
            let shown = format!("{row:?}").replace("{cache}", "");
            for word in ["{os}", "{arch}", "{root}", "{file}"] {
                assert!(!shown.contains(word), "{}: {word}", row.name);
            }
        }
    }

    #[test]
    fn unknown_fields_are_rejected_and_write_is_not_configurable() {
        let row = |more: &str| {
            let text = format!(
                r#"{{"name": "a", "language": "a", "command": ["a"], "install": "a"{more}}}"#
            );
            serde_json::from_str::<LspServerConfig>(&text)
        };
        assert!(row("").is_ok());
        assert!(row(r#", "memroy": 1"#).is_err());
        assert!(!row(r#", "write": true"#).is_ok_and(|row| row.write));
    }

    #[test]
    fn a_language_id_is_found_by_file_name_or_longest_extension() {
        let row = serde_json::json!({"name": "go", "language": "go", "command": ["gopls"],
            "extensions": {".ts": "typescript", ".d.ts": "declaration"},
            "files": {"go.mod": "gomod"}, "install": "`get it`"});
        let row: LspServerConfig = serde_json::from_value(row).unwrap();
        for (path, expected) in [
            ("a/go.mod", Some("gomod")),
            ("a/b.ts", Some("typescript")),
            ("b.d.ts", Some("declaration")),
            ("go.mod/x", None),
            ("a.mod", None),
            ("ts", None),
        ] {
            assert_eq!(row.language_id(path), expected, "{path}");
        }
    }
}
