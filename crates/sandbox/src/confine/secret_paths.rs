//! Secret paths that no command may read: keys, logins, and data of browsers and other agents.
//!
//! The names come from `permission` (`HOME_SECRET_PATHS`) and apply to a home folder. Commands get
//! the values that they need from these files, such as the git author, in another way.
#![allow(clippy::disallowed_methods, reason = "checks which secret paths exist")]

use std::path::{Path, PathBuf};
use windlass_permission::HOME_SECRET_PATHS;

/// System files that matter only for a command that runs as root, such as `/etc/shadow`.
const SYSTEM_SECRET_FILES: &[&str] =
    &["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d"];

/// Returns the paths to hide from the commands of the user with this home folder.
pub fn secret_paths(home: &Path) -> Vec<PathBuf> {
    let home_paths = HOME_SECRET_PATHS.iter().flat_map(|name| expand_star(home, name));
    home_paths.chain(SYSTEM_SECRET_FILES.iter().map(PathBuf::from)).collect()
}

/// Returns the path of a name. For a name with a trailing `*`, adds all existing paths that begin
/// with it.
fn expand_star(home: &Path, name: &str) -> Vec<PathBuf> {
    let Some(stem) = name.strip_suffix('*') else { return vec![home.join(name)] };
    let path = home.join(stem);
    let mut paths = vec![path.clone()];
    let (Some(folder), Some(prefix)) = (path.parent(), path.file_name()) else { return paths };
    let prefix = prefix.to_string_lossy();
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let has_prefix = |name: &std::ffi::OsString| name.to_string_lossy().starts_with(&*prefix);
    let names = entries.map(|entry| entry.file_name()).filter(has_prefix);
    paths.extend(names.map(|name| folder.join(name)).filter(|candidate| *candidate != path));
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_existing_folders_and_the_bare_name_is_included() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        std::fs::create_dir_all(at(".config/google-chrome-beta")).unwrap();
        std::fs::create_dir_all(at(".config/google")).unwrap();
        let hidden = secret_paths(home.path());
        for name in [".ssh", ".config/google-chrome", ".config/google-chrome-beta", ".aider"] {
            assert!(hidden.contains(&at(name)), "{name}");
        }
        assert!(!hidden.contains(&at(".config/google")));
        assert!(hidden.iter().all(|path| !path.to_string_lossy().contains('*')));
    }
}
