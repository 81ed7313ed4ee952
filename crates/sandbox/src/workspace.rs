//! The workspace: one folder, held by its handle.

#[cfg(not(target_os = "linux"))]
use crate::elsewhere::Yards;
use crate::passage::Network;
#[cfg(target_os = "linux")]
use crate::shell::Yards;
use crate::{Error, Ledger, World};
use cap_std::fs::Dir;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use windlass_permission::Grant;
use windlass_protocol::Access;
use windlass_protocol::text::hides;

/// A file, seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    /// When it was last changed, counted from 1970.
    pub changed: std::time::Duration,
    /// How many bytes it has.
    pub size: u64,
}

/// The folder a session works in. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
    dir: Arc<Dir>,
    pub(crate) yards: Option<Arc<Yards>>,
    /// Where servants keep what they fetch.
    pub(crate) cache: Option<Arc<Path>>,
    pub(crate) network: Network,
}

impl Workspace {
    /// Takes hold of a folder. From here on it is reached by its handle, so renaming a parent of
    /// it, or replacing one by a link, changes nothing.
    #[allow(clippy::disallowed_methods, reason = "the one place where ambient authority enters")]
    pub fn at(root: &Path) -> Result<Workspace, Error> {
        let failed = |source| Error::System { path: root.display().to_string(), source };
        let root = root.canonicalize().map_err(failed)?;
        let dir = Dir::open_ambient_dir(&root, cap_std::ambient_authority()).map_err(failed)?;
        Ok(Workspace {
            root,
            dir: Arc::new(dir),
            yards: None,
            cache: None,
            network: Network::default(),
        })
    }

    /// Where it is, without links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Opens the workspace as wide as the grant, for looking.
    pub fn look(&self, grant: Grant) -> World {
        World::new(self.clone(), grant, None)
    }

    /// Opens the workspace as wide as the grant. What changes goes on record first.
    pub fn open(&self, grant: Grant, ledger: Arc<dyn Ledger>) -> World {
        World::new(self.clone(), grant, Some(ledger))
    }

    /// When a plain file was last changed, and how long it is; nothing of what stands in it.
    pub fn glance(&self, real: &str) -> Option<Glance> {
        let data = self.dir.symlink_metadata(real).ok().filter(|data| data.is_file())?;
        let changed = data.modified().ok()?.into_std().duration_since(std::time::UNIX_EPOCH);
        Some(Glance { changed: changed.unwrap_or_default(), size: data.len() })
    }

    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// An access with its path resolved, so that permission decides on what would really be
    /// touched.
    pub fn resolve(&self, access: &Access) -> Result<Access, Error> {
        Ok(match access {
            Access::Read { path } => Access::Read { path: self.locate(path)? },
            Access::Search { path } => Access::Search { path: self.locate(path)? },
            Access::Edit { path } => Access::Edit { path: self.locate(path)? },
            Access::Run { command, folder } => {
                Access::Run { command: command.clone(), folder: self.locate(folder)? }
            }
            Access::Recall { .. }
            | Access::Skill { .. }
            | Access::Connect { .. }
            | Access::Fetch { .. }
            | Access::Leave { .. }
            | Access::Task { .. }
            | Access::Use { .. }
            | Access::Engage { .. }
            | Access::Accept { .. } => access.clone(),
        })
    }

    /// An access with its path as it was spelled, but in the form rules are written in: relative
    /// to the workspace, without `.` and doubled slashes. Looks at nothing.
    pub fn spelled(&self, access: &Access) -> Access {
        let tidy = |path: &String| match self.relative(path) {
            Ok(path) => {
                let parts = path.components().filter(|part| *part != Component::CurDir);
                let parts: Vec<_> = parts.map(|part| part.as_os_str().to_string_lossy()).collect();
                if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
            }
            Err(_) => path.clone(),
        };
        match access {
            Access::Read { path } => Access::Read { path: tidy(path) },
            Access::Search { path } => Access::Search { path: tidy(path) },
            Access::Edit { path } => Access::Edit { path: tidy(path) },
            Access::Run { command, folder } => {
                Access::Run { command: command.clone(), folder: tidy(folder) }
            }
            Access::Recall { .. }
            | Access::Skill { .. }
            | Access::Connect { .. }
            | Access::Fetch { .. }
            | Access::Leave { .. }
            | Access::Task { .. }
            | Access::Use { .. }
            | Access::Engage { .. }
            | Access::Accept { .. } => access.clone(),
        }
    }

    /// Where a path as a model spelled it really leads: relative to the workspace, `/` between
    /// parts, without `.`, `..` or links. What does not exist yet is named by its nearest
    /// existing folder.
    pub fn locate(&self, spelled: &str) -> Result<String, Error> {
        let relative = self.relative(spelled)?;
        // What is not a link is where its folder is, however often it is replaced meanwhile: a name
        // asked for while that happens would come back as one of a file that is gone.
        if let (Some(folder), Some(Component::Normal(name))) =
            (relative.parent(), relative.components().next_back())
            && self.dir.symlink_metadata(&relative).is_ok_and(|data| !data.is_symlink())
            && let (Ok(folder), Some(name)) = (self.real(folder, spelled), name.to_str())
        {
            return Ok(if folder == "." { name.to_owned() } else { format!("{folder}/{name}") });
        }
        self.real(&relative, spelled)
    }

    fn real(&self, relative: &Path, spelled: &str) -> Result<String, Error> {
        let outside = || Error::Outside { path: spelled.to_owned() };
        let mut tail = Vec::new();
        let mut head = relative;
        let base = loop {
            match self.dir.canonicalize(if head == Path::new("") { Path::new(".") } else { head }) {
                Ok(base) => break base,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    match head.components().next_back() {
                        Some(Component::Normal(name)) => tail.push(name),
                        _ => return Err(outside()),
                    }
                    head = head.parent().ok_or_else(outside)?;
                }
                // cap-std reports an escape as a refusal that no system call made.
                Err(error) if error.raw_os_error().is_none() => return Err(outside()),
                Err(source) => return Err(Error::System { path: spelled.to_owned(), source }),
            }
        };
        let parts = base.iter().chain(tail.into_iter().rev());
        let mut real: Vec<&str> = Vec::new();
        for part in parts {
            match part.to_str() {
                Some("." | "") => {}
                Some("..") | None => return Err(outside()),
                Some(part) => real.push(part),
            }
        }
        Ok(if real.is_empty() { ".".to_owned() } else { real.join("/") })
    }

    /// The path below the root; an absolute one must already begin with it.
    fn relative(&self, spelled: &str) -> Result<PathBuf, Error> {
        // A path is shown to a person who decides about it, so it must look like what it is.
        let deceives = |c: char| c.is_control() || hides(c);
        if spelled.is_empty() || spelled.contains(deceives) {
            return Err(Error::Malformed { path: spelled.to_owned() });
        }
        let path = Path::new(spelled);
        if !path.has_root() && !path.is_absolute() {
            // Without a slash at its end, which would follow a link.
            return Ok(path.components().collect());
        }
        let below = path.strip_prefix(&self.root);
        below
            .map(|below| below.components().collect())
            .map_err(|_| Error::Outside { path: spelled.to_owned() })
    }
}
