//! Signs that a project is set up for something.
//!
//! They are looked for in a folder and in those above it, never outside of the workspace. What a
//! file holds is read only where that needs nobody's yes. A sign that cannot be read does not hold.

use regex::RegexBuilder;
use serde::Deserialize;
use serde_json::Value;
use windlass_sandbox::World;

/// How many folders are looked at on the way up.
const HIGHEST: usize = 32;

/// The largest file that is looked into.
const LARGEST: u64 = 1 << 20;

/// The most memory that somebody's expression may take.
const WIDEST: usize = 1 << 20;

/// What stands in a folder, or in one above it, where something is set up.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Sign {
    /// A file of this name.
    File(String),
    /// One of several.
    Any(Vec<Sign>),
    /// A JSON file in which a version stands. The nearest file of that name decides.
    Version {
        /// Its name.
        file: String,
        /// Where in it.
        pointer: String,
        /// The least first number of it.
        least: u64,
    },
    /// A file that holds something.
    Holds {
        /// Its name.
        file: String,
        /// A regular expression, in which `^` and `$` are the ends of lines.
        holds: String,
    },
}

impl Sign {
    /// True if it stands in a folder of the workspace or in one above it.
    pub fn holds(&self, world: &World, folder: &str) -> bool {
        self.found(world, folder).is_some()
    }

    /// The nearest folder, from this one upwards, in which it stands.
    pub fn found<'a>(&self, world: &World, folder: &'a str) -> Option<&'a str> {
        match self {
            Sign::File(file) => {
                upwards(folder).find(|above| real(world, &under(above, file)).is_some())
            }
            Sign::Any(signs) => {
                // The nearest is the one with the longest name, as all lie on one way.
                let found = signs.iter().filter_map(|sign| sign.found(world, folder));
                found.max_by_key(|above| if *above == "." { 0 } else { above.len() })
            }
            Sign::Holds { file, holds } => {
                let mut wanted = RegexBuilder::new(holds);
                let wanted = wanted.multi_line(true).size_limit(WIDEST).build().ok()?;
                upwards(folder).find(|above| {
                    text(world, &under(above, file)).is_some_and(|text| wanted.is_match(&text))
                })
            }
            Sign::Version { file, pointer, least } => {
                let nearest = |above: &&str| real(world, &under(above, file)).is_some();
                let above = upwards(folder).find(nearest)?;
                let held = text(world, &under(above, file))?;
                let held: Value = serde_json::from_str(&held).ok()?;
                (first(held.pointer(pointer)?)? >= *least).then_some(above)
            }
        }
    }
}

/// The first number of a version.
fn first(version: &Value) -> Option<u64> {
    let Some(text) = version.as_str() else { return version.as_u64() };
    let digits = text.trim_start_matches(['v', '=', '^', '~', ' ']);
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end)?.parse().ok()
}

/// A folder of the workspace and those above it, the nearest first. `.` is the workspace itself.
pub fn upwards(folder: &str) -> impl Iterator<Item = &str> {
    let folder = if folder.is_empty() { "." } else { folder };
    std::iter::successors(Some(folder), |folder| above(folder)).take(HIGHEST)
}

fn above(folder: &str) -> Option<&str> {
    match folder {
        "." => None,
        folder => Some(folder.rsplit_once('/').map_or(".", |(above, _)| above)),
    }
}

/// What is called so in a folder of the workspace.
pub fn under(folder: &str, name: &str) -> String {
    if folder == "." { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Where a plain file of the workspace really is. A link leads to it as long as it leads nowhere
/// outside.
pub fn real(world: &World, path: &str) -> Option<String> {
    let real = world.locate(path).ok()?;
    world.workspace().glance(&real).map(|_| real)
}

/// What a file of the workspace holds, if it is small and may be looked at.
pub fn text(world: &World, path: &str) -> Option<String> {
    let real = world.locate(path).ok()?;
    world.workspace().glance(&real).filter(|glance| glance.size <= LARGEST)?;
    let bytes = world.beside(&real).filter(|bytes| bytes.len() as u64 <= LARGEST)?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
