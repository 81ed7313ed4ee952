//! Checkouts: a session works in a clone of its own, which any node of a fleet can restore.
//!
//! A checkout is saved as commits under `refs/windlass/ID/` in the repository that the project was
//! cloned from: one of all files that git does not ignore, and the branches of the checkout. A node
//! that claims a session restores its checkout, unless the last facts of the session come from here.
//! Start reading at [`Checkouts::create`], then `save` and `restore`.
#![allow(
    clippy::disallowed_methods,
    reason = "checkouts are made and removed before a session works in them"
)]

mod checkout;
mod folders;
mod git;
mod logged_changes;
mod repository_checks;
mod saved_state;

use anyhow::{Context, bail};
use checkout::{Checkout, RestoredTree};
use folders::remove_stale_locks;
use git::Git;
use logged_changes::logged_versions;
use saved_state::{CheckoutHead, CheckoutState, CheckpointMessage};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Mutex;
use windlass_protocol::{LogPosition, LogSeq, SessionId, UnixMillis};
use windlass_storage::Log;

/// The folder of `CheckoutProject::store`, beside the checkouts.
const STORE_NAME: &str = "store.git";

/// The checkouts of a node.
pub(crate) struct Checkouts {
    /// By the folder that contains the checkouts of a project.
    projects: BTreeMap<PathBuf, CheckoutProject>,
}

/// A project whose sessions have checkouts.
struct CheckoutProject {
    /// The clone that the administrator has made. Sessions begin with its branch.
    root: PathBuf,
    /// The repository with the objects of all checkouts.
    store: PathBuf,
    /// Held while the store gets the newest commits of the project.
    updating: Mutex<()>,
}

/// The state of a session that a checkout is saved for.
#[derive(Clone, Copy)]
pub(crate) struct SavePoint {
    pub(crate) session: SessionId,
    /// The last fact whose change is in the files.
    pub(crate) head: LogSeq,
    pub(crate) at: UnixMillis,
}

