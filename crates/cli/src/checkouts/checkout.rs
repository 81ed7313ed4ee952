//! One checkout: its files and branches, as they are read, saved and made.
#![allow(
    clippy::disallowed_methods,
    reason = "checkouts are made and removed before a session works in them"
)]

use super::folders::{find_file, ignore_missing, join_names, remove_folder, split_names};
use super::git::Git;
use super::saved_state::{CheckoutHead, CheckoutState, CheckpointMessage};
use super::{CheckoutProject, SavePoint, repository_checks};
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use url::Url;
use windlass_protocol::{BlobRef, FileVersion};
use windlass_storage::{Log, StorageError};

/// A file without a commit that is larger is not saved.
const MAX_FILE_BYTES: u64 = 100 << 20;
/// Maximum number of files that are named because they are not saved.
const MAX_NAMED_FILES: usize = 20;
/// Maximum number of files that are left out because they cannot be read.
const MAX_UNREADABLE_FILES: usize = 100;
/// Stands for a file that is removed from an index.
const NO_OBJECT: &str = "0000000000000000000000000000000000000000";

/// A checkout of a project.
pub(super) struct Checkout<'a> {
    pub(super) project: &'a CheckoutProject,
    pub(super) folder: &'a Path,
    /// Name of the folder.
    pub(super) id: &'a str,
    pub(super) index: PathBuf,
    pub(super) state_file: PathBuf,
}

/// A tree that was saved, with the changes since.
pub(super) struct RestoredTree {
    pub(super) tree: String,
    /// Files whose last changes are no longer stored.
    pub(super) lost: Vec<String>,
}

