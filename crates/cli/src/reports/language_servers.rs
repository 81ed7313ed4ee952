//! The report about language servers: those of the project's languages, and those that were
//! started. Starts none of them.

use super::process_state::{describe_state, log_lines, state_reason};
use crate::setup::LoadedProject;
use std::collections::BTreeSet;
use std::path::PathBuf;
use windlass_lsp::LspServerConfig;
use windlass_project::{FolderTrust, ServerLogs};
use windlass_protocol::display_text::to_one_line;
use windlass_protocol::report::{ReportAction, ReportRow, ReportRowState};
use windlass_toolkit::process_health::ProcessHealthState;

/// The language server for a language of the project.
pub(crate) struct LanguageServerInfo {
    pub(crate) config: LspServerConfig,
    /// The path of its program; `None` if it is not installed.
    pub(crate) program: Option<PathBuf>,
}

/// Returns one server for each language of the project: the first that is installed, or the
/// preferred one.
pub(crate) fn collect_servers(setup: &LoadedProject) -> Vec<LanguageServerInfo> {
    let servers = setup.language_servers();
    let mut seen = BTreeSet::new();
    let mut infos = Vec::new();
    for row in servers.iter().filter(|row| setup.has_project_marker(row)) {
        if !seen.insert(&row.language) {
            continue;
        }
        let mut candidates = servers.iter().filter(|other| other.language == row.language);
        let found = candidates.find_map(|candidate| {
            let program = find_command(setup, &candidate.local, &candidate.command)?;
            Some(LanguageServerInfo { config: candidate.clone(), program: Some(program) })
        });
        let missing = || LanguageServerInfo { config: row.clone(), program: None };
        infos.push(found.unwrap_or_else(missing));
    }
    infos
}

/// Finds a program in the project, if it may come from there (`local`), or in `PATH`.
pub(crate) fn find_command(
    setup: &LoadedProject,
    local: &[String],
    command: &[String],
) -> Option<PathBuf> {
    let mut local = local.iter().map(|name| setup.root.join(name));
    let local = local.find(|path| LoadedProject::path_exists(path));
    local.or_else(|| LoadedProject::find_program(command.first()?, &setup.root))
}

/// Returns the rows of the report.
pub(crate) fn report_rows(setup: &LoadedProject) -> Vec<ReportRow> {
    let logs = ServerLogs::new(&setup.dirs, "lsp");
    let states =
        setup.running_language_servers().map(|servers| servers.states()).unwrap_or_default();
    let is_trusted = setup.config.trust == FolderTrust::Trusted;
    let mut rows = Vec::new();
    let infos = collect_servers(setup);
    for info in &infos {
        let started: Vec<_> =
            states.iter().filter(|(name, ..)| *name == info.config.name).collect();
        if started.is_empty() {
            rows.push(server_row(info, None, is_trusted, &logs));
        }
        for (_, root, state) in started {
            rows.push(server_row(info, Some((root, state)), is_trusted, &logs));
        }
    }
    let configs = setup.language_servers();
    for (name, root, state) in &states {
        let is_listed = infos.iter().any(|info| info.config.name == *name);
        let config = configs.iter().find(|config| config.name == *name);
        if let Some(config) = config.filter(|_| !is_listed) {
            let program = find_command(setup, &config.local, &config.command);
            let info = LanguageServerInfo { config: config.clone(), program };
            rows.push(server_row(&info, Some((root, state)), is_trusted, &logs));
        }
    }
    rows
}

fn server_row(
    info: &LanguageServerInfo,
    started: Option<(&String, &ProcessHealthState)>,
    is_trusted: bool,
    logs: &ServerLogs,
) -> ReportRow {
    let config = &info.config;
    let health = started.map(|(_, state)| state);
    let program = info.program.as_ref().map(|path| path.display().to_string());
    let (state, state_name) = match (&program, is_trusted) {
        (None, _) => (ReportRowState::Warning, "not installed"),
        (Some(_), false) => (ReportRowState::Off, "starts once you trust this folder"),
        (Some(_), true) => describe_state(health),
    };
    let mut details =
        vec![format!("State: {state_name}"), format!("Language: {}", config.language)];
    if let Some(reason) = state_reason(health) {
        details.push(format!("Reason: {}", to_one_line(reason)));
    }
    match &program {
        Some(program) => details.push(format!("Program: {program}")),
        None => details.push(format!("To install it: {}", config.install)),
    }
    if let Some((root, _)) = started {
        details.push(format!("Project folder: {root}"));
    }
    details.extend(log_lines(logs, &config.name));
    let can_restart = started.is_some() && info.program.is_some() && is_trusted;
    ReportRow {
        id: config.name.clone(),
        name: config.name.clone(),
        note: program.unwrap_or_else(|| config.install.clone()),
        columns: vec![config.language.clone(), state_name.to_owned()],
        state: Some(state),
        details: details.join("\n"),
        actions: can_restart.then_some(ReportAction::Restart).into_iter().collect(),
        ..ReportRow::default()
    }
}
