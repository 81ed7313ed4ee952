//! Looking through a folder: at what ripgrep would look at, and of that at what may be seen.
//!
//! Ignore files and hidden names are left out by the rules of ripgrep, and links are not followed.
//! A folder whose ignore files cannot be gone by is left out, and that is said: see `ignored`.
//! The walk goes by paths, and a folder may become a link under way, so what it finds is a name and
//! no more: a [`Found`] is opened, and its time read, beneath the workspace's handle. Start reading
//! at [`World::tree`].

use crate::ignored::{Effect, Flaw, Flaws, Kind};
use crate::world::failed;
use crate::{Error, Glance, Workspace, World};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder, WalkState};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use windlass_protocol::Access;

/// A folder and everything beneath it that may be looked at, or one file.
pub struct Tree<'a> {
    world: &'a World,
    top: PathBuf,
    base: PathBuf,
    flaws: Flaws,
}

/// Which files are wanted.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// As `rg --glob`, relative to the folder that is looked through: one without `/` holds at any
    /// depth, `!` leaves out, and a file that is named so is found although it is ignored. A glob
    /// that ends in `*` or `**` names nothing, so it brings back nothing that is ignored; and
    /// nothing brings back `.git`.
    pub globs: Vec<String>,
}

/// A file that was there when the walk passed.
pub struct Found<'a> {
    world: &'a World,
    path: String,
}

impl World {
    /// A folder to look through, or a single file.
    pub fn tree(&self, path: &str) -> Result<Tree<'_>, Error> {
        let real = self.workspace().locate(path)?;
        self.check(Access::Search { path: real.clone() }, &real)?;
        let root = self.workspace().root();
        if real == "." {
            let (top, base) = (root.to_owned(), root.to_owned());
            return Ok(Tree { world: self, top, base, flaws: Flaws::default() });
        }
        let top = root.join(&real);
        let place = self.find(real)?;
        let data = place.parent.symlink_metadata(&place.name);
        let data = data.map_err(|error| failed(&place.real, error))?;
        let base = match (data.is_dir(), data.is_file()) {
            (true, _) => top.clone(),
            (false, true) => top.parent().unwrap_or(root).to_owned(),
            (false, false) => return Err(Error::Special { path: place.real }),
        };
        Ok(Tree { world: self, top, base, flaws: Flaws::default() })
    }
}

impl Workspace {
    /// The plain files there are, as far as ignore files let them be seen: times and sizes, and
    /// nothing of what stands in them. It may take a while.
    pub fn census(&self, fits: &dyn Fn(&str) -> bool, most: usize) -> Vec<(String, Glance)> {
        let walk = self.rambler(self.root(), &Flaws::default()).build();
        let files = walk.filter_map(|entry| {
            let entry = entry.ok().filter(|entry| entry.file_type().is_some_and(|it| it.is_file()));
            let path = self.below(entry?.path()).filter(|path| fits(path))?;
            self.glance(&path).map(|glance| (path, glance))
        });
        files.take(most).collect()
    }

    /// A walk by the rules of ripgrep from a folder or file of the workspace, as far as its ignore
    /// files can be gone by.
    pub(crate) fn rambler(&self, top: &Path, flaws: &Flaws) -> WalkBuilder {
        let root = self.root();
        let sound = flaws.sound_kinds(top, root);
        let mut walk = WalkBuilder::new(top);
        walk.current_dir(root)
            .git_ignore(sound.contains(&Kind::Git))
            .ignore(sound.contains(&Kind::Ignore))
            .git_exclude(sound.contains(&Kind::Exclude));
        if sound.contains(&Kind::Ripgrep) {
            walk.add_custom_ignore_filename(Kind::Ripgrep.name());
        }
        let flaws = flaws.clone();
        #[cfg(target_os = "macos")]
        let home = std::env::home_dir();
        walk.filter_entry(move |entry| {
            if entry.depth() == 0 || !entry.file_type().is_some_and(|kind| kind.is_dir()) {
                return true;
            }
            #[cfg(target_os = "macos")]
            if home.as_ref().is_some_and(|home| is_guarded(home, entry.path())) {
                return false;
            }
            flaws.let_pass(entry.path())
        });
        walk
    }

    /// A path of a walk as tools write it; nothing for one that no text can name.
    pub(crate) fn below(&self, path: &Path) -> Option<String> {
        let root = self.root().as_os_str().as_encoded_bytes();
        let below = path.as_os_str().as_encoded_bytes().strip_prefix(root)?;
        let below = std::str::from_utf8(below).ok()?;
        let separators: &[char] = if cfg!(windows) { &['\\', '/'] } else { &['/'] };
        let below = below.strip_prefix(separators).unwrap_or(below);
        Some(if cfg!(windows) { below.replace('\\', "/") } else { below.to_owned() })
    }
}

impl<'a> Tree<'a> {
    /// Files in the order of their paths, found as they are asked for, so that whoever has enough
    /// stops early.
    pub fn files(
        &self,
        wanted: &Wanted,
    ) -> Result<impl Iterator<Item = Found<'a>> + use<'a>, Error> {
        let (mut walk, view) = self.prepare(wanted)?;
        walk.sort_by_file_name(Ord::cmp);
        Ok(walk.build().filter_map(move |entry| view.found(&entry.ok()?)))
    }

