//! Server pins are read back by their owner, from private files only.
#![allow(clippy::disallowed_methods, reason = "the tests set up files directly")]

use super::*;

fn test_dirs(folder: &Path) -> Dirs {
    Dirs {
        home: folder.to_owned(),
        config: folder.join("config"),
        data: folder.join("data"),
        cache: folder.join("cache"),
        plugins: folder.join("plugins"),
        managed_policy: None,
        tenant_policy: None,
        checkouts: std::collections::BTreeMap::new(),
    }
}

#[test]
fn pins_are_read_back_and_projects_share_none() {
    let folder = tempfile::tempdir().unwrap();
    let dirs = test_dirs(folder.path());
    let user_pins = McpServerPins::for_owner(&dirs, McpServerPinOwner::User);
    let project_pins =
        McpServerPins::for_owner(&dirs, McpServerPinOwner::Project(&folder.path().join("one")));
    user_pins.save("git", &vec![1, 2]).unwrap();
    assert_eq!(user_pins.read::<Vec<i32>>("git").unwrap(), Some(vec![1, 2]));
    assert_eq!(project_pins.read::<Vec<i32>>("git").unwrap(), None);
    user_pins.save("git", &vec![3]).unwrap();
    assert_eq!(user_pins.read::<Vec<i32>>("git").unwrap(), Some(vec![3]));
    assert!(user_pins.read::<String>("git").is_err(), "a value of another type must be an error");
}

#[cfg(unix)]
#[test]
fn pins_that_others_can_write_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let user_pins = McpServerPins::for_owner(&test_dirs(folder.path()), McpServerPinOwner::User);
    user_pins.save("git", &1).unwrap();
    let file = user_pins.pin_path("git");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(user_pins.read::<i32>("git").is_err());
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &file).unwrap();
    assert!(user_pins.read::<i32>("git").is_err());
}
