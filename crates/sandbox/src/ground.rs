//! Where the words of a command lead on this machine.
#![allow(clippy::disallowed_methods, reason = "the sandbox looks where paths of commands lead")]

use crate::cage::{self, Backend};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use windlass_permission::{Beneath, Places, Shelter};

/// How much a look beneath a folder takes in, and how deep it goes.
const MOST_ENTRIES: usize = 2_000;
const DEEPEST: usize = 4;
/// Folders that hold what was built or fetched.
const BUILT: [&str; 3] = ["node_modules", "target", ".git"];
/// How many links a path may lead through; no system follows more.
const MOST_LINKS: usize = 40;

/// What encloses commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Walls {
    /// The best that this machine gives; it is looked at when the first command comes.
    Best,
    /// This.
    Exactly(Backend),
    /// Nothing, because the person said so.
    Off,
}

impl Walls {
    pub(crate) fn backend(&self) -> Backend {
        match self {
            Walls::Best => cage::probe().backend.clone(),
            Walls::Exactly(backend) => backend.clone(),
            Walls::Off => Backend::Off,
        }
    }
}

/// A machine as its commands see it.
#[derive(Clone, Debug)]
pub struct Ground {
    root: PathBuf,
    home: Option<PathBuf>,
    /// Where programs are found.
    path: Vec<PathBuf>,
    walls: Walls,
}

impl Ground {
    /// The ground of a workspace, for commands with this environment.
    pub fn new(
        root: &Path,
        home: Option<&Path>,
        inherited: &[(OsString, OsString)],
        walls: Walls,
    ) -> Ground {
        let path = inherited.iter().find(|(name, _)| name == "PATH");
        let folders = path.map(|(_, value)| std::env::split_paths(value).collect());
        let folders: Vec<PathBuf> = folders.unwrap_or_default();
        let path = folders.into_iter().filter(|folder| folder.is_absolute()).collect();
        Ground { root: root.to_owned(), home: home.map(Path::to_owned), path, walls }
    }

    /// The program of a bare name, where programs are found, but never in the workspace.
    pub fn installed(&self, name: &Path) -> Option<PathBuf> {
        let folders = self.path.iter().map(PathBuf::as_path);
        let beyond = folders.filter(|folder| !self.real(folder).starts_with(&self.root));
        beyond.map(|folder| folder.join(name)).find(|path| runs(path))
    }
}

impl Places for Ground {
    fn root(&self) -> &Path {
        &self.root
    }

    fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    fn shelter(&self) -> Shelter {
        match (&self.walls, self.walls.backend()) {
            (Walls::Off, _) => Shelter::Off,
            (Walls::Best | Walls::Exactly(_), Backend::Off) => Shelter::Missing,
            (Walls::Best | Walls::Exactly(_), _) => Shelter::Standing,
        }
    }

    fn real(&self, path: &Path) -> PathBuf {
        path.canonicalize().unwrap_or_else(|_| follow(path))
    }

    fn beneath(&self, folder: &Path) -> Beneath {
        let mut found = Beneath { paths: Vec::new(), whole: true };
        let mut waiting = VecDeque::from([(PathBuf::new(), 0)]);
        while let Some((inner, depth)) = waiting.pop_front() {
            let entries = folder.join(&inner).read_dir().into_iter().flatten().flatten();
            for entry in entries {
                if found.paths.len() >= MOST_ENTRIES {
                    found.whole = false;
                    return found;
                }
                let path = inner.join(entry.file_name());
                let opens = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let built = BUILT.iter().any(|name| entry.file_name() == *name);
                if opens && !built && depth < DEEPEST {
                    waiting.push_back((path.clone(), depth + 1));
                } else if opens && !built {
                    found.whole = false;
                }
                found.paths.push(path);
            }
        }
        found
    }

    fn program(&self, name: &str) -> Option<PathBuf> {
        let file = |path: &PathBuf| path.is_file();
        self.path.iter().map(|folder| folder.join(name)).find(file)
    }
}

