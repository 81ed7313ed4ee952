//! Tests of the temp folder of a session.
#![allow(clippy::disallowed_methods, reason = "the test inspects the folder directly")]

use super::*;

#[test]
fn the_temp_folder_is_private_to_the_user() {
    let folder = create_temp_dir().unwrap();
    let mode = std::fs::metadata(folder.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
