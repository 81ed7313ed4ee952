//! Implements `windlass doctor`: checks of this machine, one row each; `/doctor` in the terminal UI
//! shows the same rows. It runs nothing from the project and contacts no other machine.

use crate::CliExit;
use crate::reports::language_servers::{self, LanguageServerInfo};
use crate::setup::LoadedProject;
use crate::terminal::environment::{supports_unicode, terminal_info};
use crate::terminal::output;
use std::path::Path;
use std::time::Duration;
use windlass_llm::{is_local_url, local_servers};
use windlass_project::{ConfigFlags, Dirs, FolderTrust};
use windlass_protocol::display_text::pluralize;
use windlass_protocol::frontend_messages::{DoctorCheckStatus, ListRow};
use windlass_sandbox::{SandboxBackend, probe};
use windlass_storage::{Log, SessionFilter, SqliteLog};
use windlass_tui::theme::{ColorDepth, Theme};

/// Timeout for a response from a local model server.
const LOCAL_MODEL_TIMEOUT: Duration = Duration::from_millis(400);
/// Below `LOW_DISK_BYTES` free space counts as low; below `MIN_DISK_BYTES` no session can be
/// stored.
const LOW_DISK_BYTES: u64 = 1 << 30;
const MIN_DISK_BYTES: u64 = 50 << 20;
/// A larger log is left to `windlass session verify`, because that takes seconds.
const MAX_CHECKED_LOG_BYTES: u64 = 50 << 20;

/// Prints the report of [`collect_report`]. An unusable config does not prevent the other checks.
pub(crate) async fn run_doctor(json: bool) -> anyhow::Result<CliExit> {
    let (dirs, root) = LoadedProject::find_dirs()?;
    let setup = LoadedProject::load(ConfigFlags::default());
    let rows = collect_report((&dirs, &root), setup.as_ref()).await;
    if json {
        output::print_json(&serde_json::to_string_pretty(&rows)?);
    } else {
        let (ok, broken) = match supports_unicode(LoadedProject::env_variable) {
            true => ("✓", "✗"),
            false => ("+", "x"),
        };
        for ListRow { name, note, status } in rows {
            let mark = match status {
                DoctorCheckStatus::Ok => ok,
                DoctorCheckStatus::Degraded => "!",
                DoctorCheckStatus::Broken => broken,
            };
            output::print_line(&format!("{mark} {name:<10} {note}"));
        }
    }
    match setup.and_then(|setup| setup.command_hosts().map(|_| ())) {
        Ok(()) => Ok(CliExit::Done),
        Err(error) => {
            output::print_error(&crate::error_chain(&error));
            Ok(CliExit::Failed)
        }
    }
}

/// The rows of a report under construction.
#[derive(Default)]
struct DoctorReport(Vec<ListRow>);

impl DoctorReport {
    fn add_ok(&mut self, name: &str, note: &str) {
        self.add_row(name, DoctorCheckStatus::Ok, note);
    }

    fn add_degraded(&mut self, name: &str, note: &str) {
        self.add_row(name, DoctorCheckStatus::Degraded, note);
    }

    fn add_row(&mut self, name: &str, status: DoctorCheckStatus, note: &str) {
        self.0.push(ListRow { name: name.to_owned(), note: note.replace('\n', "⏎"), status });
    }
}

/// Runs all checks and returns their rows. Without a `LoadedProject` it skips those that need the config.
pub(crate) async fn collect_report(
    (dirs, root): (&Dirs, &Path),
    setup: Result<&LoadedProject, &anyhow::Error>,
) -> Vec<ListRow> {
    let mut rows = DoctorReport::default();
    rows.add_ok("windlass", env!("CARGO_PKG_VERSION"));
    check_terminal(&mut rows);
    let trust = match setup.map(|setup| setup.config.trust) {
        Ok(FolderTrust::Trusted) => ", trusted",
        Ok(FolderTrust::Changed) => ", changed since it was trusted",
        Ok(FolderTrust::Untrusted | FolderTrust::NothingToTrust) => ", not trusted",
        Err(_) => "",
    };
    rows.add_ok("project", &format!("{}{trust}", root.display()));
    check_config(&mut rows, dirs, setup);
    check_disk(&mut rows, &dirs.data);
    check_log(&mut rows, &dirs.data).await;
    if let Ok(setup) = setup {
        check_model(&mut rows, setup).await;
        check_mode_and_sandbox(&mut rows, setup);
    }
    let sandbox = probe();
    let status = if sandbox.backend == SandboxBackend::Off {
        DoctorCheckStatus::Broken
    } else {
        DoctorCheckStatus::Ok
    };
    for line in &sandbox.messages {
        rows.add_row("sandbox", status, line);
    }
    for name in ["git", "bash"] {
        match describe_program(name, root) {
            Some(note) => rows.add_ok(name, &note),
            None => rows.add_degraded(name, "not found"),
        }
    }
    let scripts: Vec<String> =
        ["node", "bun"].iter().filter_map(|name| describe_program(name, root)).collect();
    match scripts.is_empty() {
        true => rows.add_degraded(
            "javascript",
            "neither node nor bun found; tools written in JavaScript need one of them",
        ),
        false => {
            rows.add_ok("javascript", &format!("{} (runs custom tools)", scripts.join(" · ")));
        }
    }
    if let Ok(setup) = setup {
        check_languages(&mut rows, setup);
    }
    rows.0
}

