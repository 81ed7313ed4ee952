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

mod git;
mod logged_changes;
mod saved_state;

use anyhow::{Context, bail};
use git::Git;
use logged_changes::logged_versions;
use saved_state::{CheckoutHead, CheckoutState, CheckpointMessage};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Mutex;
use windlass_protocol::{BlobRef, FileVersion, LogPosition, LogSeq, SessionId, UnixMillis};
use windlass_storage::Log;

/// A file without a commit that is larger is not saved.
const MAX_FILE_BYTES: u64 = 100 << 20;
/// The folder of `CheckoutProject::store`, beside the checkouts.
const STORE_NAME: &str = "store.git";
/// Stands for a file that is removed from an index.
const NO_OBJECT: &str = "0000000000000000000000000000000000000000";
/// Maximum number of files that are named because they are not saved.
const MAX_NAMED_FILES: usize = 20;

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

/// A checkout of a project.
struct Checkout<'a> {
    project: &'a CheckoutProject,
    folder: &'a Path,
    /// Name of the folder.
    id: &'a str,
    index: PathBuf,
    state_file: PathBuf,
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
        checkout.populate(&origin, (&head, &commit), &tree).await?;
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
        let store = checkout.project.git();
        let head = checkout.fetch_branches().await?;
        let commit = checkout.head_commit(&head).await?;
        let (tree, omitted) = checkout.write_tree(&commit).await?;
        let branches = store.run(&["for-each-ref", &checkout.heads()]).await?;
        let content = format!("{tree} {commit} {head}\n{}", String::from_utf8_lossy(&branches));
        let saved = BlobRef::for_bytes(content.as_bytes()).as_str().to_owned();
        let mut state = checkout.read_state();
        if state.saved.as_deref() == Some(&saved) {
            return Ok(());
        }
        let message = CheckpointMessage { head, position: point.head, at: point.at, omitted };
        let message = message.to_text(point.session);
        let checkpoint = store.line(&["commit-tree", &tree, "-p", &commit, "-m", &message]).await?;
        if checkout.push(&checkpoint).await.is_err() {
            if !is_still_ours().await {
                bail!("another node has the session");
            }
            // What the last node has saved late.
            checkout.fetch_saved().await?;
            checkout.fetch_branches().await?;
            checkout.push(&checkpoint).await?;
        }
        store.run(&["update-ref", &checkout.checkpoint(), &checkpoint]).await?;
        state.saved = Some(saved);
        checkout.write_state(&state)
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
        let end = LogPosition::unchecked(LogSeq::MAX);
        let last = log.resume_position(session, end).await?;
        let epochs = checkout.read_state().epochs;
        if last.epoch.is_some_and(|epoch| epochs.contains(&epoch)) && folder.is_dir() {
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
        let commit = format!("{}^1", checkout.checkpoint());
        let commit = store.line(&["rev-parse", "--verify", &commit]).await?;
        let changes = logged_versions(&**log, session, (message.position, message.at)).await?;
        let tree = checkout.add_changes(&**log, changes).await?;
        checkout.clear()?;
        checkout.populate(&origin, (&message.head, &commit), &tree).await?;
        Ok(Some(message.describe_restore()))
    }

    /// Removes a checkout and what is saved of it.
    pub(crate) async fn remove(&self, folder: &Path) -> anyhow::Result<()> {
        let checkout = self.find(folder)?;
        checkout.clear()?;
        let store = checkout.project.git();
        let names = store.line(&["for-each-ref", "--format=%(refname)", &checkout.refs()]).await?;
        let deletions: String = names.lines().map(|name| format!("delete {name}\n")).collect();
        store.run_with_input(&["update-ref", "--stdin"], deletions.as_bytes()).await?;
        let origin = checkout.project.origin().await?;
        let every = format!("{0}/*:{0}/*", checkout.refs());
        let push = ["push", "--quiet", "--no-verify", "--prune", "--", &origin, &every];
        store.with_user_config().run(&push).await?;
        Ok(())
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
        let git = Git::new(&folder).with_user_config();
        let origin = git.line(&["remote", "get-url", "origin"]).await;
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

impl Checkout<'_> {
    fn refs(&self) -> String {
        format!("refs/windlass/{}", self.id)
    }

    fn heads(&self) -> String {
        format!("{}/heads", self.refs())
    }

    fn checkpoint(&self) -> String {
        format!("{}/checkpoint", self.refs())
    }

    /// Returns commands that read and write the files of the checkout.
    fn files(&self) -> Git<'_> {
        self.project.git().with_work_tree(self.folder, &self.index)
    }

    fn read_state(&self) -> CheckoutState {
        let text = std::fs::read_to_string(&self.state_file).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn write_state(&self, state: &CheckoutState) -> anyhow::Result<()> {
        let next = self.state_file.with_extension("json.new");
        std::fs::write(&next, serde_json::to_string(state)?)?;
        std::fs::rename(&next, &self.state_file)?;
        Ok(())
    }

    /// Removes the folder and what is known about it.
    fn clear(&self) -> anyhow::Result<()> {
        for file in [&self.state_file, &self.index] {
            ignore_missing(std::fs::remove_file(file))?;
        }
        ignore_missing(std::fs::remove_dir_all(self.folder))
            .with_context(|| format!("cannot remove {}", self.folder.display()))
    }

    /// Makes the folder with these files, a branch or commit that it is at, and its branches.
    async fn populate(
        &self,
        origin: &str,
        (head, commit): (&CheckoutHead, &str),
        tree: &str,
    ) -> anyhow::Result<()> {
        let own = self.folder.join(".git");
        std::fs::create_dir_all(self.folder)?;
        let (git, index) = (Git::new(&own), own.join("index"));
        git.run(&["init", "--quiet", "--template="]).await?;
        let alternates = own.join("objects/info");
        std::fs::create_dir_all(&alternates)?;
        let objects = format!("../../../{STORE_NAME}/objects\n");
        std::fs::write(alternates.join("alternates"), objects)?;
        git.run(&["config", "core.bare", "false"]).await?;
        git.run(&["config", "remote.origin.url", origin]).await?;
        let refspec = "+refs/heads/*:refs/remotes/origin/*";
        git.run(&["config", "remote.origin.fetch", refspec]).await?;
        let store = self.project.store.to_string_lossy();
        let branches = format!("+{}/*:refs/heads/*", self.heads());
        let fetch = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"];
        let target = ["--update-head-ok", "--", &store, &branches];
        git.run(&[&fetch[..], &target].concat()).await?;
        match head {
            CheckoutHead::Branch(branch) => {
                let name = format!("refs/heads/{branch}");
                git.run(&["symbolic-ref", "HEAD", &name]).await?;
            }
            CheckoutHead::Commit(commit) => {
                git.run(&["update-ref", "--no-deref", "HEAD", commit]).await?;
            }
        }
        self.files().run(&["read-tree", "--reset", "-u", tree]).await?;
        let git = git.with_work_tree(self.folder, &index);
        git.run(&["read-tree", commit]).await?;
        // It fails if files have changed, which is why they are restored.
        let _ = git.run(&["update-index", "-q", "--refresh"]).await;
        Ok(())
    }

    /// Fetches the branches of the checkout into the store, and returns the one that it is at.
    async fn fetch_branches(&self) -> anyhow::Result<CheckoutHead> {
        let store = self.project.git();
        let folder = self.folder.to_string_lossy();
        let branches = format!("+refs/heads/*:{}/*", self.heads());
        let fetch = ["fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--"];
        store.run(&[&fetch[..], &[&folder, &branches]].concat()).await?;
        let text = std::fs::read_to_string(self.folder.join(".git/HEAD"))?;
        let head = CheckoutHead::parse(&text).context("the checkout is at no branch or commit")?;
        if let CheckoutHead::Commit(_) = &head {
            let detached = format!("+HEAD:{}/detached", self.refs());
            store.run(&[&fetch[..], &[&folder, &detached]].concat()).await?;
        }
        Ok(head)
    }

    async fn head_commit(&self, head: &CheckoutHead) -> anyhow::Result<String> {
        let name = match head {
            CheckoutHead::Branch(branch) => format!("{}/{branch}", self.heads()),
            CheckoutHead::Commit(commit) => commit.clone(),
        };
        self.project.git().line(&["rev-parse", "--verify", &format!("{name}^{{commit}}")]).await
    }

    /// Stores all files that git does not ignore. Returns their tree, and the files that are left out.
    async fn write_tree(&self, commit: &str) -> anyhow::Result<(String, Vec<String>)> {
        let git = self.files();
        if !self.index.is_file() {
            git.run(&["read-tree", commit]).await?;
        }
        let list = ["ls-files", "-z", "--others", "--modified", "--deleted", "--exclude-standard"];
        let changed = git.run(&list).await?;
        let (mut paths, mut omitted) = (Vec::new(), Vec::new());
        for name in changed.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let text = String::from_utf8_lossy(name);
            let metadata = self.folder.join(&*text).symlink_metadata();
            // The name of a folder is that of a repository in the checkout.
            let is_too_large = metadata.is_ok_and(|file| file.len() > MAX_FILE_BYTES);
            if is_too_large || name.ends_with(b"/") {
                omitted.push(text.into_owned());
                continue;
            }
            paths.extend_from_slice(name);
            paths.push(0);
        }
        omitted.truncate(MAX_NAMED_FILES);
        let update = ["update-index", "-z", "--add", "--remove", "--stdin"];
        git.run_with_input(&update, &paths).await?;
        Ok((git.line(&["write-tree"]).await?, omitted))
    }

    /// Sends a checkpoint and the branches to the repository of the project, unless another node has.
    async fn push(&self, checkpoint: &str) -> anyhow::Result<()> {
        let (store, name) = (self.project.git(), self.checkpoint());
        let earlier = store.line(&["for-each-ref", "--format=%(objectname)", &name]).await?;
        let lease = format!("--force-with-lease={name}:{earlier}");
        let origin = self.project.origin().await?;
        let (commit, branches) =
            (format!("{checkpoint}:{name}"), format!("+{0}/*:{0}/*", self.heads()));
        let push = ["push", "--quiet", "--no-verify", "--atomic", "--prune", &lease, "--", &origin];
        store.with_user_config().run(&[&push[..], &[&commit, &branches]].concat()).await?;
        Ok(())
    }

    /// Fetches what is saved.
    async fn fetch_saved(&self) -> anyhow::Result<()> {
        let origin = self.project.origin().await?;
        let every = format!("+{0}/*:{0}/*", self.refs());
        let fetch = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--prune", "--"];
        let fetch = [&fetch[..], &[&origin, &every]].concat();
        self.project.git().with_user_config().run(&fetch).await?;
        Ok(())
    }

    /// Returns the tree of the checkpoint with changes that the log has.
    async fn add_changes(
        &self,
        log: &dyn Log,
        changes: BTreeMap<String, Option<FileVersion>>,
    ) -> anyhow::Result<String> {
        // An index of its own: the files of the folder are not looked at.
        let index = self.index.with_extension("restore");
        ignore_missing(std::fs::remove_file(&index))?;
        let git = self.project.git().with_index(&index);
        git.run(&["read-tree", &self.checkpoint()]).await?;
        let mut entries = String::new();
        for (path, version) in changes {
            let Some(version) = version else {
                entries.push_str(&format!("0 {NO_OBJECT}\t{path}\0"));
                continue;
            };
            // The copy of a large file may be gone; what was saved of it is there.
            let Ok(bytes) = log.get_copy(&version.blob).await else { continue };
            let blob = git.run_with_input(&["hash-object", "-w", "--stdin"], &bytes).await?;
            let blob = String::from_utf8(blob)?;
            let is_executable = version.unix_mode.is_some_and(|mode| mode & 0o111 != 0);
            let mode = if is_executable { "100755" } else { "100644" };
            entries.push_str(&format!("{mode} {}\t{path}\0", blob.trim()));
        }
        let update = ["update-index", "-z", "--replace", "--index-info"];
        git.run_with_input(&update, entries.as_bytes()).await?;
        let tree = git.line(&["write-tree"]).await?;
        ignore_missing(std::fs::remove_file(&index))?;
        Ok(tree)
    }
}

/// Removes the locks of `git` commands that were killed with their node.
fn remove_stale_locks(checkouts: &Path) {
    let store = checkouts.join(STORE_NAME);
    let mut folders = vec![checkouts.to_owned(), store.join("refs"), store];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            let (path, is_ref) =
                (entry.path(), folder.components().any(|part| part.as_os_str() == "refs"));
            let is_stale = entry.metadata().is_ok_and(|file| {
                let age = file.modified().ok().and_then(|time| time.elapsed().ok());
                file.is_file() && age.is_some_and(|age| age > git::GIT_TIMEOUT)
            });
            if is_stale && path.extension().is_some_and(|extension| extension == "lock") {
                let _ = std::fs::remove_file(&path);
            } else if is_ref && path.is_dir() {
                folders.push(path);
            }
        }
    }
}

fn ignore_missing(result: std::io::Result<()>) -> std::io::Result<()> {
    result.or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}
