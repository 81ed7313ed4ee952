//! The mode and the sandbox: what the person chooses, within what the managed policy allows.

use super::{Config, Walls};
use crate::file::{Diagnostic, File, Layer, Origin};
use serde_json::Value;
use std::path::{Component, Path, PathBuf};
use windlass_protocol::Mode;

/// What commands are kept in, as far as anybody says so.
#[derive(Clone, Debug, Default)]
pub struct Sandbox {
    /// Whether there is one, and who says so.
    pub enabled: Option<(bool, Origin)>,
    /// Who keeps it on for good; nobody else can switch it off.
    pub forced: Option<Origin>,
    /// The hosts that commands may reach, as they are written, and where each stands. Whoever opens
    /// the way to them says whether they can be used.
    pub network: Vec<(String, Origin)>,
    /// Folders besides the project that commands may write to, as absolute paths.
    pub write: Vec<String>,
}

/// What the managed policy has the last word on.
#[derive(Default)]
pub(super) struct Held {
    mode: Option<Origin>,
    network: Option<Origin>,
    write: Option<Origin>,
}

impl Config {
    /// The mode in force, where `default` holds if nobody chose one.
    pub fn mode_or(&self, default: Mode) -> Mode {
        let chosen = self.mode.as_ref().map_or(default, |(mode, _)| *mode);
        self.most_lax.map_or(chosen, |most| chosen.min(most))
    }

    /// True if the managed policy has the last word on which hosts commands may reach.
    pub fn network_is_held(&self) -> bool {
        self.held.network.is_some()
    }

    /// Takes over what a file says. A project has no say in it.
    pub(super) fn take_bounds(
        &mut self,
        layer: Layer,
        mode: Option<Mode>,
        walls: Option<Walls>,
        file: &mut File,
    ) {
        if layer == Layer::Project {
            if mode.is_some() {
                file.fault("/mode", "a project cannot choose the mode");
            }
            if walls.is_some() {
                file.fault("/sandbox", "a project cannot change the sandbox");
            }
            return;
        }
        if let Some(mode) = mode {
            let origin = file.origin("/mode").clone();
            match layer {
                Layer::Managed => {
                    self.show("mode.laxest", mode.name(), &origin);
                    self.most_lax = Some(mode);
                    self.held.mode = Some(origin);
                }
                Layer::User | Layer::Plugin | Layer::Project | Layer::Flag => {
                    self.choose_mode(mode, origin)
                }
            }
        }
        if let Some(walls) = walls {
            self.take_walls(layer, walls, file);
        }
    }

    /// Chooses a mode, or the laxest there may be.
    pub(super) fn choose_mode(&mut self, mode: Mode, origin: Origin) {
        let held = self.most_lax.zip(self.held.mode.clone()).filter(|(most, _)| mode > *most);
        let (mode, origin) = match held {
            None => (mode, origin),
            Some((most, at)) => {
                let message = format!(
                    "the mode `{mode}` is laxer than the policy of this machine allows ({at}); \
                     `{most}` is used"
                );
                self.diagnostics.push(Diagnostic { origin, message, fatal: false });
                (most, at)
            }
        };
        self.show("mode", mode.name(), &origin);
        self.mode = Some((mode, origin));
    }

    /// Switches the sandbox on or off, unless it is kept on.
    pub(super) fn switch_sandbox(&mut self, enabled: bool, origin: Origin) {
        match &self.sandbox.forced {
            Some(at) if !enabled => {
                let message =
                    format!("the policy of this machine keeps the sandbox on ({at}); ignored");
                self.diagnostics.push(Diagnostic { origin, message, fatal: false });
            }
            // Whoever says the same as the policy does not take its place.
            Some(_) => {}
            None => {
                self.show("sandbox.enabled", &enabled.to_string(), &origin);
                self.sandbox.enabled = Some((enabled, origin));
            }
        }
    }

    fn take_walls(&mut self, layer: Layer, walls: Walls, file: &mut File) {
        if let Some(enabled) = walls.enabled {
            let origin = file.origin("/sandbox/enabled").clone();
            self.switch_sandbox(enabled, origin.clone());
            self.sandbox.forced = self
                .sandbox
                .forced
                .take()
                .or_else(|| (layer == Layer::Managed && enabled).then_some(origin));
        }
        if let Some(hosts) = walls.network {
            let at = "/sandbox/network";
            if self.takes(self.held.network.clone(), at, file) {
                let origin = file.origin(at).clone();
                self.show("sandbox.network", &Value::from(hosts.clone()).to_string(), &origin);
                self.held.network = (layer == Layer::Managed).then_some(origin);
                let hosts = hosts.into_iter().enumerate();
                let placed = hosts
                    .map(|(number, host)| (host, file.origin(&format!("{at}/{number}")).clone()));
                self.sandbox.network = placed.collect();
            }
        }
        if let Some(folders) = walls.write {
            let at = "/sandbox/write";
            let mut absolute = Vec::new();
            for (number, folder) in folders.iter().enumerate() {
                match self.writable(folder) {
                    Ok(folder) => absolute.push(folder),
                    Err(why) => {
                        let message = format!("`{}` {why}", folder.escape_debug());
                        file.fault(&format!("{at}/{number}"), &message);
                    }
                }
            }
            if self.takes(self.held.write.clone(), at, file) {
                let origin = file.origin(at).clone();
                self.show("sandbox.write", &Value::from(absolute.clone()).to_string(), &origin);
                self.held.write = (layer == Layer::Managed).then_some(origin);
                self.sandbox.write = absolute;
            }
        }
    }

    /// False, and said, if the policy's own list is the only one that counts.
    fn takes(&mut self, held: Option<Origin>, pointer: &str, file: &File) -> bool {
        let Some(held) = held else { return true };
        let message =
            format!("only the list in the policy of this machine counts ({held}); ignored");
        let origin = file.origin(pointer).clone();
        self.diagnostics.push(Diagnostic { origin, message, fatal: false });
        false
    }

    /// The folder that an entry means, unless commands that write there could widen what they may do
    /// the next time.
    fn writable(&self, folder: &str) -> Result<String, &'static str> {
        let path = match folder.strip_prefix("~/") {
            Some(below) => self.places.home.join(below),
            None => Path::new(folder).to_owned(),
        };
        if !path.is_absolute() || folder.contains('\0') {
            return Err("is no absolute path and does not begin with `~/`");
        }
        if path.components().any(|part| part == Component::ParentDir) {
            return Err("has `..` in it; write where it leads");
        }
        // Without `.` and what else means nothing.
        let path: PathBuf = path.components().collect();
        let named = |place: &Path| [place.to_owned(), real(place)];
        if named(&self.places.home).iter().any(|home| home.starts_with(&path)) {
            return Err("holds your whole home folder; name a folder in it");
        }
        let ours = [&self.places.config, &self.places.data];
        if ours.into_iter().flat_map(|ours| named(ours)).any(|ours| overlap(&ours, &path)) {
            return Err("holds Windlass's own files, which no command may change");
        }
        if named(&self.root).iter().any(|root| path.starts_with(root)) {
            return Err("is in the project, where commands may write anyway; remove it");
        }
        path.to_str().map(str::to_owned).ok_or("is not text")
    }
}

fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Where a path leads, as far as that can be said.
#[allow(clippy::disallowed_methods, reason = "project is the door to config files")]
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