/// Reports the terminal's colors, size and character set.
fn check_terminal(rows: &mut DoctorReport) {
    let term = LoadedProject::env_variable("TERM").filter(|term| !term.is_empty());
    let theme = Theme::detect(&terminal_info(LoadedProject::env_variable));
    let colors = match theme.color_depth {
        ColorDepth::Monochrome => "no colors",
        ColorDepth::Ansi16 => "16 colors",
        ColorDepth::Ansi256 => "256 colors",
        ColorDepth::TrueColor => "true color",
    };
    let size = output::terminal_size().map_or_else(
        || "not a terminal".to_owned(),
        |(columns, lines)| format!("{columns}×{lines}"),
    );
    let unicode = supports_unicode(LoadedProject::env_variable);
    let charset = if unicode { "UTF-8" } else { "ASCII only" };
    let name = term.as_deref().unwrap_or("TERM is not set");
    let note = format!("{name}, {colors}, {size}, {charset}");
    match unicode && theme.color_depth > ColorDepth::Monochrome {
        true => rows.add_ok("terminal", &note),
        false => rows.add_degraded("terminal", &note),
    }
}

/// Reports the config files and their errors.
fn check_config(
    rows: &mut DoctorReport,
    dirs: &Dirs,
    setup: Result<&LoadedProject, &anyhow::Error>,
) {
    let user_config = dirs.config.join("windlass.jsonc");
    let suffix = if LoadedProject::path_exists(&user_config) { "" } else { " (not found)" };
    match setup {
        Ok(_) => rows.add_ok("config", &format!("{}{suffix}", user_config.display())),
        Err(error) => {
            rows.add_ok("config", &user_config.display().to_string());
            rows.add_row("config", DoctorCheckStatus::Broken, &crate::error_chain(error));
        }
    }
    let diagnostics = setup.into_iter().flat_map(|setup| &setup.config.diagnostics);
    for diagnostic in diagnostics {
        rows.add_degraded("config", &diagnostic.to_string());
    }
    for rule in setup.into_iter().flat_map(LoadedProject::dead_rules) {
        rows.add_degraded("permission", &rule.to_string());
    }
    rows.add_ok("data", &dirs.data.display().to_string());
    if let Some(managed) = &dirs.managed_policy {
        let suffix = if LoadedProject::path_exists(managed) { "" } else { " (not found)" };
        rows.add_ok("policy", &format!("{}{suffix}", managed.display()));
    }
}

/// Reports the free disk space for sessions.
fn check_disk(rows: &mut DoctorReport, data: &Path) {
    let Some(free) = LoadedProject::free_disk_bytes(data) else { return };
    let note = match free {
        0..LOW_DISK_BYTES => format!("{} MB free", free >> 20),
        _ => format!("{} GB free", free >> 30),
    };
    match free {
        0..MIN_DISK_BYTES => rows.add_row(
            "disk",
            DoctorCheckStatus::Broken,
            &format!("{note}: too little to save sessions"),
        ),
        MIN_DISK_BYTES..LOW_DISK_BYTES => rows.add_degraded("disk", &note),
        _ => rows.add_ok("disk", &note),
    }
}

/// Reports the session log, and damage to it.
async fn check_log(rows: &mut DoctorReport, data: &Path) {
    if !LoadedProject::path_exists(&data.join("windlass.db")) {
        return;
    }
    let report = async {
        let log = SqliteLog::open(data).await?;
        let (sessions, bytes) =
            (log.list(&SessionFilter::default()).await?, log.stored_bytes().await?);
        let mut is_damaged = false;
        if bytes < MAX_CHECKED_LOG_BYTES {
            is_damaged = !log.check_structure().await?.is_empty();
            for row in &sessions {
                is_damaged |= !log.find_damage(row.session).await?.is_empty();
            }
        }
        let note = format!("{}, {} MB", pluralize(sessions.len(), "session"), bytes / 1_000_000);
        Ok::<_, windlass_storage::StorageError>((note, is_damaged, log.is_read_only()))
    };
    match report.await {
        Ok((note, true, _)) => {
            let note = format!("{note}; damaged: run `windlass doctor --repair`");
            rows.add_row("log", DoctorCheckStatus::Broken, &note);
        }
        Ok((note, false, true)) => {
            let note = format!("{note}; read-only: sessions can be read, but not started");
            rows.add_row("log", DoctorCheckStatus::Broken, &note);
        }
        Ok((note, false, false)) => rows.add_ok("log", &note),
        Err(error) => rows.add_row("log", DoctorCheckStatus::Broken, &error.to_string()),
    }
}

