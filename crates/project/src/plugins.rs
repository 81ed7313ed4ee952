//! Plugins: folders of other people that bring skills, commands, agents, servers, hooks and tools.
//!
//! One is copied into a store when the person has seen what it may touch and said yes, and named there
//! by the digest of its bytes. At each start that digest is taken again; where it differs, the
//! plugin is left out. Plugins are the person's: no project brings one. Nothing is started here.
//! Start reading at [`Plugins::survey`], then at [`Plugins::load`].
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

mod contents;
mod manifest;
mod parts;
mod touches;
mod wired;

pub use contents::Contents;
pub use manifest::{Format, Manifest};
pub(crate) use parts::Written;
pub use parts::{Implement, Parts};
pub use touches::Change;
pub(crate) use wired::Wired;

use crate::file::{Diagnostic, Layer, Origin};
use crate::{Error, Places, private};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// The list has no business being longer.
const LONGEST: u64 = 1 << 20;
/// How many plugins there may be.
const MOST: usize = 100;

/// Where a plugin is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A folder.
    Folder(PathBuf),
    /// A repository of git.
    Git {
        /// Its address.
        url: String,
        /// What was taken.
        commit: String,
    },
    /// A packed archive.
    Tarball(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Folder(path) | Source::Tarball(path) => write!(f, "{}", path.display()),
            Source::Git { url, commit } => {
                let short: String = commit.chars().take(12).collect();
                write!(f, "{url} at {short}")
            }
        }
    }
}

/// A plugin that somebody said yes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plugin {
    /// The digest of what was looked at.
    pub digest: String,
    /// Its version then, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where it is from.
    pub source: Source,
}

/// The plugins of the person.
#[derive(Clone, Debug)]
pub struct Plugins {
    places: Places,
    all: BTreeMap<String, Plugin>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    plugins: BTreeMap<String, Plugin>,
}

/// A plugin before anybody has said yes.
#[derive(Clone, Debug)]
pub struct Offer {
    /// What it says of itself.
    pub manifest: Manifest,
    /// What names its bytes.
    pub digest: String,
    /// What it may touch, a line each.
    pub touches: Vec<String>,
    /// What of it cannot be used, and why.
    pub faults: Vec<String>,
    /// What it brings.
    pub parts: Parts,
    contents: Contents,
}

impl Offer {
    /// The hosts that its parts ask for, and what asks.
    pub fn hosts(&self) -> Vec<(String, &[String])> {
        let wants = &self.manifest.wants;
        let servers = wants.servers.iter();
        let servers = servers.map(|(name, want)| (format!("the server {name}"), &*want.network));
        servers.chain([("tools".to_owned(), &*wants.tools.network)]).collect()
    }
}

/// A plugin that is as it was looked at.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What it says of itself.
    pub manifest: Manifest,
    /// Where it is.
    pub lodging: Lodging,
    /// What it brings.
    pub parts: Parts,
}

impl Loaded {
    /// What it may touch, a line each.
    pub fn touches(&self) -> Vec<String> {
        touches::of(&self.manifest, &self.parts, &self.lodging)
    }

    /// What its tools may have besides: to write in the project, and hosts.
    pub fn tools_want(&self) -> (bool, &[String]) {
        let wanted = &self.manifest.wants.tools;
        (wanted.write, &wanted.network)
    }
}

/// Where a plugin is, and what its programs are told of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lodging {
    /// The plugin.
    pub plugin: String,
    /// Its folder in the store, which nobody writes to.
    pub root: PathBuf,
    /// What it may keep.
    pub data: PathBuf,
    digest: String,
    stamp: String,
}

impl Lodging {
    fn of(places: &Places, plugin: &str, digest: &str) -> Lodging {
        // Programs are told real paths: a link on the way would be one more thing to trust.
        let top = places.plugins.canonicalize().unwrap_or_else(|_| places.plugins.clone());
        let short: String = digest.chars().take(12).collect();
        Lodging {
            plugin: plugin.to_owned(),
            root: top.join("store").join(format!("{plugin}-{short}")),
            data: top.join("data").join(plugin),
            digest: digest.to_owned(),
            stamp: String::new(),
        }
    }

    /// What its programs find in their environment.
    pub fn env(&self) -> Vec<(OsString, OsString)> {
        let rows = [
            ("PLUGIN_ROOT", &self.root),
            ("PLUGIN_DATA", &self.data),
            ("CLAUDE_PLUGIN_ROOT", &self.root),
        ];
        rows.map(|(name, path)| (name.into(), path.into())).into()
    }

