//! `windlass doctor`: what there is to work with on this machine, row by row; `/doctor` on the screen
//! shows the same rows. Nothing of the project is run, and no other machine is asked.

use crate::desk::looks::{facts, takes_unicode};
use crate::{Exit, screen, setup::Setup};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use windlass_llm::{is_local, nearby};
use windlass_project::{Flags, Places, Standing};
use windlass_protocol::wire::{Health, Row};
use windlass_sandbox::{Backend, probe};
use windlass_tui::theme::{Depth, Theme};

/// How long a model on this machine may take to say that it is there.
const PATIENCE: Duration = Duration::from_millis(400);
/// A disk with less is low, in bytes; with less than the least nothing can be kept.
const LOW: u64 = 1 << 30;
const LEAST: u64 = 50 << 20;

/// Says what there is. A config that cannot be used does not keep the rest from being said.
pub(crate) async fn doctor(json: bool) -> anyhow::Result<Exit> {
    let (places, root) = Setup::places()?;
    let setup = Setup::read(Flags::default());
    let rows = rows((&places, &root), setup.as_ref()).await;
    if json {
        screen::json(&serde_json::to_string_pretty(&rows)?);
    } else {
        for Row { name, note, .. } in rows {
            screen::line(&format!("{name:<9} {note}"));
        }
    }
    match setup.and_then(|setup| setup.hosts().map(|_| ())) {
        Ok(()) => Ok(Exit::Done),
        Err(error) => {
            screen::error(&crate::words(&error));
            Ok(Exit::Failed)
        }
    }
}

/// Rows in the making.
#[derive(Default)]
struct Rows(Vec<Row>);

impl Rows {
    fn good(&mut self, name: &str, note: &str) {
        self.say(name, Health::Good, note);
    }

    fn less(&mut self, name: &str, note: &str) {
        self.say(name, Health::Less, note);
    }

    fn say(&mut self, name: &str, health: Health, note: &str) {
        self.0.push(Row { name: name.to_owned(), note: note.replace('\n', "⏎"), health });
    }
}

/// What there is.
pub(crate) async fn rows(
    (places, root): (&Places, &Path),
    setup: Result<&Setup, &anyhow::Error>,
) -> Vec<Row> {
    let mut rows = Rows::default();
    rows.good("windlass", env!("CARGO_PKG_VERSION"));
    terminal(&mut rows);
    let standing = match setup.map(|setup| setup.config.standing) {
        Ok(Standing::Trusted) => ", trusted",
        Ok(Standing::Changed) => ", changed since it was trusted",
        Ok(Standing::Untrusted | Standing::Plain) => ", not trusted",
        Err(_) => "",
    };
    rows.good("project", &format!("{}{standing}", root.display()));
    config(&mut rows, places, setup);
    disk(&mut rows, &places.data);
    if let Ok(setup) = setup {
        model(&mut rows, setup).await;
        bounds(&mut rows, setup);
    }
    let found = probe();
    let health = if found.backend == Backend::Off { Health::Bad } else { Health::Good };
    for line in &found.words {
        rows.say("sandbox", health, line);
    }
    for name in ["git", "bash"] {
        match program(name, root) {
            Some(note) => rows.good(name, &note),
            None => rows.less(name, "not found"),
        }
    }
    let scripts: Vec<String> = ["node", "bun"].iter().filter_map(|it| program(it, root)).collect();
    match scripts.is_empty() {
        true => rows.less("scripts", "tools in JavaScript need node or bun; neither was found"),
        false => rows.good("scripts", &scripts.join(" · ")),
    }
    if let Ok(setup) = setup {
        languages(&mut rows, setup);
    }
    rows.0
}

/// What the terminal can show.
fn terminal(rows: &mut Rows) {
    let term = Setup::env("TERM").filter(|term| !term.is_empty());
    let theme = Theme::detect(&facts(Setup::env));
    let colours = match theme.depth {
        Depth::None => "no colours",
        Depth::Sixteen => "16 colours",
        Depth::Many => "256 colours",
        Depth::True => "all colours",
    };
    let size = screen::size().map_or_else(
        || "no terminal here".to_owned(),
        |(columns, lines)| format!("{columns}×{lines}"),
    );
    let unicode = takes_unicode(Setup::env);
    let signs = if unicode { "UTF-8" } else { "ASCII only" };
    let name = term.as_deref().unwrap_or("TERM is not set");
    let note = format!("{name}, {colours}, {size}, {signs}");
    match unicode && theme.depth > Depth::None {
        true => rows.good("terminal", &note),
        false => rows.less("terminal", &note),
    }
}