/// Reports the model and its API key. Contacts the model server only if it is on this machine.
async fn check_model(rows: &mut DoctorReport, setup: &LoadedProject) {
    let ready: Vec<String> = setup.ready_providers().into_iter().map(|(name, _)| name).collect();
    let (with_key, without_key): (Vec<&str>, Vec<&str>) =
        ready.iter().map(String::as_str).partition(|name| setup.has_key(name));
    match (with_key.as_slice(), without_key.as_slice()) {
        ([], []) => rows.add_degraded("keys", "none; add one with `windlass auth login PROVIDER`"),
        ([], names) => {
            let names = names.join(", ");
            rows.add_ok("keys", &format!("none for {names} (no key needed or set)"));
        }
        (names, _) => rows.add_ok("keys", &names.join(", ")),
    }
    let Some((name, _)) = &setup.config.model else {
        return rows.add_degraded("model", "not set; start `windlass` to choose one");
    };
    let choice = match setup.choose_model(None) {
        Ok(choice) => choice,
        Err(error) => {
            return rows.add_row(
                "model",
                DoctorCheckStatus::Broken,
                &format!("{name}: {}", crate::error_chain(&error)),
            );
        }
    };
    let url = &choice.endpoint.base_url;
    let key_source =
        choice.endpoint.api_key.as_ref().map(|key| format!(", API key in {}", key.source));
    let note = format!("{name}{}", key_source.unwrap_or_default());
    if !is_local_url(url) {
        return rows.add_ok("model", &note);
    }
    match local_servers::list_local_models(url, LOCAL_MODEL_TIMEOUT).await {
        Some(_) => rows.add_ok("model", &format!("{note}; server responds at {url}")),
        None => rows.add_degraded("model", &format!("{note}; no model server responds at {url}")),
    }
}

/// Returns the path and `--version` output of a program, if it is installed.
fn describe_program(name: &str, root: &Path) -> Option<String> {
    let path = LoadedProject::find_program(name, root)?;
    let version = windlass_sandbox::program_version(&path);
    let version = version.unwrap_or_else(|| "unknown version".to_owned());
    Some(format!("{}, {version}", path.display()))
}

/// Reports the language servers for the languages of this project, and the formatters that it is
/// configured for. Starts none of them.
fn check_languages(rows: &mut DoctorReport, setup: &LoadedProject) {
    for LanguageServerInfo { config, program } in language_servers::collect_servers(setup) {
        match program {
            Some(path) => rows.add_ok("lsp", &format!("{}: {}", config.name, path.display())),
            None => rows.add_degraded(
                "lsp",
                &format!("{}: not installed; {}", config.name, config.install),
            ),
        }
    }
    for row in setup.project_formatters() {
        match language_servers::find_command(setup, &row.local, &row.command) {
            Some(path) => rows.add_ok("format", &format!("{}: {}", row.name, path.display())),
            None => rows
                .add_degraded("format", &format!("{}: not installed; {}", row.name, row.install)),
        }
    }
}

/// Reports the configured mode, sandbox, network hosts and writable folders.
fn check_mode_and_sandbox(rows: &mut DoctorReport, setup: &LoadedProject) {
    let mode = setup.effective_mode();
    let origin = match &setup.config.mode {
        Some((_, origin)) => format!(" ({origin})"),
        None => String::new(),
    };
    rows.add_ok("mode", &format!("{mode}{origin}"));
    let sandbox = &setup.config.sandbox;
    if let Some((false, origin)) = &sandbox.enabled {
        let note =
            format!("OFF by config ({origin}): commands run with full access to your account");
        rows.add_degraded("sandbox", &note);
    }
    if sandbox.network.is_empty() {
        rows.add_ok("network", "blocked for commands");
    }
    for (host, origin) in &sandbox.network {
        rows.add_ok("network", &format!("{host} ({origin})"));
    }
    for folder in &sandbox.read {
        rows.add_ok("read", folder);
    }
    let (folders, notes) = setup.writable_folders();
    for folder in folders {
        rows.add_ok("write", &folder.display().to_string());
    }
    for note in notes {
        rows.add_degraded("write", &note);
    }
}
