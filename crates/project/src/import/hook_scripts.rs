//! Copies the scripts that Claude's hooks run to where hooks can read them, and updates the
//! commands.
//!
//! Hooks run in a sandbox that hides `~/.claude`, which contains logins, and the scripts of a
//! project must be in a folder that `windlass trust` covers.

use super::ImportScope;
use super::plan_builder::{ImportPlanBuilder, ImportedFile};
use super::secret_detection;
use super::source_files::{ImportSourceContent, ImportSourceEntry};

/// The folder of Claude's settings.
const CLAUDE_FOLDER: &str = ".claude/";

/// The prefixes of a path in the project.
const PROJECT_PREFIXES: [&str; 5] = [
    "$CLAUDE_PROJECT_DIR/",
    "\"$CLAUDE_PROJECT_DIR\"/",
    "${CLAUDE_PROJECT_DIR}/",
    "\"${CLAUDE_PROJECT_DIR}\"/",
    "./",
];

/// The prefixes of a path in the home folder.
const HOME_PREFIXES: [&str; 5] = ["~/", "$HOME/", "\"$HOME\"/", "${HOME}/", "\"${HOME}\"/"];

/// Programs that download what they run, which hooks cannot.
const PACKAGE_RUNNERS: [&str; 4] = ["npx", "bunx", "uvx", "pipx"];

/// The extensions of scripts. No other file beside a script is copied: it may be a log or a secret.
const SCRIPT_EXTENSIONS: [&str; 9] = ["sh", "bash", "py", "js", "mjs", "cjs", "ts", "rb", "pl"];

/// Limits a copied file.
const MAX_SCRIPT_BYTES: u64 = 4 << 20;

/// Folders beside scripts that are not copied, like hidden files, which may be secrets.
const SKIPPED_FOLDERS: [&str; 3] = ["node_modules", "__pycache__", "logs"];

/// Folders with Claude Code's own state: conversations, logs, and what is imported otherwise.
const STATE_FOLDERS: [&str; 12] = [
    "agents",
    "commands",
    "debug",
    "file-history",
    "ide",
    "logs",
    "plugins",
    "projects",
    "shell-snapshots",
    "skills",
    "statsig",
    "todos",
];

/// Copies the scripts that a hook's command names and returns the command with their new paths, or
/// the reason why the hook would fail.
pub(super) fn relocate_scripts(
    builder: &mut ImportPlanBuilder<'_>,
    line: &str,
) -> Result<String, String> {
    if let Some(runner) = line.split_whitespace().find(|word| PACKAGE_RUNNERS.contains(word)) {
        return Err(format!(
            "`{runner}` downloads packages, hooks have no network, and a hook that fails denies \
             every call; install the program and name it directly"
        ));
    }
    let mut result = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(CLAUDE_FOLDER) {
        let (before, found) = rest.split_at(start);
        let is_end = |c: char| c.is_whitespace() || "'\"`;|&()<>".contains(c);
        let end = found.find(is_end).unwrap_or(found.len());
        let (path, after) = found.split_at(end);
        let line_before = format!("{result}{before}");
        if is_written(&line_before) {
            return Err(format!(
                "it writes to {path}, hooks cannot write there, and a hook that fails denies every \
                 call"
            ));
        }
        let target = relocate_path(builder, &line_before, path)?;
        result.push_str(before);
        result.push_str(&target);
        rest = after;
    }
    result.push_str(rest);
    Ok(result)
}

/// Returns `true` if a path after this text is written to, with `>`, `>>` or `tee`.
fn is_written(before: &str) -> bool {
    // The path may begin in `before`, as in `>>"$HOME"/`.
    let is_separator = |c: char| c.is_whitespace() || "<>|;&(".contains(c);
    let before = before.trim_end_matches(|c| !is_separator(c)).trim_end();
    if before.ends_with('>') || before.ends_with(">|") {
        return true;
    }
    let command = before.rsplit(['|', ';', '&', '(', '\n']).next().unwrap_or(before);
    let program = command.split_whitespace().find(|word| *word != "sudo").unwrap_or_default();
    program.rsplit('/').next() == Some("tee")
}

/// Copies the script at a path that begins with `.claude/`, and returns its new path after the same
/// prefix.
fn relocate_path(
    builder: &mut ImportPlanBuilder<'_>,
    before: &str,
    path: &str,
) -> Result<String, String> {
    let absolute_home = format!("{}/", builder.source.home().display());
    let is_home = HOME_PREFIXES.iter().any(|prefix| before.ends_with(prefix))
        || before.ends_with(&absolute_home);
    let is_word_start = before.is_empty() || before.ends_with([' ', '\t', '"', '\'', '=', '\n']);
    let is_project =
        is_word_start || PROJECT_PREFIXES.iter().any(|prefix| before.ends_with(prefix));
    match (builder.scope, is_home, is_project) {
        (ImportScope::Project, true, _) => Err(format!(
            "its script ~/{path} is in your home folder, where hooks of a project cannot read it"
        )),
        (ImportScope::User, false, true) => {
            builder.add_note(format!(
                "a hook runs {path} of the project; in a project without that file it fails, and \
                 denies"
            ));
            Ok(path.to_owned())
        }
        (ImportScope::User, true, _) | (ImportScope::Project, false, true) => {
            copy_scripts(builder, path)
        }
        (_, false, false) => Ok(path.to_owned()),
    }
}

