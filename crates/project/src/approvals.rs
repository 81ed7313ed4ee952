//! Approvals: what the person allowed in a project for good, when they were asked.
//!
//! They are the person's own answers, so they are kept with the person's data and known by the
//! project's real path; a repository cannot bring any along.

use crate::{Error, Places, private, trust};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use windlass_protocol::Millis;

/// Something that is allowed without asking again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The permission key, for example `bash`.
    pub key: String,
    /// What exactly: a path, a command, a host.
    pub subject: String,
    /// When the person said so.
    pub at: Millis,
}

/// The approvals of all projects.
#[derive(Debug)]
pub struct Approvals {
    data: PathBuf,
    projects: Projects,
}

type Projects = BTreeMap<PathBuf, Vec<Approval>>;

#[derive(Default, Deserialize, Serialize)]
struct Stored {
    /// The project's real path, and what is allowed in it, oldest first.
    projects: Projects,
}

/// The file has no business being longer.
const LONGEST: u64 = 16 << 20;
/// No project has more.
const MOST: usize = 1_000;
/// Nobody has looked at a longer one.
const LONGEST_KEY: usize = 256;
const LONGEST_SUBJECT: usize = 16 << 10;

impl Approvals {
    /// Reads them; none if there is no file.
    pub fn read(places: &Places) -> Result<Approvals, Error> {
        let data = places.data.clone();
        let projects = read(&data)?;
        Ok(Approvals { data, projects })
    }

    /// What is allowed in a project, oldest first.
    pub fn of(&self, root: &Path) -> Vec<Approval> {
        let real = trust::real(root).ok();
        real.and_then(|real| self.projects.get(&real).cloned()).unwrap_or_default()
    }

    /// Allows something for good. What is allowed already stays as it is.
    pub fn add(&mut self, root: &Path, key: &str, subject: &str, at: Millis) -> Result<(), Error> {
        let full = |reason: &'static str| Error::NotKept { path: file(&self.data), reason };
        if key.is_empty() || key.len() > LONGEST_KEY || subject.len() > LONGEST_SUBJECT {
            return Err(full("it is longer than what is kept"));
        }
        let root = trust::real(root)?;
        let lock = private::lock(&self.data, "approvals")?;
        let mut projects = read(&self.data)?;
        let list = projects.entry(root).or_default();
        if !list.iter().any(|known| known.key == key && known.subject == subject) {
            if list.len() >= MOST {
                return Err(full("this project has as many as are kept; revoke some"));
            }
            list.push(Approval { key: key.to_owned(), subject: subject.to_owned(), at });
            write(&self.data, &projects)?;
        }
        self.projects = projects;
        drop(lock);
        Ok(())
    }

    /// Takes back the one of this number, counting from 1; `None` if there is no such number.
    pub fn remove(&mut self, root: &Path, number: usize) -> Result<Option<Approval>, Error> {
        let at = number.wrapping_sub(1);
        let taken = self.change(root, |list| (at < list.len()).then(|| list.remove(at)))?;
        Ok(taken.flatten())
    }

    /// Takes back all of a project, and says how many there were.
    pub fn clear(&mut self, root: &Path) -> Result<usize, Error> {
        Ok(self.change(root, |list| std::mem::take(list).len())?.unwrap_or(0))
    }

    fn change<T>(
        &mut self,
        root: &Path,
        change: impl FnOnce(&mut Vec<Approval>) -> T,
    ) -> Result<Option<T>, Error> {
        let root = trust::real(root)?;
        let lock = private::lock(&self.data, "approvals")?;
        let mut projects = read(&self.data)?;
        let changed = projects.get_mut(&root).map(change);
        if changed.is_some() {
            projects.retain(|_, list| !list.is_empty());
            write(&self.data, &projects)?;
        }
        self.projects = projects;
        drop(lock);
        Ok(changed)
    }
}

fn file(data: &Path) -> PathBuf {
    data.join("approvals.json")
}

fn read(data: &Path) -> Result<Projects, Error> {
    let path = file(data);
    let Some(text) = private::read(&path, LONGEST)? else { return Ok(Projects::new()) };
    let stored = serde_json::from_str::<Stored>(&text);
    Ok(stored.map_err(|error| private::damaged(&path, &error))?.projects)
}

fn write(data: &Path, projects: &Projects) -> Result<(), Error> {
    let path = file(data);
    let failed = |source| Error::File { path: path.clone(), source };
    let stored = Stored { projects: projects.clone() };
    let text = serde_json::to_string_pretty(&stored).map_err(|error| failed(error.into()))?;
    if text.len() as u64 > LONGEST {
        let reason = "there are as many as are kept; revoke some";
        return Err(Error::NotKept { path, reason });
    }
    private::replace(&path, text.as_bytes()).map_err(failed)
}

#[cfg(test)]
mod tests;
