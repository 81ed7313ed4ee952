//! What may have been meant by a path that leads nowhere.

use crate::World;
use crate::ignored::Flaws;

/// How many paths are suggested at most.
const SUGGESTIONS: usize = 3;

/// How many files and folders are looked at for it.
const ENTRIES: usize = 50_000;

/// How many of them are compared by their whole paths, and by how many characters of those.
const CLOSEST: usize = 50;
const COMPARED: usize = 512;

/// How many pairs of letters are compared in names, which whoever made them chose.
const EFFORT: usize = 50_000_000;

/// How near an existing path is; the smallest is the nearest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Nearness {
    name: usize,
    /// Known of the closest only.
    whole: usize,
    path: String,
}

impl World {
    /// The nearest existing paths for one that does not exist: those of the same name in other
    /// folders, then those of a similar name. Ignored and hidden ones are left out.
    pub fn suggest(&self, path: &str) -> Vec<String> {
        let wanted = path.trim_end_matches('/').to_lowercase();
        let name = last(&wanted);
        if name.is_empty() {
            return Vec::new();
        }
        // A third of a name may be wrong, and of a short one two letters.
        let slack = (name.chars().count() / 3).max(2);
        let mut effort = EFFORT;
        let mut near: Vec<Nearness> = Vec::new();
        let walk = self.workspace().rambler(self.workspace().root(), &Flaws::default()).build();
        for entry in walk.flatten().skip(1).take(ENTRIES) {
            let Some(found) = self.workspace().below(entry.path()) else { continue };
            let lower = found.to_lowercase();
            let theirs = last(&lower);
            if theirs.len().abs_diff(name.len()) > 4 * slack {
                continue;
            }
            let Some(left) = effort.checked_sub(theirs.len() * name.len()) else { break };
            effort = left;
            let distance = strsim::osa_distance(theirs, name);
            let similar = distance <= slack && distance < name.chars().count();
            if similar && self.permits(&found) {
                near.push(Nearness { name: distance, whole: 0, path: found });
            }
        }
        near.sort_unstable();
        near.truncate(CLOSEST);
        for near in &mut near {
            near.whole = strsim::osa_distance(&head(&near.path.to_lowercase()), &head(&wanted));
        }
        near.sort_unstable();
        let paths = near.into_iter().map(|near| near.path);
        paths.filter(|path| self.is_there(path)).take(SUGGESTIONS).collect()
    }

    /// Whether a path of a walk stands beneath the workspace, and is no link.
    fn is_there(&self, real: &str) -> bool {
        let place = self.find(real.to_owned());
        let data = place.ok().and_then(|place| place.parent.symlink_metadata(&place.name).ok());
        data.is_some_and(|data| data.is_file() || data.is_dir())
    }
}

fn head(path: &str) -> String {
    path.chars().take(COMPARED).collect()
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests;