/// The files that set something, and what is wrong with them.
fn config(rows: &mut Rows, places: &Places, setup: Result<&Setup, &anyhow::Error>) {
    let own = places.config.join("windlass.jsonc");
    let there = if Setup::is_there(&own) { "" } else { " (there is none)" };
    match setup {
        Ok(_) => rows.good("config", &format!("{}{there}", own.display())),
        Err(error) => {
            rows.good("config", &own.display().to_string());
            rows.say("config", Health::Bad, &crate::words(error));
        }
    }
    let wrong = setup.into_iter().flat_map(|setup| &setup.config.diagnostics);
    for diagnostic in wrong {
        rows.less("config", &diagnostic.to_string());
    }
    rows.good("data", &places.data.display().to_string());
    if let Some(managed) = &places.managed {
        let there = if Setup::is_there(managed) { "" } else { " (there is none)" };
        rows.good("policy", &format!("{}{there}", managed.display()));
    }
}

/// How much room there is for sessions.
fn disk(rows: &mut Rows, data: &Path) {
    let Some(free) = Setup::room(data) else { return };
    let note = match free {
        0..LOW => format!("{} MB free", free >> 20),
        _ => format!("{} GB free", free >> 30),
    };
    match free {
        0..LEAST => rows.say("disk", Health::Bad, &format!("{note}: no session can be kept")),
        LEAST..LOW => rows.less("disk", &note),
        _ => rows.good("disk", &note),
    }
}

/// The model, and whether there is a key for it. Only one on this machine is asked whether it is there.
async fn model(rows: &mut Rows, setup: &Setup) {
    let ready: Vec<String> = setup.ready().into_iter().map(|(name, _)| name).collect();
    match ready.is_empty() {
        true => rows.less("keys", "none yet; `windlass auth login PROVIDER` keeps one"),
        false => rows.good("keys", &ready.join(", ")),
    }
    let Some((name, _)) = &setup.config.model else {
        return rows.less("model", "none is set; start `windlass` to choose one");
    };
    let choice = match setup.choose(None) {
        Ok(choice) => choice,
        Err(error) => {
            return rows.say("model", Health::Bad, &format!("{name}: {}", crate::words(&error)));
        }
    };
    let url = &choice.endpoint.base_url;
    let from = choice.endpoint.key.as_ref().map(|key| format!(", with the key in {}", key.from));
    let note = format!("{name}{}", from.unwrap_or_default());
    if !is_local(url) {
        return rows.good("model", &note);
    }
    match nearby::models(url, PATIENCE).await {
        Some(_) => rows.good("model", &format!("{note}; it answers at {url}")),
        None => rows.less("model", &format!("{note}; nothing lists its models at {url}")),
    }
}

/// Where a program is and what it says of its version, if it is there.
fn program(name: &str, root: &Path) -> Option<String> {
    let path = Setup::program(name, root)?;
    let version = windlass_sandbox::version(&path);
    let version = version.unwrap_or_else(|| "does not tell its version".to_owned());
    Some(format!("{}, {version}", path.display()))
}

/// The language servers for what this folder is a project of, and the formatters that it is set up
/// for. None is started.
fn languages(rows: &mut Rows, setup: &Setup) {
    let servers = setup.language_servers();
    let mut told = BTreeSet::new();
    for row in servers.iter().filter(|row| setup.begins_here(row)) {
        if !told.insert(&row.language) {
            continue;
        }
        let same = servers.iter().filter(|other| other.language == row.language);
        let found = same.clone().find_map(|row| {
            Some(format!("{}: {}", row.name, brought(setup, &row.local, &row.command)?.display()))
        });
        match found {
            Some(note) => rows.good("lsp", &note),
            None => rows.less("lsp", &format!("{}: not installed; {}", row.name, row.install)),
        }
    }
    for row in setup.formatters_here() {
        match brought(setup, &row.local, &row.command) {
            Some(path) => rows.good("format", &format!("{}: {}", row.name, path.display())),
            None => rows.less("format", &format!("{}: not installed; {}", row.name, row.install)),
        }
    }
}

/// Where a program is: in the project, if it may bring it, or in the search path.
fn brought(setup: &Setup, local: &[String], command: &[String]) -> Option<PathBuf> {
    let mut local = local.iter().map(|name| setup.root.join(name));
    let local = local.find(|path| Setup::is_there(path));
    local.or_else(|| Setup::program(command.first()?, &setup.root))
}

/// What the config says of the mode and the sandbox.
fn bounds(rows: &mut Rows, setup: &Setup) {
    let mode = setup.mode_here();
    let whose = match &setup.config.mode {
        Some((_, origin)) => format!(" ({origin})"),
        None => String::new(),
    };
    rows.good("mode", &format!("{mode}{whose}"));
    let sandbox = &setup.config.sandbox;
    if let Some((false, origin)) = &sandbox.enabled {
        let note = format!("OFF by config ({origin}): commands run with all your rights");
        rows.less("sandbox", &note);
    }
    if sandbox.network.is_empty() {
        rows.good("network", "commands reach no host");
    }
    for (host, origin) in &sandbox.network {
        rows.good("network", &format!("{host} ({origin})"));
    }
    let (folders, notes) = setup.writable();
    for folder in folders {
        rows.good("write", &folder.display().to_string());
    }
    for note in notes {
        rows.less("write", &note);
    }
}