fn copy_scripts(builder: &mut ImportPlanBuilder<'_>, path: &str) -> Result<String, String> {
    let inner = path.strip_prefix(CLAUDE_FOLDER).unwrap_or(path);
    if inner.is_empty() || inner.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Ok(path.to_owned());
    }
    let first = inner.split('/').next().unwrap_or(inner);
    let is_hidden = inner.split('/').any(|part| part.starts_with('.'));
    let is_settings = !inner.contains('/') && inner.ends_with(".json");
    if is_hidden || is_settings || STATE_FOLDERS.contains(&first) {
        return Err(format!(
            "it uses {path}, which hooks cannot read, and a hook that fails denies every call"
        ));
    }
    if !builder.source.exists(path) {
        return Err(format!(
            "its script {path} does not exist, and a hook that fails denies every call"
        ));
    }
    let (folder, name) = match inner.split_once('/') {
        None => (String::new(), inner),
        Some(("hooks", name)) => (String::new(), name),
        Some((folder, name)) => (format!("{folder}/"), name),
    };
    let named = entry(name, path);
    match read_script(builder, &named) {
        Ok(file) if inner.contains('/') || is_script(name) || is_program(&file) => {
            add_script(builder, &folder, &named, file);
        }
        Ok(_) => {
            return Err(format!(
                "{path} is not a script, so it is not copied, and a hook that fails denies every \
                 call"
            ));
        }
        Err(reason) => {
            return Err(format!(
                "{path} is not copied, and a hook that fails denies every call: {reason}"
            ));
        }
    }
    // A script may use the scripts beside it.
    let beside = match inner.split_once('/') {
        None => None,
        Some((folder, _)) => builder.source.list_files(&format!("{CLAUDE_FOLDER}{folder}"))?,
    };
    let is_copied = |entry: &ImportSourceEntry| {
        let mut parts = entry.name.split('/');
        let is_skipped = |part: &str| part.starts_with('.') || SKIPPED_FOLDERS.contains(&part);
        is_script(&entry.name) && !parts.any(is_skipped)
    };
    let entries = beside.map(|(entries, _)| entries).unwrap_or_default();
    for entry in entries.iter().filter(|entry| is_copied(entry)) {
        match read_script(builder, entry) {
            Ok(file) => add_script(builder, &folder, entry, file),
            Err(reason) => builder.skip(builder.source.display_name(&entry.full_name), reason),
        }
    }
    let inner = inner.strip_prefix("hooks/").unwrap_or(inner);
    Ok(format!("{}/{inner}", builder.hooks_folder))
}

/// Reads a file, or returns the reason why it is not copied.
fn read_script(
    builder: &ImportPlanBuilder<'_>,
    entry: &ImportSourceEntry,
) -> Result<ImportSourceContent, String> {
    let file = builder.source.read_bytes(&entry.full_name, MAX_SCRIPT_BYTES)?;
    let file = file.ok_or("it does not exist")?;
    let has_secret_name = !is_script(&entry.name) && secret_detection::is_secret_name(&entry.name);
    if has_secret_name || secret_detection::text_has_secret(&String::from_utf8_lossy(&file.bytes)) {
        return Err("it seems to contain a secret".to_owned());
    }
    Ok(file)
}

/// Adds a copy of a file, once.
fn add_script(
    builder: &mut ImportPlanBuilder<'_>,
    folder: &str,
    entry: &ImportSourceEntry,
    file: ImportSourceContent,
) {
    let name = format!("hooks/{folder}{}", entry.name);
    if !builder.files.iter().any(|file| file.name == name) {
        let source = builder.source.display_name(&entry.full_name);
        let ImportSourceContent { bytes, is_executable } = file;
        builder.add_file(ImportedFile { name, source, bytes, is_executable });
    }
}

fn is_script(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| SCRIPT_EXTENSIONS.contains(&extension))
}

fn is_program(file: &ImportSourceContent) -> bool {
    file.is_executable || file.bytes.starts_with(b"#!")
}

fn entry(name: &str, full_name: &str) -> ImportSourceEntry {
    ImportSourceEntry { name: name.to_owned(), full_name: full_name.to_owned() }
}
