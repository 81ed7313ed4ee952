//! Walks a folder as ripgrep does, and shows only files that the grant reveals.
//!
//! The walk leaves out ignored and hidden files by the rules of ripgrep and does not follow
//! symbolic links. It skips a folder with unusable ignore files and reports that, see
//! `ignore_files`. The walk uses paths, and a folder may become a symbolic link meanwhile, so a
//! result is only a name: a [`FoundFile`] opens the file, and reads its modification time, beneath
//! the workspace's directory handle. Start reading at [`CallWorkspace::walk`].

use crate::error::{Error, io_error};
use crate::fs::ignore_file_checks::{
    IgnoreFileKind, IgnoreFileProblem, IgnoreFileProblemEffect, IgnoreFileProblems,
};
use crate::{CallWorkspace, FileStat, Workspace};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder, WalkState};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use windlass_protocol::ToolAccess;
use windlass_protocol::path_escapes::escape_path;

/// A walk of a folder, or of a single file, limited to the grant.
pub struct FileWalk<'a> {
    workspace: &'a CallWorkspace,
    start: PathBuf,
    glob_base: PathBuf,
    ignore_problems: IgnoreFileProblems,
}

/// Filter for the files of a walk.
#[derive(Clone, Debug, Default)]
pub struct FileFilter {
    /// Globs as in `rg --glob`, relative to the folder of the walk: one without `/` matches at any
    /// depth, `!` excludes, and a glob that names an ignored file includes it. A glob that ends in
    /// `*` or `**` names no file, so it includes nothing that is ignored. No glob includes `.git`.
    pub globs: Vec<String>,
}

/// A file that existed when the walk passed.
pub struct FoundFile<'a> {
    workspace: &'a CallWorkspace,
    path: String,
}

impl CallWorkspace {
    /// Prepares the walk of a folder or of a single file.
    pub fn walk(&self, path: &str) -> Result<FileWalk<'_>, Error> {
        let real = self.workspace().resolve_path(path)?;
        self.check_granted(ToolAccess::Search { path: real.clone() }, &real)?;
        let root = self.workspace().root();
        if real == "." {
            return Ok(FileWalk {
                workspace: self,
                start: root.to_owned(),
                glob_base: root.to_owned(),
                ignore_problems: IgnoreFileProblems::default(),
            });
        }
        let start = self.workspace().absolute_path(&real);
        let target = self.open_existing_parent(real)?;
        let metadata = target.parent.symlink_metadata(&target.name);
        let metadata = metadata.map_err(|error| io_error(&target.path, error))?;
        let glob_base = match (metadata.is_dir(), metadata.is_file()) {
            (true, _) => start.clone(),
            (false, true) => start.parent().unwrap_or(root).to_owned(),
            (false, false) => return Err(Error::SpecialFile { path: target.path }),
        };
        Ok(FileWalk {
            workspace: self,
            start,
            glob_base,
            ignore_problems: IgnoreFileProblems::default(),
        })
    }
}

impl Workspace {
    /// Lists up to `limit` regular files for which `matches` returns true and that are not ignored,
    /// with modification time and size but without reading their content. It may take a while.
    pub fn list_files(
        &self,
        matches: &dyn Fn(&str) -> bool,
        limit: usize,
    ) -> Vec<(String, FileStat)> {
        let walk = self.walk_builder(self.root(), &IgnoreFileProblems::default()).build();
        let files = walk.filter_map(|entry| {
            let entry =
                entry.ok().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
            let path = self.to_workspace_path(entry?.path()).filter(|path| matches(path))?;
            self.stat(&path).map(|stat| (path, stat))
        });
        files.take(limit).collect()
    }

    /// Builds a walk by the rules of ripgrep from a folder or file of the workspace, with those
    /// ignore files that are usable.
    pub(crate) fn walk_builder(&self, start: &Path, problems: &IgnoreFileProblems) -> WalkBuilder {
        let root = self.root();
        let usable_kinds = problems.usable_kinds(start, root);
        let mut walk = WalkBuilder::new(start);
        walk.current_dir(root)
            .git_ignore(usable_kinds.contains(&IgnoreFileKind::GitIgnore))
            .ignore(usable_kinds.contains(&IgnoreFileKind::DotIgnore))
            .git_exclude(usable_kinds.contains(&IgnoreFileKind::GitExclude));
        if usable_kinds.contains(&IgnoreFileKind::RipgrepIgnore) {
            walk.add_custom_ignore_filename(IgnoreFileKind::RipgrepIgnore.file_name());
        }
        let problems = problems.clone();
        #[cfg(target_os = "macos")]
        let home = std::env::home_dir();
        walk.filter_entry(move |entry| {
            if entry.depth() == 0 || !entry.file_type().is_some_and(|kind| kind.is_dir()) {
                return true;
            }
            #[cfg(target_os = "macos")]
            if home.as_ref().is_some_and(|home| is_privacy_protected(home, entry.path())) {
                return false;
            }
            problems.can_enter(entry.path())
        });
        walk
    }

