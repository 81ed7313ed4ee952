//! How things stand, as far as that can be said without building anything.

use super::house::House;
use windlass_project::Standing as Folder;
use windlass_protocol::Mode;
use windlass_protocol::wire::{Standing, Trusted};

/// How things stand in a house.
pub(super) fn of(house: &House, declined: bool) -> Standing {
    let setup = &house.setup;
    let trust = match setup.config.standing {
        Folder::Trusted => Trusted::Yes,
        Folder::Plain | Folder::Untrusted | Folder::Changed if declined => Trusted::No,
        Folder::Changed => Trusted::Changed,
        Folder::Plain | Folder::Untrusted => Trusted::Unasked,
    };
    let model = setup.config.model.as_ref().map(|(name, _)| name.clone());
    // Of a folder that was not looked at no file is opened.
    let branch = match trust {
        Trusted::Yes => windlass_project::branch(&setup.root),
        Trusted::Unasked | Trusted::Changed | Trusted::No => None,
    };
    Standing {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        workspace: as_written(&setup.workspace(), &setup.places.home.display().to_string()),
        root: setup.workspace(),
        branch,
        window: model.as_deref().and_then(|name| setup.window(name)),
        model,
        agent: house.agent.clone().unwrap_or_else(|| "build".to_owned()),
        mode: setup.mode_here(),
        laxest: setup.config.most_lax.unwrap_or(Mode::Full),
        trust,
        sandbox: setup.shelter(),
        notes: Vec::new(),
    }
}

/// A folder as a person writes it.
fn as_written(folder: &str, home: &str) -> String {
    match folder.strip_prefix(home) {
        Some("") => "~".to_owned(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        Some(_) | None => folder.to_owned(),
    }
}