    /// A text with its folders in the places that stand for them.
    fn put_in(&self, text: &str) -> String {
        let (root, data) = (self.root.display().to_string(), self.data.display().to_string());
        let text = text.replace("${PLUGIN_ROOT}", &root).replace("${CLAUDE_PLUGIN_ROOT}", &root);
        text.replace("${PLUGIN_DATA}", &data).replace("${CLAUDE_PLUGIN_DATA}", &data)
    }

    /// The other way round, for people.
    fn take_out(&self, text: &str) -> String {
        let (root, data) = (self.root.display().to_string(), self.data.display().to_string());
        text.replace(&root, "${PLUGIN_ROOT}").replace(&data, "${PLUGIN_DATA}")
    }

    /// What is different when something in its folder may be: names, sizes and times.
    pub fn stamp(&self) -> String {
        crate::tools::stamp(&self.root)
    }

    /// Says why nothing of it may be run now, if that is so.
    pub fn check(&self) -> Result<(), String> {
        if !self.stamp.is_empty() && self.stamp() == self.stamp {
            return Ok(());
        }
        match Contents::of_store(&self.root) {
            Ok(now) if now.digest() == self.digest => Ok(()),
            Ok(_) | Err(_) => Err(format!(
                "the plugin {} is no longer what you added, so nothing of it is run. Start anew, \
                 and add it again if that is said there",
                self.plugin
            )),
        }
    }
}

