//! Copies the scripts that Claude's hooks run to where hooks can read them, and updates the
//! commands.
//!
//! Hooks run in a sandbox that hides `~/.claude`, which contains logins, and the scripts of a
//! project must be in a folder that `windlass trust` covers.

use super::ImportScope;
use super::agents_and_skills::copy_file;
use super::plan_builder::ImportPlanBuilder;
use super::source_files::ImportSourceEntry;

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
        let target = relocate_path(builder, &format!("{result}{before}"), path)?;
        result.push_str(before);
        result.push_str(&target);
        rest = after;
    }
    result.push_str(rest);
    Ok(result)
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
    // A script may use the files beside it.
    let (folder, entries) = match inner.split_once('/') {
        None => (String::new(), vec![entry(inner, path)]),
        Some((folder, _)) => {
            let listed = builder.source.list_files(&format!("{CLAUDE_FOLDER}{folder}"))?;
            let target = if folder == "hooks" { String::new() } else { format!("{folder}/") };
            (target, listed.map(|(entries, _)| entries).unwrap_or_default())
        }
    };
    let is_skipped = |entry: &ImportSourceEntry| {
        let mut parts = entry.name.split('/');
        parts.any(|part| part.starts_with('.') || SKIPPED_FOLDERS.contains(&part))
    };
    for entry in entries.iter().filter(|entry| !is_skipped(entry)) {
        let name = format!("hooks/{folder}{}", entry.name);
        if !builder.files.iter().any(|file| file.name == name) {
            copy_file(builder, entry, format!("hooks/{folder}").trim_end_matches('/'));
        }
    }
    let inner = inner.strip_prefix("hooks/").unwrap_or(inner);
    Ok(format!("{}/{inner}", builder.hooks_folder))
}

fn entry(name: &str, full_name: &str) -> ImportSourceEntry {
    ImportSourceEntry { name: name.to_owned(), full_name: full_name.to_owned() }
}
