//! `windlass doctor`: what there is to work with on this machine.

use crate::{Exit, screen, setup::Setup};
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
        let told = match Setup::program(name, &root) {
            None => "not found".to_owned(),
            Some(path) => {
                let version = windlass_sandbox::version(&path);
                let version = version.unwrap_or_else(|| "does not tell its version".to_owned());
                format!("{}, {version}", path.display())
            }
        };
        tell(name, &told);
    }
    match setup.and_then(|setup| setup.hosts().map(|_| ())) {
        Ok(()) => Ok(Exit::Done),
        Err(error) => {
            screen::error(&crate::words(&error));
            Ok(Exit::Failed)
        }
    }
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