impl Checkouts {
    /// Returns the checkouts in a folder, with a subfolder for each project.
    pub(crate) fn new(folder: &Path, roots: &[PathBuf]) -> anyhow::Result<Checkouts> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let folder = folder.canonicalize()?;
        let mut projects = BTreeMap::new();
        for root in roots {
            let name = root.file_name().context("the file system root cannot have checkouts")?;
            let checkouts = folder.join(name);
            remove_stale_locks(&checkouts);
            let project = CheckoutProject {
                root: root.clone(),
                store: checkouts.join(STORE_NAME),
                updating: Mutex::default(),
            };
            if root.starts_with(&folder) || folder.starts_with(root) {
                bail!("--checkouts must be outside of {}", root.display());
            }
            if let Some(other) = projects.insert(checkouts, project) {
                bail!(
                    "{} and {} have the same name, so their checkouts cannot be told apart",
                    other.root.display(),
                    root.display()
                );
            }
        }
        Ok(Checkouts { projects })
    }

    /// Returns the folders that contain checkouts, with the root of their project.
    pub(crate) fn folders(&self) -> BTreeMap<PathBuf, PathBuf> {
        let folder = |(folder, project): (&PathBuf, &CheckoutProject)| {
            (folder.clone(), project.root.clone())
        };
        self.projects.iter().map(folder).collect()
    }

    /// Creates a checkout of the branch that the root has, with its newest commit. It is saved, so
    /// that every node can restore it.
    pub(crate) async fn create(&self, root: &Path, id: &str) -> anyhow::Result<PathBuf> {
        let project = self.projects.iter().find(|(_, project)| project.root == root);
        let (checkouts, project) = project.context("this folder has no checkouts")?;
        let folder = checkouts.join(id);
        let checkout = project.checkout(&folder)?;
        let origin = project.origin().await?;
        let (head, commit) = {
            let _updating = project.updating.lock().await;
            project.update_store(checkouts, &origin).await?
        };
        let store = project.git();
        if let CheckoutHead::Branch(branch) = &head {
            let own = format!("{}/{branch}", checkout.heads());
            store.run(&["update-ref", &own, &commit]).await?;
        }
        let tree = store.line(&["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).await?;
        checkout.populate(&origin, (&head, Some(&commit)), &tree).await?;
        Ok(folder)
    }

    /// Notes that a claim of this epoch works in a checkout of this machine.
    pub(crate) fn add_epoch(&self, folder: &Path, epoch: u64) -> anyhow::Result<()> {
        let checkout = self.find(folder)?;
        let mut state = checkout.read_state();
        state.add_epoch(epoch);
        checkout.write_state(&state)
    }

    /// Saves a checkout, if it has changed since the last time.
    /// `is_still_ours` tells, after another node has saved it, if this one still has the session.
    pub(crate) async fn save(
        &self,
        folder: &Path,
        point: SavePoint,
        is_still_ours: impl AsyncFnOnce() -> bool,
    ) -> anyhow::Result<()> {
        let checkout = self.find(folder)?;
        let before = checkout.read_state();
        let saved = checkout.save(point, before.saved.as_deref(), is_still_ours).await;
        let mut state = CheckoutState { has_failed: saved.is_err(), ..before.clone() };
        let result = saved.map(|saved| state.saved = Some(saved));
        if state != before {
            checkout.write_state(&state)?;
        }
        result
    }

    /// Restores the checkout of a session that this node has claimed, unless the last fact of the
    /// session is from this machine. Returns what the model must know.
    pub(crate) async fn restore(
        &self,
        folder: &Path,
        session: SessionId,
        log: &Arc<dyn Log>,
    ) -> anyhow::Result<Option<String>> {
        let checkout = self.find(folder)?;
        checkout.remove_locks()?;
        let end = LogPosition::unchecked(LogSeq::MAX);
        let last = log.resume_position(session, end).await?;
        let state = checkout.read_state();
        if last.epoch.is_some_and(|epoch| state.epochs.contains(&epoch)) && folder.is_dir() {
            return Ok(None);
        }
        let origin = checkout.project.origin().await?;
        {
            let _updating = checkout.project.updating.lock().await;
            let parent = folder.parent().context("a checkout is in a folder")?;
            checkout.project.create_store(parent).await?;
        }
        checkout.fetch_saved().await?;
        let store = checkout.project.git();
        let text = store.run(&["cat-file", "commit", &checkout.checkpoint()]).await?;
        let message = CheckpointMessage::parse(&String::from_utf8_lossy(&text))
            .context("the saved checkout is not one of this version")?;
        let parent = format!("{}^1", checkout.checkpoint());
        let commit = store.line(&["rev-parse", "--quiet", "--verify", &parent]).await.ok();
        let changes = logged_versions(&**log, session, (message.position, message.at)).await?;
        let RestoredTree { tree, lost } = checkout.add_changes(&**log, changes).await?;
        if state.has_failed {
            checkout.set_aside()?;
        }
        checkout.clear()?;
        checkout.populate(&origin, (&message.head, commit.as_deref()), &tree).await?;
        Ok(Some(message.describe_restore(&lost)))
    }

    /// Removes a checkout and what is saved of it.
    pub(crate) async fn remove(&self, folder: &Path) -> anyhow::Result<()> {
        let checkout = self.find(folder)?;
        let store = checkout.project.git();
        let names = store.line(&["for-each-ref", "--format=%(refname)", &checkout.refs()]).await?;
        let deletions: String = names.lines().map(|name| format!("delete {name}\n")).collect();
        store.run_with_input(&["update-ref", "--stdin"], deletions.as_bytes()).await?;
        let origin = checkout.project.origin().await?;
        let every = format!("{0}/*:{0}/*", checkout.refs());
        let push = ["push", "--quiet", "--no-verify", "--prune", "--", &origin, &every];
        let pushed = store.with_user_config().run(&push).await;
        checkout.clear()?;
        pushed.map(drop)
    }

    fn find<'a>(&'a self, folder: &'a Path) -> anyhow::Result<Checkout<'a>> {
        let project = folder.parent().and_then(|parent| self.projects.get(parent));
        project.context("this folder is not a checkout")?.checkout(folder)
    }
}

impl CheckoutProject {
    fn checkout<'a>(&'a self, folder: &'a Path) -> anyhow::Result<Checkout<'a>> {
        let id = folder.file_name().and_then(|name| name.to_str());
        let id = id.filter(|id| uuid::Uuid::parse_str(id).is_ok());
        let id = id.with_context(|| format!("{} is not a checkout", folder.display()))?;
        let beside = |extension: &str| folder.with_file_name(format!("{id}.{extension}"));
        let (index, state_file) = (beside("index"), beside("json"));
        Ok(Checkout { project: self, folder, id, index, state_file })
    }

    fn git(&self) -> Git<'_> {
        Git::new(&self.store)
    }

    /// Returns the URL that the root was cloned from.
    async fn origin(&self) -> anyhow::Result<String> {
        let folder = self.root.join(".git");
        // As it is written: git replaces parts of it by the user's config, which may have keys.
        let origin = Git::new(&folder).line(&["config", "--get", "remote.origin.url"]).await;
        origin.with_context(|| {
            format!("{} has no remote `origin`, which checkouts need", self.root.display())
        })
    }

    async fn create_store(&self, checkouts: &Path) -> anyhow::Result<()> {
        if self.store.is_dir() {
            return Ok(());
        }
        std::fs::create_dir_all(checkouts)?;
        self.git().run(&["init", "--quiet", "--bare", "--template="]).await?;
        // They win over those of the files, so that content is saved as it is.
        let attributes = "* -text -ident -filter -working-tree-encoding\n";
        std::fs::create_dir_all(self.store.join("info"))?;
        std::fs::write(self.store.join("info/attributes"), attributes)?;
        Ok(())
    }

    /// Fetches the branch of the root, and returns it with its newest commit.
    async fn update_store(
        &self,
        checkouts: &Path,
        origin: &str,
    ) -> anyhow::Result<(CheckoutHead, String)> {
        self.create_store(checkouts).await?;
        let root = self.root.join(".git");
        let branch = Git::new(&root).line(&["symbolic-ref", "--short", "HEAD"]).await;
        let branch =
            branch.with_context(|| format!("{} has no branch checked out", self.root.display()))?;
        let refspec = format!("+refs/heads/{branch}:refs/heads/{branch}");
        let fetch = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--"];
        let fetch = [&fetch[..], &[origin, &refspec]].concat();
        self.git().with_user_config().run(&fetch).await?;
        let commit = format!("refs/heads/{branch}^{{commit}}");
        let commit = self.git().line(&["rev-parse", "--verify", &commit]).await?;
        Ok((CheckoutHead::Branch(branch), commit))
    }
}