impl Plugins {
    /// Reads which there are.
    pub fn read(places: &Places) -> Result<Plugins, Error> {
        let path = list(places);
        let all = match private::read(&path, LONGEST)? {
            None => BTreeMap::new(),
            Some(text) => {
                let read = serde_json::from_str::<List>(&text);
                read.map_err(|error| private::damaged(&path, &error))?.plugins
            }
        };
        let hex =
            |digest: &str| digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit());
        if !all.iter().all(|(name, plugin)| manifest::is_name(name) && hex(&plugin.digest)) {
            return Err(Error::Damaged { path, reason: "a name or a digest is none".to_owned() });
        }
        Ok(Plugins { places: places.clone(), all })
    }

    /// Looks at a plugin: what it is, what it may touch, what of it cannot be used.
    pub fn survey(&self, contents: Contents) -> Result<Offer, Error> {
        let (manifest, mut faults) = Manifest::read(&contents)?;
        let digest = contents.digest();
        let lodging = Lodging::of(&self.places, &manifest.name, &digest);
        let parts = parts::read(&contents, &manifest, &lodging);
        faults.extend(parts.faults.iter().cloned());
        let faults = faults.iter().map(|fault| touches::flat(fault)).collect();
        let touches = touches::of(&manifest, &parts, &lodging);
        Ok(Offer { manifest, digest, touches, faults, parts, contents })
    }

    /// What is different from the plugin of this name that is there; none if there is none.
    pub fn change(&self, offer: &Offer) -> Option<Change> {
        let name = &offer.manifest.name;
        let plugin = self.all.get(name)?;
        let lodging = Lodging::of(&self.places, name, &plugin.digest);
        let before = Contents::of_store(&lodging.root).ok();
        let before = before.filter(|before| before.digest() == plugin.digest);
        Some(Change::between(before.and_then(|before| self.survey(before).ok()), offer))
    }

    /// Keeps a plugin, in place of the one of its name.
    pub fn add(&mut self, offer: &Offer, source: Source) -> Result<(), Error> {
        let name = &offer.manifest.name;
        let _lock = private::lock(&self.places.data, "plugins")?;
        self.all = Plugins::read(&self.places)?.all;
        if self.all.len() >= MOST && !self.all.contains_key(name) {
            let reason = format!("there are {MOST} plugins already; remove one first");
            return Err(Error::Plugin { what: name.clone(), reason });
        }
        let lodging = Lodging::of(&self.places, name, &offer.digest);
        let failed = |source| Error::File { path: lodging.root.clone(), source };
        self.lay_out(offer, &lodging).map_err(failed)?;
        private::make_folder(&lodging.data).map_err(failed)?;
        let (digest, version) = (offer.digest.clone(), offer.manifest.version.clone());
        let before = self.all.insert(name.clone(), Plugin { digest, version, source });
        self.write()?;
        if let Some(before) = before.filter(|before| before.digest != offer.digest) {
            let old = Lodging::of(&self.places, name, &before.digest).root;
            let _ = std::fs::remove_dir_all(old);
        }
        Ok(())
    }

    /// Made beside its place and then given its name, so that nobody finds half of it.
    fn lay_out(&self, offer: &Offer, lodging: &Lodging) -> std::io::Result<()> {
        let place = &lodging.root;
        if Contents::of_store(place).is_ok_and(|there| there == offer.contents) {
            return Ok(());
        }
        remove(place)?;
        let draft = place.with_file_name(format!(".{}-{}", lodging.plugin, std::process::id()));
        remove(&draft)?;
        let written = offer.contents.lay_out(&draft).and_then(|()| std::fs::rename(&draft, place));
        if written.is_err() {
            let _ = std::fs::remove_dir_all(&draft);
        }
        written
    }

    /// Forgets a plugin. What it kept stays if there is anything, and is named.
    pub fn remove(&mut self, name: &str) -> Result<Option<PathBuf>, Error> {
        let _lock = private::lock(&self.places.data, "plugins")?;
        self.all = Plugins::read(&self.places)?.all;
        let Some(plugin) = self.all.remove(name) else { return Ok(None) };
        self.write()?;
        let lodging = Lodging::of(&self.places, name, &plugin.digest);
        let failed = |source| Error::File { path: lodging.root.clone(), source };
        remove(&lodging.root).map_err(failed)?;
        let _ = std::fs::remove_dir(&lodging.data);
        Ok(Some(lodging.data))
    }

    fn write(&self) -> Result<(), Error> {
        let path = list(&self.places);
        let failed = |source| Error::File { path: path.clone(), source };
        let text = serde_json::to_string_pretty(&List { plugins: self.all.clone() });
        let text = text.map_err(|error| failed(error.into()))?;
        private::replace(&path, text.as_bytes()).map_err(failed)
    }

    /// All that there are, by name.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Plugin)> {
        self.all.iter().map(|(name, plugin)| (name.as_str(), plugin))
    }

    /// The one of this name.
    pub fn find(&self, name: &str) -> Option<&Plugin> {
        self.all.get(name)
    }

    /// Reads those that are as they were looked at, and says which are not.
    pub fn load(&self) -> (Vec<Loaded>, Vec<Diagnostic>) {
        let (mut loaded, mut diagnostics) = (Vec::new(), Vec::new());
        for (name, plugin) in &self.all {
            match self.load_one(name, plugin) {
                Ok(one) => loaded.push(one),
                Err(why) => {
                    let file = Some(list(&self.places));
                    let origin = Origin { layer: Layer::Plugin, file, line: 1, column: 1 };
                    let message = format!(
                        "the plugin {name} is left out: {why}. Add it again (it is from {}), or \
                         take it out: windlass plugin remove {name}",
                        plugin.source
                    );
                    diagnostics.push(Diagnostic { origin, message, fatal: false });
                }
            }
        }
        (loaded, diagnostics)
    }

    /// Reads one, if it is as it was looked at.
    pub fn load_one(&self, name: &str, plugin: &Plugin) -> Result<Loaded, String> {
        let mut lodging = Lodging::of(&self.places, name, &plugin.digest);
        // Before it is read, so that what changes in between is noticed later.
        let stamp = lodging.stamp();
        let contents = match Contents::of_store(&lodging.root) {
            Ok(contents) if contents.digest() == plugin.digest => contents,
            Ok(_) => return Err("its files have changed since you added it".to_owned()),
            Err(Error::Plugin { reason, .. }) => {
                return Err(format!("its files changed: {reason}"));
            }
            Err(error) => return Err(error.to_string()),
        };
        lodging.stamp = stamp;
        let (manifest, _) = Manifest::read(&contents).map_err(|error| error.to_string())?;
        if manifest.name != name {
            return Err("it has another name by now".to_owned());
        }
        private::make_folder(&lodging.data).map_err(|error| error.to_string())?;
        let parts = parts::read(&contents, &manifest, &lodging);
        Ok(Loaded { manifest, lodging, parts })
    }
}

/// A folder for what is fetched, gone with whoever has it.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new one in the cache.
    pub fn new(places: &Places) -> Result<Scratch, Error> {
        let path = places.cache.join(format!("fetch-{}", std::process::id()));
        let failed = |source| Error::File { path: path.clone(), source };
        remove(&path).and_then(|()| private::make_folder(&path)).map_err(failed)?;
        Ok(Scratch(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = remove(&self.0);
    }
}

fn list(places: &Places) -> PathBuf {
    places.data.join("plugins.json")
}

fn remove(folder: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
