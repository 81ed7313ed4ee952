//! What is kept is read again, by nobody else.
#![allow(clippy::disallowed_methods, reason = "the tests arrange files from outside")]

use super::*;

fn places(folder: &Path) -> Places {
    Places {
        home: folder.to_owned(),
        config: folder.join("config"),
        data: folder.join("data"),
        cache: folder.join("cache"),
        plugins: folder.join("plugins"),
        managed: None,
    }
}

#[test]
fn what_is_kept_is_read_again_and_projects_share_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let own = Pins::of(&places, Brought::Own);
    let one = Pins::of(&places, Brought::Project(&folder.path().join("one")));
    own.keep("git", &vec![1, 2]).unwrap();
    assert_eq!(own.read::<Vec<i32>>("git").unwrap(), Some(vec![1, 2]));
    assert_eq!(one.read::<Vec<i32>>("git").unwrap(), None);
    own.keep("git", &vec![3]).unwrap();
    assert_eq!(own.read::<Vec<i32>>("git").unwrap(), Some(vec![3]));
    assert!(own.read::<String>("git").is_err(), "it is something else");
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_or_swap_them() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let own = Pins::of(&places(folder.path()), Brought::Own);
    own.keep("git", &1).unwrap();
    let file = own.file("git");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(own.read::<i32>("git").is_err());
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &file).unwrap();
    assert!(own.read::<i32>("git").is_err());
}
