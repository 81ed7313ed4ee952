//! Both ways down a path refuse the same things.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "the tests arrange the world from outside")]

use super::*;
use crate::world::tests::Yard;
use std::io::Read;
use std::os::unix::fs::symlink;
use windlass_protocol::Access;

#[test]
fn one_call_and_many_steps_open_the_same_and_refuse_the_same() {
    let yard = Yard::new();
    yard.put("src/deep/b.txt", "b");
    symlink("a.txt", yard.root().join("src/link.txt")).unwrap();
    symlink("src", yard.root().join("folder-link")).unwrap();
    symlink(yard.outside(), yard.root().join("away")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(yard.root().join("pipe")).status();
    assert!(made.unwrap().success());
    let world = yard.granting(&[Access::Search { path: ".".into() }]);
    for (path, expected) in [("src/a.txt", "inside"), ("src/deep/b.txt", "b")] {
        for opened in [world.open_beneath(path), world.open_in_steps(path)] {
            let mut text = String::new();
            opened.unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, expected);
        }
        let (once, steps) = (world.modified_beneath(path), world.modified_in_steps(path));
        assert_eq!(once.unwrap(), steps.unwrap());
    }
    for path in
        ["src/link.txt", "folder-link/a.txt", "away/secret", "pipe", "src", "none", "src/a.txt/b"]
    {
        assert!(world.open_beneath(path).is_err(), "{path}");
        assert!(world.open_in_steps(path).is_err(), "{path}");
        assert!(world.modified_beneath(path).is_err(), "{path}");
        assert!(world.modified_in_steps(path).is_err(), "{path}");
    }
    assert!(matches!(world.open_beneath("pipe"), Err(Error::Special { .. })));
    assert!(matches!(world.open_beneath("none"), Err(Error::Missing { .. })));
    #[cfg(target_os = "linux")]
    for path in ["../outside/secret", "/etc/passwd", "away/secret"] {
        assert!(matches!(world.open_beneath(path), Err(Error::Swapped { .. })), "{path}");
    }
}