    /// Converts a path of a walk into the form that tools use: relative to the workspace, or
    /// absolute outside.
    fn to_tool_path(&self, path: &Path) -> Option<String> {
        match path.starts_with(self.root()) {
            true => self.to_workspace_path(path),
            false => escape_path(path.as_os_str()).map(|path| path.into_owned()),
        }
    }

    /// Returns a path relative to the workspace. Returns `None` for a path outside.
    pub(crate) fn to_workspace_path(&self, path: &Path) -> Option<String> {
        let relative = path.strip_prefix(self.root()).ok()?;
        let relative = escape_path(relative.as_os_str())?;
        Some(if cfg!(windows) { relative.replace('\\', "/") } else { relative.into_owned() })
    }
}

impl<'a> FileWalk<'a> {
    /// Returns the files in the order of their paths. The iterator is lazy, so a caller that has
    /// enough stops early.
    pub fn files(
        &self,
        filter: &FileFilter,
    ) -> Result<impl Iterator<Item = FoundFile<'a>> + use<'a>, Error> {
        let (mut walk, walk_filter) = self.build_walk(filter)?;
        walk.sort_by_file_name(Ord::cmp);
        Ok(walk.build().filter_map(move |entry| walk_filter.to_found_file(&entry.ok()?)))
    }

    /// Visits all files in no particular order, with one thread per core, until `stop` returns
    /// true.
    pub fn visit_parallel(
        &self,
        filter: &FileFilter,
        stop: &(dyn Fn() -> bool + Sync),
        visit: &(dyn Fn(FoundFile<'a>) + Sync),
    ) -> Result<(), Error> {
        let (mut walk, walk_filter) = self.build_walk(filter)?;
        let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
        walk.threads(threads).build_parallel().run(|| {
            Box::new(|entry| {
                if stop() {
                    return WalkState::Quit;
                }
                if let Some(found) = entry.ok().and_then(|entry| walk_filter.to_found_file(&entry))
                {
                    visit(found);
                }
                WalkState::Continue
            })
        });
        Ok(())
    }

    /// Returns messages about the ignore files that the walks so far could not use.
    pub fn notes(&self) -> Vec<String> {
        self.ignore_problems
            .all()
            .iter()
            .filter_map(|problem| self.describe_problem(problem))
            .collect()
    }

    fn describe_problem(&self, problem: &IgnoreFileProblem) -> Option<String> {
        let name = problem.kind.file_name();
        let folder = self.workspace.workspace().to_workspace_path(&problem.folder);
        Some(match (problem.effect, folder.as_deref()) {
            (IgnoreFileProblemEffect::FolderSkipped, Some(folder))
                if self.workspace.may_reveal(folder) =>
            {
                format!(
                    "{folder} was skipped, because its {name} is not a regular file of at most \
                     256 KiB"
                )
            }
            (IgnoreFileProblemEffect::FolderSkipped, Some(_) | None) => return None,
            (IgnoreFileProblemEffect::KindDisabled, folder) => {
                let location = match folder {
                    Some("") => "of the workspace",
                    Some(folder) => &format!("of {folder}"),
                    None => "above the workspace",
                };
                format!(
                    "the {name} {location} is not a regular file of at most 256 KiB, so no {name} \
                     was applied and ignored files may be included"
                )
            }
        })
    }

    fn build_walk(&self, filter: &FileFilter) -> Result<(WalkBuilder, WalkFilter<'a>), Error> {
        let globs: Vec<String> = filter.globs.iter().map(|glob| normalize_glob(glob)).collect();
        let (excluding, including): (Vec<&String>, Vec<&String>) =
            globs.iter().partition(|glob| glob.starts_with('!'));
        let has_catch_all = including.iter().any(|glob| is_catch_all(glob));
        let git = "!.git".to_owned();
        let overrides = match (has_catch_all, including.is_empty()) {
            (true, _) | (_, true) => self.build_glob_overrides(&excluding)?,
            (false, false) => {
                self.build_glob_overrides(&globs.iter().chain([&git]).collect::<Vec<_>>())?
            }
        };
        let narrowing_globs =
            if has_catch_all { self.build_glob_overrides(&including)? } else { Override::empty() };
        let mut walk = self.workspace.workspace().walk_builder(&self.start, &self.ignore_problems);
        walk.overrides(overrides);
        Ok((walk, WalkFilter { workspace: self.workspace, narrowing_globs }))
    }

    fn build_glob_overrides(&self, globs: &[&String]) -> Result<Override, Error> {
        let mut builder = OverrideBuilder::new(&self.glob_base);
        for glob in globs {
            let result = builder.add(glob);
            result.map_err(|error| Error::InvalidGlob {
                glob: (*glob).clone(),
                reason: glob_error_text(error),
            })?;
        }
        let joined = || globs.iter().map(|glob| glob.as_str()).collect::<Vec<_>>().join(" ");
        builder
            .build()
            .map_err(|error| Error::InvalidGlob { glob: joined(), reason: glob_error_text(error) })
    }
}

/// Filter that decides which entries a walk shows as `FoundFile`.
struct WalkFilter<'a> {
    workspace: &'a CallWorkspace,
    /// Globs that exclude files but include no ignored ones.
    narrowing_globs: Override,
}

impl<'a> WalkFilter<'a> {
    fn to_found_file(&self, entry: &DirEntry) -> Option<FoundFile<'a>> {
        if !entry.file_type()?.is_file() {
            return None;
        }
        if entry.depth() > 0 && self.narrowing_globs.matched(entry.path(), false).is_ignore() {
            return None;
        }
        let path = self.workspace.workspace().to_tool_path(entry.path())?;
        self.workspace.may_reveal(&path).then_some(FoundFile { workspace: self.workspace, path })
    }
}