    /// All files in no order, on as many threads as there are cores, until `stop` says so.
    pub fn each(
        &self,
        wanted: &Wanted,
        stop: &(dyn Fn() -> bool + Sync),
        visit: &(dyn Fn(Found<'a>) + Sync),
    ) -> Result<(), Error> {
        let (mut walk, view) = self.prepare(wanted)?;
        let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
        walk.threads(threads).build_parallel().run(|| {
            Box::new(|entry| {
                if stop() {
                    return WalkState::Quit;
                }
                if let Some(found) = entry.ok().and_then(|entry| view.found(&entry)) {
                    visit(found);
                }
                WalkState::Continue
            })
        });
        Ok(())
    }

    /// What the walks so far could not go by, in sentences.
    pub fn notes(&self) -> Vec<String> {
        self.flaws.all().iter().filter_map(|flaw| self.note(flaw)).collect()
    }

    fn note(&self, flaw: &Flaw) -> Option<String> {
        let name = flaw.kind.name();
        let folder = self.world.workspace().below(&flaw.folder);
        Some(match (flaw.effect, folder.as_deref()) {
            (Effect::LeftOut, Some(folder)) if self.world.reveals(folder) => format!(
                "{folder} was left out, because its {name} is not a plain file of at most 256 KiB"
            ),
            (Effect::LeftOut, Some(_) | None) => return None,
            (Effect::SwitchedOff, folder) => {
                let place = match folder {
                    Some("") => "of the workspace",
                    Some(folder) => &format!("of {folder}"),
                    None => "above the workspace",
                };
                format!(
                    "the {name} {place} is not a plain file of at most 256 KiB, so no {name} was \
                     gone by and files that are ignored may be here"
                )
            }
        })
    }

    fn prepare(&self, wanted: &Wanted) -> Result<(WalkBuilder, View<'a>), Error> {
        let globs: Vec<String> = wanted.globs.iter().map(|glob| tidy(glob)).collect();
        let (leaving, naming): (Vec<&String>, Vec<&String>) =
            globs.iter().partition(|glob| glob.starts_with('!'));
        let sweeping = naming.iter().any(|glob| sweeps(glob));
        let git = "!.git".to_owned();
        let walked = match (sweeping, naming.is_empty()) {
            (true, _) | (_, true) => self.globs(&leaving)?,
            (false, false) => self.globs(&globs.iter().chain([&git]).collect::<Vec<_>>())?,
        };
        let narrow = if sweeping { self.globs(&naming)? } else { Override::empty() };
        let mut walk = self.world.workspace().rambler(&self.top, &self.flaws);
        walk.overrides(walked);
        Ok((walk, View { world: self.world, narrow }))
    }

    fn globs(&self, globs: &[&String]) -> Result<Override, Error> {
        let mut builder = OverrideBuilder::new(&self.base);
        for glob in globs {
            let added = builder.add(glob);
            added.map_err(|error| Error::Glob { glob: (*glob).clone(), reason: reason(error) })?;
        }
        let all = || globs.iter().map(|glob| glob.as_str()).collect::<Vec<_>>().join(" ");
        builder.build().map_err(|error| Error::Glob { glob: all(), reason: reason(error) })
    }
}

/// What a walk shows.
struct View<'a> {
    world: &'a World,
    /// Globs that may leave files out but bring none back.
    narrow: Override,
}

impl<'a> View<'a> {
    fn found(&self, entry: &DirEntry) -> Option<Found<'a>> {
        if !entry.file_type()?.is_file() {
            return None;
        }
        if entry.depth() > 0 && self.narrow.matched(entry.path(), false).is_ignore() {
            return None;
        }
        let path = self.world.workspace().below(entry.path())?;
        self.world.reveals(&path).then_some(Found { world: self.world, path })
    }
}

impl Found<'_> {
    /// Where it is: relative to the workspace, `/` between parts.
    pub fn into_path(self) -> String {
        self.path
    }

    /// Opens it, if it is still a regular file and no part of its path has become a link.
    pub fn open(&self) -> Result<File, Error> {
        self.world.open_beneath(&self.path)
    }

    /// When it was last changed, under the same conditions.
    pub fn modified(&self) -> Result<SystemTime, Error> {
        self.world.modified_beneath(&self.path)
    }
}

/// A glob as it was meant: `./` says nothing, `#` begins no comment, and a folder means what is
/// in it.
fn tidy(glob: &str) -> String {
    let glob = glob.trim();
    let (not, glob) = glob.strip_prefix('!').map_or(("", glob), |glob| ("!", glob));
    let glob = glob.strip_prefix("./").unwrap_or(glob);
    let escape = if glob.starts_with('#') { "\\" } else { "" };
    let inside = if glob.len() > 1 && glob.ends_with('/') { "**" } else { "" };
    format!("{not}{escape}{glob}{inside}")
}

/// True for a glob that would match whatever it meets in a folder, folders included.
fn sweeps(glob: &str) -> bool {
    matches!(glob.rsplit('/').next(), Some("*" | "**" | ""))
}

fn reason(error: ignore::Error) -> String {
    match error {
        ignore::Error::Glob { err, .. } => err,
        other => other.to_string(),
    }
}

/// True for the folders of a home that macOS guards. Already looking into one makes it ask the
/// person whether this program may, so a walk goes there only when it is told to begin there.
#[cfg(any(target_os = "macos", test))]
fn is_guarded(home: &Path, path: &Path) -> bool {
    const GUARDED: [&str; 8] =
        [".Trash", "Desktop", "Documents", "Downloads", "Library", "Movies", "Music", "Pictures"];
    path.parent() == Some(home)
        && path.file_name().is_some_and(|name| GUARDED.iter().any(|guarded| name == *guarded))
}

#[cfg(test)]
mod tests;