impl Checkout<'_> {
    pub(super) fn refs(&self) -> String {
        format!("refs/windlass/{}", self.id)
    }

    pub(super) fn heads(&self) -> String {
        format!("{}/heads", self.refs())
    }

    pub(super) fn checkpoint(&self) -> String {
        format!("{}/checkpoint", self.refs())
    }

    /// Returns commands that read and write the files of the checkout.
    fn files(&self) -> Git<'_> {
        self.project.git().with_work_tree(self.folder, &self.index)
    }

    pub(super) fn read_state(&self) -> CheckoutState {
        let text = std::fs::read_to_string(&self.state_file).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub(super) fn write_state(&self, state: &CheckoutState) -> anyhow::Result<()> {
        let next = self.state_file.with_extension("json.new");
        std::fs::write(&next, serde_json::to_string(state)?)?;
        std::fs::rename(&next, &self.state_file)?;
        Ok(())
    }

    /// Removes the folder and what is known about it.
    pub(super) fn clear(&self) -> anyhow::Result<()> {
        self.remove_locks()?;
        for file in [&self.state_file, &self.index] {
            ignore_missing(std::fs::remove_file(file))?;
        }
        remove_folder(self.folder)
            .with_context(|| format!("cannot remove {}", self.folder.display()))
    }

    /// Removes the locks of commands that were killed.
    pub(super) fn remove_locks(&self) -> std::io::Result<()> {
        for extension in ["index.lock", "restore.lock"] {
            ignore_missing(std::fs::remove_file(self.index.with_extension(extension)))?;
        }
        Ok(())
    }

    /// Keeps a folder whose files could not be saved, under another name.
    pub(super) fn set_aside(&self) -> anyhow::Result<()> {
        let name = format!("{}.unsaved-{}", self.id, crate::now_millis().0);
        let kept = self.folder.with_file_name(name);
        ignore_missing(std::fs::rename(self.folder, &kept))?;
        tracing::warn!(folder = %kept.display(), "files that were not saved are kept here");
        Ok(())
    }

    /// Makes the folder with these files, a branch or commit that it is at, and its branches.
    pub(super) async fn populate(
        &self,
        origin: &str,
        (head, commit): (&CheckoutHead, Option<&str>),
        tree: &str,
    ) -> anyhow::Result<()> {
        let own = self.folder.join(".git");
        std::fs::create_dir_all(self.folder)?;
        let (git, index) = (Git::new(&own), own.join("index"));
        git.run(&["init", "--quiet", "--template="]).await?;
        let alternates = own.join("objects/info");
        std::fs::create_dir_all(&alternates)?;
        std::fs::write(alternates.join("alternates"), repository_checks::alternates_text())?;
        git.run(&["config", "core.bare", "false"]).await?;
        git.run(&["config", "remote.origin.url", &without_password(origin)]).await?;
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
                if let Some(commit) = commit {
                    // Branches are pushed after the files.
                    git.run(&["update-ref", &name, commit]).await?;
                }
            }
            CheckoutHead::Commit(commit) => {
                git.run(&["update-ref", "--no-deref", "HEAD", commit]).await?;
            }
        }
        self.files().run(&["read-tree", "--reset", "-u", tree]).await?;
        let Some(commit) = commit else { return Ok(()) };
        let git = git.with_work_tree(self.folder, &index);
        git.run(&["read-tree", commit]).await?;
        // It fails if files have changed, which is why they are restored.
        let _ = git.run(&["update-index", "-q", "--refresh"]).await;
        Ok(())
    }

    /// Saves the files and branches, unless their digest is `saved_before`. Returns the digest.
    pub(super) async fn save(
        &self,
        point: SavePoint,
        saved_before: Option<&str>,
        is_still_ours: impl AsyncFnOnce() -> bool,
    ) -> anyhow::Result<String> {
        let store = self.project.git();
        let head = self.fetch_branches().await?;
        let commit = self.head_commit(&head).await;
        let (tree, omitted) = self.write_tree(commit.as_deref()).await?;
        let branches = store.run(&["for-each-ref", &self.heads()]).await?;
        let branches = String::from_utf8_lossy(&branches);
        let content = format!("{tree} {} {head}\n{branches}", commit.as_deref().unwrap_or("none"));
        let saved = BlobRef::for_bytes(content.as_bytes()).as_str().to_owned();
        if saved_before == Some(&saved) {
            return Ok(saved);
        }
        let message = CheckpointMessage { head, position: point.head, at: point.at, omitted };
        let message = message.to_text(point.session);
        let parent = commit.iter().flat_map(|commit| ["-p", commit.as_str()]);
        let arguments: Vec<&str> =
            ["commit-tree", &tree].into_iter().chain(parent).chain(["-m", &message]).collect();
        let checkpoint = store.line(&arguments).await?;
        if let Err(error) = self.push(&checkpoint).await {
            if !is_still_ours().await {
                bail!("another node has the session");
            }
            // The last node may have saved it late.
            self.fetch_saved().await.map_err(|_| error)?;
            self.fetch_branches().await?;
            self.push(&checkpoint).await?;
        }
        store.run(&["update-ref", &self.checkpoint(), &checkpoint]).await?;
        Ok(saved)
    }

    /// Fetches the branches of the checkout into the store, and returns the one that it is at.
    async fn fetch_branches(&self) -> anyhow::Result<CheckoutHead> {
        repository_checks::check(self.folder)?;
        let store = self.project.git();
        let folder = self.folder.to_string_lossy();
        let branches = format!("+refs/heads/*:{}/*", self.heads());
        let fetch = ["fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--"];
        store.run(&[&fetch[..], &[&folder, &branches]].concat()).await?;
        let text = repository_checks::read_head(self.folder)?;
        let head = CheckoutHead::parse(&text).context("the checkout is at no branch or commit")?;
        if let CheckoutHead::Commit(_) = &head {
            let detached = format!("+HEAD:{}/detached", self.refs());
            store.run(&[&fetch[..], &[&folder, &detached]].concat()).await?;
        }
        Ok(head)
    }

    /// Returns the commit that the checkout is at; none if its branch has no commit yet.
    async fn head_commit(&self, head: &CheckoutHead) -> Option<String> {
        let name = match head {
            CheckoutHead::Branch(branch) => format!("{}/{branch}", self.heads()),
            CheckoutHead::Commit(commit) => commit.clone(),
        };
        let commit = format!("{name}^{{commit}}");
        self.project.git().line(&["rev-parse", "--quiet", "--verify", &commit]).await.ok()
    }

    /// Stores all files that git does not ignore. Returns their tree, and the files that are left out.
    async fn write_tree(&self, commit: Option<&str>) -> anyhow::Result<(String, Vec<String>)> {
        let git = self.files();
        self.remove_locks()?;
        if let (false, Some(commit)) = (self.index.is_file(), commit) {
            git.run(&["read-tree", commit]).await?;
        }
        let (mut gone, mut added, mut omitted) = (Vec::new(), Vec::new(), Vec::new());
        let known = git.run(&["ls-files", "-z", "--modified", "--deleted"]).await?;
        for name in split_names(&known) {
            match find_file(self.folder, name) {
                Some(size) if size <= MAX_FILE_BYTES => added.push(name),
                // It is a folder now, or in a folder that is something else now.
                _ => gone.push(name),
            }
        }
        let others = git.run(&["ls-files", "-z", "--others", "--exclude-standard"]).await?;
        for name in split_names(&others) {
            match find_file(self.folder, name) {
                Some(size) if size <= MAX_FILE_BYTES => added.push(name),
                // It is large, or a repository in the checkout.
                _ => omitted.push(String::from_utf8_lossy(name).into_owned()),
            }
        }
        let remove = ["update-index", "-z", "--force-remove", "--stdin"];
        git.run_with_input(&remove, &join_names(&gone)).await?;
        let add = ["update-index", "-z", "--add", "--replace", "--remove", "--stdin"];
        if git.run_with_input(&add, &join_names(&added)).await.is_err() {
            // One of them cannot be read. The others are saved.
            for name in added {
                self.remove_locks()?;
                if git.run_with_input(&add, &join_names(&[name])).await.is_err() {
                    omitted.push(String::from_utf8_lossy(name).into_owned());
                    if omitted.len() > MAX_UNREADABLE_FILES {
                        bail!("too many files cannot be read: {}", omitted.join(", "));
                    }
                }
            }
        }
        omitted.truncate(MAX_NAMED_FILES);
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
        let store = store.with_user_config();
        store.run(&["push", "--quiet", "--no-verify", &lease, "--", &origin, &commit]).await?;
        let push = ["push", "--quiet", "--no-verify", "--prune", "--", &origin, &branches];
        if store.run(&push).await.is_err() {
            // A branch took the place of others, whose removal came later.
            store.run(&push).await?;
        }
        Ok(())
    }

    /// Fetches what is saved.
    pub(super) async fn fetch_saved(&self) -> anyhow::Result<()> {
        let origin = self.project.origin().await?;
        let every = format!("+{0}/*:{0}/*", self.refs());
        let fetch = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--prune", "--"];
        let fetch = [&fetch[..], &[&origin, &every]].concat();
        self.project.git().with_user_config().run(&fetch).await?;
        Ok(())
    }

    /// Returns the tree of the checkpoint with changes that the log has.
    pub(super) async fn add_changes(
        &self,
        log: &dyn Log,
        changes: BTreeMap<String, Option<FileVersion>>,
    ) -> anyhow::Result<RestoredTree> {
        // An index of its own: the files of the folder are not looked at.
        let index = self.index.with_extension("restore");
        ignore_missing(std::fs::remove_file(&index))?;
        let git = self.project.git().with_index(&index);
        git.run(&["read-tree", &self.checkpoint()]).await?;
        let (mut entries, mut lost) = (String::new(), Vec::new());
        for (path, version) in changes {
            let Some(version) = version else {
                entries.push_str(&format!("0 {NO_OBJECT}\t{path}\0"));
                continue;
            };
            let bytes = match log.get_copy(&version.blob).await {
                Ok(bytes) => bytes,
                Err(StorageError::CopyGone { .. }) => {
                    lost.push(path);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
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
        Ok(RestoredTree { tree, lost })
    }
}

/// Returns a URL without its password, for a session to read.
fn without_password(origin: &str) -> String {
    match Url::parse(origin) {
        Ok(mut url) if url.password().is_some() => {
            // Only a URL without a host cannot have one.
            let _ = url.set_password(None);
            url.into()
        }
        _ => origin.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn a_session_reads_no_password_in_the_url() {
        for (origin, shown) in [
            ("https://anna:secret@git.example/api.git", "https://anna@git.example/api.git"),
            ("ssh://git@git.example/api.git", "ssh://git@git.example/api.git"),
            ("git@git.example:api.git", "git@git.example:api.git"),
            ("/srv/git/api.git", "/srv/git/api.git"),
        ] {
            assert_eq!(without_password(origin), shown);
        }
    }
}