impl FoundFile<'_> {
    /// Returns the path relative to the workspace, or an absolute one outside, with `/` as separator.
    pub fn into_path(self) -> String {
        self.path
    }

    /// Opens the file if it is still a regular file and no component of its path has become a
    /// symbolic link.
    pub fn open(&self) -> Result<File, Error> {
        self.workspace.open_beneath(&self.path)
    }

    /// Returns the modification time, under the same conditions as `open`.
    pub fn modified(&self) -> Result<SystemTime, Error> {
        self.workspace.modified_beneath(&self.path)
    }
}

/// Normalizes a glob: drops a leading `./`, escapes `#`, which would start a comment, and lets a
/// folder match its content.
fn normalize_glob(glob: &str) -> String {
    let glob = glob.trim();
    let (negation, glob) = glob.strip_prefix('!').map_or(("", glob), |glob| ("!", glob));
    let glob = glob.strip_prefix("./").unwrap_or(glob);
    let escape = if glob.starts_with('#') { "\\" } else { "" };
    let inside = if glob.len() > 1 && glob.ends_with('/') { "**" } else { "" };
    format!("{negation}{escape}{glob}{inside}")
}

/// Returns true for a glob that matches every entry of a folder, including folders.
fn is_catch_all(glob: &str) -> bool {
    matches!(glob.rsplit('/').next(), Some("*" | "**" | ""))
}

fn glob_error_text(error: ignore::Error) -> String {
    match error {
        ignore::Error::Glob { err, .. } => err,
        other => other.to_string(),
    }
}

/// Returns true for the folders of a home that macOS protects. Merely listing one makes macOS ask
/// the user for permission, so a walk enters it only if it starts there.
#[cfg(any(target_os = "macos", test))]
fn is_privacy_protected(home: &Path, path: &Path) -> bool {
    const PROTECTED_HOME_FOLDERS: [&str; 8] =
        [".Trash", "Desktop", "Documents", "Downloads", "Library", "Movies", "Music", "Pictures"];
    path.parent() == Some(home)
        && path
            .file_name()
            .is_some_and(|name| PROTECTED_HOME_FOLDERS.iter().any(|folder| name == *folder))
}

#[cfg(test)]
mod tests;
