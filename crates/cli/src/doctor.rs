//! `windlass doctor`: what there is to work with on this machine.

use crate::{Exit, screen, setup::Setup};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use windlass_project::{Flags, Standing};

/// Says what there is. A config that cannot be used does not keep the rest from being said.
pub(crate) fn doctor() -> anyhow::Result<Exit> {
    let (places, root) = Setup::places()?;
    tell("windlass", env!("CARGO_PKG_VERSION"));
    let setup = Setup::read(Flags::default());
    let standing = match setup.as_ref().map(|setup| setup.config.standing) {
        Ok(Standing::Trusted) => ", trusted",
        Ok(Standing::Changed) => ", changed since it was trusted",
        Ok(Standing::Untrusted | Standing::Plain) => ", not trusted",
        Err(_) => "",
    };
    tell("project", &format!("{}{standing}", root.display()));
    tell("config", &places.config.join("windlass.jsonc").display().to_string());
    tell("data", &places.data.display().to_string());
    if let Some(managed) = &places.managed {
        let there = if Setup::is_there(managed) { "" } else { " (there is none)" };
        tell("policy", &format!("{}{there}", managed.display()));
    }
    if let Ok(setup) = &setup {
        bounds(setup);
    }
    for line in &windlass_sandbox::probe().words {
        tell("sandbox", line);
    }
    for name in ["git", "bash", "node", "bun"] {
        tell(name, &program(name, &root).unwrap_or_else(|| "not found".to_owned()));
    }
    if let Ok(setup) = &setup {
        languages(setup);
    }
    match setup.and_then(|setup| setup.hosts().map(|_| ())) {
        Ok(()) => Ok(Exit::Done),
        Err(error) => {
            screen::error(&crate::words(&error));
            Ok(Exit::Failed)
        }
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
fn languages(setup: &Setup) {
    let rows = setup.language_servers();
    let mut told = BTreeSet::new();
    for row in rows.iter().filter(|row| setup.begins_here(row)) {
        if !told.insert(&row.language) {
            continue;
        }
        let same = rows.iter().filter(|other| other.language == row.language);
        let found = same.clone().find_map(|row| {
            Some(format!("{}: {}", row.name, brought(setup, &row.local, &row.command)?.display()))
        });
        let missing = || format!("{}: not installed; {}", row.name, row.install);
        tell("lsp", &found.unwrap_or_else(missing));
    }
    for row in setup.formatters_here() {
        tell(
            "format",
            &match brought(setup, &row.local, &row.command) {
                Some(path) => format!("{}: {}", row.name, path.display()),
                None => format!("{}: not installed; {}", row.name, row.install),
            },
        );
    }
}

/// Where a program is: in the project, if it may bring it, or in the search path.
fn brought(setup: &Setup, local: &[String], command: &[String]) -> Option<PathBuf> {
    let mut local = local.iter().map(|name| setup.root.join(name));
    let local = local.find(|path| Setup::is_there(path));
    local.or_else(|| Setup::program(command.first()?, &setup.root))
}

fn tell(name: &str, what: &str) {
    screen::line(&format!("{name:<9} {}", what.replace('\n', "⏎")));
}

/// What the config says of the mode and the sandbox.
fn bounds(setup: &Setup) {
    let mode = setup.mode_here();
    let whose = match &setup.config.mode {
        Some((_, origin)) => format!(" ({origin})"),
        None => String::new(),
    };
    tell("mode", &format!("{mode}{whose}"));
    let sandbox = &setup.config.sandbox;
    if let Some((false, origin)) = &sandbox.enabled {
        tell("sandbox", &format!("OFF by config ({origin}): commands run with all your rights"));
    }
    if sandbox.network.is_empty() {
        tell("network", "commands reach no host");
    }
    for (host, origin) in &sandbox.network {
        tell("network", &format!("{host} ({origin})"));
    }
    let (folders, notes) = setup.writable();
    for folder in folders {
        tell("write", &folder.display().to_string());
    }
    for note in notes {
        tell("write", &note);
    }
}
