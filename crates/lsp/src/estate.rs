//! What all servers of a workspace share: where they are engaged, which of their programs are there,
//! and who runs.
//!
//! What is not there is remembered for a while, so that an edit costs no search. Start reading at
//! [`Estate::program`].

use crate::server::Server;
use crate::talk::lock;
use crate::{Keeping, Patience, Row};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::time::Instant;
use windlass_sandbox::Workspace;
use windlass_toolkit::Berth;

/// How long it counts whether a program is there.
const REMEMBERED: Duration = Duration::from_secs(30);
/// So many programs are remembered.
const PROGRAMS: usize = 4_096;
/// So many servers may run.
const MOST: usize = 8;
/// So many folders upwards are looked at.
const UPWARDS: usize = 32;
/// What stands for a folder that only the servant may change.
const CACHE: &str = "{cache}";

/// What all servers of a workspace share.
pub(crate) struct Estate {
    pub(crate) berth: Berth,
    pub(crate) keeping: Arc<dyn Keeping>,
    pub(crate) patience: Patience,
    since: Instant,
    /// By row and root.
    programs: Mutex<HashMap<(String, String), Known>>,
    /// Those that were started.
    staff: Mutex<Vec<Weak<Server>>>,
}

/// What is known of a program.
struct Known {
    until: Instant,
    found: Option<PathBuf>,
}

impl Estate {
    pub(crate) fn new(berth: Berth, keeping: Arc<dyn Keeping>, patience: Patience) -> Estate {
        Estate {
            berth,
            keeping,
            patience,
            since: Instant::now(),
            programs: Mutex::default(),
            staff: Mutex::default(),
        }
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        self.berth.workspace()
    }

    /// A path of the workspace as a whole one.
    pub(crate) fn whole(&self, path: &str) -> PathBuf {
        let root = self.workspace().root();
        if path == "." { root.to_owned() } else { root.join(path) }
    }

    /// The time, from anywhere.
    pub(crate) fn now(&self) -> Duration {
        self.since.elapsed()
    }

    /// Where the program of a row is, for a project with this root.
    pub(crate) fn program(&self, row: &Row, root: &str) -> Option<PathBuf> {
        let key = (row.name.clone(), root.to_owned());
        if let Some(known) = lock(&self.programs).get(&key)
            && Instant::now() < known.until
        {
            return known.found.clone();
        }
        let found = self.find(row, root);
        self.remember(key, found.clone());
        found
    }

    /// Somebody tried: it is not there, whatever it looks like.
    pub(crate) fn miss(&self, row: &Row, root: &str) {
        self.remember((row.name.clone(), root.to_owned()), None);
    }

    fn remember(&self, key: (String, String), found: Option<PathBuf>) {
        let mut programs = lock(&self.programs);
        if programs.len() >= PROGRAMS {
            programs.clear();
        }
        programs.insert(key, Known { until: Instant::now() + REMEMBERED, found });
    }

    fn find(&self, row: &Row, root: &str) -> Option<PathBuf> {
        let workspace = self.workspace();
        let local = upwards(root).find_map(|folder| {
            let mut local = row.local.iter().map(|name| under(folder, name));
            local.find(|path| stands(workspace, path))
        });
        if let Some(local) = local {
            return Some(workspace.root().join(local));
        }
        let program = Path::new(row.command.first()?);
        if program.is_absolute() {
            return Some(program.to_owned());
        }
        if program.parent() != Some(Path::new("")) {
            let spelled = program.to_str()?;
            return stands(workspace, spelled).then(|| workspace.root().join(spelled));
        }
        workspace.ground()?.installed(program)
    }

    /// Takes note of one that is started. The one that nobody wanted for longest makes room.
    pub(crate) fn admit(&self, server: &Arc<Server>) {
        let mut staff = lock(&self.staff);
        staff.retain(|known| {
            let known = known.upgrade();
            known.is_some_and(|known| known.is_up() && !Arc::ptr_eq(&known, server))
        });
        let mut others: Vec<_> = staff.iter().filter_map(Weak::upgrade).collect();
        if others.len() >= MOST {
            others.sort_by_key(|other| other.wanted());
            for other in others.iter().take(others.len() + 1 - MOST) {
                other.rest();
            }
        }
        staff.push(Arc::downgrade(server));
    }

    /// A text with the servant's own folder in its place.
    pub(crate) fn filled(&self, text: &str, servant: &str) -> Option<String> {
        if !text.contains(CACHE) {
            return Some(text.to_owned());
        }
        let folder = self.workspace().servant_folder(servant)?;
        Some(text.replace(CACHE, folder.to_str()?))
    }

    /// The same for all texts of a value. What has no place is left out.
    pub(crate) fn filled_in(&self, value: &Value, servant: &str) -> Value {
        match value {
            Value::String(text) => self.filled(text, servant).map_or(Value::Null, Value::String),
            Value::Array(all) => all.iter().map(|item| self.filled_in(item, servant)).collect(),
            Value::Object(all) => {
                let item =
                    |(name, item): (&String, &Value)| (name.clone(), self.filled_in(item, servant));
                Value::Object(all.iter().map(item).collect::<Map<_, _>>())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

/// A folder and those above it, within the workspace, whose root is `.`.
pub(crate) fn upwards<'a>(folder: &'a str) -> impl Iterator<Item = &'a str> {
    let up = |folder: &&'a str| match *folder {
        "." | "" => None,
        folder => Some(folder.rsplit_once('/').map_or(".", |(above, _)| above)),
    };
    std::iter::successors(Some(folder), up).take(UPWARDS)
}

/// The folder that a file lies in.
pub(crate) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(".", |(folder, _)| folder)
}

pub(crate) fn under(folder: &str, name: &str) -> String {
    if folder == "." { name.to_owned() } else { format!("{folder}/{name}") }
}

/// True if a file stands there, or a link to one of the workspace.
pub(crate) fn stands(workspace: &Workspace, path: &str) -> bool {
    let real = || workspace.locate(path).ok().and_then(|real| workspace.glance(&real));
    workspace.glance(path).or_else(real).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_upwards_end_at_the_root() {
        let all = |folder| upwards(folder).collect::<Vec<_>>();
        assert_eq!(all("a/b/c"), ["a/b/c", "a/b", "a", "."]);
        assert_eq!(all("."), ["."]);
        let deep = ["x"; 500].join("/");
        assert_eq!(upwards(&deep).count(), UPWARDS);
        assert_eq!((folder_of("a/b.rs"), folder_of("b.rs")), ("a", "."));
        assert_eq!((under(".", "b"), under("a", "b")), ("b".into(), "a/b".into()));
    }
}