/// True for a file that can be run.
#[cfg(unix)]
pub(crate) fn runs(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn runs(path: &Path) -> bool {
    path.is_file()
}

/// Where a path leads that does not exist whole: every link on the way is followed, also one that
/// leads to nothing yet, and what is missing is taken as it is spelled.
fn follow(path: &Path) -> PathBuf {
    let parts = |path: &Path| -> Vec<PathBuf> {
        path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
    };
    let mut real = PathBuf::new();
    let mut waiting = parts(path);
    let mut links = 0;
    while let Some(part) = waiting.pop() {
        match part.components().next() {
            Some(Component::ParentDir) => {
                real.pop();
            }
            Some(Component::CurDir) | None => {}
            Some(Component::Prefix(_) | Component::RootDir) => real.push(part),
            Some(Component::Normal(_)) => {
                let next = real.join(part);
                match next.read_link() {
                    Ok(target) if links < MOST_LINKS => {
                        links += 1;
                        waiting.extend(parts(&target));
                    }
                    Ok(_) | Err(_) => real = next,
                }
            }
        }
    }
    real
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn ground(root: &Path) -> Ground {
        Ground::new(root, None, &[], Walls::Off)
    }

    #[test]
    fn a_missing_folder_and_a_link_to_nothing_hide_no_way_out() {
        let yard = tempfile::tempdir().unwrap();
        let yard = yard.path().canonicalize().unwrap();
        let root = yard.join("w");
        for name in ["w/a", "victim"] {
            std::fs::create_dir_all(yard.join(name)).unwrap();
        }
        symlink(yard.join("victim"), root.join("out")).unwrap();
        symlink("../victim/new", root.join("dangling")).unwrap();
        symlink("round", root.join("round")).unwrap();
        let ground = ground(&root);
        for (path, real) in [
            ("w/nx/../../victim/x", "victim/x"),
            ("w/nx/../out/x", "victim/x"),
            ("w/a/nx/../../../victim", "victim"),
            ("w/nx/./../b", "w/b"),
            ("w/dangling", "victim/new"),
            ("w/out/nx/../../w/x", "w/x"),
            ("w/nx/y", "w/nx/y"),
            ("w/a/..", "w"),
        ] {
            assert_eq!(ground.real(&yard.join(path)), yard.join(real), "{path}");
        }
        for path in ["w/round/../x", "w/nx/../../../../../../../../../../x", "../.."] {
            let real = ground.real(&yard.join(path));
            assert!(!real.components().any(|part| part == Component::ParentDir), "{path}");
        }
    }

    #[test]
    fn a_program_is_one_that_runs_and_not_the_workspace_s_own() {
        use std::os::unix::fs::PermissionsExt;
        let yard = tempfile::tempdir().unwrap();
        let yard = yard.path().canonicalize().unwrap();
        let folders = ["w/bin", "plain", "link", "bin"].map(|name| yard.join(name));
        for folder in [&folders[0], &folders[1], &folders[3]] {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join("tool"), "").unwrap();
        }
        symlink(&folders[0], &folders[2]).unwrap();
        for folder in [&folders[0], &folders[3]] {
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(folder.join("tool"), mode).unwrap();
        }
        let path = std::env::join_paths(&folders).unwrap();
        let inherited = [("PATH".into(), path)];
        let ground = Ground::new(&yard.join("w"), None, &inherited, Walls::Off);
        assert_eq!(ground.installed(Path::new("tool")), Some(yard.join("bin/tool")));
        assert_eq!(ground.installed(Path::new("other")), None);
    }

    #[test]
    fn a_look_beneath_finds_what_is_near_and_says_where_it_ends() {
        let yard = tempfile::tempdir().unwrap();
        let at = |name: &str| yard.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::create_dir_all(at("target/c")).unwrap();
        std::fs::write(at("a/b/.env"), "").unwrap();
        symlink("/", at("link")).unwrap();
        let ground = ground(yard.path());
        let found = ground.beneath(yard.path());
        assert!(found.whole && found.paths.contains(&PathBuf::from("a/b/.env")), "{found:?}");
        assert!(!found.paths.iter().any(|path| path.starts_with("target/c")));
        assert_eq!(found.paths.len(), 5);
        std::fs::create_dir_all(at("1/2/3/4/5/6")).unwrap();
        assert!(!ground.beneath(yard.path()).whole);
        for number in 0..MOST_ENTRIES {
            std::fs::write(at(&format!("a/{number}")), "").unwrap();
        }
        let found = ground.beneath(yard.path());
        assert!(!found.whole && found.paths.len() == MOST_ENTRIES);
        assert_eq!(ground.beneath(&at("nothing")), Beneath { paths: Vec::new(), whole: true });
    }
}
