//! What no command reads: keys, logins, the memory of browsers and of other agents.
//!
//! The names are those that the judge knows, found in a home folder. What a command needs to know
//! of these, such as who commits, comes from elsewhere.
#![allow(clippy::disallowed_methods, reason = "the sandbox looks what there is to hide")]

use std::path::{Path, PathBuf};
use windlass_permission::HOME_SECRETS;

/// Files of the system that only matter to a command that runs as root.
const SYSTEM: &[&str] = &["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d"];

/// What to hide from commands of whoever has this home folder.
pub fn secrets(home: &Path) -> Vec<PathBuf> {
    let own = HOME_SECRETS.iter().flat_map(|name| expand(home, name));
    own.chain(SYSTEM.iter().map(PathBuf::from)).collect()
}

/// The path of a name, and of all that begin with it where a star stands at its end.
fn expand(home: &Path, name: &str) -> Vec<PathBuf> {
    let Some(stem) = name.strip_suffix('*') else { return vec![home.join(name)] };
    let path = home.join(stem);
    let mut found = vec![path.clone()];
    let (Some(folder), Some(start)) = (path.parent(), path.file_name()) else { return found };
    let start = start.to_string_lossy();
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let begins = |name: &std::ffi::OsString| name.to_string_lossy().starts_with(&*start);
    let names = entries.map(|entry| entry.file_name()).filter(begins);
    found.extend(names.map(|name| folder.join(name)).filter(|other| *other != path));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_means_what_stands_there_and_the_bare_name_what_may_come() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        std::fs::create_dir_all(at(".config/google-chrome-beta")).unwrap();
        std::fs::create_dir_all(at(".config/google")).unwrap();
        let hidden = secrets(home.path());
        for name in [".ssh", ".config/google-chrome", ".config/google-chrome-beta", ".aider"] {
            assert!(hidden.contains(&at(name)), "{name}");
        }
        assert!(!hidden.contains(&at(".config/google")));
        assert!(hidden.iter().all(|path| !path.to_string_lossy().contains('*')));
    }
}
